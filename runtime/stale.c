/* stale.c: see stale.h. */
#include "stale.h"

#include "attn_abi.h"

static bool renders_alike(attn_gen *gen, const attn_device_info *device, const attn_db_row *row) {
    attn_error ignored = ATTN_ERROR_INIT;
    attn_variant variant = {0};
    const char *config = row->variant.config;
    bool alike = attn_gen_render(gen, row->variant.family, &row->problem, device, &config, 1,
                                 &variant, &ignored) == ATTN_OK &&
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
