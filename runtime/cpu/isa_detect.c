/* isa_detect.c: asks the CPU and the kernel what this process may use. */
#include "isa.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

enum { EAX, EBX, ECX, EDX };

/* Register state that the kernel saves, by bits of XCR0. */
enum { XCR0_AVX = 0x6, XCR0_AVX512 = 0xe6, XCR0_AMX = 0x60000 };
enum { ARCH_REQUEST_PERMISSION = 0x1023, AMX_TILE_DATA = 18 };

typedef struct cpuid_row {
    unsigned leaf, subleaf;
    int reg, bit;
    uint64_t xcr0; /* must be saved */
    uint32_t isa;
} cpuid_row;

static const cpuid_row rows[] = {
    {7, 0, EBX, 5, XCR0_AVX, ATTN_ISA_AVX2},
    {1, 0, ECX, 12, XCR0_AVX, ATTN_ISA_FMA},
    {1, 0, ECX, 29, XCR0_AVX, ATTN_ISA_F16C},
    {7, 0, EBX, 16, XCR0_AVX512, ATTN_ISA_AVX512F},
    {7, 0, EBX, 30, XCR0_AVX512, ATTN_ISA_AVX512BW},
    {7, 0, EBX, 17, XCR0_AVX512, ATTN_ISA_AVX512DQ},
    {7, 0, EBX, 31, XCR0_AVX512, ATTN_ISA_AVX512VL},
    {7, 0, ECX, 11, XCR0_AVX512, ATTN_ISA_AVX512_VNNI},
    {7, 1, EAX, 5, XCR0_AVX512, ATTN_ISA_AVX512_BF16},
    {7, 0, EDX, 23, XCR0_AVX512, ATTN_ISA_AVX512_FP16},
    {7, 0, EDX, 22, XCR0_AMX, ATTN_ISA_AMX_BF16},
};

static uint64_t read_xcr0(void) {
    unsigned r[4] = {0}, low, high;
    if (!__get_cpuid_count(1, 0, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) || !(r[ECX] & 1U << 27))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

uint32_t attn_isa_detect(void) {
    uint64_t xcr0 = read_xcr0();
    uint32_t isa = ATTN_ISA_X86_64;
    for (const cpuid_row *row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
        unsigned r[4] = {0};
        if ((xcr0 & row->xcr0) == row->xcr0 &&
            __get_cpuid_count(row->leaf, row->subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) &&
            r[row->reg] & 1U << row->bit)
            isa |= row->isa;
    }
    /* The kernel gives tile registers only to those who ask. */
    if (isa & ATTN_ISA_AMX_BF16 &&
        syscall(SYS_arch_prctl, ARCH_REQUEST_PERMISSION, AMX_TILE_DATA) != 0)
        isa &= ~(uint32_t)ATTN_ISA_AMX_BF16;
    return isa;
}

void attn_cpu_model(char *model, size_t model_size, char *name, size_t name_size) {
    unsigned v[4] = {0}, r[4] = {0}, brand[13] = {0};
    __get_cpuid(0, &v[EAX], &v[EBX], &v[ECX], &v[EDX]);
    __get_cpuid(1, &r[EAX], &r[EBX], &r[ECX], &r[EDX]);
    unsigned vendor[4] = {v[EBX], v[EDX], v[ECX], 0};
    unsigned family = r[EAX] >> 8 & 15, id = r[EAX] >> 4 & 15;
    if (family == 6 || family == 15)
        id += (r[EAX] >> 16 & 15) << 4;
    if (family == 15)
        family += r[EAX] >> 20 & 255;
    snprintf(model, model_size, "%s %u %u %u", (const char *)vendor, family, id, r[EAX] & 15);
    for (unsigned i = 0; i < 3; i++) {
        unsigned *part = brand + (size_t)4 * i;
        __get_cpuid(0x80000002 + i, part, part + 1, part + 2, part + 3);
    }
    const char *text = (const char *)brand;
    text += strspn(text, " ");
    snprintf(name, name_size, "%s", *text ? text : model);
}

#elif defined(__aarch64__)

uint32_t attn_isa_detect(void) {
    const unsigned long hwcap_asimd = 1UL << 1;
    return ATTN_ISA_AARCH64 | (getauxval(AT_HWCAP) & hwcap_asimd ? ATTN_ISA_NEON : 0);
}

/* MIDR_EL1: implementer, variant, architecture, part, revision. */
void attn_cpu_model(char *model, size_t model_size, char *name, size_t name_size) {
    unsigned long long midr = 0;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "re");
    if (f && fscanf(f, "%llx", &midr) != 1)
        midr = 0;
    if (f)
        fclose(f);
    snprintf(model, model_size, "aarch64 0x%02llx 0x%03llx %llu.%llu", midr >> 24 & 255,
             midr >> 4 & 0xfff, midr >> 20 & 15, midr & 15);
    snprintf(name, name_size, "%s", model);
}

#else

uint32_t attn_isa_detect(void) {
    return 0;
}

void attn_cpu_model(char *model, size_t model_size, char *name, size_t name_size) {
    snprintf(model, model_size, "unknown");
    snprintf(name, name_size, "a CPU of unknown kind");
}

#endif
