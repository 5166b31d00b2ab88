/* measure.c: effort MEASURE runs the attntune program on one problem, and waits for it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "context.h"

extern char **environ;

enum { DEFAULT_BUDGET_S = 20, GRACE_S = 15, MISUSED = 2 /* the program's exit code for it */ };

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits until the child has ended or the deadline has passed; then it is killed. */
static attn_status wait_for(pid_t child, double deadline, int *result, attn_error *err) {
    const struct timespec nap = {0, 20L * 1000 * 1000};
    for (;;) {
        pid_t ended = waitpid(child, result, WNOHANG);
        if (ended == child)
            return ATTN_OK;
        if (ended < 0 && errno != EINTR)
            return attn_fail(err, ATTN_ERR_INTERNAL, "waiting for attntune: %s", strerror(errno));
        if (now() > deadline)
            break;
        (void)nanosleep(&nap, NULL);
    }
    (void)kill(child, SIGTERM); /* it saves what it has */
    (void)nanosleep(&(struct timespec){1, 0}, NULL);
    if (waitpid(child, result, WNOHANG) != child) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, result, 0);
    }
    return attn_fail(err, ATTN_ERR_TIMEOUT, "attntune tune did not end within its budget");
}

/* A library's caller did not ask for its output: that goes nowhere. */
static attn_status spawn(const char *tool, char *const argv[], pid_t *child, attn_error *err) {
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return attn_fail_nomem(err);
    int failed = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (!failed)
        failed = strchr(tool, '/') ? posix_spawn(child, tool, &actions, NULL, argv, environ)
                                   : posix_spawnp(child, tool, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return attn_fail(err, ATTN_ERR_NO_TOOL, "cannot start %s: %s; set attn_options.tool_path",
                         tool, strerror(failed));
    return ATTN_OK;
}

static attn_status tune(const char *tool, const char *const *argv, double seconds, int *result,
                        attn_error *err) {
    pid_t child;
    ATTN_TRY(spawn(tool, (char *const *)(uintptr_t)argv, &child, err));
    return wait_for(child, now() + seconds * 1.05 + GRACE_S, result, err);
}

attn_status attn_measure(attn_context *ctx, const attn_runtime_device *device,
                         const attn_problem *problem, attn_error *err) {
    char text[ATTN_PROBLEM_TEXT], budget[32], threads[16];
    const char *tool = ctx->options.tool_path ? ctx->options.tool_path : "attntune";
    const char *path = ctx->options.family_path;
    double seconds =
        ctx->options.measure_seconds > 0 ? ctx->options.measure_seconds : DEFAULT_BUDGET_S;
    if (!ctx->user_path)
        return attn_fail(err, ATTN_ERR_DB, "there is no database to keep a measurement in");
    (void)attn_problem_print(problem, text, sizeof text);
    (void)snprintf(budget, sizeof budget, "%.1fs", seconds);
    (void)snprintf(threads, sizeof threads, "%d", device->backend->workers(device->handle));
    const char *argv[16] = {tool,   "tune",         text,       "--device", device->name,
                            "--db", ctx->user_path, "--budget", budget};
    size_t count = 9, without_threads;
    if (path) {
        argv[count++] = "--path";
        argv[count++] = path;
    }
    without_threads = count;
    argv[count++] = "--threads";
    argv[count] = threads;
    int result = 0;
    ATTN_TRY(tune(tool, argv, seconds, &result, err));
    /* The calling thread may be allowed fewer than the context was: then with as many as it is. */
    if (WIFEXITED(result) && WEXITSTATUS(result) == MISUSED) {
        argv[without_threads] = NULL;
        ATTN_TRY(tune(tool, argv, seconds, &result, err));
    }
    if (WIFEXITED(result) && WEXITSTATUS(result) == 0)
        return ATTN_OK;
    if (WIFEXITED(result) && WEXITSTATUS(result) == 127)
        return attn_fail(err, ATTN_ERR_NO_TOOL, "%s was not found; set attn_options.tool_path",
                         tool);
    return attn_fail(err, ATTN_ERR_NO_KERNEL,
                     "`%s tune %s --device %s --db %s --threads %s` found no winner; run it to see "
                     "why",
                     tool, text, device->name, ctx->user_path, threads);
}
