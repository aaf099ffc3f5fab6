/* The machine's GPUs in sysfs: which of them a keeper may hold. */
#include "broker/machine.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], pci[96], gpus[96], value[MACHINE_VISIBLE_MAX];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/hearth-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(pci, sizeof(pci), "%s/pci", folder);
	snprintf(gpus, sizeof(gpus), "%s/gpus", folder);
	mkdir(pci, 0700);
	mkdir(gpus, 0700);
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(machine, .init = make_folder, .fini = remove_folder);

static void write_file(const char *base, const char *name, const char *file, const char *text)
{
	char path[256];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s", base, name);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/power", base, name);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/%s", base, name, file);
	to = fopen(path, "w");
	cr_assert_not_null(to);
	fputs(text, to);
	fclose(to);
}

static void add_device(const char *name, const char *vendor, const char *class, const char *control)
{
	write_file(pci, name, "vendor", vendor);
	write_file(pci, name, "class", class);
	write_file(pci, name, "power/control", control);
}

static void add_gpu(const char *name, const char *control, const char *uuid)
{
	char text[256];

	add_device(name, "0x10de\n", "0x030200\n", control);
	snprintf(text, sizeof(text),
		"Model: \t\t X\nIRQ:   \t\t 30\nGPU UUID: \t %s\nVideo BIOS:\n", uuid);
	write_file(gpus, name, "information", text);
}

static int visible(bool keeps_power_managed)
{
	return machine_visible_devices(pci, gpus, keeps_power_managed, value, sizeof(value));
}

Test(machine, all_gpus_that_stay_on)
{
	add_gpu("0000:01:00.0", "on\n", "GPU-a");
	add_gpu("0000:02:00.0", "on\n", "GPU-b");
	cr_assert_eq(visible(false), 0);
	cr_assert_str_eq(value, "");
}

Test(machine, a_laptops_only_gpu)
{
	add_gpu("0000:01:00.0", "auto\n", "GPU-a");
	cr_assert_eq(visible(false), MACHINE_NONE_LEFT);
	cr_assert_eq(visible(true), 0);
	cr_assert_str_eq(value, "");
}

Test(machine, only_the_power_managed_one_is_left_out)
{
	add_gpu("0000:01:00.0", "auto\n", "GPU-a");
	add_gpu("0000:02:00.0", "on\n", "GPU-b");
	cr_assert_eq(visible(false), 0);
	cr_assert_str_eq(value, "GPU-b");
}

Test(machine, other_devices_do_not_count)
{
	add_device(
		"0000:03:00.0", "0x8086\n", "0x030000\n", "auto\n"); /* another vendor's display */
	add_device("0000:04:00.1", "0x10de\n", "0x040300\n", "auto\n"); /* a GPU's audio function */
	cr_assert_eq(visible(false), 0);
	cr_assert_str_eq(value, "");
}

Test(machine, no_sysfs_is_no_reason)
{
	snprintf(pci, sizeof(pci), "%s/none", folder);
	cr_assert_eq(visible(false), 0);
	cr_assert_str_eq(value, "");
}

Test(machine, gpus_are_counted)
{
	add_gpu("0000:01:00.0", "on\n", "GPU-a");
	cr_assert_eq(machine_gpu_count(gpus), 1);
	snprintf(gpus, sizeof(gpus), "%s/none", folder);
	cr_assert_eq(machine_gpu_count(gpus), -1);
}

Test(machine, we_are_in_no_job_and_use_memory)
{
	cr_assert_eq(machine_job_keeper(1), 0);
	cr_assert_gt(machine_resident_bytes(getpid()), 100000);
	cr_assert_eq(machine_resident_bytes(-1), 0);
}
