/* amx_forward.c: bf16 forward attention of many query rows on AMX tiles.
 *
 * A first step packs K and V of each head into tiles, padded with zeros. Then a group of 32 query
 * rows meets its keys in jobs of up to BK keys: scores S = Q K' by tiles, weights P = 2^(S - top)
 * by vectors whose lanes are keys, rounded to bf16, outputs O += P V by tiles. A row's top is its
 * maximum when it was last taken; it is taken again, and O rescaled, only when a score is more than
 * LAZY above it. So the usual row needs no sum or maximum across lanes.
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
    D = $(HEAD_DIM),          /* columns of Q and K */
    DV = $(HEAD_DIM_V),       /* columns of V and O */
    TILES = $(TILES),         /* tiles side by side in Q, 32 columns each */
    TILES_V = $(TILES_V),     /* tiles side by side in V and O, 16 columns each */
    COLUMNS_V = $(COLUMNS_V), /* of a row of O in scratch: whole stores */
    ROWS = 32,                /* rows of a group: two tiles */
    CHUNK = 32,               /* keys of a chunk: two tiles of scores, one of weights */
    BK = $(BLOCK_K),          /* keys of a job at most; whole chunks */
    S_ROW = BK + 16,          /* from row to row of S and of P: no power of two, which would put */
    P_ROW = BK + 32,          /* the rows of a tile into few sets of the cache */
    K_CHUNK = TILES * 1024,   /* elements of a chunk of packed K, and of V */
    V_CHUNK = TILES_V * 512,
    GROUPS = $(GROUPS),       /* groups of a task: they share each block of K and V */
    OVERLAP = $(OVERLAP),     /* scores of the next job stand between the rows of weights */
    PACK_ROWS = $(PACK_ROWS), /* keys of a task that packs; whole chunks */
    LSE = $(LSE),             /* the log-sum-exp of each row is wanted */
    PACK_GQA = $(PACK_GQA)    /* a task's rows are those of all heads that share K and V */
};

#define LAZY ((float)$(LAZY)) /* a weight is at most two to this power */
#define LOAD_KV $(LOAD)       /* for tiles of K and V */

typedef attn_vf vf;
typedef attn_vi vi;

struct group {
    _Alignas(64) uint16_t q[TILES][ROWS][32]; /* bf16, zeros where there is no row or column */
    float o[ROWS][COLUMNS_V];                 /* undefined until the first job is done: `started` */
    float sum[ROWS][ATTN_VL];                 /* of weights, by lanes */
    float top[ROWS];                          /* weights are 2^((score - top) * scale) */
    float limit[ROWS]; /* top is taken again for a score above it; -inf: no top yet */
    int32_t head[ROWS], position[ROWS];
    int32_t lo[ROWS], hi[ROWS]; /* each row sees the keys lo <= key <= hi */
    int32_t begin, end;         /* any row sees only keys begin <= key < end; begin: a chunk's */
    int32_t all_begin, all_end; /* every row sees all keys all_begin <= key < all_end */
    int32_t started, rows;      /* rows that exist; the others are masked as the last is */
    int64_t row;                /* the first */
};

/* One group and consecutive keys, from the first of a chunk on. */
struct job {
    struct group *g;
    const uint16_t *k, *v; /* packed */
    int32_t first, chunks;
    int32_t clear, clear_end; /* every row sees all keys of the chunks clear <= c < clear_end */
    float scale;
    float (*s)[S_ROW];    /* scores */
    uint16_t (*p)[P_ROW]; /* weights, bf16 */
};

struct scratch { /* of a worker */
    _Alignas(64) float s[1 + OVERLAP][ROWS][S_ROW];
    uint16_t p[ROWS][P_ROW];
    struct group group[GROUPS];
};

_Static_assert(sizeof(struct scratch) <= $(SCRATCH_BYTES), "larger than the launch record says");

ATTN_INLINE int32_t min(int32_t a, int32_t b) {
    return a < b ? a : b;
}

ATTN_INLINE int32_t max(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* Of scores, times log2(e); above 0, since Q has the sign. A scale of 0 becomes one that is next to
 * nothing, so that -inf times it stays -inf. */
static float scale_of(const attn_forward_args *a) {
    const float scale = a->scale_log2 < 0 ? -a->scale_log2 : a->scale_log2;
    return scale > 0x1p-100F ? scale : 0x1p-100F;
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
    const __m512i sign = _mm512_set1_epi16(t->a->scale < 0 ? INT16_MIN : 0);
    for (int r = 0; r < ROWS; r++) {
        const uint16_t *row = (const uint16_t *)t->a->q + offset_of(t, g, t->a->q_stride, r);
        for (int i = 0; i < TILES; i++) {
            const __m512i x = attn_halves(row + i * 32, r < g->rows ? min(32, D - i * 32) : 0);
            _mm512_store_si512(g->q[i][r], _mm512_xor_si512(x, sign));
        }
    }
}

static void start_group(const struct attn_task *t, struct group *g, int64_t row) {
    g->row = row;
    g->rows = t->rows - row < ROWS ? (int32_t)(t->rows - row) : ROWS;
    g->started = 0;
    for (int i = 0; i < ROWS; i++) {
        g->top[i] = 0.0F;
        g->limit[i] = -INFINITY;
    }
    memset(g->sum, 0, sizeof g->sum);
    place_rows(t, g);
    g->begin = max(0, g->lo[0]) / CHUNK * CHUNK;
    g->end = g->hi[ROWS - 1] + 1;
    g->all_begin = g->lo[ROWS - 1];
    g->all_end = g->hi[0] + 1;
    load_queries(t, g);
}

/* The top of a row becomes the largest of its new scores, whose maxima by lanes are in `most`. */
ATTN_NOINLINE void raise_top(struct group *g, int r, vf most, float scale) {
    const float top = _mm512_reduce_max_ps((__m512)most);
    vf alpha = attn_vexp2_native(attn_vset((g->top[r] - top) * scale));
    if (g->limit[r] == -INFINITY)
        alpha = (vf){0};
    g->top[r] = top;
    g->limit[r] = top + LAZY / scale;
    attn_vstore(g->sum[r], attn_vload(g->sum[r]) * alpha);
    for (int c = 0; g->started && c < COLUMNS_V; c += ATTN_VL)
        attn_vstore(&g->o[r][c], attn_vload(&g->o[r][c]) * alpha);
}

/* Scores of keys that row r does not see become -inf. */
ATTN_INLINE void mask_row(const struct job *job, int r) {
    const vi lo = job->g->lo[r] - attn_vlanes(), hi = job->g->hi[r] - attn_vlanes();
    for (int32_t c = 0; c < job->chunks; c++) {
        float *s = &job->s[r][c * CHUNK];
        const int32_t key = job->first + c * CHUNK;
        if (c >= job->clear && c < job->clear_end)
            continue;
        attn_vstore(s, attn_vsee(attn_vload(s), key, lo, hi));
        attn_vstore(s + ATTN_VL, attn_vsee(attn_vload(s + ATTN_VL), key + ATTN_VL, lo, hi));
    }
}

/* Turns the scores of one row into weights. */
ATTN_INLINE void weigh_row(const struct job *job, int r) {
    struct group *g = job->g;
    const float *s = job->s[r], scale = job->scale;
    const int32_t chunks = job->chunks;
    uint16_t *p = job->p[r];
    vf most = attn_vset(-INFINITY), most2 = most;
    if (job->clear > 0 || job->clear_end < chunks)
        mask_row(job, r);
    ATTN_UNROLL($(UNROLL))
    for (int32_t c = 0; c < chunks; c++) {
        most = attn_vmax(most, attn_vload(s + c * CHUNK));
        most2 = attn_vmax(most2, attn_vload(s + c * CHUNK + ATTN_VL));
    }
    most = attn_vmax(most, most2);
    if (__builtin_expect(attn_vabove(most, attn_vset(g->limit[r])), 0))
        raise_top(g, r, most, scale);

    const float top = g->top[r];
    vf sum = attn_vload(g->sum[r]), sum2 = {0};
    ATTN_UNROLL($(UNROLL))
    for (int32_t c = 0; c < chunks; c++) {
        const vf x = attn_vload(s + c * CHUNK), x2 = attn_vload(s + c * CHUNK + ATTN_VL);
        const vf w = attn_vexp2_native((x - top) * scale);
        const vf w2 = attn_vexp2_native((x2 - top) * scale);
        attn_store_halves(p + c * CHUNK, w, w2, CHUNK);
        sum += w;
        sum2 += w2;
    }
    attn_vstore(g->sum[r], sum + sum2);
}

/* The scores of a job, chunk by chunk in four tiles. Between their steps stand rows of weights of
 * the job before it, if there is one: vectors work on these while tiles work on those. */
ATTN_INLINE void scores(const struct job *job, const struct job *before) {
    const int32_t steps = job->chunks * TILES, share = before ? (ROWS + steps - 1) / steps : 0;
    int32_t row = 0;
    for (int32_t c = 0; c < job->chunks; c++) {
        const uint16_t *k = job->k + (int64_t)c * K_CHUNK;
        float *s = &job->s[0][c * CHUNK], *low = s + ATTN_TILE_ROWS * S_ROW;
        ATTN_TILE_CLEAR(0);
        ATTN_TILE_CLEAR(1);
        ATTN_TILE_CLEAR(2);
        ATTN_TILE_CLEAR(3);
        for (int i = 0; i < TILES; i++, k += 1024) {
            ATTN_TILE_LOAD(4, job->g->q[i], 64);
            LOAD_KV(6, k, 64);
            ATTN_TILE_MULTIPLY(0, 4, 6);
            LOAD_KV(7, k + ATTN_TILE_ELEMENTS, 64);
            ATTN_TILE_MULTIPLY(1, 4, 7);
            ATTN_TILE_LOAD(5, job->g->q[i] + ATTN_TILE_ROWS, 64);
            ATTN_TILE_MULTIPLY(2, 5, 6);
            ATTN_TILE_MULTIPLY(3, 5, 7);
            for (int32_t end = min(ROWS, row + share); row < end; row++)
                weigh_row(before, row);
        }
        ATTN_TILE_STORE(0, s, 4 * S_ROW);
        ATTN_TILE_STORE(1, s + ATTN_VL, 4 * S_ROW);
        ATTN_TILE_STORE(2, low, 4 * S_ROW);
        ATTN_TILE_STORE(3, low + ATTN_VL, 4 * S_ROW);
    }
}

ATTN_NOINLINE void scores_alone(const struct job *job) {
    scores(job, NULL);
}

ATTN_NOINLINE void scores_between(const struct job *job, const struct job *before) {
    scores(job, before);
}

ATTN_NOINLINE void weights(const struct job *job) {
    for (int r = 0; r < ROWS; r++)
        weigh_row(job, r);
}

/* O += P V in `pair` + 1 tiles of columns, of which the first is tile n. */
ATTN_INLINE void output_tiles(const int pair, const struct job *job, int n) {
    float *o = &job->g->o[0][n * ATTN_VL], *low = o + ATTN_TILE_ROWS * COLUMNS_V;
    if (job->g->started) {
        ATTN_TILE_LOAD(0, o, 4 * COLUMNS_V);
        ATTN_TILE_LOAD(2, low, 4 * COLUMNS_V);
        if (pair) {
            ATTN_TILE_LOAD(1, o + ATTN_VL, 4 * COLUMNS_V);
            ATTN_TILE_LOAD(3, low + ATTN_VL, 4 * COLUMNS_V);
        }
    } else {
        ATTN_TILE_CLEAR(0);
        ATTN_TILE_CLEAR(1);
        ATTN_TILE_CLEAR(2);
        ATTN_TILE_CLEAR(3);
    }
    for (int32_t c = 0; c < job->chunks; c++) {
        const uint16_t *v = job->v + (int64_t)c * V_CHUNK + n * ATTN_TILE_ELEMENTS;
        const uint16_t *p = &job->p[0][c * CHUNK];
        ATTN_TILE_LOAD(4, p, 2 * P_ROW);
        LOAD_KV(6, v, 64);
        ATTN_TILE_MULTIPLY(0, 4, 6);
        ATTN_TILE_LOAD(5, p + ATTN_TILE_ROWS * P_ROW, 2 * P_ROW);
        ATTN_TILE_MULTIPLY(2, 5, 6);
        if (pair) {
            LOAD_KV(7, v + ATTN_TILE_ELEMENTS, 64);
            ATTN_TILE_MULTIPLY(1, 4, 7);
            ATTN_TILE_MULTIPLY(3, 5, 7);
        }
    }
    ATTN_TILE_STORE(0, o, 4 * COLUMNS_V);
    ATTN_TILE_STORE(2, low, 4 * COLUMNS_V);
    if (pair) {
        ATTN_TILE_STORE(1, o + ATTN_VL, 4 * COLUMNS_V);
        ATTN_TILE_STORE(3, low + ATTN_VL, 4 * COLUMNS_V);
    }
}

ATTN_NOINLINE void outputs(const struct job *job) {
    for (int n = 0; n + 2 <= TILES_V; n += 2)
        output_tiles(1, job, n);
    if (TILES_V % 2)
        output_tiles(0, job, TILES_V - 1);
    job->g->started = 1;
}

/* A walk over blocks of keys, and in each over the groups of a task. */
struct walk {
    struct scratch *w;
    const uint16_t *k, *v; /* packed, of key 0 */
    int32_t key, end, group, groups;
    float scale;
};

/* The next job of a walk, its scores in s[odd]; 0 behind the last. */
static int next_job(struct walk *walk, int odd, struct job *job) {
    for (; walk->key < walk->end; walk->key += BK, walk->group = 0) {
        while (walk->group < walk->groups) {
            struct group *g = &walk->w->group[walk->group++];
            const int32_t first = max(walk->key, g->begin), end = min(walk->key + BK, g->end);
            const int32_t chunks = (end - first + CHUNK - 1) / CHUNK;
            if (first >= end)
                continue;
            *job = (struct job){.g = g,
                                .k = walk->k + (int64_t)(first / CHUNK) * K_CHUNK,
                                .v = walk->v + (int64_t)(first / CHUNK) * V_CHUNK,
                                .first = first,
                                .chunks = chunks,
                                .clear = (g->all_begin - first + CHUNK - 1) / CHUNK,
                                .clear_end = (g->all_end - first) / CHUNK,
                                .scale = walk->scale,
                                .s = walk->w->s[odd],
                                .p = walk->w->p};
            return 1;
        }
    }
    return 0;
}

static void attend(struct walk walk) {
    struct job job;
    while (next_job(&walk, 0, &job)) {
        scores_alone(&job);
        weights(&job);
        outputs(&job);
    }
}

static void attend_overlapped(struct walk walk) {
    struct job job[2];
    int now = 0, more = next_job(&walk, 0, &job[0]);
    if (more)
        scores_alone(&job[0]);
    for (; more; now ^= 1) {
        more = next_job(&walk, (now ^ 1) & OVERLAP, &job[now ^ 1]);
        if (more)
            scores_between(&job[now ^ 1], &job[now]);
        else
            weights(&job[now]);
        outputs(&job[now]);
    }
}

static void store_outputs(const struct attn_task *t, struct group *g) {
    const attn_forward_args *a = t->a;
    for (int32_t r = 0; r < g->rows; r++) {
        const int sees = max(0, g->lo[r]) <= g->hi[r];
        const float sum = _mm512_reduce_add_ps((__m512)attn_vload(g->sum[r])), factor = 1.0F / sum;
        uint16_t *o = (uint16_t *)a->o + offset_of(t, g, a->o_stride, r);
        vf zero = {0}; /* or NaN: 0 times O, as it was summed up */
        for (int c = 0; c < DV; c += 32) {
            vf x = {0}, x2 = {0};
            if (sees) {
                x = attn_vload(&g->o[r][c]) * factor;
                x2 = attn_vload(&g->o[r][c + ATTN_VL]) * factor;
                zero += (x + x2 * 0.0F) * 0.0F;
            }
            attn_store_halves(o + c, x, x2, min(32, DV - c));
        }
        if (LSE) {
            const int64_t head = t->batch * a->heads_q + g->head[r];
            a->lse[head * a->seq_q + g->position[r]] =
                sees ? (g->top[r] * scale_of(a) + attn_log2(sum)) * 0x1.62e430p-1F /* ln 2 */
                     : -INFINITY;
        }
        if (_mm512_cmp_ps_mask((__m512)zero, (__m512)zero, _CMP_UNORD_Q))
            attn_careful_row(a, D, DV, t->batch, g->head[r], g->position[r]);
    }
}

/* Where the packed keys of a head begin: K is term 1 of the workspace, V term 2. */
static uint16_t *packed(const attn_forward_args *a, int term, int64_t head, int64_t chunk) {
    const int64_t chunks = (a->seq_kv + PACK_ROWS - 1) / PACK_ROWS * (PACK_ROWS / CHUNK);
    return (uint16_t *)a->workspace[term] + head * chunks * chunk;
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

int $(PACK_SYMBOL)(const attn_forward_args *a, int task, int worker) {
    (void)worker;
    const int64_t head = task / a->tiles, batch = head / a->heads_kv, kv_head = head % a->heads_kv;
    const int64_t *ks = a->k_stride, *vs = a->v_stride;
    const uint16_t *k = (const uint16_t *)a->k + batch * ks[0] + kv_head * ks[1];
    const uint16_t *v = (const uint16_t *)a->v + batch * vs[0] + kv_head * vs[1];
    uint16_t *to_k = packed(a, 1, head, K_CHUNK), *to_v = packed(a, 2, head, V_CHUNK);
    const int32_t begin = task % a->tiles * PACK_ROWS, end = min(a->seq_kv, begin + PACK_ROWS);
    for (int64_t key = begin; key < end; key += CHUNK)
        pack_chunk(k + key * ks[2], v + key * vs[2], ks[2], vs[2], min(CHUNK, end - (int32_t)key),
                   to_k + key / CHUNK * K_CHUNK, to_v + key / CHUNK * V_CHUNK);
    return 0;
}

int $(KERNEL)(const attn_forward_args *a, int task, int worker) {
    struct scratch *w = (void *)((char *)a->workspace[0] + worker * (int64_t)$(SCRATCH_BYTES));
    const struct attn_task t = attn_task_of(a, task, PACK_GQA, GROUPS * ROWS);
    const int64_t head = t.batch * a->heads_kv + t.kv_head;
    struct walk walk = {.w = w,
                        .k = packed(a, 1, head, K_CHUNK),
                        .v = packed(a, 2, head, V_CHUNK),
                        .key = a->seq_kv,
                        .scale = scale_of(a)};
    for (int64_t row = t.row; walk.groups < GROUPS && row < t.rows; row += ROWS) {
        struct group *g = &w->group[walk.groups++];
        start_group(&t, g, row);
        walk.key = min(walk.key, g->begin);
        walk.end = max(walk.end, g->end);
    }
    attn_tiles_begin();
    if (OVERLAP)
        attend_overlapped(walk);
    else
        attend(walk);
    attn_tiles_end();
    for (struct group *g = w->group; g < w->group + walk.groups; g++)
        store_outputs(&t, g);
    return 0;
}
