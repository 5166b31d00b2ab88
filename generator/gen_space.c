/* gen_space.c: opening a space, its parameters, and testing its constraints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "gen_internal.h"

enum { KNOWN_MAX = 1 << 20 }; /* combinations whose answer is kept, for one constraint */

/*-*** Opening ***************************************************/

struct opening {
    attn_space *space;
    const char *full;
    const attn_problem *problem;
    const attn_device_info *device;
    bool accepted;
    char reason[256];
};

/* Reads a list of texts, the field `key` of the table on top, of which there are at most max. */
static size_t read_texts(lua_State *L, const char *key, const char **texts, size_t max) {
    (void)lua_getfield(L, -1, key);
    size_t count = (size_t)luaL_len(L, -1);
    if (count > max)
        (void)luaL_error(L, "too many %s", key);
    for (size_t i = 0; i < count; i++) {
        (void)lua_geti(L, -1, (lua_Integer)i + 1);
        texts[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return count;
}

static const char *read_text(lua_State *L, const char *key) {
    (void)lua_getfield(L, -1, key);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

/* The functions below read fields of the family, which is on top of the stack. */

static void read_params(lua_State *L, attn_space *space) {
    (void)lua_getfield(L, -1, "params");
    (void)lua_getfield(L, -2, "core");
    space->params = (size_t)luaL_len(L, -2);
    for (size_t i = 0; i < space->params; i++) {
        attn_param *param = &space->param[i];
        (void)lua_geti(L, -2, (lua_Integer)i + 1);
        param->name = read_text(L, "name");
        param->doc = read_text(L, "doc");
        param->values = read_texts(L, "texts", param->text, ATTN_VALUES_MAX);
        lua_pop(L, 1);
        bool all = lua_geti(L, -1, (lua_Integer)i + 1) == LUA_TNIL;
        for (size_t k = 0; k < param->values; k++) {
            bool kept = all || lua_geti(L, -1, (lua_Integer)k + 1) != LUA_TNIL;
            space->core[i] |= (uint64_t)kept << k;
            lua_pop(L, !all);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

static void read_constraints(lua_State *L, attn_space *space) {
    (void)lua_getfield(L, -1, "require");
    space->constraints = (size_t)luaL_len(L, -1);
    if (space->constraints > ATTN_CONSTRAINTS_MAX)
        (void)luaL_error(L, "%s: more than %d constraints", space->file, (int)ATTN_CONSTRAINTS_MAX);
    for (size_t i = 0; i < space->constraints; i++) {
        attn_constraint *c = &space->constraint[i];
        (void)lua_geti(L, -1, (lua_Integer)i + 1);
        c->reason = read_text(L, "name");
        (void)lua_getfield(L, -1, "reads");
        c->reads = (size_t)luaL_len(L, -1);
        for (size_t k = 0; k < c->reads; k++) {
            (void)lua_geti(L, -1, (lua_Integer)k + 1);
            c->read[k] = (uint8_t)(lua_tointeger(L, -1) - 1);
            lua_pop(L, 1);
        }
        lua_pop(L, 2);
    }
    lua_pop(L, 1);
}

static void read_specialised(lua_State *L, attn_space *space, const attn_problem *problem) {
    const char *names[ATTN_FIELD_COUNT];
    size_t count = read_texts(L, "specialise", names, ATTN_FIELD_COUNT);
    for (size_t i = 0; i < count; i++) {
        attn_field field = ATTN_FIELD_BATCH;
        size_t used = strlen(space->class_text);
        (void)attn_field_parse(names[i], &field);
        (void)snprintf(space->class_text + used, sizeof space->class_text - used, " %s=%lld",
                       names[i], (long long)attn_field_get(problem, field));
    }
}

static int open_space(lua_State *L) {
    struct opening *o = lua_touserdata(L, 1);
    attn_lua_push(L, "space", "family");
    (void)lua_pushstring(L, o->full);
    attn_lua_push_runtime_names(L);
    lua_call(L, 2, 1);
    attn_lua_push(L, "space", "open");
    lua_pushvalue(L, -2);
    attn_lua_push_class(L, o->problem);
    attn_lua_push_runtime(L, o->problem);
    attn_lua_push_device(L, o->device);
    lua_call(L, 4, 2);
    o->accepted = !lua_isnil(L, -2);
    if (!o->accepted) {
        (void)snprintf(o->reason, sizeof o->reason, "%s", lua_tostring(L, -1));
        return 0;
    }
    lua_pop(L, 1);
    o->space->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    o->space->language = read_text(L, "language");
    read_params(L, o->space);
    read_constraints(L, o->space);
    read_specialised(L, o->space, o->problem);
    return 0;
}

/* Memory for the constraints' answers, where they are few enough. */
static attn_status keep_answers(attn_space *space, attn_error *err) {
    for (size_t i = 0; i < space->constraints; i++) {
        attn_constraint *c = &space->constraint[i];
        size_t combinations = 1;
        for (size_t k = 0; k < c->reads && combinations <= KNOWN_MAX; k++)
            combinations *= space->param[c->read[k]].values;
        if (combinations > KNOWN_MAX)
            continue;
        c->known = calloc(combinations, 1);
        if (!c->known)
            return attn_fail_nomem(err);
    }
    return ATTN_OK;
}

attn_status attn_space_open(attn_gen *gen, const char *family, const attn_problem *problem,
                            const attn_device_info *device, attn_space **space, attn_error *err) {
    const char *full;
    *space = NULL;
    ATTN_TRY(attn_gen_resolve(gen, family, &full, err));
    attn_space *made = calloc(1, sizeof *made);
    if (!made)
        return attn_fail_nomem(err);
    made->gen = gen;
    made->ref = LUA_NOREF;
    made->family = full;
    (void)snprintf(made->file, sizeof made->file, "spaces/%s.lua", full);
    attn_class_print(problem, made->class_text);
    struct opening o = {made, full, problem, device, false, ""};
    attn_status st = attn_lua_run(&gen->lua, open_space, &o, made->file, err);
    if (st == ATTN_OK && !o.accepted)
        st = attn_fail(err, ATTN_ERR_NOT_ACCEPTED, "%s does not accept %s: %s", full,
                       made->class_text, o.reason);
    if (st == ATTN_OK)
        st = keep_answers(made, err);
    if (st == ATTN_OK)
        *space = made;
    else
        attn_space_close(made);
    return st;
}

void attn_space_close(attn_space *space) {
    if (!space)
        return;
    luaL_unref(space->gen->lua.L, LUA_REGISTRYINDEX, space->ref);
    for (size_t i = 0; i < space->constraints; i++)
        free(space->constraint[i].known);
    free(space);
}

/*-*** Parameters ************************************************/

size_t attn_space_params(const attn_space *space) {
    return space->params;
}

const char *attn_space_param_name(const attn_space *space, size_t param) {
    return space->param[param].name;
}

const char *attn_space_param_doc(const attn_space *space, size_t param) {
    return space->param[param].doc;
}

size_t attn_space_values(const attn_space *space, size_t param) {
    return space->param[param].values;
}

const char *attn_space_value(const attn_space *space, size_t param, size_t value) {
    return space->param[param].text[value];
}

/*-*** Constraints ***********************************************/

struct testing {
    attn_space *space;
    size_t k;
    const attn_config *config;
    bool holds;
};

static int test(lua_State *L) {
    struct testing *t = lua_touserdata(L, 1);
    const attn_constraint *c = &t->space->constraint[t->k];
    luaL_checkstack(L, ATTN_PARAMS_MAX + 8, NULL);
    attn_lua_push(L, "space", "test");
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, t->space->ref);
    lua_pushinteger(L, (lua_Integer)t->k + 1);
    for (size_t i = 0; i < c->reads; i++)
        lua_pushinteger(L, t->config->value[c->read[i]] + 1);
    lua_call(L, (int)c->reads + 2, 1);
    t->holds = lua_toboolean(L, -1);
    return 0;
}

attn_status attn_space_holds(attn_space *space, size_t k, const attn_config *config, bool *holds,
                             attn_error *err) {
    enum { UNKNOWN, HOLDS, FAILS };
    const attn_constraint *c = &space->constraint[k];
    size_t at = 0;
    if (c->known) {
        for (size_t i = 0; i < c->reads; i++)
            at = at * space->param[c->read[i]].values + config->value[c->read[i]];
        if (c->known[at] != UNKNOWN) {
            *holds = c->known[at] == HOLDS;
            return ATTN_OK;
        }
    }
    struct testing t = {space, k, config, false};
    ATTN_TRY(attn_lua_run(&space->gen->lua, test, &t, space->file, err));
    *holds = t.holds;
    if (c->known)
        c->known[at] = t.holds ? HOLDS : FAILS;
    return ATTN_OK;
}

attn_status attn_space_check(attn_space *space, const attn_config *config, attn_error *err) {
    for (size_t i = 0; i < space->params; i++)
        if (config->value[i] >= space->param[i].values)
            return attn_fail(err, ATTN_ERR_INVALID, "%s has no value number %d",
                             space->param[i].name, config->value[i]);
    for (size_t k = 0; k < space->constraints; k++) {
        bool holds;
        ATTN_TRY(attn_space_holds(space, k, config, &holds, err));
        if (!holds)
            return attn_fail(err, ATTN_ERR_INVALID, "rejected: %s", space->constraint[k].reason);
    }
    return ATTN_OK;
}

/*-*** The default ***********************************************/

struct defaulting {
    attn_space *space;
    attn_config *config;
};

static int read_default(lua_State *L) {
    struct defaulting *d = lua_touserdata(L, 1);
    attn_lua_push(L, "space", "default");
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, d->space->ref);
    lua_call(L, 1, LUA_MULTRET);
    for (size_t i = 0; i < d->space->params; i++)
        d->config->value[i] = (uint8_t)(lua_tointeger(L, (int)i + 2) - 1);
    return 0;
}

attn_status attn_space_default(attn_space *space, attn_config *config, attn_error *err) {
    struct defaulting d = {space, config};
    memset(config, 0, sizeof *config);
    ATTN_TRY(attn_lua_run(&space->gen->lua, read_default, &d, space->file, err));
    attn_status st = attn_space_check(space, config, err);
    if (st == ATTN_ERR_INVALID) {
        err->status = ATTN_ERR_TEMPLATE;
        st = attn_fail_prefix(err, "%s: the default of %s is",
                              attn_files_place(&space->gen->files, space->file), space->class_text);
    }
    return st;
}
