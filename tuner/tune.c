/* tune.c: a run: every problem on every device, within one budget. */
#include "tune.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "probe.h"
#include "stop.h"

static const int64_t LEFT_OVER_NS = 2000000000; /* less than that is not worth beginning with */
static const double LEAST_S = 0.5; /* a part of the budget: in less, nothing can be begun */
static const double BET_S = 10;    /* on a first winner; see lose_bet */
static const double SECONDS = 20, SECONDS_QUICK = 6; /* a problem, if no budget is given */

static int32_t usable_cpus(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* What one run holds. */
struct run {
    attn_tune_options options; /* completed */
    const attn_strategy *strategy;
    attn_builders *builders;
    attn_tune_result *result;
    double share_s;   /* of the budget, for each problem and device; INFINITY: no limit */
    int64_t end_ns;   /* of the device being run; INT64_MAX: no limit */
    int64_t spent_ns; /* the shares that problems of it which are done have had in earlier runs */
    double first_s;   /* the longest that one of it took to its first variant; NaN: none had one */
    double bet_s;     /* what one may take while that is not known */
};

/*-*** One device ************************************************/

static void note_waiting(void *user, const char *line) {
    attn_lane *lane = user;
    lane->noted = true;
    if (lane->options->events.note)
        lane->options->events.note(lane->options->events.user, line);
}

static double measure_peak(attn_lane *lane, attn_error *err) {
    attn_str body = ATTN_STR_INIT;
    attn_fields fields;
    attn_loss loss;
    double peak = NAN;
    attn_put_u32(&body, (uint32_t)attn_device_prop(&lane->device, "threads"));
    if (attn_worker_ask(&lane->worker, ATTN_MSG_PEAK, &body, lane->options->stop_fd, &fields, &loss,
                        err) == ATTN_OK)
        peak = attn_get_f64(&fields);
    else if (lane->worker.pid == 0)
        lane->opened = false;
    attn_str_free(&body);
    return peak;
}

/* Over by more than what the budget is kept to: what is left is not begun. */
static bool is_over(const struct run *run) {
    double over_s = (double)(attn_now_ns() - run->end_ns) * 1e-9;
    return over_s > fmax(3, 0.05 * run->options.budget_s);
}

/* Not begun, or its part was too short to decide anything. */
static bool is_open(const attn_tune_summary *s) {
    return s->cut && !s->resumed && (!s->family || s->band >= 1);
}

static size_t count_open(const attn_tune_summary *summary, size_t problems) {
    size_t open = 0;
    for (size_t i = 0; i < problems; i++)
        open += is_open(&summary[i]);
    return open;
}

static void clear_summary(attn_tune_summary *s) {
    free(s->reason);
    free(s->family);
    free(s->config);
    *s = (attn_tune_summary){.device = s->device,
                             .problem = s->problem,
                             .ns = NAN,
                             .band = NAN,
                             .default_ns = NAN,
                             .first_s = NAN,
                             .share = {NAN, NAN, NAN}};
}

/* The time of one of so many open problems, until end_ns: an even part. But a part that ends before
 * anything is measured is lost, and some winners are better than none: so a problem without one may
 * go on for twice as long as others took to theirs. */
static attn_job_time deal(const struct run *run, int64_t end_ns, size_t open) {
    const int64_t now = attn_now_ns();
    if (run->end_ns == INT64_MAX)
        return (attn_job_time){INT64_MAX, INT64_MAX, run->share_s};
    double left_s = fmax(0, (double)(end_ns - now) * 1e-9);
    double part_s = fmin(left_s, fmax(LEAST_S, left_s / (double)open));
    double patient_s = run->options.verify_only ? 0 /* which measures nothing */
                       : run->first_s > 0       ? 2 * run->first_s
                                                : run->bet_s;
    return (attn_job_time){now + (int64_t)(part_s * 1e9),
                           now + (int64_t)(fmax(part_s, fmin(left_s, patient_s)) * 1e9),
                           run->share_s};
}

/* A first variant seems to take longer than was bet on it: the next problem may take twice as long.
 * But where variants came to an end and failed, more time was of no use, and less is bet. */
static void lose_bet(struct run *run, const attn_tune_summary *summary) {
    run->bet_s = summary->tried > 0 ? run->bet_s / 2 : fmax(run->bet_s, 2 * summary->seconds);
}

static attn_status run_problem(struct run *run, attn_lane *lane, attn_tune_summary *summary,
                               const attn_job_time *time, attn_error *err) {
    const attn_tune_options *o = &run->options;
    const attn_tune_progress at = {.device = &lane->device,
                                   .problem = &o->problems[summary->problem],
                                   .problem_index = summary->problem,
                                   .problems = o->problem_count};
    clear_summary(summary);
    attn_status status =
        attn_job_run(lane, at.problem, &at, time, summary, &run->result->signal, err);
    summary->cut = attn_now_ns() >= time->end_ns;
    run->first_s = fmax(run->first_s, summary->first_s); /* of which a NaN is no part */
    if (summary->cut && isnan(run->first_s))
        lose_bet(run, summary);
    if (summary->resumed && run->end_ns != INT64_MAX)
        run->spent_ns += (int64_t)(fmax(0, run->share_s - summary->seconds) * 1e9);
    return status;
}

/* Which problems have a winner, of this run or of an earlier one? NULL: no memory, or the database
 * has failed, as err says. To be freed. */
static bool *find_won(const attn_lane *lane, const attn_tune_summary *summary, attn_error *err) {
    const attn_tune_options *o = lane->options;
    bool *won = calloc(o->problem_count + 1, sizeof *won);
    attn_status status = ATTN_OK;
    if (!won) {
        (void)attn_fail_nomem(err);
        return NULL;
    }
    for (size_t i = 0; status == ATTN_OK && i < o->problem_count; i++) {
        won[i] = summary[i].family;
        if (is_open(&summary[i]) && !won[i])
            status = attn_lane_has_winner(lane, &o->problems[i], &won[i], NULL, err);
    }
    if (status == ATTN_OK)
        return won;
    free(won);
    return NULL;
}

/* What is left of the budget is dealt evenly, each time anew, among the problems that are open:
 * once around, those without a winner first, so that each run has some for more of them. What
 * earlier runs have spent on those that are done is not dealt in the first round, or the same
 * command would give the others more and more; who still has no winner after that gets of all that
 * there is. `summary` is the device's first. */
static attn_status run_round(struct run *run, attn_lane *lane, attn_tune_summary *summary,
                             bool first, attn_error *err) {
    attn_tune_result *result = run->result;
    attn_status status = ATTN_OK;
    size_t problems = run->options.problem_count, open = count_open(summary, problems);
    bool *won = find_won(lane, summary, err);
    if (!won)
        return err->status;
    for (size_t n = 0; status == ATTN_OK && n < 2 * problems && !result->signal && !is_over(run);
         n++) {
        attn_tune_summary *s = &summary[n % problems];
        int64_t now = attn_now_ns(), end_ns = run->end_ns;
        if (won[n % problems] != (n >= problems) || !is_open(s))
            continue;
        if (end_ns != INT64_MAX && first)
            end_ns = end_ns > now + run->spent_ns ? end_ns - run->spent_ns : now;
        const attn_job_time time = deal(run, end_ns, open--);
        if (s >= result->summary + result->count)
            result->count = (size_t)(s - result->summary) + 1;
        status = run_problem(run, lane, s, &time, err);
    }
    free(won);
    return status;
}

/* Others having needed less than their part, is there something for the open ones? */
static bool is_worth_more(const struct run *run, const attn_tune_summary *summary) {
    const attn_tune_options *o = &run->options;
    return run->end_ns != INT64_MAX && !o->dry_run && !o->verify_only && !run->result->signal &&
           attn_now_ns() + LEFT_OVER_NS <= run->end_ns && count_open(summary, o->problem_count) > 0;
}

/* What the run did not come to may have an earlier run's winner. */
static attn_status take_missed(struct run *run, const attn_lane *lane, attn_tune_summary *summary,
                               attn_error *err) {
    attn_tune_result *result = run->result;
    for (size_t i = 0; i < run->options.problem_count; i++) {
        bool has;
        if (!summary[i].missed)
            continue;
        ATTN_TRY(attn_lane_has_winner(lane, &run->options.problems[i], &has, &summary[i], err));
        if (has && &summary[i] >= result->summary + result->count)
            result->count = (size_t)(&summary[i] - result->summary) + 1;
    }
    return ATTN_OK;
}

static attn_status run_device(struct run *run, size_t device, attn_error *err) {
    const attn_tune_options *o = &run->options;
    attn_lane lane = {.options = o,
                      .strategy = run->strategy,
                      .builders = run->builders,
                      .backend = attn_backend_find(o->devices[device].backend),
                      .device = o->devices[device],
                      .worker = ATTN_WORKER_INIT};
    if (!lane.backend)
        return attn_fail(err, ATTN_ERR_NO_DEVICE, "this program has no backend '%s'",
                         o->devices[device].backend);
    attn_status status = o->dry_run ? ATTN_OK : attn_lane_open(&lane, err);
    if (status == ATTN_OK && !o->dry_run && !o->verify_only) {
        attn_error ignored = ATTN_ERROR_INIT; /* a table without its percentages */
        int64_t end_ns = run->end_ns == INT64_MAX ? 0 : run->end_ns;
        lane.worker.patience = (attn_patience){end_ns, note_waiting, &lane};
        run->result->peak[device] = measure_peak(&lane, &ignored);
        lane.held_up = lane.noted && isnan(run->result->peak[device]);
    }
    attn_tune_summary *summary = run->result->summary + run->result->count;
    for (size_t i = 0; i < o->problem_count; i++)
        summary[i] =
            (attn_tune_summary){.device = device, .problem = i, .cut = true, .missed = true};
    if (status == ATTN_OK)
        status = run_round(run, &lane, summary, true, err);
    while (status == ATTN_OK && is_worth_more(run, summary))
        status = run_round(run, &lane, summary, false, err);
    if (status == ATTN_OK)
        status = take_missed(run, &lane, summary, err);
    attn_worker_kill(&lane.worker);
    if (status != ATTN_ERR_TIMEOUT)
        return status;
    run->result->signal = attn_stop_signal(o->stop_fd); /* while the device was being opened */
    return run->result->signal ? ATTN_OK : status;
}

/*-*** The run ***************************************************/

static attn_status complete_options(struct run *run, attn_error *err) {
    attn_tune_options *o = &run->options;
    size_t all = o->problem_count * o->device_count;
    const char *search = o->search ? o->search : o->verify_only ? "exhaustive" : "climb";
    run->strategy = attn_strategy_find(search);
    if (!run->strategy)
        return attn_fail(err, ATTN_ERR_INVALID, "there is no search '%s'", search);
    if (o->jobs < 1)
        o->jobs = usable_cpus();
    if (o->budget_s <= 0 && !o->verify_only)
        o->budget_s = (double)all * (o->quick ? SECONDS_QUICK : SECONDS);
    run->share_s = o->share_s > 0    ? o->share_s
                   : o->budget_s > 0 ? o->budget_s / (double)(all > 0 ? all : 1)
                                     : INFINITY;
    run->result->share_s = run->share_s;
    run->end_ns = o->budget_s > 0 ? attn_now_ns() + (int64_t)(o->budget_s * 1e9) : INT64_MAX;
    return attn_builders_open(o->jobs, &run->builders, err);
}

static attn_status run_all(struct run *run, attn_error *err) {
    const attn_tune_options *o = &run->options;
    bool records = o->db && !o->dry_run && !o->verify_only;
    const int64_t last_ns = run->end_ns;
    attn_status status = ATTN_OK;
    if (records)
        ATTN_TRY(attn_db_session_begin(o->db, o->command ? o->command : "attntune", err));
    for (size_t i = 0; status == ATTN_OK && !run->result->signal && i < o->device_count; i++) {
        int64_t part_ns = (int64_t)(o->budget_s / (double)o->device_count * 1e9);
        run->spent_ns = 0;
        run->first_s = NAN;
        run->bet_s = BET_S;
        if (last_ns != INT64_MAX)
            run->end_ns = attn_now_ns() + part_ns < last_ns ? attn_now_ns() + part_ns : last_ns;
        status = run_device(run, i, err);
    }
    if (records) {
        attn_error ending = ATTN_ERROR_INIT;
        attn_status ended = attn_db_session_end(o->db, &ending);
        if (status == ATTN_OK && ended != ATTN_OK)
            status = attn_fail(err, ended, "%s", ending.line);
    }
    return status;
}

attn_status attn_tune_run(const attn_tune_options *options, attn_tune_result *result,
                          attn_error *err) {
    struct run run = {.options = *options, .result = result};
    size_t all = options->problem_count * options->device_count;
    memset(result, 0, sizeof *result);
    result->summary = calloc(all + 1, sizeof *result->summary);
    result->peak = calloc(options->device_count + 1, sizeof *result->peak);
    if (!result->summary || !result->peak)
        return attn_fail_nomem(err);
    result->device_count = options->device_count;
    for (size_t i = 0; i < options->device_count; i++)
        result->peak[i] = NAN;
    attn_status status = complete_options(&run, err);
    if (status == ATTN_OK)
        status = run_all(&run, err);
    attn_builders_close(run.builders);
    return status;
}

void attn_tune_result_free(attn_tune_result *result) {
    for (size_t i = 0; result->summary && i < result->count; i++) {
        free(result->summary[i].reason);
        free(result->summary[i].family);
        free(result->summary[i].config);
    }
    free(result->summary);
    free(result->peak);
    memset(result, 0, sizeof *result);
}

void attn_tune_reproducer(const attn_tune_trial *trial, const attn_tune_options *options,
                          attn_str *out) {
    char problem[ATTN_PROBLEM_TEXT], label[64];
    (void)attn_problem_print(trial->problem, problem, sizeof problem);
    attn_device_label(trial->device, label, sizeof label);
    attn_str_append_f(out, "attntune verify %s --device %s", problem, label);
    if (options->threads > 0)
        attn_str_append_f(out, " --threads %d", options->threads);
    if (options->path)
        attn_str_append_f(out, " --path %s", options->path);
    attn_str_append_f(out, " --family %s --config \"%s\"", trial->family, trial->config);
}
