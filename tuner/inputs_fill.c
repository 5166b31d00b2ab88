/* inputs_fill.c: reproducible random tensors of each kind. */
#include "inputs_fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"

enum {
    DIM_MAX = 1024, /* attn_problem_check's */
    POOL = 1 << 18  /* elements of a tensor that are drawn one by one */
};

/* splitmix64 */
uint64_t attn_random_next(attn_random *random) {
    uint64_t x = random->state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t attn_random_below(attn_random *random, uint64_t n) {
    return attn_random_next(random) % n;
}

/* The sum of four uniform numbers, brought to mean 0 and standard deviation 1. */
float attn_random_normal(attn_random *random) {
    uint64_t x = attn_random_next(random);
    int32_t sum = (int32_t)((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48));
    return (float)(sum - 131070) * (float)(1.0 / 37837.228);
}

void attn_visible_keys(const attn_forward_args *a, int64_t row, int64_t *begin, int64_t *end) {
    int64_t middle = row + a->mask_offset;
    int64_t first = middle - a->mask_left, last = middle + a->mask_right;
    *begin = first > 0 ? first : 0;
    *end = last + 1 < a->seq_kv ? last + 1 : a->seq_kv;
    if (*begin >= *end)
        *begin = *end = 0;
}

struct filling {
    attn_forward_args args;
    const attn_inputs *inputs;
    attn_random random;
    int64_t heads, rows; /* of the tensor being filled */
    float row[DIM_MAX];
    float key[DIM_MAX];
};

static char *row_at(const struct filling *f, const void *base, const int64_t stride[3], int64_t b,
                    int64_t h, int64_t r) {
    int64_t offset = b * stride[0] + h * stride[1] + r * stride[2];
    return (char *)(uintptr_t)base + offset * (int64_t)attn_dtype_size(f->inputs->problem.dtype);
}

static void random_row(struct filling *f, int64_t dim, float factor) {
    for (int64_t d = 0; d < dim; d++)
        f->row[d] = factor * attn_random_normal(&f->random);
}

/* A row along one visible key, so long that this key outweighs all others together. */
static void peaked_query(struct filling *f, int64_t b, int64_t h, int64_t r) {
    const attn_forward_args *a = &f->args;
    int64_t begin, end, dim = a->head_dim;
    attn_visible_keys(a, r, &begin, &end);
    random_row(f, dim, 1.0F);
    if (begin == end || a->scale == 0.0F)
        return;
    int64_t key = begin + (int64_t)attn_random_below(&f->random, (uint64_t)(end - begin));
    attn_dtype_to_float(f->inputs->problem.dtype,
                        row_at(f, a->k, a->k_stride, b, h / a->group, key), f->key, (size_t)dim);
    float norm = 1e-3F;
    for (int64_t d = 0; d < dim; d++)
        norm += f->key[d] * f->key[d];
    /* Other keys' logits spread by logit / sqrt(dim); four times that must stay below it. */
    double others = fmin(4.0 / sqrt((double)dim), 0.65);
    double logit = (log((double)(end - begin)) + 3.0) / (1.0 - others);
    for (int64_t d = 0; d < dim; d++)
        f->row[d] = (float)logit / (a->scale * norm) * f->key[d];
}

/* Standard deviation of a query's elements that gives the logits theirs. */
static float query_sigma(const struct filling *f) {
    float scale = fabsf(f->args.scale);
    float sigma = f->inputs->spec.kind == ATTN_INPUT_STD8 ? 8.0F : 1.0F;
    return scale > 0.0F ? sigma / (scale * sqrtf((float)f->args.head_dim)) : sigma;
}

static void query_row(struct filling *f, int64_t b, int64_t h, int64_t r) {
    int64_t dim = f->args.head_dim;
    if (f->inputs->spec.kind == ATTN_INPUT_PEAKED) {
        peaked_query(f, b, h, r);
    } else if (f->inputs->spec.kind == ATTN_INPUT_HUGE) {
        for (int64_t d = 0; d < dim; d++)
            f->row[d] = d == 0 ? 1.0F : 0.0F;
    } else {
        random_row(f, dim, query_sigma(f));
    }
}

static void key_row(struct filling *f, int64_t b, int64_t h, int64_t r) {
    int64_t dim = f->args.head_dim;
    if (f->inputs->spec.kind == ATTN_INPUT_HUGE) {
        for (int64_t d = 0; d < dim; d++)
            f->row[d] = 0.0F;
        f->row[0] = (float)(r % 5 == 1 ? r : r + 1); /* 1 1 3 4 5 6 6 8 ... */
    } else if (f->inputs->spec.kind != ATTN_INPUT_TIES || r == 0) {
        random_row(f, dim, 1.0F); /* ties: the first row again and again */
    }
    (void)b;
    (void)h;
}

static void value_row(struct filling *f, int64_t b, int64_t h, int64_t r) {
    int64_t dim = f->args.head_dim_v;
    random_row(f, dim, 1.0F);
    if (f->inputs->spec.kind == ATTN_INPUT_DENORMAL)
        for (int64_t d = 1; d < dim; d += 2)
            f->row[d] *= f->inputs->problem.dtype == ATTN_F16 ? 1e-6F : 1e-39F;
    (void)b;
    (void)h;
    (void)r;
}

typedef void row_maker(struct filling *f, int64_t b, int64_t h, int64_t r);

/* Fills one tensor row by row. A large one that is all random takes its rows from anywhere in a
 * pool of that many elements, since drawing each would take seconds. */
static attn_status fill(struct filling *f, const void *base, const int64_t stride[3], int64_t dim,
                        row_maker *make_row, float sigma, uint64_t seed, attn_error *err) {
    attn_dtype dtype = f->inputs->problem.dtype;
    size_t element = attn_dtype_size(dtype);
    attn_input_kind kind = f->inputs->spec.kind;
    bool random = kind <= ATTN_INPUT_STD8 || (kind == ATTN_INPUT_PEAKED && make_row != query_row);
    bool pooled = random && f->args.batch * f->heads * f->rows > POOL / dim;
    char *pool = pooled ? malloc(POOL * element) : NULL;
    if (pooled && !pool)
        return attn_fail_nomem(err);
    f->random.state = seed;
    for (int64_t i = 0; pooled && i < POOL; i++) {
        random_row(f, 1, sigma);
        attn_dtype_from_float(dtype, f->row, pool + (size_t)i * element, 1);
    }
    for (int64_t b = 0; b < f->args.batch; b++) {
        for (int64_t h = 0; h < f->heads; h++) {
            for (int64_t r = 0; r < f->rows; r++) {
                char *row = row_at(f, base, stride, b, h, r);
                if (pooled) {
                    size_t at = attn_random_below(&f->random, (uint64_t)(POOL - dim));
                    memcpy(row, pool + at * element, (size_t)dim * element);
                } else {
                    make_row(f, b, h, r);
                    attn_dtype_from_float(dtype, f->row, row, (size_t)dim);
                }
            }
        }
    }
    free(pool);
    return ATTN_OK;
}

static void put_nans(const struct filling *f, const void *base, const int64_t stride[3], int64_t b,
                     int64_t h, int64_t r, int64_t dim) {
    static const float nan = NAN;
    char *row = row_at(f, base, stride, b, h, r);
    for (int64_t d = 0; d < dim; d++)
        attn_dtype_from_float(f->inputs->problem.dtype, &nan,
                              row + d * (int64_t)attn_dtype_size(f->inputs->problem.dtype), 1);
}

attn_status attn_inputs_fill(attn_inputs *inputs, attn_error *err) {
    const attn_problem *p = &inputs->problem;
    struct filling f = {.inputs = inputs};
    const attn_forward_args *a = &f.args;
    attn_random seeds = {inputs->spec.seed};
    attn_problem_args(p, &inputs->host, &f.args);
    f.heads = p->heads_kv;
    f.rows = p->seq_kv;
    ATTN_TRY(
        fill(&f, a->k, a->k_stride, p->head_dim, key_row, 1.0F, attn_random_next(&seeds), err));
    ATTN_TRY(
        fill(&f, a->v, a->v_stride, p->head_dim_v, value_row, 1.0F, attn_random_next(&seeds), err));
    f.heads = p->heads_q;
    f.rows = p->seq_q;
    ATTN_TRY(fill(&f, a->q, a->q_stride, p->head_dim, query_row, query_sigma(&f),
                  attn_random_next(&seeds), err));

    if (inputs->spec.kind == ATTN_INPUT_NAN_QUERY && p->seq_q > 0)
        for (int64_t b = 0; b < p->batch; b++)
            for (int64_t h = 0; h < p->heads_q; h++)
                put_nans(&f, a->q, a->q_stride, b, h,
                         (int64_t)attn_random_below(&seeds, (uint64_t)p->seq_q), p->head_dim);
    if (inputs->spec.kind == ATTN_INPUT_NAN_KEY && p->batch && p->heads_kv && p->seq_kv) {
        int64_t key = (int64_t)attn_random_below(&seeds, (uint64_t)p->seq_kv);
        put_nans(&f, a->k, a->k_stride, 0, 0, key, p->head_dim);
        put_nans(&f, a->v, a->v_stride, 0, 0, key, p->head_dim_v);
    }
    return ATTN_OK;
}
