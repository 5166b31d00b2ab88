/* gpu_rig.c: see gpu_rig.h. */
#include "gpu_rig.h"

#include "check.h"

static const attn_backend *const cuda = &attn_backend_cuda;

void gpu_rig_open(gpu_rig *rig) {
    attn_error err = ATTN_ERROR_INIT;
    attn_options options = ATTN_OPTIONS_INIT;
    attn_device_options own = {.own_context = true};
    int32_t count = 0;
    CHECK_OK(cuda->count(&count, &err), err.line);
    if (count == 0)
        check_skip(err.line[0] ? err.line : "no GPU");
    CHECK_OK(attn_cuda_open(&rig->cuda, &err), err.line);
    CHECK_OK(cuda->open(0, &own, &rig->device, &err), err.line);
    options.db_path = "/nonexistent/attntune.db";
    options.system_db = options.db_path;
    CHECK_OK(attn_open(&options, &rig->context), "attn_open");
    if (check_failures)
        exit(check_done());
}

void gpu_rig_close(gpu_rig *rig) {
    attn_close(rig->context);
    cuda->close(rig->device);
}

bool gpu_proof_make(const gpu_rig *rig, const char *problem, const attn_input_spec *spec,
                    gpu_proof *proof) {
    attn_error err = ATTN_ERROR_INIT;
    memset(proof, 0, sizeof *proof);
    if (!CHECK_OK(attn_problem_parse(problem, &proof->problem, err.line, sizeof err.line),
                  err.line) ||
        !CHECK_OK(attn_inputs_make(&proof->problem, spec, &proof->inputs, &err), err.line) ||
        !CHECK_OK(attn_reference_make(&proof->inputs, 3e8, 1, &proof->reference, &err), err.line) ||
        !CHECK_OK(attn_inputs_upload(&proof->inputs, cuda, rig->device, &err), err.line))
        return false;
    proof->workspace_bytes =
        attn_workspace_size(rig->context, &proof->problem, ATTN_DEVICE_CUDA(0));
    return CHECK_OK(cuda->alloc(rig->device, proof->workspace_bytes, &proof->workspace, &err),
                    err.line);
}

void gpu_proof_free(const gpu_rig *rig, gpu_proof *proof) {
    attn_inputs_free(&proof->inputs);
    attn_reference_free(&proof->reference);
    cuda->free(rig->device, proof->workspace);
    memset(proof, 0, sizeof *proof);
}

attn_status gpu_proof_run(const gpu_rig *rig, const gpu_proof *proof, void *stream) {
    return attn_run(rig->context, &proof->problem, ATTN_DEVICE_CUDA(0), &proof->inputs.device,
                    proof->workspace, proof->workspace_bytes, stream);
}

void gpu_proof_check(const gpu_rig *rig, const gpu_proof *ran, const gpu_proof *proof) {
    attn_error err = ATTN_ERROR_INIT;
    attn_verdict verdict = ATTN_VERDICT_INIT;
    unsigned char *image[ATTN_IMAGES] = {NULL};
    if (!CHECK_OK(cuda->sync(rig->device, &err), err.line))
        return;
    for (int i = 0; i < ATTN_IMAGES; i++) {
        const attn_image *from = &ran->inputs.image[i];
        image[i] = malloc(from->size + 1);
        CHECK_OK(cuda->copy(rig->device, image[i], from->device, from->size, ATTN_COPY_FROM_DEVICE,
                            &err),
                 err.line);
        if (i < ATTN_IMAGE_O)
            CHECK(memcmp(image[i], proof->inputs.image[i].host, from->size) == 0);
    }
    (void)attn_compare(&proof->inputs, &proof->reference, image[ATTN_IMAGE_O],
                       image[ATTN_IMAGE_LSE], &verdict);
    CHECK_STR(verdict.reason, "");
    CHECK(verdict.right);
    for (int i = 0; i < ATTN_IMAGES; i++)
        free(image[i]);
}
