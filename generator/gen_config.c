/* gen_config.c: configurations as text. */
#include <string.h>

#include "gen_internal.h"

void attn_config_print(const attn_space *space, const attn_config *config, attn_str *out) {
    for (size_t i = 0; i < space->params; i++)
        attn_str_append_f(out, "%s%s=%s", i ? " " : "", space->param[i].name,
                          space->param[i].text[config->value[i]]);
}

void attn_config_print_changed(const attn_space *space, const attn_config *config,
                               const attn_config *base, attn_str *out) {
    const char *gap = "";
    for (size_t i = 0; i < space->params; i++) {
        if (config->value[i] == base->value[i])
            continue;
        attn_str_append_f(out, "%s%s=%s", gap, space->param[i].name,
                          space->param[i].text[config->value[i]]);
        gap = " ";
    }
}

static attn_status no_param(const attn_space *space, const char *name, attn_error *err) {
    const char *names[ATTN_PARAMS_MAX];
    attn_str list = ATTN_STR_INIT;
    for (size_t i = 0; i < space->params; i++) {
        names[i] = space->param[i].name;
        attn_str_append_f(&list, " %s", names[i]);
    }
    const char *near = attn_nearest_word(name, names, space->params);
    if (near)
        (void)attn_fail(err, ATTN_ERR_INVALID, "%s has no parameter '%s'; did you mean %s?",
                        space->family, name, near);
    else
        (void)attn_fail(err, ATTN_ERR_INVALID, "%s has no parameter '%s'; it has%s", space->family,
                        name, attn_str_text(&list));
    attn_str_free(&list);
    return err->status;
}

static attn_status no_value(const attn_param *param, const char *value, attn_error *err) {
    attn_str list = ATTN_STR_INIT;
    for (size_t k = 0; k < param->values; k++)
        attn_str_append_f(&list, " %s", param->text[k]);
    (void)attn_fail(err, ATTN_ERR_INVALID, "%s has no value '%s'; it has%s", param->name, value,
                    attn_str_text(&list));
    attn_str_free(&list);
    return err->status;
}

/* One "NAME=VALUE", cut in two by the caller. */
static attn_status set(const attn_space *space, const char *name, const char *value,
                       attn_config *config, attn_error *err) {
    for (size_t i = 0; i < space->params; i++) {
        const attn_param *param = &space->param[i];
        if (strcmp(param->name, name) != 0)
            continue;
        for (size_t k = 0; k < param->values; k++) {
            if (strcmp(param->text[k], value) == 0) {
                config->value[i] = (uint8_t)k;
                return ATTN_OK;
            }
        }
        return no_value(param, value, err);
    }
    return no_param(space, name, err);
}

/* What tables write for a configuration that changes nothing. */
static bool is_default(const char *text) {
    static const char word[] = "default";
    text += strspn(text, " \t\n");
    size_t size = strcspn(text, " \t\n");
    return size == sizeof word - 1 && strncmp(text, word, size) == 0 &&
           !text[size + strspn(text + size, " \t\n")];
}

attn_status attn_config_parse(const attn_space *space, const char *text, attn_config *config,
                              attn_error *err) {
    attn_config changed = *config;
    if (is_default(text))
        return ATTN_OK;
    while (*(text += strspn(text, " \t\n"))) {
        char word[96];
        size_t size = strcspn(text, " \t\n");
        char *equals;
        if (size >= sizeof word)
            return attn_fail(err, ATTN_ERR_INVALID, "'%.60s...' is no NAME=VALUE", text);
        memcpy(word, text, size);
        word[size] = '\0';
        text += size;
        equals = strchr(word, '=');
        if (!equals)
            return attn_fail(err, ATTN_ERR_INVALID, "'%s' is no NAME=VALUE", word);
        *equals = '\0';
        ATTN_TRY(set(space, word, equals + 1, &changed, err));
    }
    *config = changed;
    return ATTN_OK;
}
