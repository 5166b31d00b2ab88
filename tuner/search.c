/* search.c: what all strategies share, and the table of them. */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune.h"

static const attn_strategy *const STRATEGIES[] = {&attn_strategy_climb, &attn_strategy_random,
                                                  &attn_strategy_exhaustive};
static const char *const NAMES[] = {"climb", "random", "exhaustive", NULL};

const attn_strategy *attn_strategy_find(const char *name) {
    for (size_t i = 0; NAMES[i]; i++)
        if (strcmp(STRATEGIES[i]->name, name) == 0)
            return STRATEGIES[i];
    return NULL;
}

const char *const *attn_search_names(void) {
    return NAMES;
}

const char *attn_search_doc(const char *name) {
    const attn_strategy *strategy = attn_strategy_find(name);
    return strategy ? strategy->doc : NULL;
}

/* The points in random order, those of the cores in front if the strategy wants that. */
static void shuffle(attn_search *search) {
    const attn_point *point = search->space->point;
    size_t core = 0;
    for (size_t i = 0; i < search->space->count; i++) {
        size_t k = attn_random_below(&search->random, i + 1);
        search->order[i] = search->order[k];
        search->order[k] = (uint32_t)i;
    }
    for (size_t i = 0; search->strategy->core_first && i < search->space->count; i++) {
        uint32_t at = search->order[i];
        if (!point[at].core)
            continue;
        search->order[i] = search->order[core];
        search->order[core++] = at;
    }
}

attn_status attn_search_open(const attn_strategy *strategy, const attn_search_space *space,
                             uint64_t seed, attn_search **search, attn_error *err) {
    attn_search *s = calloc(1, sizeof *s);
    *search = NULL;
    if (!s)
        return attn_fail_nomem(err);
    s->strategy = strategy;
    s->space = space;
    s->random.state = seed;
    s->left = space->count;
    s->best = ATTN_SEARCH_END;
    s->asked = calloc(space->count + 1, sizeof *s->asked);
    s->cost = calloc(space->count + 1, sizeof *s->cost);
    s->order = calloc(space->count + 1, sizeof *s->order);
    s->state = calloc(1, strategy->state_size + 1);
    if (!s->asked || !s->cost || !s->order || !s->state) {
        attn_search_close(s);
        return attn_fail_nomem(err);
    }
    for (size_t i = 0; i < space->count; i++)
        s->cost[i] = NAN;
    shuffle(s);
    *search = s;
    return ATTN_OK;
}

void attn_search_close(attn_search *search) {
    if (!search)
        return;
    if (search->strategy->close && search->state)
        search->strategy->close(search);
    free(search->asked);
    free(search->cost);
    free(search->order);
    free(search->state);
    free(search);
}

bool attn_search_mark(attn_search *search, size_t point) {
    if (search->asked[point])
        return false;
    search->asked[point] = true;
    search->left--;
    return true;
}

size_t attn_search_ask(attn_search *search, double spent) {
    if (search->left == 0)
        return ATTN_SEARCH_END;
    size_t point = search->strategy->ask(search, spent);
    if (point != ATTN_SEARCH_END)
        (void)attn_search_mark(search, point);
    return point;
}

void attn_search_tell(attn_search *search, size_t point, double cost) {
    search->cost[point] = cost;
    if (cost < INFINITY && (search->best == ATTN_SEARCH_END || cost < search->cost[search->best]))
        search->best = point;
    if (search->strategy->tell)
        search->strategy->tell(search, point, cost);
}

size_t attn_search_any(attn_search *search) {
    while (search->cursor < search->space->count && search->asked[search->order[search->cursor]])
        search->cursor++;
    return search->cursor < search->space->count ? search->order[search->cursor] : ATTN_SEARCH_END;
}
