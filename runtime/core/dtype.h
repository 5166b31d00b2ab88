/* dtype.h: elements of each dtype to and from float and double. Narrowing rounds as half.h says;
 * tf32 are floats whose last 13 bits are 0. */
#ifndef ATTN_DTYPE_H
#define ATTN_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include "attntune/attntune.h"

/* n elements, contiguous on both sides. */
void attn_dtype_to_double(attn_dtype dtype, const void *from, double *to, size_t n);
void attn_dtype_to_float(attn_dtype dtype, const void *from, float *to, size_t n);
void attn_dtype_from_float(attn_dtype dtype, const float *from, void *to, size_t n);

#endif
