/* test_cpu_hostile.c: compiling and loading in unfriendly surroundings: programs may not run from
 * the temporary folder, /proc is missing, the host ignores SIGCHLD, OpenMP runtimes come and go,
 * binaries are for another CPU. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"
#include "compile.h"
#include "object.h"
#include "plain_build.h"

static char folder[] = "/tmp/test-cpu-hostile-XXXXXX";
/* Runs the body in a child; what it returns, 77 if it cannot be tried here, -1 if it crashed. */
static int in_child(int (*body)(const attn_binary *), const attn_binary *binary) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        _exit(body(binary));
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A mount that only this process sees. */
static bool mount_here(const char *path, unsigned long flags) {
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", path, "tmpfs", flags, "size=1m") == 0;
}

static int without_proc(const attn_binary *binary) {
    attn_error err = ATTN_ERROR_INIT;
    attn_object object;
    if (!mount_here("/proc", 0))
        return CHECK_SKIPPED;
    if (attn_object_open(binary, &object, &err) != ATTN_OK) /* from a file in TMPDIR */
        return 1;
    bool found = attn_object_function(&object, "KERNEL") != NULL;
    attn_object_close(&object);
    return found ? 0 : 2;
}

static int without_programs(const attn_binary *binary) {
    attn_error err = ATTN_ERROR_INIT;
    attn_object object;
    if (!mount_here(folder, MS_NOEXEC))
        return CHECK_SKIPPED;
    attn_status status =
        attn_object_open_way(ATTN_OBJECT_FILE, folder, binary->data,
                             attn_binary_object_size(binary->data, binary->size), &object, &err);
    if (status != ATTN_ERR_LOAD || !strstr(err.line, "noexec") || !strstr(err.line, folder))
        return 1;
    return attn_object_open(binary, &object, &err) == ATTN_OK ? 0 : 2; /* from memory */
}

static void test_mounts(void) {
    attn_binary binary;
    if (!compile(plain, "-O1", &binary))
        return;
    int (*const bodies[])(const attn_binary *) = {without_proc, without_programs};
    for (int i = 0; i < 2; i++) {
        int result = in_child(bodies[i], &binary);
        if (result == CHECK_SKIPPED)
            printf("not tried: mounting is not allowed here\n");
        else
            CHECK_EQ_INT(result, 0);
    }
    attn_binary_free(&binary);
}

static void test_ignored_sigchld(void) {
    attn_binary binary;
    attn_error err = ATTN_ERROR_INIT;
    attn_build bad = make_build("int x = nonsense;", "-O1", "cpu:generic");
    signal(SIGCHLD, SIG_IGN);
    if (compile(plain, "-O1", &binary))
        attn_binary_free(&binary);
    CHECK_STATUS(cpu->compile(&bad, &binary, &err), ATTN_ERR_COMPILE, err.line);
    CHECK_HAS(err.line, "nonsense");
    attn_binary_free(&binary);
    signal(SIGCHLD, SIG_DFL);
}

static int descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

/* Unloading an OpenMP kernel must not take its runtime away from under the runtime's threads. */
static int openmp_cycles(const attn_binary *binary) {
    const attn_launch launch = {.steps = 1, .splits = 1, .step = {{.symbol = "KERNEL", .rows = 1}}};
    const attn_problem p = {.batch = 1,
                            .heads_q = 1,
                            .heads_kv = 1,
                            .seq_q = 1,
                            .seq_kv = 1,
                            .head_dim = 1,
                            .head_dim_v = 1};
    attn_backend_device *device;
    attn_error err = ATTN_ERROR_INIT;
    int before = -1;
    setenv("OMP_WAIT_POLICY", "active", 1); /* its threads are in its code, not asleep */
    if (cpu->open(0, NULL, &device, &err) != ATTN_OK)
        return 1;
    for (int i = 0; i < 50; i++) {
        attn_kernel *kernel;
        int sum = 0;
        attn_call call = {.problem = &p, .args = {.o = &sum, .workers = 1}};
        if (cpu->load(device, binary, "cpu:generic", &launch, &kernel, &err) != ATTN_OK)
            return 2;
        if (cpu->run(kernel, &call, NULL, &err) != ATTN_OK || sum != 4950)
            return 3;
        cpu->unload(kernel);
        if (i == 0)
            before = descriptors();
    }
    cpu->close(device);
    return descriptors() == before ? 0 : 4;
}

static void test_openmp(void) {
    static const char source[] = "typedef struct { const void *q, *k, *v; int *o; } args;\n"
                                 "int KERNEL(const args *a, int task, int worker) {\n"
                                 "    int sum = task + 0 * worker;\n"
                                 "#pragma omp parallel for num_threads(2) reduction(+:sum)\n"
                                 "    for (int i = 0; i < 100; i++) sum += i;\n"
                                 "    *a->o = sum;\n"
                                 "    return 0;\n"
                                 "}\n";
    attn_build build = make_build(source, "compiler=gcc -O1 -fopenmp", "cpu:generic");
    attn_binary binary;
    attn_error err = ATTN_ERROR_INIT;
    attn_status status = cpu->compile(&build, &binary, &err);
    if (status == ATTN_ERR_NO_TOOL)
        printf("not tried: %s\n", err.line);
    else if (CHECK_OK(status, err.line))
        CHECK_EQ_INT(in_child(openmp_cycles, &binary), 0);
    attn_binary_free(&binary);
}

/* A kernel for the other kind of CPU compiles where there is a cross compiler, and never runs. */
static void test_other_cpu(void) {
#if defined(__aarch64__)
    const char *target = "cpu:x86_64+avx2+fma+f16c", *options = "-O2 -mavx2 -mfma";
#else
    const char *target = "cpu:aarch64+neon", *options = "-O2";
#endif
    attn_build build = make_build(plain, options, target);
    attn_binary binary;
    attn_error err = ATTN_ERROR_INIT;
    attn_backend_device *device;
    attn_kernel *kernel;
    attn_launch launch = {.steps = 1, .splits = 1, .step = {{.symbol = "KERNEL", .rows = 1}}};
    attn_status status = cpu->compile(&build, &binary, &err);
    if (status == ATTN_ERR_NO_TOOL) {
        printf("not tried: %s\n", err.line);
    } else if (CHECK_OK(status, err.line) &&
               CHECK_OK(cpu->open(0, NULL, &device, &err), err.line)) {
        CHECK_STATUS(cpu->load(device, &binary, target, &launch, &kernel, &err), ATTN_ERR_LOAD,
                     err.line);
        CHECK_HAS(err.line, "cannot be used here");
        CHECK_STATUS(cpu->load(device, &binary, "cpu:generic", &launch, &kernel, &err),
                     ATTN_ERR_LOAD, err.line);
        cpu->close(device);
    }
    attn_binary_free(&binary);
}

int main(void) {
    if (!CHECK(mkdtemp(folder) != NULL))
        return check_done();
    setenv("TMPDIR", folder, 1);
    test_mounts();
    test_ignored_sigchld();
    test_openmp();
    test_other_cpu();
    CHECK_EQ_INT(rmdir(folder), 0);
    return check_done();
}
