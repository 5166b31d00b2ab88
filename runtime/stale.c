/* stale.c: see stale.h. */
#include "stale.h"

#include <string.h>

#include "attn_abi.h"

attn_status attn_render_stored(attn_gen *gen, const char *family, const attn_problem *problem,
                               const attn_device_info *device, const char *config,
                               attn_variant *variant, attn_error *err) {
    attn_space *space;
    attn_config c;
    ATTN_TRY(attn_space_open(gen, family, problem, device, &space, err));
    attn_status status = attn_space_default(space, &c, err);
    if (status == ATTN_OK && config)
        status = attn_config_parse(space, config, &c, err);
    if (status == ATTN_OK)
        status = attn_space_render(space, &c, variant, err);
    attn_space_close(space);
    return status;
}

static bool renders_alike(attn_gen *gen, const attn_device_info *device, const attn_db_row *row) {
    attn_error ignored = ATTN_ERROR_INIT;
    attn_variant variant = {0};
    bool alike = attn_render_stored(gen, row->variant.family, &row->problem, device,
                                    row->variant.config, &variant, &ignored) == ATTN_OK &&
                 attn_hash_equal(variant.hash, row->variant.hash);
    attn_variant_free(&variant);
    return alike;
}

const char *attn_stale_source(attn_gen *gen, const attn_device_info *device,
                              const attn_db_row *row) {
    attn_error ignored = ATTN_ERROR_INIT;
    attn_hash source;
    if (row->abi != ATTN_ABI_VERSION)
        return "made for another kernel ABI";
    if (attn_gen_source_hash(gen, row->variant.family, &source, &ignored) != ATTN_OK)
        return "its family is not here";
    if (attn_hash_equal(source, row->source_hash) || renders_alike(gen, device, row))
        return NULL;
    return "its family's source has changed";
}
