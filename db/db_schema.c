/* db_schema.c: whose file it is, and bringing it up to date.
 *
 * schema.sql makes version 1. Version N comes from N-1 by migrations/NNN.sql. All steps that a file
 * lacks run in one transaction: it is then of the current version, or as it was. */
#include "db_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 0 for a file that is no script. */
static int64_t script_version(const char *name) {
    static const char folder[] = "migrations/";
    char *end;
    if (strcmp(name, "schema.sql") == 0)
        return 1;
    if (strncmp(name, folder, sizeof folder - 1) != 0)
        return 0;
    long number = strtol(name + sizeof folder - 1, &end, 10);
    return strcmp(end, ".sql") == 0 && number > 1 ? number : 0;
}

static const attn_embedded *find_script(const attn_embedded *files, size_t count, int64_t version) {
    for (size_t i = 0; i < count; i++)
        if (script_version(files[i].name) == version)
            return &files[i];
    return NULL;
}

int64_t attn_db_version(const attn_embedded *files, size_t count) {
    int64_t version = 0;
    while (find_script(files, count, version + 1))
        version++;
    return version;
}

static attn_status read_header(attn_db *db, attn_db_header *header, attn_error *err) {
    ATTN_TRY(attn_db_ask(db, "SELECT count(*) FROM sqlite_schema", &header->tables, err));
    ATTN_TRY(attn_db_ask(db, "PRAGMA application_id", &header->application, err));
    return attn_db_ask(db, "PRAGMA user_version", &header->version, err);
}

attn_status attn_db_read_header(attn_db *db, attn_db_header *header, attn_error *err) {
    ATTN_TRY(attn_db_exec(db, "BEGIN", err));
    return attn_db_finish(db, read_header(db, header, err), err);
}

attn_status attn_db_accept(attn_db *db, const attn_db_header *header, int64_t version,
                           attn_error *err) {
    bool empty = header->application == 0 && header->version == 0 && header->tables == 0;
    if (!empty && header->application != ATTN_DB_APPLICATION)
        return attn_fail(err, ATTN_ERR_DB_FOREIGN,
                         "database %s: not an attntune database but another program's: name "
                         "another file with --db or ATTNTUNE_DB",
                         db->path);
    if (header->version > version)
        return attn_fail(err, ATTN_ERR_DB_NEWER,
                         "database %s: written by a newer attntune (schema %" PRId64
                         ", this one knows %" PRId64 "): update attntune or name another file with "
                         "--db or ATTNTUNE_DB",
                         db->path, header->version, version);
    return ATTN_OK;
}

static attn_status run_scripts(attn_db *db, const attn_embedded *files, size_t count,
                               attn_error *err) {
    attn_db_header header;
    char stamp[96];
    const attn_embedded *script;
    int64_t last = attn_db_version(files, count);
    ATTN_TRY(read_header(db, &header, err)); /* again: another process may have been faster */
    ATTN_TRY(attn_db_accept(db, &header, last, err));
    for (int64_t v = header.version + 1; (script = find_script(files, count, v)); v++) {
        if (attn_db_exec(db, (const char *)script->data, err) != ATTN_OK)
            return attn_fail_prefix(err, "%s", script->name);
    }
    snprintf(stamp, sizeof stamp, "PRAGMA application_id=%d; PRAGMA user_version=%" PRId64,
             ATTN_DB_APPLICATION, last);
    return attn_db_exec(db, stamp, err);
}

attn_status attn_db_upgrade(attn_db *db, const attn_embedded *files, size_t count,
                            attn_error *err) {
    attn_db_header header;
    int64_t last = attn_db_version(files, count);
    ATTN_TRY(attn_db_read_header(db, &header, err));
    ATTN_TRY(attn_db_accept(db, &header, last, err));
    if (header.application == ATTN_DB_APPLICATION && header.version == last)
        return ATTN_OK;
    ATTN_TRY(attn_db_begin(db, err));
    return attn_db_finish(db, run_scripts(db, files, count, err), err);
}
