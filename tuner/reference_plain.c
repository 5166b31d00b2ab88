/* reference_plain.c: the error of the plain float32 algorithm, which the bounds of f32 rest on. */
#include <math.h>
#include <stdlib.h>

#include "reference_rows.h"

enum { SAMPLES = 128 };

/* One row as anyone would write it: all logits, their maximum, exp, sums in order. */
static void plain_row(const attn_forward_args *a, int64_t row, float *weight, float *o) {
    int64_t head = row / a->seq_q, b = head / a->heads_q, h = head % a->heads_q, begin, end;
    const float *q = (const float *)a->q + b * a->q_stride[0] + h * a->q_stride[1] +
                     row % a->seq_q * a->q_stride[2];
    const float *k = (const float *)a->k + b * a->k_stride[0] + h / a->group * a->k_stride[1];
    const float *v = (const float *)a->v + b * a->v_stride[0] + h / a->group * a->v_stride[1];
    float max = -INFINITY, sum = 0.0F;
    attn_visible_keys(a, row % a->seq_q, &begin, &end);
    for (int64_t j = begin; j < end; j++) {
        float dot = 0.0F;
        for (int32_t d = 0; d < a->head_dim; d++)
            dot += q[d] * k[j * a->k_stride[2] + d];
        weight[j] = dot * a->scale;
        max = weight[j] > max ? weight[j] : max;
    }
    for (int32_t c = 0; c < a->head_dim_v; c++)
        o[c] = 0.0F;
    for (int64_t j = begin; j < end; j++) {
        float p = expf(weight[j] - max);
        sum += p;
        for (int32_t c = 0; c < a->head_dim_v; c++)
            o[c] += p * v[j * a->v_stride[2] + c];
    }
    for (int32_t c = 0; c < a->head_dim_v; c++)
        o[c] = begin < end ? o[c] / sum : 0.0F;
}

/* So many rows that they take well under a tenth of a second. */
static int64_t samples(const attn_problem *p) {
    double work = (double)p->seq_kv * (p->head_dim + p->head_dim_v) + 1.0;
    return (int64_t)fmax(8.0, fmin(SAMPLES, 1e8 / work));
}

attn_status attn_reference_plain(const attn_inputs *inputs, attn_reference *ref, attn_error *err) {
    const attn_problem *p = &inputs->problem;
    attn_forward_args args;
    attn_problem_args(p, &inputs->host, &args);
    float *weight = malloc(((size_t)p->seq_kv + 1) * sizeof *weight);
    float *o = calloc((size_t)p->head_dim_v, sizeof *o);
    double wrong = 0, whole = 0;
    int64_t n = samples(p), step = ref->rows > n ? ref->rows / n : 1;
    for (int64_t i = 0; weight && o && i < ref->rows; i += step) {
        const double *want = ref->o + i * p->head_dim_v;
        double row_wrong = 0, row_whole = ref->size[i] * ref->size[i];
        plain_row(&args, ref->row[i], weight, o);
        for (int32_t c = 0; c < p->head_dim_v; c++)
            row_wrong += (o[c] - want[c]) * (o[c] - want[c]);
        if (isfinite(row_wrong) && isfinite(row_whole)) {
            wrong += row_wrong;
            whole += row_whole;
        }
    }
    ref->plain = whole > 0 ? sqrt(wrong / whole) : 0.0;
    bool good = weight && o;
    free(weight);
    free(o);
    return good ? ATTN_OK : attn_fail_nomem(err);
}
