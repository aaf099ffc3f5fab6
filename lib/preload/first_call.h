/* Recording first calls: one record for the first call of each handled entry per device, then the
 * entry's slot points straight at the driver. Where the first call fails, the first that succeeds
 * has a record too.
 *
 * A row's calls are handled until every device on which the program has made or retained a context
 * has had its first; a context on another device later brings the handlers back. Entries that can
 * give the first result (waits, copies to the host) are handled until there was one.
 *
 * Nothing is recorded before the program's cuInit (there is no page yet), in a process that is only
 * passed through, or by a fork child into its parent's page. */
#pragma once

#include "hearth/region.h"
#include "preload/route.h"

/* What the end of a successful call means for the program's first result. */
enum first_duty {
	FIRST_OTHER,
	FIRST_WORK,   /* begins something on the GPU */
	FIRST_LAUNCH, /* the same, a kernel */
	FIRST_RESULT, /* a copy to the host: a result by itself */
	FIRST_WAIT,   /* a wait: a result once there was work */
};

/* Which devices have had theirs; bit 0 stands for no device, else ordinal + 1. */
struct first_marks {
	uint64_t done;   /* a call that succeeded */
	uint64_t failed; /* a call that failed, before one succeeded */
};

struct first_call {
	const char *name;
	struct first_marks *marks;
	enum driver_row row; /* DRIVER_ROWS for a call that is no driver entry */
	enum first_duty duty;
	bool can_leave; /* the row is of class `first`: its slot goes straight afterwards */
	int device;     /* for the record; -1 = none is current */
	int key;        /* whose first it is; the device, unless set otherwise */
	uint64_t start_us;
	uint64_t inner_us; /* the page's total at the start */
	/* May be set between begin and end. */
	uint32_t how; /* HEARTH_COLD unless changed */
	uint64_t hidden_us;
	uint64_t size;
	char object[32];
	bool is_forced; /* record it also if it is not the first */
};

/* Starts timing a call on the current device. False where there is nothing to record: then just
 * make the call. */
bool first_call_begin(struct first_call *ret_call, enum driver_row row, enum first_duty duty);

/* Same, on a device that the caller knows. */
bool first_call_begin_on(struct first_call *ret_call, enum driver_row row, int device);

/* Starts timing whatever there is to say about it. */
void first_call_time(struct first_call *ret_call, enum driver_row row, int device);

/* Same, for a call that is no driver entry. `marks` are the caller's, zeroed. Called before the
 * page may be there. */
void first_call_time_named(
	struct first_call *ret_call, const char *name, struct first_marks *marks, int device);

/* Ends the call: writes the record if it was the device's first (or is_forced), notes the first
 * result, lets the slot go straight. Keeps errno. */
void first_call_end(struct first_call *call, CUresult rc);

/* For a call whose device shows only after it. */
void first_call_set_device(struct first_call *call, int device);

/* Whether there is a page to write to; it may still be a parent's. Costs one load. */
bool first_call_has_page(void);

/* Whether all devices known so far have had their first call of this row. */
bool first_call_is_complete(enum driver_row row);

/* Whether this row has had a successful call on the device. */
bool first_call_is_done(enum driver_row row, int device);

/* Same, for first_call_time_named. */
bool first_call_is_named_done(const struct first_marks *marks, int device);

/* A context was made or retained on this device. */
void first_call_add_device(int device);

/* The current context's device, or -1. */
int first_call_current_device(void);

/* The device's compute capability, 90 for 9.0; 0 where it is not known. */
unsigned int first_call_sm(int device);

/* From now on this process writes to `page`. */
void first_call_set_page(struct hearth_page *page);

/* In a fork child: what the parent did is not ours, and its page neither. */
void first_call_forget(void);

/* This process's page, or NULL: none yet, or it is the parent's. One getpid. */
struct hearth_page *first_call_page(void);
