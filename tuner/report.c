/* report.c: the three forms of a report.
 *
 * Cells are kept as texts until the end, because a table's widths depend on all of them. */
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const attn_format_words[] = {"table", "csv", "jsonl", NULL};

void attn_report_begin(attn_report *report, attn_format format, const attn_column *column,
                       size_t columns) {
    *report = (attn_report){.format = format, .column = column, .columns = columns};
}

void attn_report_text(attn_report *report, const char *text) {
    if (report->failed)
        return;
    if (report->cells == report->capacity) {
        size_t capacity = report->capacity ? report->capacity * 2 : 64;
        char **cell = realloc(report->cell, capacity * sizeof *cell);
        if (!cell) {
            report->failed = true;
            return;
        }
        report->cell = cell;
        report->capacity = capacity;
    }
    char *copy = NULL;
    if (text && text[0]) {
        copy = strdup(text);
        report->failed = !copy;
    }
    report->cell[report->cells++] = copy;
}

/* People read four digits; programs get all that were measured. */
void attn_report_number(attn_report *report, double number) {
    char text[64];
    if (!isfinite(number)) {
        attn_report_text(report, NULL);
        return;
    }
    double size = fabs(number);
    if (number == rint(number) && size < 1e15)
        (void)snprintf(text, sizeof text, "%.0f", number);
    else if (report->format != ATTN_TABLE || size < 1e-4)
        (void)snprintf(text, sizeof text, report->format == ATTN_TABLE ? "%.2e" : "%.9g", number);
    else
        (void)snprintf(text, sizeof text, "%.*f", size >= 1000 ? 0 : 3 - (int)floor(log10(size)),
                       number);
    attn_report_text(report, text);
}

size_t attn_report_rows(const attn_report *report) {
    return report->columns ? report->cells / report->columns : 0;
}

/*-*** Table *****************************************************/

/* Columns of a table are characters, not bytes: UTF-8 continuation bytes take no place. */
static size_t width(const char *text) {
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

/* A row is one line, whatever is in it: line ends become "; ". */
static void table_text(const char *text, attn_str *out) {
    for (; *text; text++) {
        if (*text == '\n')
            attn_str_append(out, text[1] ? "; " : "");
        else
            attn_str_append_bytes(out, (unsigned char)*text < ' ' ? " " : text, 1);
    }
}

static void pad(attn_str *out, size_t count) {
    while (count-- > 0)
        attn_str_append(out, " ");
}

static void table_line(const attn_report *report, const char *const *text, const size_t *widths,
                       attn_str *out) {
    size_t last = 0;
    for (size_t c = 0; c < report->columns; c++)
        last = widths[c] ? c : last;
    for (size_t c = 0; c <= last; c++) {
        if (widths[c] == 0)
            continue;
        attn_str shown = ATTN_STR_INIT;
        table_text(text[c] ? text[c] : "-", &shown);
        size_t gap =
            widths[c] > width(attn_str_text(&shown)) ? widths[c] - width(attn_str_text(&shown)) : 0;
        bool number = report->column[c].kind == ATTN_NUMBER;
        pad(out, number ? gap : 0);
        attn_str_append(out, attn_str_text(&shown));
        pad(out, c == last ? 0 : (number ? 2 : gap + 2));
        out->failed |= shown.failed;
        attn_str_free(&shown);
    }
    attn_str_append(out, "\n");
}

static void table(const attn_report *report, attn_str *out) {
    size_t rows = attn_report_rows(report), columns = report->columns;
    if (rows == 0)
        return;
    size_t *widths = calloc(columns, sizeof *widths);
    const char **name = calloc(columns, sizeof *name);
    if (!widths || !name) {
        out->failed = true;
        goto done;
    }
    for (size_t c = 0; c < columns; c++) {
        name[c] = report->column[c].name;
        for (size_t r = 0; r < rows; r++) {
            const char *text = report->cell[r * columns + c];
            if (!text)
                continue;
            size_t w = width(text);
            for (const char *end = strchr(text, '\n'); end; end = strchr(end + 1, '\n'))
                w++; /* "; " is one longer than a line end */
            if (w > widths[c])
                widths[c] = w;
        }
        if (widths[c] && widths[c] < width(name[c]))
            widths[c] = width(name[c]);
    }
    table_line(report, name, widths, out);
    for (size_t r = 0; r < rows; r++)
        table_line(report, (const char *const *)report->cell + r * columns, widths, out);
done:
    free(widths);
    free(name);
}

/*-*** CSV (RFC 4180, with plain line ends) **********************/

static void csv_field(const char *text, attn_str *out) {
    if (!text)
        return;
    if (!strpbrk(text, ",\"\r\n")) {
        attn_str_append(out, text);
        return;
    }
    attn_str_append(out, "\"");
    for (; *text; text++)
        attn_str_append_bytes(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    attn_str_append(out, "\"");
}

static void csv(const attn_report *report, attn_str *out) {
    for (size_t c = 0; c < report->columns; c++) {
        attn_str_append(out, c ? "," : "");
        csv_field(report->column[c].name, out);
    }
    attn_str_append(out, "\n");
    for (size_t r = 0; r < attn_report_rows(report); r++) {
        for (size_t c = 0; c < report->columns; c++) {
            attn_str_append(out, c ? "," : "");
            csv_field(report->cell[r * report->columns + c], out);
        }
        attn_str_append(out, "\n");
    }
}

/*-*** JSON lines ************************************************/

/* Bytes of the UTF-8 character at text, 0 if it is not one. */
static size_t utf8_size(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (n == 0 || s[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool outside = (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF4 && s[1] > 0x8F);
    return overlong || outside ? 0 : n;
}

static void json_text(const char *text, attn_str *out) {
    attn_str_append(out, "\"");
    while (*text) {
        size_t n = utf8_size(text);
        if (n == 0)
            attn_str_append(out, "\\ufffd");
        else if (*text == '"' || *text == '\\')
            attn_str_append_f(out, "\\%c", *text);
        else if (*text == '\n')
            attn_str_append(out, "\\n");
        else if ((unsigned char)*text < ' ')
            attn_str_append_f(out, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            attn_str_append_bytes(out, text, n);
        text += n ? n : 1;
    }
    attn_str_append(out, "\"");
}

static void jsonl(const attn_report *report, attn_str *out) {
    for (size_t r = 0; r < attn_report_rows(report); r++) {
        for (size_t c = 0; c < report->columns; c++) {
            const char *text = report->cell[r * report->columns + c];
            attn_str_append(out, c ? ", " : "{");
            json_text(report->column[c].name, out);
            attn_str_append(out, ": ");
            if (!text)
                attn_str_append(out, "null");
            else if (report->column[c].kind == ATTN_NUMBER)
                attn_str_append(out, text);
            else
                json_text(text, out);
        }
        attn_str_append(out, "}\n");
    }
}

attn_status attn_report_end(attn_report *report, attn_str *out, attn_error *err) {
    static void (*const form[])(const attn_report *, attn_str *) = {table, csv, jsonl};
    form[report->format](report, out);
    bool failed = report->failed || out->failed;
    attn_report_free(report);
    return failed ? attn_fail_nomem(err) : ATTN_OK;
}

void attn_report_free(attn_report *report) {
    for (size_t i = 0; i < report->cells; i++)
        free(report->cell[i]);
    free(report->cell);
    report->cell = NULL;
    report->cells = report->capacity = 0;
}
