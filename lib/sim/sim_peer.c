/* One GPU's memory seen from another: peer access, copies between contexts, and memory shared with
 * other processes. A device pointer is an address that the CPU can read, so access is never refused
 * for lack of it.
 *
 * Runs on the program's threads; copies take sim.lock themselves. */
#include "sim/sim.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#define HANDLE_MAGIC 0x43504953u /* "SIPC" */
#define MAX_PAIRS (SIM_MAX_DEVICES * SIM_MAX_DEVICES)
#define OPEN_FLAGS 1 /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */

static struct pair {
	const struct sim_context *context, *peer; /* NULL: free */
} pairs[MAX_PAIRS];

/* What stands in a CUipcMemHandle. */
struct handle {
	uint32_t magic;
	pid_t owner;
	uint64_t size;
	char name[SIM_SHARED_NAME];
};
static_assert(sizeof(struct handle) <= sizeof(struct sim_ipc_handle), "a handle has 64 bytes");

static struct pair *find(const struct sim_context *context, const struct sim_context *peer)
{
	for (int i = 0; i < MAX_PAIRS; i++)
		if (pairs[i].context == context && pairs[i].peer == peer)
			return &pairs[i];
	return NULL;
}

/* The current context, and the one that is named: 0 or a CUresult. */
static int read_pair(word handle, struct sim_context **ret_context, struct sim_context **ret_peer)
{
	struct sim_context *peer = sim_object_find(handle, SIM_CONTEXT);
	int rc = sim_context_current(ret_context);

	if (rc)
		return rc;
	if (!peer || !peer->is_alive || peer == *ret_context)
		return SIM_INVALID_CONTEXT;
	*ret_peer = peer;
	return SIM_SUCCESS;
}

/* (peer context, flags) */
int sim_peer_enable(const word *arg)
{
	struct sim_context *context, *peer;
	struct pair *pair;
	int rc = read_pair(arg[0], &context, &peer);

	if ((unsigned int)arg[1])
		return SIM_INVALID_VALUE;
	if (rc)
		return rc;
	if (peer->device == context->device)
		return SIM_PEER_ACCESS_UNSUPPORTED;
	if (find(context, peer))
		return SIM_PEER_ACCESS_ALREADY_ENABLED;
	pair = find(NULL, NULL);
	if (!pair)
		return SIM_TOO_MANY_PEERS;
	*pair = (struct pair){context, peer};
	return SIM_SUCCESS;
}

/* (peer context) */
int sim_peer_disable(const word *arg)
{
	struct sim_context *context, *peer;
	struct pair *pair;
	int rc = read_pair(arg[0], &context, &peer);

	if (rc)
		return rc;
	pair = find(context, peer);
	if (!pair)
		return SIM_PEER_ACCESS_NOT_ENABLED;
	*pair = (struct pair){0};
	return SIM_SUCCESS;
}

void sim_peer_forget(const struct sim_context *context)
{
	for (int i = 0; i < MAX_PAIRS; i++)
		if (pairs[i].context == context || pairs[i].peer == context)
			pairs[i] = (struct pair){0};
}

static bool is_context(word handle)
{
	struct sim_context *context;

	pthread_mutex_lock(&sim.lock);
	context = sim_object_find(handle, SIM_CONTEXT);
	pthread_mutex_unlock(&sim.lock);
	return context && context->is_alive;
}

/* (target, its context, source, its context, size) */
int sim_peer_copy(const word *arg)
{
	if (!is_context(arg[1]) || !is_context(arg[3]))
		return SIM_INVALID_CONTEXT;
	return sim_copy_device((const word[]){arg[0], arg[2], arg[4]});
}

/* The same, and a stream. */
int sim_peer_copy_async(const word *arg)
{
	if (!is_context(arg[1]) || !is_context(arg[3]))
		return SIM_INVALID_CONTEXT;
	return sim_copy_device_async((const word[]){arg[0], arg[2], arg[4], arg[5]});
}

/* (handle out, address) */
int sim_ipc_get(const word *arg)
{
	struct handle handle = {.magic = HANDLE_MAGIC, .owner = getpid()};
	struct sim_context *context;
	int rc = sim_context_current(&context);

	if (rc)
		return rc;
	if (!arg[0])
		return SIM_INVALID_VALUE;
	rc = sim_memory_share(arg[1], handle.name, &handle.size);
	if (rc)
		return rc;
	memset((void *)arg[0], 0, sizeof(struct sim_ipc_handle));
	memcpy((void *)arg[0], &handle, sizeof(handle));
	return SIM_SUCCESS;
}

/* (address out, handle by value, flags) */
int sim_ipc_open(const word *arg)
{
	struct handle handle;

	if (!arg[0] || (unsigned int)arg[2] & ~(unsigned int)OPEN_FLAGS)
		return SIM_INVALID_VALUE;
	memcpy(&handle, (const void *)arg[1], sizeof(handle));
	if (handle.magic != HANDLE_MAGIC || handle.name[SIM_SHARED_NAME - 1])
		return SIM_INVALID_VALUE;
	if (handle.owner == getpid())
		return SIM_INVALID_CONTEXT;
	return sim_memory_open(handle.name, handle.size, (uint64_t *)arg[0]);
}

int sim_ipc_close(const word *arg)
{
	return sim_memory_close(arg[0]);
}
