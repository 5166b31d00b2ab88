/* db_import.c: reading results as text; db_text.h has its form.
 *
 * The text goes into a database in memory, whose rules (types, references, uniqueness) it must
 * meet; only then is that merged. So nothing is half-imported, and there is one kind of merging. */
#include "db_internal.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db_text.h"

static void begin_record(attn_text_record *r, const attn_text_kind *kind, int line) {
    r->kind = kind;
    r->line = line;
    attn_str_clear(&r->name);
    for (int i = 0; i < ATTN_TEXT_FIELDS; i++) {
        attn_str_clear(&r->values[i]);
        r->present[i] = false;
    }
}

static void free_record(attn_text_record *r) {
    attn_str_free(&r->name);
    for (int i = 0; i < ATTN_TEXT_FIELDS; i++)
        attn_str_free(&r->values[i]);
}

static attn_status add_field(attn_text_record *r, char *line, attn_error *err) {
    int i = 0;
    if (line[1] != ' ' || !r->kind)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "'%.60s' is not a field \"  KEY VALUE\" of a record", line);
    char *key = line + 2, *blank = strchr(key, ' ');
    const char *text = blank ? blank + 1 : "";
    if (blank)
        *blank = '\0';
    while (r->kind->fields[i] && strcmp(r->kind->fields[i], key) != 0)
        i++;
    if (!r->kind->fields[i]) {
        const char *near = attn_nearest_word(key, r->kind->fields, (size_t)i);
        return attn_fail(err, ATTN_ERR_INVALID, "a %s has no field '%.40s'%s%s%s", r->kind->name,
                         key, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    attn_str_append(&r->values[i], r->present[i] ? "\n" : "");
    attn_str_append(&r->values[i], text);
    r->present[i] = true;
    return r->values[i].failed ? attn_fail_nomem(err) : ATTN_OK;
}

static attn_status start_record(attn_text_record *r, char *line, int number, attn_error *err) {
    const char *names[ATTN_TEXT_KINDS];
    char *name = strchr(line, ' ');
    if (name)
        *name++ = '\0';
    for (int i = 0; i < ATTN_TEXT_KINDS; i++) {
        names[i] = attn_text_kinds[i].name;
        if (!name || strcmp(names[i], line) != 0)
            continue;
        begin_record(r, &attn_text_kinds[i], number);
        attn_str_append(&r->name, name);
        return r->name.failed ? attn_fail_nomem(err) : ATTN_OK;
    }
    const char *near = attn_nearest_word(line, names, ATTN_TEXT_KINDS);
    return attn_fail(err, ATTN_ERR_INVALID, "'%.60s' begins no record%s%s%s", line,
                     near ? "; did you mean '" : "", near ? near : "", near ? " NAME'?" : "");
}

/* What has been read. */
struct progress {
    attn_text_record record; /* of which more lines may follow */
    int records;
    bool ended;
};

/* "end N": as many records as there were. */
static attn_status read_end(struct progress *p, const char *count, attn_error *err) {
    char want[16];
    snprintf(want, sizeof want, "%d", p->records);
    if (strcmp(count, want) != 0)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "incomplete: the end counts %.20s records, but there are %s", count, want);
    p->record.kind = NULL;
    p->ended = true;
    return ATTN_OK;
}

/* One line, which it may change. Errors of a record are of its first line. */
static attn_status read_line(attn_db *db, struct progress *p, char *line, int number, int *at,
                             attn_error *err) {
    attn_text_record *r = &p->record;
    *at = number;
    if (number == 1 && strncmp(line, ATTN_DB_MAGIC, strlen(ATTN_DB_MAGIC)) == 0)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "a database, not an export: `attntune db merge` takes it in");
    if (number == 1)
        return strcmp(line, ATTN_TEXT_FIRST_LINE) == 0
                   ? ATTN_OK
                   : attn_fail(err, ATTN_ERR_INVALID, "not an export: the first line is not '%s'",
                               ATTN_TEXT_FIRST_LINE);
    if (*line == '\0' || *line == '#')
        return ATTN_OK;
    if (p->ended)
        return attn_fail(err, ATTN_ERR_INVALID, "'%.60s' stands behind the end", line);
    if (*line == ' ')
        return add_field(r, line, err);
    *at = r->line;
    ATTN_TRY(attn_text_put(db, r, err));
    *at = number;
    if (strncmp(line, ATTN_TEXT_END, strlen(ATTN_TEXT_END)) == 0)
        return read_end(p, line + strlen(ATTN_TEXT_END), err);
    p->records++;
    return start_record(r, line, number, err);
}

static attn_status read_text(attn_db *db, char *text, int *at, attn_error *err) {
    struct progress p = {.records = 0};
    attn_status status = ATTN_OK;
    int number = 0;
    for (char *line = text; status == ATTN_OK && line;) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        status = read_line(db, &p, line, ++number, at, err);
        line = next;
    }
    if (status == ATTN_OK && !p.ended)
        status = attn_fail(err, ATTN_ERR_INVALID,
                           "cut off: the last line of an export is 'end' and the number of its "
                           "records (%d here); export it again",
                           p.records);
    free_record(&p.record);
    return status;
}

/* Makes the database in memory the `other` of db. */
static attn_status attach_memory(attn_db *db, attn_db *memory, attn_error *err) {
    sqlite3_int64 size;
    unsigned char *image = sqlite3_serialize(memory->sql, "main", &size, 0);
    if (!image)
        return attn_fail_nomem(err);
    attn_status status = attn_db_exec(db, "ATTACH ':memory:' AS other", err);
    if (status != ATTN_OK) {
        sqlite3_free(image);
        return status;
    }
    int code =
        sqlite3_deserialize(db->sql, "other", image, size, size, SQLITE_DESERIALIZE_FREEONCLOSE);
    return code == SQLITE_OK ? ATTN_OK : attn_db_fail(db, code, err);
}

static attn_status merge_memory(attn_db *db, attn_db *memory, attn_db_counts *counts,
                                attn_error *err) {
    attn_status status = attach_memory(db, memory, err);
    if (status == ATTN_OK)
        status = attn_db_begin(db, err);
    if (status == ATTN_OK)
        status = attn_db_finish(db, attn_db_merge_other(db, counts, err), err);
    sqlite3_exec(db->sql, "DETACH other", NULL, NULL, NULL);
    return status;
}

/* The text as a database in memory. */
static attn_status open_text(const char *text, const char *name, attn_db **memory,
                             attn_error *err) {
    int line = 1;
    ATTN_TRY(attn_db_open_memory(memory, err));
    char *copy = strdup(text);
    attn_status status = copy ? read_text(*memory, copy, &line, err) : attn_fail_nomem(err);
    free(copy);
    if (status == ATTN_OK)
        return ATTN_OK;
    attn_fail_prefix(err, "%s:%d", name, line);
    attn_db_close(*memory);
    return status;
}

attn_status attn_db_import_check(const char *text, const char *name, attn_error *err) {
    attn_db *memory;
    ATTN_TRY(open_text(text, name, &memory, err));
    attn_db_close(memory);
    return ATTN_OK;
}

attn_status attn_db_import(attn_db *db, const char *text, const char *name, attn_db_counts *counts,
                           attn_error *err) {
    attn_db *memory;
    *counts = (attn_db_counts){0, 0};
    ATTN_TRY(open_text(text, name, &memory, err));
    attn_status status = merge_memory(db, memory, counts, err);
    attn_db_close(memory);
    return status;
}
