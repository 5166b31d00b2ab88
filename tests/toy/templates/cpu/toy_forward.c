/* toy_forward.c: plain attention for the tests, one query row at a time in two passes. */
#include "attn_abi.h"

#include <math.h>

enum { D = $(HEAD_DIM), DV = $(HEAD_DIM_V), ROWS = $(ROWS), LANES = $(LANES) };

static float dot(const float *a, const float *b) {
    float sum[LANES] = {0};
    for (int d = 0; d < D; d += LANES) {
        //@ for lane = 0, LANES - 1 do
        sum[$(lane)] += a[d + $(lane)] * b[d + $(lane)];
        //@ end
    }
    float total = 0;
    for (int lane = 0; lane < LANES; lane++)
        total += sum[lane];
    return total;
}

static void row(const attn_forward_args *a, attn_i64 batch, attn_i64 head, attn_i64 i) {
    const attn_i64 kv_head = head / a->group;
    const float *q =
        (const float *)a->q + batch * a->q_stride[0] + head * a->q_stride[1] + i * a->q_stride[2];
    const float *k = (const float *)a->k + batch * a->k_stride[0] + kv_head * a->k_stride[1];
    const float *v = (const float *)a->v + batch * a->v_stride[0] + kv_head * a->v_stride[1];
    float *o = (float *)a->o + batch * a->o_stride[0] + head * a->o_stride[1] + i * a->o_stride[2];
    attn_i64 from = i + a->mask_offset - a->mask_left, to = i + a->mask_offset + a->mask_right;
    float acc[DV] = {0}, best = -INFINITY, sum = 0;
    from = from > 0 ? from : 0;
    to = to < a->seq_kv - 1 ? to : a->seq_kv - 1;
    for (attn_i64 j = from; j <= to; j++)
        best = fmaxf(best, a->scale * dot(q, k + j * a->k_stride[2]));
    for (attn_i64 j = from; j <= to; j++) {
        const float weight = expf(a->scale * dot(q, k + j * a->k_stride[2]) - best);
        sum += weight;
        for (int d = 0; d < DV; d++)
            acc[d] += weight * v[j * a->v_stride[2] + d];
    }
    for (int d = 0; d < DV; d++)
        o[d] = from <= to ? acc[d] / sum : 0;
    //@ if p.lse then
    a->lse[(batch * a->heads_q + head) * a->seq_q + i] = from <= to ? best + logf(sum) : -INFINITY;
    //@ end
}

int $(KERNEL)(const attn_forward_args *a, int task, int worker) {
    const int tile = task % a->tiles, head = task / a->tiles % a->heads_q;
    const int batch = task / a->tiles / a->heads_q;
    (void)worker;
    for (int r = 0; r < ROWS && tile * ROWS + r < a->seq_q; r++)
        row(a, batch, head, tile * ROWS + r);
    return 0;
}
