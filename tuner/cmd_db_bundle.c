/* cmd_db_bundle.c: a database file that holds the winners and their binaries, so that a machine
 * without a compiler can run them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd_build.h"
#include "cmd_db.h"

/* Copies the winners of one database, without binaries. A winner that is there already stays. */
static attn_status copy_winners(attn_cli *cli, attn_db *from, attn_db *to, attn_error *err) {
    size_t problems = cli->problems ? cli->problems : 1, devices = cli->devices ? cli->devices : 1;
    attn_status status = ATTN_OK;
    for (size_t i = 0; from && i < problems * devices && status == ATTN_OK; i++) {
        attn_str text = ATTN_STR_INIT;
        attn_db_counts counts;
        attn_db_filter filter = {.winners = true};
        filter.problem = cli->problems ? &cli->problem[i / devices] : NULL;
        filter.device = cli->devices ? &cli->device[i % devices] : NULL;
        status = attn_db_export(from, &filter, false, &text, err);
        if (status == ATTN_OK)
            status = attn_db_import(to, attn_str_text(&text), attn_db_path(from), &counts, err);
        attn_str_free(&text);
    }
    return status;
}

static const attn_device_info *device_of(const attn_cli *cli, const attn_db_row *row) {
    for (size_t i = 0; i < cli->probed.count; i++)
        if (attn_hash_equal(row->device, attn_device_hash(&cli->probed.device[i])))
            return &cli->probed.device[i];
    return NULL;
}

/* Builds the row's binary anew, if what is built is what was measured. */
static attn_status rebuild(attn_cli *cli, const attn_db_row *row, attn_binary *binary,
                           attn_error *err) {
    const attn_device_info *device = device_of(cli, row);
    const char *config = row->variant.config;
    attn_variant variant = {0};
    attn_str target = ATTN_STR_INIT, toolchain = ATTN_STR_INIT;
    attn_hash build;
    if (!device)
        return attn_fail(err, ATTN_ERR_NOT_FOUND, "it is a winner of another machine");
    attn_status status = attn_gen_render(cli->gen, row->variant.family, &row->problem, device,
                                         &config, 1, &variant, err);
    if (status == ATTN_OK)
        status = attn_build_identity(&variant, device, &target, &toolchain, &build, err);
    if (status == ATTN_OK && !attn_hash_equal(build, row->build))
        status = attn_fail(err, ATTN_ERR_NOT_FOUND, "its sources or its compiler have changed");
    if (status == ATTN_OK)
        status = attn_build_variant(&variant, device, build, binary, err);
    attn_variant_free(&variant);
    attn_str_free(&target);
    attn_str_free(&toolchain);
    return status;
}

/* From one of the databases, else built. */
static attn_status find_binary(attn_cli *cli, const attn_db_row *row, attn_binary *binary,
                               attn_error *err) {
    attn_db *const databases[] = {cli->db, cli->system};
    for (size_t i = 0; i < 2; i++)
        if (databases[i] && attn_db_binary_get(databases[i], row->build, binary, err) == ATTN_OK)
            return ATTN_OK;
    return rebuild(cli, row, binary, err);
}

/* Why winners are without their binaries: the first of them, and how many more. */
typedef struct lack {
    char reason[160];
    char problem[ATTN_PROBLEM_TEXT];
    size_t more;
} lack;

enum { LACKS = 8 }; /* what comes after so many is told one by one */

typedef struct bundled {
    size_t winners, binaries;
    size_t elsewhere; /* winners without, whose device is not here to build for */
    lack lack[LACKS];
    size_t lacks;
} bundled;

static void note_lack(bundled *count, const attn_db_row *row, const attn_error *reason) {
    lack now = {.more = 0};
    (void)snprintf(now.reason, sizeof now.reason, "%.*s", (int)strcspn(reason->line, "\n"),
                   reason->line);
    (void)attn_problem_text(&row->problem, now.problem);
    for (size_t i = 0; i < count->lacks; i++)
        if (strcmp(count->lack[i].reason, now.reason) == 0) {
            count->lack[i].more++;
            return;
        }
    if (count->lacks < LACKS)
        count->lack[count->lacks++] = now;
    else
        attn_say("%s: without binary: %s", now.problem, now.reason);
}

static void say_lacks(const bundled *count) {
    for (size_t i = 0; i < count->lacks; i++) {
        const lack *l = &count->lack[i];
        attn_str more = ATTN_STR_INIT;
        if (l->more > 0)
            attn_str_append_f(&more, " and %zu more", l->more);
        attn_say("%s%s: without binary: %s", l->problem, attn_str_text(&more), l->reason);
        attn_str_free(&more);
    }
    if (count->elsewhere > 0)
        attn_say("%zu without are of devices that are not here to build for; --device all leaves "
                 "them out",
                 count->elsewhere);
}

static attn_status add_binaries(attn_cli *cli, attn_db *to, bundled *count, attn_error *err) {
    const attn_db_filter filter = {.winners = true};
    attn_db_rows rows;
    ATTN_TRY(attn_db_find(to, &filter, &rows, err));
    attn_status status = ATTN_OK;
    count->winners = rows.count;
    for (size_t i = 0; i < rows.count && status == ATTN_OK; i++) {
        attn_error reason = ATTN_ERROR_INIT;
        attn_binary binary = ATTN_BINARY_INIT;
        if (find_binary(cli, &rows.row[i], &binary, &reason) == ATTN_OK) {
            status = attn_db_binary_put(to, rows.row[i].build, &binary, err);
            count->binaries += status == ATTN_OK;
        } else if (!device_of(cli, &rows.row[i])) {
            count->elsewhere++;
        } else {
            note_lack(count, &rows.row[i], &reason);
        }
        attn_binary_free(&binary);
    }
    attn_db_rows_free(&rows);
    return status;
}

/* An empty file, of which the database is made; what an earlier run has left of it goes. */
static attn_status make_part(const char *part, const char *name, attn_error *err) {
    if (unlink(part) != 0 && errno != ENOENT && access(part, F_OK) == 0)
        return attn_fail(err, ATTN_ERR_IO, "cannot write %s: %s is in the way", name, part);
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644); /* as SQLite */
    if (fd < 0)
        return attn_fail(err, ATTN_ERR_IO, "cannot write %s: %s", name, strerror(errno));
    close(fd);
    return ATTN_OK;
}

/* Makes FILE.part and gives it its name when it is whole. */
static int write_bundle(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    attn_str part = ATTN_STR_INIT;
    attn_db *to = NULL;
    bundled count = {0};
    attn_str_append_f(&part, "%s.part", cli->args.output);
    if (part.failed)
        return attn_failure_nomem();
    attn_status status = make_part(part.data, cli->args.output, &err);
    if (status == ATTN_OK)
        status = attn_db_open(part.data, ATTN_DB_WRITE, &to, &err);
    if (status == ATTN_OK)
        status = copy_winners(cli, cli->db, to, &err);
    if (status == ATTN_OK)
        status = copy_winners(cli, cli->system, to, &err);
    if (status == ATTN_OK)
        status = add_binaries(cli, to, &count, &err);
    attn_db_close(to);
    if (status == ATTN_OK && count.winners == 0)
        status = attn_fail(&err, ATTN_ERR_NOT_FOUND,
                           "there is no winner to bundle; `attntune tune` finds them");
    if (status == ATTN_OK && rename(part.data, cli->args.output) != 0)
        status =
            attn_fail(&err, ATTN_ERR_IO, "cannot write %s: %s", cli->args.output, strerror(errno));
    if (status != ATTN_OK)
        (void)unlink(part.data);
    attn_str_free(&part);
    if (status != ATTN_OK)
        return attn_failure(status, &err);
    attn_say("%s: %zu winner%s, %zu with binaries", cli->args.output, count.winners,
             count.winners == 1 ? "" : "s", count.binaries);
    say_lacks(&count);
    return ATTN_EXIT_OK;
}

int attn_cmd_db_bundle(attn_cli *cli) {
    bool absent = false;
    if (!cli->args.output)
        return attn_misuse("where to? attntune db bundle -o FILE");
    if (access(cli->args.output, F_OK) == 0)
        return attn_misuse("%s exists; name a new file", cli->args.output);
    ATTN_STEP(attn_cli_gen(cli));
    ATTN_STEP(attn_cli_problems(cli, cli->args.word, cli->args.words));
    ATTN_STEP(attn_cli_stop(cli)); /* so that no compiler is left behind */
    ATTN_STEP(attn_cli_devices(cli));
    if (!cli->args.device)
        cli->devices = 0; /* winners of all machines; devices are for building */
    ATTN_STEP(attn_cli_db(cli, ATTN_DB_READ, &absent));
    ATTN_STEP(attn_cli_system(cli));
    return write_bundle(cli);
}
