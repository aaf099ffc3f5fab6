/* The history's file: bounded, private, and never left in a state that loses the next run. */
#include "broker/history.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/hearth-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/runs.jsonl", folder);
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(history, .init = make_folder, .fini = remove_folder);

static void append(int number)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "{\"run\":%d}\n", number);

	cr_assert_eq(history_append(folder, line, (size_t)length), 0);
}

/* The numbers of the file's first and last whole lines, and how many there are. */
static int read_lines(int *ret_first, int *ret_last)
{
	FILE *file = fopen(path, "r");
	char line[256];
	int count = 0, number;

	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "{\"run\":%d}\n", &number) != 1)
			continue;
		*ret_last = number;
		if (!count++)
			*ret_first = number;
	}
	fclose(file);
	return count;
}

Test(history, the_last_runs_are_kept_and_no_more)
{
	int first, last;

	for (int i = 1; i <= 1000; i++) {
		append(i);
		if (i % 97)
			continue;
		int count = read_lines(&first, &last);

		cr_assert_eq(last, i);
		cr_assert_geq(count, i < HISTORY_RUNS ? i : HISTORY_RUNS);
		cr_assert_leq(count, HISTORY_RUNS + HISTORY_SLACK);
		cr_assert_eq(first, i - count + 1);
	}
}

Test(history, the_file_is_private)
{
	struct stat info;

	umask(0);
	append(1);
	cr_assert_eq(stat(path, &info), 0);
	cr_assert_eq(info.st_mode & 07777, 0600);
}

Test(history, a_line_cut_short_does_not_take_the_next_one_with_it)
{
	int first, last, fd;

	append(1);
	fd = open(path, O_WRONLY | O_APPEND);
	cr_assert_eq(write(fd, "{\"run\":", 7), 7);
	close(fd);
	append(2);
	cr_assert_eq(read_lines(&first, &last), 2);
	cr_assert_eq(last, 2);
}

Test(history, a_symlink_is_not_followed)
{
	char target[96];

	snprintf(target, sizeof(target), "%s/target", folder);
	cr_assert_eq(symlink(target, path), 0);
	cr_assert_lt(history_append(folder, "x\n", 2), 0);
	cr_assert_lt(access(target, F_OK), 0);
}

Test(history, a_pipe_in_its_place_does_not_block)
{
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(history_append(folder, "x\n", 2), -EPERM);
}

Test(history, the_folder_is_made)
{
	char deeper[96];

	snprintf(deeper, sizeof(deeper), "%s/a/b", folder);
	cr_assert_eq(history_append(deeper, "x\n", 2), 0);
}

Test(history, what_is_queued_is_written_at_the_end)
{
	struct history *history;
	int first, last;

	cr_assert_eq(history_open(folder, false, &history), 0);
	for (int i = 1; i <= 100; i++) {
		char *line = malloc(32);
		int length = snprintf(line, 32, "{\"run\":%d}\n", i);

		history_add(history, 0, 0, line, (size_t)length);
	}
	cr_assert_null(history_close(history));
	cr_assert_eq(read_lines(&first, &last), 100);
	cr_assert_eq(last, 100);
}

Test(history, none_takes_lines_and_drops_them)
{
	history_add(NULL, 0, 0, strdup("x\n"), 2);
	cr_assert_eq(history_pending(NULL), 0);
	cr_assert_null(history_close(NULL));
}

Test(history, is_cleared_between_appends)
{
	int first, last;

	cr_assert_eq(history_clear(folder), -ENOENT);
	append(1);
	cr_assert_eq(history_clear(folder), 0);
	cr_assert_eq(access(path, F_OK), -1);
	append(2);
	cr_assert_eq(read_lines(&first, &last), 1);
	cr_assert_eq(first, 2);
	cr_assert_eq(history_clear("/none"), -ENOENT);
}
