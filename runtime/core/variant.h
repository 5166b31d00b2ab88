/* variant.h: a rendered kernel. */
#ifndef ATTN_VARIANT_H
#define ATTN_VARIANT_H

#include <stdbool.h>

#include "core/error.h"
#include "core/hash.h"

/* One family in one configuration for one class, rendered. Made by the generator; every text is
 * owned by the variant. */
typedef struct attn_variant {
    char *family;     /* "cpu/simd_forward" */
    char *language;   /* "c", "cu" or "ptx": the template's ending */
    char *config;     /* "NV=4 MR=4": every parameter, in the space's order */
    char *class_text; /* attn_class_print, then " seq_kv=1024" for each specialised field */
    char *source;     /* one file that compiles alone: the helpers are pasted in with #line */
    char *launch;     /* text form of launch.h, limits included */
    char *options;    /* build options: "compiler=gcc -O3 -mavx512f" */
    attn_hash hash;   /* of all of the above and ATTN_ABI_VERSION */
} attn_variant;

void attn_variant_free(attn_variant *variant); /* frees the texts and zeroes the struct */

/* Sets hash from the texts. */
void attn_variant_seal(attn_variant *variant);

/* "BLOCK_M" in "BLOCK_M=64 ...": copies the value; false if it is not there or too long. */
bool attn_config_get(const char *config, const char *name, char *value, size_t size);

#endif
