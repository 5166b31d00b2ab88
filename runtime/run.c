/* run.c: attn_run, and what else is asked about a problem without a plan. */
#include <stdlib.h>

#include "context.h"

bool attn_problem_is_empty(const attn_problem *p) {
    return p->batch == 0 || p->heads_q == 0 || p->seq_q == 0;
}

attn_status attn_call_run(const attn_loaded *loaded, const attn_runtime_device *device,
                          const attn_problem *problem, const attn_forward_tensors *tensors,
                          void *ws, size_t ws_bytes, void *stream, attn_error *err) {
    const attn_backend *backend = device->backend;
    int32_t workers = backend->workers(device->handle);
    size_t need = attn_workspace_bytes(&loaded->launch, problem, workers);
    if (need && (!ws || ws_bytes < need || (uintptr_t)ws % 256))
        return attn_fail(err, ATTN_ERR_WORKSPACE,
                         "the call needs %zu bytes of workspace, 256-byte aligned, but got %zu at "
                         "%p; ask attn_workspace_size()",
                         need, ws_bytes, ws);
    attn_call call;
    call.problem = problem;
    attn_problem_args(problem, tensors, &call.args);
    attn_workspace_assign(&loaded->launch, problem, workers, ws, &call.args);
    return backend->run(loaded->kernel, &call, stream, err);
}

/* Everything that is known before tensors are looked at. */
struct chosen {
    attn_runtime_device *device;
    const attn_candidate *candidate;
    attn_origin origin;
    double distance;
};

static attn_status choose(attn_context *ctx, const attn_problem *problem, attn_device id,
                          void *stream, struct chosen *chosen, attn_error *err) {
    chosen->device = attn_context_device(ctx, id);
    if (!chosen->device)
        return attn_fail(err, ATTN_ERR_NO_DEVICE, "there is no such device; see attn_device_get()");
    const attn_class *entry =
        attn_table_find(atomic_load_explicit(&chosen->device->table, memory_order_acquire),
                        attn_class_key_of(problem));
    const attn_backend *backend = chosen->device->backend;
    if (!entry && backend->capturing && backend->capturing(chosen->device->handle, stream))
        return attn_fail(err, ATTN_ERR_CAPTURING,
                         "the kernel for this class is not loaded yet, which cannot be done while "
                         "the stream is captured; call attn_workspace_size() or attn_run() before");
    if (!entry)
        ATTN_TRY(attn_table_class(ctx, chosen->device, problem, false, &entry, err));
    chosen->candidate = attn_class_choose(entry, problem, &chosen->origin, &chosen->distance);
    if (!chosen->candidate)
        return attn_fail(err, ATTN_ERR_NO_KERNEL, "no kernel of the class may run this shape");
    return attn_launch_fits(&chosen->candidate->loaded->launch, problem, err);
}

static attn_status check_problem(const attn_problem *problem, attn_error *err) {
    err->status = attn_problem_check(problem, err->line, sizeof err->line);
    return err->status;
}

static attn_status run(attn_context *ctx, const attn_problem *problem, attn_device id,
                       const attn_forward_tensors *tensors, void *ws, size_t ws_bytes, void *stream,
                       attn_error *err) {
    struct chosen chosen;
    ATTN_TRY(check_problem(problem, err));
    ATTN_TRY(attn_tensors_check(problem, tensors, err));
    if (attn_problem_is_empty(problem))
        return ATTN_OK;
    ATTN_TRY(choose(ctx, problem, id, stream, &chosen, err));
    if (ctx->record && chosen.origin != ATTN_ORIGIN_USER && chosen.origin != ATTN_ORIGIN_SYSTEM)
        attn_record_add(ctx->record, problem);
    return attn_call_run(chosen.candidate->loaded, chosen.device, problem, tensors, ws, ws_bytes,
                         stream, err);
}

attn_status attn_run(attn_context *ctx, const attn_problem *problem, attn_device device,
                     const attn_forward_tensors *tensors, void *ws, size_t ws_bytes, void *stream) {
    attn_error err;
    err.status = ATTN_OK;
    attn_status status = run(ctx, problem, device, tensors, ws, ws_bytes, stream, &err);
    return status == ATTN_OK ? ATTN_OK : attn_report(ctx, &err);
}

size_t attn_workspace_size(attn_context *ctx, const attn_problem *problem, attn_device device) {
    attn_error err = ATTN_ERROR_INIT;
    struct chosen chosen;
    if (check_problem(problem, &err) != ATTN_OK) {
        (void)attn_report(ctx, &err);
        return 0;
    }
    if (attn_problem_is_empty(problem))
        return 0;
    if (choose(ctx, problem, device, NULL, &chosen, &err) != ATTN_OK) {
        (void)attn_report(ctx, &err);
        return 0;
    }
    return attn_workspace_bytes(&chosen.candidate->loaded->launch, problem,
                                chosen.device->backend->workers(chosen.device->handle));
}

attn_status attn_choice_get(attn_context *ctx, const attn_problem *problem, attn_device device,
                            attn_choice *choice) {
    attn_error err = ATTN_ERROR_INIT;
    struct chosen chosen;
    if (choice->size != sizeof *choice)
        (void)attn_fail(&err, ATTN_ERR_INVALID,
                        "attn_choice.size is %zu; begin with ATTN_CHOICE_INIT", choice->size);
    else if (check_problem(problem, &err) == ATTN_OK &&
             choose(ctx, problem, device, NULL, &chosen, &err) == ATTN_OK)
        attn_choice_fill(chosen.candidate, chosen.origin, chosen.distance, choice);
    return err.status == ATTN_OK ? ATTN_OK : attn_report(ctx, &err);
}
