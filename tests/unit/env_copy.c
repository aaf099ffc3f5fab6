/* lib/base/env_copy: a copy of the environment, also beside another thread's setenv. */
#include "base/env_copy.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Test(env_copy, is_the_environment)
{
	struct env_copy copy;
	size_t count = 0;

	setenv("HEARTH_TEST_EMPTY", "", 1);
	setenv("HEARTH_TEST_VALUE", "a=b", 1);
	cr_assert_eq(env_copy_take(&copy), 0);
	for (; environ[count]; count++) {
		cr_assert_str_eq(copy.entries[count], environ[count]);
		cr_assert(copy.entries[count] != environ[count]);
	}
	cr_assert_null(copy.entries[count]);
	cr_assert_str_eq(env_copy_find(copy.entries, "HEARTH_TEST_VALUE"), "a=b");
	cr_assert_str_eq(env_copy_find(copy.entries, "HEARTH_TEST_EMPTY"), "");
	cr_assert_null(env_copy_find(copy.entries, "HEARTH_TEST_VAL"));
	env_copy_drop(&copy);
}

Test(env_copy, long_values_and_none)
{
	static char value[100000];
	char **kept = environ;
	struct env_copy copy;

	memset(value, 'x', sizeof(value) - 1);
	setenv("HEARTH_TEST_LONG", value, 1);
	cr_assert_eq(env_copy_take(&copy), 0);
	cr_assert_str_eq(env_copy_find(copy.entries, "HEARTH_TEST_LONG"), value);
	env_copy_drop(&copy);
	environ = NULL;
	cr_assert_eq(env_copy_take(&copy), 0);
	cr_assert_null(copy.entries[0]);
	environ = kept;
	env_copy_drop(&copy);
}

Test(env_copy, what_is_not_memory_is_left_out)
{
	char first[] = "A=1", last[] = "B=2", *entries[] = {first, (char *)8, last, NULL};
	char **kept = environ;
	struct env_copy copy;

	environ = entries;
	cr_assert_eq(env_copy_take(&copy), 0);
	environ = (char **)16;
	cr_assert_str_eq(env_copy_find(copy.entries, "A"), "1");
	cr_assert_str_eq(env_copy_find(copy.entries, "B"), "2");
	env_copy_drop(&copy);
	cr_assert_eq(env_copy_take(&copy), 0);
	environ = kept;
	cr_assert_null(copy.entries[0]);
	env_copy_drop(&copy);
}

Test(env_copy, is_bounded)
{
	static char *entries[ENV_COPY_ENTRIES + 2];
	static char value[ENV_COPY_BYTES + 1];
	char entry[] = "A=1", **kept = environ;
	struct env_copy copy;
	int many, large;

	for (size_t i = 0; i <= ENV_COPY_ENTRIES; i++)
		entries[i] = entry;
	environ = entries;
	many = env_copy_take(&copy);
	memset(value, 'x', ENV_COPY_BYTES);
	entries[0] = value;
	entries[1] = NULL;
	large = env_copy_take(&copy);
	environ = kept;
	cr_assert_eq(many, -E2BIG);
	/* One that has no room is left out; the rest is there. */
	cr_assert_eq(large, 0);
	cr_assert_null(copy.entries[0]);
	env_copy_drop(&copy);
}
