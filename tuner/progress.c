/* progress.c: progress lines, redrawn on a terminal, plain and rare elsewhere. */
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

enum { PLAIN_SECONDS = 10 }; /* between two plain lines of a device */

static double now_s(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

attn_status attn_progress_open(attn_progress *progress, size_t devices, attn_error *err) {
    const char *term = getenv("TERM");
    *progress = (attn_progress){.devices = devices, .start_s = now_s()};
    progress->terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    progress->line = calloc(devices ? devices : 1, sizeof *progress->line);
    progress->next_s = calloc(devices ? devices : 1, sizeof *progress->next_s);
    if (progress->line && progress->next_s)
        return ATTN_OK;
    attn_progress_close(progress);
    return attn_fail_nomem(err);
}

/* Back over the lines drawn, each wiped. */
static void wipe(attn_progress *progress) {
    for (; progress->drawn > 0; progress->drawn--)
        (void)fputs("\033[1A\033[2K", stderr);
}

static void draw(attn_progress *progress) {
    wipe(progress);
    for (size_t i = 0; i < progress->devices; i++) {
        if (!progress->line[i][0])
            continue;
        (void)fprintf(stderr, "\033[?7l%s\033[?7h\n", progress->line[i]); /* cut, not wrapped */
        progress->drawn++;
    }
    (void)fflush(stderr);
}

static void duration(double seconds, char text[16]) {
    int s = seconds > 0 ? (int)seconds : 0;
    if (s < 60)
        (void)snprintf(text, 16, "%ds", s);
    else if (s < 3600)
        (void)snprintf(text, 16, "%dm%02ds", s / 60, s % 60);
    else
        (void)snprintf(text, 16, "%dh%02dm", s / 3600 % 1000, s / 60 % 60);
}

static void describe(const attn_tune_progress *r, char *line, size_t size) {
    char problem[ATTN_PROBLEM_TEXT], device[32], left[16], best[64] = "none yet";
    attn_device_label(r->device, device, sizeof device);
    (void)attn_problem_print(r->problem, problem, sizeof problem);
    duration(r->seconds, left);
    if (isfinite(r->best_ns) && isfinite(r->gain))
        (void)snprintf(best, sizeof best, "%.4g ms, %.2fx the default", r->best_ns * 1e-6, r->gain);
    else if (isfinite(r->best_ns))
        (void)snprintf(best, sizeof best, "%.4g ms", r->best_ns * 1e-6);
    (void)snprintf(line, size, "%s %zu/%zu %s: %zu tried, %zu left; best %s; %s left%s%s", device,
                   r->problem_index + 1, r->problems, problem, r->tried, r->left, best, left,
                   r->note && r->note[0] ? "; " : "", r->note ? r->note : "");
}

void attn_progress_show(attn_progress *progress, size_t device, const attn_tune_progress *report) {
    if (device >= progress->devices)
        return;
    describe(report, progress->line[device], sizeof progress->line[device]);
    if (progress->terminal) {
        draw(progress);
        return;
    }
    double now = now_s() - progress->start_s;
    if (!report->last && now < progress->next_s[device])
        return;
    progress->next_s[device] = now + PLAIN_SECONDS;
    (void)fprintf(stderr, "%s\n", progress->line[device]);
}

void attn_progress_say(attn_progress *progress, const char *line) {
    wipe(progress);
    (void)fprintf(stderr, "%s\n", line);
    if (progress->terminal)
        draw(progress);
}

void attn_progress_close(attn_progress *progress) {
    if (progress->terminal)
        wipe(progress);
    free(progress->line);
    free(progress->next_s);
    progress->line = NULL;
    progress->next_s = NULL;
}
