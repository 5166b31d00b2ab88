/* interrupt.c: signals that wait to be taken. */
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Signals are the process's, so this is, too. */
static atomic_bool watched;

void attn_interrupt_watch(void) {
    atomic_store(&watched, true);
}

int attn_interrupt_pending(void) {
    static const int ending[] = {SIGINT, SIGTERM};
    sigset_t pending;
    if (!atomic_load(&watched) || sigpending(&pending) != 0)
        return 0;
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
        if (sigismember(&pending, ending[i]) == 1)
            return ending[i];
    return 0;
}
