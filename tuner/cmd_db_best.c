/* cmd_db_best.c: `db best`: the winners in order of length, and from which length to which each
 * configuration wins. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_db.h"

static const attn_column columns[] = {
    {"source", ATTN_TEXT}, /* user, system */
    {"device", ATTN_TEXT},          {"threads", ATTN_NUMBER}, {"mode", ATTN_TEXT},
    {"problem", ATTN_TEXT},         {"ms", ATTN_NUMBER},      {"gflops", ATTN_NUMBER},
    {"times_default", ATTN_NUMBER}, {"binary", ATTN_TEXT},    {"ended", ATTN_TEXT},
    {"stale", ATTN_TEXT}, /* why it is no longer what would be made today */
    {"winner", ATTN_TEXT},          {"lengths", ATTN_TEXT}, /* keys: "512..2048", where the same
                                                               configuration wins */
    {"config", ATTN_TEXT},      /* whole: a default may follow the length */
    {"provisional", ATTN_TEXT}, /* "yes": no final rounds beside its default that tell */
};

/* A winner, with what it is sorted by. */
typedef struct winner {
    const char *source;
    const attn_db_row *row;
    char class_text[ATTN_CLASS_TEXT];
} winner;

/*-*** Order *****************************************************/

static int compare_size(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

/* One device, thread count, mode and class: the winners between which the library chooses. */
static int compare_place(const winner *a, const winner *b) {
    int order = strcmp(a->row->device_name, b->row->device_name);
    if (order == 0)
        order = memcmp(&a->row->device, &b->row->device, sizeof a->row->device);
    if (order == 0)
        order = compare_size(a->row->threads, b->row->threads);
    if (order == 0)
        order = compare_size(a->row->mode, b->row->mode);
    return order ? order : strcmp(a->class_text, b->class_text);
}

static int compare_winner(const void *left, const void *right) {
    static const attn_field fields[] = {ATTN_FIELD_SEQ_KV, ATTN_FIELD_SEQ_Q, ATTN_FIELD_BATCH,
                                        ATTN_FIELD_HEADS_Q, ATTN_FIELD_HEADS_KV};
    const winner *a = left, *b = right;
    int order = compare_place(a, b);
    for (size_t i = 0; order == 0 && i < sizeof fields / sizeof fields[0]; i++)
        order = compare_size(attn_field_get(&a->row->problem, fields[i]),
                             attn_field_get(&b->row->problem, fields[i]));
    return order ? order : strcmp(a->row->id.text, b->row->id.text);
}

/* The winners of both databases, in order; NULL: out of memory. */
static winner *sorted(const attn_best *best, size_t *count) {
    const attn_db_rows *of[] = {&best->user, &best->system};
    winner *all = calloc(best->user.count + best->system.count + 1, sizeof *all);
    *count = 0;
    for (size_t d = 0; all && d < 2; d++)
        for (size_t i = 0; i < of[d]->count; i++) {
            if (d == 1 && of[d]->row[i].rank == 0)
                continue;
            winner *w = &all[(*count)++];
            *w = (winner){.source = d ? "system" : "user", .row = &of[d]->row[i]};
            attn_class_print(&w->row->problem, w->class_text);
        }
    if (all)
        qsort(all, *count, sizeof *all, compare_winner);
    return all;
}

static bool same_winner(const winner *a, const winner *b) {
    return compare_place(a, b) == 0 &&
           strcmp(a->row->variant.family, b->row->variant.family) == 0 &&
           strcmp(a->row->variant.config, b->row->variant.config) == 0;
}

/* The end of the run of winners that are one configuration. */
static size_t run_end(const winner *all, size_t count, size_t begin) {
    size_t end = begin + 1;
    while (end < count && same_winner(&all[begin], &all[end]))
        end++;
    return end;
}

/*-*** Rows ******************************************************/

static void add_best(const attn_cli *cli, const winner *w, const char *lengths,
                     attn_report *report) {
    char text[ATTN_PROBLEM_TEXT], ended[32];
    const attn_db_row *row = w->row;
    double ns = attn_row_ns(row);
    attn_time_text(row->ended, ended);
    attn_report_text(report, w->source);
    attn_report_text(report, row->device_name);
    attn_report_number(report, row->threads > 0 ? (double)row->threads : NAN);
    attn_report_text(report, attn_mode_name(row->mode));
    attn_report_text(report, attn_problem_text(&row->problem, text));
    attn_report_number(report, ns * 1e-6);
    attn_report_number(report, attn_problem_flops(&row->problem) / ns);
    attn_report_number(report, attn_times_default(ns, row->default_ns, row->band));
    attn_report_text(report, row->has_binary ? "stored" : NULL);
    attn_report_text(report, ended);
    attn_report_text(report, attn_row_stale(cli->gen, row));
    attn_report_text(report, row->variant.family);
    attn_report_text(report, lengths);
    attn_report_text(report, row->variant.config);
    attn_report_text(report, row->band >= 1 ? "yes" : NULL);
}

/* Is it about a problem and a family that were asked for? */
static bool is_wanted(const attn_cli *cli, const attn_db_row *row) {
    bool wanted = cli->problems == 0;
    for (size_t i = 0; i < cli->problems && !wanted; i++)
        wanted =
            attn_hash_equal(attn_problem_hash(&row->problem), attn_problem_hash(&cli->problem[i]));
    return wanted && (!cli->args.family || strcmp(row->variant.family, cli->args.family) == 0);
}

static attn_status add_all(const attn_cli *cli, const attn_best *best, attn_report *report,
                           attn_error *err) {
    size_t count, end;
    winner *all = sorted(best, &count);
    if (!all)
        return attn_fail_nomem(err);
    for (size_t begin = 0; begin < count; begin = end) {
        char lengths[64];
        end = run_end(all, count, begin);
        long long first = all[begin].row->problem.seq_kv, last = all[end - 1].row->problem.seq_kv;
        (void)snprintf(lengths, sizeof lengths, first < last ? "%lld..%lld" : "%lld", first, last);
        for (size_t i = begin; i < end; i++)
            if (is_wanted(cli, all[i].row))
                add_best(cli, &all[i], lengths, report);
    }
    free(all);
    return ATTN_OK;
}

static bool has_problem(const attn_cli *cli, const attn_db_rows *rows,
                        const attn_problem *problem) {
    for (size_t i = 0; i < rows->count; i++)
        if (is_wanted(cli, &rows->row[i]) &&
            attn_hash_equal(attn_problem_hash(&rows->row[i].problem), attn_problem_hash(problem)))
            return true;
    return false;
}

/* A problem that was asked for and has no winner is a finding. */
static int say_without(const attn_cli *cli, const attn_best *best, size_t shown) {
    char text[ATTN_PROBLEM_TEXT];
    int code = ATTN_EXIT_OK;
    if (shown == 0 && cli->problems == 0)
        attn_say("there is no winner yet; `attntune tune` finds them");
    for (size_t i = 0; i < cli->problems; i++) {
        const attn_problem *problem = &cli->problem[i];
        if (has_problem(cli, &best->user, problem) || has_problem(cli, &best->system, problem))
            continue;
        (void)attn_problem_text(problem, text);
        attn_say("%s has no winner; `attntune tune %s` finds one", text, text);
        code = ATTN_EXIT_FOUND;
    }
    return code;
}

/* All winners of the devices, or of any: whom a winner has for neighbours does not depend on what
 * is shown. */
static attn_status find_all(const attn_cli *cli, bool any_device, attn_best *best,
                            attn_error *err) {
    attn_cli all = *cli;
    all.problems = 0;
    all.args.family = NULL;
    all.devices = any_device ? 0 : cli->devices;
    return attn_best_find(&all, best, err);
}

static size_t count_wanted(const attn_cli *cli, const attn_best *best) {
    size_t count = 0;
    for (size_t i = 0; i < best->user.count; i++)
        count += is_wanted(cli, &best->user.row[i]);
    for (size_t i = 0; i < best->system.count; i++)
        count += best->system.row[i].rank > 0 && is_wanted(cli, &best->system.row[i]);
    return count;
}

/* What is shipped for other devices, or was merged, does not count here. */
static attn_status say_elsewhere(const attn_cli *cli, size_t shown, attn_error *err) {
    attn_best all;
    ATTN_TRY(find_all(cli, true, &all, err));
    size_t more = count_wanted(cli, &all) - shown;
    attn_best_free(&all);
    if (more > 0 && !cli->args.device)
        attn_say("%zu winner%s of devices that are not here; --all shows %s", more,
                 more == 1 ? "" : "s", more == 1 ? "it" : "them");
    return ATTN_OK;
}

static size_t count_backend(const attn_db_rows *rows, const char *backend, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        attn_error ignored = ATTN_ERROR_INIT;
        attn_device_info device;
        count += rows->row[i].rank > 0 &&
                 attn_row_device(&rows->row[i], &device, &ignored) == ATTN_OK &&
                 strlen(device.backend) == size && strncmp(device.backend, backend, size) == 0;
    }
    return count;
}

/* There is no device as --device wants it: what is there of others of its kind? */
static attn_status say_no_device(const attn_cli *cli, attn_error *err) {
    attn_best all;
    size_t size = strcspn(cli->args.device, ":");
    ATTN_TRY(find_all(cli, true, &all, err));
    size_t count = count_backend(&all.user, cli->args.device, size) +
                   count_backend(&all.system, cli->args.device, size);
    attn_best_free(&all);
    if (count > 0)
        attn_say(
            "%zu winner%s of %.*s devices that are not here; --all, without --device, shows %s",
            count, count == 1 ? "" : "s", (int)size, cli->args.device, count == 1 ? "it" : "them");
    return ATTN_OK;
}

int attn_cmd_db_best(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    attn_best best;
    attn_report report;
    bool absent = false;
    int chosen = ATTN_EXIT_OK;
    ATTN_STEP(attn_cli_gen(cli));
    ATTN_STEP(attn_cli_problems(cli, cli->args.word, cli->args.words));
    if (cli->args.device || !cli->args.all)
        chosen = attn_cli_devices(cli);
    if (chosen != ATTN_EXIT_OK && (chosen != ATTN_EXIT_DEVICE || !cli->args.device))
        return chosen;
    if (cli->args.family) {
        attn_family_info info;
        ATTN_STEP(attn_cli_family(cli, cli->args.family, &info));
        cli->args.family = info.name;
    }
    ATTN_STEP(attn_cli_db(cli, ATTN_DB_READ, &absent));
    ATTN_STEP(attn_cli_system(cli));
    if (chosen == ATTN_EXIT_DEVICE)
        return say_no_device(cli, &err) == ATTN_OK ? chosen : attn_failure(err.status, &err);
    if (find_all(cli, false, &best, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    attn_report_begin(&report, (attn_format)cli->args.format, columns, ATTN_COLUMNS(columns));
    attn_status status = add_all(cli, &best, &report, &err);
    int code = say_without(cli, &best, attn_report_rows(&report));
    attn_best_free(&best);
    if (status == ATTN_OK)
        status = say_elsewhere(cli, attn_report_rows(&report), &err);
    if (status == ATTN_OK)
        status = attn_report_end(&report, &cli->out, &err);
    else
        attn_report_free(&report);
    return status == ATTN_OK ? code : attn_failure(status, &err);
}
