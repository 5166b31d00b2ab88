/* embed.h: files compiled into the program.
 *
 * generator/embed.cmake turns data files (Lua, templates, shapes, SQL) into tables of these rows.
 * The layer that owns a table declares it with ATTN_EMBEDDED_TABLE in one of its headers.
 */
#ifndef ATTN_EMBED_H
#define ATTN_EMBED_H

#include <stddef.h>

typedef struct attn_embedded {
    const char *name;          /* "lua/template.lua", "include/attn_abi.h", "schema.sql" ... */
    const unsigned char *data; /* size bytes, and one zero byte behind them */
    size_t size;
} attn_embedded;

/* Declares `const attn_embedded name[]`, in no promised order, and its length `name_count`. */
#define ATTN_EMBEDDED_TABLE(name)                                                                  \
    extern const attn_embedded name[];                                                             \
    extern const size_t name##_count

#endif
