/* cudaSetDevice of a dynamically linked CUDA runtime, for the record. Runs in the user's program on
 * any thread; forwards to the very runtime that the caller is linked to, so that two runtimes in
 * one process stay two.
 *
 * The symbol is exported under the runtimes' own symbol versions, as non-default ones: only an
 * object that was linked with a libcudart and asks for that version is bound to us. dlsym, also
 * with RTLD_DEFAULT, and unversioned references never find it. */
#include "preload/runtime.h"
#include "driver/loaded.h"
#include "preload/first_call.h"
#include "preload/start.h"

#include <errno.h>
#include <string.h>

#define RUNTIME_ENTRY "cudaSetDevice"
#define RUNTIME_PREFIX "libcudart" /* a wheel may have given the rest of the name a digest */

/* cudaErrorSharedObjectSymbolNotFound: the runtime that the caller was linked to is gone. */
#define CUDA_ERROR_SYMBOL_GONE 302

/* More objects that call cudaSetDevice directly than any program has; further ones are looked up
 * at each call. */
#define CALLERS_MAX 16

typedef CUresult set_device(int device);

/* One object that has called: written by one thread, then published by `end`. */
struct caller {
	uintptr_t start, end;
	unsigned long long unloads; /* the loader's count: a change makes the entry void */
	set_device *target;
};

static struct caller callers[CALLERS_MAX];
static unsigned int caller_count; /* entries taken */
static struct first_marks marks;

static int read_unloads(struct dl_phdr_info *info, size_t size, void *ret_unloads)
{
	*(unsigned long long *)ret_unloads = info->dlpi_subs;
	return 1;
}

static set_device *find_known(uintptr_t address, unsigned long long unloads)
{
	unsigned int count = __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < count && i < CALLERS_MAX; i++)
		if (address < __atomic_load_n(&callers[i].end, __ATOMIC_ACQUIRE) &&
			address >= callers[i].start && callers[i].unloads == unloads)
			return callers[i].target;
	return NULL;
}

static void remember(uintptr_t address, unsigned long long unloads, set_device *target)
{
	struct loaded object;
	unsigned int index;

	if (loaded_find_address((const void *)address, &object) ||
		__atomic_load_n(&caller_count, __ATOMIC_RELAXED) >= CALLERS_MAX)
		return;
	index = __atomic_fetch_add(&caller_count, 1, __ATOMIC_ACQ_REL);
	if (index >= CALLERS_MAX)
		return;
	callers[index].start = object.start;
	callers[index].unloads = unloads;
	callers[index].target = target;
	__atomic_store_n(&callers[index].end, object.end, __ATOMIC_RELEASE);
}

/* The runtime among the objects that the caller NEEDs; for a caller that names none (it was handed
 * our address), the runtime of the version that our address stands for. Not by dlsym on the
 * caller: an object that was loaded only because another NEEDs it has no search list of its own,
 * and glibc crashes. */
static set_device *find_target(const void *caller, const char *soname)
{
	struct loaded object, runtime;
	const char *needed;
	void *target;

	if (!loaded_find_address(caller, &object)) {
		for (unsigned int i = 0; (needed = loaded_needed(&object, i)); i++) {
			if (strncmp(needed, RUNTIME_PREFIX, strlen(RUNTIME_PREFIX)) ||
				loaded_find(needed, &runtime))
				continue;
			target = loaded_symbol(&runtime, RUNTIME_ENTRY);
			if (target)
				return (set_device *)target;
		}
	}
	if (loaded_find(soname, &runtime))
		return NULL;
	return (set_device *)loaded_symbol(&runtime, RUNTIME_ENTRY);
}

CUresult runtime_set_device(int device, const char *soname, const void *caller)
{
	int kept = errno;
	unsigned long long unloads = 0;
	struct first_call call;
	set_device *target;
	CUresult rc;

	dl_iterate_phdr(read_unloads, &unloads);
	target = find_known((uintptr_t)caller, unloads);
	if (!target) {
		target = find_target(caller, soname);
		if (!target)
			return CUDA_ERROR_SYMBOL_GONE;
		remember((uintptr_t)caller, unloads, target);
	}
	errno = kept;
	if (first_call_is_named_done(&marks, device) || start_is_off())
		return target(device);
	first_call_time_named(&call, RUNTIME_ENTRY, &marks, device);
	rc = target(device);
	first_call_end(&call, rc);
	return rc;
}
