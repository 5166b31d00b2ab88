/* fake_cuda.h: a libcuda.so.1 for tests of the CUDA backend without a GPU.
 *
 * Device memory is the host's, a cubin is any text behind an ELF mark, kernels do nothing; what was
 * asked of the driver is written down in `fake_cuda`, which a test finds by dlsym in the same
 * library. Built twice: with ATTN_FAKE_OLD it lacks what came with CUDA 11.8 and 12.0. */
#ifndef ATTN_FAKE_CUDA_H
#define ATTN_FAKE_CUDA_H

#include "cuda/cuda_api.h"

enum { FAKE_LAUNCHES = 64 };

typedef struct fake_launch {
    unsigned blocks, threads, smem, cluster;
    int pdl;
    int32_t tiles; /* of the argument struct */
    void *stream;
} fake_launch;

typedef struct fake_cuda_state {
    fake_launch launch[FAKE_LAUNCHES];
    int launches;       /* may be more than are written down */
    int clears;         /* memsets, all before the first launch */
    size_t cleared;     /* bytes of the last */
    int replays;        /* graph launches */
    int maps;           /* tensor maps encoded */
    int loaded;         /* libraries and modules now */
    int smem_allowed;   /* last value of the attribute */
    CUresult result;    /* of launches and of waiting from now on */
    void *current;      /* the context that is current, NULL: none */
    int current_device; /* of it */
    char key[33];       /* what attn_key holds */
    float elapsed_ms;   /* between events */
} fake_cuda_state;

#endif
