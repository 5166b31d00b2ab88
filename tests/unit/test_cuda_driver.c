/* test_cuda_driver.c: the CUDA backend against a driver that is made up (fake_cuda): devices,
 * loading, launch rules, statuses, graph replay, contexts, forks. CTest puts the folder of the fake
 * libcuda.so.1, or of the old one, into LD_LIBRARY_PATH. */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"
#include "fake_cuda/fake_cuda.h"

static const attn_backend *const cuda = &attn_backend_cuda;
static fake_cuda_state *fake;
static bool old; /* the driver lacks libraries, clusters and tensor maps */

static attn_backend_device *open_device(bool own) {
    attn_error err = ATTN_ERROR_INIT;
    attn_device_options options = {.own_context = own};
    attn_backend_device *device = NULL;
    CHECK_OK(cuda->open(0, &options, &device, &err), err.line);
    return device;
}

static attn_status load(attn_backend_device *device, const char *launch_text, const char *target,
                        attn_kernel **kernel, attn_error *err) {
    static unsigned char elf[128] = "\177ELF";
    attn_binary binary = ATTN_BINARY_INIT;
    attn_launch launch;
    binary.data = elf;
    binary.size = sizeof elf;
    memset(binary.key, 'k', 32);
    binary.key[32] = '\0';
    *kernel = NULL;
    ATTN_TRY(attn_launch_parse(launch_text, &launch, err));
    return cuda->load(device, &binary, target, &launch, kernel, err);
}

static void set_key(char byte) {
    memset(fake->key, byte, 32);
}

static void test_devices(void) {
    attn_error err = ATTN_ERROR_INIT;
    attn_device_info info;
    int32_t count = 0;
    CHECK_OK(cuda->count(&count, &err), err.line);
    CHECK_EQ_INT(count, 2);
    attn_backend_device *device = open_device(true);
    cuda->info(device, &info);
    CHECK_STR(info.name, "NVIDIA Fake");
    CHECK_STR(info.arch, "sm_90a");
    CHECK_STR(info.identity, "NVIDIA Fake cc 9.0, 10 SMs, 80 GiB");
    CHECK_HAS(info.environment, "cuda 12.8");
    CHECK_STR(info.lock, "GPU-01010101-0101-0101-0101-010101010101");
    cuda->close(device);
}

static void test_load(void) {
    static const char plain[] = "step symbol=f grid=tiles rows=64 threads=128 smem=70000";
    static const struct {
        const char *launch, *target, *word;
        char key;
        attn_status status;
    } cases[] = {
        {plain, "sm_90a", "", 'k', ATTN_OK},
        {plain, "sm_90", "", 'k', ATTN_OK},
        {plain, "sm_80", "sm_80", 'k', ATTN_ERR_LOAD},
        {plain, "sm_100a", "sm_100a", 'k', ATTN_ERR_LOAD},
        {plain, "sm_90a", "kkkk", 'x', ATTN_ERR_LOAD},
        {plain, "sm_90a", "no attn_key", '\0', ATTN_ERR_LOAD},
        {"step symbol=absent grid=tiles rows=64 threads=128", "sm_90a", "absent", 'k',
         ATTN_ERR_LOAD},
        {"step symbol=f grid=tiles rows=64 threads=128 smem=232449", "sm_90a", "shared memory", 'k',
         ATTN_ERR_LAUNCH},
    };
    attn_backend_device *device = open_device(true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_error err = ATTN_ERROR_INIT;
        attn_kernel *kernel;
        CHECK_CASE("load %zu", i);
        set_key(cases[i].key);
        CHECK_STATUS(load(device, cases[i].launch, cases[i].target, &kernel, &err), cases[i].status,
                     err.line);
        CHECK_HAS(err.line, cases[i].word);
        CHECK_EQ_INT(fake->loaded, kernel != NULL);
        if (kernel) {
            CHECK_EQ_INT(fake->smem_allowed, 70000);
            cuda->unload(kernel);
        }
        CHECK_EQ_INT(fake->loaded, 0);
    }
    set_key('k');
    cuda->close(device);
    check_case[0] = '\0';
}

/* Runs the launch record on the problem; the launches are then in *fake. */
static attn_status run(attn_backend_device *device, const char *launch, const char *problem,
                       attn_error *err) {
    static unsigned char memory[4096];
    attn_problem p;
    attn_kernel *kernel;
    attn_call call = {.problem = &p};
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    CHECK_OK(attn_problem_parse(problem, &p, NULL, 0), problem);
    attn_forward_strides(&p, &t);
    attn_problem_args(&p, &t, &call.args);
    call.args.workspace[0] = memory;
    fake->launches = fake->clears = fake->maps = 0;
    ATTN_TRY(load(device, launch, "sm_90a", &kernel, err));
    attn_status status = cuda->run(kernel, &call, NULL, err);
    cuda->unload(kernel);
    return status;
}

static void test_grids(void) {
    static const struct {
        const char *launch, *problem;
        unsigned blocks;
        int32_t tiles;
        bool is_new; /* needs clusters */
    } cases[] = {
        {"step symbol=f grid=tiles rows=64 threads=128", "fwd:f16:b2:h3:s100:d64", 12, 2, false},
        {"step symbol=f grid=persistent rows=64 threads=128 blocks_per_sm=2 spare=1",
         "fwd:f16:b2:h3:s1000:d64", 19, 16, false},
        {"step symbol=f grid=persistent rows=64 threads=128 blocks_per_sm=2",
         "fwd:f16:b1:h3:s100:d64", 6, 2, false},
        {"step symbol=f grid=tiles rows=64 threads=128 cluster=2", "fwd:f16:b1:h1:s129:d64", 4, 3,
         true},
        {"step symbol=f grid=persistent rows=64 threads=128 cluster=4 blocks_per_sm=1",
         "fwd:f16:b2:h3:s1000:d64", 8, 16, true},
        {"step symbol=f grid=tiles rows=64 threads=128 pdl=1", "fwd:f16:b1:h1:s64:d64", 1, 1, true},
    };
    attn_backend_device *device = open_device(true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_error err = ATTN_ERROR_INIT;
        CHECK_CASE("%s", cases[i].launch);
        attn_status want = old && cases[i].is_new ? ATTN_ERR_LAUNCH : ATTN_OK;
        CHECK_STATUS(run(device, cases[i].launch, cases[i].problem, &err), want, err.line);
        if (want != ATTN_OK)
            continue;
        CHECK_EQ_INT(fake->launches, 1);
        CHECK_EQ_INT(fake->launch[0].blocks, cases[i].blocks);
        CHECK_EQ_INT(fake->launch[0].tiles, cases[i].tiles);
        CHECK_EQ_INT(fake->launch[0].threads, 128);
        CHECK_EQ_INT(fake->launch[0].pdl, strstr(cases[i].launch, "pdl") != NULL);
    }
    attn_error err = ATTN_ERROR_INIT;
    CHECK_CASE("workspace and two steps");
    CHECK_OK(run(device,
                 "step symbol=f grid=split rows=64 threads=128\n"
                 "step symbol=g grid=tiles rows=32 threads=64\n"
                 "workspace bytes=512 per=call\nsplits 3\nzero_bytes 256\n",
                 "fwd:f16:b1:h2:s100:d64", &err),
             err.line);
    CHECK_EQ_INT(fake->clears, 1);
    CHECK_EQ_INT(fake->cleared, 256);
    CHECK_EQ_INT(fake->launches, 2);
    CHECK_EQ_INT(fake->launch[0].blocks, 12);
    CHECK_EQ_INT(fake->launch[1].blocks, 8);
    CHECK_EQ_INT(fake->launch[1].tiles, 4);
    CHECK_CASE("nothing to do");
    CHECK_OK(
        run(device, "step symbol=f grid=tiles rows=64 threads=128", "fwd:f16:b0:h2:s9:d64", &err),
        err.line);
    CHECK_EQ_INT(fake->launches, 0);
    cuda->close(device);
    check_case[0] = '\0';
}

static void test_statuses(void) {
    static const struct {
        CUresult result;
        attn_status status;
    } cases[] = {
        {1, ATTN_ERR_LAUNCH},   {2, ATTN_ERR_NOMEM},    {100, ATTN_ERR_NO_DEVICE},
        {701, ATTN_ERR_LAUNCH}, {700, ATTN_ERR_DEVICE}, {716, ATTN_ERR_DEVICE},
        {719, ATTN_ERR_DEVICE},
    };
    attn_backend_device *device = open_device(true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_error err = ATTN_ERROR_INIT;
        CHECK_CASE("result %u", cases[i].result);
        fake->result = cases[i].result;
        CHECK_STATUS(run(device, "step symbol=f grid=tiles rows=64 threads=128",
                         "fwd:f16:b1:h1:s64:d64", &err),
                     cases[i].status, err.line);
        CHECK_HAS(err.line, "f: CUDA_ERROR_");
        CHECK_STATUS(cuda->sync(device, &err), cases[i].status, err.line);
    }
    fake->result = 0;
    void *memory;
    attn_error err = ATTN_ERROR_INIT;
    CHECK_STATUS(cuda->alloc(device, (size_t)1 << 40, &memory, &err), ATTN_ERR_NOMEM, err.line);
    cuda->close(device);
    check_case[0] = '\0';
}

/* Eager the first time; replayed from a graph once a launch is known to be short. */
static void test_time(void) {
    attn_error err = ATTN_ERROR_INIT;
    attn_problem p;
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_call call = {.problem = &p};
    attn_kernel *kernel;
    double ns = 0;
    attn_backend_device *device = open_device(true);
    CHECK_OK(attn_problem_parse("fwd:f16:b1:h1:s64:d64", &p, NULL, 0), "");
    attn_forward_strides(&p, &t);
    attn_problem_args(&p, &t, &call.args);
    fake->launches = fake->replays = 0;
    fake->elapsed_ms = 0.05f;
    CHECK_OK(load(device, "step symbol=f grid=tiles rows=64 threads=128", "sm_90a", &kernel, &err),
             err.line);
    CHECK_OK(cuda->time(kernel, &call, 1, 10, &ns, &err), err.line);
    CHECK_NEAR(ns, 50000, 1);
    CHECK_EQ_INT(fake->launches, 10);
    CHECK_EQ_INT(fake->replays, 0);
    CHECK_OK(cuda->time(kernel, &call, 1, 10, &ns, &err), err.line);
    CHECK_EQ_INT(fake->launches, 20); /* into the graph */
    CHECK_EQ_INT(fake->replays, 2);   /* the first uploads it */
    cuda->unload(kernel);
    cuda->close(device);
}

/* In the caller's context, as the library runs: another device's or none is refused. */
static void test_contexts(void) {
    static const char launch[] = "step symbol=f grid=tiles rows=64 threads=128";
    attn_error err = ATTN_ERROR_INIT;
    attn_backend_device *device = open_device(false);
    char context;
    fake->current = NULL;
    CHECK_STATUS(run(device, launch, "fwd:f16:b1:h1:s64:d64", &err), ATTN_ERR_DEVICE, err.line);
    CHECK_HAS(err.line, "no CUDA context");
    fake->current = &context;
    fake->current_device = 1;
    CHECK_STATUS(run(device, launch, "fwd:f16:b1:h1:s64:d64", &err), ATTN_ERR_DEVICE, err.line);
    CHECK_HAS(err.line, "on device 1");
    fake->current_device = 0;
    CHECK_OK(run(device, launch, "fwd:f16:b1:h1:s64:d64", &err), err.line);
    CHECK(fake->current == &context);
    cuda->close(device);
}

static void test_fork(void) {
    int status = -1;
    attn_backend_device *device = open_device(true);
    pid_t child = fork();
    if (child == 0) {
        attn_error err = ATTN_ERROR_INIT;
        int32_t count;
        _exit(cuda->sync(device, &err) == ATTN_ERR_FORKED &&
                      cuda->count(&count, &err) == ATTN_ERR_FORKED
                  ? 0
                  : 1);
    }
    CHECK_EQ_INT(waitpid(child, &status, 0), child);
    CHECK_EQ_INT(status, 0);
    cuda->close(device);
}

int main(int argc, char **argv) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    fake = library ? dlsym(library, "fake_cuda") : NULL;
    old = argc > 1 && strcmp(argv[1], "old") == 0;
    if (!CHECK(fake != NULL))
        return check_done();
    set_key('k');
    test_devices();
    test_load();
    test_grids();
    test_statuses();
    test_time();
    test_contexts();
    test_fork();
    (void)dlclose(library);
    return check_done();
}
