/* lib/profile/starts: the list of programs that speculation starts with. */
#include "profile/starts.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/hearth-starts-XXXXXX";
static char path[64];

static void make_folder(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/starts", folder);
}

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

Test(starts, lists_and_removes, .init = make_folder, .fini = remove_folder)
{
	cr_assert_not(starts_of_self(folder));
	cr_assert_eq(starts_note_self(folder, STARTS_SPECULATION, false), 0);
	cr_assert_eq(access(path, F_OK), -1);
	cr_assert_eq(starts_note_self(folder, STARTS_SPECULATION, true), 0);
	cr_assert(starts_of_self(folder));
	cr_assert_eq(starts_note_self(folder, STARTS_SPECULATION, false), 0);
	cr_assert_not(starts_of_self(folder));
}

/* Others' entries, as many as there is room for. */
static void fill(size_t count)
{
	unsigned long long words[1 + 2 * STARTS_MAX] = {0x3253545241545348ULL};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	for (size_t i = 1; i <= 2 * count; i++)
		words[i] = 1000000 + i;
	cr_assert_eq(write(fd, words, (1 + 2 * count) * sizeof(*words)),
		(ssize_t)((1 + 2 * count) * sizeof(*words)));
	close(fd);
}

Test(starts, is_bounded, .init = make_folder, .fini = remove_folder)
{
	struct stat status;

	for (size_t count = STARTS_MAX - 1; count <= STARTS_MAX; count++) {
		fill(count);
		cr_assert_not(starts_of_self(folder));
		cr_assert_eq(starts_note_self(folder, STARTS_SPECULATION, true), 0);
		cr_assert(starts_of_self(folder));
		cr_assert_eq(stat(path, &status), 0);
		cr_assert_eq(status.st_size, 8 + 16 * STARTS_MAX);
	}
}

Test(starts, what_is_damaged_or_not_ours_lists_nothing, .init = make_folder, .fini = remove_folder)
{
	cr_assert_eq(starts_note_self(folder, STARTS_SPECULATION, true), 0);
	chmod(path, 0622);
	cr_assert_not(starts_of_self(folder));
	chmod(path, 0600);
	cr_assert(starts_of_self(folder));
	for (off_t size = 23; size >= 0; size--) {
		cr_assert_eq(truncate(path, size), 0);
		cr_assert_not(starts_of_self(folder));
	}
	unlink(path);
	cr_assert_eq(symlink("/proc/self/exe", path), 0);
	cr_assert_not(starts_of_self(folder));
	cr_assert_not(starts_of_self("relative"));
}

Test(starts, a_reason_leaves_the_other, .init = make_folder, .fini = remove_folder)
{
	cr_assert_eq(starts_note_self(folder, STARTS_FILES, true), 0);
	cr_assert_eq(starts_of_self(folder), STARTS_FILES);
	cr_assert_eq(starts_note_self(folder, STARTS_SPECULATION, true), 0);
	cr_assert_eq(starts_of_self(folder), STARTS_FILES | STARTS_SPECULATION);
	cr_assert_eq(starts_note_self(folder, STARTS_SPECULATION, false), 0);
	cr_assert_eq(starts_of_self(folder), STARTS_FILES);
	cr_assert_eq(starts_note_self(folder, STARTS_FILES, false), 0);
	cr_assert_eq(starts_of_self(folder), 0);
}
