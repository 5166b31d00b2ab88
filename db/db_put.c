/* db_put.c: rows that are known by what they say: inserted unless they are there, then found. */
#include "db_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

attn_status attn_db_random_id(attn_trial_id *id, attn_error *err) {
    attn_hash bits;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return attn_fail(err, ATTN_ERR_INTERNAL, "no random numbers: %s", strerror(errno));
    attn_hash_print(bits, id->text);
    return ATTN_OK;
}

/* The id of the row that the query finds by a hash. */
static attn_status find_row(attn_db *db, const char *query, attn_hash hash, int64_t *row,
                            attn_error *err) {
    attn_sql q = attn_sql_prepare(db, query);
    attn_sql_bind_hash(&q, hash);
    *row = attn_sql_next(&q) ? attn_sql_int(&q) : 0;
    return attn_sql_end(&q, err);
}

/* What is known of a device, without what may differ tomorrow. */
static void print_lasting(const attn_device_info *info, attn_str *out) {
    static const char *const passing[] = {"environment ", "lock ", "ordinal "};
    attn_str all = ATTN_STR_INIT;
    attn_device_print(info, &all);
    for (const char *line = attn_str_text(&all); *line;) {
        size_t length = strcspn(line, "\n") + 1;
        bool lasts = true;
        for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
            lasts = lasts && strncmp(line, passing[i], strlen(passing[i])) != 0;
        if (lasts)
            attn_str_append_bytes(out, line, length);
        line += length;
    }
    out->failed = out->failed || all.failed;
    attn_str_free(&all);
}

attn_status attn_db_put_device(attn_db *db, const attn_device_info *info, int64_t *row,
                               attn_error *err) {
    attn_hash hash = attn_device_hash(info);
    ATTN_TRY(find_row(db, "SELECT id FROM device WHERE hash = ?", hash, row, err));
    if (*row)
        return ATTN_OK;
    attn_str text = ATTN_STR_INIT;
    print_lasting(info, &text);
    attn_sql q =
        attn_sql_prepare(db, "INSERT INTO device (hash, backend, name, arch, identity, info) "
                             "VALUES (?, ?, ?, ?, ?, ?) RETURNING id");
    attn_sql_bind_hash(&q, hash);
    attn_sql_bind_text(&q, info->backend);
    attn_sql_bind_text(&q, info->name);
    attn_sql_bind_text(&q, info->arch);
    attn_sql_bind_text(&q, info->identity);
    attn_sql_bind_text(&q, attn_str_text(&text));
    if (attn_sql_next(&q))
        *row = attn_sql_int(&q);
    attn_status status = attn_sql_run(&q, err);
    if (text.failed)
        status = attn_fail_nomem(err);
    attn_str_free(&text);
    return status;
}

attn_status attn_db_put_problem(attn_db *db, const attn_problem *problem, int64_t *row,
                                attn_error *err) {
    attn_hash hash = attn_problem_hash(problem);
    ATTN_TRY(find_row(db, "SELECT id FROM problem WHERE hash = ?", hash, row, err));
    if (*row)
        return ATTN_OK;
    char text[ATTN_PROBLEM_TEXT], class_text[ATTN_CLASS_TEXT];
    attn_problem_print(problem, text, sizeof text);
    attn_class_print(problem, class_text);
    attn_sql q = attn_sql_prepare(
        db, "INSERT INTO problem (hash, text, class) VALUES (?, ?, ?) RETURNING id");
    attn_sql_bind_hash(&q, hash);
    attn_sql_bind_text(&q, text);
    attn_sql_bind_text(&q, class_text);
    if (attn_sql_next(&q))
        *row = attn_sql_int(&q);
    return attn_sql_run(&q, err);
}

/* The family's files may have changed in a way that leaves this variant as it was. */
attn_status attn_db_put_variant(attn_db *db, const attn_variant *variant, attn_hash source_hash,
                                int64_t abi, int64_t *row, attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db, "INSERT INTO variant (hash, family, config, class, language, launch, options, "
            "source_hash, abi) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO UPDATE "
            "SET source_hash = excluded.source_hash WHERE source_hash <> excluded.source_hash");
    attn_sql_bind_hash(&q, variant->hash);
    attn_sql_bind_text(&q, variant->family);
    attn_sql_bind_text(&q, variant->config);
    attn_sql_bind_text(&q, variant->class_text);
    attn_sql_bind_text(&q, variant->language);
    attn_sql_bind_text(&q, variant->launch);
    attn_sql_bind_text(&q, variant->options);
    attn_sql_bind_hash(&q, source_hash);
    attn_sql_bind_int(&q, abi);
    ATTN_TRY(attn_sql_run(&q, err));
    return find_row(db, "SELECT id FROM variant WHERE hash = ?", variant->hash, row, err);
}

static attn_status put_toolchain(attn_db *db, const char *identity, int64_t *row, attn_error *err) {
    attn_sql q =
        attn_sql_prepare(db, "INSERT INTO toolchain (identity) VALUES (?) ON CONFLICT DO NOTHING");
    attn_sql_bind_text(&q, identity);
    ATTN_TRY(attn_sql_run(&q, err));
    q = attn_sql_prepare(db, "SELECT id FROM toolchain WHERE identity = ?");
    attn_sql_bind_text(&q, identity);
    *row = attn_sql_next(&q) ? attn_sql_int(&q) : 0;
    return attn_sql_end(&q, err);
}

attn_status attn_db_put_build(attn_db *db, attn_hash hash, int64_t variant, const char *toolchain,
                              const char *target, int64_t *row, attn_error *err) {
    int64_t tool;
    ATTN_TRY(find_row(db, "SELECT id FROM build WHERE hash = ?", hash, row, err));
    if (*row)
        return ATTN_OK;
    ATTN_TRY(put_toolchain(db, toolchain, &tool, err));
    attn_sql q = attn_sql_prepare(
        db, "INSERT INTO build (hash, variant_id, toolchain_id, target) VALUES (?, ?, ?, ?) "
            "RETURNING id");
    attn_sql_bind_hash(&q, hash);
    attn_sql_bind_int(&q, variant);
    attn_sql_bind_int(&q, tool);
    attn_sql_bind_text(&q, target);
    if (attn_sql_next(&q))
        *row = attn_sql_int(&q);
    return attn_sql_run(&q, err);
}
