/* Time: monotonic for durations, UTC for people. Every figure in Hearth is microseconds, in
 * uint64_t, named *_us. */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC in microseconds. Async-signal-safe; a vDSO call, about 25 ns. */
uint64_t clock_monotonic_us(void);

/* CLOCK_REALTIME in microseconds since 1970. */
uint64_t clock_realtime_us(void);

/* Writes "2026-11-30T18:00:00.123456Z" for a realtime clock reading. */
#define CLOCK_TEXT_SIZE 28
void clock_format(uint64_t realtime_us, char ret_text[CLOCK_TEXT_SIZE]);
