/* dtype.c: rows of elements; half.h knows the two half formats. */
#include "core/dtype.h"

#include <string.h>

#include "core/half.h"
#include "core/problem.h"

void attn_dtype_to_float(attn_dtype dtype, const void *from, float *to, size_t n) {
    const uint16_t *half = from;
    if (dtype == ATTN_F32 || dtype == ATTN_TF32)
        memcpy(to, from, n * sizeof *to);
    else if (dtype == ATTN_F16)
        for (size_t i = 0; i < n; i++)
            to[i] = attn_float_of_f16(half[i]);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = attn_float_of_bf16(half[i]);
}

/* In parts that stay in the first cache. */
void attn_dtype_to_double(attn_dtype dtype, const void *from, double *to, size_t n) {
    enum { PART = 256 };
    const size_t size = attn_dtype_size(dtype);
    float part[PART];
    for (size_t done = 0; done < n; done += PART) {
        size_t count = n - done < PART ? n - done : PART;
        attn_dtype_to_float(dtype, (const char *)from + done * size, part, count);
        for (size_t i = 0; i < count; i++)
            to[done + i] = part[i];
    }
}

/* To 11 bits, half to even; what is not finite stays so. */
static float round_tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u)
        bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void attn_dtype_from_float(attn_dtype dtype, const float *from, void *to, size_t n) {
    uint16_t *half = to;
    if (dtype == ATTN_F32)
        memcpy(to, from, n * sizeof *from);
    else if (dtype == ATTN_TF32)
        for (size_t i = 0; i < n; i++)
            ((float *)to)[i] = round_tf32(from[i]);
    else if (dtype == ATTN_F16)
        for (size_t i = 0; i < n; i++)
            half[i] = attn_f16_of_float(from[i]);
    else
        for (size_t i = 0; i < n; i++)
            half[i] = attn_bf16_of_float(from[i]);
}
