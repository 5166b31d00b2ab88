/* test_cpu_run.c: what running a kernel may and may not do: no allocation, no system call but the
 * pool's futex, no change of the floating-point mode, right in the child of a fork. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static const attn_backend *const cpu = &attn_backend_cpu;

enum { HEADS = 8, ROWS = 64, DIM = 16, SIZE = HEADS * ROWS * DIM };

static attn_problem problem;
static float q[SIZE], k[SIZE], v[SIZE];

#ifndef SANITIZED
/* Counts what the program allocates; glibc's own names are behind them. */
static _Atomic long allocations;
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nmemb, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}

void *calloc(size_t nmemb, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(nmemb, size);
}

void *realloc(void *ptr, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(ptr, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(alignment, size);
}
#endif

static attn_backend_device *open_device(int32_t threads) {
    attn_device_options options = {.threads = threads};
    attn_backend_device *device;
    attn_error err = ATTN_ERROR_INIT;
    setenv("OMP_NUM_THREADS", "8", 1);
    if (!CHECK_OK(cpu->open(0, &options, &device, &err), err.line))
        exit(check_done());
    return device;
}

static attn_call make_call(const attn_backend_device *device, float *o) {
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_call call = {.problem = &problem};
    t.q = q;
    t.k = k;
    t.v = v;
    t.o = o;
    attn_forward_strides(&problem, &t);
    attn_problem_args(&problem, &t, &call.args);
    call.args.workers = cpu->workers(device);
    call.args.splits = 1;
    return call;
}

static bool run(attn_kernel *kernel, const attn_call *call, int times) {
    attn_error err = ATTN_ERROR_INIT;
    for (int i = 0; i < times; i++)
        if (cpu->run(kernel, call, NULL, &err) != ATTN_OK)
            return false;
    return true;
}

static attn_kernel *reference(attn_backend_device *device) {
    attn_kernel *kernel = NULL;
    attn_launch launch;
    attn_error err = ATTN_ERROR_INIT;
    CHECK_OK(cpu->reference(device, &launch, &kernel, &err), err.line);
    return kernel;
}

#if !defined(SANITIZED) && (defined(__x86_64__) || defined(__aarch64__))
/* From now on every system call of this process ends it, but exit_group and, if asked, futex. */
static bool forbid_system_calls(bool futex) {
    struct sock_filter rows[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, futex ? SYS_futex : SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rows / sizeof *rows, rows};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/* Exit code of a child that runs the kernel so, warmed up; 2: this kernel has no such filters. */
static int run_confined(int32_t threads) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        static float o[SIZE];
        attn_backend_device *device = open_device(threads);
        attn_kernel *kernel = reference(device);
        attn_call call = make_call(device, o);
        bool good = run(kernel, &call, 20);
        long before = atomic_load(&allocations);
        if (!forbid_system_calls(threads > 1))
            _exit(2);
        good = good && run(kernel, &call, 200) && atomic_load(&allocations) == before;
        _exit(good ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_confined(void) {
    int status = run_confined(1);
    if (status == 2) {
        printf("no seccomp filters here: system calls are not checked\n");
        return;
    }
    CHECK_EQ_INT(status, 0);
    CHECK_EQ_INT(run_confined(4), 0);
}
#else
static void test_confined(void) {}
#endif

#if defined(__x86_64__)
/* A kernel built with the flags that set FTZ and DAZ for whole processes when they are given to the
 * linker; it writes the mode it sees into O. */
static const char mode_source[] = "#include <immintrin.h>\n"
                                  "#include <stdint.h>\n"
                                  "typedef struct { const void *q, *k, *v; uint32_t *o; } args;\n"
                                  "int KERNEL(const args *a, int task, int worker) {\n"
                                  "    for (volatile int i = 0; i < 2000; i++) {}\n"
                                  "    a->o[task] = _mm_getcsr() & ~63u;\n"
                                  "    return 0;\n"
                                  "}\n";

static uint32_t mode_now(void) {
    return __builtin_ia32_stmxcsr() & ~63U;
}

static void *mode_of_thread(void *result) {
    *(uint32_t *)result = mode_now();
    return NULL;
}

static void test_mode(void) {
    attn_launch launch = {.steps = 1,
                          .splits = 1,
                          .step = {{.symbol = "KERNEL", .grid = ATTN_GRID_TILES, .rows = 1}}};
    attn_build build = {"c",
                        mode_source,
                        "-Ofast -funsafe-math-optimizations",
                        "cpu:x86_64",
                        "00000000000000000000000000000000",
                        0};
    attn_binary binary;
    attn_kernel *kernel;
    attn_error err = ATTN_ERROR_INIT;
    attn_backend_device *device = open_device(4);
    uint32_t before = mode_now(), o[HEADS * ROWS] = {0}, other = 0;
    pthread_t thread;
    if (!CHECK_OK(cpu->compile(&build, &binary, &err), err.line) ||
        !CHECK_OK(cpu->load(device, &binary, build.target, &launch, &kernel, &err), err.line))
        return;
    attn_call call = make_call(device, (float *)o);
    for (int i = 0; i < 5; i++) {
        memset(o, 0, sizeof o);
        CHECK(run(kernel, &call, 1));
        for (int task = 0; task < HEADS * ROWS; task++)
            CHECK_EQ_INT(o[task], before);
    }
    CHECK_EQ_INT(mode_now(), before);
    pthread_create(&thread, NULL, mode_of_thread, &other);
    pthread_join(thread, NULL);
    CHECK_EQ_INT(other, before);
    cpu->unload(kernel);
    cpu->close(device);
    attn_binary_free(&binary);
    CHECK_EQ_INT(mode_now(), before);
}
#else
static void test_mode(void) {}
#endif

/* Several steps: the tiles of each are its own, zero_bytes are cleared, an error is reported. */
static const char steps_source[] =
    "#include \"attn_abi.h\"\n"
    "int FIRST(const attn_forward_args *a, int task, int worker) {\n"
    "    (void)worker;\n"
    "    return a->tiles == 64 && __sync_fetch_and_add((int *)a->workspace[0] + task % 4, 1) < "
    "128\n"
    "               ? 0 : 9;\n"
    "}\n"
    "int SECOND(const attn_forward_args *a, int task, int worker) {\n"
    "    const int *count = (const int *)a->workspace[0];\n"
    "    ((float *)a->o)[task] = (float)(count[0] + count[1] + count[2] + count[3]);\n"
    "    return a->tiles == 4 && worker < a->workers ? 0 : 7;\n"
    "}\n";

static char *with_header(const char *source) {
    attn_str text = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    const char *tree = getenv("ATTN_SOURCE");
    char path[512];
    snprintf(path, sizeof path, "%s/templates/include/attn_abi.h", tree ? tree : ".");
    CHECK_OK(attn_str_read_file(&text, path, &err), err.line);
    attn_str_append(&text, strchr(source, '\n'));
    return attn_str_take(&text);
}

static void test_steps(void) {
    attn_launch launch = {
        .steps = 2,
        .splits = 1,
        .terms = 1,
        .zero_bytes = 16,
        .term = {{.bytes = 64, .per = ATTN_PER_CALL, .round = 1}},
        .step = {{.symbol = "FIRST", .rows = 1}, {.symbol = "SECOND", .rows = 16}}};
    char *source = with_header(steps_source);
    attn_build build = {"c", source, "-O2", "cpu:generic", "11111111111111111111111111111111", 0};
    attn_binary binary;
    attn_kernel *kernel;
    attn_error err = ATTN_ERROR_INIT;
    attn_backend_device *device = open_device(3);
    static float o[SIZE];
    _Alignas(256) int workspace[64] = {1000, 1000, 1000, 1000};
    if (!CHECK_OK(cpu->compile(&build, &binary, &err), err.line) ||
        !CHECK_OK(cpu->load(device, &binary, build.target, &launch, &kernel, &err), err.line))
        return;
    attn_call call = make_call(device, o);
    attn_workspace_assign(&launch, &problem, cpu->workers(device), workspace, &call.args);
    for (int i = 0; i < 50; i++) {
        memset(o, 0, sizeof o);
        CHECK_OK(cpu->run(kernel, &call, NULL, &err), err.line);
        for (int task = 0; task < HEADS * 4; task++)
            CHECK_NEAR(o[task], HEADS * ROWS, 0);
    }
    launch.zero_bytes = 0;
    cpu->unload(kernel);
    CHECK_OK(cpu->load(device, &binary, build.target, &launch, &kernel, &err), err.line);
    CHECK_STATUS(cpu->run(kernel, &call, NULL, &err), ATTN_ERR_LAUNCH, err.line);
    CHECK_HAS(err.line, "returned 9");
    cpu->unload(kernel);
    cpu->close(device);
    attn_binary_free(&binary);
    free(source);
}

static void test_time(void) {
    static float o[SIZE];
    attn_backend_device *device = open_device(2);
    attn_kernel *kernel = reference(device);
    attn_call call = make_call(device, o);
    attn_error err = ATTN_ERROR_INIT;
    double one = INFINITY, many = 0, ns = 0;
    for (int i = 0; i < 10; i++) {
        CHECK_OK(cpu->time(kernel, &call, 1, 1, &ns, &err), err.line);
        one = fmin(one, ns);
    }
    CHECK_OK(cpu->time(kernel, &call, 1, 60, &many, &err), err.line);
    CHECK(one > 1000 && many > 10 * one);
    cpu->unload(kernel);
    cpu->close(device);
}

/* The thread sanitizer cannot follow threads made in the child of a fork. */
#if defined(__SANITIZE_THREAD__)
enum { FORKS_MAY_MAKE_THREADS = false };
#else
enum { FORKS_MAY_MAKE_THREADS = true };
#endif

typedef struct shared {
    attn_kernel *kernel;
    const attn_backend_device *device;
    const float *want;
} shared;

static bool same_bits(const void *a, const void *b) {
    return memcmp(a, b, SIZE * sizeof(float)) == 0;
}

static void *run_many(void *context) {
    const shared *s = context;
    float *o = calloc(SIZE, sizeof *o);
    attn_call call = make_call(s->device, o);
    bool good = true;
    for (int i = 0; i < 10 && good; i++) {
        memset(o, 0, SIZE * sizeof *o);
        good = run(s->kernel, &call, 1) && same_bits(o, s->want);
    }
    free(o);
    return good ? context : NULL;
}

/* Many threads on one kernel, and forks after its threads exist: the same bits each time. */
static void test_threads_and_forks(void) {
    static float want[SIZE];
    attn_backend_device *device = open_device(3);
    shared s = {reference(device), device, want};
    attn_call call = make_call(device, want);
    pthread_t thread[8];
    CHECK(run(s.kernel, &call, 1));
    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, run_many, &s);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(thread[i], &result);
        CHECK(result == &s);
    }
    for (int i = 0; FORKS_MAY_MAKE_THREADS && i < 3; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            bool good = run_many(&s) != NULL;
            cpu->unload(s.kernel);
            cpu->close(device);
            _exit(good ? 0 : 1);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    cpu->unload(s.kernel);
    cpu->close(device);
}

int main(void) {
    char error[256] = "";
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h8:s64:d16:causal", &problem, error, sizeof error),
             error);
    for (int i = 0; i < SIZE; i++) {
        q[i] = (float)(i * 37 % 101) / 50 - 1;
        k[i] = (float)(i * 53 % 103) / 50 - 1;
        v[i] = (float)(i * 71 % 107) / 50 - 1;
    }
    test_confined();
    test_mode();
    test_steps();
    test_time();
    test_threads_and_forks();
    return check_done();
}
