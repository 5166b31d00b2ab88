/* half.h: float to and from float16 and bfloat16, as bits.
 *
 * Narrowing rounds to nearest, ties to even; too large becomes infinity, NaN stays NaN. Plain
 * integer arithmetic, the same on every CPU. */
#ifndef ATTN_HALF_H
#define ATTN_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t attn_bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float attn_float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float attn_float_of_bf16(uint16_t h) {
    return attn_float_of((uint32_t)h << 16);
}

static inline uint16_t attn_bf16_of_float(float x) {
    uint32_t bits = attn_bits_of(x);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float attn_float_of_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00) /* infinity, NaN */
        return attn_float_of(sign | 0x7f800000 | rest << 13);
    if (rest >= 0x0400)
        return attn_float_of(sign | ((rest << 13) + (112U << 23)));
    return attn_float_of(sign | attn_bits_of((float)rest * 0x1p-24f)); /* zero, subnormal: exact */
}

static inline uint16_t attn_f16_of_float(float x) {
    uint32_t bits = attn_bits_of(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x477ff000) /* 65520, which rounds to infinity, and more */
        return (uint16_t)(sign | 0x7c00);
    if (rest >= 0x38800000) /* normal: the exponent's bias changes by 112 */
        return (uint16_t)(sign | (rest - (112U << 23) + 0xfff + (rest >> 13 & 1)) >> 13);
    /* Subnormal: adding 1/2 leaves multiples of 2^-24 in the low bits, rounded by the addition. */
    return (uint16_t)(sign | (attn_bits_of(attn_float_of(rest) + 0.5f) - 0x3f000000));
}

#endif
