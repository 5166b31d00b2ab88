/* test_db_text.c: export, import and merge. */
#include <fcntl.h>
#include <unistd.h>

#include "db_fixture.h"

#include "db_internal.h"
#include "db_text.h"

static attn_error err;
static const attn_db_filter everything = {.limit = 0};

static char *export(attn_db *db, bool samples) {
    attn_str text = ATTN_STR_INIT;
    CHECK_OK(attn_db_export(db, &everything, samples, &text, &err), err.line);
    return attn_str_take(&text);
}

/* Three trials of two problems, one with an error of two lines; a decision and a running one. */
static attn_db *make(const char *name, int first) {
    attn_db *db = fixture_open(fixture_path(name));
    const double rounds[] = {10.5, 11.25};
    const attn_search_extent extent = {7.5, true};
    attn_trial_result bad = fixture_result(ATTN_OUTCOME_COMPILE_ERROR, 0);
    attn_trial_id id;
    attn_claim claim;
    fixture_trial t;
    attn_finalist winner = {fixture_run(db, first, 0, ATTN_OUTCOME_OK, 100.0 / 3), 10.75, 0.02, 2,
                            rounds};
    fixture_run(db, first + 1, 1, ATTN_OUTCOME_OK, 200);
    fixture_make(&t, first + 2, 0);
    CHECK_OK(attn_db_claim(db, &t.key, &claim, &id, &bad, &err), err.line);
    bad = fixture_result(ATTN_OUTCOME_COMPILE_ERROR, 0);
    snprintf(bad.error, sizeof bad.error, "toy.c:1: error\n  int x\n");
    CHECK_OK(attn_db_trial_end(db, &id, &bad, &err), err.line);
    CHECK_OK(attn_db_decide(db, &winner, 1, 12, &extent, &err), err.line);
    fixture_make(&t, first + 3, 0);
    CHECK_OK(attn_db_claim(db, &t.key, &claim, &id, &bad, &err), err.line);
    return db;
}

static void test_round_trip(void) {
    attn_db *db = make("a.db", 0);
    attn_db *copy = fixture_open(fixture_path("copy.db"));
    attn_db_counts counts;
    char *text = export(db, true), *again, *brief = export(db, false);
    CHECK_HAS(text, "attntune results 1\n");
    CHECK_HAS(text, "\n  error toy.c:1: error\n  error   int x\n  error\n");
    CHECK_HAS(text, "\n  race 200.0 201.0 202.0\n");
    CHECK_HAS(text, "\n  final 10.5 11.25\n");
    CHECK(!strstr(brief, "  race ") && !strstr(brief, "  final "));
    CHECK(!strstr(text, "running"));
    CHECK_OK(attn_db_import(copy, text, "a.txt", &counts, &err), err.line);
    CHECK_EQ_INT(counts.added, 3);
    CHECK_EQ_INT(counts.present, 0);
    again = export(copy, true);
    CHECK_STR(again, text);
    CHECK_OK(attn_db_import(copy, text, "a.txt", &counts, &err), err.line);
    CHECK_EQ_INT(counts.added, 0);
    CHECK_EQ_INT(counts.present, 3);
    free(again);
    again = export(copy, true);
    CHECK_STR(again, text);
    free(again);
    free(text);
    free(brief);
    attn_db_close(copy);
    attn_db_close(db);
}

static void test_export_filter(void) {
    attn_db *db = make("filter.db", 0), *copy = fixture_open(fixture_path("filtered.db"));
    attn_str text = ATTN_STR_INIT;
    attn_db_filter winners = {.winners = true};
    attn_db_counts counts;
    int64_t n;
    CHECK_OK(attn_db_export(db, &winners, false, &text, &err), err.line);
    CHECK_OK(attn_db_import(copy, attn_str_text(&text), "w.txt", &counts, &err), err.line);
    CHECK_EQ_INT(counts.added, 1);
    CHECK_OK(attn_db_ask(copy, "SELECT count(*) FROM build", &n, &err), err.line);
    CHECK_EQ_INT(n, 1);
    CHECK_OK(attn_db_ask(copy, "SELECT exhausted FROM trial WHERE rank = 1", &n, &err), err.line);
    CHECK_EQ_INT(n, 1);
    attn_str_free(&text);
    attn_db_close(copy);
    attn_db_close(db);
}

/* Ranks come over only where there is no winner. */
static void test_ranks(void) {
    attn_db *own = make("own.db", 10), *seed = make("seed.db", 20);
    attn_db_filter winners = {.winners = true};
    attn_db_counts counts;
    attn_db_rows rows;
    char *text = export(seed, true);
    CHECK_OK(attn_db_import(own, text, "seed.txt", &counts, &err), err.line);
    CHECK_EQ_INT(counts.added, 3);
    CHECK_OK(attn_db_find(own, &winners, &rows, &err), err.line);
    CHECK_EQ_INT(rows.count, 1);
    CHECK_STR(rows.row[0].variant.config, "N=10");
    attn_db_rows_free(&rows);
    free(text);
    attn_db_close(own);
    attn_db_close(seed);
}

static attn_db *merged(const char *name, const char *first, const char *second) {
    attn_db *db = fixture_open(fixture_path(name));
    attn_db_counts counts;
    CHECK_OK(attn_db_merge(db, fixture_path(first), &counts, &err), err.line);
    CHECK_OK(attn_db_merge(db, fixture_path(second), &counts, &err), err.line);
    return db;
}

static void test_merge(void) {
    attn_db *a = make("ma.db", 30), *b = make("mb.db", 40);
    attn_binary binary = {strdup("code"), 4, "", ATTN_STR_INIT, -1, -1, -1};
    attn_db_counts counts;
    fixture_trial t;
    int64_t n;
    fixture_make(&t, 40, 0);
    CHECK_OK(attn_db_binary_put(b, t.key.build, &binary, &err), err.line);
    fixture_run(a, 99, 3, ATTN_OUTCOME_OK, 5);
    attn_db *ab = merged("ab.db", "ma.db", "mb.db"), *ba = merged("ba.db", "mb.db", "ma.db");
    /* The same trials either way; the winner is of the one that came first. */
    CHECK_OK(attn_db_exec(ab,
                          "UPDATE trial SET rank = NULL, final_ns = NULL, band = NULL, "
                          "default_ns = NULL, searched_s = NULL, exhausted = 0;"
                          "DELETE FROM sample WHERE phase = 'final'",
                          &err),
             err.line);
    CHECK_OK(attn_db_ask(ba, "SELECT count(*) FROM trial WHERE rank = 1", &n, &err), err.line);
    CHECK_EQ_INT(n, 1);
    CHECK_OK(attn_db_ask(ba, "SELECT count(*) FROM sample WHERE phase = 'final'", &n, &err),
             err.line);
    CHECK_EQ_INT(n, 2);
    CHECK_OK(attn_db_exec(ba,
                          "UPDATE trial SET rank = NULL, final_ns = NULL, band = NULL, "
                          "default_ns = NULL, searched_s = NULL, exhausted = 0;"
                          "DELETE FROM sample WHERE phase = 'final'",
                          &err),
             err.line);
    char *one = export(ab, true), *two = export(ba, true);
    CHECK_STR(one, two);
    attn_binary_free(&binary);
    CHECK_OK(attn_db_binary_get(ab, t.key.build, &binary, &err), err.line);
    CHECK_EQ_INT(binary.size, 4);
    attn_binary_free(&binary);
    CHECK_OK(attn_db_merge(ab, fixture_path("mb.db"), &counts, &err), err.line);
    CHECK_EQ_INT(counts.added, 0);
    CHECK_EQ_INT(counts.present, 3);
    CHECK_OK(attn_db_ask(ab, "SELECT count(*) FROM trial WHERE outcome = 'running'", &n, &err),
             err.line);
    CHECK_EQ_INT(n, 0);
    CHECK_STATUS(attn_db_merge(a, fixture_path("ma.db"), &counts, &err), ATTN_ERR_INVALID,
                 err.line);
    CHECK_STATUS(attn_db_merge(a, fixture_path("none.db"), &counts, &err), ATTN_ERR_NOT_FOUND,
                 err.line);
    free(one);
    free(two);
    attn_db_close(a);
    attn_db_close(b);
    attn_db_close(ab);
    attn_db_close(ba);
}

/* A copy of the file has seen the end of a trial that is `lost` here. */
/* What is wrong with the source is told of the source. */
static void test_merge_of_a_broken_one(void) {
    attn_db *good = make("good.db", 80), *lacking = make("lacking.db", 85);
    attn_db_counts counts;
    attn_str page = ATTN_STR_INIT;
    CHECK_OK(attn_db_exec(lacking, "DROP TABLE sample", &err), err.line);
    attn_db_close(lacking);
    CHECK_STATUS(attn_db_merge(good, fixture_path("lacking.db"), &counts, &err), ATTN_ERR_DB, "");
    CHECK_HAS(err.line, "lacking.db: no such table: sample");
    attn_db_close(make("damaged.db", 90));
    while (page.size < 4096)
        attn_str_append(&page, "damage ");
    int fd = open(fixture_path("damaged.db"), O_WRONLY);
    for (int i = 1; i < 30; i++)
        CHECK_EQ_INT(pwrite(fd, attn_str_text(&page), 4096, (off_t)i * 4096), 4096);
    close(fd);
    CHECK_STATUS(attn_db_merge(good, fixture_path("damaged.db"), &counts, &err), ATTN_ERR_DB, "");
    CHECK_HAS(err.line, "damaged.db: damaged");
    CHECK_OK(attn_db_merge(good, fixture_path("mb.db"), &counts, &err), err.line);
    attn_str_free(&page);
    attn_db_close(good);
}

static void test_merge_of_a_copy(void) {
    attn_db *a = make("live.db", 50), *b;
    attn_db_counts counts;
    int64_t n;
    attn_str bytes = ATTN_STR_INIT;
    CHECK_OK(attn_db_exec(a, "PRAGMA wal_checkpoint(TRUNCATE)", &err), err.line);
    CHECK_OK(attn_str_read_file(&bytes, fixture_path("live.db"), &err), err.line);
    FILE *f = fopen(fixture_path("copied.db"), "wb");
    CHECK_EQ_INT(f ? fwrite(bytes.data, 1, bytes.size, f) : 0, bytes.size);
    if (f)
        fclose(f);
    attn_str_free(&bytes);
    b = fixture_open(fixture_path("copied.db"));
    CHECK_OK(attn_db_exec(b,
                          "UPDATE trial SET outcome = 'lost', ended = 1 WHERE outcome = "
                          "'running'",
                          &err),
             err.line);
    CHECK_OK(attn_db_exec(a,
                          "UPDATE trial SET outcome = 'ok', median_ns = 5, ended = 2 WHERE "
                          "outcome = 'running'",
                          &err),
             err.line);
    CHECK_OK(attn_db_merge(b, fixture_path("live.db"), &counts, &err), err.line);
    CHECK_EQ_INT(counts.added, 0);
    CHECK_OK(attn_db_ask(b, "SELECT count(*) FROM trial WHERE outcome = 'lost'", &n, &err),
             err.line);
    CHECK_EQ_INT(n, 0);
    attn_db_close(a);
    attn_db_close(b);
}

/* Every fault names its line, and leaves the database as it was. */
static void test_faults(void) {
    static const struct {
        const char *from, *to, *line;
    } rows[] = {
        {"attntune results 1", "attntune results 2", "f.txt:1: not an export"},
        {"\ntrial ", "\ntrail ", "begins no record; did you mean 'trial NAME'?"},
        {"  median_ns ", "  median_nz ", "no field 'median_nz'; did you mean 'median_ns'?"},
        {"  median_ns ", "median_ns ", "begins no record"},
        {"  median_ns ", "   median_ns ", "has no field ''"},
        {"  outcome ok", "  outcome okay", "'okay' is no outcome"},
        {"  outcome ok", "  outcome running", "a running trial cannot be imported"},
        {"  threads 2", "  threads two", "threads 'two' is not a number from 0 to 65536"},
        {"  threads 2", "  threads -3", "threads '-3' is not a number from 0"},
        {"  threads 2\n", "", "the trial has no threads"},
        {"  mode cold", "  mode warm", "mode 'warm' is neither cold nor hot"},
        {"  median_ns ", "  median_ns -", "is not a number from 0.001 to 1e+15"},
        {"  median_ns ", "  median_ns nan\n  final_ns ", "median_ns 'nan' is not a number"},
        {"  median_ns ", "  median_ns 1e999\n  final_ns ", "median_ns '1e999' is not a number"},
        {"  rank 1\n", "  rank 0\n", "the trial breaks a rule of the database"},
        {"  abi 1\n", "  abi 9223372036854775808\n", "is not a whole number"},
        {"  abi 1\n", "  abi 1 x\n", "abi '1 x' is not a whole number"},
        {"  abi 1\n", "  abi -1\n", "abi '-1' is not a whole number"},
        {"  launch step", "  launch zero_bytes 0 x\n  launch step",
         "zero_bytes has one value, and 'x' follows it"},
        {"\nend 12\n", "\nend 13\n", "the end counts 13 records, but there are 12"},
        {"\nend 12\n", "\nend 12 \n", "the end counts 12 "},
        {"\nend 12\n", "\nend 12\n\nend 12\n", "'end 12' stands behind the end"},
        {"\nend 12\n", "\n", "cut off: the last line of an export is 'end'"},
        {"  race 200.0 ", "  race 200.0 x", "cannot store TEXT value in REAL column"},
        {"problem fwd:f32:b1:h1:s128:d64", "problem fwd:f32:b1:h1:s128:d65",
         "no problem fwd:f32:b1:h1:s128:d64 stands before this"},
        {"  problem fwd:f32", "  problem fwd:f33", "f33"},
        {"  toolchain gcc", "  toolchain gxx", "the build's hash does not fit"},
        {"  info identity toy", "  info identity toi", "the device's hash does not fit"},
        {"  launch step", "  launch stop", "f.txt:"},
        {"\ntrial 0", "\ntrial z", "is not 32 hex digits"},
    };
    attn_db *db = make("faults.db", 60), *empty = fixture_open(fixture_path("empty.db"));
    attn_db_counts counts;
    int64_t n;
    CHECK_OK(attn_db_exec(db,
                          "PRAGMA foreign_keys=OFF; UPDATE trial SET id = '0' || "
                          "substr(id, 2); UPDATE sample SET trial_id = '0' || "
                          "substr(trial_id, 2)",
                          &err),
             err.line);
    char *text = export(db, true);
    CHECK_OK(
        attn_db_import(empty, "attntune results 1\n\n# nothing\nend 0\n", "f.txt", &counts, &err),
        err.line);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_CASE("%s", rows[i].to);
        const char *at = strstr(text, rows[i].from);
        attn_str broken = ATTN_STR_INIT;
        if (!CHECK(at != NULL))
            continue;
        attn_str_append_bytes(&broken, text, (size_t)(at - text));
        attn_str_append(&broken, rows[i].to);
        attn_str_append(&broken, at + strlen(rows[i].from));
        CHECK_STATUS(attn_db_import(empty, attn_str_text(&broken), "f.txt", &counts, &err),
                     ATTN_ERR_INVALID, err.line);
        CHECK_HAS(err.line, rows[i].line);
        CHECK_HAS(err.line, "f.txt:");
        attn_str_free(&broken);
    }
    CHECK_CASE("%s", "");
    CHECK_OK(attn_db_ask(empty,
                         "SELECT (SELECT count(*) FROM trial) + (SELECT count(*) FROM "
                         "device) + (SELECT count(*) FROM problem)",
                         &n, &err),
             err.line);
    CHECK_EQ_INT(n, 0);
    for (size_t size = strlen(text) - 2; size > 100; size -= 7) { /* wherever it is cut off */
        char kept = text[size];
        text[size] = '\0';
        CHECK_STATUS(attn_db_import(empty, text, "f.txt", &counts, &err), ATTN_ERR_INVALID,
                     err.line);
        text[size] = kept;
    }
    CHECK_STATUS(attn_db_import(empty, "", "f.txt", &counts, &err), ATTN_ERR_INVALID, err.line);
    CHECK_OK(attn_db_import(empty, text, "f.txt", &counts, &err), err.line);
    CHECK_EQ_INT(counts.added, 3);
    free(text);
    attn_db_close(db);
    attn_db_close(empty);
}

int main(void) {
    fixture_begin();
    test_round_trip();
    test_export_filter();
    test_ranks();
    test_merge();
    test_merge_of_a_copy();
    test_merge_of_a_broken_one();
    test_faults();
    fixture_end();
    return check_done();
}
