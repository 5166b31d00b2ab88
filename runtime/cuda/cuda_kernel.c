/* cuda_kernel.c: loading cubins, checking their key, and preparing their functions. */
#include <stdlib.h>
#include <string.h>

#include "cuda_backend.h"

/* A module where the driver has no libraries (before CUDA 12.0): good in one context. */
static attn_status load_module(attn_kernel *k, const void *cubin, attn_error *err) {
    const attn_cuda_api *api = k->device->api;
    ATTN_CUDA_TRY(api, "cuCtxGetCurrent", api->ctx_get(&k->module_context), err);
    ATTN_CUDA_TRY(api, "cuModuleLoadData", api->module_load(&k->module, cubin), err);
    for (int32_t i = 0; i < k->launch.steps; i++)
        ATTN_CUDA_TRY(api, k->launch.step[i].symbol,
                      api->module_function(&k->function[i], k->module, k->launch.step[i].symbol),
                      err);
    return ATTN_OK;
}

static attn_status load_library(attn_kernel *k, const void *cubin, attn_error *err) {
    const attn_cuda_api *api = k->device->api;
    ATTN_CUDA_TRY(api, "cuLibraryLoadData",
                  api->library_load(&k->library, cubin, NULL, NULL, 0, NULL, NULL, 0), err);
    for (int32_t i = 0; i < k->launch.steps; i++) {
        CUkernel kernel;
        ATTN_CUDA_TRY(api, k->launch.step[i].symbol,
                      api->library_kernel(&kernel, k->library, k->launch.step[i].symbol), err);
        k->function[i] = (CUfunction)(void *)kernel; /* launches take either */
    }
    return ATTN_OK;
}

static attn_status check_key(attn_kernel *k, const char *want, attn_error *err) {
    const attn_cuda_api *api = k->device->api;
    CUdeviceptr address = 0;
    size_t size = 0;
    char key[ATTN_HASH_TEXT] = "";
    CUresult result = k->library ? api->library_global(&address, &size, k->library, "attn_key")
                                 : api->module_global(&address, &size, k->module, "attn_key");
    if (result != 0 || size != sizeof key)
        return attn_fail(err, ATTN_ERR_LOAD, "the binary exports no attn_key");
    ATTN_CUDA_TRY(api, "reading attn_key", api->copy_from_device(key, address, sizeof key), err);
    key[sizeof key - 1] = '\0';
    if (strcmp(key, want) != 0)
        return attn_fail(err, ATTN_ERR_LOAD, "the binary is %s, not %s", key, want);
    return ATTN_OK;
}

/* More than 48 KB of dynamic shared memory has to be asked for. */
static attn_status allow_shared(attn_kernel *k, attn_error *err) {
    const attn_cuda_api *api = k->device->api;
    int64_t limit = attn_device_prop(&k->device->info, "smem_optin");
    for (int32_t i = 0; i < k->launch.steps; i++) {
        int32_t smem = k->launch.step[i].smem;
        if (smem > limit)
            return attn_fail(err, ATTN_ERR_LAUNCH,
                             "%s wants %d bytes of shared memory, but a block has %lld",
                             k->launch.step[i].symbol, smem, (long long)limit);
        CUfunction_attribute most =
            (CUfunction_attribute)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        CUresult result = k->library ? api->kernel_set(most, smem, (CUkernel)(void *)k->function[i],
                                                       k->device->device)
                                     : api->function_set(k->function[i], most, smem);
        ATTN_CUDA_TRY(api, "setting the shared memory of a kernel", result, err);
    }
    return ATTN_OK;
}

static attn_status fill(attn_kernel *k, const attn_binary *binary, attn_error *err) {
    ATTN_TRY(attn_cuda_enter(k->device, err));
    attn_status status = k->device->api->library_load ? load_library(k, binary->data, err)
                                                      : load_module(k, binary->data, err);
    if (status != ATTN_OK)
        return err->status = status == ATTN_ERR_LAUNCH ? ATTN_ERR_LOAD : status;
    ATTN_TRY(check_key(k, binary->key, err));
    return allow_shared(k, err);
}

/* A cubin is an ELF file; the driver is not to see what cannot be one. */
static bool looks_like_cubin(const attn_binary *binary) {
    return binary->size > 64 && memcmp(binary->data, "\177ELF", 4) == 0;
}

attn_status attn_cuda_load(attn_backend_device *device, const attn_binary *binary,
                           const char *target, const attn_launch *launch, attn_kernel **kernel,
                           attn_error *err) {
    if (!attn_cuda_runs(&device->info, target))
        return attn_fail(err, ATTN_ERR_LOAD, "the binary is for %s, but the device is %s", target,
                         device->info.arch);
    if (!looks_like_cubin(binary))
        return attn_fail(err, ATTN_ERR_LOAD, "the binary is no cubin");
    attn_kernel *made = calloc(1, sizeof *made);
    if (!made)
        return attn_fail_nomem(err);
    made->device = device;
    made->launch = *launch;
    if (fill(made, binary, err) != ATTN_OK) {
        attn_cuda_unload(made);
        return err->status;
    }
    *kernel = made;
    return ATTN_OK;
}

void attn_cuda_unload(attn_kernel *kernel) {
    attn_error err;
    if (!kernel)
        return;
    const attn_cuda_api *api = kernel->device->api;
    if (kernel->library)
        (void)api->library_unload(kernel->library);
    else if (kernel->module && attn_cuda_enter(kernel->device, &err) == ATTN_OK)
        (void)api->module_unload(kernel->module);
    free(kernel);
}
