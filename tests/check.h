/* check.h: the test harness. One executable a unit; `return check_done();` ends its main.
 *
 * A failed check prints file, line, the expression and both values, is counted, and the test goes
 * on; checks are never compiled out. In a table-driven test, CHECK_CASE("%s", name) before the
 * checks of a row puts its name into their messages. A test that cannot run here calls
 * check_skip().
 */
#ifndef ATTN_TEST_CHECK_H
#define ATTN_TEST_CHECK_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attntune/attntune.h"

enum { CHECK_SKIPPED = 77 }; /* CTest's SKIP_RETURN_CODE */

static int check_failures;
static int check_count;
static char check_case[256];

__attribute__((format(printf, 4, 5), unused)) static bool
check_that(bool good, const char *file, int line, const char *format, ...) {
    va_list args;
    check_count++;
    if (good)
        return true;
    check_failures++;
    fprintf(stderr, "%s:%d: ", file, line);
    if (check_case[0])
        fprintf(stderr, "[%s] ", check_case);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

__attribute__((unused)) static bool check_text(const char *a, const char *b, const char *expression,
                                               const char *file, int line) {
    bool good = a == b || (a && b && strcmp(a, b) == 0);
    return check_that(good, file, line, "%s\n    is   \"%s\"\n    want \"%s\"", expression,
                      a ? a : "(null)", b ? b : "(null)");
}

__attribute__((unused)) static void check_skip(const char *why) {
    printf("skipped: %s\n", why);
    exit(CHECK_SKIPPED);
}

__attribute__((unused)) static int check_done(void) {
    printf("%d checks, %d failed\n", check_count, check_failures);
    if (check_count == 0)
        fprintf(stderr, "the test checked nothing\n");
    return check_failures > 0 || check_count == 0;
}

/* Each yields whether it held: `if (!CHECK(p != NULL)) return;` */
#define CHECK(condition) check_that((condition), __FILE__, __LINE__, "not so: %s", #condition)

/* Any integers, sizes and enums. */
#define CHECK_EQ_INT(value, want)                                                                  \
    check_int((intmax_t)(value), (intmax_t)(want), #value, __FILE__, __LINE__)

#define CHECK_STR(value, want) check_text((value), (want), #value, __FILE__, __LINE__)

/* |value - want| <= tolerance; a NaN never passes. */
#define CHECK_NEAR(value, want, tolerance)                                                         \
    check_near((value), (want), (tolerance), #value, __FILE__, __LINE__)

/* The text holds the part: for messages whose exact wording is not the point. */
#define CHECK_HAS(text, part) check_has((text), (part), #text, __FILE__, __LINE__)

/* An attn_status expression is ATTN_OK, or exactly the other code; `line` is the text of the
 * attn_error that the expression filled (or any other explanation, or ""). */
#define CHECK_OK(expression, line) CHECK_STATUS(expression, ATTN_OK, line)
#define CHECK_STATUS(expression, want, line)                                                       \
    check_status((expression), (want), (line), #expression, __FILE__, __LINE__)

#define CHECK_CASE(...) ((void)snprintf(check_case, sizeof check_case, __VA_ARGS__))

__attribute__((unused)) static bool check_int(intmax_t a, intmax_t b, const char *expression,
                                              const char *file, int line) {
    return check_that(a == b, file, line, "%s is %jd, want %jd", expression, a, b);
}

__attribute__((unused)) static bool check_near(double a, double b, double tolerance,
                                               const char *expression, const char *file, int line) {
    return check_that(fabs(a - b) <= tolerance, file, line, "%s is %.17g, want %.17g +- %g",
                      expression, a, b, tolerance);
}

__attribute__((unused)) static bool check_has(const char *text, const char *part,
                                              const char *expression, const char *file, int line) {
    return check_that(text && strstr(text, part), file, line,
                      "%s\n    is   \"%s\"\n    lacks \"%s\"", expression, text ? text : "(null)",
                      part);
}

__attribute__((unused)) static bool check_status(attn_status status, attn_status want,
                                                 const char *explanation, const char *expression,
                                                 const char *file, int line) {
    return check_that(status == want, file, line, "%s\n    is   %s\n    want %s\n    %s",
                      expression, attn_status_name(status), attn_status_name(want),
                      explanation ? explanation : "");
}

#endif
