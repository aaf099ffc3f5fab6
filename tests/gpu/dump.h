/* What every other thread of this process waits for: kernel wait channel, system call, and the
 * words of its stack that are return addresses, each with module, offset and nearest symbol. */
#pragma once

/* Prints on stdout with dprintf; takes no lock of libc's or the loader's. Reads the stacks of
 * threads that are blocked in a system call; a running thread is only named. */
void dump_threads(void);

/* As dump_threads, but prepares what needs memory beforehand. Call once, before anything hangs. */
void dump_prepare(void);

/* Prints one stack of this process: where it is, and the return addresses from `sp` on. */
void dump_stack(unsigned long pc, unsigned long sp);
