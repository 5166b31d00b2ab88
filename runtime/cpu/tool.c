/* tool.c: finding and running the compiler; see tool.h. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/interrupt.h"

extern char **environ;

enum { ORPHAN_CPU_SECONDS = 900, OUTPUT_MAX = 1 << 18, PIPE_MAX = 1 << 16, LOOK_MS = 2 };

static bool is_program(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Path of a program: itself if it has a slash, else from PATH, whose empty entries (the current
 * folder) are passed over. NULL if there is none. */
static char *find_program(const char *name) {
    const char *list = getenv("PATH");
    attn_str path = ATTN_STR_INIT;
    if (strchr(name, '/'))
        return is_program(name) ? strdup(name) : NULL;
    for (list = list ? list : "/usr/local/bin:/usr/bin:/bin"; list && *name;) {
        size_t length = strcspn(list, ":");
        attn_str_clear(&path);
        attn_str_append_bytes(&path, list, length);
        attn_str_append_f(&path, "/%s", name);
        if (length > 0 && !path.failed && is_program(path.data))
            return attn_str_take(&path);
        list = list[length] ? list + length + 1 : NULL;
    }
    attn_str_free(&path);
    return NULL;
}

static attn_status split_words(attn_tool *tool, attn_error *err) {
    char *save = NULL;
    for (char *w = strtok_r(tool->text, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (tool->count == ATTN_TOOL_WORDS)
            return attn_fail(err, ATTN_ERR_INVALID, "$CC has more than %d words", ATTN_TOOL_WORDS);
        tool->word[tool->count++] = w;
    }
    return ATTN_OK;
}

attn_status attn_tool_find(const char *name, attn_tool *tool, attn_error *err) {
    static const char *const usual[] = {"cc", "gcc", "clang"};
    const char *cc = getenv("CC");
    *tool = (attn_tool){0};
    if (!name && cc && cc[strspn(cc, " \t")])
        name = cc;
    for (size_t i = 0; !name && i < sizeof usual / sizeof *usual; i++) {
        char *path = find_program(usual[i]);
        name = path ? usual[i] : NULL;
        free(path);
    }
    if (!name)
        return attn_fail(err, ATTN_ERR_NO_TOOL,
                         "no C compiler: $CC is not set, and cc, gcc and clang are not in PATH "
                         "(Debian: apt install gcc libc6-dev)");
    if (!(tool->text = strdup(name)))
        return attn_fail_nomem(err);
    ATTN_TRY(split_words(tool, err));
    if (!(tool->path = find_program(tool->word[0])))
        return attn_fail(err, ATTN_ERR_NO_TOOL, "the C compiler %s was not found%s", tool->word[0],
                         strchr(tool->word[0], '/') ? "" : " in PATH");
    return ATTN_OK;
}

void attn_tool_free(attn_tool *tool) {
    free(tool->text);
    free(tool->path);
    *tool = (attn_tool){0};
}

/* The environment of the child: ours with English messages and, if given, the row "TMPDIR=..." in
 * place of our own. NULL if out of memory. */
static const char **make_environment(const char *tmpdir) {
    const char *const dropped[] = {"LC_ALL=", "LANGUAGE=", tmpdir ? "TMPDIR=" : "LC_ALL="};
    size_t count = 0, kept = 0;
    while (environ && environ[count])
        count++;
    const char **rows = malloc((count + 3) * sizeof *rows);
    for (size_t i = 0; rows && i < count; i++) {
        bool drop = false;
        for (size_t d = 0; d < sizeof dropped / sizeof *dropped; d++)
            drop |= strncmp(environ[i], dropped[d], strlen(dropped[d])) == 0;
        if (!drop)
            rows[kept++] = environ[i];
    }
    if (rows) {
        rows[kept++] = "LC_ALL=C";
        rows[kept] = tmpdir;
        rows[kept + (tmpdir != NULL)] = NULL;
    }
    return rows;
}

/* stdin empty, stdout and stderr to `log`, no other descriptor of ours, signals as at login;
 * alone: in a process group of its own. */
static int spawn(const char *path, const char *const *argv, const char *const *envp, int log,
                 bool alone, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    int error;
    if ((error = posix_spawn_file_actions_init(&actions)) != 0)
        return error;
    if ((error = posix_spawnattr_init(&attributes)) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGCHLD);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                  (alone ? POSIX_SPAWN_SETPGROUP : 0)));
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, log, 1);
    posix_spawn_file_actions_adddup2(&actions, log, 2);
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
#endif
    /* The casts: posix_spawn changes neither, its prototype is older than const. */
    error = posix_spawn(pid, path, &actions, &attributes, (char **)(uintptr_t)argv,
                        (char **)(uintptr_t)envp);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* What a tool says ends on terminals: nothing that would control them. (LC_ALL is C.) */
static bool is_shown(char c) {
    return c == '\n' || c == '\t' || (c >= ' ' && c <= '~');
}

/* What a child says, through a pipe. */
typedef struct reader {
    int fd; /* -1: nothing more is to come */
    attn_str *output;
    size_t kept;
    bool cut;
} reader;

/* Reads a part of what there is, false if there is nothing. A tool may print without an end: what
 * is not kept is read all the same, so that the tool can end. */
static bool read_part(reader *s) {
    char part[4096];
    ssize_t size = s->fd < 0 ? -1 : read(s->fd, part, sizeof part);
    if (size == 0) {
        close(s->fd);
        s->fd = -1;
    }
    if (size <= 0)
        return false;
    size_t kept = (size_t)size < OUTPUT_MAX - s->kept ? (size_t)size : OUTPUT_MAX - s->kept;
    for (size_t i = 0; i < kept; i++)
        part[i] = is_shown(part[i]) ? part[i] : '?';
    attn_str_append_bytes(s->output, part, kept);
    s->kept += kept;
    if (kept < (size_t)size && !s->cut)
        attn_str_append_f(s->output, "\n(what came after %d KiB is left out)\n", OUTPUT_MAX >> 10);
    s->cut |= kept < (size_t)size;
    return true;
}

/* The tool has ended, but what it has started may hold the pipe open, and print on. */
static void read_rest(reader *s) {
    for (size_t kept = s->kept; read_part(s) && !s->cut && s->kept < kept + PIPE_MAX;)
        continue;
    if (s->fd >= 0)
        close(s->fd);
}

static pid_t wait_again(pid_t pid, int *status, int options) {
    pid_t got;
    while ((got = waitpid(pid, status, options)) < 0 && errno == EINTR)
        continue;
    return got;
}

/* waitpid for a child, with `seconds` > 0 for the leader of a group, which is killed when its time
 * is up, or ours is; 0 then. */
static pid_t wait_and_read(pid_t pid, double seconds, reader *s, int *status) {
    struct timespec begin, now;
    pid_t got;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while ((got = wait_again(pid, status, WNOHANG)) == 0) {
        struct pollfd ready = {.fd = s->fd, .events = POLLIN};
        (void)poll(&ready, 1, LOOK_MS);
        (void)read_part(s);
        clock_gettime(CLOCK_MONOTONIC, &now);
        double passed =
            (double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec);
        if (seconds > 0 && (passed > seconds || attn_interrupt_pending())) {
            kill(-pid, SIGKILL);
            wait_again(pid, status, 0);
            return 0;
        }
    }
    return got;
}

/* How the child ended. A host that ignores SIGCHLD takes the status away: then the caller finds out
 * by what the tool left behind. */
static attn_status wait_for(pid_t pid, const char *name, double seconds, reader *s,
                            attn_error *err) {
    int status;
    pid_t got = wait_and_read(pid, seconds, s, &status);
    if (got == 0 && attn_interrupt_pending())
        return attn_fail(err, ATTN_ERR_TIMEOUT, "interrupted while %s ran", name);
    if (got == 0)
        return attn_fail(err, ATTN_ERR_TIMEOUT, "%s had not ended after %.3g s", name, seconds);
    if (got < 0)
        return ATTN_OK;
    if (WIFSIGNALED(status))
        return attn_fail(err, ATTN_ERR_COMPILE, "%s was ended by signal %d (%s)", name,
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return attn_fail(err, ATTN_ERR_COMPILE, "%s failed with exit code %d", name,
                         WEXITSTATUS(status));
    return ATTN_OK;
}

static attn_status run_and_wait(const attn_tool *tool, const char *const *argv,
                                const char *const *envp, double seconds, attn_str *output,
                                attn_error *err) {
    const struct rlimit limit = {ORPHAN_CPU_SECONDS, ORPHAN_CPU_SECONDS};
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return attn_fail(err, ATTN_ERR_IO, "no pipe for %s: %s", tool->path, strerror(errno));
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    int error = spawn(tool->path, argv, envp, ends[1], seconds > 0, &pid);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return attn_fail(err, ATTN_ERR_NO_TOOL, "%s cannot be started: %s", tool->path,
                         strerror(error));
    }
    prlimit(pid, RLIMIT_CPU, &limit, NULL);
    reader said = {.fd = ends[0], .output = output};
    attn_status status = wait_for(pid, tool->word[0], seconds, &said, err);
    read_rest(&said);
    return status;
}

attn_status attn_tool_run(const attn_tool *tool, const char *const *arguments, const char *folder,
                          double seconds, attn_str *output, attn_error *err) {
    const char *argv[ATTN_ARGV_MAX];
    int count = 0;
    for (int i = 0; i < tool->count; i++)
        argv[count++] = tool->word[i];
    for (; *arguments; arguments++) {
        if (count == ATTN_ARGV_MAX - 1)
            return attn_fail(err, ATTN_ERR_INVALID, "more than %d arguments", ATTN_ARGV_MAX);
        argv[count++] = *arguments;
    }
    argv[count] = NULL;
    attn_str tmpdir = ATTN_STR_INIT;
    if (folder)
        attn_str_append_f(&tmpdir, "TMPDIR=%s", folder);
    const char **envp = make_environment(tmpdir.data);
    attn_status status = envp && !tmpdir.failed
                             ? run_and_wait(tool, argv, envp, seconds, output, err)
                             : attn_fail_nomem(err);
    free(envp);
    attn_str_free(&tmpdir);
    return status;
}
