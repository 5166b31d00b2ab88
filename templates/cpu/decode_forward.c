/* decode_forward.c: forward attention of few query rows over many keys: as fast as K and V can be
 * read.
 *
 * All rows that share K and V (of a GQA group's heads, at all positions) meet each block of keys
 * together, so that it is read from memory once. The keys are cut into SPLITS pieces, so that all
 * cores read; a second step adds the pieces up, always in the same order. Lanes lie along the
 * columns: a score is a dot product, and a vector of scores at a time is summed across lanes.
 */
#include "attn_abi.h"

#define ATTN_VL $(VL)
#define ATTN_EXP2_DEGREE 5
#include "attn_cpu.h"
#include "attn_cpu_flush.h"
#include "attn_cpu_rows.h"

#define ATTN_ELEMENT $(ELEM)
#define ATTN_WIDEN attn_widen_$(p.dtype)
#define ATTN_NARROW attn_narrow_$(p.dtype)
#include "attn_cpu_careful.h"

enum {
    D = $(HEAD_DIM),                 /* columns of Q and K */
    DV = $(HEAD_DIM_V),              /* columns of V and O */
    VL = $(VL),                      /* lanes of a vector */
    PER = $(PER),                    /* vectors of a chunk */
    CHUNK = PER * VL,                /* columns of a chunk */
    LINE = 64 / sizeof($(ELEM)),     /* columns of a cache line */
    CHUNKS = $(CHUNKS),              /* chunks of a row of K */
    COLUMNS = $(CHUNKS) * CHUNK,     /* of a row of Q in scratch, 0 from D on */
    COLUMNS_V = $(CHUNKS_V) * CHUNK, /* of a row of O in the workspace, undefined from DV on */
    ROWS = $(ROWS),                  /* rows that meet the keys at once, at most */
    TILE = $(TILE),                  /* scores of a tile: of so many rows, TILE / rows keys */
    OUT = $(OUT),                    /* registers of an output tile, at most */
    BK = $(BLOCK_K),                 /* keys of a block; a multiple of TILE */
    SPLITS = $(SPLITS),              /* pieces into which a task's keys are cut */
    TASK_ROWS = $(TASK_ROWS),        /* rows of a task */
    GROUPS = $(GROUPS),              /* into which they fall at most, to meet the keys */
    MERGE_ROWS = $(MERGE_ROWS),      /* rows of a task of the second step */
    LSE = $(LSE),                    /* the log-sum-exp of each row is wanted */
    APART = $(APART),                /* a tile's keys are BK / keys apart, not neighbours */
    PREFETCH = $(FETCHES)            /* fetch V of a block during its scores, K of the next later */
};

typedef ATTN_ELEMENT elem;
typedef attn_vf vf;
typedef attn_vi vi;

/* What one piece of the keys gives for a row, kept in the workspace. */
struct part {
    _Alignas(64) float o[COLUMNS_V]; /* sum of weight * V, in the order of chunks */
    float max, sum;                  /* of the scores; of the weights, relative to max */
};

/* Rows that meet the keys at once. In tiles and in these arrays, row r has `keys` lanes from
 * r * keys on, where keys = TILE / count; lane i of them is for the i-th key of each tile. */
struct rows {
    _Alignas(64) float q[ROWS][COLUMNS]; /* times the scale and log2(e), in the order of chunks */
    float max[TILE], sum[TILE];          /* max is the same in all lanes of a row */
    int32_t lo[TILE], hi[TILE];          /* a lane sees its key if lo <= the tile's first <= hi */
    int32_t all_begin, all_end;          /* every row sees all keys all_begin <= key < all_end */
    int32_t count, started;              /* started: the parts hold outputs */
    struct part *part;                   /* of the first; the next row's is SPLITS behind */
};

struct scratch {                     /* of a worker */
    _Alignas(64) float s[BK * ROWS]; /* scores of a block, then weights, tile by tile */
    struct rows rows[GROUPS];
};

_Static_assert(sizeof(struct part) == $(PART_BYTES), "not what the launch record says");
_Static_assert(sizeof(struct scratch) <= $(SCRATCH_BYTES), "larger than the launch record says");

/* Consecutive keys, with their rows of K and V. */
struct keys {
    const elem *k, *v;
    int64_t k_stride, v_stride;
    int32_t first, count;
    int32_t next; /* keys behind these that come next */
};

/* The rows of a task, and the keys that any of them sees. */
struct task {
    const attn_forward_args *a;
    int64_t batch, kv_head;
    int64_t row, rows;         /* first, and number; of the seq_q * group that share K and V */
    int32_t begin, end, piece; /* begin <= key < end; keys of a piece */
};

/* Rows go through the heads first, then through the positions. */
static int64_t head_of(const struct task *t, int64_t row) {
    return t->kv_head * t->a->group + row % t->a->group;
}

static int32_t position_of(const struct task *t, int64_t row) {
    return (int32_t)(row / t->a->group);
}

static int64_t offset_of(const struct task *t, const int64_t stride[3], int64_t row) {
    return t->batch * stride[0] + head_of(t, row) * stride[1] + position_of(t, row) * stride[2];
}

/* The keys from first_key on that a row sees, and those up to last_key; there may be none. */
static int32_t first_key(const struct task *t, int64_t row) {
    return position_of(t, row) + t->a->mask_offset - t->a->mask_left;
}

static int32_t last_key(const struct task *t, int64_t row) {
    return min(t->a->seq_kv - 1, position_of(t, row) + t->a->mask_offset + t->a->mask_right);
}

static struct part *part_of(const struct task *t, int64_t row) {
    const attn_forward_args *a = t->a;
    const int64_t rows = (int64_t)a->seq_q * a->group;
    const int64_t head = t->batch * a->heads_kv + t->kv_head;
    return (struct part *)a->workspace[1] + (head * rows + row) * SPLITS;
}

/* Task number `tile` of its heads, and the pieces of its keys: equal, but for the last, and whole
 * blocks, so that what ends within a block is what its rows see. */
static struct task task_of(const attn_forward_args *a, int64_t head, int64_t tile) {
    const int64_t row = tile * TASK_ROWS, left = (int64_t)a->seq_q * a->group - row;
    struct task t = {.a = a,
                     .batch = head / a->heads_kv,
                     .kv_head = head % a->heads_kv,
                     .row = row,
                     .rows = left < TASK_ROWS ? left : TASK_ROWS};
    t.begin = max(0, first_key(&t, row));
    t.end = last_key(&t, row + t.rows - 1) + 1;
    const int32_t count = max(0, t.end - t.begin), piece = (count + SPLITS - 1) / SPLITS;
    t.piece = max(BK, (piece + BK - 1) / BK * BK);
    return t;
}

static void load_query(const struct task *t, int64_t row, float q[COLUMNS]) {
    const elem *from = (const elem *)t->a->q + offset_of(t, t->a->q_stride, row);
    vf x[PER];
    for (int c = 0; c < CHUNKS; c++) {
        if (c < D / CHUNK)
            attn_chunk_$(p.dtype)(x, from + c * CHUNK, CHUNK);
        else
            attn_chunk_$(p.dtype)(x, from + c * CHUNK, D % CHUNK);
        for (int i = 0; i < PER; i++)
            attn_vstore(q + (c * PER + i) * VL, x[i] * t->a->scale_log2);
    }
}

/* Of a tile of `rows` rows, how far apart its keys are; and how far the next tile's first is. */
ATTN_INLINE int key_step(const int rows) {
    return APART ? BK / (TILE / rows) : 1;
}

ATTN_INLINE int tile_step(const int rows) {
    return APART ? 1 : TILE / rows;
}

ATTN_INLINE int tiles_of(const int rows, const struct keys *keys) {
    return APART ? min(keys->count, key_step(rows)) : (keys->count * rows + TILE - 1) / TILE;
}

/* Where the row-0 weight of a block's key `at` is. */
ATTN_INLINE int weight_at(const int rows, int at) {
    return APART ? at % key_step(rows) * TILE + at / key_step(rows)
                 : at / tile_step(rows) * TILE + at % tile_step(rows);
}

/* The task's rows from `row` on, `count` of them. */
static void start_rows(const struct task *t, struct rows *g, int64_t row, int32_t count) {
    const int32_t keys = TILE / count;
    g->count = count;
    g->started = 0;
    g->all_begin = first_key(t, row + count - 1);
    g->all_end = last_key(t, row) + 1;
    g->part = part_of(t, row);
    for (int32_t r = 0; r < count; r++) {
        load_query(t, row + r, g->q[r]);
        for (int32_t i = 0; i < keys; i++) {
            g->lo[r * keys + i] = first_key(t, row + r) - i * key_step(count);
            g->hi[r * keys + i] = last_key(t, row + r) - i * key_step(count);
        }
    }
    for (int32_t i = 0; i < TILE; i++) {
        g->max[i] = -INFINITY;
        g->sum[i] = 0.0F;
    }
}

ATTN_INLINE void prefetch(const elem *row, int from, const int columns) {
    for (int c = from; c < columns; c += LINE)
        __builtin_prefetch(row + c, 0, $(LOCALITY));
}

/* Adds the products of one chunk of `rows` rows of Q and TILE / rows rows of K. */
ATTN_INLINE void multiply(const int rows, const int columns, const float (*q)[COLUMNS],
                          const elem *const k[], int c, vf acc[TILE]) {
    const int keys = TILE / rows;
    ATTN_EACH (i, 0, keys) {
        vf x[PER];
        attn_chunk_$(p.dtype)(x, k[i] + c * CHUNK, columns);
        ATTN_EACH (r, 0, rows) {
            ATTN_EACH (j, 0, PER)
                acc[r * keys + i] += x[j] * attn_vload(&q[r][(c * PER + j) * VL]);
        }
    }
}

/* One tile of scores, whose first key is the block's key `at`. Where there is no key, the block's
 * last is taken, and masked. */
ATTN_INLINE void score_tile(const int rows, const struct rows *g, const struct keys *keys,
                            int32_t at, int leads, float s[TILE], vf top[TILE / VL]) {
    const int n = TILE / rows;
    const elem *k[TILE], *v[TILE];
    ATTN_EACH (i, 0, n) {
        const int64_t key = min(at + i * key_step(rows), keys->count - 1);
        k[i] = keys->k + key * keys->k_stride;
        v[i] = keys->v + key * keys->v_stride;
    }

    vf acc[TILE] = {0};
    for (int c = 0; c < D / CHUNK; c++) {
        multiply(rows, CHUNK, g->q, k, c, acc);
        for (int i = 0; PREFETCH && leads && c * CHUNK % LINE == 0 && i < n; i++)
            prefetch(v[i], c * CHUNK, min(DV, c * CHUNK + 1));
    }
    if (D % CHUNK)
        multiply(rows, D % CHUNK, g->q, k, D / CHUNK, acc);
    for (int i = 0; PREFETCH && leads && i < n; i++)
        prefetch(v[i], (D / CHUNK * CHUNK + LINE - 1) / LINE * LINE, DV);

    const int32_t first = keys->first + at;
    const int masked = first < g->all_begin || first + (n - 1) * key_step(rows) >= g->all_end;
    ATTN_EACH (j, 0, TILE / VL) {
        vf x = attn_vsums(&acc[j * VL]);
        if (masked)
            x = attn_vsee(x, first, *(const vi *)&g->lo[j * VL], *(const vi *)&g->hi[j * VL]);
        top[j] = attn_vmax(top[j], x);
        attn_vstore(&s[j * VL], x);
    }
}

/* Turns `tiles` tiles of scores into weights, and adds these to `sum`. */
ATTN_INLINE void weights(float *s, int tiles, const vf base[TILE / VL], vf sum[TILE / VL]) {
    for (; tiles > 0; tiles--, s += TILE) {
        ATTN_EACH (j, 0, TILE / VL) {
            const vf p = attn_vexp2_native(attn_vload(&s[j * VL]) - base[j]);
            attn_vstore(&s[j * VL], p);
            sum[j] += p;
        }
    }
}

/* O = O alpha + weights V in `vectors` vectors from `column` on; of the last chunk, `columns`. */
ATTN_INLINE void output_tile(const int rows, const int vectors, const int columns, struct rows *g,
                             const struct keys *keys, const float *p, int column, int leads,
                             const float *alpha) {
    const int per_tile = TILE / rows;
    const elem *v = keys->v + column, *ahead = keys->k + keys->count * keys->k_stride;
    vf acc[OUT] = {0};
    for (int32_t at = 0; at < keys->count; at++) {
        const float *w = p + weight_at(rows, at);
        ATTN_EACH (c, 0, vectors / PER) {
            vf x[PER];
            attn_chunk_$(p.dtype)(x, v + c * CHUNK, c < vectors / PER - 1 ? CHUNK : columns);
            ATTN_EACH (r, 0, rows) {
                ATTN_EACH (j, 0, PER)
                    acc[r * vectors + c * PER + j] += x[j] * w[r * per_tile];
            }
        }
        if (PREFETCH && leads && column == 0 && at < keys->next)
            prefetch(ahead + at * keys->k_stride, 0, D);
        v += keys->v_stride;
    }
    ATTN_EACH (r, 0, rows) {
        float *o = g->part[r * SPLITS].o + column;
        ATTN_EACH (j, 0, vectors) {
            vf *to = (vf *)(o + j * VL);
            *to = g->started ? *to * alpha[r * per_tile] + acc[r * vectors + j]
                             : acc[r * vectors + j];
        }
    }
}

/* A row's maximum is that of its lanes. */
ATTN_INLINE void spread_max(const int rows, float max[TILE]) {
    const int keys = TILE / rows;
    for (int r = 0; r < rows; r++) {
        float top = max[r * keys];
        for (int i = 1; i < keys; i++)
            top = max[r * keys + i] > top ? max[r * keys + i] : top;
        for (int i = 0; i < keys; i++)
            max[r * keys + i] = top;
    }
}

/* From here to the second `end`, functions for each number of rows that may meet the keys. Scores
 * and outputs are functions of their own: in a larger one, compilers run out of registers. */
//@ for _, rows in ipairs(ROW_TILES) do
ATTN_NOINLINE void scores_$(rows)(struct rows *g, const struct keys *keys, int leads, float *s) {
    vf top[TILE / VL];
    ATTN_EACH (j, 0, TILE / VL)
        top[j] = attn_vload(&g->max[j * VL]);
    for (int32_t i = 0; i < tiles_of($(rows), keys); i++)
        score_tile($(rows), g, keys, i * tile_step($(rows)), leads, s + i * TILE, top);
    ATTN_EACH (j, 0, TILE / VL)
        attn_vstore(&g->max[j * VL], top[j]);
    spread_max($(rows), g->max);
}

//@ for _, tile in ipairs(OUTPUT_TILES[rows]) do
ATTN_NOINLINE void outputs_$(tile.name)(struct rows *g, const struct keys *keys, int leads,
                                        const float *p, const float *alpha) {
    for (int c = $(tile.from) * VL; c < $(tile.to) * VL; c += $(tile.vectors) * VL)
        output_tile($(rows), $(tile.vectors), $(tile.columns), g, keys, p, c, leads, alpha);
}
//@ end

/* One block of keys; `leads`: these rows are the first that meet it. */
static void attend_$(rows)(struct rows *g, const struct keys *keys, int leads, float *s) {
    _Alignas(64) float alpha[TILE];
    vf base[TILE / VL], sum[TILE / VL] = {0};
    memcpy(alpha, g->max, sizeof alpha);
    scores_$(rows)(g, keys, leads, s);

    /* While a row has seen no key its maximum is -inf, and -inf - -inf would be NaN. */
    for (int j = 0; j < TILE / VL; j++) {
        const vf top = attn_vload(&g->max[j * VL]);
        base[j] = attn_vselect(top == -INFINITY, (vf){0}, top);
        attn_vstore(&alpha[j * VL], attn_vexp2_native(attn_vload(&alpha[j * VL]) - base[j]));
    }
    weights(s, tiles_of($(rows), keys), base, sum);
    for (int j = 0; j < TILE / VL; j++)
        attn_vstore(&g->sum[j * VL],
                    attn_vload(&g->sum[j * VL]) * attn_vload(&alpha[j * VL]) + sum[j]);
    //@ for _, tile in ipairs(OUTPUT_TILES[rows]) do
    outputs_$(tile.name)(g, keys, leads, s, alpha);
    //@ end
    g->started = 1;
}

//@ end
static void attend(struct rows *g, const struct keys *keys, int leads, float *s) {
    //@ for _, rows in ipairs(ROW_TILES) do
    if (g->count == $(rows))
        attend_$(rows)(g, keys, leads, s);
    //@ end
}

/* The maximum and the sum of each row's lanes go to its part. */
static void end_rows(const struct rows *g) {
    const int keys = TILE / g->count;
    for (int r = 0; r < g->count; r++) {
        struct part *part = &g->part[r * SPLITS];
        part->max = g->max[r * keys];
        part->sum = 0.0F;
        for (int i = 0; i < keys; i++)
            part->sum += g->sum[r * keys + i];
    }
}

/* May the row have left a float's range? See attn_cpu_careful.h. largest: of O's elements, as
 * bits without the sign. */
static int is_strained(const struct task *t, int64_t row, uint32_t largest) {
    _Alignas(64) float q[COLUMNS];
    vf q2 = {0};
    load_query(t, row, q);
    for (int c = 0; c < COLUMNS; c += VL)
        q2 += attn_vload(&q[c]) * attn_vload(&q[c]);
    const vi large = ~(q2 <= attn_vset(ATTN_LARGE * ATTN_LARGE));
    int any = largest >= 0x7f800000 || attn_scale_is_beyond(t->a);
    for (int i = 0; i < VL; i++)
        any |= large[i];
    return any;
}

/* The row's outputs, from its parts. */
static void merge_row(const struct task *t, int64_t row, struct attn_careful_keys *seen) {
    const attn_forward_args *a = t->a;
    const struct part *part = part_of(t, row);
    const int parts = t->begin < t->end ? (t->end - t->begin + t->piece - 1) / t->piece : 0;
    const int sees = max(0, first_key(t, row)) <= last_key(t, row);
    const unsigned before = attn_flush_begin(a);
    float top = -INFINITY, sum = 0.0F;
    for (int i = 0; i < parts; i++)
        top = part[i].max > top ? part[i].max : top;

    vf acc[COLUMNS_V / VL] = {0};
    for (int i = 0; i < parts; i++) {
        const vf w = attn_vexp2_native(attn_vset(part[i].max - (top > -INFINITY ? top : 0.0F)));
        sum += part[i].sum * w[0];
        for (int j = 0; j < COLUMNS_V / VL; j++)
            acc[j] += attn_vload(&part[i].o[j * VL]) * w;
    }

    _Alignas(64) float x[COLUMNS_V];
    for (int j = 0; j < COLUMNS_V / VL; j++)
        attn_vstore(&x[j * VL], sees ? acc[j] / sum : (vf){0});
    elem *o = (elem *)a->o + offset_of(t, a->o_stride, row);
    uint32_t largest = 0;
    for (int c = 0; c < DV; c++) {
        const float y = x[c / CHUNK * CHUNK + c % PER * VL + c % CHUNK / PER];
        const uint32_t bits = attn_float_bits(y) & 0x7fffffff;
        largest = bits > largest ? bits : largest;
        o[c] = attn_narrow_$(p.dtype)(y);
    }
    if (LSE)
        a->lse[(t->batch * a->heads_q + head_of(t, row)) * a->seq_q + position_of(t, row)] =
            sees ? (top + attn_log2(sum)) * 0x1.62e430p-1F /* ln 2 */ : -INFINITY;
    const int strained = is_strained(t, row, largest);
    attn_flush_end(before);
    if (strained)
        attn_careful_row(a, D, DV, t->batch, head_of(t, row), position_of(t, row), seen);
}

//@ if SPLITS > 1 then
int $(MERGE_SYMBOL)(const attn_forward_args *a, int task, int worker) {
    (void)worker;
    const int64_t begin = (int64_t)(task % a->tiles) * MERGE_ROWS;
    const struct task t = task_of(a, task / a->tiles, begin / TASK_ROWS);
    struct attn_careful_keys seen = {.begin = t.begin, .end = t.end};
    for (int64_t row = begin; row < begin + MERGE_ROWS && row < t.row + t.rows; row++)
        merge_row(&t, row, &seen);
    return 0;
}
//@ end

/* The keys of a piece from `first` on: a block of them. */
static struct keys block_of(const struct task *t, int32_t first, int32_t end) {
    const attn_forward_args *a = t->a;
    const int64_t *ks = a->k_stride, *vs = a->v_stride;
    const int32_t count = min(BK, end - first);
    return (struct keys){
        .k = (const elem *)a->k + t->batch * ks[0] + t->kv_head * ks[1] + first * ks[2],
        .v = (const elem *)a->v + t->batch * vs[0] + t->kv_head * vs[1] + first * vs[2],
        .k_stride = ks[2],
        .v_stride = vs[2],
        .first = first,
        .count = count,
        .next = min(BK, end - first - count)};
}

int $(KERNEL)(const attn_forward_args *a, int task, int worker) {
    struct scratch *w = (void *)((char *)a->workspace[0] + worker * (int64_t)$(SCRATCH_BYTES));
    const int tile = task / SPLITS, split = task % SPLITS;
    const struct task t = task_of(a, tile / a->tiles, tile % a->tiles);
    const int64_t from = t.begin + (int64_t)split * t.piece;
    const int32_t begin = from < t.end ? (int32_t)from : t.end, end = min(t.end, begin + t.piece);

    const unsigned before = attn_flush_begin(a);
    int32_t groups = 0;
    for (int32_t row = 0, count = ROWS; row < t.rows && begin < end; row += count) {
        while (count > t.rows - row)
            count /= 2;
        struct rows *g = &w->rows[groups++];
        start_rows(&t, g, t.row + row, count);
        g->part += split;
    }
    for (int32_t first = begin; first < end; first += BK) {
        const struct keys keys = block_of(&t, first, end);
        for (int32_t i = 0; i < groups; i++)
            attend(&w->rows[i], &keys, i == 0, w->s);
    }
    for (int32_t i = 0; i < groups; i++)
        end_rows(&w->rows[i]);
    attn_flush_end(before);
    struct attn_careful_keys seen = {.begin = t.begin, .end = t.end};
    for (int64_t row = t.row; SPLITS == 1 && row < t.row + t.rows; row++)
        merge_row(&t, row, &seen);
    return 0;
}
