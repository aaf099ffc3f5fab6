/* What reading a profile costs the program that starts: its time, and its system calls, which a
 * filter of the kernel's counts off: any other one kills the reader. */
#include "base/clock.h"
#include "profile/learn.h"

#include <criterion/criterion.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_MAX_US 100
/* Their runtimes make calls, and take time, of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static char folder[] = "/tmp/hearth-cost-XXXXXX";
static struct identity identity = {.kind = IDENTITY_SCRIPT, .name = "train.py"};
static struct profile profile;

static void make(void)
{
	struct observation run = {.model = "GPU", .is_used = true, .rank = -1};

	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(learn_run(folder, NULL, &identity, &run), 0);
}

static void remove_folder(void)
{
	profile_prune(folder, 0, 0);
	rmdir(folder);
}

TestSuite(profile_cost, .init = make, .fini = remove_folder);

/* The fastest of many: others use this machine too. */
Test(profile_cost, reading_takes_less_than_100_us)
{
	uint64_t fastest = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t start = clock_monotonic_us(), took;

		cr_assert_eq(profile_read(folder, identity.digest, &profile, NULL), 0);
		took = clock_monotonic_us() - start;
		if (took < fastest)
			fastest = took;
	}
	cr_log_info("profile_read: %u us", (unsigned int)fastest);
	if (!IS_SANITIZED)
		cr_assert_lt(fastest, READ_MAX_US);
}

/* geteuid is part of the check of the owner. */
static bool allow_few_calls(void)
{
	static const unsigned int allowed[] = {SYS_open, SYS_openat, SYS_fstat, SYS_newfstatat,
		SYS_read, SYS_close, SYS_geteuid, SYS_exit_group};
	struct sock_filter filter[2 * COUNT(allowed) + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = {.len = COUNT(filter), .filter = filter};
	size_t at = 1;

	for (size_t i = 0; i < COUNT(allowed); i++) {
		filter[at++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
		filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[at] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

enum { NO_FILTER = 77 };

/* How a child ends that does this under the filter. */
static int status_under_filter(void (*work)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		if (!allow_few_calls())
			_exit(NO_FILTER);
		work();
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

static void read_profile(void)
{
	if (profile_read(folder, identity.digest, &profile, NULL))
		_exit(1);
}

static void call_another(void)
{
	syscall(SYS_getppid);
}

Test(profile_cost, reading_is_open_fstat_read_and_close)
{
	int other;

	if (IS_SANITIZED) {
		cr_log_info("skipped: a sanitizer makes calls of its own");
		return;
	}
	other = status_under_filter(call_another);
	if (WIFEXITED(other) && WEXITSTATUS(other) == NO_FILTER) {
		cr_log_info("skipped: this machine allows no system call filter");
		return;
	}
	cr_assert(WIFSIGNALED(other), "the filter does not filter");
	cr_assert_eq(status_under_filter(read_profile), 0);
}
