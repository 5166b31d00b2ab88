/* isa.h: the instruction sets that code here may use, and the architectures they make up.
 *
 * Usable means that the CPU has it, the kernel saves its registers (XCR0, AMX permission) and
 * ATTNTUNE_CPU_ISA does not rule it out. */
#ifndef ATTN_ISA_H
#define ATTN_ISA_H

#include <stdbool.h>

#include "core/error.h"
#include "core/str.h"

/* The names are also those of device properties. */
#define ATTN_ISA_MAP(XX)                                                                           \
    XX(X86_64, "x86_64")                                                                           \
    XX(AVX2, "avx2")                                                                               \
    XX(FMA, "fma")                                                                                 \
    XX(F16C, "f16c")                                                                               \
    XX(AVX512F, "avx512f")                                                                         \
    XX(AVX512BW, "avx512bw")                                                                       \
    XX(AVX512DQ, "avx512dq")                                                                       \
    XX(AVX512VL, "avx512vl")                                                                       \
    XX(AVX512_VNNI, "avx512_vnni")                                                                 \
    XX(AVX512_BF16, "avx512_bf16")                                                                 \
    XX(AVX512_FP16, "avx512_fp16")                                                                 \
    XX(AMX_BF16, "amx_bf16")                                                                       \
    XX(AARCH64, "aarch64")                                                                         \
    XX(NEON, "neon")

typedef enum attn_isa_bit {
#define XX(name, text) ATTN_ISA_BIT_##name,
    ATTN_ISA_MAP(XX)
#undef XX
        ATTN_ISA_COUNT
} attn_isa_bit;

enum attn_isa {
#define XX(name, text) ATTN_ISA_##name = 1 << ATTN_ISA_BIT_##name,
    ATTN_ISA_MAP(XX)
#undef XX
};

/* What code for an architecture needs. */
enum attn_needs {
    ATTN_NEEDS_NEON = ATTN_ISA_AARCH64 | ATTN_ISA_NEON,
    ATTN_NEEDS_AVX2 = ATTN_ISA_X86_64 | ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C,
    ATTN_NEEDS_AVX512 = ATTN_NEEDS_AVX2 | ATTN_ISA_AVX512F | ATTN_ISA_AVX512BW | ATTN_ISA_AVX512DQ |
                        ATTN_ISA_AVX512VL,
    ATTN_NEEDS_AMX = ATTN_NEEDS_AVX512 | ATTN_ISA_AVX512_BF16 | ATTN_ISA_AMX_BF16
};

/* "avx2+fma+f16c", and back (false on a name that is not known). */
void attn_isa_print(uint32_t isa, attn_str *out);
bool attn_isa_parse(const char *text, uint32_t *isa);
const char *attn_isa_name(int bit); /* an attn_isa_bit */

/* What code for a target needs: "cpu:x86_64+avx2+fma", which is exact, or an architecture,
 * "cpu:avx512". False if the text is neither. */
bool attn_cpu_target_needs(const char *target, uint32_t *needs);

/* The architecture that CPUs with these sets are of: "generic", "neon", "avx2", "avx512" or
 * "avx512_amx". */
const char *attn_cpu_arch(uint32_t usable);

/* What the CPU and its kernel offer. Asks for AMX permission, which then holds for the process. */
uint32_t attn_isa_detect(void);

/* The part of `isa` that ATTNTUNE_CPU_ISA=WORD (or NULL: no limit) leaves. ERR_INVALID for a word
 * that is no architecture of this kind of CPU. */
attn_status attn_isa_limit(uint32_t isa, const char *word, uint32_t *usable, attn_error *err);

/* What tells CPU models apart, "GenuineIntel 6 207 2", and the name its maker gave it. */
void attn_cpu_model(char *model, size_t model_size, char *name, size_t name_size);

#endif
