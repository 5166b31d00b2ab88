/* reference.h: what attention should give, in float64, for some or all rows of a problem.
 *
 * Written apart from every kernel and from the library's own reference, in the plainest way that is
 * fast enough. The rows are chosen so that the work stays within a budget: all of them if they fit;
 * else two thirds of the budget go to one (batch, kv head) group, whose rows are all taken if they
 * fit, and the rest to up to 64 rows of every other head. First and last rows and those at the
 * edges of common tile sizes come before random ones. */
#ifndef ATTN_REFERENCE_H
#define ATTN_REFERENCE_H

#include "inputs.h"

typedef struct attn_reference {
    int64_t rows;    /* rows computed */
    int64_t *row;    /* [rows] (batch * heads_q + head) * seq_q + query, ascending */
    double *o;       /* [rows][head_dim_v] */
    double *lse;     /* [rows] natural log; -inf for a row that sees no key */
    double *logit;   /* [rows] max |logit| over the keys that the row sees, 0 if none */
    double *size;    /* [rows] what errors of o are measured against, see compare.h; 0: no key */
    double plain;    /* error of the plain float32 algorithm on these inputs; 0 unless f32 */
    bool complete;   /* every row is there, but for those of `ignored` */
    int64_t ignored; /* (batch, kv head) of which nothing is promised, -1 if none */
} attn_reference;

/* Multiplications a second: what one core of 2020 does of them in Release, built for any x86-64. */
#define ATTN_REFERENCE_RATE 3e9

/* budget: multiplications allowed. `seed` picks the group and the random rows. The host tensors of
 * inputs are read. *reference needs no initialisation; free it in any case. ERR_NOMEM. */
attn_status attn_reference_make(const attn_inputs *inputs, double budget, uint64_t seed,
                                attn_reference *reference, attn_error *err);
void attn_reference_free(attn_reference *reference);

#endif
