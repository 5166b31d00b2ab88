/* variant.c: owning a rendered kernel, and the identities of it and of its build. */
#include "core/variant.h"

#include <stdlib.h>
#include <string.h>

#include "attn_abi.h"
#include "core/build.h"

void attn_variant_free(attn_variant *variant) {
    char *const texts[] = {variant->family, variant->language, variant->config, variant->class_text,
                           variant->source, variant->launch,   variant->options};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    memset(variant, 0, sizeof *variant);
}

void attn_variant_seal(attn_variant *variant) {
    const char *const texts[] = {variant->family,     variant->language, variant->config,
                                 variant->class_text, variant->source,   variant->launch,
                                 variant->options};
    attn_hash h = attn_hash_begin();
    attn_hash_u64_field(&h, ATTN_ABI_VERSION);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        attn_hash_text_field(&h, texts[i]);
    variant->hash = h;
}

bool attn_config_get(const char *config, const char *name, char *value, size_t size) {
    size_t length = strlen(name);
    for (const char *at = config; *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        const char *start = at + length + 1;
        size_t n = strcspn(start, " ");
        if (n >= size)
            return false;
        memcpy(value, start, n);
        value[n] = '\0';
        return true;
    }
    return false;
}

attn_hash attn_build_hash(attn_hash variant, const char *toolchain, const char *target) {
    attn_hash h = attn_hash_begin();
    attn_hash_u64_field(&h, variant.hi);
    attn_hash_u64_field(&h, variant.lo);
    attn_hash_text_field(&h, toolchain);
    attn_hash_text_field(&h, target);
    return h;
}

void attn_binary_free(attn_binary *binary) {
    free(binary->data);
    attn_str_free(&binary->log);
    *binary = (attn_binary)ATTN_BINARY_INIT;
}
