/* test_cpu_cost.c: faults that show in no number, only in time: denormals, tasks that end late, a
 * default behind the plain reference. No wall clock: MXCSR tells of denormals, a simulation deals
 * the tasks, and CPU seconds of one thread are compared with margins of several times. */
#include <time.h>

#include "check.h"
#include "core/half.h"
#include "cpu_subject.h"

static attn_error err = ATTN_ERROR_INIT;
static cpu_host host;

/*-*** Denormals *************************************************/

#if defined(__x86_64__)
/* A denormal was an operand, or a result that was rounded, since the flags were cleared. */
static bool met_denormal(void) {
    return (__builtin_ia32_stmxcsr() & (2 | 16)) != 0;
}

static void clear_flags(void) {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~63U);
}
#else
static bool met_denormal(void) {
    return false;
}

static void clear_flags(void) {}
#endif

static double cpu_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least of several runs on one thread; the first, which may compile, is not one of them. */
static double seconds_of(subject *s, tensors *t) {
    double best = INFINITY;
    subject_run(s, t);
    for (int i = 0; i < 7; i++) {
        double begun = cpu_seconds();
        subject_run(s, t);
        best = fmin(best, cpu_seconds() - begun);
    }
    return best;
}

static void multiply(float *x, size_t n, float factor) {
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* To the problem's type, where it lies. */
static void narrow(tensors *t) {
    float *const of[] = {t->q, t->k, t->v};
    const size_t sizes[] = {t->q_size, t->k_size, t->v_size};
    for (int x = 0; x < 3; x++)
        for (size_t i = 0; t->problem.dtype != ATTN_F32 && i < sizes[x]; i++) {
            uint16_t half = t->problem.dtype == ATTN_F16 ? attn_f16_of_float(of[x][i])
                                                         : attn_bf16_of_float(of[x][i]);
            memcpy((uint16_t *)of[x] + i, &half, sizeof half);
        }
}

enum { NORMAL, DENORMAL_Q, DENORMAL_K, DENORMAL_V, SPREAD, KINDS };

static double seconds_with(subject *s, const char *problem, int kind) {
    static const char *const names[] = {"normal", "Q denormal", "K denormal", "V denormal",
                                        "logits far apart"};
    tensors t = tensors_make(problem, 20);
    CHECK_CASE("%s, %s, %s", s->family ? s->family : "reference", problem, names[kind]);
    if (kind == DENORMAL_Q || kind == SPREAD)
        multiply(t.q, t.q_size, kind == SPREAD ? 60.0F : 1e-39F);
    if (kind == DENORMAL_K)
        multiply(t.k, t.k_size, 1e-39F);
    if (kind == DENORMAL_V)
        multiply(t.v, t.v_size, 1e-39F);
    narrow(&t);
    double seconds = seconds_of(s, &t);
    clear_flags();
    subject_run(s, &t);
    CHECK(!met_denormal());
    tensors_free(&t);
    return seconds;
}

/* Denormal elements, weights that are almost 0 and masked keys cost no more than others. Where
 * denormals are computed with, Q, K and V made of them take 30 to 100 times as long. */
static void test_denormals(const char *family, const char *dtype) {
    static const char *const shapes[] = {"b1:h2:sq4:sk600:d64:causal", "b1:h2:s150:d64:window70,9"};
    for (int i = 0; i < 2; i++) {
        subject s = {.host = &host, .family = family};
        char text[96];
        (void)snprintf(text, sizeof text, "fwd:%s:%s", dtype, shapes[i]);
        double normal = seconds_with(&s, text, NORMAL);
        for (int kind = NORMAL + 1; kind < KINDS; kind++)
            CHECK_NEAR(seconds_with(&s, text, kind) / normal, 1.0, 5.0);
        subject_free(&s);
    }
}

/*-*** The default beside others *********************************/

static double seconds_default(const char *family, const char *problem) {
    subject s = {.host = &host, .family = family};
    double seconds = seconds_with(&s, problem, NORMAL);
    subject_free(&s);
    return seconds;
}

/* The fused kernel is no slower than the plain one, in 16 bits too, where conversions could eat
 * it up; nor is the one for decoding slower than the one for many rows. */
static void test_relations(void) {
    static const char *const dtypes[] = {"f32", "f16"};
    double many[2];
    for (int i = 0; i < 2; i++) {
        char text[96];
        (void)snprintf(text, sizeof text, "fwd:%s:b1:h2:s300:d64:causal", dtypes[i]);
        many[i] = seconds_default("cpu/simd_forward", text);
        double plain = seconds_default(NULL, text);
        CHECK(many[i] * 3 < plain);
        CHECK(many[i] < 3 * many[0]);
        (void)snprintf(text, sizeof text, "fwd:%s:b1:hq8:hkv2:sq1:sk2000:d64", dtypes[i]);
        CHECK(seconds_default("cpu/decode_forward", text) <
              seconds_default("cpu/simd_forward", text));
    }
}

/*-*** Tasks *****************************************************/

/* Pairs of a row and a key that it sees, in one task. */
static double work_of(const attn_step *step, const attn_forward_args *a, int64_t task,
                      int64_t tiles) {
    int64_t heads = step->packed ? a->group : 1;
    int64_t begin = task % tiles * step->rows, end = begin + step->rows;
    double pairs = 0;
    for (int64_t row = begin; row < end && row < heads * a->seq_q; row++) {
        int64_t first, past;
        attn_visible_keys(a, row / heads, &first, &past);
        pairs += (double)(past - first);
    }
    return pairs;
}

/* The time at which the last of `threads` has ended, who take the step's tasks in its order, over
 * that of a perfect share. NaN if they have less than four each: then no order helps. */
static double makespan(const attn_step *step, const attn_launch *launch, const attn_problem *p,
                       int threads) {
    attn_forward_tensors none = ATTN_FORWARD_TENSORS_INIT;
    attn_forward_args args;
    int64_t tiles = attn_step_tiles(step, p), tasks = attn_step_tasks(step, launch, p);
    double ends[128] = {0}, whole = 0, last = 0;
    attn_problem_args(p, &none, &args);
    if (tasks < (int64_t)4 * threads)
        return NAN;
    for (int64_t n = 0; n < tasks; n++) {
        double work = work_of(step, &args, attn_step_task_at(step, n, tiles, tasks), tiles);
        int next = 0;
        for (int i = 1; i < threads; i++)
            next = ends[i] < ends[next] ? i : next;
        ends[next] += work;
        whole += work;
        last = fmax(last, ends[next]);
    }
    return last * threads / whole;
}

/* With the family's default on a CPU with that many threads; NaN: it does not take the problem. */
static double makespan_default(const char *family, const char *problem, int threads) {
    attn_problem p;
    attn_device_info device;
    attn_variant variant = {0};
    attn_launch launch;
    double longest = NAN;
    CHECK_OK(attn_problem_parse(problem, &p, err.line, sizeof err.line), err.line);
    CHECK_OK(attn_gen_profile(host.gen, "cpu:avx512_amx", &device, &err), err.line);
    CHECK(attn_device_prop_set(&device, "threads", threads));
    attn_status st = attn_gen_render(host.gen, family, &p, &device, NULL, 0, &variant, &err);
    if (st == ATTN_ERR_NOT_ACCEPTED)
        return NAN;
    if (CHECK_OK(st, err.line) &&
        CHECK_OK(attn_launch_parse(variant.launch, &launch, &err), err.line)) {
        for (int i = 0; i < launch.steps && !attn_limits_broken(&launch, &p); i++)
            if (launch.step[i].grid == ATTN_GRID_TILES)
                longest = fmax(longest, makespan(&launch.step[i], &launch, &p, threads));
    }
    attn_variant_free(&variant);
    return longest;
}

/* Under a causal mask no core idles while another has long tasks left: PyTorch's takes 1.5 to 2.7
 * times a perfect share here. */
static int test_makespan(const char *family) {
    int tried = 0;
    static const char *const problems[] = {
        "fwd:f32:b1:h5:s4096:d128:causal", "fwd:f32:b1:h32:s1024:d64:causal",
        "fwd:f32:b3:hq20:hkv5:s2048:d64:causal", "fwd:bf16:b1:h7:s4096:d128:causal"};
    static const int threads[] = {2, 12, 32, 48, 96};
    for (int i = 0; i < 4 * 5; i++) {
        const char *problem = problems[i / 5];
        double ratio = makespan_default(family, problem, threads[i % 5]);
        CHECK_CASE("%s, %s, %d threads", family, problem, threads[i % 5]);
        CHECK(isnan(ratio) || (ratio > 0.999 && ratio < 1.1));
        tried += !isnan(ratio);
    }
    return tried;
}

int main(void) {
    int tried = 0;
    const char *name;
    if (!CHECK_OK(cpu_host_open(NULL, 1, &host, &err), err.line))
        return check_done();
    for (size_t at = 0; (name = subject_next(&host, &at));) {
        tried += test_makespan(name);
        if (subject_takes(&host, name, "f32"))
            test_denormals(name, "f32");
        else if (subject_takes(&host, name, "bf16"))
            test_denormals(name, "bf16");
    }
    CHECK(tried >= 30);
    test_relations();
    cpu_host_close(&host);
    return check_done();
}
