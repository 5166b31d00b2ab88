/* test_judge.c: where the float64 reference lacks rows, the judge's output finds what is wrong in
 * any of them, names the place, and alarms at no right kernel. */
#include <time.h>

#include "check.h"
#include "core/dtype.h"
#include "function_backend.h"
#include "styled_kernel.h"
#include "verify.h"

static attn_error err = ATTN_ERROR_INIT;

enum { ROWS = 16, DIM_MAX = 256 };

static const char LAUNCH[] = "step symbol=x rows=16 grid=tiles\nsplits 1\nzero_bytes 0\n";

/* Time for references that leaves most rows of the problems below out. */
#define LITTLE 3e-4

/*-*** A kernel with one row that is wrong ***********************/

static enum bug { RIGHT, ROW_BEFORE, ONE_KEY_LESS, LSE_OFF, ALL_OFF, REFUSES } bug;
static styled_kernel style;
static int64_t bad_head, bad_row, keys_least;

/* Wrong in one row of one head, and only where there are many keys: not in hostile problems. */
static void write_row(const attn_forward_args *a, int64_t head, int64_t row) {
    bool bad = bug != RIGHT && head == bad_head && row == bad_row && a->seq_kv >= keys_least;
    attn_forward_args less = *a;
    float o[DIM_MAX];
    less.seq_kv -= bad && bug == ONE_KEY_LESS;
    float lse = styled_row(&style, &less, head, bad && bug == ROW_BEFORE ? row - 1 : row, o);
    for (int32_t c = 0; bug == ALL_OFF && c < a->head_dim_v; c++)
        o[c] *= 1.1F;
    attn_dtype_from_float(style.dtype, o, styled_output(&style, a, head, row),
                          (size_t)a->head_dim_v);
    if (a->lse)
        a->lse[head * a->seq_q + row] = bad && bug == LSE_OFF ? lse + 0.01F : lse;
}

static int kernel(const attn_forward_args *a, int task, int worker) {
    const int64_t head = task / a->tiles, first = (int64_t)(task % a->tiles) * ROWS;
    (void)worker;
    for (int64_t r = first; r < first + ROWS && r < a->seq_q; r++)
        write_row(a, head, r);
    return 0;
}

/* The kernel that judges: float32, each weight as it is. */
static int judge(const attn_forward_args *a, int task, int worker) {
    const styled_kernel own = style;
    const enum bug planted = bug;
    if (bug == REFUSES)
        return 1;
    style = (styled_kernel){own.dtype, 1, 1, false};
    bug = bug == ALL_OFF ? ALL_OFF : RIGHT;
    int rc = kernel(a, task, worker);
    style = own;
    bug = planted;
    return rc;
}

static attn_verifier *open_verifier(const char *text, double seconds) {
    attn_problem p;
    attn_verifier *verifier;
    if (!CHECK_OK(attn_problem_parse(text, &p, err.line, sizeof err.line), err.line) ||
        !CHECK_OK(
            attn_verifier_create(&attn_function_backend, NULL, &p, 1, seconds, &verifier, &err),
            err.line))
        exit(check_done());
    style = (styled_kernel){p.dtype, 8, 64, p.dtype != ATTN_F32};
    bad_head = (int64_t)p.batch * p.heads_q / 2;
    keys_least = p.seq_kv;
    return verifier;
}

static attn_verdict check(attn_verifier *verifier, enum bug planted) {
    attn_kernel k = attn_function_kernel(kernel, LAUNCH);
    attn_verdict verdict = ATTN_VERDICT_INIT;
    bug = planted;
    CHECK_OK(attn_verifier_repeat(verifier, &k, &k.launch, 2, &verdict, &err), err.line);
    bug = RIGHT;
    return verdict;
}

static attn_status set_judge(attn_verifier *verifier, enum bug planted) {
    static attn_kernel k;
    k = attn_function_kernel(judge, LAUNCH);
    bug = planted;
    attn_status status = attn_verifier_judge(verifier, &k, &k.launch, &err);
    bug = RIGHT;
    return status;
}

/*-*** Tests *****************************************************/

/* A row that the float64 reference does not hold: without a judge, nobody sees that it is wrong. */
static bool find_hidden(attn_verifier *verifier, enum bug planted, int64_t first) {
    for (bad_row = first; bad_row < first + 40; bad_row++)
        if (check(verifier, planted).right)
            return true;
    return false;
}

static void test_one_row(void) {
    static const struct {
        enum bug bug;
        const char *problem, *reason;
    } cases[] = {
        {ROW_BEFORE, "fwd:f32:b1:h8:s200:d32", "error against the reference kernel"},
        {ROW_BEFORE, "fwd:f16:b2:h4:s200:d64:causal", "error against the reference kernel"},
        {ROW_BEFORE, "fwd:bf16:b1:hq8:hkv2:s300:d32:dv40:bshd", "error against the reference"},
        {ROW_BEFORE, "fwd:f32:b1:h8:s400:d16:dv1", "error against the reference kernel"},
        {ROW_BEFORE, "fwd:bf16:b1:h8:s300:d16:dv2:a1", "error against the reference kernel"},
        {ROW_BEFORE, "fwd:f16:b1:h6:s300:d24:window90,3", "error against the reference kernel"},
        {ONE_KEY_LESS, "fwd:f32:b1:h8:s200:d32", "error against the reference kernel"},
        {ONE_KEY_LESS, "fwd:f16:b1:h8:s200:d32:qkv", "error against the reference kernel"},
        {LSE_OFF, "fwd:bf16:b1:h8:s200:d32:lse", "lse is off from the reference kernel's by 1.0"},
        {LSE_OFF, "fwd:f32:b1:h8:s200:d32:causal:lse", "lse is off from the reference kernel's"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char place[64];
        CHECK_CASE("bug %d, %s", (int)cases[i].bug, cases[i].problem);
        attn_verifier *verifier = open_verifier(cases[i].problem, LITTLE);
        CHECK(attn_verifier_partial(verifier));
        if (CHECK(find_hidden(verifier, cases[i].bug, 1 + 16 * (int64_t)i)) &&
            CHECK_OK(set_judge(verifier, RIGHT), err.line)) {
            attn_verdict right = check(verifier, RIGHT), wrong = check(verifier, cases[i].bug);
            CHECK(right.right);
            CHECK_STR(right.reason, "");
            CHECK(!wrong.right && wrong.error > wrong.bound);
            int64_t heads = strstr(cases[i].problem, ":b2:") ? 4 : bad_head + 1;
            snprintf(place, sizeof place, "batch %d head %d row %d: ", (int)(bad_head / heads),
                     (int)(bad_head % heads), (int)bad_row);
            CHECK_HAS(wrong.reason, place);
            CHECK_HAS(wrong.reason, cases[i].reason);
        }
        attn_verifier_destroy(verifier);
    }
}

/* A judge that is wrong, that does not run, or that takes too long, judges nothing. */
static void test_bad_judge(void) {
    CHECK_CASE("bad judges");
    attn_verifier *verifier = open_verifier("fwd:f16:b1:h8:s200:d32", LITTLE);
    CHECK_STATUS(set_judge(verifier, ALL_OFF), ATTN_ERR_INTERNAL, err.line);
    CHECK_HAS(err.line,
              "it disagrees with the float64 reference: peaked, fwd:f16:b1:h8:s200:d32: ");
    CHECK_STATUS(set_judge(verifier, REFUSES), ATTN_ERR_LAUNCH, err.line);
    CHECK(check(verifier, RIGHT).right);
    CHECK_OK(set_judge(verifier, RIGHT), err.line);
    attn_verifier_destroy(verifier);

    CHECK_CASE("a complete reference needs none");
    verifier = open_verifier("fwd:f16:b1:h8:s200:d32", ATTN_VERIFIER_SECONDS);
    CHECK(!attn_verifier_partial(verifier));
    CHECK_OK(set_judge(verifier, ALL_OFF), err.line);
    attn_verifier_destroy(verifier);
}

static int slow_judge(const attn_forward_args *a, int task, int worker) {
    const struct timespec moment = {0, 30000000};
    nanosleep(&moment, NULL);
    return judge(a, task, worker);
}

/* The time for the whole problem is known from one head of it. */
static void test_slow_judge(void) {
    CHECK_CASE("a slow judge");
    attn_verifier *verifier = open_verifier("fwd:f32:b20:h20:s64:d64", LITTLE);
    attn_kernel k = attn_function_kernel(slow_judge, LAUNCH);
    CHECK_STATUS(attn_verifier_judge(verifier, &k, &k.launch, &err), ATTN_ERR_UNSUPPORTED,
                 err.line);
    CHECK_HAS(err.line, "it would take ");
    CHECK(check(verifier, RIGHT).right);
    attn_verifier_destroy(verifier);
}

/* All three kinds of input, by the whole check, and other ways to be right. */
static void test_right(void) {
    static const char *const problems[] = {
        "fwd:f32:b1:h4:s256:d32:dv8:lse",      "fwd:f16:b1:h4:s300:d64:causal:lse",
        "fwd:bf16:b1:h4:s300:d64:dv8",         "fwd:bf16:b64:h8:sq1:sk300:d32:dv8:lse",
        "fwd:f16:b1:h4:s400:d8:window50,0:a1",
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        attn_kernel k = attn_function_kernel(kernel, LAUNCH);
        attn_verdict verdict;
        CHECK_CASE("%s", problems[i]);
        attn_verifier *verifier = open_verifier(problems[i], LITTLE);
        CHECK_OK(set_judge(verifier, RIGHT), err.line);
        CHECK_OK(attn_verifier_check(verifier, &k, &k.launch, 2, &verdict, &err), err.line);
        CHECK_STR(verdict.reason, "");
        CHECK(verdict.right);
        attn_verifier_destroy(verifier);
    }
}

int main(void) {
    test_one_row();
    test_bad_judge();
    test_slow_judge();
    test_right();
    return check_done();
}
