/* problem.c: checking problems, and their sizes, distances and arguments. */
#include "core/problem.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const FIELDS[] = {
#define XX(name, text) text,
    ATTN_FIELD_MAP(XX)
#undef XX
};

const char *attn_field_name(attn_field field) {
    return FIELDS[field];
}

bool attn_field_parse(const char *text, attn_field *field) {
    for (int i = 0; i < ATTN_FIELD_COUNT; i++) {
        if (strcmp(text, FIELDS[i]) == 0) {
            *field = (attn_field)i;
            return true;
        }
    }
    return false;
}

int64_t attn_field_get(const attn_problem *p, attn_field field) {
    const int64_t group = p->heads_kv ? p->heads_q / p->heads_kv : 0;
    const int64_t values[ATTN_FIELD_COUNT] = {
        [ATTN_FIELD_BATCH] = p->batch,
        [ATTN_FIELD_HEADS_Q] = p->heads_q,
        [ATTN_FIELD_HEADS_KV] = p->heads_kv,
        [ATTN_FIELD_GROUP] = group,
        [ATTN_FIELD_ROWS] = group * p->seq_q,
        [ATTN_FIELD_SEQ_Q] = p->seq_q,
        [ATTN_FIELD_SEQ_KV] = p->seq_kv,
        [ATTN_FIELD_WINDOW_LEFT] = p->window_left,
        [ATTN_FIELD_WINDOW_RIGHT] = p->window_right,
    };
    return values[field];
}

size_t attn_dtype_size(attn_dtype dtype) {
    return dtype == ATTN_F32 || dtype == ATTN_TF32 ? 4 : 2;
}

static attn_status fault(char *error, size_t size, const char *format, ...) ATTN_PRINTF(3, 4);

static attn_status fault(char *error, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (error && size)
        (void)vsnprintf(error, size, format, args);
    va_end(args);
    return ATTN_ERR_INVALID;
}

static attn_status check_ranges(const attn_problem *p, char *error, size_t size) {
    const struct {
        const char *name;
        int32_t value, min, max;
    } ranges[] = {
        {"the batch", p->batch, 0, 1 << 24},
        {"heads_q", p->heads_q, 0, 1 << 20},
        {"heads_kv", p->heads_kv, 0, 1 << 20},
        {"seq_q", p->seq_q, 0, ATTN_SEQ_MAX},
        {"seq_kv", p->seq_kv, 0, ATTN_SEQ_MAX},
        {"head_dim", p->head_dim, 1, 1024},
        {"head_dim_v", p->head_dim_v, 1, 1024},
        {"the window's left side", p->window_left, -1, INT32_MAX},
        {"the window's right side", p->window_right, -1, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max)
            return fault(error, size, "%s is %d, but must be from %d to %d", ranges[i].name,
                         ranges[i].value, ranges[i].min, ranges[i].max);
    return ATTN_OK;
}

attn_status attn_problem_check(const attn_problem *p, char *error, size_t size) {
    if (!p)
        return fault(error, size, "the problem is NULL");
    if (p->op != ATTN_OP_FORWARD || (unsigned)p->dtype > ATTN_TF32 ||
        (unsigned)p->mask > ATTN_MASK_WINDOW || (unsigned)p->layout > ATTN_QKV ||
        (unsigned)p->alignment > ATTN_A1 || (p->features & ~(uint32_t)ATTN_FEATURE_LSE))
        return fault(error, size, "op, dtype, mask, layout, alignment or features is out of range");
    ATTN_TRY(check_ranges(p, error, size));
    if (p->heads_kv ? p->heads_q % p->heads_kv != 0 : p->heads_q != 0)
        return fault(error, size, "heads_q is %d, which is no multiple of heads_kv %d", p->heads_q,
                     p->heads_kv);
    if (p->mask != ATTN_MASK_WINDOW && (p->window_left || p->window_right))
        return fault(error, size, "window sides are set but the mask is not a window");
    if (p->layout == ATTN_QKV && p->seq_q != p->seq_kv)
        return fault(error, size, "layout qkv needs equal lengths, but seq_q is %d and seq_kv %d",
                     p->seq_q, p->seq_kv);
    return ATTN_OK;
}

attn_hash attn_problem_hash(const attn_problem *p) {
    char text[ATTN_PROBLEM_TEXT];
    (void)attn_problem_print(p, text, sizeof text);
    attn_hash h = attn_hash_begin();
    attn_hash_text_field(&h, text);
    return h;
}

/* |log2(a / b)|, where 0 is only near 0. */
static double log_ratio(double a, double b) {
    if (a == b)
        return 0;
    return a > 0 && b > 0 ? fabs(log2(a / b)) : INFINITY;
}

double attn_problem_distance(const attn_problem *a, const attn_problem *b) {
    char class_a[ATTN_CLASS_TEXT], class_b[ATTN_CLASS_TEXT];
    attn_class_print(a, class_a);
    attn_class_print(b, class_b);
    if (strcmp(class_a, class_b) != 0)
        return INFINITY;
    double d = log_ratio(a->seq_q, b->seq_q);
    d = fmax(d, log_ratio(a->seq_kv, b->seq_kv));
    return fmax(d, log_ratio((double)a->batch * a->heads_q, (double)b->batch * b->heads_q));
}

/* The mask as the kernels see it: row i sees key j iff offset - left <= j - i <= offset + right. */
static void mask_sides(const attn_problem *p, int32_t *left, int32_t *right, int32_t *offset) {
    *left = *right = ATTN_UNBOUNDED;
    *offset = p->mask == ATTN_MASK_CAUSAL_TL ? 0 : p->seq_kv - p->seq_q;
    if (p->mask == ATTN_MASK_CAUSAL || p->mask == ATTN_MASK_CAUSAL_TL)
        *right = 0;
    if (p->mask == ATTN_MASK_WINDOW) { /* a side that reaches past both ends does not bound */
        if (p->window_left >= 0 && p->window_left < p->seq_q + p->seq_kv)
            *left = p->window_left;
        if (p->window_right >= 0 && p->window_right < p->seq_q + p->seq_kv)
            *right = p->window_right;
    }
}

/* Sum over i in [0, n) of the number of keys j in [0, m) with j <= i + shift. */
static double pairs_below(double n, double m, double shift) {
    double first = fmax(0, -shift);       /* first row that sees a key */
    double full = fmax(first, m - shift); /* first row that could see more than m */
    if (first >= n || m <= 0)
        return 0;
    double end = fmin(n, full);
    double ramp = (end - first) * (first + shift + 1 + end + shift) / 2;
    return ramp + fmax(0, n - full) * m;
}

double attn_problem_pairs(const attn_problem *p) {
    int32_t left, right, offset;
    mask_sides(p, &left, &right, &offset);
    double n = p->seq_q, m = p->seq_kv, heads = (double)p->batch * p->heads_q;
    double upper = pairs_below(n, m, (double)offset + right);
    double lower = pairs_below(n, m, (double)offset - left - 1); /* left of the window */
    return heads * fmax(0, upper - lower);
}

double attn_problem_flops(const attn_problem *p) {
    return 2.0 * (p->head_dim + p->head_dim_v) * attn_problem_pairs(p);
}

double attn_problem_bytes(const attn_problem *p) {
    double rows_q = (double)p->batch * p->heads_q * p->seq_q;
    double rows_kv = (double)p->batch * p->heads_kv * p->seq_kv;
    double elements = (rows_q + rows_kv) * (p->head_dim + p->head_dim_v);
    double lse = p->features & ATTN_FEATURE_LSE ? 4 * rows_q : 0;
    return elements * (double)attn_dtype_size(p->dtype) + lse;
}

void attn_problem_args(const attn_problem *p, const attn_forward_tensors *t,
                       attn_forward_args *args) {
    memset(args, 0, sizeof *args);
    args->q = t->q;
    args->k = t->k;
    args->v = t->v;
    args->o = t->o;
    args->lse = p->features & ATTN_FEATURE_LSE ? t->lse : NULL;
    const int32_t extent_q[] = {p->batch, p->heads_q, p->seq_q};
    const int32_t extent_kv[] = {p->batch, p->heads_kv, p->seq_kv};
    for (int i = 0; i < 3; i++) { /* strides of size-1 dimensions mean nothing: kernels see 0 */
        args->q_stride[i] = extent_q[i] > 1 ? t->q_stride[i] : 0;
        args->k_stride[i] = extent_kv[i] > 1 ? t->k_stride[i] : 0;
        args->v_stride[i] = extent_kv[i] > 1 ? t->v_stride[i] : 0;
        args->o_stride[i] = extent_q[i] > 1 ? t->o_stride[i] : 0;
    }
    args->batch = p->batch;
    args->heads_q = p->heads_q;
    args->heads_kv = p->heads_kv;
    args->group = p->heads_kv ? p->heads_q / p->heads_kv : 0;
    args->seq_q = p->seq_q;
    args->seq_kv = p->seq_kv;
    args->head_dim = p->head_dim;
    args->head_dim_v = p->head_dim_v;
    mask_sides(p, &args->mask_left, &args->mask_right, &args->mask_offset);
    args->splits = 1;
    args->scale = isnan(t->scale) ? (float)(1.0 / sqrt(p->head_dim)) : t->scale;
    double scale_log2 = (double)args->scale * 1.4426950408889634;
    args->scale_log2 = (float)fmax(-FLT_MAX, fmin(FLT_MAX, scale_log2));
}
