/* cmd_stores.c: devices, databases and files, as the options name them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "stale.h"

/*-*** Devices ***************************************************/

static int probe(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    if (cli->probed.device || cli->probed.missing)
        return ATTN_EXIT_OK;
    attn_status status = attn_probe(cli->args.threads, cli->stop_fd, &cli->probed, &err);
    return attn_failure(status, &err);
}

/* A backend opens its device with as many threads as may be used, and no more. */
static int check_threads(const attn_cli *cli) {
    for (size_t i = 0; i < cli->devices; i++) {
        int64_t most = attn_device_prop(&cli->device[i], "threads");
        if (most > 0 && cli->args.threads > most)
            return attn_misuse("--threads %d is too many: affinity, cgroup and OMP_NUM_THREADS "
                               "allow this process %d",
                               cli->args.threads, (int)most);
    }
    return ATTN_EXIT_OK;
}

int attn_cli_devices(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    if (cli->device)
        return ATTN_EXIT_OK;
    ATTN_STEP(probe(cli));
    size_t count = cli->probed.count, chosen_count = 0;
    attn_status status;
    size_t *chosen = calloc(count + 1, sizeof *chosen);
    cli->device = calloc(count + 1, sizeof *cli->device);
    if (!chosen || !cli->device)
        status = attn_fail_nomem(&err);
    else if (count == 0)
        status = attn_fail(&err, ATTN_ERR_NO_DEVICE, "there is no device here: %s",
                           cli->probed.missing ? cli->probed.missing : "");
    else
        status = attn_probe_choose(&cli->probed, cli->args.device ? cli->args.device : "all",
                                   chosen, &chosen_count, &err);
    for (size_t i = 0; i < chosen_count; i++)
        cli->device[i] = cli->probed.device[chosen[i]];
    cli->devices = chosen_count;
    free(chosen);
    return status == ATTN_OK ? check_threads(cli) : attn_failure(status, &err);
}

int attn_cli_target(attn_cli *cli, const char *backend, attn_device_info *info) {
    attn_error err = ATTN_ERROR_INIT;
    const char *arch = cli->args.arch;
    if (arch) {
        attn_status status = attn_gen_profile(cli->gen, arch, info, &err);
        if (status == ATTN_ERR_NOT_FOUND)
            return attn_misuse("%s", err.line);
        if (status == ATTN_OK && backend && strcmp(info->backend, backend) != 0)
            return attn_misuse("--arch %s is a %s device, and the family is for %s", arch,
                               info->backend, backend);
        return attn_failure(status, &err);
    }
    ATTN_STEP(attn_cli_devices(cli));
    for (size_t i = 0; i < cli->devices; i++) {
        *info = cli->device[i];
        if (!backend || strcmp(info->backend, backend) == 0)
            return ATTN_EXIT_OK;
    }
    attn_say("there is no %s device here; --arch NAME does without one", backend);
    return ATTN_EXIT_DEVICE;
}

/*-*** Databases and files ***************************************/

/* A file that is not there: one that was named, by whichever means, must be; the default one need
 * not be yet. */
static int say_absent(const attn_cli *cli, const char *path, bool *absent) {
    const char *named = getenv("ATTNTUNE_DB");
    if (access(path, F_OK) == 0 && (cli->args.db || (named && *named))) {
        attn_say("database %s: empty; `attntune tune` and `attntune db import` fill it", path);
        return ATTN_EXIT_FOUND;
    }
    if (cli->args.db)
        return attn_no_file(cli->args.db);
    if (named && *named)
        return attn_misuse("there is no file %s, which ATTNTUNE_DB names: `attntune tune` makes it",
                           named);
    if (absent) {
        *absent = true;
        return ATTN_EXIT_OK;
    }
    attn_say("there is no database yet: `attntune tune` makes %s", path);
    return ATTN_EXIT_FOUND;
}

int attn_cli_db(attn_cli *cli, attn_db_mode mode, bool *absent) {
    attn_error err = ATTN_ERROR_INIT;
    char *path = NULL;
    attn_status status = attn_db_user_path(cli->args.db, &path, &err);
    if (status != ATTN_OK)
        return attn_failure(status, &err);
    status = attn_db_open(path, mode, &cli->db, &err);
    bool nowhere = status != ATTN_OK && cli->args.db && attn_leads_nowhere(cli->args.db);
    int code = nowhere                        ? attn_no_file(cli->args.db)
               : status == ATTN_ERR_NOT_FOUND ? say_absent(cli, path, absent)
                                              : attn_failure(status, &err);
    free(path);
    return code;
}

int attn_cli_system(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    char *path = NULL;
    attn_status status = attn_db_system_path(cli->args.system_db, &path, &err);
    if (status == ATTN_OK)
        status = attn_db_open(path, ATTN_DB_SYSTEM, &cli->system, &err);
    bool there = path && access(path, F_OK) == 0;
    free(path);
    if (cli->args.system_db)
        return status != ATTN_OK && !there ? attn_no_file(cli->args.system_db)
                                           : attn_failure(status, &err);
    if (status != ATTN_OK && status != ATTN_ERR_NOT_FOUND)
        attn_say("going on without the shipped results: %s", err.line);
    return ATTN_EXIT_OK;
}

/* How far a winner is from what is asked for: the mode, then the number of threads. */
static double strangeness(const attn_cli *cli, const attn_device_info *device,
                          const attn_db_row *row) {
    double threads = (double)attn_device_prop(device, "threads");
    double apart = threads > 0 && row->threads > 0 ? fabs(log2(row->threads / threads)) : 0;
    return apart + ((int32_t)row->mode != cli->args.mode ? 1000 : 0);
}

attn_status attn_cli_winner(const attn_cli *cli, const attn_problem *problem,
                            const attn_device_info *device, attn_db_rows *rows, attn_error *err) {
    attn_db *const databases[] = {cli->db, cli->system};
    attn_db_filter filter = {
        .problem = problem, .device = device, .family = cli->args.family, .winners = true};
    memset(rows, 0, sizeof *rows);
    for (size_t i = 0; i < 2 && rows->count == 0; i++)
        if (databases[i])
            ATTN_TRY(attn_db_find(databases[i], &filter, rows, err));
    for (size_t i = 1; i < rows->count; i++) {
        attn_db_row other = rows->row[i];
        if (strangeness(cli, device, &other) >= strangeness(cli, device, &rows->row[0]))
            continue;
        rows->row[i] = rows->row[0];
        rows->row[0] = other;
    }
    return ATTN_OK;
}

/* A device, a pipe or a link is written to: giving another file its name would replace it. */
static bool is_special(const char *name) {
    struct stat st;
    return lstat(name, &st) == 0 && !S_ISREG(st.st_mode);
}

/* Writes all of it; 0, or the errno of what failed first. */
static int write_whole(const char *name, const attn_str *text) {
    FILE *file = fopen(name, "w");
    if (!file)
        return errno;
    bool good = fwrite(attn_str_text(text), 1, text->size, file) == text->size;
    int error = good ? 0 : errno;
    return fclose(file) == 0 || error ? error : errno;
}

int attn_cli_write(attn_cli *cli, const attn_str *text) {
    const char *name = cli->args.output;
    attn_str part = ATTN_STR_INIT; /* beside the file, so that the name appears with all of it */
    bool direct = is_special(name);
    int code = ATTN_EXIT_FOUND, error = 0;
    attn_str_append_f(&part, direct ? "%s" : "%s.part", name);
    if (part.failed || text->failed)
        code = attn_failure_nomem();
    else if (!direct && is_special(part.data))
        attn_say("cannot write %s: %s is in the way", name, part.data);
    else if ((error = write_whole(part.data, text)) != 0 ||
             (error = direct || rename(part.data, name) == 0 ? 0 : errno) != 0)
        attn_say("cannot write %s: %s", name, strerror(error));
    else
        code = ATTN_EXIT_OK;
    if (error && !direct)
        (void)unlink(part.data);
    attn_str_free(&part);
    return code;
}

double attn_times_default(double ns, double default_ns, double band) {
    return band >= 1 ? NAN : default_ns / ns;
}

attn_status attn_row_device(const attn_db_row *row, attn_device_info *device, attn_error *err) {
    ATTN_TRY(attn_device_parse(row->device_text, device, err));
    if (row->threads > 0)
        (void)attn_device_prop_set(device, "threads", row->threads);
    return ATTN_OK;
}

const char *attn_row_stale(attn_gen *gen, const attn_db_row *row) {
    attn_error ignored = ATTN_ERROR_INIT;
    attn_device_info device;
    if (attn_row_device(row, &device, &ignored) != ATTN_OK)
        return "the description of its device cannot be read";
    return attn_stale_source(gen, &device, row);
}

void attn_cli_close(attn_cli *cli) {
    attn_db_close(cli->db);
    attn_db_close(cli->system);
    attn_gen_close(cli->gen);
    attn_probed_free(&cli->probed);
    free(cli->device);
    free(cli->problem);
    free(cli->meant);
    free(cli->seen);
    attn_args_free(&cli->args);
    attn_str_free(&cli->out);
}
