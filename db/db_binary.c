/* db_binary.c: the compiled kernels that are kept. */
#include "db_internal.h"

#include <stdlib.h>
#include <string.h>

static attn_hash content_hash(const void *data, size_t size) {
    attn_hash h = attn_hash_begin();
    attn_hash_field(&h, data, size);
    return h;
}

/* Keeps, in this order: what is about to be tried, winners, others by place. A place is a build's
 * rank, then speed, among the builds of a problem and device; its best one counts. */
attn_status attn_db_trim(attn_db *db, int64_t top, int64_t bytes, attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db,
        "WITH used AS (SELECT t.build_id, t.problem_id, t.device_id, min(t.rank) AS rank, "
        "min(coalesce(t.final_ns, t.median_ns)) AS ns FROM build b JOIN trial t ON t.build_id = "
        "b.id WHERE b.binary_hash IS NOT NULL AND t.outcome = 'ok' GROUP BY 1, 2, 3), "
        "placed AS (SELECT build_id, rank, row_number() OVER (PARTITION BY problem_id, device_id "
        "ORDER BY rank IS NULL, rank, ns, build_id) AS place FROM used), "
        "best AS (SELECT b.id, length(b.binary) AS size, max(coalesce(p.rank = 1, 0)) OR EXISTS "
        "(SELECT 1 FROM trial t WHERE t.build_id = b.id AND t.outcome = 'running') AS vital, "
        "coalesce(min(p.place), 1 << 30) AS place FROM build b LEFT JOIN placed p ON p.build_id = "
        "b.id WHERE b.binary_hash IS NOT NULL GROUP BY b.id), "
        "summed AS (SELECT id, vital, place, sum(size) OVER (ORDER BY vital DESC, place, id "
        "ROWS UNBOUNDED PRECEDING) AS total FROM best) "
        "UPDATE build SET binary = NULL, binary_hash = NULL WHERE id IN (SELECT id FROM summed "
        "WHERE total > ? OR (place > ? AND NOT vital))");
    attn_sql_bind_int(&q, bytes);
    attn_sql_bind_int(&q, top);
    return attn_sql_run(&q, err);
}

static attn_status put(attn_db *db, attn_hash build, const attn_binary *binary, attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db, "UPDATE build SET binary = ?1, binary_hash = ?2, "
            "registers = iif(?3 < 0, registers, ?3), spills = iif(?4 < 0, spills, ?4), "
            "smem = iif(?5 < 0, smem, ?5) WHERE hash = ?6 RETURNING 1");
    attn_sql_bind_blob(&q, binary->data, binary->size);
    attn_sql_bind_hash(&q, content_hash(binary->data, binary->size));
    attn_sql_bind_int(&q, binary->registers);
    attn_sql_bind_int(&q, binary->spills);
    attn_sql_bind_int(&q, binary->smem);
    attn_sql_bind_hash(&q, build);
    bool found = attn_sql_next(&q);
    ATTN_TRY(attn_sql_run(&q, err));
    if (!found)
        return attn_fail(err, ATTN_ERR_NOT_FOUND, "database %s: no such build", db->path);
    return attn_db_trim(db, ATTN_DB_TOP, ATTN_DB_BINARY_BYTES, err);
}

attn_status attn_db_binary_put(attn_db *db, attn_hash build, const attn_binary *binary,
                               attn_error *err) {
    if (!binary->data || binary->size == 0)
        return attn_fail(err, ATTN_ERR_INVALID, "an empty binary cannot be kept");
    ATTN_TRY(attn_db_begin(db, err));
    return attn_db_finish(db, put(db, build, binary, err), err);
}

/* Of a row of binary, binary_hash, registers, spills, smem. */
static attn_status read_binary(attn_sql *q, attn_binary *binary, attn_error *err) {
    const void *data = attn_sql_blob(q, &binary->size);
    attn_hash hash = attn_sql_hash(q);
    if (!data || !attn_hash_equal(hash, content_hash(data, binary->size)))
        return attn_fail(err, ATTN_ERR_DB, "database %s: the binary of build %s is damaged",
                         q->db->path, binary->key);
    binary->data = malloc(binary->size);
    if (!binary->data)
        return attn_fail_nomem(err);
    memcpy(binary->data, data, binary->size);
    binary->registers = (int32_t)attn_sql_int_or(q, -1);
    binary->spills = (int32_t)attn_sql_int_or(q, -1);
    binary->smem = (int32_t)attn_sql_int_or(q, -1);
    return ATTN_OK;
}

attn_status attn_db_binary_get(attn_db *db, attn_hash build, attn_binary *binary, attn_error *err) {
    attn_status status;
    *binary = (attn_binary)ATTN_BINARY_INIT;
    attn_hash_print(build, binary->key);
    attn_sql q = attn_sql_prepare(
        db, "SELECT binary, binary_hash, registers, spills, smem FROM build WHERE hash = ? AND "
            "binary_hash IS NOT NULL");
    attn_sql_bind_hash(&q, build);
    if (attn_sql_next(&q))
        status = read_binary(&q, binary, err);
    else
        status = attn_fail(err, ATTN_ERR_NOT_FOUND, "database %s: no binary of build %s is kept",
                           db->path, binary->key);
    attn_error ended = ATTN_ERROR_INIT;
    if (attn_sql_end(&q, &ended) != ATTN_OK) {
        *err = ended;
        status = err->status;
    }
    if (status != ATTN_OK)
        attn_binary_free(binary);
    return status;
}
