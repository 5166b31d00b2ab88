/* lock.h: the timing lock of a device, between all tuners of a machine.
 *
 * Samples are taken under the exclusive lock. Work that would disturb them (a compile, a proof on
 * the CPU) runs under the shared lock of the CPU, so that no compile of any tuner runs while any
 * CPU sample is taken, and two tuners take turns. A second lock, the turnstile, is passed by all
 * and kept by who waits, so that a stream of compiles cannot starve the one who wants to sample.
 *
 * Both are flocks on empty files of mode 0666 in the system's temporary folder, never followed
 * through a link; the kernel releases them when their holder dies. */
#ifndef ATTN_LOCK_H
#define ATTN_LOCK_H

#include <stdbool.h>

#include "core/error.h"

typedef struct attn_lock {
    int gate; /* descriptors of the lock and its turnstile; -1: not open */
    int turnstile;
} attn_lock;

#define ATTN_LOCK_INIT                                                                             \
    { -1, -1 }

/* name: attn_device_info.lock. ERR_IO names the file. */
attn_status attn_lock_open(const char *name, attn_lock *lock, attn_error *err);
void attn_lock_close(attn_lock *lock); /* releases it, too */

/* Waits for it; on_wait (may be NULL) is called first if it is not free. */
attn_status attn_lock_take(attn_lock *lock, bool exclusive, void (*on_wait)(void *user), void *user,
                           attn_error *err);
void attn_lock_release(attn_lock *lock);

#endif
