/* The spare's page, from its python's side. Runs in the constructor, on the speculative thread and
 * in the program's calls; allocates nothing, waits for nobody. */
#include "preload/spare.h"

#include "base/at_start.h"
#include "base/status.h"
#include "preload/start.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

AT_START_DATA static struct spare_page *page;

/* Other processes may have inherited the variable. */
void spare_begin(void)
{
	const struct settings *settings = start_settings();
	struct stat file;
	void *memory;

	if (!settings->is_spare || settings->speculate_pid != getpid() ||
		status_of_fd(SPARE_PAGE_FD, &file) || file.st_size != SPARE_PAGE_SIZE)
		return;
	memory = mmap(NULL, SPARE_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, SPARE_PAGE_FD, 0);
	if (memory != MAP_FAILED)
		page = memory;
}

bool spare_is_one(void)
{
	return page;
}

static bool is_adopted(void)
{
	return page && __atomic_load_n(&page->is_adopted, __ATOMIC_ACQUIRE);
}

bool spare_is_waiting(void)
{
	return page && !is_adopted();
}

bool spare_is_learning(void)
{
	return !page || (!page->is_named && is_adopted());
}

bool spare_is_off(void)
{
	return page && page->is_off;
}

bool spare_gpu(int *ret_gpu)
{
	if (!page || !page->has_gpu)
		return false;
	*ret_gpu = page->gpu;
	return true;
}

const struct identity *spare_identity(void)
{
	return page ? &page->identity : NULL;
}

void spare_note(enum spare_ahead ahead, int device)
{
	if (!page)
		return;
	page->device = device;
	__atomic_store_n(&page->ahead, ahead, __ATOMIC_RELEASE);
}

const char *spare_program(void)
{
	return is_adopted() && page->name[0] ? page->name : NULL;
}

uint64_t spare_adopted_monotonic_us(void)
{
	return is_adopted() ? page->adopted_monotonic_us : 0;
}

uint64_t spare_adopted_realtime_us(void)
{
	return is_adopted() ? page->adopted_realtime_us : 0;
}
