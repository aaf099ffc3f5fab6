/* hearthd's state: one struct, owned by the main thread. Lifetimes: broker_open makes everything
 * that broker_close frees; peers and clients live in lists and go by themselves. */
#pragma once

#include "base/settings.h"
#include "broker/driver_file.h"
#include "broker/history.h"
#include "broker/instance.h"
#include "broker/keeper.h"
#include "broker/loop.h"
#include "broker/page.h"
#include "broker/parted.h"
#include "broker/prover.h"
#include "hearth/region.h"

#include <limits.h>
#include <sys/types.h>

struct client;
struct peer;

struct broker_options {
	bool is_system; /* for every user of the machine, as root */
	bool has_keeper;
	bool keeps_power_managed; /* also GPUs whose runtime power control is `auto` */
	enum hearth_retain retain;
	uint64_t idle_us;        /* leaves so long after its last client; 0 = never */
	pid_t job;               /* leaves with this process; 0 = none */
	uint64_t prove_after_us; /* so long without a client; 0 = never */
};

struct broker {
	struct broker_options options;
	struct settings settings;
	char state_dir[PATH_MAX]; /* empty: no history */
	struct loop loop;
	struct instance instance;
	struct source listener;
	struct source signals;
	struct source job;
	uint64_t listen_again_us; /* 0 = it listens */
	int region_fd;            /* read-only */
	struct hearth_region *region;
	struct client *clients;   /* the newest first */
	struct client *unsettled; /* the oldest that client_settle has not seen; those before it
				   * in the list neither */
	uint8_t *slots;           /* one byte per slot: taken or free */
	struct page_pool pages;
	struct peer *peers;
	uint32_t peer_count;
	struct parted parted;
	struct keeper keeper;
	struct prover prover;
	struct history *history;
	struct driver_files driver_files;
	uint64_t last_client_us; /* when the last client left, or the start */
	uint64_t next_check_us;  /* of what nothing reports by itself */
	bool is_leaving;
};

/* Takes the socket and starts. 0; BROKER_RUNNING where another one serves there; or -errno. */
#define BROKER_RUNNING 1
int broker_open(const struct broker_options *options, const struct settings *settings,
	struct broker **ret_broker);

/* Serves until it is told, or decides, to leave. 0 or -errno. */
int broker_run(struct broker *broker);

/* Ends the keeper, writes what is left to write, removes the socket. Takes NULL, returns NULL. */
struct broker *broker_close(struct broker *broker);

/* Leaves after this turn; nobody finds the socket any more. `why` is for the log. */
void broker_leave(struct broker *broker, const char *why);

/* The smaller of two moments, where 0 means none. */
uint64_t broker_sooner(uint64_t a, uint64_t b);
