/* Kernels and functions (CUDA Driver API, "Library Management", "Module Management"). Runs in the
 * user's program on any thread. Seen only while this run's images and kernels are learned; then the
 * entries lead straight to the driver. */
#include "preload/handlers.h"
#include "preload/record_images.h"
#include "preload/route.h"

/* A slot may have come back to us since: for a further device. */
static bool is_seen(enum driver_row row)
{
	if (record_images_takes_kernels())
		return true;
	route_straight(row);
	return false;
}

CUresult handle_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	CUresult (*real)(CUkernel *, CUlibrary, const char *) = (CUresult(*)(
		CUkernel *, CUlibrary, const char *))route_real(ROW_cuLibraryGetKernel);
	CUresult rc = real(kernel, library, name);

	if (is_seen(ROW_cuLibraryGetKernel) && rc == CUDA_SUCCESS)
		record_images_kernel(library, *kernel, name, false);
	return rc;
}

CUresult handle_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	CUresult (*real)(CUfunction *, CUmodule, const char *) = (CUresult(*)(
		CUfunction *, CUmodule, const char *))route_real(ROW_cuModuleGetFunction);
	CUresult rc = real(function, module, name);

	if (is_seen(ROW_cuModuleGetFunction) && rc == CUDA_SUCCESS)
		record_images_kernel(module, *function, name, true);
	return rc;
}

CUresult handle_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	CUresult (*real)(CUfunction *, CUkernel) =
		(CUresult(*)(CUfunction *, CUkernel))route_real(ROW_cuKernelGetFunction);
	CUresult rc = real(function, kernel);

	if (is_seen(ROW_cuKernelGetFunction) && rc == CUDA_SUCCESS)
		record_images_function(kernel);
	return rc;
}
