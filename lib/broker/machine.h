/* What the kernel says about the machine's GPUs, without opening a device: sysfs and /proc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MACHINE_PCI_FOLDER "/sys/bus/pci/devices"
#define MACHINE_GPU_FOLDER "/proc/driver/nvidia/gpus"
#define MACHINE_VISIBLE_MAX 4096

/* Which GPUs a keeper may hold: as a value for CUDA_VISIBLE_DEVICES, empty where all of them (or
 * where none is known at all: no sysfs, no NVIDIA display device). A GPU whose power/control is
 * `auto` powers down by itself, and a keeper would prevent that: it is left out unless
 * `keeps_power_managed`. 0, or MACHINE_NONE_LEFT where all are left out. */
#define MACHINE_NONE_LEFT 1
int machine_visible_devices(const char *pci_folder, const char *gpu_folder,
	bool keeps_power_managed, char *ret_value, size_t size);

/* The text of /proc/driver/nvidia/version, empty where there is none. */
void machine_module_version(char *ret_text, size_t size);

/* Entries in the folder of the kernel driver's GPUs; -1 where there is no such folder. */
int machine_gpu_count(const char *gpu_folder);

/* The process's resident memory in bytes; 0 where it is not known. */
size_t machine_resident_bytes(pid_t pid);

/* The nearest ancestor of `pid` that keeps a batch job (slurmstepd, pbs_mom); 0 = none. */
pid_t machine_job_keeper(pid_t pid);
