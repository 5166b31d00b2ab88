/* fuzz_import.c: any text as an import: it is refused and changes nothing, or it is taken and
 * comes out of an export that imports to the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static attn_error err;

static void expect(int good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, err.line);
    abort();
}

static attn_db *fresh(void) {
    attn_db *db;
    expect(attn_db_open_memory(&db, &err) == ATTN_OK, "open");
    return db;
}

static char *export(attn_db *db) {
    attn_str text = ATTN_STR_INIT;
    attn_db_filter all = {.limit = 0};
    expect(attn_db_export(db, &all, true, &text, &err) == ATTN_OK, "export");
    char *taken = attn_str_take(&text);
    expect(taken != NULL, "memory");
    return taken;
}

static int64_t rows(attn_db *db) {
    int64_t n;
    expect(attn_db_ask(db,
                       "SELECT (SELECT count(*) FROM trial) + (SELECT count(*) FROM build) + "
                       "(SELECT count(*) FROM variant) + (SELECT count(*) FROM problem) + "
                       "(SELECT count(*) FROM device)",
                       &n, &err) == ATTN_OK,
           "count");
    return n;
}

static void round_trip(attn_db *db, const attn_db_counts *first) {
    attn_db *copy = fresh();
    attn_db_counts counts;
    char *text = export(db), *again;
    expect(attn_db_import(copy, text, "export", &counts, &err) == ATTN_OK, "import of an export");
    expect(counts.added == first->added, "as many trials");
    again = export(copy);
    expect(strcmp(text, again) == 0, "the same export");
    free(text);
    free(again);
    attn_db_close(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static attn_db *db; /* empty, as long as every import is refused */
    attn_db_counts counts;
    char *text = malloc(size + 1);
    expect(text != NULL, "memory");
    memcpy(text, data, size);
    text[size] = '\0';
    if (!db)
        db = fresh();
    attn_status status = attn_db_import(db, text, "fuzz", &counts, &err);
    free(text);
    if (status != ATTN_OK) {
        expect(status == ATTN_ERR_INVALID, "refused as invalid");
        expect(rows(db) == 0, "refused without a trace");
        return 0;
    }
    round_trip(db, &counts);
    attn_db_close(db);
    db = NULL;
    return 0;
}
