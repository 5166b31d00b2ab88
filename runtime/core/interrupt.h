/* interrupt.h: has the user asked the process to end? For loops that may wait long. */
#ifndef ATTN_INTERRUPT_H
#define ATTN_INTERRUPT_H

/* SIGINT or SIGTERM if one has come and the calling thread blocks it, as a program does that ends
 * in its own time; else 0: where they are not blocked, they have ended the process or run its
 * handler. The signal stays, so that whoever asks later is told the same. */
int attn_interrupt_pending(void);

#endif
