/* db_path.c: where the databases are when nobody says. */
#include "db_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static attn_status copy(const char *text, char **path, attn_error *err) {
    *path = strdup(text);
    return *path ? ATTN_OK : attn_fail_nomem(err);
}

static attn_status join(const char *folder, const char *rest, char **path, attn_error *err) {
    attn_str s = ATTN_STR_INIT;
    attn_str_append(&s, folder);
    attn_str_append(&s, rest);
    *path = attn_str_take(&s);
    return *path ? ATTN_OK : attn_fail_nomem(err);
}

attn_status attn_db_user_path(const char *option, char **path, attn_error *err) {
    const char *given = option && *option ? option : environment("ATTNTUNE_DB");
    const char *cache = environment("XDG_CACHE_HOME");
    const char *home = environment("HOME");
    *path = NULL;
    if (given)
        return copy(given, path, err);
    if (cache && *cache == '/') /* a relative one is to be ignored, says the XDG specification */
        return join(cache, "/attntune/attntune.db", path, err);
    if (home)
        return join(home, "/.cache/attntune/attntune.db", path, err);
    return attn_fail(err, ATTN_ERR_NOT_FOUND,
                     "no place for the database: HOME is not set; name a file with --db or "
                     "ATTNTUNE_DB");
}

/* "FOLDER/system.db" with the folder of the running program: the build folder. */
static attn_status beside_program(char **path, attn_error *err) {
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return ATTN_OK;
    program[n] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return ATTN_OK;
    *slash = '\0';
    return join(program, "/system.db", path, err);
}

attn_status attn_db_system_path(const char *option, char **path, attn_error *err) {
    const char *given = option && *option ? option : environment("ATTNTUNE_SYSTEM_DB");
    *path = NULL;
    if (given)
        return copy(given, path, err);
    ATTN_TRY(beside_program(path, err));
    if (*path && access(*path, F_OK) == 0)
        return ATTN_OK;
    free(*path);
    return copy(ATTN_SYSTEM_DB, path, err);
}
