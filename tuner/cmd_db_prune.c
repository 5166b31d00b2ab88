/* cmd_db_prune.c: drops trials that nothing made today would have again. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd_build.h"
#include "cmd_db.h"

/* What a toolchain of this machine is, asked once for each language and options. */
typedef struct tool {
    char *language, *options, *identity; /* identity NULL: it is not here */
    struct tool *next;
} tool;

enum { REASONS = 8 }; /* more than there are */

typedef struct pruning {
    attn_cli *cli;
    tool *tools;
    size_t dropped;
    struct {
        const char *text; /* why; constant texts */
        size_t rows;
    } reason[REASONS];
    bool failed; /* out of memory: everything is kept */
} pruning;

static void free_tools(tool *t) {
    while (t) {
        tool *next = t->next;
        free(t->language);
        free(t->options);
        free(t->identity);
        free(t);
        t = next;
    }
}

static const tool *find_tool(pruning *p, const attn_variant *variant) {
    for (tool *t = p->tools; t; t = t->next)
        if (strcmp(t->language, variant->language) == 0 &&
            strcmp(t->options, variant->options) == 0)
            return t;
    const attn_backend *backend = attn_backend_of(variant->family);
    attn_error err = ATTN_ERROR_INIT;
    attn_str identity = ATTN_STR_INIT;
    tool *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    bool here = backend &&
                backend->toolchain(variant->language, variant->options, &identity, &err) == ATTN_OK;
    t->language = strdup(variant->language);
    t->options = strdup(variant->options);
    t->identity = here ? attn_str_take(&identity) : NULL;
    t->next = p->tools;
    p->tools = t;
    attn_str_free(&identity);
    return t->language && t->options && (t->identity || !here) ? t : NULL;
}

/* Other machines have other compilers: only rows of the devices here are judged by theirs. */
static bool toolchain_is_here(pruning *p, const attn_db_row *row) {
    bool made_here = false;
    for (size_t i = 0; i < p->cli->probed.count; i++)
        made_here |= attn_hash_equal(row->device, attn_device_hash(&p->cli->probed.device[i]));
    if (!made_here)
        return true;
    const tool *t = find_tool(p, &row->variant);
    p->failed |= !t;
    return !t || (t->identity && strcmp(t->identity, row->toolchain) == 0);
}

static void note_dropped(pruning *p, const char *why) {
    size_t i = 0;
    while (i + 1 < REASONS && p->reason[i].text && strcmp(p->reason[i].text, why) != 0)
        i++;
    p->reason[i].text = why;
    p->reason[i].rows++;
    p->dropped++;
}

static bool keep(void *user, const attn_db_row *row) {
    pruning *p = user;
    const char *why = attn_row_stale(p->cli->gen, row);
    if (!why && !toolchain_is_here(p, row))
        why = "its compiler is another one";
    if (p->failed || !why)
        return true;
    note_dropped(p, why);
    return false;
}

static void say_dropped(const pruning *p, const char *what) {
    attn_str why = ATTN_STR_INIT;
    for (size_t i = 0; i < REASONS && p->reason[i].text; i++)
        attn_str_append_f(&why, "%s %zu (%s)", i > 0 ? "," : ":", p->reason[i].rows,
                          p->reason[i].text);
    attn_say("%zu trials %s%s", p->dropped, what, attn_str_text(&why));
    attn_str_free(&why);
}

/* Counts what keep() would drop. */
static attn_status count_only(attn_cli *cli, pruning *p, attn_error *err) {
    const attn_db_filter filter = {.ended = true};
    attn_db_rows rows;
    ATTN_TRY(attn_db_find(cli->db, &filter, &rows, err));
    for (size_t i = 0; i < rows.count; i++)
        (void)keep(p, &rows.row[i]);
    attn_db_rows_free(&rows);
    return ATTN_OK;
}

/* A database that is not there is not made: reading it says so. */
static attn_db_mode mode_of(const attn_cli *cli) {
    attn_error ignored = ATTN_ERROR_INIT;
    char *path = NULL;
    bool there =
        attn_db_user_path(cli->args.db, &path, &ignored) == ATTN_OK && access(path, F_OK) == 0;
    free(path);
    return there && !cli->args.dry_run ? ATTN_DB_WRITE : ATTN_DB_READ;
}

int attn_cmd_db_prune(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    pruning p = {.cli = cli};
    attn_db_counts dropped = {0, 0};
    attn_status status;
    ATTN_STEP(attn_cli_gen(cli));
    ATTN_STEP(attn_cli_devices(cli));
    ATTN_STEP(attn_cli_db(cli, mode_of(cli), NULL));
    if (cli->args.dry_run)
        status = count_only(cli, &p, &err);
    else
        status = attn_db_prune(cli->db, keep, &p, &dropped, &err);
    free_tools(p.tools);
    if (status != ATTN_OK)
        return attn_failure(status, &err);
    if (!cli->args.dry_run)
        p.dropped = (size_t)dropped.added;
    say_dropped(&p, cli->args.dry_run ? "would be dropped" : "dropped");
    return ATTN_EXIT_OK;
}
