/* test_choose.c: which candidate a problem gets, without any device. */
#include "check.h"

#include "context.h"

static attn_problem parse(const char *text) {
    attn_problem p = {0};
    char error[256] = "";
    CHECK_OK(attn_problem_parse(text, &p, error, sizeof error), error);
    return p;
}

/* A class of f32 d64 candidates, described by a table. */
struct row {
    const char *name, *problem; /* NULL: the reference, or a default for any size */
    attn_origin exact, near;
    double penalty;
    int64_t max_seq_kv; /* 0: no limit */
    bool absent;        /* in a lean class: its binary is not stored */
};

enum { ROWS_MAX = 8 };

static const char *choose_in(const struct row *rows, bool lean, const char *problem,
                             attn_pick *pick) {
    static attn_loaded loaded[ROWS_MAX];
    static char storage[sizeof(attn_class) + ROWS_MAX * sizeof(attn_candidate)];
    attn_class *entry = (attn_class *)(void *)storage;
    memset(storage, 0, sizeof storage);
    memset(loaded, 0, sizeof loaded);
    for (; rows[entry->count].name; entry->count++) {
        const struct row *r = &rows[entry->count];
        attn_candidate *c = &entry->candidate[entry->count];
        c->loaded = lean && r->absent ? NULL : &loaded[entry->count];
        if (r->max_seq_kv) {
            c->loaded->launch.limits = 1;
            c->loaded->launch.limit[0] = (attn_limit){ATTN_FIELD_SEQ_KV, 0, r->max_seq_kv, 1};
        }
        c->exact = r->exact;
        c->near = r->near;
        c->penalty = r->penalty;
        c->family = (char *)(uintptr_t)r->name;
        if (r->problem) {
            c->problem = parse(r->problem);
            attn_candidate_sizes(&c->problem, c->log_size);
        }
    }
    attn_problem p = parse(problem);
    entry->lean = lean;
    *pick = attn_class_pick(entry, &p);
    return pick->candidate ? pick->candidate->family : "none";
}

static const char *choose(const struct row *rows, const char *problem, attn_origin *origin) {
    attn_pick pick;
    const char *name = choose_in(rows, false, problem, &pick);
    CHECK(pick.serves);
    *origin = pick.origin;
    return name;
}

#define USER ATTN_ORIGIN_USER, ATTN_ORIGIN_USER_NEAR
#define SYSTEM ATTN_ORIGIN_SYSTEM, ATTN_ORIGIN_SYSTEM_NEAR
#define ARCH ATTN_ORIGIN_ARCH, ATTN_ORIGIN_ARCH
#define DEFAULT ATTN_ORIGIN_DEFAULT, ATTN_ORIGIN_DEFAULT
#define REFERENCE ATTN_ORIGIN_REFERENCE, ATTN_ORIGIN_REFERENCE

static void test_steps(void) {
    static const struct row rows[] = {
        {"user-1k", "fwd:f32:b1:h4:s1024:d64", USER, 0, 0, false},
        {"user-4k-short", "fwd:f32:b1:h4:s4096:d64", USER, 0, 4096, false},
        {"system-1k", "fwd:f32:b1:h4:s1024:d64", SYSTEM, 0, 0, false},
        {"system-3k", "fwd:f32:b1:h4:s3000:d64", SYSTEM, 0, 0, false},
        {"arch-32k", "fwd:f32:b1:h4:s32768:d64", ARCH, 0, 0, false},
        {"default", NULL, DEFAULT, 0, 0, false},
        {"reference", NULL, REFERENCE, 0, 0, false},
        {0}};
    static const struct {
        const char *problem, *want;
        attn_origin origin;
    } cases[] = {
        {"fwd:f32:b1:h4:s1024:d64", "user-1k", ATTN_ORIGIN_USER},
        {"fwd:f32:b1:h4:s3000:d64", "system-3k", ATTN_ORIGIN_SYSTEM},
        {"fwd:f32:b1:h4:s3001:d64", "user-4k-short", ATTN_ORIGIN_USER_NEAR},
        {"fwd:f32:b1:h4:s4097:d64", "system-3k", ATTN_ORIGIN_SYSTEM_NEAR}, /* over its limit */
        {"fwd:f32:b1:h4:s1100:d64:bshd", "user-1k", ATTN_ORIGIN_USER_NEAR},
        {"fwd:f32:b1:h4:s512:d64", "user-1k", ATTN_ORIGIN_USER_NEAR}, /* a factor of 2 is near */
        {"fwd:f32:b1:h4:s511:d64", "default", ATTN_ORIGIN_DEFAULT},   /* a little more is not */
        {"fwd:f32:b1:h16:s1024:d64", "default", ATTN_ORIGIN_DEFAULT},
        {"fwd:f32:b1:h4:s32768:d64", "arch-32k", ATTN_ORIGIN_ARCH},
        {"fwd:f32:b1:h4:sq1024:sk0:d64", "default", ATTN_ORIGIN_DEFAULT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_origin origin = ATTN_ORIGIN_REFERENCE;
        CHECK_CASE("%s", cases[i].problem);
        CHECK_STR(choose(rows, cases[i].problem, &origin), cases[i].want);
        CHECK_EQ_INT(origin, cases[i].origin);
    }
    check_case[0] = '\0';
}

static void test_penalties(void) {
    static const struct row rows[] = {
        {"stale", "fwd:f32:b1:h4:s1024:d64", USER, 4, 0, false},
        {"other-threads", "fwd:f32:b1:h4:s1024:d64", USER, 0.5, 0, false},
        {"far", "fwd:f32:b1:h4:s1900:d64", USER, 0, 0, false},
        {0}};
    attn_origin origin;
    CHECK_STR(choose(rows, "fwd:f32:b1:h4:s1024:d64", &origin), "other-threads");
    CHECK_STR(choose(rows, "fwd:f32:b1:h4:s1025:d64", &origin), "far"); /* fresh before near */
    static const struct row only_stale[] = {
        {"stale", "fwd:f32:b1:h4:s1024:d64", USER, 4, 0, false},
        {"shipped", "fwd:f32:b1:h4:s1024:d64", SYSTEM, 0, 0, false},
        {0}};
    CHECK_STR(choose(only_stale, "fwd:f32:b1:h4:s1024:d64", &origin), "stale"); /* still a hit */
    static const struct row limited[] = {{"short", NULL, DEFAULT, 0, 100, false}, {0}};
    CHECK_STR(choose(limited, "fwd:f32:b1:h4:s1024:d64", &origin), "none");
}

/* One pick tells what a class of stored winners gives, and whether that is all there is. */
static void test_lean(void) {
    static const struct row rows[] = {
        {"stored-1k", "fwd:f32:b1:h4:s1024:d64", USER, 0, 0, false},
        {"absent-4k", "fwd:f32:b1:h4:s4096:d64", USER, 0, 0, true},
        {"short-16k", "fwd:f32:b1:h4:s16384:d64", USER, 0, 16384, false},
        {0}};
    static const struct {
        const char *problem, *want;
        bool serves;
    } cases[] = {{"fwd:f32:b1:h4:s1024:d64", "stored-1k", true},
                 {"fwd:f32:b1:h4:s1100:d64", "stored-1k", true},
                 {"fwd:f32:b1:h4:s4096:d64", "absent-4k", false},
                 {"fwd:f32:b1:h4:s16384:d64", "short-16k", true},
                 {"fwd:f32:b1:h4:s16385:d64", "none", false},
                 {"fwd:f32:b1:h4:s100:d64", "none", false}};
    attn_pick pick;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_CASE("%s", cases[i].problem);
        CHECK_STR(choose_in(rows, true, cases[i].problem, &pick), cases[i].want);
        CHECK_EQ_INT(pick.serves, cases[i].serves);
    }
    check_case[0] = '\0';
    pick = attn_class_pick(NULL, &(attn_problem){0});
    CHECK(!pick.candidate && !pick.serves);
}

/* The default of the preferred family that takes the shape, for the sizes nearest to it. */
static void test_defaults(void) {
    static const struct row rows[] = {
        {"first-short", "fwd:f32:b1:h1:s16:d64", DEFAULT, 0, 64, false},
        {"second-short", "fwd:f32:b1:h1:s16:d64", DEFAULT, 1, 0, false},
        {"second-long", "fwd:f32:b8:h1:s2048:d64", DEFAULT, 1, 0, false},
        {"third", "fwd:f32:b1:h8:s1024:d64", DEFAULT, 2, 0, false},
        {0}};
    static const struct {
        const char *problem, *want;
    } cases[] = {{"fwd:f32:b1:h1:s16:d64", "first-short"},
                 {"fwd:f32:b64:h8:s64:d64", "first-short"},
                 {"fwd:f32:b1:h1:s65:d64", "second-short"},
                 {"fwd:f32:b1:h8:s1024:d64", "second-long"},
                 {"fwd:f32:b1:h8:s100000:d64", "second-long"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_origin origin;
        CHECK_CASE("%s", cases[i].problem);
        CHECK_STR(choose(rows, cases[i].problem, &origin), cases[i].want);
        CHECK_EQ_INT(origin, ATTN_ORIGIN_DEFAULT);
    }
    check_case[0] = '\0';
}

static void test_table(void) {
    attn_problem a = parse("fwd:f32:b1:h4:s1024:d64:causal");
    attn_problem b = parse("fwd:f32:b9:h2:s77:d64:causal:bshd"); /* run-time fields differ */
    attn_problem other[] = {
        parse("fwd:f16:b1:h4:s1024:d64:causal"),      parse("fwd:f32:b1:h4:s1024:d32:causal"),
        parse("fwd:f32:b1:h4:s1024:d64:dv32:causal"), parse("fwd:f32:b1:h4:s1024:d64"),
        parse("fwd:f32:b1:h4:s1024:d64:causal:lse"),  parse("fwd:f32:b1:h4:s1024:d64:causal:a1")};
    attn_class entry = {.key = attn_class_key_of(&a)};
    attn_table *table = calloc(1, sizeof *table + sizeof table->entry[0]);
    if (!CHECK(table != NULL))
        return;
    table->count = 1;
    table->entry[0] = &entry;
    CHECK(attn_table_find(table, attn_class_key_of(&b)) == &entry);
    CHECK(attn_table_find(NULL, attn_class_key_of(&b)) == NULL);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        CHECK(attn_table_find(table, attn_class_key_of(&other[i])) == NULL);
    free(table);
}

int main(void) {
    test_steps();
    test_penalties();
    test_defaults();
    test_lean();
    test_table();
    return check_done();
}
