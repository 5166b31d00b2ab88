/* test_problem.c: the text form, checks, sizes, distances and kernel arguments of problems. */
#include "check.h"

#include "core/problem.h"

static attn_problem parse(const char *text) {
    attn_problem p = {0};
    char error[256] = "";
    CHECK_OK(attn_problem_parse(text, &p, error, sizeof error), error);
    return p;
}

static void test_round_trip(void) {
    static const struct {
        const char *text, *canonical;
    } cases[] = {
        {"fwd:f16:b1:h32:s4096:d128:causal", NULL},
        {"fwd:bf16:b4:hq32:hkv8:sq1:sk8192:d128:bshd", NULL},
        {"fwd:bf16:b2:h16:s8192:d128:window1024,0:lse", NULL},
        {"fwd:tf32:b1:h2:s64:d64", NULL},
        {"fwd:f32:b0:h0:s0:d1:window-1,-1", NULL},
        {"fwd:f32:b1:h4:s16:d64:dv32:causal_tl:lse:qkv:a1", NULL},
        {"fwd:d64:s16:h4:b1:f32", "fwd:f32:b1:h4:s16:d64"},
        {"fwd:f32:b1:hq4:hkv4:sq16:sk16:d64:dv64:none:bhsd:a16", "fwd:f32:b1:h4:s16:d64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_CASE("%s", cases[i].text);
        attn_problem p = parse(cases[i].text);
        char text[ATTN_PROBLEM_TEXT];
        size_t n = attn_problem_print(&p, text, sizeof text);
        CHECK_STR(text, cases[i].canonical ? cases[i].canonical : cases[i].text);
        CHECK_EQ_INT(n, strlen(text));
        attn_problem again = parse(text);
        CHECK(memcmp(&p, &again, sizeof p) == 0);
    }
    check_case[0] = '\0';
}

static void test_faults(void) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "begins with the operation, fwd,"},
        {"bwd:f32:b1:h1:s1:d1", "begins with the operation, fwd,"},
        {"fwd", "lacks a dtype"},
        {"fwd:f32", "lacks the batch"},
        {"fwd:f32:b1:h4:s16", "lacks the head dimension"},
        {"fwd:f32:b1:hq4:s16:d8", "lacks the key heads"},
        {"fwd:f33:b1:h4:s16:d64", "did you mean 'f32'"},
        {"fwd:f32:b1:h4:s16:d64:casual", "did you mean 'causal'"},
        {"fwd:f32:b1:h4:s16:d64:", "empty word"},
        {"fwd:f32::b1:h4:s16:d64", "empty word"},
        {"fwd:f32:b1:h4:hkv2:s16:d64", "write hN, or hqN:hkvN"},
        {"fwd:f32:b1:h4:s16:sk16:d64", "write sN, or sqN:skN"},
        {"fwd:f32:b1:h4:s16:d64:d64", "each word once"},
        {"fwd:f32:b1:h4:s16:d64:causal:window1,0", "each word once"},
        {"fwd:f32:b01:h4:s16:d64", "b01"},
        {"fwd:f32:b-1:h4:s16:d64", "b-1"},
        {"fwd:f32:b1:h4:s16:d64:window1", "is not a window"},
        {"fwd:f32:b1:h4:s16:d64:window-2,0", "is not a window"},
        {"fwd:f32:b1:h4:s16:d0", "head_dim is 0"},
        {"fwd:f32:b1:h4:s999999999:d64", "seq_q is 999999999"},
        {"fwd:f32:b1:h4:s99999999999:d64", "s99999999999"},
        {"fwd:f32:b1:hq4:hkv3:s16:d64", "no multiple of heads_kv"},
        {"fwd:f32:b1:hq4:hkv0:s16:d64", "no multiple of heads_kv"},
        {"fwd:f32:b1:h4:sq1:sk16:d64:qkv", "qkv needs equal lengths"},
        {"fwd:f32:b1:h4:s16:d64:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "xxx"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_problem p = {.batch = 77};
        char error[256] = "";
        CHECK_CASE("%s", cases[i].text);
        CHECK_STATUS(attn_problem_parse(cases[i].text, &p, error, sizeof error), ATTN_ERR_INVALID,
                     error);
        CHECK_HAS(error, cases[i].says);
        CHECK_EQ_INT(p.batch, 77);
        CHECK_STATUS(attn_problem_parse(cases[i].text, &p, NULL, 0), ATTN_ERR_INVALID, "");
    }
    check_case[0] = '\0';
}

/* Seen pairs counted one by one through the arguments that kernels get. */
static double count_pairs(const attn_problem *p) {
    attn_forward_args a;
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_problem_args(p, &t, &a);
    double pairs = 0;
    for (int64_t i = 0; i < a.seq_q; i++)
        for (int64_t j = 0; j < a.seq_kv; j++)
            pairs += j >= i + a.mask_offset - a.mask_left && j <= i + a.mask_offset + a.mask_right;
    return pairs * a.batch * a.heads_q;
}

static void test_pairs(void) {
    static const char *const masks[] = {"none",      "causal",    "causal_tl", "window3,0",
                                        "window0,5", "window7,2", "window-1,0"};
    static const int lengths[] = {0, 1, 2, 7, 16, 33};
    for (size_t m = 0; m < sizeof masks / sizeof masks[0]; m++)
        for (size_t q = 0; q < 6; q++)
            for (size_t k = 0; k < 6; k++) {
                char text[128];
                (void)snprintf(text, sizeof text, "fwd:f32:b2:hq6:hkv3:sq%d:sk%d:d8:%s", lengths[q],
                               lengths[k], masks[m]);
                CHECK_CASE("%s", text);
                attn_problem p = parse(text);
                CHECK_NEAR(attn_problem_pairs(&p), count_pairs(&p), 0);
                CHECK_NEAR(attn_problem_flops(&p), 32 * count_pairs(&p), 0);
            }
    check_case[0] = '\0';
}

static void test_class_and_distance(void) {
    char text[ATTN_CLASS_TEXT];
    attn_problem a = parse("fwd:f32:b1:h4:s1024:d64:causal:lse");
    attn_class_print(&a, text);
    CHECK_STR(text, "fwd:f32:d64:dv64:causal:lse:a16");
    attn_problem b = parse("fwd:f32:b2:h4:sq1024:sk4096:d64:causal:lse:bshd");
    CHECK_NEAR(attn_problem_distance(&a, &b), 2, 1e-12);
    CHECK_NEAR(attn_problem_distance(&a, &a), 0, 0);
    attn_problem other = parse("fwd:f32:b1:h4:s1024:d64:causal");
    CHECK(isinf(attn_problem_distance(&a, &other)));
    attn_problem empty = parse("fwd:f32:b1:h4:s0:d64:causal:lse");
    CHECK(isinf(attn_problem_distance(&a, &empty)));
    CHECK_NEAR(attn_problem_distance(&empty, &empty), 0, 0);
    CHECK(!attn_hash_equal(attn_problem_hash(&a), attn_problem_hash(&b)));
}

static void test_args(void) {
    attn_problem p = parse("fwd:f16:b2:hq6:hkv3:sq5:sk9:d16:dv8:window4,-1:lse");
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_forward_args a;
    float lse;
    t.lse = &lse;
    attn_forward_strides(&p, &t);
    attn_problem_args(&p, &t, &a);
    CHECK_EQ_INT(a.group, 2);
    CHECK_EQ_INT(a.mask_left, 4);
    CHECK_EQ_INT(a.mask_right, ATTN_UNBOUNDED);
    CHECK_EQ_INT(a.mask_offset, 4);
    CHECK_NEAR(a.scale, 0.25, 0);
    CHECK_NEAR(a.scale_log2, 0.25 * 1.4426950408889634, 1e-7);
    CHECK_EQ_INT(a.v_stride[0], 3 * 9 * 8);
    CHECK(a.lse == &lse);
    p.features = 0;
    t.scale = 0;
    attn_problem_args(&p, &t, &a);
    CHECK(a.lse == NULL);
    CHECK_NEAR(a.scale, 0, 0);
}

static void test_tensors(void) {
    _Alignas(16) static float data[4096];
    attn_problem p = parse("fwd:f32:b1:h2:s8:d8");
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_error err = ATTN_ERROR_INIT;
    t.q = t.k = t.v = data;
    t.o = data + 1024;
    attn_forward_strides(&p, &t);
    CHECK_OK(attn_tensors_check(&p, &t, &err), err.line);
    t.k = data + 1;
    CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_ALIGNMENT, err.line);
    CHECK_HAS(err.line, "tensor k");
    p.alignment = ATTN_A1;
    CHECK_OK(attn_tensors_check(&p, &t, &err), err.line);
    t.v = (const char *)data + 1;
    CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_ALIGNMENT, err.line);
    t.v = NULL;
    CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_INVALID, err.line);
    p = parse("fwd:f32:b1:h2:s8:d8");
    t.k = t.v = data;
    t.k_stride[1] = 0;
    t.q_stride[0] = 3; /* of a dimension of size 1: ignored */
    CHECK_OK(attn_tensors_check(&p, &t, &err), err.line);
    t.k_stride[1] = 65;
    CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_ALIGNMENT, err.line);
    t.k_stride[1] = 64;
    t.o_stride[2] = 0;
    CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_INVALID, err.line);
    t.o_stride[2] = 8;
    static const int64_t beyond[] = {INT64_MAX - 15, (int64_t)1 << 61, (int64_t)1 << 58};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) { /* products would overflow */
        t.v_stride[2] = beyond[i];
        CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_INVALID, err.line);
        CHECK_HAS(err.line, "row stride of tensor v");
    }
    t.v_stride[2] = 8;
    t.scale = INFINITY;
    CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_INVALID, err.line);
    t.scale = 0;
    p.features = ATTN_FEATURE_LSE;
    CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_INVALID, err.line);
    t.lse = data + 2048;
    CHECK_OK(attn_tensors_check(&p, &t, &err), err.line);
    for (int i = -1; i <= 1; i += 2) {
        t.size = sizeof t + (size_t)(8 * i);
        CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_INVALID, err.line);
        CHECK_HAS(err.line, "ATTN_FORWARD_TENSORS_INIT");
    }
    CHECK_STATUS(attn_tensors_check(&p, NULL, &err), ATTN_ERR_INVALID, err.line);
}

/* Rows of o with strides of batch, head and row, of a problem with 2 of them, 3 heads, 4 rows of 8
 * elements. */
static void test_own_overlaps(void) {
    static const struct {
        int64_t stride[3];
        bool apart;
    } rows[] = {
        {{96, 32, 8}, true},    {{96, 8, 24}, true},  {{8, 64, 16}, true},  {{8, 16, 48}, true},
        {{32, 64, 8}, true},    {{24, 8, 48}, true},  {{200, 40, 9}, true}, {{1000, 10, 300}, true},
        {{4000, 17, 60}, true}, {{96, 32, 7}, false}, {{96, 31, 8}, false}, {{95, 32, 8}, false},
        {{96, 8, 23}, false},   {{95, 8, 24}, false}, {{96, 8, 8}, false},  {{8, 8, 48}, false},
        {{7, 64, 16}, false},   {{8, 63, 16}, false}, {{96, 16, 8}, false}, {{1, 1, 1}, false},
    };
    static float data[20000];
    attn_problem p = parse("fwd:f32:b2:h3:s4:d8:a1");
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_error err = ATTN_ERROR_INIT;
    attn_forward_strides(&p, &t);
    t.q = t.k = t.v = data;
    t.o = data + 1000;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int d = 0; d < 3; d++)
            t.o_stride[d] = rows[i].stride[d];
        attn_status status = attn_tensors_check(&p, &t, &err);
        CHECK_STATUS(status, rows[i].apart ? ATTN_OK : ATTN_ERR_INVALID, "");
        if (!rows[i].apart)
            CHECK_HAS(err.line, "tensor o let its rows overlap");
    }
    p = parse("fwd:f32:b16777216:h1048576:s268435456:d8:lse:a1"); /* more rows than 64 bits count */
    t.o_stride[0] = t.o_stride[1] = t.o_stride[2] = 8;
    t.lse = data + 5000;
    CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_INVALID, err.line);
}

/* One buffer, q, k, v, o or lse, and what of it is moved where. */
static void test_overlaps(void) {
    _Alignas(16) static float data[4096];
    enum { O = 1024, LSE = 2048, WS = 3072, END = 4096 };
    static const struct {
        int q, k, o, lse, ws; /* where they begin */
        const char *fault;
    } rows[] = {
        {0, 512, O, LSE, WS, NULL},
        {0, 0, O, LSE, WS, NULL},
        {0, 512, 0, LSE, WS, "tensors o and q"},
        {0, 512, 120, LSE, WS, "tensors o and q"},
        {0, 512, 400, LSE, WS, "tensors o and k"},
        {0, 512, 128, LSE, WS, NULL}, /* 128 elements each */
        {0, 512, 384, LSE, WS, NULL},
        {0, 512, O, O, WS, "tensors o and lse"},
        {0, 512, O, O + 127, WS, "tensors o and lse"},
        {0, 512, O, O + 128, WS, NULL},
        {0, 512, O, 500, WS, "tensors lse and k"},
        {0, 512, O, 496, WS, NULL}, /* 16 elements */
        {0, 512, O, LSE, O, "workspace and tensor o"},
        {0, 512, O, LSE, LSE - 1, "workspace and tensor lse"},
        {0, 512, O, LSE, 512 - 63, "workspace and tensor k"},
        {0, 512, O, LSE, 512 - 64, NULL}, /* 64 elements */
    };
    attn_problem p = parse("fwd:f32:b1:h2:s8:d8:lse");
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_error err = ATTN_ERROR_INIT;
    attn_forward_strides(&p, &t);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        t.q = data + rows[i].q;
        t.k = t.v = data + rows[i].k;
        t.o = data + rows[i].o;
        t.lse = data + rows[i].lse;
        attn_status status = attn_tensors_check(&p, &t, &err);
        if (status == ATTN_OK)
            status = attn_workspace_check(&p, &t, data + rows[i].ws, 64 * sizeof *data, &err);
        CHECK_STATUS(status, rows[i].fault ? ATTN_ERR_INVALID : ATTN_OK, "");
        if (rows[i].fault)
            CHECK_HAS(err.line, rows[i].fault);
    }
    p = parse("fwd:f32:b1:h2:s8:d8:qkv"); /* o as a fourth slice of the rows of q, k and v */
    t.q = data;
    t.k = data + 16;
    t.v = data + 32;
    t.o = data + 48;
    for (int i = 0; i < 3; i++)
        t.q_stride[i] = t.k_stride[i] = t.v_stride[i] = t.o_stride[i] = (int64_t[]){512, 8, 64}[i];
    CHECK_OK(attn_tensors_check(&p, &t, &err), err.line);
    t.o = data + 16;
    CHECK_STATUS(attn_tensors_check(&p, &t, &err), ATTN_ERR_INVALID, err.line);
}

/* NULL, and numbers that stand for nothing. */
static void test_nonsense(void) {
    char text[ATTN_PROBLEM_TEXT];
    attn_problem p = parse("fwd:f32:b1:h2:s8:d8");
    CHECK_STATUS(attn_problem_check(NULL, text, sizeof text), ATTN_ERR_INVALID, "");
    CHECK_HAS(text, "NULL");
    CHECK_STATUS(attn_problem_parse(NULL, &p, text, sizeof text), ATTN_ERR_INVALID, "");
    CHECK_STATUS(attn_problem_parse("fwd", NULL, NULL, 0), ATTN_ERR_INVALID, "");
    p.dtype = (attn_dtype)77;
    p.mask = (attn_mask)-1;
    p.layout = (attn_layout)3;
    attn_problem_print(&p, text, sizeof text);
    CHECK_STR(text, "fwd:?:b1:h2:s8:d8:?:?");
}

int main(void) {
    test_round_trip();
    test_faults();
    test_pairs();
    test_class_and_distance();
    test_args();
    test_tensors();
    test_own_overlaps();
    test_overlaps();
    test_nonsense();
    return check_done();
}
