/* inputs_fill.h: the values of input tensors, and the poison around them. */
#ifndef ATTN_INPUTS_FILL_H
#define ATTN_INPUTS_FILL_H

#include "inputs.h"

/* Quiet NaNs that no arithmetic makes of its own. */
#define ATTN_POISON_INPUT_F32 0x7fc0bad1u
#define ATTN_POISON_OUTPUT_F32 0x7fcafe0du
#define ATTN_POISON_INPUT_16 0x7fd5u
#define ATTN_POISON_OUTPUT_16 0x7feau

/* Writes q, k and v of the host tensors as inputs->spec says; strides and pointers are set.
 * ERR_NOMEM. */
attn_status attn_inputs_fill(attn_inputs *inputs, attn_error *err);

#endif
