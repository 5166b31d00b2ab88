/* tool.h: finds the C compiler and runs it, without a shell. */
#ifndef ATTN_TOOL_H
#define ATTN_TOOL_H

#include "core/error.h"
#include "core/str.h"

enum { ATTN_TOOL_WORDS = 16, ATTN_ARGV_MAX = 128 };

/* The first words of a compiler's command line; $CC may hold more than one ("ccache gcc"). */
typedef struct attn_tool {
    char *text; /* owns the words */
    char *path; /* of the program; word[0] is its name as it was asked for */
    const char *word[ATTN_TOOL_WORDS];
    int count;
} attn_tool;

/* By name in PATH; NULL: $CC if set, else the first of cc, gcc and clang. ERR_NO_TOOL, ERR_NOMEM.
 * Free in any case. */
attn_status attn_tool_find(const char *name, attn_tool *tool, attn_error *err);
void attn_tool_free(attn_tool *tool);

/* Runs the tool with more arguments (NULL at the end) and waits. Its stdout and stderr are appended
 * to `output`, of which the first 256 KiB are kept; its messages are in English, its temporary
 * files go to `folder` (NULL: as they are).
 *
 * seconds: when they have passed, or attn_interrupt_pending() tells of a signal, the child and its
 * own children are killed; it leads a process group for that (a signal from the terminal is not for
 * it). 0: no limit, and it stays in the caller's group: a worker that may be killed at any time
 * leads one, and what it has started goes with it. A child that outlives its parent all the same is
 * ended by a limit on its CPU time.
 *
 * ATTN_OK if it exited with 0; ERR_COMPILE with the reason in one line if not; ERR_TIMEOUT;
 * ERR_NO_TOOL if it cannot be started; ERR_IO, ERR_NOMEM. */
attn_status attn_tool_run(const attn_tool *tool, const char *const *arguments, const char *folder,
                          double seconds, attn_str *output, attn_error *err);

#endif
