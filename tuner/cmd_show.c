/* cmd_show.c: the source of a variant as one file that compiles by the command on its first line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_build.h"

/* Each line of text as a comment. */
static void comment(attn_str *out, const char *title, const char *text) {
    while (*text) {
        size_t size = strcspn(text, "\n");
        attn_str_append_f(out, "// %-10s %.*s\n", title, (int)size, text);
        text += size + (text[size] == '\n');
        title = "";
    }
}

static void comment_number(attn_str *out, const char *title, int64_t number, const char *unit) {
    if (number >= 0)
        attn_str_append_f(out, "// %-10s %lld %s\n", title, (long long)number, unit);
}

/* What the build takes; the log if it does not compile here. */
static int add_resources(const attn_variant *variant, const attn_device_info *device,
                         attn_str *out) {
    attn_error err = ATTN_ERROR_INIT;
    attn_binary binary = ATTN_BINARY_INIT;
    attn_status status = attn_build_variant(variant, device, variant->hash, &binary, &err);
    int code = ATTN_EXIT_OK;
    if (status == ATTN_OK) {
        comment_number(out, "binary", (int64_t)binary.size, "bytes");
        comment_number(out, "registers", binary.registers, "a thread");
        comment_number(out, "spills", binary.spills, "bytes");
        comment_number(out, "shared", binary.smem, "bytes, static");
        comment(out, "compiler", attn_str_text(&binary.log));
    } else if (status == ATTN_ERR_NO_TOOL || status == ATTN_ERR_UNSUPPORTED)
        comment(out, "not built", err.line); /* the source is what was asked for */
    else
        code = attn_failure(status, &err);
    attn_binary_free(&binary);
    return code;
}

static attn_status add_file(const attn_variant *variant, const attn_device_info *device,
                            const char *file, attn_str *out, attn_error *err) {
    const attn_backend *backend = attn_backend_of(variant->family);
    attn_str target = ATTN_STR_INIT, command = ATTN_STR_INIT;
    if (!backend)
        return attn_fail(err, ATTN_ERR_UNSUPPORTED, "this program has no backend for %s",
                         variant->family);
    attn_status status = backend->target(device, variant->options, &target, err);
    if (status == ATTN_OK) {
        backend->command(variant->language, variant->options, attn_str_text(&target), file,
                         &command);
        attn_str_append_f(out, "// %s\n%s", attn_str_text(&command), variant->source);
        if (out->size && out->data[out->size - 1] != '\n')
            attn_str_append(out, "\n");
        comment(out, "family", variant->family);
        comment(out, "config", variant->config);
        comment(out, "class", variant->class_text);
        comment(out, "target", attn_str_text(&target));
        comment(out, "options", variant->options);
        comment(out, "launch", variant->launch);
    }
    attn_str_free(&target);
    attn_str_free(&command);
    return status;
}

/* For a shell: quoted, if there is any character that might mean something to it. */
static void quote(const char *text, attn_str *out) {
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+,:@-";
    if (text[0] && !text[strspn(text, plain)]) {
        attn_str_append(out, text);
        return;
    }
    attn_str_append(out, "'");
    for (; *text; text++)
        attn_str_append_bytes(out, *text == '\'' ? "'\\''" : text, *text == '\'' ? 4 : 1);
    attn_str_append(out, "'");
}

/* The name that the command on the first line gives the file: that of --output, or the family's. */
static void file_name(const attn_cli *cli, const attn_variant *variant, attn_str *name) {
    const char *slash = strchr(variant->family, '/');
    if (cli->args.output)
        quote(cli->args.output, name);
    else
        attn_str_append_f(name, "%s.%s", slash ? slash + 1 : variant->family, variant->language);
}

/* The words behind the problem, and what --config gives. *values is to be freed. */
static int find_values(attn_cli *cli, const char *family, const char ***values, size_t *count) {
    *count = cli->args.words - 2;
    *values = calloc(*count + cli->args.configs + 1, sizeof **values);
    if (!*values)
        return attn_failure_nomem();
    memcpy(*values, cli->args.word + 2, *count * sizeof **values);
    cli->args.family = family;
    for (size_t i = 0; i < cli->args.configs; i++) {
        const char *named;
        ATTN_STEP(attn_cli_config(cli, cli->args.config[i], &named, &(*values)[*count]));
        if (strcmp(named, family) != 0)
            return attn_misuse("--config is about %s, and what is shown is %s", named, family);
        (*count)++;
    }
    return ATTN_EXIT_OK;
}

static int show(attn_cli *cli, const attn_family_info *family, const char *const *values,
                size_t count) {
    attn_error err = ATTN_ERROR_INIT;
    attn_device_info device;
    attn_variant variant = {0};
    attn_str text = ATTN_STR_INIT, name = ATTN_STR_INIT;
    ATTN_STEP(attn_cli_target(cli, family->backend, &device));
    attn_status status = attn_gen_render(cli->gen, family->name, cli->problem, &device, values,
                                         count, &variant, &err);
    if (status == ATTN_ERR_INVALID)
        return attn_misuse("%s", err.line);
    if (status == ATTN_OK) {
        file_name(cli, &variant, &name);
        status = add_file(&variant, &device, attn_str_text(&name), &text, &err);
    }
    int code = attn_failure(status, &err);
    if (status == ATTN_OK)
        code = add_resources(&variant, &device, &text);
    if (status == ATTN_OK && cli->args.output) {
        int written = attn_cli_write(cli, &text);
        code = written ? written : code;
    } else if (status == ATTN_OK)
        attn_str_append(&cli->out, attn_str_text(&text));
    attn_variant_free(&variant);
    attn_str_free(&text);
    attn_str_free(&name);
    return code;
}

int attn_cmd_show(attn_cli *cli) {
    attn_family_info family;
    const char **values = NULL;
    size_t count = 0;
    ATTN_STEP(attn_cli_gen(cli));
    ATTN_STEP(attn_cli_family(cli, cli->args.word[0], &family));
    ATTN_STEP(attn_cli_problems(cli, cli->args.word + 1, 1));
    if (cli->problems != 1)
        return attn_misuse("show takes one problem, and %s holds more", cli->args.word[1]);
    ATTN_STEP(attn_cli_stop(cli)); /* so that no compiler is left behind */
    int code = find_values(cli, family.name, &values, &count);
    if (code == ATTN_EXIT_OK)
        code = show(cli, &family, values, count);
    free(values);
    return code;
}
