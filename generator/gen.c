/* gen.c: opening a generator, and what it knows of its families and files. */
#include "gen_internal.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

/* "spaces/BACKEND/NAME.lua" -> "BACKEND/NAME", or NULL. */
static char *family_of(const char *file) {
    static const char before[] = "spaces/", after[] = ".lua";
    size_t size = strlen(file);
    if (strncmp(file, before, sizeof before - 1) != 0 || size < sizeof before + sizeof after)
        return NULL;
    const char *name = file + sizeof before - 1, *slash = strchr(name, '/');
    if (!slash || strchr(slash + 1, '/') || strcmp(file + size - (sizeof after - 1), after) != 0)
        return NULL;
    return strndup(name, size - (sizeof before - 1) - (sizeof after - 1));
}

static attn_status find_families(attn_gen *gen, attn_error *err) {
    gen->family = calloc(gen->files.count + 1, sizeof *gen->family);
    if (!gen->family)
        return attn_fail_nomem(err);
    for (size_t i = 0; i < gen->files.count; i++) { /* files are sorted by name */
        char *name = family_of(gen->files.file[i].name);
        if (name)
            gen->family[gen->families++] = name;
    }
    return ATTN_OK;
}

attn_status attn_gen_open(const char *path, attn_gen **gen, attn_error *err) {
    attn_gen *made = calloc(1, sizeof *made);
    *gen = NULL;
    if (!made)
        return attn_fail_nomem(err);
    attn_status st = attn_files_open(path, &made->files, err);
    if (st == ATTN_OK)
        st = find_families(made, err);
    if (st == ATTN_OK)
        st = attn_lua_open(&made->lua, &made->files, err);
    if (st == ATTN_OK)
        st = attn_gen_read_profiles(made, err);
    if (st == ATTN_OK)
        *gen = made;
    else
        attn_gen_close(made);
    return st;
}

void attn_gen_close(attn_gen *gen) {
    if (!gen)
        return;
    attn_lua_close(&gen->lua);
    attn_files_close(&gen->files);
    for (size_t i = 0; i < gen->families; i++)
        free(gen->family[i]);
    free(gen->family);
    free(gen->profile);
    free(gen);
}

size_t attn_gen_family_count(const attn_gen *gen) {
    return gen->families;
}

const char *attn_gen_family_name(const attn_gen *gen, size_t index) {
    return index < gen->families ? gen->family[index] : NULL;
}

static const char *short_name(const char *full) {
    return strchr(full, '/') + 1;
}

static const char *nearest_family(const attn_gen *gen, const char *name) {
    const char **words = malloc((2 * gen->families + 1) * sizeof *words);
    const char *found = NULL;
    if (!words)
        return NULL;
    for (size_t i = 0; i < gen->families; i++) {
        words[2 * i] = gen->family[i];
        words[2 * i + 1] = short_name(gen->family[i]);
    }
    found = attn_nearest_word(name, words, 2 * gen->families);
    for (size_t i = 0; found && i < gen->families; i++)
        if (found == words[2 * i + 1])
            found = gen->family[i];
    free(words);
    return found;
}

attn_status attn_gen_resolve(const attn_gen *gen, const char *name, const char **full,
                             attn_error *err) {
    *full = NULL;
    for (size_t i = 0; i < gen->families; i++) {
        const char *family = gen->family[i];
        bool same = strcmp(name, family) == 0;
        if (!same && strcmp(name, short_name(family)) != 0)
            continue;
        if (*full)
            return attn_fail(err, ATTN_ERR_NOT_FOUND, "'%s' is two families: write %s or %s", name,
                             *full, family);
        *full = family;
        if (same)
            return ATTN_OK;
    }
    if (*full)
        return ATTN_OK;
    const char *near = nearest_family(gen, name);
    return attn_fail(err, ATTN_ERR_NOT_FOUND, "no family '%s'%s%s%s", name,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

struct ask_family {
    const char *full;
    attn_family_info *info;
};

static const char *text_field(lua_State *L, const char *key) {
    (void)lua_getfield(L, -1, key);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

static int read_family(lua_State *L) {
    struct ask_family *ask = lua_touserdata(L, 1);
    attn_lua_push(L, "space", "family");
    (void)lua_pushstring(L, ask->full);
    attn_lua_push_runtime_names(L);
    lua_call(L, 2, 1);
    ask->info->backend = text_field(L, "backend");
    ask->info->doc = text_field(L, "doc");
    (void)lua_getfield(L, -1, "reference");
    ask->info->reference = lua_toboolean(L, -1);
    (void)lua_getfield(L, -2, "preference");
    ask->info->preference = (int32_t)lua_tointeger(L, -1);
    return 0;
}

attn_status attn_gen_family(attn_gen *gen, const char *name, attn_family_info *info,
                            attn_error *err) {
    *info = (attn_family_info){NULL, NULL, NULL, false, 0};
    ATTN_TRY(attn_gen_resolve(gen, name, &info->name, err));
    struct ask_family ask = {info->name, info};
    return attn_lua_run(&gen->lua, read_family, &ask, info->name, err);
}

attn_status attn_gen_source_hash(const attn_gen *gen, const char *family, attn_hash *hash,
                                 attn_error *err) {
    const char *full;
    ATTN_TRY(attn_gen_resolve(gen, family, &full, err));
    return attn_source_hash(&gen->files, full, hash, err);
}

attn_status attn_gen_file(attn_gen *gen, const char *name, char **text, attn_error *err) {
    const attn_file *file = attn_files_find(&gen->files, name);
    *text = NULL;
    if (!file)
        return attn_fail(err, ATTN_ERR_NOT_FOUND, "there is no file %s", name);
    *text = malloc(file->size + 1);
    if (!*text)
        return attn_fail_nomem(err);
    memcpy(*text, file->data, file->size);
    (*text)[file->size] = '\0';
    return ATTN_OK;
}

/*-*** For tests *************************************************/

void attn_gen_bounds(attn_gen *gen, size_t memory, uint64_t steps) {
    gen->lua.memory_max = memory;
    gen->lua.work_max = steps;
}

struct script {
    const char *name;
    const char *text;
    const char *argument;
    attn_str *out;
};

static int run_script(lua_State *L) {
    struct script *s = lua_touserdata(L, 1);
    size_t size;
    if (luaL_loadbufferx(L, s->text, strlen(s->text), s->name, "t") != LUA_OK)
        return lua_error(L);
    attn_lua_push_engine(L);
    (void)lua_pushstring(L, s->argument);
    lua_call(L, 2, 1);
    const char *result = luaL_checklstring(L, -1, &size);
    attn_str_append_bytes(s->out, result, size);
    return 0;
}

attn_status attn_gen_script(attn_gen *gen, const char *name, const char *text, const char *argument,
                            attn_str *out, attn_error *err) {
    struct script s = {name, text, argument, out};
    attn_status st = attn_lua_run(&gen->lua, run_script, &s, name, err);
    return st == ATTN_OK && out->failed ? attn_fail_nomem(err) : st;
}
