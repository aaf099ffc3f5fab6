/* Makes the profile that RUNS runs of `python NAME [OPTION...]` would leave, each like torch's:
 * profile_maker FOLDER RUNS NAME [OPTION...] */
#include "profile/learn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	/* argv from RUNS on is the command line, with RUNS in the interpreter's place. */
	struct identity_source source = {
		.executable = "/usr/bin/python3",
		.argv = (const char *const *)argv + 2,
		.argc = argc - 2,
	};
	struct observation run = {
		.build_id = {0xab, 0xcd},
		.model = "NVIDIA H200",
		.realtime_s = 1796068800, /* 2026-11-30T20:00Z */
		.is_used = true,
		.start_lead_us = 2900000,
		.lookup_lead_us = 2700000,
		.init_us = 10000,
		.context_us = 120000,
		.visible_count = 1,
		.rank = -1,
		.context_count = 1,
		.contexts = {{.kind = PROFILE_PRIMARY}},
		.outcome = LEARN_HIT,
	};
	struct identity identity;

	if (argc < 4) {
		fputs("usage: profile_maker FOLDER RUNS NAME [OPTION...]\n", stderr);
		return 2;
	}
	identity_compute(&source, &identity);
	for (int i = atoi(argv[2]); i > 0; i--) {
		int rc = learn_run(argv[1], NULL, &identity, &run);

		if (rc) {
			fprintf(stderr, "%s: %s\n", argv[1], strerror(-rc));
			return 1;
		}
	}
	return 0;
}
