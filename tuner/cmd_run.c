/* cmd_run.c: the tuner's events as lines on stderr. */
#include "cmd_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "progress.h"

/* A failure that has been told, and how often it came since. */
typedef struct told {
    struct told *next;
    char *line; /* outcome: what was said */
    size_t more;
} told;

typedef struct run {
    const attn_tune_options *options; /* as the verb made them */
    attn_progress progress;
    told *told;
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

/* Says how often the failures of a problem came that had been told before. */
static void count_told(run *r) {
    for (told *t = r->told; t; t = t->next) {
        attn_str line = ATTN_STR_INIT;
        attn_str_append_f(&line, "%zu more: %s", t->more, t->line);
        if (t->more > 0)
            attn_progress_say(&r->progress, attn_str_text(&line));
        attn_str_free(&line);
        t->more = 0;
    }
}

static void free_told(run *r) {
    while (r->told) {
        told *next = r->told->next;
        free(r->told->line);
        free(r->told);
        r->told = next;
    }
}

/* True if the line has been told before, which is counted. Without memory it is told. */
static bool was_told(run *r, const char *line) {
    for (told *t = r->told; t; t = t->next)
        if (strcmp(t->line, line) == 0)
            return ++t->more;
    told *t = calloc(1, sizeof *t);
    if (!t || !(t->line = strdup(line))) {
        free(t);
        return false;
    }
    t->next = r->told;
    r->told = t;
    return false;
}

static void on_progress(void *user, const attn_tune_progress *report) {
    run *r = user;
    if (report->last)
        count_told(r);
    attn_progress_show(&r->progress, report);
}

static void on_note(void *user, const char *line) {
    run *r = user;
    attn_progress_say(&r->progress, line);
}

/* A failure is news once: what was found in the database has been said before, and what is said of
 * one variant is only counted of the next. */
static void on_trial(void *user, const attn_tune_trial *trial) {
    run *r = user;
    const attn_tune_events *outer = &r->options->events;
    attn_outcome outcome = trial->result->outcome;
    attn_str why = ATTN_STR_INIT, line = ATTN_STR_INIT;
    if (outer->trial)
        outer->trial(outer->user, trial);
    if (outcome == ATTN_OUTCOME_OK || outcome == ATTN_OUTCOME_PRUNED || trial->repeated)
        return;
    attn_str_append_f(&why, "%s: %.*s", attn_outcome_name(outcome),
                      (int)strcspn(trial->result->error, "\n"), trial->result->error);
    if (!was_told(r, attn_str_text(&why))) {
        attn_str_append_f(&line, "%s %s: %s\n    again: ", trial->family, trial->config,
                          attn_str_text(&why));
        attn_tune_reproducer(trial, r->options, &line);
        attn_progress_say(&r->progress, attn_str_text(&line));
    }
    attn_str_free(&why);
    attn_str_free(&line);
}

int attn_run_tuner(attn_cli *cli, const attn_tune_options *options, attn_run_done *done,
                   void *user) {
    attn_error err = ATTN_ERROR_INIT;
    attn_tune_options own = *options;
    attn_tune_result result = {0};
    run r = {.options = options};
    attn_progress_open(&r.progress);
    own.stop_fd = cli->stop_fd;
    own.events = (attn_tune_events){on_progress, on_trial, on_note, &r};
    attn_status status = attn_tune_run(&own, &result, &err);
    attn_progress_close(&r.progress);
    free_told(&r);
    int code = attn_failure(status, &err);
    if (status == ATTN_OK || result.count > 0) {
        int found = done(user, options, &result);
        code = code ? code : found;
    }
    if (result.signal)
        code = ATTN_EXIT_SIGNAL + result.signal;
    attn_tune_result_free(&result);
    return code;
}

static size_t count_meant(const attn_cli *cli) {
    size_t count = 0;
    for (size_t d = 0; d < cli->devices; d++)
        for (size_t p = 0; p < cli->problems; p++)
            count += attn_cli_meant(cli, p, &cli->device[d]);
    return count;
}

static double seconds_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int attn_run_tuner_on_all(attn_cli *cli, const attn_tune_options *options, attn_run_done *done,
                          void *user) {
    const double end = seconds_now() + options->budget_s;
    const double share_s = options->budget_s / (double)count_meant(cli);
    int code = ATTN_EXIT_OK;
    attn_problem *problem = calloc(cli->problems + 1, sizeof *problem);
    if (!problem)
        return attn_failure_nomem();
    for (size_t d = 0; d < cli->devices && code < ATTN_EXIT_SIGNAL; d++) {
        attn_tune_options own = *options;
        own.devices = &cli->device[d];
        own.device_count = 1;
        own.problems = problem;
        for (size_t p = 0; p < cli->problems; p++)
            if (attn_cli_meant(cli, p, &cli->device[d]))
                problem[own.problem_count++] = cli->problem[p];
        if (own.problem_count == 0)
            continue;
        if (options->budget_s > 0) { /* of which earlier devices may have left too little */
            double left = fmin(share_s * (double)own.problem_count, end - seconds_now());
            own.budget_s = fmax(left, 1e-3); /* 0 would be the default */
            own.share_s = share_s;
        }
        int step = attn_run_tuner(cli, &own, done, user);
        code = code == ATTN_EXIT_OK || step >= ATTN_EXIT_SIGNAL ? step : code;
    }
    free(problem);
    return code;
}
