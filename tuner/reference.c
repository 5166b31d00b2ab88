/* reference.c: attention in float64, eight query rows at a time.
 *
 * The rows of a batch are the lanes of a vector and every element of K or V is one broadcast, so no
 * sum is reordered and a NaN in one row stays there. The compiler splits the vectors as the machine
 * needs. */
#include "reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "reference_rows.h"

enum { LANES = 8, DIM_MAX = 1024 };

typedef double lanes __attribute__((vector_size(8 * LANES)));

struct work {
    attn_forward_args args;
    lanes q[DIM_MAX]; /* times the scale */
    lanes o[DIM_MAX];
    double key[DIM_MAX]; /* one row of K or V */
    double max[LANES], sum[LANES], squares[LANES], logit[LANES];
    int64_t begin[LANES], end[LANES];
    const attn_inputs *inputs;
    lanes *score; /* [seq_kv] */
};

static const char *row_of(const struct work *w, const void *base, const int64_t stride[3],
                          int64_t b, int64_t h, int64_t r) {
    int64_t offset = b * stride[0] + h * stride[1] + r * stride[2];
    return (const char *)base + offset * (int64_t)attn_dtype_size(w->inputs->problem.dtype);
}

static void load_row(struct work *w, const void *base, const int64_t stride[3], int64_t b,
                     int64_t h, int64_t r, int32_t dim) {
    attn_dtype_to_double(w->inputs->problem.dtype, row_of(w, base, stride, b, h, r), w->key,
                         (size_t)dim);
}

/* Queries of up to LANES rows; lanes without a row are 0 and see nothing. */
static void load_batch(struct work *w, const int64_t *row, int count, int64_t *first,
                       int64_t *last) {
    const attn_forward_args *a = &w->args;
    memset(w->q, 0, sizeof w->q);
    *first = INT64_MAX;
    *last = 0;
    for (int i = 0; i < LANES; i++) {
        w->begin[i] = w->end[i] = 0;
        if (i >= count)
            continue;
        int64_t head = row[i] / a->seq_q, r = row[i] % a->seq_q;
        load_row(w, a->q, a->q_stride, head / a->heads_q, head % a->heads_q, r, a->head_dim);
        for (int32_t d = 0; d < a->head_dim; d++)
            w->q[d][i] = w->key[d] * (double)a->scale;
        attn_visible_keys(a, r, &w->begin[i], &w->end[i]);
        if (w->begin[i] == w->end[i])
            continue;
        *first = w->begin[i] < *first ? w->begin[i] : *first;
        *last = w->end[i] > *last ? w->end[i] : *last;
    }
}

/* score[j - first] = the logits of key j. */
static void score_keys(struct work *w, int64_t b, int64_t h, int64_t first, int64_t last) {
    const attn_forward_args *a = &w->args;
    for (int64_t j = first; j < last; j++) {
        lanes sum = {0};
        load_row(w, a->k, a->k_stride, b, h, j, a->head_dim);
        for (int32_t d = 0; d < a->head_dim; d++)
            sum += w->key[d] * w->q[d];
        w->score[j - first] = sum;
    }
}

/* Turns logits into weights: exp(logit - max) where the row sees the key, else 0. */
static void weigh_keys(struct work *w, int64_t first, int64_t last) {
    for (int i = 0; i < LANES; i++) {
        double max = -INFINITY, sum = 0, squares = 0, logit = 0;
        for (int64_t j = w->begin[i]; j < w->end[i]; j++) {
            double s = w->score[j - first][i];
            max = s > max ? s : max;
            logit = fmax(logit, fabs(s));
        }
        for (int64_t j = first; j < last; j++) {
            bool seen = j >= w->begin[i] && j < w->end[i];
            double p = seen ? exp(w->score[j - first][i] - max) : 0.0;
            w->score[j - first][i] = p;
            sum += p;
            squares += p * p;
        }
        w->max[i] = max;
        w->sum[i] = sum;
        w->squares[i] = squares;
        w->logit[i] = logit;
    }
}

/* What compare.h says: the larger of ||o|| and its average under these weights. */
static double size_of(const struct work *w, int i, const double *o) {
    const int32_t columns = w->args.head_dim_v;
    double norm = 0;
    for (int32_t c = 0; c < columns; c++)
        norm += o[c] * o[c];
    return sqrt(fmax(norm, columns * w->squares[i] / (w->sum[i] * w->sum[i])));
}

static void sum_values(struct work *w, int64_t b, int64_t h, int64_t first, int64_t last) {
    const attn_forward_args *a = &w->args;
    memset(w->o, 0, sizeof w->o);
    for (int64_t j = first; j < last; j++) {
        const lanes p = w->score[j - first];
        load_row(w, a->v, a->v_stride, b, h, j, a->head_dim_v);
        for (int32_t c = 0; c < a->head_dim_v; c++)
            w->o[c] += w->key[c] * p;
    }
}

/* The rows [at, at + count) of the list, all of one (batch, kv head). */
static void compute_batch(struct work *w, attn_reference *ref, int64_t at, int count) {
    const attn_forward_args *a = &w->args;
    int64_t first, last, head = ref->row[at] / a->seq_q;
    int64_t b = head / a->heads_q, h = head % a->heads_q / a->group;
    load_batch(w, ref->row + at, count, &first, &last);
    if (first < last) {
        score_keys(w, b, h, first, last);
        weigh_keys(w, first, last);
        sum_values(w, b, h, first, last);
    }
    for (int i = 0; i < count; i++) {
        bool blind = w->begin[i] == w->end[i];
        double *o = ref->o + (at + i) * a->head_dim_v;
        for (int32_t c = 0; c < a->head_dim_v; c++)
            o[c] = blind ? 0.0 : w->o[c][i] / w->sum[i];
        ref->lse[at + i] = blind ? -INFINITY : w->max[i] + log(w->sum[i]);
        ref->logit[at + i] = blind ? 0.0 : w->logit[i];
        ref->size[at + i] = blind ? 0.0 : size_of(w, i, o);
    }
}

static void compute_rows(struct work *w, attn_reference *ref) {
    const attn_forward_args *a = &w->args;
    for (int64_t at = 0; at < ref->rows;) {
        int64_t owner = ref->row[at] / a->seq_q / a->group;
        int count = 1;
        while (count < LANES && at + count < ref->rows &&
               ref->row[at + count] / a->seq_q / a->group == owner)
            count++;
        compute_batch(w, ref, at, count);
        at += count;
    }
}

static attn_status allocate(const attn_forward_args *a, attn_reference *ref, struct work **work,
                            attn_error *err) {
    size_t rows = ref->rows > 0 ? (size_t)ref->rows : 1, keys = (size_t)a->seq_kv + 1;
    ref->o = calloc(rows * (size_t)a->head_dim_v, sizeof *ref->o);
    ref->lse = calloc(rows, sizeof *ref->lse);
    ref->logit = calloc(rows, sizeof *ref->logit);
    ref->size = calloc(rows, sizeof *ref->size);
    *work = aligned_alloc(_Alignof(struct work), sizeof **work);
    if (*work)
        (*work)->score = aligned_alloc(sizeof(lanes), keys * sizeof(lanes));
    if (ref->o && ref->lse && ref->logit && ref->size && *work && (*work)->score)
        return ATTN_OK;
    return attn_fail_nomem(err);
}

attn_status attn_reference_make(const attn_inputs *inputs, double budget, uint64_t seed,
                                attn_reference *ref, attn_error *err) {
    struct work *w = NULL;
    attn_forward_args args;
    memset(ref, 0, sizeof *ref);
    ref->ignored = inputs->spec.kind == ATTN_INPUT_NAN_KEY ? 0 : -1;
    attn_problem_args(&inputs->problem, &inputs->host, &args);
    ATTN_TRY(attn_reference_rows(&inputs->problem, budget, seed, ref, err));
    attn_status st = allocate(&args, ref, &w, err);
    if (st == ATTN_OK) {
        w->inputs = inputs;
        w->args = args;
        compute_rows(w, ref);
        if (inputs->problem.dtype == ATTN_F32)
            st = attn_reference_plain(inputs, ref, err);
    }
    if (w)
        free(w->score);
    free(w);
    return st;
}

void attn_reference_free(attn_reference *ref) {
    free(ref->row);
    free(ref->o);
    free(ref->lse);
    free(ref->logit);
    free(ref->size);
    memset(ref, 0, sizeof *ref);
}
