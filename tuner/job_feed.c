/* job_feed.c: which points are tried next, and what the compilers make of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "stop.h"

static const double LATE = 0.5; /* of the search's time: then those put off have their turn */

static double spent(const attn_job *job) {
    if (job->search_end_ns == INT64_MAX)
        return 0;
    double all = (double)(job->search_end_ns - job->begin_ns);
    return all > 0 ? (double)(attn_now_ns() - job->begin_ns) / all : 1;
}

/* The next point: first those to begin with, then the search's, last those put off: when the search
 * has no more or, once each, when the rest of the time is for them. */
static size_t next_point(attn_job *job, bool *was_late) {
    *was_late = false;
    if (job->late_due == 0 && spent(job) >= LATE)
        job->late_due = job->late.count;
    while (job->first.next < job->first.count) {
        size_t point = job->first.at[job->first.next++];
        if (attn_search_mark(job->search, point))
            return point;
    }
    size_t point = job->options->config || job->late.next < job->late_due
                       ? ATTN_SEARCH_END
                       : attn_search_ask(job->search, spent(job));
    if (point != ATTN_SEARCH_END)
        return point;
    *was_late = true;
    return job->late.next < job->late.count ? job->late.at[job->late.next++] : ATTN_SEARCH_END;
}

static bool was_lost(const attn_job *job, const attn_candidate *c) {
    for (size_t i = 0; i < job->lost_count; i++)
        if (attn_hash_equal(job->lost[i], c->variant.hash))
            return true;
    return false;
}

/* A session died over it, and it may kill this one, too. Not so a default: without it no decision
 * is whole. */
static bool comes_late(const attn_job *job, const attn_candidate *c) {
    return c->point != attn_job_default(job, c->point) && was_lost(job, c);
}

/* Asks the database for the trial: it is ours, done, or put off. */
static attn_status claim(attn_job *job, attn_candidate *c, bool was_late, attn_error *err) {
    attn_claim claim = ATTN_CLAIM_MINE;
    attn_db *db = job->options->verify_only ? NULL : job->options->db;
    if (!was_late && comes_late(job, c)) {
        ATTN_TRY(attn_points_add(&job->late, c->point, err));
        return attn_candidate_drop(job, c, err);
    }
    if (db) {
        const attn_trial_key key = attn_candidate_key(job, c);
        attn_trial_id id;
        ATTN_TRY(attn_db_claim(db, &key, &claim, &id, &c->result, err));
        if (claim != ATTN_CLAIM_TAKEN)
            c->id = id;
    }
    if (claim == ATTN_CLAIM_DONE)
        return attn_candidate_repeat(job, c, err);
    if (claim == ATTN_CLAIM_MINE) {
        attn_trial_result_init(&c->result);
        return ATTN_OK;
    }
    ATTN_TRY(attn_points_add(&job->late, c->point, err));
    return attn_candidate_drop(job, c, err);
}

/* How many may be on the way: enough to keep compilers and device busy; every one more is lost if
 * we are killed. */
static size_t room(const attn_job *job) {
    int32_t jobs = job->options->jobs;
    if (attn_now_ns() >= job->search_end_ns)
        return attn_job_is_patient(job) ? 1 : 0;
    return (size_t)(jobs < 1 ? 1 : jobs) + job->batch + 1;
}

attn_status attn_job_feed(attn_job *job, attn_error *err) {
    size_t late = job->late.count; /* what is put off again now waits for the next call */
    attn_candidate *c;
    bool was_late;
    while (job->on_way_count < room(job) && job->signal == 0) {
        if (job->search->left == 0 && job->first.next == job->first.count && job->late.next == late)
            break;
        size_t point = next_point(job, &was_late);
        if (point == ATTN_SEARCH_END)
            break;
        attn_status status = attn_candidate_make(job, point, &c, err);
        if (status == ATTN_OK)
            ATTN_TRY(claim(job, c, was_late, err));
        else if (status == ATTN_ERR_NOT_FOUND)
            attn_search_tell(job->search, point, INFINITY);
        else
            return status;
        job->signal = attn_stop_signal(job->options->stop_fd);
    }
    job->exhausted = job->search->left == 0 && job->first.next == job->first.count &&
                     job->late.next == job->late.count;
    return ATTN_OK;
}

/* The compiled variant is worth timing? Only numbers that every backend may give are looked at. */
static bool pruned(const attn_job *job, attn_candidate *c) {
    static const double SPILLS_MAX = 1024; /* bytes a thread */
    (void)job;
    c->result.registers = c->binary->registers;
    c->result.spills = c->binary->spills;
    c->result.smem = c->binary->smem;
    if (c->binary->spills > SPILLS_MAX) {
        (void)snprintf(c->result.error, sizeof c->result.error,
                       "%d bytes of registers a thread are spilled to memory", c->binary->spills);
        return true;
    }
    /* ptxas says so when it runs asynchronous matrix products one by one. */
    const char *serial = strstr(attn_str_text(&c->binary->log), "(C75");
    if (serial) {
        (void)snprintf(c->result.error, sizeof c->result.error, "serialised: %.*s",
                       (int)strcspn(serial, "\n"), serial);
        return true;
    }
    return false;
}

/* Gives the compilers that are idle something to do. */
static attn_status begin_builds(attn_job *job, attn_error *err) {
    size_t waiting, idle = attn_builders_idle(job->lane->builders);
    for (; idle > 0; idle--) {
        attn_candidate *c = attn_candidate_oldest(job, ATTN_WAITING, &waiting);
        if (!c)
            return ATTN_OK;
        c->stage = ATTN_COMPILING;
        job->moves++;
        ATTN_TRY(attn_candidates_mark(job, err));
        ATTN_TRY(attn_candidate_build(job, c, err));
    }
    return ATTN_OK;
}

attn_status attn_job_collect(attn_job *job, attn_error *err) {
    attn_built built;
    while (attn_builders_next(job->lane->builders, &built)) {
        attn_candidate *c = built.owner;
        if (built.hopeless)
            return attn_fail(err, ATTN_ERR_IO, "%s", built.line);
        if (built.no_tool && !job->finals) {
            ATTN_TRY(attn_candidate_unbuildable(job, c, built.line, err));
            continue;
        }
        c->binary = built.binary;
        c->stage = ATTN_BUILT;
        job->moves++;
        if (built.outcome == ATTN_OUTCOME_OK && (job->finals || !pruned(job, c)))
            continue;
        c->result.outcome = built.outcome == ATTN_OUTCOME_OK ? ATTN_OUTCOME_PRUNED : built.outcome;
        if (built.outcome != ATTN_OUTCOME_OK)
            (void)snprintf(c->result.error, sizeof c->result.error, "%.*s",
                           (int)sizeof c->result.error - 1, built.line);
        ATTN_TRY(job->finals ? attn_job_lose_finalist(job, c, err)
                             : attn_candidate_end(job, c, err));
    }
    return begin_builds(job, err);
}
