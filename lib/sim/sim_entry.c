/* Where every exported entry arrives: state checks, injected failures, dispatch, log.
 *
 * Runs on the program's threads. Must work in any state, also in fork children, where it takes no
 * lock before it has compared the pid. */
#include "sim/sim.h"

#include <stdlib.h>
#include <unistd.h>

enum mode { MODE_NONE, MODE_LOCKED, MODE_UNLOCKED, MODE_ALWAYS };

static const struct {
	sim_handler *handler;
	enum mode mode;
} handlers[DRIVER_ROWS] = {
#define ENTRY(symbol, handler) [ROW_##symbol] = {handler, MODE_LOCKED},
#define ENTRY_UNLOCKED(symbol, handler) [ROW_##symbol] = {handler, MODE_UNLOCKED},
#define ENTRY_ALWAYS(symbol, handler) [ROW_##symbol] = {handler, MODE_ALWAYS},
#include "sim_entries.def"
};

/* What a call that the test marked as a canary answers: this, plus the row that it reached. */
#define CANARY_CODE 20000

struct sim sim = {.lock = PTHREAD_MUTEX_INITIALIZER, .init_lock = PTHREAD_MUTEX_INITIALIZER};

/* What an entry answers before cuInit. The column was measured with pointers for all arguments and
 * with zeros. An entry that found fault with pointers (1), since some of its arguments are numbers,
 * answers 3 to arguments as programs give them (seen: cuStreamCreate, cuMemAllocManaged). */
static int before_init(enum driver_row row, const word *arg)
{
	bool are_zeros = true, are_pointers = true;

	for (int i = 0; i < sim_rows[row].arity; i++) {
		if (i == sim_rows[row].by_value)
			continue;
		are_zeros &= !arg[i];
		are_pointers &= arg[i] > UINT32_MAX;
	}
	if (are_zeros)
		return sim_rows[row].before_init_zeros;
	if (sim_rows[row].before_init == SIM_INVALID_VALUE && !are_pointers)
		return SIM_NOT_INITIALIZED;
	return sim_rows[row].before_init;
}

/* Returns -1 where the handler may run, else the answer. */
static int refuse(enum driver_row row, const word *arg)
{
	pid_t owner = atomic_load(&sim.pid);

	if (handlers[row].mode == MODE_ALWAYS)
		return owner == getpid() && atomic_load(&sim.state) == SIM_GONE ? SIM_DEINITIALIZED
										: -1;
	if (owner && owner != getpid())
		return SIM_NOT_INITIALIZED;
	switch ((enum sim_state)atomic_load(&sim.state)) {
	case SIM_READY:
		return -1;
	case SIM_GONE:
		return SIM_DEINITIALIZED;
	case SIM_UNINITIALIZED:
		break;
	}
	return before_init(row, arg);
}

static bool is_canary(enum driver_row row, const word *arg)
{
	const char *canary = sim_setting(SIM_SET_CANARY);

	return canary && sim_rows[row].arity &&
	       (uint32_t)arg[0] == (uint32_t)strtoul(canary, NULL, 16);
}

static int answer(enum driver_row row, const word *arg)
{
	int rc = refuse(row, arg);

	if (rc >= 0)
		return rc;
	rc = sim_fail_code(sim_rows[row].abi_symbol);
	if (rc)
		return rc;
	if (!handlers[row].handler)
		return SIM_NOT_SUPPORTED;
	if (handlers[row].mode != MODE_LOCKED)
		return handlers[row].handler(arg);
	pthread_mutex_lock(&sim.lock);
	rc = handlers[row].handler(arg);
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

int sim_entry_call(enum driver_row row, const word *arg)
{
	uint64_t start_us = sim_log_is_on() ? sim_time_now_us() : 0;
	int rc = is_canary(row, arg) ? CANARY_CODE + (int)row : answer(row, arg);

	if (start_us)
		sim_log_call(sim_rows[row].abi_symbol, sim_rows[row].arity, arg, rc, start_us);
	return rc;
}
