/* Device memory: host memory stands in, so a device pointer is an address of this process; pages
 * are made when they are touched, so a simulated GPU may hold more than the machine has.
 *
 * Runs on the program's threads with sim.lock held. */
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK (2 * SIM_MIB) /* what a large allocation is rounded up to */
#define SMALL 512           /* the same for a small one */
#define PITCH 512
#define HOST_FLAGS 7 /* CU_MEMHOSTALLOC_* */

enum owner { DEVICE, LOW_DEVICE, HOST, FOREIGN };

struct allocation {
	struct allocation *next;
	struct sim_context *context;
	enum owner owner;
	uint64_t address, size, charged;
	char shared[SIM_SHARED_NAME]; /* the file that holds it, or "" */
};

static struct allocation *allocations;

static uint64_t rounded(uint64_t size)
{
	uint64_t unit = size < BLOCK ? SMALL : BLOCK;

	return (size + unit - 1) / unit * unit;
}

static int allocate(uint64_t size, enum owner owner, uint64_t *ret_address)
{
	struct allocation *allocation;
	struct sim_context *context;
	int rc = sim_context_current(&context);
	uint64_t charged = owner == HOST ? 0 : rounded(size);
	void *memory;

	if (rc)
		return rc;
	if (!size)
		return SIM_INVALID_VALUE;
	rc = sim_capture_check();
	if (rc)
		return rc;
	if (size > UINT64_MAX - BLOCK)
		return SIM_OUT_OF_MEMORY;
	allocation = calloc(1, sizeof(*allocation));
	if (!allocation)
		return SIM_OUT_OF_MEMORY;
	if (charged && sim_machine_charge(sim.physical[context->device], charged)) {
		free(allocation);
		return SIM_OUT_OF_MEMORY;
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (owner == LOW_DEVICE ? MAP_32BIT : 0),
		-1, 0);
	if (memory == MAP_FAILED) {
		if (charged)
			sim_machine_refund(sim.physical[context->device], charged);
		free(allocation);
		return SIM_OUT_OF_MEMORY;
	}
	*allocation = (struct allocation){.next = allocations,
		.context = context,
		.owner = owner,
		.address = (uint64_t)memory,
		.size = size,
		.charged = charged};
	allocations = allocation;
	*ret_address = allocation->address;
	return SIM_SUCCESS;
}

static void drop(struct allocation **link)
{
	struct allocation *allocation = *link;

	*link = allocation->next;
	munmap((void *)allocation->address, allocation->size);
	if (allocation->shared[0])
		sim_machine_remove_shared(allocation->shared);
	if (allocation->charged)
		sim_machine_refund(sim.physical[allocation->context->device], allocation->charged);
	free(allocation);
}

static int release(uint64_t address, bool is_host)
{
	struct sim_context *context;
	int rc;

	rc = sim_capture_check();
	if (rc || !address)
		return rc;
	rc = sim_context_current(&context);
	if (rc)
		return rc;
	for (struct allocation **link = &allocations; *link; link = &(*link)->next)
		if ((*link)->address == address && (*link)->owner != FOREIGN &&
			((*link)->owner == HOST) == is_host) {
			drop(link);
			return SIM_SUCCESS;
		}
	return SIM_INVALID_VALUE;
}

void sim_memory_free_all(struct sim_context *context)
{
	struct allocation **link = &allocations;

	while (*link) {
		if ((*link)->context == context)
			drop(link);
		else
			link = &(*link)->next;
	}
}

static struct allocation *find(uint64_t address)
{
	struct allocation *allocation = allocations;

	while (allocation && (address < allocation->address ||
				     address - allocation->address >= allocation->size))
		allocation = allocation->next;
	return allocation;
}

bool sim_memory_covers(uint64_t address, uint64_t size)
{
	struct allocation *allocation = find(address);

	return allocation && size <= allocation->size - (address - allocation->address);
}

/* The bytes into the file, and the file in the place of the memory. */
static bool move_into(int fd, const struct allocation *allocation)
{
	const char *memory = (const char *)allocation->address;

	for (uint64_t done = 0; done < allocation->size;) {
		ssize_t wrote = pwrite(fd, memory + done, allocation->size - done, (off_t)done);

		if (wrote <= 0)
			return false;
		done += (uint64_t)wrote;
	}
	return mmap((void *)allocation->address, allocation->size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
}

int sim_memory_share(uint64_t address, char ret_name[SIM_SHARED_NAME], uint64_t *ret_size)
{
	struct allocation *allocation = find(address);
	bool is_moved;
	int fd;

	if (!allocation || allocation->owner == HOST || allocation->owner == FOREIGN)
		return SIM_INVALID_VALUE;
	if (!allocation->shared[0]) {
		fd = sim_machine_create_shared(allocation->shared);
		is_moved = fd >= 0 && move_into(fd, allocation);
		if (fd >= 0)
			close(fd);
		if (!is_moved)
			return SIM_OUT_OF_MEMORY;
	}
	memcpy(ret_name, allocation->shared, SIM_SHARED_NAME);
	*ret_size = allocation->size;
	return SIM_SUCCESS;
}

int sim_memory_open(const char *name, uint64_t size, uint64_t *ret_address)
{
	struct allocation *allocation;
	struct sim_context *context;
	int rc = sim_context_current(&context), fd;
	void *memory;

	if (rc)
		return rc;
	fd = sim_machine_open_shared(name);
	if (fd < 0)
		return SIM_INVALID_VALUE;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	allocation = memory == MAP_FAILED ? NULL : calloc(1, sizeof(*allocation));
	if (!allocation)
		return SIM_MAP_FAILED;
	*allocation = (struct allocation){.next = allocations,
		.context = context,
		.owner = FOREIGN,
		.address = (uint64_t)memory,
		.size = size};
	allocations = allocation;
	*ret_address = allocation->address;
	return SIM_SUCCESS;
}

int sim_memory_close(uint64_t address)
{
	for (struct allocation **link = &allocations; *link; link = &(*link)->next)
		if ((*link)->address == address && (*link)->owner == FOREIGN) {
			drop(link);
			return SIM_SUCCESS;
		}
	return SIM_INVALID_VALUE;
}

/* (address out, size), also with flags or a stream behind */
int sim_memory_alloc(const word *arg)
{
	return arg[0] ? allocate(arg[1], DEVICE, (uint64_t *)arg[0]) : SIM_INVALID_VALUE;
}

/* (address out, size, stream) */
int sim_memory_alloc_async(const word *arg)
{
	return sim_memory_alloc(arg);
}

/* The ABI of CUDA 2: device pointers and sizes of 32 bits. */
int sim_memory_alloc_v1(const word *arg)
{
	uint64_t address = 0;
	int rc = arg[0] ? allocate((unsigned int)arg[1], LOW_DEVICE, &address) : SIM_INVALID_VALUE;

	if (!rc)
		*(unsigned int *)arg[0] = (unsigned int)address;
	return rc;
}

/* (address out, pitch out, bytes of a row, rows, element size) */
int sim_memory_alloc_pitch(const word *arg)
{
	size_t pitch = (arg[2] + PITCH - 1) / PITCH * PITCH;
	int rc;

	if (!arg[0] || !arg[1] || (arg[3] && pitch > SIZE_MAX / arg[3]))
		return SIM_INVALID_VALUE;
	rc = allocate(pitch * arg[3], DEVICE, (uint64_t *)arg[0]);
	if (!rc)
		*(size_t *)arg[1] = pitch;
	return rc;
}

int sim_memory_free(const word *arg)
{
	return release(arg[0], false);
}

int sim_memory_free_v1(const word *arg)
{
	return release((unsigned int)arg[0], false);
}

/* (address out, size, flags) */
int sim_memory_host_flags(const word *arg)
{
	return (unsigned int)arg[2] & ~(unsigned int)HOST_FLAGS ? SIM_INVALID_VALUE
								: sim_memory_host(arg);
}

/* (address out, size) */
int sim_memory_host(const word *arg)
{
	return arg[0] ? allocate(arg[1], HOST, (uint64_t *)arg[0]) : SIM_INVALID_VALUE;
}

int sim_memory_free_host(const word *arg)
{
	return release(arg[0], true);
}

static int info(uint64_t *ret_free, uint64_t *ret_total)
{
	struct sim_context *context;
	int rc = sim_context_current(&context), physical;
	uint64_t used;

	if (rc)
		return rc;
	physical = sim.physical[context->device];
	used = sim_machine_used(physical);
	*ret_total = sim_machine_total(physical);
	*ret_free = used < *ret_total ? *ret_total - used : 0;
	return SIM_SUCCESS;
}

/* Either output may be NULL. */
int sim_memory_info(const word *arg)
{
	uint64_t free_bytes, total;
	int rc = info(&free_bytes, &total);

	if (!rc && arg[0])
		*(size_t *)arg[0] = free_bytes;
	if (!rc && arg[1])
		*(size_t *)arg[1] = total;
	return rc;
}

int sim_memory_info_v1(const word *arg)
{
	uint64_t free_bytes, total;
	int rc = info(&free_bytes, &total);

	if (!rc && arg[0])
		*(unsigned int *)arg[0] =
			free_bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)free_bytes;
	if (!rc && arg[1])
		*(unsigned int *)arg[1] = total > UINT32_MAX ? UINT32_MAX : (unsigned int)total;
	return rc;
}

/* (base out, size out, address) */
int sim_memory_range(const word *arg)
{
	struct allocation *allocation = find(arg[2]);

	if (!allocation)
		return SIM_NOT_FOUND;
	if (arg[0])
		*(uint64_t *)arg[0] = allocation->address;
	if (arg[1])
		*(size_t *)arg[1] = allocation->size;
	return SIM_SUCCESS;
}

/* (data out, attribute, address): context, memory type, device pointer, device ordinal */
int sim_memory_attribute(const word *arg)
{
	struct allocation *allocation = find(arg[2]);

	if (!arg[0] || !allocation)
		return SIM_INVALID_VALUE;
	switch ((int)arg[1]) {
	case 1:
		*(struct sim_context **)arg[0] = allocation->context;
		return SIM_SUCCESS;
	case 2:
		*(unsigned int *)arg[0] = allocation->owner == HOST ? 1 : 2;
		return SIM_SUCCESS;
	case 3:
		*(uint64_t *)arg[0] = arg[2];
		return SIM_SUCCESS;
	case 9:
		*(int *)arg[0] = allocation->context->device;
		return SIM_SUCCESS;
	default:
		return SIM_NOT_SUPPORTED;
	}
}
