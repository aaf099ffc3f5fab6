/* Stored verdicts: what counts, and for whom they are. */
#include "driver/verdict.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct build_id id = {.bytes = {0xab, 0xcd}, .size = 2};
static char folder[] = "/tmp/hearth-verdict-XXXXXX", path[128];

static void begin(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/undo/abcd", folder);
}

static void end(void)
{
	char undo[128];

	unlink(path);
	snprintf(undo, sizeof(undo), "%s/undo", folder);
	rmdir(undo);
	rmdir(folder);
}

TestSuite(verdict, .init = begin, .fini = end);

static unsigned mode_of(const char *name)
{
	struct stat status;

	cr_assert(!stat(name, &status), "%s", name);
	return status.st_mode & 0777;
}

static void put(const char *text)
{
	FILE *file = fopen(path, "w");

	cr_assert(file);
	fputs(text, file);
	fclose(file);
}

Test(verdict, is_none_before_it_is_written)
{
	cr_expect_eq(verdict_read(folder, &id), VERDICT_NONE);
}

Test(verdict, is_what_was_written_last)
{
	char details[VERDICT_DETAILS_MAX];

	cr_assert(!verdict_write(folder, &id, VERDICT_FOR_OWNER, false, "fork: failed\n"));
	cr_expect_eq(verdict_find(folder, &id, details), VERDICT_FAILED);
	cr_expect(!strcmp(details, "fork: failed\n"), "%s", details);
	cr_assert(!verdict_write(folder, &id, VERDICT_FOR_OWNER, true, ""));
	cr_expect_eq(verdict_find(folder, &id, details), VERDICT_PASSED);
	cr_expect_eq(details[0], '\0');
}

Test(verdict, is_its_owners_or_everybodys_to_read)
{
	char undo[128];

	snprintf(undo, sizeof(undo), "%s/undo", folder);
	cr_assert(!verdict_write(folder, &id, VERDICT_FOR_OWNER, true, ""));
	cr_expect_eq(mode_of(path), 0600);
	cr_expect_eq(mode_of(undo), 0700);
	umask(0077);
	cr_assert(!verdict_write(folder, &id, VERDICT_FOR_ALL, true, ""));
	cr_expect_eq(mode_of(path), 0644);
	cr_expect_eq(mode_of(undo), 0755);
}

Test(verdict, counts_only_while_nobody_else_can_write_it)
{
	cr_assert(!verdict_write(folder, &id, VERDICT_FOR_OWNER, true, ""));
	cr_assert(!chmod(path, 0620));
	cr_expect_eq(verdict_read(folder, &id), VERDICT_NONE);
	cr_assert(!chmod(path, 0602));
	cr_expect_eq(verdict_read(folder, &id), VERDICT_NONE);
	cr_assert(!chmod(path, 0600));
	cr_expect_eq(verdict_read(folder, &id), VERDICT_PASSED);
}

Test(verdict, counts_only_whole)
{
	static const char *const texts[] = {"", "hearth", "hearth undo 1 passed",
		"hearth undo 2 passed\n", "hearth undo 1 maybe!\n", "\n\n\n\n\n\n\n\n\n\n\n\n\n"};

	cr_assert(!verdict_write(folder, &id, VERDICT_FOR_OWNER, true, ""));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put(texts[i]);
		cr_expect_eq(verdict_read(folder, &id), VERDICT_NONE, "from '%s'", texts[i]);
	}
	put("hearth undo 1 passed\nand more");
	cr_expect_eq(verdict_read(folder, &id), VERDICT_PASSED);
}

Test(verdict, has_no_file_without_a_build_id)
{
	static const struct build_id none;

	cr_expect(verdict_write(folder, &none, VERDICT_FOR_OWNER, true, ""));
	cr_expect_eq(verdict_read(folder, &none), VERDICT_NONE);
}
