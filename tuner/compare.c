/* compare.c: judging an output head by head and row by row. */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/dtype.h"

enum { DIM_MAX = 1024 };

#define PLAIN_FACTOR 4.0 /* f32: so many times the error of the plain float32 algorithm */

static const attn_bounds BOUNDS[] = {
    [ATTN_F32] = {5e-6, ATTN_ROW_FACTOR * 5e-6, 2e-6},
    [ATTN_F16] = {6e-4, ATTN_ROW_FACTOR * 6e-4, 1e-5},
    [ATTN_BF16] = {5e-3, ATTN_ROW_FACTOR * 5e-3, 1e-5},
    [ATTN_TF32] = {6e-4, ATTN_ROW_FACTOR * 6e-4, 1e-5},
};

attn_bounds attn_bounds_of(attn_dtype dtype, double plain) {
    attn_bounds bounds = BOUNDS[dtype];
    if (dtype == ATTN_F32 && PLAIN_FACTOR * plain > bounds.head) {
        bounds.head = PLAIN_FACTOR * plain;
        bounds.row = ATTN_ROW_FACTOR * bounds.head;
    }
    return bounds;
}

double attn_head_bound(double bound, int64_t elements) {
    return bound * (1.0 + (ATTN_ROW_FACTOR - 1.0) / sqrt(elements > 1 ? (double)elements : 1.0));
}

size_t attn_output_offset(const attn_inputs *inputs, int64_t head, int64_t row) {
    const attn_forward_tensors *t = &inputs->host;
    const int64_t heads = inputs->problem.heads_q;
    const unsigned char *image = inputs->image[ATTN_IMAGE_O].host, *first = t->o;
    int64_t offset =
        head / heads * t->o_stride[0] + head % heads * t->o_stride[1] + row * t->o_stride[2];
    return (size_t)(first - image) + (size_t)offset * attn_dtype_size(inputs->problem.dtype);
}

struct judging {
    attn_forward_args args; /* of the host's tensors */
    const attn_inputs *inputs;
    const attn_reference *ref;
    attn_bounds bounds;
    attn_verdict *verdict;
    unsigned char *o;   /* image */
    unsigned char *lse; /* first element */
    int64_t at;         /* first row of the reference that is not yet passed */
    double logit;       /* largest |logit| of the head being judged */
    float row[DIM_MAX];
};

static bool wrong(struct judging *j, int64_t head, int64_t row, const char *what) {
    return attn_verdict_wrong(j->verdict, j->inputs, head, row, what);
}

static bool too_large(struct judging *j, int64_t head, int64_t row, const char *of, double error,
                      double bound) {
    return attn_verdict_too_large(j->verdict, j->inputs, head, row, of, error, bound);
}

/* A NaN or infinity that should not be there, or an element that was not written. */
static bool judge_finite(struct judging *j, int64_t head, int64_t row, const unsigned char *at) {
    const attn_problem *p = &j->inputs->problem;
    for (int32_t c = 0; c < p->head_dim_v; c++) {
        const unsigned char *element = at + (size_t)c * attn_dtype_size(p->dtype);
        if (isfinite(j->row[c]))
            continue;
        if (attn_poison_is_output(p->dtype, element, 1))
            return wrong(j, head, row, "an element of o was not written");
        if (attn_poison_has_input(p->dtype, element, 1))
            return wrong(j, head, row, "o holds what lies outside the extents of an input");
        return wrong(j, head, row, isnan(j->row[c]) ? "o is NaN" : "o is infinite");
    }
    return true;
}

static bool is_ignored(const struct judging *j, int64_t head) {
    const attn_problem *p = &j->inputs->problem;
    return head / (p->heads_q / p->heads_kv) == j->ref->ignored;
}

static bool sees_nothing(const struct judging *j, int64_t row) {
    int64_t begin, end;
    attn_visible_keys(&j->args, row, &begin, &end);
    return begin == end;
}

/* A row without a reference: a mean of values is no larger than the largest of them can be, and 0
 * if there are none. */
static bool judge_unknown_row(struct judging *j, int64_t head, int64_t row,
                              const unsigned char *at) {
    const int32_t columns = j->inputs->problem.head_dim_v;
    const bool blind = sees_nothing(j, row);
    const float largest = (float)(ATTN_RANDOM_LARGEST * (1.0 + 4.0 * j->bounds.row));
    const float limit = (float)j->bounds.head + (blind ? 0.0F : largest);
    int above = 0; /* NaNs, too; without a branch in the loop, for most rows end here */
    for (int32_t c = 0; c < columns; c++)
        above += !(fabsf(j->row[c]) <= limit);
    if (above == 0)
        return true;
    if (!judge_finite(j, head, row, at))
        return false;
    for (int32_t c = 0; c < columns; c++)
        if (fabsf(j->row[c]) > limit)
            return too_large(j, head, row,
                             blind ? "|o| of a row that should be 0" : "|o| is above any |v|:",
                             fabs((double)j->row[c]), (double)limit);
    return true;
}

/* A row of the head with a NaN among its keys may hold anything, but it must be written. */
static bool judge_ignored_row(struct judging *j, int64_t head, int64_t row,
                              const unsigned char *at) {
    const attn_problem *p = &j->inputs->problem;
    for (int32_t c = 0; c < p->head_dim_v; c++)
        if (attn_poison_is_output(p->dtype, at + (size_t)c * attn_dtype_size(p->dtype), 1))
            return wrong(j, head, row, "an element of o was not written");
    return true;
}

/* Sums over a head: of squares of errors and of sizes, and of elements. */
struct norms {
    double wrong, whole;
    int64_t elements;
};

static bool judge_row(struct judging *j, int64_t head, int64_t row, const unsigned char *at,
                      struct norms *norms) {
    const attn_problem *p = &j->inputs->problem;
    const double *want = j->ref->o + j->at * p->head_dim_v;
    const double size = j->ref->size[j->at];
    double off = 0, largest = 0;
    if (isnan(want[0])) { /* NaN in, NaN out, in every column */
        for (int32_t c = 0; c < p->head_dim_v; c++)
            if (!isnan(j->row[c]) ||
                attn_poison_is_output(p->dtype, at + (size_t)c * attn_dtype_size(p->dtype), 1))
                return wrong(j, head, row, "o is not NaN, but the query row is");
        return true;
    }
    if (!judge_finite(j, head, row, at))
        return false;
    for (int32_t c = 0; c < p->head_dim_v; c++) {
        double d = (double)j->row[c] - want[c];
        off += d * d;
        largest = fmax(largest, fabs((double)j->row[c]));
    }
    norms->wrong += off;
    norms->whole += size * size;
    norms->elements += p->head_dim_v;
    if (size == 0.0)
        return largest <= j->bounds.head ||
               too_large(j, head, row, "|o| of a row that should be 0", largest, j->bounds.head);
    double error = sqrt(off) / size;
    return error <= j->bounds.row || too_large(j, head, row, "error", error, j->bounds.row);
}

/* known: the row has a reference, at j->at. */
static bool judge_lse(struct judging *j, int64_t head, int64_t row, bool known) {
    int64_t index = head * j->inputs->problem.seq_q + row;
    float got;
    unsigned char *at = j->lse + index * (int64_t)sizeof got;
    memcpy(&got, at, sizeof got);
    bool written = !attn_poison_is_output(ATTN_F32, at, 1);
    attn_poison_output(ATTN_F32, at, 1);
    if (!written)
        return wrong(j, head, row, "lse was not written");
    if (sees_nothing(j, row))
        return got == -INFINITY || wrong(j, head, row, "lse is not -inf, but no key is seen");
    if (!known)
        return isfinite(got) || is_ignored(j, head) || wrong(j, head, row, "lse is not finite");
    double want = j->ref->lse[j->at];
    if (isnan(want))
        return isnan(got) || wrong(j, head, row, "lse is not NaN, but the query row is");
    double bound = j->bounds.lse * (1.0 + j->logit);
    double off = fabs((double)got - want);
    return off <= bound || too_large(j, head, row, "lse is off by", off, bound);
}

/* Largest |logit| of the head's rows that have a reference. What rounding does to a score is of
 * this size, also in a row whose own few scores happen to be sums that cancel. */
static double largest_logit(const struct judging *j, int64_t head) {
    double largest = 0;
    const int64_t end = (head + 1) * j->inputs->problem.seq_q;
    for (int64_t i = j->at; i < j->ref->rows && j->ref->row[i] < end; i++)
        largest = fmax(largest, j->ref->logit[i]);
    return largest;
}

static bool judge_head(struct judging *j, int64_t head) {
    const attn_problem *p = &j->inputs->problem;
    bool lse = p->features & ATTN_FEATURE_LSE;
    j->logit = largest_logit(j, head);
    struct norms norms = {0, 0, 0};
    for (int64_t r = 0; r < p->seq_q; r++) {
        unsigned char *at = j->o + attn_output_offset(j->inputs, head, r);
        bool known = j->at < j->ref->rows && j->ref->row[j->at] == head * p->seq_q + r;
        attn_dtype_to_float(p->dtype, at, j->row, (size_t)p->head_dim_v);
        if (!(known                 ? judge_row(j, head, r, at, &norms)
              : is_ignored(j, head) ? judge_ignored_row(j, head, r, at)
                                    : judge_unknown_row(j, head, r, at)))
            return false;
        if (lse && !judge_lse(j, head, r, known))
            return false;
        attn_poison_output(p->dtype, at, (size_t)p->head_dim_v);
        j->at += known;
    }
    double error = norms.whole > 0 ? sqrt(norms.wrong / norms.whole) : 0.0;
    double bound = attn_head_bound(j->bounds.head, norms.elements);
    j->verdict->error = fmax(j->verdict->error, error);
    j->verdict->bound = fmax(j->verdict->bound, j->bounds.head);
    return error <= bound || too_large(j, head, -1, "error", error, bound);
}

/* All elements are poison now, so anything else was written where nothing may be. */
static bool judge_rest(struct judging *j, const char *name, attn_dtype dtype,
                       const unsigned char *image, size_t size, const unsigned char *first) {
    size_t element = attn_dtype_size(dtype);
    char what[128];
    if (attn_poison_is_output(dtype, image, size / element))
        return true;
    size_t i = 0;
    while (attn_poison_is_output(dtype, image + i, 1))
        i += element;
    (void)snprintf(what, sizeof what,
                   "wrote outside the elements of %s, %td bytes from its first one", name,
                   image + i - first);
    return wrong(j, -1, -1, what);
}

bool attn_compare(const attn_inputs *inputs, const attn_reference *reference, unsigned char *o,
                  unsigned char *lse, attn_verdict *verdict) {
    const attn_problem *p = &inputs->problem;
    const attn_image *image = inputs->image;
    struct judging j = {.inputs = inputs, .ref = reference, .verdict = verdict};
    attn_problem_args(p, &inputs->host, &j.args);
    j.bounds = attn_bounds_of(p->dtype, reference->plain);
    j.o = o;
    if (p->features & ATTN_FEATURE_LSE)
        j.lse = lse + ((unsigned char *)(void *)inputs->host.lse - image[ATTN_IMAGE_LSE].host);
    for (int64_t head = 0; head < (int64_t)p->batch * p->heads_q; head++)
        if (!judge_head(&j, head))
            return false;
    if (!judge_rest(&j, "o", p->dtype, o, image[ATTN_IMAGE_O].size,
                    o + ((const unsigned char *)inputs->host.o - image[ATTN_IMAGE_O].host)))
        return false;
    return !j.lse || judge_rest(&j, "lse", ATTN_F32, lse, image[ATTN_IMAGE_LSE].size, j.lse);
}
