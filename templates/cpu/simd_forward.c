/* simd_forward.c: forward attention in f32 with query rows in the lanes of SIMD registers.
 *
 * A group of LANES query rows is held transposed, one row a lane, and meets its keys block by
 * block: scores S = K Q, weights P = 2^(S - running maximum), outputs O = V P. Both products
 * multiply vectors of lanes by single elements of K or V, so K and V are read where they lie, no
 * sum or maximum ever crosses lanes, and a NaN in a query row stays in its lane. Q is transposed
 * once at the start, O once at the end. Rows of 16-bit elements are widened as they are packed or
 * transposed, and those of O narrowed: everything between is f32.
 */
#include "attn_abi.h"

#define ATTN_VL $(VL)
#define ATTN_EXP2_DEGREE $(EXP_DEGREE)
#include "attn_cpu.h"
#include "attn_cpu_element.h"
#include "attn_cpu_flush.h"
#include "attn_cpu_task.h"

#define ATTN_ELEMENT $(ELEMENT)
#define ATTN_WIDEN attn_widen_$(DTYPE)
#define ATTN_NARROW attn_narrow_$(DTYPE)
#include "attn_cpu_careful.h"

#define EXP2 attn_vexp2_$(EXP)

enum {
    D = $(HEAD_DIM),            /* columns of Q and K */
    DV = $(HEAD_DIM_V),         /* columns of V and O */
    VL = $(VL),                 /* lanes of a vector */
    NV = $(NV),                 /* vectors of a group */
    LANES = NV * VL,            /* query rows of a group */
    GROUPS = $(GROUPS),         /* groups of a task: they share each block of K and V */
    MR = $(MR),                 /* keys of a score tile, which fills MR x NV registers */
    MRV = $(MRV),               /* columns of an output tile, which fills MRV x NV registers */
    BK = $(BK),                 /* keys of a block at most; a multiple of MR */
    MASKED = $(MASKED),         /* there is a mask */
    STEPS = $(STEP_COUNT),      /* steps of a pass over a block: see find_edges */
    LSE = $(LSE),               /* the log-sum-exp of each row is wanted */
    PACK_GQA = $(PACK_GQA),     /* a task's rows are those of all heads that share K and V */
    PREFETCH_V = $(PREFETCH_V), /* fetch a key's row of V while its scores are computed */
    WIDE = $(WIDE)              /* floats of the wider row, a multiple of 16 */
};

typedef attn_vf vf;
typedef attn_vi vi;
typedef ATTN_ELEMENT element;

struct group {
    _Alignas(64) float q[D][LANES]; /* times the scale and log2(e) */
    float o[DV][LANES];             /* undefined until the first block is done: `started` */
    float max[LANES], sum[LANES];   /* of the scores; of the weights, relative to max */
    int32_t lo[LANES], hi[LANES];   /* each row sees the keys lo <= key <= hi that exist */
    int32_t begin, end;             /* any row sees only keys begin <= key < end */
    int32_t all_begin, all_end;     /* every row sees all keys all_begin <= key < all_end */
    int32_t started, rows;          /* lanes that are rows; the others repeat the last */
    int64_t row;                    /* the first */
};

/* Consecutive keys, with their rows of K and V. */
struct keys {
    const float *k, *v;
    int64_t k_stride, v_stride;
    int32_t first, count;
    int32_t fetch; /* V is to be fetched: the first of the task's groups is at this block */
};

struct scratch {                     /* of a worker */
    _Alignas(64) float s[BK][LANES]; /* scores, then weights */
    //@ if DTYPE ~= "f32" then
    float wide[4][WIDE]; /* rows of Q or O */
    //@ end
    struct group group[GROUPS];
};

_Static_assert(sizeof(struct scratch) <= $(SCRATCH_BYTES), "larger than the launch record says");

/* A packed task's rows go through its heads first, then through the positions. */
static int64_t head_of(const struct attn_task *t, int64_t row) {
    return t->head + (PACK_GQA ? row % t->a->group : 0);
}

static int32_t position_of(const struct attn_task *t, int64_t row) {
    return (int32_t)(PACK_GQA ? row / t->a->group : row);
}

static int64_t offset_of(const struct attn_task *t, const int64_t stride[3], int64_t row) {
    return t->batch * stride[0] + head_of(t, row) * stride[1] + position_of(t, row) * stride[2];
}

//@ if DTYPE ~= "f32" or PACK_KV == 1 then
static void widen(float *to, const element *from, int n) {
    for (int i = 0; i < n; i++)
        to[i] = attn_widen_$(DTYPE)(from[i]);
}
//@ end

//@ if DTYPE ~= "f32" then
static void narrow(element *to, const float *from, int n) {
    for (int i = 0; i < n; i++)
        to[i] = attn_narrow_$(DTYPE)(from[i]);
}
//@ end

static void load_queries(const struct attn_task *t, struct scratch *w, struct group *g) {
    const float scale = t->a->scale_log2;
    (void)w; /* f32 needs no copy */
    for (int32_t lane = 0; lane < LANES; lane += 4) {
        const float *row[4];
        for (int i = 0; i < 4; i++) {
            const int64_t r = g->row + min(lane + i, g->rows - 1);
            const element *q = (const element *)t->a->q + offset_of(t, t->a->q_stride, r);
            //@ if DTYPE == "f32" then
            row[i] = q;
            //@ else
            widen(w->wide[i], q, D);
            row[i] = w->wide[i];
            //@ end
        }
        int d = 0;
        for (; d + 4 <= D; d += 4) {
            attn_v4 block[4];
            for (int i = 0; i < 4; i++)
                block[i] = *(const attn_v4u *)(row[i] + d) * scale;
            attn_transpose4(block);
            for (int i = 0; i < 4; i++)
                *(attn_v4 *)&g->q[d + i][lane] = block[i];
        }
        for (; d < D; d++)
            for (int i = 0; i < 4; i++)
                g->q[d][lane + i] = row[i][d] * scale;
    }
}

static void start_group(const struct attn_task *t, struct scratch *w, struct group *g,
                        int64_t row) {
    const attn_forward_args *a = t->a;
    g->row = row;
    g->rows = t->rows - row < LANES ? (int32_t)(t->rows - row) : LANES;
    g->started = 0;
    for (int32_t i = 0; i < LANES; i++) {
        const int32_t at = position_of(t, row + min(i, g->rows - 1)) + a->mask_offset;
        g->lo[i] = at - a->mask_left;
        g->hi[i] = at + a->mask_right;
        g->max[i] = -INFINITY;
        g->sum[i] = 0.0F;
    }
    g->begin = max(0, g->lo[0]);
    g->end = min(a->seq_kv, g->hi[LANES - 1] + 1);
    g->all_begin = g->lo[LANES - 1];
    g->all_end = g->hi[0] + 1;
    load_queries(t, w, g);
}

/* The scores of MR keys, the block's key `at` and on, in the vectors from..to-1. Keys past the
 * block's last repeat it: they are stored, and used no further. */
ATTN_INLINE void score_tile(const int from, const int to, struct group *g, const struct keys *keys,
                            int32_t at, float (*s)[LANES]) {
    const float *row[MR];
    for (int r = 0; r < MR; r++) {
        const int64_t key = min(at + r, keys->count - 1);
        row[r] = keys->k + key * keys->k_stride;
        for (int c = 0; PREFETCH_V && keys->fetch && c < DV; c += 16)
            __builtin_prefetch(keys->v + key * keys->v_stride + c);
    }

    vf acc[MR][NV] = {0};
    ATTN_UNROLL($(UNROLL))
    for (int d = 0; d < D; d++) {
        vf q[NV];
        ATTN_EACH (j, from, to)
            q[j] = attn_vload(&g->q[d][j * VL]);
        ATTN_EACH (r, 0, MR) {
            ATTN_EACH (j, from, to)
                acc[r][j] += q[j] * row[r][d];
        }
    }

    const int32_t first = keys->first + at, last = keys->first + keys->count - 1;
    if (MASKED && (first < g->all_begin || first + MR > g->all_end)) {
        ATTN_EACH (j, from, to) {
            const vi lo = *(const vi *)&g->lo[j * VL], hi = *(const vi *)&g->hi[j * VL];
            ATTN_EACH (r, 0, MR)
                acc[r][j] = attn_vsee(acc[r][j], min(first + r, last), lo, hi);
        }
    }
    ATTN_EACH (j, from, to) {
        vf top = attn_vload(&g->max[j * VL]);
        ATTN_EACH (r, 0, MR) {
            top = attn_vmax(top, acc[r][j]);
            attn_vstore(&s[at + r][j * VL], acc[r][j]);
        }
        attn_vstore(&g->max[j * VL], top);
    }
}

/* The scores of one step, at least to the block's key `stop`; gives the next key to do. A function
 * of its own, as are the outputs below: in a larger one, compilers run out of registers. */
//@ for step, vectors in ipairs(STEPS) do
ATTN_NOINLINE int32_t scores_$(step)(struct group *g, const struct keys *keys, int32_t at,
                                     int32_t stop, float (*s)[LANES]) {
    for (; at < stop; at += MR)
        score_tile($(vectors.from), $(vectors.to), g, keys, at, s);
    return at;
}
//@ end

/* Turns the scores of one step into weights, and adds these to `sum`; gives the next key to do. */
ATTN_INLINE int32_t weights(const int from, const int to, float (*s)[LANES], int32_t at,
                            int32_t stop, const vf base[NV], vf sum[NV]) {
    for (; at < stop; at++) {
        ATTN_EACH (j, from, to) {
            const vf p = EXP2(attn_vload(&s[at][j * VL]) - base[j]);
            attn_vstore(&s[at][j * VL], p);
            sum[j] += p;
        }
    }
    return at;
}

/* Adds V P of one step's keys to acc: `cols` columns of V, whose first is at `v`; gives the next
 * key to do. */
ATTN_INLINE int32_t output_step(const int from, const int to, const int cols, const float *v,
                                int64_t stride, float (*p)[LANES], int32_t at, int32_t stop,
                                vf acc[MRV][NV]) {
    ATTN_UNROLL($(UNROLL))
    for (; at < stop; at++) {
        const float *row = v + at * stride;
        vf w[NV];
        ATTN_EACH (j, from, to)
            w[j] = attn_vload(&p[at][j * VL]);
        ATTN_EACH (i, 0, cols) {
            ATTN_EACH (j, from, to)
                acc[i][j] += w[j] * row[i];
        }
    }
    return at;
}

/* O = O alpha + V P in the columns c..c+cols-1. */
ATTN_INLINE void output_tile(const int cols, struct group *g, const struct keys *keys, int c,
                             const int32_t edge[STEPS], float (*p)[LANES], const vf alpha[NV]) {
    vf acc[MRV][NV] = {0};
    const float *v = keys->v + c;
    int32_t at = 0;
    //@ for step, vectors in ipairs(STEPS) do
    at = output_step($(vectors.from), $(vectors.to), cols, v, keys->v_stride, p, at,
                     edge[$(step) - 1], acc);
    //@ end
    ATTN_EACH (i, 0, cols) {
        ATTN_EACH (j, 0, NV) {
            float *o = &g->o[c + i][j * VL];
            attn_vstore(o, g->started ? attn_vload(o) * alpha[j] + acc[i][j] : acc[i][j]);
        }
    }
}

/* All tiles of `cols` columns from column c on; gives the next column to do. */
//@ for _, cols in ipairs(OUTPUT_TILES) do
ATTN_NOINLINE int outputs_$(cols)(struct group *g, const struct keys *keys, int c,
                                  const int32_t edge[STEPS], float (*p)[LANES],
                                  const vf alpha[NV]) {
    for (; c + $(cols) <= DV; c += $(cols))
        output_tile($(cols), g, keys, c, edge, p, alpha);
    return c;
}
//@ end

/* Where the steps of a pass over a block end. Under a mask's edges, which run down the rows as a
 * staircase, the vectors that see nothing are left out: at a window's left edge the first step is
 * for vector 0 alone, the second for vectors 0 and 1, and so on; at the diagonal the first is for
 * all vectors, the second for all but vector 0, and so on. */
static void find_edges(const struct group *g, const struct keys *keys, int32_t edge[STEPS]) {
    int step = 0;
    for (int j = 1; j < NV && STEPS > NV; j++) /* before a tile with the first key of vector j */
        edge[step++] = max(0, min(keys->count, g->lo[j * VL] - keys->first)) / MR * MR;
    for (int j = 0; step < STEPS; j++) /* behind the last key of vector j */
        edge[step++] = max(0, min(keys->count, g->hi[(j + 1) * VL - 1] + 1 - keys->first));
}

/* One block of keys for one group, in three passes over the scores. */
static void attend(struct group *g, const struct keys *keys, float (*s)[LANES]) {
    int32_t edge[STEPS], at = 0;
    find_edges(g, keys, edge);

    vf base[NV], alpha[NV], sum[NV] = {0};
    for (int j = 0; j < NV; j++)
        alpha[j] = attn_vload(&g->max[j * VL]);
    //@ for step = 1, STEP_COUNT do
    at = scores_$(step)(g, keys, at, edge[$(step) - 1], s);
    //@ end

    /* While a row has seen no key its maximum is -inf, and -inf - -inf would be NaN. */
    for (int j = 0; j < NV; j++) {
        const vf top = attn_vload(&g->max[j * VL]);
        base[j] = attn_vselect(top == -INFINITY, (vf){0}, top);
        alpha[j] = EXP2(alpha[j] - base[j]);
    }
    at = 0;
    //@ for step, vectors in ipairs(STEPS) do
    at = weights($(vectors.from), $(vectors.to), s, at, edge[$(step) - 1], base, sum);
    //@ end
    for (int j = 0; j < NV; j++)
        attn_vstore(&g->sum[j * VL], attn_vload(&g->sum[j * VL]) * alpha[j] + sum[j]);

    int c = 0;
    //@ for _, cols in ipairs(OUTPUT_TILES) do
    c = outputs_$(cols)(g, keys, c, edge, s, alpha);
    //@ end
    g->started = 1;
}

/* Which rows may have left a float's range; see attn_cpu_careful.h. 0 times O is 0 or NaN. */
ATTN_NOINLINE void find_strained(const struct group *g, int32_t strained[LANES]) {
    vf q2[NV] = {0}, zero[NV] = {0};
    for (int c = 0; c < D || c < DV; c++) {
        ATTN_EACH (j, 0, NV) {
            if (c < D)
                q2[j] += attn_vload(&g->q[c][j * VL]) * attn_vload(&g->q[c][j * VL]);
            if (c < DV)
                zero[j] += attn_vload(&g->o[c][j * VL]) * 0.0F;
        }
    }
    for (int j = 0; j < NV; j++)
        *(vi *)&strained[j * VL] =
            ~((q2[j] <= attn_vset(ATTN_LARGE * ATTN_LARGE)) & (zero[j] == attn_vset(0.0F)));
}

static void store_outputs(const struct attn_task *t, struct scratch *w, struct group *g,
                          struct attn_careful_keys *seen) {
    const attn_forward_args *a = t->a;
    _Alignas(64) int32_t strained[LANES];
    (void)w; /* f32 needs no copy */
    float factor[LANES];
    for (int32_t i = 0; i < LANES; i++) {
        const int sees = max(0, g->lo[i]) <= min(a->seq_kv - 1, g->hi[i]);
        factor[i] = sees ? 1.0F / g->sum[i] : 0.0F;
        if (LSE && i < g->rows) {
            const int64_t head = t->batch * a->heads_q + head_of(t, g->row + i);
            a->lse[head * a->seq_q + position_of(t, g->row + i)] =
                sees ? (g->max[i] + attn_log2(g->sum[i])) * 0x1.62e430p-1F /* ln 2 */ : -INFINITY;
        }
    }
    if (!g->started)
        memset(g->o, 0, sizeof g->o);
    find_strained(g, strained);
    for (int32_t lane = 0; lane < g->rows; lane += 4) {
        const int live = min(4, g->rows - lane);
        element *o[4];
        float *row[4];
        for (int i = 0; i < live; i++) {
            o[i] = (element *)a->o + offset_of(t, a->o_stride, g->row + lane + i);
            row[i] = $(DTYPE == "f32" and "o[i]" or "w->wide[i]");
        }
        int d = 0;
        for (; d + 4 <= DV; d += 4) {
            attn_v4 block[4];
            for (int i = 0; i < 4; i++)
                block[i] = *(const attn_v4 *)&g->o[d + i][lane] * *(const attn_v4u *)&factor[lane];
            attn_transpose4(block);
            for (int i = 0; i < live; i++)
                *(attn_v4u *)(row[i] + d) = block[i];
        }
        for (; d < DV; d++)
            for (int i = 0; i < live; i++)
                row[i][d] = g->o[d][lane + i] * factor[lane + i];
        //@ if DTYPE ~= "f32" then
        for (int i = 0; i < live; i++)
            narrow(o[i], w->wide[i], DV);
        //@ end
    }
    for (int64_t i = 0; i < g->rows; i++)
        if (strained[i] || attn_scale_is_beyond(a))
            attn_careful_row(a, D, DV, t->batch, head_of(t, g->row + i), position_of(t, g->row + i),
                             seen);
}

/* The first element of a head's K or V. */
ATTN_INLINE const element *head_at(const void *base, const int64_t stride[3], int64_t batch,
                                   int64_t kv_head) {
    return (const element *)base + batch * stride[0] + kv_head * stride[1];
}

//@ if PACK_KV == 0 then
/* All keys of a head, where the caller has them. */
static struct keys keys_of(const attn_forward_args *a, int64_t batch, int64_t kv_head) {
    return (struct keys){.k = head_at(a->k, a->k_stride, batch, kv_head),
                         .v = head_at(a->v, a->v_stride, batch, kv_head),
                         .k_stride = a->k_stride[2],
                         .v_stride = a->v_stride[2],
                         .first = 0,
                         .count = a->seq_kv};
}
//@ else
/* All keys of a head in the workspace, where the first step has put them one behind the other. */
static struct keys keys_of(const attn_forward_args *a, int64_t batch, int64_t kv_head) {
    const int64_t row = (batch * a->heads_kv + kv_head) * a->seq_kv;
    return (struct keys){.k = (const float *)a->workspace[1] + row * D,
                         .v = (const float *)a->workspace[2] + row * DV,
                         .k_stride = D,
                         .v_stride = DV,
                         .first = 0,
                         .count = a->seq_kv};
}

int $(PACK_SYMBOL)(const attn_forward_args *a, int task, int worker) {
    (void)worker;
    const int64_t head = task / a->tiles;
    const int32_t begin = task % a->tiles * $(PACK_ROWS),
                  end = min(a->seq_kv, begin + $(PACK_ROWS));
    const element *k = head_at(a->k, a->k_stride, head / a->heads_kv, head % a->heads_kv);
    const element *v = head_at(a->v, a->v_stride, head / a->heads_kv, head % a->heads_kv);
    float *k_to = (float *)a->workspace[1] + head * a->seq_kv * D;
    float *v_to = (float *)a->workspace[2] + head * a->seq_kv * DV;
    for (int64_t i = begin; i < end; i++) {
        widen(k_to + i * D, k + i * a->k_stride[2], D);
        widen(v_to + i * DV, v + i * a->v_stride[2], DV);
    }
    return 0;
}
//@ end

/* Those of all keys that are begin <= key < end. */
static struct keys slice(struct keys keys, int32_t begin, int32_t end) {
    keys.k += begin * keys.k_stride;
    keys.v += begin * keys.v_stride;
    keys.first = begin;
    keys.count = end - begin;
    return keys;
}

int $(KERNEL)(const attn_forward_args *a, int task, int worker) {
    struct scratch *w = (void *)((char *)a->workspace[0] + worker * (int64_t)$(SCRATCH_BYTES));
    const struct attn_task t = attn_task_of(a, task, PACK_GQA, GROUPS * LANES);
    const struct keys all = keys_of(a, t.batch, t.kv_head);
    const unsigned before = attn_flush_begin(a);
    int32_t groups = 0, begin = a->seq_kv, end = 0;
    for (int64_t row = t.row; groups < GROUPS && row < t.rows; row += LANES) {
        struct group *g = &w->group[groups++];
        start_group(&t, w, g, row);
        begin = min(begin, g->begin);
        end = max(end, g->end);
    }

    /* Blocks of about equal size, so that the last is not a small rest. */
    const int32_t count = max(0, end - begin), blocks = max(1, (count + BK - 1) / BK);
    const int32_t step = (count + blocks * MR - 1) / (blocks * MR) * MR;
    for (int32_t key = begin; key < end; key += step) {
        const int32_t stop = min(end, key + step);
        int32_t fetch = 1;
        for (struct group *g = w->group; g < w->group + groups; g++) {
            const int32_t from = max(key, g->begin), to = min(stop, g->end);
            if (from < to) {
                struct keys keys = slice(all, from, to);
                keys.fetch = fetch;
                attend(g, &keys, w->s);
                fetch = 0;
            }
        }
    }
    attn_flush_end(before);
    struct attn_careful_keys seen = {.begin = begin, .end = end};
    for (struct group *g = w->group; g < w->group + groups; g++)
        store_outputs(&t, w, g, &seen);
    return 0;
}
