/* test_properties.c: what must hold of attention whatever the numbers, for the library's reference
 * kernel and for the default of each real family that takes f32. */
#include "check.h"
#include "cpu_subject.h"
#include "verify.h"

static attn_error err = ATTN_ERROR_INIT;
static cpu_host host;

static void copy_rows(float *to, const float *from, size_t n) {
    memcpy(to, from, n * sizeof *to);
}

/*-*** Properties ************************************************/

/* V = 1 gives O = 1: weights sum to 1. */
static void ones_give_ones(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors t = tensors_masked(mask, "b2:h3:s77:d32", 1);
        for (size_t i = 0; i < t.v_size; i++)
            t.v[i] = 1.0F;
        subject_run(s, &t);
        for (size_t i = 0; i < t.o_size; i++)
            if (fabs((double)t.o[i] - 1.0) > 2e-6)
                CHECK_NEAR(t.o[i], 1.0, 2e-6);
        CHECK(t.o_size > 0);
        tensors_free(&t);
    }
}

/* K = 0 gives the mean of the values that are seen, and the log of their number. */
static void equal_keys_give_means(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors t = tensors_masked(mask, "b1:h2:sq50:sk77:d32", 2);
        memset(t.k, 0, t.k_size * sizeof *t.k);
        subject_run(s, &t);
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
        tensors_free(&t);
    }
}

/* Without a mask the order of the keys does not matter. */
static void permuted_keys(subject *s) {
    tensors a = tensors_masked(0, "b1:h2:sq40:sk101:d32", 3);
    tensors b = tensors_masked(0, "b1:h2:sq40:sk101:d32", 3);
    for (size_t head = 0; head < 2; head++)
        for (size_t j = 0; j < 101; j++) {
            size_t other = (j * 37 + 11) % 101; /* 37 and 101 have no common factor */
            copy_rows(b.k + (head * 101 + other) * 32, a.k + (head * 101 + j) * 32, 32);
            copy_rows(b.v + (head * 101 + other) * 32, a.v + (head * 101 + j) * 32, 32);
        }
    subject_run(s, &a);
    subject_run(s, &b);
    check_close(b.o, a.o, a.o_size, 2e-6);
    check_close(b.lse, a.lse, a.rows, 1e-6);
    tensors_free(&a);
    tensors_free(&b);
}

/* Heads that share keys give what heads with copies of them give. */
static void groups_equal_copies(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors a = tensors_masked(mask, "b2:hq6:hkv2:sq45:sk60:d32", 4);
        tensors b = tensors_masked(mask, "b2:h6:sq45:sk60:d32", 4);
        size_t head = (size_t)60 * 32;
        for (size_t i = 0; i < 12; i++) {
            copy_rows(b.k + i * head, a.k + i / 3 * head, head);
            copy_rows(b.v + i * head, a.v + i / 3 * head, head);
        }
        subject_run(s, &a);
        subject_run(s, &b);
        check_close(b.o, a.o, a.o_size, 1e-6);
        check_close(b.lse, a.lse, a.rows, 1e-6);
        tensors_free(&a);
        tensors_free(&b);
    }
}

/* The last row of a causal mask sees everything; an unbounded window is no mask, and one bounded
 * on the right by 0 is the causal one. */
static void masks_agree(subject *s) {
    static const char *const same[][2] = {{":window-1,-1", ""}, {":window-1,0", ":causal"}};
    tensors all = tensors_masked(0, "b1:h2:sq33:sk70:d32", 5);
    tensors causal = tensors_masked(1, "b1:h2:sq33:sk70:d32", 5);
    subject_run(s, &all);
    subject_run(s, &causal);
    for (size_t head = 0; head < 2; head++) {
        size_t last = head * 33 + 32;
        check_close(causal.o + last * 32, all.o + last * 32, 32, 2e-6);
        CHECK_NEAR(causal.lse[last], all.lse[last], 1e-5);
    }
    for (int i = 0; i < 2; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "fwd:f32:b1:h2:sq33:sk70:d32%s:lse", same[i][0]);
        tensors window = tensors_make(text, 5);
        subject_run(s, &window);
        check_close(window.o, (i ? causal : all).o, all.o_size, 2e-6);
        tensors_free(&window);
    }
    tensors_free(&all);
    tensors_free(&causal);
}

/* The same vector added to all keys moves all logits of a row alike: O stays, LSE moves. */
static void shifted_keys(subject *s) {
    tensors a = tensors_masked(1, "b1:h2:s60:d32", 6), b = tensors_masked(1, "b1:h2:s60:d32", 6);
    for (size_t i = 0; i < b.k_size; i++)
        b.k[i] += 0.25F * (float)(i % 32 % 5);
    subject_run(s, &a);
    subject_run(s, &b);
    check_close(b.o, a.o, a.o_size, 5e-6);
    for (size_t row = 0; row < a.rows; row++) {
        double shift = 0;
        for (size_t d = 0; d < 32; d++)
            shift += (double)a.q[row * 32 + d] * 0.25 * (double)(d % 5) / sqrt(32.0);
        CHECK_NEAR(b.lse[row] - a.lse[row], shift, 1e-5);
    }
    tensors_free(&a);
    tensors_free(&b);
}

/* Halves of the keys, merged by their log-sum-exp, give the whole. */
static void merged_halves(subject *s) {
    tensors all = tensors_masked(0, "b1:h1:sq20:sk90:d32", 7);
    tensors half[2] = {tensors_masked(0, "b1:h1:sq20:sk37:d32", 7),
                       tensors_masked(0, "b1:h1:sq20:sk53:d32", 7)};
    copy_rows(half[0].k, all.k, half[0].k_size);
    copy_rows(half[0].v, all.v, half[0].v_size);
    copy_rows(half[1].k, all.k + half[0].k_size, half[1].k_size);
    copy_rows(half[1].v, all.v + half[0].v_size, half[1].v_size);
    subject_run(s, &all);
    subject_run(s, &half[0]);
    subject_run(s, &half[1]);
    for (size_t row = 0; row < all.rows; row++) {
        double w = 1 / (1 + exp((double)half[1].lse[row] - (double)half[0].lse[row]));
        for (size_t c = 0; c < 32; c++) {
            double merged =
                w * (double)half[0].o[row * 32 + c] + (1 - w) * (double)half[1].o[row * 32 + c];
            CHECK_NEAR(all.o[row * 32 + c], merged, 2e-6);
        }
    }
    tensors_free(&all);
    tensors_free(&half[0]);
    tensors_free(&half[1]);
}

/* O is linear in V, and twice the query with half the scale is the same. */
static void linear_and_scaled(subject *s) {
    tensors a = tensors_masked(1, "b1:h2:s60:d32", 8), b = tensors_masked(1, "b1:h2:s60:d32", 8);
    subject_run(s, &a);
    for (size_t i = 0; i < b.v_size; i++)
        b.v[i] = 4.0F * b.v[i] + 1.0F;
    for (size_t i = 0; i < b.q_size; i++)
        b.q[i] *= 2.0F;
    b.scale = (float)(0.5 / sqrt(32.0));
    subject_run(s, &b);
    for (size_t i = 0; i < a.o_size; i++)
        CHECK_NEAR(b.o[i], 4.0 * (double)a.o[i] + 1.0, 1e-5);
    tensors_free(&a);
    tensors_free(&b);
}

/* Each batch and head is on its own: a part run alone gives the same bits. */
static void parts_alone(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors all = tensors_masked(mask, "b3:h2:sq45:sk31:d32", 9);
        tensors one = tensors_masked(mask, "b1:h1:sq45:sk31:d32", 9);
        subject_run(s, &all);
        for (size_t i = 0; i < 6; i++) {
            copy_rows(one.q, all.q + i * one.q_size, one.q_size);
            copy_rows(one.k, all.k + i * one.k_size, one.k_size);
            copy_rows(one.v, all.v + i * one.v_size, one.v_size);
            subject_run(s, &one);
            CHECK(memcmp(one.o, all.o + i * one.o_size, one.o_size * sizeof *one.o) == 0);
            CHECK(memcmp(one.lse, all.lse + i * one.rows, one.rows * sizeof *one.lse) == 0);
        }
        tensors_free(&all);
        tensors_free(&one);
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
    subject_free(s);
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

int main(void) {
    subject reference = {.host = &host};
    if (!CHECK_OK(cpu_host_open(NULL, 2, &host, &err), err.line))
        return check_done();
    properties(&reference);
    prove_reference();
    for (size_t i = 0; i < attn_gen_family_count(host.gen); i++) {
        attn_family_info info;
        const char *name = attn_gen_family_name(host.gen, i);
        CHECK_OK(attn_gen_family(host.gen, name, &info, &err), err.line);
        if (strcmp(info.backend, "cpu") != 0 || info.reference ||
            !subject_takes(&host, name, "f32"))
            continue;
        subject family = {.host = &host, .family = name};
        properties(&family);
    }
    cpu_host_close(&host);
    return check_done();
}
