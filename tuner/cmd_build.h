/* cmd_build.h: one chosen variant, from its words on the command line to its binary. */
#ifndef ATTN_CMD_BUILD_H
#define ATTN_CMD_BUILD_H

#include "backend.h"
#include "gen.h"
#include "report.h"

/* The next cell: a configuration. In a table, the parameters that differ from the family's default,
 * as `show` and --config take them, "default" if none does; in the other forms, and where the
 * family is gone or has changed, all of them. config may be NULL. */
void attn_report_config(attn_report *report, attn_gen *gen, const char *family,
                        const attn_problem *problem, const attn_device_info *device,
                        const char *config);

/* The backend of a family's full name ("cpu/simd_forward"), NULL if this program has none. */
const attn_backend *attn_backend_of(const char *family);

/* Target and toolchain that the variant's options select on the device, and the build's hash. */
attn_status attn_build_identity(const attn_variant *variant, const attn_device_info *device,
                                attn_str *target, attn_str *toolchain, attn_hash *build,
                                attn_error *err);

/* Compiles it in this process, with that key. On ERR_COMPILE binary->log says why. */
attn_status attn_build_variant(const attn_variant *variant, const attn_device_info *device,
                               attn_hash key, attn_binary *binary, attn_error *err);

#endif
