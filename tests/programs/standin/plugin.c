/* A shared library with a stand-in runtime of its own inside, as cuBLAS and cuDNN have one. */
#include "work.h"

__attribute__((visibility("default"))) int standin_plugin_run(int device);

int standin_plugin_run(int device)
{
	return work_run("plugin", device);
}
