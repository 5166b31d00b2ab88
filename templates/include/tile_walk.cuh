// tile_walk.cuh: a block has one tile of query rows and walks over the keys that they see, tile by
// tile. This file owns which rows of which head a block has, which keys these see, and when K and V
// are copied to shared memory and waited for. Where they lie there, and what is computed from them,
// is the template's: see the declarations below.
//
// The template defines, before it includes this file: `element`, the type of Q, K, V and O; D and
// DV (columns of Q and K, of V and O); BLOCK_M and BLOCK_N (query rows of a block, keys of a tile);
// WARP_ROWS and WARP_KEYS (of a warp: it has the row_warp()-th of those, the key_warp()-th of
// these); STAGES (buffers of K and V); the switches ASYNC (copies are cp.async's), MASKED, IN_ROW
// and SECTIONS (see place_of); `scores`, a thread's part of a tile's scores; and `state`, what it
// keeps from tile to tile.
#ifndef TILE_WALK_CUH
#define TILE_WALK_CUH

#include "attn_abi.h"
#include "attn_mma.cuh"

// What a block works on.
struct job {
    const element *k, *v;
    attn_i64 k_stride, v_stride;
    int seq_kv;
    int left, right;         // row i sees the keys i + left <= key <= i + right
    int first_row, last_row; // of the warp
    float scale;             // of the scores in the exponent; the template sets it
};

// The template's part: what it does with the n-th tile of keys, for which it has STAGES buffers.
ATTN_DEVICE void load_k(const job &w, int n);
ATTN_DEVICE void load_v(const job &w, int n);
ATTN_DEVICE void score(const state &st, scores &s, int n);          // S = Q K^T
ATTN_DEVICE void attend(const job &w, state &st, scores &s, int n); // O += softmax(S) V

//--- which rows -----------------------------------------------------------------------------------

// Heads whose K and V stay in the cache together: whole groups, 32 MB.
ATTN_DEVICE int section(const attn_forward_args &a) {
    const attn_i64 bytes = (attn_i64)sizeof(element) * (D + DV) * max(a.seq_kv, 1);
    return a.group * (int)max((attn_i64)1, (32 << 20) / bytes);
}

struct place {
    int batch, head, kv_head;
    int index;               // of the head among all batches' heads
    int first_row, last_row; // of the block's tile
};

// This block's place. IN_ROW: tiles as they come, head by head; else the last tile of every head
// first, since under a causal mask it is the longest: of SECTIONS of the heads, or of all.
ATTN_DEVICE place place_of(const attn_forward_args &a) {
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
    return {b, h, kv, head, first_row, last_row};
}

ATTN_DEVICE job job_of(const attn_forward_args &a, const place &at) {
    job w;
    w.k = (const element *)a.k + at.batch * a.k_stride[0] + at.kv_head * a.k_stride[1];
    w.v = (const element *)a.v + at.batch * a.v_stride[0] + at.kv_head * a.v_stride[1];
    w.k_stride = a.k_stride[2];
    w.v_stride = a.v_stride[2];
    w.seq_kv = a.seq_kv;
    w.left = a.mask_offset - a.mask_left;
    w.right = a.mask_offset + a.mask_right;
    w.first_row = at.first_row + row_warp() * WARP_ROWS;
    w.last_row = w.first_row + WARP_ROWS - 1;
    return w;
}

//--- which keys are seen --------------------------------------------------------------------------

// The first of this warp's keys in a tile.
ATTN_DEVICE int first_key(int n) {
    return n * BLOCK_N + key_warp() * WARP_KEYS;
}

// Whether this warp's rows see any of its keys in the tile, and whether they see all.
ATTN_DEVICE bool sees_any(const job &w, int n) {
    const int first = first_key(n), last = first + WARP_KEYS - 1;
    return !MASKED || (first <= w.last_row + w.right && last >= w.first_row + w.left);
}

ATTN_DEVICE bool sees_all(const job &w, int n) {
    const int first = first_key(n), last = first + WARP_KEYS - 1;
    return last < w.seq_kv &&
           (!MASKED || (first >= w.last_row + w.left && last <= w.first_row + w.right));
}

//--- copies ahead of use --------------------------------------------------------------------------

ATTN_DEVICE void commit() {
    if constexpr (ASYNC)
        attn_copy_commit();
}

template <int PENDING> ATTN_DEVICE void wait() {
    if constexpr (ASYNC)
        attn_copy_wait<PENDING>();
    __syncthreads();
}

// One buffer each: V comes while the scores are computed, the next K while V is used.
ATTN_DEVICE void walk_single(const job &w, state &st, int begin, int end) {
    for (int n = begin; n < end; n++) {
        scores s;
        wait<0>();
        load_v(w, n);
        commit();
        if (sees_any(w, n))
            score(st, s, n);
        wait<0>();
        if (n + 1 < end)
            load_k(w, n + 1);
        commit();
        if (sees_any(w, n))
            attend(w, st, s, n);
    }
}

// Several: tile n + STAGES - 1 is on its way while tile n is worked on. There is a group even past
// the end, so that the counts stay the same.
ATTN_DEVICE void fetch(const job &w, int n, int end) {
    if (n < end) {
        load_k(w, n);
        load_v(w, n);
    }
    commit();
}

ATTN_DEVICE void walk_staged(const job &w, state &st, int begin, int end) {
    for (int n = begin; n < end; n++) {
        wait<STAGES - 2>();
        fetch(w, n + (STAGES - 1), end);
        if (sees_any(w, n)) {
            scores s;
            score(st, s, n);
            attend(w, st, s, n);
        }
    }
}

// Over the tiles begin..end-1, at least one. The first STAGES - 1 are on their way, each by a
// fetch(); with one buffer, the first K.
ATTN_DEVICE void walk(const job &w, state &st, int begin, int end) {
    if constexpr (STAGES == 1)
        walk_single(w, st, begin, end);
    else
        walk_staged(w, st, begin, end);
}

#endif
