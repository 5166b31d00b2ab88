/* gen_internal.h: the generator's own structs, shared by its C files. */
#ifndef ATTN_GEN_INTERNAL_H
#define ATTN_GEN_INTERNAL_H

#include "core/problem.h"
#include "gen.h"
#include "gen_files.h"
#include "gen_lua.h"

enum { ATTN_CONSTRAINTS_MAX = 64, ATTN_SPACE_CLASS_TEXT = 256 };

struct attn_gen {
    attn_files files;
    attn_lua lua;
    char **family; /* full names, sorted */
    size_t families;
    attn_device_info *profile;
    size_t profiles;
};

typedef struct attn_param {
    const char *name;
    const char *doc;
    const char *text[ATTN_VALUES_MAX];
    size_t values;
} attn_param;

typedef struct attn_constraint {
    const char *reason;
    uint8_t read[ATTN_PARAMS_MAX]; /* indices of the parameters it lists */
    size_t reads;
    uint8_t *known; /* what it said, by combination of its parameters; NULL: too many to keep */
} attn_constraint;

/* Texts belong to the Lua state. */
struct attn_space {
    attn_gen *gen;
    int ref; /* of the Lua table, in the registry */
    const char *family;
    const char *language;
    char file[96]; /* "spaces/cpu/simd_forward.lua" */
    char class_text[ATTN_SPACE_CLASS_TEXT];
    attn_param param[ATTN_PARAMS_MAX];
    size_t params;
    attn_constraint constraint[ATTN_CONSTRAINTS_MAX];
    size_t constraints;
    uint64_t core[ATTN_PARAMS_MAX]; /* by parameter: the values in the core subset, one bit each */
};

/* The full name of a family asked for by full or short name. ERR_NOT_FOUND. */
attn_status attn_gen_resolve(const attn_gen *gen, const char *name, const char **full,
                             attn_error *err);

/* Pushes what Lua sees of a problem: the class, and the run-time fields; and of a device. */
void attn_lua_push_class(struct lua_State *L, const attn_problem *problem);
void attn_lua_push_runtime(struct lua_State *L, const attn_problem *problem);
void attn_lua_push_runtime_names(struct lua_State *L);
void attn_lua_push_device(struct lua_State *L, const attn_device_info *device);

/* Reads devices.lua into gen->profile. */
attn_status attn_gen_read_profiles(attn_gen *gen, attn_error *err);

/* Whether constraint k holds; only the parameters that it lists are looked at. */
attn_status attn_space_holds(attn_space *space, size_t k, const attn_config *config, bool *holds,
                             attn_error *err);

/* attn_space_list over the values that `mask` keeps of each parameter. ERR_TIMEOUT after max_steps
 * parameters bound. */
attn_status attn_space_list_masked(attn_space *space, const uint64_t mask[ATTN_PARAMS_MAX],
                                   size_t limit, uint64_t max_steps, attn_config_list *list,
                                   attn_error *err);

/* attn_space_render; *reads has a bit for each parameter that the result depended on. */
attn_status attn_space_render_noting(attn_space *space, const attn_config *config,
                                     attn_variant *variant, uint64_t *reads, attn_error *err);

/*-*** For tests *************************************************/

/* Sets the bounds of every later call: bytes of memory in all, and steps. */
void attn_gen_bounds(attn_gen *gen, size_t memory, uint64_t steps);

/* Runs a Lua script, which sees all that generator/lua does: its arguments are the engine and
 * `argument`; its result, a text, is appended to out. */
attn_status attn_gen_script(attn_gen *gen, const char *name, const char *text, const char *argument,
                            attn_str *out, attn_error *err);

#endif
