/* test_properties.c: what must hold of attention whatever the numbers, for the library's reference
 * kernel and for the default of each real family that takes f32. */
#include "check.h"
#include "cpu_variants.h"
#include "inputs.h"
#include "verify.h"

static attn_error err = ATTN_ERROR_INIT;
static cpu_host host;

/* One way to compute: the reference kernel, or a family, whose variants are made when needed. */
enum { CLASSES_MAX = 8 };

typedef struct subject {
    const char *family; /* NULL: the reference */
    char class_text[CLASSES_MAX][ATTN_CLASS_TEXT];
    cpu_variant variant[CLASSES_MAX];
    int classes;
} subject;

static cpu_variant *variant_for(subject *s, const attn_problem *p) {
    char text[ATTN_CLASS_TEXT];
    attn_class_print(p, text);
    for (int i = 0; i < s->classes; i++)
        if (strcmp(s->class_text[i], text) == 0)
            return &s->variant[i];
    if (!CHECK(s->classes < CLASSES_MAX))
        exit(check_done());
    cpu_variant *v = &s->variant[s->classes];
    memcpy(s->class_text[s->classes++], text, sizeof text);
    attn_status st = ATTN_OK;
    v->backend = &attn_backend_cpu;
    if (s->family)
        st = cpu_variant_make(&host, s->family, p, "", v, &err);
    else
        st = attn_backend_cpu.reference(host.device, &v->launch, &v->kernel, &err);
    if (!CHECK_OK(st, err.line))
        exit(check_done());
    return v;
}

static void forget(subject *s) {
    for (int i = 0; i < s->classes; i++)
        cpu_variant_free(&s->variant[i]);
    s->classes = 0;
}

/* Contiguous tensors of a problem in layout bhsd, f32; lse only if the problem has it. */
typedef struct tensors {
    attn_problem problem;
    float *q, *k, *v, *o, *lse;
    size_t q_size, k_size, v_size, o_size, rows; /* elements */
    float scale;
} tensors;

/* 64-byte aligned and random. */
static float *numbers(size_t n, uint64_t seed) {
    attn_random random = {seed};
    float *x = aligned_alloc(64, (n * sizeof *x + 64) / 64 * 64);
    CHECK(x != NULL);
    if (!x)
        exit(check_done());
    for (size_t i = 0; i < n; i++)
        x[i] = attn_random_normal(&random);
    return x;
}

static tensors make(const char *text, uint64_t seed) {
    tensors t = {.scale = NAN};
    attn_problem *p = &t.problem;
    if (!CHECK_OK(attn_problem_parse(text, p, err.line, sizeof err.line), err.line))
        exit(check_done());
    t.rows = (size_t)p->batch * (size_t)p->heads_q * (size_t)p->seq_q;
    size_t keys = (size_t)p->batch * (size_t)p->heads_kv * (size_t)p->seq_kv;
    t.q_size = t.rows * (size_t)p->head_dim;
    t.k_size = keys * (size_t)p->head_dim;
    t.v_size = keys * (size_t)p->head_dim_v;
    t.o_size = t.rows * (size_t)p->head_dim_v;
    t.q = numbers(t.q_size, seed);
    t.k = numbers(t.k_size, seed + 1);
    t.v = numbers(t.v_size, seed + 2);
    t.o = numbers(t.o_size, seed + 3);
    t.lse = numbers(t.rows, seed + 4);
    return t;
}

static void discard(tensors *t) {
    free(t->q);
    free(t->k);
    free(t->v);
    free(t->o);
    free(t->lse);
}

static void run(subject *s, tensors *t) {
    cpu_variant *v = variant_for(s, &t->problem);
    attn_forward_tensors f = ATTN_FORWARD_TENSORS_INIT;
    attn_call call = {.problem = &t->problem};
    attn_forward_strides(&t->problem, &f);
    f.scale = t->scale;
    f.q = t->q;
    f.k = t->k;
    f.v = t->v;
    f.o = t->o;
    f.lse = t->lse;
    CHECK_OK(attn_tensors_check(&t->problem, &f, &err), err.line);
    int32_t workers = attn_backend_cpu.workers(host.device);
    size_t bytes = attn_workspace_bytes(&v->launch, &t->problem, workers);
    void *ws = aligned_alloc(256, (bytes + 256) / 256 * 256);
    if (!CHECK(ws != NULL))
        exit(check_done());
    attn_problem_args(&t->problem, &f, &call.args);
    attn_workspace_assign(&v->launch, &t->problem, workers, ws, &call.args);
    CHECK_OK(attn_backend_cpu.run(v->kernel, &call, NULL, &err), err.line);
    free(ws);
}

/* ||a - b|| <= tolerance ||b||, and nothing is NaN. */
static void check_close(const float *a, const float *b, size_t n, double tolerance) {
    double off = 0, whole = 0;
    for (size_t i = 0; i < n; i++) {
        off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        whole += (double)b[i] * (double)b[i];
    }
    CHECK_NEAR(sqrt(off / whole), 0, tolerance);
}

static void copy_rows(float *to, const float *from, size_t n) {
    memcpy(to, from, n * sizeof *to);
}

/*-*** Properties ************************************************/

static const char *const MASKS[] = {"", ":causal", ":window9,3"};

static tensors make_masked(int mask, const char *shape, uint64_t seed) {
    char text[128];
    (void)snprintf(text, sizeof text, "fwd:f32:%s%s:lse", shape, MASKS[mask]);
    CHECK_CASE("%s", text);
    return make(text, seed);
}

/* V = 1 gives O = 1: weights sum to 1. */
static void ones_give_ones(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors t = make_masked(mask, "b2:h3:s77:d32", 1);
        for (size_t i = 0; i < t.v_size; i++)
            t.v[i] = 1.0F;
        run(s, &t);
        for (size_t i = 0; i < t.o_size; i++)
            if (fabs((double)t.o[i] - 1.0) > 2e-6)
                CHECK_NEAR(t.o[i], 1.0, 2e-6);
        CHECK(t.o_size > 0);
        discard(&t);
    }
}

/* K = 0 gives the mean of the values that are seen, and the log of their number. */
static void equal_keys_give_means(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors t = make_masked(mask, "b1:h2:sq50:sk77:d32", 2);
        memset(t.k, 0, t.k_size * sizeof *t.k);
        run(s, &t);
        attn_forward_tensors f = ATTN_FORWARD_TENSORS_INIT;
        attn_forward_args a;
        attn_problem_args(&t.problem, &f, &a);
        for (int64_t row = 0; row < (int64_t)t.rows; row++) {
            int64_t begin, end, head = row / a.seq_q;
            double mean = 0;
            attn_visible_keys(&a, row % a.seq_q, &begin, &end);
            for (int64_t j = begin; j < end; j++)
                mean += (double)t.v[(head * a.seq_kv + j) * a.head_dim_v + 5];
            CHECK_NEAR(t.o[row * a.head_dim_v + 5], mean / (double)(end - begin), 2e-6);
            CHECK_NEAR(t.lse[row], log((double)(end - begin)), 1e-5);
        }
        discard(&t);
    }
}

/* Without a mask the order of the keys does not matter. */
static void permuted_keys(subject *s) {
    tensors a = make_masked(0, "b1:h2:sq40:sk101:d32", 3);
    tensors b = make_masked(0, "b1:h2:sq40:sk101:d32", 3);
    for (size_t head = 0; head < 2; head++)
        for (size_t j = 0; j < 101; j++) {
            size_t other = (j * 37 + 11) % 101; /* 37 and 101 have no common factor */
            copy_rows(b.k + (head * 101 + other) * 32, a.k + (head * 101 + j) * 32, 32);
            copy_rows(b.v + (head * 101 + other) * 32, a.v + (head * 101 + j) * 32, 32);
        }
    run(s, &a);
    run(s, &b);
    check_close(b.o, a.o, a.o_size, 2e-6);
    check_close(b.lse, a.lse, a.rows, 1e-6);
    discard(&a);
    discard(&b);
}

/* Heads that share keys give what heads with copies of them give. */
static void groups_equal_copies(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors a = make_masked(mask, "b2:hq6:hkv2:sq45:sk60:d32", 4);
        tensors b = make_masked(mask, "b2:h6:sq45:sk60:d32", 4);
        size_t head = (size_t)60 * 32;
        for (size_t i = 0; i < 12; i++) {
            copy_rows(b.k + i * head, a.k + i / 3 * head, head);
            copy_rows(b.v + i * head, a.v + i / 3 * head, head);
        }
        run(s, &a);
        run(s, &b);
        check_close(b.o, a.o, a.o_size, 1e-6);
        check_close(b.lse, a.lse, a.rows, 1e-6);
        discard(&a);
        discard(&b);
    }
}

/* The last row of a causal mask sees everything; an unbounded window is no mask, and one bounded
 * on the right by 0 is the causal one. */
static void masks_agree(subject *s) {
    static const char *const same[][2] = {{":window-1,-1", ""}, {":window-1,0", ":causal"}};
    tensors all = make_masked(0, "b1:h2:sq33:sk70:d32", 5);
    tensors causal = make_masked(1, "b1:h2:sq33:sk70:d32", 5);
    run(s, &all);
    run(s, &causal);
    for (size_t head = 0; head < 2; head++) {
        size_t last = head * 33 + 32;
        check_close(causal.o + last * 32, all.o + last * 32, 32, 2e-6);
        CHECK_NEAR(causal.lse[last], all.lse[last], 1e-5);
    }
    for (int i = 0; i < 2; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "fwd:f32:b1:h2:sq33:sk70:d32%s:lse", same[i][0]);
        tensors window = make(text, 5);
        run(s, &window);
        check_close(window.o, (i ? causal : all).o, all.o_size, 2e-6);
        discard(&window);
    }
    discard(&all);
    discard(&causal);
}

/* The same vector added to all keys moves all logits of a row alike: O stays, LSE moves. */
static void shifted_keys(subject *s) {
    tensors a = make_masked(1, "b1:h2:s60:d32", 6), b = make_masked(1, "b1:h2:s60:d32", 6);
    for (size_t i = 0; i < b.k_size; i++)
        b.k[i] += 0.25F * (float)(i % 32 % 5);
    run(s, &a);
    run(s, &b);
    check_close(b.o, a.o, a.o_size, 5e-6);
    for (size_t row = 0; row < a.rows; row++) {
        double shift = 0;
        for (size_t d = 0; d < 32; d++)
            shift += (double)a.q[row * 32 + d] * 0.25 * (double)(d % 5) / sqrt(32.0);
        CHECK_NEAR(b.lse[row] - a.lse[row], shift, 1e-5);
    }
    discard(&a);
    discard(&b);
}

/* Halves of the keys, merged by their log-sum-exp, give the whole. */
static void merged_halves(subject *s) {
    tensors all = make_masked(0, "b1:h1:sq20:sk90:d32", 7);
    tensors half[2] = {make_masked(0, "b1:h1:sq20:sk37:d32", 7),
                       make_masked(0, "b1:h1:sq20:sk53:d32", 7)};
    copy_rows(half[0].k, all.k, half[0].k_size);
    copy_rows(half[0].v, all.v, half[0].v_size);
    copy_rows(half[1].k, all.k + half[0].k_size, half[1].k_size);
    copy_rows(half[1].v, all.v + half[0].v_size, half[1].v_size);
    run(s, &all);
    run(s, &half[0]);
    run(s, &half[1]);
    for (size_t row = 0; row < all.rows; row++) {
        double w = 1 / (1 + exp((double)half[1].lse[row] - (double)half[0].lse[row]));
        for (size_t c = 0; c < 32; c++) {
            double merged =
                w * (double)half[0].o[row * 32 + c] + (1 - w) * (double)half[1].o[row * 32 + c];
            CHECK_NEAR(all.o[row * 32 + c], merged, 2e-6);
        }
    }
    discard(&all);
    discard(&half[0]);
    discard(&half[1]);
}

/* O is linear in V, and twice the query with half the scale is the same. */
static void linear_and_scaled(subject *s) {
    tensors a = make_masked(1, "b1:h2:s60:d32", 8), b = make_masked(1, "b1:h2:s60:d32", 8);
    run(s, &a);
    for (size_t i = 0; i < b.v_size; i++)
        b.v[i] = 4.0F * b.v[i] + 1.0F;
    for (size_t i = 0; i < b.q_size; i++)
        b.q[i] *= 2.0F;
    b.scale = (float)(0.5 / sqrt(32.0));
    run(s, &b);
    for (size_t i = 0; i < a.o_size; i++)
        CHECK_NEAR(b.o[i], 4.0 * (double)a.o[i] + 1.0, 1e-5);
    discard(&a);
    discard(&b);
}

/* Each batch and head is on its own: a part run alone gives the same bits. */
static void parts_alone(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors all = make_masked(mask, "b3:h2:sq45:sk31:d32", 9);
        tensors one = make_masked(mask, "b1:h1:sq45:sk31:d32", 9);
        run(s, &all);
        for (size_t i = 0; i < 6; i++) {
            copy_rows(one.q, all.q + i * one.q_size, one.q_size);
            copy_rows(one.k, all.k + i * one.k_size, one.k_size);
            copy_rows(one.v, all.v + i * one.v_size, one.v_size);
            run(s, &one);
            CHECK(memcmp(one.o, all.o + i * one.o_size, one.o_size * sizeof *one.o) == 0);
            CHECK(memcmp(one.lse, all.lse + i * one.rows, one.rows * sizeof *one.lse) == 0);
        }
        discard(&all);
        discard(&one);
    }
}

/* O is linear in V up to where sums of V would overflow. */
static void large_values(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors a = make_masked(mask, "b1:hq4:hkv2:sq50:sk77:d32", 10);
        tensors b = make_masked(mask, "b1:hq4:hkv2:sq50:sk77:d32", 10);
        for (size_t i = 0; i < b.v_size; i++)
            b.v[i] *= 0x1p126F;
        run(s, &a);
        run(s, &b);
        for (size_t i = 0; i < b.o_size; i++)
            b.o[i] *= 0x1p-126F;
        check_close(b.o, a.o, a.o_size, 2e-6);
        check_close(b.lse, a.lse, a.rows, 2e-6);
        discard(&a);
        discard(&b);
    }
}

/* Under any finite scale each row's key with the largest logit takes it all, if it is far ahead. */
static void large_scales(subject *s) {
    static const float scales[] = {1e30F, 1e38F, -3e38F};
    for (int i = 0; i < 3; i++) {
        tensors t = make_masked(0, "b1:h2:sq40:sk60:d32", 11);
        t.scale = scales[i];
        run(s, &t);
        for (size_t row = 0; row < t.rows; row++) {
            double top = -INFINITY;
            size_t first = row / 40 * 60, best = 0;
            for (size_t key = first; key < first + 60; key++) {
                double dot = 0;
                for (size_t d = 0; d < 32; d++)
                    dot += (double)t.q[row * 32 + d] * (double)t.k[key * 32 + d];
                best = dot * (double)t.scale > top ? key : best;
                top = fmax(top, dot * (double)t.scale);
            }
            check_close(t.o + row * 32, t.v + best * 32, 32, 1e-7);
            CHECK((double)t.lse[row] == (double)(float)top ||
                  fabs((double)t.lse[row] - top) < 1e-6 * fabs(top));
        }
        discard(&t);
    }
}

static void properties(subject *s) {
    ones_give_ones(s);
    equal_keys_give_means(s);
    permuted_keys(s);
    groups_equal_copies(s);
    masks_agree(s);
    shifted_keys(s);
    merged_halves(s);
    linear_and_scaled(s);
    parts_alone(s);
    large_values(s);
    large_scales(s);
    forget(s);
}

/*-*** Which subjects ********************************************/

/* The reference kernel must itself pass the gate, in every dtype and class. */
static void prove_reference(void) {
    static const char *const problems[] = {
        "fwd:f32:b1:h2:s70:d32:causal:lse",
        "fwd:f16:b2:hq6:hkv2:sq20:sk90:d20:dv12:window30,4:lse:a1",
        "fwd:bf16:b1:hq4:hkv2:s60:d64:lse:qkv",
        "fwd:f16:b1:h2:sq90:sk20:d40:causal_tl:bshd",
        "fwd:bf16:b1:h2:sq33:sk70:d17:dv5:causal:lse:a1",
        "fwd:f32:b1:h2:sq1:sk300:d130:dv70",
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        attn_problem p;
        attn_verifier *verifier = NULL;
        attn_kernel *kernel = NULL;
        attn_launch launch;
        attn_verdict verdict = ATTN_VERDICT_INIT;
        CHECK_CASE("reference, %s", problems[i]);
        CHECK_OK(attn_problem_parse(problems[i], &p, err.line, sizeof err.line), err.line);
        CHECK_OK(attn_backend_cpu.reference(host.device, &launch, &kernel, &err), err.line);
        CHECK_OK(attn_verifier_create(&attn_backend_cpu, host.device, &p, 1, ATTN_VERIFIER_SECONDS,
                                      &verifier, &err),
                 err.line);
        CHECK_OK(attn_verifier_check(verifier, kernel, &launch, 2, &verdict, &err), err.line);
        CHECK_STR(verdict.reason, "");
        CHECK(verdict.right);
        attn_verifier_destroy(verifier);
        attn_backend_cpu.unload(kernel);
    }
}

/* The properties are those of f32. */
static bool takes_f32(const char *family) {
    attn_problem p;
    attn_space *space = NULL;
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h1:s1:d32", &p, NULL, 0), "");
    attn_status st = attn_space_open(host.gen, family, &p, &host.info, &space, &err);
    attn_space_close(space);
    return st != ATTN_ERR_NOT_ACCEPTED;
}

int main(void) {
    subject reference = {.family = NULL};
    if (!CHECK_OK(cpu_host_open(NULL, 2, &host, &err), err.line))
        return check_done();
    properties(&reference);
    prove_reference();
    for (size_t i = 0; i < attn_gen_family_count(host.gen); i++) {
        attn_family_info info;
        const char *name = attn_gen_family_name(host.gen, i);
        CHECK_OK(attn_gen_family(host.gen, name, &info, &err), err.line);
        if (strcmp(info.backend, "cpu") != 0 || info.reference || !takes_f32(name))
            continue;
        subject family = {.family = name};
        properties(&family);
    }
    cpu_host_close(&host);
    return check_done();
}
