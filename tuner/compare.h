/* compare.h: is an output right? Error norms and bounds, in one place.
 *
 * With ref the float64 reference, the error of a head is ||o - ref|| / ||ref||, and that of a row
 * the same with ||ref_row|| taken as at least 1e-3 of the head's rms row norm: a whole-head norm
 * alone lets one wholly wrong row of 16k pass. Rows whose reference is all 0 are measured
 * absolutely. -inf must be -inf, and a NaN must be where the reference has one. */
#ifndef ATTN_COMPARE_H
#define ATTN_COMPARE_H

#include "reference.h"

typedef struct attn_bounds {
    double head; /* bound on a head's error, and on |o| in rows that are all 0 */
    double row;  /* on a row's error: 4 x head */
    double lse;  /* |lse - ref| <= lse (1 + max |logit| of the head) */
} attn_bounds;

/* plain: error of the plain float32 algorithm on the same inputs (f32 only). */
attn_bounds attn_bounds_of(attn_dtype dtype, double plain);

typedef struct attn_verdict {
    bool right;
    double error;     /* the largest error of a head, or the one that was too large */
    double bound;     /* what it was held against */
    char reason[512]; /* one line if not right, else "" */
} attn_verdict;

#define ATTN_VERDICT_INIT                                                                          \
    { true, 0.0, 0.0, "" }

/* Judges o and lse: images of the same form as inputs->image[ATTN_IMAGE_O] and [..._LSE], copied
 * from the device after a run. Fills their elements with poison as it goes, so that what is left
 * must be poison everywhere: guards and padding are checked so. lse is not read without the
 * feature. If it is wrong, sets verdict->right and ->reason and returns false. */
bool attn_compare(const attn_inputs *inputs, const attn_reference *reference, unsigned char *o,
                  unsigned char *lse, attn_verdict *verdict);

#endif
