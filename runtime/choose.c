/* choose.c: which candidate of a class a problem gets.
 *
 * Steps, best first, are the origins: tuned here exactly, shipped exactly, tuned here near, shipped
 * near, same architecture, default, reference. Within a step fresh rows come before stale ones,
 * families by their preference, and near ones before far ones. A candidate whose limits the actual
 * shape breaks is passed over. This
 * runs in every attn_run: no call of it allocates, locks or enters the kernel. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "context.h"

/* Beyond a factor of 2 in a size, a measured winner says little. */
#define DISTANCE_MAX 1.0

static double log_size_of(double n) {
    return n > 0 ? log2(n) : -INFINITY;
}

void attn_candidate_sizes(const attn_problem *problem, double log_size[3]) {
    log_size[0] = log_size_of(problem->seq_q);
    log_size[1] = log_size_of(problem->seq_kv);
    log_size[2] = log_size_of((double)problem->batch * problem->heads_q);
}

static double distance_of(const double a[3], const double b[3]) {
    double distance = 0;
    for (int i = 0; i < 3; i++) {
        double d = a[i] == b[i] ? 0 : fabs(a[i] - b[i]); /* -inf is near -inf alone */
        if (d > distance)
            distance = d;
    }
    return distance;
}

/* Same problem in everything that a trial depends on. The class is equal already. */
static bool same_problem(const attn_problem *a, const attn_problem *b) {
    return a->batch == b->batch && a->heads_q == b->heads_q && a->heads_kv == b->heads_kv &&
           a->seq_q == b->seq_q && a->seq_kv == b->seq_kv && a->window_left == b->window_left &&
           a->window_right == b->window_right && a->layout == b->layout;
}

static bool is_tuned(const attn_candidate *c) {
    return c->exact < ATTN_ORIGIN_DEFAULT;
}

/* What is stored without its binary counts, its limits being unknown; but nothing can take over
 * from another by it. */
static bool is_usable(const attn_candidate *c, const attn_problem *problem, bool any_strides) {
    if (!c->loaded)
        return !any_strides;
    return !attn_limits_broken(&c->loaded->launch, problem) &&
           !(any_strides && c->loaded->launch.maps);
}

static attn_pick pick(const attn_class *entry, const attn_problem *problem, bool any_strides) {
    attn_pick best = {.candidate = NULL};
    double log_size[3];
    attn_candidate_sizes(problem, log_size);
    for (size_t i = 0; i < entry->count; i++) {
        const attn_candidate *c = &entry->candidate[i];
        bool exact = is_tuned(c) && same_problem(&c->problem, problem);
        double d = exact ? 0 : distance_of(c->log_size, log_size);
        attn_origin step = exact ? c->exact : c->near;
        if ((is_tuned(c) && d > DISTANCE_MAX) || !is_usable(c, problem, any_strides))
            continue;
        if (best.candidate && (step > best.origin ||
                               (step == best.origin &&
                                (c->penalty > best.candidate->penalty ||
                                 (c->penalty == best.candidate->penalty && d >= best.distance)))))
            continue;
        best = (attn_pick){c, step, d, false};
    }
    return best;
}

attn_pick attn_class_pick(const attn_class *entry, const attn_problem *problem) {
    attn_pick best = {.candidate = NULL};
    if (!entry)
        return best;
    best = pick(entry, problem, false);
    best.serves = !entry->lean || (best.candidate && best.candidate->loaded);
    return best;
}

const attn_candidate *attn_class_any_strides(const attn_class *entry, const attn_problem *problem) {
    return pick(entry, problem, true).candidate;
}

void attn_choice_fill(const attn_pick *pick, attn_choice *choice) {
    const attn_candidate *c = pick->candidate;
    attn_choice filled = ATTN_CHOICE_INIT;
    (void)snprintf(filled.family, sizeof filled.family, "%s", c->family);
    (void)snprintf(filled.configuration, sizeof filled.configuration, "%s", c->config);
    filled.origin = pick->origin;
    filled.distance = is_tuned(c) ? pick->distance : 0;
    memcpy(filled.stale, c->stale, sizeof filled.stale);
    filled.expected_ns = c->expected_ns;
    *choice = filled;
}
