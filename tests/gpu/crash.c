/* A second preload for a program that crashes under the first: says where, with the stack's return
 * addresses, and lets it die as it would have. Loaded by tools/gpu-check when a compared program
 * ended by a signal; runs in signal handlers, and must never return from one but to the fault. */
#include "dump.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* What a fault raises; a blocked one ends the process without a word. */
static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

enum { STACK_BYTES = 128 * 1024, CODE_BYTES = 16 };

static void crashed(int number, siginfo_t *info, void *context)
{
	ucontext_t *user = context;
	const greg_t *registers = user->uc_mcontext.gregs;

	dprintf(STDERR_FILENO, "crash: signal %d, code %d, address %p, process %d, thread %ld\n",
		number, info->si_code, info->si_addr, getpid(), syscall(SYS_gettid));
	for (int i = 0; i < NGREG; i++)
		dprintf(STDERR_FILENO, " %016llx%s", (unsigned long long)registers[i],
			i % 6 == 5 || i == NGREG - 1 ? "\n" : "");
	dump_stack((uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RSP]);
	signal(number, SIG_DFL); /* back to the faulting instruction, which now kills */
	if (info->si_code <= 0)
		kill(getpid(), number);
}

__attribute__((constructor)) static void crash_prepare(void)
{
	struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_size = STACK_BYTES};

	*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
	dump_prepare();
	stack.ss_sp =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp != MAP_FAILED)
		sigaltstack(&stack, NULL);
	for (int i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &action, NULL);
}

struct begin {
	void *(*function)(void *);
	void *argument;
};

static void *run_open(void *argument)
{
	struct begin begin = *(struct begin *)argument;
	sigset_t open;

	free(argument);
	sigemptyset(&open);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&open, signals[i]);
	pthread_sigmask(SIG_UNBLOCK, &open, NULL);
	return begin.function(begin.argument);
}

/* In libc's place: the speculative thread and the driver's have all signals blocked. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
	const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
	struct begin *begin = malloc(sizeof(*begin));

	/* Looked up beforehand if it can be: under the loader's lock a thread could not. */
	if (!create)
		*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
	if (!begin)
		return create(thread, attributes, function, argument);
	*begin = (struct begin){function, argument};
	return create(thread, attributes, run_open, begin);
}
