/* search_space.c: the points of a search, found by their values. */
#include <stdlib.h>
#include <string.h>

#include "search.h"

attn_status attn_search_space_family(attn_search_space *space, size_t params, const size_t *values,
                                     attn_error *err) {
    if (space->families == ATTN_SEARCH_FAMILIES || params > ATTN_PARAMS_MAX)
        return attn_fail(err, ATTN_ERR_UNSUPPORTED, "more than %d families in one search",
                         ATTN_SEARCH_FAMILIES);
    space->family[space->families].params = (uint8_t)params;
    for (size_t i = 0; i < params; i++)
        space->family[space->families].values[i] = (uint8_t)values[i];
    space->families++;
    return ATTN_OK;
}

/* Every configuration is a number, its values being the digits; multiplied, its high bits are
 * spread evenly. */
static size_t slot_of(const attn_search_space *space, size_t family, const attn_config *config) {
    uint64_t number = family;
    for (size_t i = 0; i < space->family[family].params; i++)
        number = number * space->family[family].values[i] + config->value[i];
    size_t slot = (size_t)((number * 0x9e3779b97f4a7c15U) >> 20) & (space->table_size - 1);
    while (space->table[slot]) {
        const attn_point *point = &space->point[space->table[slot] - 1];
        if (point->family == family &&
            memcmp(point->config.value, config->value, space->family[family].params) == 0)
            break;
        slot = (slot + 1) & (space->table_size - 1);
    }
    return slot;
}

size_t attn_search_space_find(const attn_search_space *space, size_t family,
                              const attn_config *config) {
    if (space->table_size == 0 || family >= space->families)
        return ATTN_SEARCH_END;
    uint32_t found = space->table[slot_of(space, family, config)];
    return found ? found - 1 : ATTN_SEARCH_END;
}

attn_status attn_search_space_reserve(attn_search_space *space, size_t more, attn_error *err) {
    size_t capacity = space->capacity ? space->capacity : 256;
    while (capacity < space->count + more)
        capacity *= 2;
    if (capacity == space->capacity)
        return ATTN_OK;
    if (capacity > UINT32_MAX / 2)
        return attn_fail_nomem(err);
    attn_point *point = realloc(space->point, capacity * sizeof *point);
    if (!point)
        return attn_fail_nomem(err);
    space->point = point;
    uint32_t *table = calloc(capacity * 2, sizeof *table); /* at most half full */
    if (!table)
        return attn_fail_nomem(err);
    free(space->table);
    space->table = table;
    space->table_size = capacity * 2;
    space->capacity = capacity;
    for (size_t i = 0; i < space->count; i++)
        table[slot_of(space, point[i].family, &point[i].config)] = (uint32_t)i + 1;
    return ATTN_OK;
}

attn_status attn_search_space_add(attn_search_space *space, const attn_config *config, bool core,
                                  size_t *index, attn_error *err) {
    size_t family = space->families - 1;
    if (space->count == space->capacity)
        ATTN_TRY(attn_search_space_reserve(space, 1, err));
    uint32_t *slot = &space->table[slot_of(space, family, config)];
    if (*slot == 0) {
        space->point[space->count] = (attn_point){(uint8_t)family, core, *config};
        *slot = (uint32_t)++space->count;
    }
    *index = *slot - 1;
    return ATTN_OK;
}

void attn_search_space_free(attn_search_space *space) {
    free(space->point);
    free(space->table);
    memset(space, 0, sizeof *space);
}
