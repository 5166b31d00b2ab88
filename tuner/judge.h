/* judge.h: every element of an output beside that of a plain kernel on the same device.
 *
 * The float64 reference of a large problem holds only some of its rows; the judge's output holds
 * all of them. The judge was itself compared with float64 (compare.h) where that has rows, and this
 * measured its own error, e. Both outputs are rounded to the dtype and neither is exact, so a right
 * kernel may be off from the judge by its bound and by e: by bounds.head + e in a head, by four
 * times that in a row, and by twice bounds.lse (1 + max |logit|) in lse. By the triangle inequality
 * this alarms at no head that the float64 reference would pass, and a row that another one's keys
 * or weights have gone into is off by its whole size.
 *
 * A row is measured against its norm in the judge's output or, if that is larger, the rms norm of
 * the 16 rows around it: of few columns, a row may happen to be all but 0, which says nothing of
 * how large its rounding errors are. */
#ifndef ATTN_JUDGE_H
#define ATTN_JUDGE_H

#include "compare.h"

typedef struct attn_judge {
    unsigned char *image; /* o's, and behind it lse's, in the form of inputs->image; NULL: none */
    double error;         /* the largest of a head, against float64 */
    double logit;         /* largest |logit| of the rows that float64 has */
} attn_judge;

/* Keeps a copy of the outputs (o_size + lse_size bytes at `image`) that have passed attn_compare
 * with this verdict. ERR_NOMEM. */
attn_status attn_judge_take(attn_judge *judge, const unsigned char *image,
                            const attn_inputs *inputs, const attn_reference *reference,
                            const attn_verdict *verdict, attn_error *err);
void attn_judge_free(attn_judge *judge);

/* Judges an output that has passed attn_compare: o, and behind it lse, as that took them. They are
 * only read. If it is wrong, sets the verdict as attn_compare does and returns false. */
bool attn_judge_compare(const attn_judge *judge, const attn_inputs *inputs,
                        const attn_reference *reference, const unsigned char *image,
                        attn_verdict *verdict);

#endif
