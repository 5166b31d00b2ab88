/* progress.h: the line that a running tune shows on stderr. */
#ifndef ATTN_PROGRESS_H
#define ATTN_PROGRESS_H

#include "tune.h"

enum { ATTN_PROGRESS_LINE = 512 };

typedef struct attn_progress {
    bool terminal; /* the line is redrawn in place; else one is added now and then */
    bool drawn;
    double next_s; /* not a terminal: when the next line is due */
    char line[ATTN_PROGRESS_LINE];
} attn_progress;

void attn_progress_open(attn_progress *progress);

void attn_progress_show(attn_progress *progress, const attn_tune_progress *report);

/* Prints lines that stay, above the one that is redrawn. */
void attn_progress_say(attn_progress *progress, const char *lines);

/* Takes the line off the terminal. */
void attn_progress_close(attn_progress *progress);

#endif
