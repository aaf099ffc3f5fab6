/* The few types and codes of the CUDA driver API that Hearth itself speaks (CUDA Driver API,
 * "Data types used by CUDA driver"), so that no CUDA header is needed to build. */
#pragma once

#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;

#define CUDA_SUCCESS 0
#define CUDA_ERROR_INVALID_VALUE 1
#define CUDA_ERROR_OUT_OF_MEMORY 2
#define CUDA_ERROR_NOT_INITIALIZED 3
#define CUDA_ERROR_STUB_LIBRARY 34
#define CUDA_ERROR_INVALID_CONTEXT 201
#define CUDA_ERROR_NOT_FOUND 500
#define CUDA_ERROR_CONTEXT_IS_DESTROYED 709

/* CUlibraryOption: the caller keeps the image as long as the library lives. */
#define CU_LIBRARY_BINARY_IS_PRESERVED 1

/* cuGetProcAddress flags (CUdriverProcAddress_flags). */
#define CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM 2u

/* CUdevice_attribute. */
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR 75
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR 76

/* What the code pointer of cuLibraryLoadData and cuModuleLoadData* can lead to. */
#define FATBIN_WRAPPER_MAGIC 0x466243b1u
#define FATBIN_WRAPPER_VERSION 1 /* the only one that leads to one fat binary alone */
#define FATBIN_MAGIC 0xba55ed50u
#define FATBIN_KIND_PTX 1
#define FATBIN_KIND_ELF 2

struct fatbin_wrapper {
	uint32_t magic, version;
	const void *data; /* a fat binary */
	const void *more;
};

struct fatbin_header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* of the entries, after the header */
};

/* As CUDA 13.0 writes it (read from the libraries that it ships); the architecture is there where
 * header_size covers it. */
struct fatbin_entry {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t size; /* of the payload, padded */
	uint32_t unused[3];
	uint32_t architecture; /* 90: sm_90 and its variants */
};
