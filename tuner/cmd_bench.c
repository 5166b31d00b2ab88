/* cmd_bench.c: the winner, the defaults and chosen configurations side by side, in interleaved
 * rounds, so that what changes with the minute (clocks, other load) falls on all alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_build.h"
#include "cmd_run.h"
#include "lab.h"
#include "proto.h"
#include "stop.h"

enum { ENTRIES_MAX = 32, ROUNDS = 15 };

static const attn_column columns[] = {
    {"device", ATTN_TEXT},          {"problem", ATTN_TEXT},
    {"variant", ATTN_TEXT}, /* winner, default, config 1, ..., or several of them */
    {"outcome", ATTN_TEXT},         {"ms", ATTN_NUMBER}, /* median of the rounds */
    {"gflops", ATTN_NUMBER},        {"peak_percent", ATTN_NUMBER},
    {"times_default", ATTN_NUMBER}, /* the family's default's time over this one's */
    {"band_percent", ATTN_NUMBER},  /* half of the distance between the quartiles */
    {"family", ATTN_TEXT},          {"config", ATTN_TEXT},
    {"error", ATTN_TEXT},
};

/* One variant on the bench. */
typedef struct entry {
    char label[64];
    attn_variant variant; /* the family and configuration alone, if it could not be rendered */
    bool is_default;
    bool ready; /* proved; slot is its number in the lab */
    size_t slot;
    attn_trial_result result;
    double median_ns, band;
    double peak_share; /* median over the rounds of its rate / the device's peak in that round */
} entry;

typedef struct bench {
    attn_cli *cli;
    const attn_device_info *device;
    const attn_problem *problem;
    attn_lab *lab;
    entry entry[ENTRIES_MAX];
    size_t count;
    attn_report report;
    attn_str reasons; /* why families do not accept the problem */
    bool failed;      /* some variant did not come to a time */
} bench;

/*-*** What is compared ******************************************/

static entry *add_entry(bench *b, const char *label) {
    if (b->count == ENTRIES_MAX)
        return NULL;
    entry *e = &b->entry[b->count++];
    *e = (entry){.median_ns = NAN, .band = NAN, .peak_share = NAN};
    (void)snprintf(e->label, sizeof e->label, "%s", label);
    return e;
}

/* Builds (or takes the binary of `row`, if it is what would be built) and proves the variant. */
static attn_status add_to_lab(bench *b, entry *e, const attn_db_row *row, attn_error *err) {
    attn_binary binary = ATTN_BINARY_INIT;
    attn_error ignored = ATTN_ERROR_INIT;
    attn_db *const databases[] = {b->cli->db, b->cli->system};
    bool stored = false;
    if (row && attn_hash_equal(row->variant.hash, e->variant.hash))
        for (size_t i = 0; i < 2 && !stored; i++)
            stored = databases[i] &&
                     attn_db_binary_get(databases[i], row->build, &binary, &ignored) == ATTN_OK;
    attn_status status =
        attn_lab_add(b->lab, &e->variant, stored ? &binary : NULL, &e->slot, &e->result, err);
    attn_binary_free(&binary);
    e->ready = status == ATTN_OK && e->result.outcome == ATTN_OUTCOME_OK;
    return status;
}

/* The winner may be the default, too: what is on the bench already gets one more label, and no
 * second row whose time would differ by noise alone. True if e, the last entry, was such a one. */
static bool is_there(bench *b, entry *e) {
    for (entry *other = b->entry; other < e; other++) {
        size_t size = strlen(other->label);
        if (!attn_hash_equal(other->variant.hash, e->variant.hash))
            continue;
        (void)snprintf(other->label + size, sizeof other->label - size, ", %s", e->label);
        other->is_default |= e->is_default;
        attn_variant_free(&e->variant);
        b->count--;
        return true;
    }
    return false;
}

/* Renders the variant and puts it into the lab. What is wrong with it is in its result. */
static attn_status prepare(bench *b, entry *e, const char *family, const char *config,
                           const attn_db_row *row, attn_error *err) {
    attn_status status = attn_gen_render(b->cli->gen, family, b->problem, b->device, &config,
                                         config ? 1 : 0, &e->variant, err);
    if (status == ATTN_OK)
        return is_there(b, e) ? ATTN_OK : add_to_lab(b, e, row, err);
    if (status != ATTN_ERR_NOT_ACCEPTED && status != ATTN_ERR_INVALID &&
        status != ATTN_ERR_TEMPLATE && status != ATTN_ERR_NOT_FOUND)
        return status;
    e->result.outcome = ATTN_OUTCOME_PRUNED;
    (void)snprintf(e->result.error, sizeof e->result.error, "%.*s", ATTN_TRIAL_ERROR - 1,
                   err->line);
    *err = (attn_error)ATTN_ERROR_INIT;
    e->variant.family = strdup(family);
    e->variant.config = config ? strdup(config) : NULL;
    return ATTN_OK;
}

/* The winner that is stored. */
static attn_status add_winner(bench *b, attn_error *err) {
    attn_db_rows rows;
    ATTN_TRY(attn_cli_winner(b->cli, b->problem, b->device, &rows, err));
    attn_status status = ATTN_OK;
    entry *e = rows.count ? add_entry(b, "winner") : NULL;
    if (e)
        status = prepare(b, e, rows.row[0].variant.family, rows.row[0].variant.config, &rows.row[0],
                         err);
    attn_db_rows_free(&rows);
    return status;
}

/* The default of every family of the backend that accepts the problem. */
static attn_status add_defaults(bench *b, attn_error *err) {
    for (size_t i = 0; i < attn_gen_family_count(b->cli->gen); i++) {
        attn_error reason = ATTN_ERROR_INIT;
        attn_family_info info;
        attn_space *space = NULL;
        const char *name = attn_gen_family_name(b->cli->gen, i);
        if (b->cli->args.family && strcmp(b->cli->args.family, name) != 0)
            continue;
        if (attn_gen_family(b->cli->gen, name, &info, &reason) != ATTN_OK) {
            (void)attn_failure(reason.status, &reason);
            continue;
        }
        if (info.reference || strcmp(info.backend, b->device->backend) != 0)
            continue;
        attn_status status =
            attn_space_open(b->cli->gen, name, b->problem, b->device, &space, &reason);
        if (status == ATTN_OK)
            status = attn_space_admits(space, b->problem, &reason);
        attn_space_close(space);
        if (status == ATTN_ERR_NOT_ACCEPTED) {
            attn_str_append_f(&b->reasons, "%s%s", b->reasons.size ? "; " : "", reason.line);
            continue;
        }
        entry *e = add_entry(b, "default");
        if (!e)
            break;
        e->is_default = true;
        ATTN_TRY(prepare(b, e, name, NULL, NULL, err));
    }
    return ATTN_OK;
}

static attn_status add_configs(bench *b, attn_error *err) {
    const attn_args *args = &b->cli->args;
    for (size_t i = 0; i < args->configs; i++) {
        char label[32];
        const char *family, *config;
        (void)snprintf(label, sizeof label, "config %zu", i + 1);
        if (attn_cli_config(b->cli, args->config[i], &family, &config) != ATTN_EXIT_OK)
            continue; /* checked before */
        entry *e = add_entry(b, label);
        if (!e)
            return attn_fail(err, ATTN_ERR_INVALID, "at most %d variants fit on the bench",
                             ENTRIES_MAX);
        ATTN_TRY(prepare(b, e, family, config, NULL, err));
    }
    return ATTN_OK;
}

/*-*** Rounds ****************************************************/

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values; gives their median. */
static double middle(double *value, size_t count) {
    qsort(value, count, sizeof *value, by_size);
    return (value[count / 2] + value[(count - 1) / 2]) / 2;
}

/* Median and relative half quartile distance of ns[0], ns[stride], ..., and the share of peak[0],
 * peak[1], ... that each of them reached. */
static void summarise(const double *ns, const double *peak, double flops, size_t count,
                      size_t stride, double *sorted, entry *e) {
    for (size_t i = 0; i < count; i++)
        sorted[i] = flops / ns[i * stride] / peak[i];
    e->peak_share = isnan(peak[0]) ? NAN : middle(sorted, count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = ns[i * stride];
    e->median_ns = middle(sorted, count);
    e->band = (sorted[count * 3 / 4] - sorted[count / 4]) / 2 / e->median_ns;
}

static attn_status measure(bench *b, attn_error *err) {
    size_t slots[ENTRIES_MAX], count = 0, at = 0;
    size_t rounds = b->cli->args.rounds ? (size_t)b->cli->args.rounds : ROUNDS;
    for (size_t i = 0; i < b->count; i++)
        if (b->entry[i].ready)
            slots[count++] = b->entry[i].slot;
    if (count == 0)
        return ATTN_OK;
    /* Behind the times, the peaks, and room to sort the values of one variant. */
    double *ns = calloc(rounds * (count + 2), sizeof *ns);
    if (!ns)
        return attn_fail_nomem(err);
    double *peak = ns + rounds * count, *sorted = peak + rounds;
    attn_status status = attn_lab_rounds(b->lab, slots, count, (int32_t)rounds, ns, peak, err);
    for (size_t i = 0; i < b->count && status == ATTN_OK; i++)
        if (b->entry[i].ready)
            summarise(ns + at++, peak, attn_problem_flops(b->problem), rounds, count, sorted,
                      &b->entry[i]);
    free(ns);
    return status;
}

/*-*** Rows ******************************************************/

static double default_ns(const bench *b, const entry *e) {
    for (size_t i = 0; i < b->count; i++)
        if (b->entry[i].is_default && e->variant.family && b->entry[i].variant.family &&
            strcmp(b->entry[i].variant.family, e->variant.family) == 0)
            return b->entry[i].median_ns;
    return NAN;
}

static void add_row(bench *b, const entry *e) {
    char text[ATTN_PROBLEM_TEXT], device[32];
    double gflops = attn_problem_flops(b->problem) / e->median_ns;
    attn_device_label(b->device, device, sizeof device);
    attn_report_text(&b->report, device);
    attn_report_text(&b->report, attn_problem_text(b->problem, text));
    attn_report_text(&b->report, e->label);
    attn_report_text(&b->report, e->result.outcome == ATTN_OUTCOME_PRUNED
                                     ? "rejected"
                                     : attn_outcome_name(e->result.outcome));
    attn_report_number(&b->report, e->median_ns * 1e-6);
    attn_report_number(&b->report, gflops);
    attn_report_number(&b->report, 100 * e->peak_share);
    attn_report_number(&b->report, default_ns(b, e) / e->median_ns);
    attn_report_number(&b->report, 100 * e->band);
    attn_report_text(&b->report, e->variant.family);
    attn_report_config(&b->report, b->cli->gen, e->variant.family, b->problem, b->device,
                       e->variant.config);
    attn_report_text(&b->report, e->ready ? NULL : e->result.error);
}

/* The command that shows a variant's failure again. */
static void say_failure(bench *b, const entry *e) {
    attn_tune_options options;
    attn_str line = ATTN_STR_INIT;
    attn_tune_trial trial = {.device = b->device,
                             .problem = b->problem,
                             .family = e->variant.family,
                             .config = e->variant.config ? e->variant.config : "",
                             .result = &e->result};
    b->failed = true;
    attn_tune_options_from(b->cli, &options);
    attn_tune_reproducer(&trial, &options, &line);
    attn_say("%s: %s: %s\n    again: %s", e->label, attn_outcome_name(e->result.outcome),
             e->result.error, attn_str_text(&line));
    attn_str_free(&line);
}

static attn_status bench_problem(bench *b, attn_error *err) {
    ATTN_TRY(attn_lab_problem(b->lab, b->problem, err));
    ATTN_TRY(add_winner(b, err));
    ATTN_TRY(add_defaults(b, err));
    ATTN_TRY(add_configs(b, err));
    if (b->count == 0)
        return attn_fail(err, ATTN_ERR_NOT_ACCEPTED, "%s",
                         b->reasons.size ? attn_str_text(&b->reasons)
                                         : "there is no family for it");
    ATTN_TRY(measure(b, err));
    for (size_t i = 0; i < b->count; i++) {
        add_row(b, &b->entry[i]);
        if (!b->entry[i].ready)
            say_failure(b, &b->entry[i]);
    }
    return ATTN_OK;
}

static void clear(bench *b) {
    for (size_t i = 0; i < b->count; i++)
        attn_variant_free(&b->entry[i].variant);
    b->count = 0;
    attn_str_clear(&b->reasons);
}

static void say_note(const char *line) {
    attn_say("%s", line);
}

/* Whose memory was too small, and for what. */
static void say_size(const attn_problem *problem, attn_error *err) {
    char text[ATTN_PROBLEM_TEXT];
    attn_fail_prefix(err, "%s, whose tensors have %.3g GB", attn_problem_text(problem, text),
                     attn_problem_bytes(problem) * 1e-9);
}

static int bench_device(bench *b) {
    attn_error err = ATTN_ERROR_INIT;
    const attn_args *args = &b->cli->args;
    const attn_lab_options options = {.gen = b->cli->gen,
                                      .device = b->device,
                                      .threads = args->threads,
                                      .mode = (attn_mode)args->mode,
                                      .seed = args->seed,
                                      .note = say_note,
                                      .stop_fd = b->cli->stop_fd};
    int code = ATTN_EXIT_OK;
    if (attn_lab_open(&options, &b->lab, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    for (size_t p = 0; p < b->cli->problems && !attn_stop_signal(b->cli->stop_fd); p++) {
        if (!attn_cli_meant(b->cli, p, b->device))
            continue;
        b->problem = &b->cli->problem[p];
        err = (attn_error)ATTN_ERROR_INIT;
        attn_status status = bench_problem(b, &err);
        if (status == ATTN_ERR_NOMEM)
            say_size(b->problem, &err);
        clear(b);
        int step = attn_stop_signal(b->cli->stop_fd) ? ATTN_EXIT_OK : attn_failure(status, &err);
        code = step ? step : code;
    }
    attn_lab_close(b->lab);
    return code;
}

static int check_configs(attn_cli *cli) {
    const char *family, *config;
    for (size_t i = 0; i < cli->args.configs; i++) {
        ATTN_STEP(attn_cli_config(cli, cli->args.config[i], &family, &config));
        ATTN_STEP(attn_cli_check_config(cli, family, config));
    }
    return ATTN_EXIT_OK;
}

int attn_cmd_bench(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    bool absent = false;
    if (cli->args.rounds > ATTN_ROUNDS_MAX)
        return attn_misuse("--rounds takes a whole number from 1 to %d, not %d", ATTN_ROUNDS_MAX,
                           cli->args.rounds);
    ATTN_STEP(attn_cli_gen(cli));
    ATTN_STEP(attn_cli_problems(cli, cli->args.word, cli->args.words));
    ATTN_STEP(attn_cli_only_family(cli));
    ATTN_STEP(attn_cli_stop(cli));
    ATTN_STEP(attn_cli_devices(cli));
    ATTN_STEP(attn_cli_any_meant(cli));
    ATTN_STEP(check_configs(cli));
    ATTN_STEP(attn_cli_db(cli, ATTN_DB_READ, &absent));
    ATTN_STEP(attn_cli_system(cli));
    bench *b = calloc(1, sizeof *b);
    if (!b)
        return attn_failure_nomem();
    int code = ATTN_EXIT_OK;
    b->cli = cli;
    attn_report_begin(&b->report, (attn_format)cli->args.format, columns, ATTN_COLUMNS(columns));
    for (size_t d = 0; d < cli->devices && !attn_stop_signal(cli->stop_fd); d++) {
        b->device = &cli->device[d];
        int step = bench_device(b);
        code = step ? step : code;
    }
    code = code || !b->failed ? code : ATTN_EXIT_FOUND;
    if (attn_report_end(&b->report, &cli->out, &err) != ATTN_OK)
        code = attn_failure(err.status, &err);
    attn_str_free(&b->reasons);
    free(b);
    int stopped = attn_stop_signal(cli->stop_fd);
    return stopped ? ATTN_EXIT_SIGNAL + stopped : code;
}
