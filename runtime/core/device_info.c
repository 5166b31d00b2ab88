/* device_info.c: properties of a device, its hash and its text form. */
#include "core/device_info.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text fields, in the order they are printed. */
static const struct {
    const char *key;
    size_t offset, size;
} TEXTS[] = {
#define TEXT(field)                                                                                \
    { #field, offsetof(attn_device_info, field), sizeof(((attn_device_info *)0)->field) }
    TEXT(backend), TEXT(name), TEXT(arch), TEXT(identity), TEXT(environment), TEXT(lock),
#undef TEXT
};

static attn_prop *find_prop(const attn_device_info *info, const char *name) {
    for (int32_t i = 0; i < info->prop_count; i++)
        if (strcmp(info->props[i].name, name) == 0)
            return (attn_prop *)&info->props[i];
    return NULL;
}

int64_t attn_device_prop(const attn_device_info *info, const char *name) {
    const attn_prop *prop = find_prop(info, name);
    return prop ? prop->value : 0;
}

bool attn_device_prop_set(attn_device_info *info, const char *name, int64_t value) {
    attn_prop *prop = find_prop(info, name);
    size_t length = strlen(name);
    if (!prop) {
        if (info->prop_count >= ATTN_PROPS_MAX || length >= sizeof prop->name)
            return false;
        prop = &info->props[info->prop_count++];
        memcpy(prop->name, name, length + 1);
    }
    prop->value = value;
    return true;
}

attn_hash attn_device_hash(const attn_device_info *info) {
    attn_hash h = attn_hash_begin();
    attn_hash_text_field(&h, info->backend);
    attn_hash_text_field(&h, info->identity);
    return h;
}

void attn_device_print(const attn_device_info *info, attn_str *out) {
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++)
        attn_str_append_f(out, "%s %s\n", TEXTS[i].key, (const char *)info + TEXTS[i].offset);
    attn_str_append_f(out, "ordinal %" PRId32 "\n", info->ordinal);
    for (int32_t i = 0; i < info->prop_count; i++)
        attn_str_append_f(out, "prop %s %" PRId64 "\n", info->props[i].name, info->props[i].value);
}

static bool parse_integer(const char *text, int64_t *value) {
    char *end;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0';
}

/* One line without its newline; it is cut at the first blank. */
static bool parse_line(char *line, attn_device_info *info) {
    char *value = strchr(line, ' ');
    int64_t number;
    if (!value)
        return false;
    *value++ = '\0';
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        if (strcmp(line, TEXTS[i].key) != 0)
            continue;
        if (strlen(value) >= TEXTS[i].size)
            return false;
        memcpy((char *)info + TEXTS[i].offset, value, strlen(value) + 1);
        return true;
    }
    if (strcmp(line, "ordinal") == 0 && parse_integer(value, &number)) {
        info->ordinal = (int32_t)number;
        return number >= 0 && number <= INT32_MAX;
    }
    char *last = strchr(value, ' ');
    if (strcmp(line, "prop") != 0 || !last)
        return false;
    *last++ = '\0';
    return parse_integer(last, &number) && attn_device_prop_set(info, value, number);
}

attn_status attn_device_parse(const char *text, attn_device_info *info, attn_error *err) {
    memset(info, 0, sizeof *info);
    while (*text) {
        char line[512];
        size_t n = strcspn(text, "\n");
        if (n >= sizeof line)
            return attn_fail(err, ATTN_ERR_INVALID, "a line of a device description is too long");
        memcpy(line, text, n);
        line[n] = '\0';
        if (n && !parse_line(line, info))
            return attn_fail(err, ATTN_ERR_INVALID, "'%.*s' is no line of a device description",
                             (int)n, text);
        text += n + (text[n] == '\n');
    }
    return ATTN_OK;
}
