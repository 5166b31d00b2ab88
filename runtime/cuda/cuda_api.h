/* cuda_api.h: the part of the CUDA driver's interface that attntune uses, opened at run time.
 *
 * Written from the driver's documentation so that attntune builds where CUDA is not installed and
 * one binary runs with a GPU and without. Where cuda.h exists, tests/compile/cuda_declarations.c
 * includes it and then this file, with ATTN_CUDA_H defined, and checks every prototype, struct and
 * constant against it. */
#ifndef ATTN_CUDA_API_H
#define ATTN_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* Constants: name and value. */
#define ATTN_CUDA_CONSTANT_MAP(XX)                                                                 \
    XX(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)                                         \
    XX(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12)                                            \
    XX(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                                         \
    XX(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                               \
    XX(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                                                  \
    XX(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                                      \
    XX(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                                     \
    XX(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                           \
    XX(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                           \
    XX(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                               \
    XX(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                                   \
    XX(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                  \
    XX(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                         \
    XX(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                                                   \
    XX(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)                                   \
    XX(CU_STREAM_NON_BLOCKING, 1)                                                                  \
    XX(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                           \
    XX(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                     \
    XX(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                                                         \
    XX(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 7)                                                         \
    XX(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)                                                        \
    XX(CU_TENSOR_MAP_SWIZZLE_NONE, 0)                                                              \
    XX(CU_TENSOR_MAP_SWIZZLE_32B, 1)                                                               \
    XX(CU_TENSOR_MAP_SWIZZLE_64B, 2)                                                               \
    XX(CU_TENSOR_MAP_SWIZZLE_128B, 3)                                                              \
    XX(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 2)                                                      \
    XX(CU_JIT_INPUT_PTX, 1)                                                                        \
    XX(CU_JIT_INFO_LOG_BUFFER, 3)                                                                  \
    XX(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 4)                                                       \
    XX(CU_JIT_ERROR_LOG_BUFFER, 5)                                                                 \
    XX(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                                                      \
    XX(CU_JIT_LOG_VERBOSE, 12)

#ifndef ATTN_CUDA_H
enum {
#define XX(name, value) name = value,
    ATTN_CUDA_CONSTANT_MAP(XX)
#undef XX
};
/* Enums of the driver are unsigned: none has a negative value. */
typedef unsigned int CUresult, CUdevice_attribute, CUfunction_attribute, CUstreamCaptureStatus,
    CUstreamCaptureMode, CUlaunchAttributeID, CUtensorMapDataType, CUtensorMapInterleave,
    CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill, CUjitInputType,
    CUjit_option, CUlibraryOption;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;
typedef struct CUtensorMap_st {
    _Alignas(128) uint64_t opaque[16];
} CUtensorMap;
typedef union CUlaunchAttributeValue_union {
    char pad[64];
    struct {
        unsigned int x, y, z;
    } clusterDim;
    int programmaticStreamSerializationAllowed;
} CUlaunchAttributeValue;
typedef struct CUlaunchAttribute_st {
    CUlaunchAttributeID id;
    char pad[8 - sizeof(CUlaunchAttributeID)];
    CUlaunchAttributeValue value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig_st {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;
#endif

/* Functions: field, symbol in libcuda, arguments; all return CUresult. OPTIONAL ones are NULL in
 * drivers that lack them: cuLibrary... came with CUDA 12.0, clusters and tensor maps with 11.8. */
#define ATTN_CUDA_FUNCTION_MAP(REQUIRED, OPTIONAL)                                                 \
    REQUIRED(init, cuInit, (unsigned int))                                                         \
    REQUIRED(driver_version, cuDriverGetVersion, (int *))                                          \
    REQUIRED(error_name, cuGetErrorName, (CUresult, const char **))                                \
    REQUIRED(error_string, cuGetErrorString, (CUresult, const char **))                            \
    REQUIRED(device_count, cuDeviceGetCount, (int *))                                              \
    REQUIRED(device_get, cuDeviceGet, (CUdevice *, int))                                           \
    REQUIRED(device_name, cuDeviceGetName, (char *, int, CUdevice))                                \
    REQUIRED(device_uuid, cuDeviceGetUuid, (CUuuid *, CUdevice))                                   \
    REQUIRED(device_memory, cuDeviceTotalMem_v2, (size_t *, CUdevice))                             \
    REQUIRED(device_attribute, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))        \
    REQUIRED(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                    \
    REQUIRED(primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice))                            \
    REQUIRED(ctx_get, cuCtxGetCurrent, (CUcontext *))                                              \
    REQUIRED(ctx_set, cuCtxSetCurrent, (CUcontext))                                                \
    REQUIRED(ctx_device, cuCtxGetDevice, (CUdevice *))                                             \
    REQUIRED(ctx_sync, cuCtxSynchronize, (void))                                                   \
    REQUIRED(mem_alloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                    \
    REQUIRED(mem_free, cuMemFree_v2, (CUdeviceptr))                                                \
    REQUIRED(copy_to_device, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                 \
    REQUIRED(copy_from_device, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                     \
    REQUIRED(memset_async, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))        \
    REQUIRED(stream_create, cuStreamCreate, (CUstream *, unsigned int))                            \
    REQUIRED(stream_destroy, cuStreamDestroy_v2, (CUstream))                                       \
    REQUIRED(stream_sync, cuStreamSynchronize, (CUstream))                                         \
    REQUIRED(stream_capturing, cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *))           \
    REQUIRED(capture_begin, cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))              \
    REQUIRED(capture_end, cuStreamEndCapture, (CUstream, CUgraph *))                               \
    REQUIRED(graph_destroy, cuGraphDestroy, (CUgraph))                                             \
    REQUIRED(graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec))                                \
    REQUIRED(graph_launch, cuGraphLaunch, (CUgraphExec, CUstream))                                 \
    REQUIRED(event_create, cuEventCreate, (CUevent *, unsigned int))                               \
    REQUIRED(event_destroy, cuEventDestroy_v2, (CUevent))                                          \
    REQUIRED(event_record, cuEventRecord, (CUevent, CUstream))                                     \
    REQUIRED(event_sync, cuEventSynchronize, (CUevent))                                            \
    REQUIRED(event_elapsed, cuEventElapsedTime, (float *, CUevent, CUevent))                       \
    REQUIRED(module_load, cuModuleLoadData, (CUmodule *, const void *))                            \
    REQUIRED(module_unload, cuModuleUnload, (CUmodule))                                            \
    REQUIRED(module_function, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))         \
    REQUIRED(module_global, cuModuleGetGlobal_v2,                                                  \
             (CUdeviceptr *, size_t *, CUmodule, const char *))                                    \
    REQUIRED(function_set, cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int))            \
    REQUIRED(launch, cuLaunchKernel,                                                               \
             (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,    \
              unsigned int, unsigned int, CUstream, void **, void **))                             \
    REQUIRED(link_create, cuLinkCreate_v2, (unsigned int, CUjit_option *, void **, CUlinkState *)) \
    REQUIRED(link_add, cuLinkAddData_v2,                                                           \
             (CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned int,             \
              CUjit_option *, void **))                                                            \
    REQUIRED(link_complete, cuLinkComplete, (CUlinkState, void **, size_t *))                      \
    REQUIRED(link_destroy, cuLinkDestroy, (CUlinkState))                                           \
    OPTIONAL(graph_instantiate, cuGraphInstantiateWithFlags,                                       \
             (CUgraphExec *, CUgraph, unsigned long long))                                         \
    OPTIONAL(launch_ex, cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **))  \
    OPTIONAL(library_load, cuLibraryLoadData,                                                      \
             (CUlibrary *, const void *, CUjit_option *, void **, unsigned int, CUlibraryOption *, \
              void **, unsigned int))                                                              \
    OPTIONAL(library_unload, cuLibraryUnload, (CUlibrary))                                         \
    OPTIONAL(library_kernel, cuLibraryGetKernel, (CUkernel *, CUlibrary, const char *))            \
    OPTIONAL(library_global, cuLibraryGetGlobal,                                                   \
             (CUdeviceptr *, size_t *, CUlibrary, const char *))                                   \
    OPTIONAL(kernel_set, cuKernelSetAttribute, (CUfunction_attribute, int, CUkernel, CUdevice))    \
    OPTIONAL(tensor_map_tiled, cuTensorMapEncodeTiled,                                             \
             (CUtensorMap *, CUtensorMapDataType, uint32_t, void *, const uint64_t *,              \
              const uint64_t *, const uint32_t *, const uint32_t *, CUtensorMapInterleave,         \
              CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill))

typedef struct attn_cuda_api {
#define XX(field, symbol, arguments) CUresult(*field) arguments;
    ATTN_CUDA_FUNCTION_MAP(XX, XX)
#undef XX
} attn_cuda_api;

/* The driver, opened and initialised once a process. ERR_NO_TOOL says what is missing: the driver
 * itself, or a function of it (it is too old). ERR_FORKED in the child of a fork that came after.
 */
attn_status attn_cuda_open(const attn_cuda_api **api, attn_error *err);

/* Fails with the driver's words for a result that is not 0: "cuX: CUDA_ERROR_... (...)". The status
 * is ERR_NOMEM, ERR_DEVICE (the context is lost) or `refused` (all others). */
attn_status attn_cuda_fail(const attn_cuda_api *api, CUresult result, attn_status refused,
                           const char *what, attn_error *err);

#define ATTN_CUDA_TRY(api, what, result, err)                                                      \
    do {                                                                                           \
        CUresult cuda_result_ = (result);                                                          \
        if (cuda_result_ != 0)                                                                     \
            return attn_cuda_fail((api), cuda_result_, ATTN_ERR_LAUNCH, (what), (err));            \
    } while (0)

#endif
