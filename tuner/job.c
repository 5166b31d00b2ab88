/* job.c: the loop of one problem on one device, its deadlines and its end. */
#include "job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stop.h"

static const int64_t SECOND = 1000000000;
static const double GRACE_S = 1.5;      /* a step may take longer than the budget by that */
static const double FINALS_SHARE = 0.5; /* of a problem's time, at most */
static const double PROOF_MORE = 1.5;   /* that one proof takes more than the mean of them */
static const int64_t PROGRESS_NS = 100000000;
static const double SHARES[ATTN_SHARES] = {1.01, 1.03, 1.05};
enum { LOOK_MS = 40, LATE_MS = 200, WORKERS_MAX = 129 };
enum { PATIENT_TRIES = 4 }; /* more time helps a first variant that is slow, not many that fail */

static int64_t later(int64_t ns, double seconds) {
    return ns == INT64_MAX ? ns : ns + (int64_t)(seconds * 1e9);
}

/* While nothing at all has been measured, the problem may take longer than its part. */
static bool may_wait(const attn_job *job) {
    return isnan(job->best_ns) && job->summary->tried < PATIENT_TRIES;
}

static int64_t last_ns(const attn_job *job) {
    return may_wait(job) ? job->time.patient_ns : job->time.end_ns;
}

bool attn_job_is_patient(const attn_job *job) {
    int64_t now = attn_now_ns();
    return may_wait(job) && now >= job->search_end_ns && now < job->time.patient_ns;
}

/* What the search has measured so far, one after the other: the final rounds decide. */
static double gain_so_far(const attn_job *job) {
    const attn_search *search = job->search;
    if (!search || search->best == ATTN_SEARCH_END)
        return NAN;
    size_t first = attn_job_default(job, search->best);
    return first == ATTN_SEARCH_END ? NAN : search->cost[first] / search->cost[search->best];
}

static void report(attn_job *job, bool last) {
    const attn_tune_summary *s = job->summary;
    const attn_tune_events *events = &job->options->events;
    attn_tune_progress *p = &job->progress;
    int64_t now = attn_now_ns();
    if (!events->progress || (!last && now < job->next_progress_ns))
        return;
    job->next_progress_ns = now + PROGRESS_NS;
    p->tried = job->summary->tried;
    p->left = job->space.count > p->tried ? job->space.count - p->tried : 0;
    p->decided = s->family != NULL;
    p->best_ns = p->decided ? s->ns : job->best_ns;
    p->gain = !p->decided ? gain_so_far(job) : s->band < 1 ? s->default_ns / s->ns : NAN;
    p->seconds = last_ns(job) == INT64_MAX ? INFINITY : (double)(last_ns(job) - now) * 1e-9;
    p->note = job->lane->waits_since_ns    ? "waiting for another tuner"
              : job->finals && !p->decided ? "finals"
                                           : "";
    p->last = last;
    events->progress(events->user, p);
}

void attn_job_note(const attn_job *job, const char *line) {
    if (job->options->events.note)
        job->options->events.note(job->options->events.user, line);
}

bool attn_job_complete(const attn_job *job) {
    return job->exhausted && !job->cut && job->unbuildable == 0 && !job->faulty &&
           job->summary->tried > 0;
}

void attn_job_refuse(attn_job *job, const char *line) {
    if (!job->refused[0])
        (void)snprintf(job->refused, sizeof job->refused, "%.*s", (int)sizeof job->refused - 1,
                       line);
}

/* Some worker of ours waits for the timing lock, and none is at work under it. */
static bool is_held_up(const attn_job *job) {
    attn_worker *workers[WORKERS_MAX];
    size_t count = attn_builders_workers(job->lane->builders, workers, WORKERS_MAX - 1);
    bool waits = false, works = false;
    workers[count++] = &job->lane->worker;
    for (size_t i = 0; i < count; i++) {
        bool waiting = attn_worker_waiting(workers[i]);
        waits |= waiting;
        works |= workers[i]->busy && !waiting;
    }
    return waits && !works;
}

/* Another tuner may hold the timing lock for as long as it likes: if that is longer than it takes
 * to take turns, it is told, once a device. */
static void look_who_waits(attn_job *job) {
    attn_lane *lane = job->lane;
    int64_t now = attn_now_ns();
    if (!is_held_up(job))
        lane->waits_since_ns = 0;
    else if (lane->waits_since_ns == 0)
        lane->waits_since_ns = now;
    else if (now - lane->waits_since_ns > 2 * SECOND) {
        job->held_up = true;
        if (!lane->noted)
            attn_job_note(job, ATTN_WAITING_LINE);
        lane->noted = true;
    }
}

/* Drops a candidate for want of time. A search that has done so has not come to its end. */
static attn_status give_up(attn_job *job, attn_candidate *c, attn_error *err) {
    job->cut = job->cut || !job->finals;
    return attn_candidate_drop(job, c, err);
}

static bool is_asked(const attn_job *job, const attn_candidate *c) {
    bool asked = false;
    for (size_t i = 0; job->lane->worker.busy && i < job->asked_count; i++)
        asked = asked || job->asked[i] == c;
    return asked;
}

/* The n-th one on the way, the newest being number 0. */
static attn_candidate *on_way(const attn_job *job, size_t n) {
    attn_candidate *c = job->on_way;
    while (n-- > 0)
        c = c->next;
    return c;
}

/* The search's time is up: what has not been proved is given up, and what was proved is raced as
 * long as the finals' time is not touched. But while nothing at all has been measured and patience
 * lasts, the oldest one goes on, and the others are put off until it has failed. */
static attn_status cut_short(attn_job *job, attn_error *err) {
    bool patient = attn_job_is_patient(job);
    bool late = !patient && attn_now_ns() > later(job->search_end_ns, PROOF_MORE * job->proof_s);
    bool goes_on = patient;
    for (size_t n = job->on_way_count; n-- > 0; goes_on = false) {
        attn_candidate *c = on_way(job, n);
        if (goes_on || is_asked(job, c) || (!late && c->stage == ATTN_PROVED))
            continue;
        if (patient)
            ATTN_TRY(attn_points_add(&job->late, c->point, err));
        ATTN_TRY(give_up(job, c, err));
    }
    return ATTN_OK;
}

/* Ends what is still on the way, without a result. */
static attn_status abandon(attn_job *job, attn_error *err) {
    attn_status status = ATTN_OK;
    if (job->lane->worker.busy) {
        attn_worker_kill(&job->lane->worker);
        job->lane->opened = job->lane->ready = false;
    }
    while (job->on_way) {
        attn_status dropped = give_up(job, job->on_way, err);
        if (dropped != ATTN_OK)
            status = dropped;
    }
    return status;
}

static void rest(attn_job *job, int milliseconds) {
    attn_worker *workers[WORKERS_MAX];
    size_t count = attn_builders_workers(job->lane->builders, workers, WORKERS_MAX - 1);
    workers[count++] = &job->lane->worker;
    attn_worker_wait(workers, count, job->options->stop_fd, milliseconds);
}

/* Sets when the search has to end, so that a proof that has begun, the race after it, and the
 * finals fit into the time. */
static void plan_finals(attn_job *job) {
    double all_s = (double)(job->time.end_ns - job->begin_ns) * 1e-9;
    double finals_s = fmin(attn_job_final_seconds(job), FINALS_SHARE * all_s);
    double begun_s = PROOF_MORE * job->proof_s + job->race_s;
    if (job->time.end_ns != INT64_MAX)
        job->search_end_ns = later(job->time.end_ns, -(finals_s + begun_s));
}

/* One turn: looks after compilers and device, and feeds them. */
static attn_status turn(attn_job *job, attn_error *err) {
    int64_t now = attn_now_ns();
    plan_finals(job);
    ATTN_TRY(attn_job_collect(job, err));
    ATTN_TRY(attn_job_device(job, err));
    if (attn_worker_sampling(&job->lane->worker))
        return ATTN_OK;
    if (job->finals)
        return ATTN_OK;
    if (now >= job->search_end_ns)
        ATTN_TRY(cut_short(job, err));
    return attn_job_feed(job, err);
}

/* Until everything on the way has ended and nothing more is to come. */
static attn_status run_phase(attn_job *job, attn_error *err) {
    for (;;) {
        int64_t now = attn_now_ns();
        size_t moves = job->moves;
        job->signal = attn_stop_signal(job->options->stop_fd);
        if (job->signal || now > later(last_ns(job), GRACE_S))
            return abandon(job, err);
        ATTN_TRY(turn(job, err));
        look_who_waits(job);
        report(job, false);
        bool waits = !job->finals && !job->exhausted &&
                     (now < job->search_end_ns || attn_job_is_patient(job));
        if (job->on_way_count == 0 && !waits)
            return ATTN_OK;
        if (job->moves == moves)
            rest(job, job->on_way_count == 0 ? LATE_MS : LOOK_MS);
    }
}

static attn_status tune(attn_job *job, attn_error *err) {
    ATTN_TRY(attn_job_open_search(job, err));
    ATTN_TRY(run_phase(job, err));
    if (job->options->verify_only)
        return ATTN_OK;
    if (!job->signal && attn_now_ns() < job->time.end_ns) {
        ATTN_TRY(attn_job_begin_finals(job, err));
        ATTN_TRY(run_phase(job, err));
    }
    return attn_job_decide(job, err);
}

/* Why there is no winner. */
static attn_status explain(attn_job *job, attn_error *err) {
    attn_tune_summary *s = job->summary;
    attn_str text = ATTN_STR_INIT;
    if (s->family || s->reason || (job->options->verify_only && s->tried > 0))
        return ATTN_OK;
    if (job->signal)
        attn_str_append(&text, "interrupted before any variant was measured");
    else if (s->tried == 0 && attn_job_missing(job))
        attn_str_append(&text, attn_job_missing(job));
    else if (s->outcome[ATTN_OUTCOME_OK] > 0)
        attn_str_append(&text, "the budget ended before a winner was chosen");
    else if (s->tried == 0 && job->refused[0] && job->exhausted)
        attn_str_append(&text, job->refused);
    else if (s->tried == 0 && (job->held_up || job->lane->held_up))
        attn_str_append(&text, "the budget ended while another tuner held the timing lock");
    else if (s->tried == 0)
        attn_str_append(&text, "the budget ended before any variant was measured");
    else
        attn_str_append_f(&text, "none of the %zu variants tried passed:", s->tried);
    for (size_t i = 0; i <= ATTN_OUTCOME_LOST; i++)
        if (s->outcome[i] > 0 && s->outcome[ATTN_OUTCOME_OK] == 0)
            attn_str_append_f(&text, " %zu %s", s->outcome[i], attn_outcome_name((attn_outcome)i));
    if (job->cut_off > 0)
        attn_str_append_f(&text, "; %zu that the end of another run cut off will be tried again",
                          job->cut_off);
    s->status = ATTN_ERR_NO_KERNEL;
    s->reason = attn_str_take(&text);
    return s->reason ? ATTN_OK : attn_fail_nomem(err);
}

static void count_shares(attn_job *job) {
    for (size_t k = 0; k < ATTN_SHARES; k++) {
        size_t within = 0;
        for (size_t i = 0; i < job->passed_count; i++)
            within += job->passed[i].ns <= SHARES[k] * job->best_ns;
        job->summary->share[k] =
            job->passed_count ? (double)within / (double)job->passed_count : NAN;
    }
}

/* Errors of the problem's or the device's are told, and do not stop the run. */
static attn_status contain(attn_job *job, attn_status status, attn_error *err) {
    static const attn_status contained[] = {
        ATTN_ERR_NOT_ACCEPTED, ATTN_ERR_UNSUPPORTED, ATTN_ERR_TEMPLATE, ATTN_ERR_INVALID,
        ATTN_ERR_DEVICE,       ATTN_ERR_INTERNAL,    ATTN_ERR_NO_TOOL};
    for (size_t i = 0; i < sizeof contained / sizeof contained[0]; i++) {
        if (status != contained[i])
            continue;
        job->summary->status = status;
        job->summary->reason = strdup(err->line);
        return job->summary->reason ? abandon(job, err) : attn_fail_nomem(err);
    }
    return status;
}

attn_status attn_job_run(attn_lane *lane, const attn_problem *problem, const attn_tune_progress *at,
                         const attn_job_time *time, attn_tune_summary *summary, int *signal,
                         attn_error *err) {
    attn_job *job = calloc(1, sizeof *job);
    if (!job)
        return attn_fail_nomem(err);
    job->lane = lane;
    job->options = lane->options;
    job->problem = problem;
    job->summary = summary;
    job->progress = *at;
    job->best_ns = NAN;
    job->batch = attn_lane_shares_cpu(lane) ? ATTN_BATCH : 1;
    job->begin_ns = attn_now_ns();
    job->time = *time;
    job->search_end_ns = time->end_ns;
    if (lane->worker.busy) { /* with an answer about the problem before, which ended without it */
        attn_worker_kill(&lane->worker);
        lane->opened = false;
    }
    lane->ready = false;
    attn_builders_trim(lane->builders);
    bool done = false;
    attn_status status = attn_job_open_space(job, err);
    if (status == ATTN_OK)
        status = attn_job_resume(job, &done, err);
    if (status == ATTN_OK && job->options->dry_run)
        summary->candidates = job->space.count;
    else if (status == ATTN_OK && !done)
        status = tune(job, err);
    status = contain(job, status, err);
    if (status != ATTN_OK) {
        attn_error ignored = ATTN_ERROR_INIT;
        (void)abandon(job, &ignored);
        summary->status = status;
        summary->reason = strdup(err->line); /* NULL: a row without it */
    } else if (!done && !job->options->dry_run) {
        status = explain(job, err);
    }
    count_shares(job);
    summary->complete = summary->complete || attn_job_complete(job);
    summary->seconds = (double)(attn_now_ns() - job->begin_ns) / (double)SECOND;
    *signal = job->signal;
    report(job, true);
    attn_job_close_space(job);
    attn_job_free_toolchains(job);
    free(job->passed);
    free(job->round_ns);
    free(job->lost);
    attn_job_forget_stored(job);
    free(job->before);
    free(job);
    return status;
}
