/* cpu_kernel.c: loading, running and timing kernels on the CPU. */
#include "cpu_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "cpu_reference.h"
#include "fma.h"
#include "isa.h"

static attn_kernel *make_kernel(attn_backend_device *device, const attn_launch *launch) {
    attn_kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel)
        *kernel = (attn_kernel){.device = device, .launch = *launch, .object = {NULL, -1}};
    return kernel;
}

/* Before any of its code runs. */
static attn_status check_target(const attn_backend_device *device, const char *target,
                                attn_error *err) {
    attn_str missing = ATTN_STR_INIT;
    uint32_t needs;
    if (!attn_cpu_target_needs(target, &needs))
        return attn_fail(err, ATTN_ERR_LOAD, "the binary is for %s, which is not known here",
                         target);
    if ((needs & ~device->usable) == 0)
        return ATTN_OK;
    attn_isa_print(needs & ~device->usable, &missing);
    attn_fail(err, ATTN_ERR_LOAD, "the binary is for %s, and %s cannot be used here", target,
              attn_str_text(&missing));
    attn_str_free(&missing);
    return err->status;
}

attn_status attn_cpu_load(attn_backend_device *device, const attn_binary *binary,
                          const char *target, const attn_launch *launch, attn_kernel **kernel,
                          attn_error *err) {
    *kernel = NULL;
    ATTN_TRY(check_target(device, target, err));
    attn_kernel *made = make_kernel(device, launch);
    if (!made)
        return attn_fail_nomem(err);
    attn_status status = attn_object_open(binary, &made->object, err);
    for (int32_t s = 0; status == ATTN_OK && s < launch->steps; s++) {
        const char *symbol = launch->step[s].symbol;
        made->function[s] = (attn_task_function *)attn_object_function(&made->object, symbol);
        if (!made->function[s])
            status = attn_fail(err, ATTN_ERR_LOAD, "the binary has no function %s", symbol);
    }
    if (status == ATTN_OK)
        *kernel = made;
    else
        attn_cpu_unload(made);
    return status;
}

attn_status attn_cpu_reference(attn_backend_device *device, attn_launch *launch,
                               attn_kernel **kernel, attn_error *err) {
    attn_reference_launch(launch);
    *kernel = make_kernel(device, launch);
    return *kernel ? ATTN_OK : attn_fail_nomem(err);
}

void attn_cpu_unload(attn_kernel *kernel) {
    if (!kernel)
        return;
    attn_object_close(&kernel->object);
    free(kernel);
}

attn_status attn_cpu_run(attn_kernel *kernel, const attn_call *call, void *stream,
                         attn_error *err) {
    const attn_launch *launch = &kernel->launch;
    attn_forward_args args[ATTN_STEPS_MAX];
    attn_pool_step steps[ATTN_STEPS_MAX];
    if (stream)
        return attn_fail(err, ATTN_ERR_INVALID, "the CPU has no streams: give NULL");
    for (int32_t s = 0; s < launch->steps; s++) {
        const attn_step *step = &launch->step[s];
        int64_t tasks = attn_step_tasks(step, launch, call->problem);
        if (tasks > INT32_MAX)
            return attn_fail(err, ATTN_ERR_UNSUPPORTED, "the problem has more than 2^31 tiles");
        args[s] = call->args;
        args[s].tiles = (int32_t)attn_step_tiles(step, call->problem);
        attn_task_function *function = kernel->object.handle
                                           ? kernel->function[s]
                                           : attn_reference_function(call->problem->dtype);
        steps[s] = (attn_pool_step){function, &args[s], step, (int32_t)tasks};
    }
    if (launch->zero_bytes > 0 && call->args.workspace[0])
        memset(call->args.workspace[0], 0, (size_t)launch->zero_bytes);
    int result = attn_pool_run(kernel->device->pool, steps, launch->steps, call->args.workers);
    if (result)
        return attn_fail(err, ATTN_ERR_LAUNCH, "the kernel returned %d", result);
    return ATTN_OK;
}

attn_status attn_cpu_time(attn_kernel *kernel, const attn_call *calls, int32_t count,
                          int32_t launches, double *ns, attn_error *err) {
    attn_status status = ATTN_OK;
    cpu_set_t before;
    attn_pool_pin(kernel->device->pool, &before);
    int64_t begin = attn_clock_ns();
    for (int32_t i = 0; status == ATTN_OK && i < launches; i++)
        status = attn_cpu_run(kernel, &calls[i % count], NULL, err);
    *ns = (double)(attn_clock_ns() - begin);
    attn_pool_unpin(kernel->device->pool, &before);
    return status;
}
