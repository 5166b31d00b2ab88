/* cpu_kernel.h: a kernel on the CPU: its functions, its launch record and the pool that runs it. */
#ifndef ATTN_CPU_KERNEL_H
#define ATTN_CPU_KERNEL_H

#include "backend.h"
#include "object.h"
#include "pool.h"

/* The device that attn_backend_cpu opens. */
struct attn_backend_device {
    attn_device_info info;
    uint32_t usable; /* instruction sets */
    attn_pool *pool;
};

struct attn_kernel {
    attn_backend_device *device;
    attn_launch launch;
    attn_object object;                           /* not loaded: this is the reference kernel, */
    attn_task_function *function[ATTN_STEPS_MAX]; /* whose function depends on the call's dtype */
};

/* Slots of attn_backend. */
attn_status attn_cpu_load(attn_backend_device *device, const attn_binary *binary,
                          const char *target, const attn_launch *launch, attn_kernel **kernel,
                          attn_error *err);
attn_status attn_cpu_reference(attn_backend_device *device, attn_launch *launch,
                               attn_kernel **kernel, attn_error *err);
void attn_cpu_unload(attn_kernel *kernel);
attn_status attn_cpu_run(attn_kernel *kernel, const attn_call *call, void *stream, attn_error *err);
attn_status attn_cpu_time(attn_kernel *kernel, const attn_call *calls, int32_t count,
                          int32_t launches, double *ns, attn_error *err);

#endif
