/* cpu_subject.h: kernels of the CPU as subjects of tests that choose their numbers: the library's
 * reference or a family's default, run on tensors of floats. A header, since checks are counted
 * by each source file for itself. */
#ifndef ATTN_CPU_SUBJECT_H
#define ATTN_CPU_SUBJECT_H

#include "check.h"
#include "cpu_variants.h"
#include "inputs.h"

/* One way to compute: the reference kernel, or a family, whose variants are made when needed. */
enum { CLASSES_MAX = 8 };

typedef struct subject {
    const cpu_host *host;
    const char *family; /* NULL: the reference */
    char class_text[CLASSES_MAX][ATTN_CLASS_TEXT];
    cpu_variant variant[CLASSES_MAX];
    int classes;
} subject;

/* Contiguous tensors of a problem in layout bhsd, f32; lse only if the problem has it. */
typedef struct tensors {
    attn_problem problem;
    float *q, *k, *v, *o, *lse;
    size_t q_size, k_size, v_size, o_size, rows; /* elements */
    float scale;
} tensors;

static cpu_variant *variant_for(subject *s, const attn_problem *p) {
    attn_error err = ATTN_ERROR_INIT;
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
        st = cpu_variant_make(s->host, s->family, p, "", v, &err);
    else
        st = attn_backend_cpu.reference(s->host->device, &v->launch, &v->kernel, &err);
    if (!CHECK_OK(st, err.line))
        exit(check_done());
    return v;
}

/* Frees what runs have made. */
static void subject_free(subject *s) {
    for (int i = 0; i < s->classes; i++)
        cpu_variant_free(&s->variant[i]);
    s->classes = 0;
}

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

/* Random tensors of a problem. */
static tensors tensors_make(const char *text, uint64_t seed) {
    attn_error err = ATTN_ERROR_INIT;
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

static void tensors_free(tensors *t) {
    free(t->q);
    free(t->k);
    free(t->v);
    free(t->o);
    free(t->lse);
}

static void subject_run(subject *s, tensors *t) {
    attn_error err = ATTN_ERROR_INIT;
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
    int32_t workers = attn_backend_cpu.workers(s->host->device);
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
__attribute__((unused)) static void check_close(const float *a, const float *b, size_t n,
                                                double tolerance) {
    double off = 0, whole = 0;
    for (size_t i = 0; i < n; i++) {
        off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        whole += (double)b[i] * (double)b[i];
    }
    CHECK_NEAR(sqrt(off / whole), 0, tolerance);
}

static const char *const MASKS[] = {"", ":causal", ":window9,3"};

__attribute__((unused)) static tensors tensors_masked(int mask, const char *shape, uint64_t seed) {
    char text[128];
    (void)snprintf(text, sizeof text, "fwd:f32:%s%s:lse", shape, MASKS[mask]);
    CHECK_CASE("%s", text);
    return tensors_make(text, seed);
}

/* The next of the CPU's families that is no reference; NULL behind the last. *at is 0 at first. */
__attribute__((unused)) static const char *subject_next(const cpu_host *host, size_t *at) {
    while (*at < attn_gen_family_count(host->gen)) {
        attn_error err = ATTN_ERROR_INIT;
        attn_family_info info;
        const char *name = attn_gen_family_name(host->gen, (*at)++);
        if (CHECK_OK(attn_gen_family(host->gen, name, &info, &err), err.line) &&
            strcmp(info.backend, "cpu") == 0 && !info.reference)
            return name;
    }
    return NULL;
}

/* The host's family accepts problems of this dtype. */
__attribute__((unused)) static bool subject_takes(const cpu_host *host, const char *family,
                                                  const char *dtype) {
    attn_error err = ATTN_ERROR_INIT;
    attn_problem p;
    attn_space *space = NULL;
    char text[64];
    (void)snprintf(text, sizeof text, "fwd:%s:b1:h2:sq40:sk60:d32:lse", dtype);
    CHECK_OK(attn_problem_parse(text, &p, NULL, 0), "");
    attn_status st = attn_space_open(host->gen, family, &p, &host->info, &space, &err);
    attn_space_close(space);
    return st != ATTN_ERR_NOT_ACCEPTED;
}

#endif
