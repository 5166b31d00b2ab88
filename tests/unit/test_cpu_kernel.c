/* test_cpu_kernel.c: compiling, loading and running kernels on the CPU. */
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"
#include "compile.h"
#include "flags.h"
#include "object.h"

static const attn_backend *const cpu = &attn_backend_cpu;

/* A kernel that writes a number to o. */
static char *kernel_source(int number) {
    char *text = NULL;
    int size = asprintf(&text,
                        "typedef struct args { const void *q, *k, *v; int *o; } args;\n"
                        "int KERNEL(const args *a, int task, int worker) {\n"
                        "    a->o[task] = %d + 0 * worker;\n"
                        "    return 0;\n"
                        "} // no newline at the end",
                        number);
    return size < 0 ? NULL : text;
}

static attn_build make_build(const char *source, const char *options, uint64_t key) {
    attn_build build = {"c", source, options, "", "", 0};
    attn_hash hash = {key, ~key};
#if defined(__aarch64__)
    build.target = "cpu:aarch64+neon";
#else
    build.target = "cpu:x86_64";
#endif
    attn_hash_print(hash, build.key);
    return build;
}

static attn_backend_device *open_device(int32_t threads) {
    attn_device_options options = {.threads = threads};
    attn_backend_device *device;
    attn_error err = ATTN_ERROR_INIT;
    if (!CHECK_OK(cpu->open(0, &options, &device, &err), err.line))
        exit(check_done());
    return device;
}

static const attn_launch one_step = {
    .steps = 1,
    .splits = 1,
    .step = {{.symbol = "KERNEL", .grid = ATTN_GRID_TILES, .rows = 1}},
};

/* What the kernel writes for a problem of one row; -1 if it fails. */
static int run_kernel(attn_kernel *kernel) {
    attn_problem p = {.dtype = ATTN_F32,
                      .batch = 1,
                      .heads_q = 1,
                      .heads_kv = 1,
                      .seq_q = 1,
                      .seq_kv = 1,
                      .head_dim = 1,
                      .head_dim_v = 1};
    int number = -1;
    attn_call call = {.problem = &p, .args = {.o = &number, .workers = 1}};
    attn_error err = ATTN_ERROR_INIT;
    CHECK_OK(cpu->run(kernel, &call, NULL, &err), err.line);
    return number;
}

static bool compile(const char *source, const char *options, uint64_t key, attn_binary *binary) {
    attn_build build = make_build(source, options, key);
    attn_error err = ATTN_ERROR_INIT;
    return CHECK_OK(cpu->compile(&build, binary, &err), err.line);
}

/* Entries of the temporary folder that begin with our name. */
static int leftovers(void) {
    const char *base = getenv("TMPDIR");
    DIR *dir = opendir(base ? base : "/tmp");
    int count = 0;
    for (struct dirent *e; dir && (e = readdir(dir));)
        count += strncmp(e->d_name, "attntune", 8) == 0;
    if (dir)
        closedir(dir);
    return count;
}

/* Two kernels in turn, 1000 times, and some held in between, so that descriptor numbers and
 * addresses are used again: always the right one answers. */
static void test_load_cycles(attn_backend_device *device) {
    enum { KERNELS = 3, HELD = 5 };
    attn_binary binary[KERNELS];
    attn_kernel *held[HELD] = {NULL};
    int held_number[HELD] = {0};
    attn_error err = ATTN_ERROR_INIT;
    for (int i = 0; i < KERNELS; i++) {
        char *source = kernel_source(100 + i);
        bool good = compile(source, "-O1", (uint64_t)i, &binary[i]);
        free(source);
        if (!good)
            return;
    }
    for (int i = 0; i < 1000; i++) {
        int which = i * 7 % KERNELS, slot = i * 3 % HELD;
        if (held[slot]) {
            CHECK_EQ_INT(run_kernel(held[slot]), held_number[slot]);
            cpu->unload(held[slot]);
        }
        if (!CHECK_OK(
                cpu->load(device, &binary[which], "cpu:generic", &one_step, &held[slot], &err),
                err.line))
            break;
        held_number[slot] = 100 + which;
        CHECK_EQ_INT(run_kernel(held[slot]), 100 + which);
    }
    for (int i = 0; i < HELD; i++)
        cpu->unload(held[i]);
    for (int i = 0; i < KERNELS; i++)
        attn_binary_free(&binary[i]);
}

static void test_wrong_binaries(attn_backend_device *device) {
    char *source = kernel_source(7);
    attn_binary binary, copy;
    attn_kernel *kernel;
    attn_error err = ATTN_ERROR_INIT;
    if (!compile(source, "-O2", 1, &binary))
        return;
    copy = binary;
    memset(copy.key, 'f', 32);
    CHECK_STATUS(cpu->load(device, &copy, "cpu:generic", &one_step, &kernel, &err), ATTN_ERR_LOAD,
                 err.line);
    CHECK_HAS(err.line, "key");
    CHECK(kernel == NULL);
    attn_launch other = one_step;
    strcpy(other.step[0].symbol, "OTHER");
    CHECK_STATUS(cpu->load(device, &binary, "cpu:generic", &other, &kernel, &err), ATTN_ERR_LOAD,
                 err.line);
    CHECK_HAS(err.line, "OTHER");
    CHECK_STATUS(cpu->load(device, &binary, "sm_90a", &one_step, &kernel, &err), ATTN_ERR_LOAD,
                 err.line);
    CHECK_STATUS(cpu->load(device, &binary, "cpu:x86_64+aarch64", &one_step, &kernel, &err),
                 ATTN_ERR_LOAD, err.line);
    CHECK_HAS(err.line, "cannot be used here");
    for (size_t size = 0; size < binary.size; size += size < 100 ? 1 : 97) {
        copy = binary;
        copy.size = size;
        if (cpu->load(device, &copy, "cpu:generic", &one_step, &kernel, &err) != ATTN_ERR_LOAD)
            CHECK_EQ_INT(size, -1);
    }
    unsigned char *bytes = binary.data;
    for (size_t at = 0; at < binary.size; at += at < 200 ? 1 : 31) {
        bytes[at] ^= (unsigned char)(1 << at % 8);
        if (cpu->load(device, &binary, "cpu:generic", &one_step, &kernel, &err) != ATTN_ERR_LOAD)
            CHECK_EQ_INT(at, -1);
        bytes[at] ^= (unsigned char)(1 << at % 8);
    }
    CHECK_OK(cpu->load(device, &binary, "cpu:generic", &one_step, &kernel, &err), err.line);
    CHECK_EQ_INT(run_kernel(kernel), 7);
    cpu->unload(kernel);
    cpu->unload(NULL);
    attn_binary_free(&binary);
    free(source);
}

/* Both ways of loading, and what is said where programs may not run. */
static void test_ways(void) {
    char *source = kernel_source(8);
    attn_binary binary;
    attn_object object;
    attn_error err = ATTN_ERROR_INIT;
    if (!compile(source, "-O2", 2, &binary))
        return;
    size_t size = attn_binary_object_size(binary.data, binary.size);
    CHECK_EQ_INT(size + ATTN_SEAL_SIZE, binary.size);
    CHECK_OK(
        attn_object_open_way(ATTN_OBJECT_FILE, getenv("TMPDIR"), binary.data, size, &object, &err),
        err.line);
    CHECK(attn_object_function(&object, "KERNEL") != NULL);
    CHECK(attn_object_function(&object, "NOTHING") == NULL);
    attn_object_close(&object);
    CHECK_OK(attn_object_open_way(ATTN_OBJECT_MEMORY, NULL, binary.data, size, &object, &err),
             err.line);
    attn_object_close(&object);
    attn_object_close(&object);
    CHECK_STATUS(
        attn_object_open_way(ATTN_OBJECT_FILE, "/nowhere", binary.data, size, &object, &err),
        ATTN_ERR_LOAD, err.line);
    CHECK_HAS(err.line, "/nowhere");
    CHECK_EQ_INT(leftovers(), 0);
    attn_binary_free(&binary);
    free(source);
}

static void test_compile_errors(void) {
    struct {
        const char *source, *options, *target, *language;
        attn_status status;
        const char *part;
    } rows[] = {
        {"#line 12 \"cpu/some.c\"\nint KERNEL(void) { return nonsense; }", "-O2", NULL, "c",
         ATTN_ERR_COMPILE, "cpu/some.c:12"},
        {"int missing(void); int KERNEL(void) { return missing(); }", "-O2 -w", "cpu:nonsense", "c",
         ATTN_ERR_INVALID, "cpu:nonsense"},
        {"int x;", "-O2 -fplugin=x.so", NULL, "c", ATTN_ERR_INVALID, "-fplugin=x.so"},
        {"int x;", "-O2 -fno-math-error", NULL, "c", ATTN_ERR_INVALID, "-fno-math-errno?"},
        {"int x;", "-march=native", NULL, "c", ATTN_ERR_INVALID, "no fixed CPU"},
        {"int x;", "compiler=/bin/sh", NULL, "c", ATTN_ERR_INVALID, "gcc, clang or cc"},
        {"int x;", "compiler=gcc-999", NULL, "c", ATTN_ERR_NO_TOOL, "gcc-999"},
        {"int x;", "-mavx2", "cpu:x86_64", "c", ATTN_ERR_INVALID, "beyond the target"},
        {"int x;", "-O2", NULL, "cu", ATTN_ERR_INVALID, "not cu"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        attn_build build = make_build(rows[i].source, rows[i].options, 3);
        attn_binary binary;
        attn_error err = ATTN_ERROR_INIT;
        CHECK_CASE("row %zu", i);
        build.target = rows[i].target ? rows[i].target : build.target;
        build.language = rows[i].language;
        CHECK_STATUS(cpu->compile(&build, &binary, &err), rows[i].status, err.line);
        CHECK_HAS(err.line, rows[i].part);
        if (rows[i].status == ATTN_ERR_COMPILE)
            CHECK_HAS(attn_str_text(&binary.log), rows[i].part);
        CHECK(binary.data == NULL);
        attn_binary_free(&binary);
    }
    CHECK_CASE("%s", "");
    CHECK_EQ_INT(leftovers(), 0);
}

/* The log of warnings is kept, equal builds give equal bytes, and several compile at once. Checks
 * are for the main thread only. */
static void *compile_twice(void *result) {
    char *source = kernel_source(9);
    attn_build build = make_build(source, "-O2 -Wall -Wextra", 4);
    attn_binary a = ATTN_BINARY_INIT, b = ATTN_BINARY_INIT;
    attn_error err = ATTN_ERROR_INIT;
    bool same = cpu->compile(&build, &a, &err) == ATTN_OK &&
                cpu->compile(&build, &b, &err) == ATTN_OK && a.size == b.size &&
                memcmp(a.data, b.data, a.size) == 0;
    attn_binary_free(&a);
    attn_binary_free(&b);
    free(source);
    return same ? result : NULL;
}

static void test_compiles_at_once(void) {
    pthread_t thread[3];
    attn_binary binary;
    for (int i = 0; i < 3; i++)
        CHECK_EQ_INT(pthread_create(&thread[i], NULL, compile_twice, thread), 0);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(thread[i], &result);
        CHECK(result == (void *)thread);
    }
    CHECK(compile("int KERNEL(int unused) { return 0; }", "-Wall -Wextra", 5, &binary));
    CHECK_HAS(attn_str_text(&binary.log), "unused");
    attn_binary_free(&binary);
    CHECK_EQ_INT(leftovers(), 0);
}

static char *kept(const char *name) {
    const char *value = getenv(name);
    return strdup(value ? value : "");
}

/* The temporary folder is missing; PATH holds no compiler. */
static void test_poor_surroundings(void) {
    char *tmpdir = kept("TMPDIR"), *path = kept("PATH"), *cc = kept("CC");
    attn_build build = make_build("int x;", "-O2", 6);
    attn_binary binary;
    attn_error err = ATTN_ERROR_INIT;
    setenv("TMPDIR", "/nowhere", 1);
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_IO, err.line);
    CHECK_HAS(err.line, "/nowhere");
    attn_binary_free(&binary);
    setenv("TMPDIR", tmpdir, 1);
    setenv("PATH", "/nowhere::", 1);
    unsetenv("CC");
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_HAS(err.line, "no C compiler");
    attn_binary_free(&binary);
    setenv("CC", "/nowhere/cc -m64", 1);
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    CHECK_HAS(err.line, "/nowhere/cc");
    attn_binary_free(&binary);
    setenv("PATH", path, 1);
    setenv("CC", "/bin/false", 1);
    CHECK_STATUS(cpu->compile(&build, &binary, &err), ATTN_ERR_NO_TOOL, err.line);
    attn_binary_free(&binary);
    setenv("CC", cc, 1); /* empty: as if it were not set */
    free(cc);
    free(tmpdir);
    free(path);
}

static void test_texts(attn_backend_device *device) {
    attn_str text = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    attn_device_info info;
    cpu->info(device, &info);
    CHECK_OK(cpu->toolchain("c", "-O3", &text, &err), err.line);
    CHECK_HAS(text.data, " version ");
    CHECK_HAS(text.data, "-linux-gnu");
    attn_str_clear(&text);
    cpu->command("c", "compiler=clang -O3 -mavx2", "cpu:x86_64+avx2+fma+f16c", "k.c", &text);
    CHECK_STR(text.data, "clang -std=gnu11 -fPIC -O3 -mavx2 -c k.c");
    attn_str_clear(&text);
#if defined(__x86_64__)
    CHECK_OK(cpu->target(&info, "-O3 -mavx2 -mno-avx512f", &text, &err), err.line);
    CHECK_STR(text.data, "cpu:x86_64+avx2+fma+f16c");
    attn_str_clear(&text);
    cpu->command("c", "compiler=gcc", "cpu:aarch64+neon", "k.c", &text);
    CHECK_HAS(text.data, "aarch64-linux-gnu-gcc");
#endif
    CHECK(cpu->runs(&info, "cpu:generic"));
    CHECK(!cpu->runs(&info, "cpu:x86_64+aarch64"));
    CHECK(!cpu->runs(&info, "sm_90a"));
    attn_str_free(&text);
}

int main(void) {
    char folder[] = "/tmp/test-cpu-kernel-XXXXXX";
    if (!CHECK(mkdtemp(folder) != NULL))
        return check_done();
    setenv("TMPDIR", folder, 1);
    attn_backend_device *device = open_device(2);
    test_texts(device);
    test_compile_errors();
    test_load_cycles(device);
    test_wrong_binaries(device);
    test_ways();
    test_compiles_at_once();
    test_poor_surroundings();
    cpu->close(device);
    CHECK_EQ_INT(rmdir(folder), 0);
    return check_done();
}
