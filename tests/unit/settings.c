/* Settings: what the environment says, and that no value of it stops a program. */
#include "base/settings.h"
#include "base/env.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void clear(void)
{
	for (enum env_id id = 0; id < ENV_COUNT; id++)
		unsetenv(env_info(id)->name);
}

TestSuite(settings, .init = clear);

Test(settings, defaults)
{
	struct settings settings;

	cr_assert_null(settings_read(&settings));
	cr_assert(settings.is_on);
	cr_assert_eq(settings.log_level, LOG_NONE);
	cr_assert_null(settings.driver);
	cr_assert_null(settings.log);
}

Test(settings, hearth_0_switches_off)
{
	struct settings settings;

	setenv("HEARTH", "0", 1);
	cr_assert_null(settings_read(&settings));
	cr_assert_not(settings.is_on);
}

Test(settings, levels_by_name)
{
	static const char *const names[] = {"none", "error", "info", "debug"};
	struct settings settings;

	for (int i = 0; i < 4; i++) {
		setenv("HEARTH_LOG_LEVEL", names[i], 1);
		cr_assert_null(settings_read(&settings));
		cr_assert_eq(settings.log_level, (enum log_level)i, "%s", names[i]);
	}
}

Test(settings, a_wrong_value_is_named_and_counts_as_the_default)
{
	struct settings settings;

	setenv("HEARTH", "yes", 1);
	cr_assert_str_eq(settings_read(&settings), "HEARTH");
	cr_assert(settings.is_on);
	unsetenv("HEARTH");
	setenv("HEARTH_LOG_LEVEL", "loud", 1);
	cr_assert_str_eq(settings_read(&settings), "HEARTH_LOG_LEVEL");
	cr_assert_eq(settings.log_level, LOG_NONE);
}

Test(settings, empty_counts_as_unset)
{
	struct settings settings;

	setenv("HEARTH", "", 1);
	setenv("HEARTH_DRIVER", "", 1);
	cr_assert_null(settings_read(&settings));
	cr_assert(settings.is_on);
	cr_assert_null(settings.driver);
}

Test(settings, speculation_by_name_and_for_one_process)
{
	static const struct {
		const char *value;
		enum speculate_mode mode;
		int pid;
		bool is_wrong;
	} rows[] = {
		{"auto", SPECULATE_AUTO, 0, false},
		{"always", SPECULATE_ALWAYS, 0, false},
		{"off", SPECULATE_OFF, 0, false},
		{"always:4711", SPECULATE_ALWAYS, 4711, false},
		{"spare:4711", SPECULATE_ALWAYS, 4711, false},
		{"spare:", SPECULATE_AUTO, 0, true},
		{"spare", SPECULATE_AUTO, 0, true},
		{"always:", SPECULATE_AUTO, 0, true},
		{"always:47x", SPECULATE_AUTO, 0, true},
		{"always:99999999999999999999", SPECULATE_AUTO, 0, true},
		{"Always", SPECULATE_AUTO, 0, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct settings settings;
		const char *wrong;

		setenv("HEARTH_SPECULATE", rows[i].value, 1);
		wrong = settings_read(&settings);
		cr_assert_eq(wrong != NULL, rows[i].is_wrong, "%s", rows[i].value);
		cr_assert_eq(settings.speculate, rows[i].mode, "%s", rows[i].value);
		cr_assert_eq(settings.speculate_pid, rows[i].pid, "%s", rows[i].value);
		cr_assert_eq(settings.is_spare, !strcmp(rows[i].value, "spare:4711"));
	}
}

Test(settings, the_state_folder_is_absolute)
{
	struct settings settings;

	setenv("HEARTH_STATE_DIR", "/somewhere", 1);
	cr_assert_null(settings_read(&settings));
	cr_assert_str_eq(settings.state_dir, "/somewhere");
	setenv("HEARTH_STATE_DIR", "somewhere", 1);
	cr_assert_str_eq(settings_read(&settings), "HEARTH_STATE_DIR");
	cr_assert_null(settings.state_dir);
}

Test(settings, a_value_by_its_name)
{
	setenv("HEARTH_TASK", "mine", 1);
	cr_assert_str_eq(env_get_named("HEARTH_TASK"), "mine");
	cr_assert_null(env_get_named("HEARTH_CTX"));
	cr_assert_null(env_get_named("TASK"));
}

Test(settings, contexts_and_give_back)
{
	struct settings settings;

	setenv("HEARTH_CTX", "native", 1);
	setenv("HEARTH_GIVE_BACK", "90", 1);
	cr_assert_null(settings_read(&settings));
	cr_assert_eq(settings.contexts, CONTEXT_NATIVE);
	cr_assert_eq(settings.give_back_us, 90000000);
	setenv("HEARTH_GIVE_BACK", "0", 1);
	cr_assert_str_eq(settings_read(&settings), "HEARTH_GIVE_BACK");
	cr_assert_eq(settings.give_back_us, 0);
	setenv("HEARTH_GIVE_BACK", "86401", 1);
	cr_assert_str_eq(settings_read(&settings), "HEARTH_GIVE_BACK");
}

Test(settings, spares)
{
	struct settings settings;

	cr_assert_null(settings_read(&settings));
	cr_expect_not(settings.are_spares_kept);
	cr_expect_eq(settings.spare_host_mib, 4096);
	cr_expect_eq(settings.spare_gpu_mib, 2048);
	cr_expect_eq(settings.spare_idle_s, 900);
	setenv("HEARTH_SPARE", "auto", 1);
	setenv("HEARTH_SPARE_MIB", "0", 1);
	setenv("HEARTH_SPARE_GPU_MIB", "7", 1);
	setenv("HEARTH_SPARE_IDLE", "604800", 1);
	cr_assert_null(settings_read(&settings));
	cr_expect(settings.are_spares_kept);
	cr_expect_eq(settings.spare_host_mib, 0);
	cr_expect_eq(settings.spare_gpu_mib, 7);
	cr_expect_eq(settings.spare_idle_s, 604800);
	setenv("HEARTH_SPARE_IDLE", "604801", 1);
	cr_expect_str_eq(settings_read(&settings), "HEARTH_SPARE_IDLE");
	cr_expect_eq(settings.spare_idle_s, 900);
	setenv("HEARTH_SPARE", "on", 1);
	cr_expect_str_eq(settings_read(&settings), "HEARTH_SPARE");
	cr_expect_not(settings.are_spares_kept);
}
