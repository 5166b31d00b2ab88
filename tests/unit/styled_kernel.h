/* styled_kernel.h: right attention in the ways that real kernels have of doing it: sums in another
 * order, keys in blocks, weights rounded to the dtype. */
#ifndef ATTN_STYLED_KERNEL_H
#define ATTN_STYLED_KERNEL_H

#include <stdbool.h>

#include "core/problem.h"

typedef struct styled_kernel {
    attn_dtype dtype;
    int lanes;    /* partial sums of a dot product, up to 64 */
    int block;    /* keys between two looks at the maximum, up to 256 */
    bool rounded; /* weights are rounded to the dtype, as tensor cores take them */
} styled_kernel;

/* One row: o as float32, not yet rounded; the result is its lse. */
float styled_row(const styled_kernel *style, const attn_forward_args *args, int64_t head,
                 int64_t row, float *o);

/* The element of o at (head, row, 0). */
void *styled_output(const styled_kernel *style, const attn_forward_args *args, int64_t head,
                    int64_t row);

#endif
