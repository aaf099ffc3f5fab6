/* call: what one driver call costs through the proxy. Runs preloaded, in one process and one
 * context: the driver's own entries (by its path) against those that programs get (by its name),
 * in rounds that alternate. */
#include "driver_calls.h"
#include "measure.h"
#include "options.h"

#include "base/json_out.h"

#include <stdio.h>

enum {
	DEFAULT_ROUNDS = 21,
	GET_CURRENT_CALLS = 2000000,
	LAUNCH_CALLS = 500, /* few enough for the driver's queue: no launch waits for the GPU */
	LAUNCH_BATCHES = 20,
	JSON_BYTES = 4096,
	PICOSECONDS = 1000,
};

static const char usage[] = "call [-n ROUNDS] [--json] --driver FILE   (with LD_PRELOAD set)";

static const char empty_kernel[] = ".version 6.5\n.target sm_75\n.address_size 64\n"
				   ".visible .entry empty()\n{\nret;\n}\n";

static void check(int rc, const char *call)
{
	if (rc)
		measure_die("%s returned %d", call, rc);
}

/* Picoseconds a call, since nanoseconds are too coarse for a difference of two. */
static uint64_t time_get_current(const struct driver_calls *calls)
{
	uint64_t start = measure_now_ns();
	void *context;

	for (int i = 0; i < GET_CURRENT_CALLS; i++)
		calls->get_current(&context);
	return (measure_now_ns() - start) * PICOSECONDS / GET_CURRENT_CALLS;
}

static uint64_t time_launch(const struct driver_calls *calls, void *function)
{
	uint64_t sum = 0;

	for (int batch = 0; batch < LAUNCH_BATCHES; batch++) {
		uint64_t start = measure_now_ns();

		for (int i = 0; i < LAUNCH_CALLS; i++)
			check(calls->launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
				"cuLaunchKernel");
		sum += measure_now_ns() - start;
		check(calls->synchronize(), "cuCtxSynchronize");
	}
	return sum * PICOSECONDS / (LAUNCH_CALLS * LAUNCH_BATCHES);
}

static double ns(struct samples *samples)
{
	return (double)samples_percentile(samples, 50) / PICOSECONDS;
}

static void print_pair(const char *name, struct samples pair[2])
{
	double direct = ns(&pair[0]), proxy = ns(&pair[1]);

	printf("%-20s direct %9.2f ns  proxy %9.2f ns  added %+7.2f ns (%+.2f %%)\n", name, direct,
		proxy, proxy - direct, (proxy / direct - 1) * 100);
}

static void json_pair(struct json_out *out, const char *name, struct samples pair[2])
{
	json_out_object_begin(out, name);
	json_out_u64(out, "rounds", pair[0].count);
	json_out_u64(out, "direct_median_ps", samples_percentile(&pair[0], 50));
	json_out_u64(out, "proxy_median_ps", samples_percentile(&pair[1], 50));
	json_out_u64(out, "direct_p10_ps", samples_percentile(&pair[0], 10));
	json_out_u64(out, "proxy_p10_ps", samples_percentile(&pair[1], 10));
	json_out_object_end(out);
}

int main(int argc, char **argv)
{
	struct options options = options_read(argc, argv, DEFAULT_ROUNDS, usage);
	void *context = NULL, *module = NULL, *function = NULL;
	struct driver_calls calls[2]; /* the driver's own, the program's */
	struct samples current[2], launch[2];

	driver_calls_open("libcuda.so.1", &calls[1]);
	driver_calls_open(options.driver, &calls[0]);
	if (calls[0].get_current == calls[1].get_current)
		measure_die("libcuda.so.1 is %s itself: set LD_PRELOAD", options.driver);
	check(calls[1].init(0), "cuInit");
	check(calls[1].retain(&context, 0), "cuDevicePrimaryCtxRetain");
	check(calls[1].set_current(context), "cuCtxSetCurrent");
	check(calls[1].module_load(&module, empty_kernel), "cuModuleLoadData");
	check(calls[1].get_function(&function, module, "empty"), "cuModuleGetFunction");
	for (int arm = 0; arm < 2; arm++) {
		samples_init(&current[arm], options.runs);
		samples_init(&launch[arm], options.runs);
		time_get_current(&calls[arm]);
		time_launch(&calls[arm], function);
	}
	for (unsigned i = 0; i < options.runs; i++) {
		for (unsigned k = 0; k < 2; k++) {
			unsigned arm = (i + k) % 2;

			samples_add(&current[arm], time_get_current(&calls[arm]));
			samples_add(&launch[arm], time_launch(&calls[arm], function));
		}
	}
	if (options.wants_json) {
		char buffer[JSON_BYTES];
		struct json_out out;
		size_t length;

		json_out_begin(&out, buffer, sizeof(buffer));
		json_out_object_begin(&out, NULL);
		json_out_string(&out, "bench", "call");
		json_pair(&out, "cuCtxGetCurrent", current);
		json_pair(&out, "cuLaunchKernel", launch);
		json_out_object_end(&out);
		json_out_newline(&out);
		if (json_out_end(&out, &length) < 0)
			measure_die("the result is longer than %d bytes", JSON_BYTES);
		fputs(buffer, stdout);
	} else {
		print_pair("cuCtxGetCurrent", current);
		print_pair("cuLaunchKernel", launch);
	}
	return 0;
}
