/* toolchain.c: which compiler this is: name, version, target, and the options that $CC adds.
 *
 * Asking takes 4 ms (gcc) to 50 ms (clang), and every build asks, so answers are kept: the one
 * place in the library with state of its own. An answer holds as long as the program is the same
 * file; so does that there was none, since waiting for it once is enough. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "compile.h"
#include "core/interrupt.h"
#include "flags.h"
#include "tool.h"

static const double ANSWER_S = 5;
enum { CACHE_ROWS = 4 };

typedef struct cache_row {
    char command[256];
    struct timespec changed;
    ino_t inode;
    char identity[256]; /* "": it has not answered */
} cache_row;

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static cache_row cache[CACHE_ROWS];
static unsigned cache_next;

/* The key of a row; false if the command is too long to be kept. */
static bool make_row(const attn_tool *tool, cache_row *row) {
    struct stat st;
    *row = (cache_row){.inode = 0};
    size_t size = (size_t)snprintf(row->command, sizeof row->command, "%s", tool->path);
    for (int i = 1; i < tool->count && size < sizeof row->command; i++)
        size +=
            (size_t)snprintf(row->command + size, sizeof row->command - size, " %s", tool->word[i]);
    if (size >= sizeof row->command || stat(tool->path, &st) != 0)
        return false;
    row->changed = st.st_mtim;
    row->inode = st.st_ino;
    return true;
}

static bool same_tool(const cache_row *a, const cache_row *b) {
    return strcmp(a->command, b->command) == 0 && a->inode == b->inode &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Only ever tries the lock: in the child of a fork nobody might be left to open it. */
static bool cache_get(cache_row *key) {
    bool found = false;
    if (pthread_mutex_trylock(&cache_lock) != 0)
        return false;
    for (int i = 0; i < CACHE_ROWS && !found; i++) {
        found = same_tool(&cache[i], key);
        if (found)
            *key = cache[i];
    }
    pthread_mutex_unlock(&cache_lock);
    return found;
}

static void cache_put(const cache_row *row) {
    if (pthread_mutex_trylock(&cache_lock) != 0)
        return;
    cache[cache_next++ % CACHE_ROWS] = *row;
    pthread_mutex_unlock(&cache_lock);
}

/* The rest of the line of `text` that starts with `prefix`; NULL if there is none. */
static const char *line_after(const char *text, const char *prefix, int *length) {
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, prefix, strlen(prefix)) == 0) {
            line += strlen(prefix);
            *length = (int)strcspn(line, "\n");
            return line;
        }
    }
    return NULL;
}

/* From the output of `cc -v`, which gcc and clang both give:
 *     Target: x86_64-linux-gnu
 *     gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)        or: Debian clang version 14.0.6 */
static attn_status read_identity(const char *log, const char *name, char identity[256],
                                 attn_error *err) {
    int target_length = 0;
    const char *target = line_after(log, "Target: ", &target_length);
    const char *version = strstr(log, " version ");
    if (!target || !version)
        return attn_fail(err, ATTN_ERR_NO_TOOL,
                         "%s does not tell its version as gcc and clang do:\n%s", name, log);
    while (version > log && version[-1] != '\n')
        version--;
    int length = (int)strcspn(version, "\n");
    while (length > 0 && version[length - 1] == ' ')
        length--;
    snprintf(identity, 256, "%.*s %.*s", length, version, target_length, target);
    return ATTN_OK;
}

/* Asks the compiler itself. */
static attn_status ask(const attn_tool *tool, char identity[256], attn_error *err) {
    const char *const arguments[] = {"-v", NULL};
    attn_str log = ATTN_STR_INIT;
    attn_status status = attn_tool_run(tool, arguments, NULL, ANSWER_S, &log, err);
    if (status == ATTN_OK)
        status = read_identity(attn_str_text(&log), tool->word[0], identity, err);
    attn_str_free(&log);
    return status;
}

static attn_status identify(const attn_tool *tool, attn_str *identity, attn_error *err) {
    cache_row row;
    bool keep = make_row(tool, &row);
    if (!keep || !cache_get(&row)) {
        attn_status status = ask(tool, row.identity, err);
        if (status != ATTN_ERR_TIMEOUT || attn_interrupt_pending())
            ATTN_TRY(status);
        if (keep)
            cache_put(&row);
    }
    if (!row.identity[0])
        return attn_fail(err, ATTN_ERR_NO_TOOL, "the C compiler %s does not answer to -v in %.3g s",
                         tool->word[0], ANSWER_S);
    attn_str_append(identity, row.identity);
    return identity->failed ? attn_fail_nomem(err) : ATTN_OK;
}

/* "ccache gcc" is the compiler that it runs, but "gcc -m32" is another one than "gcc". */
static void append_options(const attn_tool *tool, attn_str *identity) {
    bool options = false;
    for (int i = 1; i < tool->count; i++) {
        options |= tool->word[i][0] == '-';
        if (options)
            attn_str_append_f(identity, " %s", tool->word[i]);
    }
}

attn_status attn_cpu_toolchain(const char *language, const char *options, attn_str *identity,
                               attn_error *err) {
    attn_cpu_flags flags = {0};
    attn_tool tool = {0};
    (void)language;
    attn_status status = attn_cpu_flags_parse(options, &flags, err);
    if (status == ATTN_OK)
        status = attn_tool_find(flags.compiler, &tool, err);
    if (status == ATTN_OK)
        status = identify(&tool, identity, err);
    if (status == ATTN_OK)
        append_options(&tool, identity);
    if (status == ATTN_OK && identity->failed)
        status = attn_fail_nomem(err);
    attn_tool_free(&tool);
    attn_cpu_flags_free(&flags);
    return status;
}
