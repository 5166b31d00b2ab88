/* backends.c: the backends of this program. A new one is a line here. */
#include <string.h>

#include "backend.h"

const attn_backend *const attn_backends[] = {
    &attn_backend_cpu,
    &attn_backend_cuda,
#ifdef ATTN_WITH_FAKE
    &attn_backend_fake,
#endif
    NULL,
};

const attn_backend *attn_backend_find(const char *name) {
    for (const attn_backend *const *b = attn_backends; *b; b++)
        if (strcmp((*b)->name, name) == 0)
            return *b;
    return NULL;
}

const attn_backend *attn_backend_by_id(attn_backend_id id) {
    for (const attn_backend *const *b = attn_backends; *b; b++)
        if ((*b)->id == id)
            return *b;
    return NULL;
}
