/* test_db_binary.c: binaries, their caps, damage, pruning and checking. */
#include "db_fixture.h"

#include "db_internal.h"

static attn_error err;

static attn_hash build_of(int n, int p) {
    fixture_trial t;
    fixture_make(&t, n, p);
    return t.key.build;
}

static attn_status put(attn_db *db, int n, int p, const char *text) {
    attn_binary binary = ATTN_BINARY_INIT;
    binary.data = strdup(text);
    binary.size = strlen(text);
    binary.registers = 40 + n;
    attn_status status = attn_db_binary_put(db, build_of(n, p), &binary, &err);
    attn_binary_free(&binary);
    return status;
}

static bool has(attn_db *db, int n, int p) {
    attn_binary binary;
    attn_status status = attn_db_binary_get(db, build_of(n, p), &binary, &err);
    CHECK(status == ATTN_OK || status == ATTN_ERR_NOT_FOUND);
    attn_binary_free(&binary);
    return status == ATTN_OK;
}

static void report(void *user, const char *line) {
    snprintf(user, 1024, "%s", line);
}

static size_t faults(attn_db *db, char line[1024]) {
    size_t n = 99;
    line[0] = '\0';
    CHECK_OK(attn_db_check(db, report, line, &n, &err), err.line);
    return n;
}

static void test_round_trip(void) {
    attn_db *db = fixture_open(fixture_path("binary.db"));
    attn_binary binary;
    char line[1024], key[ATTN_HASH_TEXT];
    CHECK_STATUS(put(db, 1, 0, "code"), ATTN_ERR_NOT_FOUND, err.line);
    fixture_run(db, 1, 0, ATTN_OUTCOME_OK, 100);
    CHECK(!has(db, 1, 0));
    CHECK_OK(put(db, 1, 0, "code"), err.line);
    CHECK_OK(attn_db_binary_get(db, build_of(1, 0), &binary, &err), err.line);
    attn_hash_print(build_of(1, 0), key);
    CHECK_STR(binary.key, key);
    CHECK_EQ_INT(binary.size, 4);
    CHECK(binary.data && memcmp(binary.data, "code", 4) == 0);
    CHECK_EQ_INT(binary.registers, 41);
    CHECK_EQ_INT(binary.spills, -1);
    attn_binary_free(&binary);
    CHECK_EQ_INT(faults(db, line), 0);
    CHECK_OK(attn_db_exec(db, "UPDATE build SET binary = x'636f6465ff'", &err), err.line);
    CHECK_STATUS(attn_db_binary_get(db, build_of(1, 0), &binary, &err), ATTN_ERR_DB, err.line);
    CHECK(!binary.data);
    CHECK_EQ_INT(faults(db, line), 1);
    CHECK_HAS(line, "the binary is damaged");
    attn_db_close(db);
}

static void test_caps(void) {
    attn_db *db = fixture_open(fixture_path("caps.db"));
    for (int n = 0; n < 25; n++) {
        fixture_run(db, n, 0, ATTN_OUTCOME_OK, 200 - n);
        CHECK_OK(put(db, n, 0, "0123456789"), err.line);
    }
    for (int n = 0; n < 25; n++)
        CHECK_EQ_INT(has(db, n, 0), n >= 5); /* the slowest have gone */
    attn_finalist slow = {fixture_run(db, 30, 0, ATTN_OUTCOME_OK, 900), 900, 0, 0, NULL};
    attn_search_extent extent = {0, false};
    CHECK_OK(put(db, 30, 0, "0123456789"), err.line);
    CHECK(!has(db, 30, 0));
    CHECK_OK(attn_db_decide(db, &slow, 1, 900, &extent, &err), err.line);
    CHECK_OK(put(db, 30, 0, "0123456789"), err.line);
    CHECK(has(db, 30, 0)); /* a winner, however slow */
    CHECK(!has(db, 5, 0));
    fixture_run(db, 24, 1, ATTN_OUTCOME_OK, 50);
    fixture_run(db, 6, 1, ATTN_OUTCOME_OK, 60); /* second of another problem */
    CHECK_OK(attn_db_trim(db, 20, 35, &err), err.line);
    CHECK(has(db, 30, 0) && has(db, 24, 0) && has(db, 6, 0));
    CHECK(!has(db, 23, 0) && !has(db, 7, 0));
    CHECK_OK(attn_db_trim(db, 20, 15, &err), err.line);
    CHECK(has(db, 30, 0) && !has(db, 24, 0)); /* winners last */
    attn_db_close(db);
}

/* A build that is about to be tried has no place yet, and one that failed never gets one. */
static void test_running_and_failed(void) {
    attn_db *db = fixture_open(fixture_path("running.db"));
    fixture_trial t;
    attn_claim claim;
    attn_trial_id id;
    attn_trial_result found;
    fixture_make(&t, 1, 0);
    CHECK_OK(attn_db_claim(db, &t.key, &claim, &id, &found, &err), err.line);
    CHECK_OK(put(db, 1, 0, "code"), err.line);
    CHECK(has(db, 1, 0));
    found = fixture_result(ATTN_OUTCOME_CRASH, 0);
    CHECK_OK(attn_db_trial_end(db, &id, &found, &err), err.line);
    CHECK_OK(attn_db_trim(db, 20, 1000, &err), err.line);
    CHECK(!has(db, 1, 0));
    attn_db_close(db);
}

static bool keep_even(void *user, const attn_db_row *row) {
    (void)user;
    return (row->variant.config[2] - '0') % 2 == 0;
}

static void test_prune(void) {
    attn_db *db = fixture_open(fixture_path("prune.db"));
    attn_db_counts dropped;
    int64_t n;
    char line[1024];
    for (int i = 0; i < 4; i++)
        fixture_run(db, i, i % 2, ATTN_OUTCOME_OK, 100);
    CHECK_OK(attn_db_prune(db, keep_even, NULL, &dropped, &err), err.line);
    CHECK_EQ_INT(dropped.added, 2);
    CHECK_EQ_INT(dropped.present, 2);
    static const char *const two[] = {"trial", "build", "variant"};
    static const char *const one[] = {"problem", "device", "toolchain", "session"};
    for (size_t i = 0; i < 7; i++) {
        char query[64];
        snprintf(query, sizeof query, "SELECT count(*) FROM %s", i < 3 ? two[i] : one[i - 3]);
        CHECK_CASE("%s", query);
        CHECK_OK(attn_db_ask(db, query, &n, &err), err.line);
        CHECK_EQ_INT(n, i < 3 ? 2 : 1);
    }
    CHECK_CASE("%s", "");
    CHECK_OK(attn_db_ask(db, "SELECT count(*) FROM sample", &n, &err), err.line);
    CHECK_EQ_INT(n, 6);
    CHECK_EQ_INT(faults(db, line), 0);
    attn_db_close(db);
}

static void test_check(void) {
    static const struct {
        const char *damage, *line;
    } rows[] = {
        {"UPDATE problem SET text = 'fwd:f32:b1:h1:s128:d63'", "problem fwd:f32:b1:h1:s128:d63"},
        {"UPDATE problem SET text = 'fwd:f32:h1:b1:s128:d64'", "not in canonical form"},
        {"UPDATE problem SET text = 'nonsense'", "problem nonsense"},
        {"UPDATE device SET name = 'Other'", "its columns differ"},
        {"UPDATE device SET info = 'nonsense'", "no line of a device description"},
        {"UPDATE variant SET launch = 'step'", "variant cpu/toy N=1"},
        {"UPDATE variant SET source_hash = 'xyz'", "not 32 hex digits"},
        {"UPDATE build SET target = 'cpu:avx512'", "its hash is another build's"},
        {"PRAGMA foreign_keys=OFF; UPDATE trial SET device_id = 77", "refers to no device"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[32], line[1024];
        CHECK_CASE("%s", rows[i].damage);
        snprintf(name, sizeof name, "check%zu.db", i);
        attn_db *db = fixture_open(fixture_path(name));
        fixture_run(db, 1, 0, ATTN_OUTCOME_OK, 100);
        CHECK_EQ_INT(faults(db, line), 0);
        CHECK_OK(attn_db_exec(db, rows[i].damage, &err), err.line);
        CHECK(faults(db, line) >= 1);
        if (i > 0)
            CHECK_HAS(line, rows[i].line);
        attn_db_close(db);
    }
    CHECK_CASE("%s", "");
}

int main(void) {
    fixture_begin();
    test_round_trip();
    test_caps();
    test_running_and_failed();
    test_prune();
    test_check();
    fixture_end();
    return check_done();
}
