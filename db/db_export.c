/* db_export.c: results as text; db_text.h has its form. */
#include "db_internal.h"

#include <string.h>

#include "db_text.h"

static void write_field(attn_str *out, const char *key, const char *value) {
    do {
        size_t n = strcspn(value, "\n");
        attn_str_append_f(out, n ? "  %s " : "  %s", key);
        attn_str_append_bytes(out, value, n);
        attn_str_append(out, "\n");
        value += n;
    } while (*value++ == '\n');
}

static void write_record(attn_sql *q, const attn_text_kind *kind, int fields, attn_str *out) {
    attn_str_append_f(out, "\n%s %s\n", kind->name, attn_sql_text(q));
    for (int i = 0; i < fields && kind->fields[i]; i++) {
        const char *value = attn_sql_text_or_null(q);
        if (value)
            write_field(out, kind->fields[i], value);
    }
}

static attn_status write_kind(attn_db *db, const attn_text_kind *kind, const attn_db_filter *filter,
                              int fields, attn_str *out, int *records, attn_error *err) {
    attn_str query = ATTN_STR_INIT;
    attn_db_filter_sql(filter, &query);
    attn_str_append(&query, kind->select);
    if (query.failed) {
        attn_str_free(&query);
        return attn_fail_nomem(err);
    }
    attn_sql q = attn_sql_prepare(db, attn_str_text(&query));
    attn_db_filter_bind(filter, &q);
    for (; attn_sql_next(&q); ++*records)
        write_record(&q, kind, fields, out);
    attn_str_free(&query);
    return attn_sql_end(&q, err);
}

static attn_status write_all(attn_db *db, const attn_db_filter *filter, bool samples, attn_str *out,
                             attn_error *err) {
    int records = 0;
    attn_str_append(out, ATTN_TEXT_FIRST_LINE "\n");
    for (int kind = 0; kind < ATTN_TEXT_KINDS; kind++)
        ATTN_TRY(write_kind(db, &attn_text_kinds[kind], filter,
                            samples ? ATTN_TEXT_FIELDS : TRIAL_SAMPLES, out, &records, err));
    attn_str_append_f(out, "\n" ATTN_TEXT_END "%d\n", records);
    return out->failed ? attn_fail_nomem(err) : ATTN_OK;
}

attn_status attn_db_export(attn_db *db, const attn_db_filter *filter, bool samples, attn_str *out,
                           attn_error *err) {
    attn_db_filter ended = *filter; /* a running trial is nobody else's business */
    ended.ended = true;
    ATTN_TRY(attn_db_exec(db, "BEGIN", err));
    return attn_db_finish(db, write_all(db, &ended, samples, out, err), err);
}
