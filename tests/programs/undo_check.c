/* Runs the undo self-test on the driver at the path given and prints a line for each scenario. With
 * a state folder it stores the verdict there. */
#include "driver/verdict.h"

#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct undo_verdict verdict;
	int outcome;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: undo_check DRIVER [STATE_DIR]\n");
		return 2;
	}
	outcome = undo_test(argv[1], &verdict);
	if (outcome < 0) {
		fprintf(stderr, "undo_check: error %d\n", -outcome);
		return 2;
	}
	for (int i = 0; i < UNDO_SCENARIOS; i++)
		printf("%s %s rc=%d at \"%s\" %.1f ms\n", undo_scenario_name(i),
			verdict.scenario[i].result == UNDO_PASSED ? "passed" : "FAILED",
			verdict.scenario[i].rc, verdict.scenario[i].step,
			(double)verdict.scenario[i].took_us / 1000);
	if (argc == 3) {
		struct build_id id;

		if (build_id_of_file(open(argv[1], O_RDONLY | O_CLOEXEC), &id) ||
			verdict_write(argv[2], &id, &verdict)) {
			fprintf(stderr, "undo_check: no verdict stored in %s\n", argv[2]);
			return 2;
		}
	}
	return outcome;
}
