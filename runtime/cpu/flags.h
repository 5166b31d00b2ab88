/* flags.h: the build options of a CPU kernel, "compiler=gcc -O3 -mavx2 -mfma", checked.
 *
 * Options come from space files and from databases, so only flags that are known to be harmless
 * pass: none that reads or writes other files, changes the ABI or runs a program. */
#ifndef ATTN_FLAGS_H
#define ATTN_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { ATTN_FLAGS_MAX = 64 };

typedef struct attn_cpu_flags {
    char *text; /* owns the words below */
    const char
        *compiler; /* NULL: the one of this machine, $CC or cc; "compiler=cc" means it, too */
    const char *flag[ATTN_FLAGS_MAX];
    int count;
    uint32_t needs; /* instruction sets that the flags turn on: attn_isa */
    bool openmp;
} attn_cpu_flags;

/* ERR_INVALID naming the word that is not allowed, ERR_NOMEM. Free in any case. */
attn_status attn_cpu_flags_parse(const char *options, attn_cpu_flags *flags, attn_error *err);
void attn_cpu_flags_free(attn_cpu_flags *flags);

#endif
