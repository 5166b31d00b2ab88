/* cuda_time.c: timing launches with events: one by one, or replayed from a graph where a launch is
 * so short that queueing it would be what is measured. */
#include "cuda_backend.h"

#define SHORT_NS 20000.0

static attn_status queue_all(attn_kernel *k, const attn_call *calls, int32_t count,
                             int32_t launches, attn_error *err) {
    for (int32_t i = 0; i < launches; i++)
        ATTN_TRY(attn_cuda_run(k, &calls[i % count], k->device->stream, err));
    return ATTN_OK;
}

static attn_status read_time(const attn_backend_device *d, double *ns, attn_error *err) {
    float ms = 0;
    ATTN_CUDA_TRY(d->api, "cuEventRecord", d->api->event_record(d->end, d->stream), err);
    ATTN_CUDA_TRY(d->api, "running the kernel", d->api->event_sync(d->end), err);
    ATTN_CUDA_TRY(d->api, "cuEventElapsedTime", d->api->event_elapsed(&ms, d->begin, d->end), err);
    *ns = 1e6 * (double)ms;
    return ATTN_OK;
}

static attn_status time_eager(attn_kernel *k, const attn_call *calls, int32_t count,
                              int32_t launches, double *ns, attn_error *err) {
    const attn_backend_device *d = k->device;
    ATTN_CUDA_TRY(d->api, "cuEventRecord", d->api->event_record(d->begin, d->stream), err);
    ATTN_TRY(queue_all(k, calls, count, launches, err));
    return read_time(d, ns, err);
}

static attn_status capture(attn_kernel *k, const attn_call *calls, int32_t count, int32_t launches,
                           CUgraphExec *replay, attn_error *err) {
    const attn_backend_device *d = k->device;
    CUgraph graph = NULL;
    ATTN_CUDA_TRY(
        d->api, "cuStreamBeginCapture",
        d->api->capture_begin(d->stream, (CUstreamCaptureMode)CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        err);
    attn_status status = queue_all(k, calls, count, launches, err);
    CUresult result = d->api->capture_end(d->stream, &graph);
    if (status == ATTN_OK && result == 0)
        result = d->api->graph_instantiate(replay, graph, 0);
    if (graph)
        (void)d->api->graph_destroy(graph);
    if (status != ATTN_OK)
        return status;
    ATTN_CUDA_TRY(d->api, "capturing a graph", result, err);
    return ATTN_OK;
}

/* The first replay uploads the graph and is not timed. */
static attn_status replay_twice(const attn_backend_device *d, CUgraphExec replay, double *ns,
                                attn_error *err) {
    ATTN_CUDA_TRY(d->api, "cuGraphLaunch", d->api->graph_launch(replay, d->stream), err);
    ATTN_CUDA_TRY(d->api, "cuEventRecord", d->api->event_record(d->begin, d->stream), err);
    ATTN_CUDA_TRY(d->api, "cuGraphLaunch", d->api->graph_launch(replay, d->stream), err);
    return read_time(d, ns, err);
}

static attn_status time_replayed(attn_kernel *k, const attn_call *calls, int32_t count,
                                 int32_t launches, double *ns, attn_error *err) {
    CUgraphExec replay = NULL;
    ATTN_TRY(capture(k, calls, count, launches, &replay, err));
    attn_status status = replay_twice(k->device, replay, ns, err);
    (void)k->device->api->graph_exec_destroy(replay);
    return status;
}

attn_status attn_cuda_time(attn_kernel *kernel, const attn_call *calls, int32_t count,
                           int32_t launches, double *ns, attn_error *err) {
    attn_backend_device *d = kernel->device;
    ATTN_TRY(attn_cuda_enter(d, err));
    ATTN_CUDA_TRY(d->api, "waiting for the device", d->api->ctx_sync(), err);
    bool is_short = kernel->last_ns > 0 && kernel->last_ns < SHORT_NS;
    attn_status status = is_short && launches > 1 && d->api->graph_instantiate
                             ? time_replayed(kernel, calls, count, launches, ns, err)
                             : time_eager(kernel, calls, count, launches, ns, err);
    if (status == ATTN_OK)
        kernel->last_ns = *ns / launches;
    return status;
}
