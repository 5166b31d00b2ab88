/* db_path.c: where the databases are when nobody says. */
#include "db_internal.h"

#include <dlfcn.h>
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

/* Where the file may be from the folder of the program or of libattntune.so: the build folder's
 * bin, and an installed tree, wherever it was moved to (lib may be lib/x86_64-linux-gnu). */
static attn_status beside(const char *object, char **path, attn_error *err) {
    static const char *const places[] = {"/system.db", "/../share/attntune/system.db",
                                         "/../../share/attntune/system.db"};
    const char *slash = strrchr(object, '/');
    for (size_t i = 0; slash && !*path && i < sizeof places / sizeof places[0]; i++) {
        attn_str s = ATTN_STR_INIT;
        attn_str_append_f(&s, "%.*s%s", (int)(slash - object), object, places[i]);
        *path = attn_str_take(&s);
        if (!*path)
            return attn_fail_nomem(err);
        if (access(*path, F_OK) != 0) {
            free(*path);
            *path = NULL;
        }
    }
    return ATTN_OK;
}

attn_status attn_db_system_path(const char *option, char **path, attn_error *err) {
    const char *given = option && *option ? option : environment("ATTNTUNE_SYSTEM_DB");
    *path = NULL;
    if (given)
        return copy(given, path, err);
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    ATTN_TRY(beside(program, path, err));
    Dl_info self; /* of the shared library, if this code is in one */
    if (!*path && dladdr(ATTN_SYSTEM_DB, &self) && self.dli_fname)
        ATTN_TRY(beside(self.dli_fname, path, err));
    return *path ? ATTN_OK : copy(ATTN_SYSTEM_DB, path, err);
}
