/* attn_cpu_careful.h: a row again in double, if its numbers may have left a float's range.
 *
 * Kernels divide by the sum of weights at the end, so that V near the largest float overflows in
 * their sums; and products with a query that is huge once it is scaled may do so on the way. A row
 * whose O is not finite, or whose scaled query is not within ATTN_LARGE, is computed once more by
 * this, if its numbers are large enough for that: what else is not finite is left to be seen. How
 * large K and V are is looked up once for all rows of a task, so that a NaN costs next to nothing.
 * Include it behind attn_cpu_element.h, with ATTN_ELEMENT, ATTN_WIDEN and ATTN_NARROW defined.
 */
#ifndef ATTN_CPU_CAREFUL_H
#define ATTN_CPU_CAREFUL_H

#include <float.h>

/* Not by math.h, which gives them vectors under -ffast-math. */
double exp(double x);
double log(double x);

#define ATTN_LARGE 0x1p40F

enum { ATTN_DIM_MAX = 1024 };

/* The scale times log2(e) is no float: rows that are scaled by it are all computed once more. */
ATTN_INLINE int attn_scale_is_beyond(const attn_forward_args *a) {
    return a->scale_log2 >= FLT_MAX || a->scale_log2 <= -FLT_MAX;
}

/* By its bits: under -ffast-math a compiler takes it that every number is finite. */
ATTN_INLINE int attn_is_finite64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits >> 52 & 0x7ff) != 0x7ff;
}

/* Never inlined: the same numbers must give the same sum, bit for bit, under -ffast-math too. */
static __attribute__((noinline, cold)) double attn_careful_dot(const ATTN_ELEMENT *q,
                                                               const ATTN_ELEMENT *k, int columns) {
    double sum = 0;
    for (int d = 0; d < columns; d++)
        sum += (double)ATTN_WIDEN(q[d]) * (double)ATTN_WIDEN(k[d]);
    return sum;
}

/* Keys of a head that rows of a task see: begin <= key < end; and, once a row has asked, the
 * largest sizes of the finite elements of their K and V. */
struct attn_careful_keys {
    int64_t begin, end;
    int known;
    float k, v;
};

/* The largest size of the finite elements of some rows. Sizes are compared as bits, as integers,
 * where one exponent more makes infinity and NaN negative. Compilers make vectors of the loop: it
 * is not cold, as its callers are, has no branch, and goes on over rows that are contiguous. */
static __attribute__((noinline, hot)) float attn_careful_size(const ATTN_ELEMENT *x, int64_t stride,
                                                              int64_t rows, int64_t columns) {
    const int32_t one = 1 << 23;
    int32_t most = one;
    if (stride == columns) {
        columns *= rows;
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++, x += stride)
        for (int64_t c = 0; c < columns; c++) {
            const uint32_t size = attn_float_bits(ATTN_WIDEN(x[c])) & 0x7fffffff;
            const int32_t next = (int32_t)(size + (uint32_t)one);
            most = next > most ? next : most;
        }
    return attn_bits_float((uint32_t)(most - one));
}

ATTN_INLINE double attn_careful_factor(double x) {
    return x > 1 ? x : 1;
}

/* Writes O and LSE of the row at `position` of `head`, d and dv columns of Q and V. Leaves both
 * alone if nothing can have overflowed: it sees no key, Q, K or V that it sees has a NaN or an
 * infinity, or all that can be multiplied or added up is below 2^100. */
static __attribute__((noinline, cold)) void attn_careful_row(const attn_forward_args *a, int d,
                                                             int dv, int64_t batch, int64_t head,
                                                             int64_t position,
                                                             struct attn_careful_keys *keys) {
    const int64_t *qs = a->q_stride, *ks = a->k_stride, *vs = a->v_stride, *os = a->o_stride;
    const int64_t kv = head / a->group, at = position + a->mask_offset;
    const int64_t begin = at > a->mask_left ? at - a->mask_left : 0;
    const int64_t past = at + a->mask_right + 1, end = past < a->seq_kv ? past : a->seq_kv;
    const ATTN_ELEMENT *q =
        (const ATTN_ELEMENT *)a->q + batch * qs[0] + head * qs[1] + position * qs[2];
    const ATTN_ELEMENT *k = (const ATTN_ELEMENT *)a->k + batch * ks[0] + kv * ks[1];
    const ATTN_ELEMENT *v = (const ATTN_ELEMENT *)a->v + batch * vs[0] + kv * vs[1];
    ATTN_ELEMENT *o = (ATTN_ELEMENT *)a->o + batch * os[0] + head * os[1] + position * os[2];
    double top = -DBL_MAX, best = 0, sum = 0, acc[ATTN_DIM_MAX]; /* best: top, unscaled */

    if (!keys->known) {
        const int64_t rows = keys->end - keys->begin;
        keys->k = attn_careful_size(k + keys->begin * ks[2], ks[2], rows, d);
        keys->v = attn_careful_size(v + keys->begin * vs[2], vs[2], rows, dv);
        keys->known = 1;
    }
    const double scale = a->scale < 0 ? -a->scale : a->scale;
    const double scaled = attn_careful_factor(attn_careful_size(q, 0, 1, d)) *
                          attn_careful_factor(scale) * attn_careful_factor(d * (double)keys->k);
    if (scaled < 0x1p100 && (double)(end - begin) * (double)keys->v < 0x1p100)
        return;
    for (int64_t key = begin; key < end; key++) {
        const double dot = attn_careful_dot(q, k + key * ks[2], d), s = a->scale * dot;
        if (!attn_is_finite64(s))
            return;
        best = s > top ? dot : best;
        top = s > top ? s : top;
    }
    memset(acc, 0, (size_t)dv * sizeof *acc);
    /* Differences are taken first: a * b - c in one step would not be 0 for c = a * b, rounded. */
    for (int64_t key = begin; key < end; key++) {
        const double w = exp(a->scale * (attn_careful_dot(q, k + key * ks[2], d) - best));
        sum += w;
        for (int c = 0; c < dv; c++)
            acc[c] += w * (double)ATTN_WIDEN(v[key * vs[2] + c]);
    }
    int finite = begin < end;
    for (int c = 0; c < dv; c++)
        finite &= attn_is_finite64(acc[c]);
    for (int c = 0; c < dv && finite; c++)
        o[c] = ATTN_NARROW((float)(acc[c] / sum));
    if (finite && a->lse)
        a->lse[(batch * a->heads_q + head) * a->seq_q + position] = (float)(top + log(sum));
}

#endif
