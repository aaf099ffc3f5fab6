/* A program linked to one runtime that opens a plugin linked to another. */
#include <dlfcn.h>
#include <stdio.h>

int cudaSetDevice(int device);

int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[1], RTLD_NOW);
	int (*report)(void) = plugin ? (int (*)(void))dlsym(plugin, "bound_report") : NULL;

	if (argc < 2 || !report)
		return 2;
	printf("main: %d\n", cudaSetDevice(0));
	report();
	printf("main: %d\n", cudaSetDevice(0));
	return 0;
}
