/* Runs the undo self-test on the driver at the path given and prints a line for each scenario. */
#include "driver/undo.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	struct undo_verdict verdict;
	int outcome;

	if (argc != 2) {
		fprintf(stderr, "usage: undo_check DRIVER\n");
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
	return outcome;
}
