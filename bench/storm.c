/* storm: many programs starting at once, as a job launcher starts them. All are started and held
 * at a gate, then let go together; each one's time runs from the gate to the end of its cuInit.
 * Compared: one program and -n programs, plain and preloaded. */
#include "driver_calls.h"
#include "measure.h"
#include "options.h"

#include "base/json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	DEFAULT_CLIENTS = 300,
	SINGLE_ROUNDS = 30, /* one client alone, so many times */
	GATE_FD = 3,        /* the clients' end of the gate */
	REPORT_FD = 4,      /* where each writes its figure, one write of 8 bytes */
	MOST_CLIENTS = 2000,
	JSON_BYTES = 4096,
};

static const char usage[] = "storm [-n CLIENTS] [--json] --preload FILE [--driver FILE]";

/* A client: opens the driver, waits at the gate, then cuInit; reports nanoseconds. The preload was
 * loaded when the process started; what it adds to cuInit, joining the broker, lies inside. */
static int client(const char *driver)
{
	struct driver_calls calls;
	uint64_t start, spent;
	char byte;
	int rc;

	driver_calls_open(driver, &calls);
	if (write(REPORT_FD, &(uint64_t){0}, sizeof(uint64_t)) != sizeof(uint64_t))
		return 1;
	if (read(GATE_FD, &byte, 1) != 0)
		return 1;
	start = measure_now_ns();
	rc = calls.init(0);
	spent = measure_now_ns() - start;
	if (rc)
		spent = UINT64_MAX;
	return write(REPORT_FD, &spent, sizeof(spent)) == sizeof(spent) ? rc : 1;
}

static uint64_t read_report(int fd)
{
	uint64_t value;
	ssize_t got;

	while ((got = read(fd, &value, sizeof(value))) < 0 && errno == EINTR)
		continue;
	if (got != sizeof(value))
		measure_die("a client ended without a report");
	return value;
}

/* Starts `clients` at once, opens the gate, adds each one's figure. */
static void storm(unsigned clients, char **command, char **environment, struct samples *samples)
{
	static pid_t pids[MOST_CLIENTS];
	posix_spawn_file_actions_t actions;
	int gate[2], report[2];

	if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0)
		measure_die("pipe2: %s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, gate[0], GATE_FD + 10);
	posix_spawn_file_actions_adddup2(&actions, report[1], REPORT_FD);
	posix_spawn_file_actions_adddup2(&actions, GATE_FD + 10, GATE_FD);
	posix_spawn_file_actions_addclose(&actions, GATE_FD + 10);
	for (unsigned i = 0; i < clients; i++) {
		int error = posix_spawn(&pids[i], command[0], &actions, NULL, command, environment);

		if (error)
			measure_die("client %u: %s", i, strerror(error));
	}
	posix_spawn_file_actions_destroy(&actions);
	close(report[1]);
	for (unsigned i = 0; i < clients; i++)
		read_report(report[0]);
	close(gate[0]);
	close(gate[1]); /* read() at the gate now returns 0 in every client */
	for (unsigned i = 0; i < clients; i++) {
		uint64_t spent = read_report(report[0]);

		if (spent == UINT64_MAX)
			measure_die("cuInit failed in a client");
		samples_add(samples, spent);
	}
	close(report[0]);
	for (unsigned i = 0; i < clients; i++)
		waitpid(pids[i], NULL, 0);
}

int main(int argc, char **argv)
{
	struct options options = options_read(argc, argv, DEFAULT_CLIENTS, usage);
	static const char *const names[4] = {
		"1 plain", "1 preloaded", "all plain", "all preloaded"};
	char **environments[2] = {measure_environment(NULL), measure_environment(options.preload)};
	struct samples samples[4];
	char self[512], *command[5];
	ssize_t length;

	if (options.words[0] && !strcmp(options.words[0], "client"))
		return client(options.driver);
	if (!options.preload || options.runs > MOST_CLIENTS)
		measure_die("at most %d clients; usage: %s", MOST_CLIENTS, usage);
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0)
		measure_die("cannot read /proc/self/exe");
	self[length] = '\0';
	command[0] = self;
	command[1] = "--driver";
	command[2] = (char *)options.driver;
	command[3] = "client";
	command[4] = NULL;
	for (int i = 0; i < 4; i++)
		samples_init(&samples[i], i < 2 ? SINGLE_ROUNDS : options.runs);
	for (int round = 0; round < SINGLE_ROUNDS; round++) {
		for (int arm = 0; arm < 2; arm++)
			storm(1, command, environments[arm], &samples[arm]);
	}
	for (int arm = 0; arm < 2; arm++)
		storm(options.runs, command, environments[arm], &samples[2 + arm]);
	if (options.wants_json) {
		char buffer[JSON_BYTES];
		struct json_out out;
		size_t used;

		json_out_begin(&out, buffer, sizeof(buffer));
		json_out_object_begin(&out, NULL);
		json_out_string(&out, "bench", "storm");
		for (int i = 0; i < 4; i++)
			measure_json(&out, names[i], &samples[i]);
		json_out_object_end(&out);
		json_out_newline(&out);
		if (json_out_end(&out, &used) < 0)
			measure_die("the result is longer than %d bytes", JSON_BYTES);
		fputs(buffer, stdout);
	} else {
		printf("%-28s %6s %10s %10s %10s %10s\n", "cuInit after the gate", "runs", "p10 ms",
			"median", "p90", "p99");
		for (int i = 0; i < 4; i++)
			measure_print(names[i], &samples[i]);
	}
	return 0;
}
