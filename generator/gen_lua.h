/* gen_lua.h: a sandboxed Lua state with bounds on memory and on the work of each call.
 *
 * Every use of Lua's API happens inside attn_lua_run, so that no error of Lua ever jumps over C
 * code that holds something. */
#ifndef ATTN_GEN_LUA_H
#define ATTN_GEN_LUA_H

#include <stdbool.h>
#include <stdint.h>

#include "gen_files.h"

struct lua_State; /* lua.h is for the gen*.c files alone */

typedef enum attn_over {
    ATTN_OVER_NONE,
    ATTN_OVER_MEMORY,
    ATTN_OVER_WORK,
    ATTN_OVER_NOMEM
} attn_over;

typedef struct attn_lua {
    struct lua_State *L;
    const attn_files *files;
    size_t memory;     /* bytes in use */
    size_t memory_max; /* what a call may keep in use; twice that is never passed */
    uint64_t work;     /* of this call: instructions, and bytes allocated / 8 */
    uint64_t work_max;
    attn_over over; /* which bound this call met */
    bool raised;    /* by us, not by an allocation that failed */
    char where[96]; /* "file:line" where it met it, if that is known */
} attn_lua;

/* Starts Lua and loads generator/lua. *lua stays where it is until closed. */
attn_status attn_lua_open(attn_lua *lua, const attn_files *files, attn_error *err);
void attn_lua_close(attn_lua *lua);

/* Calls body with `data` as its one argument (lua_touserdata). What it raises becomes
 * ERR_TEMPLATE (or ERR_NOMEM); `what` names the file at work for errors that have no place.
 * Memory that body allocates outside Lua must be reachable from data. */
attn_status attn_lua_run(attn_lua *lua, int (*body)(struct lua_State *), void *data,
                         const char *what, attn_error *err);

/*-*** For bodies ************************************************/

/* Pushes what lua/engine.lua returned. */
void attn_lua_push_engine(struct lua_State *L);

/* Pushes function `name` of generator/lua/MODULE.lua. */
void attn_lua_push(struct lua_State *L, const char *module, const char *name);

/* t[key] = value for the table on top of the stack. */
void attn_lua_set_text(struct lua_State *L, const char *key, const char *value);
void attn_lua_set_integer(struct lua_State *L, const char *key, int64_t value);

#endif
