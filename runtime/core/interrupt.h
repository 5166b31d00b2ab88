/* interrupt.h: has the user asked the process to end? For loops that may wait long. */
#ifndef ATTN_INTERRUPT_H
#define ATTN_INTERRUPT_H

/* From now on signals that the process blocks count: called by a program that blocks them to end in
 * its own time. A library does not act on its host's signals, so without this none ever does. */
void attn_interrupt_watch(void);

/* SIGINT or SIGTERM if one has come and the calling thread blocks it; else 0: where they are not
 * blocked, they have ended the process or run its handler. The signal stays, so that whoever asks
 * later is told the same. */
int attn_interrupt_pending(void);

#endif
