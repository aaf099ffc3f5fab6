/* The redirected imports of a quiet copy. quiet_prepare runs on a thread of the program; the hooks
 * run on any thread that is inside the copy, most of all on the speculative one. There they must
 * never call the loader, never touch the live environment and never allocate. */
#include "driver/quiet.h"

#include "base/env.h"
#include "base/env_copy.h"
#include "driver/imports.h"
#include "driver/loaded.h"
#include "driver/loader.h"
#include "driver/quiet_files.h"
#include "driver/quiet_opens.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of libc's ABI (Itanium C++ ABI, 3.3.5): what atexit in a shared object becomes. */
int __cxa_atexit(void (*function)(void *), void *argument, void *object);
void __cxa_finalize(void *object);

/* Weak and by its oldest version: before glibc 2.34 it is in libpthread. */
extern __typeof__(pthread_create) old_pthread_create __attribute__((weak));
__asm__(".symver old_pthread_create, pthread_create@GLIBC_2.2.5");

#define MAX_READS 384 /* 580.159.04 reads some 110 names, 126 times */
#define NAME_SIZE 64
#define MAX_EXITS 32   /* 580.159.04 registers 9 */
#define MAX_THREADS 32 /* 580.159.04 begins 1 in cuInit, 1 in the retain */

struct env_read {
	char name[NAME_SIZE];
	const char *value; /* in the snapshot; NULL = unset */
	enum quiet_stage stage;
};

/* A thread that the copy has begun on the quiet one. */
struct helper {
	void *(*function)(void *);
	void *argument;
	pid_t id; /* in the kernel; 0 = not there yet */
};

struct exit_handler {
	void (*function)(void *);
	void *argument, *object;
};

static struct {
	struct driver_copy copy;
	struct loaded libc, own;
	char *const *snapshot; /* "NAME=VALUE", NULL-terminated */
	pthread_t thread;
	atomic_bool is_begun;
	enum quiet_stage stage;
	unsigned int read_count;
	bool is_spoilt; /* more was read than is remembered, or something was set */
	struct env_read reads[MAX_READS];
	unsigned int exit_count, registered_count, thread_count;
	struct exit_handler exits[MAX_EXITS];
	struct helper helpers[MAX_THREADS];
} quiet;

static void (*leave)(void), (*before_request)(void);

static atomic_int exits; /* enum */
static atomic_bool are_exits_wanted;
enum { EXITS_IF_SOUND, EXITS_RUN, EXITS_SKIPPED };

/* What dlopen(NULL) on the quiet thread answers: "what is already there". */
static char present;

bool quiet_is_thread(void)
{
	return atomic_load_explicit(&quiet.is_begun, memory_order_acquire) &&
	       pthread_equal(quiet.thread, pthread_self());
}

bool quiet_is_working(void)
{
	unsigned int count;
	pid_t self;

	if (!atomic_load_explicit(&quiet.is_begun, memory_order_acquire))
		return false;
	if (pthread_equal(quiet.thread, pthread_self()))
		return true;
	count = quiet_thread_count();
	self = (pid_t)syscall(SYS_gettid);
	for (unsigned int i = 0; i < count && i < MAX_THREADS; i++)
		if (__atomic_load_n(&quiet.helpers[i].id, __ATOMIC_RELAXED) == self)
			return true;
	return false;
}

enum quiet_stage quiet_stage(void)
{
	return __atomic_load_n(&quiet.stage, __ATOMIC_RELAXED);
}

static void record_read(const char *name, const char *value)
{
	struct env_read *entry;

	for (unsigned int i = 0; i < quiet.read_count; i++)
		if (quiet.reads[i].stage == quiet.stage && !strcmp(quiet.reads[i].name, name))
			return;
	if (quiet.read_count == MAX_READS || strlen(name) >= NAME_SIZE) {
		quiet.is_spoilt = true;
		return;
	}
	entry = &quiet.reads[quiet.read_count];
	strcpy(entry->name, name);
	entry->value = value;
	entry->stage = quiet.stage;
	/* Another thread may be validating an earlier stage. */
	__atomic_store_n(&quiet.read_count, quiet.read_count + 1, __ATOMIC_RELEASE);
}

static char *hook_getenv(const char *name)
{
	const char *value;

	if (!quiet_is_thread())
		return env_get_for_driver(name);
	value = env_copy_find(quiet.snapshot, name);
	record_read(name, value);
	return (char *)value;
}

static int hook_setenv(const char *name, const char *value, int overwrite)
{
	if (!quiet_is_thread())
		return setenv(name, value, overwrite);
	quiet.is_spoilt = true;
	return 0;
}

static int hook_unsetenv(const char *name)
{
	if (!quiet_is_thread())
		return unsetenv(name);
	quiet.is_spoilt = true;
	return 0;
}

static void *hook_dlopen(const char *file, int mode)
{
	if (quiet_is_thread()) {
		if (!file)
			return &present;
		if (!strcmp(file, "libcuda.so.1"))
			return quiet.copy.handle;
	}
	return loader_open(file, mode);
}

static void *hook_dlsym(void *handle, const char *name)
{
	if (quiet_is_thread() && (handle == &present || handle == quiet.copy.handle)) {
		void *address = handle == &present ? quiet_opens_find(name) : NULL;

		if (!address)
			address =
				loaded_symbol(handle == &present ? &quiet.libc : &quiet.own, name);

		if (address)
			return address;
	}
	return loader_symbol(handle == &present ? RTLD_DEFAULT : handle, name);
}

static void *hook_dlvsym(void *handle, const char *name, const char *version)
{
	if (quiet_is_thread() && handle == &present) {
		void *address = quiet_opens_find(name);

		if (!address)
			address = loaded_symbol_version(&quiet.libc, name, version);
		if (address)
			return address;
	}
	return loader_symbol_version(handle == &present ? RTLD_DEFAULT : handle, name, version);
}

static int hook_dlclose(void *handle)
{
	/* The copy is never closed, so that its handle needs no count. */
	if (handle == &present || handle == quiet.copy.handle)
		return 0;
	return loader_close(handle);
}

static void run_leave(void *unused)
{
	if (leave)
		leave();
}

/* libc runs last what was registered first. */
static void leave_before_the_last(void)
{
	__cxa_atexit(run_leave, NULL, NULL);
}

/* The copy's destructors, which may come before all exit handlers: those that are registered while
 * the program's libraries are still being constructed run after the destructors. */
static void hook_cxa_finalize(void *object)
{
	run_leave(NULL);
	__cxa_finalize(object);
}

static int hook_cxa_atexit(void (*function)(void *), void *argument, void *object)
{
	int error;

	if (!quiet_is_thread() || quiet.exit_count == MAX_EXITS) {
		error = __cxa_atexit(function, argument, object);
		if (!error)
			leave_before_the_last();
		return error;
	}
	quiet.exits[quiet.exit_count] = (struct exit_handler){function, argument, object};
	__atomic_store_n(&quiet.exit_count, quiet.exit_count + 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int hook_ioctl(int fd, unsigned long request, void *argument)
{
	void (*before)(void) = __atomic_load_n(&before_request, __ATOMIC_RELAXED);

	if (before && quiet_is_thread())
		before();
	return ioctl(fd, request, argument);
}

void quiet_before_requests(void (*function)(void))
{
	__atomic_store_n(&before_request, function, __ATOMIC_RELAXED);
}

static void *run_helper(void *argument)
{
	struct helper *helper = argument;

	__atomic_store_n(&helper->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	return helper->function(helper->argument);
}

/* Those past the last place are counted and not known. */
static int hook_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
	void *(*function)(void *), void *argument)
{
	struct helper *helper;
	unsigned int count;
	int error;

	if (!quiet_is_thread())
		return old_pthread_create(ret_thread, attributes, function, argument);
	count = quiet_thread_count();
	if (count < MAX_THREADS) {
		helper = &quiet.helpers[count];
		helper->function = function;
		helper->argument = argument;
		function = run_helper;
		argument = helper;
	}
	/* Before the thread is there, since it may open something at once. */
	__atomic_store_n(&quiet.thread_count, count + 1, __ATOMIC_RELEASE);
	error = old_pthread_create(ret_thread, attributes, function, argument);
	if (error)
		__atomic_store_n(&quiet.thread_count, count, __ATOMIC_RELEASE);
	return error;
}

unsigned int quiet_thread_count(void)
{
	return __atomic_load_n(&quiet.thread_count, __ATOMIC_RELAXED);
}

int quiet_snapshot(void)
{
	struct env_copy copy;
	int error = env_copy_take(&copy);

	if (!error)
		quiet.snapshot = copy.entries;
	return error;
}

const char *quiet_variable(const char *name)
{
	return env_copy_find(quiet.snapshot, name);
}

int quiet_prepare(const struct driver_copy *copy, void (*before_exits)(void))
{
	const struct import_hook must = {"getenv", (void *)hook_getenv};
	const struct import_hook threads = {"pthread_create", (void *)hook_pthread_create};
	const struct import_hook hooks[] = {
		{"secure_getenv", (void *)hook_getenv},
		{"__secure_getenv", (void *)hook_getenv},
		{"setenv", (void *)hook_setenv},
		{"unsetenv", (void *)hook_unsetenv},
		{"dlopen", (void *)hook_dlopen},
		{"dlsym", (void *)hook_dlsym},
		{"dlvsym", (void *)hook_dlvsym},
		{"dlclose", (void *)hook_dlclose},
		{"__cxa_atexit", (void *)hook_cxa_atexit},
		{"__cxa_finalize", (void *)hook_cxa_finalize},
		{"ioctl", (void *)hook_ioctl},
	};
	int outcome;

	if (loaded_find("libc.so.6", &quiet.libc) || loaded_from_map(copy->map, &quiet.own))
		return -ELIBACC;
	quiet.copy = *copy;
	leave = before_exits;
	leave_before_the_last();
	outcome = imports_redirect(copy->map, &must, 1);
	if (outcome <= 0)
		return outcome ? outcome : -ENOEXEC;
	outcome = imports_redirect(copy->map, hooks, sizeof(hooks) / sizeof(*hooks));
	if (outcome >= 0 && old_pthread_create)
		outcome = imports_redirect(copy->map, &threads, 1);
	if (outcome >= 0)
		outcome = quiet_opens_redirect(copy->map);
	return outcome < 0 ? outcome : 0;
}

void quiet_begin(enum quiet_stage stage)
{
	quiet.thread = pthread_self();
	__atomic_store_n(&quiet.stage, stage, __ATOMIC_RELAXED);
	atomic_store_explicit(&quiet.is_begun, true, memory_order_release);
}

static void run_exit(void *argument)
{
	const struct exit_handler *handler = argument;
	int chosen;

	run_leave(NULL);
	chosen = atomic_load(&exits);
	if (chosen == EXITS_RUN || (chosen == EXITS_IF_SOUND && quiet_files_are_valid()))
		handler->function(handler->argument);
}

void quiet_end(void)
{
	atomic_store_explicit(&quiet.is_begun, false, memory_order_release);
	if (atomic_load(&are_exits_wanted))
		quiet_register_exits();
}

void quiet_register_exits(void)
{
	unsigned int next = __atomic_load_n(&quiet.registered_count, __ATOMIC_SEQ_CST);

	atomic_store(&are_exits_wanted, true);
	while (next < __atomic_load_n(&quiet.exit_count, __ATOMIC_SEQ_CST)) {
		struct exit_handler *handler = &quiet.exits[next];

		if (!__atomic_compare_exchange_n(&quiet.registered_count, &next, next + 1, false,
			    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		__cxa_atexit(run_exit, handler, handler->object);
		next++;
	}
}

void quiet_choose_exits(bool are_run)
{
	atomic_store(&exits, are_run ? EXITS_RUN : EXITS_SKIPPED);
	quiet_register_exits();
}

bool quiet_is_valid(enum quiet_stage stage, const char **ret_name)
{
	unsigned int count = __atomic_load_n(&quiet.read_count, __ATOMIC_ACQUIRE);

	if (ret_name)
		*ret_name = NULL;
	if (quiet.is_spoilt)
		return false;
	for (unsigned int i = 0; i < count; i++) {
		const struct env_read *entry = &quiet.reads[i];
		const char *live;

		if (entry->stage != stage)
			continue;
		live = env_get_for_driver(entry->name);
		if ((!live != !entry->value) || (live && strcmp(live, entry->value))) {
			if (ret_name)
				*ret_name = entry->name;
			return false;
		}
	}
	return true;
}

const char *quiet_read_name(enum quiet_stage stage, unsigned int index)
{
	for (unsigned int i = 0; i < quiet.read_count; i++)
		if (quiet.reads[i].stage == stage && !index--)
			return quiet.reads[i].name;
	return NULL;
}
