/* verify_run.c: see verify_run.h. */
#include "verify_run.h"

#include <stdlib.h>
#include <string.h>

enum {
    GUARD = 256,    /* bytes before and behind the workspace */
    POISON = 0xa5,  /* of the guards */
    CONTENT = 0xff, /* what a workspace holds at first: NaNs, and a large count */
    CHUNK = 1 << 20 /* bytes of an input compared at a time */
};

void attn_rig_free(attn_rig *rig) {
    if (rig->workspace.memory)
        rig->backend->free(rig->device, rig->workspace.memory);
    if (rig->busy_workspace.memory)
        rig->backend->free(rig->device, rig->busy_workspace.memory);
    if (rig->stream)
        rig->backend->stream_destroy(rig->device, rig->stream);
    free(rig->host);
    memset(rig, 0, sizeof *rig);
}

bool attn_rig_fits(const attn_rig *rig, const attn_proof *proof, const attn_kernel *kernel,
                   const attn_launch *launch) {
    attn_error ignored = ATTN_ERROR_INIT;
    attn_call call = {.problem = &proof->inputs.problem};
    if (attn_launch_fits(launch, call.problem, &ignored) != ATTN_OK)
        return false;
    attn_problem_args(call.problem, &proof->inputs.device, &call.args);
    return !rig->backend->fits || rig->backend->fits(kernel, &call);
}

static bool host_room(attn_rig *rig, size_t size) {
    if (rig->host_size >= size)
        return true;
    free(rig->host);
    rig->host = malloc(size);
    rig->host_size = rig->host ? size : 0;
    return rig->host != NULL;
}

static attn_status device_room(attn_rig *rig, attn_scratch *scratch, size_t size, attn_error *err) {
    if (scratch->size >= size)
        return ATTN_OK;
    if (scratch->memory)
        rig->backend->free(rig->device, scratch->memory);
    scratch->memory = NULL;
    scratch->size = 0;
    ATTN_TRY(rig->backend->alloc(rig->device, size, &scratch->memory, err));
    scratch->size = size;
    return ATTN_OK;
}

static attn_status fill_device(attn_rig *rig, void *at, unsigned char byte, size_t size,
                               attn_error *err) {
    if (!host_room(rig, CHUNK))
        return attn_fail_nomem(err);
    size_t part = size < rig->host_size ? size : rig->host_size;
    memset(rig->host, byte, part);
    for (size_t done = 0; done < size; done += part) {
        part = size - done < part ? size - done : part;
        ATTN_TRY(rig->backend->copy(rig->device, (char *)at + done, rig->host, part,
                                    ATTN_COPY_TO_DEVICE, err));
    }
    return ATTN_OK;
}

/* The call of the kernel on the proof's tensors, with a workspace between guards. */
static attn_status make_call(attn_rig *rig, const attn_proof *proof, const attn_launch *launch,
                             attn_scratch *scratch, attn_call *call, attn_error *err) {
    const attn_problem *problem = &proof->inputs.problem;
    int32_t workers = rig->backend->workers(rig->device);
    size_t bytes = attn_workspace_bytes(launch, problem, workers);
    ATTN_TRY(device_room(rig, scratch, bytes + 2 * (size_t)GUARD, err));
    char *memory = scratch->memory;
    ATTN_TRY(fill_device(rig, memory, POISON, GUARD, err));
    ATTN_TRY(fill_device(rig, memory + GUARD, CONTENT, bytes, err));
    ATTN_TRY(fill_device(rig, memory + GUARD + bytes, POISON, GUARD, err));
    call->problem = problem;
    attn_problem_args(problem, &proof->inputs.device, &call->args);
    attn_workspace_assign(launch, problem, workers, memory + GUARD, &call->args);
    return ATTN_OK;
}

static bool all_poison(const unsigned char *at, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (at[i] != POISON)
            return false;
    return true;
}

static void say(const attn_proof *proof, const char *what, attn_verdict *verdict) {
    (void)attn_verdict_wrong(verdict, &proof->inputs, -1, -1, what);
}

static attn_status check_workspace(attn_rig *rig, const attn_proof *proof,
                                   const attn_launch *launch, attn_verdict *verdict,
                                   attn_error *err) {
    unsigned char guard[2][GUARD];
    size_t bytes =
        attn_workspace_bytes(launch, &proof->inputs.problem, rig->backend->workers(rig->device));
    const char *memory = rig->workspace.memory;
    ATTN_TRY(rig->backend->copy(rig->device, guard[0], memory, GUARD, ATTN_COPY_FROM_DEVICE, err));
    ATTN_TRY(rig->backend->copy(rig->device, guard[1], memory + GUARD + bytes, GUARD,
                                ATTN_COPY_FROM_DEVICE, err));
    if (!all_poison(guard[0], GUARD))
        say(proof, "wrote before the start of its workspace", verdict);
    else if (!all_poison(guard[1], GUARD))
        say(proof, "wrote past the end of its workspace", verdict);
    return ATTN_OK;
}

/* Are q, k and v on the device what they were? If not, they are made so again. */
static attn_status check_inputs(attn_rig *rig, attn_proof *proof, attn_verdict *verdict,
                                attn_error *err) {
    static const char *const texts[] = {"wrote into q or around it", "wrote into k or around it",
                                        "wrote into v or around it"};
    bool same = true;
    if (!host_room(rig, CHUNK))
        return attn_fail_nomem(err);
    for (int i = ATTN_IMAGE_Q; same && i <= ATTN_IMAGE_V; i++) {
        const attn_image *image = &proof->inputs.image[i];
        for (size_t at = 0; same && at < image->size; at += rig->host_size) {
            size_t left = image->size - at;
            size_t part = left < rig->host_size ? left : rig->host_size;
            ATTN_TRY(rig->backend->copy(rig->device, rig->host, (char *)image->device + at, part,
                                        ATTN_COPY_FROM_DEVICE, err));
            same = memcmp(rig->host, image->host + at, part) == 0;
        }
        if (!same)
            say(proof, texts[i], verdict);
    }
    return same ? ATTN_OK : attn_inputs_upload(&proof->inputs, rig->backend, rig->device, err);
}

static attn_status run_once(attn_rig *rig, attn_proof *proof, attn_kernel *kernel,
                            const attn_call *call, const attn_call *busy, attn_error *err) {
    ATTN_TRY(attn_inputs_poison(&proof->inputs, err));
    if (busy)
        ATTN_TRY(rig->backend->run(kernel, busy, rig->stream, err));
    ATTN_TRY(rig->backend->run(kernel, call, NULL, err));
    return rig->backend->sync(rig->device, err);
}

/* Copies the images of o and lse to `to`, one behind the other. */
static attn_status take_outputs(attn_rig *rig, const attn_proof *proof, unsigned char *to,
                                attn_error *err) {
    for (int i = ATTN_IMAGE_O; i <= ATTN_IMAGE_LSE; i++) {
        const attn_image *image = &proof->inputs.image[i];
        if (image->size)
            ATTN_TRY(rig->backend->copy(rig->device, to, image->device, image->size,
                                        ATTN_COPY_FROM_DEVICE, err));
        to += image->size;
    }
    return ATTN_OK;
}

static attn_status prove(attn_rig *rig, attn_proof *proof, attn_kernel *kernel,
                         const attn_launch *launch, int32_t runs, attn_verdict *verdict,
                         attn_error *err) {
    size_t o_size = proof->inputs.image[ATTN_IMAGE_O].size;
    size_t size = o_size + proof->inputs.image[ATTN_IMAGE_LSE].size;
    attn_call call = {.problem = NULL}, busy = {.problem = NULL};
    ATTN_TRY(make_call(rig, proof, launch, &rig->workspace, &call, err));
    if (rig->other)
        ATTN_TRY(make_call(rig, rig->other, launch, &rig->busy_workspace, &busy, err));
    ATTN_TRY(run_once(rig, proof, kernel, &call, rig->other ? &busy : NULL, err));
    ATTN_TRY(check_workspace(rig, proof, launch, verdict, err));
    ATTN_TRY(check_inputs(rig, proof, verdict, err));
    if (!host_room(rig, 2 * size))
        return attn_fail_nomem(err);
    unsigned char *first = rig->host, *second = rig->host + size;
    ATTN_TRY(take_outputs(rig, proof, first, err));
    memcpy(second, first, size);
    if (!verdict->right ||
        !attn_compare(&proof->inputs, &proof->reference, second, second + o_size, verdict) ||
        (proof->judge.image &&
         !attn_judge_compare(&proof->judge, &proof->inputs, &proof->reference, first, verdict)))
        return ATTN_OK;
    for (int32_t i = 1; i < runs && verdict->right; i++) {
        ATTN_TRY(run_once(rig, proof, kernel, &call, rig->other ? &busy : NULL, err));
        ATTN_TRY(take_outputs(rig, proof, second, err));
        if (memcmp(first, second, size) != 0)
            say(proof, "two runs on the same inputs differ", verdict);
    }
    return ATTN_OK;
}

attn_status attn_rig_prove(attn_rig *rig, attn_proof *proof, attn_kernel *kernel,
                           const attn_launch *launch, int32_t runs, attn_verdict *verdict,
                           attn_error *err) {
    char text[ATTN_PROBLEM_TEXT];
    attn_status st = prove(rig, proof, kernel, launch, runs, verdict, err);
    if (st == ATTN_OK)
        return st;
    (void)attn_problem_print(&proof->inputs.problem, text, sizeof text);
    return attn_fail_prefix(err, "%s, %s", attn_input_kind_name(proof->inputs.spec.kind), text);
}

attn_status attn_rig_judge(attn_rig *rig, attn_proof *proof, attn_kernel *kernel,
                           const attn_launch *launch, attn_verdict *verdict, attn_error *err) {
    ATTN_TRY(attn_rig_prove(rig, proof, kernel, launch, 1, verdict, err));
    if (!verdict->right)
        return ATTN_OK;
    return attn_judge_take(&proof->judge, rig->host, &proof->inputs, &proof->reference, verdict,
                           err);
}

attn_status attn_rig_busy(attn_rig *rig, const attn_proof *other, attn_error *err) {
    if (!rig->backend->stream_create)
        return ATTN_OK;
    if (!rig->stream)
        ATTN_TRY(rig->backend->stream_create(rig->device, &rig->stream, err));
    rig->other = other;
    return ATTN_OK;
}

void attn_rig_idle(attn_rig *rig) {
    rig->other = NULL;
}
