// attn_simt.cuh: rows of floats copied to shared memory in the background (cp.async, sm_80 and up),
// whatever their length and alignment. Plain CUDA C and inline PTX.
#ifndef ATTN_SIMT_CUH
#define ATTN_SIMT_CUH

#include "attn_mma.cuh"

// Four floats to shared memory in the background, `count` of them from memory, which is not read
// behind these, and zeros. ALIGNED: `from` is a multiple of 16 bytes.
template <bool ALIGNED> ATTN_DEVICE void attn_copy_floats(float *to, const float *from, int count) {
    const attn_u32 address = attn_shared_address(to);
    if constexpr (ALIGNED) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                     "r"(4 * count)
                     : "memory");
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address + 4 * e),
                         "l"(from + e), "r"(e < count ? 4 : 0)
                         : "memory");
    }
}

// The block copies rows first..first+ROWS-1 of a tensor to rows PITCH floats apart, of which FILLED
// (a multiple of 4, at most 256) are written: zeros in rows from `end` on and in columns from
// COLUMNS on, whatever lies there. Each thread has one piece of every STEP-th row.
template <int THREADS, int ROWS, int COLUMNS, int PITCH, int FILLED, bool ALIGNED>
ATTN_DEVICE void attn_copy_rows(float *tile, const float *tensor, long long stride, int first,
                                int end) {
    constexpr int PIECES = FILLED / 4;
    constexpr int LANES = PIECES <= 4    ? 4
                          : PIECES <= 8  ? 8
                          : PIECES <= 16 ? 16
                          : PIECES <= 32 ? 32
                                         : 64; // threads that copy a row
    constexpr int STEP = THREADS / LANES;
    static_assert(FILLED % 4 == 0 && PITCH % 4 == 0, "rows are whole 16-byte pieces");
    static_assert(FILLED <= 256 && STEP >= 1, "a row is copied at once");
    const int piece = threadIdx.x % LANES, row = threadIdx.x / LANES;
    if (LANES > PIECES && piece >= PIECES)
        return;
    const int count = min(4, max(0, COLUMNS - 4 * piece));
    const float *from = tensor + (first + row) * stride + 4 * piece;
    float *to = tile + row * PITCH + 4 * piece;
#pragma unroll 4
    for (int i = row; i < ROWS; i += STEP, from += STEP * stride, to += STEP * PITCH) {
        const bool there = first + i < end && count > 0;
        attn_copy_floats<ALIGNED>(to, there ? from : tensor, there ? count : 0);
    }
}

#endif
