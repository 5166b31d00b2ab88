/* loop_forward.c: f32 forward attention as plain loops, one query row after the other; the first
 * kernel to read. The parameters are the steps of a write-up's ladder, most of them the compiler's
 * to take: the space file says which configuration is which version.
 *
 * A row goes through the keys that it sees and no others, so no infinity stands for a masked score
 * and nothing is computed from one: under -ffast-math a compiler takes it that there are none.
 */
#include "attn_abi.h"

//@ if EXP == "libmvec" then
#include <math.h> /* under -ffast-math this declares the vectors of expf, too */
#if !defined(__DECL_SIMD_x86_64)
#error "EXP=libmvec needs GCC, and a glibc that has libmvec"
#endif
//@ else
float expf(float x); /* one at a time, whatever MATH is */
float logf(float x);
//@ end

#include "attn_cpu_element.h"
#include "attn_cpu_flush.h"

#define ATTN_ELEMENT float
#define ATTN_WIDEN attn_widen_f32
#define ATTN_NARROW attn_narrow_f32
#include "attn_cpu_careful.h"

/* In front of a loop whose only obstacle to vectors is the order in which it adds. */
//@ if MATH == "simd" then
#define ATTN_SUM_OF(x) ATTN_PRAGMA(omp simd reduction(+ : x))
//@ else
#define ATTN_SUM_OF(x)
//@ end

enum {
    D = $(HEAD_DIM),          /* columns of Q and K */
    DV = $(HEAD_DIM_V),       /* columns of V and O */
    COLUMNS = $(COLUMNS),     /* of the rows that the loops go through: those, or, with PAD, */
    COLUMNS_V = $(COLUMNS_V), /* rounded up to whole 64 bytes */
    PAD = $(PAD),             /* rows are first copied to where they begin and end at 64 bytes */
    ROWS = $(ROWS),           /* query rows of a tile: they meet each block of keys in turn */
    KEYS = $(KEYS),           /* keys of a block */
    CALL = $(TASK == "call"), /* the first task does it all */
    TASK_ROWS = $(TASK_ROWS), /* else: query rows of a task */
    PAD_ROWS = $(PAD_ROWS),   /* and rows of K and V of one that pads */
    LSE = $(LSE)              /* the log-sum-exp of each row is wanted */
};

struct row {
    _Alignas(64) float q[COLUMNS]; /* times the scale; zeros from D on */
    _Alignas(64) float o[COLUMNS_V];
    float max, sum;     /* of the scores so far; of the weights, relative to max */
    int32_t begin, end; /* it sees the keys begin <= key < end */
    int32_t nan;        /* Q has a NaN or an infinity, or a score is NaN */
    int32_t strained;   /* Q is not within ATTN_LARGE: see attn_cpu_careful.h */
};

struct scratch {                /* of a worker */
    _Alignas(64) float s[KEYS]; /* scores, then weights, of one row and a block of keys */
    struct row row[ROWS];
};

_Static_assert(sizeof(struct scratch) <= $(SCRATCH_BYTES), "larger than the launch record says");

/* K and V of one head. */
struct keys {
    const float *k, *v;
    int64_t k_stride, v_stride;
};

/* What a task does: these heads, and these rows of each. */
struct part {
    int64_t head, heads_end;
    int32_t row, rows_end;
};

ATTN_INLINE const float *padded(const float *p) {
    return PAD ? __builtin_assume_aligned(p, 64) : p;
}

static struct part part_of(const attn_forward_args *a, int task, int64_t heads, int32_t rows,
                           int32_t task_rows) {
    if (CALL)
        return (struct part){0, task == 0 ? heads : 0, 0, rows};
    const int64_t head = task / a->tiles;
    const int32_t row = task % a->tiles * task_rows;
    return (struct part){head, head + 1, row, min(rows, row + task_rows)};
}

/* e^x for x <= 0, exactly 1 at 0. */
ATTN_INLINE float exponential(float x) {
    //@ if EXP == "polynomial" then
    /* 2^(n + f) with n the integer next to x / ln 2; 0 where that would be denormal, or nearly so.
     * Below -127 the bits of a float, as a number, are above those of -127: a minimum of integers,
     * unlike one of floats, may be taken in vectors whatever MATH is. The polynomial's relative
     * error is 1.1e-7. */
    const uint32_t y = attn_float_bits(x * 0x1.715476p+0F), lowest = 0xc2fe0000;
    const float t = attn_bits_float(y < lowest ? y : lowest);
    const int32_t n = (int32_t)(t - 0.5F);
    const float f = t - (float)n;
    float p = 0x1.5bba28p-10F;
    p = 0x1.3cea90p-7F + f * p;
    p = 0x1.c6b752p-5F + f * p;
    p = 0x1.ebf9bcp-3F + f * p;
    p = 0x1.62e42ap-1F + f * p;
    p = 1.0F + f * p;
    return p * attn_bits_float((uint32_t)(n + 127) << 23 & -(uint32_t)(n > -126));
    //@ else
    return expf(x);
    //@ end
}

/* By its bits: under -ffast-math a compiler takes it that every float is finite. */
ATTN_INLINE int within(float x, float limit) {
    return (attn_float_bits(x) & 0x7fffffff) <= attn_float_bits(limit);
}

static void set_bits(float *x, uint32_t bits) {
    memcpy(x, &bits, sizeof bits);
}

static void start_row(const attn_forward_args *a, const float *q, int32_t index, struct row *r) {
    const int32_t at = index + a->mask_offset;
    r->begin = max(0, at - a->mask_left);
    r->end = min(a->seq_kv, at + a->mask_right + 1);
    r->sum = 0.0F;
    r->nan = 0;
    r->strained = 0;
    memset(r->q, 0, sizeof r->q);
    memset(r->o, 0, sizeof r->o);
    for (int d = 0; d < D; d++) {
        r->q[d] = q[d] * a->scale;
        r->nan |= !within(q[d], FLT_MAX);
        r->strained |= !within(r->q[d], ATTN_LARGE);
    }
}

static void scores(const float *restrict q, const struct keys *keys, int32_t from, int32_t count,
                   float *restrict s) {
    const int64_t stride = PAD ? COLUMNS : keys->k_stride;
    const float *k = padded(keys->k) + from * stride;
    for (int32_t j = 0; j < count; j++, k += stride) {
        float sum = 0.0F;
        ATTN_SUM_OF(sum)
        for (int d = 0; d < COLUMNS; d++)
            sum += q[d] * k[d];
        s[j] = sum;
    }
}

/* Is any score NaN? By their bits, too. */
static int any_nan(int32_t count, const float *restrict s) {
    uint32_t most = 0;
    for (int32_t j = 0; j < count; j++) {
        const uint32_t size = attn_float_bits(s[j]) & 0x7fffffff;
        most = size > most ? size : most;
    }
    return most > 0x7f800000;
}

/* Turns scores into weights relative to `top`, and gives their sum. */
static float weights(float top, int32_t count, float *restrict s) {
    float sum = 0.0F;
    for (int32_t j = 0; j < count; j++)
        s[j] = exponential(s[j] - top);
    ATTN_SUM_OF(sum)
    for (int32_t j = 0; j < count; j++)
        sum += s[j];
    return sum;
}

/* o += P V */
static void outputs(const float *restrict p, const struct keys *keys, int32_t from, int32_t count,
                    float *restrict o) {
    const int64_t stride = PAD ? COLUMNS_V : keys->v_stride;
    const float *v = padded(keys->v) + from * stride;
    for (int32_t j = 0; j < count; j++, v += stride)
        for (int d = 0; d < COLUMNS_V; d++)
            o[d] += p[j] * v[d];
}

/* One row and the keys from `from` on, of which it sees all. */
static void attend(struct row *r, const struct keys *keys, int32_t from, int32_t count, float *s) {
    scores(r->q, keys, from, count, s);
    r->nan |= any_nan(count, s);
    if (from == r->begin)
        r->max = s[0];
    float top = r->max;
    for (int32_t j = 0; j < count; j++)
        top = s[j] > top ? s[j] : top;
    if (top > r->max) {
        const float alpha = exponential(r->max - top);
        r->max = top;
        r->sum *= alpha;
        for (int d = 0; d < COLUMNS_V; d++)
            r->o[d] *= alpha;
    }
    r->sum += weights(top, count, s);
    outputs(s, keys, from, count, r->o);
}

/* Gives whether the row may have left a float's range. */
static int end_row(const struct row *r, float *o, float *lse) {
    const int sees = r->begin < r->end;
    int strained = r->strained | r->nan;
    for (int d = 0; d < DV; d++)
        strained |= !within(r->o[d], FLT_MAX);
    for (int d = 0; d < DV; d++) {
        if (sees && !r->nan)
            o[d] = r->o[d] / r->sum;
        else
            set_bits(&o[d], sees ? 0x7fc00000 : 0); /* NaN, or 0 */
    }
    if (LSE && sees && !r->nan)
        *lse = r->max + logf(r->sum);
    else if (LSE)
        set_bits(lse, sees ? 0x7fc00000 : 0xff800000); /* NaN, or -infinity */
    return strained;
}

static struct keys keys_of(const attn_forward_args *a, int64_t batch, int64_t kv_head) {
    const int64_t *ks = a->k_stride, *vs = a->v_stride;
    const int64_t before = (batch * a->heads_kv + kv_head) * a->seq_kv;
    if (PAD)
        return (struct keys){(const float *)a->workspace[1] + before * COLUMNS,
                             (const float *)a->workspace[2] + before * COLUMNS_V, COLUMNS,
                             COLUMNS_V};
    return (struct keys){(const float *)a->k + batch * ks[0] + kv_head * ks[1],
                         (const float *)a->v + batch * vs[0] + kv_head * vs[1], ks[2], vs[2]};
}

/* `rows` rows of a head, which take turns at each block of keys, so that it stays in the cache. */
static void attend_tile(const attn_forward_args *a, int64_t index, int32_t row, int32_t rows,
                        struct scratch *w, struct attn_careful_keys *seen) {
    const int64_t batch = index / a->heads_q, head = index % a->heads_q;
    const struct keys keys = keys_of(a, batch, head / a->group);
    const int64_t *qs = a->q_stride, *os = a->o_stride;
    const float *q = (const float *)a->q + batch * qs[0] + head * qs[1] + row * qs[2];
    float *o = (float *)a->o + batch * os[0] + head * os[1] + row * os[2];
    const unsigned before = attn_flush_begin(a);
    for (int32_t i = 0; i < rows; i++)
        start_row(a, q + i * qs[2], row + i, &w->row[i]);

    const int32_t end = w->row[rows - 1].end;
    for (int32_t first = w->row[0].begin; first < end; first += KEYS)
        for (struct row *r = w->row; r < w->row + rows; r++) {
            const int32_t from = max(first, r->begin), to = min(first + KEYS, r->end);
            if (from < to)
                attend(r, &keys, from, to - from, w->s);
        }
    attn_flush_end(before);

    for (int32_t i = 0; i < rows; i++) {
        float *lse = LSE ? a->lse + index * a->seq_q + row + i : NULL;
        if (end_row(&w->row[i], o + i * os[2], lse))
            attn_careful_row(a, D, DV, batch, head, row + i, seen);
    }
}

//@ if PAD == 1 then
static void pad_row(float *to, const float *from, int columns, int all) {
    memcpy(to, from, (size_t)columns * sizeof *to);
    memset(to + columns, 0, (size_t)(all - columns) * sizeof *to);
}

/* The step before: K and V to the workspace. */
int $(PAD_SYMBOL)(const attn_forward_args *a, int task, int worker) {
    const int64_t *ks = a->k_stride, *vs = a->v_stride, heads = (int64_t)a->batch * a->heads_kv;
    const struct part part = part_of(a, task, heads, a->seq_kv, PAD_ROWS);
    (void)worker;
    for (int64_t head = part.head; head < part.heads_end; head++)
        for (int64_t row = part.row; row < part.rows_end; row++) {
            const int64_t batch = head / a->heads_kv, kv = head % a->heads_kv;
            const int64_t to = head * a->seq_kv + row;
            const float *k = (const float *)a->k + batch * ks[0] + kv * ks[1] + row * ks[2];
            const float *v = (const float *)a->v + batch * vs[0] + kv * vs[1] + row * vs[2];
            pad_row((float *)a->workspace[1] + to * COLUMNS, k, D, COLUMNS);
            pad_row((float *)a->workspace[2] + to * COLUMNS_V, v, DV, COLUMNS_V);
        }
    return 0;
}
//@ end

int $(KERNEL)(const attn_forward_args *a, int task, int worker) {
    struct scratch *w = (void *)((char *)a->workspace[0] + worker * (int64_t)$(SCRATCH_BYTES));
    const int64_t heads = (int64_t)a->batch * a->heads_q;
    const struct part part = part_of(a, task, heads, a->seq_q, TASK_ROWS);
    for (int64_t head = part.head; head < part.heads_end; head++) {
        const int32_t first = part.row + a->mask_offset, past = part.rows_end + a->mask_offset;
        struct attn_careful_keys seen = {.begin = max(0, first - a->mask_left),
                                         .end = min(a->seq_kv, past + a->mask_right)};
        for (int32_t row = part.row; row < part.rows_end; row += ROWS)
            attend_tile(a, head, row, min(ROWS, part.rows_end - row), w, &seen);
    }
    return 0;
}
