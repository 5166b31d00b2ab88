/* attn_cpu.h: the vectors that CPU templates compute with.
 *
 * A vector is ATTN_VL floats; the template defines ATTN_VL and ATTN_EXP2_DEGREE before it includes
 * this file. Arithmetic is the compiler's own (GCC vector extensions), so that one source serves
 * every instruction set; a set's own header, included below, only adds
 *
 *     attn_vmax(a, b)        the larger in each lane
 *     attn_vexp2_native(t)   attn_vexp2_magic by better means, where the set has them
 *
 * Nothing here reads or writes MXCSR, or depends on what it holds.
 */
#ifndef ATTN_CPU_H
#define ATTN_CPU_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "attn_cpu_base.h"

#define ATTN_UNROLL(n) ATTN_PRAGMA(GCC unroll n)

/* A loop over registers, all of whose turns (at most 16) are unrolled. */
#if defined(__clang__)
#define ATTN_EACH(i, from, to) ATTN_PRAGMA(clang loop unroll(full)) ATTN_FOR(i, from, to)
#else
#define ATTN_EACH(i, from, to) ATTN_PRAGMA(GCC unroll 16) ATTN_FOR(i, from, to)
#endif
#define ATTN_FOR(i, from, to) for (int i = (from); i < (to); i++)

typedef float attn_vf __attribute__((vector_size(4 * ATTN_VL)));
typedef int32_t attn_vi __attribute__((vector_size(4 * ATTN_VL)));

ATTN_INLINE attn_vf attn_vload(const float *p) {
    return *(const attn_vf *)p;
}

ATTN_INLINE void attn_vstore(float *p, attn_vf x) {
    *(attn_vf *)p = x;
}

ATTN_INLINE attn_vf attn_vset(float x) {
    return x - (attn_vf){0};
}

/* a where the mask's lanes are all ones, b where they are 0. */
ATTN_INLINE attn_vf attn_vselect(attn_vi mask, attn_vf a, attn_vf b) {
    return (attn_vf)((mask & (attn_vi)a) | (~mask & (attn_vi)b));
}

/* x in lanes with lo <= key <= hi, -inf elsewhere. */
ATTN_INLINE attn_vf attn_vsee(attn_vf x, int key, attn_vi lo, attn_vi hi) {
    return attn_vselect((lo <= key) & (hi >= key), x, attn_vset(-INFINITY));
}

/* 2^f for f in [0, 1], exactly 1 at 0. Minimax in relative error: 8.6e-5, 2.9e-6, 8.2e-8 and 2.1e-9
 * for degree 3, 4, 5 and 6, to which rounding adds 6e-8. */
ATTN_INLINE attn_vf attn_vexp2_unit(attn_vf f) {
#if ATTN_EXP2_DEGREE == 3
    static const float c[] = {0x1.63e658p-1F, 0x1.d2378ap-3F, 0x1.3baaa6p-4F};
#elif ATTN_EXP2_DEGREE == 4
    static const float c[] = {0x1.62d6c6p-1F, 0x1.ee2454p-3F, 0x1.abf854p-5F, 0x1.b7f768p-7F};
#elif ATTN_EXP2_DEGREE == 5
    static const float c[] = {0x1.62e4bap-1F, 0x1.ebdb6ap-3F, 0x1.c91c10p-5F, 0x1.277c1cp-7F,
                              0x1.e96912p-10F};
#elif ATTN_EXP2_DEGREE == 6
    static const float c[] = {0x1.62e42cp-1F, 0x1.ebfd3ap-3F,  0x1.c68af6p-5F,
                              0x1.3cfd82p-7F, 0x1.473738p-10F, 0x1.c44580p-13F};
#else
#error "ATTN_EXP2_DEGREE must be 3, 4, 5 or 6"
#endif
    attn_vf p = attn_vset(c[ATTN_EXP2_DEGREE - 1]);
    ATTN_UNROLL(8)
    for (int i = ATTN_EXP2_DEGREE - 2; i >= 0; i--)
        p = p * f + c[i];
    return p * f + 1.0F;
}

/* 2^t for t <= 0; 0 below -126, -inf included, so that no later product is denormal, which would
 * cost a hundred cycles; NaN for NaN. Adding `bias` to t - 1/2 leaves floor(t) + 127 in the low
 * bits of the sum: shifted into the exponent field, they are 2^floor(t). (It is just under 1/2, so
 * that 0 stays 0.) */
ATTN_INLINE attn_vf attn_vexp2_magic(attn_vf t) {
    const float bias = 0x1.8p23F + 127.0F;
    const attn_vf sum = (t - 0x1.fffffep-2F) + bias;
    const attn_vf p = attn_vexp2_unit(t - (sum - bias)) * (attn_vf)((attn_vi)sum << 23);
    return (attn_vf)((attn_vi)p & ~(t < -126.0F));
}

#if defined(__AVX512F__)
#include "attn_cpu_avx512.h"
#elif defined(__AVX2__)
#include "attn_cpu_avx2.h"
#elif defined(__ARM_NEON)
#include "attn_cpu_neon.h"
#else
ATTN_INLINE attn_vf attn_vmax(attn_vf a, attn_vf b) {
    return attn_vselect(a > b, a, b);
}
#endif

#if !defined(__AVX512F__)
ATTN_INLINE attn_vf attn_vexp2_native(attn_vf t) {
    return attn_vexp2_magic(t);
}
#endif

/* log2(x) for x >= 1 and finite, +inf or NaN as log2 would; error below 1e-7 (no libm needed). */
ATTN_INLINE float attn_log2(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t exponent = (int32_t)(bits - 0x3f3504f3) >> 23; /* mantissa in [1/sqrt2, sqrt2) */
    bits -= (uint32_t)exponent << 23;
    float m;
    memcpy(&m, &bits, sizeof m);
    const double r = ((double)m - 1.0) / ((double)m + 1.0), s = r * r;
    const double atanh = r * (1.0 + s * (1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s / 9))));
    const float log2 = (float)(exponent + 2.0 * 1.4426950408889634 * atanh);
    return x < INFINITY ? log2 : x;
}

/* Four floats, and four that need only a float's alignment. */
typedef float attn_v4 __attribute__((vector_size(16)));
typedef float attn_v4u __attribute__((vector_size(16), aligned(4)));

/* Transposes a 4 x 4 block in place. */
ATTN_INLINE void attn_transpose4(attn_v4 row[4]) {
    const attn_v4 a = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    const attn_v4 b = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    const attn_v4 c = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
    const attn_v4 d = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    row[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    row[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    row[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    row[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

#endif
