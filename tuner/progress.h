/* progress.h: the line that a running tune shows for each device on stderr. */
#ifndef ATTN_PROGRESS_H
#define ATTN_PROGRESS_H

#include "tune.h"

enum { ATTN_PROGRESS_LINE = 512 };

typedef struct attn_progress {
    bool terminal; /* lines are redrawn in place; else one is added now and then */
    size_t devices;
    char (*line)[ATTN_PROGRESS_LINE]; /* what each device shows */
    double *next_s;                   /* not a terminal: when the device's next line is due */
    size_t drawn;                     /* lines on the terminal below which the cursor stands */
    double start_s;
} attn_progress;

/* ERR_NOMEM. Lines begin to be shown with the first report. */
attn_status attn_progress_open(attn_progress *progress, size_t devices, attn_error *err);

/* A report on the device with that index. */
void attn_progress_show(attn_progress *progress, size_t device, const attn_tune_progress *report);

/* Prints a line above those that are redrawn. */
void attn_progress_say(attn_progress *progress, const char *line);

/* Takes the redrawn lines off the terminal and frees. */
void attn_progress_close(attn_progress *progress);

#endif
