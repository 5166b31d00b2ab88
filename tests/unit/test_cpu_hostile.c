/* test_cpu_hostile.c: compiling and loading in unfriendly surroundings: programs may not run from
 * the temporary folder, /proc is missing, the host ignores SIGCHLD, compilers that never end,
 * OpenMP runtimes that come and go, binaries for another CPU. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"
#include "compile.h"
#include "object.h"

static const attn_backend *const cpu = &attn_backend_cpu;
static char folder[] = "/tmp/test-cpu-hostile-XXXXXX";
static const char plain[] = "int KERNEL(const void *a, int task, int worker) { return 0; }";

static attn_build make_build(const char *source, const char *options, const char *target) {
    return (attn_build){"c", source, options, target, "0123456789abcdef0123456789abcdef"};
}

static bool compile(const char *source, const char *options, attn_binary *binary) {
    attn_build build = make_build(source, options, "cpu:generic");
    attn_error err = ATTN_ERROR_INIT;
    return CHECK_OK(cpu->compile(&build, binary, &err), err.line);
}

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

/* Writes a program that stands in for a compiler, and makes it the one to use. */
static void put_compiler(const char *script) {
    char path[64];
    snprintf(path, sizeof path, "%s/compiler", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    CHECK(fd >= 0 && write(fd, script, strlen(script)) == (ssize_t)strlen(script));
    close(fd);
    setenv("CC", path, 1);
}

static void remove_compiler(void) {
    char path[64];
    snprintf(path, sizeof path, "%s/compiler", folder);
    unlink(path);
    unsetenv("CC");
}

/* A compiler that fails for want of room says nothing about the source. */
static void test_no_room(void) {
    static const struct {
        const char *script;
        attn_status status;
    } rows[] = {
        {"#!/bin/sh\necho 'k.c:1: fatal error: error writing: No space left on device'; exit 1\n",
         ATTN_ERR_IO},
        {"#!/bin/sh\necho 'cc: fatal error: Killed signal terminated program cc1'; exit 1\n",
         ATTN_ERR_NOMEM},
        {"#!/bin/sh\necho 'cc1: out of memory allocating 64 bytes'; exit 1\n", ATTN_ERR_NOMEM},
        {"#!/bin/sh\necho 'k.c:1: error: expected declaration'; exit 1\n", ATTN_ERR_NO_TOOL},
        {"#!/bin/sh\nfor w; do case $w in *.c) grep -q smallest.c $w || { echo 'k.c:1: error: "
         "odd'\n"
         "exit 1; };; esac; done\nexec cc \"$@\"\n",
         ATTN_ERR_COMPILE}};
    attn_build build = make_build("int x;", "compiler=cc -O1", "cpu:generic"); /* cc is $CC */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        attn_error err = ATTN_ERROR_INIT;
        attn_binary binary;
        put_compiler(rows[i].script);
        CHECK_STATUS(cpu->compile(&build, &binary, &err), rows[i].status, err.line);
        attn_binary_free(&binary);
    }
    remove_compiler();
}

static bool exists(const char *name) {
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void wait_a_moment(void) {
    nanosleep(&(struct timespec){0, 20000000}, NULL);
}

/* A worker that leads its group is killed with the group while its compiler, and that one's child,
 * never end: nobody is left. The child would make a file after a while. */
static void test_group_kill(void) {
    char script[256];
    int status;
    snprintf(script, sizeof script,
             "#!/bin/sh\n(touch %s/started; sleep 0.5; touch %s/survived) &\nwait\nsleep 100\n",
             folder, folder);
    put_compiler(script);
    pid_t pid = fork();
    if (pid == 0) {
        attn_binary binary;
        attn_error err = ATTN_ERROR_INIT;
        attn_build build = make_build(plain, "-O1", "cpu:generic");
        setpgid(0, 0);
        _exit(cpu->compile(&build, &binary, &err) == ATTN_OK);
    }
    for (int i = 0; i < 500 && !exists("started"); i++)
        wait_a_moment();
    CHECK(exists("started"));
    CHECK_EQ_INT(kill(-pid, SIGKILL), 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    for (int i = 0; i < 40; i++)
        wait_a_moment();
    CHECK(!exists("survived"));
    remove_compiler();
}

/* Calls `act` for each folder of a compile that is there; returns how many there are. */
static int each_compile_folder(void (*act)(const char *path)) {
    DIR *dir = opendir(folder);
    int count = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (strncmp(e->d_name, "attntune-cc-", 12) != 0)
            continue;
        count++;
        if (act)
            act(path);
    }
    if (dir)
        closedir(dir);
    return count;
}

static void make_old(const char *path) {
    struct timespec times[2] = {{.tv_sec = time(NULL) - 100}, {.tv_sec = time(NULL) - 100}};
    CHECK_EQ_INT(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int held_fd = -1;

static void hold(const char *path) {
    held_fd = open(path, O_RDONLY | O_DIRECTORY);
    CHECK_EQ_INT(flock(held_fd, LOCK_EX | LOCK_NB), 0);
}

/* The folder of the compile that was killed goes with a later compile: not while it may be new, and
 * not while its owner lives. */
static void test_sweep(void) {
    attn_binary binary;
    CHECK_EQ_INT(each_compile_folder(NULL), 1);
    for (int step = 0; step < 3; step++) {
        if (step == 1) {
            each_compile_folder(make_old);
            each_compile_folder(hold);
        }
        if (step == 2)
            close(held_fd);
        if (compile(plain, "-O1", &binary))
            attn_binary_free(&binary);
        CHECK_EQ_INT(each_compile_folder(NULL), step < 2);
    }
}

/* What the compiler is given: a limit on CPU time, no descriptors of ours, a quiet stdin. One that
 * fails on everything is no compiler: no source is to be blamed. */
static void test_compiler_surroundings(void) {
    attn_binary binary;
    attn_error err = ATTN_ERROR_INIT;
    attn_build build = make_build(plain, "-O1", "cpu:generic");
    int leak = open("/dev/null", O_RDONLY); /* not close-on-exec, as a host might have it */
    CHECK_EQ_INT(dup2(leak, 77), 77);
    put_compiler("#!/bin/sh\nsleep 0.1\necho limit $(ulimit -t) stdin $(cat) "
                 "descriptors $(ls /proc/$$/fd | tr '\\n' ' ') lc $LC_ALL tmp $TMPDIR\nexit 3\n");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_HAS(err.line, "exit code 3");
    CHECK_HAS(err.line, "limit 900 stdin descriptors 0 1 ");
    CHECK(!strstr(err.line, " 77"));
    CHECK_HAS(err.line, "lc C tmp /tmp/test-cpu-hostile");
    attn_binary_free(&binary);
    put_compiler("#!/bin/sh\nkill -SEGV $$\n");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_HAS(err.line, "signal 11");
    attn_binary_free(&binary);
    put_compiler("#!/bin/sh\nexit 0\n");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_HAS(err.line, "no shared object");
    attn_binary_free(&binary);
    attn_str identity = ATTN_STR_INIT;
    CHECK_STATUS(cpu->toolchain("c", "", &identity, &err), ATTN_ERR_NO_TOOL, err.line);
    attn_str_free(&identity);
    remove_compiler();
    close(leak);
    close(77);
}

/* The toolchain is asked once, and again when the program has changed. */
static void test_toolchain_kept(void) {
    attn_str identity = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    static const char script[] = "#!/bin/sh\necho asked >>%s/asked\necho 'my cc version %d '\n"
                                 "echo 'Target: here'\n";
    for (int version = 1; version <= 2; version++) {
        char text[256], want[64];
        snprintf(text, sizeof text, script, folder, version);
        put_compiler(text);
        snprintf(want, sizeof want, "my cc version %d here", version);
        for (int i = 0; i < 5; i++) {
            attn_str_clear(&identity);
            CHECK_OK(cpu->toolchain("c", "-O2", &identity, &err), err.line);
            CHECK_STR(attn_str_text(&identity), want);
        }
    }
    char path[64], cc[96];
    struct stat st;
    snprintf(path, sizeof path, "%s/asked", folder);
    CHECK(stat(path, &st) == 0 && st.st_size == 12);
    /* Another $CC is another compiler: it counts with what it is told to do. */
    snprintf(cc, sizeof cc, "%s -m32 -g", getenv("CC"));
    setenv("CC", cc, 1);
    attn_str_clear(&identity);
    CHECK_OK(cpu->toolchain("c", "-O2", &identity, &err), err.line);
    CHECK_STR(attn_str_text(&identity), "my cc version 2 here -m32 -g");
    remove_compiler();
    attn_str_free(&identity);
}

/* Is the process whose number the file holds still running? (-1: there is no such file) */
static int runs(const char *path) {
    attn_str pid = ATTN_STR_INIT, stat = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    int answer = -1;
    char file[64];
    if (attn_str_read_file(&pid, path, &err) == ATTN_OK) {
        snprintf(file, sizeof file, "/proc/%d/stat", atoi(attn_str_text(&pid)));
        answer = attn_str_read_file(&stat, file, &err) == ATTN_OK &&
                 !strstr(attn_str_text(&stat), ") Z ");
    }
    attn_str_free(&pid);
    attn_str_free(&stat);
    return answer;
}

/* A compiler that does not even tell its version is waited for once; what it has started goes
 * with it. */
static void test_toolchain_hangs(void) {
    attn_str identity = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    char text[256], path[64];
    snprintf(path, sizeof path, "%s/asked", folder);
    snprintf(text, sizeof text, "#!/bin/sh\nsleep 600 &\necho $! >%s\nwait\n", path);
    put_compiler(text);
    time_t begin = time(NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(cpu->toolchain("c", "-O2", &identity, &err), ATTN_ERR_NO_TOOL, err.line);
        CHECK_HAS(err.line, "does not answer to -v in 5 s");
    }
    CHECK(time(NULL) - begin < 10);
    for (int i = 0; i < 100 && runs(path) == 1; i++)
        wait_a_moment();
    CHECK_EQ_INT(runs(path), 0);
    remove_compiler();
    attn_str_free(&identity);
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

static void remove_folder(void) {
    static const char *const files[] = {"asked", "started"};
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    CHECK_EQ_INT(rmdir(folder), 0);
}

int main(void) {
    if (!CHECK(mkdtemp(folder) != NULL))
        return check_done();
    setenv("TMPDIR", folder, 1);
    test_mounts();
    test_ignored_sigchld();
    test_openmp();
    test_other_cpu();
    test_compiler_surroundings();
    test_toolchain_kept();
    test_toolchain_hangs();
    test_no_room();
    test_group_kill();
    test_sweep();
    remove_folder();
    return check_done();
}
