/* cmd_verify.c: proves variants right without timing them; a wrong one is exit code 1. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_build.h"
#include "cmd_run.h"

static const attn_column columns[] = {
    {"device", ATTN_TEXT},      {"problem", ATTN_TEXT}, {"outcome", ATTN_TEXT},
    {"error_max", ATTN_NUMBER}, /* over the bound; 1 is the limit */
    {"family", ATTN_TEXT},      {"config", ATTN_TEXT},  {"error", ATTN_TEXT},
};

typedef struct verify_run {
    attn_cli *cli;
    attn_report report;
    size_t right, other;
} verify_run;

static void on_trial(void *user, const attn_tune_trial *trial) {
    verify_run *run = user;
    char text[ATTN_PROBLEM_TEXT], device[32];
    bool right = trial->result->outcome == ATTN_OUTCOME_OK;
    run->right += right;
    run->other += !right;
    attn_device_label(trial->device, device, sizeof device);
    attn_report_text(&run->report, device);
    attn_report_text(&run->report, attn_problem_text(trial->problem, text));
    attn_report_text(&run->report, right ? "right" : attn_outcome_name(trial->result->outcome));
    attn_report_number(&run->report, trial->result->error_max);
    attn_report_text(&run->report, trial->family);
    attn_report_config(&run->report, run->cli->gen, trial->family, trial->problem, trial->device,
                       trial->config);
    attn_report_text(&run->report, right ? NULL : trial->result->error);
}

/* Says what did not come to a verdict. */
static int say_result(void *user, const attn_tune_options *options,
                      const attn_tune_result *result) {
    char text[ATTN_PROBLEM_TEXT];
    int code = ATTN_EXIT_OK;
    (void)user;
    for (size_t i = 0; i < result->count; i++) {
        const attn_tune_summary *s = &result->summary[i];
        if (s->status == ATTN_OK || s->tried > 0)
            continue;
        attn_say("%s: %s", attn_problem_text(&options->problems[s->problem], text),
                 s->reason ? s->reason : attn_status_text(s->status));
        code = ATTN_EXIT_FOUND;
    }
    if (result->signal || result->count == options->problem_count)
        return code;
    attn_say("the budget ended before all problems were verified");
    return ATTN_EXIT_FOUND;
}

static int verify_winner(attn_cli *cli, const attn_tune_options *all, size_t problem,
                         size_t device) {
    attn_error err = ATTN_ERROR_INIT;
    attn_tune_options options = *all;
    attn_db_rows rows;
    char text[ATTN_PROBLEM_TEXT];
    int code;
    if (attn_cli_winner(cli, &cli->problem[problem], &cli->device[device], &rows, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    if (rows.count == 0) {
        attn_say("%s has no winner on %s", attn_problem_text(&cli->problem[problem], text),
                 cli->device[device].name);
        return ATTN_EXIT_FOUND;
    }
    options.problems = &cli->problem[problem];
    options.devices = &cli->device[device];
    options.problem_count = options.device_count = 1;
    options.family = rows.row[0].variant.family;
    options.config = rows.row[0].variant.config;
    code = attn_run_tuner(cli, &options, say_result, NULL);
    attn_db_rows_free(&rows);
    return code;
}

static int verify_winners(attn_cli *cli, const attn_tune_options *options) {
    int code = ATTN_EXIT_OK;
    for (size_t d = 0; d < cli->devices; d++)
        for (size_t p = 0; p < cli->problems && code < ATTN_EXIT_SIGNAL; p++) {
            if (!attn_cli_meant(cli, p, &cli->device[d]))
                continue;
            int step = verify_winner(cli, options, p, d);
            code = step ? step : code;
        }
    return code;
}

/* The one --config there may be; its family is then the only one. */
static int chosen_config(attn_cli *cli, const char **config) {
    *config = NULL;
    if (cli->args.configs > 1)
        return attn_misuse("verify takes one --config; without it, it tries them all");
    if (cli->args.configs && cli->args.winner)
        return attn_misuse("--winner and --config exclude each other");
    if (cli->args.configs)
        ATTN_STEP(attn_cli_config(cli, cli->args.config[0], &cli->args.family, config));
    return attn_cli_only_family(cli);
}

int attn_cmd_verify(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    attn_tune_options options;
    verify_run run = {.cli = cli};
    const char *config;
    ATTN_STEP(attn_cli_gen(cli));
    ATTN_STEP(attn_cli_problems(cli, cli->args.word, cli->args.words));
    ATTN_STEP(chosen_config(cli, &config));
    ATTN_STEP(attn_cli_stop(cli));
    ATTN_STEP(attn_cli_devices(cli));
    ATTN_STEP(attn_cli_any_meant(cli));
    if (config)
        ATTN_STEP(attn_cli_check_config(cli, cli->args.family, config));
    if (cli->args.winner) {
        bool absent = false;
        ATTN_STEP(attn_cli_db(cli, ATTN_DB_READ, &absent));
        ATTN_STEP(attn_cli_system(cli));
    }
    attn_tune_options_from(cli, &options);
    options.verify_only = true;
    options.config = config;
    options.events.trial = on_trial;
    options.events.user = &run;
    attn_report_begin(&run.report, (attn_format)cli->args.format, columns, ATTN_COLUMNS(columns));
    int code = cli->args.winner ? verify_winners(cli, &options)
                                : attn_run_tuner_on_all(cli, &options, say_result, NULL);
    if (attn_report_end(&run.report, &cli->out, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    attn_say("%zu variant%s right, %zu not", run.right, run.right == 1 ? "" : "s", run.other);
    return code ? code : run.other ? ATTN_EXIT_FOUND : ATTN_EXIT_OK;
}
