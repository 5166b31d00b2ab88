/* test_reference.c: the library's plain kernel against a direct evaluation of softmax in long
 * double, over shapes, masks, types and strides; edges; NaN; and that dealing changes no bit. */
#include "backend.h"
#include "check.h"
#include "core/dtype.h"
#include "core/half.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static const attn_backend *const cpu = &attn_backend_cpu;

/* The tensors of one problem, elements as float beside their stored form. */
typedef struct tensor {
    void *data;
    float *value; /* what is stored, widened */
    int64_t count;
} tensor;

typedef struct setup {
    attn_problem problem;
    attn_forward_tensors t;
    tensor q, k, v, o;
    float *lse;
} setup;

static uint64_t random_state = 1;

static float random_float(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(random_state >> 32) / 1073741824.0f;
}

static float stored_value(attn_dtype dtype, const void *data, int64_t i) {
    return dtype == ATTN_F32   ? ((const float *)data)[i]
           : dtype == ATTN_F16 ? attn_float_of_f16(((const uint16_t *)data)[i])
                               : attn_float_of_bf16(((const uint16_t *)data)[i]);
}

static void store(attn_dtype dtype, void *data, int64_t i, float x) {
    if (dtype == ATTN_F32)
        ((float *)data)[i] = x;
    else
        ((uint16_t *)data)[i] = dtype == ATTN_F16 ? attn_f16_of_float(x) : attn_bf16_of_float(x);
}

/* [batch][heads][rows][dim] in bhsd or bshd, each row with two more elements, all random. */
static tensor make_tensor(const attn_problem *p, int64_t heads, int64_t rows, int64_t dim,
                          int64_t stride[3]) {
    int64_t row = dim + 2;
    bool bshd = p->layout == ATTN_BSHD;
    tensor x = {.count = p->batch * heads * rows * row};
    stride[0] = heads * rows * row;
    stride[1] = bshd ? row : rows * row;
    stride[2] = bshd ? heads * row : row;
    x.data = calloc((size_t)x.count + 1, sizeof(float));
    x.value = calloc((size_t)x.count + 1, sizeof(float));
    for (int64_t i = 0; i < x.count; i++) {
        store(p->dtype, x.data, i, random_float());
        x.value[i] = stored_value(p->dtype, x.data, i);
    }
    return x;
}

static setup make_setup(const char *text) {
    setup s = {.t = ATTN_FORWARD_TENSORS_INIT};
    attn_problem *p = &s.problem;
    char error[256] = "";
    CHECK_OK(attn_problem_parse(text, p, error, sizeof error), error);
    s.q = make_tensor(p, p->heads_q, p->seq_q, p->head_dim, s.t.q_stride);
    s.k = make_tensor(p, p->heads_kv, p->seq_kv, p->head_dim, s.t.k_stride);
    s.v = make_tensor(p, p->heads_kv, p->seq_kv, p->head_dim_v, s.t.v_stride);
    s.o = make_tensor(p, p->heads_q, p->seq_q, p->head_dim_v, s.t.o_stride);
    s.lse = calloc((size_t)(p->batch * p->heads_q * p->seq_q) + 1, sizeof(float));
    s.t.q = s.q.data;
    s.t.k = s.k.data;
    s.t.v = s.v.data;
    s.t.o = s.o.data;
    s.t.lse = p->features & ATTN_FEATURE_LSE ? s.lse : NULL;
    return s;
}

static void free_setup(setup *s) {
    tensor *all[] = {&s->q, &s->k, &s->v, &s->o};
    for (int i = 0; i < 4; i++) {
        free(all[i]->data);
        free(all[i]->value);
    }
    free(s->lse);
}

static void run(setup *s, attn_backend_device *device) {
    attn_launch launch;
    attn_kernel *kernel;
    attn_error err = ATTN_ERROR_INIT;
    attn_call call = {.problem = &s->problem};
    if (!CHECK_OK(cpu->reference(device, &launch, &kernel, &err), err.line))
        return;
    attn_problem_args(&s->problem, &s->t, &call.args);
    CHECK_EQ_INT(attn_workspace_bytes(&launch, &s->problem, 8), 0);
    attn_workspace_assign(&launch, &s->problem, cpu->workers(device), NULL, &call.args);
    CHECK_OK(cpu->run(kernel, &call, NULL, &err), err.line);
    cpu->unload(kernel);
}

static bool sees(const attn_problem *p, int64_t i, int64_t j) {
    int64_t d = j - (i + p->seq_kv - p->seq_q);
    switch (p->mask) {
    case ATTN_MASK_NONE:
        return true;
    case ATTN_MASK_CAUSAL:
        return d <= 0;
    case ATTN_MASK_CAUSAL_TL:
        return j <= i;
    case ATTN_MASK_WINDOW:
        return (p->window_left < 0 || d >= -p->window_left) &&
               (p->window_right < 0 || d <= p->window_right);
    }
    return false;
}

static int64_t offset(const int64_t stride[3], int64_t b, int64_t h, int64_t row) {
    return b * stride[0] + h * stride[1] + row * stride[2];
}

/* One row by the definition: all logits, then all weights. */
static void check_row(const setup *s, int64_t b, int64_t h, int64_t i, double tolerance) {
    const attn_problem *p = &s->problem;
    const attn_forward_tensors *t = &s->t;
    int64_t hk = h / (p->heads_q / p->heads_kv);
    const float *q = s->q.value + offset(t->q_stride, b, h, i);
    long double *logit = calloc((size_t)p->seq_kv + 1, sizeof *logit), max = -INFINITY, sum = 0;
    float scale = isnan(t->scale) ? 1.0f / sqrtf((float)p->head_dim) : t->scale;
    for (int64_t j = 0; j < p->seq_kv; j++) {
        const float *k = s->k.value + offset(t->k_stride, b, hk, j);
        for (int32_t d = 0; d < p->head_dim; d++)
            logit[j] += (long double)q[d] * k[d];
        logit[j] *= scale;
        if (sees(p, i, j) && logit[j] > max)
            max = logit[j];
    }
    for (int64_t j = 0; j < p->seq_kv; j++)
        sum += sees(p, i, j) ? expl(logit[j] - max) : 0;
    for (int32_t d = 0; d < p->head_dim_v; d++) {
        long double want = 0;
        for (int64_t j = 0; j < p->seq_kv; j++)
            if (sees(p, i, j))
                want += expl(logit[j] - max) / sum * s->v.value[offset(t->v_stride, b, hk, j) + d];
        double got = stored_value(p->dtype, t->o, offset(t->o_stride, b, h, i) + d);
        CHECK_NEAR(got, (double)want, tolerance);
    }
    float lse = s->lse[(b * p->heads_q + h) * p->seq_q + i];
    if (t->lse && max == -INFINITY)
        CHECK(lse == -INFINITY);
    else if (t->lse)
        CHECK_NEAR(lse, (double)(max + logl(sum)), 1e-6 * (1 + fabs((double)max)));
    free(logit);
}

static void check_all(const setup *s) {
    static const double tolerance[] = {[ATTN_F32] = 2e-7, [ATTN_F16] = 5e-4, [ATTN_BF16] = 4e-3};
    const attn_problem *p = &s->problem;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < p->seq_q; i++)
                check_row(s, b, h, i, tolerance[p->dtype]);
    /* The elements behind each row are as they were. */
    for (int64_t at = p->head_dim_v; at < s->o.count; at += p->head_dim_v + 2)
        CHECK(stored_value(p->dtype, s->t.o, at) == s->o.value[at]);
}

static void test_problems(attn_backend_device *device) {
    static const char *const problems[] = {
        "fwd:f32:b1:h1:s1:d1",
        "fwd:f32:b2:h3:s17:d40:causal:lse",
        "fwd:f32:b1:hq6:hkv2:sq5:sk19:d16:dv24:causal:bshd:lse",
        "fwd:f32:b1:hq6:hkv2:sq19:sk5:d16:dv8:causal:lse",
        "fwd:f32:b1:h2:sq19:sk5:d16:causal_tl:lse",
        "fwd:f32:b1:h2:s33:d64:window3,0:lse:bshd",
        "fwd:f32:b1:h2:sq20:sk31:d7:window-1,2:lse:a1",
        "fwd:f32:b1:h1:sq9:sk4:d8:window0,0:lse",
        "fwd:f16:b1:hq4:hkv1:s23:d64:causal:lse",
        "fwd:bf16:b2:h2:s23:d96:bshd",
        "fwd:f16:b1:h1:s6:d1024",
        "fwd:f32:b1:h1:sq3:sk0:d8:lse",
        "fwd:f32:b1:h1:sq0:sk3:d8:lse",
        "fwd:f32:b0:h1:s4:d8:lse",
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        CHECK_CASE("%s", problems[i]);
        setup s = make_setup(problems[i]);
        static const float scales[] = {NAN, 0, -0.7f, 4.0f};
        for (int k = 0; k < 4; k++) {
            s.t.scale = scales[k];
            run(&s, device);
            check_all(&s);
        }
        free_setup(&s);
    }
    CHECK_CASE("%s", "");
}

/* A NaN in a query row reaches that row and no other; one in K or V reaches those who see it. */
static void test_nan(attn_backend_device *device) {
    for (int which = 0; which < 3; which++) {
        setup s = make_setup("fwd:f32:b1:h2:s21:d16:causal:lse");
        int64_t d = which == 1 ? 3 : 0;
        tensor *x = which == 0 ? &s.q : which == 1 ? &s.k : &s.v;
        const int64_t *stride = which == 0   ? s.t.q_stride
                                : which == 1 ? s.t.k_stride
                                             : s.t.v_stride;
        ((float *)x->data)[offset(stride, 0, 1, 11) + d] = NAN;
        run(&s, device);
        for (int64_t h = 0; h < 2; h++)
            for (int64_t i = 0; i < 21; i++) {
                float o = ((float *)s.t.o)[offset(s.t.o_stride, 0, h, i)];
                bool must = h == 1 && (which == 0 ? i == 11 : i >= 11);
                CHECK(isnan(o) == must);
                CHECK(isnan(s.lse[h * 21 + i]) == (must && which != 2));
            }
        free_setup(&s);
    }
}

static void test_same_bits(void) {
    setup s = make_setup("fwd:f32:b2:h3:s37:d24:causal:lse");
    size_t size = (size_t)s.o.count * sizeof(float);
    void *first = malloc(size);
    for (int32_t threads = 1; threads <= 7; threads++) {
        attn_device_options options = {.threads = threads};
        attn_backend_device *device;
        attn_error err = ATTN_ERROR_INIT;
        CHECK_OK(cpu->open(0, &options, &device, &err), err.line);
        run(&s, device);
        if (threads == 1)
            memcpy(first, s.o.data, size);
        CHECK(memcmp(first, s.o.data, size) == 0);
        cpu->close(device);
    }
    free(first);
    free_setup(&s);
}

/* Every half widens to the value its bits say, and narrows back; halfway values go to even. */
static void test_half(void) {
    int wrong = 0;
    for (uint32_t h = 0; h < 0x10000; h++) {
        uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
        double value = exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24);
        value = exponent == 31 ? (fraction ? NAN : INFINITY) : value;
        value = h & 0x8000 ? -value : value;
        float got = attn_float_of_f16((uint16_t)h);
        uint16_t back = attn_f16_of_float(got);
        if (isnan(value)) {
            wrong += !isnan(got) || (back & 0x7fff) <= 0x7c00;
            continue;
        }
        wrong += (double)got != value || back != h;
        if (exponent == 31 || (h & 0x7fff) == 0x7bff)
            continue;
        /* halfway to the next one, and a little to each side */
        float next = attn_float_of_f16((uint16_t)(h + 1)), middle = got + (next - got) / 2;
        wrong += attn_f16_of_float(middle) != (h & 1 ? h + 1 : h);
        wrong += attn_f16_of_float(nextafterf(middle, got)) != h;
        wrong += attn_f16_of_float(nextafterf(middle, next)) != h + 1;
    }
    for (uint32_t h = 0; h < 0x10000; h++) {
        float got = attn_float_of_bf16((uint16_t)h);
        if (isnan(got)) {
            wrong += !isnan(attn_float_of_bf16(attn_bf16_of_float(got)));
            continue;
        }
        wrong += attn_bf16_of_float(got) != h;
        wrong += isfinite(got) &&
                 attn_bf16_of_float(attn_float_of(h << 16 | 0x8000)) != (h & 1 ? h + 1 : h);
        wrong += isfinite(got) && attn_bf16_of_float(attn_float_of(h << 16 | 0x8001)) != h + 1;
    }
    CHECK_EQ_INT(wrong, 0);
    CHECK_EQ_INT(attn_f16_of_float(65519.99f), 0x7bff);
    CHECK_EQ_INT(attn_f16_of_float(65520.0f), 0x7c00);
    CHECK_EQ_INT(attn_bf16_of_float(-3.4e38f), 0xff80);
}

/* A host built with -ffast-math has the CPU flush denormal floats: no half may change by that. */
static void test_half_flushed(void) {
#ifdef __SSE2__
    const unsigned flush = 0x8040, before = _mm_getcsr();
    _mm_setcsr(before | flush);
    test_half();
    _mm_setcsr(before);
#endif
}

/* Rows longer than the part that is widened at once, and one element. */
static void test_rows(void) {
    enum { N = 1000 };
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F16, ATTN_BF16};
    for (int d = 0; d < 3; d++) {
        float from[N], back[N];
        uint16_t narrow[2 * N];
        double wide[N];
        for (int i = 0; i < N; i++)
            from[i] = (float)(i - 500) / 128; /* exact in every dtype up to 2 */
        attn_dtype_from_float(dtypes[d], from, narrow, N);
        attn_dtype_to_float(dtypes[d], narrow, back, N);
        attn_dtype_to_double(dtypes[d], narrow, wide, N);
        for (int i = 0; i < N; i++) {
            if ((double)back[i] != wide[i] || (fabsf(from[i]) <= 2 && back[i] != from[i]))
                CHECK_NEAR(wide[i], (double)from[i], 0);
        }
        attn_dtype_to_double(dtypes[d], narrow, wide, 1);
        CHECK(wide[0] == (double)back[0]);
    }
}

int main(void) {
    attn_backend_device *device;
    attn_error err = ATTN_ERROR_INIT;
    test_half();
    test_half_flushed();
    test_rows();
    if (!CHECK_OK(cpu->open(0, NULL, &device, &err), err.line))
        return check_done();
    test_problems(device);
    test_nan(device);
    cpu->close(device);
    test_same_bits();
    return check_done();
}
