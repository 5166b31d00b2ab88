/* job_final.c: finalists are measured again, interleaved, and the winner is decided on that.
 *
 * What two kernels differ by is judged by the ratios of their times in the same rounds, which the
 * machine's ups and downs cancel out of. On a device at its power limit each is then held alone, if
 * there is time, and that decides. Within the noise band of the best are ties, and a tie goes to a
 * default, then to fewer registers, less shared memory, and the earlier name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "stand.h"

static const double KEEP = 1.1;          /* x the best race median may be a finalist */
static const double BAND_FLOOR = 0.003;  /* no clock here tells less apart */
static const double BAND_GOOD = 0.005;   /* narrow enough: no more rounds */
static const double NORMAL_MAD = 1.4826; /* standard deviation of a normal / its median deviation */
static const double MEDIAN_95 = 2.46; /* half-width of a median's 95 % interval, in sd / sqrt n */
static const double ROUND_NS = 3e6;   /* least time of a sample and its canary */
static const double BEGIN_S = 0.3;    /* that finals take whoever is in them */
enum { ROUNDS_MAX = 3 * ATTN_ROUNDS, HOLD_SHARE = 4 /* of the problem's time, at most 1 / this */ };

/*-*** Choosing finalists ****************************************/

static bool is_default(const attn_job *job, size_t point) {
    return attn_job_default(job, point) == point;
}

static void describe(const attn_job *job, size_t point, attn_str *text) {
    const attn_point *p = &job->space.point[point];
    attn_str_append_f(text, "%s ", job->family[p->family].name);
    attn_config_print(job->family[p->family].space, &p->config, text);
}

static int compare_passed(const void *a, const void *b) {
    const attn_passed *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? -1 : 1)
                          : (x->point > y->point) - (x->point < y->point);
}

/* Is there time to hold so many kernels alone, and is it a small part of the problem's? */
static bool can_hold(const attn_job *job, size_t kernels) {
    double seconds = (double)kernels * ATTN_HOLD_PASSES * (ATTN_HOLD_S + job->best_ns * 1e-9);
    if (job->time.end_ns == INT64_MAX)
        return job->limited;
    return job->limited &&
           seconds * HOLD_SHARE < (double)(job->time.end_ns - job->begin_ns) * 1e-9 &&
           attn_now_ns() + (int64_t)(seconds * 1e9) < job->time.end_ns;
}

/* A finalist is repeated, and then takes part in rounds; where this falls short the finals are cut
 * and nothing is decided, so it errs to the long side. */
static double finalist_seconds(const attn_job *job) {
    double sample = fmax(ROUND_NS, job->best_ns * 1.1); /* NaN counts as none */
    double launches = (ATTN_ROUNDS + 2) * sample + 3 * ATTN_REPEATS * fmax(0, job->best_ns);
    return 1.5 * job->proof_s + launches * 1e-9;
}

double attn_job_final_seconds(const attn_job *job) {
    size_t finalists = 1; /* the default */
    for (size_t i = 0; i < job->passed_count && finalists <= ATTN_FINALISTS; i++)
        finalists += job->passed[i].ns <= KEEP * job->best_ns;
    double held = can_hold(job, finalists) ? ATTN_HOLD_PASSES * ATTN_HOLD_S : 0;
    return BEGIN_S + (double)finalists * (finalist_seconds(job) + held);
}

/* Finalists that there is time for, beside the default; one at least, whatever the time. */
static size_t affordable(const attn_job *job) {
    if (job->time.end_ns == INT64_MAX)
        return ATTN_FINALISTS;
    double left = (double)(job->time.end_ns - attn_now_ns()) * 1e-9 - BEGIN_S;
    return (size_t)fmin(ATTN_FINALISTS, fmax(1, left / finalist_seconds(job) - 1));
}

static attn_status add_finalist(attn_job *job, size_t index, attn_error *err) {
    attn_candidate *c;
    for (const attn_candidate *other = job->on_way; other; other = other->next)
        if (other->point == job->passed[index].point)
            return ATTN_OK;
    attn_status status = attn_candidate_make(job, job->passed[index].point, &c, err);
    if (status == ATTN_ERR_NOT_FOUND) /* its compiler has gone since */
        return ATTN_OK;
    ATTN_TRY(status);
    c->result.registers = job->passed[index].registers;
    c->result.smem = job->passed[index].smem;
    return ATTN_OK;
}

attn_status attn_job_begin_finals(attn_job *job, attn_error *err) {
    if (job->passed_count == 0)
        return ATTN_OK;
    qsort(job->passed, job->passed_count, sizeof *job->passed, compare_passed);
    job->finals = true;
    bool family[ATTN_SEARCH_FAMILIES] = {false};
    size_t most = affordable(job);
    for (size_t i = 0; i < job->passed_count && i < most; i++) {
        if (job->passed[i].ns > KEEP * job->best_ns)
            break;
        family[job->space.point[job->passed[i].point].family] = true;
        ATTN_TRY(add_finalist(job, i, err));
    }
    for (size_t i = 0; i < job->passed_count; i++)
        if (is_default(job, job->passed[i].point) &&
            family[job->space.point[job->passed[i].point].family])
            ATTN_TRY(add_finalist(job, i, err));
    return ATTN_OK;
}

static attn_passed *passed_of(const attn_job *job, size_t point) {
    for (size_t i = 0; i < job->passed_count; i++)
        if (job->passed[i].point == point)
            return &job->passed[i];
    return NULL;
}

attn_status attn_job_lose_finalist(attn_job *job, attn_candidate *c, attn_error *err) {
    attn_str text = ATTN_STR_INIT;
    passed_of(job, c->point)->out = true;
    describe(job, c->point, &text);
    attn_str_append_f(&text, ": %s as a finalist: %s", attn_outcome_name(c->result.outcome),
                      c->result.error);
    attn_job_note(job, attn_str_text(&text));
    attn_str_free(&text);
    job->rounds = 0; /* those measured had another field */
    job->held = job->alone = false;
    return attn_candidate_drop(job, c, err);
}

/*-*** Rounds ****************************************************/

/* Median ratio of the times of a to those of b, and the noise band of that. */
static double ratio(const attn_job *job, size_t a, size_t b, double *band) {
    double values[ROUNDS_MAX] = {0};
    size_t n = (size_t)job->rounds;
    for (size_t r = 0; r < n; r++)
        values[r] =
            job->round_ns[r * job->finalist_count + a] / job->round_ns[r * job->finalist_count + b];
    double middle = attn_median(values, n);
    for (size_t r = 0; r < n; r++)
        values[r] = fabs(values[r] - middle);
    *band = fmax(BAND_FLOOR, MEDIAN_95 * NORMAL_MAD * attn_median(values, n) / sqrt((double)n));
    return middle;
}

static double final_ns(const attn_job *job, size_t finalist) {
    double values[ROUNDS_MAX];
    for (int32_t r = 0; r < job->rounds; r++)
        values[r] = job->round_ns[(size_t)r * job->finalist_count + finalist];
    return attn_median(values, (size_t)job->rounds);
}

static size_t fastest(const attn_job *job) {
    size_t best = 0;
    for (size_t i = 1; i < job->finalist_count; i++)
        if (final_ns(job, i) < final_ns(job, best))
            best = i;
    return best;
}

attn_status attn_job_take_rounds(attn_job *job, const double *ns, int32_t rounds, bool *more,
                                 attn_error *err) {
    double *all =
        realloc(job->round_ns, (size_t)(job->rounds + rounds) * job->asked_count * sizeof *all);
    double band, widest = 0, took = 0;
    if (!all)
        return attn_fail_nomem(err);
    job->round_ns = all;
    job->finalist_count = job->asked_count;
    if (job->held) /* they take the place of the interleaved ones */
        job->rounds = 0;
    job->alone = job->held;
    memcpy(all + (size_t)job->rounds * job->asked_count, ns,
           (size_t)rounds * job->asked_count * sizeof *ns);
    job->rounds += rounds;
    size_t best = fastest(job);
    for (size_t i = 0; i < job->finalist_count; i++) {
        job->finalist[i] = (size_t)(passed_of(job, job->asked[i]->point) - job->passed);
        (void)ratio(job, i, best, &band);
        widest = fmax(widest, band);
        took += ATTN_ROUNDS * fmax(ROUND_NS, final_ns(job, i));
    }
    if (job->held) {
        *more = false;
        return ATTN_OK;
    }
    *more = job->rounds + ATTN_ROUNDS <= ROUNDS_MAX && widest > BAND_GOOD &&
            attn_now_ns() + (int64_t)took < job->time.end_ns;
    job->held = !*more && can_hold(job, job->asked_count);
    *more = *more || job->held;
    return ATTN_OK;
}

/*-*** The decision **********************************************/

/* A finalist in the order in which ties are decided. */
struct ranked {
    size_t at; /* index into job->finalist */
    bool tied; /* with the fastest */
    bool is_default;
    double ns, band;
    const attn_passed *passed;
    char *name;
};

static int compare_ranked(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->tied != y->tied)
        return x->tied ? -1 : 1;
    if (!x->tied)
        return x->ns < y->ns ? -1 : x->ns > y->ns;
    if (x->is_default != y->is_default)
        return x->is_default ? -1 : 1;
    if (x->passed->registers != y->passed->registers)
        return x->passed->registers < y->passed->registers ? -1 : 1;
    if (x->passed->smem != y->passed->smem)
        return x->passed->smem < y->passed->smem ? -1 : 1;
    return strcmp(x->name, y->name);
}

static attn_status rank(attn_job *job, struct ranked *ranked, attn_error *err) {
    size_t best = fastest(job);
    for (size_t i = 0; i < job->finalist_count; i++) {
        struct ranked *r = &ranked[i];
        attn_str name = ATTN_STR_INIT;
        r->at = i;
        r->passed = &job->passed[job->finalist[i]];
        r->is_default = is_default(job, r->passed->point);
        r->ns = final_ns(job, i);
        r->tied = ratio(job, i, best, &r->band) - 1 <= r->band;
        describe(job, r->passed->point, &name);
        r->name = attn_str_take(&name);
        if (!r->name)
            return attn_fail_nomem(err);
    }
    qsort(ranked, job->finalist_count, sizeof *ranked, compare_ranked);
    return ATTN_OK;
}

/* Time spent on the problem, all runs of all families together. A problem that a run has come to
 * the end of has had its share, whatever others took or left of the budget: the same command finds
 * nothing left to do. */
static double seconds_spent(const attn_job *job) {
    double spent = job->seconds_before + (double)(attn_now_ns() - job->begin_ns) * 1e-9;
    if (job->options->family)
        return job->seconds_before;
    return !job->signal && isfinite(job->time.share_s) ? fmax(spent, job->time.share_s) : spent;
}

static attn_status record(attn_job *job, const struct ranked *ranked, size_t count,
                          double default_ns, attn_error *err) {
    const attn_search_extent extent = {seconds_spent(job),
                                       !job->options->family && attn_job_complete(job)};
    attn_finalist finalist[ATTN_FINALISTS + ATTN_SEARCH_FAMILIES] = {0};
    double *column = calloc(count * (size_t)job->rounds + 1, sizeof *column);
    if (!column)
        return attn_fail_nomem(err);
    for (size_t i = 0; i < count && ranked[i].passed; i++) {
        double *own = column + i * (size_t)job->rounds;
        for (int32_t r = 0; r < job->rounds; r++)
            own[r] = job->round_ns[(size_t)r * job->finalist_count + ranked[i].at];
        finalist[i] = (attn_finalist){.id = ranked[i].passed->id,
                                      .final_ns = ranked[i].ns,
                                      .band = ranked[i].band,
                                      .rounds = job->rounds,
                                      .round_ns = own};
    }
    attn_status status =
        attn_db_decide(job->options->db, finalist, count, default_ns, &extent, err);
    free(column);
    return status;
}

/* Times of different moments tell a little less than finals do: the default of the fastest one's
 * family stays unless it is clearly slower. */
static size_t stand_in_default(const attn_job *job, size_t best) {
    const attn_passed *first = passed_of(job, attn_job_default(job, job->passed[best].point));
    bool stays = first && !first->out && first->ns <= KEEP * job->passed[best].ns;
    return stays ? (size_t)(first - job->passed) : best;
}

/* Without rounds (a signal came, or time ran out) the best race stands in, with a band that says
 * that nothing is known, as after rounds without the default: such a decision is taken again by the
 * next run. */
static attn_status stand_in(attn_job *job, attn_error *err) {
    if (job->passed_count == 0)
        return ATTN_OK;
    qsort(job->passed, job->passed_count, sizeof *job->passed, compare_passed);
    free(job->round_ns);
    job->round_ns = calloc(1, sizeof *job->round_ns);
    if (!job->round_ns)
        return attn_fail_nomem(err);
    size_t best = 0;
    while (best < job->passed_count && job->passed[best].out)
        best++;
    if (best == job->passed_count)
        return ATTN_OK;
    size_t chosen = stand_in_default(job, best);
    job->round_ns[0] = job->passed[chosen].ns;
    job->finalist[0] = chosen;
    job->finalist_count = 1;
    job->rounds = 1;
    return ATTN_OK;
}

/* The time of the default of the winner's family: in the same rounds or, without any, of its race.
 */
static double default_time(const attn_job *job, const struct ranked *ranked, bool measured) {
    size_t point = attn_job_default(job, ranked[0].passed->point);
    const attn_passed *first = passed_of(job, point);
    for (size_t i = 0; i < job->finalist_count; i++)
        if (ranked[i].passed->point == point)
            return ranked[i].ns;
    return first && !first->out && !measured ? first->ns : NAN;
}

static attn_status summarise(attn_job *job, const struct ranked *winner, double default_ns,
                             attn_error *err) {
    attn_tune_summary *s = job->summary;
    const attn_point *point = &job->space.point[winner->passed->point];
    attn_str config = ATTN_STR_INIT;
    attn_config_print(job->family[point->family].space, &point->config, &config);
    s->family = strdup(job->family[point->family].name);
    s->config = attn_str_take(&config);
    if (!s->family || !s->config)
        return attn_fail_nomem(err);
    s->status = ATTN_OK;
    s->is_default = winner->is_default;
    s->ns = winner->ns;
    s->band = winner->band;
    s->default_ns = default_ns;
    return ATTN_OK;
}

/* On a device at its power limit, rounds that are interleaved do not tell what a kernel gains or
 * loses alone. A winner of an earlier run, which may have had the time to hold it, stays unless it
 * is clearly slower than ours in these rounds. */
static bool stays_unheld(const attn_job *job, const struct ranked *ours) {
    double band;
    if (!job->limited || job->alone || !job->stored.family)
        return false;
    for (size_t i = 0; i < job->finalist_count; i++)
        if (i != ours->at && job->passed[job->finalist[i]].point == job->stored.point)
            return ratio(job, i, ours->at, &band) <= KEEP;
    return false;
}

/* Has the stored winner been in rounds with ours, and ours with its default? If not, times of
 * different moments are all there is, and it stays unless it is clearly slower, or has failed
 * since. */
static bool stored_stays(const attn_job *job, bool whole, const struct ranked *ours) {
    const attn_stored *stored = &job->stored;
    const attn_passed *passed = passed_of(job, stored->point);
    bool apart = stored->rival || stored->point == ATTN_SEARCH_END || !whole;
    return (stored->family && apart && stored->ns <= KEEP * ours->ns && !(passed && passed->out)) ||
           stays_unheld(job, ours);
}

/* Is the default of the point's family still to be heard of? Another run has it, or had it when it
 * was killed, or there was no time. */
static bool default_is_out(const attn_job *job, size_t point) {
    size_t first = attn_job_default(job, point);
    return first != ATTN_SEARCH_END && isnan(job->search->cost[first]);
}

/* Why the decision is to be taken again by the next run; NULL: it is whole. Finalists are at most
 * KEEP times as slow as the fastest: ties within more noise than that tell nothing. */
static const char *find_lack(const attn_job *job, const struct ranked *ranked, bool measured) {
    if (default_is_out(job, ranked[0].passed->point))
        return "the default of its family has not been measured";
    if (!measured)
        return "the run ended before final rounds";
    for (size_t i = 0; i < job->finalist_count; i++)
        if (ranked[i].tied && ranked[i].band > KEEP - 1)
            return "its final rounds were too noisy to tell";
    return NULL;
}

/* What the table does not say of the decision. */
static attn_status say_decision(attn_job *job, const struct ranked *ours, const char *lacks,
                                bool stays, attn_error *err) {
    const bool whole = !lacks;
    const attn_stored *stored = &job->stored;
    char problem[ATTN_PROBLEM_TEXT];
    attn_str text = ATTN_STR_INIT;
    (void)attn_problem_print(job->problem, problem, sizeof problem);
    if (stays)
        attn_str_append_f(&text, "%s: %s stays the winner, with %.4g ms; ", problem, stored->family,
                          stored->ns * 1e-6);
    if (stays && stored->rival)
        attn_str_append_f(&text,
                          "the best of %s has %.4g ms; --again without --family measures both in "
                          "the same rounds",
                          ours->name, ours->ns * 1e-6);
    else if (stays && stored->point == ATTN_SEARCH_END)
        attn_str_append(&text, "it is not in the core: --again --whole measures both in the same "
                               "rounds");
    else if (stays && whole)
        attn_str_append(&text, "the device is at its power limit, and there was no time to measure "
                               "the best of this run alone");
    else if (stays)
        attn_str_append_f(&text, "the best of this run is provisional: %s", lacks);
    else if (!whole)
        attn_str_append_f(&text, "%s: the winner is provisional: %s; the same command goes on",
                          problem, lacks);
    if (text.size)
        attn_job_note(job, attn_str_text(&text));
    bool failed = text.failed;
    attn_str_free(&text);
    return failed ? attn_fail_nomem(err) : ATTN_OK;
}

attn_status attn_job_decide(attn_job *job, attn_error *err) {
    struct ranked ranked[ATTN_FINALISTS + ATTN_SEARCH_FAMILIES] = {0};
    const char *lacks = NULL; /* nothing */
    bool measured = job->rounds > 0, stays = true;
    double default_ns = NAN;
    ATTN_TRY(attn_job_look_again(job, err));
    if (!measured)
        ATTN_TRY(stand_in(job, err));
    if (job->rounds == 0) /* nothing has passed in this run */
        return job->stored.rival ? ATTN_OK : attn_job_keep_stored(job, err);
    attn_status status = rank(job, ranked, err);
    if (status == ATTN_OK) {
        default_ns = default_time(job, ranked, measured);
        lacks = find_lack(job, ranked, measured);
        stays = stored_stays(job, !lacks, &ranked[0]);
        status = say_decision(job, &ranked[0], lacks, stays, err);
    }
    for (size_t i = 0; lacks && i < job->finalist_count; i++)
        ranked[i].band = 1;
    if (status == ATTN_OK && job->options->db && !stays)
        status = record(job, ranked, job->finalist_count, default_ns, err);
    if (status == ATTN_OK)
        status =
            stays ? attn_job_keep_stored(job, err) : summarise(job, &ranked[0], default_ns, err);
    for (size_t i = 0; i < job->finalist_count; i++)
        free(ranked[i].name);
    return status;
}
