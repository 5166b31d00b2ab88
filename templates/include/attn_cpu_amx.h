/* attn_cpu_amx.h: AMX tiles, and what lies between them and the vectors of attn_cpu.h.
 *
 * A tile is 16 rows of 64 bytes: 32 bf16 or 16 floats. ATTN_TILE_MULTIPLY(c, a, b) adds to the
 * floats c[i][j] the sum over k < 32 of a[i][k] b[k][j], where b lies in pairs: its row k / 2 holds
 * b[k][j] and b[k + 1][j] side by side. Denormal factors and results count as 0.
 *
 * Include it behind attn_cpu.h, with 16 lanes. Numbers of tiles are constants, 0 to 7.
 */
#ifndef ATTN_CPU_AMX_H
#define ATTN_CPU_AMX_H

enum { ATTN_TILE_ROWS = 16, ATTN_TILE_HALVES = 32, ATTN_TILE_ELEMENTS = 512 };

/* GCC's intrinsics do not say that they read memory: this keeps stores where they stand. */
#define ATTN_TILE_FENCE() __asm__ volatile("" ::: "memory")

/* A tile from memory, rows `stride` bytes apart; STREAM: it will not be wanted again soon. */
#define ATTN_TILE_LOAD(tile, from, stride)                                                         \
    do {                                                                                           \
        ATTN_TILE_FENCE();                                                                         \
        _tile_loadd(tile, from, stride);                                                           \
        ATTN_TILE_FENCE();                                                                         \
    } while (0)
#define ATTN_TILE_STREAM(tile, from, stride)                                                       \
    do {                                                                                           \
        ATTN_TILE_FENCE();                                                                         \
        _tile_stream_loadd(tile, from, stride);                                                    \
        ATTN_TILE_FENCE();                                                                         \
    } while (0)
#define ATTN_TILE_STORE(tile, to, stride)                                                          \
    do {                                                                                           \
        _tile_stored(tile, to, stride);                                                            \
        ATTN_TILE_FENCE();                                                                         \
    } while (0)
#define ATTN_TILE_CLEAR(tile) _tile_zero(tile)
#define ATTN_TILE_MULTIPLY(c, a, b) _tile_dpbf16ps(c, a, b)

/* Between these two, all eight tiles are whole ones, and denormal results of vectors are 0 as those
 * of tiles are. The process must have the permission. `end` takes what `begin` returned. */
ATTN_INLINE unsigned attn_tiles_begin(void) {
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    const unsigned before = _mm_getcsr();
    ATTN_TILE_FENCE();
    _tile_loadconfig(&config);
    _mm_setcsr(before | _MM_FLUSH_ZERO_ON);
    return before;
}

ATTN_INLINE void attn_tiles_end(unsigned before) {
    _tile_release();
    _mm_setcsr(before);
}

/* 2^t, between the two: without attn_vexp2_native's care for denormal results. */
ATTN_INLINE attn_vf attn_tiles_exp2(attn_vf t) {
    const __m512 f = _mm512_reduce_ps((__m512)t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    return (attn_vf)_mm512_scalef_ps((__m512)attn_vexp2_unit((attn_vf)f), (__m512)t);
}

/* 32 numbers of bf16 of which the first `count` exist; the others are 0 and are not read. */
ATTN_INLINE __m512i attn_halves(const uint16_t *from, int count) {
    return _mm512_maskz_loadu_epi16((__mmask32)((1ULL << count) - 1), from);
}

/* 32 floats, a's before b's, rounded to bf16. */
ATTN_INLINE __m512i attn_round_halves(attn_vf a, attn_vf b) {
    return (__m512i)_mm512_cvtne2ps_pbh((__m512)b, (__m512)a);
}

/* 32 floats cut off to bf16, which takes half the time, a's and b's by turns. Numbers that were
 * multiplied by ATTN_CUT before are on average what they would be if rounded. */
#define ATTN_CUT 1.0027344F       /* 1 + 0.7 * 2^-8 */
#define ATTN_CUT_LOG2 0.00393949F /* its logarithm */
ATTN_INLINE __m512i attn_cut_halves(attn_vf a, attn_vf b) {
    const __m512i high = _mm512_set1_epi32(-65536);
    return _mm512_ternarylogic_epi32(_mm512_srli_epi32((__m512i)a, 16), (__m512i)b, high, 0xf8);
}

/* The first `count` of 32 floats, a's before b's, rounded to bf16. */
ATTN_INLINE void attn_store_halves(uint16_t *to, attn_vf a, attn_vf b, int count) {
    _mm512_mask_storeu_epi16(to, (__mmask32)((1ULL << count) - 1), attn_round_halves(a, b));
}

/* 32 numbers of bf16, each times its factor. */
ATTN_INLINE void attn_scale_halves(uint16_t *x, attn_vf factor) {
    const __m512i pairs = _mm512_load_si512(x);
    const attn_vf even = (attn_vf)_mm512_slli_epi32(pairs, 16) * factor;
    const attn_vf odd = (attn_vf)_mm512_and_si512(pairs, _mm512_set1_epi32(-65536)) * factor;
    const __m512i rounded = attn_round_halves(even, odd);
    const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(rounded));
    const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(rounded, 1));
    _mm512_store_si512(x, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

/* The larger of 32 numbers of bf16 that are not negative; NaN is the largest. */
ATTN_INLINE __m512i attn_halves_max(__m512i a, __m512i b) {
    return _mm512_max_epu16(a, b);
}

/* Some of 32 such numbers is above the one with these bits. */
ATTN_INLINE int attn_halves_above(__m512i a, int bits) {
    return _mm512_cmpgt_epu16_mask(a, _mm512_set1_epi16((short)bits)) != 0;
}

/* Lane i: i. */
ATTN_INLINE attn_vi attn_vlanes(void) {
    return (attn_vi){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}

/* Transposes 16 rows of 16 lanes in place. */
ATTN_INLINE void attn_transpose16(__m512i x[16]) {
    __m512i a[16], b[16];
    ATTN_EACH (i, 0, 8) {
        a[2 * i] = _mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
    }
    ATTN_EACH (i, 0, 8) { /* b[4 i + j]: in each block of lanes n, column 4 n + j of rows 4 i... */
        const int from = i / 2 * 4 + i % 2, to = i / 2 * 4 + i % 2 * 2;
        b[to] = _mm512_unpacklo_epi64(a[from], a[from + 2]);
        b[to + 1] = _mm512_unpackhi_epi64(a[from], a[from + 2]);
    }
    ATTN_EACH (j, 0, 4) {
        const __m512i even = _mm512_shuffle_i32x4(b[j], b[4 + j], 0x88);
        const __m512i odd = _mm512_shuffle_i32x4(b[j], b[4 + j], 0xdd);
        const __m512i even2 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0x88);
        const __m512i odd2 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0xdd);
        x[j] = _mm512_shuffle_i32x4(even, even2, 0x88);
        x[4 + j] = _mm512_shuffle_i32x4(odd, odd2, 0x88);
        x[8 + j] = _mm512_shuffle_i32x4(even, even2, 0xdd);
        x[12 + j] = _mm512_shuffle_i32x4(odd, odd2, 0xdd);
    }
}

/* A tile b[k][j] of 32 columns k, of which `columns` exist, of 16 rows j, of which `rows` exist. */
ATTN_INLINE void attn_pack_columns(uint16_t to[ATTN_TILE_ELEMENTS], const uint16_t *from,
                                   int64_t stride, int rows, int columns) {
    __m512i x[16];
    ATTN_EACH (j, 0, 16)
        x[j] = j < rows ? attn_halves(from + j * stride, columns) : _mm512_setzero_si512();
    attn_transpose16(x);
    ATTN_EACH (i, 0, 16)
        _mm512_store_si512(to + i * ATTN_TILE_HALVES, x[i]);
}

/* A tile b[k][j] of 32 rows, of which `rows` exist, of 16 columns j, of which `columns` exist. By
 * turns come a row k / 2 of the first 16 and one of the others, as in attn_cut_halves. */
ATTN_INLINE void attn_pack_rows(uint16_t to[ATTN_TILE_ELEMENTS], const uint16_t *from,
                                int64_t stride, int rows, int columns) {
    const __mmask16 exist = (__mmask16)((1U << columns) - 1);
    for (int i = 0; i < 16; i++, from += stride) {
        const __mmask16 first = i < rows ? exist : 0, second = i + 16 < rows ? exist : 0;
        const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first, from));
        const __m512i high =
            _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second, from + 16 * stride));
        _mm512_store_si512(to + i * ATTN_TILE_HALVES,
                           _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
}

#endif
