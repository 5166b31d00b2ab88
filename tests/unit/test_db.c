/* test_db.c: the life of trials in one process: claim, end, drop, decide, find. */
#include "db_fixture.h"

#include "db_internal.h"

static attn_error err;

static attn_claim claim(attn_db *db, int n, int p, attn_trial_id *id, attn_trial_result *result) {
    fixture_trial t;
    attn_claim got = ATTN_CLAIM_TAKEN;
    fixture_make(&t, n, p);
    CHECK_OK(attn_db_claim(db, &t.key, &got, id, result, &err), err.line);
    return got;
}

static void test_claims(void) {
    attn_db *db = fixture_open(fixture_path("claims.db")), *other;
    attn_trial_id id, again;
    attn_trial_result result = fixture_result(ATTN_OUTCOME_OK, 100), found;
    CHECK_EQ_INT(claim(db, 1, 0, &id, &found), ATTN_CLAIM_MINE);
    CHECK_EQ_INT(claim(db, 1, 0, &again, &found), ATTN_CLAIM_TAKEN);
    other = fixture_open(fixture_path("claims.db"));
    CHECK_EQ_INT(claim(other, 1, 0, &again, &found), ATTN_CLAIM_TAKEN);
    CHECK_STATUS(attn_db_trial_end(other, &id, &result, &err), ATTN_ERR_NOT_FOUND, err.line);
    CHECK_OK(attn_db_trial_end(db, &id, &result, &err), err.line);
    CHECK_EQ_INT(claim(other, 1, 0, &again, &found), ATTN_CLAIM_DONE);
    CHECK_STR(again.text, id.text);
    CHECK_EQ_INT(found.outcome, ATTN_OUTCOME_OK);
    CHECK_EQ_INT(found.samples, 3);
    CHECK_NEAR(found.sample_ns[2], 102, 0);
    CHECK(isnan(found.clock_mhz));
    CHECK_EQ_INT(claim(other, 1, 1, &again, &found), ATTN_CLAIM_MINE); /* another problem */
    CHECK_OK(attn_db_trial_drop(other, &again, &err), err.line);
    CHECK_EQ_INT(claim(db, 1, 1, &again, &found), ATTN_CLAIM_MINE);
    attn_db_close(other);
    attn_db_close(db);
}

/* What a later claim of the same trial finds, in the same session and in the next one. */
static void test_finality(void) {
    static const struct {
        attn_outcome outcome;
        attn_claim same_session, next_session, other_problem;
    } rows[] = {
        {ATTN_OUTCOME_OK, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE},
        {ATTN_OUTCOME_WRONG, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE},
        {ATTN_OUTCOME_COMPILE_ERROR, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE},
        {ATTN_OUTCOME_LOAD_ERROR, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE},
        {ATTN_OUTCOME_LAUNCH_ERROR, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE},
        {ATTN_OUTCOME_PRUNED, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE},
        {ATTN_OUTCOME_CRASH, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE},
        {ATTN_OUTCOME_TIMEOUT, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE, ATTN_CLAIM_MINE},
        {ATTN_OUTCOME_OOM, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE, ATTN_CLAIM_MINE},
    };
    attn_db *db = fixture_open(fixture_path("final.db"));
    attn_db *next = fixture_open(fixture_path("final.db"));
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        attn_trial_id id;
        attn_trial_result found;
        CHECK_CASE("%s", attn_outcome_name(rows[i].outcome));
        fixture_run(db, i, 0, rows[i].outcome, 100);
        CHECK_EQ_INT(claim(db, i, 0, &id, &found), rows[i].same_session);
        CHECK_EQ_INT(found.outcome, rows[i].outcome);
        CHECK_OK(attn_db_session_begin(next, "next", &err), err.line);
        CHECK_EQ_INT(claim(next, i, 0, &id, &found), rows[i].next_session);
        CHECK_EQ_INT(claim(next, i, 1, &id, &found), rows[i].other_problem);
    }
    CHECK_CASE("%s", "");
    attn_db_close(next);
    attn_db_close(db);
}

/* A session that began before another one's attempt at it ended need not try again. */
static void test_side_by_side(void) {
    attn_db *db = fixture_open(fixture_path("side.db")),
            *other = fixture_open(fixture_path("side.db"));
    attn_trial_id id;
    attn_trial_result found;
    fixture_run(db, 1, 0, ATTN_OUTCOME_TIMEOUT, 0);
    CHECK_OK(attn_db_exec(db, "UPDATE session SET begun = begun - 2", &err), err.line);
    CHECK_EQ_INT(claim(other, 1, 0, &id, &found), ATTN_CLAIM_DONE);
    CHECK_OK(attn_db_session_begin(other, "later", &err), err.line);
    CHECK_EQ_INT(claim(other, 1, 0, &id, &found), ATTN_CLAIM_MINE);
    attn_db_close(other);
    attn_db_close(db);
}

static void test_decide(void) {
    attn_db *db = fixture_open(fixture_path("decide.db"));
    const double rounds[] = {99, 101, 100};
    attn_trial_id a = fixture_run(db, 1, 0, ATTN_OUTCOME_OK, 100);
    attn_trial_id b = fixture_run(db, 2, 0, ATTN_OUTCOME_OK, 200);
    attn_trial_id far = fixture_run(db, 2, 1, ATTN_OUTCOME_OK, 300);
    attn_trial_id bad = fixture_run(db, 3, 0, ATTN_OUTCOME_WRONG, 0);
    attn_finalist finalists[] = {{a, 100, 0.01, 3, rounds}, {b, 201, 0.01, 3, rounds}};
    attn_finalist swapped[] = {{b, 99, 0.02, 3, rounds}};
    attn_finalist mixed[] = {{a, 1, 0, 0, NULL}, {far, 1, 0, 0, NULL}};
    attn_finalist twice[] = {{a, 1, 0, 0, NULL}, {a, 1, 0, 0, NULL}};
    attn_finalist wrong[] = {{bad, 1, 0, 0, NULL}};
    const attn_search_extent extent = {12.5, true};
    attn_db_rows rows;
    attn_db_filter winners = {.winners = true}, all = {.finalists = true};
    CHECK_OK(attn_db_decide(db, finalists, 2, 150, &extent, &err), err.line);
    CHECK_OK(attn_db_find(db, &all, &rows, &err), err.line);
    CHECK_EQ_INT(rows.count, 2);
    CHECK_STR(rows.row[0].id.text, a.text);
    CHECK_NEAR(rows.row[0].final_ns, 100, 0);
    CHECK_NEAR(rows.row[0].default_ns, 150, 0);
    CHECK_NEAR(rows.row[0].band, 0.01, 0);
    CHECK_EQ_INT(rows.row[1].rank, 2);
    CHECK_NEAR(rows.row[0].extent.seconds, 12.5, 0);
    CHECK(rows.row[0].extent.exhausted && !rows.row[1].extent.exhausted);
    attn_db_rows_free(&rows);
    CHECK_STATUS(attn_db_decide(db, mixed, 2, 1, &extent, &err), ATTN_ERR_INVALID, err.line);
    CHECK_STATUS(attn_db_decide(db, twice, 2, 1, &extent, &err), ATTN_ERR_INVALID, err.line);
    CHECK_STATUS(attn_db_decide(db, wrong, 1, 1, &extent, &err), ATTN_ERR_INVALID, err.line);
    CHECK_OK(attn_db_find(db, &all, &rows, &err), err.line);
    CHECK_EQ_INT(rows.count, 2); /* as if nothing had been asked */
    attn_db_rows_free(&rows);
    CHECK_OK(attn_db_decide(db, swapped, 1, 150, &extent, &err), err.line);
    CHECK_OK(attn_db_find(db, &all, &rows, &err), err.line);
    CHECK_EQ_INT(rows.count, 1);
    CHECK_STR(rows.row[0].id.text, b.text);
    attn_db_rows_free(&rows);
    CHECK_OK(attn_db_find(db, &winners, &rows, &err), err.line);
    CHECK_EQ_INT(rows.count, 1);
    attn_db_rows_free(&rows);
    attn_db_close(db);
}

static size_t count(attn_db *db, const attn_db_filter *filter) {
    attn_db_rows rows;
    size_t n;
    CHECK_OK(attn_db_find(db, filter, &rows, &err), err.line);
    n = rows.count;
    attn_db_rows_free(&rows);
    return n;
}

static void test_find(void) {
    attn_db *db = fixture_open(fixture_path("find.db"));
    fixture_trial t, same, other;
    attn_trial_id id;
    attn_trial_result found;
    fixture_make(&t, 2, 1);
    fixture_make(&same, 0, 0);
    fixture_make(&other, 0, 0);
    snprintf(same.device.identity, sizeof same.device.identity, "toy 4 5 6");
    snprintf(other.device.arch, sizeof other.device.arch, "cpu:neon");
    for (int n = 0; n < 3; n++)
        for (int p = 0; p < 2; p++)
            fixture_run(db, n, p, n == 2 ? ATTN_OUTCOME_OOM : ATTN_OUTCOME_OK, 100 - n);
    CHECK_EQ_INT(claim(db, 7, 0, &id, &found), ATTN_CLAIM_MINE);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.ended = false}), 7);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.ended = true}), 6);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.limit = 4}), 4);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.problem = &t.problem}), 3);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.class_text = "fwd:f32:d64:dv64:none:a16"}), 7);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.class_text = "fwd:f16:d64:dv64:none:a16"}), 0);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.family = "cpu/toy"}), 7);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.family = "cpu/other"}), 0);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.variant = t.variant.hash}), 2);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.device = &t.device}), 7);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.device = &same.device}), 0);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.device = &same.device, .same_arch = true}), 7);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.device = &other.device, .same_arch = true}), 0);
    CHECK_EQ_INT(count(db, &(attn_db_filter){.winners = true}), 0);
    attn_db_rows rows;
    CHECK_OK(attn_db_find(db, &(attn_db_filter){.problem = &t.problem}, &rows, &err), err.line);
    CHECK_NEAR(rows.row[0].result.median_ns, 99, 0); /* the fastest first, failures last */
    CHECK_EQ_INT(rows.row[2].result.outcome, ATTN_OUTCOME_OOM);
    CHECK_STR(rows.row[0].variant.config, "N=1");
    CHECK_STR(rows.row[0].device_name, "Toy CPU");
    CHECK_STR(rows.row[0].toolchain, "gcc 12");
    CHECK(rows.row[0].ended > 0 && !rows.row[0].has_binary && rows.row[0].threads == 2);
    attn_db_rows_free(&rows);
    attn_db_close(db);
}

/* With `again`, what failed is tried once more, but what was wrong stays so; and a build that has
 * compiled is no compile error any more. */
static void test_again(void) {
    static const struct {
        attn_outcome outcome;
        attn_claim plain, again;
    } rows[] = {{ATTN_OUTCOME_OK, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE},
                {ATTN_OUTCOME_PRUNED, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE},
                {ATTN_OUTCOME_WRONG, ATTN_CLAIM_DONE, ATTN_CLAIM_DONE},
                {ATTN_OUTCOME_COMPILE_ERROR, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE},
                {ATTN_OUTCOME_LOAD_ERROR, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE},
                {ATTN_OUTCOME_CRASH, ATTN_CLAIM_DONE, ATTN_CLAIM_MINE}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    const char *path = fixture_path("again.db");
    attn_trial_result found, ok = fixture_result(ATTN_OUTCOME_OK, 5);
    attn_trial_id id;
    attn_claim claim;
    fixture_trial t;
    attn_db *db = fixture_open(path);
    for (int i = 0; i < ROWS; i++)
        fixture_run(db, i, 0, rows[i].outcome, 5);
    CHECK_OK(attn_db_exec(db, "UPDATE trial SET ended = ended - 10", &err), err.line);
    attn_db_close(db);
    db = fixture_open(path);
    for (int i = 0; i < ROWS; i++) {
        CHECK_CASE("%s", attn_outcome_name(rows[i].outcome));
        fixture_make(&t, i, 0);
        CHECK_OK(attn_db_claim(db, &t.key, &claim, &id, &found, &err), err.line);
        CHECK_EQ_INT(claim, rows[i].plain);
        t.key.again = true;
        CHECK_OK(attn_db_claim(db, &t.key, &claim, &id, &found, &err), err.line);
        CHECK_EQ_INT(claim, rows[i].again);
        if (claim != ATTN_CLAIM_MINE)
            continue;
        CHECK_OK(attn_db_trial_end(db, &id, &ok, &err), err.line);
        CHECK_OK(attn_db_claim(db, &t.key, &claim, &id, &found, &err), err.line);
        CHECK(claim == ATTN_CLAIM_DONE && found.outcome == ATTN_OUTCOME_OK);
        fixture_make(&t, i, 1); /* the same build for another problem */
        CHECK_OK(attn_db_claim(db, &t.key, &claim, &id, &found, &err), err.line);
        CHECK_EQ_INT(claim, ATTN_CLAIM_MINE);
    }
    check_case[0] = '\0';
    attn_db_close(db);
}

int main(void) {
    fixture_begin();
    test_claims();
    test_finality();
    test_again();
    test_side_by_side();
    test_decide();
    test_find();
    fixture_end();
    return check_done();
}
