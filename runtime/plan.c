/* plan.c: a plan is a problem with the kernel that was chosen for it. */
#include <stdlib.h>

#include "context.h"

struct attn_plan {
    attn_context *ctx;
    const attn_runtime_device *device;
    attn_problem problem;
    attn_chosen chosen; /* loaded is NULL: nothing to write */
    attn_choice choice;
};

static attn_status take(attn_plan *plan, const attn_class *entry, const attn_pick *pick,
                        attn_effort effort, attn_error *err) {
    attn_chosen chosen;
    ATTN_TRY(attn_pick_kernels(entry, &plan->problem, pick, &chosen, err));
    if (effort == ATTN_CACHED && pick->origin >= ATTN_ORIGIN_DEFAULT)
        return attn_fail(err, ATTN_ERR_NO_KERNEL, "no kernel is stored for this problem");
    plan->chosen = chosen;
    attn_choice_fill(pick, &plan->choice);
    return ATTN_OK;
}

/* An effort that is not the context's: a class of its own, which attn_run does not see. */
static attn_status take_apart(attn_plan *plan, attn_runtime_device *device, attn_effort effort,
                              attn_error *err) {
    attn_class *entry = NULL;
    attn_pick pick;
    (void)pthread_mutex_lock(&plan->ctx->lock);
    attn_status status =
        attn_class_make(plan->ctx, device, &plan->problem, effort, true, &entry, err);
    (void)pthread_mutex_unlock(&plan->ctx->lock);
    if (status == ATTN_OK) {
        pick = attn_class_pick(entry, &plan->problem);
        status = take(plan, entry, &pick, effort, err);
    }
    attn_class_free(entry); /* the kernel that was taken belongs to the context */
    return status;
}

static attn_status fill(attn_plan *plan, attn_runtime_device *device, attn_effort effort,
                        attn_error *err) {
    const attn_class *entry =
        attn_table_find(atomic_load(&device->table), attn_class_key_of(&plan->problem));
    if (effort == ATTN_MEASURE) /* what is stored now is seen only by a class made anew */
        ATTN_TRY(attn_measure(plan->ctx, device, &plan->problem, err));
    else if (entry ? entry->effort < effort : plan->ctx->options.effort != effort)
        return take_apart(plan, device, effort, err);
    attn_pick pick = attn_class_pick(entry, &plan->problem);
    if (effort == ATTN_MEASURE || !entry || !pick.serves) {
        ATTN_TRY(attn_table_class(plan->ctx, device, &plan->problem,
                                  effort == ATTN_MEASURE ? ATTN_CLASS_ANEW : ATTN_CLASS_SERVES,
                                  &entry, err));
        pick = attn_class_pick(entry, &plan->problem);
    }
    ATTN_TRY(take(plan, entry, &pick, effort, err)); /* a class that was there took no lock */
    if (plan->chosen.any_strides || !entry->lean)
        return ATTN_OK;
    /* The tensors are not known yet: another kernel may have to take over. */
    ATTN_TRY(attn_table_class(plan->ctx, device, &plan->problem, ATTN_CLASS_WHOLE, &entry, err));
    pick = attn_class_pick(entry, &plan->problem);
    return take(plan, entry, &pick, effort, err);
}

static attn_status create(attn_context *ctx, const attn_problem *problem, attn_device id,
                          attn_effort effort, attn_plan **plan, attn_error *err) {
    if ((unsigned)effort > ATTN_MEASURE)
        return attn_fail(err, ATTN_ERR_INVALID, "%d is no effort", (int)effort);
    err->status = attn_problem_check(problem, err->line, sizeof err->line);
    if (err->status != ATTN_OK)
        return err->status;
    if (!ctx)
        return attn_fail(err, ATTN_ERR_INVALID, "the context is NULL");
    attn_runtime_device *device = attn_context_device(ctx, id);
    if (!device)
        return attn_fail(err, ATTN_ERR_NO_DEVICE, "there is no such device; see attn_device_get()");
    attn_plan *made = calloc(1, sizeof *made);
    if (!made)
        return attn_fail_nomem(err);
    made->ctx = ctx;
    made->device = device;
    made->problem = *problem;
    made->choice = (attn_choice)ATTN_CHOICE_INIT;
    if (!attn_problem_is_empty(problem) && fill(made, device, effort, err) != ATTN_OK) {
        free(made);
        return err->status;
    }
    if (ctx->record && made->chosen.loaded && made->choice.origin > ATTN_ORIGIN_SYSTEM)
        attn_record_add(ctx->record, problem);
    *plan = made;
    return ATTN_OK;
}

attn_status attn_plan_create(attn_context *ctx, const attn_problem *problem, attn_device device,
                             attn_effort effort, attn_plan **plan) {
    attn_error err = ATTN_ERROR_INIT;
    if (plan)
        *plan = NULL;
    else
        (void)attn_fail(&err, ATTN_ERR_INVALID, "the plan has nowhere to go: plan is NULL");
    attn_status status = plan ? create(ctx, problem, device, effort, plan, &err) : err.status;
    return status == ATTN_OK ? ATTN_OK : attn_report(ctx, &err);
}

void attn_plan_destroy(attn_plan *plan) {
    free(plan); /* the kernel belongs to the context */
}

size_t attn_plan_workspace(const attn_plan *plan) {
    return attn_chosen_workspace(&plan->chosen, plan->device, &plan->problem);
}

attn_status attn_forward(const attn_plan *plan, const attn_forward_tensors *tensors, void *ws,
                         size_t ws_bytes, void *stream) {
    attn_error err;
    err.status = ATTN_OK;
    if (!plan) {
        (void)attn_fail(&err, ATTN_ERR_INVALID, "the plan is NULL");
        return attn_report(NULL, &err);
    }
    attn_status status = attn_tensors_check(&plan->problem, tensors, &err);
    if (status == ATTN_OK && plan->chosen.loaded)
        status = attn_chosen_run(&plan->chosen, plan->device, &plan->problem, tensors, ws, ws_bytes,
                                 stream, &err);
    return status == ATTN_OK ? ATTN_OK : attn_report(plan->ctx, &err);
}

void attn_plan_choice(const attn_plan *plan, attn_choice *choice) {
    *choice = plan->choice;
}
