/* half.h: float to and from float16 and bfloat16, as bits.
 *
 * Narrowing rounds to nearest, ties to even; too large becomes infinity, NaN stays NaN. Widening
 * has no branches, so that loops over it become vectors. No result depends on what the CPU has been
 * told to do with denormal floats. */
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

/* A normal's exponent changes its bias by 112, that of infinity and NaN by twice as much. A
 * subnormal is added to 2^-14, the least normal, and that taken off again, which is exact; from
 * others 0 is taken off. */
static inline float attn_float_of_f16(uint16_t h) {
    const uint32_t one = 1U << 23, bias = 112 * one; /* of exponents */
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    uint32_t least = rest < one ? one : 0, most = rest >= 31 * one ? bias : 0;
    float value = attn_float_of(rest + bias + least + most) - attn_float_of(113 * least);
    return attn_float_of(sign | attn_bits_of(value));
}

static inline uint16_t attn_f16_of_float(float x) {
    uint32_t bits = attn_bits_of(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000) /* 65520, which rounds to infinity, and more */
        return (uint16_t)(sign | 0x7c00);
    if (rest >= 0x38800000) /* normal: the exponent's bias changes by 112 */
        return (uint16_t)(sign | (rest - (112U << 23) + 0xfff + (rest >> 13 & 1)) >> 13);
    /* Subnormal: adding 1/2 leaves multiples of 2^-24 in the low bits, rounded by the addition. */
    return (uint16_t)(sign | (attn_bits_of(attn_float_of(rest) + 0.5f) - 0x3f000000));
}

#endif
