/* A preload that times every driver call of a program, whoever makes it: prefetch-parts names with
 * it what a first step pays. Goes before libhearth.so, or alone. It hooks dlsym and
 * cuGetProcAddress, puts a thunk (trace_thunks.S) before each entry that leaves there, and sums by
 * entry and phase. trace_phase(NAME) ends a phase: what was summed goes to the file that
 * TRACE_CALLS names, one line of JSON an entry. Calls of Hearth's own thread are not seen. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THUNKS = 1024, THUNK_SIZE = 16, DEPTH = 64, NAME = 64 };

struct entry {
	char name[NAME];
	void *real;
	uint64_t calls, ns, longest_ns;
};

struct frame {
	void *back;
	uint64_t start_ns;
	unsigned index;
};

typedef int (*get_address)(const char *, void **, int, uint64_t);
typedef int (*get_address_v2)(const char *, void **, int, uint64_t, int *);

extern char trace_thunks[];
void *trace_enter(uint64_t index, void *back);
void *trace_leave(void);
void trace_phase(const char *phase);

static struct entry entries[THUNKS];
static unsigned count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct frame frames[DEPTH];
static __thread unsigned depth;
static void *(*real_dlsym)(void *, const char *);
static get_address real_get;
static get_address_v2 real_get_v2;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void *trace_enter(uint64_t index, void *back)
{
	if (depth >= DEPTH)
		abort();
	frames[depth++] = (struct frame){back, now_ns(), (unsigned)index};
	return entries[index].real;
}

void *trace_leave(void)
{
	struct frame *frame = &frames[--depth];
	struct entry *entry = &entries[frame->index];
	uint64_t ns = now_ns() - frame->start_ns;

	__atomic_fetch_add(&entry->calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&entry->ns, ns, __ATOMIC_RELAXED);
	if (ns > entry->longest_ns)
		entry->longest_ns = ns;
	return frame->back;
}

/* The thunk for this entry; the entry itself when there are no more. */
static void *wrap(const char *name, void *real)
{
	void *thunk = real;
	unsigned i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < count; i++)
		if (entries[i].real == real)
			break;
	if (i < THUNKS) {
		if (i == count) {
			snprintf(entries[i].name, NAME, "%s", name);
			entries[i].real = real;
			count++;
		}
		thunk = trace_thunks + (size_t)i * THUNK_SIZE;
	}
	pthread_mutex_unlock(&lock);
	return thunk;
}

static int get_v2(const char *name, void **address, int version, uint64_t flags, int *status);

static int get(const char *name, void **address, int version, uint64_t flags)
{
	int rc = real_get(name, address, version, flags);

	if (!rc && address && *address)
		*address = wrap(name, *address);
	return rc;
}

static int get_v2(const char *name, void **address, int version, uint64_t flags, int *status)
{
	int rc = real_get_v2(name, address, version, flags, status);

	if (rc || !address || !*address)
		return rc;
	if (!strcmp(name, "cuGetProcAddress") && version >= 12000) {
		real_get_v2 = (get_address_v2)*address;
		*address = (void *)get_v2;
	} else if (!strcmp(name, "cuGetProcAddress")) {
		real_get = (get_address)*address;
		*address = (void *)get;
	} else {
		*address = wrap(name, *address);
	}
	return rc;
}

static int is_entry(const char *name, void *address)
{
	Dl_info info = {0};

	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z' &&
	       dladdr(address, &info) && info.dli_fname &&
	       (strstr(info.dli_fname, "libcuda.so") || strstr(info.dli_fname, "libhearth"));
}

__attribute__((constructor)) static void begin(void)
{
	real_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
}

__attribute__((noinline)) static void *look_up(void *handle, const char *name)
{
	void *address = real_dlsym(handle, name);

	if (!address || !is_entry(name, address))
		return address;
	if (!strcmp(name, "cuGetProcAddress_v2")) {
		real_get_v2 = (get_address_v2)address;
		return (void *)get_v2;
	}
	if (!strcmp(name, "cuGetProcAddress")) {
		real_get = (get_address)address;
		return (void *)get;
	}
	return wrap(name, address);
}

/* With RTLD_NEXT and RTLD_DEFAULT it matters who calls: that must stay a jump, so build with -O2.
 */
void *dlsym(void *handle, const char *name)
{
	if (!real_dlsym)
		begin();
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		return real_dlsym(handle, name);
	return look_up(handle, name);
}

void trace_phase(const char *phase)
{
	const char *path = getenv("TRACE_CALLS");
	FILE *file = path ? fopen(path, "a") : NULL;

	for (unsigned i = 0; i < count; i++) {
		struct entry *entry = &entries[i];

		if (file && entry->calls)
			fprintf(file,
				"{\"phase\": \"%s\", \"call\": \"%s\", \"calls\": %lu, "
				"\"ms\": %.3f, \"longest_ms\": %.3f}\n",
				phase, entry->name, (unsigned long)entry->calls,
				(double)entry->ns / 1e6, (double)entry->longest_ns / 1e6);
		entry->calls = entry->ns = entry->longest_ns = 0;
	}
	if (file)
		fclose(file);
}
