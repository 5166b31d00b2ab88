/* cmd_db.c: the verbs of `attntune db`, and the short ones themselves. */
#include "cmd_db.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COMMON "db help"

static int db_path(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    char *path = NULL;
    attn_status status = cli->args.system ? attn_db_system_path(cli->args.system_db, &path, &err)
                                          : attn_db_user_path(cli->args.db, &path, &err);
    if (status == ATTN_OK)
        attn_str_append_f(&cli->out, "%s\n", path);
    free(path);
    return attn_failure(status, &err);
}

static void say_counts(const char *name, const attn_db_counts *counts) {
    attn_say("%s: %" PRId64 " trials added, %" PRId64 " there already", name, counts->added,
             counts->present);
}

static const char *file_name(const char *word) {
    return strcmp(word, "-") == 0 ? "standard input" : word;
}

/* Reads a file and looks whether it can be imported, before a database is made for it. */
static int read_export(const char *word, attn_str *text) {
    attn_error err = ATTN_ERROR_INIT;
    ATTN_STEP(attn_cli_read(word, text));
    attn_status status = attn_db_import_check(attn_str_text(text), file_name(word), &err);
    return attn_failure(status, &err);
}

static int db_import(attn_cli *cli) {
    size_t files = cli->args.words;
    int code = ATTN_EXIT_OK;
    attn_str *text = calloc(files, sizeof *text);
    if (!text)
        return attn_failure_nomem();
    for (size_t i = 0; i < files && code == ATTN_EXIT_OK; i++)
        code = read_export(cli->args.word[i], &text[i]);
    if (code == ATTN_EXIT_OK)
        code = attn_cli_db(cli, ATTN_DB_WRITE, NULL);
    for (size_t i = 0; i < files && code == ATTN_EXIT_OK; i++) {
        attn_error err = ATTN_ERROR_INIT;
        attn_db_counts counts = {0, 0};
        const char *name = file_name(cli->args.word[i]);
        attn_status status = attn_db_import(cli->db, attn_str_text(&text[i]), name, &counts, &err);
        if (status == ATTN_OK)
            say_counts(name, &counts);
        code = attn_failure(status, &err);
    }
    for (size_t i = 0; i < files; i++)
        attn_str_free(&text[i]);
    free(text);
    return code;
}

static int db_export(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    attn_str text = ATTN_STR_INIT;
    attn_db_filter filter = {.ended = true, .winners = cli->args.winners};
    ATTN_STEP(attn_cli_selection(cli));
    if (cli->problems > 1 || cli->devices > 1)
        return attn_misuse("export takes one problem and one device, or all of them");
    ATTN_STEP(attn_cli_db(cli, ATTN_DB_READ, NULL));
    filter.problem = cli->problem;
    filter.device = cli->device;
    int code = ATTN_EXIT_OK;
    if (attn_db_export(cli->db, &filter, cli->args.samples, &text, &err) != ATTN_OK)
        code = attn_failure(err.status, &err);
    else if (cli->args.output)
        code = attn_cli_write(cli, &text);
    else
        attn_str_append_bytes(&cli->out, attn_str_text(&text), text.size);
    attn_str_free(&text);
    return code;
}

static int db_merge(attn_cli *cli) {
    for (size_t i = 0; i < cli->args.words; i++) {
        attn_error err = ATTN_ERROR_INIT;
        if (access(cli->args.word[i], F_OK) != 0)
            return attn_no_file(cli->args.word[i]);
        attn_status status = attn_db_merge_check(cli->args.word[i], &err);
        if (status != ATTN_OK)
            return attn_failure(status, &err);
    }
    ATTN_STEP(attn_cli_db(cli, ATTN_DB_WRITE, NULL));
    for (size_t i = 0; i < cli->args.words; i++) {
        attn_error err = ATTN_ERROR_INIT;
        attn_db_counts counts = {0, 0};
        if (attn_db_merge(cli->db, cli->args.word[i], &counts, &err) != ATTN_OK)
            return attn_failure(err.status, &err);
        say_counts(cli->args.word[i], &counts);
    }
    return ATTN_EXIT_OK;
}

static const attn_column fault_columns[] = {{"fault", ATTN_TEXT}};

static void add_fault(void *user, const char *line) {
    attn_report_text(user, line);
}

static int db_check(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    attn_report report;
    size_t faults = 0;
    ATTN_STEP(attn_cli_db(cli, ATTN_DB_READ, NULL));
    attn_report_begin(&report, (attn_format)cli->args.format, fault_columns, 1);
    attn_status status = attn_db_check(cli->db, add_fault, &report, &faults, &err);
    if (status == ATTN_OK)
        status = attn_report_end(&report, &cli->out, &err);
    attn_report_free(&report);
    if (status != ATTN_OK)
        return attn_failure(status, &err);
    attn_say("%s: %zu fault%s", attn_db_path(cli->db), faults, faults == 1 ? "" : "s");
    return faults ? ATTN_EXIT_FOUND : ATTN_EXIT_OK;
}

const attn_verb attn_db_verbs[] = {
    {"best", "[PROBLEM|@FILE...]", "the winners that are used",
     "Winners of your database, then shipped ones, for the devices here. Times are of the machine\n"
     "in the row.\n",
     "device all family system-db format path " COMMON, 0, 0, attn_cmd_db_best, NULL},
    {"list", "[PROBLEM|@FILE...]", "trials, with configuration, time or error",
     "The trials that have ended, problem by problem, winners and fastest first.\n",
     "device family all limit winners system format path system-db " COMMON, 0, 0, attn_cmd_db_list,
     NULL},
    {"export", "[PROBLEM]", "trials as text that can be reviewed",
     "All trials, or those of one problem, in the form of db/seed; `db import` reads it.\n",
     "device winners samples output " COMMON, 0, 1, db_export, NULL},
    {"import", "FILE...", "take in exported text; - is standard input",
     "Each file is taken in whole or not at all. Your own winners stay.\n", COMMON, 1, 0, db_import,
     NULL},
    {"merge", "FILE...", "take in another database file, binaries included",
     "Adds every trial that is not here yet. Your own winners stay.\n", COMMON, 1, 0, db_merge,
     NULL},
    {"bundle", "[PROBLEM|@FILE...] -o FILE", "the winners with their binaries, in a new file",
     "For machines without a compiler: let ATTNTUNE_SYSTEM_DB name the file there. Binaries that\n"
     "are not stored are built again.\n",
     "device output system-db path " COMMON, 0, 0, attn_cmd_db_bundle, NULL},
    {"prune", "", "drop trials that are out of date",
     "Those whose family is gone or would make another source of them now, those of another "
     "kernel\n"
     "ABI, and those made on the devices here with compilers that are no longer installed.\n",
     "dry-run path " COMMON, 0, 0, attn_cmd_db_prune, NULL},
    {"check", "", "look for damage",
     "The file's integrity, references, hashes of binaries, texts that parse. Exit code 1 if "
     "there\n"
     "is a fault.\n",
     "format " COMMON, 0, 0, db_check, NULL},
    {"path", "", "where the database is", "The file need not exist yet.\n",
     "system system-db " COMMON, 0, 0, db_path, NULL},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL},
};
