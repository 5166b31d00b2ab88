/* db_open.c: opening a file: whose it is, its journal, its version. */
#include "db_internal.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.h"

char *attn_db_uri(const char *path, const char *query) {
    attn_str uri = ATTN_STR_INIT;
    attn_str_append(&uri, "file:");
    for (const char *p = path; *p; p++)
        if (strchr("%?#", *p)) /* these mean something in a URI */
            attn_str_append_f(&uri, "%%%02x", (unsigned)*p);
        else
            attn_str_append_bytes(&uri, p, 1);
    attn_str_append_f(&uri, "?%s", query);
    return attn_str_take(&uri);
}

/* Has a signal come, and have locks been waited for since as long as the end may take? What others
 * hold for a moment is still waited for, so that what is known can be saved. */
bool attn_db_is_ending(const attn_db *db) {
    return db->ending_ms >= ATTN_DB_ENDING_MS && attn_interrupt_pending();
}

static void sleep_for(attn_db *db, int ms) {
    db->ending_ms += attn_interrupt_pending() ? ms : 0;
    sqlite3_sleep(ms);
}

/* Looks after a lock of another process in short, random times however long it has been held:
 * SQLite's own grow to 100 ms, with which one of many that write all the time may never get it. */
static int wait_for_lock(void *user, int before) {
    attn_db *db = user;
    unsigned char random;
    sqlite3_randomness(sizeof random, &random);
    if (before == 0)
        db->slept_ms = 0;
    if (db->slept_ms >= ATTN_DB_BUSY_MS || attn_db_is_ending(db))
        return 0;
    int ms = 1 + random % 15;
    db->slept_ms += ms;
    sleep_for(db, ms);
    return 1;
}

static attn_status connect(attn_db *db, const char *name, int flags, attn_error *err) {
    flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI;
    int code = sqlite3_open_v2(name, &db->sql, flags, NULL);
    if (code != SQLITE_OK)
        return attn_db_fail(db, code, err);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    sqlite3_busy_handler(db->sql, wait_for_lock, db);
    return ATTN_OK;
}

static attn_status connect_immutable(attn_db *db, attn_error *err) {
    char *uri = attn_db_uri(db->path, "immutable=1");
    if (!uri)
        return attn_fail_nomem(err);
    db->immutable = true;
    attn_status status = connect(db, uri, SQLITE_OPEN_READONLY, err);
    free(uri);
    return status;
}

/* The first look at the file. Nothing in a schema may call functions; nothing is mapped, so that a
 * file cut short while it is read is an error and no SIGBUS. */
static attn_status look(attn_db *db, attn_db_header *header, attn_error *err) {
    static const char setup[] = "PRAGMA foreign_keys=ON; PRAGMA synchronous=FULL;"
                                "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
                                "PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY";
    ATTN_TRY(attn_db_exec(db, setup, err));
    return attn_db_read_header(db, header, err);
}

static bool set_journal(attn_db *db, const char *pragma, const char *want, attn_status *status,
                        attn_error *err) {
    attn_sql q = attn_sql_prepare(db, pragma);
    const char *got = attn_sql_next(&q) ? attn_sql_text(&q) : NULL;
    bool same = got && strcmp(got, want) == 0;
    *status = attn_sql_end(&q, err);
    return *status == ATTN_OK && same;
}

/* WAL, or DELETE where that cannot work: without shared memory, and between hosts. */
static attn_status choose_journal(attn_db *db, attn_error *err) {
    attn_status status;
    if (!attn_db_on_network(db->path)) {
        if (set_journal(db, "PRAGMA journal_mode=WAL", "wal", &status, err))
            return ATTN_OK;
        if (status != ATTN_OK && (db->code & 0xff) == SQLITE_BUSY)
            return status;
    }
    if (set_journal(db, "PRAGMA journal_mode=DELETE", "delete", &status, err) || status != ATTN_OK)
        return status;
    return attn_fail(err, ATTN_ERR_DB, "database %s: neither WAL nor a journal is possible there",
                     db->path);
}

/* A file in WAL mode that was carried to where there is no shared memory: alone with it, it can be
 * read without, and leave WAL. */
static attn_status leave_wal(attn_db *db, attn_error *err) {
    attn_status status = attn_db_exec(db,
                                      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=DELETE;"
                                      "PRAGMA locking_mode=NORMAL",
                                      err);
    return status == ATTN_OK ? attn_db_exec(db, "SELECT count(*) FROM sqlite_schema", err) : status;
}

static attn_status settle(attn_db *db, attn_error *err) {
    attn_db_header header;
    attn_status status = look(db, &header, err);
    int code = db->code & 0xff;
    if (status != ATTN_OK && (code == SQLITE_CANTOPEN || code == SQLITE_IOERR)) {
        attn_error second = ATTN_ERROR_INIT;
        if (leave_wal(db, &second) == ATTN_OK)
            status = look(db, &header, err);
    }
    if (status != ATTN_OK)
        return status;
    ATTN_TRY(attn_db_accept(db, &header, attn_db_version(attn_db_files, attn_db_files_count), err));
    if (sqlite3_db_readonly(db->sql, "main"))
        return attn_db_fail(db, SQLITE_READONLY, err);
    ATTN_TRY(choose_journal(db, err));
    return attn_db_upgrade(db, attn_db_files, attn_db_files_count, err);
}

/* SQLite does not wait for locks by itself while a file changes to WAL, nor while the last user of
 * a WAL file is leaving it: so the whole opening is tried again. */
static attn_status patiently(attn_status (*step)(attn_db *, attn_error *), attn_db *db,
                             attn_error *err) {
    int64_t deadline = attn_db_now() + ATTN_DB_BUSY_MS / 1000;
    for (;;) {
        db->code = SQLITE_OK;
        attn_status status = step(db, err);
        if (status == ATTN_OK || (db->code & 0xff) != SQLITE_BUSY || attn_db_now() >= deadline ||
            attn_db_is_ending(db))
            return status;
        sleep_for(db, 5);
    }
}

static bool has_wal(const char *path) {
    char *name;
    struct stat st;
    if (asprintf(&name, "%s-wal", path) < 0)
        return true;
    bool has = stat(name, &st) == 0 && st.st_size > 0;
    free(name);
    return has;
}

static attn_status accept_readable(attn_db *db, attn_error *err) {
    attn_db_header header;
    ATTN_TRY(attn_db_read_header(db, &header, err));
    ATTN_TRY(attn_db_accept(db, &header, attn_db_version(attn_db_files, attn_db_files_count), err));
    if (header.version == 0)
        return attn_fail(err, ATTN_ERR_NOT_FOUND, "database %s: empty", db->path);
    if (header.version < attn_db_version(attn_db_files, attn_db_files_count))
        return attn_fail(err, ATTN_ERR_DB,
                         "database %s: of an older attntune: any command that writes, such as "
                         "`attntune db import`, brings it up to date",
                         db->path);
    return ATTN_OK;
}

/* A WAL file in a folder that one cannot write needs a -shm that cannot be made. With no -wal there
 * is nothing in it that the file lacks, and no writer: it can be read as it lies. */
static attn_status open_for_reading(attn_db *db, attn_error *err) {
    attn_status status = connect(db, db->path, SQLITE_OPEN_READONLY, err);
    if (status == ATTN_OK)
        status = patiently(accept_readable, db, err);
    int code = db->code & 0xff;
    if (status == ATTN_OK || has_wal(db->path) ||
        (code != SQLITE_CANTOPEN && code != SQLITE_READONLY && code != SQLITE_IOERR))
        return status;
    sqlite3_close_v2(db->sql);
    db->sql = NULL;
    db->code = SQLITE_OK;
    ATTN_TRY(connect_immutable(db, err));
    return accept_readable(db, err);
}

static attn_status open_resolved(attn_db *db, attn_error *err) {
    ATTN_TRY(attn_db_safe(db->path, err));
    if (db->mode != ATTN_DB_WRITE && access(db->path, F_OK) != 0)
        return attn_fail(err, ATTN_ERR_NOT_FOUND, "database %s: does not exist", db->path);
    switch (db->mode) {
    case ATTN_DB_SYSTEM:
        if (has_wal(db->path)) /* somebody is writing it after all */
            return open_for_reading(db, err);
        ATTN_TRY(connect_immutable(db, err));
        return accept_readable(db, err);
    case ATTN_DB_READ:
        return open_for_reading(db, err);
    default:
        ATTN_TRY(connect(db, db->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err));
        return patiently(settle, db, err);
    }
}

attn_status attn_db_open(const char *path, attn_db_mode mode, attn_db **db, attn_error *err) {
    *db = NULL;
    if (mode == ATTN_DB_WRITE)
        ATTN_TRY(attn_db_make_folder(path, err));
    attn_db *opened = calloc(1, sizeof *opened);
    if (!opened)
        return attn_fail_nomem(err);
    opened->mode = mode;
    attn_status status = attn_db_resolve(path, &opened->path, err);
    if (status == ATTN_OK)
        status = open_resolved(opened, err);
    if (status == ATTN_OK)
        *db = opened;
    else
        attn_db_close(opened);
    return status;
}

attn_status attn_db_open_memory(attn_db **db, attn_error *err) {
    *db = NULL;
    attn_db *opened = calloc(1, sizeof *opened);
    if (!opened)
        return attn_fail_nomem(err);
    opened->path = strdup(":memory:");
    attn_status status = opened->path ? ATTN_OK : attn_fail_nomem(err);
    if (status == ATTN_OK)
        status = connect(opened, opened->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (status == ATTN_OK)
        status = attn_db_upgrade(opened, attn_db_files, attn_db_files_count, err);
    if (status == ATTN_OK)
        status = attn_db_exec(opened, "PRAGMA foreign_keys=ON", err);
    if (status == ATTN_OK)
        *db = opened;
    else
        attn_db_close(opened);
    return status;
}

void attn_db_close(attn_db *db) {
    if (!db)
        return;
    sqlite3_close_v2(db->sql);
    free(db->path);
    free(db);
}

const char *attn_db_path(const attn_db *db) {
    return db->path;
}
