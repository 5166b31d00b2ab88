/* cmd_tune.c: tunes problems on devices and prints the winners, or why there is none. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_build.h"
#include "cmd_run.h"

static const attn_column columns[] = {
    {"device", ATTN_TEXT},
    {"problem", ATTN_TEXT},
    {"ms", ATTN_NUMBER},
    {"gflops", ATTN_NUMBER},
    {"peak_percent", ATTN_NUMBER},  /* of this run's peak of fused multiply-adds; not if resumed */
    {"times_default", ATTN_NUMBER}, /* the default's time over the winner's; not if provisional */
    {"tried", ATTN_NUMBER},
    {"candidates", ATTN_NUMBER},
    {"within_1", ATTN_NUMBER}, /* per cent of the variants measured, within 1 % of the best */
    {"within_3", ATTN_NUMBER},
    {"within_5", ATTN_NUMBER},
    {"search", ATTN_TEXT}, /* complete, stopped, resumed */
    {"winner", ATTN_TEXT},
    {"config", ATTN_TEXT},
    {"reason", ATTN_TEXT},      /* why there is no winner */
    {"provisional", ATTN_TEXT}, /* "yes": no final rounds beside its default that tell */
};

static const char *search_word(const attn_tune_summary *s, const attn_tune_options *options) {
    if (options->dry_run)
        return NULL;
    return s->resumed ? "resumed" : s->complete ? "complete" : "stopped";
}

/* The report of the run, device after device. */
typedef struct tune_run {
    const attn_cli *cli;
    attn_report report;
    size_t asked, without; /* problems, and those without a winner ... */
    size_t unfinished;     /* ... whose time was over */
    double share_s;        /* that each of them had, */
    double longest_s;      /* and what one of them took without a variant being measured */
} tune_run;

static void add_place(tune_run *run, const attn_tune_options *options, size_t problem) {
    char text[ATTN_PROBLEM_TEXT], device[32];
    attn_device_label(options->devices, device, sizeof device);
    attn_report_text(&run->report, device);
    attn_report_text(&run->report, attn_problem_text(&options->problems[problem], text));
}

static void add_row(tune_run *run, const attn_tune_options *options, const attn_tune_result *result,
                    const attn_tune_summary *s) {
    attn_report *report = &run->report;
    double gflops = s->family ? attn_problem_flops(&options->problems[s->problem]) / s->ns : NAN;
    bool shares = s->complete && options->search && /* others try good variants more often */
                  strcmp(options->search, "exhaustive") == 0;
    add_place(run, options, s->problem);
    attn_report_number(report, s->family ? s->ns * 1e-6 : NAN);
    attn_report_number(report, gflops);
    attn_report_number(report,
                       s->resumed || s->missed ? NAN : 100 * gflops / result->peak[s->device]);
    attn_report_number(report, s->family ? attn_times_default(s->ns, s->default_ns, s->band) : NAN);
    attn_report_number(report, (double)s->tried);
    attn_report_number(report, (double)s->candidates);
    for (size_t i = 0; i < ATTN_SHARES; i++)
        attn_report_number(report, shares ? 100 * s->share[i] : NAN);
    attn_report_text(report, search_word(s, options));
    attn_report_text(report, s->family);
    attn_report_config(report, run->cli->gen, s->family, &options->problems[s->problem],
                       &options->devices[s->device], s->config);
    attn_report_text(report, s->family ? NULL : s->reason);
    attn_report_text(report, s->family && s->band >= 1 ? "yes" : NULL);
}

/* A problem that the run did not come to. */
static void add_missed(tune_run *run, const attn_tune_options *options, size_t problem,
                       const char *reason) {
    add_place(run, options, problem);
    for (size_t c = 2; c + 2 < ATTN_COLUMNS(columns); c++)
        attn_report_text(&run->report, NULL);
    attn_report_text(&run->report, reason);
    attn_report_text(&run->report, NULL);
}

/* Those that the run did not come to are short of time if the one before them was. */
static size_t count_unfinished(const attn_tune_options *options, const attn_tune_result *result,
                               double *longest_s) {
    const attn_tune_summary *s = result->summary;
    size_t missed = options->problem_count - result->count, unfinished = 0;
    for (size_t i = 0; i < result->count; i++) {
        bool short_of_time = s[i].cut && !s[i].family && !s[i].complete;
        unfinished += short_of_time;
        if (short_of_time && s[i].tried == 0)
            *longest_s = fmax(*longest_s, s[i].seconds);
    }
    if (result->signal)
        return 0;
    return unfinished + (result->count > 0 && s[result->count - 1].cut ? missed : 0);
}

static int add_result(void *user, const attn_tune_options *options,
                      const attn_tune_result *result) {
    tune_run *run = user;
    size_t before = run->without;
    run->asked += options->problem_count;
    run->without += options->problem_count;
    run->unfinished += count_unfinished(options, result, &run->longest_s);
    run->share_s = result->share_s;
    for (size_t i = 0; i < options->problem_count; i++) {
        const attn_tune_summary *s = i < result->count ? &result->summary[i] : NULL;
        if (s && (!s->missed || s->family))
            add_row(run, options, result, s);
        else
            add_missed(run, options, i,
                       result->signal ? "the run was interrupted before it"
                                      : "the run ended before it");
        run->without -= s && s->family;
    }
    return run->without > before && !options->dry_run ? ATTN_EXIT_FOUND : ATTN_EXIT_OK;
}

static void say_without(const tune_run *run) {
    static const double ENOUGH_S = 6; /* as with --quick */
    double each_s = ceil(fmax(ENOUGH_S, 2 * fmax(run->share_s, run->longest_s)));
    attn_str rest = ATTN_STR_INIT;
    if (run->unfinished > 0)
        attn_str_append_f(&rest, ", %zu for want of time: --budget %.0fs gives each problem %.0f s",
                          run->unfinished, each_s * (double)run->asked, each_s);
    attn_say("%zu of %zu without a winner%s", run->without, run->asked, attn_str_text(&rest));
    attn_str_free(&rest);
}

static int tune_problems(attn_cli *cli) {
    if (cli->args.words > 0)
        return attn_cli_problems(cli, cli->args.word, cli->args.words);
    return attn_cli_shapes(cli, cli->args.quick ? "shapes/quick.txt" : "shapes/default.txt");
}

int attn_cmd_tune(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    attn_tune_options options;
    tune_run run = {.cli = cli};
    ATTN_STEP(attn_cli_gen(cli));
    ATTN_STEP(tune_problems(cli));
    ATTN_STEP(attn_cli_only_family(cli));
    ATTN_STEP(attn_cli_stop(cli));
    ATTN_STEP(attn_cli_devices(cli));
    ATTN_STEP(attn_cli_any_meant(cli));
    ATTN_STEP(attn_cli_system(cli));
    if (!cli->args.dry_run) /* which needs none, and makes none */
        ATTN_STEP(attn_cli_db(cli, ATTN_DB_WRITE, NULL));
    attn_tune_options_from(cli, &options);
    attn_report_begin(&run.report, (attn_format)cli->args.format, columns, ATTN_COLUMNS(columns));
    int code = attn_run_tuner_on_all(cli, &options, add_result, &run);
    if (attn_report_end(&run.report, &cli->out, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    if (run.without > 0 && !cli->args.dry_run)
        say_without(&run);
    return code;
}
