/* test_exp2.c: the kernels' 2^x is right for every float it may be given, 0 where it would be
 * denormal, exactly 0 for -infinity and NaN for NaN, in every instruction set that this CPU has. */
#include "check.h"
#include "exp2_lanes.h"
#include "isa.h"

enum { BLOCK = 1 << 12 };

typedef struct way {
    const char *name;
    uint32_t needs;
    exp2_lanes *of_degree[4]; /* 3, 4, 5, 6 */
} way;

#define DEGREES(set, lanes)                                                                        \
    {                                                                                              \
        exp2_##set##_##lanes##_3, exp2_##set##_##lanes##_4, exp2_##set##_##lanes##_5,              \
            exp2_##set##_##lanes##_6                                                               \
    }

static const way WAYS[] = {
    {"base", 0, DEGREES(base, 4)},
#if defined(__x86_64__)
    {"AVX2", ATTN_NEEDS_AVX2, DEGREES(avx2, 8)},
    {"AVX-512, 8 lanes", ATTN_NEEDS_AVX512, DEGREES(avx512, 8)},
    {"AVX-512, 16 lanes", ATTN_NEEDS_AVX512, DEGREES(avx512, 16)},
#endif
};

/* Relative error of each degree: the polynomial's, and 6e-8 for each of two roundings. */
static const double BOUNDS[] = {8.7e-5, 3.1e-6, 2.1e-7, 1.3e-7};

static double worst; /* relative error since the last report */

static void judge(float t, float got, double bound) {
    const double want = t < -126.0F ? 0 : exp2((double)t), error = fabs((double)got / want - 1);
    bool good = (error <= bound && got <= 1.0F) || (t == -126.0F && got == 0.0F);
    if (isnan(t))
        good = isnan(got);
    else if (t == 0.0F || t < -126.0F)
        good = (double)got == want;
    else if (t > -126.0F)
        worst = fmax(worst, error);
    if (!good)
        check_that(false, __FILE__, __LINE__, "2^%a is %a, want %a", (double)t, (double)got, want);
}

static void run_block(exp2_lanes *f, const float *t, double bound) {
    static float native[BLOCK], magic[BLOCK];
    f(t, native, magic, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        judge(t[i], native[i], bound);
        judge(t[i], magic[i], bound);
    }
}

/* Floats by their bits, `step` apart, from the number `from` down to `to`, both negative or -0. */
static void sweep(exp2_lanes *f, float from, float to, uint32_t step, double bound) {
    static float t[BLOCK];
    uint32_t first, last;
    memcpy(&first, &from, sizeof first);
    memcpy(&last, &to, sizeof last);
    for (uint64_t bits = first; bits <= last;) {
        for (int i = 0; i < BLOCK; i++, bits += step) {
            const uint32_t one = bits <= last ? (uint32_t)bits : last;
            memcpy(&t[i], &one, sizeof one);
        }
        run_block(f, t, bound);
    }
}

static void special(exp2_lanes *f, double bound) {
    static float t[BLOCK];
    const float values[] = {0.0F,       -0.0F,      NAN,         -NAN,           -INFINITY,
                            -0x1p-149F, -0x1p-126F, -87.0F,      -88.0F,         -89.0F,
                            -103.0F,    -104.0F,    -126.0F,     -0x1.f80002p6F, -127.0F,
                            -149.0F,    -150.0F,    -255.0F,     -256.0F,        -382.0F,
                            -1e4F,      -5e4F,      -8388608.0F, -1e30F,         -3.4e38F};
    const int count = (int)(sizeof values / sizeof *values);
    for (int i = 0; i < BLOCK; i++) /* in every lane, beside every other */
        t[i] = values[(i + i / count) % count];
    run_block(f, t, bound);
}

int main(void) {
    const uint32_t isa = attn_isa_detect();
    for (size_t w = 0; w < sizeof WAYS / sizeof *WAYS; w++) {
        const way *set = &WAYS[w];
        if ((isa & set->needs) != set->needs) {
            printf("not tried: this CPU has no %s\n", set->name);
            continue;
        }
        for (int d = 0; d < 4; d++) {
            CHECK_CASE("%s, degree %d", set->name, d + 3);
            exp2_lanes *f = set->of_degree[d];
            worst = 0;
            special(f, BOUNDS[d]);
            sweep(f, -1.0F, -1.25F, 1, BOUNDS[d]);                  /* each float of these */
            sweep(f, -0x1.f7fff8p6F, -0x1.f80040p6F, 1, BOUNDS[d]); /* where it becomes 0 */
            sweep(f, -0.0F, -INFINITY, 1237, BOUNDS[d]);
            CHECK(worst > 0 && worst <= BOUNDS[d]);
        }
    }
    return check_done();
}
