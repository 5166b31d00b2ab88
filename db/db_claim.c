/* db_claim.c: who may run a trial.
 *
 * The claim is a `running` row, of which the index trial_running allows one for a trial; it is
 * committed, and marked as begun, before anything runs, so that a crash leaves its name. Rules, by
 * what there is already:
 *
 *     running, its session alive                                TAKEN
 *     ok, pruned, load_error, launch_error, crash               DONE
 *     wrong of the build, on any problem                        DONE
 *     compile_error of the build, on any problem, and no ok     DONE
 *     timeout, oom, ended since this session began              DONE: an attempt a session
 *     lost, twice, both times while a worker had it             DONE
 *     none of these                                             MINE
 *
 * A claim with `again` is patient with failures: those that ended before this session began, other
 * than wrong, do not count. */
#include "db_internal.h"

#include <stdio.h>
#include <string.h>

#include "attn_abi.h"

/* Ended in this session, or in another one since this one began. */
#define FRESH "(session_id = ?7 OR ended > (SELECT begun FROM session WHERE id = ?7))"

typedef struct trial_rows {
    int64_t device, problem, variant, build;
} trial_rows;

static attn_status put_rows(attn_db *db, const attn_trial_key *key, trial_rows *rows,
                            attn_error *err) {
    ATTN_TRY(attn_db_put_device(db, key->device, &rows->device, err));
    ATTN_TRY(attn_db_put_problem(db, key->problem, &rows->problem, err));
    ATTN_TRY(attn_db_put_variant(db, key->variant, key->source_hash, ATTN_ABI_VERSION,
                                 &rows->variant, err));
    return attn_db_put_build(db, key->build, rows->variant, key->toolchain, key->target,
                             &rows->build, err);
}

static void bind_trial(attn_sql *q, const attn_trial_key *key, const trial_rows *rows) {
    attn_sql_bind_int(q, rows->build);
    attn_sql_bind_int(q, rows->problem);
    attn_sql_bind_int(q, rows->device);
    attn_sql_bind_int(q, key->threads);
    attn_sql_bind_text(q, attn_mode_name(key->mode));
    attn_sql_bind_text(q, key->device->environment);
}

static attn_status find_running(attn_db *db, const attn_trial_key *key, const trial_rows *rows,
                                attn_trial_id *id, bool *running, attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db, "SELECT id FROM trial WHERE build_id = ? AND problem_id = ? AND device_id = ? AND "
            "threads = ? AND mode = ? AND environment = ? AND outcome = 'running'");
    bind_trial(&q, key, rows);
    *running = attn_sql_next(&q);
    if (*running)
        snprintf(id->text, sizeof id->text, "%s", attn_sql_text(&q));
    return attn_sql_end(&q, err);
}

/* What is final comes first: an ok trial before the failures of earlier attempts. */
static attn_status find_done(attn_db *db, const attn_trial_key *key, const trial_rows *rows,
                             attn_trial_id *id, attn_trial_result *result, bool *done,
                             attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db, "WITH same AS (SELECT * FROM trial WHERE build_id = ?1 AND problem_id = ?2 AND "
            "device_id = ?3 AND threads = ?4 AND mode = ?5 AND environment = ?6) "
            "SELECT t.id, t.outcome, t.error, t.median_ns, t.error_max, t.clock_mhz, t.power_w, "
            "t.temperature_c, t.throttled, b.registers, b.spills, b.smem FROM ("
            "SELECT 1 AS place, * FROM same WHERE outcome IN ('ok', 'pruned') UNION ALL "
            "SELECT 1, * FROM same WHERE outcome IN ('load_error', 'launch_error', 'crash') AND "
            "(NOT ?8 OR " FRESH ") UNION ALL "
            "SELECT 2, * FROM trial WHERE build_id = ?1 AND outcome = 'wrong' UNION ALL "
            "SELECT 2, * FROM trial WHERE build_id = ?1 AND outcome = 'compile_error' AND "
            "(NOT ?8 OR " FRESH ") AND NOT EXISTS "
            "(SELECT 1 FROM trial WHERE build_id = ?1 AND outcome = 'ok') UNION ALL "
            "SELECT 3, * FROM same WHERE outcome IN ('timeout', 'oom') AND " FRESH " UNION ALL "
            "SELECT 4, * FROM same WHERE outcome = 'lost' AND (NOT ?8 OR " FRESH ") AND "
            "(SELECT count(*) FROM same WHERE outcome = 'lost' AND begun > 0) > 1) t "
            "JOIN build b ON b.id = t.build_id ORDER BY t.place, t.ended DESC, t.id LIMIT 1");
    bind_trial(&q, key, rows);
    attn_sql_bind_int(&q, db->session);
    attn_sql_bind_int(&q, key->again);
    *done = attn_sql_next(&q);
    if (*done) {
        memset(result, 0, sizeof *result);
        snprintf(id->text, sizeof id->text, "%s", attn_sql_text(&q));
        attn_outcome_parse(attn_sql_text(&q), &result->outcome);
        snprintf(result->error, sizeof result->error, "%s", attn_sql_text(&q));
        result->median_ns = attn_sql_real(&q);
        result->error_max = attn_sql_real(&q);
        result->clock_mhz = attn_sql_real(&q);
        result->power_w = attn_sql_real(&q);
        result->temperature_c = attn_sql_real(&q);
        result->throttled = attn_sql_int(&q) != 0;
        result->registers = (int32_t)attn_sql_int_or(&q, -1);
        result->spills = (int32_t)attn_sql_int_or(&q, -1);
        result->smem = (int32_t)attn_sql_int_or(&q, -1);
    }
    return attn_sql_end(&q, err);
}

static attn_status read_samples(attn_db *db, const attn_trial_id *id, attn_trial_result *result,
                                attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db, "SELECT ns FROM sample WHERE trial_id = ? AND phase = 'race' ORDER BY n");
    attn_sql_bind_text(&q, id->text);
    while (result->samples < ATTN_SAMPLES_MAX && attn_sql_next(&q))
        result->sample_ns[result->samples++] = attn_sql_real(&q);
    return attn_sql_end(&q, err);
}

static attn_status insert_running(attn_db *db, const attn_trial_key *key, const trial_rows *rows,
                                  attn_trial_id *id, attn_error *err) {
    ATTN_TRY(attn_db_random_id(id, err));
    attn_sql q = attn_sql_prepare(
        db, "INSERT INTO trial (build_id, problem_id, device_id, threads, mode, environment, id, "
            "session_id, outcome, begun) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'running', 0)");
    bind_trial(&q, key, rows);
    attn_sql_bind_text(&q, id->text);
    attn_sql_bind_int(&q, db->session);
    return attn_sql_run(&q, err);
}

static attn_status decide_claim(attn_db *db, const attn_trial_key *key, attn_claim *claim,
                                attn_trial_id *id, attn_trial_result *result, attn_error *err) {
    trial_rows rows;
    bool running, done;
    ATTN_TRY(attn_db_session_seen(db, err));
    ATTN_TRY(put_rows(db, key, &rows, err));
    ATTN_TRY(find_running(db, key, &rows, id, &running, err));
    if (running) {
        ATTN_TRY(attn_db_reap(db, id->text, err));
        ATTN_TRY(find_running(db, key, &rows, id, &running, err));
    }
    *claim = ATTN_CLAIM_TAKEN;
    if (running)
        return ATTN_OK;
    ATTN_TRY(find_done(db, key, &rows, id, result, &done, err));
    *claim = done ? ATTN_CLAIM_DONE : ATTN_CLAIM_MINE;
    return done ? read_samples(db, id, result, err) : insert_running(db, key, &rows, id, err);
}

attn_status attn_db_claim(attn_db *db, const attn_trial_key *key, attn_claim *claim,
                          attn_trial_id *id, attn_trial_result *result, attn_error *err) {
    if (!db->session)
        return attn_fail(err, ATTN_ERR_INTERNAL, "a trial was claimed outside of a session");
    ATTN_TRY(attn_db_begin(db, err));
    return attn_db_finish(db, decide_claim(db, key, claim, id, result, err), err);
}

static attn_status mark_all(attn_db *db, const attn_trial_mark *marks, size_t count,
                            attn_error *err) {
    attn_sql q = attn_sql_prepare(db, "UPDATE trial SET begun = ? WHERE id = ? AND session_id = ?");
    for (size_t i = 0; i < count; i++) {
        attn_sql_bind_int(&q, marks[i].begun ? attn_db_now() : 0);
        attn_sql_bind_text(&q, marks[i].id.text);
        attn_sql_bind_int(&q, db->session);
        attn_sql_again(&q);
    }
    return attn_sql_end(&q, err);
}

attn_status attn_db_trial_mark(attn_db *db, const attn_trial_mark *marks, size_t count,
                               attn_error *err) {
    ATTN_TRY(attn_db_begin(db, err));
    return attn_db_finish(db, mark_all(db, marks, count, err), err);
}
