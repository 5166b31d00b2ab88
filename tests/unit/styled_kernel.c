/* styled_kernel.c: see styled_kernel.h. */
#include "styled_kernel.h"

#include <math.h>

#include "core/dtype.h"
#include "inputs.h"

enum { DIM_MAX = 1024, BLOCK_MAX = 256, LANES_MAX = 64 };

static void load_row(const styled_kernel *s, const void *base, int64_t at, int32_t dim,
                     float *row) {
    attn_dtype_to_float(s->dtype, (const char *)base + at * (int64_t)attn_dtype_size(s->dtype), row,
                        (size_t)dim);
}

static float dot(const styled_kernel *s, const float *a, const float *b, int32_t n) {
    float sum[LANES_MAX] = {0}, all = 0;
    const int lanes = s->lanes;
    for (int32_t first = 0; first < n; first += lanes)
        for (int32_t i = 0; i < lanes && first + i < n; i++)
            sum[i] += a[first + i] * b[first + i];
    for (int i = 0; i < lanes; i++)
        all += sum[i];
    return all;
}

static float weigh(const styled_kernel *s, float logit, float max) {
    float weight = expf(logit - max);
    char bits[4];
    if (!s->rounded)
        return weight;
    attn_dtype_from_float(s->dtype, &weight, bits, 1);
    attn_dtype_to_float(s->dtype, bits, &weight, 1);
    return weight;
}

float styled_row(const styled_kernel *s, const attn_forward_args *a, int64_t head, int64_t row,
                 float *o) {
    const int64_t b = head / a->heads_q, h = head % a->heads_q, kv = h / a->group;
    const int64_t k = b * a->k_stride[0] + kv * a->k_stride[1];
    const int64_t v = b * a->v_stride[0] + kv * a->v_stride[1];
    float q[DIM_MAX], key[DIM_MAX], logit[BLOCK_MAX], max = -INFINITY, sum = 0;
    int64_t begin, end;
    load_row(s, a->q, b * a->q_stride[0] + h * a->q_stride[1] + row * a->q_stride[2], a->head_dim,
             q);
    for (int32_t c = 0; c < a->head_dim_v; c++)
        o[c] = 0;
    attn_visible_keys(a, row, &begin, &end);
    for (int64_t first = begin; first < end; first += s->block) {
        const int64_t n = end - first < s->block ? end - first : s->block;
        float top = max;
        for (int64_t j = 0; j < n; j++) {
            load_row(s, a->k, k + (first + j) * a->k_stride[2], a->head_dim, key);
            logit[j] = dot(s, q, key, a->head_dim) * a->scale;
            top = fmaxf(top, logit[j]);
        }
        const float old = max == top ? 1.0F : expf(max - top);
        max = top;
        sum *= old;
        for (int32_t c = 0; c < a->head_dim_v; c++)
            o[c] *= old;
        for (int64_t j = 0; j < n; j++) {
            const float weight = weigh(s, logit[j], max);
            sum += expf(logit[j] - max);
            load_row(s, a->v, v + (first + j) * a->v_stride[2], a->head_dim_v, key);
            for (int32_t c = 0; c < a->head_dim_v; c++)
                o[c] += weight * key[c];
        }
    }
    for (int32_t c = 0; begin < end && c < a->head_dim_v; c++)
        o[c] /= sum;
    return begin < end ? max + logf(sum) : -INFINITY;
}

void *styled_output(const styled_kernel *s, const attn_forward_args *a, int64_t head, int64_t row) {
    int64_t at = head / a->heads_q * a->o_stride[0] + head % a->heads_q * a->o_stride[1] +
                 row * a->o_stride[2];
    return (char *)a->o + at * (int64_t)attn_dtype_size(s->dtype);
}
