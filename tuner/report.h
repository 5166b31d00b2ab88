/* report.h: data as the CLI prints them: an aligned table, CSV or JSON lines.
 *
 * One column table describes a report; the names of its columns are the headings of the table, the
 * header of the CSV and the fields of the JSON lines. Cells are added row by row, left to right:
 *
 *     static const attn_column columns[] = {{"device", ATTN_TEXT}, {"ms", ATTN_NUMBER}};
 *     attn_report report;
 *     attn_report_begin(&report, ATTN_TABLE, columns, ATTN_COLUMNS(columns));
 *     attn_report_text(&report, "cpu");
 *     attn_report_number(&report, 1.25);
 *     status = attn_report_end(&report, &out, err);
 */
#ifndef ATTN_REPORT_H
#define ATTN_REPORT_H

#include "core/str.h"

typedef enum attn_format { ATTN_TABLE, ATTN_CSV, ATTN_JSONL } attn_format;

/* The words of --format, in the order of attn_format; ends with NULL. */
extern const char *const attn_format_words[];

typedef enum attn_column_kind { ATTN_TEXT, ATTN_NUMBER } attn_column_kind;

typedef struct attn_column {
    const char *name;
    attn_column_kind kind;
} attn_column;

#define ATTN_COLUMNS(table) (sizeof(table) / sizeof((table)[0]))

typedef struct attn_report {
    attn_format format;
    const attn_column *column;
    size_t columns;
    char **cell; /* row by row; NULL: nothing there */
    size_t cells;
    size_t capacity;
    bool failed; /* out of memory */
} attn_report;

void attn_report_begin(attn_report *report, attn_format format, const attn_column *column,
                       size_t columns);

/* The next cell. NULL, "", NaN and infinities are nothing: "-" in a table, an empty field, null. */
void attn_report_text(attn_report *report, const char *text);
void attn_report_number(attn_report *report, double number);

/* Rows so far. */
size_t attn_report_rows(const attn_report *report);

/* Appends the report to out and frees it. A table leaves out columns that are empty in every row,
 * and is nothing at all without rows; CSV always has its header. ERR_NOMEM. */
attn_status attn_report_end(attn_report *report, attn_str *out, attn_error *err);

void attn_report_free(attn_report *report);

#endif
