/* cuMemcpy* and cuMemset*. Runs on the program's threads; a range outside device memory is 1, as
 * the real driver answers where it can tell. */
#include "sim/sim.h"

static int run(const struct sim_work *work, word stream, bool is_sync)
{
	int rc = sim_work_do(work, stream, is_sync);

	return rc == SIM_ILLEGAL_ADDRESS ? SIM_INVALID_VALUE : rc;
}

static int copy(word target, word source, word size, bool is_host_target, bool is_host_source,
	word stream, bool is_sync)
{
	struct sim_work work = {.kind = SIM_WORK_COPY,
		.target = target,
		.source = source,
		.size = size,
		.is_host_target = is_host_target,
		.is_host_source = is_host_source};

	if (size && (!target || !source))
		return SIM_INVALID_VALUE;
	return run(&work, stream, is_sync);
}

/* Any two addresses: what is not device memory is the host's. */
int sim_copy_any(const word *arg)
{
	return copy(arg[0], arg[1], arg[2], true, true, 0, true);
}

int sim_copy_any_async(const word *arg)
{
	return copy(arg[0], arg[1], arg[2], true, true, arg[3], false);
}

int sim_copy_to_device(const word *arg)
{
	return copy(arg[0], arg[1], arg[2], false, true, 0, true);
}

/* The ABI of CUDA 2: device pointers and sizes of 32 bits. */
int sim_copy_to_device_v1(const word *arg)
{
	return copy((unsigned int)arg[0], arg[1], (unsigned int)arg[2], false, true, 0, true);
}

int sim_copy_to_device_async(const word *arg)
{
	return copy(arg[0], arg[1], arg[2], false, true, arg[3], false);
}

int sim_copy_to_host(const word *arg)
{
	return copy(arg[0], arg[1], arg[2], true, false, 0, true);
}

int sim_copy_to_host_v1(const word *arg)
{
	return copy(arg[0], (unsigned int)arg[1], (unsigned int)arg[2], true, false, 0, true);
}

int sim_copy_to_host_async(const word *arg)
{
	return copy(arg[0], arg[1], arg[2], true, false, arg[3], false);
}

int sim_copy_device(const word *arg)
{
	return copy(arg[0], arg[1], arg[2], false, false, 0, false);
}

int sim_copy_device_async(const word *arg)
{
	return copy(arg[0], arg[1], arg[2], false, false, arg[3], false);
}

static int set(word target, word value, word count, uint32_t width, word stream)
{
	struct sim_work work = {.kind = SIM_WORK_SET,
		.target = target,
		.value = (uint32_t)value,
		.size = count,
		.width = width};

	if (count > UINT64_MAX / width)
		return SIM_INVALID_VALUE;
	return run(&work, stream, false);
}

int sim_copy_set8(const word *arg)
{
	return set(arg[0], arg[1], arg[2], 1, 0);
}

int sim_copy_set8_async(const word *arg)
{
	return set(arg[0], arg[1], arg[2], 1, arg[3]);
}

int sim_copy_set16(const word *arg)
{
	return set(arg[0], arg[1], arg[2], 2, 0);
}

int sim_copy_set32(const word *arg)
{
	return set(arg[0], arg[1], arg[2], 4, 0);
}

int sim_copy_set32_async(const word *arg)
{
	return set(arg[0], arg[1], arg[2], 4, arg[3]);
}
