/* Reads a bench's command line; runs once, at its start. */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RUNS = 1000000 };

struct options options_read(int argc, char **argv, unsigned runs, const char *usage)
{
	static const struct option known[] = {
		{"preload", required_argument, NULL, 'p'},
		{"driver", required_argument, NULL, 'd'},
		{"json", no_argument, NULL, 'j'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {.runs = runs, .driver = "libcuda.so.1"};
	int option;

	while ((option = getopt_long(argc, argv, "+n:", known, NULL)) != -1) {
		switch (option) {
		case 'n':
			options.runs = (unsigned)strtoul(optarg, NULL, 10);
			break;
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
			fprintf(stderr, "usage: %s\n", usage);
			exit(2);
		}
	}
	if (options.runs < 1 || options.runs > MOST_RUNS) {
		fprintf(stderr, "-n is 1..%d\nusage: %s\n", MOST_RUNS, usage);
		exit(2);
	}
	options.words = argv + optind;
	return options;
}
