/* db_trial.c: the end of a trial, and the decision among finalists. */
#include "db_internal.h"

#include <sqlite3.h>
#include <string.h>

static const char *const OUTCOMES[] = {
#define XX(name, text) text,
    ATTN_OUTCOME_MAP(XX)
#undef XX
};
enum { OUTCOME_COUNT = sizeof OUTCOMES / sizeof OUTCOMES[0] };

const char *attn_outcome_name(attn_outcome outcome) {
    return (unsigned)outcome < OUTCOME_COUNT ? OUTCOMES[outcome] : "?";
}

bool attn_outcome_parse(const char *text, attn_outcome *outcome) {
    for (size_t i = 0; text && i < OUTCOME_COUNT; i++)
        if (strcmp(text, OUTCOMES[i]) == 0) {
            *outcome = (attn_outcome)i;
            return true;
        }
    return false;
}

const char *attn_mode_name(attn_mode mode) {
    return mode == ATTN_HOT ? "hot" : "cold";
}

/* A row that was taken for lost while its session lived is ended as well. */
static attn_status end_row(attn_db *db, const attn_trial_id *id, const attn_trial_result *r,
                           attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db, "UPDATE trial SET outcome = ?, error = ?, ended = ?, median_ns = ?, throttled = ?, "
            "clock_mhz = ?, power_w = ?, temperature_c = ?, error_max = ? "
            "WHERE id = ? AND session_id = ? AND outcome IN ('running', 'lost') RETURNING 1");
    attn_sql_bind_text(&q, attn_outcome_name(r->outcome));
    attn_sql_bind_text(&q, r->error);
    attn_sql_bind_int(&q, attn_db_now());
    attn_sql_bind_real(&q, r->median_ns);
    attn_sql_bind_int(&q, r->throttled);
    attn_sql_bind_real(&q, r->clock_mhz);
    attn_sql_bind_real(&q, r->power_w);
    attn_sql_bind_real(&q, r->temperature_c);
    attn_sql_bind_real(&q, r->error_max);
    attn_sql_bind_text(&q, id->text);
    attn_sql_bind_int(&q, db->session);
    bool found = attn_sql_next(&q);
    ATTN_TRY(attn_sql_run(&q, err));
    if (found)
        return ATTN_OK;
    return attn_fail(err, ATTN_ERR_NOT_FOUND,
                     "database %s: trial %s is not claimed by this session", db->path, id->text);
}

/* -1 leaves what is known. */
static attn_status keep_resources(attn_db *db, const attn_trial_id *id, const attn_trial_result *r,
                                  attn_error *err) {
    attn_sql q =
        attn_sql_prepare(db, "UPDATE build SET registers = iif(?1 < 0, registers, ?1), "
                             "spills = iif(?2 < 0, spills, ?2), smem = iif(?3 < 0, smem, ?3) "
                             "WHERE id = (SELECT build_id FROM trial WHERE id = ?4)");
    attn_sql_bind_int(&q, r->registers);
    attn_sql_bind_int(&q, r->spills);
    attn_sql_bind_int(&q, r->smem);
    attn_sql_bind_text(&q, id->text);
    return attn_sql_run(&q, err);
}

static attn_status keep_samples(attn_db *db, const attn_trial_id *id, const char *phase,
                                const double *ns, int32_t count, attn_error *err) {
    attn_sql q =
        attn_sql_prepare(db, "INSERT INTO sample (trial_id, phase, n, ns) VALUES (?, ?, ?, ?)");
    for (int32_t i = 0; i < count; i++) {
        attn_sql_bind_text(&q, id->text);
        attn_sql_bind_text(&q, phase);
        attn_sql_bind_int(&q, i);
        attn_sql_bind_real(&q, ns[i]);
        attn_sql_again(&q);
    }
    return attn_sql_end(&q, err);
}

attn_status attn_db_trial_end(attn_db *db, const attn_trial_id *id, const attn_trial_result *result,
                              attn_error *err) {
    int32_t samples = result->samples < ATTN_SAMPLES_MAX ? result->samples : ATTN_SAMPLES_MAX;
    if (result->outcome == ATTN_OUTCOME_RUNNING)
        return attn_fail(err, ATTN_ERR_INVALID, "a trial cannot end as running");
    ATTN_TRY(attn_db_begin(db, err));
    attn_status status = end_row(db, id, result, err);
    if (status == ATTN_OK)
        status = attn_db_session_seen(db, err);
    if (status == ATTN_OK)
        status = keep_resources(db, id, result, err);
    if (status == ATTN_OK)
        status = keep_samples(db, id, "race", result->sample_ns, samples, err);
    return attn_db_finish(db, status, err);
}

attn_status attn_db_trial_drop(attn_db *db, const attn_trial_id *id, attn_error *err) {
    attn_sql q = attn_sql_prepare(db, "DELETE FROM trial WHERE id = ? AND session_id = ? AND "
                                      "outcome IN ('running', 'lost')");
    attn_sql_bind_text(&q, id->text);
    attn_sql_bind_int(&q, db->session);
    return attn_sql_run(&q, err);
}

/* What an earlier decision on the same choice said, of every trial it was among. */
static attn_status clear_decision(attn_db *db, const attn_trial_id *winner, attn_error *err) {
    static const char *const scripts[] = {
        "DELETE FROM sample WHERE phase = 'final' AND trial_id IN (SELECT t.id FROM trial t JOIN "
        "trial w USING (problem_id, device_id, threads, mode) WHERE w.id = ?)",
        "UPDATE trial SET rank = NULL, final_ns = NULL, band = NULL, default_ns = NULL, "
        "searched_s = NULL, exhausted = 0 WHERE rank IS NOT NULL AND (problem_id, device_id, "
        "threads, mode) = "
        "(SELECT problem_id, device_id, threads, mode FROM trial WHERE id = ?)"};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        attn_sql q = attn_sql_prepare(db, scripts[i]);
        attn_sql_bind_text(&q, winner->text);
        ATTN_TRY(attn_sql_run(&q, err));
    }
    return ATTN_OK;
}

static attn_status rank_one(attn_db *db, const attn_finalist *f, int64_t rank,
                            const attn_trial_id *winner, double default_ns, attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db, "UPDATE trial SET rank = ?, final_ns = ?, band = ?, default_ns = ? WHERE id = ? AND "
            "outcome = 'ok' AND rank IS NULL AND (problem_id, device_id, threads, "
            "mode) = (SELECT problem_id, device_id, threads, mode FROM trial WHERE id = ?) "
            "RETURNING 1");
    attn_sql_bind_int(&q, rank);
    attn_sql_bind_real(&q, f->final_ns);
    attn_sql_bind_real(&q, f->band);
    attn_sql_bind_real(&q, default_ns);
    attn_sql_bind_text(&q, f->id.text);
    attn_sql_bind_text(&q, winner->text);
    bool found = attn_sql_next(&q);
    ATTN_TRY(attn_sql_run(&q, err));
    if (!found)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "trial %s cannot be ranked: it is not ok, ranked already, or of another "
                         "choice than %s",
                         f->id.text, winner->text);
    return keep_samples(db, &f->id, "final", f->round_ns, f->rounds, err);
}

static attn_status keep_extent(attn_db *db, const attn_trial_id *winner,
                               const attn_search_extent *extent, attn_error *err) {
    attn_sql q =
        attn_sql_prepare(db, "UPDATE trial SET searched_s = ?, exhausted = ? WHERE id = ?");
    attn_sql_bind_real(&q, extent->seconds);
    attn_sql_bind_int(&q, extent->exhausted);
    attn_sql_bind_text(&q, winner->text);
    return attn_sql_run(&q, err);
}

attn_status attn_db_decide(attn_db *db, const attn_finalist *finalists, size_t count,
                           double default_ns, const attn_search_extent *extent, attn_error *err) {
    if (count == 0)
        return attn_fail(err, ATTN_ERR_INVALID, "a decision without finalists");
    ATTN_TRY(attn_db_begin(db, err));
    attn_status status = clear_decision(db, &finalists[0].id, err);
    for (size_t i = 0; status == ATTN_OK && i < count; i++)
        status = rank_one(db, &finalists[i], (int64_t)i + 1, &finalists[0].id, default_ns, err);
    if (status == ATTN_OK)
        status = keep_extent(db, &finalists[0].id, extent, err);
    return attn_db_finish(db, status, err);
}
