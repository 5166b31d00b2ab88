/* cuda_run.c: launching the steps of a kernel on the caller's stream. */
#include <string.h>

#include "cuda_backend.h"

/* Blocks of a step: its tasks, or as many as stay resident; a multiple of the cluster. */
static int64_t blocks_of(const attn_kernel *k, const attn_step *step, int64_t tasks) {
    int64_t cluster = step->cluster;
    if (step->grid == ATTN_GRID_PERSISTENT) {
        int64_t resident = (int64_t)k->device->sms * step->blocks_per_sm - step->spare;
        if (resident < 1)
            resident = 1;
        if (resident < tasks)
            tasks = resident > cluster ? resident / cluster * cluster : cluster;
    }
    return (tasks + cluster - 1) / cluster * cluster;
}

static CUresult launch_plain(const attn_kernel *k, int32_t i, unsigned blocks, void **params,
                             CUstream stream) {
    const attn_step *step = &k->launch.step[i];
    return k->device->api->launch(k->function[i], blocks, 1, 1, (unsigned)step->threads, 1, 1,
                                  (unsigned)step->smem, stream, params, NULL);
}

static CUresult launch_with_attributes(const attn_kernel *k, int32_t i, unsigned blocks,
                                       void **params, CUstream stream) {
    const attn_step *step = &k->launch.step[i];
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config;
    memset(attributes, 0, sizeof attributes);
    memset(&config, 0, sizeof config);
    config.gridDimX = blocks;
    config.blockDimX = (unsigned)step->threads;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = (unsigned)step->smem;
    config.hStream = stream;
    config.attrs = attributes;
    if (step->cluster > 1) {
        CUlaunchAttribute *a = &attributes[config.numAttrs++];
        a->id = (CUlaunchAttributeID)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        a->value.clusterDim.x = (unsigned)step->cluster;
        a->value.clusterDim.y = a->value.clusterDim.z = 1;
    }
    if (step->pdl) {
        CUlaunchAttribute *a = &attributes[config.numAttrs++];
        a->id = (CUlaunchAttributeID)CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        a->value.programmaticStreamSerializationAllowed = 1;
    }
    return k->device->api->launch_ex(&config, k->function[i], params, NULL);
}

static attn_status launch_step(const attn_kernel *k, int32_t i, const attn_problem *problem,
                               attn_forward_args *args, CUstream stream, attn_error *err) {
    const attn_step *step = &k->launch.step[i];
    int64_t tasks = attn_step_tasks(step, &k->launch, problem);
    void *params[] = {args};
    if (tasks == 0)
        return ATTN_OK;
    args->tiles = (attn_i32)attn_step_tiles(step, problem);
    unsigned blocks = (unsigned)blocks_of(k, step, tasks);
    bool plain = step->cluster == 1 && !step->pdl;
    if (!plain && !k->device->api->launch_ex)
        return attn_fail(err, ATTN_ERR_LAUNCH, "this driver has no clusters");
    CUresult result = plain ? launch_plain(k, i, blocks, params, stream)
                            : launch_with_attributes(k, i, blocks, params, stream);
    ATTN_CUDA_TRY(k->device->api, step->symbol, result, err);
    return ATTN_OK;
}

attn_status attn_cuda_run(attn_kernel *kernel, const attn_call *call, void *stream,
                          attn_error *err) {
    const attn_cuda_api *api = kernel->device->api;
    const attn_launch *launch = &kernel->launch;
    attn_forward_args args = call->args;
    ATTN_TRY(attn_cuda_enter(kernel->device, err));
    if (kernel->module) {
        CUcontext current = NULL;
        (void)api->ctx_get(&current);
        if (current != kernel->module_context)
            return attn_fail(err, ATTN_ERR_DEVICE, "the kernel was loaded in another context");
    }
    if (launch->maps)
        ATTN_TRY(attn_cuda_maps(api, launch, call->problem, &args, err));
    if (launch->zero_bytes)
        ATTN_CUDA_TRY(api, "clearing the workspace",
                      api->memset_async((CUdeviceptr)(uintptr_t)args.workspace[0], 0,
                                        (size_t)launch->zero_bytes, stream),
                      err);
    for (int32_t i = 0; i < launch->steps; i++)
        ATTN_TRY(launch_step(kernel, i, call->problem, &args, stream, err));
    return ATTN_OK;
}
