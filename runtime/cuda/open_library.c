/* open_library.c: dlopen by several names, and a table of function addresses. */
#include "open_library.h"

#include <dlfcn.h>
#include <string.h>

const char *attn_open_library(const char *const names[], const attn_symbol *symbols, size_t count,
                              void *table) {
    void *library = NULL;
    for (size_t i = 0; !library && names[i]; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return names[0];
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address && !symbols[i].optional)
            return symbols[i].name;
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
    }
    return NULL;
}
