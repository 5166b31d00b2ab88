/* open_library.h: a shared library opened by the first of several names that is there. */
#ifndef ATTN_OPEN_LIBRARY_H
#define ATTN_OPEN_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function of the library and where its address goes in the table. */
typedef struct attn_symbol {
    const char *name;
    size_t offset;
    bool optional;
} attn_symbol;

/* Opens the first of `names` (ends with NULL) that loads and fills `table`. NULL on success, else
 * what is missing: a symbol's name, or the first library name. The library stays open. */
const char *attn_open_library(const char *const names[], const attn_symbol *symbols, size_t count,
                              void *table);

#endif
