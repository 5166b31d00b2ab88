/* attn_cpu_avx512.h: attn_cpu.h's vectors on AVX-512 (F, DQ and VL), 16 lanes or 8. */
#ifndef ATTN_CPU_AVX512_H
#define ATTN_CPU_AVX512_H

#include <immintrin.h>

/* The intrinsic of that name, and the types it takes, in the width that ATTN_VL asks for. */
#if ATTN_VL == 16
#define ATTN_MM(name) _mm512_##name
typedef __m512 attn_mm;
typedef __mmask16 attn_mmask;
#elif ATTN_VL == 8
#define ATTN_MM(name) _mm256_##name
typedef __m256 attn_mm;
typedef __mmask8 attn_mmask;
#else
#error "AVX-512 takes ATTN_VL 16 or 8"
#endif

ATTN_INLINE attn_vf attn_vmax(attn_vf a, attn_vf b) {
    return (attn_vf)ATTN_MM(max_ps)((attn_mm)a, (attn_mm)b);
}

/* reduce_ps is t - floor(t); scalef_ps is p * 2^floor(t); the comparison is true for NaN. */
ATTN_INLINE attn_vf attn_vexp2_native(attn_vf t) {
    const attn_mm x = (attn_mm)t;
    const attn_mmask kept = ATTN_MM(cmp_ps_mask)(x, ATTN_MM(set1_ps)(-126.0F), _CMP_NLT_UQ);
    const attn_mm f = ATTN_MM(reduce_ps)(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    return (attn_vf)ATTN_MM(maskz_scalef_ps)(kept, (attn_mm)attn_vexp2_unit((attn_vf)f), x);
}

#endif
