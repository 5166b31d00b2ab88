// f32_tiles.cuh: tile_walk.cuh for float32: Q and tiles of K and V lie in shared memory as rows of
// floats, and come there by cp.async. This file owns where they lie and how they are copied, and
// how rows of O are written.
//
// The template defines, before it includes this file, what tile_walk.cuh wants but for `element`,
// ASYNC and the warps' places (warp w has the w-th WARP_ROWS, and all keys), and: DK and DVP
// (columns that are filled, zeros behind those of D and DV); PITCH and PITCH_V (floats from row to
// row); THREADS; ALIGNED (rows begin at multiples of 16 bytes).
#ifndef F32_TILES_CUH
#define F32_TILES_CUH

#include "attn_simt.cuh"

using element = float;
constexpr bool ASYNC = true;
constexpr int WARP_KEYS = BLOCK_N;

ATTN_DEVICE int row_warp() {
    return threadIdx.x / 32;
}

ATTN_DEVICE int key_warp() {
    return 0;
}

#include "tile_walk.cuh"

constexpr int Q_FLOATS = BLOCK_M * PITCH;
constexpr int K_FLOATS = BLOCK_N * PITCH;
constexpr int V_FLOATS = BLOCK_N * PITCH_V;
constexpr int TILE_FLOATS = Q_FLOATS + STAGES * (K_FLOATS + V_FLOATS);

extern __shared__ __align__(16) float shared[]; // Q, buffers of K, of V, what the template adds

ATTN_DEVICE float *k_buffer(int n) {
    return shared + Q_FLOATS + n % STAGES * K_FLOATS;
}

ATTN_DEVICE float *v_buffer(int n) {
    return shared + Q_FLOATS + STAGES * K_FLOATS + n % STAGES * V_FLOATS;
}

ATTN_DEVICE void load_k(const job &w, int n) {
    attn_copy_rows<THREADS, BLOCK_N, D, PITCH, DK, ALIGNED>(k_buffer(n), w.k, w.k_stride,
                                                            n * BLOCK_N, w.seq_kv);
}

ATTN_DEVICE void load_v(const job &w, int n) {
    attn_copy_rows<THREADS, BLOCK_N, DV, PITCH_V, DVP, ALIGNED>(v_buffer(n), w.v, w.v_stride,
                                                                n * BLOCK_N, w.seq_kv);
}

// The template's part.
ATTN_DEVICE void start(state &st); // no key has been seen
ATTN_DEVICE void store(const attn_forward_args &a, state &st, int first_row, float *o, float *lse);

// What the kernel does.
ATTN_DEVICE void forward(const attn_forward_args &a) {
    const place at = place_of(a);
    job w = job_of(a, at);
    w.scale = a.scale_log2;
    int begin = 0, end = (a.seq_kv + BLOCK_N - 1) / BLOCK_N; // tiles of keys that any row sees
    if constexpr (MASKED) {
        begin = max(0, at.first_row + w.left) / BLOCK_N;
        end = (max(0, min(a.seq_kv, at.last_row + w.right + 1)) + BLOCK_N - 1) / BLOCK_N;
    }
    state st;
    start(st);
    if (begin < end) {
        const float *q = (const float *)a.q + at.batch * a.q_stride[0] + at.head * a.q_stride[1];
        attn_copy_rows<THREADS, BLOCK_M, D, PITCH, DK, ALIGNED>(shared, q, a.q_stride[2],
                                                                at.first_row, a.seq_q);
        if constexpr (STAGES == 1) {
            load_k(w, begin);
            attn_copy_commit();
        } else {
            fetch(w, begin, end);
        }
        walk(w, st, begin, end);
    }
    float *o = (float *)a.o + at.batch * a.o_stride[0] + at.head * a.o_stride[1];
    store(a, st, w.first_row, o, LSE ? a.lse + (attn_i64)at.index * a.seq_q : nullptr);
}

// `count` (2, or a multiple of 4) adjacent columns of a row.
ATTN_DEVICE void store_columns(float *o, const float *x, int column, int count) {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
        if (ALIGNED && i + 4 <= count && column + i + 4 <= DV) {
            *(float4 *)(o + column + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
            continue;
        }
#pragma unroll
        for (int e = i; e < i + 4 && e < count; e++)
            if (column + e < DV)
                o[column + e] = x[e];
    }
}

#endif
