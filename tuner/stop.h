/* stop.h: SIGINT and SIGTERM as a descriptor that loops can wait on. */
#ifndef ATTN_STOP_H
#define ATTN_STOP_H

#include "core/error.h"

/* Blocks both signals for this process and returns a descriptor that becomes readable when one
 * comes. Called once, before any thread or worker. Workers run in their own process groups, so a
 * Ctrl-C reaches the program alone, which saves, ends them and exits with 128 + signal. */
attn_status attn_stop_open(int *fd, attn_error *err);

/* The signal that has come, or 0; once it has told one it tells the same again. fd -1: 0. */
int attn_stop_signal(int fd);

/* The same, and from now on a signal ends the process: what is left to do is to write results, and
 * their reader may never take them. */
int attn_stop_end(int fd);

#endif
