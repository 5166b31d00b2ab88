/* function_backend.c: see function_backend.h. Two workers take turns on one thread. */
#include "function_backend.h"

#include <string.h>

#include "host_memory.h"

static void info(const attn_backend_device *device, attn_device_info *out) {
    (void)device;
    memset(out, 0, sizeof *out);
}

static int32_t workers(const attn_backend_device *device) {
    (void)device;
    return 2;
}

static attn_status run(attn_kernel *kernel, const attn_call *call, void *stream, attn_error *err) {
    attn_forward_args args = call->args;
    (void)stream;
    for (int32_t s = 0; s < kernel->launch.steps; s++) {
        const attn_step *step = &kernel->launch.step[s];
        int64_t tasks = attn_step_tasks(step, &kernel->launch, call->problem);
        args.tiles = (int32_t)attn_step_tiles(step, call->problem);
        for (int64_t task = 0; task < tasks; task++)
            if (kernel->function(&args, (int)task, (int)(task % args.workers)))
                return attn_fail(err, ATTN_ERR_LAUNCH, "the function refused");
    }
    return ATTN_OK;
}

static attn_status sync(attn_backend_device *device, attn_error *err) {
    (void)device;
    (void)err;
    return ATTN_OK;
}

const attn_backend attn_function_backend = {
    .name = "function",
    .info = info,
    .workers = workers,
    .run = run,
    .sync = sync,
    .alloc = host_alloc,
    .free = host_free,
    .copy = host_copy,
};

attn_kernel attn_function_kernel(attn_function *function, const char *launch) {
    attn_error err = ATTN_ERROR_INIT;
    attn_kernel kernel = {.function = function};
    if (attn_launch_parse(launch, &kernel.launch, &err) != ATTN_OK)
        kernel.function = NULL;
    return kernel;
}
