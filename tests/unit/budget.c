/* The budget of spares that are kept unasked: the administrator's file against the user's settings.
 */
#include "spare/budget.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct settings users = {
	.spare_host_mib = 1000, .spare_gpu_mib = 500, .spare_idle_s = 60};

#define TEMPORARY "/tmp/hearth-budget-XXXXXX"

static void write_file(const char *text, mode_t mode, char path[sizeof(TEMPORARY)])
{
	int fd;

	strcpy(path, TEMPORARY);
	fd = mkstemp(path);
	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	cr_assert(eq(int, fchmod(fd, mode), 0));
	close(fd);
}

static int read_text(const char *text, mode_t mode, struct budget *ret_budget)
{
	char path[sizeof(TEMPORARY)];
	int rc;

	write_file(text, mode, path);
	rc = budget_read(path, &users, ret_budget);
	unlink(path);
	return rc;
}

static void check(const char *text, unsigned host, unsigned gpu, unsigned idle)
{
	struct budget budget;

	cr_expect(eq(int, read_text(text, 0644, &budget), 0), "%s", text);
	cr_expect(budget.is_allowed, "%s", text);
	cr_expect(eq(u32, budget.host_mib, host), "%s", text);
	cr_expect(eq(u32, budget.gpu_mib, gpu), "%s", text);
	cr_expect(eq(u32, budget.idle_s, idle), "%s", text);
}

Test(budget, the_smaller_counts)
{
	if (geteuid())
		cr_skip("the file has to be root's");
	check("", 1000, 500, 60);
	check("# nothing\n\n", 1000, 500, 60);
	check("host_mib 200\ngpu_mib 9000\nidle_s 5\n", 200, 500, 5);
	check("auto on\ngpu_mib 0", 1000, 0, 60);
}

Test(budget, can_allow_none)
{
	struct budget budget;

	if (geteuid())
		cr_skip("the file has to be root's");
	cr_expect(eq(int, read_text("auto off\nauto on\n", 0644, &budget), 0));
	cr_expect(not(budget.is_allowed));
	cr_expect(eq(int, read_text("idle_s 0\n", 0644, &budget), 0));
	cr_expect(not(budget.is_allowed));
}

Test(budget, what_is_not_understood_allows_none)
{
	static const char *const wrong[] = {"host_mib\n", "host_mib -1\n", "host_mib 1 2\n",
		"host_mib 1x\n", "host_mib 99999999999\n", "auto maybe\n", "other 1\n"};
	struct budget budget;

	if (geteuid())
		cr_skip("the file has to be root's");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect(eq(int, read_text(wrong[i], 0644, &budget), 1), "%s", wrong[i]);
		cr_expect(not(budget.is_allowed), "%s", wrong[i]);
	}
	cr_expect(eq(int, read_text("idle_s 1\nauto\n", 0644, &budget), 2));
}

Test(budget, a_file_that_others_write_does_not_count)
{
	struct budget budget;

	cr_expect(eq(int, read_text("auto off\n", 0666, &budget), 0));
	cr_expect(budget.is_allowed);
	cr_expect(eq(int, budget_read("/nowhere/at/all", &users, &budget), 0));
	cr_expect(budget.is_allowed);
}

Test(budget, the_hosts_memory_is_short_below_a_tenth)
{
	static const struct {
		const char *text;
		bool is_short;
	} rows[] = {
		{"MemTotal:  1024000 kB\nMemFree: 1 kB\nMemAvailable:  102400 kB\n", false},
		{"MemTotal:  1024000 kB\nMemFree: 1 kB\nMemAvailable:  101000 kB\n", true},
		{"", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[sizeof(TEMPORARY)];

		write_file(rows[i].text, 0600, path);
		cr_expect(eq(int, budget_is_short(path), rows[i].is_short), "row %zu", i);
		unlink(path);
	}
}
