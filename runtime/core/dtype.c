/* dtype.c: the two half formats by their bits. */
#include "core/dtype.h"

#include <string.h>

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A half's exponent and mantissa in a float's place are the value times 2^-112, denormals too;
 * what comes out at 2^16 or more had the largest exponent: infinity and NaNs. No branches, so that
 * loops over it become vectors. */
float attn_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    float value = float_of(rest) * 0x1p112F;
    return float_of(sign | bits_of(value) | (value >= 0x1p16F ? 0x7f800000 : 0));
}

uint16_t attn_f32_to_f16(float value) {
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t half;
    if (magnitude > 0x7f800000)
        half = 0x7e00 | (magnitude >> 13 & 0x3ff);
    else if (magnitude >= 0x477ff000) /* 65520 and up round to infinity */
        half = 0x7c00;
    else if (magnitude < 0x38800000) /* denormal: adding 1/2 leaves its units in the low bits */
        half = bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F);
    else
        half = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    return (uint16_t)(sign | half);
}

float attn_bf16_to_f32(uint16_t half) {
    return float_of((uint32_t)half << 16);
}

uint16_t attn_f32_to_bf16(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void attn_dtype_to_float(attn_dtype dtype, const void *from, float *to, size_t n) {
    const uint16_t *half = from;
    if (dtype == ATTN_F32)
        memcpy(to, from, n * sizeof *to);
    else if (dtype == ATTN_F16)
        for (size_t i = 0; i < n; i++)
            to[i] = attn_f16_to_f32(half[i]);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = attn_bf16_to_f32(half[i]);
}

void attn_dtype_to_double(attn_dtype dtype, const void *from, double *to, size_t n) {
    const uint16_t *half = from;
    const float *full = from;
    if (dtype == ATTN_F32)
        for (size_t i = 0; i < n; i++)
            to[i] = full[i];
    else if (dtype == ATTN_F16)
        for (size_t i = 0; i < n; i++)
            to[i] = attn_f16_to_f32(half[i]);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = attn_bf16_to_f32(half[i]);
}

void attn_dtype_from_float(attn_dtype dtype, const float *from, void *to, size_t n) {
    uint16_t *half = to;
    if (dtype == ATTN_F32)
        memcpy(to, from, n * sizeof *from);
    else if (dtype == ATTN_F16)
        for (size_t i = 0; i < n; i++)
            half[i] = attn_f32_to_f16(from[i]);
    else
        for (size_t i = 0; i < n; i++)
            half[i] = attn_f32_to_bf16(from[i]);
}
