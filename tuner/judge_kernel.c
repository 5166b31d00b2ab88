/* judge_kernel.c: see judge_kernel.h. */
#include "judge_kernel.h"

#include <stdio.h>
#include <string.h>

/*-*** The tuner's side ******************************************/

/* False if the backend has no reference family. */
static bool find_family(attn_gen *gen, const char *backend, attn_family_info *info) {
    attn_error ignored = ATTN_ERROR_INIT; /* a broken family is told where it is a candidate */
    for (size_t i = 0; gen && i < attn_gen_family_count(gen); i++)
        if (attn_gen_family(gen, attn_gen_family_name(gen, i), info, &ignored) == ATTN_OK &&
            info->reference && strcmp(info->backend, backend) == 0)
            return true;
    return false;
}

static attn_status render(attn_gen *gen, const char *family, const attn_device_info *device,
                          const attn_problem *problem, attn_variant *variant, attn_error *err) {
    attn_space *space;
    attn_config config;
    ATTN_TRY(attn_space_open(gen, family, problem, device, &space, err));
    attn_status status = attn_space_default(space, &config, err);
    if (status == ATTN_OK)
        status = attn_space_render(space, &config, variant, err);
    attn_space_close(space);
    return status;
}

void attn_judge_put(attn_str *body, attn_gen *gen, const attn_device_info *device,
                    const attn_problem *problem) {
    attn_error failure = ATTN_ERROR_INIT;
    attn_family_info info = {.name = ""};
    attn_variant variant = {0};
    char key[ATTN_HASH_TEXT] = "";
    if (!find_family(gen, device->backend, &info))
        info.name = "";
    else if (render(gen, info.name, device, problem, &variant, &failure) == ATTN_OK)
        attn_hash_print(variant.hash, key);
    attn_put_text(body, info.name);
    attn_put_text(body, failure.line);
    attn_put_text(body, variant.language);
    attn_put_text(body, variant.source);
    attn_put_text(body, variant.options);
    attn_put_text(body, variant.launch);
    attn_put_bytes(body, key, sizeof key);
    attn_variant_free(&variant);
}

attn_judge_reply attn_judge_take_reply(attn_fields *fields) {
    attn_judge_reply reply = {.name = attn_get_text(fields)};
    reply.seconds = attn_get_f64(fields);
    reply.reason = attn_get_text(fields);
    return reply;
}

/*-*** The worker's side *****************************************/

/* The key is that of the variant: the binary is kept nowhere, so nothing asks for its toolchain. */
static attn_status build(attn_server *server, attn_slot *slot, attn_fields *fields,
                         attn_error *err) {
    const attn_backend *backend = server->backend;
    const char *failure = attn_get_text(fields);
    attn_build build = {.language = attn_get_text(fields)};
    build.source = attn_get_text(fields);
    build.options = attn_get_text(fields);
    const char *launch = attn_get_text(fields);
    attn_get_struct(fields, build.key, sizeof build.key);
    attn_str target = ATTN_STR_INIT;
    attn_binary binary = ATTN_BINARY_INIT;
    if (failure[0])
        return attn_fail(err, ATTN_ERR_TEMPLATE, "%s", failure);
    ATTN_TRY(attn_launch_parse(launch, &slot->launch, err));
    attn_status status = backend->target(&server->info, build.options, &target, err);
    build.target = attn_str_text(&target);
    if (status == ATTN_OK)
        status = backend->compile(&build, &binary, err);
    if (status == ATTN_OK)
        status =
            backend->load(server->device, &binary, build.target, &slot->launch, &slot->kernel, err);
    slot->server = server;
    attn_binary_free(&binary);
    attn_str_free(&target);
    return status;
}

attn_status attn_judge_serve(attn_server *server, attn_slot *slot, attn_fields *fields,
                             attn_str *reply, attn_error *err) {
    const char *name = attn_get_text(fields);
    const int64_t begun = attn_now_ns();
    attn_error failure = ATTN_ERROR_INIT;
    char reason[400] = "";
    double seconds = 0;
    if (name[0] && attn_verifier_partial(server->verifier)) {
        attn_status status = build(server, slot, fields, &failure);
        if (status == ATTN_OK)
            status = attn_verifier_judge(server->verifier, attn_server_kernel(slot), &slot->launch,
                                         &failure);
        if (status == ATTN_ERR_INTERNAL || status == ATTN_ERR_DEVICE)
            return attn_fail(err, status, "%s judges all kernels, but %s", name, failure.line);
        if (status != ATTN_OK)
            (void)snprintf(reason, sizeof reason,
                           "only a sample of rows is compared, since %s cannot judge the rest: "
                           "%.250s",
                           name, failure.line);
        seconds = (double)(attn_now_ns() - begun) * 1e-9;
    }
    attn_put_text(reply, name);
    attn_put_f64(reply, seconds);
    attn_put_text(reply, reason);
    return ATTN_OK;
}
