/* Adoption, from the client's side. Runs in `hearth run --spare`, which has one thread and would
 * otherwise exec the program. Changes nothing of this process, its signals' mask excepted, before
 * it is sure that the program is run elsewhere; and keeps nothing of the program's open then. */
#include "spare/adopt.h"

#include "base/log.h"
#include "base/socket.h"
#include "spare/folder.h"
#include "spare/kind.h"
#include "spare/packet.h"
#include "spare/request.h"
#include "spare/stand.h"
#include "spare/unasked.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A holder that is stopped, or looks at files that hang, is left alone after it. */
#define START_LIMIT_US 300000

/* Its own faults stay a process's own. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGCHLD};

struct adoption {
	struct request request;
	struct terminal terminal;
	sigset_t before;
};

/* What a plain start does better, or a spare cannot do. NULL where there is nothing. */
static const char *why_plain(void)
{
	int reaps = 0;

	if (!prctl(PR_GET_CHILD_SUBREAPER, &reaps) && reaps)
		return "its descendants are to become its children";
	if (isatty(STDIN_FILENO) && !terminal_is(STDIN_FILENO))
		return "stdin is a terminal of another session";
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		struct stat info;

		if (fstat(fd, &info) || fcntl(fd, F_GETFD) & FD_CLOEXEC)
			return "a standard stream is closed";
		if (S_ISDIR(info.st_mode))
			return "a standard stream is a folder";
	}
	return NULL;
}

static void close_ours(struct request *request)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	request_done(request);
	for (size_t i = REQUEST_OWN_FDS; i < request->fd_count; i++)
		if (request->numbers[i] > STDERR_FILENO)
			close(request->numbers[i]);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
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

/* The pty's slave goes where our terminal would have gone. */
static void replace_terminal(struct adoption *adoption, const int ends[2])
{
	struct request *request = &adoption->request;
	int replaced = 0;

	terminal_start(&adoption->terminal, ends[0], ends[1]);
	for (size_t i = REQUEST_OWN_FDS; i < request->fd_count; i++) {
		bool is_terminal = terminal_is(request->numbers[i]);

		request->fds[i] = is_terminal ? ends[1] : request->numbers[i];
		replaced += is_terminal && request->numbers[i] <= STDERR_FILENO;
	}
	/* With a pipe beside it, another program may have to do with the terminal, as a pager. */
	adoption->terminal.is_eager = replaced > STDERR_FILENO;
}

/* The text and the folder first, and the program's own descriptors only to a holder that answers:
 * who reads the other end of a pipe waits for everyone who has it. */
static int send_request(struct adoption *adoption, int fd, struct spare_message *ret_answer)
{
	const struct request *request = &adoption->request;
	struct spare_message message;
	int ends[2], rc;
	size_t count = 0;

	packet_init(&message, SPARE_ADOPT, (int)request->fd_count);
	rc = packet_send(fd, &message, request->fds, REQUEST_OWN_FDS);
	if (!rc)
		rc = packet_receive(fd, START_LIMIT_US, ret_answer, ends, 2, &count);
	if (rc)
		return rc;
	if (adoption->terminal.tty >= 0 && count == 2)
		replace_terminal(adoption, ends);
	else
		socket_close_all(ends, count);
	if (ret_answer->what != SPARE_MORE)
		return 0;
	if (adoption->terminal.tty >= 0 && count != 2)
		return -ENOTTY;
	rc = send_rest(request, fd, REQUEST_OWN_FDS);
	return rc ? rc : packet_receive(fd, START_LIMIT_US, ret_answer, NULL, 0, NULL);
}

static int say_go(struct adoption *adoption, int fd)
{
	struct terminal *terminal = &adoption->terminal;
	struct spare_message message;
	bool is_offered = terminal->tty >= 0 && terminal->is_eager && terminal_offer(terminal);
	int rc;

	packet_init(&message, SPARE_GO, is_offered);
	memcpy(message.text, &terminal->before, sizeof(terminal->before));
	rc = packet_send(fd, &message, &terminal->tty, terminal->tty >= 0);
	if (!rc && is_offered)
		terminal_give(terminal);
	return rc;
}

static void lose_pty(struct adoption *adoption)
{
	socket_close_all(&adoption->terminal.master, 1);
	socket_close_all(&adoption->terminal.slave, 1);
}

/* One spare. 0: the next one may do. */
static int ask(int fd, const char *path, void *data)
{
	struct adoption *adoption = data;
	struct spare_message message;
	sigset_t taken;
	int rc;

	sigfillset(&taken);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&taken, faults[i]);
	rc = send_request(adoption, fd, &message);
	if (rc) {
		lose_pty(adoption);
		log_info("a spare was left alone: %s", strerror(-rc));
		return 0;
	}
	if (message.what != SPARE_START) {
		lose_pty(adoption);
		log_info("a spare was not used: %s",
			message.text[0] ? message.text : "it is not ready");
		return 0;
	}
	sigprocmask(SIG_BLOCK, &taken, &adoption->before);
	if (!say_go(adoption, fd)) {
		close_ours(&adoption->request);
		stand_for(fd, &adoption->terminal, &taken);
	}
	sigprocmask(SIG_SETMASK, &adoption->before, NULL);
	lose_pty(adoption);
	return 0;
}

static int adopt_by(
	struct adoption *adoption, const struct command_line *line, const struct text *kind)
{
	uint64_t digest = kind_digest(kind);
	int rc = request_make(line, kind, adoption->terminal.tty >= 0, &adoption->request);

	if (!rc)
		rc = folder_each(&digest, ask, adoption);
	request_done(&adoption->request);
	return rc;
}

/* First those of this very program. */
static int adopt(
	const struct command_line *line, const struct text *kind, const struct unasked *unasked)
{
	struct adoption adoption;
	char folder[ADDRESS_MAX];
	int rc = folder_find(0, folder);

	if (rc)
		return rc;
	terminal_find(&adoption.terminal);
	if (unasked->path[0])
		rc = adopt_by(&adoption, line, &unasked->kind);
	if (!rc)
		rc = adopt_by(&adoption, line, kind);
	socket_close_all(&adoption.terminal.tty, 1);
	return rc;
}

void spare_adopt(char **words, const struct settings *settings)
{
	struct command_line line;
	struct text kind = {0};
	struct unasked unasked = {0};
	const char *reason = why_plain();
	int rc = 0;

	if (reason) {
		log_info("a plain start: %s", reason);
		return;
	}
	rc = command_line_read(words, &line);
	if (!rc && line.kind == COMMAND_LINE_NONE)
		rc = -ENOTSUP;
	if (!rc)
		rc = kind_make(&line, environ, &kind);
	if (!rc) {
		if (settings->are_spares_kept)
			unasked_find(&line, &kind, &unasked);
		rc = adopt(&line, &kind, &unasked);
		if (settings->are_spares_kept)
			unasked_begin(&line, settings, &unasked);
	}
	unasked_done(&unasked);
	text_done(&kind);
	log_info("a plain start: %s", rc ? strerror(-rc) : "no spare of its kind");
}
