/* cuda_nvml.c: clocks, power and temperature from NVML, where it is there. Nothing is ever set. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "cuda_backend.h"
#include "open_library.h"

typedef struct nvmlDevice_st *nvmlDevice_t;

enum { CLOCK_SM = 1, TEMPERATURE_GPU = 0 };

/* Reasons for a lowered clock that tell of heat or a fault; the power limit is not one: a card at
 * its limit is in its ordinary state under load. */
enum {
    THROTTLE_SW_POWER_CAP = 0x4,
    THROTTLE_HW_SLOWDOWN = 0x8,
    THROTTLE_SW_THERMAL = 0x20,
    THROTTLE_HW_THERMAL = 0x40
};

#define NVML_FUNCTION_MAP(XX)                                                                      \
    XX(init, nvmlInit_v2, (void))                                                                  \
    XX(driver, nvmlSystemGetDriverVersion, (char *, unsigned int))                                 \
    XX(by_uuid, nvmlDeviceGetHandleByUUID, (const char *, nvmlDevice_t *))                         \
    XX(clock, nvmlDeviceGetClockInfo, (nvmlDevice_t, int, unsigned int *))                         \
    XX(power, nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned int *))                             \
    XX(temperature, nvmlDeviceGetTemperature, (nvmlDevice_t, int, unsigned int *))                 \
    XX(throttle, nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t, unsigned long long *))

typedef struct nvml_api {
#define XX(field, symbol, arguments) int(*field) arguments;
    NVML_FUNCTION_MAP(XX)
#undef XX
} nvml_api;

static nvml_api nvml;
static bool nvml_there;
static pthread_once_t nvml_once = PTHREAD_ONCE_INIT;

static void open_nvml(void) {
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    static const attn_symbol symbols[] = {
#define XX(field, symbol, arguments) {#symbol, offsetof(nvml_api, field), false},
        NVML_FUNCTION_MAP(XX)
#undef XX
    };
    nvml_there = !attn_open_library(names, symbols, sizeof symbols / sizeof symbols[0], &nvml) &&
                 nvml.init() == 0;
}

struct attn_nvml_device {
    nvmlDevice_t handle;
};

struct attn_nvml_device *attn_nvml_open(const char *uuid) {
    (void)pthread_once(&nvml_once, open_nvml);
    struct attn_nvml_device *device = nvml_there ? calloc(1, sizeof *device) : NULL;
    if (device && nvml.by_uuid(uuid, &device->handle) != 0) {
        free(device);
        device = NULL;
    }
    return device;
}

void attn_nvml_close(struct attn_nvml_device *device) {
    free(device);
}

bool attn_nvml_driver(char *version, size_t size) {
    (void)pthread_once(&nvml_once, open_nvml);
    return nvml_there && nvml.driver(version, (unsigned int)size) == 0;
}

void attn_nvml_state(const struct attn_nvml_device *device, attn_device_state *state) {
    unsigned int value;
    unsigned long long reasons = 0;
    *state = (attn_device_state)ATTN_DEVICE_STATE_INIT;
    if (!device)
        return;
    if (nvml.clock(device->handle, CLOCK_SM, &value) == 0)
        state->clock_mhz = value;
    if (nvml.power(device->handle, &value) == 0)
        state->power_w = value / 1000.0;
    if (nvml.temperature(device->handle, TEMPERATURE_GPU, &value) == 0)
        state->temperature_c = value;
    if (nvml.throttle(device->handle, &reasons) != 0)
        return;
    state->throttled =
        (reasons & (THROTTLE_HW_SLOWDOWN | THROTTLE_SW_THERMAL | THROTTLE_HW_THERMAL)) != 0;
    state->power_limited = (reasons & THROTTLE_SW_POWER_CAP) != 0;
}
