/* amx_forward.c: bf16 forward attention of many query rows on AMX tiles.
 *
 * K and V are packed into tiles, padded with zeros: of each head by a first step, or of each block
 * of keys by the task that meets it. A group of 32 query
 * rows meets keys, chunk by chunk: scores S = Q K' by tiles, weights P = 2^(S - top) by vectors
 * whose lanes are keys, rounded to bf16, and behind a block of chunks outputs O += P V by tiles.
 *
 * A row's top is its maximum when it was last taken; it is taken again, and O rescaled, only when a
 * weight comes out above 2^LAZY. So the usual row needs no sum or maximum across lanes, and whether
 * all rows of a chunk are usual is seen by one maximum over their rounded weights.
 */
#include "attn_abi.h"

#define ATTN_VL 16
#define ATTN_EXP2_DEGREE $(EXP_DEGREE)
#include "attn_cpu.h"
#include "attn_cpu_amx.h"
#include "attn_cpu_element.h"
#include "attn_cpu_task.h"

#define ATTN_ELEMENT uint16_t
#define ATTN_WIDEN attn_widen_bf16
#define ATTN_NARROW attn_narrow_bf16
#include "attn_cpu_careful.h"

enum {
    D = $(HEAD_DIM),            /* columns of Q and K */
    DV = $(HEAD_DIM_V),         /* columns of V and O */
    TILES = $(TILES),           /* tiles side by side in Q, 32 columns each */
    TILES_V = $(TILES_V),       /* tiles side by side in V, 16 columns each */
    TILES_O = $(TILES_O),       /* in O: an even number */
    ROWS = 32,                  /* rows of a group: two tiles */
    CHUNK = 32,                 /* keys of a chunk: two tiles of scores, one of weights */
    BLOCK = $(BLOCK_K) / CHUNK, /* chunks of a block */
    K_CHUNK = TILES * 1024,     /* elements of a chunk of packed K, and of V */
    V_CHUNK = TILES_V * 512,
    GROUPS = $(GROUPS),       /* groups of a task: they share each block of K and V */
    LAZY = 8,                 /* a weight is at most two to this power */
    PACK_ROWS = $(PACK_ROWS), /* keys of a task that packs; whole chunks */
    OWN = $(OWN),             /* a task packs for itself, block by block */
    LSE = $(LSE),             /* the log-sum-exp of each row is wanted */
    PACK_GQA = $(PACK_GQA)    /* a task's rows are those of all heads that share K and V */
};

#define LOAD_KV $(LOAD) /* for tiles of K and V */

#define TINY_SCALE 0x1p-100F
#define TINY_SHARE 0x1p-64F /* that Q takes; what it flushes is nothing in a logit */
#define LN_2 0x1.62e430p-1F /* first: a logit times log2(e) may be none of a float */

typedef attn_vf vf;
typedef attn_vi vi;

struct group {
    _Alignas(64) uint16_t q[TILES][ROWS][32]; /* bf16, zeros where there is no row or column */
    float o[TILES_O][ROWS][ATTN_VL];          /* undefined until the first outputs: `started` */
    float sum[2][ROWS][ATTN_VL]; /* of weights, by lanes: sum[now], the other one in the making */
    float top[ROWS];             /* weights are 2^((score - top) * scale); -inf: no top yet */
    int32_t head[ROWS], position[ROWS];
    int32_t lo[ROWS], hi[ROWS]; /* each row sees the keys lo <= key <= hi */
    int32_t begin, end;         /* chunks of which any row sees a key: begin <= chunk < end */
    int32_t clear, clear_end;   /* of which every row sees all keys: clear <= chunk < clear_end */
    int32_t now, started;
    int32_t rows; /* rows that exist; the others are masked as the last is */
    int64_t row;  /* the first */
};

/* A group and a chunk of keys. */
struct unit {
    struct group *g; /* NULL: there is none */
    int32_t chunk;
    int32_t block;              /* the first chunk of its block */
    float (*s)[ROWS][ATTN_VL];  /* scores of its first 16 keys, then of the others */
    uint16_t (*p)[ROWS][CHUNK]; /* where its weights go, bf16; before them those of `earlier` */
    int32_t earlier;            /* chunks of the block */
};

struct scratch { /* of a worker */
    _Alignas(64) float s[2][2][ROWS][ATTN_VL];
    uint16_t p[BLOCK][ROWS][CHUNK];
    struct group group[GROUPS];
};

_Static_assert(sizeof(struct scratch) <= $(SCRATCH_BYTES), "larger than the launch record says");

/* Of scores, times log2(e); above 0, so that -inf times it stays -inf. Q has the sign, the zero and
 * a share of a tiny scale, since scores would overflow where logits are small. */
static float scale_of(const attn_forward_args *a) {
    const float scale = a->scale_log2 < 0 ? -a->scale_log2 : a->scale_log2;
    return scale >= TINY_SCALE ? scale : scale > 0 ? scale / TINY_SHARE : 1.0F;
}

/* A packed task's rows go through its heads first, then through the positions. */
static void place_rows(const struct attn_task *t, struct group *g) {
    const attn_forward_args *a = t->a;
    const int64_t share = PACK_GQA ? a->group : 1;
    int64_t head = g->row % share, position = g->row / share;
    for (int i = 0; i < ROWS; i++) {
        g->head[i] = (int32_t)(t->head + head);
        g->position[i] = (int32_t)position;
        g->lo[i] = (int32_t)position + a->mask_offset - a->mask_left;
        g->hi[i] = min(a->seq_kv - 1, (int32_t)position + a->mask_offset + a->mask_right);
        if (i + 1 < g->rows && ++head == share) {
            head = 0;
            position++;
        }
    }
}

static int64_t offset_of(const struct attn_task *t, const struct group *g, const int64_t stride[3],
                         int r) {
    return t->batch * stride[0] + g->head[r] * stride[1] + g->position[r] * stride[2];
}

static void load_queries(const struct attn_task *t, struct group *g) {
    const float scale = t->a->scale_log2, share = scale == 0 ? 0.0F : TINY_SHARE;
    const __m512i sign = _mm512_set1_epi16(scale < 0 ? INT16_MIN : 0);
    const int tiny = scale < TINY_SCALE && scale > -TINY_SCALE;
    for (int r = 0; r < ROWS; r++) {
        const uint16_t *row = (const uint16_t *)t->a->q + offset_of(t, g, t->a->q_stride, r);
        for (int i = 0; i < TILES; i++) {
            const __m512i x = attn_halves(row + i * 32, r < g->rows ? min(32, D - i * 32) : 0);
            _mm512_store_si512(g->q[i][r], _mm512_xor_si512(x, sign));
            if (tiny)
                attn_scale_halves(g->q[i][r], attn_vset(share));
        }
    }
}

static void start_group(const struct attn_task *t, struct group *g, int64_t row) {
    g->row = row;
    g->rows = t->rows - row < ROWS ? (int32_t)(t->rows - row) : ROWS;
    g->now = g->started = 0;
    for (int i = 0; i < ROWS; i++)
        g->top[i] = -INFINITY;
    memset(g->sum[0], 0, sizeof g->sum[0]);
    if (TILES_O > TILES_V)
        memset(g->o[TILES_O - 1], 0, sizeof g->o[0]);
    place_rows(t, g);
    g->begin = max(0, g->lo[0]) / CHUNK;
    g->end = (g->hi[ROWS - 1] + CHUNK) / CHUNK;
    g->clear = (g->lo[ROWS - 1] + CHUNK - 1) / CHUNK;
    g->clear_end = (g->hi[0] + 1) / CHUNK;
    load_queries(t, g);
}

/* The top of a row becomes the largest of its new scores; what was weighed by the old one is
 * rescaled. */
static void raise_top(const struct unit *u, int r, float top, float scale) {
    struct group *g = u->g;
    const vf alpha = attn_tiles_exp2(attn_vset((g->top[r] - top) * scale));
    float *sum = g->sum[g->now][r];
    g->top[r] = top;
    attn_vstore(sum, attn_vload(sum) * alpha);
    for (int n = 0; g->started && n < TILES_O; n++)
        attn_vstore(g->o[n][r], attn_vload(g->o[n][r]) * alpha);
    for (int c = 1; c <= u->earlier; c++)
        attn_scale_halves(u->p[-c][r], alpha);
}

/* Scores of keys that a row does not see become -inf. */
ATTN_NOINLINE void mask_scores(const struct unit *u) {
    const int32_t key = u->chunk * CHUNK;
    for (int r = 0; r < ROWS; r++) {
        const vi lo = u->g->lo[r] - attn_vlanes(), hi = u->g->hi[r] - attn_vlanes();
        float *s = u->s[0][r], *s2 = u->s[1][r];
        attn_vstore(s, attn_vsee(attn_vload(s), key, lo, hi));
        attn_vstore(s2, attn_vsee(attn_vload(s2), key + ATTN_VL, lo, hi));
    }
}

/* Rows that are weighed: what the loop over them needs, in registers. */
struct rows {
    const float (*s)[ATTN_VL], (*s2)[ATTN_VL], (*sum)[ATTN_VL], *top;
    float (*new_sum)[ATTN_VL];
    uint16_t (*p)[CHUNK];
};

ATTN_INLINE struct rows rows_of(const struct unit *u) {
    struct group *g = u->g;
    return (struct rows){.s = u->s[0],
                         .s2 = u->s[1],
                         .sum = g->sum[g->now],
                         .top = g->top,
                         .new_sum = g->sum[g->now ^ 1],
                         .p = u->p[0]};
}

/* Turns the scores of one row into weights, and returns these. The sum is of weights as they are
 * before they are cut off. */
ATTN_INLINE __m512i weigh_row(struct rows x, int r, float top, float scale) {
    const vf w = attn_tiles_exp2((attn_vload(x.s[r]) - top) * scale + ATTN_CUT_LOG2);
    const vf w2 = attn_tiles_exp2((attn_vload(x.s2[r]) - top) * scale + ATTN_CUT_LOG2);
    const __m512i p = attn_cut_halves(w, w2);
    _mm512_store_si512(x.p[r], p);
    attn_vstore(x.new_sum[r], attn_vload(x.sum[r]) + (w + w2));
    return p;
}

/* Weighs a unit again some of whose rows must get another top. */
ATTN_NOINLINE void weigh_again(const struct unit *u, float scale) {
    for (int r = 0; r < ROWS; r++) {
        const vf most = attn_vmax(attn_vload(u->s[0][r]), attn_vload(u->s[1][r]));
        const float largest = _mm512_reduce_max_ps((__m512)most), *top = &u->g->top[r];
        if (largest > *top + LAZY / scale)
            raise_top(u, r, largest, scale);
        weigh_row(rows_of(u), r, largest == -INFINITY && *top == -INFINITY ? 0.0F : *top, scale);
    }
}

/* The weights of a unit in the making, some rows at a time. */
struct weighing {
    const struct unit *u; /* NULL: there is none */
    struct rows x;
    __m512i most; /* the largest weights by lanes, which as integers are in order, too */
    float scale;
    int row; /* the next */
};

ATTN_INLINE struct weighing begin_weights(const struct unit *u, float scale) {
    struct weighing w = {.u = u, .most = _mm512_setzero_si512(), .scale = scale};
    if (u) {
        if (__builtin_expect(u->chunk < u->g->clear || u->chunk >= u->g->clear_end, 0))
            mask_scores(u);
        w.x = rows_of(u);
    }
    return w;
}

/* Goes on as far as `done` of `all` parts. */
ATTN_INLINE void weigh_part(struct weighing *w, int done, int all) {
    for (; w->u && w->row < done * ROWS / all; w->row++)
        w->most = attn_halves_max(w->most, weigh_row(w->x, w->row, w->x.top[w->row], w->scale));
}

ATTN_INLINE void finish_weights(const struct weighing *w) {
    if (!w->u)
        return;
    if (__builtin_expect(attn_halves_above(w->most, 0x3f80 + LAZY * 0x80), 0))
        weigh_again(w->u, w->scale);
    w->u->g->now ^= 1;
}

/* The scores of a unit, whose packed keys are at k, in four tiles. Behind each product stand rows
 * of the weights of the unit before it, if there is one: vectors work on these while tiles work on
 * those, as far ahead as the core reorders.
 */
ATTN_INLINE void scores(const struct unit *u, const uint16_t *k, const struct unit *before,
                        float scale) {
    struct weighing w = begin_weights(before, scale);
    ATTN_TILE_CLEAR(0);
    ATTN_TILE_CLEAR(1);
    ATTN_TILE_CLEAR(2);
    ATTN_TILE_CLEAR(3);
    ATTN_UNROLL(8)
    for (int i = 0; i < TILES; i++, k += 1024) {
        ATTN_TILE_LOAD(4, u->g->q[i], 64);
        LOAD_KV(6, k, 64);
        ATTN_TILE_MULTIPLY(0, 4, 6);
        weigh_part(&w, 4 * i + 1, 4 * TILES);
        LOAD_KV(7, k + ATTN_TILE_ELEMENTS, 64);
        ATTN_TILE_MULTIPLY(1, 4, 7);
        weigh_part(&w, 4 * i + 2, 4 * TILES);
        ATTN_TILE_LOAD(5, u->g->q[i] + ATTN_TILE_ROWS, 64);
        ATTN_TILE_MULTIPLY(2, 5, 6);
        weigh_part(&w, 4 * i + 3, 4 * TILES);
        ATTN_TILE_MULTIPLY(3, 5, 7);
        weigh_part(&w, 4 * i + 4, 4 * TILES);
    }
    ATTN_TILE_STORE(0, u->s[0], 64);
    ATTN_TILE_STORE(1, u->s[1], 64);
    ATTN_TILE_STORE(2, u->s[0] + ATTN_TILE_ROWS, 64);
    ATTN_TILE_STORE(3, u->s[1] + ATTN_TILE_ROWS, 64);
    finish_weights(&w);
}

ATTN_NOINLINE void scores_alone(const struct unit *u, const uint16_t *k) {
    scores(u, k, NULL, 0.0F);
}

ATTN_NOINLINE void scores_between(const struct unit *u, const uint16_t *k,
                                  const struct unit *before, float scale) {
    scores(u, k, before, scale);
}

ATTN_NOINLINE void weights(const struct unit *u, float scale) {
    struct weighing w = begin_weights(u, scale);
    weigh_part(&w, 1, 1);
    finish_weights(&w);
}

/* O += P V in `pair` + 1 tiles of columns, of which the first is tile n; v: of the first chunk. */
ATTN_INLINE void output_tiles(const int pair, struct group *g, int n,
                              const uint16_t (*p)[ROWS][CHUNK], const uint16_t *v, int32_t chunks) {
    float(*o)[ATTN_VL] = g->o[n], (*o2)[ATTN_VL] = g->o[n + pair];
    if (g->started) {
        ATTN_TILE_LOAD(0, o, 64);
        ATTN_TILE_LOAD(2, o + ATTN_TILE_ROWS, 64);
        if (pair) {
            ATTN_TILE_LOAD(1, o2, 64);
            ATTN_TILE_LOAD(3, o2 + ATTN_TILE_ROWS, 64);
        }
    } else {
        ATTN_TILE_CLEAR(0);
        ATTN_TILE_CLEAR(1);
        ATTN_TILE_CLEAR(2);
        ATTN_TILE_CLEAR(3);
    }
    for (int32_t c = 0; c < chunks; c++, v += V_CHUNK) {
        ATTN_TILE_LOAD(4, p[c], 64);
        LOAD_KV(6, v, 64);
        ATTN_TILE_MULTIPLY(0, 4, 6);
        ATTN_TILE_LOAD(5, p[c] + ATTN_TILE_ROWS, 64);
        ATTN_TILE_MULTIPLY(2, 5, 6);
        if (pair) {
            LOAD_KV(7, v + ATTN_TILE_ELEMENTS, 64);
            ATTN_TILE_MULTIPLY(1, 4, 7);
            ATTN_TILE_MULTIPLY(3, 5, 7);
        }
    }
    ATTN_TILE_STORE(0, o, 64);
    ATTN_TILE_STORE(2, o + ATTN_TILE_ROWS, 64);
    if (pair) {
        ATTN_TILE_STORE(1, o2, 64);
        ATTN_TILE_STORE(3, o2 + ATTN_TILE_ROWS, 64);
    }
}

static void pack_chunk(const uint16_t *k, const uint16_t *v, int64_t k_stride, int64_t v_stride,
                       int32_t count, uint16_t *to_k, uint16_t *to_v) {
    for (int i = 0; i < 2 * TILES; i++) { /* 16 keys, then the other 16, 32 columns at a time */
        const int key = i % 2 * 16, column = i / 2 * 32;
        attn_pack_columns(to_k + i * ATTN_TILE_ELEMENTS, k + key * k_stride + column, k_stride,
                          min(16, count - key), min(32, D - column));
    }
    for (int i = 0; i < TILES_V; i++)
        attn_pack_rows(to_v + i * ATTN_TILE_ELEMENTS, v + i * 16, v_stride, count,
                       min(16, DV - i * 16));
}

/* Packs the chunks begin <= chunk < end of a head, of which there may be fewer. */
static void pack_chunks(const attn_forward_args *a, int64_t batch, int64_t kv_head, int32_t begin,
                        int32_t end, uint16_t *to_k, uint16_t *to_v) {
    const int64_t *ks = a->k_stride, *vs = a->v_stride;
    const uint16_t *k = (const uint16_t *)a->k + batch * ks[0] + kv_head * ks[1];
    const uint16_t *v = (const uint16_t *)a->v + batch * vs[0] + kv_head * vs[1];
    for (int64_t key = begin * CHUNK; key < min(a->seq_kv, end * CHUNK); key += CHUNK) {
        pack_chunk(k + key * ks[2], v + key * vs[2], ks[2], vs[2],
                   min(CHUNK, a->seq_kv - (int32_t)key), to_k, to_v);
        to_k += K_CHUNK;
        to_v += V_CHUNK;
    }
}

/* Where packed keys of a head, or of a worker, begin: K is term 1 of the workspace, V term 2. */
static uint16_t *packed(const attn_forward_args *a, int term, int64_t index, int64_t chunk) {
    const int64_t keys = (a->seq_kv + PACK_ROWS - 1) / PACK_ROWS * PACK_ROWS;
    return (uint16_t *)a->workspace[term] + index * (OWN ? BLOCK : keys / CHUNK) * chunk;
}

int $(PACK_SYMBOL)(const attn_forward_args *a, int task, int worker) {
    (void)worker;
    const int64_t head = task / a->tiles;
    const int32_t chunks = PACK_ROWS / CHUNK, begin = task % a->tiles * chunks;
    pack_chunks(a, head / a->heads_kv, head % a->heads_kv, begin, begin + chunks,
                packed(a, 1, head, K_CHUNK) + (int64_t)begin * K_CHUNK,
                packed(a, 2, head, V_CHUNK) + (int64_t)begin * V_CHUNK);
    return 0;
}

/* What a task walks through. */
struct walk {
    const struct attn_task *t;
    struct scratch *w;
    uint16_t *k, *v; /* packed, from chunk `first` on */
    int32_t first;
    int32_t begin, end; /* chunks */
    int32_t groups;
    float scale;
};

/* O of a group from the weights of a block; `last`: its last unit. */
ATTN_NOINLINE void outputs(const struct walk *walk, const struct unit *last) {
    struct group *g = last->g;
    const int32_t chunks = last->earlier + 1, first = last->chunk - last->earlier;
    const uint16_t(*p)[ROWS][CHUNK] = (const void *)(last->p - last->earlier);
    const uint16_t *v = walk->v + (int64_t)(first - walk->first) * V_CHUNK;
    for (int n = 0; n + 2 <= TILES_V; n += 2)
        output_tiles(1, g, n, p, v + n * ATTN_TILE_ELEMENTS, chunks);
    if (TILES_V % 2)
        output_tiles(0, g, TILES_V - 1, p, v + (TILES_V - 1) * ATTN_TILE_ELEMENTS, chunks);
    g->started = 1;
}

/* Takes the next unit, and finishes the one before it, which it replaces. */
static void step(const struct walk *walk, struct group *g, int32_t block, int32_t chunk,
                 struct unit *before) {
    const uint16_t *k = walk->k + (int64_t)(chunk - walk->first) * K_CHUNK;
    const struct unit now = {.g = g,
                             .chunk = chunk,
                             .block = block,
                             .s = walk->w->s[before->s == walk->w->s[0]],
                             .p = &walk->w->p[chunk - block],
                             .earlier = chunk - max(block, g->begin)};
    if (!before->g) {
        scores_alone(&now, k);
    } else {
        scores_between(&now, k, before, walk->scale);
        if (now.g != before->g || now.block != before->block)
            outputs(walk, before);
    }
    *before = now;
}

static void finish(const struct walk *walk, struct unit *last) {
    if (last->g) {
        weights(last, walk->scale);
        outputs(walk, last);
    }
    last->g = NULL;
}

static void attend(struct walk *walk) {
    const struct attn_task *t = walk->t;
    struct unit last = {.g = NULL};
    for (int32_t block = walk->begin; block < walk->end; block += BLOCK) {
        if (OWN) {
            finish(walk, &last);
            walk->first = block;
            pack_chunks(t->a, t->batch, t->kv_head, block, min(block + BLOCK, walk->end), walk->k,
                        walk->v);
        }
        for (struct group *g = walk->w->group; g < walk->w->group + walk->groups; g++) {
            const int32_t end = min(block + BLOCK, g->end);
            for (int32_t chunk = max(block, g->begin); chunk < end; chunk++)
                step(walk, g, block, chunk, &last);
        }
    }
    finish(walk, &last);
}

static void store_outputs(const struct attn_task *t, struct group *g,
                          struct attn_careful_keys *seen) {
    const attn_forward_args *a = t->a;
    for (int32_t r = 0; r < g->rows; r++) {
        const int sees = max(0, g->lo[r]) <= g->hi[r];
        const float sum = _mm512_reduce_add_ps((__m512)attn_vload(g->sum[g->now][r])) / ATTN_CUT,
                    factor = 1.0F / sum;
        uint16_t *o = (uint16_t *)a->o + offset_of(t, g, a->o_stride, r);
        vf zero = {0}; /* or NaN: 0 times O, as it was summed up */
        for (int c = 0; c < DV; c += 32) {
            vf x = {0}, x2 = {0};
            if (sees) {
                x = attn_vload(g->o[c / ATTN_VL][r]) * factor;
                x2 = attn_vload(g->o[c / ATTN_VL + 1][r]) * factor;
                zero += (x + x2 * 0.0F) * 0.0F;
            }
            attn_store_halves(o + c, x, x2, min(32, DV - c));
        }
        if (LSE) {
            const int64_t head = t->batch * a->heads_q + g->head[r];
            a->lse[head * a->seq_q + g->position[r]] =
                sees ? g->top[r] * (scale_of(a) * LN_2) + attn_log2(sum) * LN_2 : -INFINITY;
        }
        if (attn_scale_is_beyond(a) || _mm512_cmp_ps_mask((__m512)zero, (__m512)zero, _CMP_UNORD_Q))
            attn_careful_row(a, D, DV, t->batch, g->head[r], g->position[r], seen);
    }
}

int $(KERNEL)(const attn_forward_args *a, int task, int worker) {
    struct scratch *w = (void *)((char *)a->workspace[0] + worker * (int64_t)$(SCRATCH_BYTES));
    const struct attn_task t = attn_task_of(a, task, PACK_GQA, GROUPS * ROWS);
    const int64_t index = OWN ? worker : t.batch * a->heads_kv + t.kv_head;
    struct walk walk = {.t = &t,
                        .w = w,
                        .k = packed(a, 1, index, K_CHUNK),
                        .v = packed(a, 2, index, V_CHUNK),
                        .begin = INT32_MAX,
                        .scale = scale_of(a)};
    for (int64_t row = t.row; walk.groups < GROUPS && row < t.rows; row += ROWS) {
        struct group *g = &w->group[walk.groups++];
        start_group(&t, g, row);
        walk.begin = min(walk.begin, g->begin);
        walk.end = max(walk.end, g->end);
    }
    const unsigned before = attn_tiles_begin();
    attend(&walk);
    attn_tiles_end(before);
    struct attn_careful_keys seen = {walk.begin * CHUNK, min(walk.end * CHUNK, a->seq_kv)};
    for (struct group *g = w->group; g < w->group + walk.groups; g++)
        store_outputs(&t, g, &seen);
    return 0;
}
