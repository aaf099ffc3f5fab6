/* The simulated driver's inside: types and the state of one loaded copy of the library.
 *
 * Every exported entry is a generated function of the entry's exact arity that hands its arguments,
 * as machine words, to sim_entry_call. Handlers (sim_entries.def) get that array. Unless a handler
 * is listed as UNLOCKED or ALWAYS it runs with sim.lock held.
 * All handlers return a CUresult. Nothing here may be called in a fork child of the process that
 * initialised the library, except sim_entry_call, which answers 3 there. */
#pragma once

#include "driver_rows.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SIM_MAX_DEVICES 16
#define SIM_MIB ((uint64_t)1 << 20)
#define SIM_STACK_DEPTH 64
#define SIM_NAME_SIZE 128  /* of a kernel */
#define SIM_SHARED_NAME 32 /* of a file that holds shared memory */

typedef uintptr_t word;
typedef int sim_handler(const word *arg);
typedef void sim_function(void);

enum sim_code {
	SIM_SUCCESS = 0,
#define CODE(name, value, text) SIM_##name = value,
#include "sim_codes.def"
#undef CODE
};

enum sim_variant { SIM_LEGACY, SIM_PTDS, SIM_PTSZ };

/* One row of driver_api.tsv, generated. */
struct sim_row {
	const char *public_name;
	const char *abi_symbol;
	int since;
	enum sim_variant variant;
	int arity;
	int before_init;       /* what the entry answers before cuInit, to pointers */
	int before_init_zeros; /* the same, where all arguments are 0 */
	int by_value;          /* the argument that is a struct: its word is an address; or -1 */
	sim_function *address;
};
extern const struct sim_row sim_rows[DRIVER_ROWS];

/* --- objects (sim_object.c) ---------------------------------------------------------------- */

enum sim_kind {
	SIM_CONTEXT = 1,
	SIM_STREAM,
	SIM_EVENT,
	SIM_MODULE,
	SIM_FUNCTION,
	SIM_LIBRARY,
	SIM_KERNEL,
	SIM_GRAPH,
	SIM_GRAPH_EXEC,
	SIM_RESIDENT,
};

/* First member of everything that a handle points to. Handles are looked up before they are
 * followed, so a stale or invented one is answered with a code. */
struct sim_object {
	enum sim_kind kind;
	struct sim_context *context; /* owner; NULL for contexts and libraries */
	void (*free)(struct sim_object *object);
	struct sim_object *next;
};

void sim_object_add(struct sim_object *object, enum sim_kind kind, struct sim_context *context,
	void (*free)(struct sim_object *object));
/* The live object of that kind behind a handle, or NULL. */
void *sim_object_find(word handle, enum sim_kind kind);
/* Takes the object out of the table and frees it. */
void sim_object_remove(struct sim_object *object);
/* Removes all objects that belong to a context. */
void sim_object_remove_owned(struct sim_context *context);

/* --- contexts, streams, events ------------------------------------------------------------- */

/* Of CUlimit. */
enum { SIM_PRINTF_LIMIT = 1, SIM_HEAP_LIMIT = 2, SIM_LIMITS = 3 };

struct sim_context {
	struct sim_object object;
	int device; /* ordinal in this process */
	unsigned int flags;
	unsigned int api_version;
	bool is_primary;
	bool is_alive; /* a primary context that is not active, or a destroyed one: false */
	bool has_launched;
	unsigned int residents;    /* images whose code is there */
	size_t limits[SIM_LIMITS]; /* set by the program; 0 = as it was */
	unsigned int references;   /* primary: retains not yet released */
	uint64_t busy_until_us;    /* monotonic; when all work so far will be done */
	uint64_t id;
	int fault; /* what a kernel has done to it: every later call that needs it answers so */
	struct sim_attachment *attachment; /* what its kernel side would hold (sim_attach.c) */
};

struct sim_thread;

struct sim_capture {
	bool is_on, is_invalid;
	int mode;                  /* 0 global, 1 thread-local, 2 relaxed */
	struct sim_thread *thread; /* that began it */
	uint64_t id;
	struct sim_work *first, *last;
};

struct sim_stream {
	struct sim_object object;
	unsigned int flags;
	int priority;
	uint64_t id;
	uint64_t busy_until_us;
	struct sim_capture capture;
};

struct sim_event {
	struct sim_object object;
	unsigned int flags;
	bool is_recorded;
	uint64_t done_us; /* monotonic; when the work before it will be done */
};

enum sim_work_kind {
	SIM_WORK_COPY,    /* source to target, size bytes */
	SIM_WORK_SET,     /* value to size elements of width bytes at target */
	SIM_WORK_ADD,     /* target[i] = source[i] + other[i], size 32-bit elements */
	SIM_WORK_SCALE,   /* target[i] = source[i] * value, likewise */
	SIM_WORK_SPIN,    /* keeps the stream busy for size microseconds */
	SIM_WORK_NOTHING, /* a kernel of an image that is not ours */
	SIM_WORK_FAULT,   /* an illegal memory access */
};

/* One piece of device work: executed at once, or kept in a graph. */

struct sim_work {
	struct sim_work *next;
	enum sim_work_kind kind;
	uint64_t target, source, other;
	uint64_t size;
	uint32_t value;
	uint32_t width;
	bool is_host_target, is_host_source; /* of a copy: not checked against device memory */
};

/* --- the state of this copy of the library ------------------------------------------------- */

enum sim_state { SIM_UNINITIALIZED, SIM_READY, SIM_GONE };

struct sim {
	pthread_mutex_t lock;
	pthread_mutex_t init_lock;                     /* one cuInit at a time */
	pthread_mutex_t context_lock[SIM_MAX_DEVICES]; /* one context change at a time */
	_Atomic int state;                             /* enum sim_state */
	_Atomic pid_t pid;                             /* who initialises or did; 0 nobody */
	int device_count;                              /* visible ones */
	int physical[SIM_MAX_DEVICES];                 /* by ordinal */
	struct sim_context primary[SIM_MAX_DEVICES];   /* by ordinal */
	unsigned int primary_flags[SIM_MAX_DEVICES];
};
extern struct sim sim;

struct sim_thread {
	struct sim_context *stack[SIM_STACK_DEPTH];
	int depth;
	int capture_mode; /* of cuThreadExchangeStreamCaptureMode; starts as 0, global */
};
struct sim_thread *sim_thread(void);

/* The current context of the calling thread. Returns 0, 201 without one, 709 for a dead one. */
int sim_context_current(struct sim_context **ret_context);

/* Whether a context can be made with these flags. */
bool sim_context_are_flags(unsigned int flags);

/* Makes the device's memory and descriptors for a context, and waits the time it takes; undone by
 * sim_context_destroy. Called without sim.lock, with the device's context_lock. */
int sim_context_make(struct sim_context *context);
void sim_context_unmake(struct sim_context *context);

/* What a live context holds beside memory: descriptors and a thread. 0 or a CUresult. */
int sim_attach(struct sim_context *context);
void sim_detach(struct sim_context *context);

/* The driver's own ways to a pipe and an eventfd, which no import slot shows. -1 where they fail.
 */
int sim_init_pipe(int ends[2]);
int sim_init_event(void);

/* Binds the driver's socket where that has not been done: what a part of the driver needs that is
 * used before cuInit. SIM_DEINITIALIZED where another file has taken its number since. */
int sim_init_listen(void);

/* Starts a thread of the driver's: all signals blocked. 0 or an errno. */
int sim_init_thread(pthread_t *ret_thread, void *(*run)(void *), void *argument);

/* --- modules --------------------------------------------------------------------------------- */

struct sim_image; /* sim_image.c */

/* Reads an image as it is handed to cuModuleLoadData or cuLibraryLoadData: ours, ELF, PTX, a fat
 * binary or its wrapper. Waits the time it takes. Called without sim.lock. One that is preserved
 * stays where it is: it is read again whenever a kernel is looked for. */
enum { SIM_IMAGE_LIBRARY = 1, SIM_IMAGE_PRESERVED = 2 };
int sim_image_load(const void *code, int flags, struct sim_image **ret_image);
int sim_image_load_file(const char *path, bool is_library, struct sim_image **ret_image);
/* One that nobody can use; only libraries are made of such. */
bool sim_image_is_broken(const struct sim_image *image);
struct sim_image *sim_image_free(struct sim_image *image);
/* Of a text: most names that differ show it here. */
uint64_t sim_image_hash(const char *text);
/* What a kernel of that name does: an enum sim_work_kind, or -1 where the image lacks it. */
int sim_image_find(const struct sim_image *image, const char *name);
int sim_image_count(const struct sim_image *image);
/* What its code takes of a GPU's memory. */
uint64_t sim_image_size(const struct sim_image *image);

/* A module or a library: an image and the kernels that have been asked for. */
struct sim_holder {
	struct sim_object object;
	struct sim_image *image;
	struct sim_kernel *kernels;
	struct sim_resident *residents;
};

/* The memory that a holder's code takes in one context, from its first kernel's first use on. */
struct sim_resident {
	struct sim_object object;
	struct sim_resident *next; /* of the same holder */
	struct sim_holder *holder;
	uint64_t charged;
};

struct sim_kernel {
	struct sim_object object; /* SIM_FUNCTION or SIM_KERNEL */
	struct sim_kernel *next;  /* of the same holder */
	struct sim_holder *holder;
	enum sim_work_kind work;
	bool is_loaded;
	uint64_t hash; /* of its name */
	char name[SIM_NAME_SIZE];
};

struct sim_holder *sim_kernel_holder_new(
	struct sim_image *image, enum sim_kind kind, struct sim_context *context);
/* The kernel of that name, the same each time. With sim.lock held. Returns a CUresult. */
int sim_kernel_get(struct sim_holder *holder, const char *name, enum sim_kind kind,
	struct sim_context *context, struct sim_kernel **ret_kernel);
/* Pays for the first use of the kernel or function of that handle in its context (a kernel's: the
 * current one), once, in time and memory. Without sim.lock. Returns a CUresult. */
int sim_kernel_load(word handle);
/* An attribute, the same for all kernels. Returns a CUresult. */
int sim_kernel_attribute(int attribute, int *ret_value);

/* --- work ------------------------------------------------------------------------------------ */

/* The stream of a handle (0, 1 and 2 are the default ones). Returns a CUresult. *ret_stream is NULL
 * for a default stream. */
int sim_stream_find(word handle, struct sim_context **ret_context, struct sim_stream **ret_stream);
/* Runs a piece of work in the stream of that handle, or keeps it where the stream is capturing.
 * is_sync waits for all earlier work of the context first. Without sim.lock. */
int sim_work_do(const struct sim_work *work, word stream, bool is_sync);
/* Runs it now. With sim.lock held. 0, or 700 where it reaches outside the device's memory. */
int sim_work_run(
	const struct sim_work *work, struct sim_context *context, struct sim_stream *stream);
/* A copy of a list of work, in the same order; NULL for none. */
struct sim_work *sim_work_copy(const struct sim_work *first);
struct sim_work *sim_work_free(struct sim_work *first);
/* Answers 900, and spoils the capture, where a stream capture forbids the call to this thread. */
int sim_capture_check(void);
/* Takes the work over. */
int sim_graph_new(struct sim_work *work, void **ret_graph);
/* A capture that nobody will end: its stream goes. */
void sim_capture_drop(struct sim_stream *stream);
void sim_wait_until(uint64_t until_us);

/* --- memory ---------------------------------------------------------------------------------- */

/* Whether the range lies inside one allocation of device, managed or pinned memory. */
bool sim_memory_covers(uint64_t address, uint64_t size);
void sim_memory_free_all(struct sim_context *context);
/* Moves a device allocation's bytes into a shared file of the machine, from then on its memory;
 * again says the same name. `address` may lie anywhere in it. Returns a CUresult. */
int sim_memory_share(uint64_t address, char ret_name[SIM_SHARED_NAME], uint64_t *ret_size);
/* Maps another process's; undone by sim_memory_close. Returns a CUresult. */
int sim_memory_open(const char *name, uint64_t size, uint64_t *ret_address);
int sim_memory_close(uint64_t address);

/* CUipcMemHandle, which entries take by value. */
struct sim_ipc_handle {
	char bytes[64];
};

/* --- peers (sim_peer.c) ------------------------------------------------------------------------
 */

/* The context is gone, and with it what it was allowed. With sim.lock held. */
void sim_peer_forget(const struct sim_context *context);

/* --- the machine (sim_machine.c) -------------------------------------------------------------- */

/* Opens the machine's folder and this copy's entry in it. 0 or a CUresult. */
int sim_machine_open(void);
void sim_machine_close(void);
/* A descriptor of one of the machine's device files: what /dev/nvidia* is to a real driver. */
int sim_machine_open_device(const char *name);
/* A new file for shared memory, or one that is there. A descriptor, or -1. */
int sim_machine_create_shared(char ret_name[SIM_SHARED_NAME]);
int sim_machine_open_shared(const char *name);
void sim_machine_remove_shared(const char *name);
/* Whether the JIT cache had that entry; it has it from now on. */
bool sim_machine_has_cached(const char *name);
/* Marks a GPU as used by this copy; waits the cold or warm time of cuInit for all of them. */
void sim_machine_register(const int *physical, int count, int present);
/* Adds to this copy's use of a GPU. 0, or 2 where the GPU has not that much left. */
int sim_machine_charge(int physical, uint64_t bytes);
void sim_machine_refund(int physical, uint64_t bytes);
uint64_t sim_machine_used(int physical);
uint64_t sim_machine_total(int physical);
/* Counts a context. 0, or 46 where the GPU's compute mode forbids it. */
int sim_machine_enter(int physical);
void sim_machine_leave(int physical);
/* Whether this copy has a context anywhere. */
bool sim_machine_has_context(void);
/* Waits `ms` in slices of the kernel driver's lock, which all processes of the machine share. */
void sim_machine_kernel(double ms);
/* CU_COMPUTEMODE_*: 0 default, 2 prohibited, 3 exclusive process. */
int sim_machine_compute_mode(int physical);

/* --- a client of MPS (sim_mps.c) ---------------------------------------------------------------
 */

/* Becomes one where CUDA_MPS_PIPE_DIRECTORY's daemon serves; may wait. 0 or 805. */
int sim_mps_connect(void);
void sim_mps_close(void);
bool sim_mps_is_client(void);
/* Around a context: whether the server takes it (0, or 805, 806, 808, 810), and that it has ended.
 */
int sim_mps_enter(void);
void sim_mps_leave(void);
/* What work is answered with: 0, or 806, 810 once the server has gone, has given the client up. */
int sim_mps_code(void);

/* --- settings, time, log, failures ------------------------------------------------------------ */

enum sim_setting {
#define SETTING(name, values, default_text, help) SIM_SET_##name,
#include "sim_settings.def"
#undef SETTING
	SIM_SETTINGS
};
/* The value, or NULL where it is unset or empty. */
const char *sim_setting(enum sim_setting setting);
long sim_setting_number(enum sim_setting setting, long otherwise);

enum sim_step {
#define STEP(name, ms, help) SIM_STEP_##name,
#include "sim_steps.def"
#undef STEP
	SIM_STEPS
};
/* What a step costs here, in milliseconds, speed included. */
double sim_time(enum sim_step step);
void sim_time_wait(double ms);
uint64_t sim_time_now_us(void);

bool sim_log_is_on(void);
void sim_log_call(const char *symbol, int arity, const word *arg, int rc, uint64_t start_us);
/* The code that SIMCUDA_FAIL gives this call, or 0. Counts the call. */
int sim_fail_code(const char *symbol);

/* --- what the driver reads of the environment (sim_env.c), through getenv --------------------- */

struct sim_env {
	char visible_devices[1024];
	bool has_visible_devices;
	bool is_eager;            /* CUDA_MODULE_LOADING=EAGER */
	bool is_cache_off;        /* CUDA_CACHE_DISABLE=1 */
	_Atomic bool is_blocking; /* CUDA_LAUNCH_BLOCKING=1, read at the first retain */
	int connections;          /* CUDA_DEVICE_MAX_CONNECTIONS */
};
extern struct sim_env sim_env;
void sim_env_read_init(void);
void sim_env_read_retain(void);
void sim_env_read_load(void);
/* Which GPUs CUDA_VISIBLE_DEVICES leaves, in its order, as seen on an H200 (driver 580.159.04): the
 * list is ordinals or, where it begins with "GPU-", UUIDs; it ends at the first item that names
 * none. 0, 100 where none is left, 101 where one stands twice. */
int sim_env_visible(int present, int *ret_count, int ret_physical[SIM_MAX_DEVICES]);
/* The 16 bytes that identify a GPU of the machine. */
void sim_device_uuid(int physical, unsigned char ret_uuid[16]);

/* --- entries -----------------------------------------------------------------------------------
 */

/* Takes the loader's lock where SIMCUDA_LOADER_LOCK asks for it in a retain. */
void sim_init_touch_retain(void);
/* What cuInit and every making of a context does before it returns, and every thread at its end:
 * uses what the end of the process takes apart. */
void sim_init_touch_state(void);
int sim_entry_call(enum driver_row row, const word *arg);
/* An entry of SIMCUDA_EXTRA, or NULL. */
sim_function *sim_extra_find(const char *name, int version);

#define ENTRY(symbol, handler) sim_handler handler;
#define ENTRY_UNLOCKED(symbol, handler) sim_handler handler;
#define ENTRY_ALWAYS(symbol, handler) sim_handler handler;
#include "sim_entries.def"
#undef ENTRY
#undef ENTRY_UNLOCKED
#undef ENTRY_ALWAYS
