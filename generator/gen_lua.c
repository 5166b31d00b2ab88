/* gen_lua.c: the life and the bounds of the Lua state. */
#include "gen_lua.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

enum { HOOK_EVERY = 250 };

static const char ENGINE[] = "attn_engine"; /* of the registry: what lua/engine.lua returned */

static void *allocate(void *user, void *block, size_t old_size, size_t size) {
    attn_lua *lua = user;
    size_t old = block ? old_size : 0; /* without a block, old_size is a type tag */
    if (size == 0) {
        free(block);
        lua->memory -= old;
        return NULL;
    }
    size_t most = 2 * lua->memory_max, left = lua->memory < most ? most - lua->memory : 0;
    if (size > old && size - old > left) {
        lua->over = ATTN_OVER_MEMORY;
        return NULL;
    }
    void *moved = realloc(block, size);
    if (!moved) {
        if (size <= old)
            return block; /* Lua relies on shrinking */
        lua->over = ATTN_OVER_NOMEM;
        return NULL;
    }
    lua->memory += size - old;
    if (size > old)
        lua->work += (size - old) / 8;
    return moved;
}

static attn_lua *self(lua_State *L) {
    void *user;
    (void)lua_getallocf(L, &user);
    return user;
}

/* Notes the place in a space file or template that is being run, and raises an error. */
static int raise_over(lua_State *L, attn_over over) {
    attn_lua *lua = self(L);
    lua_Debug at;
    lua->over = over;
    lua->raised = true;
    for (int level = 0; !lua->where[0] && lua_getstack(L, level, &at); level++) {
        lua_getinfo(L, "Sl", &at);
        if (at.currentline > 0 && strncmp(at.short_src, "lua/", 4) != 0)
            (void)snprintf(lua->where, sizeof lua->where, "%s:%d", at.short_src, at.currentline);
    }
    return luaL_error(L, "over a bound");
}

/* Once the work is too much every hook raises, so that no pcall can go on. */
static void hook(lua_State *L, lua_Debug *at) {
    attn_lua *lua = self(L);
    (void)at;
    lua->work += HOOK_EVERY;
    if (lua->work > lua->work_max)
        (void)raise_over(L, ATTN_OVER_WORK);
    if (lua->memory <= lua->memory_max)
        return;
    lua_gc(L, LUA_GCCOLLECT);
    if (lua->memory > lua->memory_max)
        (void)raise_over(L, ATTN_OVER_MEMORY);
}

/* host.charge(n) */
static int charge(lua_State *L) {
    attn_lua *lua = self(L);
    lua_Number n = luaL_checknumber(L, 1);
    if (n > 0)
        lua->work += n < (lua_Number)lua->work_max ? (uint64_t)n : lua->work_max;
    return lua->work > lua->work_max ? raise_over(L, ATTN_OVER_WORK) : 0;
}

/* host.read(name) */
static int read_file(lua_State *L) {
    const attn_files *files = lua_touserdata(L, lua_upvalueindex(1));
    const attn_file *file = attn_files_find(files, luaL_checkstring(L, 1));
    if (file)
        (void)lua_pushlstring(L, file->data, file->size);
    else
        lua_pushnil(L);
    return 1;
}

/* host.nearest(word, list) */
static int nearest(lua_State *L) {
    const char *word = luaL_checkstring(L, 1);
    const char *words[512];
    size_t count = 0;
    for (lua_Integer i = 1; count < sizeof words / sizeof words[0]; i++) {
        if (lua_geti(L, 2, i) != LUA_TSTRING)
            break;
        words[count++] = lua_tostring(L, -1); /* the list keeps it */
        lua_pop(L, 1);
    }
    lua_pushstring(L, attn_nearest_word(word, words, count));
    return 1;
}

static int start(lua_State *L) {
    const attn_files *files = lua_touserdata(L, 1);
    static const luaL_Reg libraries[] = {{LUA_GNAME, luaopen_base},
                                         {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_TABLIBNAME, luaopen_table},
                                         {LUA_MATHLIBNAME, luaopen_math},
                                         {LUA_DBLIBNAME, luaopen_debug}};
    const attn_file *engine = attn_files_find(files, "lua/engine.lua");
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
        lua_pop(L, 1);
    }
    if (!engine)
        return luaL_error(L, "lua/engine.lua is missing");
    if (luaL_loadbufferx(L, engine->data, engine->size, "@lua/engine.lua", "t") != LUA_OK)
        return lua_error(L);
    lua_newtable(L);
    lua_pushlightuserdata(L, (void *)(uintptr_t)files);
    lua_pushcclosure(L, read_file, 1);
    lua_setfield(L, -2, "read");
    lua_pushcfunction(L, charge);
    lua_setfield(L, -2, "charge");
    lua_pushcfunction(L, nearest);
    lua_setfield(L, -2, "nearest");
    lua_call(L, 1, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, ENGINE);
    return 0;
}

attn_status attn_lua_open(attn_lua *lua, const attn_files *files, attn_error *err) {
    *lua = (attn_lua){.files = files, .memory_max = (size_t)64 << 20, .work_max = 200000000};
    lua->L = lua_newstate(allocate, lua);
    if (!lua->L)
        return attn_fail_nomem(err);
    lua_sethook(lua->L, hook, LUA_MASKCOUNT, HOOK_EVERY);
    return attn_lua_run(lua, start, (void *)(uintptr_t)files, "lua/engine.lua", err);
}

void attn_lua_close(attn_lua *lua) {
    if (lua->L)
        lua_close(lua->L);
    lua->L = NULL;
}

static attn_status explain(attn_lua *lua, const char *what, attn_error *err) {
    const char *where = lua->where[0] ? lua->where : what;
    if (lua->over == ATTN_OVER_NOMEM)
        return attn_fail_nomem(err);
    if (lua->over == ATTN_OVER_MEMORY)
        return attn_fail(err, ATTN_ERR_TEMPLATE, "%s: it takes more than %zu MiB of memory", where,
                         lua->memory_max >> 20);
    if (lua->over == ATTN_OVER_WORK)
        return attn_fail(err, ATTN_ERR_TEMPLATE,
                         "%s: it takes more than %.3g million steps: an endless loop?", where,
                         (double)lua->work_max / 1e6);
    if (lua_type(lua->L, -1) != LUA_TSTRING)
        return attn_fail(err, ATTN_ERR_TEMPLATE, "%s: an error that is no text was raised", what);
    return attn_fail(err, ATTN_ERR_TEMPLATE, "%s", lua_tostring(lua->L, -1));
}

/* Lua's own memory error, or the same after a pcall of ours raised it again. */
static bool is_memory_error(lua_State *L, int outcome) {
    return outcome == LUA_ERRMEM || (lua_type(L, -1) == LUA_TSTRING &&
                                     strcmp(lua_tostring(L, -1), "not enough memory") == 0);
}

attn_status attn_lua_run(attn_lua *lua, int (*body)(lua_State *), void *data, const char *what,
                         attn_error *err) {
    lua_State *L = lua->L;
    attn_status st = ATTN_OK;
    lua->work = 0;
    lua->over = ATTN_OVER_NONE;
    lua->raised = false;
    lua->where[0] = '\0';
    lua_settop(L, 0);
    lua_pushcfunction(L, body);
    lua_pushlightuserdata(L, data);
    int outcome = lua_pcall(L, 1, 0, 0);
    if (outcome != LUA_OK) {
        /* An allocation may have failed once, and not again after a collection. */
        if (!lua->raised && !is_memory_error(L, outcome))
            lua->over = ATTN_OVER_NONE;
        (void)explain(lua, what, err);
        st = attn_files_locate(lua->files, err);
        lua_settop(L, 0);
        lua_gc(L, LUA_GCCOLLECT);
    }
    return st;
}

void attn_lua_push_engine(lua_State *L) {
    (void)lua_getfield(L, LUA_REGISTRYINDEX, ENGINE);
}

void attn_lua_push(lua_State *L, const char *module, const char *name) {
    attn_lua_push_engine(L);
    (void)lua_getfield(L, -1, module);
    (void)lua_getfield(L, -1, name);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

void attn_lua_set_text(lua_State *L, const char *key, const char *value) {
    (void)lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

void attn_lua_set_integer(lua_State *L, const char *key, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
}
