/* hostile.h: the fixed set of small problems on which kernels tend to be wrong.
 *
 * Every variant passes those of its class: lengths off the tile, one row, one key, no keys, unequal
 * lengths both ways, empty rows, ties, odd GQA ratios, strange scales and logits, NaNs in a query
 * row and in another head's keys, unusual strides within the alignment, zero sizes. */
#ifndef ATTN_HOSTILE_H
#define ATTN_HOSTILE_H

#include "inputs.h"

enum { ATTN_HOSTILE_MAX = 64 };

typedef struct attn_hostile {
    attn_problem problem;
    attn_input_spec spec;
} attn_hostile;

/* Fills list with the cases for the class of `problem` and a variant with this launch record, all
 * within its limits (shapes are moved to the nearest that is), and returns how many. */
size_t attn_hostile_list(const attn_problem *problem, const attn_launch *launch,
                         attn_hostile list[ATTN_HOSTILE_MAX]);

#endif
