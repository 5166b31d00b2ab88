// wgmma_jobs.cuh: what a block of a persistent attention kernel works on, and in which order. A job
// is one tile of query rows of one head.
#ifndef WGMMA_JOBS_CUH
#define WGMMA_JOBS_CUH

#include "attn_abi.h"
#include "attn_hopper.cuh"

struct alignas(16) attn_job {
    int batch, head, kv_head;
    int row;        // first query row of the tile, -1 after the last job
    int begin, end; // tiles of keys that any of its rows sees; one that none sees if there is none
};

struct attn_place {
    int tile, head; // head: of all batches' heads
};

// The index-th place of the order. LONGEST_FIRST: the last tile of every head first, else head by
// head. SECTION: MiB of K and V whose heads are worked on together, 0: all. The last section may be
// larger, never smaller.
template <bool LONGEST_FIRST, int SECTION>
ATTN_DEVICE attn_place attn_place_of(const attn_forward_args &a, int index, int bytes_of_key) {
    int section = a.batch * a.heads_q, first = 0;
    if constexpr (!LONGEST_FIRST)
        return {index % a.tiles, index / a.tiles};
    if constexpr (SECTION > 0) {
        const attn_i64 bytes = (attn_i64)a.seq_kv * bytes_of_key;
        const int fit = (int)max((attn_i64)1, ((attn_i64)SECTION << 20) / bytes) * a.group;
        const int whole = max(0, section - fit) / fit; // sections before the last
        const int s = min(index / (fit * a.tiles), whole);
        first = s * fit;
        section = s < whole ? fit : section - first;
        index -= first * a.tiles;
    }
    return {a.tiles - 1 - index / section, first + index % section};
}

// ROWS of a tile, KEYS of a tile of these; MASKED: there is a mask, WINDOW: that also ends to the
// left.
template <int ROWS, int KEYS, bool MASKED, bool WINDOW>
ATTN_DEVICE attn_job attn_job_at(const attn_forward_args &a, attn_place at) {
    attn_job w;
    w.batch = at.head / a.heads_q;
    w.head = at.head % a.heads_q;
    w.kv_head = w.head / a.group;
    w.row = at.tile * ROWS;
    w.begin = 0;
    w.end = (a.seq_kv + KEYS - 1) / KEYS;
    if constexpr (MASKED) {
        const int last = min(w.row + ROWS, a.seq_q) - 1 + a.mask_offset + a.mask_right;
        if constexpr (WINDOW)
            w.begin = max(0, w.row + a.mask_offset - a.mask_left) / KEYS;
        w.end = (max(1, min(a.seq_kv, last + 1)) + KEYS - 1) / KEYS;
        w.begin = min(w.begin, w.end - 1);
    }
    return w;
}

// The index of a block's `turn` where jobs, the longest first, are dealt by turns: every other
// round of the multiprocessors goes backwards, so that who had a long job gets a short one. Who is
// given none (an index past the last) has no later one either.
template <int BLOCKS_PER_SM> ATTN_DEVICE int attn_dealt(int turn) {
    const int round = max(1, (int)gridDim.x / BLOCKS_PER_SM), from = turn / round * round;
    return turn / round % 2 ? from + round - 1 - (turn - from) : turn;
}

#endif
