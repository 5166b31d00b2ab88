/* test_db_vfs.c: file systems that fail, played by a shim over SQLite's own: a disk that fills up,
 * one without locks, one without shared memory. */
#include "db_fixture.h"

#include <sqlite3.h>

#include "db_internal.h"

static attn_error err;

/* How the file system behaves now. */
static struct {
    int64_t room; /* bytes that can be written; -1: any */
    bool no_locks;
    bool no_shm;
} disk = {-1, false, false};

typedef struct shim_file {
    sqlite3_file base;
    sqlite3_file *real;
} shim_file;

static sqlite3_file *real(sqlite3_file *f) {
    return ((shim_file *)f)->real;
}

#define FORWARD(name, parameters, arguments)                                                       \
    static int shim_##name parameters {                                                            \
        return real(f)->pMethods->name arguments;                                                  \
    }

FORWARD(xClose, (sqlite3_file * f), (real(f)))
FORWARD(xRead, (sqlite3_file * f, void *p, int n, sqlite3_int64 at), (real(f), p, n, at))
FORWARD(xTruncate, (sqlite3_file * f, sqlite3_int64 size), (real(f), size))
FORWARD(xSync, (sqlite3_file * f, int flags), (real(f), flags))
FORWARD(xFileSize, (sqlite3_file * f, sqlite3_int64 *size), (real(f), size))
FORWARD(xUnlock, (sqlite3_file * f, int level), (real(f), level))
FORWARD(xFileControl, (sqlite3_file * f, int op, void *p), (real(f), op, p))
FORWARD(xSectorSize, (sqlite3_file * f), (real(f)))
FORWARD(xDeviceCharacteristics, (sqlite3_file * f), (real(f)))
FORWARD(xShmMap, (sqlite3_file * f, int page, int size, int extend, void volatile **p),
        (real(f), page, size, extend, p))
FORWARD(xShmLock, (sqlite3_file * f, int at, int n, int flags), (real(f), at, n, flags))
FORWARD(xShmUnmap, (sqlite3_file * f, int remove), (real(f), remove))

static void shim_xShmBarrier(sqlite3_file *f) {
    real(f)->pMethods->xShmBarrier(real(f));
}

static int shim_xWrite(sqlite3_file *f, const void *p, int n, sqlite3_int64 at) {
    if (disk.room >= 0 && n > disk.room)
        return SQLITE_FULL;
    disk.room -= disk.room >= 0 ? n : 0;
    return real(f)->pMethods->xWrite(real(f), p, n, at);
}

static int shim_xLock(sqlite3_file *f, int level) {
    return disk.no_locks ? SQLITE_IOERR_LOCK : real(f)->pMethods->xLock(real(f), level);
}

static int shim_xCheckReservedLock(sqlite3_file *f, int *held) {
    return disk.no_locks ? SQLITE_IOERR_CHECKRESERVEDLOCK
                         : real(f)->pMethods->xCheckReservedLock(real(f), held);
}

#define METHODS                                                                                    \
    shim_xClose, shim_xRead, shim_xWrite, shim_xTruncate, shim_xSync, shim_xFileSize, shim_xLock,  \
        shim_xUnlock, shim_xCheckReservedLock, shim_xFileControl, shim_xSectorSize,                \
        shim_xDeviceCharacteristics

static const sqlite3_io_methods with_shm = {
    2, METHODS, shim_xShmMap, shim_xShmLock, shim_xShmBarrier, shim_xShmUnmap, NULL, NULL};
static const sqlite3_io_methods without_shm = {1, METHODS, NULL, NULL, NULL, NULL, NULL, NULL};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out) {
    sqlite3_vfs *under = vfs->pAppData;
    shim_file *shim = (shim_file *)f;
    shim->real = (sqlite3_file *)(shim + 1);
    int code = under->xOpen(under, name, shim->real, flags, out);
    f->pMethods = NULL;
    if (shim->real->pMethods)
        f->pMethods = disk.no_shm ? &without_shm : &with_shm;
    return code;
}

static void install(void) {
    static sqlite3_vfs shim;
    sqlite3_vfs *under = sqlite3_vfs_find(NULL);
    shim = *under;
    shim.zName = "shim";
    shim.pAppData = under;
    shim.szOsFile += (int)sizeof(shim_file);
    shim.xOpen = shim_open;
    CHECK_EQ_INT(sqlite3_vfs_register(&shim, 1), SQLITE_OK);
}

static int64_t ask(attn_db *db, const char *query) {
    int64_t n = -1;
    CHECK_OK(attn_db_ask(db, query, &n, &err), err.line);
    return n;
}

/* Tries to store trials until the disk is full; returns how many were acknowledged. */
static int store(const char *path, int trials, attn_status *status) {
    attn_db *db;
    int stored = 0;
    *status = attn_db_open(path, ATTN_DB_WRITE, &db, &err);
    if (*status == ATTN_OK)
        *status = attn_db_session_begin(db, "test", &err);
    while (*status == ATTN_OK && stored < trials) {
        fixture_trial t;
        attn_claim claim;
        attn_trial_id id;
        attn_trial_result result = fixture_result(ATTN_OUTCOME_OK, 10), found;
        fixture_make(&t, stored, 0);
        *status = attn_db_claim(db, &t.key, &claim, &id, &found, &err);
        if (*status == ATTN_OK)
            *status = attn_db_trial_end(db, &id, &result, &err);
        stored += *status == ATTN_OK;
    }
    attn_db_close(db);
    return stored;
}

/* At whatever byte the disk fills up: the line says so, and what was acknowledged is there. */
static void fill_up(const char *prefix) {
    int complete = 0, partial = 0;
    for (int64_t room = 0; complete < 2 && room < 4000000; room += room / 9 + 3000) {
        char name[64];
        attn_status status;
        attn_db *db;
        CHECK_CASE("%s, room for %d bytes", prefix, (int)room);
        snprintf(name, sizeof name, "%s%d.db", prefix, (int)room);
        disk.room = room;
        int stored = store(fixture_path(name), 12, &status);
        disk.room = -1;
        if (status != ATTN_OK) {
            CHECK_EQ_INT(status, ATTN_ERR_DB);
            CHECK_HAS(err.line, "the disk is full");
        }
        complete += stored == 12;
        partial += stored > 0 && stored < 12;
        CHECK_OK(attn_db_open(fixture_path(name), ATTN_DB_WRITE, &db, &err), err.line);
        CHECK_EQ_INT(ask(db, "SELECT count(*) FROM trial WHERE outcome = 'ok'"), stored);
        CHECK_EQ_INT(ask(db, "SELECT count(*) FROM sample"), 3 * stored);
        CHECK_EQ_INT(ask(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
        attn_db_close(db);
    }
    CHECK_CASE("%s", prefix);
    CHECK_EQ_INT(complete, 2);
    CHECK(partial > 2);
    CHECK_CASE("%s", "");
}

static void test_no_locks(void) {
    attn_db *db;
    int64_t before = attn_db_now();
    fixture_run(db = fixture_open(fixture_path("locks.db")), 1, 0, ATTN_OUTCOME_OK, 10);
    attn_db_close(db);
    disk.no_locks = true;
    static const char *const names[] = {"locks.db", "fresh-without-locks.db"};
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(attn_db_open(fixture_path(names[i]), ATTN_DB_WRITE, &db, &err), ATTN_ERR_DB,
                     err.line);
        CHECK_HAS(err.line, "does not support locks: keep the file on a local disk");
    }
    /* A file that nobody is writing can be read as it lies. */
    CHECK_OK(attn_db_open(fixture_path("locks.db"), ATTN_DB_SYSTEM, &db, &err), err.line);
    CHECK_EQ_INT(ask(db, "SELECT count(*) FROM trial"), 1);
    attn_db_close(db);
    CHECK_OK(attn_db_open(fixture_path("locks.db"), ATTN_DB_READ, &db, &err), err.line);
    CHECK_EQ_INT(ask(db, "SELECT count(*) FROM trial"), 1);
    attn_db_close(db);
    disk.no_locks = false;
    CHECK(attn_db_now() - before < 10); /* not taken for somebody else's lock */
    CHECK_OK(attn_db_open(fixture_path("locks.db"), ATTN_DB_WRITE, &db, &err), err.line);
    CHECK_EQ_INT(ask(db, "SELECT count(*) FROM trial"), 1);
    attn_db_close(db);
}

/* Two handles on a file in DELETE mode, and one that was in WAL mode before it came here. */
static void test_no_shm(void) {
    attn_db *db, *other;
    fixture_run(db = fixture_open(fixture_path("was-wal.db")), 1, 0, ATTN_OUTCOME_OK, 10);
    CHECK_EQ_INT(ask(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
    attn_db_close(db);
    disk.no_shm = true;
    CHECK_OK(attn_db_open(fixture_path("was-wal.db"), ATTN_DB_READ, &db, &err), err.line);
    CHECK_EQ_INT(ask(db, "SELECT count(*) FROM trial"), 1);
    attn_db_close(db);
    static const char *const names[] = {"was-wal.db", "fresh-without-shm.db"};
    for (int i = 0; i < 2; i++) {
        CHECK_CASE("%s", names[i]);
        db = fixture_open(fixture_path(names[i]));
        other = fixture_open(fixture_path(names[i]));
        CHECK_EQ_INT(ask(db, "SELECT journal_mode = 'delete' FROM pragma_journal_mode"), 1);
        fixture_run(db, 2, 0, ATTN_OUTCOME_OK, 10);
        fixture_run(other, 3, 0, ATTN_OUTCOME_OK, 10);
        CHECK_EQ_INT(ask(db, "SELECT count(*) FROM trial"), i == 0 ? 3 : 2);
        attn_db_close(other);
        attn_db_close(db);
    }
    CHECK_CASE("%s", "");
    fill_up("full-delete");
    disk.no_shm = false;
}

int main(void) {
    fixture_begin();
    install();
    fill_up("full-wal");
    test_no_locks();
    test_no_shm();
    fixture_end();
    return check_done();
}
