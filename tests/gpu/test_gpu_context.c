/* test_gpu_context.c: repeated launches, streams, graphs, contexts, threads and forks, through the
 * library. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "gpu_rig.h"

static gpu_rig rig;

/* So many masked tiles that cuda/wgmma_forward's blocks take them from a counter in the workspace,
 * which is cleared before each launch. */
static const char counted[] = "fwd:f16:b1:hq64:hkv8:s1152:d128:causal:lse";
static const char counted_narrow[] = "fwd:bf16:b3:h60:s512:d64:causal:lse";

static void test_counted(void) {
    static const char *const problems[] = {counted, counted_narrow};
    for (int i = 0; i < 2; i++) {
        attn_choice choice = ATTN_CHOICE_INIT;
        attn_problem problem;
        CHECK_CASE("%s", problems[i]);
        CHECK_OK(attn_problem_parse(problems[i], &problem, NULL, 0), "");
        CHECK_OK(attn_choice_get(rig.context, &problem, ATTN_DEVICE_CUDA(0), &choice),
                 attn_last_error(rig.context));
        if (strcmp(choice.family, "cuda/wgmma_forward") == 0)
            CHECK_HAS(choice.configuration, "SCHEDULE=atomic");
    }
}

/* What a launch over poisoned outputs leaves in O and LSE, guards included; NULL after a failed
 * check. */
static unsigned char *bits_of_launch(gpu_proof *proof) {
    const attn_image *o = &proof->inputs.image[ATTN_IMAGE_O],
                     *lse = &proof->inputs.image[ATTN_IMAGE_LSE];
    unsigned char *bits = malloc(o->size + lse->size);
    attn_error err = ATTN_ERROR_INIT;
    bool good = CHECK(bits != NULL) &&
                CHECK_OK(attn_inputs_poison(&proof->inputs, &err), err.line) &&
                CHECK_OK(gpu_proof_run(&rig, proof, NULL), attn_last_error(rig.context)) &&
                CHECK_OK(attn_backend_cuda.sync(rig.device, &err), err.line) &&
                CHECK_OK(attn_backend_cuda.copy(rig.device, bits, o->device, o->size,
                                                ATTN_COPY_FROM_DEVICE, &err),
                         err.line) &&
                CHECK_OK(attn_backend_cuda.copy(rig.device, bits + o->size, lse->device, lse->size,
                                                ATTN_COPY_FROM_DEVICE, &err),
                         err.line);
    if (good)
        return bits;
    free(bits);
    return NULL;
}

/* Every launch writes the same bits. */
static void test_repeated(const char *problem) {
    enum { LAUNCHES = 200 };
    const attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_LAYOUT, NAN, 6};
    gpu_proof proof;
    CHECK_CASE("%s: %d launches", problem, LAUNCHES);
    bool good = gpu_proof_make(&rig, problem, &spec, &proof);
    const size_t size =
        proof.inputs.image[ATTN_IMAGE_O].size + proof.inputs.image[ATTN_IMAGE_LSE].size;
    unsigned char *first = good ? bits_of_launch(&proof) : NULL;
    good = first != NULL;
    for (int i = 1; good && i < LAUNCHES; i++) {
        unsigned char *bits = bits_of_launch(&proof);
        good = bits && CHECK(memcmp(first, bits, size) == 0);
        free(bits);
    }
    if (good)
        gpu_proof_check(&rig, &proof, &proof);
    free(first);
    gpu_proof_free(&rig, &proof);
}

/* Two problems on two streams at once, over and over; each output is right at the end. */
static void test_two_streams(const char *first, const char *second) {
    const char *const problems[] = {first, second};
    const attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_PADDED, NAN, 2};
    gpu_proof proof[2];
    CUstream stream[2] = {NULL, NULL};
    bool good = true;
    CHECK_CASE("%s and %s on two streams", first, second);
    for (int i = 0; i < 2; i++) {
        good = gpu_proof_make(&rig, problems[i], &spec, &proof[i]) && good;
        CHECK_EQ_INT(rig.cuda->stream_create(&stream[i], CU_STREAM_NON_BLOCKING), 0);
    }
    for (int round = 0; good && round < 50; round++)
        for (int i = 0; i < 2; i++)
            CHECK_OK(gpu_proof_run(&rig, &proof[i], stream[i]), attn_last_error(rig.context));
    for (int i = 0; i < 2; i++) {
        if (good)
            gpu_proof_check(&rig, &proof[i], &proof[i]);
        (void)rig.cuda->stream_destroy(stream[i]);
        gpu_proof_free(&rig, &proof[i]);
    }
}

static void capture_begin(CUstream stream) {
    CHECK_EQ_INT(
        rig.cuda->capture_begin(stream, (CUstreamCaptureMode)CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        0);
}

static void run_unmet(const attn_problem *problem, const gpu_proof *proof, CUstream stream) {
    attn_error err = ATTN_ERROR_INIT;
    size_t bytes = attn_workspace_size(rig.context, problem, ATTN_DEVICE_CUDA(0));
    void *workspace = NULL;
    CHECK_OK(attn_backend_cuda.alloc(rig.device, bytes, &workspace, &err), err.line);
    CHECK_OK(attn_run(rig.context, problem, ATTN_DEVICE_CUDA(0), &proof->inputs.device, workspace,
                      bytes, stream),
             attn_last_error(rig.context));
    CHECK_OK(attn_backend_cuda.sync(rig.device, &err), err.line);
    attn_backend_cuda.free(rig.device, workspace);
}

/* A class not met before (`other`, of the problem's tensors) cannot be made during a capture; one
 * that is can be captured, and replayed on inputs that have changed. */
static void test_capture(const char *problem, const char *other) {
    const attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_PADDED, NAN, 3},
                          changed = {ATTN_INPUT_STD8, ATTN_STRIDES_PADDED, NAN, 4};
    attn_error err = ATTN_ERROR_INIT;
    attn_problem unmet;
    gpu_proof a, b;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec replay = NULL;
    CHECK_CASE("capture of %s", problem);
    bool good = gpu_proof_make(&rig, problem, &spec, &a);
    good = gpu_proof_make(&rig, problem, &changed, &b) && good;
    CHECK_EQ_INT(rig.cuda->stream_create(&stream, CU_STREAM_NON_BLOCKING), 0);
    CHECK_OK(attn_problem_parse(other, &unmet, NULL, 0), "");
    if (good) {
        capture_begin(stream);
        CHECK_STATUS(
            attn_run(rig.context, &unmet, ATTN_DEVICE_CUDA(0), &a.inputs.device, NULL, 0, stream),
            ATTN_ERR_CAPTURING, attn_last_error(rig.context));
        CHECK_OK(gpu_proof_run(&rig, &a, stream), attn_last_error(rig.context));
        CHECK_EQ_INT(rig.cuda->capture_end(stream, &graph), 0);
        good =
            CHECK(graph != NULL) && CHECK_EQ_INT(rig.cuda->graph_instantiate(&replay, graph, 0), 0);
    }
    if (good) {
        CHECK_EQ_INT(rig.cuda->graph_launch(replay, stream), 0);
        gpu_proof_check(&rig, &a, &a);
        for (int i = ATTN_IMAGE_Q; i < ATTN_IMAGES; i++)
            if (CHECK_EQ_INT(a.inputs.image[i].size, b.inputs.image[i].size))
                CHECK_OK(attn_backend_cuda.copy(rig.device, a.inputs.image[i].device,
                                                b.inputs.image[i].host, b.inputs.image[i].size,
                                                ATTN_COPY_TO_DEVICE, &err),
                         err.line);
        CHECK_EQ_INT(rig.cuda->graph_launch(replay, stream), 0);
        gpu_proof_check(&rig, &a, &b);
        run_unmet(&unmet, &a, stream); /* after the capture it is an ordinary class */
    }
    if (replay)
        (void)rig.cuda->graph_exec_destroy(replay);
    if (graph)
        (void)rig.cuda->graph_destroy(graph);
    (void)rig.cuda->stream_destroy(stream);
    gpu_proof_free(&rig, &a);
    gpu_proof_free(&rig, &b);
}

/* A thread in which no context is current. */
static void *without_context(void *argument) {
    const gpu_proof *proof = argument;
    CHECK_STATUS(gpu_proof_run(&rig, proof, NULL), ATTN_ERR_DEVICE, attn_last_error(rig.context));
    CHECK_HAS(attn_last_error(rig.context), "context");
    CUcontext context = NULL;
    CUdevice device = 0;
    CHECK_EQ_INT(rig.cuda->device_get(&device, 0), 0);
    CHECK_EQ_INT(rig.cuda->primary_retain(&context, device), 0);
    CHECK_EQ_INT(rig.cuda->ctx_set(context), 0);
    CHECK_OK(gpu_proof_run(&rig, proof, NULL), attn_last_error(rig.context));
    CHECK_EQ_INT(rig.cuda->ctx_sync(), 0);
    (void)rig.cuda->ctx_set(NULL);
    (void)rig.cuda->primary_release(device);
    return NULL;
}

static bool make_small(gpu_proof *proof) {
    const attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_LAYOUT, NAN, 9};
    bool good = gpu_proof_make(&rig, "fwd:f16:b1:h2:s100:d64:lse", &spec, proof) &&
                CHECK_OK(gpu_proof_run(&rig, proof, NULL), attn_last_error(rig.context));
    if (good)
        gpu_proof_check(&rig, proof, proof);
    return good;
}

static void test_no_context(void) {
    gpu_proof proof;
    pthread_t thread;
    CHECK_CASE("no context is current");
    if (make_small(&proof) &&
        CHECK_EQ_INT(pthread_create(&thread, NULL, without_context, &proof), 0))
        CHECK_EQ_INT(pthread_join(thread, NULL), 0);
    gpu_proof_free(&rig, &proof);
}

static void *run_often(void *argument) {
    const gpu_proof *proof = argument;
    CUcontext context = NULL;
    CUdevice device = 0;
    (void)rig.cuda->device_get(&device, 0);
    CHECK_EQ_INT(rig.cuda->primary_retain(&context, device), 0);
    CHECK_EQ_INT(rig.cuda->ctx_set(context), 0);
    for (int i = 0; i < 200; i++)
        if (gpu_proof_run(&rig, proof, NULL) != ATTN_OK)
            return argument;
    return NULL;
}

static void test_threads(void) {
    gpu_proof proof[4];
    pthread_t thread[4];
    bool good = true;
    CHECK_CASE("four threads");
    for (int i = 0; i < 4; i++)
        good = make_small(&proof[i]) && good;
    for (int i = 0; good && i < 4; i++)
        CHECK_EQ_INT(pthread_create(&thread[i], NULL, run_often, &proof[i]), 0);
    for (int i = 0; good && i < 4; i++) {
        void *failed;
        CHECK_EQ_INT(pthread_join(thread[i], &failed), 0);
        CHECK(failed == NULL);
    }
    for (int i = 0; i < 4; i++) {
        if (good)
            gpu_proof_check(&rig, &proof[i], &proof[i]);
        gpu_proof_free(&rig, &proof[i]);
    }
}

/* The child says ERR_FORKED on the GPU, and works on the CPU. */
static void test_fork(void) {
    static _Alignas(256) char workspace[1 << 20];
    float memory[4 * 8] = {1.0f};
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_problem problem;
    gpu_proof proof;
    int status = -1;
    CHECK_CASE("fork");
    if (!make_small(&proof))
        return;
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h1:s1:d8", &problem, NULL, 0), "");
    t.q = memory;
    t.k = memory + 8;
    t.v = memory + 16;
    t.o = memory + 24;
    attn_forward_strides(&problem, &t);
    pid_t child = fork();
    if (child == 0) {
        attn_status cuda = gpu_proof_run(&rig, &proof, NULL);
        attn_status cpu =
            attn_run(rig.context, &problem, ATTN_DEVICE_CPU, &t, workspace, sizeof workspace, NULL);
        if (cpu != ATTN_OK)
            fprintf(stderr, "in the child: %s\n", attn_last_error(rig.context));
        _exit(cuda == ATTN_ERR_FORKED && cpu == ATTN_OK ? 0 : 10 + (int)cuda);
    }
    CHECK_EQ_INT(waitpid(child, &status, 0), child);
    CHECK_EQ_INT(status, 0);
    CHECK_OK(gpu_proof_run(&rig, &proof, NULL), attn_last_error(rig.context));
    gpu_proof_check(&rig, &proof, &proof);
    gpu_proof_free(&rig, &proof);
}

static size_t free_memory(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    unsigned int (*get)(size_t *, size_t *) = NULL;
    size_t left = 0, all = 0;
    void *address = library ? dlsym(library, "cuMemGetInfo_v2") : NULL;
    memcpy(&get, &address, sizeof get);
    CHECK(get && get(&left, &all) == 0);
    if (library)
        (void)dlclose(library);
    return left;
}

/* Contexts that are closed give the device's memory back, and take nothing from others. */
static void test_unload(void) {
    gpu_proof proof;
    size_t before = 0;
    CHECK_CASE("unload");
    if (!make_small(&proof))
        return;
    for (int i = 0; i < 12; i++) {
        attn_options options = ATTN_OPTIONS_INIT;
        gpu_rig other = rig;
        options.db_path = options.system_db = "/nonexistent/attntune.db";
        if (!CHECK_OK(attn_open(&options, &other.context), "attn_open"))
            break;
        CHECK_OK(gpu_proof_run(&other, &proof, NULL), attn_last_error(other.context));
        gpu_proof_check(&rig, &proof, &proof);
        attn_close(other.context);
        if (i == 3)
            before = free_memory();
    }
    CHECK(free_memory() + (4u << 20) >= before);
    CHECK_OK(gpu_proof_run(&rig, &proof, NULL), attn_last_error(rig.context));
    gpu_proof_check(&rig, &proof, &proof);
    gpu_proof_free(&rig, &proof);
}

int main(void) {
    gpu_rig_open(&rig);
    test_counted();
    test_repeated(counted);
    test_repeated(counted_narrow);
    test_repeated("fwd:f16:b1:h16:s4200:d64:lse");
    test_repeated("fwd:bf16:b1:hq4:hkv2:sq500:sk700:d256:lse");
    test_two_streams("fwd:f16:b1:h16:s1000:d128:causal:lse",
                     "fwd:f16:b2:hq8:hkv2:sq300:sk777:d64:lse");
    test_two_streams(counted, counted);
    test_capture("fwd:bf16:b1:hq6:hkv2:sq200:sk300:d80:causal:lse",
                 "fwd:bf16:b1:hq6:hkv2:sq200:sk300:d80:window9,9:lse");
    test_capture(counted, "fwd:f16:b1:hq64:hkv8:s1152:d128:window9,9:lse");
    test_no_context();
    test_threads();
    test_unload();
    test_fork();
    gpu_rig_close(&rig);
    return check_done();
}
