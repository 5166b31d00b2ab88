/* test_runtime.c: the library on the CPU: contexts, attn_run, plans, choices and their failures. */
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "context.h"
#include "naive.h"

static attn_problem parse(const char *text) {
    attn_problem p = {0};
    char error[256] = "";
    CHECK_OK(attn_problem_parse(text, &p, error, sizeof error), error);
    return p;
}

static attn_context *open_with(attn_effort effort) {
    attn_context *ctx = NULL;
    attn_options options = ATTN_OPTIONS_INIT;
    options.effort = effort;
    CHECK_OK(attn_open(&options, &ctx), attn_last_error(NULL));
    return ctx;
}

static void *workspace(size_t bytes) {
    return bytes ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
}

/* Runs one problem on fresh random tensors and returns its error. */
static double run(attn_context *ctx, const char *text, attn_status want) {
    attn_problem p = parse(text);
    naive_tensors n = {.t = ATTN_FORWARD_TENSORS_INIT};
    double error = INFINITY;
    attn_forward_strides(&p, &n.t);
    size_t bytes = attn_workspace_size(ctx, &p, ATTN_DEVICE_CPU);
    void *ws = workspace(bytes);
    if (CHECK(naive_fill(&p, &n))) {
        attn_status status = attn_run(ctx, &p, ATTN_DEVICE_CPU, &n.t, ws, bytes, NULL);
        CHECK_STATUS(status, want, attn_last_error(ctx));
        error = status == ATTN_OK ? naive_error(&p, &n) : INFINITY;
    }
    free(ws);
    naive_free(&n);
    return error;
}

static void test_run(attn_context *ctx) {
    static const char *const problems[] = {
        "fwd:f32:b1:h4:s128:d64:causal",
        "fwd:f32:b2:hq6:hkv2:sq33:sk70:d40:causal:lse",
        "fwd:f32:b1:hq4:hkv2:sq70:sk33:d64:causal:lse", /* rows that see no key */
        "fwd:f32:b1:h2:sq7:sk129:d128:window16,3:lse:bshd",
        "fwd:f32:b1:h2:s50:d33:dv17:causal_tl:a1",
        "fwd:f32:b1:h3:s20:d16:qkv",
        "fwd:f32:b1:h2:sq5:sk0:d64:lse", /* no keys: O = 0 */
        "fwd:f32:b0:h0:s0:d64:lse",
        "fwd:f32:b1:h2:sq0:sk5:d64",
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        CHECK_CASE("%s", problems[i]);
        double error = run(ctx, problems[i], ATTN_OK);
        CHECK_NEAR(error, 0, 2e-5);
    }
    check_case[0] = '\0';
}

static void test_faults(attn_context *ctx) {
    attn_problem p = parse("fwd:f32:b1:h2:s16:d64");
    naive_tensors n = {.t = ATTN_FORWARD_TENSORS_INIT};
    attn_choice choice = ATTN_CHOICE_INIT;
    attn_forward_strides(&p, &n.t);
    if (!CHECK(naive_fill(&p, &n)))
        return;
    size_t bytes = attn_workspace_size(ctx, &p, ATTN_DEVICE_CPU);
    char *ws = workspace(bytes + 256);
    CHECK_STATUS(attn_run(ctx, &p, ATTN_DEVICE_CUDA(99), &n.t, ws, bytes, NULL), ATTN_ERR_NO_DEVICE,
                 attn_last_error(ctx));
    if (bytes) {
        CHECK_STATUS(attn_run(ctx, &p, ATTN_DEVICE_CPU, &n.t, NULL, 0, NULL), ATTN_ERR_WORKSPACE,
                     attn_last_error(ctx));
        CHECK_STATUS(attn_run(ctx, &p, ATTN_DEVICE_CPU, &n.t, ws, bytes - 1, NULL),
                     ATTN_ERR_WORKSPACE, attn_last_error(ctx));
        CHECK_STATUS(attn_run(ctx, &p, ATTN_DEVICE_CPU, &n.t, ws + 1, bytes, NULL),
                     ATTN_ERR_WORKSPACE, attn_last_error(ctx));
    }
    n.t.k_stride[2] = 65;
    CHECK_STATUS(attn_run(ctx, &p, ATTN_DEVICE_CPU, &n.t, ws, bytes, NULL), ATTN_ERR_ALIGNMENT,
                 attn_last_error(ctx));
    CHECK_HAS(attn_last_error(ctx), "a1");
    for (size_t i = 0; i < n.elements[3]; i++) /* nothing was launched */
        CHECK(isnan(n.buffer[3][i]));
    p.heads_kv = 3;
    CHECK_STATUS(attn_run(ctx, &p, ATTN_DEVICE_CPU, &n.t, ws, bytes, NULL), ATTN_ERR_INVALID,
                 attn_last_error(ctx));
    CHECK_EQ_INT(attn_workspace_size(ctx, &p, ATTN_DEVICE_CPU), 0);
    choice.size = 1;
    p.heads_kv = 2;
    CHECK_STATUS(attn_choice_get(ctx, &p, ATTN_DEVICE_CPU, &choice), ATTN_ERR_INVALID,
                 attn_last_error(ctx));
    n.t.k_stride[2] = 64;
    CHECK_STATUS(attn_run(ctx, &p, ATTN_DEVICE_CPU, &n.t, ws, bytes, ws), ATTN_ERR_INVALID,
                 attn_last_error(ctx));
    CHECK_HAS(attn_last_error(ctx), "no streams");
    n.t.o = (void *)(uintptr_t)n.t.q;
    CHECK_STATUS(attn_run(ctx, &p, ATTN_DEVICE_CPU, &n.t, ws, bytes, NULL), ATTN_ERR_INVALID,
                 attn_last_error(ctx));
    CHECK_HAS(attn_last_error(ctx), "tensors o and q overlap");
    free(ws);
    naive_free(&n);
}

/* What must not be NULL is asked for. */
static void test_null(attn_context *ctx) {
    attn_problem p = parse("fwd:f32:b1:h2:s16:d64");
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_choice choice = ATTN_CHOICE_INIT;
    attn_device cpu = ATTN_DEVICE_CPU;
    attn_plan *plan;
    CHECK_STATUS(attn_run(ctx, NULL, cpu, &t, NULL, 0, NULL), ATTN_ERR_INVALID, "");
    CHECK_HAS(attn_last_error(ctx), "the problem is NULL");
    CHECK_STATUS(attn_run(ctx, &p, cpu, NULL, NULL, 0, NULL), ATTN_ERR_INVALID, "");
    CHECK_HAS(attn_last_error(ctx), "the tensors are NULL");
    CHECK_STATUS(attn_choice_get(ctx, &p, cpu, NULL), ATTN_ERR_INVALID, "");
    CHECK_HAS(attn_last_error(ctx), "the choice is NULL");
    CHECK_STATUS(attn_choice_get(NULL, &p, cpu, &choice), ATTN_ERR_INVALID, "");
    CHECK_HAS(attn_last_error(NULL), "the context is NULL");
    CHECK_EQ_INT(attn_workspace_size(NULL, &p, cpu), 0);
    CHECK_HAS(attn_last_error(NULL), "the context is NULL");
    CHECK_STATUS(attn_plan_create(ctx, &p, cpu, ATTN_CACHED, NULL), ATTN_ERR_INVALID, "");
    CHECK_STATUS(attn_plan_create(NULL, &p, cpu, ATTN_CACHED, &plan), ATTN_ERR_INVALID, "");
    CHECK_STATUS(attn_forward(NULL, &t, NULL, 0, NULL), ATTN_ERR_INVALID, "");
    CHECK_STATUS(attn_open(NULL, NULL), ATTN_ERR_INVALID, "");
    CHECK_EQ_INT(attn_device_count(NULL), 0);
    CHECK_STATUS(attn_device_get(NULL, 0, NULL, NULL, NULL), ATTN_ERR_INVALID, "");
}

static void test_options(void) {
    attn_context *ctx = NULL;
    attn_options options = ATTN_OPTIONS_INIT;
    options.size = 3;
    CHECK_STATUS(attn_open(&options, &ctx), ATTN_ERR_INVALID, attn_last_error(NULL));
    CHECK(ctx == NULL);
    CHECK_HAS(attn_last_error(NULL), "ATTN_OPTIONS_INIT");
    options = (attn_options)ATTN_OPTIONS_INIT;
    options.effort = ATTN_MEASURE;
    options.db_path = "/nowhere/x.db";
    CHECK_STATUS(attn_open(&options, &ctx), ATTN_ERR_INVALID, attn_last_error(NULL));
    options.effort = ATTN_CACHED;
    CHECK_OK(attn_open(&options, &ctx), attn_last_error(NULL)); /* no database: goes on without */
    CHECK_HAS(attn_last_error(ctx), "database /nowhere/x.db: ");
    attn_close(ctx);
    options.family_path = "/nowhere";
    CHECK_OK(attn_open(&options, &ctx), attn_last_error(NULL));
    CHECK_HAS(attn_last_error(ctx), "names '/nowhere', which is no folder");
    attn_close(ctx);
    attn_close(NULL);
    attn_plan_destroy(NULL);
}

static void test_devices(attn_context *ctx) {
    const char *name = NULL, *description = NULL;
    attn_device device;
    if (!CHECK(attn_device_count(ctx) >= 1))
        return;
    CHECK_OK(attn_device_get(ctx, 0, &device, &name, &description), attn_last_error(ctx));
    CHECK_EQ_INT(device.backend, ATTN_BACKEND_CPU);
    CHECK_STR(name, "cpu");
    CHECK_HAS(description, "cpu:");
    CHECK_STATUS(attn_device_get(ctx, -1, NULL, NULL, NULL), ATTN_ERR_NO_DEVICE,
                 attn_last_error(ctx));
}

/* CACHED with nothing stored: the reference runs, a plan refuses, nothing is compiled. */
static void test_cached(void) {
    attn_context *ctx = open_with(ATTN_CACHED);
    attn_problem p = parse("fwd:f32:b1:h2:s40:d24:causal");
    attn_choice choice = ATTN_CHOICE_INIT;
    attn_plan *plan;
    CHECK_OK(attn_choice_get(ctx, &p, ATTN_DEVICE_CPU, &choice), attn_last_error(ctx));
    CHECK_EQ_INT(choice.origin, ATTN_ORIGIN_REFERENCE);
    CHECK_STR(choice.family, "cpu/reference_forward");
    CHECK_NEAR(run(ctx, "fwd:f32:b1:h2:s40:d24:causal", ATTN_OK), 0, 2e-5);
    CHECK_STATUS(attn_plan_create(ctx, &p, ATTN_DEVICE_CPU, ATTN_CACHED, &plan), ATTN_ERR_NO_KERNEL,
                 attn_last_error(ctx));
    CHECK(plan == NULL);
    CHECK_OK(attn_plan_create(ctx, &p, ATTN_DEVICE_CPU, ATTN_ESTIMATE, &plan),
             attn_last_error(ctx));
    attn_plan_choice(plan, &choice);
    CHECK_EQ_INT(choice.origin, ATTN_ORIGIN_DEFAULT);
    attn_plan_destroy(plan);
    CHECK_OK(attn_choice_get(ctx, &p, ATTN_DEVICE_CPU, &choice), attn_last_error(ctx));
    CHECK_EQ_INT(choice.origin, ATTN_ORIGIN_REFERENCE); /* a published choice stays */
    attn_close(ctx);
}

/* What the default is for a long problem does not depend on a short one that came before. */
static void test_first_shape(void) {
    attn_options options = ATTN_OPTIONS_INIT;
    attn_problem p = parse("fwd:f32:b1:h1:s16:d64"), q = parse("fwd:f32:b1:h8:s1024:d64");
    attn_choice choice[2] = {ATTN_CHOICE_INIT, ATTN_CHOICE_INIT}, ignored = ATTN_CHOICE_INIT;
    options.threads = 1;
    for (int n = 0; n < 2; n++) {
        attn_context *ctx = NULL;
        CHECK_OK(attn_open(&options, &ctx), attn_last_error(NULL));
        CHECK_OK(attn_choice_get(ctx, n ? &q : &p, ATTN_DEVICE_CPU, &ignored),
                 attn_last_error(ctx));
        CHECK_OK(attn_choice_get(ctx, &q, ATTN_DEVICE_CPU, &choice[n]), attn_last_error(ctx));
        attn_close(ctx);
    }
    CHECK_EQ_INT(choice[0].origin, ATTN_ORIGIN_DEFAULT);
    CHECK_EQ_INT((int)choice[0].distance, 0);
    CHECK_STR(choice[0].family, "cpu/simd_forward");
    CHECK_STR(choice[0].configuration, choice[1].configuration);
}

static void test_plan(attn_context *ctx) {
    attn_problem p = parse("fwd:f32:b1:h2:s64:d64:causal:lse");
    attn_plan *plan;
    naive_tensors n = {.t = ATTN_FORWARD_TENSORS_INIT};
    if (!CHECK_OK(attn_plan_create(ctx, &p, ATTN_DEVICE_CPU, ATTN_ESTIMATE, &plan),
                  attn_last_error(ctx)))
        return;
    attn_forward_strides(&p, &n.t);
    n.t.scale = -0.5f;
    size_t bytes = attn_plan_workspace(plan);
    void *ws = workspace(bytes);
    if (CHECK(naive_fill(&p, &n))) {
        CHECK_OK(attn_forward(plan, &n.t, ws, bytes, NULL), attn_last_error(ctx));
        CHECK_NEAR(naive_error(&p, &n), 0, 2e-5);
        n.t.q = NULL;
        CHECK_STATUS(attn_forward(plan, &n.t, ws, bytes, NULL), ATTN_ERR_INVALID,
                     attn_last_error(ctx));
    }
    free(ws);
    naive_free(&n);
    attn_plan_destroy(plan);
    CHECK_STATUS(attn_plan_create(ctx, &p, ATTN_DEVICE_CUDA(0), ATTN_ESTIMATE, &plan),
                 attn_device_count(ctx) > 1 ? ATTN_OK : ATTN_ERR_NO_DEVICE, attn_last_error(ctx));
    attn_plan_destroy(plan);
}

/* MEASURE without the program says so. */
static void test_no_tool(void) {
    attn_context *ctx = NULL;
    attn_plan *plan;
    attn_options options = ATTN_OPTIONS_INIT;
    attn_problem p = parse("fwd:f32:b1:h2:s64:d64");
    options.tool_path = "/nowhere/attntune";
    CHECK_OK(attn_open(&options, &ctx), attn_last_error(NULL));
    CHECK_STATUS(attn_plan_create(ctx, &p, ATTN_DEVICE_CPU, ATTN_MEASURE, &plan), ATTN_ERR_NO_TOOL,
                 attn_last_error(ctx));
    CHECK_HAS(attn_last_error(ctx), "/nowhere/attntune");
    attn_close(ctx);
}

/* MEASURE from a thread that may use one core, in a context that has more: found all the same. */
static void test_measure_pinned(void) {
    attn_context *ctx = NULL;
    attn_plan *plan = NULL;
    attn_choice choice = ATTN_CHOICE_INIT;
    attn_options options = ATTN_OPTIONS_INIT;
    attn_problem p = parse("fwd:f32:b1:h1:s16:d16");
    cpu_set_t before, one;
    options.tool_path = getenv("ATTNTUNE");
    options.measure_seconds = 6;
    if (!options.tool_path || access(options.tool_path, X_OK) != 0) {
        printf("not tried: there is no program attntune\n");
        return;
    }
    CHECK_OK(attn_open(&options, &ctx), attn_last_error(NULL));
    CHECK_EQ_INT(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK_EQ_INT(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_OK(attn_plan_create(ctx, &p, ATTN_DEVICE_CPU, ATTN_MEASURE, &plan), attn_last_error(ctx));
    CHECK_EQ_INT(sched_setaffinity(0, sizeof before, &before), 0);
    if (plan) {
        attn_plan_choice(plan, &choice);
        CHECK_EQ_INT(choice.origin, ATTN_ORIGIN_USER);
    }
    attn_plan_destroy(plan);
    attn_close(ctx);
}

/* A compiler that hangs is waited for once; all classes then get the reference, and a warning. */
static void test_hanging_compiler(void) {
    static const char script[] = "#!/bin/sh\n[ \"$1\" = -v ] || exec sleep 100\n"
                                 "echo 'my cc version 1'; echo 'Target: here'\n";
    static const char *const problems[] = {"fwd:f32:b1:h2:s40:d24", "fwd:f32:b1:h2:s40:d20"};
    char path[] = "/tmp/attn-compiler-XXXXXX", *cc = getenv("CC") ? strdup(getenv("CC")) : NULL;
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, script, sizeof script - 1) == (ssize_t)(sizeof script - 1));
    CHECK_EQ_INT(fchmod(fd, 0700), 0);
    close(fd);
    setenv("CC", path, 1);
    attn_context *ctx = open_with(ATTN_ESTIMATE);
    attn_context_device(ctx, ATTN_DEVICE_CPU)->compile_seconds = 0.5;
    time_t begin = time(NULL);
    for (int i = 0; i < 2; i++) {
        attn_choice choice = ATTN_CHOICE_INIT;
        attn_problem p = parse(problems[i]);
        CHECK_OK(attn_choice_get(ctx, &p, ATTN_DEVICE_CPU, &choice), attn_last_error(ctx));
        CHECK_HAS(attn_last_error(ctx), "had not ended after 0.5 s and was stopped");
        CHECK_EQ_INT(choice.origin, ATTN_ORIGIN_REFERENCE);
        CHECK_NEAR(run(ctx, problems[i], ATTN_OK), 0, 2e-5);
    }
    CHECK(time(NULL) - begin < 50);
    attn_close(ctx);
    unlink(path);
    if (cc)
        setenv("CC", cc, 1);
    else
        unsetenv("CC");
    free(cc);
}

/* A child of a fork runs, with a class met before the fork and with one that is new. */
static void test_fork(attn_context *ctx) {
    pid_t child = fork();
    if (child == 0) {
        check_failures = 0;
        CHECK_NEAR(run(ctx, "fwd:f32:b1:h4:s128:d64:causal", ATTN_OK), 0, 2e-5);
        CHECK_NEAR(run(ctx, "fwd:f32:b1:h2:s32:d56", ATTN_OK), 0, 2e-5);
        _exit(check_failures != 0);
    }
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ_INT(status, 0);
    CHECK_NEAR(run(ctx, "fwd:f32:b1:h4:s128:d64:causal", ATTN_OK), 0, 2e-5);
}

/* ATTNTUNE_RECORD: each problem without an exact winner once. */
static void test_record(void) {
    char path[] = "/tmp/attn-record-XXXXXX", text[1024] = "";
    int fd = mkstemp(path);
    if (!CHECK(fd >= 0))
        return;
    setenv("ATTNTUNE_RECORD", path, 1);
    attn_context *ctx = open_with(ATTN_CACHED);
    for (int i = 0; i < 3; i++)
        (void)run(ctx, "fwd:f32:b1:h2:s16:d8", ATTN_OK);
    (void)run(ctx, "fwd:f32:b1:h2:s17:d8", ATTN_OK);
    attn_close(ctx);
    unsetenv("ATTNTUNE_RECORD");
    CHECK(read(fd, text, sizeof text - 1) > 0);
    CHECK_STR(text, "fwd:f32:b1:h2:s16:d8\nfwd:f32:b1:h2:s17:d8\n");
    (void)close(fd);
    (void)unlink(path);
}

/* A pipe that nobody reads is an error, not a wait without end. */
static void test_record_pipe(void) {
    char path[] = "/tmp/attn-pipe-XXXXXX";
    int fd = mkstemp(path);
    if (!CHECK(fd >= 0))
        return;
    (void)close(fd);
    (void)unlink(path);
    if (!CHECK_EQ_INT(mkfifo(path, 0600), 0))
        return;
    setenv("ATTNTUNE_RECORD", path, 1);
    attn_context *ctx = NULL;
    (void)alarm(20);
    CHECK_EQ_INT(attn_open(NULL, &ctx), ATTN_OK); /* with a warning: it is no reason not to run */
    (void)alarm(0);
    attn_close(ctx);
    unsetenv("ATTNTUNE_RECORD");
    (void)unlink(path);
}

int main(void) {
    attn_context *ctx = open_with(ATTN_ESTIMATE);
    if (!CHECK(ctx != NULL))
        return check_done();
    test_devices(ctx);
    test_run(ctx);
    test_faults(ctx);
    test_null(ctx);
    test_plan(ctx);
    test_fork(ctx);
    attn_close(ctx);
    test_options();
    test_cached();
    test_first_shape();
    test_no_tool();
    test_measure_pinned();
    test_hanging_compiler();
    test_record();
    test_record_pipe();
    return check_done();
}
