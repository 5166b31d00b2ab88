/* job_resume.c: what earlier runs have left in the database about a problem. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

static const double ENOUGH = 0.999; /* of a share: budgets that are the same but for rounding */

static bool is_ours(const attn_lane *lane, const attn_db_row *row) {
    const attn_device_info *device = &lane->device;
    return row->threads == (int32_t)attn_device_prop(device, "threads") &&
           row->mode == lane->options->mode && strcmp(row->environment, device->environment) == 0;
}

static bool source_is_current(const attn_job *job, const attn_db_row *row) {
    for (size_t i = 0; i < job->families; i++)
        if (strcmp(job->family[i].name, row->variant.family) == 0)
            return attn_hash_equal(job->family[i].source, row->source_hash);
    return false;
}

/* Its compiler and its environment are those of now. */
static bool is_of_now(const attn_lane *lane, const attn_db_row *row) {
    const attn_backend *backend = lane->backend;
    attn_error ignored = ATTN_ERROR_INIT;
    attn_str identity = ATTN_STR_INIT;
    bool now = is_ours(lane, row) && row->abi == ATTN_ABI_VERSION &&
               backend->toolchain(row->variant.language, row->variant.options, &identity,
                                  &ignored) == ATTN_OK &&
               strcmp(attn_str_text(&identity), row->toolchain) == 0;
    attn_str_free(&identity);
    return now;
}

/* The files of its family are here as they were. */
static bool has_files(const attn_lane *lane, const attn_db_row *row) {
    attn_error ignored = ATTN_ERROR_INIT;
    attn_hash source;
    return attn_gen_source_hash(lane->options->gen, row->variant.family, &source, &ignored) ==
               ATTN_OK &&
           attn_hash_equal(source, row->source_hash);
}

/* Is it of another family than the only one that this run is about? */
static bool is_aside(const attn_lane *lane, const attn_db_row *row) {
    const char *only = lane->options->family;
    return only && strcmp(only, row->variant.family) != 0;
}

static attn_status report_stored(const attn_stored *stored, attn_tune_summary *s, attn_error *err) {
    s->status = ATTN_OK;
    s->ns = stored->ns;
    s->band = stored->band;
    s->default_ns = stored->default_ns;
    s->is_default = stored->ns == stored->default_ns;
    s->family = strdup(stored->family);
    s->config = strdup(stored->config);
    return s->family && s->config ? ATTN_OK : attn_fail_nomem(err);
}

static attn_status report_row(const attn_db_row *row, attn_tune_summary *s, attn_error *err) {
    const attn_stored stored = {.family = row->variant.family,
                                .config = row->variant.config,
                                .ns = row->final_ns,
                                .band = row->band,
                                .default_ns = row->default_ns};
    return report_stored(&stored, s, err);
}

attn_status attn_lane_has_winner(const attn_lane *lane, const attn_problem *problem, bool *has,
                                 attn_tune_summary *summary, attn_error *err) {
    const attn_tune_options *o = lane->options;
    const attn_db_filter filter = {.problem = problem, .device = &lane->device, .winners = true};
    attn_db_rows rows = {0};
    attn_status status = ATTN_OK;
    *has = false;
    if (!o->db || o->verify_only || o->dry_run)
        return ATTN_OK;
    ATTN_TRY(attn_db_find(o->db, &filter, &rows, err));
    for (size_t i = 0; i < rows.count && !*has; i++) {
        const attn_db_row *row = &rows.row[i];
        *has =
            row->rank == 1 && !is_aside(lane, row) && has_files(lane, row) && is_of_now(lane, row);
        if (*has && summary)
            status = report_row(row, summary, err);
    }
    attn_db_rows_free(&rows);
    return status;
}

/* Can a point be made a variant of? */
static attn_status is_makeable(attn_job *job, size_t point, bool *makeable, attn_error *err) {
    attn_candidate *c;
    attn_status status = attn_candidate_make(job, point, &c, err);
    *makeable = status == ATTN_OK;
    if (status == ATTN_OK)
        return attn_candidate_drop(job, c, err);
    return status == ATTN_ERR_NOT_FOUND ? ATTN_OK : status;
}

/* Has every family that accepts the problem been tried as it is now? One whose default cannot be,
 * for want of its compiler or for the problem's shape, never will. */
static attn_status all_families_tried(attn_job *job, const attn_db_rows *rows, bool *all,
                                      attn_error *err) {
    *all = true;
    for (size_t i = 0; *all && i < job->families; i++) {
        const attn_family *family = &job->family[i];
        bool tried = false, makeable = true;
        for (size_t k = 0; k < rows->count && !tried; k++)
            tried = strcmp(rows->row[k].variant.family, family->name) == 0 &&
                    attn_hash_equal(rows->row[k].source_hash, family->source);
        if (!tried && family->first_point != ATTN_SEARCH_END)
            ATTN_TRY(is_makeable(job, family->first_point, &makeable, err));
        *all = tried || !makeable;
    }
    return ATTN_OK;
}

attn_status attn_job_keep_stored(attn_job *job, attn_error *err) {
    return job->stored.family ? report_stored(&job->stored, job->summary, err) : ATTN_OK;
}

void attn_job_forget_stored(attn_job *job) {
    free(job->stored.family);
    free(job->stored.config);
    job->stored = (attn_stored){0};
}

static attn_status remember_winner(attn_job *job, const attn_db_row *row, attn_error *err) {
    job->stored = (attn_stored){.family = strdup(row->variant.family),
                                .config = strdup(row->variant.config),
                                .point = attn_job_point(job, row),
                                .rival = !source_is_current(job, row),
                                .ns = row->final_ns,
                                .band = row->band,
                                .default_ns = row->default_ns};
    job->seconds_before = row->extent.seconds;
    return job->stored.family && job->stored.config ? ATTN_OK : attn_fail_nomem(err);
}

/* It only waited for a worker when its session died: not even tried. */
static bool is_unbegun(const attn_db_row *row) {
    return row->result.outcome == ATTN_OUTCOME_LOST && row->begun == 0;
}

/* A lost trial counts as tried only if it was lost twice: else it is tried again. */
static void remember_outcome(attn_job *job, size_t point, attn_outcome outcome) {
    uint8_t *before = &job->before[point];
    if (outcome == ATTN_OUTCOME_LOST && *before == 0) {
        *before = ATTN_CUT_OFF;
        job->cut_off++;
    } else if (*before == 0 || *before == ATTN_CUT_OFF) {
        job->cut_off -= *before == ATTN_CUT_OFF;
        *before = (uint8_t)(outcome + 1);
        job->summary->tried++;
        job->summary->outcome[outcome]++;
    }
}

/* Of the candidates that a search would have now, each once: an earlier run may have searched more
 * than the core. What was lost comes last, since it may have been tried again. */
static attn_status remember_tried(attn_job *job, const attn_db_rows *rows, attn_error *err) {
    job->before = calloc(job->space.count + 1, sizeof *job->before);
    if (!job->before)
        return attn_fail_nomem(err);
    for (size_t n = 0; n < 2 * rows->count; n++) {
        const attn_db_row *row = &rows->row[n % rows->count];
        bool lost = row->result.outcome == ATTN_OUTCOME_LOST;
        if (lost != (n >= rows->count) || !is_ours(job->lane, row) ||
            !source_is_current(job, row) || is_unbegun(row))
            continue;
        size_t point = attn_job_point(job, row);
        if (point != ATTN_SEARCH_END && is_of_now(job->lane, row))
            remember_outcome(job, point, row->result.outcome);
    }
    return ATTN_OK;
}

static attn_status remember_lost(attn_job *job, const attn_db_rows *rows, attn_error *err) {
    job->lost = calloc(rows->count + 1, sizeof *job->lost);
    if (!job->lost)
        return attn_fail_nomem(err);
    for (size_t i = 0; i < rows->count; i++)
        if (rows->row[i].result.outcome == ATTN_OUTCOME_LOST && !is_unbegun(&rows->row[i]))
            job->lost[job->lost_count++] = rows->row[i].variant.hash;
    return ATTN_OK;
}

/* Has every point of this search an end, but for those that the problem's shape rules out? What an
 * earlier search called its end does not tell: it may have been about less. */
static attn_status was_completed(attn_job *job, bool *completed, attn_error *err) {
    *completed = true;
    for (size_t i = 0; *completed && i < job->space.count; i++) {
        bool makeable;
        if (job->before[i] && job->before[i] != ATTN_CUT_OFF)
            continue;
        ATTN_TRY(is_makeable(job, i, &makeable, err));
        *completed = !makeable && job->unbuildable == 0 && !job->faulty;
    }
    return ATTN_OK;
}

/* Nothing is left to do if the search has come to its end, or had its share: a run of one family is
 * no search of all, and takes no account of their time. How much of the time went to the whole
 * space is not known: that is searched on until its end. */
static attn_status decide_done(attn_job *job, const attn_db_rows *rows, bool *done,
                               attn_error *err) {
    const attn_tune_options *o = job->options;
    bool completed, all_tried = false;
    *done = false;
    if (o->again || o->fresh || !job->stored.family || job->stored.rival || !(job->stored.band < 1))
        return ATTN_OK;
    ATTN_TRY(was_completed(job, &completed, err));
    bool had_share = !o->family && !o->whole && job->seconds_before >= ENOUGH * job->time.share_s;
    if (had_share && !completed)
        ATTN_TRY(all_families_tried(job, rows, &all_tried, err));
    *done = completed || all_tried;
    if (!*done)
        return ATTN_OK;
    job->summary->resumed = true;
    job->summary->complete = completed;
    job->summary->candidates = job->space.count;
    job->best_ns = job->stored.ns;
    return attn_job_keep_stored(job, err);
}

static attn_status remember_stored(attn_job *job, const attn_db_rows *rows, attn_error *err) {
    attn_status status = ATTN_OK;
    for (size_t i = 0; status == ATTN_OK && i < rows->count && !job->stored.family; i++) {
        const attn_db_row *row = &rows->row[i];
        if (row->rank == 1 && is_of_now(job->lane, row) &&
            (source_is_current(job, row) ||
             (is_aside(job->lane, row) && has_files(job->lane, row))))
            status = remember_winner(job, row, err);
    }
    return status;
}

attn_status attn_job_resume(attn_job *job, bool *done, attn_error *err) {
    const attn_tune_options *o = job->options;
    const attn_db_filter filter = {
        .problem = job->problem, .device = &job->lane->device, .ended = true};
    attn_db_rows rows = {0};
    *done = false;
    if (!o->db || o->verify_only || o->dry_run)
        return ATTN_OK;
    ATTN_TRY(attn_db_find(o->db, &filter, &rows, err));
    attn_status status = remember_lost(job, &rows, err);
    if (status == ATTN_OK)
        status = remember_tried(job, &rows, err);
    if (status == ATTN_OK)
        status = remember_stored(job, &rows, err);
    if (status == ATTN_OK)
        status = decide_done(job, &rows, done, err);
    attn_db_rows_free(&rows);
    return status;
}

attn_status attn_job_look_again(attn_job *job, attn_error *err) {
    const attn_tune_options *o = job->options;
    const attn_db_filter filter = {
        .problem = job->problem, .device = &job->lane->device, .winners = true};
    attn_db_rows rows = {0};
    if (!o->db || o->verify_only || o->dry_run)
        return ATTN_OK;
    ATTN_TRY(attn_db_find(o->db, &filter, &rows, err));
    double seconds_before = job->seconds_before;
    attn_job_forget_stored(job);
    attn_status status = remember_stored(job, &rows, err);
    job->seconds_before = seconds_before;
    attn_db_rows_free(&rows);
    return status;
}
