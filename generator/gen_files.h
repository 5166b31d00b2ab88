/* gen_files.h: the generator's files by name: embedded ones, and those of the overlay folders.
 *
 * All are read when the generator is opened, so that what it answers never changes under it. */
#ifndef ATTN_GEN_FILES_H
#define ATTN_GEN_FILES_H

#include <stddef.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"

typedef struct attn_file {
    char *name;       /* "spaces/cpu/simd_forward.lua", "include/attn_cpu.h" */
    const char *data; /* size bytes and a zero byte */
    size_t size;
    char *owned; /* NULL for embedded files */
    char *path;  /* on disk; NULL for embedded files */
} attn_file;

typedef struct attn_files {
    attn_file *file; /* sorted by name, each name once */
    size_t count;
} attn_files;

/* path as in attn_gen_open. An earlier folder wins over a later one, and all over the embedded
 * files. ERR_NOT_FOUND names a folder that does not exist. */
attn_status attn_files_open(const char *path, attn_files *files, attn_error *err);
void attn_files_close(attn_files *files);

const attn_file *attn_files_find(const attn_files *files, const char *name); /* or NULL */

/* Where a file is, for messages: its path, or its name if it is embedded or unknown. */
const char *attn_files_place(const attn_files *files, const char *name);

/* Puts the path of a file from disk in the place of its name, if the error begins with that and a
 * colon. Returns err->status. */
attn_status attn_files_locate(const attn_files *files, attn_error *err);

/* Puts the helpers in the place of a text's `#include "NAME"` lines, each once, with #line
 * directives around. Lines that stand in the text itself are followed; `name` is the file of its
 * first line. ERR_TEMPLATE for a helper that does not exist. */
attn_status attn_source_paste(const attn_files *files, const char *name, const char *text,
                              attn_str *out, attn_error *err);

/* Hash of every file that the family's variants can be made of; see attn_gen_source_hash. */
attn_status attn_source_hash(const attn_files *files, const char *family, attn_hash *hash,
                             attn_error *err);

#endif
