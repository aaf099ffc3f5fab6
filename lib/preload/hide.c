/* Hiding entries. Runs in the user's program when the driver has just been opened; only where the
 * driver lacks entries of the spec, that is, is older than it. */
#include "preload/hide.h"

#include "driver/loaded.h"
#include "driver/stubs.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

void hide_missing(const uintptr_t *reals)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	static bool is_begun;
	struct loaded self;

	/* Once: a second thread would take the pages' write permission from the first. */
	if (__atomic_exchange_n(&is_begun, true, __ATOMIC_ACQ_REL) ||
		loaded_find_address(hide_missing, &self))
		return;
	for (unsigned int row = 0; row < DRIVER_ROWS; row++) {
		const ElfW(Sym) * entry;
		uintptr_t first, end;

		/* The two lookups stay: their handlers say that they are missing, in the way
		 * that the runtime understands. */
		if (reals[row] || row == ROW_cuGetProcAddress || row == ROW_cuGetProcAddress_v2)
			continue;
		entry = loaded_symbol_entry(&self, tables_symbol(row));
		if (!entry)
			continue;
		first = (uintptr_t)entry & ~(page - 1);
		end = ((uintptr_t)(entry + 1) + page - 1) & ~(page - 1);
		if (mprotect((void *)first, end - first, PROT_READ | PROT_WRITE))
			continue;
		/* The loader passes by a symbol without a value. */
		__atomic_store_n((ElfW(Addr) *)(uintptr_t)&entry->st_value, 0, __ATOMIC_RELAXED);
		mprotect((void *)first, end - first, PROT_READ);
	}
}
