/* object.h: loads a compiled kernel from memory. */
#ifndef ATTN_OBJECT_H
#define ATTN_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/build.h"

/* A loaded shared object. The descriptor stays open as long as the object is loaded: the loader
 * knows objects by name, here /proc/self/fd/N, and an N used again would give the old object. */
typedef struct attn_object {
    void *handle;
    int fd; /* -1: it was loaded from a file that is gone already */
} attn_object;

/* Where the bytes are put for the loader. FILE needs a folder in which programs may be run. */
typedef enum attn_object_way { ATTN_OBJECT_MEMORY, ATTN_OBJECT_FILE } attn_object_way;

/* Loads a binary made by attn_cpu_compile: checks its seal before and its key after. From memory,
 * or where that is not possible from a file in TMPDIR or /tmp. ERR_LOAD. */
attn_status attn_object_open(const attn_binary *binary, attn_object *object, attn_error *err);
void attn_object_close(attn_object *object);

/* One way only, in that folder (FILE), without the checks: for tests. */
attn_status attn_object_open_way(attn_object_way way, const char *folder, const void *data,
                                 size_t size, attn_object *object, attn_error *err);

/* Is this an ELF file from its header to its last section? */
bool attn_object_is_whole(const void *data, size_t size);

/* A function of the object; NULL if there is none. */
typedef void attn_any_function(void);
attn_any_function *attn_object_function(const attn_object *object, const char *symbol);

#endif
