/* nvrtc_api.h: the compilers: NVRTC for CUDA C, nvJitLink for PTX. Opened when first needed;
 * prototypes are checked against nvrtc.h and nvJitLink.h as cuda_api.h's are. */
#ifndef ATTN_NVRTC_API_H
#define ATTN_NVRTC_API_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifndef ATTN_CUDA_H
typedef unsigned int nvrtcResult, nvJitLinkResult, nvJitLinkInputType;
typedef struct _nvrtcProgram *nvrtcProgram;
typedef struct nvJitLink *nvJitLinkHandle;
#endif

enum { ATTN_NVJITLINK_PTX = 2 }; /* NVJITLINK_INPUT_PTX */

#define ATTN_NVRTC_FUNCTION_MAP(XX)                                                                \
    XX(nvrtcResult, version, nvrtcVersion, (int *, int *))                                         \
    XX(nvrtcResult, create, nvrtcCreateProgram,                                                    \
       (nvrtcProgram *, const char *, const char *, int, const char *const *,                      \
        const char *const *))                                                                      \
    XX(nvrtcResult, destroy, nvrtcDestroyProgram, (nvrtcProgram *))                                \
    XX(nvrtcResult, compile, nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))        \
    XX(nvrtcResult, cubin_size, nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                       \
    XX(nvrtcResult, cubin, nvrtcGetCUBIN, (nvrtcProgram, char *))                                  \
    XX(nvrtcResult, log_size, nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                    \
    XX(nvrtcResult, log, nvrtcGetProgramLog, (nvrtcProgram, char *))

#define ATTN_NVJITLINK_FUNCTION_MAP(XX)                                                            \
    XX(nvJitLinkResult, version, nvJitLinkVersion, (unsigned int *, unsigned int *))               \
    XX(nvJitLinkResult, create, nvJitLinkCreate, (nvJitLinkHandle *, uint32_t, const char **))     \
    XX(nvJitLinkResult, destroy, nvJitLinkDestroy, (nvJitLinkHandle *))                            \
    XX(nvJitLinkResult, add, nvJitLinkAddData,                                                     \
       (nvJitLinkHandle, nvJitLinkInputType, const void *, size_t, const char *))                  \
    XX(nvJitLinkResult, complete, nvJitLinkComplete, (nvJitLinkHandle))                            \
    XX(nvJitLinkResult, cubin_size, nvJitLinkGetLinkedCubinSize, (nvJitLinkHandle, size_t *))      \
    XX(nvJitLinkResult, cubin, nvJitLinkGetLinkedCubin, (nvJitLinkHandle, void *))                 \
    XX(nvJitLinkResult, error_size, nvJitLinkGetErrorLogSize, (nvJitLinkHandle, size_t *))         \
    XX(nvJitLinkResult, error_log, nvJitLinkGetErrorLog, (nvJitLinkHandle, char *))                \
    XX(nvJitLinkResult, info_size, nvJitLinkGetInfoLogSize, (nvJitLinkHandle, size_t *))           \
    XX(nvJitLinkResult, info_log, nvJitLinkGetInfoLog, (nvJitLinkHandle, char *))

typedef struct attn_nvrtc_api {
#define XX(result, field, symbol, arguments) result(*field) arguments;
    ATTN_NVRTC_FUNCTION_MAP(XX)
#undef XX
} attn_nvrtc_api;

typedef struct attn_nvjitlink_api {
#define XX(result, field, symbol, arguments) result(*field) arguments;
    ATTN_NVJITLINK_FUNCTION_MAP(XX)
#undef XX
} attn_nvjitlink_api;

/* ERR_NO_TOOL says what is missing and how to get it. */
attn_status attn_nvrtc_open(const attn_nvrtc_api **api, attn_error *err);
attn_status attn_nvjitlink_open(const attn_nvjitlink_api **api, attn_error *err);

#endif
