/* Other processes that keep a GPU's driver state warm: those that hold the driver's memory manager
 * device (/dev/nvidia-uvm) open, as every process does that has called cuInit. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define OTHERS_MAX 4

struct others {
	unsigned count;      /* processes that hold it */
	unsigned unreadable; /* processes of other users whose descriptors may not be looked at */
	struct {
		pid_t pid;
		char name[32];
	} first[OTHERS_MAX]; /* the first of them */
};

/* The file that stands for that device to the process `pid`: the simulated driver has one per
 * simulated machine. False where it has none open, or may not be looked at. */
bool others_find_device(pid_t pid, char ret_path[PATH_MAX]);

/* Looks through /proc for holders of `device`, ourselves excepted. */
void others_scan(const char *device, struct others *ret_others);
