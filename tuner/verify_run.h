/* verify_run.h: running one kernel on one proof's inputs and judging what it wrote. */
#ifndef ATTN_VERIFY_RUN_H
#define ATTN_VERIFY_RUN_H

#include "judge.h"

/* Inputs and what should come of them. */
typedef struct attn_proof {
    attn_hash hash; /* of the problem */
    attn_inputs inputs;
    attn_reference reference;
    attn_judge judge; /* empty: the reference is complete, or nothing judges on this device */
} attn_proof;

/* Device memory that grows and is kept. */
typedef struct attn_scratch {
    void *memory;
    size_t size;
} attn_scratch;

/* What runs need beside a proof; all but backend and device begin as zero. */
typedef struct attn_rig {
    const attn_backend *backend;
    attn_backend_device *device;
    attn_scratch workspace;
    attn_scratch busy_workspace;
    unsigned char *host; /* images of o and lse of two runs, or parts of an input */
    size_t host_size;
    void *stream;            /* of the tuner's own, made when first needed */
    const attn_proof *other; /* what the stream is kept busy with; NULL: it is not */
} attn_rig;

void attn_rig_free(attn_rig *rig);

/* Can the kernel address the proof's tensors, and its launch record their sizes? */
bool attn_rig_fits(const attn_rig *rig, const attn_proof *proof, const attn_kernel *kernel,
                   const attn_launch *launch);

/* Runs the kernel `runs` times on the proof's inputs: the first output is judged, the others must
 * equal it bit for bit, and guards, workspace bounds and inputs must be untouched. */
attn_status attn_rig_prove(attn_rig *rig, attn_proof *proof, attn_kernel *kernel,
                           const attn_launch *launch, int32_t runs, attn_verdict *verdict,
                           attn_error *err);

/* Runs the kernel that judges others, which is held against the reference as any other is; if it is
 * right, from now on every element of every other output is compared with its own. */
attn_status attn_rig_judge(attn_rig *rig, attn_proof *proof, attn_kernel *kernel,
                           const attn_launch *launch, attn_verdict *verdict, attn_error *err);

/* From now on, each run has another one of the same kernel, on `other`, queued before it on a
 * stream of its own. Does nothing where the device has no streams. */
attn_status attn_rig_busy(attn_rig *rig, const attn_proof *other, attn_error *err);
void attn_rig_idle(attn_rig *rig);

#endif
