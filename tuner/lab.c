/* lab.c: variants side by side, every step waited for. */
#include "lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "judge_kernel.h"
#include "resident.h"
#include "stop.h"
#include "verify.h"
#include "worker.h"

static const double LAUNCH_FLOOR_S = 2, SLOWEST_FLOPS = 1e9;

/* One variant that was added; kept so that it can be loaded again after a loss. */
struct entry {
    attn_binary binary;
    attn_launch launch;
    char *target;
    bool loaded;
    bool right;
};

struct attn_lab {
    attn_lab_options options;
    attn_device_info device;
    const attn_backend *backend;
    attn_worker builder, worker;
    attn_problem problem;
    bool opened, ready;
    struct entry entry[ATTN_SLOTS];
    size_t entries;
};

static void note_waiting(void *user, const char *line) {
    const attn_lab *lab = user;
    if (lab->options.note)
        lab->options.note(line);
}

attn_status attn_lab_open(const attn_lab_options *options, attn_lab **lab, attn_error *err) {
    attn_lab *l = calloc(1, sizeof *l);
    *lab = NULL;
    if (!l)
        return attn_fail_nomem(err);
    l->options = *options;
    l->device = *options->device;
    l->options.device = &l->device;
    l->builder = l->worker = (attn_worker)ATTN_WORKER_INIT;
    l->builder.patience = l->worker.patience = (attn_patience){0, note_waiting, l};
    l->backend = attn_backend_find(l->device.backend);
    if (!l->backend) {
        attn_fail(err, ATTN_ERR_NO_DEVICE, "this program has no backend '%s'", l->device.backend);
        attn_lab_close(l);
        return err->status;
    }
    *lab = l;
    return ATTN_OK;
}

static void forget_entries(attn_lab *lab) {
    for (size_t i = 0; i < lab->entries; i++) {
        attn_binary_free(&lab->entry[i].binary);
        free(lab->entry[i].target);
    }
    memset(lab->entry, 0, sizeof lab->entry);
    lab->entries = 0;
}

void attn_lab_close(attn_lab *lab) {
    if (!lab)
        return;
    attn_worker_kill(&lab->builder);
    attn_worker_kill(&lab->worker);
    forget_entries(lab);
    free(lab);
}

attn_status attn_lab_problem(attn_lab *lab, const attn_problem *problem, attn_error *err) {
    (void)err;
    forget_entries(lab);
    lab->problem = *problem;
    lab->ready = false;
    return ATTN_OK;
}

/* A request to the device's worker; a loss is remembered. */
static attn_status ask(attn_lab *lab, attn_message_type type, attn_str *body, attn_fields *fields,
                       attn_loss *loss, attn_error *err) {
    double slowest = attn_problem_flops(&lab->problem) / SLOWEST_FLOPS;
    attn_worker_limits(&lab->worker, fmax(LAUNCH_FLOOR_S, slowest), 0,
                       attn_memory_share(attn_problem_bytes(&lab->problem)));
    attn_status status =
        attn_worker_ask(&lab->worker, type, body, lab->options.stop_fd, fields, loss, err);
    attn_str_clear(body);
    if (lab->worker.pid != 0)
        return status;
    lab->opened = lab->ready = false;
    for (size_t i = 0; i < lab->entries; i++)
        lab->entry[i].loaded = false;
    return status;
}

static void take_judge(const attn_lab *lab, attn_fields *fields) {
    const attn_judge_reply judge = attn_judge_take_reply(fields);
    if (judge.reason[0] && lab->options.note)
        lab->options.note(judge.reason);
}

static attn_status get_ready(attn_lab *lab, attn_loss *loss, attn_error *err) {
    attn_str body = ATTN_STR_INIT;
    attn_fields fields;
    attn_status status = ATTN_OK;
    if (!lab->opened) {
        attn_put_text(&body, lab->backend->name);
        attn_put_u32(&body, (uint32_t)lab->device.ordinal);
        attn_put_u32(&body, (uint32_t)lab->options.threads);
        status = ask(lab, ATTN_MSG_OPEN, &body, &fields, loss, err);
        if (status == ATTN_OK)
            status = attn_device_parse(attn_get_text(&fields), &lab->device, err);
        lab->opened = status == ATTN_OK;
    }
    if (status == ATTN_OK && !lab->ready) {
        attn_put_bytes(&body, &lab->problem, sizeof lab->problem);
        attn_put_u32(&body, (uint32_t)lab->options.mode);
        attn_put_bytes(&body, &lab->options.seed, sizeof lab->options.seed);
        attn_judge_put(&body, lab->options.gen, &lab->device, &lab->problem);
        status = ask(lab, ATTN_MSG_PROBLEM, &body, &fields, loss, err);
        lab->ready = status == ATTN_OK;
        if (status == ATTN_OK)
            take_judge(lab, &fields);
    }
    attn_str_free(&body);
    return status;
}

/*-*** Adding a variant ******************************************/

static attn_outcome outcome_of(const attn_lab *lab, attn_status status, const attn_loss *loss) {
    if (status == ATTN_ERR_DEVICE && lab->worker.pid == 0)
        return loss->outcome;
    return status == ATTN_ERR_LOAD      ? ATTN_OUTCOME_LOAD_ERROR
           : status == ATTN_ERR_NOMEM   ? ATTN_OUTCOME_OOM
           : status == ATTN_ERR_INVALID ? ATTN_OUTCOME_PRUNED
                                        : ATTN_OUTCOME_LAUNCH_ERROR;
}

/* Ends with that outcome and why. */
static attn_status end(attn_trial_result *result, attn_outcome outcome, const char *line) {
    result->outcome = outcome;
    (void)snprintf(result->error, sizeof result->error, "%.*s", (int)sizeof result->error - 1,
                   line);
    return ATTN_OK;
}

static attn_status compile(attn_lab *lab, const attn_variant *variant, struct entry *entry,
                           attn_trial_result *result, attn_error *err) {
    attn_str toolchain = ATTN_STR_INIT, body = ATTN_STR_INIT;
    attn_fields fields;
    attn_loss loss = {.outcome = ATTN_OUTCOME_CRASH};
    char key[ATTN_HASH_TEXT];
    attn_status status =
        lab->backend->toolchain(variant->language, variant->options, &toolchain, err);
    if (status == ATTN_OK) {
        attn_hash_print(attn_build_hash(variant->hash, attn_str_text(&toolchain), entry->target),
                        key);
        attn_put_text(&body, lab->backend->name);
        attn_put_text(&body, variant->language);
        attn_put_text(&body, variant->source);
        attn_put_text(&body, variant->options);
        attn_put_text(&body, entry->target);
        attn_put_bytes(&body, key, sizeof key);
        status = attn_worker_ask(&lab->builder, ATTN_MSG_COMPILE, &body, lab->options.stop_fd,
                                 &fields, &loss, err);
    }
    attn_str_free(&toolchain);
    attn_str_free(&body);
    if (status == ATTN_OK) {
        (void)attn_get_f64(&fields);
        status = attn_get_binary(&fields, &entry->binary, err);
    }
    if (status == ATTN_ERR_TIMEOUT || status == ATTN_ERR_NO_TOOL || status == ATTN_ERR_IO)
        return status;
    if (status != ATTN_OK)
        return end(result, status == ATTN_ERR_DEVICE ? loss.outcome : ATTN_OUTCOME_COMPILE_ERROR,
                   err->line);
    return ATTN_OK;
}

static attn_status copy_binary(const attn_binary *from, attn_binary *to, attn_error *err) {
    attn_str body = ATTN_STR_INIT;
    attn_put_binary(&body, from);
    attn_fields fields = {body.data, body.size, 0, body.failed};
    attn_status status = attn_get_binary(&fields, to, err);
    attn_str_free(&body);
    return status;
}

/* Loads and proves (or, if it was proved before, runs it twice). */
static attn_status prove(attn_lab *lab, size_t slot, attn_trial_result *result, attn_error *err) {
    struct entry *entry = &lab->entry[slot];
    attn_str body = ATTN_STR_INIT;
    attn_fields fields;
    attn_loss loss = {.outcome = ATTN_OUTCOME_CRASH};
    attn_verdict verdict;
    ATTN_TRY(get_ready(lab, &loss, err));
    attn_put_u32(&body, (uint32_t)slot);
    attn_put_binary(&body, &entry->binary);
    attn_put_text(&body, entry->target);
    attn_put_bytes(&body, &entry->launch, sizeof entry->launch);
    attn_put_u32(&body, entry->right ? 2 : 0);
    attn_status status = ask(lab, ATTN_MSG_PROVE, &body, &fields, &loss, err);
    attn_str_free(&body);
    if (status == ATTN_ERR_TIMEOUT)
        return status;
    if (status != ATTN_OK)
        return end(result, outcome_of(lab, status, &loss), err->line);
    attn_get_struct(&fields, &verdict, sizeof verdict);
    verdict.reason[sizeof verdict.reason - 1] = '\0';
    result->error_max = verdict.error;
    entry->loaded = entry->right = verdict.right;
    return end(result, verdict.right ? ATTN_OUTCOME_OK : ATTN_OUTCOME_WRONG, verdict.reason);
}

attn_status attn_lab_add(attn_lab *lab, const attn_variant *variant, const attn_binary *binary,
                         size_t *slot, attn_trial_result *result, attn_error *err) {
    attn_str target = ATTN_STR_INIT;
    if (lab->entries == ATTN_SLOTS)
        return attn_fail(err, ATTN_ERR_UNSUPPORTED, "at most %d variants at once", ATTN_SLOTS);
    struct entry *entry = &lab->entry[lab->entries];
    *slot = lab->entries++;
    memset(result, 0, sizeof *result);
    result->median_ns = result->error_max = NAN;
    result->clock_mhz = result->power_w = result->temperature_c = NAN;
    result->outcome = ATTN_OUTCOME_RUNNING;
    entry->binary = (attn_binary)ATTN_BINARY_INIT;
    ATTN_TRY(attn_launch_parse(variant->launch, &entry->launch, err));
    ATTN_TRY(lab->backend->target(&lab->device, variant->options, &target, err));
    entry->target = attn_str_take(&target);
    if (!entry->target)
        return attn_fail_nomem(err);
    if (binary)
        ATTN_TRY(copy_binary(binary, &entry->binary, err));
    else
        ATTN_TRY(compile(lab, variant, entry, result, err));
    result->registers = entry->binary.registers;
    result->spills = entry->binary.spills;
    result->smem = entry->binary.smem;
    return result->outcome == ATTN_OUTCOME_RUNNING ? prove(lab, *slot, result, err) : ATTN_OK;
}

/*-*** Timing ****************************************************/

/* What a loss took is loaded again. */
static attn_status load_again(attn_lab *lab, size_t slot, attn_error *err) {
    attn_trial_result result;
    if (slot >= lab->entries || !lab->entry[slot].right)
        return attn_fail(err, ATTN_ERR_INVALID, "variant %zu was not proved right", slot);
    if (lab->entry[slot].loaded)
        return ATTN_OK;
    ATTN_TRY(prove(lab, slot, &result, err));
    if (result.outcome != ATTN_OUTCOME_OK)
        return attn_fail(err, ATTN_ERR_LAUNCH, "variant %zu: %s", slot, result.error);
    return ATTN_OK;
}

static attn_status take_numbers(attn_fields *fields, double *to, size_t count, attn_error *err) {
    size_t size;
    const void *data = attn_get_bytes(fields, &size);
    if (size != count * sizeof *to)
        return attn_fail(err, ATTN_ERR_INTERNAL, "a worker's rounds have %zu bytes", size);
    memcpy(to, data, size);
    return ATTN_OK;
}

attn_status attn_lab_rounds(attn_lab *lab, const size_t *slots, size_t count, int32_t rounds,
                            double *ns, double *peak, attn_error *err) {
    attn_str body = ATTN_STR_INIT;
    attn_fields fields;
    attn_loss loss = {.slot = 0};
    for (size_t i = 0; i < count; i++)
        ATTN_TRY(load_again(lab, slots[i], err));
    attn_put_u32(&body, (uint32_t)rounds);
    attn_put_u32(&body, ATTN_ROUNDS_PEAKS);
    attn_put_u32(&body, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        attn_put_u32(&body, (uint32_t)slots[i]);
    attn_status status = ask(lab, ATTN_MSG_ROUNDS, &body, &fields, &loss, err);
    attn_str_free(&body);
    if (status == ATTN_ERR_TIMEOUT)
        return status;
    if (status != ATTN_OK) {
        uint32_t slot = lab->worker.pid ? attn_worker_slot(&lab->worker) : loss.slot;
        (void)attn_fail_prefix(err, "variant %u", slot);
        err->status = ATTN_ERR_LAUNCH;
        return ATTN_ERR_LAUNCH;
    }
    ATTN_TRY(take_numbers(&fields, ns, count * (size_t)rounds, err));
    return take_numbers(&fields, peak, (size_t)rounds, err);
}
