/* Supervising nvidia-cuda-mps-control: one thread, in a process of its own. It waits for the ends
 * of daemon and server by their pidfds, so that it costs nothing while all is well. Must never
 * touch a client. */
#include "mps/supervise.h"

#include "base/clock.h"
#include "broker/process.h"
#include "mps/daemon.h"
#include "mps/limit.h"
#include "mps/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define US_PER_S 1000000u
#define US_PER_MS 1000u
#define START_LIMIT_US (10 * US_PER_S)
#define QUIT_LIMIT_US (5 * US_PER_S)
#define LONGEST_PAUSE_S 60
#define STEADY_US (60 * US_PER_S) /* what has run so long begins with the shortest pause again */

struct supervisor {
	const struct supervise_plan *plan;
	int lock, signals, report_fd;
	pid_t daemon, server;
	int daemon_fd, server_fd; /* pidfds; -1: it is not running */
	unsigned restarts, pause_s;
	uint64_t since_us, next_us; /* when it became active; when the next try is */
	enum state_phase phase;
	char why[256]; /* what went wrong last; empty: nothing */
};

static void report(struct supervisor *self, const char *text)
{
	if (self->report_fd < 0)
		return;
	if (write(self->report_fd, text, strlen(text)) < 0)
		self->why[0] = self->why[0]; /* whoever asked has gone */
	close(self->report_fd);
	self->report_fd = -1;
}

static void tell(struct supervisor *self, enum state_phase phase)
{
	uint64_t now_us = clock_monotonic_us();
	json_t *json;

	self->phase = phase;
	json = json_pack("{s:i, s:s, s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:I, s:I}", "v", 1, "phase",
		state_phase_name(phase), "supervisor", (int)getpid(), "daemon", (int)self->daemon,
		"server", (int)self->server, "restarts", (int)self->restarts, "why", self->why,
		"pipe", self->plan->place->pipe, "program", self->plan->control.program, "since",
		(json_int_t)(clock_realtime_us() / US_PER_S), "next_s",
		(json_int_t)(self->next_us > now_us ? (self->next_us - now_us) / US_PER_S : 0));
	state_write(self->plan->place, STATE_FILE, json);
}

static int watch(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void let_go(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The next try comes after 1, 2, 4 ... 60 s. */
static void put_off(struct supervisor *self)
{
	uint64_t now_us = clock_monotonic_us();

	if (self->since_us && now_us - self->since_us >= STEADY_US)
		self->pause_s = 0;
	self->pause_s = !self->pause_s ? 1 : self->pause_s * 2;
	if (self->pause_s > LONGEST_PAUSE_S)
		self->pause_s = LONGEST_PAUSE_S;
	self->since_us = 0;
	self->restarts++;
	self->next_us = now_us + (uint64_t)self->pause_s * US_PER_S;
	tell(self, STATE_WAITING);
}

/* A daemon that nobody supervises, left by a supervisor that was killed, is taken over. */
static int start_daemon(struct supervisor *self)
{
	static const char *const own[] = {"-d", NULL};
	static const char *const machine[] = {"-multiuser-server", "-d", NULL};
	const struct control *control = &self->plan->control;
	struct control_reply reply;
	int rc;

	self->daemon = daemon_pid(control->pipe);
	if (!self->daemon) {
		rc = control_run(control, self->plan->place->is_machine ? machine : own, NULL,
			START_LIMIT_US, &reply);
		if (rc || reply.exit) {
			snprintf(self->why, sizeof(self->why), "%.120s: %.100s", control->program,
				rc            ? strerror(-rc)
				: *reply.text ? reply.text
					      : "it would not start");
			return -EPROTO;
		}
		self->daemon = daemon_pid(control->pipe);
	}
	self->daemon_fd = self->daemon ? watch(self->daemon) : -1;
	if (self->daemon_fd < 0) {
		snprintf(self->why, sizeof(self->why), "the daemon ended at its start: see %.100s",
			control->log);
		return -ECHILD;
	}
	return 0;
}

static int start_server(struct supervisor *self)
{
	const struct control *control = &self->plan->control;
	json_t *limits = state_read(self->plan->place, STATE_LIMITS);
	struct control_reply reply = {0};
	int rc = limit_apply(control, limits, 0, &reply);

	json_decref(limits);
	if (!rc)
		rc = daemon_start_server(control, geteuid(), &self->server, &reply);
	if (!rc)
		self->server_fd = watch(self->server);
	if (!rc && self->server_fd >= 0)
		return 0;
	snprintf(self->why, sizeof(self->why), "the server did not start: %.100s; see %.100s",
		*reply.text ? reply.text : strerror(rc ? -rc : ESRCH), control->log);
	return -EPROTO;
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static bool has_ended(int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&end, 1, 0) == 1;
}

/* Of a server that has gone, or has made way for another user's, the daemon knows. */
static void look(struct supervisor *self)
{
	if (has_ended(self->daemon_fd)) {
		snprintf(self->why, sizeof(self->why), "the daemon (pid %d) ended",
			(int)self->daemon);
		let_go(&self->daemon_fd);
		let_go(&self->server_fd);
		self->daemon = self->server = 0;
		put_off(self);
	} else if (has_ended(self->server_fd)) {
		snprintf(self->why, sizeof(self->why), "the server (pid %d) ended",
			(int)self->server);
		let_go(&self->server_fd);
		self->server = 0;
		put_off(self);
	}
}

/* What a daemon leaves behind when it is killed, and what it makes anew. */
static void sweep(const char *folder, const char *but)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (!but || strcmp(entry->d_name, but) != 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static void wait_for_end(int fd, uint64_t limit_us)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};

	while (fd >= 0 && poll(&end, 1, (int)(limit_us / US_PER_MS)) < 0 && errno == EINTR)
		;
}

/* All that start has made; the lock last, since whoever meets it without its name takes another. */
static void clear(const struct place *place)
{
	char lock[ADDRESS_MAX];

	sweep(place->log, NULL);
	rmdir(place->log);
	rmdir(place->pipe);
	sweep(place->folder, "lock");
	place_path(place, "lock", lock);
	unlink(lock);
	rmdir(place->folder);
}

static _Noreturn void leave(struct supervisor *self, bool is_asked)
{
	const struct place *place = self->plan->place;
	struct control_reply reply;
	char path[ADDRESS_MAX];

	tell(self, STATE_STOPPING);
	if (self->daemon_fd >= 0) {
		if (!control_ask(&self->plan->control, &reply, "quit"))
			wait_for_end(self->daemon_fd, QUIT_LIMIT_US);
		if (!has_ended(self->daemon_fd))
			syscall(SYS_pidfd_send_signal, self->daemon_fd, SIGKILL, NULL, 0);
		wait_for_end(self->daemon_fd, QUIT_LIMIT_US);
	}
	if (self->server_fd >= 0 && !has_ended(self->server_fd)) {
		wait_for_end(self->server_fd, QUIT_LIMIT_US);
		syscall(SYS_pidfd_send_signal, self->server_fd, SIGKILL, NULL, 0);
		wait_for_end(self->server_fd, QUIT_LIMIT_US);
	}
	reap();
	sweep(place->pipe, NULL);
	place_path(place, STATE_FILE, path);
	unlink(path);
	/* Logs of a daemon that would not start are still wanted. */
	if (is_asked)
		clear(place);
	close(self->lock);
	report(self, self->why);
	_exit(EXIT_SUCCESS);
}

static void try_again(struct supervisor *self)
{
	int rc = self->daemon_fd >= 0 ? 0 : start_daemon(self);

	if (!rc)
		rc = start_server(self);
	self->next_us = 0;
	if (rc && self->report_fd >= 0) /* what does not start at all is not kept trying */
		leave(self, false);
	if (rc) {
		put_off(self);
		return;
	}
	self->since_us = clock_monotonic_us();
	tell(self, STATE_ACTIVE);
	report(self, "r");
}

static int wait_ms(const struct supervisor *self)
{
	uint64_t now_us = clock_monotonic_us();

	if (!self->next_us)
		return -1;
	return self->next_us > now_us ? (int)((self->next_us - now_us) / US_PER_MS) + 1 : 0;
}

static _Noreturn void keep(struct supervisor *self)
{
	struct signalfd_siginfo info;

	for (;;) {
		struct pollfd fds[] = {{.fd = self->signals, .events = POLLIN},
			{.fd = self->daemon_fd, .events = POLLIN},
			{.fd = self->server_fd, .events = POLLIN}};

		if (poll(fds, 3, wait_ms(self)) < 0 && errno != EINTR)
			leave(self, false);
		while (read(self->signals, &info, sizeof(info)) == sizeof(info))
			if (info.ssi_signo == SIGTERM)
				leave(self, true);
		look(self);
		reap();
		if (self->next_us && clock_monotonic_us() >= self->next_us)
			try_again(self);
	}
}

static _Noreturn void become(const struct supervise_plan *plan)
{
	struct supervisor self = {.plan = plan,
		.report_fd = plan->report_fd,
		.daemon_fd = -1,
		.server_fd = -1,
		.next_us = 1};
	sigset_t set;
	int rc;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	process_reset_signals();
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	self.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	rc = place_lock(plan->place, &self.lock);
	if (self.signals < 0 || rc) {
		report(&self, rc == -EAGAIN ? "another supervisor has just been started"
					    : strerror(rc ? -rc : errno));
		_exit(EXIT_FAILURE);
	}
	tell(&self, STATE_STARTING);
	keep(&self);
}

/* Nothing of ours stays open in it but the report. */
static void detach(int report_fd)
{
	setsid();
	if (chdir("/"))
		_exit(EXIT_FAILURE);
	process_silence(false);
	if (report_fd > STDERR_FILENO + 1)
		dup2(report_fd, STDERR_FILENO + 1);
	process_close_from(STDERR_FILENO + 2);
	fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC);
	umask(022);
}

int supervise_start(const struct supervise_plan *plan)
{
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (!child) {
		struct supervise_plan own = *plan;

		if (fork())
			_exit(EXIT_SUCCESS);
		detach(plan->report_fd);
		own.report_fd = STDERR_FILENO + 1;
		become(&own);
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
