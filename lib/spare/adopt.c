/* Adoption, from the client's side. Runs in `hearth run --spare`, which has one thread and would
 * otherwise exec the program. Changes nothing of this process, its signals' mask excepted, before
 * it is sure that the program is run elsewhere; and keeps nothing of the program's open then. */
#include "spare/adopt.h"

#include "base/log.h"
#include "launch/child.h"
#include "spare/folder.h"
#include "spare/kind.h"
#include "spare/packet.h"
#include "spare/request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* A holder that is stopped, or looks at files that hang, is left alone after it. */
#define START_LIMIT_US 300000

/* Its own faults stay a process's own. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGCHLD};

struct adoption {
	struct request request;
	sigset_t before;
};

/* What a plain start does better, or a spare cannot do. NULL where there is nothing. */
static const char *why_plain(void)
{
	if (isatty(STDIN_FILENO))
		return "stdin is a terminal";
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		struct stat info;

		if (fstat(fd, &info) || fcntl(fd, F_GETFD) & FD_CLOEXEC)
			return "a standard stream is closed";
		if (S_ISDIR(info.st_mode))
			return "a standard stream is a folder";
	}
	return NULL;
}

static void close_ours(const struct request *request, int kept)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < request->fd_count; i++)
		if (request->fds[i] > STDERR_FILENO && request->fds[i] != kept)
			close(request->fds[i]);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
}

/* Every signal that this process gets is the program's. */
static void pass_signal(int signal_fd, int fd)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) == sizeof(info))
		packet_tell(fd, SPARE_SIGNAL, (int)info.ssi_signo);
}

static _Noreturn void stand_for(struct adoption *adoption, int fd, const sigset_t *taken)
{
	int signal_fd = signalfd(-1, taken, SFD_CLOEXEC | SFD_NONBLOCK);

	/* An ignored signal would not come through; the program may have taken it up. */
	for (int number = 1; number < NSIG; number++)
		if (sigismember(taken, number) == 1)
			signal(number, SIG_DFL);
	close_ours(&adoption->request, fd);
	for (;;) {
		struct spare_message message;
		struct pollfd polled[] = {
			{.fd = fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};

		if (poll(polled, 2, -1) < 0)
			continue;
		if (polled[1].revents)
			pass_signal(signal_fd, fd);
		if (!polled[0].revents)
			continue;
		/* Who held it was killed, and the program with it. */
		if (packet_receive(fd, START_LIMIT_US, &message, NULL, 0, NULL))
			child_mirror(SIGKILL);
		if (message.what == SPARE_ENDED)
			child_mirror(message.value);
		if (message.what == SPARE_STOPPED)
			raise(SIGSTOP);
	}
}

/* Descriptors `first` and on, as many a packet as it holds. */
static int send_rest(const struct request *request, int fd, size_t first)
{
	struct spare_message message;

	packet_init(&message, SPARE_MORE, 0);
	for (size_t here; first < request->fd_count; first += here) {
		int rc;

		here = request->fd_count - first;
		here = here < SPARE_FDS ? here : SPARE_FDS;
		rc = packet_send(fd, &message, request->fds + first, here);
		if (rc)
			return rc;
	}
	return 0;
}

/* The text and the folder first, and the program's own descriptors only to a holder that answers:
 * who reads the other end of a pipe waits for everyone who has it. */
static int send_request(const struct request *request, int fd, struct spare_message *ret_answer)
{
	struct spare_message message;
	int rc;

	packet_init(&message, SPARE_ADOPT, (int)request->fd_count);
	rc = packet_send(fd, &message, request->fds, REQUEST_OWN_FDS);
	if (!rc)
		rc = packet_receive(fd, START_LIMIT_US, ret_answer, NULL, 0, NULL);
	if (rc || ret_answer->what != SPARE_MORE)
		return rc;
	rc = send_rest(request, fd, REQUEST_OWN_FDS);
	return rc ? rc : packet_receive(fd, START_LIMIT_US, ret_answer, NULL, 0, NULL);
}

/* One spare. 0: the next one may do. */
static int ask(int fd, void *data)
{
	struct adoption *adoption = data;
	struct spare_message message;
	sigset_t taken;
	int rc;

	sigfillset(&taken);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&taken, faults[i]);
	rc = send_request(&adoption->request, fd, &message);
	if (rc) {
		log_info("a spare was left alone: %s", strerror(-rc));
		return 0;
	}
	if (message.what != SPARE_START) {
		log_info("a spare was not used: %s",
			message.text[0] ? message.text : "it is not ready");
		return 0;
	}
	sigprocmask(SIG_BLOCK, &taken, &adoption->before);
	if (!packet_tell(fd, SPARE_GO, 0))
		stand_for(adoption, fd, &taken);
	sigprocmask(SIG_SETMASK, &adoption->before, NULL);
	return 0;
}

void spare_adopt(char **words)
{
	struct adoption adoption;
	struct command_line line;
	struct text kind = {0};
	char folder[ADDRESS_MAX];
	const char *reason = why_plain();
	uint64_t digest;
	int rc = folder_find(0, folder);

	if (!rc && reason) {
		log_info("a plain start: %s", reason);
		return;
	}
	if (!rc)
		rc = command_line_read(words, &line);
	if (!rc && line.kind == COMMAND_LINE_NONE)
		rc = -ENOTSUP;
	if (!rc)
		rc = kind_make(&line, environ, &kind);
	if (!rc) {
		digest = kind_digest(&kind);
		rc = request_make(&line, &kind, &adoption.request);
		if (!rc)
			rc = folder_each(&digest, ask, &adoption);
		request_done(&adoption.request);
	}
	text_done(&kind);
	log_info("a plain start: %s", rc ? strerror(-rc) : "no spare of its kind");
}
