// wgmma_jobs.cuh: what a block of a persistent attention kernel works on, and in which order. A job
// is one tile: query rows of one head, or the same rows of each head of a pack, which share K and
// V.
#ifndef WGMMA_JOBS_CUH
#define WGMMA_JOBS_CUH

#include "attn_abi.h"
#include "attn_hopper.cuh"
#include "wgmma_rows.cuh"

struct alignas(16) attn_job {
    int batch, head, kv_head; // head: the first of the pack
    int row;                  // first query row of the tile, -1 after the last job
    int begin, end; // tiles of keys that any of its rows sees; one that none sees if there is none
};

struct attn_place {
    int tile, pack; // pack: of all batches' packs of heads
};

// What the BLOCK_M rows of a tile are: those of one head, or with PACK the same few of each head of
// a pack, head behind head.
template <int BLOCK_M, bool PACK> struct attn_tile_rows {
    int heads, rows; // of a pack; of each head

    ATTN_DEVICE attn_tile_rows(const attn_forward_args &a) {
        heads = PACK ? min(8, a.group & -a.group) : 1; // the group is made of whole packs
        rows = BLOCK_M / heads;
    }

    ATTN_DEVICE int tiles(const attn_forward_args &a) const { // of a pack
        return PACK ? (a.seq_q + rows - 1) / rows : a.tiles;
    }

    ATTN_DEVICE int jobs(const attn_forward_args &a) const {
        return a.batch * a.heads_q / heads * tiles(a);
    }

    // The query row and the head of the tile's i-th row.
    ATTN_DEVICE int row(const attn_job &w, int i) const {
        return w.row + (PACK ? i % rows : i);
    }

    ATTN_DEVICE int head(const attn_job &w, int i) const {
        return w.head + (PACK ? i / rows : 0);
    }

    // The query rows of a lane whose first of the tile is the i-th, and of its warpgroup. (What the
    // latter are must come from nothing that differs by lane, or the compiler loses track of what
    // is the same in all lanes, stages and loops included: 6 % slower.)
    ATTN_DEVICE void look(const attn_job &w, int group, int i, attn_rows &r) const {
        const bool whole = !PACK || rows % 64 == 0; // else a warpgroup's rows are of several heads
        r.first = whole ? row(w, 64 * group) : w.row;
        r.count = whole ? 64 : rows;
        ATTN_EACH (h, 0, 2)
            r.row[h] = row(w, i + 8 * h);
    }
};

// The index-th place of the order. LONGEST_FIRST: the last tile of every head first, else head by
// head. SECTION: MiB of K and V whose heads are worked on together, 0: all. The last section may be
// larger, never smaller.
template <bool LONGEST_FIRST, int SECTION, class T>
ATTN_DEVICE attn_place attn_place_of(const attn_forward_args &a, const T &t, int index,
                                     int bytes_of_key) {
    int section = a.batch * a.heads_q / t.heads, first = 0;
    if constexpr (!LONGEST_FIRST)
        return {index % t.tiles(a), index / t.tiles(a)};
    if constexpr (SECTION > 0) {
        const attn_i64 bytes = (attn_i64)a.seq_kv * bytes_of_key;
        const int room = (int)max((attn_i64)1, ((attn_i64)SECTION << 20) / bytes); // heads of these
        const int fit = min(room, a.batch * a.heads_kv) * a.group / t.heads;
        const int whole = max(0, section - fit) / fit; // sections before the last
        const int s = min(index / (fit * t.tiles(a)), whole);
        first = s * fit;
        section = s < whole ? fit : section - first;
        index -= first * t.tiles(a);
    }
    return {t.tiles(a) - 1 - index / section, first + index % section};
}

// KEYS of a tile of these; MASKED: there is a mask, WINDOW: that also ends to the left.
template <int KEYS, bool MASKED, bool WINDOW, class T>
ATTN_DEVICE attn_job attn_job_at(const attn_forward_args &a, const T &t, attn_place at) {
    attn_job w;
    const int packs = a.heads_q / t.heads;
    w.batch = at.pack / packs;
    w.head = at.pack % packs * t.heads;
    w.kv_head = w.head / a.group;
    w.row = at.tile * t.rows;
    w.begin = 0;
    w.end = (a.seq_kv + KEYS - 1) / KEYS;
    if constexpr (MASKED) {
        const int last = min(w.row + t.rows, a.seq_q) - 1 + a.mask_offset + a.mask_right;
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
