/* db_merge.c: taking over what another database has and this one lacks.
 *
 * Rows are matched by what identifies them everywhere (hashes, random ids), never by row numbers.
 * What is here stays as it is, so that merging twice changes nothing, and the set of trials does
 * not depend on the order of merging. A decision is taken over where this database has none: times
 * of different sources are never compared. */
#include "db_internal.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Trials of both whose decision over there is to hold here: found before any rank is set. */
#define ADOPTED                                                                                    \
    "(SELECT o.id FROM other.trial o JOIN main.trial t ON t.id = o.id WHERE o.rank IS NOT NULL "   \
    "AND t.outcome = 'ok' AND NOT EXISTS (SELECT 1 FROM main.trial w WHERE w.rank = 1 AND "        \
    "(w.problem_id, w.device_id, w.threads, w.mode) = "                                            \
    "(t.problem_id, t.device_id, t.threads, t.mode)))"

static const char *const STEPS[] = {
    "INSERT INTO main.device (hash, backend, name, arch, identity, info) "
    "SELECT hash, backend, name, arch, identity, info FROM other.device WHERE 1 "
    "ON CONFLICT DO NOTHING",

    "INSERT INTO main.toolchain (identity) SELECT identity FROM other.toolchain WHERE 1 "
    "ON CONFLICT DO NOTHING",

    "INSERT INTO main.problem (hash, text, class) SELECT hash, text, class FROM other.problem "
    "WHERE 1 ON CONFLICT DO NOTHING",

    "INSERT INTO main.variant (hash, family, config, class, language, launch, options, "
    "source_hash, abi) SELECT hash, family, config, class, language, launch, options, source_hash, "
    "abi FROM other.variant WHERE 1 ON CONFLICT DO NOTHING",

    "INSERT INTO main.build (hash, variant_id, toolchain_id, target, registers, spills, smem, "
    "binary_hash, binary) SELECT o.hash, v.id, c.id, o.target, o.registers, o.spills, o.smem, "
    "o.binary_hash, o.binary FROM other.build o "
    "JOIN other.variant ov ON ov.id = o.variant_id JOIN main.variant v ON v.hash = ov.hash "
    "JOIN other.toolchain oc ON oc.id = o.toolchain_id "
    "JOIN main.toolchain c ON c.identity = oc.identity WHERE 1 "
    "ON CONFLICT DO UPDATE SET registers = coalesce(registers, excluded.registers), "
    "spills = coalesce(spills, excluded.spills), smem = coalesce(smem, excluded.smem), "
    "binary_hash = coalesce(binary_hash, excluded.binary_hash), "
    "binary = coalesce(binary, excluded.binary) "
    "WHERE (binary_hash IS NULL AND excluded.binary_hash IS NOT NULL) OR "
    "(registers IS NULL AND excluded.registers IS NOT NULL)",

    "INSERT INTO main.session (uid, host, boot_id, pid_space, pid, started, begun, seen, ended, "
    "version, command) SELECT uid, host, boot_id, pid_space, pid, started, begun, seen, ended, "
    "version, command FROM other.session WHERE 1 ON CONFLICT DO NOTHING",

    /* A row that a copy of the file has seen the end of is ended here too. */
    "INSERT INTO main.trial (id, build_id, problem_id, device_id, session_id, environment, "
    "threads, mode, outcome, error, begun, ended, median_ns, throttled, clock_mhz, power_w, "
    "temperature_c, error_max) SELECT o.id, b.id, p.id, d.id, s.id, o.environment, o.threads, "
    "o.mode, o.outcome, o.error, o.begun, o.ended, o.median_ns, o.throttled, o.clock_mhz, "
    "o.power_w, o.temperature_c, o.error_max FROM other.trial o "
    "JOIN other.build ob ON ob.id = o.build_id JOIN main.build b ON b.hash = ob.hash "
    "JOIN other.problem op ON op.id = o.problem_id JOIN main.problem p ON p.hash = op.hash "
    "JOIN other.device od ON od.id = o.device_id JOIN main.device d ON d.hash = od.hash "
    "LEFT JOIN other.session os ON os.id = o.session_id "
    "LEFT JOIN main.session s ON s.uid = os.uid WHERE o.outcome <> 'running' "
    "ON CONFLICT (id) DO UPDATE SET outcome = excluded.outcome, error = excluded.error, "
    "ended = excluded.ended, median_ns = excluded.median_ns, throttled = excluded.throttled, "
    "clock_mhz = excluded.clock_mhz, power_w = excluded.power_w, "
    "temperature_c = excluded.temperature_c, error_max = excluded.error_max "
    "WHERE outcome IN ('running', 'lost') AND excluded.outcome <> 'lost'",

    "INSERT INTO main.sample (trial_id, phase, n, ns) SELECT trial_id, phase, n, ns FROM "
    "other.sample WHERE phase <> 'final' AND trial_id IN (SELECT id FROM main.trial) "
    "ON CONFLICT DO NOTHING",

    "INSERT INTO main.sample (trial_id, phase, n, ns) SELECT trial_id, phase, n, ns FROM "
    "other.sample WHERE phase = 'final' AND trial_id IN " ADOPTED " ON CONFLICT DO NOTHING",

    "UPDATE main.trial SET (rank, final_ns, band, default_ns, searched_s, exhausted) = "
    "(SELECT rank, final_ns, band, default_ns, searched_s, exhausted FROM other.trial o WHERE "
    "o.id = trial.id) WHERE id IN " ADOPTED,
};

attn_status attn_db_merge_other(attn_db *db, attn_db_counts *counts, attn_error *err) {
    int64_t all;
    ATTN_TRY(
        attn_db_ask(db, "SELECT count(*) FROM other.trial WHERE outcome <> 'running'", &all, err));
    ATTN_TRY(attn_db_ask(db,
                         "SELECT count(*) FROM other.trial WHERE outcome <> 'running' AND id IN "
                         "(SELECT id FROM main.trial)",
                         &counts->present, err));
    counts->added = all - counts->present;
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++)
        ATTN_TRY(attn_db_exec(db, STEPS[i], err));
    return attn_db_trim(db, ATTN_DB_TOP, ATTN_DB_BINARY_BYTES, err);
}

static attn_status merge_attached(attn_db *db, attn_db_counts *counts, attn_error *err) {
    ATTN_TRY(attn_db_begin(db, err));
    return attn_db_finish(db, attn_db_merge_other(db, counts, err), err);
}

/* What is merged, so that a table or column that is not there is told of the file that lacks it. */
static const char source_columns[] =
    "SELECT hash, backend, name, arch, identity, info FROM device LIMIT 0;"
    "SELECT identity FROM toolchain LIMIT 0;"
    "SELECT hash, text, class FROM problem LIMIT 0;"
    "SELECT hash, family, config, class, language, launch, options, source_hash, abi FROM variant "
    "LIMIT 0;"
    "SELECT id, hash, variant_id, toolchain_id, target, registers, spills, smem, binary_hash, "
    "binary FROM build LIMIT 0;"
    "SELECT id, uid, host, boot_id, pid_space, pid, started, begun, seen, ended, version, command "
    "FROM session LIMIT 0;"
    "SELECT id, build_id, problem_id, device_id, session_id, environment, threads, mode, outcome, "
    "error, begun, ended, median_ns, final_ns, band, default_ns, searched_s, exhausted, rank, "
    "throttled, clock_mhz, power_w, temperature_c, error_max FROM trial LIMIT 0;"
    "SELECT trial_id, phase, n, ns FROM sample LIMIT 0";

/* A fault that merging would find in the source, and blame on the database it writes. */
static attn_status check_source(attn_db *other, attn_error *err) {
    ATTN_TRY(attn_db_exec(other, source_columns, err));
    attn_sql q = attn_sql_prepare(other, "PRAGMA quick_check(1)");
    bool sound = attn_sql_next(&q) && strcmp(attn_sql_text(&q), "ok") == 0;
    ATTN_TRY(attn_sql_end(&q, err));
    return sound ? ATTN_OK : attn_db_fail(other, SQLITE_CORRUPT, err);
}

/* Finds out whether it is ours, safe and sound, and how it can be read. */
static attn_status open_source(const char *path, attn_db **other, attn_error *err) {
    ATTN_TRY(attn_db_open(path, ATTN_DB_READ, other, err));
    attn_status status = check_source(*other, err);
    if (status != ATTN_OK)
        attn_db_close(*other);
    return status;
}

attn_status attn_db_merge_check(const char *path, attn_error *err) {
    attn_db *other;
    ATTN_TRY(open_source(path, &other, err));
    attn_db_close(other);
    return ATTN_OK;
}

static attn_status attach(attn_db *db, const char *path, attn_error *err) {
    attn_db *other;
    struct stat a, b;
    ATTN_TRY(open_source(path, &other, err));
    char *uri = attn_db_uri(other->path, other->immutable ? "immutable=1" : "mode=ro");
    bool same = stat(other->path, &a) == 0 && stat(db->path, &b) == 0 && a.st_dev == b.st_dev &&
                a.st_ino == b.st_ino;
    attn_status status =
        !uri   ? attn_fail_nomem(err)
        : same ? attn_fail(err, ATTN_ERR_INVALID, "database %s: cannot be merged into itself", path)
               : ATTN_OK;
    attn_db_close(other);
    if (status != ATTN_OK) {
        free(uri);
        return status;
    }
    attn_sql q = attn_sql_prepare(db, "ATTACH ? AS other");
    attn_sql_bind_text(&q, uri);
    status = attn_sql_run(&q, err);
    free(uri);
    return status;
}

attn_status attn_db_merge(attn_db *db, const char *path, attn_db_counts *counts, attn_error *err) {
    *counts = (attn_db_counts){0, 0};
    ATTN_TRY(attach(db, path, err));
    attn_status status = merge_attached(db, counts, err);
    sqlite3_exec(db->sql, "DETACH other", NULL, NULL, NULL);
    return status;
}
