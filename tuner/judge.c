/* judge.c: see judge.h. Rows are compared in vectors: 33 million elements in some 30 ms. */
#include "judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 4, BLOCK = 16 };

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES)));

struct judging {
    const attn_judge *judge;
    const attn_inputs *inputs;
    const unsigned char *image; /* what is judged */
    attn_verdict *verdict;
    double head_bound, lse_bound;
};

static size_t output_size(const attn_inputs *inputs) {
    return inputs->image[ATTN_IMAGE_O].size + inputs->image[ATTN_IMAGE_LSE].size;
}

attn_status attn_judge_take(attn_judge *judge, const unsigned char *image,
                            const attn_inputs *inputs, const attn_reference *reference,
                            const attn_verdict *verdict, attn_error *err) {
    size_t size = output_size(inputs);
    attn_judge_free(judge);
    judge->image = malloc(size + 1);
    if (!judge->image)
        return attn_fail_nomem(err);
    memcpy(judge->image, image, size);
    judge->error = verdict->error;
    for (int64_t i = 0; i < reference->rows; i++)
        judge->logit = fmax(judge->logit, reference->logit[i]); /* a NaN is passed over */
    return ATTN_OK;
}

void attn_judge_free(attn_judge *judge) {
    free(judge->image);
    memset(judge, 0, sizeof *judge);
}

/* Sums of squares over a row: of the difference, and of what it should be. */
struct squares {
    double off, whole;
};

struct lane_squares {
    lanes off, whole;
};

/* As core/dtype.c does it, but for infinity and NaN, which attn_compare does not let pass. */
static inline lanes widen(attn_dtype dtype, const unsigned char *at) {
    lanes value;
    halves half;
    if (dtype == ATTN_F32) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    memcpy(&half, at, sizeof half);
    const words word = __builtin_convertvector(half, words);
    if (dtype == ATTN_BF16)
        return (lanes)(word << 16);
    value = (lanes)((word & 0x7fff) << 13) * 0x1p112F;
    return (lanes)((words)value | (word & 0x8000) << 16);
}

static inline void add(attn_dtype dtype, const unsigned char *got, const unsigned char *want,
                       struct lane_squares *sum) {
    const lanes b = widen(dtype, want), d = widen(dtype, got) - b;
    sum->off += d * d;
    sum->whole += b * b;
}

/* `element` is the dtype's size; both are constants where this is inlined. */
static inline struct squares compare_row(attn_dtype dtype, size_t element, const unsigned char *got,
                                         const unsigned char *want, size_t columns) {
    struct lane_squares lane = {{0}, {0}};
    struct squares sum = {0, 0};
    unsigned char last[2][sizeof(lanes)] = {{0}, {0}};
    size_t whole = columns / LANES * LANES * element, rest = columns * element - whole;
    for (size_t at = 0; at < whole; at += LANES * element)
        add(dtype, got + at, want + at, &lane);
    if (rest) {
        memcpy(last[0], got + whole, rest);
        memcpy(last[1], want + whole, rest);
        add(dtype, last[0], last[1], &lane);
    }
    for (int i = 0; i < LANES; i++) {
        sum.off += (double)lane.off[i];
        sum.whole += (double)lane.whole[i];
    }
    return sum;
}

typedef struct squares row_comparison(const unsigned char *got, const unsigned char *want,
                                      size_t columns);

static struct squares compare_f32(const unsigned char *got, const unsigned char *want,
                                  size_t columns) {
    return compare_row(ATTN_F32, 4, got, want, columns);
}

static struct squares compare_f16(const unsigned char *got, const unsigned char *want,
                                  size_t columns) {
    return compare_row(ATTN_F16, 2, got, want, columns);
}

static struct squares compare_bf16(const unsigned char *got, const unsigned char *want,
                                   size_t columns) {
    return compare_row(ATTN_BF16, 2, got, want, columns);
}

static row_comparison *const COMPARISONS[] = {[ATTN_F32] = compare_f32,
                                              [ATTN_F16] = compare_f16,
                                              [ATTN_BF16] = compare_bf16,
                                              [ATTN_TF32] = compare_f32};

/* Adds what the rows [first, first + rows) sum to; rows is at most BLOCK. */
static bool judge_block(struct judging *j, int64_t head, int64_t first, int64_t rows,
                        struct squares *sum) {
    const attn_problem *p = &j->inputs->problem;
    struct squares row[BLOCK], block = {0, 0};
    const double bound = ATTN_ROW_FACTOR * j->head_bound;
    for (int64_t r = 0; r < rows; r++) {
        size_t at = attn_output_offset(j->inputs, head, first + r);
        row[r] = COMPARISONS[p->dtype](j->image + at, j->judge->image + at, (size_t)p->head_dim_v);
        block.off += row[r].off;
        block.whole += row[r].whole;
    }
    for (int64_t r = 0; r < rows; r++) {
        double size = fmax(row[r].whole, block.whole / (double)rows);
        double error = row[r].off > 0 ? sqrt(row[r].off / size) : 0.0;
        if (!(error <= bound))
            return attn_verdict_too_large(j->verdict, j->inputs, head, first + r,
                                          "error against the reference kernel", error, bound);
    }
    sum->off += block.off;
    sum->whole += block.whole;
    return true;
}

/* Rows that see nothing are -inf on both sides: attn_compare has seen to that. */
static bool judge_lse(struct judging *j, int64_t head) {
    const attn_inputs *in = j->inputs;
    const size_t first =
        in->image[ATTN_IMAGE_O].size +
        (size_t)((unsigned char *)(void *)in->host.lse - in->image[ATTN_IMAGE_LSE].host);
    for (int64_t r = 0; r < in->problem.seq_q; r++) {
        size_t at = first + (size_t)(head * in->problem.seq_q + r) * sizeof(float);
        float got, want;
        memcpy(&got, j->image + at, sizeof got);
        memcpy(&want, j->judge->image + at, sizeof want);
        double off = got == want ? 0.0 : fabs((double)got - (double)want);
        if (!(off <= j->lse_bound))
            return attn_verdict_too_large(j->verdict, in, head, r,
                                          "lse is off from the reference kernel's by", off,
                                          j->lse_bound);
    }
    return true;
}

static bool judge_head(struct judging *j, int64_t head) {
    const attn_problem *p = &j->inputs->problem;
    struct squares sum = {0, 0};
    for (int64_t r = 0; r < p->seq_q; r += BLOCK)
        if (!judge_block(j, head, r, p->seq_q - r < BLOCK ? p->seq_q - r : BLOCK, &sum))
            return false;
    double error = sum.off > 0 ? sqrt(sum.off / sum.whole) : 0.0;
    double bound = attn_head_bound(j->head_bound, (int64_t)p->seq_q * p->head_dim_v);
    if (!(error <= bound))
        return attn_verdict_too_large(j->verdict, j->inputs, head, -1,
                                      "error against the reference kernel", error, bound);
    return !(p->features & ATTN_FEATURE_LSE) || judge_lse(j, head);
}

bool attn_judge_compare(const attn_judge *judge, const attn_inputs *inputs,
                        const attn_reference *reference, const unsigned char *image,
                        attn_verdict *verdict) {
    const attn_problem *p = &inputs->problem;
    const attn_bounds bounds = attn_bounds_of(p->dtype, reference->plain);
    struct judging j = {.judge = judge,
                        .inputs = inputs,
                        .image = image,
                        .verdict = verdict,
                        .head_bound = bounds.head + judge->error,
                        .lse_bound = 2 * bounds.lse * (1 + judge->logit)};
    for (int64_t head = 0; head < (int64_t)p->batch * p->heads_q; head++)
        if (!judge_head(&j, head))
            return false;
    return true;
}
