/* Device queries. Runs on the program's threads with sim.lock held. */
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUS 0x40

/* CU_DEVICE_ATTRIBUTE_* that are not the same for all devices. */
enum { COMPUTE_MODE = 20, PCI_BUS = 33, PCI_DEVICE = 34, PCI_DOMAIN = 50, MPS_ENABLED = 133 };

static const struct {
	int attribute, value;
} attributes[] = {
#define ATTRIBUTE(number, value) {number, value},
#include "sim_attributes.def"
#undef ATTRIBUTE
};

static bool is_device(word device)
{
	return (int)device >= 0 && (int)device < sim.device_count;
}

int sim_device_count(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	*(int *)arg[0] = sim.device_count;
	return SIM_SUCCESS;
}

int sim_device_get(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!is_device(arg[1]))
		return SIM_INVALID_DEVICE;
	*(int *)arg[0] = (int)arg[1];
	return SIM_SUCCESS;
}

int sim_device_name(const word *arg)
{
	if (!arg[0] || (int)arg[1] < 0)
		return SIM_INVALID_VALUE;
	if (!is_device(arg[2]))
		return SIM_INVALID_DEVICE;
	if ((int)arg[1])
		snprintf((char *)arg[0], (size_t)(int)arg[1], "SIMULATED NVIDIA H200");
	return SIM_SUCCESS;
}

int sim_device_get_uuid(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!is_device(arg[1]))
		return SIM_INVALID_DEVICE;
	sim_device_uuid(sim.physical[(int)arg[1]], (unsigned char *)arg[0]);
	return SIM_SUCCESS;
}

int sim_device_total(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!is_device(arg[1]))
		return SIM_INVALID_DEVICE;
	*(size_t *)arg[0] = sim_machine_total(sim.physical[(int)arg[1]]);
	return SIM_SUCCESS;
}

/* The ABI of CUDA 2: 32 bits. */
int sim_device_total_v1(const word *arg)
{
	size_t total;
	int rc =
		arg[0] ? sim_device_total((const word[]){(word)&total, arg[1]}) : SIM_INVALID_VALUE;

	if (!rc)
		*(unsigned int *)arg[0] = total > UINT32_MAX ? UINT32_MAX : (unsigned int)total;
	return rc;
}

int sim_device_attribute(const word *arg)
{
	int number = (int)arg[1];

	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!is_device(arg[2]))
		return SIM_INVALID_DEVICE;
	switch (number) {
	case COMPUTE_MODE:
		*(int *)arg[0] = sim_machine_compute_mode(sim.physical[(int)arg[2]]);
		return SIM_SUCCESS;
	case MPS_ENABLED:
		*(int *)arg[0] = sim_mps_is_client();
		return SIM_SUCCESS;
	case PCI_BUS:
		*(int *)arg[0] = FIRST_BUS + sim.physical[(int)arg[2]];
		return SIM_SUCCESS;
	case PCI_DEVICE:
	case PCI_DOMAIN:
		*(int *)arg[0] = 0;
		return SIM_SUCCESS;
	}
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == number) {
			*(int *)arg[0] = attributes[i].value;
			return SIM_SUCCESS;
		}
	return SIM_INVALID_VALUE;
}

int sim_device_capability(const word *arg)
{
	if (!arg[0] || !arg[1])
		return SIM_INVALID_VALUE;
	if (!is_device(arg[2]))
		return SIM_INVALID_DEVICE;
	*(int *)arg[0] = 9;
	*(int *)arg[1] = 0;
	return SIM_SUCCESS;
}

int sim_device_pci(const word *arg)
{
	if (!arg[0] || (int)arg[1] <= 0)
		return SIM_INVALID_VALUE;
	if (!is_device(arg[2]))
		return SIM_INVALID_DEVICE;
	snprintf((char *)arg[0], (size_t)(int)arg[1], "0000:%02X:00.0",
		FIRST_BUS + sim.physical[(int)arg[2]]);
	return SIM_SUCCESS;
}

int sim_device_by_pci(const word *arg)
{
	unsigned int domain, bus;

	if (!arg[0] || !arg[1] || sscanf((const char *)arg[1], "%x:%x", &domain, &bus) != 2)
		return SIM_INVALID_VALUE;
	for (int i = 0; i < sim.device_count; i++)
		if (bus == (unsigned int)(FIRST_BUS + sim.physical[i])) {
			*(int *)arg[0] = i;
			return SIM_SUCCESS;
		}
	return SIM_INVALID_DEVICE;
}

int sim_device_can_access(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!is_device(arg[1]) || !is_device(arg[2]))
		return SIM_INVALID_DEVICE;
	*(int *)arg[0] = (int)arg[1] != (int)arg[2];
	return SIM_SUCCESS;
}
