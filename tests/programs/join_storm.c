/* N processes join the broker at the same moment. Prints one line: how many joined, and the median,
 * 99th percentile and maximum of the microseconds that each one's join took by its own clock.
 *
 *   join_storm N */
#include "base/clock.h"
#include "region/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 2000

struct result {
	uint32_t has_joined;
	uint32_t took_us;
};

static int compare(const void *a, const void *b)
{
	const struct result *left = a, *right = b;

	return left->took_us < right->took_us ? -1 : left->took_us > right->took_us;
}

static void client(int gate, int hold, struct result *ret_result)
{
	struct settings settings;
	struct join join;
	uint64_t before_us;
	char byte;

	settings_read(&settings);
	if (read(gate, &byte, 1) != 0)
		return;
	before_us = clock_monotonic_us();
	ret_result->has_joined = !join_broker(&settings, "join_storm", clock_realtime_us(), &join);
	ret_result->took_us = (uint32_t)(clock_monotonic_us() - before_us);
	/* Stay a client until the last one has joined. */
	if (read(hold, &byte, 1) != 0)
		return;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0, gate[2], hold[2], joined = 0;
	struct result *results;

	if (count < 1 || count > MOST || pipe(gate) || pipe(hold))
		return EXIT_FAILURE;
	results = mmap(NULL, MOST * sizeof(*results), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < count; i++) {
		if (!fork()) {
			close(gate[1]);
			close(hold[1]);
			client(gate[0], hold[0], &results[i]);
			_exit(0);
		}
	}
	usleep(100000); /* until all of them wait at the gate */
	close(gate[1]);
	for (int waited_ms = 0; waited_ms < 2000; waited_ms++) {
		int ready = 0;

		for (int i = 0; i < count; i++)
			ready += __atomic_load_n(&results[i].took_us, __ATOMIC_RELAXED) > 0;
		if (ready == count)
			break;
		usleep(1000);
	}
	close(hold[1]);
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < count; i++)
		joined += (int)results[i].has_joined;
	qsort(results, (size_t)count, sizeof(*results), compare);
	printf("%d %u %u %u\n", joined, results[count / 2].took_us,
		results[(count * 99 - 1) / 100].took_us, results[count - 1].took_us);
	return EXIT_SUCCESS;
}
