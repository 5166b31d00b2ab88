/* cuda_declarations.c: our prototypes, structs and constants against the toolkit's own headers.
 * What is wrong does not compile, so there is nothing to run. */
#define ATTN_CUDA_H
#include <cuda.h>
#include <nvJitLink.h>
#include <nvrtc.h>

#include "cuda_api.h"
#include "nvrtc_api.h"

#define CHECK_FUNCTION(field, symbol, arguments)                                                   \
    __attribute__((unused)) static CUresult(*const check_cuda_##field) arguments = symbol;
ATTN_CUDA_FUNCTION_MAP(CHECK_FUNCTION, CHECK_FUNCTION)

#define CHECK_NVRTC(result, field, symbol, arguments)                                              \
    __attribute__((unused)) static result(*const check_nvrtc_##field) arguments = symbol;
ATTN_NVRTC_FUNCTION_MAP(CHECK_NVRTC)

#define CHECK_LINK(result, field, symbol, arguments)                                               \
    __attribute__((unused)) static result(*const check_link_##field) arguments = symbol;
ATTN_NVJITLINK_FUNCTION_MAP(CHECK_LINK)

#define CHECK_CONSTANT(name, value) _Static_assert((int)(name) == (value), #name);
ATTN_CUDA_CONSTANT_MAP(CHECK_CONSTANT)
_Static_assert((int)NVJITLINK_INPUT_PTX == (int)ATTN_NVJITLINK_PTX, "NVJITLINK_INPUT_PTX");

/* Sizes and offsets that cuda_api.h gives its own copies of these structs. */
_Static_assert(sizeof(CUtensorMap) == 128, "CUtensorMap");
_Static_assert(sizeof(CUlaunchAttribute) == 72, "CUlaunchAttribute");
_Static_assert(offsetof(CUlaunchAttribute, value) == 8, "CUlaunchAttribute.value");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");
_Static_assert(offsetof(CUlaunchConfig, hStream) == 32, "CUlaunchConfig.hStream");
_Static_assert(offsetof(CUlaunchConfig, attrs) == 40, "CUlaunchConfig.attrs");
_Static_assert(sizeof(CUuuid) == 16 && sizeof(CUresult) == 4, "CUuuid, CUresult");
