/* tensors.c: the caller's tensors: their strides by layout, and what is checked before a call. */
#include <math.h>
#include <stdint.h>

#include "core/problem.h"

/* Elements of a row of `elements`: rounded up to 16 bytes where the alignment asks for it. */
static int64_t padded(const attn_problem *p, int64_t elements) {
    int64_t step = p->alignment == ATTN_A16 ? 16 / (int64_t)attn_dtype_size(p->dtype) : 1;
    return (elements + step - 1) / step * step;
}

/* row: elements from one row to the next where heads lie side by side (bshd, qkv). */
static void set_strides(int64_t stride[3], attn_layout layout, int64_t heads, int64_t rows,
                        int64_t dim, int64_t row) {
    bool by_head = layout == ATTN_BHSD;
    stride[0] = by_head ? heads * rows * dim : rows * row;
    stride[1] = by_head ? rows * dim : dim;
    stride[2] = by_head ? dim : row;
}

void attn_forward_strides(const attn_problem *p, attn_forward_tensors *t) {
    int64_t hq = p->heads_q, hkv = p->heads_kv;
    int64_t d = padded(p, p->head_dim), dv = padded(p, p->head_dim_v);
    bool together = p->layout == ATTN_QKV;
    int64_t row = hq * d + hkv * d + hkv * dv;
    set_strides(t->q_stride, p->layout, hq, p->seq_q, d, together ? row : hq * d);
    set_strides(t->k_stride, p->layout, hkv, p->seq_kv, d, together ? row : hkv * d);
    set_strides(t->v_stride, p->layout, hkv, p->seq_kv, dv, together ? row : hkv * dv);
    set_strides(t->o_stride, p->layout, hq, p->seq_q, dv, hq * dv);
}

struct tensor {
    const char *name;
    const void *data;
    const int64_t *stride;
    int64_t extent[3]; /* batch, heads, rows */
};

static attn_status check_tensor(const struct tensor *t, attn_dtype dtype, attn_alignment alignment,
                                bool output, attn_error *err) {
    static const char *const dims[] = {"batch", "head", "row"};
    int64_t element = (int64_t)attn_dtype_size(dtype);
    if (!t->data)
        return attn_fail(err, ATTN_ERR_INVALID, "tensor %s is NULL", t->name);
    if ((uintptr_t)t->data % (uintptr_t)element)
        return attn_fail(err, ATTN_ERR_ALIGNMENT, "tensor %s is not aligned to its elements",
                         t->name);
    if (alignment == ATTN_A16 && (uintptr_t)t->data % 16)
        return attn_fail(err, ATTN_ERR_ALIGNMENT,
                         "tensor %s is not 16-byte aligned; ask for the problem with a1", t->name);
    for (int i = 0; i < 3; i++) {
        if (t->extent[i] <= 1)
            continue;
        if (t->stride[i] < 0)
            return attn_fail(err, ATTN_ERR_INVALID, "the %s stride of tensor %s is negative",
                             dims[i], t->name);
        if (output && t->stride[i] == 0)
            return attn_fail(err, ATTN_ERR_INVALID,
                             "tensor %s has a %s stride of 0, so its elements overlap", t->name,
                             dims[i]);
        int64_t reach;
        if (__builtin_mul_overflow(t->stride[i], t->extent[i] * element, &reach) ||
            reach > INT64_MAX / 4)
            return attn_fail(err, ATTN_ERR_INVALID,
                             "the %s stride of tensor %s reaches beyond all memory", dims[i],
                             t->name);
        if (alignment == ATTN_A16 && t->stride[i] * element % 16)
            return attn_fail(err, ATTN_ERR_ALIGNMENT,
                             "the %s stride of tensor %s is no multiple of 16 bytes; ask for the "
                             "problem with a1",
                             dims[i], t->name);
    }
    return ATTN_OK;
}

attn_status attn_tensors_check(const attn_problem *p, const attn_forward_tensors *t,
                               attn_error *err) {
    if (t->size < sizeof *t)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "attn_forward_tensors.size is %zu; begin with ATTN_FORWARD_TENSORS_INIT",
                         t->size);
    if (isinf(t->scale))
        return attn_fail(err, ATTN_ERR_INVALID, "the scale is infinite");
    bool has_q = p->batch && p->heads_q && p->seq_q;
    bool has_kv = has_q && p->seq_kv;
    const struct {
        struct tensor tensor;
        bool used, output;
    } tensors[] = {
        {{"q", t->q, t->q_stride, {p->batch, p->heads_q, p->seq_q}}, has_kv, false},
        {{"k", t->k, t->k_stride, {p->batch, p->heads_kv, p->seq_kv}}, has_kv, false},
        {{"v", t->v, t->v_stride, {p->batch, p->heads_kv, p->seq_kv}}, has_kv, false},
        {{"o", t->o, t->o_stride, {p->batch, p->heads_q, p->seq_q}}, has_q, true},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        if (tensors[i].used)
            ATTN_TRY(
                check_tensor(&tensors[i].tensor, p->dtype, p->alignment, tensors[i].output, err));
    if ((p->features & ATTN_FEATURE_LSE) && has_q && (!t->lse || (uintptr_t)t->lse % 4))
        return attn_fail(err, ATTN_ERR_INVALID,
                         "the problem asks for lse, but tensor lse is NULL or not aligned");
    return ATTN_OK;
}
