/* isa.c: names and sets of instruction sets; what this CPU has is in isa_detect.c. */
#include "isa.h"

#include <string.h>

static const char *const names[ATTN_ISA_COUNT] = {
#define XX(name, text) [ATTN_ISA_BIT_##name] = text,
    ATTN_ISA_MAP(XX)
#undef XX
};

typedef struct cpu_arch {
    const char *name;
    uint32_t needs;
} cpu_arch;

/* From narrow to wide. */
static const cpu_arch archs[] = {
    {"generic", 0},
    {"neon", ATTN_NEEDS_NEON},
    {"avx2", ATTN_NEEDS_AVX2},
    {"avx512", ATTN_NEEDS_AVX512},
    {"avx512_amx", ATTN_NEEDS_AMX},
};

enum { ARCHS = sizeof archs / sizeof *archs };

const char *attn_isa_name(int bit) {
    return names[bit];
}

void attn_isa_print(uint32_t isa, attn_str *out) {
    const char *plus = "";
    for (int bit = 0; bit < ATTN_ISA_COUNT; bit++)
        if (isa & 1U << bit) {
            attn_str_append_f(out, "%s%s", plus, names[bit]);
            plus = "+";
        }
}

static int find_bit(const char *word, size_t length) {
    for (int bit = 0; bit < ATTN_ISA_COUNT; bit++)
        if (strlen(names[bit]) == length && memcmp(names[bit], word, length) == 0)
            return bit;
    return -1;
}

bool attn_isa_parse(const char *text, uint32_t *isa) {
    *isa = 0;
    for (;;) {
        size_t length = strcspn(text, "+");
        int bit = find_bit(text, length);
        if (bit < 0)
            return false;
        *isa |= 1U << bit;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}

bool attn_cpu_target_needs(const char *target, uint32_t *needs) {
    if (strncmp(target, "cpu:", 4) != 0)
        return false;
    for (int i = 0; i < ARCHS; i++)
        if (strcmp(archs[i].name, target + 4) == 0) {
            *needs = archs[i].needs;
            return true;
        }
    return attn_isa_parse(target + 4, needs);
}

const char *attn_cpu_arch(uint32_t usable) {
    const char *best = archs[0].name;
    for (int i = 1; i < ARCHS; i++)
        if ((archs[i].needs & ~usable) == 0)
            best = archs[i].name;
    return best;
}

attn_status attn_isa_limit(uint32_t isa, const char *word, uint32_t *usable, attn_error *err) {
    const uint32_t kind = ATTN_ISA_X86_64 | ATTN_ISA_AARCH64;
    const char *words[ARCHS];
    size_t count = 0;
    *usable = isa;
    if (!word || !*word)
        return ATTN_OK;
    for (int i = 0; i < ARCHS; i++) {
        if (archs[i].needs & kind & ~isa)
            continue;
        words[count++] = archs[i].name;
        if (strcmp(archs[i].name, word) == 0) {
            *usable = isa & (archs[i].needs | kind);
            return ATTN_OK;
        }
    }
    const char *nearest = attn_nearest_word(word, words, count);
    return attn_fail(err, ATTN_ERR_INVALID, "ATTNTUNE_CPU_ISA=%s: no such CPU here; say %s", word,
                     nearest ? nearest : attn_cpu_arch(isa));
}
