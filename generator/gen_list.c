/* gen_list.c: the valid configurations of a space.
 *
 * A depth-first walk over the parameters in their order. Each constraint is tested at the first
 * parameter with which all that it lists are bound, so that one answer cuts off everything
 * below; what it cuts off is counted, never visited. */
#include <stdlib.h>
#include <string.h>

#include "gen_internal.h"

enum { STEPS_MAX = 100000000 };

struct walk {
    attn_space *space;
    const uint64_t *mask;
    size_t limit;
    attn_config_list *list;
    size_t capacity;
    size_t first[ATTN_PARAMS_MAX + 2];   /* by depth: where its constraints begin in `order` */
    uint8_t order[ATTN_CONSTRAINTS_MAX]; /* constraints by the depth at which they are tested */
    double below[ATTN_PARAMS_MAX + 1];   /* by depth: combinations of the parameters from it on */
    uint64_t steps;
    uint64_t max_steps;
};

static size_t kept_values(const struct walk *w, size_t param) {
    size_t count = 0;
    for (size_t k = 0; k < w->space->param[param].values; k++)
        count += w->mask[param] >> k & 1;
    return count;
}

/* Depth 0 has nothing bound; at depth d the parameters below d are. */
static size_t depth_of(const attn_constraint *c) {
    size_t depth = 0;
    for (size_t i = 0; i < c->reads; i++)
        if (c->read[i] + 1u > depth)
            depth = c->read[i] + 1u;
    return depth;
}

static void plan(struct walk *w) {
    const attn_space *space = w->space;
    size_t n = 0;
    for (size_t depth = 0; depth <= space->params; depth++) {
        w->first[depth] = n;
        for (size_t k = 0; k < space->constraints; k++)
            if (depth_of(&space->constraint[k]) == depth)
                w->order[n++] = (uint8_t)k;
    }
    w->first[space->params + 1] = n;
    w->below[space->params] = 1;
    for (size_t i = space->params; i-- > 0;)
        w->below[i] = w->below[i + 1] * (double)kept_values(w, i);
}

static attn_status keep(struct walk *w, const attn_config *config, attn_error *err) {
    attn_config_list *list = w->list;
    if (list->count == w->limit) {
        list->cut = true;
        return ATTN_OK;
    }
    if (list->count == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 64;
        attn_config *grown = realloc(list->config, capacity * sizeof *grown);
        if (!grown)
            return attn_fail_nomem(err);
        list->config = grown;
        w->capacity = capacity;
    }
    list->config[list->count++] = *config;
    return ATTN_OK;
}

static attn_status visit(struct walk *w, size_t depth, attn_config *config, attn_error *err) {
    for (size_t i = w->first[depth]; i < w->first[depth + 1]; i++) {
        bool holds;
        ATTN_TRY(attn_space_holds(w->space, w->order[i], config, &holds, err));
        if (!holds) {
            w->list->rejection[w->order[i]].count += w->below[depth];
            return ATTN_OK;
        }
    }
    if (depth == w->space->params)
        return keep(w, config, err);
    for (size_t k = 0; k < w->space->param[depth].values && !w->list->cut; k++) {
        if (!(w->mask[depth] >> k & 1))
            continue;
        if (++w->steps > w->max_steps)
            return attn_fail(err, ATTN_ERR_TIMEOUT, "%s: too many steps", w->space->file);
        config->value[depth] = (uint8_t)k;
        ATTN_TRY(visit(w, depth + 1, config, err));
    }
    return ATTN_OK;
}

attn_status attn_space_list_masked(attn_space *space, const uint64_t mask[ATTN_PARAMS_MAX],
                                   size_t limit, uint64_t max_steps, attn_config_list *list,
                                   attn_error *err) {
    struct walk w = {
        .space = space, .mask = mask, .limit = limit, .list = list, .max_steps = max_steps};
    attn_config config;
    memset(&config, 0, sizeof config);
    memset(list, 0, sizeof *list);
    list->rejection = calloc(space->constraints + 1, sizeof *list->rejection);
    if (!list->rejection)
        return attn_fail_nomem(err);
    list->rejections = space->constraints;
    for (size_t k = 0; k < space->constraints; k++)
        list->rejection[k].reason = space->constraint[k].reason;
    plan(&w);
    list->combinations = w.below[0];
    attn_status st = visit(&w, 0, &config, err);
    if (st != ATTN_OK)
        attn_config_list_free(list);
    return st;
}

attn_status attn_space_list(attn_space *space, bool core, size_t limit, attn_config_list *list,
                            attn_error *err) {
    uint64_t all[ATTN_PARAMS_MAX];
    memset(all, 0xff, sizeof all);
    attn_status st =
        attn_space_list_masked(space, core ? space->core : all, limit, STEPS_MAX, list, err);
    if (st == ATTN_ERR_TIMEOUT)
        st = attn_fail(err, ATTN_ERR_TEMPLATE,
                       "%s: the space is too large to list: put the parameters that constraints "
                       "reject most first, so that they are tested early",
                       attn_files_place(&space->gen->files, space->file));
    return st;
}

void attn_config_list_free(attn_config_list *list) {
    free(list->config);
    free(list->rejection);
    memset(list, 0, sizeof *list);
}
