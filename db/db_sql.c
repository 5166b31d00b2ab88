/* db_sql.c: statements and transactions, and what SQLite's errors mean to a user. */
#include "db_internal.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <time.h>

#include "db_text.h"

typedef struct fault {
    int code; /* a primary code stands for all of its extended ones */
    attn_status status;
    const char *text;
} fault;

#define ELSEWHERE "name another file with --db or ATTNTUNE_DB"
#define NO_LOCKS                                                                                   \
    "the file system does not support locks: keep the file on a local disk and " ELSEWHERE

static const fault FAULTS[] = {
    {SQLITE_IOERR_LOCK, ATTN_ERR_DB, NO_LOCKS},
    {SQLITE_IOERR_UNLOCK, ATTN_ERR_DB, NO_LOCKS},
    {SQLITE_IOERR_RDLOCK, ATTN_ERR_DB, NO_LOCKS},
    {SQLITE_IOERR_BLOCKED, ATTN_ERR_DB, NO_LOCKS},
    {SQLITE_IOERR_CHECKRESERVEDLOCK, ATTN_ERR_DB, NO_LOCKS},
    {SQLITE_IOERR_SHMLOCK, ATTN_ERR_DB, NO_LOCKS},
    {SQLITE_IOERR_SHMMAP, ATTN_ERR_DB, NO_LOCKS},
    {SQLITE_IOERR_SHMOPEN, ATTN_ERR_DB, NO_LOCKS},
    {SQLITE_IOERR_NOMEM, ATTN_ERR_NOMEM, "out of memory"},
    {SQLITE_BUSY, ATTN_ERR_DB,
     "locked by another process for more than 30 s: try again when that has ended, or if it lies "
     "on "
     "a network file system, keep it on a local disk"},
    {SQLITE_LOCKED, ATTN_ERR_DB, "locked by another statement"},
    {SQLITE_PROTOCOL, ATTN_ERR_DB, "locked by other processes: try again when they have ended"},
    {SQLITE_FULL, ATTN_ERR_DB, "the disk is full: free some space, or " ELSEWHERE},
    {SQLITE_NOTADB, ATTN_ERR_DB_FOREIGN, "not an attntune database: " ELSEWHERE},
    {SQLITE_CORRUPT, ATTN_ERR_DB,
     "damaged: move it away and import what `attntune db export` still reads of it"},
    {SQLITE_READONLY, ATTN_ERR_IO, "the file or its folder is read-only: " ELSEWHERE},
    {SQLITE_PERM, ATTN_ERR_IO, "no permission: " ELSEWHERE},
    {SQLITE_AUTH, ATTN_ERR_IO, "no permission: " ELSEWHERE},
    {SQLITE_CANTOPEN, ATTN_ERR_IO, "cannot be opened or created: " ELSEWHERE},
    {SQLITE_TOOBIG, ATTN_ERR_INVALID, "a value is too large to be stored"},
    {SQLITE_IOERR, ATTN_ERR_IO, "cannot be read or written"},
    {SQLITE_NOMEM, ATTN_ERR_NOMEM, "out of memory"},
};

static const fault *find_fault(int code) {
    const size_t n = sizeof FAULTS / sizeof FAULTS[0];
    for (size_t i = 0; i < n; i++)
        if (FAULTS[i].code == code)
            return &FAULTS[i];
    for (size_t i = 0; i < n; i++)
        if (FAULTS[i].code == (code & 0xff))
            return &FAULTS[i];
    return NULL;
}

/* What a file that is no database to SQLite begins with; a short one is filled up with zeros. */
enum { BEGINNING = 32 };

static void read_beginning(attn_db *db, char start[BEGINNING + 1]) {
    sqlite3_file *file = NULL;
    memset(start, 0, BEGINNING + 1);
    sqlite3_file_control(db->sql, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (file && file->pMethods)
        file->pMethods->xRead(file, start, BEGINNING, 0);
}

static attn_status fail_foreign(attn_db *db, attn_error *err) {
    char start[BEGINNING + 1];
    read_beginning(db, start);
    if (strncmp(start, ATTN_TEXT_FIRST_LINE, strlen(ATTN_TEXT_FIRST_LINE)) == 0)
        return attn_fail(err, ATTN_ERR_DB_FOREIGN,
                         "%s is no database but an export: `attntune db import` takes it in",
                         db->path);
    /* Cut short within its header, it may have been ours. */
    size_t size = strnlen(start, sizeof ATTN_DB_MAGIC - 1);
    bool cut = size > 0 && strncmp(start, ATTN_DB_MAGIC, size) == 0;
    const fault *f = find_fault(cut ? SQLITE_CORRUPT : SQLITE_NOTADB);
    return attn_fail(err, f->status, "database %s: %s", db->path, f->text);
}

attn_status attn_db_fail(attn_db *db, int code, attn_error *err) {
    db->code = code;
    if (code == SQLITE_NOTADB)
        return fail_foreign(db, err);
    const fault *f = find_fault(code);
    if ((code & 0xff) == SQLITE_BUSY && attn_db_is_ending(db))
        return attn_fail(err, ATTN_ERR_TIMEOUT,
                         "database %s: interrupted while another process had it locked", db->path);
    if (!f)
        return attn_fail(err, ATTN_ERR_DB, "database %s: %s", db->path, sqlite3_errmsg(db->sql));
    int number = db->sql ? sqlite3_system_errno(db->sql) : 0;
    bool system = number && (code & 0xff) == SQLITE_IOERR;
    return attn_fail(err, f->status, "database %s: %s%s%s", db->path, f->text, system ? ": " : "",
                     system ? strerror(number) : "");
}

attn_sql attn_sql_prepare(attn_db *db, const char *text) {
    attn_sql q = {db, NULL, SQLITE_OK, 0, 0};
    q.code = sqlite3_prepare_v2(db->sql, text, -1, &q.statement, NULL);
    return q;
}

static void note(attn_sql *q, int code) {
    if (q->code == SQLITE_OK)
        q->code = code;
}

void attn_sql_bind_int(attn_sql *q, int64_t value) {
    if (q->code == SQLITE_OK)
        note(q, sqlite3_bind_int64(q->statement, ++q->parameter, value));
}

void attn_sql_bind_real(attn_sql *q, double value) {
    if (q->code != SQLITE_OK)
        return;
    if (isfinite(value))
        note(q, sqlite3_bind_double(q->statement, ++q->parameter, value));
    else
        note(q, sqlite3_bind_null(q->statement, ++q->parameter));
}

void attn_sql_bind_text(attn_sql *q, const char *value) {
    if (q->code == SQLITE_OK)
        note(q, sqlite3_bind_text(q->statement, ++q->parameter, value, -1, SQLITE_STATIC));
}

void attn_sql_bind_copy(attn_sql *q, const char *value) {
    if (q->code == SQLITE_OK)
        note(q, sqlite3_bind_text(q->statement, ++q->parameter, value, -1, SQLITE_TRANSIENT));
}

void attn_sql_bind_hash(attn_sql *q, attn_hash value) {
    char text[ATTN_HASH_TEXT];
    attn_hash_print(value, text);
    attn_sql_bind_copy(q, text);
}

void attn_sql_bind_blob(attn_sql *q, const void *data, size_t size) {
    if (q->code == SQLITE_OK)
        note(q, sqlite3_bind_blob64(q->statement, ++q->parameter, data, size, SQLITE_STATIC));
}

bool attn_sql_next(attn_sql *q) {
    if (q->code != SQLITE_OK)
        return false;
    int code = sqlite3_step(q->statement);
    q->column = 0;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        q->code = code;
    return code == SQLITE_ROW;
}

int64_t attn_sql_int(attn_sql *q) {
    return sqlite3_column_int64(q->statement, q->column++);
}

int64_t attn_sql_int_or(attn_sql *q, int64_t if_null) {
    bool null = sqlite3_column_type(q->statement, q->column) == SQLITE_NULL;
    int64_t value = attn_sql_int(q);
    return null ? if_null : value;
}

double attn_sql_real(attn_sql *q) {
    bool null = sqlite3_column_type(q->statement, q->column) == SQLITE_NULL;
    double value = sqlite3_column_double(q->statement, q->column++);
    return null ? NAN : value;
}

const char *attn_sql_text_or_null(attn_sql *q) {
    return (const char *)sqlite3_column_text(q->statement, q->column++);
}

const char *attn_sql_text(attn_sql *q) {
    const char *text = attn_sql_text_or_null(q);
    return text ? text : "";
}

attn_hash attn_sql_hash(attn_sql *q) {
    attn_hash hash;
    return attn_hash_parse(attn_sql_text(q), &hash) ? hash : (attn_hash){0, 0};
}

const void *attn_sql_blob(attn_sql *q, size_t *size) {
    const void *data = sqlite3_column_blob(q->statement, q->column);
    *size = (size_t)sqlite3_column_bytes(q->statement, q->column++);
    return data;
}

bool attn_sql_again(attn_sql *q) {
    while (attn_sql_next(q)) {
    }
    if (q->statement)
        note(q, sqlite3_reset(q->statement));
    q->parameter = 0;
    return q->code == SQLITE_OK;
}

attn_status attn_sql_end(attn_sql *q, attn_error *err) {
    attn_status status = ATTN_OK;
    if (q->code != SQLITE_OK)
        status = attn_db_fail(q->db, q->code, err);
    sqlite3_finalize(q->statement);
    q->statement = NULL;
    return status;
}

attn_status attn_sql_run(attn_sql *q, attn_error *err) {
    while (attn_sql_next(q)) {
    }
    return attn_sql_end(q, err);
}

attn_status attn_db_exec(attn_db *db, const char *script, attn_error *err) {
    int code = sqlite3_exec(db->sql, script, NULL, NULL, NULL);
    return code == SQLITE_OK ? ATTN_OK : attn_db_fail(db, code, err);
}

attn_status attn_db_ask(attn_db *db, const char *query, int64_t *value, attn_error *err) {
    attn_sql q = attn_sql_prepare(db, query);
    *value = attn_sql_next(&q) ? attn_sql_int(&q) : 0;
    return attn_sql_end(&q, err);
}

attn_status attn_db_begin(attn_db *db, attn_error *err) {
    return attn_db_exec(db, "BEGIN IMMEDIATE", err);
}

attn_status attn_db_finish(attn_db *db, attn_status status, attn_error *err) {
    if (status == ATTN_OK)
        status = attn_db_exec(db, "COMMIT", err);
    /* A full disk has ended the transaction already. */
    if (status != ATTN_OK && !sqlite3_get_autocommit(db->sql))
        sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

int64_t attn_db_now(void) {
    return (int64_t)time(NULL);
}
