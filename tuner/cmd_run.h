/* cmd_run.h: running the tuner with signals, progress and failures shown: tune and verify. */
#ifndef ATTN_CMD_RUN_H
#define ATTN_CMD_RUN_H

#include "cmd.h"
#include "tune.h"

/* Replaces --family by the family's full name; one that does not exist is a misuse. */
int attn_cli_only_family(attn_cli *cli);

/* What cli holds and its arguments say, but problems and devices. */
void attn_tune_options_from(const attn_cli *cli, attn_tune_options *options);

/* What came of a run on the one device in options. Returns an exit code. */
typedef int attn_run_done(void *user, const attn_tune_options *options,
                          const attn_tune_result *result);

/* Runs the tuner on one device of cli for the given problems, shows its progress, says each variant
 * that fails with the command that shows it again, and calls done(). options->events.trial, if set,
 * is called with its user first. Returns the first exit code that is not 0; a signal's goes before
 * all others. */
int attn_run_tuner(attn_cli *cli, const attn_tune_options *options, attn_run_done *done,
                   void *user);

/* The same on every device of cli, for the problems that are meant for it. Each of
 * them has the same share of the budget. */
int attn_run_tuner_on_all(attn_cli *cli, const attn_tune_options *options, attn_run_done *done,
                          void *user);

#endif
