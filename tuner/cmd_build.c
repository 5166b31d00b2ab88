/* cmd_build.c: one variant for show, space --lint, bench and db bundle; configurations in reports.
 */
#include "cmd_build.h"

#include <stdlib.h>
#include <string.h>

/* ERR_*: it is no configuration of the family as it is here. */
static attn_status print_brief(attn_gen *gen, const char *family, const attn_problem *problem,
                               const attn_device_info *device, const char *text, attn_str *out,
                               attn_error *err) {
    attn_space *space = NULL;
    attn_config base, config;
    ATTN_TRY(attn_space_open(gen, family, problem, device, &space, err));
    attn_status status = attn_space_default(space, &base, err);
    config = base;
    if (status == ATTN_OK)
        status = attn_config_parse(space, text, &config, err);
    if (status == ATTN_OK)
        attn_config_print_changed(space, &config, &base, out);
    attn_space_close(space);
    return status;
}

void attn_report_config(attn_report *report, attn_gen *gen, const char *family,
                        const attn_problem *problem, const attn_device_info *device,
                        const char *config) {
    attn_str brief = ATTN_STR_INIT;
    attn_error ignored = ATTN_ERROR_INIT;
    bool shorten = report->format == ATTN_TABLE && config;
    if (shorten && print_brief(gen, family, problem, device, config, &brief, &ignored) == ATTN_OK)
        attn_report_text(report, brief.size ? attn_str_text(&brief) : "default");
    else
        attn_report_text(report, config);
    report->failed |= brief.failed;
    attn_str_free(&brief);
}

const attn_backend *attn_backend_of(const char *family) {
    size_t size = strcspn(family, "/");
    for (size_t i = 0; attn_backends[i]; i++)
        if (strlen(attn_backends[i]->name) == size &&
            strncmp(attn_backends[i]->name, family, size) == 0)
            return attn_backends[i];
    return NULL;
}

static attn_status backend_of(const attn_variant *variant, const attn_backend **backend,
                              attn_error *err) {
    *backend = attn_backend_of(variant->family);
    return *backend ? ATTN_OK
                    : attn_fail(err, ATTN_ERR_UNSUPPORTED, "this program has no backend for %s",
                                variant->family);
}

attn_status attn_build_identity(const attn_variant *variant, const attn_device_info *device,
                                attn_str *target, attn_str *toolchain, attn_hash *build,
                                attn_error *err) {
    const attn_backend *backend;
    ATTN_TRY(backend_of(variant, &backend, err));
    ATTN_TRY(backend->target(device, variant->options, target, err));
    ATTN_TRY(backend->toolchain(variant->language, variant->options, toolchain, err));
    if (target->failed || toolchain->failed)
        return attn_fail_nomem(err);
    *build = attn_build_hash(variant->hash, attn_str_text(toolchain), attn_str_text(target));
    return ATTN_OK;
}

attn_status attn_build_variant(const attn_variant *variant, const attn_device_info *device,
                               attn_hash key, attn_binary *binary, attn_error *err) {
    const attn_backend *backend;
    attn_str target = ATTN_STR_INIT;
    ATTN_TRY(backend_of(variant, &backend, err));
    attn_status status = backend->target(device, variant->options, &target, err);
    if (status == ATTN_OK) {
        attn_build build = {.language = variant->language,
                            .source = variant->source,
                            .options = variant->options,
                            .target = attn_str_text(&target),
                            .seconds = ATTN_COMPILE_LIMIT_S};
        attn_hash_print(key, build.key);
        status = backend->compile(&build, binary, err);
    }
    attn_str_free(&target);
    return status;
}
