/* naive.h: float64 attention of one row at a time, and tensors for it: the tests' own judge, kept
 * apart from the tuner's reference and from the library's. f32 only. */
#ifndef ATTN_TEST_NAIVE_H
#define ATTN_TEST_NAIVE_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem.h"

static _Thread_local uint64_t naive_random_state = 1;

__attribute__((unused)) static uint32_t naive_random(void) {
    naive_random_state = naive_random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(naive_random_state >> 33);
}

__attribute__((unused)) static float naive_uniform(void) {
    return (float)naive_random() / (float)(1u << 30) - 1.0f;
}

typedef struct naive_tensors {
    attn_forward_tensors t;
    float *buffer[4]; /* q, k, v, o */
    size_t elements[4];
    float *lse;
} naive_tensors;

/* Elements from the first to the last of a tensor, `dim` included. */
static size_t naive_extent(const int64_t stride[3], int64_t batch, int64_t heads, int64_t rows,
                           int64_t dim) {
    if (batch == 0 || heads == 0 || rows == 0)
        return 0;
    return (size_t)((batch - 1) * stride[0] + (heads - 1) * stride[1] + (rows - 1) * stride[2] +
                    dim);
}

/* Allocates tensors in the strides that n->t has and fills q, k and v; o and lse are NaN. */
__attribute__((unused)) static bool naive_fill(const attn_problem *p, naive_tensors *n) {
    n->elements[0] = naive_extent(n->t.q_stride, p->batch, p->heads_q, p->seq_q, p->head_dim);
    n->elements[1] = naive_extent(n->t.k_stride, p->batch, p->heads_kv, p->seq_kv, p->head_dim);
    n->elements[2] = naive_extent(n->t.v_stride, p->batch, p->heads_kv, p->seq_kv, p->head_dim_v);
    n->elements[3] = naive_extent(n->t.o_stride, p->batch, p->heads_q, p->seq_q, p->head_dim_v);
    size_t rows = (size_t)p->batch * (size_t)p->heads_q * (size_t)p->seq_q;
    bool good = true;
    for (int i = 0; i < 4; i++) {
        n->buffer[i] = aligned_alloc(64, (n->elements[i] * sizeof(float) + 127) / 64 * 64);
        good = good && n->buffer[i];
        for (size_t j = 0; good && j < n->elements[i]; j++)
            n->buffer[i][j] = i < 3 ? naive_uniform() : NAN;
    }
    n->lse = malloc((rows + 1) * sizeof(float));
    for (size_t i = 0; n->lse && i < rows; i++)
        n->lse[i] = NAN;
    n->t.q = n->buffer[0];
    n->t.k = n->buffer[1];
    n->t.v = n->buffer[2];
    n->t.o = n->buffer[3];
    n->t.lse = n->lse;
    return good && n->lse;
}

__attribute__((unused)) static void naive_free(naive_tensors *n) {
    for (int i = 0; i < 4; i++)
        free(n->buffer[i]);
    free(n->lse);
}

/* One row in float64: o has head_dim_v elements; returns the natural-log LSE. */
static double naive_row(const attn_forward_args *a, int b, int h, int i, double *o) {
    const float *q =
        (const float *)a->q + b * a->q_stride[0] + h * a->q_stride[1] + i * a->q_stride[2];
    const float *k = (const float *)a->k + b * a->k_stride[0] + h / a->group * a->k_stride[1];
    const float *v = (const float *)a->v + b * a->v_stride[0] + h / a->group * a->v_stride[1];
    double max = -INFINITY, sum = 0;
    int first = 0, end = a->seq_kv;
    if ((int64_t)i + a->mask_offset - a->mask_left > first)
        first = i + a->mask_offset - a->mask_left;
    if ((int64_t)i + a->mask_offset + a->mask_right + 1 < end)
        end = i + a->mask_offset + a->mask_right + 1;
    memset(o, 0, sizeof *o * (size_t)a->head_dim_v);
    for (int pass = 0; pass < 2; pass++)
        for (int j = first; j < end; j++) {
            double logit = 0;
            for (int d = 0; d < a->head_dim; d++)
                logit += (double)q[d] * (double)k[j * a->k_stride[2] + d];
            logit *= (double)a->scale;
            if (pass == 0) {
                max = logit > max ? logit : max;
                continue;
            }
            double weight = exp(logit - max);
            sum += weight;
            for (int d = 0; d < a->head_dim_v; d++)
                o[d] += weight * (double)v[j * a->v_stride[2] + d];
        }
    for (int d = 0; sum > 0 && d < a->head_dim_v; d++)
        o[d] /= sum;
    return sum > 0 ? max + log(sum) : -INFINITY;
}

/* The largest |o - want| (and |lse - want|, where asked) over all rows; INFINITY for a NaN. */
__attribute__((unused)) static double naive_error(const attn_problem *p, const naive_tensors *n) {
    attn_forward_args a;
    double worst = 0, o[1024];
    attn_problem_args(p, &n->t, &a);
    for (int b = 0; b < p->batch; b++)
        for (int h = 0; h < p->heads_q; h++)
            for (int i = 0; i < p->seq_q; i++) {
                double lse = naive_row(&a, b, h, i, o);
                const float *got =
                    (const float *)a.o + b * a.o_stride[0] + h * a.o_stride[1] + i * a.o_stride[2];
                for (int d = 0; d < p->head_dim_v; d++) {
                    double e = fabs((double)got[d] - o[d]);
                    worst = e <= worst ? worst : isnan(e) ? INFINITY : e;
                }
                if (!(p->features & ATTN_FEATURE_LSE))
                    continue;
                double is =
                    (double)n->lse[((size_t)b * (size_t)p->heads_q + (size_t)h) * (size_t)p->seq_q +
                                   (size_t)i];
                double e = is == lse ? 0 : fabs(is - lse) / (1 + fabs(lse));
                worst = e <= worst ? worst : isnan(e) ? INFINITY : e;
            }
    return worst;
}

#endif
