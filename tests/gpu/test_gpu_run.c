/* test_gpu_run.c: the library on a GPU, held against float64: every mask with unequal lengths, GQA
 * of 1, 3, 7, 8 and all heads, all types, layouts and strides, with guards and padding poisoned;
 * offsets beyond 2^31 elements and more than 65535 tiles. */
#include "check.h"
#include "gpu_rig.h"

static gpu_rig rig;

static void run_case(const char *problem, attn_strides strides, attn_input_kind kind) {
    gpu_proof proof;
    attn_choice choice = ATTN_CHOICE_INIT;
    const attn_input_spec spec = {kind, strides, NAN, 7};
    CHECK_CASE("%s, %s, %s", problem, attn_strides_name(strides), attn_input_kind_name(kind));
    if (gpu_proof_make(&rig, problem, &spec, &proof) &&
        CHECK_OK(gpu_proof_run(&rig, &proof, NULL), attn_last_error(rig.context))) {
        gpu_proof_check(&rig, &proof, &proof);
        CHECK_OK(attn_choice_get(rig.context, &proof.problem, ATTN_DEVICE_CUDA(0), &choice),
                 attn_last_error(rig.context));
        CHECK(strcmp(choice.family, "cuda/reference_forward") != 0);
    }
    gpu_proof_free(&rig, &proof);
}

static void test_cases(void) {
    static const struct {
        const char *problem;
        attn_strides strides;
        attn_input_kind kind;
    } cases[] = {
        {"fwd:f16:b2:h3:s200:d128:causal:lse", ATTN_STRIDES_PADDED, ATTN_INPUT_STD1},
        {"fwd:f16:b1:hq3:hkv1:sq70:sk333:d128:causal:lse", ATTN_STRIDES_LAYOUT, ATTN_INPUT_STD8},
        {"fwd:f16:b1:hq7:hkv1:sq333:sk70:d128:causal:lse", ATTN_STRIDES_PADDED, ATTN_INPUT_PEAKED},
        {"fwd:f16:b2:hq16:hkv2:sq65:sk129:d64:lse", ATTN_STRIDES_REPEATED, ATTN_INPUT_STD1},
        {"fwd:f16:b2:hq16:hkv2:sq129:sk1:d64:lse", ATTN_STRIDES_PADDED, ATTN_INPUT_STD1},
        {"fwd:f16:b1:hq6:hkv2:sq90:sk300:d40:dv80:causal_tl", ATTN_STRIDES_PADDED, ATTN_INPUT_STD1},
        {"fwd:f16:b1:hq6:hkv2:sq300:sk90:d40:dv80:causal_tl", ATTN_STRIDES_ROW_MAJOR,
         ATTN_INPUT_STD8},
        {"fwd:f16:b1:hq8:hkv1:sq200:sk411:d64:window60,5:lse", ATTN_STRIDES_PADDED,
         ATTN_INPUT_STD1},
        {"fwd:f16:b1:hq8:hkv1:sq411:sk200:d64:window60,5:lse", ATTN_STRIDES_LAYOUT,
         ATTN_INPUT_STD1},
        {"fwd:f16:b1:h4:sq50:sk400:d64:window-1,3:lse:bshd", ATTN_STRIDES_LAYOUT, ATTN_INPUT_STD8},
        {"fwd:bf16:b2:h2:s130:d128:lse:qkv", ATTN_STRIDES_LAYOUT, ATTN_INPUT_STD1},
        {"fwd:bf16:b1:hq14:hkv2:sq1:sk700:d128:lse", ATTN_STRIDES_PADDED, ATTN_INPUT_PEAKED},
        {"fwd:bf16:b1:h2:sq257:sk65:d256:causal", ATTN_STRIDES_PADDED, ATTN_INPUT_STD1},
        {"fwd:bf16:b1:hq3:hkv3:sq65:sk257:d96:causal:a1", ATTN_STRIDES_PADDED, ATTN_INPUT_STD1},
        {"fwd:f32:b2:hq6:hkv2:sq33:sk100:d33:dv17:causal:lse:a1", ATTN_STRIDES_PADDED,
         ATTN_INPUT_STD8},
        {"fwd:f32:b1:h2:sq100:sk33:d64:window9,0", ATTN_STRIDES_ROW_MAJOR, ATTN_INPUT_STD1},
        {"fwd:f16:b1:h32:s1024:d128:causal:lse", ATTN_STRIDES_LAYOUT, ATTN_INPUT_STD1},
        {"fwd:f16:b1:h2:sq70:sk0:d64:lse", ATTN_STRIDES_PADDED, ATTN_INPUT_STD1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_case(cases[i].problem, cases[i].strides, cases[i].kind);
    check_case[0] = '\0';
}

/* Rows of K and V lie 2^24 elements apart: the last begins 5 x 10^9 elements on. */
static void test_far_rows(void) {
    enum { ROWS = 300, COLUMNS = 64 };
    const int64_t stride = (int64_t)1 << 24;
    const size_t bytes = 2 * ((size_t)(ROWS - 1) * (size_t)stride + COLUMNS);
    const attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_LAYOUT, NAN, 3};
    attn_error err = ATTN_ERROR_INIT;
    gpu_proof proof;
    CUdeviceptr far[2] = {0, 0};
    CHECK_CASE("rows 2^24 elements apart");
    bool good = gpu_proof_make(&rig, "fwd:f16:b1:hq3:hkv1:s300:d64:lse", &spec, &proof);
    if (good && (rig.cuda->mem_alloc(&far[0], bytes) || rig.cuda->mem_alloc(&far[1], bytes))) {
        printf("not run: rows 2^24 elements apart: the GPU has no 20 GB of memory\n");
        good = false;
    }
    for (int i = 0; good && i < 2; i++) {
        const char *from = i ? proof.inputs.host.v : proof.inputs.host.k;
        const int64_t *strides = i ? proof.inputs.host.v_stride : proof.inputs.host.k_stride;
        for (int64_t row = 0; row < ROWS; row++)
            CHECK_OK(attn_backend_cuda.copy(
                         rig.device, (void *)(uintptr_t)(far[i] + (CUdeviceptr)(2 * row * stride)),
                         from + 2 * row * strides[2], 2 * (size_t)COLUMNS, ATTN_COPY_TO_DEVICE,
                         &err),
                     err.line);
    }
    if (good) {
        attn_forward_tensors t = proof.inputs.device;
        t.k = (const void *)(uintptr_t)far[0];
        t.v = (const void *)(uintptr_t)far[1];
        t.k_stride[2] = t.v_stride[2] = stride;
        CHECK_OK(attn_run(rig.context, &proof.problem, ATTN_DEVICE_CUDA(0), &t, proof.workspace,
                          proof.workspace_bytes, NULL),
                 attn_last_error(rig.context));
        gpu_proof_check(&rig, &proof, &proof);
    }
    for (int i = 0; i < 2; i++)
        (void)rig.cuda->mem_free(far[i]);
    gpu_proof_free(&rig, &proof);
    check_case[0] = '\0';
}

/* Q of 2^31 elements and more, in over 65535 tiles. Its rows repeat with a period that is no power
 * of two, so that an offset that wraps reads another row; the first period is held against float64,
 * the others against the first. */
static void test_many_rows(void) {
    enum { PERIOD = 100003, PERIODS = 168, COLUMNS = 128 };
    const size_t part = 2 * (size_t)PERIOD * COLUMNS;
    const attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_LAYOUT, NAN, 5};
    attn_error err = ATTN_ERROR_INIT;
    gpu_proof proof;
    CUdeviceptr q = 0, o = 0, lse = 0;
    CHECK_CASE("16.8 million query rows");
    bool good = gpu_proof_make(&rig, "fwd:f16:b1:h1:sq100003:sk24:d128:lse", &spec, &proof) &&
                CHECK_EQ_INT(proof.inputs.host.q_stride[2], COLUMNS) &&
                CHECK_EQ_INT(proof.inputs.host.o_stride[2], COLUMNS);
    if (good &&
        (rig.cuda->mem_alloc(&q, PERIODS * part) || rig.cuda->mem_alloc(&o, PERIODS * part) ||
         rig.cuda->mem_alloc(&lse, (size_t)PERIODS * 4 * PERIOD))) {
        printf("not run: 16.8 million query rows: the GPU has no 9 GB of memory\n");
        good = false;
    }
    unsigned char *first = malloc(part), *next = malloc(part);
    for (size_t i = 0; good && i < PERIODS; i++)
        CHECK_EQ_INT(rig.cuda->copy_to_device(q + i * part, proof.inputs.host.q, part), 0);
    if (good) {
        attn_problem many = proof.problem;
        attn_forward_tensors t = proof.inputs.device;
        many.seq_q = PERIOD * PERIODS;
        CHECK((int64_t)many.seq_q * COLUMNS > (int64_t)1 << 31);
        CHECK(many.seq_q / 128 > 65535); /* tiles, were they of 128 rows */
        t.q = (const void *)(uintptr_t)q;
        t.o = (void *)(uintptr_t)o;
        t.lse = (float *)(uintptr_t)lse;
        CHECK_OK(attn_run(rig.context, &many, ATTN_DEVICE_CUDA(0), &t, proof.workspace,
                          proof.workspace_bytes, NULL),
                 attn_last_error(rig.context));
        CHECK_OK(attn_backend_cuda.sync(rig.device, &err), err.line);
        CHECK_EQ_INT(rig.cuda->copy_from_device(first, o, part), 0);
        CHECK_EQ_INT(
            rig.cuda->copy_to_device((CUdeviceptr)(uintptr_t)proof.inputs.device.o, first, part),
            0);
        CHECK_EQ_INT(rig.cuda->copy_from_device(next, lse, 4 * (size_t)PERIOD), 0);
        CHECK_EQ_INT(rig.cuda->copy_to_device((CUdeviceptr)(uintptr_t)proof.inputs.device.lse, next,
                                              4 * (size_t)PERIOD),
                     0);
        gpu_proof_check(&rig, &proof, &proof);
        for (size_t i = 1; i < PERIODS; i++) {
            CHECK_EQ_INT(rig.cuda->copy_from_device(next, o + i * part, part), 0);
            CHECK(memcmp(first, next, part) == 0);
        }
    }
    free(first);
    free(next);
    (void)rig.cuda->mem_free(q);
    (void)rig.cuda->mem_free(o);
    (void)rig.cuda->mem_free(lse);
    gpu_proof_free(&rig, &proof);
    check_case[0] = '\0';
}

int main(void) {
    gpu_rig_open(&rig);
    test_cases();
    test_far_rows();
    test_many_rows();
    gpu_rig_close(&rig);
    return check_done();
}
