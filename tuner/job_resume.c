/* job_resume.c: what earlier runs have left in the database about a problem. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

static const double ENOUGH = 0.9; /* of the seconds asked for were spent already */

static bool is_ours(const attn_job *job, const attn_db_row *row) {
    const attn_device_info *device = &job->lane->device;
    return row->threads == (int32_t)attn_device_prop(device, "threads") &&
           row->mode == job->options->mode && strcmp(row->environment, device->environment) == 0;
}

static bool source_is_current(const attn_job *job, const attn_db_row *row) {
    for (size_t i = 0; i < job->families; i++)
        if (strcmp(job->family[i].name, row->variant.family) == 0)
            return attn_hash_equal(job->family[i].source, row->source_hash);
    return false;
}

/* Its compiler and its environment are those of now. */
static bool is_of_now(const attn_job *job, const attn_db_row *row) {
    const attn_backend *backend = job->lane->backend;
    attn_error ignored = ATTN_ERROR_INIT;
    attn_str identity = ATTN_STR_INIT;
    bool now = is_ours(job, row) && row->abi == ATTN_ABI_VERSION &&
               backend->toolchain(row->variant.language, row->variant.options, &identity,
                                  &ignored) == ATTN_OK &&
               strcmp(attn_str_text(&identity), row->toolchain) == 0;
    attn_str_free(&identity);
    return now;
}

/* A winner of another family than the only one that this run is about, whose files are here as they
 * were. */
static bool is_rival(const attn_job *job, const attn_db_row *row) {
    const attn_tune_options *o = job->options;
    attn_error ignored = ATTN_ERROR_INIT;
    attn_hash source;
    return o->family && strcmp(o->family, row->variant.family) != 0 &&
           attn_gen_source_hash(o->gen, row->variant.family, &source, &ignored) == ATTN_OK &&
           attn_hash_equal(source, row->source_hash);
}

/* Has every family that accepts the problem been tried as it is now? */
static bool all_families_tried(const attn_job *job, const attn_db_rows *rows) {
    for (size_t i = 0; i < job->families; i++) {
        bool tried = false;
        for (size_t k = 0; k < rows->count && !tried; k++)
            tried = strcmp(rows->row[k].variant.family, job->family[i].name) == 0 &&
                    attn_hash_equal(rows->row[k].source_hash, job->family[i].source);
        if (!tried)
            return false;
    }
    return true;
}

static attn_status take_winner(attn_job *job, const attn_db_row *row, attn_error *err) {
    attn_tune_summary *s = job->summary;
    s->resumed = true;
    s->complete = row->extent.exhausted;
    s->ns = row->final_ns;
    s->band = row->band;
    s->default_ns = row->default_ns;
    s->is_default = row->final_ns == row->default_ns;
    s->family = strdup(row->variant.family);
    s->config = strdup(row->variant.config);
    s->candidates = job->space.count;
    job->best_ns = row->final_ns;
    return s->family && s->config ? ATTN_OK : attn_fail_nomem(err);
}

/* It only waited for a worker when its session died: not even tried. */
static bool is_unbegun(const attn_db_row *row) {
    return row->result.outcome == ATTN_OUTCOME_LOST && row->begun == 0;
}

/* Of the candidates that a search would have now, each once (a lost trial is retried; an earlier
 * run may have searched more than the core). */
static attn_status count_outcomes(attn_job *job, const attn_db_rows *rows, attn_error *err) {
    bool *counted = calloc(job->space.count + 1, sizeof *counted);
    if (!counted)
        return attn_fail_nomem(err);
    for (size_t i = 0; i < rows->count; i++) {
        const attn_db_row *row = &rows->row[i];
        if (!is_ours(job, row) || !source_is_current(job, row) || is_unbegun(row))
            continue;
        size_t point = attn_job_point(job, row);
        if (point == ATTN_SEARCH_END || counted[point])
            continue;
        counted[point] = true;
        job->summary->tried++;
        job->summary->outcome[row->result.outcome]++;
    }
    free(counted);
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
    for (size_t i = 0; status == ATTN_OK && i < rows.count; i++) {
        const attn_db_row *row = &rows.row[i];
        if (row->rank != 1 || !is_of_now(job, row) || !(row->band < 1))
            continue;
        if (is_rival(job, row)) {
            job->rival_ns = row->final_ns;
            job->rival = strdup(row->variant.family);
            status = job->rival ? ATTN_OK : attn_fail_nomem(err);
        }
        if (!source_is_current(job, row))
            continue;
        job->decided_before = true;
        job->seconds_before = row->extent.seconds;
        bool enough = row->extent.exhausted || row->extent.seconds >= ENOUGH * job->share_s;
        if (o->again || !enough || !all_families_tried(job, &rows))
            continue;
        *done = true;
        status = take_winner(job, row, err);
        if (status == ATTN_OK)
            status = count_outcomes(job, &rows, err);
        break;
    }
    attn_db_rows_free(&rows);
    return status;
}
