/* gen_render.c: one configuration becomes a variant. */
#include <string.h>

#include <lauxlib.h>

#include "gen_internal.h"

struct rendering {
    attn_space *space;
    const attn_config *config;
    attn_str source;   /* helpers not yet pasted in */
    attn_str launch;   /* as Lua wrote it */
    attn_str position; /* "file:line" of `launch` */
    attn_str options;
    uint64_t reads;
};

static int render(lua_State *L) {
    struct rendering *r = lua_touserdata(L, 1);
    const attn_space *space = r->space;
    attn_str *const texts[] = {&r->source, &r->launch, &r->position, &r->options};
    luaL_checkstack(L, ATTN_PARAMS_MAX + 8, NULL);
    attn_lua_push(L, "space", "render");
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, space->ref);
    for (size_t i = 0; i < space->params; i++)
        lua_pushinteger(L, r->config->value[i] + 1);
    lua_call(L, (int)space->params + 1, 5);
    for (lua_Integer i = 1; lua_geti(L, -1, i) == LUA_TNUMBER; i++) {
        r->reads |= (uint64_t)1 << (lua_tointeger(L, -1) - 1);
        lua_pop(L, 1);
    }
    for (int i = 0; i < 4; i++) {
        size_t size;
        const char *text = lua_tolstring(L, i + 2, &size);
        attn_str_append_bytes(texts[i], text, size);
    }
    return 0;
}

/* Reads the record, so that what is stored is right and canonical. */
static attn_status canonical_launch(const attn_files *files, const struct rendering *r,
                                    attn_str *out, attn_error *err) {
    attn_launch launch;
    if (attn_launch_parse(attn_str_text(&r->launch), &launch, err) != ATTN_OK) {
        err->status = ATTN_ERR_TEMPLATE;
        (void)attn_fail_prefix(err, "%s: launch", attn_str_text(&r->position));
        return attn_files_locate(files, err);
    }
    attn_launch_print(&launch, out);
    return ATTN_OK;
}

static attn_status fill(struct rendering *r, attn_variant *variant, attn_error *err) {
    const attn_space *space = r->space;
    attn_str source = ATTN_STR_INIT, launch = ATTN_STR_INIT, config = ATTN_STR_INIT;
    attn_status st = canonical_launch(&space->gen->files, r, &launch, err);
    if (st == ATTN_OK)
        st = attn_source_paste(&space->gen->files, space->file, attn_str_text(&r->source), &source,
                               err);
    if (st == ATTN_OK) {
        attn_config_print(space, r->config, &config);
        *variant = (attn_variant){.family = strdup(space->family),
                                  .language = strdup(space->language),
                                  .config = attn_str_take(&config),
                                  .class_text = strdup(space->class_text),
                                  .source = attn_str_take(&source),
                                  .launch = attn_str_take(&launch),
                                  .options = attn_str_take(&r->options)};
        if (!variant->family || !variant->language || !variant->config || !variant->class_text ||
            !variant->source || !variant->launch || !variant->options) {
            attn_variant_free(variant);
            st = attn_fail_nomem(err);
        }
    }
    if (st == ATTN_OK)
        attn_variant_seal(variant);
    attn_str_free(&source);
    attn_str_free(&launch);
    attn_str_free(&config);
    return st;
}

attn_status attn_space_render_noting(attn_space *space, const attn_config *config,
                                     attn_variant *variant, uint64_t *reads, attn_error *err) {
    struct rendering r = {.space = space, .config = config};
    memset(variant, 0, sizeof *variant);
    ATTN_TRY(attn_space_check(space, config, err));
    attn_status st = attn_lua_run(&space->gen->lua, render, &r, space->family, err);
    if (st == ATTN_OK &&
        (r.source.failed || r.launch.failed || r.position.failed || r.options.failed))
        st = attn_fail_nomem(err);
    if (st == ATTN_OK)
        st = fill(&r, variant, err);
    *reads = r.reads;
    attn_str_free(&r.source);
    attn_str_free(&r.launch);
    attn_str_free(&r.position);
    attn_str_free(&r.options);
    return st;
}

attn_status attn_space_render(attn_space *space, const attn_config *config, attn_variant *variant,
                              attn_error *err) {
    uint64_t reads;
    return attn_space_render_noting(space, config, variant, &reads, err);
}

static attn_status admits(const attn_space *space, const char *launch_text,
                          const attn_problem *problem, attn_error *err) {
    attn_launch launch;
    attn_str text = ATTN_STR_INIT;
    ATTN_TRY(attn_launch_parse(launch_text, &launch, err));
    const attn_limit *limit = attn_limits_broken(&launch, problem);
    if (!limit)
        return ATTN_OK;
    attn_limit_explain(limit, problem, &text);
    attn_status st = attn_fail(err, ATTN_ERR_NOT_ACCEPTED, "%s does not accept the shape: %s",
                               space->family, attn_str_text(&text));
    attn_str_free(&text);
    return st;
}

attn_status attn_space_admits(attn_space *space, const attn_problem *problem, attn_error *err) {
    attn_config config;
    attn_variant variant;
    ATTN_TRY(attn_space_default(space, &config, err));
    ATTN_TRY(attn_space_render(space, &config, &variant, err));
    attn_status st = admits(space, variant.launch, problem, err);
    attn_variant_free(&variant);
    return st;
}

attn_status attn_gen_render(attn_gen *gen, const char *family, const attn_problem *problem,
                            const attn_device_info *device, const char *const *text, size_t texts,
                            attn_variant *variant, attn_error *err) {
    attn_space *space = NULL;
    attn_config config;
    ATTN_TRY(attn_space_open(gen, family, problem, device, &space, err));
    attn_status status = attn_space_default(space, &config, err);
    for (size_t i = 0; i < texts && status == ATTN_OK; i++)
        status = attn_config_parse(space, text[i], &config, err);
    if (status == ATTN_OK && attn_space_check(space, &config, err) != ATTN_OK)
        status = attn_fail_prefix(err, "%s", family);
    if (status == ATTN_OK)
        status = attn_space_render(space, &config, variant, err);
    attn_space_close(space);
    return status;
}
