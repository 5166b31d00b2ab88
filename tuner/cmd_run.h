/* cmd_run.h: running the tuner with signals, progress and failures shown: tune and verify. */
#ifndef ATTN_CMD_RUN_H
#define ATTN_CMD_RUN_H

#include "cmd.h"
#include "tune.h"

/* Replaces --family by the family's full name; one that does not exist is a misuse. */
int attn_cli_only_family(attn_cli *cli);

/* What cli holds and its arguments say. */
void attn_tune_options_from(const attn_cli *cli, attn_tune_options *options);

/* attn_tune_run with progress lines. Each variant that fails is said on stderr with the command
 * that shows it again; options->events.trial, if set, is called with its user first. *result is
 * valid in every case. */
int attn_run_tuner(attn_cli *cli, const attn_tune_options *options, attn_tune_result *result);

#endif
