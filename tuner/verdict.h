/* verdict.h: what comes of a comparison, and the one line that says what is wrong and where. */
#ifndef ATTN_VERDICT_H
#define ATTN_VERDICT_H

#include "inputs.h"

typedef struct attn_verdict {
    bool right;
    double error;     /* the largest error of a head, or the one that was too large */
    double bound;     /* what it was held against */
    char reason[512]; /* one line if not right, else "" */
} attn_verdict;

#define ATTN_VERDICT_INIT                                                                          \
    { true, 0.0, 0.0, "" }

/* Makes the verdict wrong: its reason is the inputs, the problem, the place, then `what`. head is
 * batch * heads_q + head; -1: no place is named; row -1: the head is. Always false. */
bool attn_verdict_wrong(attn_verdict *verdict, const attn_inputs *inputs, int64_t head, int64_t row,
                        const char *what);

/* The same for an error ("`of` 1.00e-02, bound 5.00e-03"), which becomes the verdict's. */
bool attn_verdict_too_large(attn_verdict *verdict, const attn_inputs *inputs, int64_t head,
                            int64_t row, const char *of, double error, double bound);

#endif
