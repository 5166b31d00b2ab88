/* cmd_db_rows.c: rows of the databases: selecting, and `db list`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd_build.h"
#include "cmd_db.h"

/*-*** Selecting *************************************************/

int attn_cli_selection(attn_cli *cli) {
    ATTN_STEP(attn_cli_problems(cli, cli->args.word, cli->args.words));
    return cli->args.device ? attn_cli_devices(cli) : ATTN_EXIT_OK;
}

/* Moves the rows of `more` to the end of `rows`. */
static attn_status append_rows(attn_db_rows *rows, attn_db_rows *more, attn_error *err) {
    if (more->count == 0)
        return ATTN_OK;
    attn_db_row *longer = realloc(rows->row, (rows->count + more->count) * sizeof *longer);
    if (!longer) {
        attn_db_rows_free(more);
        return attn_fail_nomem(err);
    }
    memcpy(longer + rows->count, more->row, more->count * sizeof *longer);
    rows->row = longer;
    rows->count += more->count;
    free(more->row);
    return ATTN_OK;
}

attn_status attn_rows_find(const attn_cli *cli, attn_db *db, const attn_db_filter *filter,
                           attn_db_rows *rows, attn_error *err) {
    size_t problems = cli->problems ? cli->problems : 1, devices = cli->devices ? cli->devices : 1;
    *rows = (attn_db_rows){NULL, 0};
    for (size_t i = 0; db && i < problems * devices; i++) {
        attn_db_rows more = {NULL, 0};
        attn_db_filter one = *filter;
        one.problem = cli->problems ? &cli->problem[i / devices] : NULL;
        one.device = cli->devices ? &cli->device[i % devices] : NULL;
        attn_status status = attn_db_find(db, &one, &more, err);
        if (status == ATTN_OK)
            status = append_rows(rows, &more, err);
        if (status != ATTN_OK) {
            attn_db_rows_free(rows);
            return status;
        }
    }
    return ATTN_OK;
}

static bool same_place(const attn_db_row *a, const attn_db_row *b) {
    return attn_hash_equal(attn_problem_hash(&a->problem), attn_problem_hash(&b->problem)) &&
           attn_hash_equal(a->device, b->device) && a->threads == b->threads && a->mode == b->mode;
}

/* Rows of the system that a winner of the user's goes before are marked by rank 0. */
attn_status attn_best_find(const attn_cli *cli, attn_best *best, attn_error *err) {
    const attn_db_filter filter = {.winners = true, .family = cli->args.family};
    *best = (attn_best){{NULL, 0}, {NULL, 0}};
    ATTN_TRY(attn_rows_find(cli, cli->db, &filter, &best->user, err));
    if (attn_rows_find(cli, cli->system, &filter, &best->system, err) != ATTN_OK) {
        attn_best_free(best);
        return err->status;
    }
    for (size_t s = 0; s < best->system.count; s++)
        for (size_t u = 0; u < best->user.count; u++)
            if (same_place(&best->system.row[s], &best->user.row[u]))
                best->system.row[s].rank = 0;
    return ATTN_OK;
}

void attn_best_free(attn_best *best) {
    attn_db_rows_free(&best->user);
    attn_db_rows_free(&best->system);
}

double attn_row_ns(const attn_db_row *row) {
    return isfinite(row->final_ns) ? row->final_ns : row->result.median_ns;
}

void attn_time_text(int64_t seconds, char text[32]) {
    time_t t = (time_t)seconds;
    struct tm tm;
    text[0] = '\0';
    if (seconds > 0 && gmtime_r(&t, &tm))
        (void)strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void add_config(const attn_cli *cli, const attn_db_row *row, attn_report *report) {
    attn_error ignored = ATTN_ERROR_INIT;
    attn_device_info device;
    if (attn_row_device(row, &device, &ignored) == ATTN_OK)
        attn_report_config(report, cli->gen, row->variant.family, &row->problem, &device,
                           row->variant.config);
    else
        attn_report_text(report, row->variant.config);
}

/*-*** db list ***************************************************/

enum { LIST_ROWS = 100 };

static const attn_column list_columns[] = {
    {"id", ATTN_TEXT},        {"ended", ATTN_TEXT},       {"device", ATTN_TEXT},
    {"threads", ATTN_NUMBER}, {"mode", ATTN_TEXT},        {"problem", ATTN_TEXT},
    {"outcome", ATTN_TEXT},   {"ms", ATTN_NUMBER},        {"final_ms", ATTN_NUMBER},
    {"rank", ATTN_NUMBER},    {"error_max", ATTN_NUMBER}, {"family", ATTN_TEXT},
    {"config", ATTN_TEXT},    {"error", ATTN_TEXT},
};

static void add_trial(const attn_cli *cli, const attn_db_row *row, attn_report *report) {
    char text[ATTN_PROBLEM_TEXT], ended[32];
    attn_time_text(row->ended, ended);
    attn_report_text(report, row->id.text);
    attn_report_text(report, ended);
    attn_report_text(report, row->device_name);
    attn_report_number(report, row->threads > 0 ? (double)row->threads : NAN);
    attn_report_text(report, attn_mode_name(row->mode));
    attn_report_text(report, attn_problem_text(&row->problem, text));
    attn_report_text(report, attn_outcome_name(row->result.outcome));
    attn_report_number(report, row->result.median_ns * 1e-6);
    attn_report_number(report, row->final_ns * 1e-6);
    attn_report_number(report, row->rank > 0 ? (double)row->rank : NAN);
    attn_report_number(report, row->result.error_max);
    attn_report_text(report, row->variant.family);
    add_config(cli, row, report);
    attn_report_text(report, row->result.error);
}

static int selected_db(attn_cli *cli, attn_db **db) {
    if (!cli->args.system) {
        ATTN_STEP(attn_cli_db(cli, ATTN_DB_READ, NULL));
        *db = cli->db;
        return ATTN_EXIT_OK;
    }
    ATTN_STEP(attn_cli_system(cli));
    *db = cli->system;
    if (*db)
        return ATTN_EXIT_OK;
    attn_say("there are no shipped results here");
    return ATTN_EXIT_FOUND;
}

int attn_cmd_db_list(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    attn_db_filter filter = {.ended = !cli->args.all, .winners = cli->args.winners};
    attn_db_rows rows;
    attn_report report;
    attn_db *db;
    size_t limit = cli->args.limit ? (size_t)cli->args.limit : cli->args.all ? SIZE_MAX : LIST_ROWS;
    ATTN_STEP(attn_cli_gen(cli));
    ATTN_STEP(attn_cli_selection(cli));
    if (cli->args.family) {
        attn_family_info info;
        ATTN_STEP(attn_cli_family(cli, cli->args.family, &info));
        filter.family = info.name;
    }
    ATTN_STEP(selected_db(cli, &db));
    if (attn_rows_find(cli, db, &filter, &rows, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    attn_report_begin(&report, (attn_format)cli->args.format, list_columns,
                      ATTN_COLUMNS(list_columns));
    for (size_t i = 0; i < rows.count && i < limit; i++)
        add_trial(cli, &rows.row[i], &report);
    if (rows.count > limit)
        attn_say("%zu more; --all shows them", rows.count - limit);
    attn_db_rows_free(&rows);
    return attn_failure(attn_report_end(&report, &cli->out, &err), &err);
}
