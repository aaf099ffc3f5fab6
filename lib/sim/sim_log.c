/* The call log: one JSON line for each call, one write each. Runs on the program's threads, after
 * the call. Keeps no descriptor between lines. */
#include "sim/sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_WORDS 16

bool sim_log_is_on(void)
{
	return sim_setting(SIM_SET_LOG);
}

/* The file's path, %p replaced. */
static void path_of(char *ret_path, size_t size)
{
	const char *pattern = sim_setting(SIM_SET_LOG), *mark = strstr(pattern, "%p");

	if (mark)
		snprintf(ret_path, size, "%.*s%d%s", (int)(mark - pattern), pattern, (int)getpid(),
			mark + 2);
	else
		snprintf(ret_path, size, "%s", pattern);
}

void sim_log_call(const char *symbol, int arity, const word *arg, int rc, uint64_t start_us)
{
	char path[4096], line[1024];
	int length, fd;

	length = snprintf(line, sizeof(line),
		"{\"pid\":%d,\"tid\":%d,\"copy\":\"%p\",\"call\":\"%s\",\"arity\":%d,\"args\":[",
		(int)getpid(), (int)syscall(SYS_gettid), (void *)&sim, symbol, arity);
	for (int i = 0; i < arity && i < MAX_WORDS; i++)
		length += snprintf(line + length, sizeof(line) - (size_t)length, "%s\"%#lx\"",
			i ? "," : "", (unsigned long)arg[i]);
	length += snprintf(line + length, sizeof(line) - (size_t)length,
		"],\"at_us\":%llu,\"us\":%llu,\"rc\":%d}\n", (unsigned long long)start_us,
		(unsigned long long)(sim_time_now_us() - start_us), rc);
	path_of(path, sizeof(path));
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, line, (size_t)length) < 0)
		unlink(path); /* a torn log would be taken for a whole one */
	close(fd);
}
