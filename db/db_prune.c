/* db_prune.c: dropping what is of no use any more. */
#include "db_internal.h"

#include <stdlib.h>

/* In an order that leaves nothing behind. */
static const char ORPHANS[] =
    "UPDATE trial SET rank = NULL, final_ns = NULL, band = NULL, default_ns = NULL WHERE rank > 1 "
    "AND NOT EXISTS (SELECT 1 FROM trial w WHERE w.rank = 1 AND (w.problem_id, w.device_id, "
    "w.threads, w.mode) = (trial.problem_id, trial.device_id, trial.threads, trial.mode));"
    "DELETE FROM build WHERE id NOT IN (SELECT build_id FROM trial);"
    "DELETE FROM variant WHERE id NOT IN (SELECT variant_id FROM build);"
    "DELETE FROM toolchain WHERE id NOT IN (SELECT toolchain_id FROM build);"
    "DELETE FROM problem WHERE id NOT IN (SELECT problem_id FROM trial);"
    "DELETE FROM device WHERE id NOT IN (SELECT device_id FROM trial);"
    "DELETE FROM session WHERE ended IS NOT NULL AND id NOT IN "
    "(SELECT session_id FROM trial WHERE session_id IS NOT NULL)";

static attn_status drop(attn_db *db, const attn_db_rows *rows, const bool *doomed,
                        attn_error *err) {
    attn_sql q = attn_sql_prepare(db, "DELETE FROM trial WHERE id = ?");
    for (size_t i = 0; i < rows->count; i++) {
        if (!doomed[i])
            continue;
        attn_sql_bind_text(&q, rows->row[i].id.text);
        attn_sql_again(&q);
    }
    ATTN_TRY(attn_sql_end(&q, err));
    return attn_db_exec(db, ORPHANS, err);
}

/* Judging may render kernels, which takes long: it is done before the lock is taken. */
static attn_status judge_and_drop(attn_db *db, const attn_db_rows *rows, attn_db_keep *keep,
                                  void *user, attn_db_counts *dropped, attn_error *err) {
    bool *doomed = calloc(rows->count + 1, sizeof *doomed);
    if (!doomed)
        return attn_fail_nomem(err);
    for (size_t i = 0; i < rows->count; i++) {
        doomed[i] = !keep(user, &rows->row[i]);
        dropped->added += doomed[i];
        dropped->present += !doomed[i];
    }
    attn_status status = attn_db_begin(db, err);
    if (status == ATTN_OK)
        status = attn_db_finish(db, drop(db, rows, doomed, err), err);
    free(doomed);
    return status;
}

attn_status attn_db_prune(attn_db *db, attn_db_keep *keep, void *user, attn_db_counts *dropped,
                          attn_error *err) {
    attn_db_filter ended = {.ended = true};
    attn_db_rows rows;
    *dropped = (attn_db_counts){0, 0};
    ATTN_TRY(attn_db_find(db, &ended, &rows, err));
    attn_status status = judge_and_drop(db, &rows, keep, user, dropped, err);
    attn_db_rows_free(&rows);
    return status;
}
