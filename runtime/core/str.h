/* str.h: a byte string that grows.
 *
 * Appending never fails half-way: when memory runs out, `failed` is set, later appends do nothing,
 * and the owner checks once at the end. `data` is NUL-terminated, or NULL while nothing was
 * appended (attn_str_text gives "" then). */
#ifndef ATTN_STR_H
#define ATTN_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

typedef struct attn_str {
    char *data;
    size_t size; /* bytes without the NUL */
    size_t capacity;
    bool failed;
} attn_str;

#define ATTN_STR_INIT                                                                              \
    { NULL, 0, 0, false }

void attn_str_append(attn_str *s, const char *text);
void attn_str_append_bytes(attn_str *s, const void *data, size_t size);
void attn_str_append_f(attn_str *s, const char *format, ...) ATTN_PRINTF(2, 3);
const char *attn_str_text(const attn_str *s);
void attn_str_clear(attn_str *s); /* keeps the memory */
void attn_str_free(attn_str *s);  /* and makes it empty, ready for use */
char *attn_str_take(attn_str *s); /* the caller frees it; NULL if failed; s is empty after */

enum { ATTN_FILE_MAX = 256 << 20 }; /* bytes: what is longer has no end, as /dev/zero */

/* Reads a whole file. ATTN_ERR_NOT_FOUND if it does not exist, else ATTN_ERR_IO. */
attn_status attn_str_read_file(attn_str *s, const char *path, attn_error *err);

#endif
