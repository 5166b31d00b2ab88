/* cmd_space.c: a family's space as data: parameters, counts, what each constraint rejects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_build.h"

/*-*** Every family **********************************************/

static const attn_column family_columns[] = {
    {"family", ATTN_TEXT}, {"reference", ATTN_TEXT}, {"doc", ATTN_TEXT}};

static int list_families(attn_cli *cli) {
    attn_report report;
    int code = ATTN_EXIT_OK;
    attn_report_begin(&report, (attn_format)cli->args.format, family_columns,
                      ATTN_COLUMNS(family_columns));
    for (size_t i = 0; i < attn_gen_family_count(cli->gen); i++) {
        attn_error err = ATTN_ERROR_INIT;
        attn_family_info info;
        const char *name = attn_gen_family_name(cli->gen, i);
        if (attn_gen_family(cli->gen, name, &info, &err) != ATTN_OK) {
            code = attn_failure(err.status, &err); /* one broken family does not hide the others */
            continue;
        }
        attn_report_text(&report, name);
        attn_report_text(&report, info.reference ? "yes" : "no");
        attn_report_text(&report, info.doc);
    }
    attn_error err = ATTN_ERROR_INIT;
    if (attn_report_end(&report, &cli->out, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    return code;
}

/*-*** Lint ******************************************************/

static const attn_column lint_columns[] = {{"family", ATTN_TEXT}, {"finding", ATTN_TEXT}};

typedef struct lint_run {
    attn_report report;
    const char *family;
} lint_run;

static void lint_line(void *user, const char *line) {
    lint_run *run = user;
    attn_report_text(&run->report, run->family);
    attn_report_text(&run->report, line);
}

/* The binary with a constant key; compilers put nothing else in that differs from run to run. */
static attn_status lint_compile(void *user, const attn_variant *variant,
                                const attn_device_info *device, attn_hash *code, attn_error *err) {
    static const attn_hash no_hash = {0, 0};
    (void)user;
    attn_binary binary = ATTN_BINARY_INIT;
    attn_status status = attn_build_variant(variant, device, no_hash, &binary, err);
    *code = attn_hash_begin();
    if (status == ATTN_OK)
        attn_hash_field(code, binary.data, binary.size);
    attn_binary_free(&binary);
    return status;
}

static int lint_family(attn_cli *cli, lint_run *run, size_t *faults) {
    attn_error err = ATTN_ERROR_INIT;
    size_t found = 0;
    attn_say("%s: building pairs of variants, which may take minutes", run->family);
    attn_status status =
        attn_gen_lint(cli->gen, run->family, lint_compile, lint_line, run, &found, &err);
    *faults += found;
    return attn_failure(status, &err);
}

static int lint(attn_cli *cli) {
    lint_run run;
    attn_error err = ATTN_ERROR_INIT;
    attn_family_info info;
    size_t faults = 0;
    int code = ATTN_EXIT_OK;
    if (cli->args.words > 1)
        return attn_misuse("--lint looks at all problems: leave out \"%s\"", cli->args.word[1]);
    if (cli->args.words == 1)
        ATTN_STEP(attn_cli_family(cli, cli->args.word[0], &info));
    attn_report_begin(&run.report, (attn_format)cli->args.format, lint_columns,
                      ATTN_COLUMNS(lint_columns));
    if (cli->args.words == 1) {
        run.family = info.name;
        code = lint_family(cli, &run, &faults);
    } else {
        for (size_t i = 0; i < attn_gen_family_count(cli->gen); i++) {
            run.family = attn_gen_family_name(cli->gen, i);
            int step = lint_family(cli, &run, &faults);
            code = step ? step : code;
        }
    }
    if (attn_report_end(&run.report, &cli->out, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    attn_say("%zu fault%s found", faults, faults == 1 ? "" : "s");
    return code ? code : faults ? ATTN_EXIT_FOUND : ATTN_EXIT_OK;
}

/*-*** One space *************************************************/

static const attn_column columns[] = {
    {"kind", ATTN_TEXT}, /* of, parameter, count, rejected */
    {"name", ATTN_TEXT},   {"count", ATTN_NUMBER}, {"default", ATTN_TEXT},
    {"values", ATTN_TEXT}, {"doc", ATTN_TEXT},
};

static void row(attn_report *report, const char *kind, const char *name, double count,
                const char *value, const char *values, const char *doc) {
    attn_report_text(report, kind);
    attn_report_text(report, name);
    attn_report_number(report, count);
    attn_report_text(report, value);
    attn_report_text(report, values);
    attn_report_text(report, doc);
}

static void add_parameters(const attn_space *space, const attn_config *chosen,
                           attn_report *report) {
    attn_str values = ATTN_STR_INIT;
    for (size_t p = 0; p < attn_space_params(space); p++) {
        size_t count = attn_space_values(space, p);
        attn_str_clear(&values);
        for (size_t v = 0; v < count; v++)
            attn_str_append_f(&values, "%s%s", v ? " " : "", attn_space_value(space, p, v));
        row(report, "parameter", attn_space_param_name(space, p), (double)count,
            attn_space_value(space, p, chosen->value[p]), attn_str_text(&values),
            attn_space_param_doc(space, p));
    }
    report->failed |= values.failed;
    attn_str_free(&values);
}

/* More than anybody waits for; a space that has more valid variants says "at least". */
enum { COUNT_MAX = 1000000 };

static attn_status add_counts(attn_space *space, attn_report *report, attn_error *err) {
    attn_config_list list;
    ATTN_TRY(attn_space_list(space, true, COUNT_MAX, &list, err));
    row(report, "count", "core", (double)list.count, NULL, NULL,
        list.cut ? "at least: valid variants of the core" : "valid variants of the core");
    attn_config_list_free(&list);
    ATTN_TRY(attn_space_list(space, false, COUNT_MAX, &list, err));
    row(report, "count", "valid", (double)list.count, NULL, NULL,
        list.cut ? "at least: valid variants of the space" : "valid variants of the space");
    row(report, "count", "all", list.combinations, NULL, NULL, "combinations of all values");
    for (size_t i = 0; i < list.rejections; i++)
        row(report, "rejected", list.rejection[i].reason, list.rejection[i].count, NULL, NULL,
            NULL);
    attn_config_list_free(&list);
    return ATTN_OK;
}

/* The problem that was given, else the first default one that the family accepts. */
static attn_status open_space(attn_cli *cli, const char *family, const attn_device_info *device,
                              size_t *chosen, attn_space **space, attn_error *err) {
    for (*chosen = 0; *chosen < cli->problems; (*chosen)++) {
        attn_status status =
            attn_space_open(cli->gen, family, &cli->problem[*chosen], device, space, err);
        if (status != ATTN_ERR_NOT_ACCEPTED)
            return status;
    }
    if (cli->args.words == 1)
        return attn_fail(err, ATTN_ERR_NOT_ACCEPTED,
                         "%s accepts none of the default problems on %s: name a problem", family,
                         device->name);
    return err->status;
}

static int show_space(attn_cli *cli, const char *family, const attn_device_info *device) {
    attn_error err = ATTN_ERROR_INIT;
    attn_space *space = NULL;
    attn_config chosen;
    attn_report report;
    char text[ATTN_PROBLEM_TEXT];
    size_t problem;
    if (open_space(cli, family, device, &problem, &space, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    attn_report_begin(&report, (attn_format)cli->args.format, columns, ATTN_COLUMNS(columns));
    row(&report, "of", "problem", NAN, NULL, attn_problem_text(&cli->problem[problem], text), NULL);
    row(&report, "of", "device", NAN, NULL, device->arch, device->name);
    attn_status status = attn_space_default(space, &chosen, &err);
    if (status == ATTN_OK) {
        add_parameters(space, &chosen, &report);
        status = add_counts(space, &report, &err);
    }
    if (status == ATTN_OK)
        status = attn_report_end(&report, &cli->out, &err);
    attn_report_free(&report);
    attn_space_close(space);
    return attn_failure(status, &err);
}

int attn_cmd_space(attn_cli *cli) {
    attn_family_info family;
    attn_device_info device;
    ATTN_STEP(attn_cli_gen(cli));
    if (cli->args.lint)
        return lint(cli);
    if (cli->args.words == 0)
        return list_families(cli);
    ATTN_STEP(attn_cli_family(cli, cli->args.word[0], &family));
    if (cli->args.words > 1)
        ATTN_STEP(attn_cli_problems(cli, cli->args.word + 1, 1));
    else
        ATTN_STEP(attn_cli_shapes(cli, "shapes/default.txt"));
    ATTN_STEP(attn_cli_target(cli, family.backend, &device));
    return show_space(cli, family.name, &device);
}
