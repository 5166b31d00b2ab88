/* stop.c: a signalfd. The signals stay pending, so that whoever asks sees them. */
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

#include "core/interrupt.h"

static void ending_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

attn_status attn_stop_open(int *fd, attn_error *err) {
    sigset_t set;
    ending_signals(&set);
    *fd = -1;
    attn_interrupt_watch();
    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
        *fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (*fd < 0)
        return attn_fail(err, ATTN_ERR_IO, "signals cannot be waited for: %s", strerror(errno));
    return ATTN_OK;
}

int attn_stop_signal(int fd) {
    return fd < 0 ? 0 : attn_interrupt_pending();
}

int attn_stop_end(int fd) {
    const struct timespec at_once = {0, 0};
    sigset_t set;
    int first = attn_stop_signal(fd);
    if (fd < 0)
        return 0;
    ending_signals(&set);
    while (sigtimedwait(&set, NULL, &at_once) > 0)
        continue; /* taken, or the next line would let it end the process now */
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    return first;
}
