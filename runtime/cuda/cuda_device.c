/* cuda_device.c: CUDA devices as a backend: opening, memory, copies, streams; and the table. */
#include <stdlib.h>
#include <string.h>

#include "cuda_backend.h"

static attn_status cuda_count(int32_t *count, attn_error *err) {
    const attn_cuda_api *api;
    int n = 0;
    *count = 0;
    if (attn_cuda_open(&api, err) != ATTN_OK) {
        if (err->status == ATTN_ERR_FORKED)
            return err->status;
        err->status = ATTN_OK; /* no driver, or no device: none of these here; the line says why */
        return ATTN_OK;
    }
    ATTN_CUDA_TRY(api, "cuDeviceGetCount", api->device_count(&n), err);
    *count = n;
    return ATTN_OK;
}

static void cuda_close(attn_backend_device *device) {
    if (!device)
        return;
    const attn_cuda_api *api = device->api;
    if (device->context) {
        (void)api->ctx_set(device->context);
        if (device->begin)
            (void)api->event_destroy(device->begin);
        if (device->end)
            (void)api->event_destroy(device->end);
        if (device->stream)
            (void)api->stream_destroy(device->stream);
        (void)api->ctx_set(NULL);
        (void)api->primary_release(device->device);
    }
    attn_nvml_close(device->nvml);
    free(device);
}

static attn_status make_own_context(attn_backend_device *device, attn_error *err) {
    const attn_cuda_api *api = device->api;
    ATTN_CUDA_TRY(api, "cuDevicePrimaryCtxRetain",
                  api->primary_retain(&device->context, device->device), err);
    ATTN_TRY(attn_cuda_enter(device, err));
    ATTN_CUDA_TRY(api, "cuStreamCreate",
                  api->stream_create(&device->stream, CU_STREAM_NON_BLOCKING), err);
    ATTN_CUDA_TRY(api, "cuEventCreate", api->event_create(&device->begin, 0), err);
    ATTN_CUDA_TRY(api, "cuEventCreate", api->event_create(&device->end, 0), err);
    device->nvml = attn_nvml_open(device->info.lock);
    return ATTN_OK;
}

static attn_status fill(attn_backend_device *device, attn_error *err) {
    ATTN_TRY(attn_cuda_open(&device->api, err));
    ATTN_CUDA_TRY(device->api, "cuDeviceGet",
                  device->api->device_get(&device->device, device->ordinal), err);
    ATTN_TRY(attn_cuda_info(device, err));
    return device->own_context ? make_own_context(device, err) : ATTN_OK;
}

static attn_status cuda_open(int32_t ordinal, const attn_device_options *options,
                             attn_backend_device **device, attn_error *err) {
    attn_backend_device *made = calloc(1, sizeof *made);
    if (!made)
        return attn_fail_nomem(err);
    made->ordinal = ordinal;
    made->own_context = options->own_context;
    if (fill(made, err) != ATTN_OK) {
        cuda_close(made);
        return err->status;
    }
    *device = made;
    return ATTN_OK;
}

static void cuda_info(const attn_backend_device *device, attn_device_info *info) {
    *info = device->info;
}

attn_status attn_cuda_enter(const attn_backend_device *device, attn_error *err) {
    const attn_cuda_api *api;
    CUdevice current = -1;
    ATTN_TRY(attn_cuda_open(&api, err)); /* tells a fork */
    if (device->own_context) {
        ATTN_CUDA_TRY(api, "cuCtxSetCurrent", api->ctx_set(device->context), err);
        return ATTN_OK;
    }
    if (api->ctx_device(&current) != 0)
        return attn_fail(err, ATTN_ERR_DEVICE,
                         "no CUDA context is current in this thread; make the device's current");
    if (current != device->device)
        return attn_fail(err, ATTN_ERR_DEVICE,
                         "the current CUDA context is on device %d, but the call is for device %d",
                         current, device->device);
    return ATTN_OK;
}

static int32_t cuda_workers(const attn_backend_device *device) {
    (void)device;
    return 0;
}

static attn_status cuda_sync(attn_backend_device *device, attn_error *err) {
    ATTN_TRY(attn_cuda_enter(device, err));
    ATTN_CUDA_TRY(device->api, "waiting for the device", device->api->ctx_sync(), err);
    return ATTN_OK;
}

static attn_status cuda_alloc(attn_backend_device *device, size_t size, void **memory,
                              attn_error *err) {
    CUdeviceptr address = 0;
    ATTN_TRY(attn_cuda_enter(device, err));
    ATTN_CUDA_TRY(device->api, "cuMemAlloc", device->api->mem_alloc(&address, size ? size : 1),
                  err);
    *memory = (void *)(uintptr_t)address;
    return ATTN_OK;
}

static void cuda_free(attn_backend_device *device, void *memory) {
    attn_error err;
    if (memory && attn_cuda_enter(device, &err) == ATTN_OK)
        (void)device->api->mem_free((CUdeviceptr)(uintptr_t)memory);
}

static attn_status cuda_copy(attn_backend_device *device, void *to, const void *from, size_t size,
                             attn_copy direction, attn_error *err) {
    ATTN_TRY(attn_cuda_enter(device, err));
    if (size == 0)
        return ATTN_OK;
    CUresult result = direction == ATTN_COPY_TO_DEVICE
                          ? device->api->copy_to_device((CUdeviceptr)(uintptr_t)to, from, size)
                          : device->api->copy_from_device(to, (CUdeviceptr)(uintptr_t)from, size);
    ATTN_CUDA_TRY(device->api, "cuMemcpy", result, err);
    return ATTN_OK;
}

static void cuda_state(attn_backend_device *device, attn_device_state *state) {
    attn_nvml_state(device->nvml, state);
}

static bool cuda_capturing(attn_backend_device *device, void *stream) {
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)CU_STREAM_CAPTURE_STATUS_NONE;
    return device->api->stream_capturing(stream, &status) == 0 &&
           status != (CUstreamCaptureStatus)CU_STREAM_CAPTURE_STATUS_NONE;
}

static attn_status cuda_stream_create(attn_backend_device *device, void **stream, attn_error *err) {
    CUstream made;
    ATTN_TRY(attn_cuda_enter(device, err));
    ATTN_CUDA_TRY(device->api, "cuStreamCreate",
                  device->api->stream_create(&made, CU_STREAM_NON_BLOCKING), err);
    *stream = made;
    return ATTN_OK;
}

static void cuda_stream_destroy(attn_backend_device *device, void *stream) {
    attn_error err;
    if (stream && attn_cuda_enter(device, &err) == ATTN_OK)
        (void)device->api->stream_destroy(stream);
}

const attn_backend attn_backend_cuda = {
    .name = "cuda",
    .id = ATTN_BACKEND_CUDA,
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .toolchain = attn_cuda_toolchain,
    .target = attn_cuda_target,
    .runs = attn_cuda_runs,
    .compile = attn_cuda_compile,
    .command = attn_cuda_command,
    .load = attn_cuda_load,
    .unload = attn_cuda_unload,
    .workers = cuda_workers,
    .run = attn_cuda_run,
    .sync = cuda_sync,
    .time = attn_cuda_time,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = cuda_copy,
    .state = cuda_state,
    .capturing = cuda_capturing,
    .fits = attn_cuda_fits,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
};
