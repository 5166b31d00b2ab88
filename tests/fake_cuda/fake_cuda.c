/* fake_cuda.c: see fake_cuda.h. */
#include "fake_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "attn_abi.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT fake_cuda_state fake_cuda;

/* Declares and begins a function of the driver. */
#define CU(name, ...)                                                                              \
    EXPORT CUresult name(__VA_ARGS__);                                                             \
    CUresult name(__VA_ARGS__)

static char place[8]; /* addresses that stand for contexts, streams, events ... */

CU(cuInit, unsigned int flags) {
    fake_cuda.current = NULL;
    return flags;
}
CU(cuDriverGetVersion, int *version) {
    *version = 12080;
    return 0;
}
CU(cuGetErrorName, CUresult result, const char **name) {
    *name = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
    return 0;
}
CU(cuGetErrorString, CUresult result, const char **text) {
    *text = result == 700 ? "an illegal memory access was encountered" : "fake";
    return 0;
}
CU(cuDeviceGetCount, int *count) {
    *count = 2;
    return 0;
}
CU(cuDeviceGet, CUdevice *device, int ordinal) {
    *device = ordinal;
    return 0;
}
CU(cuDeviceGetName, char *name, int size, CUdevice device) {
    (void)device;
    strncpy(name, "NVIDIA Fake", (size_t)size);
    return 0;
}
CU(cuDeviceGetUuid, CUuuid *uuid, CUdevice device) {
    memset(uuid, device + 1, sizeof *uuid);
    return 0;
}
CU(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device) {
    (void)device;
    *bytes = (size_t)80 << 30;
    return 0;
}
CU(cuDeviceGetAttribute, int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = 232448;
        break;
    default:
        *value = 0;
    }
    return 0;
}
CU(cuDevicePrimaryCtxRetain, CUcontext *context, CUdevice device) {
    *context = (CUcontext)(void *)&place[device];
    return 0;
}
CU(cuDevicePrimaryCtxRelease_v2, CUdevice device) {
    (void)device;
    return 0;
}
CU(cuCtxGetCurrent, CUcontext *context) {
    *context = fake_cuda.current;
    return 0;
}
CU(cuCtxSetCurrent, CUcontext context) {
    fake_cuda.current = context;
    fake_cuda.current_device = (char *)(void *)context == &place[1];
    return 0;
}
CU(cuCtxGetDevice, CUdevice *device) {
    *device = fake_cuda.current_device;
    return fake_cuda.current ? 0 : 201;
}
CU(cuCtxSynchronize, void) {
    return fake_cuda.result;
}
CU(cuMemAlloc_v2, CUdeviceptr *address, size_t size) {
    if (size > (size_t)80 << 30)
        return 2;
    *address = (CUdeviceptr)(uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
    return *address ? 0 : 2;
}
CU(cuMemFree_v2, CUdeviceptr address) {
    free((void *)(uintptr_t)address);
    return 0;
}
CU(cuMemcpyHtoD_v2, CUdeviceptr to, const void *from, size_t size) {
    memcpy((void *)(uintptr_t)to, from, size);
    return 0;
}
CU(cuMemcpyDtoH_v2, void *to, CUdeviceptr from, size_t size) {
    memcpy(to, (void *)(uintptr_t)from, size);
    return 0;
}
CU(cuMemsetD8Async, CUdeviceptr to, unsigned char byte, size_t size, CUstream stream) {
    (void)stream;
    memset((void *)(uintptr_t)to, byte, size);
    fake_cuda.clears += fake_cuda.launches == 0;
    fake_cuda.cleared = size;
    return 0;
}
CU(cuStreamCreate, CUstream *stream, unsigned int flags) {
    (void)flags;
    *stream = (CUstream)(void *)&place[2];
    return 0;
}
CU(cuStreamDestroy_v2, CUstream stream) {
    (void)stream;
    return 0;
}
CU(cuStreamSynchronize, CUstream stream) {
    (void)stream;
    return fake_cuda.result;
}
CU(cuStreamIsCapturing, CUstream stream, CUstreamCaptureStatus *status) {
    *status = (void *)stream == &place[7];
    return 0;
}
CU(cuStreamBeginCapture_v2, CUstream stream, CUstreamCaptureMode mode) {
    (void)stream;
    (void)mode;
    return 0;
}
CU(cuStreamEndCapture, CUstream stream, CUgraph *graph) {
    (void)stream;
    *graph = (CUgraph)(void *)&place[3];
    return 0;
}
CU(cuGraphDestroy, CUgraph graph) {
    (void)graph;
    return 0;
}
CU(cuGraphExecDestroy, CUgraphExec graph) {
    (void)graph;
    return 0;
}
CU(cuGraphLaunch, CUgraphExec graph, CUstream stream) {
    (void)graph;
    (void)stream;
    fake_cuda.replays++;
    return fake_cuda.result;
}
CU(cuGraphInstantiateWithFlags, CUgraphExec *made, CUgraph graph, unsigned long long flags) {
    (void)graph;
    (void)flags;
    *made = (CUgraphExec)(void *)&place[4];
    return 0;
}
CU(cuEventCreate, CUevent *event, unsigned int flags) {
    (void)flags;
    *event = (CUevent)(void *)&place[5];
    return 0;
}
CU(cuEventDestroy_v2, CUevent event) {
    (void)event;
    return 0;
}
CU(cuEventRecord, CUevent event, CUstream stream) {
    (void)event;
    (void)stream;
    return 0;
}
CU(cuEventSynchronize, CUevent event) {
    (void)event;
    return fake_cuda.result;
}
CU(cuEventElapsedTime, float *ms, CUevent begin, CUevent end) {
    (void)begin;
    (void)end;
    *ms = fake_cuda.elapsed_ms;
    return 0;
}

static CUresult find_key(CUdeviceptr *address, size_t *size) {
    *address = (CUdeviceptr)(uintptr_t)fake_cuda.key;
    *size = sizeof fake_cuda.key;
    return fake_cuda.key[0] ? 0 : 500;
}

CU(cuModuleLoadData, CUmodule *module, const void *image) {
    *module = (CUmodule)(void *)&place[6];
    fake_cuda.loaded++;
    (void)image;
    return 0;
}
CU(cuModuleUnload, CUmodule module) {
    (void)module;
    fake_cuda.loaded--;
    return 0;
}
CU(cuModuleGetFunction, CUfunction *function, CUmodule module, const char *name) {
    (void)module;
    *function = (CUfunction)(void *)&place[6];
    return strcmp(name, "absent") == 0 ? 500 : 0;
}
CU(cuModuleGetGlobal_v2, CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
    (void)module;
    (void)name;
    return find_key(address, size);
}
CU(cuFuncSetAttribute, CUfunction function, CUfunction_attribute attribute, int value) {
    (void)function;
    (void)attribute;
    fake_cuda.smem_allowed = value;
    return 0;
}

static CUresult note(const fake_launch *launch, void **params) {
    if (fake_cuda.launches < FAKE_LAUNCHES) {
        fake_launch *to = &fake_cuda.launch[fake_cuda.launches];
        *to = *launch;
        to->tiles = ((const attn_forward_args *)params[0])->tiles;
    }
    fake_cuda.launches++;
    return fake_cuda.result;
}

/* The driver's own signature. NOLINTNEXTLINE(readability-function-size) */
CU(cuLaunchKernel, CUfunction function, unsigned int x, unsigned int y, unsigned int z,
   unsigned int bx, unsigned int by, unsigned int bz, unsigned int smem, CUstream stream,
   void **params, void **extra) {
    fake_launch launch = {.blocks = x * y * z, .threads = bx * by * bz, .smem = smem, .cluster = 1};
    (void)function;
    launch.stream = stream;
    return extra ? 1 : note(&launch, params);
}
CU(cuLinkCreate_v2, unsigned int n, CUjit_option *options, void **values, CUlinkState *state) {
    (void)n;
    (void)options;
    (void)values;
    (void)state;
    return 801;
}
CU(cuLinkAddData_v2, CUlinkState state, CUjitInputType type, void *data, size_t size,
   const char *name, unsigned int n, CUjit_option *options, void **values) {
    (void)state;
    (void)type;
    (void)data;
    (void)size;
    (void)name;
    (void)n;
    (void)options;
    (void)values;
    return 801;
}
CU(cuLinkComplete, CUlinkState state, void **cubin, size_t *size) {
    (void)state;
    (void)cubin;
    (void)size;
    return 801;
}
CU(cuLinkDestroy, CUlinkState state) {
    (void)state;
    return 0;
}

#ifndef ATTN_FAKE_OLD
CU(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction function, void **params,
   void **extra) {
    fake_launch launch = {.blocks = config->gridDimX * config->gridDimY * config->gridDimZ,
                          .threads = config->blockDimX * config->blockDimY * config->blockDimZ,
                          .smem = config->sharedMemBytes,
                          .cluster = 1};
    (void)function;
    launch.stream = config->hStream;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            launch.cluster = a->value.clusterDim.x;
        else if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            launch.pdl = a->value.programmaticStreamSerializationAllowed;
    }
    return extra ? 1 : note(&launch, params);
}
CU(cuLibraryLoadData, CUlibrary *library, const void *image, CUjit_option *options, void **values,
   unsigned int n, CUlibraryOption *library_options, void **library_values, unsigned int m) {
    (void)image;
    (void)options;
    (void)values;
    (void)library_options;
    (void)library_values;
    *library = (CUlibrary)(void *)&place[6];
    fake_cuda.loaded++;
    return n + m;
}
CU(cuLibraryUnload, CUlibrary library) {
    (void)library;
    fake_cuda.loaded--;
    return 0;
}
CU(cuLibraryGetKernel, CUkernel *kernel, CUlibrary library, const char *name) {
    (void)library;
    *kernel = (CUkernel)(void *)&place[6];
    return strcmp(name, "absent") == 0 ? 500 : 0;
}
CU(cuLibraryGetGlobal, CUdeviceptr *address, size_t *size, CUlibrary library, const char *name) {
    (void)library;
    (void)name;
    return find_key(address, size);
}
CU(cuKernelSetAttribute, CUfunction_attribute attribute, int value, CUkernel kernel,
   CUdevice device) {
    (void)attribute;
    (void)kernel;
    (void)device;
    fake_cuda.smem_allowed = value;
    return 0;
}
/* The driver's own signature. NOLINTNEXTLINE(readability-function-size) */
CU(cuTensorMapEncodeTiled, CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *data,
   const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
   CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
   CUtensorMapFloatOOBfill fill) {
    (void)type;
    (void)data;
    (void)steps;
    (void)interleave;
    (void)swizzle;
    (void)promotion;
    (void)fill;
    memset(map, 0, sizeof *map);
    fake_cuda.maps++;
    for (uint32_t i = 0; i + 1 < rank; i++) /* as the driver does */
        if (strides[i] == 0 || strides[i] % 16)
            return 1;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] == 0 || box[i] == 0 || box[i] > 256)
            return 1;
    return 0;
}
#endif
