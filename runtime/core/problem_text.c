/* problem_text.c: the text form of problems, read and written.
 *
 *   fwd:DTYPE:bN:(hN | hqN:hkvN):(sN | sqN:skN):dN[:dvN][:causal|:causal_tl|:windowL,R][:lse]
 *   [:bshd|:qkv][:a1]
 *
 * Every word after `fwd` may come once, in any order. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/problem.h"

enum { WORD_MAX = 48 };

static const char *const DTYPES[] = {"f32", "f16", "bf16", "tf32"};
static const char *const MASKS[] = {"none", "causal", "causal_tl", "window"};
static const char *const LAYOUTS[] = {"bhsd", "bshd", "qkv"};
static const char *const ALIGNMENTS[] = {"a16", "a1"};

/* A number that stands for nothing is printed too: in a message that says so. */
#define NAME_OF(names, i)                                                                          \
    ((unsigned)(i) < sizeof(names) / sizeof *(names) ? (names)[(unsigned)(i)] : "?")

const char *attn_dtype_name(attn_dtype dtype) {
    return NAME_OF(DTYPES, dtype);
}

const char *attn_mask_name(attn_mask mask) {
    return NAME_OF(MASKS, mask);
}

const char *attn_layout_name(attn_layout layout) {
    return NAME_OF(LAYOUTS, layout);
}

/* The parts of a problem that a word can set; a bit each, so that a word given twice, or two that
 * exclude each other, are told. */
enum part {
    PART_DTYPE,
    PART_BATCH,
    PART_HEADS_Q,
    PART_HEADS_KV,
    PART_SEQ_Q,
    PART_SEQ_KV,
    PART_DIM,
    PART_DIM_V,
    PART_MASK,
    PART_LSE,
    PART_LAYOUT,
    PART_ALIGNMENT
};

struct reader {
    attn_problem problem;
    unsigned seen; /* bits of enum part */
    char *error;
    size_t error_size;
};

static attn_status fault(const struct reader *r, const char *format, ...) ATTN_PRINTF(2, 3);

static attn_status fault(const struct reader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (r->error_size)
        (void)vsnprintf(r->error, r->error_size, format, args);
    va_end(args);
    return ATTN_ERR_INVALID;
}

/* Words with a number; `h` and `s` set two parts. Longer prefixes stand first. */
static const struct {
    const char *prefix;
    enum part first, last;
    size_t offset[2];
} NUMBERS[] = {
    {"hkv", PART_HEADS_KV, PART_HEADS_KV, {offsetof(attn_problem, heads_kv)}},
    {"hq", PART_HEADS_Q, PART_HEADS_Q, {offsetof(attn_problem, heads_q)}},
    {"h",
     PART_HEADS_Q,
     PART_HEADS_KV,
     {offsetof(attn_problem, heads_q), offsetof(attn_problem, heads_kv)}},
    {"sq", PART_SEQ_Q, PART_SEQ_Q, {offsetof(attn_problem, seq_q)}},
    {"sk", PART_SEQ_KV, PART_SEQ_KV, {offsetof(attn_problem, seq_kv)}},
    {"s", PART_SEQ_Q, PART_SEQ_KV, {offsetof(attn_problem, seq_q), offsetof(attn_problem, seq_kv)}},
    {"dv", PART_DIM_V, PART_DIM_V, {offsetof(attn_problem, head_dim_v)}},
    {"d", PART_DIM, PART_DIM, {offsetof(attn_problem, head_dim)}},
    {"b", PART_BATCH, PART_BATCH, {offsetof(attn_problem, batch)}},
};

/* Words without one. */
static const struct {
    const char *word;
    enum part part;
    int value;
} WORDS[] = {
    {"f32", PART_DTYPE, ATTN_F32},
    {"f16", PART_DTYPE, ATTN_F16},
    {"bf16", PART_DTYPE, ATTN_BF16},
    {"tf32", PART_DTYPE, ATTN_TF32},
    {"none", PART_MASK, ATTN_MASK_NONE},
    {"causal", PART_MASK, ATTN_MASK_CAUSAL},
    {"causal_tl", PART_MASK, ATTN_MASK_CAUSAL_TL},
    {"lse", PART_LSE, 1},
    {"bhsd", PART_LAYOUT, ATTN_BHSD},
    {"bshd", PART_LAYOUT, ATTN_BSHD},
    {"qkv", PART_LAYOUT, ATTN_QKV},
    {"a16", PART_ALIGNMENT, ATTN_A16},
    {"a1", PART_ALIGNMENT, ATTN_A1},
};

/* A decimal number without sign, blanks or leading zeros, so that one text means one problem. */
static bool read_number(const char *text, const char **end, int32_t *value) {
    if (*text < '0' || *text > '9' || (*text == '0' && text[1] >= '0' && text[1] <= '9'))
        return false;
    int64_t n = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        n = n * 10 + (*text - '0');
        if (n > INT32_MAX)
            return false;
    }
    *value = (int32_t)n;
    *end = text;
    return true;
}

static attn_status take_parts(struct reader *r, const char *word, enum part first, enum part last) {
    for (unsigned part = first; part <= (unsigned)last; part++) {
        if (r->seen & 1u << part)
            return fault(r, "'%s' sets again what an earlier word has set; write %s", word,
                         part == PART_HEADS_Q || part == PART_HEADS_KV ? "hN, or hqN:hkvN"
                         : part == PART_SEQ_Q || part == PART_SEQ_KV   ? "sN, or sqN:skN"
                                                                       : "each word once");
        r->seen |= 1u << part;
    }
    return ATTN_OK;
}

static attn_status read_side(const char **at, int32_t *side) {
    if (strncmp(*at, "-1", 2) == 0) {
        *side = -1;
        *at += 2;
        return ATTN_OK;
    }
    return read_number(*at, at, side) ? ATTN_OK : ATTN_ERR_INVALID;
}

static attn_status read_window(struct reader *r, const char *word) {
    const char *at = word + strlen("window");
    attn_problem *p = &r->problem;
    if (read_side(&at, &p->window_left) || *at++ != ',' || read_side(&at, &p->window_right) || *at)
        return fault(r,
                     "'%s' is not a window; write windowL,R with counts of keys, -1 for "
                     "unbounded, such as window1024,0",
                     word);
    p->mask = ATTN_MASK_WINDOW;
    return take_parts(r, word, PART_MASK, PART_MASK);
}

static void set_word(attn_problem *p, enum part part, int value) {
    switch (part) {
    case PART_DTYPE:
        p->dtype = (attn_dtype)value;
        break;
    case PART_MASK:
        p->mask = (attn_mask)value;
        break;
    case PART_LSE:
        p->features |= ATTN_FEATURE_LSE;
        break;
    case PART_LAYOUT:
        p->layout = (attn_layout)value;
        break;
    case PART_ALIGNMENT:
        p->alignment = (attn_alignment)value;
        break;
    default: /* the other parts have numbers */
        break;
    }
}

static attn_status unknown_word(const struct reader *r, const char *word) {
    const char *names[sizeof WORDS / sizeof WORDS[0]];
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        names[i] = WORDS[i].word;
    const char *nearest = attn_nearest_word(word, names, sizeof names / sizeof names[0]);
    if (nearest)
        return fault(r, "'%s' is no part of a problem; did you mean '%s'?", word, nearest);
    return fault(r,
                 "'%s' is no part of a problem; the form is "
                 "fwd:DTYPE:bN:hN:sN:dN[:causal][:lse]...",
                 word);
}

static attn_status bad_number(const struct reader *r, const char *word, const char *prefix) {
    const char *digits = word + strlen(prefix);
    if (*digits != '0' && digits[strspn(digits, "0123456789")] == '\0' && *digits)
        return fault(r, "'%s' is too large: the number is at most %d", word, INT32_MAX);
    return fault(r, "'%s' needs a whole number without sign and leading zeros after %s", word,
                 prefix);
}

static attn_status read_word(struct reader *r, const char *word) {
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strcmp(word, WORDS[i].word) == 0) {
            set_word(&r->problem, WORDS[i].part, WORDS[i].value);
            return take_parts(r, word, WORDS[i].part, WORDS[i].part);
        }
    }
    if (strncmp(word, "window", strlen("window")) == 0)
        return read_window(r, word);
    for (size_t i = 0; i < sizeof NUMBERS / sizeof NUMBERS[0]; i++) {
        size_t length = strlen(NUMBERS[i].prefix);
        const char *end;
        int32_t value;
        if (strncmp(word, NUMBERS[i].prefix, length) != 0)
            continue;
        if (!read_number(word + length, &end, &value) || *end) {
            if (strchr("+-0123456789", word[length]))
                return bad_number(r, word, NUMBERS[i].prefix);
            continue;
        }
        for (unsigned k = 0; k <= (unsigned)(NUMBERS[i].last - NUMBERS[i].first); k++)
            memcpy((char *)&r->problem + NUMBERS[i].offset[k], &value, sizeof value);
        return take_parts(r, word, NUMBERS[i].first, NUMBERS[i].last);
    }
    return unknown_word(r, word);
}

static attn_status require_parts(const struct reader *r) {
    static const struct {
        enum part part;
        const char *form;
    } needed[] = {
        {PART_DTYPE, "a dtype: f32, f16, bf16 or tf32"},
        {PART_BATCH, "the batch: bN"},
        {PART_HEADS_Q, "the heads: hN, or hqN:hkvN"},
        {PART_HEADS_KV, "the key heads: hkvN"},
        {PART_SEQ_Q, "the lengths: sN, or sqN:skN"},
        {PART_SEQ_KV, "the key length: skN"},
        {PART_DIM, "the head dimension: dN"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!(r->seen & 1u << needed[i].part))
            return fault(r, "the problem lacks %s", needed[i].form);
    return ATTN_OK;
}

attn_status attn_problem_parse(const char *text, attn_problem *problem, char *error,
                               size_t error_size) {
    struct reader r = {.error = error, .error_size = error ? error_size : 0};
    if (!text || !problem)
        return fault(&r, "the %s is NULL", text ? "problem" : "text of the problem");
    if (strncmp(text, "fwd", 3) != 0 || (text[3] != ':' && text[3] != '\0'))
        return fault(&r,
                     "'%.40s' is not a problem; it begins with the operation, fwd, as in "
                     "fwd:f32:b1:h8:s1024:d64:causal",
                     text);
    const char *at = text + 3;
    while (*at == ':') {
        at++;
        char word[WORD_MAX];
        size_t n = strcspn(at, ":");
        if (n == 0)
            return fault(&r, "'%.80s' has an empty word: two ':' in a row, or one at the end",
                         text);
        if (n >= sizeof word)
            return fault(&r, "'%.40s...' is no part of a problem", at);
        memcpy(word, at, n);
        word[n] = '\0';
        ATTN_TRY(read_word(&r, word));
        at += n;
    }
    ATTN_TRY(require_parts(&r));
    if (!(r.seen & 1u << PART_DIM_V))
        r.problem.head_dim_v = r.problem.head_dim;
    ATTN_TRY(attn_problem_check(&r.problem, error, r.error_size));
    *problem = r.problem;
    return ATTN_OK;
}

size_t attn_problem_print(const attn_problem *p, char *text, size_t size) {
    char heads[40], lengths[40], dim_v[20] = "", mask[40] = "";
    if (p->heads_q == p->heads_kv)
        (void)snprintf(heads, sizeof heads, "h%d", p->heads_q);
    else
        (void)snprintf(heads, sizeof heads, "hq%d:hkv%d", p->heads_q, p->heads_kv);
    if (p->seq_q == p->seq_kv)
        (void)snprintf(lengths, sizeof lengths, "s%d", p->seq_q);
    else
        (void)snprintf(lengths, sizeof lengths, "sq%d:sk%d", p->seq_q, p->seq_kv);
    if (p->head_dim_v != p->head_dim)
        (void)snprintf(dim_v, sizeof dim_v, ":dv%d", p->head_dim_v);
    if (p->mask == ATTN_MASK_WINDOW)
        (void)snprintf(mask, sizeof mask, ":window%d,%d", p->window_left, p->window_right);
    else if (p->mask != ATTN_MASK_NONE)
        (void)snprintf(mask, sizeof mask, ":%s", attn_mask_name(p->mask));
    int n =
        snprintf(text, size, "fwd:%s:b%d:%s:%s:d%d%s%s%s%s%s%s", attn_dtype_name(p->dtype),
                 p->batch, heads, lengths, p->head_dim, dim_v, mask,
                 p->features & ATTN_FEATURE_LSE ? ":lse" : "", p->layout == ATTN_BHSD ? "" : ":",
                 p->layout == ATTN_BHSD ? "" : attn_layout_name(p->layout),
                 p->alignment == ATTN_A1 ? ":a1" : "");
    return n < 0 ? 0 : (size_t)n;
}

void attn_class_print(const attn_problem *p, char text[ATTN_CLASS_TEXT]) {
    (void)snprintf(text, ATTN_CLASS_TEXT, "fwd:%s:d%d:dv%d:%s%s:%s", attn_dtype_name(p->dtype),
                   p->head_dim, p->head_dim_v, attn_mask_name(p->mask),
                   p->features & ATTN_FEATURE_LSE ? ":lse" : "", NAME_OF(ALIGNMENTS, p->alignment));
}
