/* Rules of finding entries and naming errors; nothing here needs cuInit. */
#include "rules.h"

#include <dlfcn.h>
#include <string.h>

#define NOT_WRITTEN ((void *)1)
#define LAST_CODE 1000

/* The ABI symbol behind a pointer, among those that the name could have. */
static const char *symbol_of(const char *name, void *pointer)
{
	static const char *const endings[] = {
		"", "_v2", "_v3", "_v4", "_ptds", "_ptsz", "_v2_ptds", "_v2_ptsz", "_v3_ptsz"};
	static char symbol[128];

	if (!pointer)
		return "NULL";
	if (pointer == NOT_WRITTEN)
		return "unwritten";
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		snprintf(symbol, sizeof(symbol), "%s%s", name, endings[i]);
		if (rules_entry(symbol) == pointer)
			return symbol;
	}
	return "another";
}

static void ask(const char *name, int version, word flags)
{
	void *pointer = NOT_WRITTEN;
	int status = -1, rc;

	rc = CALL(cuGetProcAddress_v2, W(name), W(&pointer), W(version), flags, W(&status));
	printf("%s@%d/%d: %d, %s, status %d", name, version, (int)flags, rc,
		symbol_of(name, pointer), status);
	pointer = NOT_WRITTEN;
	rc = CALL(cuGetProcAddress, W(name), W(&pointer), W(version), flags);
	printf("; old: %d, %s\n", rc, symbol_of(name, pointer));
}

void rules_lookup(void)
{
	static const char *const names[] = {"", "cuInit", "cuNoSuchThing", "cuMemAlloc",
		"cuMemAlloc_v2", "cuCtxCreate", "cuStreamSynchronize", "cuMemcpyHtoD",
		"cuStreamGetCaptureInfo", "cuGetProcAddress", "cuDevicePrimaryCtxRelease",
		"cuLibraryLoadData", "cuCtxGetDevice", "cuStreamBeginCapture", "cuGreenCtxCreate"};
	static const int versions[] = {
		0, 1000, 2000, 3020, 4000, 7000, 10010, 11030, 12000, 12050, 13000, 13030, 99999};
	void *pointer = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t j = 0; j < sizeof(versions) / sizeof(versions[0]); j++)
			ask(names[i], versions[j], 0);
	for (word flags = 0; flags < 6; flags++) {
		ask("cuStreamSynchronize", 13000, flags);
		ask("cuMemcpyHtoD", 13000, flags);
		ask("cuStreamGetCaptureInfo", 11030, flags);
		ask("cuInit", 13000, flags);
	}
	SHOW("no status", cuGetProcAddress_v2, W("cuInit"), W(&pointer), 13000, 0, 0);
	SHOW("no status, unknown", cuGetProcAddress_v2, W("cuNo"), W(&pointer), 13000, 0, 0);
	SHOW("unknown table", cuGetExportTable, W(&pointer), W("0123456789abcdef"));
	SHOW("no table", cuGetExportTable, W(&pointer), 0);
}

void rules_errors(void)
{
	for (int code = 0; code < LAST_CODE; code++) {
		const char *name = NULL, *text = NULL;
		int rc = CALL(cuGetErrorName, W(code), W(&name));

		if (!rc && !CALL(cuGetErrorString, W(code), W(&text)))
			printf("%d %s: %s\n", code, name, text);
	}
	SHOW("unknown", cuGetErrorName, 12345, W(&(const char *){NULL}));
}
