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
    int64_t extent[4]; /* batch, heads, rows, elements of a row */
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

/*-*** Overlaps **************************************************/

/* Where a tensor lies. whole: every byte of it is an element's; folded: rows may lie in rows. */
struct reach {
    const char *name;
    uintptr_t begin, end;
    bool whole, folded;
};

/* From the smallest stride to the largest, each has to step over all that the ones before reach. */
static struct reach reach_of(const struct tensor *t, int64_t element) {
    int64_t stride[3], extent[3], span = t->extent[3];
    bool whole = true, folded = false;
    int n = 0;
    for (int i = 0; i < 3; i++) {
        if (t->extent[i] <= 1 || t->stride[i] == 0)
            continue;
        int at = n++;
        for (; at > 0 && stride[at - 1] > t->stride[i]; at--) {
            stride[at] = stride[at - 1];
            extent[at] = extent[at - 1];
        }
        stride[at] = t->stride[i];
        extent[at] = t->extent[i];
    }
    for (int i = 0; i < n; i++) {
        whole &= stride[i] <= span;
        folded |= stride[i] < span;
        span += (extent[i] - 1) * stride[i];
    }
    uintptr_t begin = (uintptr_t)t->data;
    return (struct reach){t->name, begin, begin + (uintptr_t)(span * element), whole, folded};
}

static bool holds(const struct reach *r, uintptr_t at) {
    return r->whole && at >= r->begin && at < r->end;
}

/* Is there a byte that is in both for sure? Tensors with gaps may lie in each other's. */
static bool overlap(const struct reach *a, const struct reach *b) {
    return a->begin == b->begin || holds(a, b->begin) || holds(a, b->end - 1) ||
           holds(b, a->begin) || holds(b, a->end - 1);
}

enum { TENSORS = 5 };

/* Where the tensors of a problem with rows lie, those that are written first: *written of them. */
static int reaches(const attn_problem *p, const attn_forward_tensors *t, struct reach r[TENSORS],
                   int *written) {
    int64_t element = (int64_t)attn_dtype_size(p->dtype);
    const struct tensor list[] = {
        {"o", t->o, t->o_stride, {p->batch, p->heads_q, p->seq_q, p->head_dim_v}},
        {"q", t->q, t->q_stride, {p->batch, p->heads_q, p->seq_q, p->head_dim}},
        {"k", t->k, t->k_stride, {p->batch, p->heads_kv, p->seq_kv, p->head_dim}},
        {"v", t->v, t->v_stride, {p->batch, p->heads_kv, p->seq_kv, p->head_dim_v}},
    };
    int n = 0;
    r[n++] = reach_of(&list[0], element);
    if (p->features & ATTN_FEATURE_LSE && !r[0].folded) { /* rows apart: few enough to count */
        uintptr_t begin = (uintptr_t)t->lse, rows = (uintptr_t)p->batch;
        rows *= (uintptr_t)p->heads_q * (uintptr_t)p->seq_q;
        r[n++] = (struct reach){"lse", begin, begin + rows * sizeof *t->lse, true, false};
    }
    *written = n;
    for (int i = 1; i < 4 && p->seq_kv; i++)
        r[n++] = reach_of(&list[i], element);
    return n;
}

static attn_status check_overlaps(const attn_problem *p, const attn_forward_tensors *t,
                                  attn_error *err) {
    struct reach r[TENSORS];
    int written, n = reaches(p, t, r, &written);
    if (r[0].folded)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "the strides of tensor o let its rows overlap: in order of size, each has "
                         "to be at least what the smaller ones reach");
    for (int i = 0; i < written; i++)
        for (int j = i + 1; j < n; j++)
            if (overlap(&r[i], &r[j]))
                return attn_fail(err, ATTN_ERR_INVALID, "tensors %s and %s overlap", r[i].name,
                                 r[j].name);
    return ATTN_OK;
}

attn_status attn_workspace_check(const attn_problem *p, const attn_forward_tensors *t,
                                 const void *ws, size_t bytes, attn_error *err) {
    const struct reach space = {"ws", (uintptr_t)ws, (uintptr_t)ws + bytes, true, false};
    struct reach r[TENSORS];
    int written, n = reaches(p, t, r, &written);
    for (int i = 0; i < n; i++)
        if (overlap(&space, &r[i]))
            return attn_fail(err, ATTN_ERR_INVALID, "the workspace and tensor %s overlap",
                             r[i].name);
    return ATTN_OK;
}

/*-****************************************************************/

attn_status attn_tensors_check(const attn_problem *p, const attn_forward_tensors *t,
                               attn_error *err) {
    if (!t)
        return attn_fail(err, ATTN_ERR_INVALID, "the tensors are NULL");
    if (t->size != sizeof *t)
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
    return has_q ? check_overlaps(p, t, err) : ATTN_OK;
}
