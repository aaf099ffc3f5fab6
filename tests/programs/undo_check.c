/* Runs the undo self-test on the driver at the path given and prints a line for each scenario. With
 * a state folder it stores the verdict there. */
#include "driver/verdict.h"
#include "undo/undo.h"

#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct undo_verdict verdict;
	char text[UNDO_TEXT_MAX];
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
	undo_format(&verdict, text);
	fputs(text, stdout);
	if (argc == 3 && outcome != UNDO_UNPROVED) {
		struct build_id id;

		if (build_id_of_file(open(argv[1], O_RDONLY | O_CLOEXEC), &id) ||
			verdict_write(argv[2], &id, VERDICT_FOR_OWNER, !outcome, text)) {
			fprintf(stderr, "undo_check: no verdict stored in %s\n", argv[2]);
			return 2;
		}
	}
	return outcome;
}
