/* test_verify.c: a right kernel passes for every class, and each way to be wrong is told by name.
 */
#include "check.h"
#include "core/dtype.h"
#include "function_backend.h"
#include "verify.h"

static attn_error err = ATTN_ERROR_INIT;

enum { ROWS = 48, MAX_DIM = 128, MAX_KEYS = 2048 };

static const char LAUNCH[] = "step symbol=x rows=48 grid=tiles\n"
                             "workspace bytes=64 per=worker\n"
                             "splits 1\nzero_bytes 0\n";

/* What is planted. The kernel is one function, so what it does must be told beside it. */
static enum bug {
    RIGHT,
    LAST_ROW,    /* the last row of the last head is that of the row before */
    LSE_ONLY,    /* lse is off by 1e-4 */
    NOT_WRITTEN, /* the last column of row 5 */
    PAST_END,    /* writes behind the last row's last column */
    PADDING,     /* writes into the gap behind each row */
    BEFORE,      /* writes before the first element */
    INTO_V,      /* writes into an input */
    READS_PAST,  /* takes one key too many where the last row sees all */
    UNSTEADY,    /* the low bits differ from run to run */
    WORKSPACE,   /* writes behind its slice of the last worker */
    NAN_SPREADS, /* a NaN in one query reaches the row after it */
    SMALL_ERROR, /* all outputs are off by 1e-4 of their size */
    REFUSES      /* does not run on more than 100 keys */
} bug;
static attn_dtype dtype;
static int calls;

static float load(const void *base, int64_t at) {
    float x;
    if (dtype == ATTN_F32)
        return ((const float *)base)[at];
    attn_dtype_to_float(dtype, (const char *)base + at * (int64_t)attn_dtype_size(dtype), &x, 1);
    return x;
}

static void store(void *base, int64_t at, float x) {
    attn_dtype_from_float(dtype, &x, (char *)base + at * (int64_t)attn_dtype_size(dtype), 1);
}

/* The plain algorithm; gives lse. */
static float one_row(const attn_forward_args *a, int64_t b, int64_t h, int64_t r, float *o) {
    static float weight[MAX_KEYS + 1];
    int64_t q = b * a->q_stride[0] + h * a->q_stride[1] + r * a->q_stride[2], begin, end;
    int64_t k = b * a->k_stride[0] + h / a->group * a->k_stride[1];
    int64_t v = b * a->v_stride[0] + h / a->group * a->v_stride[1];
    float max = -INFINITY, sum = 0.0F;
    attn_visible_keys(a, r, &begin, &end);
    if (bug == READS_PAST && end == a->seq_kv && end > begin)
        end++;
    for (int64_t j = begin; j < end; j++) {
        float dot = 0.0F;
        for (int d = 0; d < a->head_dim; d++)
            dot += load(a->q, q + d) * load(a->k, k + j * a->k_stride[2] + d);
        weight[j] = dot * a->scale;
        max = weight[j] > max ? weight[j] : max;
    }
    for (int c = 0; c < a->head_dim_v; c++)
        o[c] = 0.0F;
    for (int64_t j = begin; j < end; j++) {
        float p = expf(weight[j] - max);
        sum += p;
        for (int c = 0; c < a->head_dim_v; c++)
            o[c] += p * load(a->v, v + j * a->v_stride[2] + c);
    }
    for (int c = 0; begin < end && c < a->head_dim_v; c++)
        o[c] /= sum;
    return begin < end ? max + logf(sum) : -INFINITY;
}

static void plant(const attn_forward_args *a, int64_t r, bool last, int64_t at, int worker) {
    if ((bug == PAST_END && last) || (bug == PADDING && a->o_stride[2] > a->head_dim_v))
        store(a->o, at + a->head_dim_v, 0.0F);
    if (bug == BEFORE && r == 0 && at == 0)
        store(a->o, -1, 0.0F);
    if (bug == INTO_V && last && a->seq_kv > 0)
        store((void *)(uintptr_t)a->v, 0, 0.25F);
    if (bug == WORKSPACE)
        memset((char *)a->workspace[0] + (size_t)worker * 128, 0, 65 + 64 * (size_t)worker);
}

static int kernel(const attn_forward_args *a, int task, int worker) {
    int64_t head = task / a->tiles, b = head / a->heads_q, h = head % a->heads_q;
    bool last_head = head == (int64_t)a->batch * a->heads_q - 1;
    float o[MAX_DIM];
    if (bug == REFUSES && a->seq_kv > 100)
        return 1;
    int64_t first = (int64_t)(task % a->tiles) * ROWS;
    for (int64_t r = first; r < first + ROWS && r < a->seq_q; r++) {
        bool last = last_head && r == a->seq_q - 1;
        bool spread =
            bug == NAN_SPREADS && r > 0 &&
            isnan(load(a->q, b * a->q_stride[0] + h * a->q_stride[1] + (r - 1) * a->q_stride[2]));
        int64_t at = b * a->o_stride[0] + h * a->o_stride[1] + r * a->o_stride[2];
        float lse = one_row(a, b, h, bug == LAST_ROW && last && r > 0 ? r - 1 : r, o);
        for (int c = 0; c < a->head_dim_v; c++) {
            float x = spread ? NAN : o[c];
            if (bug == SMALL_ERROR)
                x *= 1.0001F;
            if (bug == UNSTEADY && c == 0 && ++calls % 7 == 0)
                x = nextafterf(x, 10.0F);
            if (bug != NOT_WRITTEN || r != 5 || c < a->head_dim_v - 1)
                store(a->o, at + c, x);
        }
        if (a->lse)
            a->lse[head * a->seq_q + r] = bug == LSE_ONLY ? lse + 1e-4F : lse;
        plant(a, r, last, at, worker);
    }
    return 0;
}

static attn_status check(const char *text, enum bug planted, int32_t runs, attn_verdict *verdict) {
    attn_problem p;
    attn_verifier *verifier;
    attn_kernel k = attn_function_kernel(kernel, LAUNCH);
    if (!CHECK(k.function != NULL) ||
        !CHECK_OK(attn_problem_parse(text, &p, err.line, sizeof err.line), err.line) ||
        !CHECK_OK(attn_verifier_create(&attn_function_backend, NULL, &p, 1, ATTN_VERIFIER_SECONDS,
                                       &verifier, &err),
                  err.line))
        exit(check_done());
    bug = planted;
    dtype = p.dtype;
    attn_status st = attn_verifier_check(verifier, &k, &k.launch, runs, verdict, &err);
    attn_verifier_destroy(verifier);
    return st;
}

static void test_right(void) {
    static const char *const problems[] = {
        "fwd:f32:b1:h2:s70:d32:causal:lse",
        "fwd:f32:b2:hq6:hkv2:sq20:sk150:d20:dv12:window30,4:lse:bshd",
        "fwd:f32:b1:h2:sq150:sk20:d9:dv7:causal:a1",
        "fwd:f16:b1:h2:s70:d32:causal_tl:lse:qkv",
        "fwd:bf16:b1:h2:s70:d32:lse",
        "fwd:bf16:b1:hq4:hkv1:sq1:sk300:d64:causal:lse:bshd",
        "fwd:f32:b1:h2:sq7:sk0:d16:lse",
        "fwd:f32:b0:h2:s8:d16",
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        attn_verdict verdict;
        CHECK_CASE("%s", problems[i]);
        CHECK_OK(check(problems[i], RIGHT, 3, &verdict), err.line);
        CHECK(verdict.right);
        CHECK_STR(verdict.reason, "");
        CHECK(verdict.error <= verdict.bound);
    }
}

static void test_bugs(void) {
    static const struct {
        enum bug bug;
        const char *problem, *reason;
    } rows[] = {
        {LAST_ROW, "fwd:f32:b1:h2:s70:d32:causal", "error"},
        {LSE_ONLY, "fwd:f32:b1:h2:s70:d32:causal:lse", "lse is off by 1.0"},
        {LSE_ONLY, "fwd:f16:b1:h2:s70:d32:causal:lse", "lse is off by 1.0"},
        {NOT_WRITTEN, "fwd:f32:b1:h2:s70:d32", "row 5: an element of o was not written"},
        {NOT_WRITTEN, "fwd:f16:b1:h2:s70:d32", "row 5: an element of o was not written"},
        {PAST_END, "fwd:f32:b1:h2:s70:d32", "wrote outside the elements of o"},
        {PADDING, "fwd:bf16:b1:h2:s70:d32:bshd", "wrote outside the elements of o"},
        {BEFORE, "fwd:f32:b1:h2:s70:d32", "wrote outside the elements of o, -4 bytes"},
        {INTO_V, "fwd:f32:b1:h2:s70:d32", "wrote into v"},
        {READS_PAST, "fwd:f32:b1:h2:s70:d32", "o holds what lies outside"},
        {READS_PAST, "fwd:f16:b1:h2:s70:d32:causal", "o holds what lies outside"},
        {UNSTEADY, "fwd:f32:b1:h2:s73:d33:a1", "two runs on the same inputs differ"},
        {WORKSPACE, "fwd:f32:b1:h2:s70:d32", "wrote past the end of its workspace"},
        {NAN_SPREADS, "fwd:f32:b1:h2:s70:d32", "NaN query"},
        {SMALL_ERROR, "fwd:f32:b1:h2:s70:d32", "error 1.00e-04, bound"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        attn_verdict verdict;
        CHECK_CASE("bug %d, %s", (int)rows[i].bug, rows[i].problem);
        CHECK_OK(check(rows[i].problem, rows[i].bug, 2, &verdict), err.line);
        CHECK(!verdict.right);
        CHECK_HAS(verdict.reason, rows[i].reason);
        CHECK(strchr(verdict.reason, '\n') == NULL);
    }
}

/* An error of 1e-4 is small for half types: the bounds are those of each dtype. */
static void test_bounds(void) {
    attn_verdict verdict;
    CHECK_CASE("bounds");
    CHECK_OK(check("fwd:bf16:b1:h2:s70:d32", SMALL_ERROR, 2, &verdict), err.line);
    CHECK(verdict.right);
    CHECK(verdict.error > 1e-3 && verdict.error < 5e-3);
    CHECK_NEAR(attn_bounds_of(ATTN_F32, 0).head, 5e-6, 0);
    CHECK_NEAR(attn_bounds_of(ATTN_F32, 2e-6).head, 8e-6, 1e-20);
    CHECK_NEAR(attn_bounds_of(ATTN_F32, 2e-6).row, 32e-6, 1e-20);
    CHECK_NEAR(attn_bounds_of(ATTN_F16, 1).head, 6e-4, 0);
    CHECK_NEAR(attn_bounds_of(ATTN_F16, 1).lse, 1e-5, 0);
    CHECK_NEAR(attn_bounds_of(ATTN_BF16, 1).row, 2e-2, 0);
}

/* What is no verdict: a kernel that does not run, and one that does not admit the problem. */
static void test_refusals(void) {
    attn_verdict verdict;
    CHECK_CASE("refusals");
    CHECK_STATUS(check("fwd:f32:b1:h2:s70:d32", REFUSES, 2, &verdict), ATTN_ERR_LAUNCH, err.line);
    CHECK_HAS(err.line, "std 8, fwd:f32:b1:h1:sq2:sk129:d32: the function refused");

    attn_problem p;
    attn_verifier *verifier;
    attn_kernel k =
        attn_function_kernel(kernel, "step symbol=x rows=48 grid=tiles\nsplits 1\nzero_bytes 0\n"
                                     "limit field=seq_kv min=64 max=128 multiple_of=64\n");
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h2:s70:d32", &p, NULL, 0), "");
    CHECK_OK(attn_verifier_create(&attn_function_backend, NULL, &p, 1, ATTN_VERIFIER_SECONDS,
                                  &verifier, &err),
             err.line);
    CHECK_STATUS(attn_verifier_check(verifier, &k, &k.launch, 2, &verdict, &err), ATTN_ERR_INVALID,
                 err.line);
    CHECK_STR(err.line, "seq_kv is 70, but this variant takes multiples of 64 from 64 to 128");
    attn_verifier_destroy(verifier);
    attn_verifier_destroy(NULL);
}

/* One verifier, many variants: a variant that spoils the inputs does not spoil the next one's. */
static void test_shared(void) {
    attn_problem p;
    attn_verifier *verifier;
    attn_verdict verdict;
    attn_kernel k = attn_function_kernel(kernel, LAUNCH);
    CHECK_CASE("shared");
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h2:s73:d32:lse", &p, NULL, 0), "");
    CHECK_OK(attn_verifier_create(&attn_function_backend, NULL, &p, 1, ATTN_VERIFIER_SECONDS,
                                  &verifier, &err),
             err.line);
    dtype = ATTN_F32;
    for (int planted = RIGHT; planted <= SMALL_ERROR; planted++) {
        bug = (enum bug)planted;
        CHECK_OK(attn_verifier_check(verifier, &k, &k.launch, 2, &verdict, &err), err.line);
        bug = RIGHT;
        CHECK_OK(attn_verifier_check(verifier, &k, &k.launch, 2, &verdict, &err), err.line);
        CHECK(verdict.right);
    }
    CHECK_OK(attn_verifier_repeat(verifier, &k, &k.launch, 10, &verdict, &err), err.line);
    CHECK(verdict.right && verdict.error > 0);
    bug = UNSTEADY;
    CHECK_OK(attn_verifier_repeat(verifier, &k, &k.launch, 10, &verdict, &err), err.line);
    CHECK(!verdict.right);
    CHECK(attn_verifier_inputs(verifier)->device.q != NULL);
    attn_verifier_destroy(verifier);
}

/*-*** Beside another stream *************************************/

static int streams, busy_runs, plain_runs;

static attn_status stream_create(attn_backend_device *device, void **stream, attn_error *e) {
    (void)device;
    (void)e;
    *stream = &streams;
    streams++;
    return ATTN_OK;
}

static void stream_destroy(attn_backend_device *device, void *stream) {
    (void)device;
    streams -= stream == &streams;
}

static attn_status counted_run(attn_kernel *k, const attn_call *call, void *stream, attn_error *e) {
    if (stream)
        busy_runs++;
    else
        plain_runs++;
    return attn_function_backend.run(k, call, stream, e);
}

/* Finalists run ten times, each beside a run on the other stream; other checks have none. */
static void test_streams(void) {
    attn_backend backend = attn_function_backend;
    attn_problem p;
    attn_verifier *verifier;
    attn_verdict verdict;
    attn_kernel k = attn_function_kernel(kernel, LAUNCH);
    backend.stream_create = stream_create;
    backend.stream_destroy = stream_destroy;
    backend.run = counted_run;
    bug = RIGHT;
    dtype = ATTN_F32;
    CHECK_CASE("streams");
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h2:s70:d32:lse", &p, NULL, 0), "");
    CHECK_OK(attn_verifier_create(&backend, NULL, &p, 1, ATTN_VERIFIER_SECONDS, &verifier, &err),
             err.line);
    CHECK_OK(attn_verifier_repeat(verifier, &k, &k.launch, 10, &verdict, &err), err.line);
    CHECK(verdict.right);
    CHECK_EQ_INT(plain_runs, 10);
    CHECK_EQ_INT(busy_runs, 10);
    CHECK_OK(attn_verifier_check(verifier, &k, &k.launch, 2, &verdict, &err), err.line);
    CHECK(verdict.right);
    CHECK_EQ_INT(busy_runs, 10);
    CHECK_EQ_INT(streams, 1);
    attn_verifier_destroy(verifier);
    CHECK_EQ_INT(streams, 0);
}

int main(void) {
    test_streams();
    test_right();
    test_bugs();
    test_bounds();
    test_refusals();
    test_shared();
    return check_done();
}
