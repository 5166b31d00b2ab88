/* db_internal.h: what the files of db/ share: the handle, statements, transactions.
 *
 * A statement keeps its first error, as an attn_str does: bind, step and read without looking, and
 * take the status from attn_sql_end. It binds parameters and reads columns from left to right. */
#ifndef ATTN_DB_INTERNAL_H
#define ATTN_DB_INTERNAL_H

#include "core/embed.h"
#include "db.h"

enum {
    ATTN_DB_APPLICATION = 0x41545455, /* "ATTU" */
    ATTN_DB_BUSY_MS = 30000,          /* how long a lock of another process is waited for */
    ATTN_DB_ENDING_MS = 500,          /* and all locks together once a signal wants us to end */
    ATTN_DB_TOP = 20                  /* binaries kept for a problem and device */
};
#define ATTN_DB_MAGIC "SQLite format 3"           /* what every database file begins with */
#define ATTN_DB_BINARY_BYTES ((int64_t)512 << 20) /* and in all */

struct attn_db {
    struct sqlite3 *sql;
    char *path; /* with links resolved */
    attn_db_mode mode;
    bool immutable;    /* was opened as a file that nobody writes */
    int code;          /* SQLite's, of the last failure */
    int64_t session;   /* row of this process; 0 before attn_db_session_begin */
    int64_t slept_ms;  /* waiting for the present lock */
    int64_t ending_ms; /* waiting for any, since a signal came */
};

/*-*** db_sql.c **************************************************/

typedef struct attn_sql {
    attn_db *db;
    struct sqlite3_stmt *statement;
    int code;
    int parameter;
    int column;
} attn_sql;

attn_sql attn_sql_prepare(attn_db *db, const char *text);
void attn_sql_bind_int(attn_sql *q, int64_t value);
void attn_sql_bind_real(attn_sql *q, double value);      /* NULL unless it is finite */
void attn_sql_bind_text(attn_sql *q, const char *value); /* must live until the end; may be NULL */
void attn_sql_bind_copy(attn_sql *q, const char *value);
void attn_sql_bind_hash(attn_sql *q, attn_hash value);
void attn_sql_bind_blob(attn_sql *q, const void *data, size_t size); /* must live until the end */
bool attn_sql_next(attn_sql *q);                                     /* true: there is a row */
int64_t attn_sql_int(attn_sql *q);                                   /* 0 if NULL */
int64_t attn_sql_int_or(attn_sql *q, int64_t if_null);
double attn_sql_real(attn_sql *q); /* NaN if NULL */
/* Until the next step. NULL reads as "", since in a damaged file it may be anywhere. */
const char *attn_sql_text(attn_sql *q);
const char *attn_sql_text_or_null(attn_sql *q);
attn_hash attn_sql_hash(attn_sql *q); /* zero if it is none */
const void *attn_sql_blob(attn_sql *q, size_t *size);
bool attn_sql_again(attn_sql *q); /* runs it, and makes it ready for other values */
attn_status attn_sql_end(attn_sql *q, attn_error *err); /* of the first step that failed */
attn_status attn_sql_run(attn_sql *q, attn_error *err); /* without looking at rows */

/* A whole script, or one statement without values. */
attn_status attn_db_exec(attn_db *db, const char *script, attn_error *err);

/* The one INTEGER that a query without values gives. */
attn_status attn_db_ask(attn_db *db, const char *query, int64_t *value, attn_error *err);

/* BEGIN IMMEDIATE; then COMMIT if status is ATTN_OK, else ROLLBACK. finish gives the status of the
 * whole. */
attn_status attn_db_begin(attn_db *db, attn_error *err);
attn_status attn_db_finish(attn_db *db, attn_status status, attn_error *err);

/* The attn_status of a result code of SQLite, with file, fault and remedy in one line. */
attn_status attn_db_fail(attn_db *db, int code, attn_error *err);

int64_t attn_db_now(void); /* Unix seconds */

/*-*** db_open.c *************************************************/

/* A signal has come, and no lock is waited for any more. */
bool attn_db_is_ending(const attn_db *db);

/* "file:PATH?QUERY"; allocated, NULL if out of memory. */
char *attn_db_uri(const char *path, const char *query);

/*-*** db_safety.c ***********************************************/

/* The path with links resolved; the file may be missing, its folder may not. */
attn_status attn_db_resolve(const char *path, char **real, attn_error *err);

/* Makes the folders that lead to the file, 0700. */
attn_status attn_db_make_folder(const char *path, attn_error *err);

/* ERR_DB_UNSAFE if others could change the file. */
attn_status attn_db_safe(const char *path, attn_error *err);

bool attn_db_on_network(const char *path); /* where WAL cannot work between hosts */

/*-*** db_schema.c ***********************************************/

ATTN_EMBEDDED_TABLE(attn_db_files);

/* Who wrote the file; one snapshot. */
typedef struct attn_db_header {
    int64_t application;
    int64_t version; /* 0: empty */
    int64_t tables;
} attn_db_header;

attn_status attn_db_read_header(attn_db *db, attn_db_header *header, attn_error *err);

/* The version that the scripts lead to: schema.sql is 1, migrations/NNN.sql is NNN. */
int64_t attn_db_version(const attn_embedded *files, size_t count);

/* ATTN_OK if the file is ours (or empty) and not newer. */
attn_status attn_db_accept(attn_db *db, const attn_db_header *header, int64_t version,
                           attn_error *err);

/* Brings the file to that version in one transaction. */
attn_status attn_db_upgrade(attn_db *db, const attn_embedded *files, size_t count, attn_error *err);

/* A database in memory, for imports and tests. */
attn_status attn_db_open_memory(attn_db **db, attn_error *err);

/*-*** db_put.c: rows that are found by what they say *************/

attn_status attn_db_put_device(attn_db *db, const attn_device_info *info, int64_t *row,
                               attn_error *err);
attn_status attn_db_put_problem(attn_db *db, const attn_problem *problem, int64_t *row,
                                attn_error *err);
attn_status attn_db_put_variant(attn_db *db, const attn_variant *variant, attn_hash source_hash,
                                int64_t abi, int64_t *row, attn_error *err);
attn_status attn_db_put_build(attn_db *db, attn_hash hash, int64_t variant, const char *toolchain,
                              const char *target, int64_t *row, attn_error *err);

/* 128 random bits. */
attn_status attn_db_random_id(attn_trial_id *id, attn_error *err);

/*-*** Others ****************************************************/

/* Shows other hosts that this session lives. */
attn_status attn_db_session_seen(attn_db *db, attn_error *err);

/* Turns the running trials of dead sessions into `lost`: all, or just one. In a transaction. */
attn_status attn_db_reap(attn_db *db, const char *trial, attn_error *err);

/* Appends "WITH hit AS (trials that match)", which find and export read from; and binds its
 * parameters. */
void attn_db_filter_sql(const attn_db_filter *filter, attn_str *out);
void attn_db_filter_bind(const attn_db_filter *filter, attn_sql *q);

/* Drops binaries that are over the caps, in a transaction. */
attn_status attn_db_trim(attn_db *db, int64_t top, int64_t bytes, attn_error *err);

/* Merges the attached database `other`, in a transaction. */
attn_status attn_db_merge_other(attn_db *db, attn_db_counts *counts, attn_error *err);

#endif
