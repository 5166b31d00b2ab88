// wgmma_rows.cuh: the two query rows of a lane, and which keys they see. Element i of a wgmma
// accumulator is in row 8 ((i / 2) % 2) and column 8 (i / 4) + i % 2 from the lane's first ones.
#ifndef WGMMA_ROWS_CUH
#define WGMMA_ROWS_CUH

#include "attn_abi.h"
#include "attn_hopper.cuh"

struct attn_rows {
    int row[2];
    int first, count;   // those of the warpgroup are among `count` rows from here on
    int left, right;    // row i sees the keys i + left <= key <= i + right
    int seq_kv, column; // the lane's first column
    float scale;        // of the scores in the exponent, never 0 or negative
    float rise;         // of scores, that raises maxima
    bool negate;

    // lazy: maxima are raised when weights reach 2^lazy, or 1.
    ATTN_DEVICE attn_rows(const attn_forward_args &a, int lane, int lazy) {
        left = a.mask_offset - a.mask_left;
        right = a.mask_offset + a.mask_right;
        seq_kv = a.seq_kv;
        column = 2 * (lane % 4);
        // A scale of 0 would make NaN of a masked score's -inf; one this small makes all weights
        // equal.
        scale = a.scale_log2 == 0.0f ? 1.17549435e-38f : fabsf(a.scale_log2);
        rise = lazy / scale;
        negate = a.scale_log2 < 0.0f;
    }
};

template <bool MASKED, bool WINDOW, int N>
ATTN_DEVICE void attn_rows_mask(const attn_rows &r, float (&s)[N], int first_key) {
    ATTN_EACH (h, 0, 2) {
        int end = r.seq_kv - first_key - r.column, begin = 0;
        if constexpr (MASKED)
            end = min(end, r.row[h] + r.right + 1 - first_key - r.column);
        if constexpr (WINDOW)
            begin = r.row[h] + r.left - first_key - r.column;
        ATTN_EACH (i, 0, N) {
            const int column = 8 * (i / 4) + i % 2;
            if (i / 2 % 2 == h && (column >= end || (WINDOW && column < begin)))
                s[i] = -attn_infinity();
        }
    }
}

// Makes the scores of a tile ready: masked, and as if the scale were positive.
template <bool MASKED, bool WINDOW, int N>
ATTN_DEVICE void attn_rows_look(const attn_rows &r, float (&s)[N], int first_key) {
    const int last_key = first_key + 2 * N - 1;
    bool all = last_key < r.seq_kv;
    if constexpr (MASKED)
        all = all && last_key <= r.first + r.right;
    if constexpr (WINDOW)
        all = all && first_key >= r.first + r.count - 1 + r.left;
    if (r.negate) {
        ATTN_EACH (i, 0, N)
            s[i] = -s[i];
    }
    if (!all)
        attn_rows_mask<MASKED, WINDOW>(r, s, first_key);
}

#endif
