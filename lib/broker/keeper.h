/* The keeper: a child process that has called cuInit (and, with --retain=context, holds the primary
 * contexts), so that the kernel driver's per-GPU state stays warm. It is an exec of hearthd itself.
 * This is the supervisor's side; keeper_child.h is the child's.
 *
 *   OFF --> STARTING --> WARM --> RELEASED --> STARTING
 *              |           |
 *              +--> FAILED <-+   (1 s, 2 s, ... 5 min, then STARTING)
 *
 * While RELEASED there is no keeper process: nothing of ours has a device open. */
#pragma once

#include "broker/keeper_child.h"
#include "broker/loop.h"
#include "hearth/region.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct keeper_options {
	enum hearth_retain retain;
	bool is_wanted;
	bool keeps_power_managed;
};

struct keeper {
	struct keeper_options options;
	struct loop *loop;
	struct hearth_region *region; /* where its state is published */
	struct source *channel;       /* to the child; NULL = no child that talks */
	pid_t pid;                    /* 0 = no child, reaped */
	enum hearth_keeper_state state;
	const char *reason;   /* why it is OFF, RELEASED or FAILED: a literal; NULL else */
	uint64_t next_us;     /* when to start again, 0 = not by itself */
	uint64_t deadline_us; /* STARTING must end by then */
	uint64_t back_off_us;
	bool is_lasting_release;    /* until resumed */
	bool had_devices;           /* once */
	char driver_path[PATH_MAX]; /* what the child opened; empty = not known yet */
	struct stat driver_file;
	char driver_version[256]; /* /proc/driver/nvidia/version as it was */
};

/* Sets it up and starts the child where a keeper is wanted and allowed. */
void keeper_open(struct keeper *keeper, const struct keeper_options *options, struct loop *loop,
	struct hearth_region *region);

/* Kills the child and waits for it. */
void keeper_close(struct keeper *keeper);

/* Lets go; comes back after `seconds`, or with keeper_resume only (0). The child is gone when
 * keeper->pid is 0. */
void keeper_release(struct keeper *keeper, uint64_t seconds, const char *reason);
void keeper_resume(struct keeper *keeper);

/* To be called on SIGCHLD and whenever keeper_deadline has passed. */
void keeper_reap(struct keeper *keeper);
void keeper_tick(struct keeper *keeper, uint64_t now_us);

/* The next moment at which keeper_tick has something to do; 0 = none. */
uint64_t keeper_deadline(const struct keeper *keeper);

/* Whether the driver's file or the kernel module's version is no longer what the child opened; then
 * the keeper is let go for a while. */
void keeper_check_driver(struct keeper *keeper);

/* Whether two looks at a file saw the same one, unchanged. */
bool keeper_is_same_file(const struct stat *one, const struct stat *other);

const char *keeper_state_name(enum hearth_keeper_state state);
