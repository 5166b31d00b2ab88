/* gen_marshal.c: problems and devices as Lua tables, and the device profiles of devices.lua. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <lauxlib.h>

#include "gen_internal.h"

void attn_lua_push_class(lua_State *L, const attn_problem *problem) {
    lua_newtable(L);
    attn_lua_set_text(L, "op", "forward");
    bool tf32 = problem->dtype == ATTN_TF32; /* a family of f32 that does not ask is too exact */
    attn_lua_set_text(L, "dtype", attn_dtype_name(tf32 ? ATTN_F32 : problem->dtype));
    attn_lua_set_integer(L, "head_dim", problem->head_dim);
    attn_lua_set_integer(L, "head_dim_v", problem->head_dim_v);
    attn_lua_set_text(L, "mask", attn_mask_name(problem->mask));
    attn_lua_set_text(L, "alignment", problem->alignment == ATTN_A16 ? "a16" : "a1");
    lua_pushboolean(L, (problem->features & ATTN_FEATURE_LSE) != 0);
    lua_setfield(L, -2, "lse");
    lua_pushboolean(L, tf32);
    lua_setfield(L, -2, "tf32");
}

void attn_lua_push_runtime(lua_State *L, const attn_problem *problem) {
    lua_newtable(L);
    for (int i = 0; i < ATTN_FIELD_COUNT; i++)
        attn_lua_set_integer(L, attn_field_name((attn_field)i),
                             attn_field_get(problem, (attn_field)i));
}

void attn_lua_push_runtime_names(lua_State *L) {
    lua_newtable(L);
    for (int i = 0; i < ATTN_FIELD_COUNT; i++) {
        (void)lua_pushstring(L, attn_field_name((attn_field)i));
        lua_seti(L, -2, i + 1);
    }
}

void attn_lua_push_device(lua_State *L, const attn_device_info *device) {
    lua_newtable(L);
    for (int32_t i = 0; i < device->prop_count; i++)
        attn_lua_set_integer(L, device->props[i].name, device->props[i].value);
    attn_lua_set_text(L, "backend", device->backend);
    attn_lua_set_text(L, "arch", device->arch);
}

/* Copies a text field of the table on top of the stack. */
static void copy_field(lua_State *L, const char *key, char *to, size_t size) {
    (void)lua_getfield(L, -1, key);
    const char *text = lua_tostring(L, -1);
    if (strlen(text) >= size)
        (void)luaL_error(L, "devices.lua: '%s' is too long", text);
    strcpy(to, text);
    lua_pop(L, 1);
}

/* The profile on top of the stack, whose form lua/profiles.lua has checked. */
static void read_profile(lua_State *L, attn_device_info *info) {
    copy_field(L, "backend", info->backend, sizeof info->backend);
    copy_field(L, "arch", info->arch, sizeof info->arch);
    copy_field(L, "name", info->name, sizeof info->name);
    (void)snprintf(info->identity, sizeof info->identity, "profile %s", info->arch);
    (void)lua_getfield(L, -1, "props");
    (void)lua_getfield(L, -2, "keys");
    for (lua_Integer k = 1; lua_geti(L, -1, k) == LUA_TSTRING; k++) {
        const char *key = lua_tostring(L, -1);
        (void)lua_getfield(L, -3, key);
        if (!attn_device_prop_set(info, key, lua_tointeger(L, -1)))
            (void)luaL_error(L, "devices.lua: %s has more than %d properties", info->arch,
                             (int)ATTN_PROPS_MAX);
        lua_pop(L, 2);
    }
    lua_pop(L, 3);
}

static int read_profiles(lua_State *L) {
    attn_gen *gen = lua_touserdata(L, 1);
    attn_lua_push(L, "profiles", "load");
    lua_call(L, 0, 1);
    size_t count = (size_t)luaL_len(L, -1);
    gen->profile = calloc(count + 1, sizeof *gen->profile);
    if (!gen->profile) {
        gen->lua.over = ATTN_OVER_NOMEM;
        return luaL_error(L, "not enough memory");
    }
    for (size_t i = 0; i < count; i++) {
        (void)lua_geti(L, -1, (lua_Integer)i + 1);
        read_profile(L, &gen->profile[i]);
        lua_pop(L, 1);
        gen->profiles++;
    }
    return 0;
}

attn_status attn_gen_read_profiles(attn_gen *gen, attn_error *err) {
    return attn_lua_run(&gen->lua, read_profiles, gen, "devices.lua", err);
}

const char *attn_gen_profile_name(const attn_gen *gen, size_t index) {
    return index < gen->profiles ? gen->profile[index].arch : NULL;
}

attn_status attn_gen_profile(attn_gen *gen, const char *arch, attn_device_info *info,
                             attn_error *err) {
    attn_str names = ATTN_STR_INIT;
    const char *near = NULL; /* sm_90 is sm_90a; but sm_91 is another device, and no slip */
    for (size_t i = 0; i < gen->profiles; i++) {
        const char *name = gen->profile[i].arch;
        if (strcmp(name, arch) == 0) {
            *info = gen->profile[i];
            attn_str_free(&names);
            return ATTN_OK;
        }
        if (!near && arch[0] && strncasecmp(name, arch, strlen(arch)) == 0)
            near = name;
        attn_str_append_f(&names, " %s", name);
    }
    if (near)
        (void)attn_fail(err, ATTN_ERR_NOT_FOUND, "no profile '%s'; did you mean %s?", arch, near);
    else
        (void)attn_fail(err, ATTN_ERR_NOT_FOUND, "no profile '%s'; there are%s", arch,
                        attn_str_text(&names));
    attn_str_free(&names);
    return err->status;
}
