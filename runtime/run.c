/* run.c: attn_run, and what else is asked about a problem without a plan. */
#include <stdlib.h>

#include "context.h"

bool attn_problem_is_empty(const attn_problem *p) {
    return p->batch == 0 || p->heads_q == 0 || p->seq_q == 0;
}

static size_t workspace_of(const attn_loaded *loaded, const attn_runtime_device *device,
                           const attn_problem *problem) {
    int32_t workers = device->backend->workers(device->handle);
    return loaded ? attn_workspace_bytes(&loaded->launch, problem, workers) : 0;
}

size_t attn_chosen_workspace(const attn_chosen *chosen, const attn_runtime_device *device,
                             const attn_problem *problem) {
    size_t first = workspace_of(chosen->loaded, device, problem);
    size_t other = chosen->any_strides == chosen->loaded
                       ? 0
                       : workspace_of(chosen->any_strides, device, problem);
    return first > other ? first : other;
}

static attn_status run_kernel(const attn_loaded *loaded, const attn_runtime_device *device,
                              const attn_forward_tensors *tensors, attn_call *call, void *ws,
                              size_t ws_bytes, void *stream, attn_error *err) {
    size_t need = workspace_of(loaded, device, call->problem);
    if (need && (!ws || ws_bytes < need || (uintptr_t)ws % 256))
        return attn_fail(err, ATTN_ERR_WORKSPACE,
                         "the call needs %zu bytes of workspace, 256-byte aligned, but got %zu at "
                         "%p; ask attn_workspace_size()",
                         need, ws_bytes, ws);
    if (need)
        ATTN_TRY(attn_workspace_check(call->problem, tensors, ws, need, err));
    attn_workspace_assign(&loaded->launch, call->problem, device->backend->workers(device->handle),
                          ws, &call->args);
    return device->backend->run(loaded->kernel, call, stream, err);
}

static bool addresses(const attn_loaded *loaded, const attn_runtime_device *device,
                      const attn_call *call) {
    return !loaded->launch.maps || !device->backend->fits ||
           device->backend->fits(loaded->kernel, call);
}

attn_status attn_chosen_run(const attn_chosen *chosen, const attn_runtime_device *device,
                            const attn_problem *problem, const attn_forward_tensors *tensors,
                            void *ws, size_t ws_bytes, void *stream, attn_error *err) {
    const attn_loaded *loaded = chosen->loaded;
    attn_call call;
    call.problem = problem;
    attn_problem_args(problem, tensors, &call.args);
    if (!addresses(loaded, device, &call))
        loaded = chosen->any_strides;
    if (!loaded)
        return attn_fail(err, ATTN_ERR_NO_KERNEL,
                         "the kernel cannot address these strides, and no other is there");
    return run_kernel(loaded, device, tensors, &call, ws, ws_bytes, stream, err);
}

attn_status attn_pick_kernels(const attn_class *entry, const attn_problem *problem,
                              const attn_pick *pick, attn_chosen *chosen, attn_error *err) {
    if (!pick->candidate)
        return attn_fail(err, ATTN_ERR_NO_KERNEL, "no kernel of the class may run this shape");
    chosen->loaded = chosen->any_strides = pick->candidate->loaded;
    if (chosen->loaded->launch.maps) {
        const attn_candidate *plain = attn_class_any_strides(entry, problem);
        chosen->any_strides = plain ? plain->loaded : NULL;
    }
    return attn_launch_fits(&chosen->loaded->launch, problem, err);
}

/* What is known of a call before its tensors are looked at. */
struct found {
    attn_runtime_device *device;
    attn_pick pick;
    attn_chosen chosen;
};

static attn_status find(attn_context *ctx, const attn_problem *problem, attn_device id,
                        void *stream, attn_class_need need, struct found *found, attn_error *err) {
    if (!ctx)
        return attn_fail(err, ATTN_ERR_INVALID, "the context is NULL");
    attn_runtime_device *device = found->device = attn_context_device(ctx, id);
    if (!device)
        return attn_fail(err, ATTN_ERR_NO_DEVICE, "there is no such device; see attn_device_get()");
    const attn_class *entry = attn_table_find(
        atomic_load_explicit(&device->table, memory_order_acquire), attn_class_key_of(problem));
    found->pick = attn_class_pick(entry, problem);
    bool met = found->pick.serves && (need == ATTN_CLASS_SERVES || !entry->lean);
    if (!met && device->backend->capturing && device->backend->capturing(device->handle, stream))
        return attn_fail(err, ATTN_ERR_CAPTURING,
                         "the kernel for this class is not loaded yet, which cannot be done while "
                         "the stream is captured; call attn_workspace_size() or attn_run() before");
    if (!met) {
        ATTN_TRY(attn_table_class(ctx, device, problem, need, &entry, err));
        found->pick = attn_class_pick(entry, problem);
    }
    return attn_pick_kernels(entry, problem, &found->pick, &found->chosen, err);
}

static attn_status check_problem(const attn_problem *problem, attn_error *err) {
    err->status = attn_problem_check(problem, err->line, sizeof err->line);
    return err->status;
}

static bool can_address(const struct found *found, const attn_problem *problem,
                        const attn_forward_tensors *tensors) {
    attn_call call;
    call.problem = problem;
    attn_problem_args(problem, tensors, &call.args);
    return addresses(found->chosen.loaded, found->device, &call);
}

static attn_status run(attn_context *ctx, const attn_problem *problem, attn_device id,
                       const attn_forward_tensors *tensors, void *ws, size_t ws_bytes, void *stream,
                       attn_error *err) {
    struct found found;
    ATTN_TRY(check_problem(problem, err));
    ATTN_TRY(attn_tensors_check(problem, tensors, err));
    if (attn_problem_is_empty(problem))
        return ATTN_OK;
    ATTN_TRY(find(ctx, problem, id, stream, ATTN_CLASS_SERVES, &found, err));
    if (!found.chosen.any_strides && !can_address(&found, problem, tensors))
        ATTN_TRY(find(ctx, problem, id, stream, ATTN_CLASS_WHOLE, &found, err));
    if (ctx->record && found.pick.origin > ATTN_ORIGIN_SYSTEM)
        attn_record_add(ctx->record, problem);
    return attn_chosen_run(&found.chosen, found.device, problem, tensors, ws, ws_bytes, stream,
                           err);
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
    struct found found;
    if (check_problem(problem, &err) == ATTN_OK) {
        if (attn_problem_is_empty(problem))
            return 0;
        if (find(ctx, problem, device, NULL, ATTN_CLASS_SERVES, &found, &err) == ATTN_OK)
            return attn_chosen_workspace(&found.chosen, found.device, problem);
    }
    (void)attn_report(ctx, &err);
    return 0;
}

attn_status attn_choice_get(attn_context *ctx, const attn_problem *problem, attn_device device,
                            attn_choice *choice) {
    attn_error err = ATTN_ERROR_INIT;
    struct found found;
    if (!choice)
        (void)attn_fail(&err, ATTN_ERR_INVALID, "the choice is NULL");
    else if (choice->size != sizeof *choice)
        (void)attn_fail(&err, ATTN_ERR_INVALID,
                        "attn_choice.size is %zu; begin with ATTN_CHOICE_INIT", choice->size);
    else if (check_problem(problem, &err) == ATTN_OK &&
             find(ctx, problem, device, NULL, ATTN_CLASS_SERVES, &found, &err) == ATTN_OK)
        attn_choice_fill(&found.pick, choice);
    return err.status == ATTN_OK ? ATTN_OK : attn_report(ctx, &err);
}
