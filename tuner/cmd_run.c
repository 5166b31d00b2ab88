/* cmd_run.c: the tuner's events as lines on stderr. */
#include "cmd_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"

typedef struct run {
    const attn_cli *cli;
    const attn_tune_options *options; /* as the verb made them */
    attn_progress progress;
} run;

int attn_cli_only_family(attn_cli *cli) {
    attn_family_info info;
    if (!cli->args.family)
        return ATTN_EXIT_OK;
    ATTN_STEP(attn_cli_family(cli, cli->args.family, &info));
    if (info.reference)
        return attn_misuse("%s is the last resort of the library, and no candidate", info.name);
    cli->args.family = info.name;
    return ATTN_EXIT_OK;
}

void attn_tune_options_from(const attn_cli *cli, attn_tune_options *options) {
    const attn_args *args = &cli->args;
    *options = (attn_tune_options){
        .gen = cli->gen,
        .db = cli->db,
        .system = cli->system,
        .problems = cli->problem,
        .problem_count = cli->problems,
        .devices = cli->device,
        .device_count = cli->devices,
        .budget_s = args->budget_s,
        .quick = args->quick,
        .search = args->search,
        .command = cli->command,
        .path = args->path,
        .seed = args->seed,
        .jobs = args->jobs,
        .threads = args->threads,
        .mode = (attn_mode)args->mode,
        .family = args->family,
        .whole = args->whole,
        .fresh = args->fresh,
        .again = args->again,
        .dry_run = args->dry_run,
        .stop_fd = cli->stop_fd,
    };
}

static void on_progress(void *user, const attn_tune_progress *report) {
    run *r = user;
    for (size_t i = 0; i < r->cli->devices; i++)
        if (attn_hash_equal(attn_device_hash(&r->cli->device[i]),
                            attn_device_hash(report->device)) &&
            r->cli->device[i].ordinal == report->device->ordinal)
            attn_progress_show(&r->progress, i, report);
}

static void on_note(void *user, const char *line) {
    run *r = user;
    attn_progress_say(&r->progress, line);
}

/* A failure is news once: what was found in the database has been said before. */
static void on_trial(void *user, const attn_tune_trial *trial) {
    run *r = user;
    const attn_tune_events *outer = &r->options->events;
    attn_outcome outcome = trial->result->outcome;
    attn_str line = ATTN_STR_INIT;
    if (outer->trial)
        outer->trial(outer->user, trial);
    if (outcome == ATTN_OUTCOME_OK || outcome == ATTN_OUTCOME_PRUNED || trial->repeated)
        return;
    attn_str_append_f(&line, "%s %s: %s: %.*s\n    again: ", trial->family, trial->config,
                      attn_outcome_name(outcome), (int)strcspn(trial->result->error, "\n"),
                      trial->result->error);
    attn_tune_reproducer(trial, r->options, &line);
    attn_progress_say(&r->progress, attn_str_text(&line));
    attn_str_free(&line);
}

int attn_run_tuner(attn_cli *cli, const attn_tune_options *options, attn_tune_result *result) {
    attn_error err = ATTN_ERROR_INIT;
    attn_tune_options own = *options;
    run r = {.cli = cli, .options = options};
    memset(result, 0, sizeof *result);
    if (attn_progress_open(&r.progress, cli->devices, &err) != ATTN_OK)
        return attn_failure(&err);
    own.events = (attn_tune_events){on_progress, on_trial, on_note, &r};
    (void)attn_tune_run(&own, result, &err);
    attn_progress_close(&r.progress);
    return attn_failure(&err);
}
