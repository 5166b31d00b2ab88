/* verify.h: proves that a loaded kernel computes attention. Nothing unproved is ever timed.
 *
 * A verifier belongs to one problem on one open device and serves all variants of that problem:
 * inputs and float64 references are made once, at creation (about 2 s at most) or when a hostile
 * problem is first needed. It knows no backend: tensors go through the device's own slots.
 *
 * A check runs, in this order and up to the first fault:
 *   1. the hostile problems of the class (hostile.h) that the variant's limits admit;
 *   2. the problem with logits of standard deviation 1, twice or more, equal bit for bit;
 *   3. the problem with standard deviation 8 and with peaked rows; where the problem is large, only
 *      one (batch, kv head) group of it, if the limits admit that.
 * Guards, padding and inputs must be untouched, and every element of the output written. Where the
 * reference of 2 or 3 lacks rows, the judge, if there is one, has them all. */
#ifndef ATTN_VERIFY_H
#define ATTN_VERIFY_H

#include "compare.h"

typedef struct attn_verifier attn_verifier;

#define ATTN_VERIFIER_SECONDS 2.0 /* what references may usually take */

/* Makes inputs and references. seconds: of one core, for the references of the problem itself; what
 * does not fit is left out of them. ERR_NOMEM, ERR_DEVICE. */
attn_status attn_verifier_create(const attn_backend *backend, attn_backend_device *device,
                                 const attn_problem *problem, uint64_t seed, double seconds,
                                 attn_verifier **verifier, attn_error *err);
void attn_verifier_destroy(attn_verifier *verifier);

/* Do references of the problem lack rows, so that a judge is of use? */
bool attn_verifier_partial(const attn_verifier *verifier);

/* From now on every element of the problem's outputs is compared with those of this kernel, too
 * (judge.h). It runs once on each of the inputs whose reference lacks rows, and stays loaded as
 * long as the verifier lives. It judges nothing after ERR_INTERNAL: it is itself wrong;
 * ERR_UNSUPPORTED: it does not admit the problem, or would take too long; or another error of its
 * runs. */
attn_status attn_verifier_judge(attn_verifier *verifier, attn_kernel *kernel,
                                const attn_launch *launch, attn_error *err);

/* Runs the whole check. `launch` is the record that the kernel was loaded with. runs: how often
 * step 2 runs the problem, at least 2; 10 for finalists, then beside another stream that is kept
 * busy, where the device has streams. *verdict is set if the result is ATTN_OK (the kernel ran;
 * right or wrong is in the verdict). Else the kernel could not be run (ERR_LAUNCH, ERR_DEVICE,
 * ERR_NOMEM) or does not admit the problem (ERR_INVALID with the limit); err->line begins with the
 * inputs and the problem at fault. */
attn_status attn_verifier_check(attn_verifier *verifier, attn_kernel *kernel,
                                const attn_launch *launch, int32_t runs, attn_verdict *verdict,
                                attn_error *err);

/* Only step 2, for a variant that has passed before: what finalists go through. */
attn_status attn_verifier_repeat(attn_verifier *verifier, attn_kernel *kernel,
                                 const attn_launch *launch, int32_t runs, attn_verdict *verdict,
                                 attn_error *err);

/* The inputs of step 2, uploaded: a timing may use them too, outputs may be overwritten. */
const attn_inputs *attn_verifier_inputs(const attn_verifier *verifier);

#endif
