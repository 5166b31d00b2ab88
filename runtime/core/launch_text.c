/* launch_text.c: the text form of launch records (launch.h), read and written from one table. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/launch.h"

static const char *const GRIDS[] = {"tiles", "kv_tiles", "split", "persistent", NULL};
static const char *const ORDERS[] = {"row", "longest_first", NULL};
static const char *const DEALS[] = {"dynamic", "static", NULL};
static const char *const PERS[] = {"call", "worker", "kv_head", "head", "row", "key", NULL};
static const char *const TENSORS[] = {"q", "k", "v", "o", NULL};
static const char *const FIELDS[] = {
#define XX(name, text) text,
    ATTN_FIELD_MAP(XX)
#undef XX
        NULL};

/* How a value is kept: a number in 32 or 64 bits, a flag, one of some words (in an enum), a symbol,
 * or a tensor's letter. */
enum kind { I32, I64, FLAG, WORD, SYMBOL, LETTER };

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    int64_t min, max,
        absent; /* absent: the value if the key is left out; ABSENT_NEVER: it must be there */
    const char *const *words;
};

#define ABSENT_NEVER INT64_MIN
#define NO_LIMIT INT64_MAX /* printed as "-" */

static const struct key STEP_KEYS[] = {
    {"symbol", SYMBOL, offsetof(attn_step, symbol), 0, 0, ABSENT_NEVER, NULL},
    {"threads", I32, offsetof(attn_step, threads), 0, 1024, 0, NULL},
    {"smem", I32, offsetof(attn_step, smem), 0, 1 << 20, 0, NULL},
    {"cluster", I32, offsetof(attn_step, cluster), 1, 16, 1, NULL},
    {"grid", WORD, offsetof(attn_step, grid), 0, 0, ABSENT_NEVER, GRIDS},
    {"rows", I32, offsetof(attn_step, rows), 1, ATTN_SEQ_MAX, ABSENT_NEVER, NULL},
    {"packed", FLAG, offsetof(attn_step, packed), 0, 1, 0, NULL},
    {"order", WORD, offsetof(attn_step, order), 0, 0, 0, ORDERS},
    {"deal", WORD, offsetof(attn_step, deal), 0, 0, 0, DEALS},
    {"blocks_per_sm", I32, offsetof(attn_step, blocks_per_sm), 1, 64, 1, NULL},
    {"spare", I32, offsetof(attn_step, spare), 0, 1024, 0, NULL},
    {"pdl", FLAG, offsetof(attn_step, pdl), 0, 1, 0, NULL},
};
static const struct key TERM_KEYS[] = {
    {"bytes", I64, offsetof(attn_workspace_term, bytes), 0, (int64_t)1 << 40, ABSENT_NEVER, NULL},
    {"per", WORD, offsetof(attn_workspace_term, per), 0, 0, ABSENT_NEVER, PERS},
    {"round", I32, offsetof(attn_workspace_term, round), 1, 4096, 64, NULL},
};
static const struct key MAP_KEYS[] = {
    {"tensor", LETTER, offsetof(attn_map_wanted, tensor), 0, 0, ABSENT_NEVER, TENSORS},
    {"rank", I32, offsetof(attn_map_wanted, rank), 4, 5, 4, NULL},
    {"rows", I32, offsetof(attn_map_wanted, rows), 1, 256, ABSENT_NEVER, NULL},
    {"swizzle", I32, offsetof(attn_map_wanted, swizzle), 0, 128, 128, NULL},
};
static const struct key LIMIT_KEYS[] = {
    {"field", WORD, offsetof(attn_limit, field), 0, 0, ABSENT_NEVER, FIELDS},
    {"min", I64, offsetof(attn_limit, min), -1, NO_LIMIT, -1, NULL},
    {"max", I64, offsetof(attn_limit, max), -1, NO_LIMIT, NO_LIMIT, NULL},
    {"multiple_of", I64, offsetof(attn_limit, multiple_of), 1, ATTN_SEQ_MAX, 1, NULL},
};

/* The kinds of line: its rows stand in an array of the record, counted by a field. */
static const struct line {
    const char *name;
    const struct key *keys;
    size_t n_keys, array, stride, count;
    int32_t max;
} LINES[] = {
#define LINE(name, keys, array, count, max)                                                        \
    {                                                                                              \
        name, keys, sizeof keys / sizeof keys[0], offsetof(attn_launch, array),                    \
            sizeof(((attn_launch *)0)->array[0]), offsetof(attn_launch, count), max                \
    }
    LINE("step", STEP_KEYS, step, steps, ATTN_STEPS_MAX),
    LINE("workspace", TERM_KEYS, term, terms, ATTN_WORKSPACE_TERMS),
    LINE("tensor_map", MAP_KEYS, map, maps, ATTN_TENSOR_MAPS),
    LINE("limit", LIMIT_KEYS, limit, limits, ATTN_LIMITS_MAX),
#undef LINE
};
enum { LINE_KINDS = sizeof LINES / sizeof LINES[0] };

/* The whole-record numbers, each on a line of its own. */
static const struct key SCALARS[] = {
    {"splits", I32, offsetof(attn_launch, splits), 1, 1024, 1, NULL},
    {"zero_bytes", I64, offsetof(attn_launch, zero_bytes), 0, (int64_t)1 << 40, 0, NULL},
};
enum { N_SCALARS = sizeof SCALARS / sizeof SCALARS[0] };

static void store(const struct key *key, void *row, int64_t value) {
    char *at = (char *)row + key->offset;
    int32_t narrow = (int32_t)value;
    bool flag = value != 0;
    switch (key->kind) {
    case I32:
    case WORD:
        memcpy(at, &narrow, sizeof narrow);
        break;
    case I64:
        memcpy(at, &value, sizeof value);
        break;
    case FLAG:
        memcpy(at, &flag, sizeof flag);
        break;
    case LETTER:
        *at = key->words ? key->words[value][0] : '\0';
        break;
    case SYMBOL:
        break;
    }
}

static int64_t fetch(const struct key *key, const void *row) {
    const char *at = (const char *)row + key->offset;
    int32_t narrow;
    int64_t wide;
    bool flag;
    switch (key->kind) {
    case I32:
    case WORD:
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    case I64:
        memcpy(&wide, at, sizeof wide);
        return wide;
    case FLAG:
        memcpy(&flag, at, sizeof flag);
        return flag;
    case LETTER:
    case SYMBOL:
        break;
    }
    return *at;
}

static bool is_symbol(const char *text) {
    size_t n = strlen(text);
    return n > 0 && n < ATTN_SYMBOL_MAX && !(text[0] >= '0' && text[0] <= '9') &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

static attn_status read_value(const struct key *key, const char *text, void *row, attn_error *err) {
    int64_t value = 0;
    if (key->kind == SYMBOL) {
        if (!is_symbol(text))
            return attn_fail(err, ATTN_ERR_INVALID, "'%s' is no C name", text);
        memcpy((char *)row + key->offset, text, strlen(text) + 1);
        return ATTN_OK;
    }
    if (key->words) {
        while (key->words[value] && strcmp(key->words[value], text) != 0)
            value++;
        if (!key->words[value])
            return attn_fail(err, ATTN_ERR_INVALID, "%s=%s is unknown", key->name, text);
    } else if (key->max == NO_LIMIT && strcmp(text, "-") == 0) {
        value = NO_LIMIT;
    } else {
        char *end;
        errno = 0;
        value = strtoll(text, &end, 10);
        if (errno || end == text || *end || value < key->min || value > key->max)
            return attn_fail(err, ATTN_ERR_INVALID,
                             "%s=%s is not a number from %" PRId64 " to %" PRId64, key->name, text,
                             key->min, key->max);
    }
    store(key, row, value);
    return ATTN_OK;
}

/* Takes the next blank-separated word of *at; false at the end of the line. */
static bool next_word(const char **at, char *word, size_t size) {
    *at += strspn(*at, " ");
    size_t n = strcspn(*at, " \n");
    if (n == 0)
        return false;
    size_t kept = n < size ? n : size - 1;
    memcpy(word, *at, kept);
    word[kept] = '\0';
    *at += n;
    return true;
}

static attn_status read_row(const struct line *line, const char *at, void *row, attn_error *err) {
    unsigned seen = 0;
    char word[96];
    while (next_word(&at, word, sizeof word)) {
        char *value = strchr(word, '=');
        size_t k = 0;
        if (value)
            *value++ = '\0';
        while (k < line->n_keys && strcmp(line->keys[k].name, word) != 0)
            k++;
        if (!value || k == line->n_keys)
            return attn_fail(err, ATTN_ERR_INVALID, "a launch record's %s has no '%s'", line->name,
                             word);
        if (seen & 1u << k)
            return attn_fail(err, ATTN_ERR_INVALID, "%s stands twice in one line", word);
        seen |= 1u << k;
        ATTN_TRY(read_value(&line->keys[k], value, row, err));
    }
    for (size_t k = 0; k < line->n_keys; k++) {
        if (seen & 1u << k)
            continue;
        if (line->keys[k].absent == ABSENT_NEVER)
            return attn_fail(err, ATTN_ERR_INVALID, "a launch record's %s lacks %s=", line->name,
                             line->keys[k].name);
        store(&line->keys[k], row, line->keys[k].absent);
    }
    return ATTN_OK;
}

static attn_status read_line(const char *at, attn_launch *launch, attn_error *err) {
    char word[96];
    if (!next_word(&at, word, sizeof word))
        return ATTN_OK;
    for (size_t i = 0; i < N_SCALARS; i++) {
        if (strcmp(word, SCALARS[i].name) != 0)
            continue;
        if (!next_word(&at, word, sizeof word))
            return attn_fail(err, ATTN_ERR_INVALID, "%s has no value", SCALARS[i].name);
        ATTN_TRY(read_value(&SCALARS[i], word, launch, err));
        if (next_word(&at, word, sizeof word))
            return attn_fail(err, ATTN_ERR_INVALID, "%s has one value, and '%s' follows it",
                             SCALARS[i].name, word);
        return ATTN_OK;
    }
    for (size_t i = 0; i < LINE_KINDS; i++) {
        const struct line *line = &LINES[i];
        if (strcmp(word, line->name) != 0)
            continue;
        int32_t *count = (int32_t *)(void *)((char *)launch + line->count);
        if (*count >= line->max)
            return attn_fail(err, ATTN_ERR_INVALID, "a launch record has at most %d %s lines",
                             line->max, line->name);
        void *row = (char *)launch + line->array + line->stride * (size_t)*count;
        ++*count;
        return read_row(line, at, row, err);
    }
    return attn_fail(err, ATTN_ERR_INVALID, "'%s' is no line of a launch record", word);
}

attn_status attn_launch_parse(const char *text, attn_launch *launch, attn_error *err) {
    memset(launch, 0, sizeof *launch);
    launch->splits = 1;
    while (*text) {
        ATTN_TRY(read_line(text, launch, err));
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    if (launch->steps == 0)
        return attn_fail(err, ATTN_ERR_INVALID, "a launch record has at least one step");
    return ATTN_OK;
}

static void print_value(const struct key *key, const void *row, attn_str *out) {
    int64_t value = fetch(key, row);
    if (key->kind == SYMBOL)
        attn_str_append(out, (const char *)row + key->offset);
    else if (key->kind == LETTER)
        attn_str_append_f(out, "%c", (char)value);
    else if (key->kind == WORD)
        attn_str_append(out, key->words[value]);
    else if (value == NO_LIMIT)
        attn_str_append(out, "-");
    else
        attn_str_append_f(out, "%" PRId64, value);
}

void attn_launch_print(const attn_launch *launch, attn_str *out) {
    for (size_t i = 0; i < LINE_KINDS; i++) {
        const struct line *line = &LINES[i];
        int32_t count;
        memcpy(&count, (const char *)launch + line->count, sizeof count);
        for (int32_t n = 0; n < count; n++) {
            const void *row = (const char *)launch + line->array + line->stride * (size_t)n;
            attn_str_append(out, line->name);
            for (size_t k = 0; k < line->n_keys; k++) {
                attn_str_append_f(out, " %s=", line->keys[k].name);
                print_value(&line->keys[k], row, out);
            }
            attn_str_append(out, "\n");
        }
    }
    for (size_t i = 0; i < N_SCALARS; i++) {
        attn_str_append_f(out, "%s ", SCALARS[i].name);
        print_value(&SCALARS[i], launch, out);
        attn_str_append(out, "\n");
    }
}
