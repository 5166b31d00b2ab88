/* futex.h: a counter that threads can sleep on.
 *
 * Waiting spins for a few microseconds before it sleeps, and a change makes a system call only if
 * somebody sleeps. Everything is a C11 atomic, so the thread sanitizer sees the ordering; the
 * system calls themselves order nothing. */
#ifndef ATTN_FUTEX_H
#define ATTN_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A pause takes 40 to 140 cycles on x86, so this is 40 to 120 us: longer than the way from one call
 * to the next, even of an interpreter, and no longer than waking a dozen threads takes. */
enum { ATTN_FUTEX_SPINS = 2000 };

/* 128 bytes: CPUs fetch lines in pairs. */
#define ATTN_OWN_LINE _Alignas(128)

typedef struct attn_futex {
    ATTN_OWN_LINE _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} attn_futex;

/* When nobody can be using it. */
static inline void attn_futex_reset(attn_futex *f) {
    atomic_store(&f->value, 0);
    atomic_store(&f->sleepers, 0);
}

static inline void attn_cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Returns the value once it is not `old`. */
static inline uint32_t attn_futex_wait(attn_futex *f, uint32_t old) {
    uint32_t value;
    for (int i = 0; i < ATTN_FUTEX_SPINS; i++) {
        if ((value = atomic_load_explicit(&f->value, memory_order_acquire)) != old)
            return value;
        attn_cpu_relax();
    }
    /* Sequentially consistent on both sides: either this thread sees the new value, or the thread
     * that changed it sees a sleeper. */
    atomic_fetch_add(&f->sleepers, 1);
    while ((value = atomic_load(&f->value)) == old)
        syscall(SYS_futex, &f->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    atomic_fetch_sub(&f->sleepers, 1);
    return value;
}

/* Wakes at most so many sleepers; call it after a sequentially consistent change of the value. */
static inline void attn_futex_wake(attn_futex *f, int count) {
    if (atomic_load(&f->sleepers) > 0)
        syscall(SYS_futex, &f->value, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* A lock: 0 free, 1 held, 2 held and perhaps waited for. */
static inline void attn_futex_lock(attn_futex *f) {
    uint32_t free_value = 0;
    if (atomic_compare_exchange_strong(&f->value, &free_value, 1))
        return;
    while (atomic_exchange(&f->value, 2) != 0)
        attn_futex_wait(f, 2);
}

static inline void attn_futex_unlock(attn_futex *f) {
    if (atomic_exchange(&f->value, 0) == 2)
        attn_futex_wake(f, 1);
}

#endif
