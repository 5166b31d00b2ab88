/* cmd_tune.c: tunes problems on devices and prints the winners, or why there is none. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_run.h"

static const attn_column columns[] = {
    {"device", ATTN_TEXT},
    {"problem", ATTN_TEXT},
    {"ms", ATTN_NUMBER},
    {"gflops", ATTN_NUMBER},
    {"peak_percent", ATTN_NUMBER},  /* of the measured peak of fused multiply-adds */
    {"times_default", ATTN_NUMBER}, /* the default's time over the winner's */
    {"tried", ATTN_NUMBER},
    {"candidates", ATTN_NUMBER},
    {"within_1", ATTN_NUMBER}, /* per cent of the variants measured, within 1 % of the best */
    {"within_3", ATTN_NUMBER},
    {"within_5", ATTN_NUMBER},
    {"search", ATTN_TEXT}, /* complete, stopped, resumed */
    {"winner", ATTN_TEXT},
    {"config", ATTN_TEXT},
    {"reason", ATTN_TEXT}, /* why there is no winner */
};

static const char *search_word(const attn_tune_summary *s) {
    return s->resumed ? "resumed" : s->complete ? "complete" : "stopped";
}

static void add_row(const attn_cli *cli, const attn_tune_result *result, const attn_tune_summary *s,
                    attn_report *report) {
    char text[ATTN_PROBLEM_TEXT], device[32];
    const attn_problem *problem = &cli->problem[s->problem];
    double gflops = s->family ? attn_problem_flops(problem) / s->ns : NAN;
    bool shares = s->complete && s->outcome[ATTN_OUTCOME_OK] > 0;
    attn_device_label(&cli->device[s->device], device, sizeof device);
    attn_report_text(report, device);
    attn_report_text(report, attn_problem_text(problem, text));
    attn_report_number(report, s->family ? s->ns * 1e-6 : NAN);
    attn_report_number(report, gflops);
    attn_report_number(report, 100 * gflops / result->peak[s->device]);
    attn_report_number(report, s->family ? s->default_ns / s->ns : NAN);
    attn_report_number(report, (double)s->tried);
    attn_report_number(report, (double)s->candidates);
    for (size_t i = 0; i < ATTN_SHARES; i++)
        attn_report_number(report, shares ? 100 * s->share[i] : NAN);
    attn_report_text(report, search_word(s));
    attn_report_text(report, s->family);
    attn_report_text(report, s->config);
    attn_report_text(report, s->family ? NULL : s->reason);
}

/* Problems that the run did not come to, since its budget or a signal ended it. */
static void add_missed(const attn_cli *cli, const attn_tune_result *result, attn_report *report) {
    char text[ATTN_PROBLEM_TEXT], device[32];
    for (size_t d = 0; d < cli->devices; d++) {
        attn_device_label(&cli->device[d], device, sizeof device);
        for (size_t p = 0; p < cli->problems; p++) {
            bool met = false;
            for (size_t i = 0; i < result->count && !met; i++)
                met = result->summary[i].device == d && result->summary[i].problem == p;
            if (met)
                continue;
            attn_report_text(report, device);
            attn_report_text(report, attn_problem_text(&cli->problem[p], text));
            for (size_t c = 2; c + 1 < ATTN_COLUMNS(columns); c++)
                attn_report_text(report, NULL);
            attn_report_text(report, result->signal ? "the run was interrupted before it"
                                                    : "the budget ended before it");
        }
    }
}

/* Prints what came of it; the number of problems without a winner. */
static int print_result(attn_cli *cli, const attn_tune_result *result) {
    attn_error err = ATTN_ERROR_INIT;
    attn_report report;
    size_t without = cli->devices * cli->problems;
    attn_report_begin(&report, (attn_format)cli->args.format, columns, ATTN_COLUMNS(columns));
    for (size_t i = 0; i < result->count; i++) {
        add_row(cli, result, &result->summary[i], &report);
        without -= result->summary[i].family != NULL;
    }
    add_missed(cli, result, &report);
    if (attn_report_end(&report, &cli->out, &err) != ATTN_OK)
        return attn_failure(&err);
    if (without == 0 || cli->args.dry_run)
        return ATTN_EXIT_OK;
    attn_say("%zu of %zu without a winner", without, cli->devices * cli->problems);
    return ATTN_EXIT_FOUND;
}

static int tune_problems(attn_cli *cli) {
    if (cli->args.words > 0)
        return attn_cli_problems(cli, cli->args.word, cli->args.words);
    return attn_cli_shapes(cli, cli->args.quick ? "shapes/quick.txt" : "shapes/default.txt");
}

int attn_cmd_tune(attn_cli *cli) {
    attn_tune_options options;
    attn_tune_result result;
    ATTN_STEP(attn_cli_gen(cli));
    ATTN_STEP(tune_problems(cli));
    ATTN_STEP(attn_cli_only_family(cli));
    ATTN_STEP(attn_cli_stop(cli));
    ATTN_STEP(attn_cli_devices(cli));
    ATTN_STEP(attn_cli_db(cli, ATTN_DB_WRITE, NULL));
    ATTN_STEP(attn_cli_system(cli));
    attn_tune_options_from(cli, &options);
    int failed = attn_run_tuner(cli, &options, &result);
    int code = failed && result.count == 0 ? failed : print_result(cli, &result);
    if (result.signal)
        code = ATTN_EXIT_SIGNAL + result.signal;
    else if (failed)
        code = failed;
    attn_tune_result_free(&result);
    return code;
}
