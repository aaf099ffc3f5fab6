/* Reads a bench's command line; runs once, at its start. */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RUNS = 1000000 };

static unsigned read_runs(const char *text, const char *usage)
{
	char *end;
	unsigned long runs = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || runs < 1 || runs > MOST_RUNS) {
		fprintf(stderr, "-n: '%s' is not a number from 1 to %d\nusage: bench_%s\n", text,
			MOST_RUNS, usage);
		exit(2);
	}
	return (unsigned)runs;
}

struct options options_read(int argc, char **argv, unsigned runs, const char *usage)
{
	static const struct option known[] = {
		{"preload", required_argument, NULL, 'p'},
		{"driver", required_argument, NULL, 'd'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {.runs = runs, .driver = "libcuda.so.1"};
	int option;

	while ((option = getopt_long(argc, argv, "+n:", known, NULL)) != -1) {
		switch (option) {
		case 'n':
			options.runs = read_runs(optarg, usage);
			break;
		case 'h':
			printf("usage: bench_%s\n", usage);
			exit(0);
		case 'p':
			options.preload = optarg;
			break;
		case 'd':
			options.driver = optarg;
			break;
		case 'j':
			options.wants_json = true;
			break;
		default:
			fprintf(stderr, "usage: bench_%s\n", usage);
			exit(2);
		}
	}
	options.words = argv + optind;
	return options;
}
