/* cmd_steps.c: what verbs begin with: saying things, the generator, families, problems. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "cmd_build.h"
#include "stop.h"

/*-*** Saying ****************************************************/

static void say(const char *format, va_list args) {
    (void)fputs("attntune: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
}

void attn_say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

int attn_misuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return ATTN_EXIT_USAGE;
}

int attn_failure(attn_status status, const attn_error *err) {
    if (status == ATTN_OK)
        return ATTN_EXIT_OK;
    attn_say("%s", err->line);
    return status == ATTN_ERR_NO_DEVICE ? ATTN_EXIT_DEVICE : ATTN_EXIT_FOUND;
}

int attn_failure_nomem(void) {
    attn_say("%s", attn_status_text(ATTN_ERR_NOMEM));
    return ATTN_EXIT_FOUND;
}

const char *attn_problem_text(const attn_problem *problem, char text[ATTN_PROBLEM_TEXT]) {
    (void)attn_problem_print(problem, text, ATTN_PROBLEM_TEXT);
    return text;
}

int attn_cli_stop(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    if (cli->stop_fd >= 0)
        return ATTN_EXIT_OK;
    return attn_failure(attn_stop_open(&cli->stop_fd, &err), &err);
}

/*-*** Generator *************************************************/

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Folders that the user names must be there; the environment may name some that are not yet. */
static int check_path(const char *path) {
    char *copy = strdup(path), *rest = copy;
    int code = ATTN_EXIT_OK;
    for (char *folder; code == ATTN_EXIT_OK && (folder = strsep(&rest, ":"));)
        if (folder[0] && !is_folder(folder))
            code = attn_misuse("--path: there is no folder %s", folder);
    free(copy);
    return code;
}

int attn_cli_gen(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    const char *path = cli->args.path;
    if (path)
        ATTN_STEP(check_path(path));
    else
        path = getenv("ATTNTUNE_PATH");
    attn_status status = attn_gen_open(path && path[0] ? path : NULL, &cli->gen, &err);
    return status == ATTN_ERR_NOT_FOUND && cli->args.path ? attn_misuse("%s", err.line)
                                                          : attn_failure(status, &err);
}

int attn_cli_family(attn_cli *cli, const char *name, attn_family_info *info) {
    attn_error err = ATTN_ERROR_INIT;
    attn_status status = attn_gen_family(cli->gen, name, info, &err);
    if (status == ATTN_ERR_NOT_FOUND || status == ATTN_ERR_INVALID)
        return attn_misuse("%s%s", err.line,
                           strchr(err.line, '?') ? "" : "; `attntune space` lists the families");
    return attn_failure(status, &err);
}

int attn_cli_config(attn_cli *cli, const char *text, const char **family, const char **config) {
    attn_family_info info;
    char name[64] = "";
    size_t size = strcspn(text, ":=");
    *family = cli->args.family;
    *config = text;
    if (text[size] == ':') {
        if (size < sizeof name)
            memcpy(name, text, size);
        *family = name;
        *config = text + size + 1;
    }
    if (!*family)
        return attn_misuse("--config needs --family NAME, or \"FAMILY: %.60s%s\"", text,
                           strlen(text) > 60 ? "..." : "");
    int code = attn_cli_family(cli, *family, &info);
    *family = code ? NULL : info.name;
    return code;
}

int attn_cli_check_config(attn_cli *cli, const char *family, const char *config) {
    for (size_t d = 0; d < cli->devices; d++)
        for (size_t p = 0; p < cli->problems; p++) {
            attn_error err = ATTN_ERROR_INIT;
            attn_variant variant = {0};
            attn_status status = attn_gen_render(cli->gen, family, &cli->problem[p],
                                                 &cli->device[d], &config, 1, &variant, &err);
            attn_variant_free(&variant);
            if (status == ATTN_ERR_INVALID)
                return attn_misuse("%s", err.line);
        }
    return ATTN_EXIT_OK;
}

/*-*** Problems **************************************************/

bool attn_cli_meant(const attn_cli *cli, size_t i, const attn_device_info *device) {
    return !cli->meant[i] || strcmp(cli->meant[i], device->backend) == 0;
}

int attn_cli_any_meant(const attn_cli *cli) {
    for (size_t d = 0; d < cli->devices; d++)
        for (size_t p = 0; p < cli->problems; p++)
            if (attn_cli_meant(cli, p, &cli->device[d]))
                return ATTN_EXIT_OK;
    if (cli->args.words == 0)
        attn_say("no default problem is meant for the devices here: name one");
    else
        attn_say("no problem is meant for the devices here: each is in a section of a file, such "
                 "as [cuda], for others");
    return ATTN_EXIT_FOUND;
}

/* Is the problem there already, for all or for the same backend? *slot is where it belongs if not.
 */
static bool is_there(const attn_cli *cli, const attn_problem *problem, const char *meant,
                     size_t *slot) {
    attn_hash hash = attn_problem_hash(problem);
    size_t at = (size_t)hash.lo & (cli->seen_size - 1);
    for (; cli->seen[at]; at = (at + 1) & (cli->seen_size - 1)) {
        size_t i = cli->seen[at] - 1;
        if (attn_hash_equal(hash, attn_problem_hash(&cli->problem[i])) &&
            (!cli->meant[i] || cli->meant[i] == meant))
            return true;
    }
    *slot = at;
    return false;
}

/* Room for one more: all are entered again into tables of twice the size. */
static bool make_room(attn_cli *cli) {
    if (cli->problems < cli->seen_size / 2)
        return true;
    size_t size = cli->seen_size ? 2 * cli->seen_size : 64, slot;
    attn_problem *problem = realloc(cli->problem, size * sizeof *problem);
    cli->problem = problem ? problem : cli->problem;
    const char **meant = realloc(cli->meant, size * sizeof *meant);
    cli->meant = meant ? meant : cli->meant;
    size_t *seen = calloc(size, sizeof *seen);
    if (!problem || !meant || !seen) {
        free(seen);
        return false;
    }
    free(cli->seen);
    cli->seen = seen;
    cli->seen_size = size;
    for (size_t i = 0; i < cli->problems; i++)
        if (!is_there(cli, &cli->problem[i], cli->meant[i], &slot))
            cli->seen[slot] = i + 1;
    return true;
}

static int add_problem(attn_cli *cli, const attn_problem *problem, const char *meant) {
    size_t slot;
    if (!make_room(cli))
        return attn_failure_nomem();
    if (is_there(cli, problem, meant, &slot))
        return ATTN_EXIT_OK;
    cli->meant[cli->problems] = meant;
    cli->problem[cli->problems++] = *problem;
    cli->seen[slot] = cli->problems;
    return ATTN_EXIT_OK;
}

/* "[cpu]", "[all]": sets *meant to the backend's name, NULL for all. */
static int read_section(char *line, const char *place, const char **meant) {
    const char *names[16] = {"all"};
    size_t count = 1, size = strlen(line);
    for (size_t i = 0; attn_backends[i] && count < 16; i++)
        names[count++] = attn_backends[i]->name;
    if (line[size - 1] != ']')
        return attn_misuse("%s: %s has no ]", place, line);
    line[size - 1] = '\0';
    for (size_t i = 0; i < count; i++) {
        *meant = i ? names[i] : NULL;
        if (strcmp(line + 1, names[i]) == 0)
            return ATTN_EXIT_OK;
    }
    const char *near = attn_nearest_word(line + 1, names, count);
    return attn_misuse("%s: there is no backend %s%s%s%s", place, line + 1,
                       near ? "; did you mean [" : "; [all] is for every device", near ? near : "",
                       near ? "]?" : "");
}

static char *trim(char *line) {
    line[strcspn(line, "#")] = '\0';
    line += strspn(line, " \t\r");
    for (size_t n = strlen(line); n && strchr(" \t\r", line[n - 1]); n--)
        line[n - 1] = '\0';
    return line;
}

/* Lines of a shape file, which are changed. */
static int add_lines(attn_cli *cli, char *text, const char *name) {
    const char *meant = NULL;
    char reason[512], place[512];
    attn_problem problem;
    int number = 0;
    text += strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* what some editors begin UTF-8 with */
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        (void)snprintf(place, sizeof place, "%s:%d", name, ++number);
        line = trim(line);
        if (!line[0])
            continue;
        if (line[0] == '[') {
            ATTN_STEP(read_section(line, place, &meant));
            continue;
        }
        if (attn_problem_parse(line, &problem, reason, sizeof reason) != ATTN_OK)
            return attn_misuse("%s: %s", place, reason);
        ATTN_STEP(add_problem(cli, &problem, meant));
    }
    return ATTN_EXIT_OK;
}

static attn_status read_stdin(attn_str *text, attn_error *err) {
    char part[4096];
    size_t n;
    while (text->size <= ATTN_FILE_MAX && (n = fread(part, 1, sizeof part, stdin)) > 0)
        attn_str_append_bytes(text, part, n);
    if (text->size > ATTN_FILE_MAX)
        return attn_fail(err, ATTN_ERR_IO, "cannot read standard input: %s", strerror(EFBIG));
    if (ferror(stdin))
        return attn_fail(err, ATTN_ERR_IO, "standard input: %s", strerror(errno));
    return text->failed ? attn_fail_nomem(err) : ATTN_OK;
}

bool attn_leads_nowhere(const char *name) {
    struct stat st;
    return stat(name, &st) != 0 && (errno == ENAMETOOLONG || errno == ENOTDIR || errno == ELOOP);
}

int attn_no_file(const char *name) {
    enum { SHOWN = 200 };
    bool nowhere = attn_leads_nowhere(name); /* and errno says why */
    const char *why = nowhere ? strerror(errno) : "";
    return attn_misuse("there is no file %.*s%s%s%s", SHOWN, name,
                       strlen(name) > SHOWN ? "..." : "", nowhere ? ": " : "", why);
}

int attn_cli_read(const char *name, attn_str *text) {
    attn_error err = ATTN_ERROR_INIT;
    if (strcmp(name, "-") != 0 && is_folder(name))
        return attn_misuse("%s is a folder, not a file", name);
    attn_status status =
        strcmp(name, "-") == 0 ? read_stdin(text, &err) : attn_str_read_file(text, name, &err);
    bool absent = status == ATTN_ERR_NOT_FOUND || (status != ATTN_OK && attn_leads_nowhere(name));
    return absent ? attn_no_file(name) : attn_failure(status, &err);
}

static int add_file(attn_cli *cli, const char *file) {
    attn_str text = ATTN_STR_INIT;
    const char *name = strcmp(file, "-") == 0 ? "standard input" : file;
    if (!file[0])
        return attn_misuse("@ needs a file: @FILE, or @- for standard input");
    int code = attn_cli_read(file, &text);
    if (code == ATTN_EXIT_OK && text.data && strlen(text.data) < text.size)
        code = attn_misuse("%s holds a NUL byte: it is no text", name);
    if (code == ATTN_EXIT_OK && text.data)
        code = add_lines(cli, text.data, name);
    if (code == ATTN_EXIT_OK && cli->problems == 0)
        code = attn_misuse("%s holds no problem", name);
    attn_str_free(&text);
    return code;
}

int attn_cli_problems(attn_cli *cli, const char *const *words, size_t count) {
    char reason[512];
    attn_problem problem;
    for (size_t i = 0; i < count; i++) {
        if (words[i][0] == '@') {
            ATTN_STEP(add_file(cli, words[i] + 1));
            continue;
        }
        if (attn_problem_parse(words[i], &problem, reason, sizeof reason) != ATTN_OK)
            return attn_misuse("%s", reason);
        ATTN_STEP(add_problem(cli, &problem, NULL));
    }
    return ATTN_EXIT_OK;
}

int attn_cli_shapes(attn_cli *cli, const char *name) {
    attn_error err = ATTN_ERROR_INIT;
    char *text = NULL;
    if (attn_gen_file(cli->gen, name, &text, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    int code = add_lines(cli, text, name);
    free(text);
    return code;
}
