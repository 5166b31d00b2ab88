/* fma.c: loops of fused multiply-adds that nothing but the arithmetic units can hold up.
 *
 * In assembly, since compilers keep arrays of accumulators on the stack, and so that each width is
 * there whatever flags this file is compiled with. Twelve accumulators hide a latency of four to
 * six cycles on two units. x = x * 1 + 0 keeps every value at 0. */
#include "fma.h"

#include <stddef.h>
#include <time.h>

#include "isa.h"

typedef struct fma_loop {
    uint32_t needs;
    double flops_per_round;
    void (*run)(int64_t rounds);
} fma_loop;

#if defined(__x86_64__)

#define FMA3(r, a, b, c)                                                                           \
    "vfmadd213ps %%" r "14, %%" r "15, %%" r a "\n\t"                                              \
    "vfmadd213ps %%" r "14, %%" r "15, %%" r b "\n\t"                                              \
    "vfmadd213ps %%" r "14, %%" r "15, %%" r c "\n\t"
#define FMA12(r)                                                                                   \
    FMA3(r, "0", "1", "2") FMA3(r, "3", "4", "5") FMA3(r, "6", "7", "8") FMA3(r, "9", "10", "11")
#define FMA_LOOP(name, r)                                                                          \
    static void name(int64_t rounds) {                                                             \
        __asm__ volatile("vzeroall\n"                                                              \
                         "1:\n\t" FMA12(r) "decq %0\n\tjnz 1b\n\tvzeroupper"                       \
                         : "+r"(rounds)                                                            \
                         :                                                                         \
                         : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",   \
                           "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");  \
    }
FMA_LOOP(run_zmm, "zmm")
FMA_LOOP(run_ymm, "ymm")

#elif defined(__aarch64__)

#define FMLA4(a, b, c, d)                                                                          \
    "fmla v" a ".4s, v30.4s, v31.4s\n\tfmla v" b ".4s, v30.4s, v31.4s\n\t"                         \
    "fmla v" c ".4s, v30.4s, v31.4s\n\tfmla v" d ".4s, v30.4s, v31.4s\n\t"
static void run_neon(int64_t rounds) {
    __asm__ volatile("movi v30.4s, #0\n\tmovi v31.4s, #0\n"
                     "1:\n\t" FMLA4("0", "1", "2", "3") FMLA4("4", "5", "6", "7")
                         FMLA4("16", "17", "18", "19")
                             FMLA4("20", "21", "22", "23") "subs %0, %0, #1\n\tb.ne 1b"
                     : "+r"(rounds)
                     :
                     : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18",
                       "v19", "v20", "v21", "v22", "v23", "v30", "v31");
}

#endif

/* Without fused instructions: multiplications and additions of four lanes. */
typedef float lanes __attribute__((vector_size(16)));

/* Hides the value from the optimiser. */
static inline lanes keep(lanes x) {
#if defined(__x86_64__)
    __asm__ volatile("" : "+x"(x));
#elif defined(__aarch64__)
    __asm__ volatile("" : "+w"(x));
#else
    __asm__ volatile("" : "+m"(x));
#endif
    return x;
}

static void run_generic(int64_t rounds) {
    lanes a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0}, g = {0}, h = {0}, i = {0}, j = {0};
    lanes one = keep((lanes){1, 1, 1, 1}), zero = keep((lanes){0});
    for (; rounds > 0; rounds--) {
        a = keep(a * one + zero);
        b = keep(b * one + zero);
        c = keep(c * one + zero);
        d = keep(d * one + zero);
        e = keep(e * one + zero);
        f = keep(f * one + zero);
        g = keep(g * one + zero);
        h = keep(h * one + zero);
        i = keep(i * one + zero);
        j = keep(j * one + zero);
    }
}

static const fma_loop loops[] = {
#if defined(__x86_64__)
    {ATTN_NEEDS_AVX512, 12 * 16 * 2, run_zmm},
    {ATTN_NEEDS_AVX2, 12 * 8 * 2, run_ymm},
#elif defined(__aarch64__)
    {ATTN_NEEDS_NEON, 16 * 4 * 2, run_neon},
#endif
    {0, 10 * 4 * 2, run_generic},
};

double attn_fma_run(uint32_t usable, int64_t rounds) {
    const fma_loop *loop = loops;
    while (loop->needs & ~usable)
        loop++;
    loop->run(rounds);
    return loop->flops_per_round * (double)rounds;
}

int64_t attn_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double attn_fma_canary(uint32_t usable) {
    attn_fma_run(usable, 4000); /* cores take a moment to power up their wide units */
    int64_t begin = attn_clock_ns();
    double flops = attn_fma_run(usable, 40000);
    return flops / (double)(attn_clock_ns() - begin);
}
