/* search.h: which configuration to try next.
 *
 * A search space is a list of valid configurations of one or more families; a search picks points
 * of it. It sees neither device nor clock: it asks, is told costs, and hears how much of the budget
 * is spent. Several points may be out at once, and are told in any order. */
#ifndef ATTN_SEARCH_H
#define ATTN_SEARCH_H

#include "gen.h"
#include "inputs.h"

/*-*** Spaces ****************************************************/

enum { ATTN_SEARCH_FAMILIES = 32 };

typedef struct attn_point {
    uint8_t family; /* in the space's own numbering */
    bool core;      /* of the subset that the family's author thinks worth trying */
    attn_config config;
} attn_point;

typedef struct attn_search_space {
    attn_point *point;
    size_t count;
    size_t capacity;
    uint32_t *table; /* open addressing: index + 1, 0 is free */
    size_t table_size;
    size_t families;
    struct {
        uint8_t params;
        uint8_t values[ATTN_PARAMS_MAX];
    } family[ATTN_SEARCH_FAMILIES];
} attn_search_space;

#define ATTN_SEARCH_END SIZE_MAX

/* Declares the next family: how many values each parameter has. ERR_UNSUPPORTED if too many. */
attn_status attn_search_space_family(attn_search_space *space, size_t params, const size_t *values,
                                     attn_error *err);

/* Adds a point of the family declared last, unless it is there; *index is its number. ERR_NOMEM. */
attn_status attn_search_space_add(attn_search_space *space, const attn_config *config, bool core,
                                  size_t *index, attn_error *err);

/* Makes room for so many more points at once. ERR_NOMEM. */
attn_status attn_search_space_reserve(attn_search_space *space, size_t more, attn_error *err);

/* ATTN_SEARCH_END if it is not there. Values behind the family's parameters are not looked at. */
size_t attn_search_space_find(const attn_search_space *space, size_t family,
                              const attn_config *config);
void attn_search_space_free(attn_search_space *space);

/*-*** Searches **************************************************/

typedef struct attn_search attn_search;

/* One row of the table in search.c. */
typedef struct attn_strategy {
    const char *name;
    const char *doc;
    bool core_first;   /* attn_search_any gives the points of the cores first */
    size_t state_size; /* zeroed memory at attn_search.state */

    /* A point that was not asked for before; ATTN_SEARCH_END only if there is none left. */
    size_t (*ask)(attn_search *search, double spent);

    /* (optional) */
    void (*tell)(attn_search *search, size_t point, double cost);
    void (*close)(attn_search *search);
} attn_strategy;

struct attn_search {
    const attn_strategy *strategy;
    const attn_search_space *space;
    attn_random random;
    bool *asked;     /* [count] */
    double *cost;    /* [count] NaN: not told; INFINITY: failed */
    uint32_t *order; /* [count] the points shuffled */
    size_t cursor;   /* into order: all before were asked */
    size_t left;     /* points not asked for */
    size_t best;     /* point with the least cost, ATTN_SEARCH_END if none is known */
    void *state;
};

/* NULL if there is none of that name. */
const attn_strategy *attn_strategy_find(const char *name);

attn_status attn_search_open(const attn_strategy *strategy, const attn_search_space *space,
                             uint64_t seed, attn_search **search, attn_error *err);
void attn_search_close(attn_search *search);

/* spent: share of the budget that is used up, 0..1. */
size_t attn_search_ask(attn_search *search, double spent);

/* Takes a point out of the search's hands: the caller tries it by itself. False if it was asked for
 * before. */
bool attn_search_mark(attn_search *search, size_t point);

/* Tells what a point costs, INFINITY if it cannot be used. */
void attn_search_tell(attn_search *search, size_t point, double cost);

/* For strategies: a random point that was not asked for; ATTN_SEARCH_END if there is none. */
size_t attn_search_any(attn_search *search);

extern const attn_strategy attn_strategy_exhaustive;
extern const attn_strategy attn_strategy_random;
extern const attn_strategy attn_strategy_climb;

#endif
