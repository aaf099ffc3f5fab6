/* Measuring: runs in a bench's own process; must never be linked into what users run. */
#include "measure.h"

#include "base/json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PRELOAD_NAME "LD_PRELOAD="

uint64_t measure_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void measure_die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "bench: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	exit(1);
}

void samples_init(struct samples *ret_samples, size_t room)
{
	*ret_samples =
		(struct samples){.values = calloc(room ? room : 1, sizeof(uint64_t)), .room = room};
	if (!ret_samples->values)
		measure_die("no memory for %zu figures", room);
}

void samples_done(struct samples *samples)
{
	free(samples->values);
	*samples = (struct samples){0};
}

void samples_add(struct samples *samples, uint64_t value)
{
	if (samples->count == samples->room)
		measure_die("more than %zu figures", samples->room);
	samples->values[samples->count++] = value;
}

static int compare(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

uint64_t samples_percentile(struct samples *samples, unsigned percent)
{
	if (!samples->count)
		return 0;
	qsort(samples->values, samples->count, sizeof(uint64_t), compare);
	return samples->values[(samples->count - 1) * percent / 100];
}

int measure_spawn(char *const *argv, char *const *environment, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	error = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	return -error;
}

int measure_run(char *const *argv, char *const *environment, uint64_t *ret_ns, int *ret_status)
{
	uint64_t start = measure_now_ns();
	pid_t pid;
	int rc = measure_spawn(argv, environment, &pid);

	if (rc < 0)
		return rc;
	while (waitpid(pid, ret_status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	*ret_ns = measure_now_ns() - start;
	return 0;
}

char **measure_environment(const char *preload)
{
	size_t count = 0, kept = 0;
	char **copy;

	while (environ[count])
		count++;
	copy = calloc(count + 2, sizeof(*copy));
	if (!copy)
		measure_die("no memory for %zu environment variables", count);
	for (size_t i = 0; i < count; i++) {
		if (strncmp(environ[i], PRELOAD_NAME, strlen(PRELOAD_NAME)) != 0)
			copy[kept++] = environ[i];
	}
	if (preload && asprintf(&copy[kept], PRELOAD_NAME "%s", preload) < 0)
		measure_die("no memory for %s", preload);
	return copy;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

void measure_print(const char *name, struct samples *samples)
{
	printf("%-28s %6zu %10.3f %10.3f %10.3f %10.3f\n", name, samples->count,
		ms(samples_percentile(samples, 10)), ms(samples_percentile(samples, 50)),
		ms(samples_percentile(samples, 90)), ms(samples_percentile(samples, 99)));
}

void measure_json(struct json_out *out, const char *name, struct samples *samples)
{
	json_out_object_begin(out, name);
	json_out_u64(out, "runs", samples->count);
	json_out_u64(out, "p10_ns", samples_percentile(samples, 10));
	json_out_u64(out, "median_ns", samples_percentile(samples, 50));
	json_out_u64(out, "p90_ns", samples_percentile(samples, 90));
	json_out_u64(out, "p99_ns", samples_percentile(samples, 99));
	json_out_object_end(out);
}
