/* Giving way: the kernel makes contexts one after another, so a program that waits for its own must
 * not stand in a queue behind programs that only speculate. Between two of the driver's requests to
 * the kernel the speculative thread sleeps while any other program waits (measured on 580.159.04:
 * a retain beside seven that speculate takes 684 ms, beside seven that are stopped 119, alone 129).
 *
 * Who waits holds a read lock on the first byte of the file beside the broker's socket; who
 * speculates asks whether there is one. The kernel lets go of it when the program dies, and a fork
 * child does not inherit it. Without such a file nobody gives way. */
#pragma once

#include <stdint.h>

/* Finds the file. On a thread of the program, before the speculative one is there. */
void give_way_prepare(void);

/* On the speculative thread, before a request to the kernel: sleeps while others wait, at most 3 s
 * in all, and not once its own program waits or leaves. Keeps errno. */
void give_way(void);

/* How long it has slept so far. */
uint64_t give_way_slept_us(void);

/* Around what a program waits for: its first cuInit and its contexts, on its own threads. Keep
 * errno. */
struct give_way_wait {
	int *held;
};

void give_way_begin(struct give_way_wait *ret_wait);
void give_way_end(struct give_way_wait *wait);
