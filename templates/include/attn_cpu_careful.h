/* attn_cpu_careful.h: a row again in double, if its numbers may have left a float's range.
 *
 * Kernels divide by the sum of weights at the end, so that V near the largest float overflows in
 * their sums; and products with a query that is huge once it is scaled may do so on the way. A row
 * whose O is not finite, or whose scaled query is not within ATTN_LARGE, is computed once more by
 * this, if its numbers are large enough for that: what else is not finite is left to be seen.
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

/* The largest of `before` and the sizes of a row's elements. */
static __attribute__((noinline, cold)) double
attn_careful_largest(double before, const ATTN_ELEMENT *x, int columns) {
    for (int d = 0; d < columns; d++) {
        const double y = (double)ATTN_WIDEN(x[d]), size = y < 0 ? -y : y;
        before = size > before ? size : before;
    }
    return before;
}

/* Writes O and LSE of the row at `position` of `head`, d and dv columns of Q and V. Leaves both
 * alone if nothing can have overflowed: it sees no key, Q, K or V has a NaN or an infinity, or all
 * that can be added up is below 2^100. */
static __attribute__((noinline, cold)) void attn_careful_row(const attn_forward_args *a, int d,
                                                             int dv, int64_t batch, int64_t head,
                                                             int64_t position) {
    const int64_t *qs = a->q_stride, *ks = a->k_stride, *vs = a->v_stride, *os = a->o_stride;
    const int64_t kv = head / a->group, at = position + a->mask_offset;
    const int64_t begin = at > a->mask_left ? at - a->mask_left : 0;
    const int64_t past = at + a->mask_right + 1, end = past < a->seq_kv ? past : a->seq_kv;
    const ATTN_ELEMENT *q =
        (const ATTN_ELEMENT *)a->q + batch * qs[0] + head * qs[1] + position * qs[2];
    const ATTN_ELEMENT *k = (const ATTN_ELEMENT *)a->k + batch * ks[0] + kv * ks[1];
    const ATTN_ELEMENT *v = (const ATTN_ELEMENT *)a->v + batch * vs[0] + kv * vs[1];
    ATTN_ELEMENT *o = (ATTN_ELEMENT *)a->o + batch * os[0] + head * os[1] + position * os[2];
    double top = -DBL_MAX, best = 0, sum = 0, acc[ATTN_DIM_MAX] = {0}; /* best: top, unscaled */
    double k_most = 0, v_most = 0, scale = a->scale < 0 ? -a->scale : a->scale;

    for (int64_t key = begin; key < end; key++) {
        const double dot = attn_careful_dot(q, k + key * ks[2], d), s = a->scale * dot;
        if (!attn_is_finite64(s))
            return;
        k_most = attn_careful_largest(k_most, k + key * ks[2], d);
        v_most = attn_careful_largest(v_most, v + key * vs[2], dv);
        best = s > top ? dot : best;
        top = s > top ? s : top;
    }
    scale = scale > 1 ? scale : 1;
    if (d * attn_careful_largest(0, q, d) * scale * k_most < 0x1p100 &&
        (double)(end - begin) * v_most < 0x1p100)
        return;
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
