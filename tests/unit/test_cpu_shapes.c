/* test_cpu_shapes.c: lengths and groups of heads that have been other libraries' faults, and
 * tensors so spread out that no 32-bit offset reaches their ends: each real family that takes the
 * type against the library's reference, or against itself. */
#include <sys/mman.h>

#include "check.h"
#include "core/dtype.h"
#include "cpu_subject.h"

static attn_error err = ATTN_ERROR_INIT;
static cpu_host host;

/*-*** Lengths and groups ****************************************/

/* Elements of the problem's type, where floats lie, and back. */
static void to_dtype(attn_dtype dtype, float *x, size_t n) {
    for (size_t i = 0; dtype != ATTN_F32 && i < n; i++)
        attn_dtype_from_float(dtype, &x[i], (uint16_t *)(void *)x + i, 1);
}

static void from_dtype(attn_dtype dtype, float *x, size_t n) {
    for (size_t i = n; dtype != ATTN_F32 && i-- > 0;) {
        uint16_t element;
        memcpy(&element, (uint16_t *)(void *)x + i, sizeof element);
        attn_dtype_to_float(dtype, &element, &x[i], 1);
    }
}

static tensors tensors_in(const char *text, uint64_t seed) {
    tensors t = tensors_make(text, seed);
    to_dtype(t.problem.dtype, t.q, t.q_size);
    to_dtype(t.problem.dtype, t.k, t.k_size);
    to_dtype(t.problem.dtype, t.v, t.v_size);
    return t;
}

static void compare(subject *s, subject *reference, const char *text, double tolerance) {
    tensors a = tensors_in(text, 30), b = tensors_in(text, 30);
    CHECK_CASE("%s, %s", s->family, text);
    if (!attn_limits_broken(&variant_for(s, &a.problem)->launch, &a.problem))
        subject_run(s, &a);
    else
        subject_run(reference, &a);
    subject_run(reference, &b);
    from_dtype(a.problem.dtype, a.o, a.o_size);
    from_dtype(b.problem.dtype, b.o, b.o_size);
    check_close(a.o, b.o, a.o_size, tolerance);
    for (size_t row = 0; row < a.rows; row++)
        if (a.lse[row] != b.lse[row]) /* rows that see nothing: -inf */
            CHECK_NEAR(a.lse[row], b.lse[row], 1e-5);
    tensors_free(&a);
    tensors_free(&b);
}

/* One key behind a whole block, prompts that are no multiple of 8, groups that are not 8. */
static void test_lengths(const char *family, const char *dtype) {
    static const int lengths[] = {1, 2, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129};
    static const int groups[] = {1, 2, 3, 5, 6, 7, 8, 12};
    subject s = {.host = &host, .family = family}, reference = {.host = &host};
    for (int i = 0; i < 12 * 8; i++) {
        char text[128];
        int rows = lengths[i % 12], keys = i % 3 ? rows : lengths[(i / 12 + 5 * i) % 12];
        int group = groups[i / 12];
        (void)snprintf(text, sizeof text, "fwd:%s:b1:hq%d:hkv2:sq%d:sk%d:d40%s:lse", dtype,
                       2 * group, rows, keys, i % 2 ? ":causal" : "");
        compare(&s, &reference, text, strcmp(dtype, "f32") == 0 ? 2e-6 : 5e-3);
    }
    subject_free(&s);
    subject_free(&reference);
}

/*-*** Addresses *************************************************/

/* Elements between rows, heads and batches: the last of a tensor is some 2^36 from the first. */
static const int64_t FAR[3] = {(int64_t)1 << 35, (int64_t)1 << 34, (int64_t)1 << 27};

/* Room for a tensor in those strides, of which only the pages of its rows will be there. */
static char *far_room(size_t element, size_t *size) {
    *size = element << 36;
    void *p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        check_skip("no address space for tensors of 2^36 elements");
    (void)madvise(p, *size, MADV_NOHUGEPAGE);
    return p;
}

typedef struct side {
    char *near, *far;
    int64_t heads, rows, dim;
    size_t size; /* of `far` */
} side;

/* Copies rows between the contiguous tensor and the one that is spread out. */
static void move(const side *x, size_t element, int64_t batches, bool out) {
    size_t bytes = (size_t)x->dim * element;
    for (int64_t i = 0; i < batches * x->heads * x->rows; i++) {
        int64_t head = i / x->rows;
        char *near = x->near + (size_t)i * bytes;
        char *far = x->far + (size_t)(head / x->heads * FAR[0] + head % x->heads * FAR[1] +
                                      i % x->rows * FAR[2]) *
                                 element;
        memcpy(out ? far : near, out ? near : far, bytes);
    }
}

/* Runs a variant on tensors in the strides of `f`. */
static void run_on(cpu_variant *v, const attn_problem *p, const attn_forward_tensors *f) {
    attn_call call = {.problem = p};
    int32_t workers = attn_backend_cpu.workers(host.device);
    void *ws = aligned_alloc(256, (attn_workspace_bytes(&v->launch, p, workers) + 256) / 256 * 256);
    if (!CHECK(ws != NULL))
        exit(check_done());
    CHECK_OK(attn_tensors_check(p, f, &err), err.line);
    attn_problem_args(p, f, &call.args);
    attn_workspace_assign(&v->launch, p, workers, ws, &call.args);
    CHECK_OK(attn_backend_cpu.run(v->kernel, &call, NULL, &err), err.line);
    free(ws);
}

/* NULL: the library's reference. */
static attn_status make(const char *family, const attn_problem *p, const char *config,
                        cpu_variant *v) {
    if (family)
        return cpu_variant_make(&host, family, p, config, v, &err);
    memset(v, 0, sizeof *v);
    v->backend = &attn_backend_cpu;
    return attn_backend_cpu.reference(host.device, &v->launch, &v->kernel, &err);
}

/* The same bits as where the tensors are contiguous. */
static void test_far(const char *family, const char *dtype, const char *config) {
    char text[128];
    cpu_variant v;
    (void)snprintf(text, sizeof text, "fwd:%s:b2:hq2:hkv2:sq%d:sk70:d24:causal", dtype,
                   family && strcmp(family, "cpu/decode_forward") == 0 ? 5 : 60);
    CHECK_CASE("%s %s, %s", family ? family : "reference", config, text);
    tensors t = tensors_in(text, 40);
    const attn_problem *p = &t.problem;
    attn_forward_tensors f = ATTN_FORWARD_TENSORS_INIT;
    if (!CHECK_OK(make(family, p, config, &v), err.line))
        return;
    size_t element = attn_dtype_size(p->dtype);
    attn_forward_strides(p, &f);
    f.q = t.q, f.k = t.k, f.v = t.v, f.o = t.o;
    run_on(&v, p, &f);

    float *got = numbers(t.o_size, 1);
    side sides[] = {{(char *)t.q, NULL, p->heads_q, p->seq_q, p->head_dim, 0},
                    {(char *)t.k, NULL, p->heads_kv, p->seq_kv, p->head_dim, 0},
                    {(char *)t.v, NULL, p->heads_kv, p->seq_kv, p->head_dim_v, 0},
                    {(char *)got, NULL, p->heads_q, p->seq_q, p->head_dim_v, 0}};
    for (int i = 0; i < 4; i++) {
        sides[i].far = far_room(element, &sides[i].size);
        move(&sides[i], element, p->batch, true);
    }
    f.q = sides[0].far, f.k = sides[1].far, f.v = sides[2].far, f.o = sides[3].far;
    for (int i = 0; i < 3; i++)
        f.q_stride[i] = f.k_stride[i] = f.v_stride[i] = f.o_stride[i] = FAR[i];
    run_on(&v, p, &f);
    move(&sides[3], element, p->batch, false);
    CHECK(memcmp(got, t.o, t.o_size * element) == 0);
    for (int i = 0; i < 4; i++)
        (void)munmap(sides[i].far, sides[i].size);
    cpu_variant_free(&v);
    free(got);
    tensors_free(&t);
}

/* What the kernel does with addresses depends on these. */
static const char *other_config(const char *family) {
    static const char *const rows[][2] = {{"cpu/simd_forward", "PACK_KV=1 PACK_GQA=0"},
                                          {"cpu/loop_forward", "PAD=1"}};
    for (int i = 0; i < 2; i++)
        if (strcmp(family, rows[i][0]) == 0)
            return rows[i][1];
    return NULL;
}

int main(void) {
    const char *name;
    if (!CHECK_OK(cpu_host_open(NULL, 2, &host, &err), err.line))
        return check_done();
    test_far(NULL, "f32", "");
    for (size_t at = 0; (name = subject_next(&host, &at));) {
        const char *dtype = subject_takes(&host, name, "f32") ? "f32" : "bf16";
        if (!subject_takes(&host, name, dtype))
            continue;
        test_lengths(name, dtype);
        test_far(name, dtype, "");
        if (other_config(name))
            test_far(name, dtype, other_config(name));
    }
    cpu_host_close(&host);
    return check_done();
}
