/* search_climb.c: random points of the cores for a quarter of the budget, then local search.
 *
 * From the best point on, neighbours (one parameter changed) are tried in random order, and the
 * first that is better is the next to climb from. At a top it starts again: in turn from the best
 * point with a few parameters changed, and from anywhere. Points that are out are not waited for:
 * while they are, more neighbours of the same point are asked for. */
#include "search.h"

static const double RANDOM_SHARE = 0.25;
enum { RANDOM_LEAST = 8, KICKS = 3, KICK_ATTEMPTS = 64, STEPS_MAX = ATTN_PARAMS_MAX * 256 };

/* One parameter set to another value. */
struct step {
    uint8_t param;
    uint8_t value;
};

struct climb {
    size_t from;    /* the point that is climbed from */
    size_t sampled; /* random points asked for at the beginning */
    size_t steps, next;
    bool climbing;
    bool anywhere; /* the next start is a random point */
    struct step step[STEPS_MAX];
};

/* Lists all steps from a point, in random order. */
static void climb_from(attn_search *search, size_t from) {
    struct climb *climb = search->state;
    const attn_point *point = &search->space->point[from];
    size_t params = search->space->family[point->family].params;
    climb->from = from;
    climb->climbing = true;
    climb->steps = climb->next = 0;
    for (size_t p = 0; p < params; p++) {
        for (size_t v = 0; v < search->space->family[point->family].values[p]; v++) {
            if (v == point->config.value[p])
                continue;
            size_t k = attn_random_below(&search->random, climb->steps + 1);
            climb->step[climb->steps++] = climb->step[k];
            climb->step[k] = (struct step){(uint8_t)p, (uint8_t)v};
        }
    }
}

/* The next neighbour that is a valid point and was not asked for. */
static size_t neighbour(attn_search *search) {
    struct climb *climb = search->state;
    const attn_point *point = &search->space->point[climb->from];
    while (climb->next < climb->steps) {
        struct step step = climb->step[climb->next++];
        attn_config config = point->config;
        config.value[step.param] = step.value;
        size_t found = attn_search_space_find(search->space, point->family, &config);
        if (found != ATTN_SEARCH_END && !search->asked[found])
            return found;
    }
    return ATTN_SEARCH_END;
}

/* The best point with a few parameters changed, if that is a new point. */
static size_t kicked(attn_search *search) {
    const attn_point *best = &search->space->point[search->best];
    size_t params = search->space->family[best->family].params;
    for (int attempt = 0; params > 0 && attempt < KICK_ATTEMPTS; attempt++) {
        attn_config config = best->config;
        for (int kick = 0; kick < KICKS; kick++) {
            size_t p = attn_random_below(&search->random, params);
            config.value[p] = (uint8_t)attn_random_below(
                &search->random, search->space->family[best->family].values[p]);
        }
        size_t found = attn_search_space_find(search->space, best->family, &config);
        if (found != ATTN_SEARCH_END && !search->asked[found])
            return found;
    }
    return ATTN_SEARCH_END;
}

static size_t ask(attn_search *search, double spent) {
    struct climb *climb = search->state;
    bool sampling = climb->sampled < RANDOM_LEAST || spent < RANDOM_SHARE;
    if (search->best == ATTN_SEARCH_END || (sampling && !climb->climbing)) {
        climb->sampled++;
        return attn_search_any(search);
    }
    if (!climb->climbing)
        climb_from(search, search->best);
    size_t point = neighbour(search);
    if (point != ATTN_SEARCH_END)
        return point;
    point = climb->anywhere ? ATTN_SEARCH_END : kicked(search);
    climb->anywhere = !climb->anywhere;
    if (point == ATTN_SEARCH_END)
        point = attn_search_any(search);
    if (point != ATTN_SEARCH_END)
        climb_from(search, point);
    return point;
}

static void tell(attn_search *search, size_t point, double cost) {
    const struct climb *climb = search->state;
    if (climb->climbing && cost < search->cost[climb->from]) /* not while that is unknown */
        climb_from(search, point);
}

const attn_strategy attn_strategy_climb = {
    .name = "climb",
    .doc = "a quarter of the budget at random, then uphill from the best, again and again",
    .core_first = true,
    .state_size = sizeof(struct climb),
    .ask = ask,
    .tell = tell,
};
