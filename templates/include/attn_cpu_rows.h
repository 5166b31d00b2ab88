/* attn_cpu_rows.h: rows of K, V and O in vectors whose lanes lie along the columns.
 *
 * Include it behind attn_cpu.h. A row is read in chunks, which are widened to float in registers:
 *
 *     f32, f16   ATTN_VL columns in one vector
 *     bf16       2 ATTN_VL columns in two vectors, the even ones and the odd ones: a bfloat16 is
 *                the upper half of a float, so a shift and a mask widen a chunk without moving
 *                anything from lane to lane
 */
#ifndef ATTN_CPU_ROWS_H
#define ATTN_CPU_ROWS_H

#include "attn_cpu_element.h"

typedef uint16_t attn_vh __attribute__((vector_size(2 * ATTN_VL)));

/* `bytes` bytes, an even number, from memory of any alignment, and zeros; no others are read. */
ATTN_INLINE attn_vi attn_vload_part(const void *p, const int bytes) {
    attn_vi x = {0};
#if defined(__AVX512BW__) && ATTN_VL == 16
    if (bytes < 64)
        return (attn_vi)_mm512_maskz_loadu_epi16((__mmask32)((1ULL << bytes / 2) - 1), p);
#elif defined(__AVX512BW__) && ATTN_VL == 8
    if (bytes < 32)
        return (attn_vi)_mm256_maskz_loadu_epi16((__mmask16)((1U << bytes / 2) - 1), p);
#endif
    memcpy(&x, p, (size_t)bytes);
    return x;
}

ATTN_INLINE attn_vf attn_vwiden_f16(attn_vh h) {
#if defined(__AVX512F__) && ATTN_VL == 16
    return (attn_vf)_mm512_cvtph_ps((__m256i)h);
#elif defined(__F16C__) && ATTN_VL == 8
    return (attn_vf)_mm256_cvtph_ps((__m128i)h);
#elif defined(__ARM_NEON)
    return (attn_vf)vcvt_f32_f16((float16x4_t)h);
#else
    const attn_vi x = __builtin_convertvector(h, attn_vi), rest = x & 0x7fff;
    const attn_vf small = __builtin_convertvector(rest, attn_vf) * 0x1p-24F; /* subnormal, zero */
    const attn_vi large = (rest << 13) + ((rest >= 0x7c00) & (112 << 23)) + (112 << 23);
    const attn_vi subnormal = rest < 0x0400;
    return (attn_vf)(((subnormal & (attn_vi)small) | (~subnormal & large)) | (x & 0x8000) << 16);
#endif
}

/* A chunk of which the first `columns` exist; the others are 0 and are not read. */
ATTN_INLINE void attn_chunk_f32(attn_vf x[1], const float *p, const int columns) {
    x[0] = (attn_vf)attn_vload_part(p, 4 * columns);
}

ATTN_INLINE void attn_chunk_f16(attn_vf x[1], const uint16_t *p, const int columns) {
    attn_vh h = {0};
    memcpy(&h, p, 2 * (size_t)columns);
    x[0] = attn_vwiden_f16(h);
}

ATTN_INLINE void attn_chunk_bf16(attn_vf x[2], const uint16_t *p, const int columns) {
    const attn_vi pairs = attn_vload_part(p, 2 * columns);
    x[0] = (attn_vf)(pairs << 16);
    x[1] = (attn_vf)(pairs & ~0xffff);
}

/* Shuffles of two vectors a and b by blocks of four lanes: ATTN_IN_BLOCKS takes lanes i j k l of
 * each block (4 and more: of b's), ATTN_BLOCK(n) is the n-th block of a, then b. */
#define ATTN_BLOCK(n) 4 * (n), 4 * (n) + 1, 4 * (n) + 2, 4 * (n) + 3
#define ATTN_LANE(i, n) (i) % 4 + (i) / 4 * ATTN_VL + 4 * (n)
#define ATTN_LANES(n, i, j, k, l) ATTN_LANE(i, n), ATTN_LANE(j, n), ATTN_LANE(k, n), ATTN_LANE(l, n)
#if ATTN_VL == 16
#define ATTN_IN_BLOCKS(a, b, ...)                                                                  \
    __builtin_shufflevector(a, b, ATTN_LANES(0, __VA_ARGS__), ATTN_LANES(1, __VA_ARGS__),          \
                            ATTN_LANES(2, __VA_ARGS__), ATTN_LANES(3, __VA_ARGS__))
#elif ATTN_VL == 8
#define ATTN_IN_BLOCKS(a, b, ...)                                                                  \
    __builtin_shufflevector(a, b, ATTN_LANES(0, __VA_ARGS__), ATTN_LANES(1, __VA_ARGS__))
#else
#define ATTN_IN_BLOCKS(a, b, ...) __builtin_shufflevector(a, b, ATTN_LANES(0, __VA_ARGS__))
#endif

/* In each block, the sums of the block's lanes of four vectors. */
ATTN_INLINE attn_vf attn_vsum4(const attn_vf x[4]) {
    const attn_vf ab =
        ATTN_IN_BLOCKS(x[0], x[1], 0, 4, 1, 5) + ATTN_IN_BLOCKS(x[0], x[1], 2, 6, 3, 7);
    const attn_vf cd =
        ATTN_IN_BLOCKS(x[2], x[3], 0, 4, 1, 5) + ATTN_IN_BLOCKS(x[2], x[3], 2, 6, 3, 7);
    return ATTN_IN_BLOCKS(ab, cd, 0, 1, 4, 5) + ATTN_IN_BLOCKS(ab, cd, 2, 3, 6, 7);
}

/* Lane i: the sum of the lanes of x[i]. Half as many additions as vectors, where summing one vector
 * after the other would take log2(ATTN_VL) of them each. */
ATTN_INLINE attn_vf attn_vsums(const attn_vf x[ATTN_VL]) {
    const attn_vf a = attn_vsum4(x);
#if ATTN_VL == 4
    return a;
#elif ATTN_VL == 8
    const attn_vf b = attn_vsum4(x + 4);
    return __builtin_shufflevector(a, b, ATTN_BLOCK(0), ATTN_BLOCK(2)) +
           __builtin_shufflevector(a, b, ATTN_BLOCK(1), ATTN_BLOCK(3));
#else
    const attn_vf b = attn_vsum4(x + 4), c = attn_vsum4(x + 8), d = attn_vsum4(x + 12);
    const attn_vf ab =
        __builtin_shufflevector(a, b, ATTN_BLOCK(0), ATTN_BLOCK(1), ATTN_BLOCK(4), ATTN_BLOCK(5)) +
        __builtin_shufflevector(a, b, ATTN_BLOCK(2), ATTN_BLOCK(3), ATTN_BLOCK(6), ATTN_BLOCK(7));
    const attn_vf cd =
        __builtin_shufflevector(c, d, ATTN_BLOCK(0), ATTN_BLOCK(1), ATTN_BLOCK(4), ATTN_BLOCK(5)) +
        __builtin_shufflevector(c, d, ATTN_BLOCK(2), ATTN_BLOCK(3), ATTN_BLOCK(6), ATTN_BLOCK(7));
    return __builtin_shufflevector(ab, cd, ATTN_BLOCK(0), ATTN_BLOCK(2), ATTN_BLOCK(4),
                                   ATTN_BLOCK(6)) +
           __builtin_shufflevector(ab, cd, ATTN_BLOCK(1), ATTN_BLOCK(3), ATTN_BLOCK(5),
                                   ATTN_BLOCK(7));
#endif
}

#endif
