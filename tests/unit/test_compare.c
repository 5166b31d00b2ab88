/* test_compare.c: the bounds raise no alarm at right kernels however few the columns are, and a
 * wrong row is caught there all the same. */
#include "check.h"
#include "compare.h"
#include "core/dtype.h"
#include "styled_kernel.h"

static attn_error err = ATTN_ERROR_INIT;

static int one_of(attn_random *random, const int *values, size_t count) {
    return values[attn_random_below(random, count)];
}
#define ONE_OF(random, ...)                                                                        \
    one_of(random, (const int[]){__VA_ARGS__}, sizeof(const int[]){__VA_ARGS__} / sizeof(int))

/* A problem with one to four columns of values, its reference, and room for an output. */
struct trial {
    attn_inputs inputs;
    attn_reference reference;
    unsigned char *o;
};

static void open_trial(struct trial *t, attn_random *random) {
    static const attn_input_kind kinds[] = {
        ATTN_INPUT_STD1, ATTN_INPUT_STD8,     ATTN_INPUT_PEAKED,
        ATTN_INPUT_TIES, ATTN_INPUT_DENORMAL, ATTN_INPUT_STD8,
    };
    attn_problem p;
    char text[128];
    const char *mask[] = {"", ":causal", ":window9,3"};
    snprintf(text, sizeof text, "fwd:f32:b%d:hq%d:hkv1:sq%d:sk%d:d%d:dv%d%s:a1",
             ONE_OF(random, 1, 2), ONE_OF(random, 1, 1, 3), ONE_OF(random, 1, 1, 2, 5, 33, 70),
             ONE_OF(random, 1, 2, 3, 17, 64, 200, 1000),
             ONE_OF(random, 1, 2, 3, 8, 33, 64, 256, 512), ONE_OF(random, 1, 2, 3, 4),
             mask[attn_random_below(random, 3)]);
    CHECK_CASE("%s", text);
    if (!CHECK_OK(attn_problem_parse(text, &p, err.line, sizeof err.line), err.line))
        exit(check_done());
    attn_input_spec spec = {kinds[attn_random_below(random, 6)], ATTN_STRIDES_LAYOUT, NAN,
                            attn_random_next(random)};
    CHECK_OK(attn_inputs_make(&p, &spec, &t->inputs, &err), err.line);
    CHECK_OK(attn_reference_make(&t->inputs, INFINITY, 1, &t->reference, &err), err.line);
    t->o = malloc(t->inputs.image[ATTN_IMAGE_O].size);
    if (!CHECK(t->o != NULL))
        exit(check_done());
}

static void close_trial(struct trial *t) {
    free(t->o);
    attn_reference_free(&t->reference);
    attn_inputs_free(&t->inputs);
}

/* Judges the output of that kernel, whose row `bad` (-1: none) is that of the row before it. */
static attn_verdict judge(struct trial *t, const styled_kernel *style, int64_t bad) {
    const attn_problem *p = &t->inputs.problem;
    attn_forward_args args;
    attn_verdict verdict = ATTN_VERDICT_INIT;
    float o[4];
    memcpy(t->o, t->inputs.image[ATTN_IMAGE_O].host, t->inputs.image[ATTN_IMAGE_O].size);
    attn_problem_args(p, &t->inputs.host, &args);
    for (int64_t head = 0; head < (int64_t)p->batch * p->heads_q; head++)
        for (int64_t r = 0; r < p->seq_q; r++) {
            bool here = head * p->seq_q + r == bad;
            (void)styled_row(style, &args, head, here ? r - 1 : r, o);
            attn_dtype_from_float(p->dtype, o, t->o + attn_output_offset(&t->inputs, head, r),
                                  (size_t)p->head_dim_v);
        }
    (void)attn_compare(&t->inputs, &t->reference, t->o, NULL, &verdict);
    return verdict;
}

/* A row that differs from the one before it, of the same head, by more than a thousandth of its
 * size; -1: there is none. */
static int64_t find_other_row(const struct trial *t, attn_random *random) {
    const attn_reference *ref = &t->reference;
    const int32_t columns = t->inputs.problem.head_dim_v;
    for (int tries = 0; tries < 20 && ref->rows > 1; tries++) {
        int64_t i = 1 + (int64_t)attn_random_below(random, (uint64_t)ref->rows - 1);
        double off = 0;
        for (int32_t c = 0; c < columns; c++)
            off = fmax(off, fabs(ref->o[i * columns + c] - ref->o[(i - 1) * columns + c]));
        if (i % t->inputs.problem.seq_q != 0 && off > 1e-3 * ref->size[i])
            return i;
    }
    return -1;
}

static void test_few_columns(int trials) {
    attn_random random = {1};
    int caught = 0;
    for (int i = 0; i < trials; i++) {
        struct trial t;
        open_trial(&t, &random);
        const styled_kernel style = {ATTN_F32, ONE_OF(&random, 1, 4, 16, 64),
                                     ONE_OF(&random, 1, 16, 64, 256), false};
        attn_verdict verdict = judge(&t, &style, -1);
        CHECK_STR(verdict.reason, "");
        int64_t bad = find_other_row(&t, &random);
        if (bad >= 0) {
            char place[64];
            verdict = judge(&t, &style, bad);
            const int64_t seq = t.inputs.problem.seq_q, heads = t.inputs.problem.heads_q;
            snprintf(place, sizeof place, "batch %d head %d row %d: ", (int)(bad / seq / heads),
                     (int)(bad / seq % heads), (int)(bad % seq));
            caught += CHECK_HAS(verdict.reason, place);
        }
        close_trial(&t);
    }
    CHECK_CASE("few columns");
    CHECK(caught > trials / 4);
}

int main(int argc, char **argv) {
    test_few_columns(argc > 1 ? atoi(argv[1]) : 1000);
    return check_done();
}
