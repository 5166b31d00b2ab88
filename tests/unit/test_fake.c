/* test_fake.c: each outcome of the fake backend is what it says, so that the tuner's tests, which
 * rest on it, can fail. What hangs or crashes is tried in a child. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"

enum { ROWS = 6, DIM = 8, GUARD = 8 };

static const attn_backend *const fake = &attn_backend_fake;

typedef struct result {
    attn_status compile, load, run;
    float o[ROWS * DIM + GUARD], lse[ROWS];
    double ns;
    char line[256];
} result;

static attn_problem problem;
static float inputs[3][ROWS * DIM];

static void run_calls(attn_kernel *kernel, int times, result *r, attn_error *err) {
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_call call = {.problem = &problem};
    t.q = inputs[0];
    t.k = inputs[1];
    t.v = inputs[2];
    t.o = r->o;
    t.lse = r->lse;
    attn_forward_strides(&problem, &t);
    attn_problem_args(&problem, &t, &call.args);
    for (int i = 0; i < times && r->run == ATTN_OK; i++)
        r->run = fake->run(kernel, &call, NULL, err);
    if (r->run == ATTN_OK)
        r->run = fake->time(kernel, &call, 1, 10, &r->ns, err);
}

static result try(const char *words, int times) {
    char source[256];
    result r = {0};
    attn_build build = {"c", source, "", "fake", "0123456789abcdef0123456789abcdef", 0};
    attn_binary binary = ATTN_BINARY_INIT;
    attn_error err = ATTN_ERROR_INIT;
    attn_launch launch = {.steps = 1};
    attn_backend_device *device = NULL;
    attn_kernel *kernel = NULL;
    snprintf(source, sizeof source, "#line 1\n// FAKE %s\nint x;", words);
    fake->open(0, NULL, &device, &err);
    r.compile = fake->compile(&build, &binary, &err);
    if (r.compile == ATTN_OK)
        r.load = fake->load(device, &binary, "fake", &launch, &kernel, &err);
    if (kernel)
        run_calls(kernel, times, &r, &err);
    fake->unload(kernel);
    fake->close(device);
    attn_binary_free(&binary);
    snprintf(r.line, sizeof r.line, "%.255s", err.line);
    return r;
}

/* The signal that ends a child doing it, SIGALRM if it hangs; 0 if it ends by itself. */
static int signal_of(const char *words) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(1);
        try(words, 1);
        _exit(0);
    }
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_failures(void) {
    result r = try("outcome=compile_error", 1);
    CHECK_EQ_INT(r.compile, ATTN_ERR_COMPILE);
    r = try("outcome=nonsense", 1);
    CHECK_STATUS(r.compile, ATTN_ERR_COMPILE, r.line);
    CHECK_HAS(r.line, "outcome=nonsense");
    CHECK_EQ_INT(try("outcome=load_error", 1).load, ATTN_ERR_LOAD);
    CHECK_EQ_INT(try("outcome=launch_error", 1).run, ATTN_ERR_LAUNCH);
    CHECK_EQ_INT(try("outcome=device_lost", 1).run, ATTN_ERR_DEVICE);
    CHECK_EQ_INT(signal_of("outcome=ok"), 0);
    CHECK_EQ_INT(signal_of("outcome=crash"), SIGSEGV);
    CHECK_EQ_INT(signal_of("outcome=illegal"), SIGILL);
    CHECK_EQ_INT(signal_of("outcome=compile_crash"), SIGSEGV);
    CHECK_EQ_INT(signal_of("outcome=hang"), SIGALRM);
    CHECK_EQ_INT(signal_of("outcome=compile_hang"), SIGALRM);
}

/* Elements of O in [from, to) that differ. */
static int differences(const result *a, const result *b, int from, int to) {
    int count = 0;
    for (int i = from; i < to; i++)
        count += a->o[i] != b->o[i];
    return count;
}

static void test_results(void) {
    const int size = ROWS * DIM, last = size - DIM, all = size + GUARD;
    result good = try("outcome=ok", 1), r = try("outcome=ok", 1);
    CHECK(good.o[0] != 0 && good.lse[0] != 0);
    CHECK_EQ_INT(differences(&good, &r, 0, all), 0);
    r = try("outcome=wrong", 1);
    CHECK_EQ_INT(differences(&good, &r, 0, size), ROWS);
    CHECK_EQ_INT(differences(&good, &r, size, all), 0);
    r = try("outcome=wrong_last_row", 1);
    CHECK_EQ_INT(differences(&good, &r, 0, last), 0);
    CHECK_EQ_INT(differences(&good, &r, last, size), DIM);
    r = try("outcome=wild", 1);
    CHECK_EQ_INT(differences(&good, &r, 0, size), 0);
    CHECK_EQ_INT(differences(&good, &r, size, all), 1);
    r = try("outcome=wrong_lse", 1);
    CHECK_EQ_INT(differences(&good, &r, 0, all), 0);
    CHECK(good.lse[ROWS - 1] != r.lse[ROWS - 1] && good.lse[0] == r.lse[0]);
    result odd = try("outcome=flaky", 1), even = try("outcome=flaky", 2);
    CHECK_EQ_INT(differences(&odd, &even, 0, size), 1);
}

static void test_times(void) {
    result a = try("cost_ns=2000", 1), b = try("cost_ns=2000 noise=0.05", 1);
    CHECK_NEAR(a.ns, 20000, 1e-6);
    CHECK(b.ns != 20000 && fabs(b.ns - 20000) < 6000);
    CHECK_NEAR(try("cost_ns=2000 noise=0.05", 1).ns, b.ns, 0);
    double mflop = attn_problem_flops(&problem) * 1e-6;
    CHECK_NEAR(try("cost_ns=0 ns_per_mflop=1e6", 1).ns, 1e7 * mflop, 1e-3);
}

int main(void) {
    char error[256] = "";
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h1:s6:d8:lse", &problem, error, sizeof error), error);
    for (int i = 0; i < 3 * ROWS * DIM; i++)
        inputs[i / (ROWS * DIM)][i % (ROWS * DIM)] = 0.1F * (float)(i * 37 % 23) + 0.05F;
    CHECK(attn_backend_find("fake") == fake && attn_backend_by_id(ATTN_BACKEND_FAKE) == fake);
    CHECK(attn_backend_find("cpu") == &attn_backend_cpu && attn_backend_find("cp") == NULL);
    test_failures();
    test_results();
    test_times();
    return check_done();
}
