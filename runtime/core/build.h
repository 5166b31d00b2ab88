/* build.h: a variant made into a binary: what a compiler is asked for, and what it gives back. */
#ifndef ATTN_BUILD_H
#define ATTN_BUILD_H

#include "core/hash.h"
#include "core/str.h"

/* What a backend's compile is asked for. All texts belong to the caller. */
typedef struct attn_build {
    const char *language;     /* "c", "cu", "ptx" */
    const char *source;       /* complete: needs no include folder of ours */
    const char *options;      /* "compiler=gcc -O3 -mavx512f"; checked against the allowed ones */
    const char *target;       /* "cpu:avx512", "sm_90a" */
    char key[ATTN_HASH_TEXT]; /* exported by the binary as `attn_key`, compared after every load */
    double
        seconds; /* limit for each start of a compiler that is a program; 0: the caller watches */
} attn_build;

/* The limit where nobody watches. A kernel takes a second or a few. */
#define ATTN_COMPILE_LIMIT_S 60.0

/* Identity of a build: variant, the toolchain that its options select (attn_backend.toolchain) and
 * the target. Its hex text is the key. */
attn_hash attn_build_hash(attn_hash variant, const char *toolchain, const char *target);

/* A compiled build; owns data and log. */
typedef struct attn_binary {
    void *data;
    size_t size;
    char key[ATTN_HASH_TEXT];
    attn_str log;      /* of the compiler, warnings included; also set when it fails */
    int32_t registers; /* a thread; -1 where not known (CPU) */
    int32_t spills;    /* bytes; -1 where not known */
    int32_t smem;      /* static shared memory, bytes; -1 where not known */
} attn_binary;

#define ATTN_BINARY_INIT                                                                           \
    { NULL, 0, "", ATTN_STR_INIT, -1, -1, -1 }

void attn_binary_free(attn_binary *binary); /* frees what it owns and sets it to ATTN_BINARY_INIT */

#endif
