/* test_reference64.c: the float64 reference against PyTorch, against sums written out, and its
 * choice of rows. */
#include "check.h"
#include "core/dtype.h"
#include "reference.h"

static attn_error err = ATTN_ERROR_INIT;

static attn_problem problem_of(const char *text) {
    attn_problem problem;
    char line[256];
    if (!CHECK_OK(attn_problem_parse(text, &problem, line, sizeof line), line))
        exit(check_done());
    return problem;
}

/*-*** PyTorch ***************************************************/

/* Element i of tensor `which` as tests/golden/make_golden.py makes it. */
static float golden_element(uint32_t i, uint32_t which) {
    uint32_t bits = (i + 1) * 2654435761u + which * 974711711u;
    return (float)(bits >> 8) / 4194304.0F - 2.0F;
}

static void fill(const attn_inputs *in, const void *base, const int64_t stride[3], int32_t heads,
                 int32_t rows, int32_t dim, uint32_t which) {
    const attn_problem *p = &in->problem;
    size_t element = attn_dtype_size(p->dtype);
    uint32_t i = 0;
    for (int32_t b = 0; b < p->batch; b++)
        for (int32_t h = 0; h < heads; h++)
            for (int32_t r = 0; r < rows; r++)
                for (int32_t d = 0; d < dim; d++, i++) {
                    float x = golden_element(i, which);
                    int64_t at = b * stride[0] + h * stride[1] + r * stride[2] + d;
                    attn_dtype_from_float(p->dtype, &x,
                                          (char *)(uintptr_t)base + (size_t)at * element, 1);
                }
}

static void golden_problem(FILE *f, const char *text, const char *scale) {
    attn_problem p = problem_of(text);
    bool given = strcmp(scale, "default") != 0;
    attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_PADDED, given ? strtof(scale, NULL) : NAN,
                            1};
    attn_inputs in;
    attn_reference ref;
    CHECK_CASE("%s %s", text, scale);
    CHECK_OK(attn_inputs_make(&p, &spec, &in, &err), err.line);
    fill(&in, in.host.q, in.host.q_stride, p.heads_q, p.seq_q, p.head_dim, 1);
    fill(&in, in.host.k, in.host.k_stride, p.heads_kv, p.seq_kv, p.head_dim, 2);
    fill(&in, in.host.v, in.host.v_stride, p.heads_kv, p.seq_kv, p.head_dim_v, 3);
    CHECK_OK(attn_reference_make(&in, INFINITY, 1, &ref, &err), err.line);
    int64_t rows = (int64_t)p.batch * p.heads_q * p.seq_q;
    CHECK(ref.complete);
    CHECK_EQ_INT(ref.rows, rows);
    double want;
    for (int64_t i = 0; i < rows * p.head_dim_v; i++)
        if (CHECK_EQ_INT(fscanf(f, "%lf", &want), 1))
            CHECK_NEAR(ref.o[i], want, 1e-10 * (1 + fabs(want)));
    for (int64_t i = 0; i < rows; i++) {
        if (!CHECK_EQ_INT(fscanf(f, "%lf", &want), 1))
            continue;
        if (isinf(want))
            CHECK(ref.lse[i] == want);
        else
            CHECK_NEAR(ref.lse[i], want, 1e-10 * (1 + fabs(want)));
    }
    attn_reference_free(&ref);
    attn_inputs_free(&in);
}

static void test_golden(void) {
    const char *source = getenv("ATTN_SOURCE");
    char path[1024], text[128], scale[32];
    int problems = 0;
    if (!source)
        check_skip("ATTN_SOURCE is not set");
    (void)snprintf(path, sizeof path, "%s/tests/golden/torch_math.txt", source);
    FILE *f = fopen(path, "re");
    if (!CHECK(f != NULL))
        return;
    while (fscanf(f, "%127s %31s", text, scale) == 2 && problems < 1000) {
        int before = check_failures;
        golden_problem(f, text, scale);
        problems++;
        if (check_failures != before)
            break; /* the file is read in step with the checks */
    }
    CHECK_CASE("golden");
    CHECK(problems >= 30);
    (void)fclose(f);
}

/*-*** Written out ***********************************************/

static double element(const attn_inputs *in, const void *base, const int64_t stride[3], int64_t b,
                      int64_t h, int64_t r, int64_t d) {
    double x;
    attn_dtype dtype = in->problem.dtype;
    int64_t at = b * stride[0] + h * stride[1] + r * stride[2] + d;
    attn_dtype_to_double(dtype, (const char *)base + at * (int64_t)attn_dtype_size(dtype), &x, 1);
    return x;
}

static bool sees(const attn_problem *p, int64_t i, int64_t j) {
    int64_t at = j - (i + p->seq_kv - p->seq_q);
    switch (p->mask) {
    case ATTN_MASK_CAUSAL:
        return at <= 0;
    case ATTN_MASK_CAUSAL_TL:
        return j <= i;
    case ATTN_MASK_WINDOW:
        return (p->window_left < 0 || at >= -p->window_left) &&
               (p->window_right < 0 || at <= p->window_right);
    default:
        return true;
    }
}

/* One row from the definition, with no maximum taken out: logits must be small. */
static void check_row(const attn_inputs *in, const attn_reference *ref, int64_t n) {
    const attn_problem *p = &in->problem;
    const attn_forward_tensors *t = &in->host;
    int64_t head = ref->row[n] / p->seq_q, i = ref->row[n] % p->seq_q;
    int64_t b = head / p->heads_q, h = head % p->heads_q, kv = h * p->heads_kv / p->heads_q;
    double scale = isnan(t->scale) ? (double)(float)(1 / sqrt(p->head_dim)) : (double)t->scale;
    double sum = 0, want[64] = {0};
    for (int64_t j = 0; j < p->seq_kv; j++) {
        double dot = 0;
        if (!sees(p, i, j))
            continue;
        for (int64_t d = 0; d < p->head_dim; d++)
            dot += element(in, t->q, t->q_stride, b, h, i, d) *
                   element(in, t->k, t->k_stride, b, kv, j, d);
        double weight = exp(dot * scale);
        sum += weight;
        for (int64_t c = 0; c < p->head_dim_v; c++)
            want[c] += weight * element(in, t->v, t->v_stride, b, kv, j, c);
    }
    for (int64_t c = 0; c < p->head_dim_v; c++)
        CHECK_NEAR(ref->o[n * p->head_dim_v + c], sum > 0 ? want[c] / sum : 0.0, 1e-11);
    if (sum > 0)
        CHECK_NEAR(ref->lse[n], log(sum), 1e-11);
    else
        CHECK(ref->lse[n] == -INFINITY);
}

static void test_written_out(void) {
    static const char *const problems[] = {
        "fwd:f32:b2:hq4:hkv2:sq13:sk21:d20:dv12",      "fwd:f32:b1:hq3:hkv1:sq21:sk13:d8:causal",
        "fwd:f16:b2:h2:sq9:sk30:d16:causal_tl:bshd",   "fwd:bf16:b2:h3:s19:d16:window4,2:qkv",
        "fwd:f32:b1:h2:sq17:sk5:d9:dv7:window2,-1:a1", "fwd:f32:b2:h2:sq4:sk0:d8",
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        attn_problem p = problem_of(problems[i]);
        for (int strides = ATTN_STRIDES_LAYOUT; strides <= ATTN_STRIDES_REPEATED; strides++) {
            attn_input_spec spec = {ATTN_INPUT_STD1, (attn_strides)strides, NAN, 7};
            attn_inputs in;
            attn_reference ref;
            CHECK_CASE("%s, %s", problems[i], attn_strides_name((attn_strides)strides));
            CHECK_OK(attn_inputs_make(&p, &spec, &in, &err), err.line);
            CHECK_OK(attn_reference_make(&in, INFINITY, 1, &ref, &err), err.line);
            CHECK(ref.complete);
            CHECK_EQ_INT(ref.rows, p.batch * p.heads_q * p.seq_q);
            for (int64_t n = 0; n < ref.rows; n++)
                check_row(&in, &ref, n);
            if (p.dtype == ATTN_F32 && p.seq_kv > 1)
                CHECK(ref.plain > 1e-9 && ref.plain < 2e-6);
            attn_reference_free(&ref);
            attn_inputs_free(&in);
        }
    }
}

/*-*** Choice of rows ********************************************/

static bool holds(const attn_reference *ref, int64_t row) {
    for (int64_t i = 0; i < ref->rows; i++)
        if (ref->row[i] == row)
            return true;
    return false;
}

static void test_rows(void) {
    attn_problem p = problem_of("fwd:f32:b2:hq6:hkv3:s700:d16:causal");
    attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_LAYOUT, NAN, 3};
    attn_inputs in;
    attn_reference ref, again, other;
    int64_t in_head[12] = {0}, whole = 0, most = 0;
    CHECK_CASE("rows");
    CHECK_OK(attn_inputs_make(&p, &spec, &in, &err), err.line);
    CHECK_OK(attn_reference_make(&in, 5.5e7, 1, &ref, &err), err.line);
    CHECK_OK(attn_reference_make(&in, 5.5e7, 1, &again, &err), err.line);
    CHECK_OK(attn_reference_make(&in, 5.5e7, 2, &other, &err), err.line);
    CHECK(!ref.complete);
    for (int64_t i = 0; i < ref.rows; i++) {
        in_head[ref.row[i] / p.seq_q]++;
        CHECK(i == 0 || ref.row[i] > ref.row[i - 1]);
        if (ref.row[i] % 100 == 99)
            check_row(&in, &ref, i);
    }
    for (int64_t head = 0; head < 12; head++) {
        CHECK(holds(&ref, head * 700));
        CHECK(holds(&ref, head * 700 + 699));
        CHECK(holds(&ref, head * 700 + 640)); /* first row of the last tile of 64 or 128 */
        whole += in_head[head] == 700;
        if (in_head[head] != 700)
            most = in_head[head] > most ? in_head[head] : most;
    }
    CHECK_EQ_INT(whole, 2); /* the heads of one group */
    CHECK(most >= 48 && most <= 72);
    CHECK_EQ_INT(again.rows, ref.rows);
    CHECK(memcmp(again.row, ref.row, (size_t)ref.rows * sizeof *ref.row) == 0);
    CHECK(other.rows != ref.rows ||
          memcmp(other.row, ref.row, (size_t)ref.rows * sizeof *ref.row) != 0);
    attn_reference_free(&ref);
    attn_reference_free(&again);
    attn_reference_free(&other);
    CHECK_OK(attn_reference_make(&in, 1e4, 1, &ref, &err), err.line); /* hardly any */
    CHECK(ref.rows >= 16 && ref.rows <= 300);
    attn_reference_free(&ref);
    attn_inputs_free(&in);
}

int main(void) {
    test_golden();
    test_written_out();
    test_rows();
    return check_done();
}
