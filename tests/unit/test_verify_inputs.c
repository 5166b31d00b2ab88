/* test_verify_inputs.c: inputs are what their kind says, poisoned around, and reproducible. */
#include "check.h"
#include "core/dtype.h"
#include "core/half.h"
#include "function_backend.h"
#include "hostile.h"
#include "inputs.h"
#include "reference.h"

static attn_error err = ATTN_ERROR_INIT;

static attn_problem problem_of(const char *text) {
    attn_problem problem;
    char line[256];
    if (!CHECK_OK(attn_problem_parse(text, &problem, line, sizeof line), line))
        exit(check_done());
    return problem;
}

static void test_dtypes(void) {
    CHECK_CASE("dtypes");
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float f16 = attn_float_of_f16((uint16_t)bits), bf16 = attn_float_of_bf16((uint16_t)bits);
        if (isnan(f16))
            CHECK(isnan(attn_float_of_f16(attn_f16_of_float(f16))));
        else if (attn_f16_of_float(f16) != bits)
            CHECK_EQ_INT(attn_f16_of_float(f16), bits);
        if (isnan(bf16))
            CHECK(isnan(attn_float_of_bf16(attn_bf16_of_float(bf16))));
        else if (attn_bf16_of_float(bf16) != bits)
            CHECK_EQ_INT(attn_bf16_of_float(bf16), bits);
    }
    static const struct {
        float value;
        uint16_t f16, bf16;
    } rows[] = {
        {0.0F, 0, 0},
        {1.0F, 0x3c00, 0x3f80},
        {-2.0F, 0xc000, 0xc000},
        {65504.0F, 0x7bff, 0x4780},
        {65519.9F, 0x7bff, 0x4780},
        {65520.0F, 0x7c00, 0x4780},
        {1e30F, 0x7c00, 0x714a},
        {0x1p-24F, 1, 0x3380},
        {0x1p-25F, 0, 0x3300},          /* half of the smallest: to even */
        {0x1.8p-24F, 2, 0x33c0},        /* to even, upwards */
        {0x1.004p0F, 0x3c01, 0x3f80},   /* one unit */
        {0x1.002p0F, 0x3c00, 0x3f80},   /* half a unit: to even */
        {0x1.006p0F, 0x3c02, 0x3f80},   /* one and a half: to even */
        {0x1.01p0F, 0x3c04, 0x3f80},    /* bf16: half a unit */
        {0x1.03p0F, 0x3c0c, 0x3f82},    /* bf16: one and a half */
        {0x1.ffcp-15F, 0x0400, 0x3880}, /* the largest denormal's upper neighbour */
        {-INFINITY, 0xfc00, 0xff80},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_CASE("%a", (double)rows[i].value);
        CHECK_EQ_INT(attn_f16_of_float(rows[i].value), rows[i].f16);
        CHECK_EQ_INT(attn_bf16_of_float(rows[i].value), rows[i].bf16);
    }
}

static void test_tf32_rounding(void) {
    static const float rows[][2] = {
        {1.0F, 1.0F},
        {0x1.002p0F, 0x1p0F},      /* half a unit: to even */
        {0x1.0021p0F, 0x1.004p0F}, /* a little more */
        {-0x1.006p0F, -0x1.008p0F},
        {0x1.fffp0F, 0x2p0F},
        {0x1.fffffep127F, INFINITY},
        {INFINITY, INFINITY},
        {1e-42F, 0.0F},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float rounded;
        CHECK_CASE("%a", (double)rows[i][0]);
        attn_dtype_from_float(ATTN_TF32, rows[i], &rounded, 1);
        CHECK(rounded == rows[i][1]);
    }
}

/* Standard deviation of the logits, and the mean of each row's largest weight. */
static void measure(const char *text, attn_input_kind kind, double *deviation, double *peak) {
    attn_problem p = problem_of(text);
    attn_input_spec spec = {kind, ATTN_STRIDES_LAYOUT, NAN, 5};
    attn_inputs in;
    attn_forward_args a;
    double square = 0, top = 0;
    CHECK_OK(attn_inputs_make(&p, &spec, &in, &err), err.line);
    attn_problem_args(&p, &in.host, &a);
    float *q = calloc((size_t)p.head_dim, sizeof *q), *k = calloc((size_t)p.head_dim, sizeof *k);
    double *logit = calloc((size_t)p.seq_kv, sizeof *logit);
    size_t element = attn_dtype_size(p.dtype), dim = (size_t)p.head_dim;
    for (int64_t i = 0; q && k && logit && i < p.seq_q; i++) {
        double max = -INFINITY, sum = 0;
        attn_dtype_to_float(p.dtype, (const char *)a.q + (size_t)(i * a.q_stride[2]) * element, q,
                            dim);
        for (int64_t j = 0; j < p.seq_kv; j++) {
            attn_dtype_to_float(p.dtype, (const char *)a.k + (size_t)(j * a.k_stride[2]) * element,
                                k, dim);
            logit[j] = 0;
            for (size_t d = 0; d < dim; d++)
                logit[j] += (double)q[d] * (double)k[d] * (double)a.scale;
            square += logit[j] * logit[j];
            max = fmax(max, logit[j]);
        }
        for (int64_t j = 0; j < p.seq_kv; j++)
            sum += exp(logit[j] - max);
        top += 1 / sum;
    }
    free(q);
    free(k);
    free(logit);
    *deviation = sqrt(square / p.seq_q / p.seq_kv);
    *peak = top / p.seq_q;
    attn_inputs_free(&in);
}

static void test_kinds(void) {
    static const char *const problems[] = {"fwd:f32:b1:h1:s300:d64", "fwd:bf16:b1:h1:s300:d128",
                                           "fwd:f16:b1:h1:s200:d32"};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        double deviation, peak;
        CHECK_CASE("%s", problems[i]);
        measure(problems[i], ATTN_INPUT_STD1, &deviation, &peak);
        CHECK_NEAR(deviation, 1.0, 0.05);
        measure(problems[i], ATTN_INPUT_STD8, &deviation, &peak);
        CHECK_NEAR(deviation, 8.0, 0.4);
        measure(problems[i], ATTN_INPUT_PEAKED, &deviation, &peak);
        CHECK(peak > 0.9);
    }
}

/* Counts the elements that are no poison: they must be the tensor's, each written once. */
static int64_t written(const attn_image *image, attn_dtype dtype) {
    size_t element = attn_dtype_size(dtype);
    int64_t count = 0;
    for (size_t at = 0; at < image->size; at += element)
        count += !attn_poison_has_input(dtype, image->host + at, 1);
    return count;
}

static void test_poison(void) {
    static const char *const problems[] = {"fwd:f32:b2:hq4:hkv2:sq7:sk9:d20:dv12",
                                           "fwd:f16:b2:hq4:hkv2:s7:d24:qkv:lse",
                                           "fwd:bf16:b1:h3:sq5:sk6:d5:dv3:bshd:a1"};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        for (int s = ATTN_STRIDES_LAYOUT; s <= ATTN_STRIDES_ROW_MAJOR; s++) {
            attn_problem p = problem_of(problems[i]);
            attn_input_spec spec = {ATTN_INPUT_STD1, (attn_strides)s, NAN, 5};
            attn_inputs in, again;
            CHECK_CASE("%s, %s", problems[i], attn_strides_name((attn_strides)s));
            CHECK_OK(attn_inputs_make(&p, &spec, &in, &err), err.line);
            CHECK_OK(attn_inputs_make(&p, &spec, &again, &err), err.line);
            int64_t q = (int64_t)p.batch * p.heads_q * p.seq_q * p.head_dim;
            int64_t kv = (int64_t)p.batch * p.heads_kv * p.seq_kv * (p.head_dim + p.head_dim_v);
            int64_t count = 0;
            for (int image = ATTN_IMAGE_Q; image <= ATTN_IMAGE_V; image++)
                count += written(&in.image[image], p.dtype);
            CHECK_EQ_INT(count, q + kv);
            for (int image = 0; image < ATTN_IMAGES; image++)
                if (CHECK_EQ_INT(in.image[image].size, again.image[image].size))
                    CHECK(in.image[image].size == 0 ||
                          memcmp(in.image[image].host, again.image[image].host,
                                 in.image[image].size) == 0);
            CHECK(attn_poison_is_output(p.dtype, in.image[ATTN_IMAGE_O].host,
                                        in.image[ATTN_IMAGE_O].size / attn_dtype_size(p.dtype)));
            CHECK_OK(attn_tensors_check(&p, &in.host, &err), err.line);
            CHECK_OK(attn_inputs_upload(&in, &attn_function_backend, NULL, &err), err.line);
            CHECK_OK(attn_tensors_check(&p, &in.device, &err), err.line);
            attn_inputs_free(&in);
            attn_inputs_free(&again);
        }
    }
}

static void list_hostile(const char *problem_text, const char *limits, attn_hostile *list,
                         size_t *count) {
    attn_problem p = problem_of(problem_text);
    attn_launch launch;
    char text[512];
    (void)snprintf(text, sizeof text,
                   "step symbol=x rows=96 grid=tiles\nsplits 1\nzero_bytes 0\n%s", limits);
    if (!CHECK_OK(attn_launch_parse(text, &launch, &err), err.line))
        exit(check_done());
    *count = attn_hostile_list(&p, &launch, list);
    for (size_t i = 0; i < *count; i++) {
        char line[256] = "";
        CHECK(attn_limits_broken(&launch, &list[i].problem) == NULL);
        CHECK_OK(attn_problem_check(&list[i].problem, line, sizeof line), line);
        CHECK_NEAR(attn_problem_distance(&p, &list[i].problem) >= 0, 1, 0);
        CHECK_EQ_INT(list[i].problem.head_dim, p.head_dim);
    }
}

static void test_hostile(void) {
    attn_hostile list[ATTN_HOSTILE_MAX];
    size_t count;
    bool off = false, empty = false, nothing = false;
    CHECK_CASE("hostile");
    list_hostile("fwd:f32:b1:h4:s512:d64:causal", "", list, &count);
    CHECK(count >= 36);
    for (size_t i = 0; i < count; i++) {
        off = off || list[i].problem.seq_q == 97;
        empty = empty || list[i].problem.seq_q > list[i].problem.seq_kv;
        nothing = nothing || list[i].problem.batch == 0;
    }
    CHECK(off && empty && nothing);
    CHECK_CASE("hostile, seq_kv");
    list_hostile("fwd:f32:b1:h4:s512:d64",
                 "limit field=seq_kv min=64 max=1024 multiple_of=64\n"
                 "limit field=group min=1 max=1 multiple_of=1\n",
                 list, &count);
    CHECK(count >= 30);
    CHECK_CASE("hostile, few rows");
    list_hostile("fwd:f32:b1:h4:sq1:sk512:d64:causal",
                 "limit field=rows min=0 max=8 multiple_of=1\n", list, &count);
    CHECK(count >= 36);
    CHECK_CASE("hostile, one length");
    list_hostile("fwd:f32:b1:h4:sq1:sk512:d64:window-1,0",
                 "limit field=seq_q min=1 max=1 multiple_of=1\n"
                 "limit field=window_left min=-1 max=-1 multiple_of=1\n",
                 list, &count);
    CHECK(count >= 25);
}

/* More than 64 bits count. */
static void test_too_large(void) {
    attn_problem p;
    attn_inputs in;
    const attn_input_spec spec = {.scale = 1};
    CHECK_OK(
        attn_problem_parse("fwd:f32:b16777216:h1:s268435456:d1024", &p, err.line, sizeof err.line),
        err.line);
    CHECK_STATUS(attn_inputs_make(&p, &spec, &in, &err), ATTN_ERR_NOMEM, err.line);
    attn_inputs_free(&in);
}

int main(void) {
    test_too_large();
    test_dtypes();
    test_tf32_rounding();
    test_kinds();
    test_poison();
    test_hostile();
    return check_done();
}
