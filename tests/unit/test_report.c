/* test_report.c: the three forms of a report, and reading options by the table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "check.h"
#include "report.h"
#include "tune.h"

static const attn_column columns[] = {
    {"name", ATTN_TEXT}, {"ms", ATTN_NUMBER}, {"empty", ATTN_TEXT}, {"note", ATTN_TEXT}};

/* What two rows become. The caller frees it. */
static char *report_of(attn_format format) {
    attn_report report;
    attn_str out = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    attn_report_begin(&report, format, columns, ATTN_COLUMNS(columns));
    attn_report_text(&report, "a,\"b\"");
    attn_report_number(&report, 1234.5678);
    attn_report_text(&report, NULL);
    attn_report_text(&report, "one\ntwo");
    attn_report_text(&report, "\xC3\xA9\xFF\t\\");
    attn_report_number(&report, NAN);
    attn_report_text(&report, "");
    attn_report_text(&report, NULL);
    CHECK_EQ_INT(attn_report_rows(&report), 2);
    CHECK_EQ_INT(attn_report_end(&report, &out, &err), ATTN_OK);
    return attn_str_take(&out);
}

static void check_forms(void) {
    static const struct {
        attn_format format;
        const char *want;
    } cases[] = {
        {ATTN_TABLE, "name     ms  note\n"
                     "a,\"b\"  1235  one; two\n"
                     "\xC3\xA9\xFF \\      -  -\n"},
        {ATTN_CSV, "name,ms,empty,note\n"
                   "\"a,\"\"b\"\"\",1234.5678,,\"one\ntwo\"\n"
                   "\xC3\xA9\xFF\t\\,,,\n"},
        {ATTN_JSONL, "{\"name\": \"a,\\\"b\\\"\", \"ms\": 1234.5678, \"empty\": null, "
                     "\"note\": \"one\\ntwo\"}\n"
                     "{\"name\": \"\xC3\xA9\\ufffd\\u0009\\\\\", \"ms\": null, \"empty\": null, "
                     "\"note\": null}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_CASE("%s", attn_format_words[cases[i].format]);
        char *text = report_of(cases[i].format);
        CHECK_STR(text, cases[i].want);
        free(text);
    }
}

/* People see four digits, programs all of them. */
static void check_numbers(void) {
    static const struct {
        double number;
        const char *table, *jsonl;
    } cases[] = {
        {0, "0", "0"},
        {-3, "-3", "-3"},
        {12.3456789, "12.35", "12.3456789"},
        {123456.789, "123457", "123456.789"},
        {0.0123456, "0.01235", "0.0123456"},
        {1.5e-7, "1.50e-07", "1.5e-07"},
        {INFINITY, "-", "null"},
    };
    static const attn_column one[] = {{"n", ATTN_NUMBER}, {"x", ATTN_TEXT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int form = 0; form < 2; form++) {
            attn_report report;
            attn_str out = ATTN_STR_INIT;
            attn_error err = ATTN_ERROR_INIT;
            attn_report_begin(&report, form ? ATTN_JSONL : ATTN_TABLE, one, 2);
            attn_report_number(&report, cases[i].number);
            attn_report_text(&report, "x");
            CHECK_EQ_INT(attn_report_end(&report, &out, &err), ATTN_OK);
            CHECK_CASE("%s", cases[i].jsonl);
            const char *want = form ? cases[i].jsonl : cases[i].table;
            if (form || isfinite(cases[i].number))
                CHECK(strstr(attn_str_text(&out), want) != NULL);
            attn_str_free(&out);
        }
    }
}

static void check_empty(void) {
    static const char *const want[] = {"", "name,ms,empty,note\n", ""};
    for (int form = 0; form < 3; form++) {
        attn_report report;
        attn_str out = ATTN_STR_INIT;
        attn_error err = ATTN_ERROR_INIT;
        attn_report_begin(&report, (attn_format)form, columns, ATTN_COLUMNS(columns));
        CHECK_EQ_INT(attn_report_end(&report, &out, &err), ATTN_OK);
        CHECK_STR(attn_str_text(&out), want[form]);
        attn_str_free(&out);
    }
}

static void check_args(void) {
    const char *const argv[] = {"fwd",
                                "--budget",
                                "1.5m",
                                "--quick",
                                "--seed=18446744073709551615",
                                "--config",
                                "A=1",
                                "--config=f: B=2",
                                "--format",
                                "csv",
                                "-o",
                                "x",
                                "-",
                                "--",
                                "--quick"};
    attn_args args;
    attn_error err = ATTN_ERROR_INIT;
    attn_status status = attn_args_parse((int)(sizeof argv / sizeof argv[0]), argv,
                                         "budget quick seed config format output", &args, &err);
    CHECK_STR(err.line, "");
    CHECK_EQ_INT(status, ATTN_OK);
    CHECK_NEAR(args.budget_s, 90, 1e-9);
    CHECK(args.quick && !args.lint);
    CHECK(args.seed == UINT64_MAX);
    CHECK_EQ_INT(args.configs, 2);
    CHECK_STR(args.config[1], "f: B=2");
    CHECK_EQ_INT(args.format, ATTN_CSV);
    CHECK_STR(args.output, "x");
    CHECK_EQ_INT(args.words, 3);
    CHECK_STR(args.word[1], "-");
    CHECK_STR(args.word[2], "--quick");
    attn_args_free(&args);
}

static void check_names(void) {
    CHECK(attn_args_allows("db system-db path", "db"));
    CHECK(attn_args_allows("system-db path", "path"));
    CHECK(!attn_args_allows("system-db path", "db"));
    CHECK(!attn_args_allows("winners", "winner"));
    CHECK(!attn_args_allows("", "db"));
}

int main(void) {
    check_forms();
    check_numbers();
    check_empty();
    check_args();
    check_names();
    return check_done();
}
