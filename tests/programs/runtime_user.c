/* A program or plugin that is linked to one of the tiny runtimes. */
#include <stdio.h>

int cudaSetDevice(int device);
__attribute__((visibility("default"))) int bound_report(void);

int bound_report(void)
{
	printf("user of runtime %d: %d\n", RUNTIME_NUMBER, cudaSetDevice(0));
	printf("user of runtime %d: %d\n", RUNTIME_NUMBER, cudaSetDevice(0));
	return 0;
}
