/* Does what its arguments say, one step after the other, and prints what each gave; nothing that
 * differs from run to run is printed. Under Hearth it must print what it prints without.
 *
 *   sleep=MS lookup env=NAME=VALUE unenv=NAME
 *   init[=FLAGS] count devices retain=D release=D reset=D state=D flags=D,F v1flags=D,F
 *   create=D[,F] destroy stack work copy memory version error
 *   table=0|1      asks for the export table that the runtime asks for early, or for another
 *   nvml           what nvmlInit does with the driver's private table
 *   tool=0|1       finds the driver as a profiler does and looks into it; 1: calls cuInit first
 *   storm=N        cuInit from N threads at once
 *   storms=N       cuInit and a retain from N threads at once
 *   busy=MS        setenv and unsetenv of other variables, all that time
 *   busythread=MS  the same on another thread
 *   fds            the files that descriptors lead to
 *   next           opens a descriptor and prints its number
 *   atexit         registers an exit handler that asks for the number of devices
 *   numbers        the number that the next one would have, and all that are open
 *   fork clone     the child does the remaining steps first, then the parent does them
 *   forks=N        so many children, each of which calls cuInit
 *   vfork          a child that becomes `true`
 *   plugin=FILE    opens a library
 *   close          closes all descriptors above 2
 *   replace        puts /dev/null in the place of all descriptors above 2
 *   input          waits for a byte of stdin, or its end
 *   uid=N cpu=N root=DIR sigwait
 *   and what driver_steps_images.c and driver_steps_random.c say
 *   end=HOW        return (default), exit, _exit, quick, abort, term, kill, exec, thread */
#include "driver_steps.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_FILES 1024
#define MAX_THREADS 64
#define TEXT_MAX 128

extern char **environ;

static void wait_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void *init_at_once(void *barrier)
{
	pthread_barrier_wait(barrier);
	return (void *)(intptr_t)STEPS_CALL(cuInit, 0);
}

static void *use_at_once(void *barrier)
{
	void *context = NULL;

	pthread_barrier_wait(barrier);
	return (void *)(intptr_t)(STEPS_CALL(cuInit, 0) ||
				  STEPS_CALL(cuDevicePrimaryCtxRetain, &context, UINT64_C(0)) ||
				  STEPS_CALL(cuCtxSetCurrent, context));
}

static void storm(int count, void *(*run)(void *))
{
	pthread_t threads[MAX_THREADS];
	pthread_barrier_t barrier;
	int failed = 0;

	pthread_barrier_init(&barrier, NULL, (unsigned int)count);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, run, &barrier);
	for (int i = 0; i < count; i++) {
		void *rc;

		pthread_join(threads[i], &rc);
		failed += rc != NULL;
	}
	printf("%d of %d failed\n", failed, count);
}

static void change_environment(long ms)
{
	struct timespec now, end;
	char value[TEXT_MAX];

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += ms % 1000 * 1000000;
	for (unsigned int i = 0;; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > end.tv_sec ||
			(now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec))
			return;
		snprintf(value, sizeof(value), "NOTHING_%u", i % 64);
		if (i % 128 < 64)
			setenv(value, "of importance", 1);
		else
			unsetenv(value);
	}
}

static void *busy(void *ms)
{
	change_environment((long)(intptr_t)ms);
	return NULL;
}

static void start_busy_thread(long ms)
{
	pthread_t thread;

	pthread_create(&thread, NULL, busy, (void *)(intptr_t)ms);
	pthread_detach(thread);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Names that no two runs share are cut off: "socket:[1234]" is a socket. */
static void show_files(void)
{
	static char names[MAX_FILES][TEXT_MAX];
	int count = 0;

	for (int fd = 3; fd < MAX_FILES; fd++) {
		char link[TEXT_MAX], *end;
		ssize_t length;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, names[count], TEXT_MAX - 1);
		if (length < 0)
			continue;
		names[count][length] = '\0';
		end = strchr(names[count], '[');
		if (!end)
			end = strstr(names[count], "-client-");
		if (end)
			*end = '\0';
		count++;
	}
	qsort(names, (size_t)count, sizeof(names[0]), compare_text);
	printf("%d files", count);
	for (int i = 0; i < count; i++)
		printf(" %s", names[i]);
	printf("\n");
}

/* The number that the program's next descriptor gets, and those that are open. */
static void show_numbers(void)
{
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

	printf("next %d, open:", next);
	for (int fd = 0; fd < MAX_FILES; fd++)
		if (fcntl(fd, F_GETFD) >= 0 && fd != next)
			printf(" %d", fd);
	printf("\n");
	close(next);
}

static void close_all(void)
{
	for (int fd = 3; fd < MAX_FILES; fd++)
		close(fd);
}

static void put_null_everywhere(void)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 3; fd < MAX_FILES; fd++)
		if (fcntl(fd, F_GETFD) >= 0 && fd != null)
			dup2(null, fd);
}

/* Children that all call cuInit: how many got which result. */
static void fork_many(int count)
{
	int results[256] = {0};

	fflush(stdout);
	for (int i = 0; i < count; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			alarm(STEPS_LIMIT_S);
			_exit(STEPS_CALL(cuInit, 0));
		}
		waitpid(pid, &status, 0);
		results[WIFEXITED(status) ? WEXITSTATUS(status) : 255]++;
	}
	for (int i = 0; i < 256; i++)
		if (results[i])
			printf("%d children got %d\n", results[i], i);
}

static void branch(const char *how)
{
	int status;
	pid_t pid;

	fflush(stdout);
	if (!strcmp(how, "fork"))
		pid = fork();
	else
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		alarm(STEPS_LIMIT_S);
		printf("in the child\n");
		return;
	}
	waitpid(pid, &status, 0);
	printf("child ended with %#x\n", status);
}

static void become_true(void)
{
	char *words[] = {"true", NULL};
	int status;
	pid_t pid;

	fflush(stdout);
	pid = vfork();
	if (!pid) {
		execve("/bin/true", words, environ);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	printf("vfork's child ended with %#x\n", status);
}

/* A signal for the process, which no thread may take before sigwait does. */
static void wait_for_signal(void)
{
	sigset_t set;
	int got = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGTERM);
	wait_ms(5);
	printf("sigwait %d: %d\n", sigwait(&set, &got), got);
}

static void wait_for_input(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) < 0)
		;
}

static void set_processor(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	printf("affinity %d\n", sched_setaffinity(0, sizeof(set), &set));
}

static void leave(const char *how)
{
	char *words[] = {"true", NULL};

	fflush(stdout);
	if (!strcmp(how, "exit"))
		exit(3);
	if (!strcmp(how, "_exit"))
		_exit(4);
	if (!strcmp(how, "quick"))
		quick_exit(5);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "exec"))
		execve("/bin/true", words, environ);
	if (!strcmp(how, "thread"))
		pthread_exit(NULL);
}

static int do_other(const char *step, const char *value)
{
	if (!strcmp(step, "sleep"))
		wait_ms(atol(value));
	else if (!strcmp(step, "env")) {
		char *text = strdup(value), *equals = strchr(text, '=');

		*equals = '\0';
		setenv(text, equals + 1, 1);
		free(text);
	} else if (!strcmp(step, "unenv"))
		unsetenv(value);
	else if (!strcmp(step, "storm"))
		storm(atoi(value), init_at_once);
	else if (!strcmp(step, "storms"))
		storm(atoi(value), use_at_once);
	else if (!strcmp(step, "busy"))
		change_environment(atol(value));
	else if (!strcmp(step, "busythread"))
		start_busy_thread(atol(value));
	else if (!strcmp(step, "fds"))
		show_files();
	else if (!strcmp(step, "next"))
		printf("next %d\n", dup(0));
	else if (!strcmp(step, "numbers"))
		show_numbers();
	else if (!strcmp(step, "fork") || !strcmp(step, "clone"))
		branch(step);
	else if (!strcmp(step, "forks"))
		fork_many(atoi(value));
	else if (!strcmp(step, "vfork"))
		become_true();
	else if (!strcmp(step, "plugin"))
		printf("plugin %s\n", dlopen(value, RTLD_NOW) ? "opened" : dlerror());
	else if (!strcmp(step, "close"))
		close_all();
	else if (!strcmp(step, "replace"))
		put_null_everywhere();
	else if (!strcmp(step, "uid"))
		printf("setuid %d\n", setuid((uid_t)atoi(value)));
	else if (!strcmp(step, "cpu"))
		set_processor(atoi(value));
	else if (!strcmp(step, "root"))
		printf("chroot %d\n", chroot(value));
	else if (!strcmp(step, "input"))
		wait_for_input();
	else if (!strcmp(step, "sigwait"))
		wait_for_signal();
	else if (!strcmp(step, "end"))
		leave(value);
	else
		return 0;
	return 1;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(STEPS_LIMIT_S);
	for (int i = 1; i < argc; i++) {
		char step[TEXT_MAX], *value;

		snprintf(step, sizeof(step), "%s", argv[i]);
		value = strchr(step, '=');
		if (value)
			*value++ = '\0';
		else
			value = step + strlen(step);
		if (!do_other(step, value) && !steps_driver(step, value) &&
			!steps_images(step, value) && !steps_random(step, value)) {
			fprintf(stderr, "%s: no such step\n", argv[i]);
			return 2;
		}
	}
	return 0;
}
