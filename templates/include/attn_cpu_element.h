/* attn_cpu_element.h: elements of tensors as float, and back.
 *
 * There is no branch, not even `?:`, so that compilers make vectors of loops over a row.
 */
#ifndef ATTN_CPU_ELEMENT_H
#define ATTN_CPU_ELEMENT_H

#include <stdint.h>
#include <string.h>

#include "attn_cpu_base.h"

ATTN_INLINE float attn_widen_f32(float x) {
    return x;
}

/* a where `yes` is 1, b where it is 0. */
ATTN_INLINE uint32_t attn_choose(int yes, uint32_t a, uint32_t b) {
    const uint32_t mask = 0U - (uint32_t)yes;
    return (a & mask) | (b & ~mask);
}

ATTN_INLINE uint32_t attn_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

ATTN_INLINE float attn_bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

ATTN_INLINE float attn_widen_bf16(uint16_t x) {
    return attn_bits_float((uint32_t)x << 16);
}

ATTN_INLINE float attn_widen_f16(uint16_t x) {
    const uint32_t rest = x & 0x7fff;
    const float small = (float)(int32_t)rest * 0x1p-24F; /* subnormal, zero */
    const uint32_t large = (rest << 13) + attn_choose(rest >= 0x7c00, 224U << 23, 112U << 23);
    return attn_bits_float(attn_choose(rest < 0x0400, attn_float_bits(small), large) |
                           (uint32_t)(x & 0x8000) << 16);
}

/* Rounded to nearest, ties to even; NaN stays NaN. */
ATTN_INLINE float attn_narrow_f32(float x) {
    return x;
}

ATTN_INLINE uint16_t attn_narrow_bf16(float x) {
    const uint32_t bits = attn_float_bits(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(attn_choose((bits & 0x7fffffff) > 0x7f800000, bits | 0x400000, rounded) >>
                      16);
}

/* Adding 1/2 to a number below the least normal one leaves its multiple of 2^-24 in the low bits.
 */
ATTN_INLINE uint16_t attn_narrow_f16(float x) {
    const uint32_t bits = attn_float_bits(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    const uint32_t small = attn_float_bits(attn_bits_float(rest) + 0.5F) - 0x3f000000;
    const uint32_t normal = (rest - (112U << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    const uint32_t finite = attn_choose(rest < 0x38800000, small, normal);
    const uint32_t large = attn_choose(rest > 0x7f800000, 0x7e00, 0x7c00); /* from 65520 on: inf */
    return (uint16_t)(sign | attn_choose(rest < 0x477ff000, finite, large));
}

#endif
