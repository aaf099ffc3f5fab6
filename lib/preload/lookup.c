/* cuGetProcAddress in both signatures (CUDA Driver API, "Driver Entry Point Access"). Runs in the
 * user's program on any thread. The real driver is asked first with the program's own arguments;
 * its code, its status and its choice of version stand; only the pointer is replaced by our stub
 * for the same entry. */
#include "preload/client.h"
#include "preload/handlers.h"
#include "preload/route.h"
#include "preload/speculate.h"

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

/* The tables hold raw driver pointers, which are passed on as they are: the runtime checks them. */
CUresult handle_cuGetExportTable(const void **table, const void *uuid)
{
	CUresult (*real)(const void **, const void *) =
		(CUresult(*)(const void **, const void *))route_real(ROW_cuGetExportTable);

	return real(table, uuid);
}
