/* gen.h: families, their spaces, and rendered variants.
 *
 * The only door to Lua. A generator holds one sandboxed Lua state with the embedded (and overlaid)
 * space files and templates; it is used by one thread at a time. Errors in Lua, in a space file or
 * in a template carry the file's own name and line: ATTN_ERR_TEMPLATE. Memory and instructions of
 * every call are bounded. */
#ifndef ATTN_GEN_H
#define ATTN_GEN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/device_info.h"
#include "core/error.h"
#include "core/launch.h"
#include "core/str.h"
#include "core/variant.h"

enum { ATTN_PARAMS_MAX = 40, ATTN_VALUES_MAX = 64 };

typedef struct attn_gen attn_gen;
typedef struct attn_space attn_space;

/* A configuration: for each parameter of the space, the index of its value. */
typedef struct attn_config {
    uint8_t value[ATTN_PARAMS_MAX];
} attn_config;

/* path: NULL, or folders separated by ':' that overlay the embedded files name by name
 * (DIR/spaces/cpu/NAME.lua, DIR/templates/cpu/NAME.c, DIR/include/..., DIR/shapes/...); a new name
 * is a new family. Space files are read when first needed, so one broken family does not stop the
 * others. */
attn_status attn_gen_open(const char *path, attn_gen **gen, attn_error *err);
void attn_gen_close(attn_gen *gen);

/*-*** Families **************************************************/

/* Families by full name ("cpu/simd_forward"), sorted; references (last resorts, never tuned) are
 * marked in their space file by `reference = true` and listed too. */
size_t attn_gen_family_count(const attn_gen *gen);
const char *attn_gen_family_name(const attn_gen *gen, size_t index);

typedef struct attn_family_info {
    const char *name;    /* full name; texts live as long as the generator */
    const char *backend; /* "cpu" */
    const char *doc;
    bool reference;
    int32_t preference; /* of several defaults, nothing being measured, the highest is taken */
} attn_family_info;

/* Reads the space file if need be: ERR_TEMPLATE. ERR_NOT_FOUND with the nearest name. A short name
 * ("simd_forward") is enough where only one backend has it. */
attn_status attn_gen_family(attn_gen *gen, const char *name, attn_family_info *info,
                            attn_error *err);

/* Hash of the family's files: space, template, every helper it can include, and the engine. A row
 * made with another one may be stale. Needs no Lua. ERR_NOT_FOUND. */
attn_status attn_gen_source_hash(const attn_gen *gen, const char *family, attn_hash *hash,
                                 attn_error *err);

/*-*** Data files ************************************************/

/* Text of an embedded or overlaid file ("shapes/quick.txt"); owned by the caller.
 * ERR_NOT_FOUND. */
attn_status attn_gen_file(attn_gen *gen, const char *name, char **text, attn_error *err);

/* A device profile of devices.lua by its arch name ("sm_90a", "cpu:avx2"): what the backend would
 * report for such a device. ERR_NOT_FOUND lists the names. */
attn_status attn_gen_profile(attn_gen *gen, const char *arch, attn_device_info *info,
                             attn_error *err);

/* Name of the index-th profile, NULL after the last. */
const char *attn_gen_profile_name(const attn_gen *gen, size_t index);

/*-*** Spaces ****************************************************/

/* The space of a family for the problem's class (and the fields it specialises) on a device.
 * ERR_NOT_ACCEPTED with the named reason if the family does not accept it. */
attn_status attn_space_open(attn_gen *gen, const char *family, const attn_problem *problem,
                            const attn_device_info *device, attn_space **space, attn_error *err);
void attn_space_close(attn_space *space);

size_t attn_space_params(const attn_space *space);
const char *attn_space_param_name(const attn_space *space, size_t param);
const char *attn_space_param_doc(const attn_space *space, size_t param);
size_t attn_space_values(const attn_space *space, size_t param);
const char *attn_space_value(const attn_space *space, size_t param, size_t value); /* as text */

/* "NV=4 MR=4 ...": every parameter in the space's order. */
void attn_config_print(const attn_space *space, const attn_config *config, attn_str *out);

/* The same of those whose values are not base's: nothing if there is none. */
void attn_config_print_changed(const attn_space *space, const attn_config *config,
                               const attn_config *base, attn_str *out);

/* Changes the parameters that `text` names ("BK=64 NV=2", separated by blanks) in *config.
 * ERR_INVALID names the nearest parameter or the values there are. */
attn_status attn_config_parse(const attn_space *space, const char *text, attn_config *config,
                              attn_error *err);

/* The family's default for this class and device; always valid. */
attn_status attn_space_default(attn_space *space, attn_config *config, attn_error *err);

/* ATTN_OK; ERR_INVALID with the reason's name if a constraint rejects it. */
attn_status attn_space_check(attn_space *space, const attn_config *config, attn_error *err);

/* How many configurations one reason rejected: each is counted once, for the first reason that
 * rejects it, with all combinations of the parameters not yet bound. */
typedef struct attn_rejection {
    const char *reason; /* lives as long as the space */
    double count;
} attn_rejection;

typedef struct attn_config_list {
    attn_config *config;
    size_t count;
    double combinations; /* product of all value counts */
    attn_rejection *rejection;
    size_t rejections;
    bool cut; /* limit was reached; counts are then lower bounds */
} attn_config_list;

/* All valid configurations in enumeration order (the first parameter slowest), of the core subset
 * or of the whole space; at most limit. Each constraint is tested as soon as its parameters are
 * bound. Free with attn_config_list_free. */
attn_status attn_space_list(attn_space *space, bool core, size_t limit, attn_config_list *list,
                            attn_error *err);
void attn_config_list_free(attn_config_list *list);

/* Renders one valid configuration; attn_variant_free frees it. ERR_INVALID if it is not valid. */
attn_status attn_space_render(attn_space *space, const attn_config *config, attn_variant *variant,
                              attn_error *err);

/* Whether the limits of the family's default admit the problem's shape: ERR_NOT_ACCEPTED with the
 * limit if not. No other configuration may admit a shape that the default does not. */
attn_status attn_space_admits(attn_space *space, const attn_problem *problem, attn_error *err);

/* All of the above for one variant: the family's default for the problem and device, changed by
 * each of the texts ("BK=64 NV=2"). A fault in the texts is ERR_INVALID; ERR_NOT_ACCEPTED and
 * ERR_TEMPLATE as attn_space_open. */
attn_status attn_gen_render(attn_gen *gen, const char *family, const attn_problem *problem,
                            const attn_device_info *device, const char *const *text, size_t texts,
                            attn_variant *variant, attn_error *err);

/*-*** Lint ******************************************************/

/* A fault found in a family's files, one line. */
typedef void attn_lint_report(void *user, const char *line);

/* Asked by lint for the identity of a variant's machine code, built with one constant key ("" if it
 * does not compile, with the reason reported elsewhere); lets the generator stay free of backends.
 */
typedef attn_status attn_lint_compile(void *user, const attn_variant *variant,
                                      const attn_device_info *device, attn_hash *code,
                                      attn_error *err);

/* Checks that every parameter is read by the template, `options` or `launch`; that every value is
 * reachable for some problem and device profile; and, if compile is given, that every pair of
 * values changes machine code, options or launch record for some problem. faults is what was
 * reported, notes included only in the report. */
attn_status attn_gen_lint(attn_gen *gen, const char *family, attn_lint_compile *compile,
                          attn_lint_report *report, void *user, size_t *faults, attn_error *err);

#endif
