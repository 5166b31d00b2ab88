/* cmd_devices.c: what is here: devices with all that is known of them, compilers, what is missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "cmd.h"

static const attn_column columns[] = {
    {"device", ATTN_TEXT},
    {"kind", ATTN_TEXT}, /* device, property, peak, compiler, missing */
    {"name", ATTN_TEXT},
    {"value", ATTN_TEXT},
};

/* What to ask a backend for; it says whether it is there. */
static const struct {
    const char *backend, *name, *language, *options;
} compilers[] = {
    {"cpu", "default", "c", ""}, /* $CC, else the first of the others */
    {"cpu", "cc", "c", "compiler=cc"},
    {"cpu", "gcc", "c", "compiler=gcc"},
    {"cpu", "clang", "c", "compiler=clang"},
    {"cuda", "nvrtc", "cu", ""},
    {"cuda", "ptx", "ptx", ""},
};

static void row(attn_report *report, const char *device, const char *kind, const char *name,
                const char *value) {
    attn_report_text(report, device);
    attn_report_text(report, kind);
    attn_report_text(report, name);
    attn_report_text(report, value);
}

static void add_device(const attn_device_info *info, const char *label, attn_report *report) {
    char value[32];
    row(report, label, "device", "name", info->name);
    row(report, label, "device", "arch", info->arch);
    row(report, label, "device", "environment", info->environment);
    for (int32_t i = 0; i < info->prop_count; i++) {
        (void)snprintf(value, sizeof value, "%lld", (long long)info->props[i].value);
        row(report, label, "property", info->props[i].name, value);
    }
}

static void say_waiting(void *label, const char *line) {
    attn_say("%s: %s", (const char *)label, line);
}

static int add_peaks(const attn_device_info *info, const char *label, attn_report *report) {
    attn_error err = ATTN_ERROR_INIT;
    int32_t threads[ATTN_PEAKS_MAX], count = 0;
    double peak[ATTN_PEAKS_MAX];
    if (attn_probe_peaks(info, threads, peak, &count, say_waiting, (void *)(uintptr_t)label,
                         &err) != ATTN_OK) {
        attn_say("%s: the peak was not measured: %s", label, err.line);
        return ATTN_EXIT_FOUND;
    }
    for (int32_t i = 0; i < count; i++) {
        char name[48], value[32];
        (void)snprintf(name, sizeof name, "GFLOP/s on %d thread%s", threads[i],
                       threads[i] == 1 ? "" : "s");
        (void)snprintf(value, sizeof value, "%.1f", peak[i]);
        row(report, label, "peak", name, value);
    }
    return ATTN_EXIT_OK;
}

/* Compilers of one language of a backend: each that is found, or the reasons why none is. */
static void add_language(const attn_backend *backend, const char *language, attn_report *report) {
    attn_str identity = ATTN_STR_INIT, reasons = ATTN_STR_INIT;
    size_t asked = 0, found = 0;
    for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++) {
        attn_error err = ATTN_ERROR_INIT;
        if (strcmp(compilers[i].backend, backend->name) != 0 ||
            strcmp(compilers[i].language, language) != 0)
            continue;
        asked++;
        attn_str_clear(&identity);
        if (backend->toolchain(language, compilers[i].options, &identity, &err) == ATTN_OK) {
            found++;
            row(report, backend->name, "compiler", compilers[i].name, attn_str_text(&identity));
        } else if (reasons.size == 0) /* that of the default tells how to get one */
            attn_str_append(&reasons, err.line);
    }
    if (asked && !found)
        row(report, backend->name, "missing", "compiler", attn_str_text(&reasons));
    attn_str_free(&identity);
    attn_str_free(&reasons);
}

/* Compilers of the backends of this program. */
static void add_compilers(attn_report *report) {
    static const char *const languages[] = {"c", "cu", "ptx"};
    for (size_t b = 0; attn_backends[b]; b++)
        for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++)
            add_language(attn_backends[b], languages[i], report);
}

/* "cuda: no libcuda.so.1; install ..." a line. */
static void add_missing(const char *lines, attn_report *report) {
    char *copy = strdup(lines), *rest = copy;
    for (char *line; copy && (line = strsep(&rest, "\n"));) {
        char *text = strstr(line, ": ");
        if (!line[0])
            continue;
        if (text) {
            *text = '\0';
            row(report, line, "missing", "device", text + 2);
        } else
            row(report, NULL, "missing", "device", line);
    }
    report->failed |= !copy;
    free(copy);
}

int attn_cmd_devices(attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    attn_report report;
    int code = ATTN_EXIT_OK;
    ATTN_STEP(attn_cli_devices(cli));
    attn_report_begin(&report, (attn_format)cli->args.format, columns, ATTN_COLUMNS(columns));
    for (size_t i = 0; i < cli->devices; i++) {
        char label[32];
        attn_device_label(&cli->device[i], label, sizeof label);
        add_device(&cli->device[i], label, &report);
        int peaks = add_peaks(&cli->device[i], label, &report);
        code = peaks ? peaks : code;
    }
    add_compilers(&report);
    if (cli->probed.missing)
        add_missing(cli->probed.missing, &report);
    if (attn_report_end(&report, &cli->out, &err) != ATTN_OK)
        return attn_failure(err.status, &err);
    return code;
}
