/* test_run_fuzz.c: attn_run on random problems: no wrong row, and no compile after warm-up.
 *
 *     test_run_fuzz [N [SEED]]        (default 1000 problems; ./bootstrap test --long runs 100,000)
 *
 * Classes come from a short list, each met once before; everything else is drawn: batch, heads,
 * groups, lengths, window sides, layout, strides (padded, repeated, a1), scale. */
#include "check.h"
#include "context.h"
#include "core/half.h"
#include "naive.h"

static const char *const CLASSES[] = {
    "f32:d64",
    "f32:d64:causal",
    "f32:d64:window3,2:lse",
    "f32:d64:causal_tl:a1",
    "f32:d40:causal:lse",
    "f32:d33:a1",
    "f32:d128:causal:lse",
    "f32:d8:dv24:causal",
    "f32:d80:window-1,0",
    "f32:d1:lse:a1",
    "bf16:d64:causal:lse",
    "bf16:d128:window5,1",
    "bf16:d33:dv50:causal_tl:a1",
};
enum { N_CLASSES = sizeof CLASSES / sizeof CLASSES[0] };

static int32_t draw(int32_t low, int32_t high) {
    return low + (int32_t)(naive_random() % (uint32_t)(high - low + 1));
}

/* Mostly small lengths, at times around a tile's edge, at times none. */
static int32_t draw_length(void) {
    static const int32_t edges[] = {0, 1, 15, 16, 17, 31, 33, 63, 64, 65, 96, 127, 129};
    return draw(0, 3) ? draw(1, 70) : edges[draw(0, sizeof edges / sizeof edges[0] - 1)];
}

static attn_problem draw_problem(int class_index) {
    static const int32_t groups[] = {1, 1, 2, 3, 5, 8};
    attn_problem p = {0};
    char text[ATTN_PROBLEM_TEXT], error[256] = "";
    (void)snprintf(text, sizeof text, "fwd:b1:h1:s1:%s", CLASSES[class_index]);
    CHECK_OK(attn_problem_parse(text, &p, error, sizeof error), error);
    p.batch = draw(0, 20) ? draw(1, 2) : 0;
    p.heads_kv = draw(1, 2);
    p.heads_q = p.heads_kv * groups[draw(0, 5)];
    p.seq_q = draw_length();
    p.seq_kv = draw(0, 1) ? p.seq_q : draw_length();
    if (p.mask == ATTN_MASK_WINDOW) {
        p.window_left = draw(-1, 40);
        p.window_right = draw(-1, 10);
    }
    p.layout = draw(0, 1) ? ATTN_BSHD : ATTN_BHSD;
    return p;
}

/* Strides as the problem's alignment allows them: padded rows, and at times a repeated head. */
static void draw_strides(const attn_problem *p, attn_forward_tensors *t) {
    int64_t step = p->alignment != ATTN_A16 ? 1 : p->dtype == ATTN_F32 ? 4 : 8;
    attn_forward_strides(p, t);
    int64_t *const strides[] = {t->q_stride, t->k_stride, t->v_stride, t->o_stride};
    for (int i = 0; i < 4; i++) {
        int64_t *s = strides[i];
        int inner = p->layout == ATTN_BHSD ? 2 : 1; /* bshd: heads are inside rows */
        int64_t heads_or_rows = s[3 - inner] / (s[inner] ? s[inner] : 1);
        s[inner] += step * draw(0, 3);
        s[3 - inner] = s[inner] * heads_or_rows + step * draw(0, 3);
        int64_t count =
            inner == 1 ? (i % 3 ? p->seq_kv : p->seq_q) : (i % 3 ? p->heads_kv : p->heads_q);
        s[0] = s[3 - inner] * count + step * draw(0, 2);
    }
    if (!draw(0, 9))
        t->k_stride[1] = t->v_stride[1] = 0;
}

static size_t kernels_loaded(attn_context *ctx) {
    size_t n = 0;
    for (const attn_loaded *l = ctx->device[0].loaded; l; l = l->next)
        n++;
    return n;
}

/* Numbers as bfloat16; the floats become what these are worth. */
static uint16_t *narrow(float *x, size_t count) {
    uint16_t *half = aligned_alloc(64, (count * sizeof *half + 127) / 64 * 64);
    for (size_t i = 0; half && i < count; i++) {
        half[i] = attn_bf16_of_float(x[i]);
        x[i] = attn_float_of_bf16(half[i]);
    }
    return half;
}

/* The same run on tensors of bfloat16, whose values the tensors of float then have. */
static attn_status run_bf16(attn_context *ctx, const attn_problem *p, naive_tensors *n, void *ws,
                            size_t ws_bytes) {
    attn_forward_tensors t = n->t;
    uint16_t *half[4];
    for (int i = 0; i < 4; i++)
        half[i] = narrow(n->buffer[i], n->elements[i]);
    t.q = half[0];
    t.k = half[1];
    t.v = half[2];
    t.o = half[3];
    attn_status st = CHECK(half[0] && half[1] && half[2] && half[3])
                         ? attn_run(ctx, p, ATTN_DEVICE_CPU, &t, ws, ws_bytes, NULL)
                         : ATTN_ERR_NOMEM;
    for (size_t i = 0; half[3] && i < n->elements[3]; i++)
        n->buffer[3][i] = attn_float_of_bf16(half[3][i]);
    for (int i = 0; i < 4; i++)
        free(half[i]);
    return st;
}

static attn_status run(attn_context *ctx, const attn_problem *p, naive_tensors *n, void *ws,
                       size_t ws_bytes) {
    return p->dtype == ATTN_BF16 ? run_bf16(ctx, p, n, ws, ws_bytes)
                                 : attn_run(ctx, p, ATTN_DEVICE_CPU, &n->t, ws, ws_bytes, NULL);
}

static bool run_one(attn_context *ctx, const attn_problem *p, void *ws, size_t ws_bytes) {
    static const float scales[] = {0.0f, -0.7f, 3.0f, 40.0f};
    naive_tensors n = {.t = ATTN_FORWARD_TENSORS_INIT};
    char text[ATTN_PROBLEM_TEXT];
    (void)attn_problem_print(p, text, sizeof text);
    CHECK_CASE("%s", text);
    draw_strides(p, &n.t);
    if (!draw(0, 2))
        n.t.scale = scales[draw(0, 3)];
    bool good = CHECK(naive_fill(p, &n)) &&
                CHECK(attn_workspace_size(ctx, p, ATTN_DEVICE_CPU) <= ws_bytes) &&
                CHECK_OK(run(ctx, p, &n, ws, ws_bytes), attn_last_error(ctx));
    double bound = n.t.scale > 10 ? 4e-4 : 2e-5; /* the error of a logit grows with the logit */
    bound = p->dtype == ATTN_BF16 ? 1e-2 : bound;
    good = good && CHECK_NEAR(naive_error(p, &n), 0, bound);
    naive_free(&n);
    return good;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1000;
    size_t ws_bytes = 64 << 20;
    void *ws = aligned_alloc(256, ws_bytes);
    attn_context *ctx = NULL;
    naive_random_state = argc > 2 ? (uint64_t)atol(argv[2]) : 1;
    if (!CHECK(ws != NULL) || !CHECK_OK(attn_open(NULL, &ctx), attn_last_error(NULL)))
        return check_done();
    for (int i = 0; i < N_CLASSES; i++) {
        attn_problem p = draw_problem(i);
        p.batch = p.seq_q = p.seq_kv = 1;
        (void)run_one(ctx, &p, ws, ws_bytes);
    }
    size_t loaded = kernels_loaded(ctx);
    for (long i = 0; i < count && check_failures < 10; i++) {
        attn_problem p = draw_problem((int)(i % N_CLASSES));
        (void)run_one(ctx, &p, ws, ws_bytes);
    }
    check_case[0] = '\0';
    CHECK_EQ_INT(kernels_loaded(ctx), loaded);
    attn_close(ctx);
    free(ws);
    return check_done();
}
