// f32_tiles.cuh: the walk over the keys that float32 families share. A block has one tile of query
// rows; Q lies in shared memory, and tiles of K and V come there ahead of use by cp.async. What is
// computed from them is the template's: see the declarations below.
//
// The template defines, before it includes this file: D and DV (columns of Q and K, of V and O); DK
// and DVP (columns that are filled, zeros behind those); PITCH and PITCH_V (floats from row to
// row); BLOCK_M and BLOCK_N (query rows of a block, keys of a tile); WARP_ROWS (of a warp: warp w
// has the w-th of them); THREADS; STAGES (buffers of K and V); the switches MASKED, ALIGNED, LSE,
// IN_ROW and SECTIONS; `scores`, the type of a thread's part of a tile's scores; and `state`, what
// it keeps from tile to tile.
#ifndef F32_TILES_CUH
#define F32_TILES_CUH

#include "attn_abi.h"
#include "attn_simt.cuh"

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

// What a block works on.
struct job {
    const float *k, *v;
    attn_i64 k_stride, v_stride;
    int seq_kv;
    int left, right; // row i sees the keys i + left <= key <= i + right
    int first_row;   // of the warp
    float scale;     // of the scores, in the exponent of 2
};

// The template's part.
ATTN_DEVICE void start(state &st);                                  // no key has been seen
ATTN_DEVICE void score(scores &s, const float *k);                  // S = Q K^T
ATTN_DEVICE void attend(const job &w, state &st, scores &s, int n); // O += softmax(S) V of tile n
ATTN_DEVICE void store(const attn_forward_args &a, state &st, int first_row, float *o, float *lse);

ATTN_DEVICE void load_k(const job &w, int n) {
    attn_copy_rows<THREADS, BLOCK_N, D, PITCH, DK, ALIGNED>(k_buffer(n), w.k, w.k_stride,
                                                            n * BLOCK_N, w.seq_kv);
}

ATTN_DEVICE void load_v(const job &w, int n) {
    attn_copy_rows<THREADS, BLOCK_N, DV, PITCH_V, DVP, ALIGNED>(v_buffer(n), w.v, w.v_stride,
                                                                n * BLOCK_N, w.seq_kv);
}

// Whether this warp's rows see any key of the tile, and whether they see all.
ATTN_DEVICE bool sees_any(const job &w, int n) {
    return !MASKED || (n * BLOCK_N <= w.first_row + WARP_ROWS - 1 + w.right &&
                       n * BLOCK_N + BLOCK_N - 1 >= w.first_row + w.left);
}

ATTN_DEVICE bool sees_all(const job &w, int n) {
    const int first = n * BLOCK_N, last = first + BLOCK_N - 1;
    return last < w.seq_kv && (!MASKED || (first >= w.first_row + WARP_ROWS - 1 + w.left &&
                                           last <= w.first_row + w.right));
}

// One buffer each: V comes while the scores are computed, the next K while V is used.
ATTN_DEVICE void walk_single(const job &w, state &st, int begin, int end) {
    for (int n = begin; n < end; n++) {
        scores s;
        attn_copy_wait<0>();
        __syncthreads();
        load_v(w, n);
        attn_copy_commit();
        if (sees_any(w, n))
            score(s, k_buffer(n));
        attn_copy_wait<0>();
        __syncthreads();
        if (n + 1 < end)
            load_k(w, n + 1);
        attn_copy_commit();
        if (sees_any(w, n))
            attend(w, st, s, n);
    }
}

// Two: the next tile is on its way while this one is worked on, and there is one barrier a tile.
ATTN_DEVICE void fetch(const job &w, int n, int end) {
    if (n < end) {
        load_k(w, n);
        load_v(w, n);
    }
    attn_copy_commit();
}

ATTN_DEVICE void walk_double(const job &w, state &st, int begin, int end) {
    for (int n = begin; n < end; n++) {
        attn_copy_wait<0>();
        __syncthreads();
        fetch(w, n + 1, end);
        if (sees_any(w, n)) {
            scores s;
            score(s, k_buffer(n));
            attend(w, st, s, n);
        }
    }
}

// Heads whose K and V stay in the cache together: whole groups, 32 MB.
ATTN_DEVICE int section(const attn_forward_args &a) {
    const attn_i64 bytes = 4 * (attn_i64)(D + DV) * max(a.seq_kv, 1);
    return a.group * (int)max((attn_i64)1, (32 << 20) / bytes);
}

// What the kernel does.
ATTN_DEVICE void forward(const attn_forward_args &a) {
    const int heads = a.batch * a.heads_q, index = blockIdx.x;
    int tile = index % a.tiles, head = index / a.tiles;
    if constexpr (!IN_ROW) {
        const int first = SECTIONS ? head / section(a) * section(a) : 0;
        const int count = SECTIONS ? min(section(a), heads - first) : heads;
        tile = a.tiles - 1 - (index - first * a.tiles) / count;
        head = first + (index - first * a.tiles) % count;
    }
    const int b = head / a.heads_q, h = head % a.heads_q, kv = h / a.group;
    const int first_row = tile * BLOCK_M, last_row = min(first_row + BLOCK_M, a.seq_q) - 1;

    job w;
    w.k = (const float *)a.k + b * a.k_stride[0] + kv * a.k_stride[1];
    w.v = (const float *)a.v + b * a.v_stride[0] + kv * a.v_stride[1];
    w.k_stride = a.k_stride[2];
    w.v_stride = a.v_stride[2];
    w.seq_kv = a.seq_kv;
    w.left = a.mask_offset - a.mask_left;
    w.right = a.mask_offset + a.mask_right;
    w.first_row = first_row + threadIdx.x / 32 * WARP_ROWS;
    w.scale = a.scale_log2;

    int begin = 0, end = (a.seq_kv + BLOCK_N - 1) / BLOCK_N; // tiles of keys that any row sees
    if constexpr (MASKED) {
        begin = max(0, first_row + w.left) / BLOCK_N;
        end = (max(0, min(a.seq_kv, last_row + w.right + 1)) + BLOCK_N - 1) / BLOCK_N;
    }

    state st;
    start(st);
    if (begin < end) {
        const float *q = (const float *)a.q + b * a.q_stride[0] + h * a.q_stride[1];
        attn_copy_rows<THREADS, BLOCK_M, D, PITCH, DK, ALIGNED>(shared, q, a.q_stride[2], first_row,
                                                                a.seq_q);
        if constexpr (STAGES == 1) {
            load_k(w, begin);
            attn_copy_commit();
            walk_single(w, st, begin, end);
        } else {
            fetch(w, begin, end);
            walk_double(w, st, begin, end);
        }
    }
    float *o = (float *)a.o + b * a.o_stride[0] + h * a.o_stride[1];
    store(a, st, w.first_row, o, LSE ? a.lse + (attn_i64)head * a.seq_q : nullptr);
}

#endif
