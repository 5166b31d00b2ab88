/* reference_rows.h: the parts of the reference that are not the reference itself: which rows it
 * holds, and how well the plain float32 algorithm does on them. */
#ifndef ATTN_REFERENCE_ROWS_H
#define ATTN_REFERENCE_ROWS_H

#include "reference.h"

/* Sets reference->row, rows and complete. ERR_NOMEM. */
attn_status attn_reference_rows(const attn_problem *problem, double budget, uint64_t seed,
                                attn_reference *reference, attn_error *err);

/* Sets reference->plain from some of its rows. The inputs are float32. ERR_NOMEM. */
attn_status attn_reference_plain(const attn_inputs *inputs, attn_reference *reference,
                                 attn_error *err);

#endif
