/* stand.c: the measuring stand: copies of the tensors, and single samples. */
#include "stand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "proto.h"

static const double SAMPLE_NS = 2e6;     /* shorter ones drown in the clock's own noise */
static const double CANARY_SHARE = 0.95; /* of its best: under it the device was slowed down */
static const double CANARY_DECAY = 0.999;
static const double COPIES_BYTES_MAX = 1 << 30;
enum { COPIES_MAX = 4096, RETRIES = 3, LAUNCHES_MAX = 1 << 16 };

/* One set of tensors on the device. */
struct copy {
    char *memory[ATTN_IMAGES]; /* in the stand's */
    attn_forward_args args;
};

struct attn_stand {
    const attn_backend *backend;
    attn_backend_device *device;
    attn_problem problem;
    void *memory; /* all copies, one behind the other: few and large pages */
    struct copy *copy;
    int32_t copies;
    int32_t next; /* copy that the next launch begins with */
    attn_call *call;
    void *workspace;
    size_t workspace_size;
    double canary_best;
};

static int32_t copies_wanted(const attn_stand *stand, attn_mode mode) {
    attn_device_info info;
    double bytes = fmax(attn_problem_bytes(&stand->problem), 1);
    stand->backend->info(stand->device, &info);
    double cache = (double)attn_device_prop(&info, "l3");
    cache = fmax(cache, (double)attn_device_prop(&info, "l2"));
    double wanted = floor(fmin(2 * cache, COPIES_BYTES_MAX) / bytes) + 1;
    return mode == ATTN_HOT ? 1 : (int32_t)fmin(wanted, COPIES_MAX);
}

/* A tensor's address in a copy: as far behind the start of its image as it is on the host. */
static void *moved(const attn_inputs *inputs, const struct copy *copy, const void *host) {
    for (int i = 0; host && i < ATTN_IMAGES; i++) {
        const attn_image *image = &inputs->image[i];
        uintptr_t offset = (uintptr_t)host - (uintptr_t)image->host;
        if (image->size > 0 && (uintptr_t)host >= (uintptr_t)image->host && offset < image->size)
            return copy->memory[i] + offset;
    }
    return NULL;
}

static size_t image_bytes(const attn_image *image) {
    return (image->size + 255) / 256 * 256;
}

/* Writes a copy whose memory begins at `at`. */
static attn_status fill_copy(attn_stand *stand, const attn_inputs *inputs, char *at,
                             struct copy *copy, attn_error *err) {
    const attn_backend *backend = stand->backend;
    for (int i = 0; i < ATTN_IMAGES; i++) {
        const attn_image *image = &inputs->image[i];
        copy->memory[i] = at;
        at += image_bytes(image);
        if (image->size > 0)
            ATTN_TRY(backend->copy(stand->device, copy->memory[i], image->host, image->size,
                                   ATTN_COPY_TO_DEVICE, err));
    }
    attn_forward_tensors tensors = inputs->host;
    tensors.q = moved(inputs, copy, tensors.q);
    tensors.k = moved(inputs, copy, tensors.k);
    tensors.v = moved(inputs, copy, tensors.v);
    tensors.o = moved(inputs, copy, tensors.o);
    tensors.lse = moved(inputs, copy, tensors.lse);
    attn_problem_args(&stand->problem, &tensors, &copy->args);
    return ATTN_OK;
}

static attn_status fill(attn_stand *stand, uint64_t seed, attn_error *err) {
    const attn_input_spec spec = {ATTN_INPUT_STD1, ATTN_STRIDES_LAYOUT, NAN, seed};
    attn_inputs inputs;
    size_t bytes = 0;
    attn_status status = attn_inputs_make(&stand->problem, &spec, &inputs, err);
    for (int i = 0; status == ATTN_OK && i < ATTN_IMAGES; i++)
        bytes += image_bytes(&inputs.image[i]);
    if (status == ATTN_OK)
        status = stand->backend->alloc(stand->device, bytes * (size_t)stand->copies, &stand->memory,
                                       err);
    for (int32_t i = 0; status == ATTN_OK && i < stand->copies; i++)
        status = fill_copy(stand, &inputs, (char *)stand->memory + bytes * (size_t)i,
                           &stand->copy[i], err);
    attn_inputs_free(&inputs);
    return status;
}

attn_status attn_stand_open(const attn_backend *backend, attn_backend_device *device,
                            const attn_problem *problem, attn_mode mode, uint64_t seed,
                            attn_stand **stand, attn_error *err) {
    attn_stand *s = calloc(1, sizeof *s);
    *stand = NULL;
    if (!s)
        return attn_fail_nomem(err);
    s->backend = backend;
    s->device = device;
    s->problem = *problem;
    s->copies = copies_wanted(s, mode);
    s->copy = calloc((size_t)s->copies, sizeof *s->copy);
    s->call = calloc((size_t)s->copies, sizeof *s->call);
    attn_status status = s->copy && s->call ? fill(s, seed, err) : attn_fail_nomem(err);
    if (status != ATTN_OK) {
        attn_stand_close(s);
        return status;
    }
    *stand = s;
    return ATTN_OK;
}

void attn_stand_close(attn_stand *stand) {
    if (!stand)
        return;
    if (stand->memory)
        stand->backend->free(stand->device, stand->memory);
    if (stand->workspace)
        stand->backend->free(stand->device, stand->workspace);
    free(stand->copy);
    free(stand->call);
    free(stand);
}

static attn_status reserve_workspace(attn_stand *stand, const attn_launch *launch,
                                     attn_error *err) {
    size_t size =
        attn_workspace_bytes(launch, &stand->problem, stand->backend->workers(stand->device));
    if (size <= stand->workspace_size)
        return ATTN_OK;
    if (stand->workspace)
        stand->backend->free(stand->device, stand->workspace);
    stand->workspace = NULL;
    stand->workspace_size = 0;
    ATTN_TRY(stand->backend->alloc(stand->device, size, &stand->workspace, err));
    stand->workspace_size = size;
    return ATTN_OK;
}

/* Wall time of so many launches, ns for one. */
static attn_status time_launches(attn_stand *stand, const attn_timed *timed, int32_t launches,
                                 double *ns, attn_error *err) {
    int32_t calls = launches < stand->copies ? launches : stand->copies;
    ATTN_TRY(reserve_workspace(stand, timed->launch, err));
    for (int32_t i = 0; i < calls; i++) {
        attn_call *call = &stand->call[i];
        call->problem = &stand->problem;
        call->args = stand->copy[(stand->next + i) % stand->copies].args;
        attn_workspace_assign(timed->launch, &stand->problem,
                              stand->backend->workers(stand->device), stand->workspace,
                              &call->args);
    }
    stand->next = (stand->next + launches) % stand->copies;
    ATTN_TRY(stand->backend->time(timed->kernel, stand->call, calls, launches, ns, err));
    *ns /= launches;
    if (!(*ns >= 0))
        return attn_fail(err, ATTN_ERR_DEVICE, "the device gave no time");
    return ATTN_OK;
}

static int32_t launches_for(double ns) {
    return (int32_t)fmin(ceil(SAMPLE_NS / fmax(ns, 1)), LAUNCHES_MAX);
}

attn_status attn_stand_warm(attn_stand *stand, attn_timed *timed, attn_error *err) {
    double ns;
    ATTN_TRY(time_launches(stand, timed, 1, &ns, err));
    ATTN_TRY(time_launches(stand, timed, 1, &ns, err));
    /* A single launch still carries the clock's and the first touch's cost: look again. */
    if (launches_for(ns) > 1)
        ATTN_TRY(time_launches(stand, timed, launches_for(ns * 4), &ns, err));
    timed->launches = launches_for(ns);
    return ATTN_OK;
}

/* False if the device was slow while the last sample was taken. */
static bool steady(attn_stand *stand, attn_device_state *state) {
    *state = (attn_device_state)ATTN_DEVICE_STATE_INIT;
    if (!stand->backend->state)
        return true;
    stand->backend->state(stand->device, state);
    /* The best fades slowly, so that one lucky reading does not reject all that follow. */
    if (state->canary > 0)
        stand->canary_best = fmax(stand->canary_best * CANARY_DECAY, state->canary);
    return !state->throttled &&
           !(state->canary > 0 && state->canary < CANARY_SHARE * stand->canary_best);
}

attn_status attn_stand_sample(attn_stand *stand, attn_timed *timed, double *ns, attn_error *err) {
    if (timed->launches == 0)
        ATTN_TRY(attn_stand_warm(stand, timed, err));
    const int64_t begun = attn_now_ns();
    for (int attempt = 0;; attempt++) {
        ATTN_TRY(time_launches(stand, timed, timed->launches, ns, err));
        if (steady(stand, &timed->last_state))
            break;
        if (attempt == RETRIES) {
            timed->throttled = true;
            break;
        }
    }
    timed->spent_ns += (double)(attn_now_ns() - begun);
    if (timed->count < ATTN_SAMPLES_MAX)
        timed->ns[timed->count++] = *ns;
    return ATTN_OK;
}

double attn_stand_peak(const attn_stand *stand) {
    const attn_backend *backend = stand->backend;
    return backend->peak ? backend->peak(stand->device, backend->workers(stand->device)) : NAN;
}
