/* NVML (580.159.04) is a user of the driver's: nvmlInit takes table 69a28e9f from it and calls four
 * of its 33 functions, the 19th and 21st once, the 24th and 25th around each later start and end.
 * They return the same before cuInit and after it (H200: bench/results has it), so a driver that
 * has been initialised ahead may answer; but a squash has to take them to the pristine copy, and so
 * they are given as generic stubs. NVML does not look at the pointers. Runs in the user's program
 * on any thread. */
#include "preload/export_table.h"

#include "driver/loaded.h"
#include "preload/route.h"

#include <string.h>

enum { WORDS_MAX = 64 };

static const unsigned char shared_id[] = {0x69, 0xa2, 0x8e, 0x9f, 0x24, 0x49, 0x8b, 0x47, 0xb0,
	0x30, 0xc5, 0xda, 0x33, 0x0e, 0xa4, 0xe9};

/* Threads that race here write the same values: a function has one stub. The first word comes
 * last, and says that the others are there. */
static uintptr_t copy[WORDS_MAX];

bool export_table_is_shared(const void *id)
{
	return memcmp(id, shared_id, sizeof(shared_id)) == 0;
}

/* Its first word is its size in bytes; each other one is a function of the driver's. */
static bool is_understood(const uintptr_t *table)
{
	struct loaded driver;
	size_t words = table[0] / sizeof(table[0]);

	if (table[0] % sizeof(table[0]) || words < 2 || words > WORDS_MAX ||
		loaded_find_address((const void *)table[1], &driver) ||
		driver.base != route_driver_map()->l_addr)
		return false;
	for (size_t i = 1; i < words; i++)
		if (table[i] && (table[i] < driver.start || table[i] >= driver.end))
			return false;
	return true;
}

const void *export_table_copy(const void *given)
{
	const uintptr_t *table = given;

	if (__atomic_load_n(&copy[0], __ATOMIC_ACQUIRE))
		return copy;
	if (!is_understood(table))
		return NULL;
	for (size_t i = 1; i < table[0] / sizeof(table[0]); i++) {
		uintptr_t stub = table[i] ? (uintptr_t)route_stub_open((void *)table[i]) : 0;

		if (table[i] && !stub)
			return NULL;
		__atomic_store_n(&copy[i], stub, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&copy[0], table[0], __ATOMIC_RELEASE);
	return copy;
}
