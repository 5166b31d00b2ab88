// mma_scores.cuh: scores in registers as the accumulators of mma.sync, a warp's ROW_TILES tiles of
// 16 rows by KEY_TILES of 8 keys. Element e of a lane is in row 8 (e / 2) + lane / 4 and column
// 2 (lane % 4) + e % 2 of its tile, so that four lanes hold a row. This file owns what follows from
// that alone: a state that has seen no key, the mask, and what the lanes of a row find together.
//
// For templates of tile_walk.cuh whose `state` has o[ROW_TILES][..][4] and max[ROW_TILES][2].
#ifndef MMA_SCORES_CUH
#define MMA_SCORES_CUH

#include "tile_walk.cuh"

ATTN_DEVICE void start(state &st) {
    st = {};
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
        st.max[r][0] = st.max[r][1] = -attn_infinity();
}

// -infinity where the row does not see the key.
ATTN_DEVICE void mask(const job &w, scores &s, int first_key) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = w.first_row + 16 * r + 8 * h + lane / 4;
            const int key = first_key + 2 * (lane % 4);
            int begin = 0, end = w.seq_kv - key;
            if constexpr (MASKED) {
                end = min(end, row + w.right + 1 - key);
                begin = row + w.left - key;
            }
#pragma unroll
            for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int column = 8 * j + e;
                    if (column >= end || (MASKED && column < begin))
                        s[r][j][2 * h + e] = -attn_infinity();
                }
        }
}

// The largest, or the sum, of the four lanes that hold a row.
ATTN_DEVICE float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

ATTN_DEVICE float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

#endif
