/* Making processes that keep nothing of their maker: no descriptor, no preload, no CUDA settings.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* An environment from this process's own, for execve: without LD_PRELOAD, LD_AUDIT and CUDA_*; for
 * a broker with HEARTH_DRIVER, HEARTH_SOCKET and HEARTH_STATE_DIR, for a keeper with HEARTH_DRIVER
 * alone of Hearth's. A keeper also gets `visible_devices` (NULL: all). The array is to be freed,
 * its strings are not ours. NULL without memory. */
enum process_kind { PROCESS_BROKER, PROCESS_KEEPER };
char **process_environment(enum process_kind kind, const char *visible_devices);

/* Closes every descriptor from `first` on. Async-signal-safe where close_range exists (Linux 5.9).
 */
void process_close_from(int first);

/* stdin, stdout and (unless kept) stderr on /dev/null. 0 or -errno. */
int process_silence(bool keep_stderr);

/* All signals at their default and none blocked, whatever our maker had. */
void process_reset_signals(void);

/* Starts `hearthd --keeper RETAIN` with `channel` as its KEEPER_FD. */
int process_start_keeper(
	const char *retain, const char *visible_devices, int channel, pid_t *ret_pid);

/* A proof to start: `hearthd --prove WHAT DRIVER FOLDER READERS` (prove_child.h). */
struct prove_request {
	const char *program; /* hearthd's path; NULL: this process's own */
	const char *what, *driver, *folder, *readers;
	const char *visible_devices; /* NULL: all */
	int out;                     /* its stdout, and it keeps stderr; -1: both on /dev/null */
};

/* Starts it, in a process group of its own, with a keeper's environment. */
int process_start_prover(const struct prove_request *request, pid_t *ret_pid);
