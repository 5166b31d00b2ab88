/* compare.h: is an output right? Error norms and bounds, in one place.
 *
 * With ref the float64 reference, the error of a row is ||o - ref|| / size, and that of a head
 * the same over all its rows: a whole-head norm alone lets one wholly wrong row of 16k pass. The
 * size of a row is ||ref|| or, if that is larger, what it is on average for values of standard
 * deviation 1 under the row's weights w, sqrt(head_dim_v sum w^2): rounding errors are of that
 * size also in a row of few columns that happens to be all but 0. Rows that see no key must be 0,
 * and are measured absolutely. -inf must be -inf, and a NaN must be where the reference has one. */
#ifndef ATTN_COMPARE_H
#define ATTN_COMPARE_H

#include "reference.h"
#include "verdict.h"

typedef struct attn_bounds {
    double head; /* bound on a head's error, and on |o| in rows that are all 0 */
    double row;  /* on a row's error: ATTN_ROW_FACTOR x head */
    double lse;  /* |lse - ref| <= lse (1 + max |logit| of the head) */
} attn_bounds;

#define ATTN_ROW_FACTOR 4.0

/* plain: error of the plain float32 algorithm on the same inputs (f32 only). */
attn_bounds attn_bounds_of(attn_dtype dtype, double plain);

/* The bound on the error of a head of so many elements: the fewer there are, the more their norm
 * scatters; a head of one element has the bound of a row. */
double attn_head_bound(double bound, int64_t elements);

/* Bytes from the start of an image of o to a row that is there; head: batch * heads_q + head. */
size_t attn_output_offset(const attn_inputs *inputs, int64_t head, int64_t row);

/* Judges o and lse: images of the same form as inputs->image[ATTN_IMAGE_O] and [..._LSE], copied
 * from the device after a run. Fills their elements with poison as it goes, so that what is left
 * must be poison everywhere: guards and padding are checked so. lse is not read without the
 * feature. If it is wrong, sets verdict->right and ->reason and returns false. */
bool attn_compare(const attn_inputs *inputs, const attn_reference *reference, unsigned char *o,
                  unsigned char *lse, attn_verdict *verdict);

#endif
