/* start: how long the driver's first steps take in a fresh process: open, cuInit, retain, first
 * allocation and copy. `once` is that process; without it the bench starts -n of them, one after
 * another, and prints the table. `late` works 150 ms on the processor before its first call. */
#include "driver_calls.h"
#include "measure.h"
#include "options.h"

#include "base/json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEFAULT_RUNS = 10, STEPS = 4, JSON_BYTES = 4096, LINE_BYTES = 512 };

#define LATE_NS UINT64_C(150000000)

static const char usage[] = "start [-n RUNS] [--json] [--driver FILE] [once|late|init|hold]";
static const char *const step_names[STEPS] = {"open", "cuInit", "retain", "first copy"};

/* Work on the processor, as a program does before its first call. */
static void be_busy(uint64_t ns)
{
	uint64_t start = measure_now_ns();

	while (measure_now_ns() - start < ns)
		continue;
}

/* One fresh process: a JSON line with each step's microseconds and return code. `last` is how many
 * steps are gone; `hold` keeps the process until its stdin ends. */
static int once(const char *driver, int last, uint64_t busy_ns, bool hold)
{
	uint64_t marks[STEPS + 1] = {0}, opened;
	int rc[STEPS] = {0}, value = 7;
	struct driver_calls calls;
	unsigned long memory = 0;
	void *context = NULL;
	char byte;

	marks[0] = measure_now_ns();
	driver_calls_open(driver, &calls);
	opened = measure_now_ns();
	be_busy(busy_ns);
	marks[1] = measure_now_ns();
	marks[0] += marks[1] - opened; /* the work belongs to no step */
	for (int step = 1; step < last; step++) {
		switch (step) {
		case 1:
			rc[step] = calls.init(0);
			break;
		case 2:
			rc[step] = calls.retain(&context, 0);
			break;
		case 3:
			calls.set_current(context);
			rc[step] = calls.allocate(&memory, sizeof(value));
			if (!rc[step])
				rc[step] = calls.copy_in(memory, &value, sizeof(value));
			break;
		}
		marks[step + 1] = measure_now_ns();
	}
	printf("{\"bench\":\"start\"");
	for (int step = 0; step < last; step++)
		printf(",\"%s_us\":%lu,\"%s_rc\":%d", step_names[step],
			(unsigned long)((marks[step + 1] - marks[step]) / 1000), step_names[step],
			rc[step]);
	printf("}\n");
	fflush(stdout);
	while (hold && read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	return rc[1] || rc[2] || rc[3];
}

/* Runs one fresh process and adds its figures. */
static void collect(const char *command, struct samples *samples)
{
	FILE *stream = popen(command, "re");
	char line[LINE_BYTES];

	if (!stream || !fgets(line, sizeof(line), stream))
		measure_die("%s printed nothing", command);
	if (pclose(stream))
		measure_die("%s failed: %s", command, line);
	for (int step = 0; step < STEPS; step++) {
		char key[64], *at;

		snprintf(key, sizeof(key), "\"%s_us\":", step_names[step]);
		at = strstr(line, key);
		if (!at)
			measure_die("%s printed no %s", command, key);
		samples_add(&samples[step], strtoull(at + strlen(key), NULL, 10) * 1000);
	}
}

int main(int argc, char **argv)
{
	struct options options = options_read(argc, argv, DEFAULT_RUNS, usage);
	const char *word = options.words[0];
	struct samples samples[STEPS];
	char self[512], command[1200];
	ssize_t length;

	if (word && (!strcmp(word, "once") || !strcmp(word, "hold")))
		return once(options.driver, STEPS, 0, !strcmp(word, "hold"));
	if (word && !strcmp(word, "late"))
		return once(options.driver, STEPS, LATE_NS, false);
	if (word && !strcmp(word, "init"))
		return once(options.driver, 2, 0, false);
	if (word)
		measure_die("what is %s? usage: %s", word, usage);
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0)
		measure_die("cannot read /proc/self/exe");
	self[length] = '\0';
	snprintf(command, sizeof(command), "'%s' --driver '%s' once", self, options.driver);
	for (int step = 0; step < STEPS; step++)
		samples_init(&samples[step], options.runs);
	for (unsigned i = 0; i < options.runs; i++)
		collect(command, samples);
	if (options.wants_json) {
		char buffer[JSON_BYTES];
		struct json_out out;
		size_t used;

		json_out_begin(&out, buffer, sizeof(buffer));
		json_out_object_begin(&out, NULL);
		json_out_string(&out, "bench", "start");
		for (int step = 0; step < STEPS; step++)
			measure_json(&out, step_names[step], &samples[step]);
		json_out_object_end(&out);
		json_out_newline(&out);
		if (json_out_end(&out, &used) < 0)
			measure_die("the result is longer than %d bytes", JSON_BYTES);
		fputs(buffer, stdout);
	} else {
		printf("%-28s %6s %10s %10s %10s %10s\n", "step", "runs", "p10 ms", "median", "p90",
			"p99");
		for (int step = 0; step < STEPS; step++)
			measure_print(step_names[step], &samples[step]);
	}
	return 0;
}
