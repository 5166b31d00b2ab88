/* error.c: filling attn_error, and finding the word that was meant. */
#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef attn_fail /* what error.h tells an analyzer is for those who call them */
#undef attn_fail_nomem

attn_status attn_fail(attn_error *err, attn_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->line, sizeof err->line, format, args);
    va_end(args);
    err->status = status;
    return status;
}

attn_status attn_fail_prefix(attn_error *err, const char *format, ...) {
    char prefix[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(prefix, sizeof prefix - 2, format, args);
    va_end(args);
    strcat(prefix, ": ");
    size_t shift = strlen(prefix), kept = strlen(err->line);
    if (kept > sizeof err->line - 1 - shift)
        kept = sizeof err->line - 1 - shift;
    memmove(err->line + shift, err->line, kept);
    err->line[shift + kept] = '\0';
    memcpy(err->line, prefix, shift);
    return err->status;
}

attn_status attn_fail_nomem(attn_error *err) {
    return attn_fail(err, ATTN_ERR_NOMEM, "%s", attn_status_text(ATTN_ERR_NOMEM));
}

enum { WORD_MAX = 64, BEGINNING = 3 };

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Levenshtein distance by rows, upper case being lower; words over WORD_MAX are far from
 * everything. */
static size_t edit_distance(const char *a, const char *b) {
    size_t row[WORD_MAX + 1];
    size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}

const char *attn_nearest_word(const char *word, const char *const *words, size_t n) {
    size_t size = strlen(word), limit = size < 4 ? size : 4, nearest = n;
    for (size_t i = 0; i < n; i++) {
        size_t d = edit_distance(word, words[i]);
        if (d < limit) {
            limit = d;
            nearest = i;
        }
    }
    for (size_t i = 0; nearest == n && size >= BEGINNING && i < n; i++)
        if (strncmp(words[i], word, size) == 0)
            nearest = i;
    return nearest < n ? words[nearest] : NULL;
}
