/* Export tables: the one that NVML asks for, of which it calls four functions, before cuInit as
 * well as after it (580.159.04 on an H200, nvmlInit). cudart's integrity check and the others have
 * none here. What the functions are for is not known; they answer what those did, and the first
 * call of the 24th before cuInit leaves the driver's socket bound. Runs on the program's threads.
 */
#include "sim/sim.h"

#include <string.h>

#define FUNCTIONS 33

static const unsigned char nvml_id[] = {0x69, 0xa2, 0x8e, 0x9f, 0x24, 0x49, 0x8b, 0x47, 0xb0, 0x30,
	0xc5, 0xda, 0x33, 0x0e, 0xa4, 0xe9};

static word table[1 + FUNCTIONS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int enter(void)
{
	int rc;

	pthread_mutex_lock(&lock);
	rc = sim_init_listen();
	if (rc)
		pthread_mutex_unlock(&lock);
	return rc;
}

static int leave(void)
{
	pthread_mutex_unlock(&lock);
	return SIM_SUCCESS;
}

static int describe(word *ret_first, word *ret_second)
{
	*ret_first = *ret_second = 0;
	return SIM_SUCCESS;
}

static int attach(const void *what)
{
	return what ? SIM_SUCCESS : SIM_INVALID_VALUE;
}

/* What NVML was not seen to call. */
static int other(void)
{
	return SIM_NOT_SUPPORTED;
}

static void fill(void)
{
	table[0] = sizeof(table);
	for (int i = 1; i <= FUNCTIONS; i++)
		table[i] = (word)other;
	table[19] = (word)describe;
	table[21] = (word)attach;
	table[24] = (word)enter;
	table[25] = (word)leave;
}

int sim_table_find(const word *arg)
{
	const void **ret_table = (const void **)arg[0];

	if (!ret_table || !arg[1] || memcmp((const void *)arg[1], nvml_id, sizeof(nvml_id)) != 0)
		return SIM_INVALID_VALUE;
	pthread_once(&once, fill);
	*ret_table = table;
	return SIM_SUCCESS;
}
