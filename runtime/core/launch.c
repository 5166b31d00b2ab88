/* launch.c: counting a launch record's tasks and workspace, and checking its limits. */
#include "core/launch.h"

#include <inttypes.h>
#include <stdint.h>

const attn_limit *attn_limits_broken(const attn_launch *launch, const attn_problem *problem) {
    for (int32_t i = 0; i < launch->limits; i++) {
        const attn_limit *limit = &launch->limit[i];
        int64_t value = attn_field_get(problem, limit->field);
        if (value < limit->min || value > limit->max || value % limit->multiple_of != 0)
            return limit;
    }
    return NULL;
}

void attn_limit_explain(const attn_limit *limit, const attn_problem *problem, attn_str *out) {
    attn_str_append_f(out, "%s is %" PRId64 ", but this variant takes",
                      attn_field_name(limit->field), attn_field_get(problem, limit->field));
    if (limit->min == limit->max) {
        attn_str_append_f(out, " %" PRId64, limit->min);
        return;
    }
    if (limit->multiple_of > 1)
        attn_str_append_f(out, " multiples of %" PRId64, limit->multiple_of);
    else
        attn_str_append(out, " values");
    attn_str_append_f(out, " from %" PRId64, limit->min);
    if (limit->max == INT64_MAX)
        attn_str_append(out, " up");
    else
        attn_str_append_f(out, " to %" PRId64, limit->max);
}

static int64_t group_of(const attn_problem *p) {
    return p->heads_kv ? p->heads_q / p->heads_kv : 0;
}

int64_t attn_step_tiles(const attn_step *step, const attn_problem *p) {
    int64_t rows = step->grid == ATTN_GRID_KV_TILES ? p->seq_kv
                   : step->packed                   ? p->seq_q * group_of(p)
                                                    : p->seq_q;
    return (rows + step->rows - 1) / step->rows;
}

int64_t attn_step_tasks(const attn_step *step, const attn_launch *launch, const attn_problem *p) {
    bool by_kv = step->packed || step->grid == ATTN_GRID_KV_TILES;
    int64_t heads = (int64_t)p->batch * (by_kv ? p->heads_kv : p->heads_q);
    int64_t tasks, splits = step->grid == ATTN_GRID_SPLIT ? launch->splits : 1;
    if (__builtin_mul_overflow(heads, attn_step_tiles(step, p), &tasks) ||
        __builtin_mul_overflow(tasks, splits, &tasks))
        return INT64_MAX;
    return tasks;
}

int64_t attn_step_task_at(const attn_step *step, int64_t n, int64_t tiles, int64_t tasks) {
    if (step->order == ATTN_ORDER_ROW || step->grid == ATTN_GRID_SPLIT || tiles <= 1)
        return n;
    int64_t heads = tasks / tiles;
    return (n % heads) * tiles + (tiles - 1 - n / heads);
}

static int64_t term_count(const attn_workspace_term *term, const attn_launch *launch,
                          const attn_problem *p, int32_t workers) {
    int64_t heads_q = (int64_t)p->batch * p->heads_q, heads_kv = (int64_t)p->batch * p->heads_kv;
    const int64_t counts[] = {
        [ATTN_PER_CALL] = 1,
        [ATTN_PER_WORKER] = workers,
        [ATTN_PER_KV_HEAD] = heads_kv,
        [ATTN_PER_HEAD] = heads_q,
        [ATTN_PER_ROW] = heads_q * p->seq_q * launch->splits,
        [ATTN_PER_KEY] =
            heads_kv * ((p->seq_kv + term->round - 1) / term->round * (int64_t)term->round),
    };
    return counts[term->per];
}

/* Bytes of one term rounded up to 256; INT64_MAX if that overflows. */
static int64_t term_bytes(const attn_workspace_term *term, const attn_launch *launch,
                          const attn_problem *p, int32_t workers) {
    int64_t bytes;
    if (__builtin_mul_overflow(term->bytes, term_count(term, launch, p, workers), &bytes) ||
        bytes > INT64_MAX / 8)
        return INT64_MAX / 8;
    return (bytes + 255) / 256 * 256;
}

size_t attn_workspace_bytes(const attn_launch *launch, const attn_problem *p, int32_t workers) {
    int64_t total = 0;
    for (int32_t i = 0; i < launch->terms; i++)
        total += term_bytes(&launch->term[i], launch, p, workers);
    return (size_t)total;
}

void attn_workspace_assign(const attn_launch *launch, const attn_problem *p, int32_t workers,
                           void *ws, attn_forward_args *args) {
    char *at = ws;
    for (int32_t i = 0; i < launch->terms; i++) {
        args->workspace[i] = at;
        at += term_bytes(&launch->term[i], launch, p, workers);
    }
    args->splits = launch->splits;
    args->workers = workers;
}

attn_status attn_launch_fits(const attn_launch *launch, const attn_problem *p, attn_error *err) {
    for (int32_t i = 0; i < launch->steps; i++) {
        if (launch->step[i].packed && p->seq_q * group_of(p) > ATTN_SEQ_MAX)
            return attn_fail(err, ATTN_ERR_UNSUPPORTED,
                             "the problem has more than 2^28 rows a key head");
        if (attn_step_tasks(&launch->step[i], launch, p) > INT32_MAX)
            return attn_fail(err, ATTN_ERR_UNSUPPORTED,
                             "the problem has more than 2^31 tiles; split its batch or heads");
    }
    if (attn_workspace_bytes(launch, p, 1024) > PTRDIFF_MAX / 2)
        return attn_fail(err, ATTN_ERR_UNSUPPORTED, "the problem's workspace is too large");
    return ATTN_OK;
}
