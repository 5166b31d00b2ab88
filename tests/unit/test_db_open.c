/* test_db_open.c: whose file it is, who could change it, where it is, and bringing it up to date.
 */
#include "db_fixture.h"

#include <fcntl.h>

#include "core/str.h"
#include "db_internal.h"

static attn_error err;

static void write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!CHECK(f != NULL))
        exit(1);
    CHECK_EQ_INT(fwrite(data, 1, size, f), size);
    fclose(f);
}

static attn_status try_open(const char *path, attn_db_mode mode) {
    attn_db *db;
    attn_status status = attn_db_open(path, mode, &db, &err);
    CHECK_EQ_INT(status == ATTN_OK, db != NULL);
    if (status != ATTN_OK) {
        CHECK(!strchr(err.line, '\n'));
        CHECK(strlen(err.line) > 20);
    }
    attn_db_close(db);
    return status;
}

/* A closed database with a few trials: everything is in the one file. */
static void make_database(const char *path, int trials) {
    attn_db *db = fixture_open(path);
    for (int i = 0; i < trials; i++)
        fixture_run(db, i, 0, ATTN_OUTCOME_OK, 100);
    attn_db_close(db);
}

static void test_fresh(void) {
    const char *path = fixture_path("deep/er/fresh.db");
    struct stat st;
    attn_db *db;
    int64_t n;
    CHECK_STATUS(try_open(path, ATTN_DB_READ), ATTN_ERR_NOT_FOUND, err.line);
    CHECK_STATUS(try_open(path, ATTN_DB_SYSTEM), ATTN_ERR_NOT_FOUND, err.line);
    CHECK_OK(attn_db_open(path, ATTN_DB_WRITE, &db, &err), err.line);
    CHECK_EQ_INT(stat(fixture_path("deep"), &st), 0);
    CHECK_EQ_INT(st.st_mode & 0777, 0700);
    CHECK_HAS(attn_db_path(db), "deep/er/fresh.db");
    CHECK_OK(attn_db_ask(db, "PRAGMA application_id", &n, &err), err.line);
    CHECK_EQ_INT(n, 0x41545455);
    CHECK_OK(attn_db_ask(db, "PRAGMA user_version", &n, &err), err.line);
    CHECK_EQ_INT(n, attn_db_version(attn_db_files, attn_db_files_count));
    CHECK_OK(attn_db_ask(db, "PRAGMA synchronous", &n, &err), err.line);
    CHECK_EQ_INT(n, 2);
    CHECK_OK(attn_db_ask(db, "PRAGMA foreign_keys", &n, &err), err.line);
    CHECK_EQ_INT(n, 1);
    CHECK_OK(attn_db_ask(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &n, &err),
             err.line);
    CHECK_EQ_INT(n, 1);
    CHECK_OK(attn_db_ask(db,
                         "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND "
                         "NOT strict AND name NOT LIKE 'sqlite%'",
                         &n, &err),
             err.line);
    CHECK_EQ_INT(n, 0);
    attn_db_close(db);
    CHECK_OK(try_open(path, ATTN_DB_READ), err.line);
    CHECK_OK(try_open(path, ATTN_DB_SYSTEM), err.line);
    write_file(fixture_path("zero.db"), "", 0);
    CHECK_STATUS(try_open(fixture_path("zero.db"), ATTN_DB_READ), ATTN_ERR_NOT_FOUND, err.line);
    CHECK_OK(try_open(fixture_path("zero.db"), ATTN_DB_WRITE), err.line);
    CHECK_OK(try_open(fixture_path("odd % ? # name.db"), ATTN_DB_WRITE), err.line);
    CHECK_OK(try_open(fixture_path("odd % ? # name.db"), ATTN_DB_SYSTEM), err.line);
    CHECK_STATUS(try_open(fixture_folder, ATTN_DB_WRITE), ATTN_ERR_DB_UNSAFE, err.line);
    CHECK_STATUS(try_open(fixture_path("zero.db/x.db"), ATTN_DB_WRITE), ATTN_ERR_IO, err.line);
}

/* Readers do not create, and cannot change. */
static void test_reading(void) {
    attn_db *db;
    attn_db_rows rows;
    attn_db_filter all = {.limit = 0};
    make_database(fixture_path("read.db"), 3);
    for (int mode = ATTN_DB_READ; mode <= ATTN_DB_SYSTEM; mode++) {
        CHECK_OK(attn_db_open(fixture_path("read.db"), (attn_db_mode)mode, &db, &err), err.line);
        CHECK_OK(attn_db_find(db, &all, &rows, &err), err.line);
        CHECK_EQ_INT(rows.count, 3);
        attn_db_rows_free(&rows);
        CHECK_STATUS(attn_db_session_begin(db, "test", &err), ATTN_ERR_IO, err.line);
        attn_db_close(db);
    }
    CHECK(access(fixture_path("none.db"), F_OK) != 0);
    attn_db *writer = fixture_open(fixture_path("read.db")); /* and keeps it open */
    fixture_run(writer, 7, 0, ATTN_OUTCOME_OK, 100);
    CHECK_OK(attn_db_open(fixture_path("read.db"), ATTN_DB_SYSTEM, &db, &err), err.line);
    CHECK_OK(attn_db_find(db, &all, &rows, &err), err.line);
    CHECK_EQ_INT(rows.count, 4);
    attn_db_rows_free(&rows);
    attn_db_close(db);
    attn_db_close(writer);
}

static void test_strangers(void) {
    static const char page[8192] = "not a database at all, but long enough to look like a file";
    attn_db *db;
    write_file(fixture_path("garbage.db"), page, sizeof page);
    make_database(fixture_path("newer.db"), 1);
    make_database(fixture_path("foreign.db"), 1);
    CHECK_OK(attn_db_open(fixture_path("newer.db"), ATTN_DB_WRITE, &db, &err), err.line);
    CHECK_OK(attn_db_exec(db, "PRAGMA user_version=999", &err), err.line);
    attn_db_close(db);
    CHECK_OK(attn_db_open(fixture_path("foreign.db"), ATTN_DB_WRITE, &db, &err), err.line);
    CHECK_OK(attn_db_exec(db, "PRAGMA application_id=7", &err), err.line);
    attn_db_close(db);
    for (int mode = ATTN_DB_WRITE; mode <= ATTN_DB_SYSTEM; mode++) {
        CHECK_CASE("mode %d", mode);
        CHECK_STATUS(try_open(fixture_path("garbage.db"), (attn_db_mode)mode), ATTN_ERR_DB_FOREIGN,
                     err.line);
        CHECK_HAS(err.line, "garbage.db");
        CHECK_STATUS(try_open(fixture_path("foreign.db"), (attn_db_mode)mode), ATTN_ERR_DB_FOREIGN,
                     err.line);
        CHECK_STATUS(try_open(fixture_path("newer.db"), (attn_db_mode)mode), ATTN_ERR_DB_NEWER,
                     err.line);
        CHECK_HAS(err.line, "schema 999");
    }
    CHECK_CASE("%s", "");
    char after[sizeof page];
    FILE *f = fopen(fixture_path("garbage.db"), "rb");
    CHECK_EQ_INT(f ? fread(after, 1, sizeof after, f) : 0, sizeof after);
    CHECK(memcmp(after, page, sizeof page) == 0); /* it is left as it was */
    if (f)
        fclose(f);
}

static void ignore(void *user, const char *line) {
    (void)user, (void)line;
}

static void test_truncated(void) {
    attn_str whole = ATTN_STR_INIT;
    attn_db *db;
    size_t faults;
    make_database(fixture_path("whole.db"), 40);
    CHECK_OK(attn_str_read_file(&whole, fixture_path("whole.db"), &err), err.line);
    CHECK(whole.size > 32768);
    /* From 2 on: SQLite takes a file of one byte for an empty one. */
    for (size_t size = 2; size <= whole.size - 4096; size += size < 128 ? 7 : 1021) {
        CHECK_CASE("cut to %zu of %zu bytes", size, whole.size);
        write_file(fixture_path("cut.db"), whole.data, size);
        for (int mode = ATTN_DB_WRITE; mode <= ATTN_DB_SYSTEM; mode++)
            CHECK_STATUS(try_open(fixture_path("cut.db"), (attn_db_mode)mode), ATTN_ERR_DB,
                         err.line);
    }
    CHECK_CASE("%s", "cut within the last page"); /* found when that is read */
    write_file(fixture_path("cut.db"), whole.data, whole.size - 4000);
    CHECK_OK(attn_db_open(fixture_path("cut.db"), ATTN_DB_READ, &db, &err), err.line);
    CHECK_OK(attn_db_check(db, ignore, NULL, &faults, &err), err.line);
    CHECK(faults > 0);
    attn_db_close(db);
    CHECK_CASE("%s", "");
    attn_str_free(&whole);
}

/* Bytes overwritten anywhere: any status, no crash, and what is read parses. */
static void test_damaged(void) {
    attn_str whole = ATTN_STR_INIT;
    attn_db_filter all = {.limit = 0};
    unsigned seed = 1;
    make_database(fixture_path("good.db"), 20);
    CHECK_OK(attn_str_read_file(&whole, fixture_path("good.db"), &err), err.line);
    for (int round = 0; round < 60; round++) {
        char *copy = malloc(whole.size);
        attn_db *db;
        attn_db_rows rows;
        size_t faults;
        if (!copy)
            exit(1);
        memcpy(copy, whole.data, whole.size);
        for (int i = 0; i < 40; i++)
            copy[(size_t)rand_r(&seed) % whole.size] = (char)rand_r(&seed);
        if (round % 2) /* the header whole, so that it is opened */
            memcpy(copy, whole.data, 100);
        write_file(fixture_path("bad.db"), copy, whole.size);
        free(copy);
        if (attn_db_open(fixture_path("bad.db"), ATTN_DB_WRITE, &db, &err) != ATTN_OK)
            continue;
        if (attn_db_find(db, &all, &rows, &err) == ATTN_OK)
            attn_db_rows_free(&rows);
        CHECK_OK(attn_db_check(db, ignore, NULL, &faults, &err), err.line);
        attn_db_close(db);
    }
    attn_str_free(&whole);
}

static void test_unsafe(void) {
    static const struct {
        const char *name;
        mode_t mode;
        bool folder;
    } rows[] = {
        {"safe.db", 0646, false},
        {"safe.db-wal", 0602, false},
        {"safe.db-shm", 0666, false},
        {"safe.db-journal", 0622, false},
        {"", 0777, true},
        {"", 01777, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char folder[512], path[600], victim[600];
        CHECK_CASE("%s %o", rows[i].name, (unsigned)rows[i].mode);
        snprintf(folder, sizeof folder, "%s/unsafe%zu", fixture_folder, i);
        snprintf(path, sizeof path, "%s/safe.db", folder);
        snprintf(victim, sizeof victim, "%s/%s", folder, rows[i].name);
        make_database(path, 1);
        if (!rows[i].folder && access(victim, F_OK) != 0)
            write_file(victim, "", 0);
        CHECK_EQ_INT(chmod(victim, rows[i].mode), 0);
        for (int mode = ATTN_DB_WRITE; mode <= ATTN_DB_SYSTEM; mode++)
            CHECK_STATUS(try_open(path, (attn_db_mode)mode), ATTN_ERR_DB_UNSAFE, err.line);
        CHECK_HAS(err.line, rows[i].mode & 01000 ? "move it into a folder of your own" : "chmod");
        CHECK_HAS(err.line, rows[i].folder ? folder : victim);
        CHECK_EQ_INT(chmod(victim, rows[i].folder ? 0700 : 0600), 0);
        if (!rows[i].folder && strcmp(rows[i].name, "safe.db") != 0)
            unlink(victim);
        CHECK_OK(try_open(path, ATTN_DB_WRITE), err.line);
    }
    CHECK_CASE("%s", "");
    CHECK_EQ_INT(symlink(fixture_path("unsafe0/safe.db"), fixture_path("link.db")), 0);
    CHECK_OK(try_open(fixture_path("link.db"), ATTN_DB_WRITE), err.line);
    CHECK_EQ_INT(chmod(fixture_path("unsafe0"), 0777), 0);
    CHECK_STATUS(try_open(fixture_path("link.db"), ATTN_DB_WRITE), ATTN_ERR_DB_UNSAFE, err.line);
    CHECK_EQ_INT(symlink(fixture_path("nowhere"), fixture_path("dangling.db")), 0);
    CHECK_STATUS(try_open(fixture_path("dangling.db"), ATTN_DB_WRITE), ATTN_ERR_IO, err.line);
    CHECK_EQ_INT(mkfifo(fixture_path("pipe.db"), 0600), 0);
    CHECK_STATUS(try_open(fixture_path("pipe.db"), ATTN_DB_READ), ATTN_ERR_DB_UNSAFE, err.line);
    if (geteuid() == 0) {
        make_database(fixture_path("theirs.db"), 1);
        CHECK_EQ_INT(chown(fixture_path("theirs.db"), 65534, 65534), 0);
        CHECK_STATUS(try_open(fixture_path("theirs.db"), ATTN_DB_READ), ATTN_ERR_DB_UNSAFE,
                     err.line);
        CHECK_HAS(err.line, "belongs to user 65534");
        /* A group of one's own is nobody else; another's is. */
        make_database(fixture_path("group.db"), 1);
        CHECK_EQ_INT(chmod(fixture_path("group.db"), 0664), 0);
        CHECK_OK(try_open(fixture_path("group.db"), ATTN_DB_READ), err.line);
        CHECK_EQ_INT(chown(fixture_path("group.db"), 0, 65534), 0);
        CHECK_EQ_INT(chmod(fixture_path("group.db"), 0664), 0);
        CHECK_STATUS(try_open(fixture_path("group.db"), ATTN_DB_READ), ATTN_ERR_DB_UNSAFE,
                     err.line);
    }
}

/* A fixture of the current version goes through two versions that do not exist yet. */
static void test_migrations(void) {
    static const char two[] = "ALTER TABLE trial ADD COLUMN mood TEXT NOT NULL DEFAULT 'fine'",
                      three[] = "CREATE TABLE extra (id INTEGER PRIMARY KEY) STRICT;"
                                "INSERT INTO extra SELECT 7 FROM trial WHERE mood = 'fine'",
                      broken[] = "CREATE TABLE more (id INTEGER) STRICT; DROP TABLE nothing";
    attn_embedded files[5] = {{"migrations/003.sql", (const unsigned char *)three, 0},
                              {"migrations/002.sql", (const unsigned char *)two, 0},
                              {"migrations/notes.txt", (const unsigned char *)two, 0},
                              {"migrations/004.sql", (const unsigned char *)broken, 0},
                              {"schema.sql", NULL, 0}};
    int64_t n;
    attn_db *db;
    for (size_t i = 0; i < attn_db_files_count; i++)
        if (strcmp(attn_db_files[i].name, "schema.sql") == 0)
            files[4] = attn_db_files[i];
    CHECK_EQ_INT(attn_db_version(files, 5), 4);
    CHECK_EQ_INT(attn_db_version(files + 4, 1), 1);
    CHECK_OK(attn_db_open_memory(&db, &err), err.line);
    CHECK_OK(attn_db_session_begin(db, "test", &err), err.line);
    fixture_run(db, 1, 0, ATTN_OUTCOME_OK, 100);
    CHECK_STATUS(attn_db_upgrade(db, files, 5, &err), ATTN_ERR_DB, err.line);
    CHECK_HAS(err.line, "migrations/004.sql");
    CHECK_OK(attn_db_ask(db, "PRAGMA user_version", &n, &err), err.line);
    CHECK_EQ_INT(n, 1); /* all or nothing */
    CHECK_OK(attn_db_ask(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'extra'", &n, &err),
             err.line);
    CHECK_EQ_INT(n, 0);
    files[3].name = "migrations/005.sql"; /* behind a gap: not reached */
    CHECK_OK(attn_db_upgrade(db, files, 5, &err), err.line);
    CHECK_OK(attn_db_ask(db, "PRAGMA user_version", &n, &err), err.line);
    CHECK_EQ_INT(n, 3);
    CHECK_OK(attn_db_ask(db, "SELECT id FROM extra", &n, &err), err.line);
    CHECK_EQ_INT(n, 7);
    CHECK_OK(attn_db_upgrade(db, files, 5, &err), err.line); /* nothing left to do */
    CHECK_STATUS(attn_db_upgrade(db, files + 4, 1, &err), ATTN_ERR_DB_NEWER, err.line);
    attn_db_close(db);
}

static void expect_path(const char *option, bool system, const char *want) {
    char *path = NULL;
    CHECK_OK(system ? attn_db_system_path(option, &path, &err)
                    : attn_db_user_path(option, &path, &err),
             err.line);
    CHECK_STR(path, want);
    free(path);
}

static void test_paths(void) {
    char *path;
    setenv("ATTNTUNE_DB", "/env.db", 1);
    setenv("ATTNTUNE_SYSTEM_DB", "/system-env.db", 1);
    setenv("XDG_CACHE_HOME", "/cache", 1);
    setenv("HOME", "/home/me", 1);
    expect_path("/option.db", false, "/option.db");
    expect_path("/option.db", true, "/option.db");
    expect_path(NULL, false, "/env.db");
    expect_path(NULL, true, "/system-env.db");
    setenv("ATTNTUNE_DB", "", 1);
    expect_path(NULL, false, "/cache/attntune/attntune.db");
    setenv("XDG_CACHE_HOME", "relative", 1);
    expect_path(NULL, false, "/home/me/.cache/attntune/attntune.db");
    unsetenv("XDG_CACHE_HOME");
    expect_path("", false, "/home/me/.cache/attntune/attntune.db");
    unsetenv("HOME");
    CHECK_STATUS(attn_db_user_path(NULL, &path, &err), ATTN_ERR_NOT_FOUND, err.line);
    unsetenv("ATTNTUNE_SYSTEM_DB");
    CHECK_OK(attn_db_system_path(NULL, &path, &err), err.line);
    CHECK_HAS(path, "share/attntune/system.db");
    free(path);
}

int main(void) {
    fixture_begin();
    test_fresh();
    test_reading();
    test_strangers();
    test_truncated();
    test_damaged();
    test_unsafe();
    test_migrations();
    test_paths();
    fixture_end();
    return check_done();
}
