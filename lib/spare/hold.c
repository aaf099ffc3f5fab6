/* Holding a spare, as the only thread of a process of its own. Must never hold a descriptor of a
 * program longer than it takes to pass it on, and never start a program twice. */
#include "spare/hold.h"

#include "base/clock.h"
#include "base/socket.h"
#include "spare/budget.h"
#include "spare/folder.h"
#include "spare/hand_over.h"
#include "spare/holder.h"
#include "spare/packet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define US_PER_S UINT64_C(1000000)
#define US_PER_MS 1000u
#define REQUEST_LIMIT_US 200000
/* A file that was changed while it loaded, its own __pycache__ among them: then once more. */
#define MOST_TRIES 3
#define LOAD_LIMIT_S 120  /* of one kept unasked: its imports may wait for something */
#define LOOK_MS 1000      /* so often, whether others need memory; for those kept unasked */
#define PAUSE_NS 50000000 /* longer than manifest_take's doubt about what has just been written */

static _Noreturn void leave(struct holder *holder, const char *why)
{
	if (holder->report_fd >= 0 && write(holder->report_fd, why, strlen(why)) < 0)
		_exit(1);
	unlink(holder->path);
	python_end(&holder->python);
	_exit(0);
}

/* What has gone wrong once would go wrong again. */
static _Noreturn void give_up(struct holder *holder, const char *why)
{
	if (holder->plan->learned)
		learned_give_up(holder->plan->learned, why);
	leave(holder, why);
}

static void begin(struct holder *holder)
{
	const struct spare_plan *plan = holder->plan;
	char *teaching[] = {(char *)plan->learned, NULL};
	char *const *imports = plan->imports;
	struct budget budget;
	bool is_off = false;
	int rc = 0;

	if (plan->learned) {
		learned_done(&holder->learned);
		rc = learned_read(plan->learned, &holder->learned);
		budget_read(BUDGET_FILE, &holder->settings, &budget);
		if (!rc && (holder->learned.is_never || !budget.is_allowed))
			rc = -EPERM;
		is_off = budget.gpu_mib < BUDGET_CONTEXT_MIB;
		/* A path is no module: it is where the program's are to be written. */
		imports = holder->learned.is_taught ? holder->learned.imports : teaching;
	}
	if (!rc)
		rc = python_start(plan, imports, is_off, &holder->python);

	holder->state = SPARE_LOADING;
	holder->since_us = clock_monotonic_us();
	if (rc)
		leave(holder, strerror(-rc));
}

/* The python is of no use, or has never been. */
static void again(struct holder *holder, const char *why)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	python_end(&holder->python);
	if (++holder->tries == MOST_TRIES)
		leave(holder, why);
	nanosleep(&pause, NULL);
	begin(holder);
}

static bool is_within_budget(const struct holder *holder)
{
	int device = python_device(&holder->python);
	struct budget budget;

	budget_read(BUDGET_FILE, &holder->settings, &budget);
	return budget.is_allowed &&
	       budget_make_room(&budget, holder->path, budget_host_mib(holder->python.pid),
		       device < 0 ? 0 : BUDGET_CONTEXT_MIB);
}

static void hear_python(struct holder *holder)
{
	char packet[SPARE_TEXT * 2], name[PATH_MAX] = "";
	ssize_t got = recv(holder->python.control, packet, sizeof(packet) - 1, MSG_DONTWAIT);
	int rc;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		again(holder, "python ended before it was ready");
		return;
	}
	packet[got] = '\0';
	if (packet[0] == 'e')
		give_up(holder, packet + 1);
	if (packet[0] == 'w')
		leave(holder, packet + 1);
	if (packet[0] != 'r' || holder->state != SPARE_LOADING)
		leave(holder, "python said what was not asked for");
	rc = python_ready(&holder->python, name);
	if (rc) {
		snprintf(packet, sizeof(packet), "%.500s: %s", name,
			rc == -ESTALE ? "it was changed just now" : strerror(-rc));
		again(holder, packet);
		return;
	}
	if (holder->plan->is_auto && python_has_printed(&holder->python))
		give_up(holder, "what it imports prints something");
	if (holder->plan->is_auto && !is_within_budget(holder))
		leave(holder, "over the budget");
	holder->state = SPARE_READY;
	holder->tries = 0;
	holder->since_us = clock_monotonic_us();
	if (holder->report_fd >= 0 && write(holder->report_fd, "r", 1) == 1)
		close(holder->report_fd);
	holder->report_fd = -1;
}

static void tell_status(struct holder *holder, int fd)
{
	struct spare_message reply;
	size_t length;

	packet_init(&reply, SPARE_STATUS, (int)holder->state);
	reply.pid = (uint32_t)holder->python.pid;
	reply.device = python_device(&holder->python);
	reply.host_mib = budget_host_mib(holder->python.pid);
	reply.is_auto = holder->plan->is_auto;
	reply.age_s = (uint32_t)((clock_monotonic_us() - holder->since_us) / US_PER_S);
	snprintf(reply.text, sizeof(reply.text), "%s%s", holder->plan->python,
		holder->plan->is_auto ? " (kept)" : "");
	for (char **name = holder->plan->imports; *name; name++) {
		length = strlen(reply.text);
		snprintf(reply.text + length, sizeof(reply.text) - length, " %s", *name);
	}
	packet_send(fd, &reply, NULL, 0);
}

/* One connection: it is one question, or the program itself. */
static void serve(struct holder *holder, int fd)
{
	struct spare_message message;
	struct socket_peer peer;
	int fds[SPARE_FDS];
	size_t count = 0;

	if (socket_peer(fd, &peer) || peer.uid != geteuid() ||
		packet_receive(fd, REQUEST_LIMIT_US, &message, fds, SPARE_FDS, &count))
		return;
	if (message.what == SPARE_STOP)
		leave(holder, "stopped");
	if (message.what == SPARE_STATUS)
		tell_status(holder, fd);
	if (message.what == SPARE_ADOPT && holder->state != SPARE_READY)
		packet_tell(fd, SPARE_NO, 0);
	else if (message.what == SPARE_ADOPT &&
		 hand_over(holder, fd, &message, fds, count) != HAND_OVER_AS_IT_WAS) {
		socket_close_all(fds, count);
		python_end(&holder->python);
		begin(holder);
		return;
	}
	socket_close_all(fds, count);
}

static void reap(struct holder *holder)
{
	struct signalfd_siginfo info;

	while (read(holder->signal_fd, &info, sizeof(info)) == sizeof(info))
		;
	if (waitpid(holder->python.pid, NULL, WNOHANG) == holder->python.pid) {
		holder->python.pid = -1;
		again(holder, "python ended before it was ready");
	}
}

static _Noreturn void loop(struct holder *holder)
{
	holder->since_us = clock_monotonic_us();
	for (;;) {
		bool has_begun = holder->python.pid > 0;
		/* As it is now: until then it waits, and no longer; 0 for as long as it takes. */
		uint64_t limit_us = !has_begun                     ? holder->plan->pause_us
				    : holder->state == SPARE_READY ? holder->plan->idle_s * US_PER_S
				    : holder->plan->is_auto        ? LOAD_LIMIT_S * US_PER_S
								   : 0;
		uint64_t waited_us = clock_monotonic_us() - holder->since_us;
		int wait_ms = limit_us ? (int)((limit_us - waited_us) / US_PER_MS) + 1 : -1;
		struct pollfd polled[] = {{.fd = holder->python.control, .events = POLLIN},
			{.fd = holder->signal_fd, .events = POLLIN},
			{.fd = holder->listen_fd, .events = POLLIN},
			{.fd = holder->plan->parent_fd, .events = POLLIN}};
		int fd;

		if (!has_begun && waited_us >= limit_us) {
			begin(holder);
			continue;
		}
		if (limit_us && waited_us >= limit_us && holder->state == SPARE_LOADING)
			give_up(holder, "its imports take too long");
		if (limit_us && waited_us >= limit_us)
			leave(holder, "");
		if (holder->plan->is_auto) {
			if (budget_is_short(BUDGET_MEMINFO))
				leave(holder, "the host's memory is needed");
			wait_ms = wait_ms < 0 || wait_ms > LOOK_MS ? LOOK_MS : wait_ms;
		}
		if (poll(polled, 4, wait_ms) < 0)
			continue;
		if (polled[3].revents)
			leave(holder, "");
		if (polled[0].revents) {
			hear_python(holder);
			continue;
		}
		if (polled[1].revents) {
			reap(holder);
			continue;
		}
		fd = polled[2].revents
			     ? accept4(holder->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)
			     : -1;
		if (fd >= 0) {
			serve(holder, fd);
			close(fd);
		}
	}
}

/* Nothing of who started us stays open. */
static void close_others(const int kept[3])
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (fd > STDERR_FILENO && fd != kept[0] && fd != kept[1] && fd != kept[2] &&
			fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

/* Bound beside its place and then renamed into it: who meets a socket that is not served takes it
 * for one that is left over. */
static int listen_at(const char *folder, const char *path, int *ret_fd)
{
	char beside[ADDRESS_MAX];
	int length = snprintf(beside, sizeof(beside), "%s/.%d", folder, (int)getpid()), rc;

	if (length < 0 || length >= ADDRESS_MAX)
		return -ENAMETOOLONG;
	unlink(beside); /* of a pid that was used before */
	rc = socket_listen(beside, ret_fd);
	if (!rc && rename(beside, path)) {
		rc = -errno;
		unlink(beside);
	}
	return rc;
}

static _Noreturn void become(const struct spare_plan *plan, int report_fd, int bound_fd)
{
	struct holder holder = {.plan = plan,
		.report_fd = report_fd,
		.signal_fd = -1,
		.python = {.control = -1, .names = -1, .printed = -1},
		.pty = {.master = -1, .slave = -1}};
	struct text kind = {.bytes = (char *)plan->kind, .size = plan->kind_size};
	char folder[ADDRESS_MAX];
	sigset_t all;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), rc;

	settings_read(&holder.settings);
	setsid();
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	close_others((int[]){report_fd, bound_fd, plan->parent_fd});
	if (chdir("/"))
		leave(&holder, "/: no such folder");
	umask(022);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	holder.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	rc = holder.signal_fd < 0 ? -errno : folder_find(1, folder);
	pty_open(&holder.pty); /* without one, it is for programs without a terminal */
	if (!rc)
		rc = folder_name(folder, kind_digest(&kind), getpid(), holder.path);
	if (!rc)
		rc = listen_at(folder, holder.path, &holder.listen_fd);
	if (rc)
		leave(&holder, strerror(-rc));
	close(bound_fd);
	loop(&holder);
}

int hold_start(const struct spare_plan *plan, int report_fd)
{
	int bound[2], rc = 0;
	pid_t between;
	char nothing;

	if (pipe2(bound, O_CLOEXEC))
		return -errno;
	between = fork();
	if (between < 0)
		rc = -errno;
	if (!between) {
		pid_t holder = fork();

		if (!holder)
			become(plan, report_fd, bound[1]);
		_exit(holder < 0);
	}
	close(bound[1]);
	/* Its end: it listens, or has ended. */
	while (!rc && read(bound[0], &nothing, 1) < 0 && errno == EINTR)
		;
	close(bound[0]);
	while (!rc && waitpid(between, NULL, 0) < 0 && errno == EINTR)
		;
	return rc;
}
