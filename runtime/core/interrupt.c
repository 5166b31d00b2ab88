/* interrupt.c: signals that wait to be taken. */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

int attn_interrupt_pending(void) {
    static const int ending[] = {SIGINT, SIGTERM};
    sigset_t pending;
    if (sigpending(&pending) != 0)
        return 0;
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
        if (sigismember(&pending, ending[i]) == 1)
            return ending[i];
    return 0;
}
