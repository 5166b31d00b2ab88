/* search_random.c: points in random order: of the whole space until the budget is spent, or of the
 * core subsets until all are tried. In random order too, since a budget may cut that short. */
#include "search.h"

static size_t ask(attn_search *search, double spent) {
    (void)spent;
    return attn_search_any(search);
}

const attn_strategy attn_strategy_random = {
    .name = "random",
    .doc = "random configurations of the whole space",
    .ask = ask,
};

const attn_strategy attn_strategy_exhaustive = {
    .name = "exhaustive",
    .doc = "every configuration of the families' core subsets",
    .ask = ask,
};
