/* job_device.c: what the device's worker is asked, and what its answers mean. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "judge_kernel.h"
#include "resident.h"
#include "stand.h"
#include "verify.h"

static const double LAUNCH_FLOOR_S = 2, LAUNCH_FACTOR = 50;
static const double SLOWEST_FLOPS = 1e9; /* a second: no kernel worth its name is slower */
enum { LOSSES_MAX = 3 };

/*-*** Requests **************************************************/

static attn_status send(attn_lane *lane, attn_message_type type, attn_str *body, attn_error *err) {
    attn_status status = attn_worker_send(&lane->worker, type, body, err);
    attn_str_free(body);
    return status;
}

static attn_status send_open(attn_lane *lane, attn_error *err) {
    attn_str body = ATTN_STR_INIT;
    attn_put_text(&body, lane->backend->name);
    attn_put_u32(&body, (uint32_t)lane->device.ordinal);
    attn_put_u32(&body, (uint32_t)lane->options->threads);
    return send(lane, ATTN_MSG_OPEN, &body, err);
}

/* So long may a kernel take that is slower than any worth its name. */
static double slowest_launch(const attn_job *job) {
    return fmax(LAUNCH_FLOOR_S, attn_problem_flops(job->problem) / SLOWEST_FLOPS);
}

static attn_status send_problem(attn_job *job, attn_error *err) {
    attn_str body = ATTN_STR_INIT;
    attn_put_bytes(&body, job->problem, sizeof *job->problem);
    attn_put_u32(&body, (uint32_t)job->options->mode);
    attn_put_bytes(&body, &job->options->seed, sizeof job->options->seed);
    attn_judge_put(&body, job->options->gen, &job->lane->device, job->problem);
    attn_worker_limits(&job->lane->worker, slowest_launch(job), 0,
                       attn_memory_share(attn_problem_bytes(job->problem)));
    job->worn = false;
    return send(job->lane, ATTN_MSG_PROBLEM, &body, err);
}

/* A launch that takes 50 times as long as the best will not end; while there is no best, one that
 * is slower than any kernel could be. */
static double launch_limit(const attn_job *job) {
    return isnan(job->best_ns) ? slowest_launch(job)
                               : fmax(LAUNCH_FLOOR_S, LAUNCH_FACTOR * job->best_ns * 1e-9);
}

static uint32_t free_slot(const attn_job *job) {
    bool used[ATTN_SLOTS] = {false};
    uint32_t slot = 0;
    for (const attn_candidate *c = job->on_way; c; c = c->next)
        if (c->stage == ATTN_PROVED)
            used[c->slot] = true;
    while (used[slot] && slot + 1 < ATTN_SLOTS)
        slot++;
    return slot;
}

static void note_duration(attn_job *job, bool proof) {
    double seconds = (double)(attn_now_ns() - job->asked_ns) * 1e-9;
    if (!proof)
        job->race_s = fmax(seconds, 0.6 * job->race_s);
    else
        job->proof_s = job->proof_s > 0 ? 0.7 * job->proof_s + 0.3 * seconds : seconds;
}

static attn_status send_prove(attn_job *job, attn_candidate *c, attn_error *err) {
    attn_str body = ATTN_STR_INIT;
    job->asked[0] = c;
    job->asked_count = 1;
    ATTN_TRY(attn_candidates_mark(job, err));
    c->slot = free_slot(job);
    attn_put_u32(&body, c->slot);
    attn_put_binary(&body, c->binary);
    attn_put_text(&body, c->target);
    attn_put_bytes(&body, &c->launch, sizeof c->launch);
    attn_put_u32(&body, job->finals ? ATTN_REPEATS : 0);
    job->asked_ns = attn_now_ns();
    attn_worker_limits(&job->lane->worker, launch_limit(job), 0,
                       attn_memory_share(attn_problem_bytes(job->problem)));
    return send(job->lane, ATTN_MSG_PROVE, &body, err);
}

/* Asks about all that are proved, `most` of them at most. */
static attn_status send_timing(attn_job *job, attn_message_type type, size_t most,
                               attn_error *err) {
    attn_str body = ATTN_STR_INIT;
    job->asked_ns = attn_now_ns();
    job->asked_count = 0;
    for (attn_candidate *c = job->on_way; c && job->asked_count < most; c = c->next)
        if (c->stage == ATTN_PROVED)
            job->asked[job->asked_count++] = c;
    ATTN_TRY(attn_candidates_mark(job, err));
    if (type == ATTN_MSG_RACE) {
        attn_put_f64(&body, job->best_ns);
    } else {
        attn_put_u32(&body, ATTN_ROUNDS);
        attn_put_u32(&body, job->held ? ATTN_ROUNDS_HELD : ATTN_ROUNDS_PLAIN);
    }
    attn_put_u32(&body, (uint32_t)job->asked_count);
    for (size_t i = 0; i < job->asked_count; i++)
        attn_put_u32(&body, job->asked[i]->slot);
    attn_worker_limits(&job->lane->worker, launch_limit(job), 0, 0);
    return send(job->lane, type, &body, err);
}

/* Is the default of this one's family still to be compiled? That is measured first, so that
 * whatever else is, however short the time, can be compared with it. */
static bool awaits_default(const attn_job *job, const attn_candidate *candidate) {
    size_t first = attn_job_default(job, candidate->point);
    for (const attn_candidate *c = job->on_way; c; c = c->next)
        if (c->stage < ATTN_BUILT && c->point == first)
            return true;
    return false;
}

/* The one to prove next; NULL: there is none yet. */
static attn_candidate *next_to_prove(const attn_job *job) {
    attn_candidate *found = NULL;
    for (attn_candidate *c = job->on_way; c; c = c->next)
        if (c->stage == ATTN_BUILT && (job->options->verify_only || !awaits_default(job, c)))
            found = found && found->doubted && !c->doubted ? found : c;
    return found;
}

/* Proofs come first, since a race of several under one lock costs less than several races. */
static attn_status send_next(attn_job *job, attn_error *err) {
    attn_lane *lane = job->lane;
    size_t built, proved;
    attn_candidate *c = attn_candidate_oldest(job, ATTN_BUILT, &built);
    (void)attn_candidate_oldest(job, ATTN_PROVED, &proved);
    if (job->on_way_count == 0)
        return ATTN_OK;
    if (lane->worker.pid == 0)
        lane->opened = lane->ready = false;
    if (!lane->opened)
        return send_open(lane, err);
    if (!lane->ready)
        return send_problem(job, err);
    if (built + proved == 0)
        return ATTN_OK;
    bool all = built + proved == job->on_way_count; /* nothing is being compiled */
    if (job->finals)
        return built ? send_prove(job, c, err)
               : all ? send_timing(job, ATTN_MSG_ROUNDS, SIZE_MAX, err)
                     : ATTN_OK;
    c = next_to_prove(job);
    if (proved >= job->batch || (proved > 0 && built == 0 && all))
        return send_timing(job, ATTN_MSG_RACE, job->batch, err);
    return c ? send_prove(job, c, err) : ATTN_OK;
}

/*-*** Answers ***************************************************/

static attn_status fail_candidate(attn_job *job, attn_candidate *c, attn_outcome outcome,
                                  const char *line, attn_error *err) {
    c->result.outcome = outcome;
    (void)snprintf(c->result.error, sizeof c->result.error, "%.*s", (int)sizeof c->result.error - 1,
                   line);
    return job->finals ? attn_job_lose_finalist(job, c, err) : attn_candidate_end(job, c, err);
}

static attn_outcome outcome_of(attn_status status) {
    return status == ATTN_ERR_LOAD      ? ATTN_OUTCOME_LOAD_ERROR
           : status == ATTN_ERR_NOMEM   ? ATTN_OUTCOME_OOM
           : status == ATTN_ERR_DEVICE  ? ATTN_OUTCOME_CRASH
           : status == ATTN_ERR_INVALID ? ATTN_OUTCOME_PRUNED
                                        : ATTN_OUTCOME_LAUNCH_ERROR;
}

/* The worker goes, and with it all that was loaded. */
static void restart(attn_job *job) {
    attn_worker_kill(&job->lane->worker);
    job->lane->opened = job->lane->ready = false;
    for (attn_candidate *c = job->on_way; c; c = c->next)
        if (c->stage == ATTN_PROVED)
            c->stage = ATTN_BUILT;
}

/* A variant before it may have done the damage: it gets one chance on a fresh worker. */
static bool gets_chance(attn_candidate *c, bool worn) {
    if (!worn || c->doubted)
        return false;
    c->doubted = true;
    c->stage = ATTN_BUILT;
    return true;
}

static attn_status take_verdict(attn_job *job, attn_fields *fields, const attn_error *reply,
                                attn_error *err) {
    attn_candidate *c = job->asked[0];
    attn_verdict verdict;
    bool worn = job->worn;
    job->worn = true;
    job->losses = 0;
    note_duration(job, true);
    if (reply->status != ATTN_OK) {
        if (reply->status == ATTN_ERR_DEVICE)
            restart(job);
        return fail_candidate(job, c, outcome_of(reply->status), reply->line, err);
    }
    attn_get_struct(fields, &verdict, sizeof verdict);
    verdict.reason[sizeof verdict.reason - 1] = '\0';
    c->result.error_max = verdict.error;
    if (!verdict.right) {
        restart(job); /* who knows where else it has written */
        if (gets_chance(c, worn))
            return ATTN_OK;
        return fail_candidate(job, c, ATTN_OUTCOME_WRONG, verdict.reason, err);
    }
    c->stage = ATTN_PROVED;
    c->result.outcome = ATTN_OUTCOME_OK;
    return job->options->verify_only ? attn_candidate_end(job, c, err) : ATTN_OK;
}

/* A timing was refused: whose launch it was is in the pulse. */
static attn_status take_refusal(attn_job *job, uint32_t slot, const attn_error *reply,
                                attn_error *err) {
    if (reply->status == ATTN_ERR_DEVICE)
        restart(job);
    for (size_t i = 0; i < job->asked_count; i++)
        if (job->asked[i]->slot == slot)
            return fail_candidate(job, job->asked[i], outcome_of(reply->status), reply->line, err);
    return attn_fail(err, ATTN_ERR_INTERNAL, "%s", reply->line);
}

static attn_status take_race(attn_job *job, attn_fields *fields, attn_error *err) {
    size_t size;
    attn_timed timed;
    const char *data = attn_get_bytes(fields, &size);
    if (size != job->asked_count * sizeof timed)
        return attn_fail(err, ATTN_ERR_INTERNAL, "a worker's race has %zu bytes", size);
    note_duration(job, false);
    for (size_t i = 0; i < job->asked_count; i++) {
        attn_candidate *c = job->asked[i];
        attn_trial_result *r = &c->result;
        memcpy(&timed, data + i * sizeof timed, sizeof timed);
        r->samples = timed.count;
        memcpy(r->sample_ns, timed.ns, sizeof r->sample_ns);
        r->median_ns = attn_median(timed.ns, (size_t)timed.count);
        r->throttled = timed.throttled;
        r->clock_mhz = timed.last_state.clock_mhz;
        r->power_w = timed.last_state.power_w;
        r->temperature_c = timed.last_state.temperature_c;
        job->limited |= timed.last_state.power_limited;
        ATTN_TRY(attn_candidate_end(job, c, err));
    }
    return ATTN_OK;
}

static attn_status take_rounds(attn_job *job, attn_fields *fields, attn_error *err) {
    size_t size;
    bool more;
    const double *ns = attn_get_bytes(fields, &size);
    if (size != job->asked_count * ATTN_ROUNDS * sizeof *ns)
        return attn_fail(err, ATTN_ERR_INTERNAL, "a worker's rounds have %zu bytes", size);
    (void)attn_get_bytes(fields, &size); /* no peaks */
    job->limited |= attn_get_u32(fields) != 0;
    ATTN_TRY(attn_job_take_rounds(job, ns, ATTN_ROUNDS, &more, err));
    /* One of them is the winner, whatever its race made of it. */
    for (attn_candidate *c = job->on_way; !more && job->options->db && c; c = c->next)
        if (c->binary)
            ATTN_TRY(attn_db_binary_put(job->options->db, c->build, c->binary, err));
    while (!more && job->on_way)
        ATTN_TRY(attn_candidate_drop(job, job->on_way, err));
    return ATTN_OK;
}

static void note(attn_job *job, const char *line) {
    if (job->options->events.note)
        job->options->events.note(job->options->events.user, line);
}

/* Says what is compared: what is not, once; what the judge has cost, where that is asked for. */
static void take_judge(attn_job *job, attn_fields *fields) {
    const attn_judge_reply judge = attn_judge_take_reply(fields);
    char line[sizeof job->lane->said];
    if (judge.reason[0]) {
        if (strcmp(judge.reason, job->lane->said) != 0)
            note(job, judge.reason);
        (void)snprintf(job->lane->said, sizeof job->lane->said, "%s", judge.reason);
    } else if (judge.seconds > 0 && job->options->verify_only) {
        (void)snprintf(line, sizeof line, "every element is also compared with %s (%.2f s)",
                       judge.name, judge.seconds);
        note(job, line);
    }
}

static attn_status take_reply(attn_job *job, attn_fields *fields, const attn_error *reply,
                              uint32_t slot, attn_error *err) {
    attn_lane *lane = job->lane;
    switch (lane->worker.request) {
    case ATTN_MSG_OPEN:
        if (reply->status != ATTN_OK)
            return attn_fail(err, ATTN_ERR_DEVICE, "%s", reply->line);
        lane->opened = true;
        return ATTN_OK;
    case ATTN_MSG_PROBLEM:
        if (reply->status != ATTN_OK)
            return attn_fail(err, ATTN_ERR_DEVICE, "%s", reply->line);
        take_judge(job, fields);
        lane->ready = true;
        return ATTN_OK;
    case ATTN_MSG_PROVE:
        return take_verdict(job, fields, reply, err);
    case ATTN_MSG_RACE:
        return reply->status == ATTN_OK ? take_race(job, fields, err)
                                        : take_refusal(job, slot, reply, err);
    default:
        return reply->status == ATTN_OK ? take_rounds(job, fields, err)
                                        : take_refusal(job, slot, reply, err);
    }
}

/*-*** Losses ****************************************************/

/* Whom a lost worker is to be blamed on; NULL: it cannot be told. */
static attn_candidate *culprit(const attn_job *job, const attn_loss *loss) {
    if (job->asked_count == 1)
        return job->asked[0];
    for (size_t i = 0; loss->launching && i < job->asked_count; i++)
        if (job->asked[i]->slot == loss->slot)
            return job->asked[i];
    return NULL;
}

static attn_status take_loss(attn_job *job, attn_message_type request, const attn_loss *loss,
                             attn_error *err) {
    bool worn = job->worn;
    attn_candidate *c =
        request == ATTN_MSG_OPEN || request == ATTN_MSG_PROBLEM ? NULL : culprit(job, loss);
    restart(job);
    if (!c) {
        job->batch = 1; /* so that the next loss has one to blame */
        if (++job->losses < LOSSES_MAX)
            return ATTN_OK;
        return attn_fail(err, ATTN_ERR_DEVICE, "%s", loss->line);
    }
    if (loss->outcome == ATTN_OUTCOME_CRASH && gets_chance(c, worn))
        return ATTN_OK;
    return fail_candidate(job, c, loss->outcome, loss->line, err);
}

attn_status attn_job_device(attn_job *job, attn_error *err) {
    attn_worker *worker = &job->lane->worker;
    attn_fields fields;
    attn_error reply = ATTN_ERROR_INIT;
    attn_loss loss;
    attn_message_type request = worker->request;
    uint32_t slot;
    switch (attn_worker_look(worker, &fields, &reply, &loss)) {
    case ATTN_WORKER_REPLY:
        slot = attn_worker_slot(worker);
        ATTN_TRY(take_reply(job, &fields, &reply, slot, err));
        break;
    case ATTN_WORKER_LOST:
        ATTN_TRY(take_loss(job, request, &loss, err));
        break;
    case ATTN_WORKER_NOTHING:
        break;
    }
    if (!worker->busy)
        job->asked_count = 0;
    return worker->busy ? ATTN_OK : send_next(job, err);
}

bool attn_lane_shares_cpu(const attn_lane *lane) {
    return strcmp(lane->device.lock, "cpu") == 0;
}

attn_status attn_lane_open(attn_lane *lane, attn_error *err) {
    attn_str body = ATTN_STR_INIT;
    attn_fields fields;
    attn_loss loss;
    attn_put_text(&body, lane->backend->name);
    attn_put_u32(&body, (uint32_t)lane->device.ordinal);
    attn_put_u32(&body, (uint32_t)lane->options->threads);
    attn_status status = attn_worker_ask(&lane->worker, ATTN_MSG_OPEN, &body,
                                         lane->options->stop_fd, &fields, &loss, err);
    attn_str_free(&body);
    if (status == ATTN_OK)
        status = attn_device_parse(attn_get_text(&fields), &lane->device, err);
    lane->opened = status == ATTN_OK;
    return status;
}
