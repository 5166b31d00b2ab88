/* progress.c: a progress line: redrawn on a terminal, plain and rare elsewhere. */
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

enum {
    PLAIN_SECONDS = 10,     /* between two plain lines */
    LONGEST_S = 1000 * 3600 /* a run that may take longer has no budget */
};

static double now_s(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void attn_progress_open(attn_progress *progress) {
    const char *term = getenv("TERM");
    *progress = (attn_progress){.terminal = false};
    progress->terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* Back to the beginning of the line, and wipe it. */
static void wipe(attn_progress *progress) {
    if (progress->drawn)
        (void)fputs("\r\033[2K", stderr);
    progress->drawn = false;
}

/* Cut at the edge of the terminal, not wrapped. */
static void draw(attn_progress *progress) {
    wipe(progress);
    (void)fprintf(stderr, "\033[?7l%s\033[?7h", progress->line);
    (void)fflush(stderr);
    progress->drawn = true;
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

/* What is not known is left out: the time left of a run without a budget, the best of one that
 * does not measure. */
static void describe(const attn_tune_progress *r, char *line, size_t size) {
    char problem[ATTN_PROBLEM_TEXT], device[32], time[16], best[64] = "", left[32] = "";
    attn_device_label(r->device, device, sizeof device);
    (void)attn_problem_print(r->problem, problem, sizeof problem);
    const char *of = r->decided ? "winner" : "best so far";
    if (isfinite(r->best_ns) && isfinite(r->gain))
        (void)snprintf(best, sizeof best, "; %s %.4g ms, %.2fx the default", of, r->best_ns * 1e-6,
                       r->gain);
    else if (isfinite(r->best_ns))
        (void)snprintf(best, sizeof best, "; %s %.4g ms", of, r->best_ns * 1e-6);
    if (r->seconds < LONGEST_S) {
        duration(r->seconds, time);
        (void)snprintf(left, sizeof left, "; %s left", time);
    }
    (void)snprintf(line, size, "%s %zu/%zu %s: %zu tried, %zu to go%s%s%s%s", device,
                   r->problem_index + 1, r->problems, problem, r->tried, r->left, best, left,
                   r->note && r->note[0] ? "; " : "", r->note ? r->note : "");
}

/* Elsewhere than on a terminal: now and then, at the end, and nothing twice. */
static void show_plain(attn_progress *progress, const char *line, bool last) {
    double now = now_s();
    if ((!last && now < progress->next_s) || strcmp(progress->line, line) == 0)
        return;
    progress->next_s = now + PLAIN_SECONDS;
    strcpy(progress->line, line);
    (void)fprintf(stderr, "%s\n", line);
}

void attn_progress_show(attn_progress *progress, const attn_tune_progress *report) {
    char line[ATTN_PROGRESS_LINE];
    describe(report, line, sizeof line);
    if (!progress->terminal) {
        show_plain(progress, line, report->last);
        return;
    }
    strcpy(progress->line, line);
    draw(progress);
}

void attn_progress_say(attn_progress *progress, const char *lines) {
    bool drawn = progress->drawn;
    wipe(progress);
    (void)fprintf(stderr, "%s\n", lines);
    if (drawn)
        draw(progress);
}

void attn_progress_close(attn_progress *progress) {
    wipe(progress);
    (void)fflush(stderr);
}
