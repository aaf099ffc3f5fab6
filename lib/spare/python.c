/* The python of a spare, from its parent's side. Runs in what holds a spare, which has one thread.
 * The python dies with its parent; it has no descriptor but 0 to 5, of which it closes its own
 * three before a program runs. */
#include "spare/python.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/socket.h"
#include "spare/bootstrap.h"
#include "spare/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTROL_FD 3 /* as bootstrap.py has them */
#define NAMES_FD 4
#define ANSWER_LIMIT_US 250000 /* less than a client waits */
#define ANSWER_SIZE 1024

static void default_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static char **make_words(const struct spare_plan *plan, char *const *imports)
{
	size_t count = 0, at = 0;
	char **words;

	while (imports[count])
		count++;
	words = calloc(count + (size_t)plan->flag_count + 4, sizeof(*words));
	if (!words)
		return NULL;
	words[at++] = (char *)plan->python;
	for (int i = 0; i < plan->flag_count; i++)
		words[at++] = plan->flags[i];
	words[at++] = (char *)"-c";
	words[at++] = (char *)bootstrap_text;
	for (size_t i = 0; i < count; i++)
		words[at++] = imports[i];
	return words;
}

/* libhearth.so learns that it is in a spare. The program never sees it: it gets its own. */
static void note_spare(void)
{
	const char *users = env_get(ENV_HEARTH_SPECULATE);
	char value[32];

	snprintf(value, sizeof(value), "spare:%d", (int)getpid());
	if ((!users || strcmp(users, "off") != 0) && setenv("HEARTH_SPECULATE", value, 1))
		_exit(1);
}

static _Noreturn void run_in_child(const struct spare_plan *plan, char **words, int control,
	const struct python *python, int page, pid_t parent)
{
	int null, names, printed;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setpgid(0, 0); /* the terminal is the holder's until a program has it */
	default_signals();
	/* Out of the way first: one of them may be 3, 4 or 5. */
	control = fcntl(control, F_DUPFD_CLOEXEC, SPARE_PAGE_FD + 1);
	names = fcntl(python->names, F_DUPFD_CLOEXEC, SPARE_PAGE_FD + 1);
	printed = fcntl(python->printed, F_DUPFD_CLOEXEC, SPARE_PAGE_FD + 1);
	page = fcntl(page, F_DUPFD_CLOEXEC, SPARE_PAGE_FD + 1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	dup2(printed, STDOUT_FILENO);
	dup2(printed, STDERR_FILENO);
	dup2(control, CONTROL_FD);
	dup2(names, NAMES_FD);
	dup2(page, SPARE_PAGE_FD);
	environ = plan->environment;
	if (plan->is_auto)
		unsetenv("HEARTH_LOG_LEVEL"); /* what is said is taken for the imports' */
	note_spare();
	execve(plan->python, words, environ);
	_exit(1);
}

/* Neither side can make the other fault by shrinking it. */
static int make_page(const struct spare_plan *plan, struct spare_page **ret_page)
{
	int fd = (int)syscall(
		SYS_memfd_create, "hearth-spare-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page;
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, SPARE_PAGE_SIZE) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		rc = -errno;
	page = rc ? MAP_FAILED
		  : mmap(NULL, SPARE_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		rc = rc ? rc : -errno;
		close(fd);
		return rc;
	}
	memcpy(page, &plan->page, sizeof(plan->page));
	*ret_page = page;
	return fd;
}

int python_start(
	const struct spare_plan *plan, char *const *imports, bool is_off, struct python *ret_python)
{
	struct python python = {.names = -1, .printed = -1};
	pid_t parent = getpid();
	int pair[2], page, rc = 0;
	char **words = make_words(plan, imports);

	if (!words)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		free(words);
		return -errno;
	}
	python.control = pair[0];
	page = make_page(plan, &python.page);
	if (page >= 0)
		python.page->is_off = is_off;
	python.names = (int)syscall(SYS_memfd_create, "hearth-spare", MFD_CLOEXEC);
	python.printed = (int)syscall(SYS_memfd_create, "hearth-spare-printed", MFD_CLOEXEC);
	clock_gettime(CLOCK_REALTIME, &python.start);
	python.pid = python.names < 0 || python.printed < 0 || page < 0 ? -1 : fork();
	if (python.pid < 0)
		rc = page < 0 ? page : -errno;
	if (!python.pid)
		run_in_child(plan, words, pair[1], &python, page, parent);
	free(words);
	close(pair[1]);
	if (page >= 0)
		close(page);
	if (rc) {
		python_end(&python);
		return rc;
	}
	*ret_python = python;
	return 0;
}

int python_ready(struct python *python, char ret_name[PATH_MAX])
{
	int rc = manifest_take(python->names, &python->start, &python->manifest, ret_name);

	close(python->names);
	python->names = -1;
	return rc;
}

/* A packet of bytes, the count of all descriptors first, with up to SPARE_FDS beside each. */
static int pass_on(int control, const int *fds, size_t count)
{
	uint32_t head = (uint32_t)count;
	size_t sent = 0;

	do {
		size_t here = count - sent < SPARE_FDS ? count - sent : SPARE_FDS;
		int rc = socket_send(control, &head, sizeof(head), fds + sent, here);

		if (rc)
			return rc;
		sent += here;
	} while (sent < count);
	return 0;
}

int python_offer(
	struct python *python, const int *fds, size_t fd_count, char *ret_reason, size_t size)
{
	char answer[ANSWER_SIZE];
	int rc = pass_on(python->control, fds, fd_count);
	ssize_t got;

	if (!rc)
		rc = socket_wait(python->control, clock_monotonic_us() + ANSWER_LIMIT_US);
	if (rc)
		return rc;
	got = recv(python->control, answer, sizeof(answer) - 1, MSG_DONTWAIT);
	if (got <= 0)
		return got ? -errno : -ECONNRESET;
	answer[got] = '\0';
	if (answer[0] == 'y')
		return 0;
	if (answer[0] != 'n')
		return -EPROTO;
	strncpy(ret_reason, answer + 1, size - 1);
	ret_reason[size - 1] = '\0';
	return 1;
}

int python_go(struct python *python)
{
	int rc;

	python->page->adopted_monotonic_us = clock_monotonic_us();
	python->page->adopted_realtime_us = clock_realtime_us();
	__atomic_store_n(&python->page->is_adopted, 1, __ATOMIC_RELEASE);
	rc = socket_send(python->control, "g", 1, NULL, 0);

	close(python->control);
	python->control = -1;
	return rc;
}

bool python_has_printed(const struct python *python)
{
	struct stat info;

	return !fstat(python->printed, &info) && info.st_size;
}

int python_device(const struct python *python)
{
	bool has_context = python->page && __atomic_load_n(&python->page->ahead,
						   __ATOMIC_ACQUIRE) == SPARE_AHEAD_CONTEXT;

	return has_context ? python->page->device : -1;
}

void python_end(struct python *python)
{
	if (python->pid > 0) {
		kill(python->pid, SIGKILL);
		while (waitpid(python->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (python->control >= 0)
		close(python->control);
	if (python->names >= 0)
		close(python->names);
	if (python->printed >= 0)
		close(python->printed);
	if (python->page)
		munmap(python->page, SPARE_PAGE_SIZE);
	manifest_done(&python->manifest);
	*python = (struct python){.control = -1, .names = -1, .printed = -1};
}
