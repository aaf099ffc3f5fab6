/* Addresses: only folders that nobody else could have prepared are looked into. */
#include "region/address.h"
#include "base/env.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static struct settings settings;

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/hearth-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	setenv("XDG_RUNTIME_DIR", folder, 1);
	settings = (struct settings){0};
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(address, .init = make_folder, .fini = remove_folder);

static bool is_candidate(const char *path)
{
	struct address candidates[ADDRESS_CANDIDATES];
	size_t count = address_candidates(&settings, candidates);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(candidates[i].path, path))
			return true;
	return false;
}

static const char *in_folder(const char *tail)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s%s", folder, tail);
	return path;
}

Test(address, a_setting_is_the_only_candidate)
{
	struct address candidates[ADDRESS_CANDIDATES];

	settings.socket = "/somewhere/socket";
	cr_assert_eq(address_candidates(&settings, candidates), 1);
	cr_assert_str_eq(candidates[0].path, "/somewhere/socket");
}

Test(address, a_setting_too_long_is_none)
{
	struct address candidates[ADDRESS_CANDIDATES], own;
	char longer[200];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = 0;
	settings.socket = longer;
	cr_assert_eq(address_candidates(&settings, candidates), 0);
	cr_assert_eq(address_own(&settings, &own), -ENAMETOOLONG);
}

Test(address, a_setting_that_is_not_absolute_is_none)
{
	struct address candidates[ADDRESS_CANDIDATES], own;

	settings.socket = "socket";
	cr_assert_eq(address_candidates(&settings, candidates), 0);
	cr_assert_eq(address_own(&settings, &own), -EINVAL);
}

Test(address, a_setting_says_what_is_wrong_with_it)
{
	char longest[ADDRESS_MAX] = "/";

	memset(longest + 1, 'x', sizeof(longest) - 2);
	longest[sizeof(longest) - 1] = 0;
	cr_assert_null(address_setting_fault("/socket"));
	cr_assert_null(address_setting_fault(longest));
	cr_assert_str_eq(address_setting_fault("socket"), "no absolute path");
}

Test(address, our_runtime_folder_comes_before_the_machines)
{
	struct address candidates[ADDRESS_CANDIDATES], own;

	cr_assert_eq(address_own(&settings, &own), 0);
	cr_assert_str_eq(own.path, in_folder("/hearth/socket"));
	cr_assert_eq(address_candidates(&settings, candidates), 2);
	cr_assert_str_eq(candidates[0].path, own.path);
	cr_assert_str_eq(candidates[1].path, ADDRESS_SYSTEM);
}

Test(address, a_runtime_folder_that_others_can_enter_is_passed_over)
{
	struct address own;

	cr_assert_eq(mkdir(in_folder("/hearth"), 0700), 0);
	cr_assert_eq(chmod(folder, 0750), 0);
	cr_assert_not(is_candidate(in_folder("/hearth/socket")));
	cr_assert_eq(chmod(folder, 0700), 0);
	cr_assert(is_candidate(in_folder("/hearth/socket")));
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	cr_assert_not(is_candidate("relative/hearth/socket"));
	setenv("XDG_RUNTIME_DIR", folder, 1);
	cr_assert_eq(address_own(&settings, &own), 0);
}

Test(address, a_symlink_in_the_folders_place_is_refused)
{
	struct address own;

	cr_assert_eq(symlink("/tmp", in_folder("/hearth")), 0);
	cr_assert_not(is_candidate(in_folder("/hearth/socket")));
	cr_assert_eq(address_own(&settings, &own), -ENOTDIR);
}

Test(address, a_folder_that_others_can_write_to_is_refused)
{
	struct address own;

	cr_assert_eq(mkdir(in_folder("/hearth"), 0700), 0);
	cr_assert_eq(chmod(in_folder("/hearth"), 0777), 0);
	cr_assert_not(is_candidate(in_folder("/hearth/socket")));
	cr_assert_eq(address_own(&settings, &own), -EPERM);
}

Test(address, a_folder_of_somebody_else_is_refused)
{
	struct address own;

	if (geteuid() != 0)
		return; /* only root can make somebody else's folder */
	cr_assert_eq(mkdir(in_folder("/hearth"), 0700), 0);
	cr_assert_eq(chown(in_folder("/hearth"), 65534, 65534), 0);
	cr_assert_not(is_candidate(in_folder("/hearth/socket")));
	cr_assert_eq(address_own(&settings, &own), -EPERM);
}
