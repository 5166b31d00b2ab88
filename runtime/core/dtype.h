/* dtype.h: elements of each dtype to and from float and double.
 *
 * Conversions to a narrower type round to nearest, ties to even; overflow gives infinity and a NaN
 * stays a NaN. No rounding mode or CPU flag is touched, so results are the same everywhere. */
#ifndef ATTN_DTYPE_H
#define ATTN_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include "attntune/attntune.h"

float attn_f16_to_f32(uint16_t half);
uint16_t attn_f32_to_f16(float value);
float attn_bf16_to_f32(uint16_t half);
uint16_t attn_f32_to_bf16(float value);

/* n elements, contiguous on both sides. */
void attn_dtype_to_double(attn_dtype dtype, const void *from, double *to, size_t n);
void attn_dtype_to_float(attn_dtype dtype, const void *from, float *to, size_t n);
void attn_dtype_from_float(attn_dtype dtype, const float *from, void *to, size_t n);

#endif
