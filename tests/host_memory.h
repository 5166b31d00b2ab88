/* host_memory.h: the memory slots of a backend whose device memory is the process's own, for the
 * backends that tests make up. */
#ifndef ATTN_TEST_HOST_MEMORY_H
#define ATTN_TEST_HOST_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "backend.h"

__attribute__((unused)) static attn_status host_alloc(attn_backend_device *device, size_t size,
                                                      void **memory, attn_error *err) {
    (void)device;
    *memory = size > SIZE_MAX - 256 ? NULL : aligned_alloc(256, (size + 256) / 256 * 256);
    return *memory ? ATTN_OK : attn_fail(err, ATTN_ERR_NOMEM, "no memory for %zu bytes", size);
}

__attribute__((unused)) static void host_free(attn_backend_device *device, void *memory) {
    (void)device;
    free(memory);
}

__attribute__((unused)) static attn_status host_copy(attn_backend_device *device, void *to,
                                                     const void *from, size_t size,
                                                     attn_copy direction, attn_error *err) {
    (void)device;
    (void)direction;
    (void)err;
    if (size > 0)
        memcpy(to, from, size);
    return ATTN_OK;
}

#endif
