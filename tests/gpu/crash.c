/* A second preload for a program that crashes under the first: says where, with the stack's return
 * addresses, and lets it die as it would have. Loaded by tools/gpu-check when a compared program
 * ended by a signal; runs in signal handlers, and must never return from one but to the fault. */
#include "dump.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

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
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_size = STACK_BYTES};

	dump_prepare();
	stack.ss_sp =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp != MAP_FAILED)
		sigaltstack(&stack, NULL);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}
