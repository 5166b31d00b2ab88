/* cpu_reference.c: attention with an online softmax, accumulated in double; see cpu_reference.h.
 *
 * A task has a few query rows of one head. It goes once over the keys that any of them sees, and
 * keeps for each row the largest logit so far, the sum of the exponentials relative to it, and the
 * weighted sum of the value rows. */
#include "cpu_reference.h"

#include <math.h>

#include "core/dtype.h"
#include "core/problem.h"

enum { ROWS = 4, DIM_MAX = 1024 };

typedef struct row_state {
    int64_t key_begin, key_end; /* the keys that this row sees */
    double max, sum;
    float q[DIM_MAX];
    double out[DIM_MAX];
} row_state;

static void load_row(attn_dtype dtype, const void *base, int64_t offset, int32_t n, float *to) {
    const char *at = (const char *)base + offset * (int64_t)attn_dtype_size(dtype);
    attn_dtype_to_float(dtype, at, to, (size_t)n);
}

static void store_row(attn_dtype dtype, void *base, int64_t offset, int32_t n, const float *from) {
    char *at = (char *)base + offset * (int64_t)attn_dtype_size(dtype);
    attn_dtype_from_float(dtype, from, at, (size_t)n);
}

/* Four partial sums, so that one addition need not wait for the one before. */
static double dot(const float *a, const float *b, int32_t n) {
    double sum[4] = {0};
    int32_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int32_t j = 0; j < 4; j++)
            sum[j] += (double)a[i + j] * (double)b[i + j];
    for (; i < n; i++)
        sum[0] += (double)a[i] * (double)b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* One more key. A NaN logit fails the comparison and makes sum and out NaN. */
static void add_key(row_state *row, double logit, const float *v, int32_t n) {
    if (logit > row->max) {
        double shrink = exp(row->max - logit);
        row->max = logit;
        row->sum *= shrink;
        for (int32_t i = 0; i < n; i++)
            row->out[i] *= shrink;
    }
    double p = exp(logit - row->max);
    row->sum += p;
    for (int32_t i = 0; i < n; i++)
        row->out[i] += p * (double)v[i];
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

static void begin_row(const attn_forward_args *a, attn_dtype dtype, int64_t offset, int64_t row,
                      row_state *state) {
    int64_t diagonal = row + a->mask_offset;
    state->key_begin = clamp(diagonal - a->mask_left, 0, a->seq_kv);
    state->key_end = clamp(diagonal + a->mask_right + 1, state->key_begin, a->seq_kv);
    state->max = -INFINITY;
    state->sum = 0;
    load_row(dtype, a->q, offset + row * a->q_stride[2], a->head_dim, state->q);
    for (int32_t i = 0; i < a->head_dim_v; i++)
        state->out[i] = 0;
}

/* A row that saw no key has out 0 and max -inf, and gets O = 0 and LSE = -inf. */
static void end_row(const attn_forward_args *a, attn_dtype dtype, int64_t offset, float *lse,
                    const row_state *state) {
    bool empty = state->key_begin == state->key_end;
    float o[DIM_MAX];
    for (int32_t i = 0; i < a->head_dim_v; i++)
        o[i] = empty ? 0 : (float)(state->out[i] / state->sum);
    store_row(dtype, a->o, offset, a->head_dim_v, o);
    if (lse)
        *lse = empty ? -INFINITY : (float)(state->max + log(state->sum));
}

static void run_rows(const attn_forward_args *a, attn_dtype dtype, int64_t batch, int64_t head,
                     int64_t first, int32_t rows) {
    float k[DIM_MAX], v[DIM_MAX];
    row_state state[ROWS];
    int64_t head_kv = head / a->group;
    int64_t q_at = batch * a->q_stride[0] + head * a->q_stride[1];
    int64_t k_at = batch * a->k_stride[0] + head_kv * a->k_stride[1];
    int64_t v_at = batch * a->v_stride[0] + head_kv * a->v_stride[1];
    int64_t o_at = batch * a->o_stride[0] + head * a->o_stride[1];
    int64_t key_begin = a->seq_kv, key_end = 0;
    for (int32_t r = 0; r < rows; r++) {
        begin_row(a, dtype, q_at, first + r, &state[r]);
        key_begin = state[r].key_begin < key_begin ? state[r].key_begin : key_begin;
        key_end = state[r].key_end > key_end ? state[r].key_end : key_end;
    }
    for (int64_t key = key_begin; key < key_end; key++) {
        load_row(dtype, a->k, k_at + key * a->k_stride[2], a->head_dim, k);
        load_row(dtype, a->v, v_at + key * a->v_stride[2], a->head_dim_v, v);
        for (row_state *row = state; row < state + rows; row++)
            if (key >= row->key_begin && key < row->key_end)
                add_key(row, (double)a->scale * dot(row->q, k, a->head_dim), v, a->head_dim_v);
    }
    for (int32_t r = 0; r < rows; r++) {
        int64_t row = first + r;
        float *lse = a->lse ? a->lse + (batch * a->heads_q + head) * a->seq_q + row : NULL;
        end_row(a, dtype, o_at + row * a->o_stride[2], lse, &state[r]);
    }
}

static int run_task(const attn_forward_args *a, attn_dtype dtype, int task) {
    int64_t tile = task % a->tiles, head = task / a->tiles;
    int64_t first = tile * ROWS, left = a->seq_q - first;
    run_rows(a, dtype, head / a->heads_q, head % a->heads_q, first,
             (int32_t)(left < ROWS ? left : ROWS));
    return 0;
}

static int run_f32(const attn_forward_args *a, int task, int worker) {
    (void)worker;
    return run_task(a, ATTN_F32, task);
}

static int run_f16(const attn_forward_args *a, int task, int worker) {
    (void)worker;
    return run_task(a, ATTN_F16, task);
}

static int run_bf16(const attn_forward_args *a, int task, int worker) {
    (void)worker;
    return run_task(a, ATTN_BF16, task);
}

attn_task_function *attn_reference_function(attn_dtype dtype) {
    return attn_dtype_size(dtype) == 4 ? run_f32 : dtype == ATTN_F16 ? run_f16 : run_bf16;
}

void attn_reference_launch(attn_launch *launch) {
    *launch = (attn_launch){
        .steps = 1,
        .splits = 1,
        .step = {{.symbol = "attn_reference",
                  .threads = 1,
                  .cluster = 1,
                  .grid = ATTN_GRID_TILES,
                  .rows = ROWS,
                  .order = ATTN_ORDER_LONGEST_FIRST,
                  .deal = ATTN_DEAL_DYNAMIC,
                  .blocks_per_sm = 1}},
    };
}
