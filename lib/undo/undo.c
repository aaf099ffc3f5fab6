/* The undo self-test. Runs in a process of ours (hearthd, hearth) and, for each scenario, in a
 * throw-away child of it, which may crash or hang. Must never run in a user's program. */
#include "undo/undo.h"

#include "base/clock.h"
#include "driver/copy.h"
#include "driver/quiet.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CUDA_SUCCESS 0
#define CUDA_ERROR_NOT_INITIALIZED 3
#define CUDA_ERROR_NO_DEVICE 100

/* What a driver answers on a machine that is busy, shared or not up (CUDA Driver API, CUresult):
 * nothing about its inside. OUT_OF_MEMORY, DEVICE_UNAVAILABLE, NO_DEVICE, SYSTEM_NOT_READY,
 * SYSTEM_DRIVER_MISMATCH. */
static const int circumstances[] = {2, 46, 100, 802, 803};

static const char *const names[UNDO_SCENARIOS] = {"pristine", "fork", "squash", "changed"};

static const char *const results[] = {
	[UNDO_PASSED] = "passed",
	[UNDO_FAILED] = "failed",
	[UNDO_DIED] = "died",
	[UNDO_HUNG] = "hung",
	[UNDO_NOT_RUN] = "not run",
};

/* The entries the scenarios use, in one copy. */
struct entries {
	int (*init)(unsigned int);
	int (*get_count)(int *);
	int (*get_device)(int *);
	int (*retain)(void **, int);
	int (*release)(int);
	int (*set_current)(void *);
	int (*alloc)(unsigned long long *, size_t);
	int (*to_device)(unsigned long long, const void *, size_t);
	int (*to_host)(void *, unsigned long long, size_t);
	int (*free)(unsigned long long);
};

/* What a child sends its parent, in one write. */
struct message {
	int is_passed, rc;
	char step[32];
};

struct child {
	const char *path;
	struct message message;
	struct driver_copy quiet_copy;
	struct entries quiet, fresh;
};

static bool check(struct child *child, const char *step, int rc, int expected)
{
	memset(child->message.step, 0, sizeof(child->message.step));
	strncpy(child->message.step, step, sizeof(child->message.step) - 1);
	child->message.rc = rc;
	return rc == expected;
}

static bool find_entries(
	struct child *child, const struct driver_copy *copy, struct entries *ret_entries)
{
	const struct {
		const char *name;
		void **slot;
	} wanted[] = {
		{"cuInit", (void **)&ret_entries->init},
		{"cuDeviceGetCount", (void **)&ret_entries->get_count},
		{"cuCtxGetDevice", (void **)&ret_entries->get_device},
		{"cuDevicePrimaryCtxRetain", (void **)&ret_entries->retain},
		{"cuDevicePrimaryCtxRelease_v2", (void **)&ret_entries->release},
		{"cuCtxSetCurrent", (void **)&ret_entries->set_current},
		{"cuMemAlloc_v2", (void **)&ret_entries->alloc},
		{"cuMemcpyHtoD_v2", (void **)&ret_entries->to_device},
		{"cuMemcpyDtoH_v2", (void **)&ret_entries->to_host},
		{"cuMemFree_v2", (void **)&ret_entries->free},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		*wanted[i].slot = dlsym(copy->handle, wanted[i].name);
		if (!check(child, wanted[i].name, *wanted[i].slot ? 0 : -ENOENT, 0))
			return false;
	}
	return true;
}

static bool open_fresh(struct child *child)
{
	struct driver_copy copy;

	return check(child, "open a fresh copy", copy_open_fresh(child->path, &copy), 0) &&
	       find_entries(child, &copy, &child->fresh);
}

/* A value goes to the device and comes back. */
static bool compute(struct child *child, const struct entries *entries)
{
	unsigned long long memory;
	int sent = 0x48726968, received = 0;
	void *context;

	return check(child, "cuDevicePrimaryCtxRetain", entries->retain(&context, 0), 0) &&
	       check(child, "cuCtxSetCurrent", entries->set_current(context), 0) &&
	       check(child, "cuMemAlloc", entries->alloc(&memory, 4096), 0) &&
	       check(child, "cuMemcpyHtoD", entries->to_device(memory, &sent, sizeof(sent)), 0) &&
	       check(child, "cuMemcpyDtoH", entries->to_host(&received, memory, sizeof(received)),
		       0) &&
	       check(child, "the value that came back", received, sent) &&
	       check(child, "cuMemFree", entries->free(memory), 0);
}

static void *speculate(void *argument)
{
	struct child *child = argument;
	void *context;

	quiet_begin(QUIET_INIT);
	if (check(child, "speculative cuInit", child->quiet.init(0), CUDA_SUCCESS)) {
		quiet_begin(QUIET_CONTEXT);
		check(child, "speculative retain", child->quiet.retain(&context, 0), CUDA_SUCCESS);
	}
	quiet_end();
	/* Also after a squash, as in a program. */
	quiet_choose_exits(true);
	return NULL;
}

static bool start(struct child *child)
{
	pthread_t thread;
	int error;

	if (!check(child, "open", copy_open(child->path, &child->quiet_copy), 0) ||
		!find_entries(child, &child->quiet_copy, &child->quiet) ||
		!check(child, "snapshot the environment", quiet_snapshot(), 0) ||
		!check(child, "redirect imports", quiet_prepare(&child->quiet_copy, NULL), 0))
		return false;
	error = pthread_create(&thread, NULL, speculate, child);
	if (error)
		return check(child, "create a thread", error, 0);
	pthread_join(thread, NULL);
	return child->message.rc == CUDA_SUCCESS &&
	       check(child, "environment was set", !quiet_is_valid(QUIET_INIT, NULL), 0);
}

static bool run_pristine(struct child *child)
{
	int count, device;

	return start(child) && open_fresh(child) &&
	       check(child, "cuDeviceGetCount before cuInit", child->fresh.get_count(&count),
		       CUDA_ERROR_NOT_INITIALIZED) &&
	       check(child, "cuCtxGetDevice before cuInit", child->fresh.get_device(&device),
		       CUDA_ERROR_NOT_INITIALIZED) &&
	       compute(child, &child->quiet);
}

static bool run_fork(struct child *child)
{
	int status;
	pid_t pid;

	if (!start(child))
		return false;
	pid = fork();
	if (pid < 0)
		return check(child, "fork", errno, 0);
	if (!pid) {
		bool is_right = !prctl(PR_SET_PDEATHSIG, SIGKILL) && open_fresh(child) &&
				check(child, "cuInit in a fork child", child->fresh.init(0),
					CUDA_SUCCESS) &&
				compute(child, &child->fresh);

		_exit(is_right ? 0 : child->message.rc & 0xff ? child->message.rc & 0xff : 255);
	}
	if (waitpid(pid, &status, 0) < 0)
		return check(child, "wait", errno, 0);
	return check(child, "a fork child's work",
		       WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), 0) &&
	       compute(child, &child->quiet);
}

static bool give_up(struct child *child)
{
	return check(child, "release", child->quiet.release(0), CUDA_SUCCESS) &&
	       check(child, "free the socket", copy_retire(), 1) && open_fresh(child);
}

static bool run_squash(struct child *child)
{
	return start(child) && give_up(child) &&
	       check(child, "cuInit after a squash", child->fresh.init(0), CUDA_SUCCESS) &&
	       compute(child, &child->fresh);
}

static bool run_changed(struct child *child)
{
	const char *changed;

	if (!start(child))
		return false;
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	return check(child, "see the change", quiet_is_valid(QUIET_INIT, &changed), false) &&
	       give_up(child) &&
	       check(child, "cuInit without a device", child->fresh.init(0), CUDA_ERROR_NO_DEVICE);
}

static void run_child(const char *path, enum undo_scenario scenario, int to_parent)
{
	bool (*const run[UNDO_SCENARIOS])(struct child *) = {
		run_pristine, run_fork, run_squash, run_changed};
	struct child child = {.path = path};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child.message.is_passed = run[scenario](&child);
	if (write(to_parent, &child.message, sizeof(child.message)) < 0)
		_exit(1);
	/* As a program ends: what the driver does at exit is part of the proof. */
	exit(0);
}

static bool is_circumstance(int rc)
{
	for (size_t i = 0; i < sizeof(circumstances) / sizeof(*circumstances); i++)
		if (rc == circumstances[i])
			return true;
	return false;
}

/* Waits for the child's message and its end, up to the limit. */
static int finish_child(pid_t pid, int from_child, struct message *ret_message)
{
	uint64_t deadline = clock_monotonic_us() + UNDO_LIMIT_US, now;
	struct pollfd readable = {.fd = from_child, .events = POLLIN};
	bool has_message = false, is_open = true;
	int status;

	while (is_open && (now = clock_monotonic_us()) < deadline &&
		poll(&readable, 1, (int)((deadline - now) / 1000 + 1)) >= 0) {
		ssize_t size =
			readable.revents ? read(from_child, ret_message, sizeof(*ret_message)) : -1;

		if (size == (ssize_t)sizeof(*ret_message))
			has_message = true;
		else if (!size)
			is_open = false;
	}
	if (is_open)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return UNDO_NOT_RUN;
	if (is_open)
		return UNDO_HUNG;
	if (WIFSIGNALED(status)) {
		ret_message->rc = WTERMSIG(status);
		return UNDO_DIED;
	}
	if (has_message && ret_message->is_passed)
		return UNDO_PASSED;
	return has_message && is_circumstance(ret_message->rc) ? UNDO_NOT_RUN : UNDO_FAILED;
}

/* One bad scenario outweighs any number that could not be run. */
static int sum_up(const struct undo_verdict *verdict)
{
	int outcome = 0;

	for (int i = 0; i < UNDO_SCENARIOS; i++) {
		enum undo_result result = verdict->scenario[i].result;

		if (result == UNDO_NOT_RUN && !outcome)
			outcome = UNDO_UNPROVED;
		else if (result != UNDO_NOT_RUN && result != UNDO_PASSED)
			outcome = UNDO_DISPROVED;
	}
	return outcome;
}

int undo_test(const char *driver_path, struct undo_verdict *ret_verdict)
{
	struct undo_verdict verdict = {0};

	for (int i = 0; i < UNDO_SCENARIOS; i++) {
		uint64_t began = clock_monotonic_us();
		struct message message = {0};
		int ends[2];
		pid_t pid;

		if (pipe2(ends, O_CLOEXEC))
			return -errno;
		pid = fork();
		if (pid < 0) {
			int error = -errno;

			close(ends[0]);
			close(ends[1]);
			return error;
		}
		if (!pid) {
			close(ends[0]);
			run_child(driver_path, i, ends[1]);
		}
		close(ends[1]);
		verdict.scenario[i].result = finish_child(pid, ends[0], &message);
		close(ends[0]);
		verdict.scenario[i].rc = message.rc;
		memcpy(verdict.scenario[i].step, message.step, sizeof(message.step));
		verdict.scenario[i].step[sizeof(message.step) - 1] = '\0';
		verdict.scenario[i].took_us = clock_monotonic_us() - began;
	}
	*ret_verdict = verdict;
	return sum_up(&verdict);
}

void undo_format(const struct undo_verdict *verdict, char ret_text[UNDO_TEXT_MAX])
{
	size_t length = 0;

	for (int i = 0; i < UNDO_SCENARIOS; i++)
		length += (size_t)snprintf(ret_text + length, UNDO_TEXT_MAX - length,
			"%s: %s with %d at \"%s\", %.1f ms\n", names[i],
			results[verdict->scenario[i].result], verdict->scenario[i].rc,
			verdict->scenario[i].step, (double)verdict->scenario[i].took_us / 1000);
}
