/* db_find.c: trials with everything that is known of them. */
#include "db_internal.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One restriction: its SQL, wanted if `on`, and its value, if it has one. */
typedef struct condition {
    bool on;
    const char *sql;
    const char *value;
} condition;

enum { CONDITIONS = 10 };

typedef struct conditions {
    condition rows[CONDITIONS];
    char device[ATTN_HASH_TEXT], variant[ATTN_HASH_TEXT], problem[ATTN_HASH_TEXT];
} conditions;

static void fill(const attn_db_filter *f, conditions *c) {
    const attn_device_info *dev = f->device;
    if (dev)
        attn_hash_print(attn_device_hash(dev), c->device);
    if (f->problem)
        attn_hash_print(attn_problem_hash(f->problem), c->problem);
    attn_hash_print(f->variant, c->variant);
    bool variant = f->variant.hi || f->variant.lo;
    const condition rows[CONDITIONS] = {
        {f->class_text, " AND p.class = ?", f->class_text},
        {f->problem, " AND p.hash = ?", c->problem},
        {dev && !f->same_arch, " AND d.hash = ?", c->device},
        {dev && f->same_arch, " AND d.backend = ?", dev ? dev->backend : NULL},
        {dev && f->same_arch, " AND d.arch = ?", dev ? dev->arch : NULL},
        {f->family, " AND v.family = ?", f->family},
        {variant, " AND v.hash = ?", c->variant},
        {f->winners, " AND t.rank = 1", NULL},
        {f->finalists, " AND t.rank > 0", NULL},
        {f->ended, " AND t.outcome <> 'running'", NULL},
    };
    memcpy(c->rows, rows, sizeof rows);
}

#define TABLES                                                                                     \
    "JOIN problem p ON p.id = t.problem_id JOIN device d ON d.id = t.device_id "                   \
    "JOIN build b ON b.id = t.build_id JOIN variant v ON v.id = b.variant_id "                     \
    "JOIN toolchain c ON c.id = b.toolchain_id "
#define ORDER                                                                                      \
    " ORDER BY p.text, d.hash, t.threads, t.mode, t.rank IS NULL, t.rank, "                        \
    "t.median_ns IS NULL, t.median_ns, t.id"

void attn_db_filter_sql(const attn_db_filter *filter, attn_str *out) {
    conditions c;
    fill(filter, &c);
    attn_str_append(out, "WITH hit AS (SELECT t.* FROM trial t " TABLES "WHERE 1");
    for (size_t i = 0; i < CONDITIONS; i++)
        if (c.rows[i].on)
            attn_str_append(out, c.rows[i].sql);
    attn_str_append(out, filter->limit ? ORDER " LIMIT ?) " : ") ");
}

void attn_db_filter_bind(const attn_db_filter *filter, attn_sql *q) {
    conditions c;
    fill(filter, &c);
    for (size_t i = 0; i < CONDITIONS; i++)
        if (c.rows[i].on && c.rows[i].value)
            attn_sql_bind_copy(q, c.rows[i].value);
    if (filter->limit)
        attn_sql_bind_int(q, (int64_t)filter->limit);
}

static char *copy(attn_sql *q, bool *failed) {
    char *copied = strdup(attn_sql_text(q));
    *failed = *failed || !copied;
    return copied;
}

static const char COLUMNS[] =
    "SELECT t.id, p.text, d.hash, d.name, d.info, d.arch, t.environment, c.identity, b.target, "
    "v.family, "
    "v.language, v.config, v.class, v.launch, v.options, v.hash, v.source_hash, b.hash, v.abi, "
    "t.threads, t.mode, t.outcome, t.error, t.median_ns, t.error_max, t.clock_mhz, t.power_w, "
    "t.temperature_c, t.throttled, b.registers, b.spills, b.smem, t.final_ns, t.band, "
    "t.default_ns, t.rank, t.searched_s, t.exhausted, b.binary_hash IS NOT NULL, t.begun, t.ended "
    "FROM hit "
    "t " TABLES ORDER;

static void read_result(attn_sql *q, attn_trial_result *result) {
    attn_outcome_parse(attn_sql_text(q), &result->outcome);
    snprintf(result->error, sizeof result->error, "%s", attn_sql_text(q));
    result->median_ns = attn_sql_real(q);
    result->error_max = attn_sql_real(q);
    result->clock_mhz = attn_sql_real(q);
    result->power_w = attn_sql_real(q);
    result->temperature_c = attn_sql_real(q);
    result->throttled = attn_sql_int(q) != 0;
    result->registers = (int32_t)attn_sql_int_or(q, -1);
    result->spills = (int32_t)attn_sql_int_or(q, -1);
    result->smem = (int32_t)attn_sql_int_or(q, -1);
}

static attn_status read_row(attn_sql *q, attn_db_row *row, attn_error *err) {
    char why[256];
    bool failed = false;
    snprintf(row->id.text, sizeof row->id.text, "%s", attn_sql_text(q));
    const char *problem = attn_sql_text(q);
    if (attn_problem_parse(problem, &row->problem, why, sizeof why) != ATTN_OK)
        return attn_fail(err, ATTN_ERR_DB, "database %s: trial %s: %s", q->db->path, row->id.text,
                         why);
    row->device = attn_sql_hash(q);
    row->device_name = copy(q, &failed);
    row->device_text = copy(q, &failed);
    row->arch = copy(q, &failed);
    row->environment = copy(q, &failed);
    row->toolchain = copy(q, &failed);
    row->target = copy(q, &failed);
    row->variant.family = copy(q, &failed);
    row->variant.language = copy(q, &failed);
    row->variant.config = copy(q, &failed);
    row->variant.class_text = copy(q, &failed);
    row->variant.launch = copy(q, &failed);
    row->variant.options = copy(q, &failed);
    row->variant.hash = attn_sql_hash(q);
    row->source_hash = attn_sql_hash(q);
    row->build = attn_sql_hash(q);
    row->abi = (int32_t)attn_sql_int(q);
    row->threads = (int32_t)attn_sql_int(q);
    row->mode = strcmp(attn_sql_text(q), "hot") == 0 ? ATTN_HOT : ATTN_COLD;
    read_result(q, &row->result);
    row->final_ns = attn_sql_real(q);
    row->band = attn_sql_real(q);
    row->default_ns = attn_sql_real(q);
    row->rank = (int32_t)attn_sql_int(q);
    row->extent.seconds = attn_sql_real(q);
    row->extent.exhausted = attn_sql_int(q) != 0;
    row->has_binary = attn_sql_int(q) != 0;
    row->begun = attn_sql_int(q);
    row->ended = attn_sql_int(q);
    return failed ? attn_fail_nomem(err) : ATTN_OK;
}

static attn_status read_rows(attn_sql *q, attn_db_rows *rows, attn_error *err) {
    size_t capacity = 0;
    while (attn_sql_next(q)) {
        if (rows->count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            attn_db_row *more = realloc(rows->row, capacity * sizeof *more);
            if (!more)
                return attn_fail_nomem(err);
            rows->row = more;
        }
        attn_db_row *row = &rows->row[rows->count++];
        memset(row, 0, sizeof *row);
        ATTN_TRY(read_row(q, row, err));
    }
    return ATTN_OK;
}

attn_status attn_db_find(attn_db *db, const attn_db_filter *filter, attn_db_rows *rows,
                         attn_error *err) {
    attn_str text = ATTN_STR_INIT;
    *rows = (attn_db_rows){NULL, 0};
    attn_db_filter_sql(filter, &text);
    attn_str_append(&text, COLUMNS);
    if (text.failed) {
        attn_str_free(&text);
        return attn_fail_nomem(err);
    }
    attn_sql q = attn_sql_prepare(db, attn_str_text(&text));
    attn_db_filter_bind(filter, &q);
    attn_status status = read_rows(&q, rows, err);
    attn_status end = attn_sql_end(&q, err);
    attn_str_free(&text);
    if (status == ATTN_OK)
        status = end;
    if (status != ATTN_OK)
        attn_db_rows_free(rows);
    return status;
}

void attn_db_rows_free(attn_db_rows *rows) {
    for (size_t i = 0; i < rows->count; i++) {
        attn_db_row *row = &rows->row[i];
        free(row->device_name);
        free(row->device_text);
        free(row->arch);
        free(row->environment);
        free(row->toolchain);
        free(row->target);
        attn_variant_free(&row->variant);
    }
    free(rows->row);
    *rows = (attn_db_rows){NULL, 0};
}
