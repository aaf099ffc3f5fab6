/* cuGetProcAddress in both signatures, the version, error texts: what works before
 * cuInit. Runs on the program's threads; takes no lock but pthread_once.
 *
 * The rule (CUDA Driver API, cuGetProcAddress): among the rows of that public name that are not
 * newer than the asked version, and legacy unless per-thread streams are asked for, the newest; at
 * equal age the per-thread one. */
#include "sim/sim.h"

#include <string.h>

#define FLAG_PER_THREAD 2 /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
#define KNOWN_FLAGS 3
#define DEFAULT_VERSION 13000
#define BUCKETS 1024

enum status { STATUS_FOUND, STATUS_NOT_FOUND, STATUS_VERSION };

static short heads[BUCKETS], nexts[DRIVER_ROWS]; /* row + 1; 0 ends */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned int hash(const char *name)
{
	unsigned int value = 5381;

	while (*name)
		value = value * 33 + (unsigned char)*name++;
	return value % BUCKETS;
}

static void build(void)
{
	for (int row = DRIVER_ROWS - 1; row >= 0; row--) {
		unsigned int bucket = hash(sim_rows[row].public_name);

		nexts[row] = heads[bucket];
		heads[bucket] = (short)(row + 1);
	}
}

static bool is_listed(const char *list, const char *name)
{
	while (list) {
		size_t length = strcspn(list, ",");

		if (strlen(name) == length && !strncmp(list, name, length))
			return true;
		list = list[length] ? list + length + 1 : NULL;
	}
	return false;
}

static int driver_version(void)
{
	return (int)sim_setting_number(SIM_SET_VERSION, DEFAULT_VERSION);
}

static bool is_there(const struct sim_row *row)
{
	const char *removed = sim_setting(SIM_SET_REMOVE);

	return row->since <= driver_version() && !is_listed(removed, row->public_name) &&
	       !is_listed(removed, row->abi_symbol);
}

static const struct sim_row *find(
	const char *name, int version, uint64_t flags, enum status *ret_status)
{
	const struct sim_row *best = NULL;

	pthread_once(&once, build);
	*ret_status = STATUS_NOT_FOUND;
	for (int i = heads[hash(name)]; i; i = nexts[i - 1]) {
		const struct sim_row *row = &sim_rows[i - 1];

		if (strcmp(row->public_name, name) || !is_there(row))
			continue;
		if (*ret_status == STATUS_NOT_FOUND)
			*ret_status = STATUS_VERSION;
		if (row->since > version)
			continue;
		if (row->variant != SIM_LEGACY && !(flags & FLAG_PER_THREAD))
			continue;
		if (!best || row->since > best->since ||
			(row->since == best->since && row->variant != SIM_LEGACY))
			best = row;
	}
	if (best)
		*ret_status = STATUS_FOUND;
	return best;
}

static int lookup(const word *arg, bool is_old, enum status *ret_status)
{
	const char *name = (const char *)arg[0];
	sim_function **ret_address = (sim_function **)arg[1];
	int version = (int)arg[2];
	uint64_t flags = arg[3];
	const struct sim_row *row;
	sim_function *address;

	*ret_status = STATUS_NOT_FOUND;
	if (!name || !ret_address || version > driver_version() || flags & ~(uint64_t)KNOWN_FLAGS)
		return SIM_INVALID_VALUE;
	row = find(name, version, flags, ret_status);
	address = row ? row->address : sim_extra_find(name, version);
	if (address)
		*ret_status = STATUS_FOUND;
	if (address || !is_old)
		*ret_address = address;
	return SIM_SUCCESS;
}

int sim_lookup_proc(const word *arg)
{
	enum status status;
	int rc = lookup(arg, true, &status);

	return !rc && status != STATUS_FOUND ? SIM_NOT_FOUND : rc;
}

int sim_lookup_proc_v2(const word *arg)
{
	enum status status;
	int rc = lookup(arg, false, &status);

	if (!rc && arg[4])
		*(int *)arg[4] = (int)status;
	return rc;
}

/* What tells this driver from a real one, to those who must not take its times for a GPU's. */
__attribute__((visibility("default"))) int simcuda_is_simulated(void);
int simcuda_is_simulated(void)
{
	return 1;
}

int sim_lookup_version(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	*(int *)arg[0] = driver_version();
	return SIM_SUCCESS;
}

static const struct {
	int code;
	const char *name, *text;
} codes[] = {
	{SIM_SUCCESS, "CUDA_SUCCESS", "no error"},
#define CODE(name, value, text) {value, "CUDA_ERROR_" #name, text},
#include "sim_codes.def"
#undef CODE
};

static int describe(const word *arg, bool is_name)
{
	const char **ret_text = (const char **)arg[1];

	if (!ret_text)
		return SIM_INVALID_VALUE;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == (int)arg[0]) {
			*ret_text = is_name ? codes[i].name : codes[i].text;
			return SIM_SUCCESS;
		}
	*ret_text = NULL;
	return SIM_INVALID_VALUE;
}

int sim_lookup_error_name(const word *arg)
{
	return describe(arg, true);
}

int sim_lookup_error_string(const word *arg)
{
	return describe(arg, false);
}
