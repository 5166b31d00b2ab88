/* cpu_variants.c: see cpu_variants.h. */
#include "cpu_variants.h"

#include <stdio.h>
#include <string.h>

static attn_status host_open(const attn_backend *backend, const attn_device_options *options,
                             const char *path, cpu_host *host, attn_error *err) {
    memset(host, 0, sizeof *host);
    host->backend = backend;
    ATTN_TRY(attn_gen_open(path, &host->gen, err));
    ATTN_TRY(backend->open(0, options, &host->device, err));
    backend->info(host->device, &host->info);
    return ATTN_OK;
}

attn_status cpu_host_open(const char *path, int32_t threads, cpu_host *host, attn_error *err) {
    attn_device_options options = {.threads = threads};
    return host_open(&attn_backend_cpu, &options, path, host, err);
}

attn_status cpu_host_open_on(const attn_backend *backend, const char *path, cpu_host *host,
                             attn_error *err) {
    attn_device_options options = {.own_context = true};
    return host_open(backend, &options, path, host, err);
}

void cpu_host_close(cpu_host *host) {
    if (host->device)
        host->backend->close(host->device);
    attn_gen_close(host->gen);
    memset(host, 0, sizeof *host);
}

static attn_status identify(const cpu_host *host, cpu_variant *v, attn_build *build,
                            attn_error *err) {
    attn_str toolchain = ATTN_STR_INIT, target = ATTN_STR_INIT;
    attn_status st =
        host->backend->toolchain(v->variant.language, v->variant.options, &toolchain, err);
    if (st == ATTN_OK)
        st = host->backend->target(&host->info, v->variant.options, &target, err);
    if (st == ATTN_OK) {
        (void)snprintf(v->target, sizeof v->target, "%s", attn_str_text(&target));
        attn_hash_print(attn_build_hash(v->variant.hash, attn_str_text(&toolchain), v->target),
                        build->key);
    }
    attn_str_free(&toolchain);
    attn_str_free(&target);
    return st;
}

attn_status cpu_variant_build(const cpu_host *host, attn_variant *rendered, cpu_variant *v,
                              attn_error *err) {
    static const attn_binary none = ATTN_BINARY_INIT;
    memset(v, 0, sizeof *v);
    v->binary = none;
    v->backend = host->backend;
    v->variant = *rendered;
    memset(rendered, 0, sizeof *rendered);
    attn_build build = {.language = v->variant.language,
                        .source = v->variant.source,
                        .options = v->variant.options,
                        .target = v->target};
    ATTN_TRY(attn_launch_parse(v->variant.launch, &v->launch, err));
    ATTN_TRY(identify(host, v, &build, err));
    return host->backend->compile(&build, &v->binary, err);
}

attn_status cpu_variant_load(const cpu_host *host, cpu_variant *v, attn_error *err) {
    return host->backend->load(host->device, &v->binary, v->target, &v->launch, &v->kernel, err);
}

void cpu_variant_free(cpu_variant *v) {
    if (v->kernel)
        v->backend->unload(v->kernel);
    attn_binary_free(&v->binary);
    attn_variant_free(&v->variant);
    memset(v, 0, sizeof *v);
}

static attn_status render(attn_space *space, const char *config, attn_variant *variant,
                          attn_error *err) {
    attn_config c;
    ATTN_TRY(attn_space_default(space, &c, err));
    ATTN_TRY(attn_config_parse(space, config, &c, err));
    return attn_space_render(space, &c, variant, err);
}

attn_status cpu_variant_make(const cpu_host *host, const char *family, const attn_problem *problem,
                             const char *config, cpu_variant *v, attn_error *err) {
    attn_space *space = NULL;
    attn_variant rendered;
    memset(v, 0, sizeof *v);
    ATTN_TRY(attn_space_open(host->gen, family, problem, &host->info, &space, err));
    attn_status st = render(space, config, &rendered, err);
    attn_space_close(space);
    if (st == ATTN_OK)
        st = cpu_variant_build(host, &rendered, v, err);
    if (st == ATTN_OK)
        st = cpu_variant_load(host, v, err);
    return st;
}
