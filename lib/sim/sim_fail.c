/* SIMCUDA_FAIL="SYMBOL:CODE[*COUNT][@NTH][/main|/other],...": calls that fail.
 *
 * NTH is the first call of that symbol that fails, counting from 1 in this copy of the library and
 * among the threads that the item names; COUNT is how many fail from there on. Without either all
 * calls fail; with NTH alone, that one. The first item that matches decides. Calls are counted
 * whether they fail or not. Runs on the program's threads; takes no lock. */
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_ITEMS 32

static _Atomic unsigned long counts[MAX_ITEMS];

static bool is_main_thread(void)
{
	return (pid_t)syscall(SYS_gettid) == getpid();
}

/* Whether the item, behind its symbol and colon, makes this call fail; counts the call. */
static int item_code(const char *text, int item)
{
	char *end;
	long code = strtol(text, &end, 10);
	unsigned long count = 0, first = 0, call;

	while (*end == '*' || *end == '@') {
		unsigned long *number = *end == '*' ? &count : &first;

		*number = strtoul(end + 1, &end, 10);
	}
	if (!strncmp(end, "/main", 5) && !is_main_thread())
		return 0;
	if (!strncmp(end, "/other", 6) && is_main_thread())
		return 0;
	call = atomic_fetch_add(&counts[item], 1) + 1;
	if (first && call < first)
		return 0;
	if (first && !count)
		count = 1;
	if (count && call >= (first ? first : 1) + count)
		return 0;
	return (int)code;
}

int sim_fail_code(const char *symbol)
{
	const char *text = sim_setting(SIM_SET_FAIL);
	size_t length = strlen(symbol);
	int code = 0;

	for (int item = 0; text && item < MAX_ITEMS; item++) {
		if (!strncmp(text, symbol, length) && text[length] == ':') {
			int found = item_code(text + length + 1, item);

			code = code ? code : found;
		}
		text = strchr(text, ',');
		if (text)
			text++;
	}
	return code;
}
