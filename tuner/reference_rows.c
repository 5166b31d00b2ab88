/* reference_rows.c: choosing the rows of a problem that are worth their time. */
#include "reference_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows are taken in aligned blocks that fill the lanes of a batch, and whose keys lie together. */
enum { BLOCK = 8, ROWS_A_HEAD = 64 };

#define GROUP_SHARE (2.0 / 3.0) /* of the budget, for the chosen group */

/* Bringing an element of K or V to double costs as much as so many multiplications. */
static const double CONVERSION[] = {
    [ATTN_F32] = 2, [ATTN_F16] = 6, [ATTN_BF16] = 3, [ATTN_TF32] = 2};

struct choice {
    attn_random random;
    int64_t seq_q;
    unsigned char *chosen; /* [seq_q] of the head being chosen from */
};

/* Takes the block of rows that `row` is in; how many rows that adds. */
static int64_t choose(struct choice *c, int64_t row) {
    int64_t first = row / BLOCK * BLOCK, n = c->seq_q - first < BLOCK ? c->seq_q - first : BLOCK;
    if (row < 0 || row >= c->seq_q || c->chosen[first])
        return 0;
    memset(c->chosen + first, 1, (size_t)n);
    return n;
}

/* About n of a head's rows: last, first, around the edges of tiles, then random. */
static void choose_rows(struct choice *c, int64_t n) {
    static const int64_t tiles[] = {64, 128, 16, 48, 32, 96, 256, 192};
    int64_t s = c->seq_q;
    memset(c->chosen, n >= s, (size_t)s);
    if (n >= s)
        return;
    int64_t have = choose(c, s - 1);
    if (have < n)
        have += choose(c, 0);
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0] && have < n; i++) {
        int64_t t = tiles[i], last = (s - 1) / t * t; /* first row of the last tile */
        int64_t any = (int64_t)attn_random_below(&c->random, (uint64_t)(s / t) + 1) * t;
        have += choose(c, last);
        if (have < n)
            have += choose(c, any);
        if (have < n)
            have += choose(c, any - 1);
    }
    while (have < n)
        have += choose(c, (int64_t)attn_random_below(&c->random, (uint64_t)s));
}

struct list {
    int64_t *row;
    int64_t rows, capacity;
};

static bool add_head(struct list *list, const struct choice *c, int64_t head) {
    for (int64_t r = 0; r < c->seq_q; r++) {
        if (!c->chosen[r])
            continue;
        if (list->rows == list->capacity) {
            int64_t capacity = list->capacity * 2 + 1024;
            int64_t *row = realloc(list->row, (size_t)capacity * sizeof *row);
            if (!row)
                return false;
            list->row = row;
            list->capacity = capacity;
        }
        list->row[list->rows++] = head * c->seq_q + r;
    }
    return true;
}

/* How many rows each kind of head gives. */
struct shares {
    int64_t group;  /* of each head of the chosen (batch, kv head); seq_q: all */
    int64_t other;  /* of each other head that is looked at */
    double looked;  /* probability that another head is looked at */
    int64_t chosen; /* the (batch, kv head) */
};

static struct shares share_out(const attn_problem *p, double budget, attn_random *random) {
    double heads = (double)p->batch * p->heads_q, group = (double)p->heads_q / p->heads_kv;
    double dims = p->head_dim + p->head_dim_v;
    double batch = BLOCK * (dims + 16.0) + CONVERSION[p->dtype] * dims; /* for each key */
    double per_pair = batch / fmin(BLOCK, group * p->seq_q);
    double total = attn_problem_pairs(p) * per_pair;
    double per_row = fmax(1.0, total / (heads * p->seq_q));
    struct shares s = {p->seq_q, p->seq_q, 1.0, -1};
    if (total <= budget)
        return s;
    double in_group = floor(budget * GROUP_SHARE / per_row / group);
    double rest = budget * (1 - GROUP_SHARE) / per_row / fmax(1.0, heads - group);
    s.group = in_group > 0.9 * p->seq_q ? p->seq_q : (int64_t)fmax(in_group, 2 * BLOCK);
    s.other = (int64_t)fmin(floor(rest), ROWS_A_HEAD);
    int64_t least = p->seq_q < 2 * BLOCK ? p->seq_q : 2 * BLOCK;
    if (s.other < least) {
        s.looked = fmin(1.0, rest / (double)least);
        s.other = least;
    }
    s.chosen = (int64_t)attn_random_below(random, (uint64_t)p->batch * (uint64_t)p->heads_kv);
    return s;
}

attn_status attn_reference_rows(const attn_problem *p, double budget, uint64_t seed,
                                attn_reference *ref, attn_error *err) {
    struct choice c = {.random = {seed}, .seq_q = p->seq_q};
    struct list list = {NULL, 0, 0};
    int64_t heads = (int64_t)p->batch * p->heads_q, group;
    ref->complete = true;
    if (heads == 0 || p->seq_q == 0)
        return ATTN_OK;
    group = p->heads_q / p->heads_kv;
    struct shares s = share_out(p, budget, &c.random);
    ref->complete = s.group == p->seq_q && s.other == p->seq_q && s.looked >= 1.0;
    c.chosen = malloc((size_t)p->seq_q);
    bool good = c.chosen != NULL;
    double lot = 0;
    for (int64_t head = 0; good && head < heads; head++) {
        bool mine = head / group == s.chosen;
        if (head % group == 0) /* heads that share keys are looked at together */
            lot = (double)(attn_random_next(&c.random) >> 11) * 0x1p-53;
        if (head / group == ref->ignored || (!mine && lot >= s.looked))
            continue;
        choose_rows(&c, mine ? s.group : s.other);
        good = add_head(&list, &c, head);
    }
    free(c.chosen);
    ref->row = list.row;
    ref->rows = list.rows;
    return good ? ATTN_OK : attn_fail_nomem(err);
}
