/* attn_cpu_avx2.h: attn_cpu.h's vectors on AVX2 with FMA: 8 lanes. */
#ifndef ATTN_CPU_AVX2_H
#define ATTN_CPU_AVX2_H

#include <immintrin.h>

#if ATTN_VL != 8
#error "AVX2 takes ATTN_VL 8"
#endif

ATTN_INLINE attn_vf attn_vmax(attn_vf a, attn_vf b) {
    return (attn_vf)_mm256_max_ps((__m256)a, (__m256)b);
}

#endif
