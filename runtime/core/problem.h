/* problem.h: what the inside of attntune needs of a problem beyond attntune.h. */
#ifndef ATTN_PROBLEM_H
#define ATTN_PROBLEM_H

#include <stdbool.h>

#include "attn_abi.h"
#include "core/error.h"
#include "core/hash.h"

/* Run-time fields of a problem: what limits, `specialise` and launch records may speak of. rows:
 * seq_q * group, the query rows that share K and V. */
#define ATTN_FIELD_MAP(XX)                                                                         \
    XX(BATCH, "batch")                                                                             \
    XX(HEADS_Q, "heads_q")                                                                         \
    XX(HEADS_KV, "heads_kv")                                                                       \
    XX(GROUP, "group")                                                                             \
    XX(ROWS, "rows")                                                                               \
    XX(SEQ_Q, "seq_q")                                                                             \
    XX(SEQ_KV, "seq_kv")                                                                           \
    XX(WINDOW_LEFT, "window_left")                                                                 \
    XX(WINDOW_RIGHT, "window_right")

typedef enum attn_field {
#define XX(name, text) ATTN_FIELD_##name,
    ATTN_FIELD_MAP(XX)
#undef XX
        ATTN_FIELD_COUNT
} attn_field;

const char *attn_field_name(attn_field field);
bool attn_field_parse(const char *text, attn_field *field);
/* group and rows are 0 without heads */
int64_t attn_field_get(const attn_problem *problem, attn_field field);

const char *attn_dtype_name(attn_dtype dtype); /* "f32" */
size_t attn_dtype_size(attn_dtype dtype);      /* bytes of an element */
const char *attn_mask_name(attn_mask mask);    /* "none", "causal", "causal_tl", "window" */
const char *attn_layout_name(attn_layout layout);

/* The class of the problem as text, every field written: "fwd:f32:d64:dv64:causal:lse:a16". Two
 * problems are of one class iff their texts are equal. */
enum { ATTN_CLASS_TEXT = 96 };
void attn_class_print(const attn_problem *problem, char text[ATTN_CLASS_TEXT]);

/* Hash of the canonical text. */
attn_hash attn_problem_hash(const attn_problem *problem);

/* max |log2 ratio| over seq_q, seq_kv and batch x heads_q (design section 10); INFINITY if one of a
 * pair is 0 and the other not, or the classes differ. */
double attn_problem_distance(const attn_problem *a, const attn_problem *b);

/* (query, key) pairs that are seen, over all heads; exact, so that FLOPs never count masked work.
 */
double attn_problem_pairs(const attn_problem *problem);

/* Floating-point operations: 2 (head_dim + head_dim_v) a seen pair. */
double attn_problem_flops(const attn_problem *problem);

/* Bytes of q, k, v, o (and lse), each counted once. */
double attn_problem_bytes(const attn_problem *problem);

/* Fills all of *args but workspace, tiles, splits, workers and the tensor maps. */
void attn_problem_args(const attn_problem *problem, const attn_forward_tensors *tensors,
                       attn_forward_args *args);

/* ATTN_OK, or ERR_INVALID / ERR_ALIGNMENT: pointers present, scale finite or NaN, rows of o apart
 * from each other, o and lse apart from all else, lse present if the feature asks, and the
 * alignment kept. Tensors that lie in each other's gaps are apart. */
attn_status attn_tensors_check(const attn_problem *problem, const attn_forward_tensors *tensors,
                               attn_error *err);

/* ATTN_OK, or ERR_INVALID: the workspace overlaps none of the tensors, which have been checked, of
 * a problem that is not empty. */
attn_status attn_workspace_check(const attn_problem *problem, const attn_forward_tensors *tensors,
                                 const void *ws, size_t bytes, attn_error *err);

#endif
