/* hostile.c: the table of hostile problems, and how a row of it becomes one of a class. */
#include "hostile.h"

#include <math.h>

/* A length of so many rows more than the variant's tile has. */
#define TILE(more) (TILE_BASE + (more))
enum { TILE_BASE = 100000, TILE_MAX = 512 };

/* Work that a hostile problem may be worth at most, in multiplications: a limit that moves a
 * shape's length to thousands must not make checking slow. */
#define WORK_MAX 2e8

static const struct row {
    int32_t batch, heads_q, heads_kv, seq_q, seq_kv;
    int32_t left, right; /* of windows */
    attn_input_kind kind;
    attn_strides strides;
    attn_layout layout;
    float scale;
} ROWS[] = {
#define STD1 ATTN_INPUT_STD1
#define STD8 ATTN_INPUT_STD8
#define AS_LAID ATTN_STRIDES_LAYOUT
#define PADDED ATTN_STRIDES_PADDED
    /* One row, one key, and lengths around powers of two. */
    {1, 1, 1, 1, 1, 0, 0, STD1, AS_LAID, ATTN_BHSD, NAN},
    {1, 2, 1, 1, 17, 3, 0, STD8, AS_LAID, ATTN_BHSD, NAN},
    {2, 3, 1, 7, 1, -1, 0, STD1, PADDED, ATTN_BHSD, NAN},
    {1, 1, 1, 2, 129, 64, 64, STD8, AS_LAID, ATTN_BHSD, NAN},
    {1, 5, 1, 15, 16, 0, -1, STD8, PADDED, ATTN_BSHD, NAN},
    {1, 7, 1, 16, 15, 2, 1, STD8, AS_LAID, ATTN_BSHD, NAN},
    {1, 2, 2, 31, 33, 7, 0, STD8, PADDED, ATTN_BHSD, NAN},
    {2, 2, 1, 33, 31, 40, 40, STD8, AS_LAID, ATTN_BHSD, NAN},
    {1, 1, 1, 63, 65, -1, -1, STD8, AS_LAID, ATTN_BHSD, NAN},
    {1, 1, 1, 65, 63, 0, 0, STD8, AS_LAID, ATTN_BHSD, NAN},
    {1, 2, 1, 127, 129, 16, 16, STD8, AS_LAID, ATTN_BSHD, NAN},
    {1, 1, 1, 129, 127, 1, 0, STD8, AS_LAID, ATTN_BHSD, NAN},
    /* Lengths far apart: several key blocks, and rows that see nothing. */
    {1, 2, 2, 3, 517, 260, 0, STD8, AS_LAID, ATTN_BHSD, NAN},
    {1, 1, 1, 17, 1031, -1, 0, STD8, PADDED, ATTN_BHSD, NAN},
    {1, 1, 1, 17, 1031, 300, -1, STD8, AS_LAID, ATTN_BHSD, NAN},
    {1, 1, 1, 260, 5, 3, 2, STD8, AS_LAID, ATTN_BHSD, NAN},
    /* A window wider than a tile, over several tiles of rows: its left edge cuts whole ones. */
    {1, 1, 1, 300, 700, 250, 0, STD8, AS_LAID, ATTN_BHSD, NAN},
    /* Around the variant's own tile. */
    {1, 1, 1, TILE(-1), TILE(0), 9, 0, STD8, AS_LAID, ATTN_BHSD, NAN},
    {1, 2, 1, TILE(1), TILE(-1), 0, 9, STD8, PADDED, ATTN_BHSD, NAN},
    {1, 1, 1, TILE(0), TILE(1), -1, 0, STD8, AS_LAID, ATTN_BHSD, NAN},
    {1, 3, 1, TILE(3), 40, 20, 0, STD8, AS_LAID, ATTN_BSHD, NAN},
    /* Nothing to do, and nothing to see. */
    {0, 1, 1, 5, 5, 0, 0, STD1, AS_LAID, ATTN_BHSD, NAN},
    {1, 0, 0, 5, 5, 0, 0, STD1, AS_LAID, ATTN_BHSD, NAN},
    {1, 1, 1, 0, 5, 0, 0, STD1, AS_LAID, ATTN_BHSD, NAN},
    {1, 2, 1, 19, 0, 0, 0, STD1, PADDED, ATTN_BHSD, NAN},
    /* Ties, peaks, scales and logits of unusual size. */
    {1, 2, 1, 33, 100, 30, 0, ATTN_INPUT_TIES, AS_LAID, ATTN_BHSD, NAN},
    {1, 2, 1, 70, 200, 100, 0, ATTN_INPUT_PEAKED, AS_LAID, ATTN_BHSD, NAN},
    {1, 1, 1, 21, 111, -1, 0, STD1, AS_LAID, ATTN_BHSD, 0.0F},
    {1, 1, 1, 40, 111, 50, 0, STD8, AS_LAID, ATTN_BHSD, -0.3F},
    {1, 1, 1, 20, 210, 110, 0, ATTN_INPUT_HUGE, AS_LAID, ATTN_BHSD, -1e30F},
    {1, 1, 1, 20, 210, 5, 0, ATTN_INPUT_HUGE, AS_LAID, ATTN_BHSD, 1e30F},
    {1, 1, 1, 20, 210, -1, 0, ATTN_INPUT_HUGE, AS_LAID, ATTN_BHSD, -2.5e5F},
    {1, 1, 1, 20, 210, -1, 0, ATTN_INPUT_HUGE, AS_LAID, ATTN_BHSD, 2.5e5F},
    {1, 1, 1, 20, 70, 60, 0, ATTN_INPUT_DENORMAL, AS_LAID, ATTN_BHSD, NAN},
    /* NaNs stay in their row, or their head. */
    {2, 4, 2, 37, 70, 20, 0, ATTN_INPUT_NAN_QUERY, AS_LAID, ATTN_BHSD, NAN},
    {2, 4, 2, 20, 40, 10, 0, ATTN_INPUT_NAN_KEY, AS_LAID, ATTN_BSHD, NAN},
    {2, 2, 1, 24, 24, 6, 0, ATTN_INPUT_NAN_KEY, AS_LAID, ATTN_QKV, NAN},
    /* Other ways to lay tensors out. */
    {2, 3, 1, 50, 50, 12, 3, STD8, AS_LAID, ATTN_QKV, NAN},
    {2, 2, 2, 25, 60, 16, 0, STD8, PADDED, ATTN_BSHD, NAN},
    {3, 4, 2, 18, 35, 8, 0, STD8, ATTN_STRIDES_ROW_MAJOR, ATTN_BHSD, NAN},
    {2, 4, 2, 18, 35, -1, 4, STD8, ATTN_STRIDES_REPEATED, ATTN_BHSD, NAN},
#undef STD1
#undef STD8
#undef AS_LAID
#undef PADDED
};

_Static_assert(sizeof ROWS / sizeof ROWS[0] <= ATTN_HOSTILE_MAX, "the list has room for the table");

static int32_t length(int32_t n, int32_t tile) {
    return n >= TILE_BASE - TILE_MAX ? tile + (n - TILE_BASE) : n;
}

/* Rows of a tile of the step that writes most: the first one over query rows. */
static int32_t tile_rows(const attn_launch *launch) {
    for (int32_t i = 0; i < launch->steps; i++)
        if (launch->step[i].grid != ATTN_GRID_KV_TILES && launch->step[i].rows > 1)
            return launch->step[i].rows < TILE_MAX ? launch->step[i].rows : TILE_MAX;
    return 64;
}

static void set_field(attn_problem *p, attn_field field, int64_t value) {
    int32_t group = p->heads_kv ? p->heads_q / p->heads_kv : 1, n = (int32_t)value;
    int32_t *const plain[ATTN_FIELD_COUNT] = {
        [ATTN_FIELD_BATCH] = &p->batch,
        [ATTN_FIELD_SEQ_Q] = &p->seq_q,
        [ATTN_FIELD_SEQ_KV] = &p->seq_kv,
        [ATTN_FIELD_WINDOW_LEFT] = &p->window_left,
        [ATTN_FIELD_WINDOW_RIGHT] = &p->window_right,
    };
    if (plain[field]) {
        *plain[field] = n;
        return;
    }
    if (field == ATTN_FIELD_ROWS) {
        p->seq_q = group > 0 && n > group ? n / group : 1;
    } else if (field == ATTN_FIELD_HEADS_Q) {
        p->heads_q = n;
        if (p->heads_kv == 0 || n % p->heads_kv)
            p->heads_kv = n ? 1 : 0;
    } else if (field == ATTN_FIELD_HEADS_KV) {
        p->heads_kv = n;
        p->heads_q = n * group;
    } else {
        p->heads_kv = p->heads_kv ? p->heads_kv : 1;
        p->heads_q = p->heads_kv * n;
    }
}

/* Moves the shape to the nearest that the limits admit; false if there is none near. */
static bool fit(attn_problem *p, const attn_launch *launch) {
    const attn_limit *limit = attn_limits_broken(launch, p);
    for (int tries = 0; limit && tries < ATTN_LIMITS_MAX; tries++) {
        int64_t value = attn_field_get(p, limit->field), unit = limit->multiple_of;
        value = value < limit->min ? limit->min : value;
        value = (value + unit - 1) / unit * unit;
        if (value > limit->max)
            value = limit->max / unit * unit;
        set_field(p, limit->field, value);
        limit = attn_limits_broken(launch, p);
    }
    double keys = (double)p->batch * p->heads_q * p->seq_q * p->seq_kv;
    return !limit && attn_problem_check(p, NULL, 0) == ATTN_OK &&
           keys * (p->head_dim + p->head_dim_v) <= WORK_MAX;
}

size_t attn_hostile_list(const attn_problem *problem, const attn_launch *launch,
                         attn_hostile list[ATTN_HOSTILE_MAX]) {
    size_t count = 0;
    int32_t tile = tile_rows(launch);
    bool window = problem->mask == ATTN_MASK_WINDOW;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const struct row *row = &ROWS[i];
        attn_hostile *h = &list[count];
        h->problem = *problem; /* the class */
        h->problem.batch = row->batch;
        h->problem.heads_q = row->heads_q;
        h->problem.heads_kv = row->heads_kv;
        h->problem.seq_q = length(row->seq_q, tile);
        h->problem.seq_kv = length(row->seq_kv, tile);
        h->problem.window_left = window ? row->left : 0;
        h->problem.window_right = window ? row->right : 0;
        h->problem.layout = row->layout;
        h->spec = (attn_input_spec){row->kind, row->strides, row->scale, i + 1};
        count += fit(&h->problem, launch);
    }
    return count;
}
