/* flags.c: the allowed build options and what each needs of the CPU. */
#include "flags.h"

#include <stdlib.h>
#include <string.h>

#include "isa.h"

/* In a form, `?` stands for an optional "no-" and a final `*` for a word or number. */
typedef struct flag_row {
    const char *form;
    uint32_t needs;
} flag_row;

static const flag_row rows[] = {
    /* optimisation */
    {"-O0", 0},
    {"-O1", 0},
    {"-O2", 0},
    {"-O3", 0},
    {"-Os", 0},
    {"-Ofast", 0},
    {"-f?unroll-loops", 0},
    {"-f?unroll-all-loops", 0},
    {"-f?peel-loops", 0},
    {"-f?split-loops", 0},
    {"-f?unswitch-loops", 0},
    {"-f?ivopts", 0},
    {"-f?prefetch-loop-arrays", 0},
    {"-f?tree-vectorize", 0},
    {"-f?tree-loop-vectorize", 0},
    {"-f?tree-slp-vectorize", 0},
    {"-f?vectorize", 0},
    {"-f?slp-vectorize", 0},
    {"-fvect-cost-model=*", 0},
    {"-fsimd-cost-model=*", 0},
    {"-fveclib=*", 0},
    {"-f?schedule-insns", 0},
    {"-f?schedule-insns2", 0},
    {"-f?sched-pressure", 0},
    {"-f?rename-registers", 0},
    {"-f?gcse", 0},
    {"-f?ipa-ra", 0},
    {"-f?tree-ter", 0},
    {"-f?inline-functions", 0},
    {"-f?omit-frame-pointer", 0},
    {"-f?strict-aliasing", 0},
    {"-f?stack-protector", 0},
    {"-f?plt", 0},
    {"-f?semantic-interposition", 0},
    {"-falign-functions=*", 0},
    {"-falign-loops=*", 0},
    {"--param=max-unroll-times=*", 0},
    {"--param=max-unrolled-insns=*", 0},
    {"-f?openmp", 0},
    {"-f?openmp-simd", 0},
    /* floating point */
    {"-ffp-contract=*", 0},
    {"-f?fast-math", 0},
    {"-f?unsafe-math-optimizations", 0},
    {"-f?math-errno", 0},
    {"-f?trapping-math", 0},
    {"-f?signed-zeros", 0},
    {"-f?associative-math", 0},
    {"-f?reciprocal-math", 0},
    {"-f?finite-math-only", 0},
    {"-f?rounding-math", 0},
    /* instruction sets; a `no` form needs nothing */
    {"-m?avx", ATTN_NEEDS_AVX2},
    {"-m?avx2", ATTN_NEEDS_AVX2},
    {"-m?fma", ATTN_NEEDS_AVX2},
    {"-m?f16c", ATTN_NEEDS_AVX2},
    {"-m?avx512f", ATTN_NEEDS_AVX512},
    {"-m?avx512bw", ATTN_NEEDS_AVX512},
    {"-m?avx512dq", ATTN_NEEDS_AVX512},
    {"-m?avx512vl", ATTN_NEEDS_AVX512},
    {"-m?avx512vnni", ATTN_NEEDS_AVX512 | ATTN_ISA_AVX512_VNNI},
    {"-m?avx512bf16", ATTN_NEEDS_AVX512 | ATTN_ISA_AVX512_BF16},
    {"-m?avx512fp16", ATTN_NEEDS_AVX512 | ATTN_ISA_AVX512_FP16},
    {"-m?amx-tile", ATTN_NEEDS_AMX},
    {"-m?amx-bf16", ATTN_NEEDS_AMX},
    {"-march=x86-64", ATTN_ISA_X86_64},
    {"-march=x86-64-v3", ATTN_NEEDS_AVX2},
    {"-march=x86-64-v4", ATTN_NEEDS_AVX512},
    {"-march=armv8-a", ATTN_NEEDS_NEON},
    {"-mtune=*", 0},
    {"-mprefer-vector-width=*", 0},
    {"-m?vzeroupper", 0},
    /* the language and its warnings */
    {"-std=*", 0},
    {"-Wall", 0},
    {"-Wextra", 0},
    {"-w", 0},
    {"-g", 0},
};

enum { ROWS = sizeof rows / sizeof *rows };

static bool matches(const char *form, const char *word, bool *negated) {
    *negated = false;
    for (; *form; form++) {
        if (*form == '?') {
            *negated = strncmp(word, "no-", 3) == 0;
            word += *negated ? 3 : 0;
        } else if (*form == '*') {
            size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789-_.+");
            return length > 0 && word[length] == '\0';
        } else if (*form != *word++) {
            return false;
        }
    }
    return *word == '\0';
}

/* Writes a form as people would: "-mtune=VALUE", "-fno-plt". */
static void plain_form(const char *form, bool negated, char text[64]) {
    char *at = text;
    for (; *form && at < text + 56; form++) {
        if (*form == '*')
            at = stpcpy(at, "VALUE");
        else if (*form == '?')
            at = stpcpy(at, negated ? "no-" : "");
        else
            *at++ = *form;
    }
    *at = '\0';
}

static attn_status refuse_flag(const char *word, attn_error *err) {
    char text[ROWS][64];
    const char *forms[ROWS];
    bool negated = strlen(word) > 5 && strncmp(word + 2, "no-", 3) == 0;
    for (int i = 0; i < ROWS; i++) {
        plain_form(rows[i].form, negated, text[i]);
        forms[i] = text[i];
    }
    const char *nearest = attn_nearest_word(word, forms, ROWS);
    return attn_fail(err, ATTN_ERR_INVALID, "build option %s is not an allowed one%s%s%s", word,
                     nearest ? "; did you mean " : " (see runtime/cpu/flags.c)",
                     nearest ? nearest : "", nearest ? "?" : "");
}

static attn_status check_flag(const char *word, attn_cpu_flags *flags, attn_error *err) {
    size_t length = strlen(word);
    if (length > 7 && strcmp(word + length - 7, "=native") == 0)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "build option %s names no fixed CPU; name the instruction sets (-mavx2 "
                         "-mfma ...)",
                         word);
    for (const flag_row *row = rows; row < rows + ROWS; row++) {
        bool negated;
        if (!matches(row->form, word, &negated))
            continue;
        flags->needs |= negated ? 0 : row->needs;
        return ATTN_OK;
    }
    return refuse_flag(word, err);
}

/* cc, gcc or clang, of a version (gcc-13) or for another CPU (aarch64-linux-gnu-gcc): a name that
 * is looked for in PATH, never a path. */
static attn_status check_compiler(const char *name, attn_error *err) {
    static const char *const known[] = {"gcc", "clang", "cc"};
    size_t length = strlen(name), end = length;
    while (end > 0 && strchr("0123456789.", name[end - 1]))
        end--;
    if (end < length && end > 0 && name[end - 1] == '-')
        end--; /* the version */
    else
        end = length;
    for (size_t i = 0; i < sizeof known / sizeof *known && !strchr(name, '/'); i++) {
        size_t n = strlen(known[i]);
        if (end >= n && strncmp(name + end - n, known[i], n) == 0 &&
            (end == n || name[end - n - 1] == '-'))
            return ATTN_OK;
    }
    return attn_fail(err, ATTN_ERR_INVALID,
                     "compiler=%s: say gcc, clang or cc, a version of one (gcc-13), or one for "
                     "another CPU (aarch64-linux-gnu-gcc)",
                     name);
}

attn_status attn_cpu_flags_parse(const char *options, attn_cpu_flags *flags, attn_error *err) {
    char *save = NULL;
    *flags = (attn_cpu_flags){.text = strdup(options ? options : "")};
    if (!flags->text)
        return attn_fail_nomem(err);
    for (char *word = strtok_r(flags->text, " \t\n", &save); word;
         word = strtok_r(NULL, " \t\n", &save)) {
        if (strncmp(word, "compiler=", 9) == 0) {
            ATTN_TRY(check_compiler(word + 9, err));
            flags->compiler = strcmp(word + 9, "cc") == 0 ? NULL : word + 9;
            continue;
        }
        ATTN_TRY(check_flag(word, flags, err));
        if (flags->count == ATTN_FLAGS_MAX)
            return attn_fail(err, ATTN_ERR_INVALID, "more than %d build options", ATTN_FLAGS_MAX);
        flags->flag[flags->count++] = word;
        flags->openmp |= strcmp(word, "-fopenmp") == 0;
    }
    return ATTN_OK;
}

void attn_cpu_flags_free(attn_cpu_flags *flags) {
    free(flags->text);
    *flags = (attn_cpu_flags){0};
}
