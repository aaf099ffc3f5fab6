/* `hearth mps`: keeps a daemon of CUDA MPS, shows it, sets its limits, ends it. The keeping is done
 * by a process of its own (lib/mps/supervise.c) that `start` leaves behind. */
#include "base/clock.h"
#include "command.h"
#include "mps/container.h"
#include "mps/daemon.h"
#include "mps/end.h"
#include "mps/limit.h"
#include "mps/roll.h"
#include "mps/state.h"
#include "mps/supervise.h"
#include "mps_tell.h"
#include "mps_wish.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STOP_LIMIT_MS 20000
#define END_PATIENCE_US 3000000
#define MOST_LINES 100000
#define REPORT_SIZE 512

struct request {
	bool is_json, is_forced, is_docker, is_compose, is_shell;
	struct mps_wish wish;
	unsigned end, lines;
	char **words; /* the first names what is to be done */
};

static int parse(int argc, char **argv, struct request *ret_request)
{
	struct request request = {.lines = 20, .wish.device = "0"};
	const struct option_row rows[] = {{.name = "system", .flag = &request.wish.is_system},
		{.name = "json", .flag = &request.is_json},
		{.name = "force", .flag = &request.is_forced},
		{.name = "mem", .text = &request.wish.memory},
		{.name = "threads", .text = &request.wish.threads},
		{.name = "device", .text = &request.wish.device},
		{.name = "users", .text = &request.wish.users},
		{.name = "end", .number = &request.end, .least = 1, .most = 1u << 30},
		{.name = "lines", .number = &request.lines, .least = 1, .most = MOST_LINES},
		{.name = "docker", .flag = &request.is_docker},
		{.name = "compose", .flag = &request.is_compose},
		{.name = "shell", .flag = &request.is_shell}, {0}};
	int status = options_take(&command_mps, rows, WORDS_ANY, argc, argv, &request.words);

	*ret_request = request;
	return status;
}

/* The place that is meant, its supervisor (0: none runs), and the control program. */
struct target {
	struct place place;
	pid_t supervisor;
	struct control control;
};

static int find_target(const struct request *request, struct target *ret_target)
{
	int rc;

	if (request->wish.is_system) {
		rc = place_of(true, &ret_target->place);
		ret_target->supervisor = rc ? 0 : place_holder(&ret_target->place);
	} else {
		rc = place_serving(&ret_target->place, &ret_target->supervisor);
	}
	if (rc && rc != -ENOENT)
		return command_fail(COMMAND_FAILED, "mps: the runtime folder: %s", strerror(-rc));
	if (control_find(ret_target->place.pipe, ret_target->place.log, &ret_target->control))
		return command_fail(COMMAND_FAILED,
			"mps: nvidia-cuda-mps-control is neither in PATH nor in "
			"/usr/local/nvidia/bin: it comes with NVIDIA's driver (Debian: "
			"nvidia-cuda-mps)");
	return COMMAND_OK;
}

/* As find_target, and one has to run. */
static int find_running(const struct request *request, struct target *ret_target)
{
	int status = find_target(request, ret_target);

	if (!status && !ret_target->supervisor)
		return command_fail(COMMAND_FAILED,
			"mps: no daemon of Hearth's runs; `hearth mps start` starts one");
	return status;
}

/* What the supervisor says once it is up, or of why it is not. */
static int await(int report_fd)
{
	char report[REPORT_SIZE];
	size_t size = 0;
	ssize_t got = 1;

	while (got > 0 && size < sizeof(report) - 1) {
		got = read(report_fd, report + size, sizeof(report) - 1 - size);
		size += got > 0 ? (size_t)got : 0;
	}
	report[size] = '\0';
	if (strcmp(report, "r") != 0)
		return command_fail(
			COMMAND_FAILED, "mps: %s", size ? report : "its supervisor ended");
	return COMMAND_OK;
}

/* Releases both. */
static int store(const struct place *place, json_t *limits, json_t *users)
{
	int status = mps_wish_store(place, STATE_LIMITS, limits);

	if (status || !place->is_machine) {
		json_decref(users);
		return status;
	}
	return mps_wish_store(place, STATE_USERS, users);
}

static int leave_supervisor(const struct target *target)
{
	struct supervise_plan plan = {.place = &target->place, .control = target->control};
	int ends[2], status, rc;

	if (pipe2(ends, O_CLOEXEC))
		return command_fail(COMMAND_FAILED, "pipe: %s", strerror(errno));
	plan.report_fd = ends[1];
	rc = supervise_start(&plan);
	close(ends[1]);
	status = rc ? command_fail(COMMAND_FAILED, "fork: %s", strerror(-rc)) : await(ends[0]);
	close(ends[0]);
	return status;
}

/* Nothing is made before all that was said is known to be right. */
static int start(const struct request *request)
{
	json_t *limits = json_object(), *users = NULL;
	char path[ADDRESS_MAX] = "the runtime folder";
	struct target target;
	int status = mps_wish_add_limits(&request->wish, limits), rc;

	if (!status)
		status = mps_wish_read_users(&request->wish, &users);
	if (!status)
		status = find_target(request, &target);
	rc = status ? 0 : place_of(request->wish.is_system, &target.place);
	if (!status && !rc && place_holder(&target.place))
		status = command_fail(
			COMMAND_FAILED, "mps: a daemon runs already: `hearth mps status`");
	if (!status && !rc)
		rc = place_make(&target.place, path);
	if (rc)
		status = command_fail(COMMAND_FAILED, "%s: %s", path, strerror(-rc));
	if (status) {
		json_decref(limits);
		json_decref(users);
		return status;
	}
	status = store(&target.place, limits, users);
	target.control.pipe = target.place.pipe;
	target.control.log = target.place.log;
	if (!status)
		status = leave_supervisor(&target);
	if (status)
		return status;
	mps_tell_started(&target.place);
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

static int end_one(const struct target *target, pid_t client)
{
	enum end_way way;
	int rc = end_client(&target->control, client, END_PATIENCE_US, &way);

	if (rc == -ESRCH)
		return command_fail(
			COMMAND_FAILED, "mps: %d is no client of this daemon", (int)client);
	if (rc)
		return command_fail(
			COMMAND_FAILED, "mps: client %d: %s", (int)client, strerror(-rc));
	printf("client %d %s\n", (int)client,
		way == END_KILLED ? "was terminated, and killed since it stayed"
				  : "was terminated");
	return COMMAND_OK;
}

static int end_all(const struct target *target, const json_t *roll)
{
	const json_t *servers = json_object_get(roll, "servers"), *server, *client;
	int status = COMMAND_OK;
	size_t i, j;

	json_array_foreach(servers, i, server)
	{
		json_array_foreach(json_object_get(server, "clients"), j, client)
		{
			pid_t pid = (pid_t)json_integer_value(json_object_get(client, "pid"));

			status |= end_one(target, pid);
		}
	}
	return status;
}

static int stop_supervisor(pid_t supervisor)
{
	int fd = (int)syscall(SYS_pidfd_open, supervisor, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	int status = COMMAND_OK;

	if (fd < 0)
		return errno == ESRCH
			       ? COMMAND_OK
			       : command_fail(COMMAND_FAILED, "pidfd_open: %s", strerror(errno));
	if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) && errno != ESRCH)
		status = command_fail(
			COMMAND_FAILED, "mps: pid %d: %s", (int)supervisor, strerror(errno));
	else if (poll(&end, 1, STOP_LIMIT_MS) != 1)
		status = command_fail(COMMAND_FAILED, "mps: pid %d does not end", (int)supervisor);
	close(fd);
	return status;
}

static int stop(const struct request *request)
{
	struct target target;
	int status = find_running(request, &target);
	json_t *roll;

	if (status)
		return status;
	roll = roll_make(&target.place, target.supervisor, &target.control);
	if (json_is_null(json_object_get(roll, "servers")) && !request->is_forced) {
		status = command_fail(COMMAND_FAILED,
			"mps: the daemon does not answer, so its clients are not known: `hearth "
			"mps stop --force`");
	} else if (roll_clients(roll) && !request->is_forced) {
		mps_tell_clients(roll, stderr);
		status = command_fail(COMMAND_FAILED,
			"mps: these clients run; they would lose the GPU: `hearth mps stop "
			"--force` ends them first");
	} else {
		status = end_all(&target, roll);
	}
	json_decref(roll);
	return status ? status : stop_supervisor(target.supervisor);
}

static int show(const struct request *request)
{
	struct target target;
	int status = find_target(request, &target);
	json_t *roll;

	if (status)
		return status;
	roll = roll_make(&target.place, target.supervisor, &target.control);
	status = target.supervisor ? COMMAND_OK : COMMAND_FAILED;
	if (request->is_json)
		return command_print_json(roll, stdout) ? COMMAND_FAILED : status;
	mps_tell_status(roll);
	json_decref(roll);
	return fflush(stdout) ? COMMAND_FAILED : status;
}

static int clients(const struct request *request)
{
	struct target target;
	int status = find_running(request, &target);
	json_t *roll;

	if (status)
		return status;
	if (request->end)
		return end_one(&target, (pid_t)request->end);
	roll = roll_make(&target.place, target.supervisor, &target.control);
	if (request->is_json) {
		status = command_print_json(json_incref(json_object_get(roll, "servers")), stdout);
	} else {
		mps_tell_clients(roll, stdout);
		status = fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
	}
	json_decref(roll);
	return status;
}

static int limit(const struct request *request)
{
	struct daemon_servers servers = {0};
	struct control_reply reply = {0};
	struct target target;
	json_t *limits;
	int status = find_running(request, &target), rc;

	if (status)
		return status;
	if (request->wish.memory || request->wish.threads) {
		limits = state_read(&target.place, STATE_LIMITS);
		limits = limits ? limits : json_object();
		status = mps_wish_add_limits(&request->wish, limits);
		if (!status)
			status = mps_wish_store(&target.place, STATE_LIMITS, json_incref(limits));
		if (status) {
			json_decref(limits);
			return status;
		}
		rc = daemon_list(&target.control, &servers);
		if (!rc)
			rc = limit_apply(&target.control, limits,
				servers.count ? servers.items[0].pid : 0, &reply);
		json_decref(limits);
		if (rc)
			return command_fail(COMMAND_FAILED, "mps: the daemon refuses: %s",
				*reply.text ? reply.text : strerror(-rc));
	}
	limits = state_read(&target.place, STATE_LIMITS);
	limits = limits ? limits : json_object();
	if (request->is_json)
		return command_print_json(limits, stdout);
	mps_tell_limits(limits);
	json_decref(limits);
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

static int logs(const struct request *request)
{
	struct target target;
	int status = find_target(request, &target);

	return status ? status : mps_tell_logs(&target.place, request->lines);
}

static int env(const struct request *request)
{
	struct target target;
	int status;

	if (request->is_docker + request->is_compose + request->is_shell != 1)
		return command_fail(
			COMMAND_USAGE, "mps env: say one of --docker, --compose and --shell");
	status = find_running(request, &target);
	if (status)
		return status;
	container_print(&target.place, geteuid(), getegid(),
		request->is_docker    ? CONTAINER_DOCKER
		: request->is_compose ? CONTAINER_COMPOSE
				      : CONTAINER_SHELL,
		stdout);
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

static int run(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct request *request);
	} verbs[] = {{"start", start}, {"stop", stop}, {"status", show}, {"clients", clients},
		{"limit", limit}, {"logs", logs}, {"env", env}};
	struct request request;
	int status = parse(argc, argv, &request);
	const char *wrong;

	if (status != OPTIONS_TAKEN)
		return status;
	wrong = request.words[0] && request.words[1] ? request.words[1]
		: request.words[0]                   ? request.words[0]
						     : "";
	for (size_t i = 0; !request.words[0] || !request.words[1]; i++) {
		if (i == sizeof(verbs) / sizeof(verbs[0]))
			break;
		if (!strcmp(wrong, verbs[i].name))
			return verbs[i].run(&request);
	}
	command_fail(
		0, "mps: '%s' is none of start, stop, status, clients, limit, logs and env", wrong);
	return command_usage(&command_mps);
}

const struct command command_mps = {
	.name = "mps",
	.arguments = "start | stop [--force] | status | clients [--end PID] | limit | logs | env "
		     "[--system]",
	.summary = "Keep a daemon of CUDA MPS, by which programs share a GPU",
	.help = "  start        start nvidia-cuda-mps-control with folders of its own, and its "
		"server; both\n"
		"               are started again when they end. For `hearth run --mps`\n"
		"  stop         end it; refused while clients run\n"
		"  --force      end the clients first\n"
		"  status       the daemon, its servers, their clients\n"
		"  clients      the clients alone\n"
		"  --end PID    end one: by terminate_client, by SIGKILL where it stays for 3 s\n"
		"  limit        show the limits of each client, or set them for those that start "
		"from now on\n"
		"  --mem SIZE   memory on a device: 2GiB, 512MiB (start, limit)\n"
		"  --device N   which device --mem is about (default: 0)\n"
		"  --threads PERCENT  the share of each GPU's threads: 50% (start, limit)\n"
		"  logs         the last lines of the daemon's and the server's log\n"
		"  --lines N    how many of each (default: 20)\n"
		"  env          what a container needs to be a client\n"
		"  --docker     as options of docker run\n"
		"  --compose    as part of a compose file\n"
		"  --shell      for `eval` in a shell, whose programs are clients from then on\n"
		"  --users LIST whom root's --system daemon is for: names or numbers, with commas "
		"(start)\n"
		"  --system     the machine's daemon, at /run/hearth/mps, not the user's\n"
		"  --json       status, clients and limit as JSON\n"
		"\n"
		"MPS is for programs that trust one another, on one machine: a client's fault can "
		"end all\n"
		"clients of its server.\n",
	.run = run,
};
