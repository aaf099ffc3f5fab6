/* peers: two GPUs and each other's memory. Run by tools/gpu-check --multi plain and under Hearth.
 *
 *   peers results     peer access, copies between GPUs, and memory shared with another process
 *                     (CUDA IPC), with every return code; the same lines each time
 *   peers bandwidth MIB   one line of JSON: GB/s of copies of that size between GPUs, and out of
 *                     shared memory
 *   peers open HANDLE results|MIB   the other process: HANDLE is the memory's, in hexadecimal */
#include <dlfcn.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SMALL ((size_t)4 << 20)
#define FIRST 0x5a /* bytes that the owner writes, and the other process */
#define SECOND 0xa5
/* Between the lookups and the first call, as programs have it: time for what is done ahead. */
#define PAUSE_US (300 * 1000)
enum { WARM_UP = 20, ROUNDS = 60, HANDLE_BYTES = 64, LAZY_PEER_ACCESS = 1 };

typedef struct handle {
	char bytes[HANDLE_BYTES];
} handle_t; /* CUipcMemHandle, which is passed by value */

extern char **environ;

/* NAME, ABI symbol, parameters */
#define ENTRIES(X)                                                                                 \
	X(init, cuInit, (unsigned int))                                                            \
	X(count, cuDeviceGetCount, (int *))                                                        \
	X(can_access, cuDeviceCanAccessPeer, (int *, int, int))                                    \
	X(retain, cuDevicePrimaryCtxRetain, (void **, int))                                        \
	X(release, cuDevicePrimaryCtxRelease_v2, (int))                                            \
	X(set, cuCtxSetCurrent, (void *))                                                          \
	X(synchronize, cuCtxSynchronize, (void))                                                   \
	X(enable, cuCtxEnablePeerAccess, (void *, unsigned int))                                   \
	X(disable, cuCtxDisablePeerAccess, (void *))                                               \
	X(alloc, cuMemAlloc_v2, (uint64_t *, size_t))                                              \
	X(drop, cuMemFree_v2, (uint64_t))                                                          \
	X(fill, cuMemsetD8_v2, (uint64_t, unsigned char, size_t))                                  \
	X(to_host, cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                    \
	X(copy, cuMemcpyDtoD_v2, (uint64_t, uint64_t, size_t))                                     \
	X(copy_peer, cuMemcpyPeer, (uint64_t, void *, uint64_t, void *, size_t))                   \
	X(copy_peer_async, cuMemcpyPeerAsync,                                                      \
		(uint64_t, void *, uint64_t, void *, size_t, void *))                              \
	X(get_handle, cuIpcGetMemHandle, (handle_t *, uint64_t))                                   \
	X(open_handle, cuIpcOpenMemHandle_v2, (uint64_t *, handle_t, unsigned int))                \
	X(close_handle, cuIpcCloseMemHandle, (uint64_t))

#define DECLARE(name, symbol, parameters) static int(*name) parameters;
ENTRIES(DECLARE)
#undef DECLARE

static unsigned char *host;
static void *contexts[2];
static size_t large; /* bytes of a copy that is measured */

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		printf("result no driver: %s\n", dlerror());
		exit(3);
	}
#define LOOK_UP(name, symbol, parameters)                                                          \
	name = (int(*) parameters)dlsym(library, #symbol);                                         \
	if (!name) {                                                                               \
		printf("result no %s\n", #symbol);                                                 \
		exit(3);                                                                           \
	}
	ENTRIES(LOOK_UP)
#undef LOOK_UP
	host = calloc(1, SMALL);
	usleep(PAUSE_US);
}

/* Ends the program where a call that everything rests on fails. */
static void need(const char *what, int rc)
{
	if (!rc)
		return;
	printf("result %s %d\n", what, rc);
	exit(4);
}

/* How many bytes of it are not that value, after a copy to the host. */
static int count_others(uint64_t memory, unsigned char value)
{
	int rc = to_host(host, memory, SMALL), others = 0;

	for (size_t i = 0; i < SMALL; i++)
		others += host[i] != value;
	memset(host, 0, SMALL);
	return rc ? -rc : others;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* The median of so many copies of `large` bytes. With contexts, from one GPU to the other; without,
 * a plain copy in the current context. */
static double gigabytes_per_second(uint64_t to, void *to_context, uint64_t from, void *from_context)
{
	double took[ROUNDS];

	for (int i = -WARM_UP; i < ROUNDS; i++) {
		double start = now_s();

		need("copy", to_context ? copy_peer(to, to_context, from, from_context, large)
					: copy(to, from, large));
		need("sync", synchronize());
		if (i >= 0)
			took[i] = now_s() - start;
	}
	qsort(took, ROUNDS, sizeof(took[0]), compare_doubles);
	return (double)large / took[ROUNDS / 2] / 1e9;
}

/* Both GPUs' contexts; the first one's is current. */
static void begin(void)
{
	int devices = 0;

	need("cuInit", init(0));
	need("count", count(&devices));
	if (devices < 2) {
		printf("result only %d devices\n", devices);
		exit(5);
	}
	need("retain", retain(&contexts[0], 0));
	need("retain", retain(&contexts[1], 1));
	need("set", set(contexts[0]));
}

/* Starts `peers open HANDLE MODE`, whose lines come among ours, and waits for it. */
static void run_other(const char *self, const handle_t *shared, const char *mode)
{
	char text[2 * HANDLE_BYTES + 1];
	char *words[] = {(char *)self, "open", text, (char *)mode, NULL};
	int status = -1;
	pid_t pid;

	for (int i = 0; i < HANDLE_BYTES; i++)
		sprintf(text + 2 * i, "%02x", (unsigned char)shared->bytes[i]);
	fflush(stdout);
	if (posix_spawn(&pid, self, NULL, NULL, words, environ) || waitpid(pid, &status, 0) < 0)
		perror("peers open");
	if (status) {
		printf("result the other process ended with %d\n", status);
		exit(6);
	}
}

static void show_peer_access(int from, int to)
{
	uint64_t here, there;
	int can = -7, rc = can_access(&can, from, to);

	printf("result %d to %d: can access %d %d\n", from, to, rc, can);
	need("set", set(contexts[from]));
	printf("result enable %d", enable(contexts[to], 0));
	printf(" %d", enable(contexts[to], 0));
	printf(" %d", enable(contexts[from], 0));
	printf(" %d\n", enable(contexts[to], 1));
	need("alloc", alloc(&here, SMALL));
	need("fill", fill(here, FIRST, SMALL));
	need("set", set(contexts[to]));
	need("alloc", alloc(&there, SMALL));
	need("fill", fill(there, SECOND, SMALL));
	printf("result copy_peer %d", copy_peer(there, contexts[to], here, contexts[from], SMALL));
	printf(", wrong %d\n", count_others(there, FIRST));
	need("fill", fill(there, SECOND, SMALL));
	rc = copy_peer_async(here, contexts[from], there, contexts[to], SMALL, NULL);
	printf("result copy_peer_async %d %d", rc, synchronize());
	need("set", set(contexts[from]));
	printf(", wrong %d\n", count_others(here, SECOND));
	need("fill", fill(here, FIRST, SMALL));
	printf("result copy %d %d", copy(there, here, SMALL), synchronize());
	printf(", wrong %d\n", count_others(there, FIRST));
	printf("result disable %d", disable(contexts[to]));
	printf(" %d\n", disable(contexts[to]));
	need("free", drop(here));
	need("set", set(contexts[to]));
	need("free", drop(there));
}

static void show_shared(const char *self)
{
	handle_t shared = {{0}};
	uint64_t memory;
	int rc;

	need("set", set(contexts[0]));
	need("alloc", alloc(&memory, SMALL));
	need("fill", fill(memory, FIRST, SMALL));
	rc = get_handle(&shared, memory);
	printf("result get_handle %d\n", rc);
	if (!rc)
		run_other(self, &shared, "results");
	printf("result owner: wrong %d\n", count_others(memory, SECOND));
	printf("result get_handle of nothing %d\n", get_handle(&shared, 0));
	need("free", drop(memory));
}

/* In the other process: the first GPU's memory, opened on the second one. */
static void use_shared(const char *text, const char *mode)
{
	uint64_t memory = 0, own;
	handle_t shared;
	int rc;

	for (int i = 0; i < HANDLE_BYTES; i++) {
		char byte[3] = {text[2 * i], text[2 * i + 1], '\0'};

		shared.bytes[i] = (char)strtoul(byte, NULL, 16);
	}
	begin();
	need("set", set(contexts[1]));
	rc = open_handle(&memory, shared, LAZY_PEER_ACCESS);
	if (rc || !strcmp(mode, "results"))
		printf("result open_handle %d\n", rc);
	if (rc)
		exit(7);
	if (strcmp(mode, "results")) {
		large = (size_t)atol(mode) << 20;
		need("alloc", alloc(&own, large));
		printf("{\"shared\":%.3f,", gigabytes_per_second(own, NULL, memory, NULL));
		fflush(stdout);
		return;
	}
	printf("result other: wrong %d\n", count_others(memory, FIRST));
	need("alloc", alloc(&own, SMALL));
	printf("result other copies %d %d", copy(own, memory, SMALL), synchronize());
	printf(", wrong %d\n", count_others(own, FIRST));
	printf("result other fills %d %d\n", fill(memory, SECOND, SMALL), synchronize());
	printf("result close %d", close_handle(memory));
	printf(" %d\n", close_handle(memory));
}

static void measure(const char *self, const char *size)
{
	handle_t shared;
	uint64_t here, there;
	double there_and_back[2];

	need("alloc", alloc(&here, large));
	need("get_handle", get_handle(&shared, here));
	run_other(self, &shared, size);
	need("set", set(contexts[1]));
	need("alloc", alloc(&there, large));
	need("enable", enable(contexts[0], 0));
	need("set", set(contexts[0]));
	need("enable", enable(contexts[1], 0));
	there_and_back[0] = gigabytes_per_second(there, contexts[1], here, contexts[0]);
	there_and_back[1] = gigabytes_per_second(here, contexts[0], there, contexts[1]);
	printf("\"there\":%.3f,\"back\":%.3f}\n", there_and_back[0], there_and_back[1]);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	open_driver();
	if (!strcmp(mode, "open") && argc == 4) {
		use_shared(argv[2], argv[3]);
	} else if (!strcmp(mode, "results")) {
		begin();
		show_peer_access(0, 1);
		show_peer_access(1, 0);
		show_shared(argv[0]);
		printf("result release %d %d\n", release(0), release(1));
	} else if (!strcmp(mode, "bandwidth") && argc == 3) {
		large = (size_t)atol(argv[2]) << 20;
		begin();
		measure(argv[0], argv[2]);
	} else {
		fprintf(stderr, "usage: peers results|bandwidth MIB\n");
		return 2;
	}
	return 0;
}
