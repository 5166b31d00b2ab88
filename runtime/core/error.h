/* error.h: a status with the line (or compiler log) that explains it.
 *
 * Functions that can fail in more than one way take an attn_error * (never NULL) and return its
 * status, so that `return attn_fail(err, ATTN_ERR_IO, "...")` is the whole error path. */
#ifndef ATTN_ERROR_H
#define ATTN_ERROR_H

#include "attntune/attntune.h"

typedef struct attn_error {
    attn_status status;
    char line[1024]; /* one line, or several when a log follows; cut at the end if longer */
} attn_error;

#define ATTN_ERROR_INIT                                                                            \
    { ATTN_OK, "" }

#define ATTN_PRINTF(a, b) __attribute__((format(printf, a, b)))

/* Sets both and returns status. */
attn_status attn_fail(attn_error *err, attn_status status, const char *format, ...)
    ATTN_PRINTF(3, 4);

/* Puts "text: " before the line that is there, to say what was being done. Returns its status. */
attn_status attn_fail_prefix(attn_error *err, const char *format, ...) ATTN_PRINTF(2, 3);

/* ATTN_ERR_NOMEM with its text. */
attn_status attn_fail_nomem(attn_error *err);

#ifdef __clang_analyzer__ /* tells it what these return, so that it does not take them for ATTN_OK \
                           */
static inline attn_status attn_failed(attn_status returned, attn_status status) {
    return returned == status ? returned : status;
}
#define attn_fail(err, status, ...) attn_failed(attn_fail(err, status, __VA_ARGS__), status)
#define attn_fail_nomem(err) attn_failed(attn_fail_nomem(err), ATTN_ERR_NOMEM)
#endif

/* The word of the n that is nearest to `word` (edit distance at most 3 and under its length, upper
 * and lower case alike), else the first that begins with it, or NULL: for "did you mean". */
const char *attn_nearest_word(const char *word, const char *const *words, size_t n);

#define ATTN_TRY(expression)                                                                       \
    do {                                                                                           \
        attn_status try_status_ = (expression);                                                    \
        if (try_status_ != ATTN_OK)                                                                \
            return try_status_;                                                                    \
    } while (0)

#endif
