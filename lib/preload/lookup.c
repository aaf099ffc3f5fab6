/* cuGetProcAddress in both signatures (CUDA Driver API, "Driver Entry Point Access"). Runs in the
 * user's program on any thread. The real driver is asked first with the program's own arguments;
 * its code, its status and its choice of version stand; only the pointer is replaced by our stub
 * for the same entry. */
#include "base/log.h"
#include "driver/loaded.h"
#include "preload/around.h"
#include "preload/claim.h"
#include "preload/client.h"
#include "preload/export_table.h"
#include "preload/handlers.h"
#include "preload/route.h"
#include "preload/speculate.h"

#include <string.h>

static void replace(const char *symbol, void **pointer, int version, uint64_t flags)
{
	if (!pointer || !*pointer || !symbol)
		return;
	if (*pointer == (void *)route_real(ROW_cuInit))
		speculate_looked_up();
	*pointer = route_stub_for(symbol, version, flags, *pointer);
}

CUresult handle_cuGetProcAddress(const char *symbol, void **pointer, int version, uint64_t flags)
{
	CUresult (*real)(const char *, void **, int, uint64_t) =
		(CUresult(*)(const char *, void **, int, uint64_t))route_real(ROW_cuGetProcAddress);
	CUresult rc = real(symbol, pointer, version, flags);

	if (rc == CUDA_SUCCESS)
		replace(symbol, pointer, version, flags);
	return rc;
}

CUresult handle_cuGetProcAddress_v2(
	const char *symbol, void **pointer, int version, uint64_t flags, int *status)
{
	CUresult (*real)(const char *, void **, int, uint64_t, int *) = (CUresult(*)(
		const char *, void **, int, uint64_t, int *))route_real(ROW_cuGetProcAddress_v2);
	CUresult rc = real(symbol, pointer, version, flags, status);

	if (rc == CUDA_SUCCESS)
		replace(symbol, pointer, version, flags);
	return rc;
}

/* Below it nothing is mapped (vm.mmap_min_addr): no address, and not ours to look at. */
#define LOWEST_ADDRESS 0x10000

/* The one table that the runtime asks for before cuInit; it calls none of its entries (seen with
 * 12.8 and 13.0). */
static const unsigned char early_table[] = {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9,
	0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9};

static void tell_table(const unsigned char *id, const void *caller)
{
	char name[64];

	if (log_is_on(LOG_DEBUG))
		log_debug("export table %02x%02x%02x%02x for %s", id[0], id[1], id[2], id[3],
			loaded_file_name(caller, name, sizeof(name)) ? "unknown" : name);
}

/* The tables hold raw driver pointers, which are passed on as they are: the runtime checks them. So
 * the copy that gives one must be the one that the program keeps; but for NVML's. */
CUresult handle_cuGetExportTable(const void **table, const void *uuid)
{
	CUresult (*real)(const void **, const void *);
	const unsigned char *id = uuid;
	const void *copy;
	CUresult rc;

	around_child();
	real = (CUresult(*)(const void **, const void *))route_real(ROW_cuGetExportTable);
	if (!table || (uintptr_t)uuid < LOWEST_ADDRESS ||
		!memcmp(uuid, early_table, sizeof(early_table)))
		return real(table, uuid);
	tell_table(id, __builtin_return_address(0));
	if (export_table_is_shared(uuid) && claim_is_ahead()) {
		rc = real(table, uuid);
		if (rc != CUDA_SUCCESS)
			return rc;
		copy = export_table_copy(*table);
		if (copy) {
			*table = copy;
			return rc;
		}
	}
	claim_end("an export table");
	real = (CUresult(*)(const void **, const void *))route_real(ROW_cuGetExportTable);
	return real(table, uuid);
}
