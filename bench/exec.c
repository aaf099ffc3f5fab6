/* exec: what a program that never touches CUDA pays for the preload. Starts the command with and
 * without it, alternating, and compares the times from before the start to after the wait. */
#include "measure.h"
#include "options.h"

#include "base/json_out.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_RUNS = 1000, WARM_UP = 20, JSON_BYTES = 4096 };

static const char usage[] = "exec [-n RUNS] [--json] --preload FILE -- COMMAND...";

static void run_once(char **command, char **environment, struct samples *samples)
{
	uint64_t ns;
	int status, rc = measure_run(command, environment, &ns, &status);

	if (rc < 0)
		measure_die("%s: %s", command[0], strerror(-rc));
	if (status)
		measure_die("%s ended with wait status %d", command[0], status);
	if (samples)
		samples_add(samples, ns);
}

int main(int argc, char **argv)
{
	struct options options = options_read(argc, argv, DEFAULT_RUNS, usage);
	char **environments[2] = {measure_environment(NULL), measure_environment(options.preload)};
	struct samples samples[2];
	long added_ns, added_p10_ns;

	if (!options.preload || !options.words[0])
		measure_die("usage: %s", usage);
	for (int arm = 0; arm < 2; arm++) {
		samples_init(&samples[arm], options.runs);
		for (int i = 0; i < WARM_UP; i++)
			run_once(options.words, environments[arm], NULL);
	}
	for (unsigned i = 0; i < options.runs; i++) {
		run_once(options.words, environments[i % 2], &samples[i % 2]);
		run_once(options.words, environments[!(i % 2)], &samples[!(i % 2)]);
	}
	added_ns = (long)samples_percentile(&samples[1], 50) -
		   (long)samples_percentile(&samples[0], 50);
	added_p10_ns = (long)samples_percentile(&samples[1], 10) -
		       (long)samples_percentile(&samples[0], 10);
	if (options.wants_json) {
		char buffer[JSON_BYTES];
		struct json_out out;
		size_t length;

		json_out_begin(&out, buffer, sizeof(buffer));
		json_out_object_begin(&out, NULL);
		json_out_string(&out, "bench", "exec");
		json_out_string(&out, "command", options.words[0]);
		measure_json(&out, "plain", &samples[0]);
		measure_json(&out, "preloaded", &samples[1]);
		json_out_i64(&out, "added_median_ns", added_ns);
		json_out_i64(&out, "added_p10_ns", added_p10_ns);
		json_out_object_end(&out);
		json_out_newline(&out);
		if (json_out_end(&out, &length) < 0)
			measure_die("the result is longer than %d bytes", JSON_BYTES);
		fputs(buffer, stdout);
	} else {
		printf("%-28s %6s %10s %10s %10s %10s\n", options.words[0], "runs", "p10 ms",
			"median", "p90", "p99");
		measure_print("plain", &samples[0]);
		measure_print("preloaded", &samples[1]);
		printf("added: median %+.3f ms, p10 %+.3f ms\n", (double)added_ns / 1e6,
			(double)added_p10_ns / 1e6);
	}
	return 0;
}
