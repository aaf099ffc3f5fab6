/* Threads, forks and exits, for a library that must load on every glibc from 2.17 on and is linked
 * without start files. Handlers stay registered for the life of the process. */
#pragma once

#include <stdbool.h>

/* Runs `function(argument)` on a detached thread with all signals blocked. 0, or a positive errno;
 * ENOSYS on glibc < 2.34 in a program without libpthread. */
int threads_start(void *(*function)(void *), void *argument);

/* As pthread_atfork; NULL for none. */
void threads_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

/* As atexit. */
void threads_at_exit(void (*function)(void *));

/* Has the main thread ended by itself, and are at most that many others left? Reads /proc; false
 * where that says nothing. */
bool threads_are_last(unsigned int count);
