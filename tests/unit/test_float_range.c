/* test_float_range.c: numbers near the ends of a float's range, and NaN, give what attention in
 * exact arithmetic does, for the library's reference kernel and for the default of each real
 * family. */
#include "check.h"
#include "core/half.h"
#include "cpu_subject.h"

/* O is linear in V up to where sums of V would overflow. */
static void large_values(subject *s) {
    for (int mask = 0; mask < 3; mask++) {
        tensors a = tensors_masked(mask, "b1:hq4:hkv2:sq50:sk77:d32", 10);
        tensors b = tensors_masked(mask, "b1:hq4:hkv2:sq50:sk77:d32", 10);
        for (size_t i = 0; i < b.v_size; i++)
            b.v[i] *= 0x1p126F;
        subject_run(s, &a);
        subject_run(s, &b);
        for (size_t i = 0; i < b.o_size; i++)
            b.o[i] *= 0x1p-126F;
        check_close(b.o, a.o, a.o_size, 2e-6);
        check_close(b.lse, a.lse, a.rows, 2e-6);
        tensors_free(&a);
        tensors_free(&b);
    }
}

/* Under any finite scale each row's key with the largest logit takes it all, if it is far ahead. */
static void large_scales(subject *s) {
    static const float scales[] = {1e30F, 1e38F, -3e38F};
    for (int i = 0; i < 3; i++) {
        tensors t = tensors_masked(0, "b1:h2:sq40:sk60:d32", 11);
        t.scale = scales[i];
        subject_run(s, &t);
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
        tensors_free(&t);
    }
}

/* Of one row without a mask, in double. */
static void want_row(const tensors *t, size_t row, double *o, double *lse) {
    const attn_problem *p = &t->problem;
    size_t keys = (size_t)p->seq_kv, d = (size_t)p->head_dim, dv = (size_t)p->head_dim_v;
    size_t first = row / (size_t)p->seq_q * keys;
    double logits[64], top = -INFINITY, sum = 0;
    for (size_t j = 0; j < keys; j++) {
        double dot = 0;
        for (size_t c = 0; c < d; c++)
            dot += (double)t->q[row * d + c] * (double)t->k[(first + j) * d + c];
        logits[j] = dot * (double)t->scale;
        top = fmax(top, logits[j]);
    }
    memset(o, 0, dv * sizeof *o);
    for (size_t j = 0; j < keys; j++) {
        double w = exp(logits[j] - top);
        sum += w;
        for (size_t c = 0; c < dv; c++)
            o[c] += w * (double)t->v[(first + j) * dv + c];
    }
    for (size_t c = 0; c < dv; c++)
        o[c] /= sum;
    *lse = top + log(sum);
}

/* Heads that share nothing, 32 columns, at most 64 keys, no mask. */
static void check_rows(const tensors *t, const tensors *want, double tolerance) {
    for (size_t row = 0; row < t->rows; row++) {
        double o[32], lse;
        float rounded[32];
        want_row(want, row, o, &lse);
        for (size_t c = 0; c < 32; c++)
            rounded[c] = (float)o[c];
        check_close(t->o + row * 32, rounded, 32, tolerance);
        CHECK_NEAR(t->lse[row], lse, tolerance * (1 + fabs(lse)));
    }
}

/* A scaled query, or a scale, is beyond a float's range where logits are not. */
static void huge_scaled_queries(subject *s) {
    static const struct {
        float scale, q, k;
    } cases[] = {{1e29F, 1e10F, 1e-38F}, {-1e25F, 1e17F, 1e-30F}, {3e38F, 2e-38F, 0.02F}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tensors t = tensors_masked(0, "b1:h2:sq40:sk60:d32", 12);
        CHECK_CASE("scale %g", (double)cases[i].scale);
        t.scale = cases[i].scale;
        for (size_t j = 0; j < t.q_size; j++)
            t.q[j] = cases[i].q;
        for (size_t j = 0; j < t.k_size; j++)
            t.k[j] = cases[i].k * (float)(j / 32 % 60 + 1) / 60.0F;
        subject_run(s, &t);
        check_rows(&t, &t, 2e-4); /* logits of 320, as floats */
        tensors_free(&t);
    }
}

/* To bf16 where it lies, and back. */
static void pack(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half = attn_bf16_of_float(x[i]);
        memcpy((uint16_t *)x + i, &half, sizeof half);
    }
}

static void unpack(float *x, size_t n) {
    for (size_t i = n; i-- > 0;) {
        uint16_t half;
        memcpy(&half, (uint16_t *)x + i, sizeof half);
        x[i] = attn_float_of_bf16(half);
    }
}

/* With this scale the largest logit is 3e38, which times log2(e) is none of a float. */
static float largest_scale(const tensors *t) {
    const size_t d = (size_t)t->problem.head_dim, keys = (size_t)t->problem.seq_kv;
    double top = 0;
    for (size_t row = 0; row < t->rows; row++)
        for (size_t j = 0; j < keys; j++) {
            double dot = 0;
            for (size_t c = 0; c < d; c++)
                dot += (double)t->q[row * d + c] *
                       (double)t->k[(row / (size_t)t->problem.seq_q * keys + j) * d + c];
            top = fmax(top, dot);
        }
    return (float)(3e38 / top);
}

/* Tiny scales make small logits of large products; 0 makes all weights equal. */
static void odd_scales(subject *s, const char *dtype) {
    static const struct {
        float size, scale;
    } cases[] = {{1e15F, 0}, {1e18F, 0}, {1e15F, -1e-31F}, {7e18F, 2e-38F}, {1e15F, NAN}};
    bool narrow = strcmp(dtype, "bf16") == 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "fwd:%s:b1:h2:sq40:sk60:d32:lse", dtype);
        CHECK_CASE("%s, scale %g", text, (double)cases[i].scale);
        tensors t = tensors_make(text, 13), want = tensors_make(text, 13);
        t.scale = want.scale = cases[i].scale;
        float *of[][2] = {{t.q, want.q}, {t.k, want.k}, {t.v, want.v}};
        size_t sizes[] = {t.q_size, t.k_size, t.v_size};
        for (size_t x = 0; x < 3; x++) {
            for (size_t j = 0; x < 2 && j < sizes[x]; j++)
                of[x][0][j] *= cases[i].size;
            if (narrow)
                pack(of[x][0], sizes[x]);
            memcpy(of[x][1], of[x][0], sizes[x] * sizeof(float));
            if (narrow)
                unpack(of[x][1], sizes[x]);
        }
        if (isnan(cases[i].scale))
            t.scale = want.scale = largest_scale(&want);
        subject_run(s, &t);
        if (narrow)
            unpack(t.o, t.o_size);
        check_rows(&t, &want, narrow ? 1e-2 : 1e-5);
        tensors_free(&t);
        tensors_free(&want);
    }
}

/* A NaN in V. Among small numbers it stays in its column, where a masked weight of 0 may bring it
 * to rows that do not see it; among such as overflow in sums, rows that do not see it are right. */
static void nan_in_values(subject *s) {
    static const float sizes[] = {1.0F, 0x1p126F};
    for (int i = 0; i < 2; i++) {
        tensors a = tensors_masked(1, "b1:h2:s60:d32", 14),
                b = tensors_masked(1, "b1:h2:s60:d32", 14);
        CHECK_CASE("NaN in V, size %g", (double)sizes[i]);
        for (size_t j = 0; j < b.v_size; j++)
            b.v[j] *= sizes[i];
        for (size_t head = 0; head < 2; head++)
            b.v[(head * 60 + 40) * 32 + 7] = NAN;
        subject_run(s, &a);
        subject_run(s, &b);
        for (size_t j = 0; j < b.o_size; j++) {
            bool sees = j / 32 % 60 >= 40, column = j % 32 == 7;
            if (sees && column)
                CHECK(isnan(b.o[j]));
            else if (i == 0 ? !column : !sees)
                CHECK_NEAR(b.o[j] / sizes[i], a.o[j], 1e-5);
        }
        check_close(b.lse, a.lse, a.rows, 2e-6);
        tensors_free(&a);
        tensors_free(&b);
    }
}

/* A NaN of either sign in one element of K reaches every column of the rows that see its key, and
 * changes nothing for those that do not: behind the diagonal, left and right of a window. */
static void nan_in_keys(subject *s) {
    static const int keys[] = {0, 40, 59};
    for (int i = 0; i < 3 * 2 * 3; i++) {
        int mask = i % 3, key = keys[i / 3 % 3];
        tensors a = tensors_masked(mask, "b1:hq4:hkv2:sq60:sk60:d32", 15),
                b = tensors_masked(mask, "b1:hq4:hkv2:sq60:sk60:d32", 15);
        attn_forward_tensors f = ATTN_FORWARD_TENSORS_INIT;
        attn_forward_args args;
        attn_problem_args(&b.problem, &f, &args);
        b.k[key * 32 + 7] = i < 9 ? NAN : -NAN; /* of the first head of K */
        CHECK_CASE("%s, NaN in key %d, %s", s->family ? s->family : "reference", key, MASKS[mask]);
        subject_run(s, &a);
        subject_run(s, &b);
        for (size_t row = 0; row < b.rows; row++) {
            int64_t begin, end;
            attn_visible_keys(&args, (int64_t)(row % 60), &begin, &end);
            if (row >= (size_t)2 * 60 || key < begin || key >= end) {
                check_close(b.o + row * 32, a.o + row * 32, 32, 1e-6);
                CHECK_NEAR(b.lse[row], a.lse[row], 1e-6);
                continue;
            }
            CHECK(isnan(b.lse[row]));
            for (size_t c = 0; c < 32; c++)
                if (!isnan(b.o[row * 32 + c]))
                    CHECK(isnan(b.o[row * 32 + c]));
        }
        tensors_free(&a);
        tensors_free(&b);
    }
}

static void ranges(subject *s) {
    large_values(s);
    large_scales(s);
    huge_scaled_queries(s);
    odd_scales(s, "f32");
    nan_in_values(s);
    nan_in_keys(s);
    subject_free(s);
}

int main(void) {
    static attn_error err = ATTN_ERROR_INIT;
    cpu_host host;
    const char *name;
    if (!CHECK_OK(cpu_host_open(NULL, 2, &host, &err), err.line))
        return check_done();
    subject reference = {.host = &host};
    ranges(&reference);
    for (size_t at = 0; (name = subject_next(&host, &at));) {
        subject family = {.host = &host, .family = name};
        if (subject_takes(&host, name, "f32"))
            ranges(&family);
        if (subject_takes(&host, name, "bf16"))
            odd_scales(&family, "bf16");
        subject_free(&family);
    }
    cpu_host_close(&host);
    return check_done();
}
