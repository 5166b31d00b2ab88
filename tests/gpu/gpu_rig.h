/* gpu_rig.h: what the tests on a GPU share: the first device in its primary context, proofs (inputs
 * between guards with their float64 reference), and running them through the public API. */
#ifndef ATTN_TEST_GPU_RIG_H
#define ATTN_TEST_GPU_RIG_H

#include "compare.h"
#include "cuda/cuda_api.h"

typedef struct gpu_rig {
    const attn_cuda_api *cuda;
    attn_backend_device *device; /* own context: the primary one, current in the opener's thread */
    attn_context *context;       /* without any database */
} gpu_rig;

/* Ends the program as skipped where there is no GPU. */
void gpu_rig_open(gpu_rig *rig);
void gpu_rig_close(gpu_rig *rig);

typedef struct gpu_proof {
    attn_problem problem;
    attn_inputs inputs;
    attn_reference reference;
    void *workspace;
    size_t workspace_bytes;
} gpu_proof;

/* Makes, references and uploads the problem's inputs; false after a failed check. Free it in any
 * case. */
bool gpu_proof_make(const gpu_rig *rig, const char *problem, const attn_input_spec *spec,
                    gpu_proof *proof);
void gpu_proof_free(const gpu_rig *rig, gpu_proof *proof);

/* Queues it by attn_run. */
attn_status gpu_proof_run(const gpu_rig *rig, const gpu_proof *proof, void *stream);

/* Waits for the device, and holds what is in `ran`'s outputs on the device against what `proof`
 * wants: its own, or those of inputs that were copied over its. */
void gpu_proof_check(const gpu_rig *rig, const gpu_proof *ran, const gpu_proof *proof);

#endif
