/* test_cuda_compile.c: every CUDA family for every architecture, without a GPU: the default and
 * DRAWN variants of each, built by NVRTC or nvJitLink.
 *
 *     test_cuda_compile [-v] [FAMILY|all [DRAWN]]     -v: registers, spills and bytes of each;
 *                                                     DRAWN for each architecture, 20 if not given
 *
 * Fails where the compilers are missing: a build that cannot check its kernels says so. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"
#include "gen.h"

static const char *const PROBLEMS[] = {
    "fwd:f16:b1:h4:s512:d128:causal:lse",  "fwd:bf16:b1:h4:s512:d64",
    "fwd:f16:b1:h4:s512:d256:window64,0",  "fwd:bf16:b1:h4:s512:d40:dv80:causal_tl",
    "fwd:f16:b1:h4:s512:d96:causal:a1",    "fwd:f32:b1:h4:s512:d64:causal:lse",
    "fwd:bf16:b1:h4:s512:d128:lse",        "fwd:f32:b1:h4:s512:d128:dv80:window64,0:a1",
    "fwd:tf32:b1:h4:s512:d128:causal:lse",
};
enum { N_PROBLEMS = sizeof PROBLEMS / sizeof PROBLEMS[0], JOBS_MAX = 8192 };

struct job {
    attn_variant variant;
    const char *problem;
    char target[48];
    attn_status status;
    attn_error err;
    int32_t registers, spills;
    size_t bytes;
};

static struct job jobs[JOBS_MAX];
static size_t job_count;
static atomic_size_t next_job;

static uint64_t state = 1;

static size_t draw(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

static void add(attn_space *space, const attn_config *config, const char *problem,
                const char *target) {
    attn_error err = ATTN_ERROR_INIT;
    if (!CHECK(job_count < JOBS_MAX))
        return;
    struct job *job = &jobs[job_count];
    memset(job, 0, sizeof *job);
    if (!CHECK_OK(attn_space_render(space, config, &job->variant, &err), err.line))
        return;
    job->problem = problem;
    (void)snprintf(job->target, sizeof job->target, "%s", target);
    job_count++;
}

static void add_default(attn_space *space, const char *problem, const char *target) {
    attn_error err = ATTN_ERROR_INIT;
    attn_config config;
    if (CHECK_OK(attn_space_default(space, &config, &err), err.line))
        add(space, &config, problem, target);
}

static void add_drawn(attn_space *space, size_t count, const char *problem, const char *target) {
    attn_error err = ATTN_ERROR_INIT;
    attn_config_list list = {0};
    if (!CHECK_OK(attn_space_list(space, false, 1000000, &list, &err), err.line))
        return;
    for (size_t i = 0; i < count && list.count; i++)
        add(space, &list.config[draw(list.count)], problem, target);
    attn_config_list_free(&list);
}

/* The default of each class, and `drawn` others spread over the classes. */
static void add_family(attn_gen *gen, const char *family, const attn_device_info *device,
                       size_t drawn) {
    attn_space *space[N_PROBLEMS] = {0};
    size_t classes = 0, nth = 0;
    for (int i = 0; i < N_PROBLEMS; i++) {
        attn_error err = ATTN_ERROR_INIT;
        attn_problem p = {0};
        CHECK_OK(attn_problem_parse(PROBLEMS[i], &p, NULL, 0), PROBLEMS[i]);
        attn_status status = attn_space_open(gen, family, &p, device, &space[i], &err);
        if (status == ATTN_ERR_NOT_ACCEPTED)
            space[i] = NULL;
        else if (CHECK_OK(status, err.line))
            classes++;
    }
    for (int i = 0; i < N_PROBLEMS; i++) {
        if (!space[i])
            continue;
        add_default(space[i], PROBLEMS[i], device->arch);
        add_drawn(space[i], drawn / classes + (nth++ < drawn % classes), PROBLEMS[i], device->arch);
        attn_space_close(space[i]);
    }
}

static void *compile_jobs(void *unused) {
    for (size_t i; (i = atomic_fetch_add(&next_job, 1)) < job_count;) {
        struct job *job = &jobs[i];
        attn_binary binary = ATTN_BINARY_INIT;
        attn_build build = {.language = job->variant.language,
                            .source = job->variant.source,
                            .options = job->variant.options,
                            .target = job->target};
        attn_hash_print(job->variant.hash, build.key);
        job->status = attn_backend_cuda.compile(&build, &binary, &job->err);
        job->registers = binary.registers;
        job->spills = binary.spills;
        job->bytes = binary.size;
        attn_binary_free(&binary);
    }
    return unused;
}

static void compile_all(void) {
    pthread_t threads[16];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cores < 1 ? 1 : cores > 16 ? 16 : (size_t)cores;
    for (size_t i = 0; i < count; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, compile_jobs, NULL), 0);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ_INT(pthread_join(threads[i], NULL), 0);
}

static void report(bool verbose) {
    for (size_t i = 0; i < job_count; i++) {
        struct job *job = &jobs[i];
        CHECK_CASE("%s %s %s: %s", job->target, job->variant.family, job->problem,
                   job->variant.config);
        CHECK_OK(job->status, job->err.line);
        if (verbose)
            printf("%-8s %4d registers %5d spilled %7zu bytes  %s %s %s\n", job->target,
                   job->registers, job->spills, job->bytes, job->variant.family, job->problem,
                   job->variant.config);
        attn_variant_free(&job->variant);
    }
    check_case[0] = '\0';
}

int main(int argc, char **argv) {
    attn_gen *gen;
    attn_error err = ATTN_ERROR_INIT;
    bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    const char *only = argc > 1 + verbose ? argv[1 + verbose] : NULL;
    size_t drawn = argc > 2 + verbose ? (size_t)atol(argv[2 + verbose]) : 20;
    if (!CHECK_OK(attn_gen_open(getenv("ATTNTUNE_PATH"), &gen, &err), err.line))
        return check_done();
    for (size_t d = 0; attn_gen_profile_name(gen, d); d++) {
        attn_device_info device;
        CHECK_OK(attn_gen_profile(gen, attn_gen_profile_name(gen, d), &device, &err), err.line);
        for (size_t f = 0; f < attn_gen_family_count(gen); f++) {
            attn_family_info family;
            const char *name = attn_gen_family_name(gen, f);
            if (CHECK_OK(attn_gen_family(gen, name, &family, &err), err.line) &&
                strcmp(family.backend, "cuda") == 0 && strcmp(device.backend, "cuda") == 0 &&
                (!only || strcmp(only, "all") == 0 || strcmp(only, name) == 0))
                add_family(gen, name, &device, drawn);
        }
    }
    CHECK(job_count > 0);
    compile_all();
    report(verbose);
    attn_gen_close(gen);
    return check_done();
}
