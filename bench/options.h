/* The benches' command lines: -n N, --preload FILE, --driver FILE, --json, then the bench's own
 * words. */
#pragma once

#include <stdbool.h>

struct options {
	unsigned runs;       /* -n */
	const char *preload; /* libhearth.so; NULL where none was given */
	const char *driver;  /* the real libcuda.so.1; "libcuda.so.1" where none was given */
	bool wants_json;
	char **words; /* what is left, NULL-terminated */
};

/* Reads the options; `runs` is the default of -n. `usage` is without the "bench_" of
 * the program's name. On a wrong option prints it on stderr and exits with 2; on --help, on stdout
 * with 0. */
struct options options_read(int argc, char **argv, unsigned runs, const char *usage);
