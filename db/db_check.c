/* db_check.c: is everything in the file what it says it is? */
#include "db_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/launch.h"

typedef struct checker {
    attn_db *db;
    void (*report)(void *user, const char *line);
    void *user;
    size_t faults;
} checker;

static void fault(checker *c, const char *what, const char *name, const char *why) {
    char line[1024];
    snprintf(line, sizeof line, "%s%s%s%s%s", what, *name ? " " : "", name, *why ? ": " : "", why);
    c->faults++;
    c->report(c->user, line);
}

static bool is_hash(attn_hash hash) {
    return hash.hi != 0 || hash.lo != 0;
}

static void check_pages(checker *c, attn_sql *q) {
    const char *line = attn_sql_text(q);
    if (strcmp(line, "ok") != 0)
        fault(c, line, "", "");
}

static void check_references(checker *c, attn_sql *q) {
    const char *from = attn_sql_text(q), *row = attn_sql_text(q), *to = attn_sql_text(q);
    char why[96];
    snprintf(why, sizeof why, "refers to no %s", to);
    fault(c, from, row, why);
}

static void check_device(checker *c, attn_sql *q) {
    attn_hash hash = attn_sql_hash(q);
    const char *backend = attn_sql_text(q), *name = attn_sql_text(q), *arch = attn_sql_text(q);
    attn_error err = ATTN_ERROR_INIT;
    attn_device_info *info = calloc(1, sizeof *info);
    if (!info)
        return;
    if (attn_device_parse(attn_sql_text(q), info, &err) != ATTN_OK)
        fault(c, "device", name, err.line);
    else if (!attn_hash_equal(hash, attn_device_hash(info)))
        fault(c, "device", name, "its hash is another device's");
    else if (strcmp(backend, info->backend) != 0 || strcmp(name, info->name) != 0 ||
             strcmp(arch, info->arch) != 0)
        fault(c, "device", name, "its columns differ from its description");
    free(info);
}

static void check_problem(checker *c, attn_sql *q) {
    attn_hash hash = attn_sql_hash(q);
    const char *text = attn_sql_text(q), *class_text = attn_sql_text(q);
    char why[256], canonical[ATTN_PROBLEM_TEXT], its_class[ATTN_CLASS_TEXT];
    attn_problem problem;
    if (attn_problem_parse(text, &problem, why, sizeof why) != ATTN_OK) {
        fault(c, "problem", text, why);
        return;
    }
    attn_problem_print(&problem, canonical, sizeof canonical);
    attn_class_print(&problem, its_class);
    if (strcmp(text, canonical) != 0)
        fault(c, "problem", text, "not in canonical form");
    if (strcmp(class_text, its_class) != 0)
        fault(c, "problem", text, "of another class");
    if (!attn_hash_equal(hash, attn_problem_hash(&problem)))
        fault(c, "problem", text, "its hash is another problem's");
}

static void check_variant(checker *c, attn_sql *q) {
    const char *name = attn_sql_text(q);
    attn_launch launch;
    attn_error err = ATTN_ERROR_INIT;
    if (attn_launch_parse(attn_sql_text(q), &launch, &err) != ATTN_OK)
        fault(c, "variant", name, err.line);
    attn_hash hash = attn_sql_hash(q), source_hash = attn_sql_hash(q);
    if (!is_hash(hash) || !is_hash(source_hash))
        fault(c, "variant", name, "a hash is not 32 hex digits");
}

static void check_build(checker *c, attn_sql *q) {
    const char *name = attn_sql_text(q);
    attn_hash hash = {0, 0}, variant = attn_sql_hash(q);
    const char *toolchain = attn_sql_text(q), *target = attn_sql_text(q);
    attn_hash_parse(name, &hash);
    if (!attn_hash_equal(hash, attn_build_hash(variant, toolchain, target)))
        fault(c, "build", name, "its hash is another build's");
    if (attn_sql_int(q) == 0)
        return;
    attn_binary binary;
    attn_error err = ATTN_ERROR_INIT;
    if (attn_db_binary_get(c->db, hash, &binary, &err) != ATTN_OK)
        fault(c, "build", name, "the binary is damaged");
    attn_binary_free(&binary);
}

static void check_trial(checker *c, attn_sql *q) {
    const char *id = attn_sql_text(q);
    attn_hash hash;
    if (!attn_hash_parse(id, &hash))
        fault(c, "trial", id, "its id is not 32 hex digits");
}

static const struct {
    const char *query;
    void (*check)(checker *c, attn_sql *q);
} CHECKS[] = {
    {"PRAGMA integrity_check", check_pages},
    {"PRAGMA foreign_key_check", check_references},
    {"SELECT hash, backend, name, arch, info FROM device", check_device},
    {"SELECT hash, text, class FROM problem", check_problem},
    {"SELECT family || ' ' || config, launch, hash, source_hash FROM variant", check_variant},
    {"SELECT b.hash, v.hash, c.identity, b.target, b.binary_hash IS NOT NULL FROM build b JOIN "
     "variant v ON v.id = b.variant_id JOIN toolchain c ON c.id = b.toolchain_id",
     check_build},
    {"SELECT id FROM trial", check_trial},
};

/* A query that a damaged page stops is a fault as well; the other queries go on. */
attn_status attn_db_check(attn_db *db, void (*report)(void *user, const char *line), void *user,
                          size_t *faults, attn_error *err) {
    checker c = {db, report, user, 0};
    for (size_t i = 0; i < sizeof CHECKS / sizeof CHECKS[0]; i++) {
        attn_sql q = attn_sql_prepare(db, CHECKS[i].query);
        while (attn_sql_next(&q))
            CHECKS[i].check(&c, &q);
        attn_status status = attn_sql_end(&q, err);
        if (status == ATTN_ERR_NOMEM)
            return status;
        if (status != ATTN_OK)
            fault(&c, err->line, "", "");
    }
    *faults = c.faults;
    return ATTN_OK;
}
