/* What the benches share: a clock in nanoseconds, percentiles, a child with a start and an end, and
 * a result that is printed as a table line or as JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t measure_now_ns(void);

/* Figures of one kind, in nanoseconds. */
struct samples {
	uint64_t *values;
	size_t count, room;
};

/* Room for `room` figures; ends the bench with a message where there is no memory. */
void samples_init(struct samples *ret_samples, size_t room);
void samples_done(struct samples *samples);

/* Adds one figure; one beyond the room is a bug and ends the bench. */
void samples_add(struct samples *samples, uint64_t value);

/* Sorts, then returns the figure below which `percent` of them lie; 0 where there are none. */
uint64_t samples_percentile(struct samples *samples, unsigned percent);

/* Starts `argv` with `environment`, stdin and stdout on /dev/null. Returns 0 or -errno. */
int measure_spawn(char *const *argv, char *const *environment, pid_t *ret_pid);

/* Starts it and waits for its end. Returns 0 and the time from before the start to after the wait
 * and the wait status; -errno where it cannot be started. */
int measure_run(char *const *argv, char *const *environment, uint64_t *ret_ns, int *ret_status);

/* A copy of the environment without LD_PRELOAD, then with `preload` as LD_PRELOAD unless that is
 * NULL. The caller frees the array, not the strings. */
char **measure_environment(const char *preload);

/* Prints one row: the name, then p10, median, p90 and p99 in milliseconds. */
void measure_print(const char *name, struct samples *samples);

/* A JSON member: "name":{"runs":N,"p10_ns":..,"median_ns":..,"p90_ns":..,"p99_ns":..}. */
struct json_out;
void measure_json(struct json_out *out, const char *name, struct samples *samples);

/* "measure: message" on stderr, then exit 1. */
__attribute__((noreturn, format(printf, 1, 2))) void measure_die(const char *format, ...);
