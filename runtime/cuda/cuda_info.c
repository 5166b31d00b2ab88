/* cuda_info.c: what a CUDA device is, as properties. */
#include <stdio.h>
#include <string.h>

#include "cuda_backend.h"

/* Properties that are one attribute of the driver each. */
static const struct {
    const char *name;
    int attribute;
} ATTRIBUTES[] = {
    {"sms", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {"smem_block", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {"smem_optin", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {"smem_per_sm", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {"regs_per_block", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {"regs_per_sm", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {"threads_per_sm", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {"l2", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {"clock_khz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    {"memory_clock_khz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
};

static int attribute(const attn_backend_device *device, int which) {
    int value = 0;
    (void)device->api->device_attribute(&value, (CUdevice_attribute)which, device->device);
    return value;
}

/* Architectures whose own instructions need the 'a' target. */
static const char *arch_suffix(int cc) {
    return cc == 90 || cc == 100 || cc == 103 ? "a" : "";
}

static void uuid_text(const CUuuid *uuid, char text[64]) {
    int n = snprintf(text, 64, "GPU-");
    for (int i = 0; i < 16; i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        n += snprintf(text + n, 64 - (size_t)n, "%s%02x", dash, (unsigned char)uuid->bytes[i]);
    }
}

attn_status attn_cuda_info(attn_backend_device *device, attn_error *err) {
    const attn_cuda_api *api = device->api;
    attn_device_info *info = &device->info;
    CUuuid uuid;
    size_t memory = 0;
    int version = 0;
    char driver[64] = "";
    memset(info, 0, sizeof *info);
    ATTN_CUDA_TRY(api, "cuDeviceGetName",
                  api->device_name(info->name, sizeof info->name, device->device), err);
    ATTN_CUDA_TRY(api, "cuDeviceGetUuid", api->device_uuid(&uuid, device->device), err);
    ATTN_CUDA_TRY(api, "cuDeviceTotalMem", api->device_memory(&memory, device->device), err);
    ATTN_CUDA_TRY(api, "cuDriverGetVersion", api->driver_version(&version), err);
    int cc = 10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
             attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    (void)snprintf(info->backend, sizeof info->backend, "cuda");
    (void)snprintf(info->arch, sizeof info->arch, "sm_%d%s", cc, arch_suffix(cc));
    uuid_text(&uuid, info->lock);
    device->sms = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    (void)snprintf(info->identity, sizeof info->identity, "%s cc %d.%d, %d SMs, %zu GiB",
                   info->name, cc / 10, cc % 10, device->sms, (memory + (1u << 29)) >> 30);
    bool has_driver = attn_nvml_driver(driver, sizeof driver);
    (void)snprintf(info->environment, sizeof info->environment, "cuda %d.%d%s%s", version / 1000,
                   version % 1000 / 10, has_driver ? " driver " : "", driver);
    info->ordinal = device->ordinal;
    (void)attn_device_prop_set(info, "cc", cc);
    (void)attn_device_prop_set(info, "memory", (int64_t)memory);
    (void)attn_device_prop_set(info, "warp", 32);
    for (size_t i = 0; i < sizeof ATTRIBUTES / sizeof ATTRIBUTES[0]; i++)
        (void)attn_device_prop_set(info, ATTRIBUTES[i].name,
                                   attribute(device, ATTRIBUTES[i].attribute));
    return ATTN_OK;
}
