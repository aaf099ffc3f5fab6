/* Many threads make the process's first lookups and first calls at once; each must see the same.
 * Some use plain symbols, some cuGetProcAddress, some are first in cuInit. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define THREADS 32
#define CANARY UINT64_C(0xca11ab1e)

static pthread_barrier_t start;
static int answers[THREADS][4];

static void *run(void *data)
{
	int *answer = data;
	long number = (answer - answers[0]) / 4;
	void *library, *pointer = NULL;
	int (*alloc)(uint64_t, uint64_t), (*init)(uint64_t);
	int (*ask)(const char *, void **, int, uint64_t, int *);

	pthread_barrier_wait(&start);
	library = dlopen(number % 2 ? "libcuda.so.1" : "libcuda.so", RTLD_NOW);
	if (!library)
		return NULL;
	alloc = (int (*)(uint64_t, uint64_t))dlsym(library, "cuMemAlloc_v2");
	init = (int (*)(uint64_t))dlsym(library, "cuInit");
	ask = (int (*)(const char *, void **, int, uint64_t, int *))dlsym(
		library, "cuGetProcAddress_v2");
	if (number % 3 == 0)
		answer[0] = alloc(CANARY, 1);
	answer[1] = ask("cuMemAlloc", &pointer, 12000, 0, NULL);
	answer[2] = pointer == (void *)alloc;
	answer[3] = init(0);
	answer[0] = alloc(CANARY, 1);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, answers[i]))
			return 2;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		printf("%d %d %d %d\n", answers[i][0], answers[i][1], answers[i][2], answers[i][3]);
	return 0;
}
