/* search_replay.c: searches over recorded costs. */
#include "search_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*-*** From rows to points ***************************************/

/* Values of one family's parameters, as texts, in the order in which they were met. */
struct words {
    const char *family;
    size_t params;
    size_t values[ATTN_PARAMS_MAX];
    char *value[ATTN_PARAMS_MAX][ATTN_VALUES_MAX];
};

/* Index of the value, added if it is new; ATTN_VALUES_MAX if there is no room. */
static size_t index_of(struct words *words, size_t param, const char *text, size_t length) {
    for (size_t i = 0; i < words->values[param]; i++)
        if (strncmp(words->value[param][i], text, length) == 0 &&
            words->value[param][i][length] == '\0')
            return i;
    size_t n = words->values[param];
    if (n == ATTN_VALUES_MAX || !(words->value[param][n] = strndup(text, length)))
        return ATTN_VALUES_MAX;
    words->values[param]++;
    return n;
}

/* "NV=4 MR=6": the n-th word is the n-th parameter. */
static attn_status read_config(struct words *words, const char *text, attn_config *config,
                               attn_error *err) {
    size_t param = 0;
    memset(config, 0, sizeof *config);
    for (const char *at = text; *at; param++) {
        size_t length = strcspn(at, " ");
        const char *value = memchr(at, '=', length);
        if (!value || param == ATTN_PARAMS_MAX)
            return attn_fail(err, ATTN_ERR_INVALID, "'%s' is no configuration", text);
        value++;
        size_t index = index_of(words, param, value, length - (size_t)(value - at));
        if (index == ATTN_VALUES_MAX)
            return attn_fail(err, ATTN_ERR_INVALID, "'%s' has too many values", text);
        config->value[param] = (uint8_t)index;
        at += length + (at[length] == ' ');
    }
    if (param > words->params)
        words->params = param;
    return ATTN_OK;
}

static attn_status add_point(attn_replay *replay, const attn_config *config,
                             const attn_trial_result *result, attn_error *err) {
    size_t index, count = replay->space.count;
    ATTN_TRY(attn_search_space_add(&replay->space, config, true, &index, err));
    if (replay->space.count > count) {
        double *cost = realloc(replay->cost, replay->space.capacity * sizeof *cost);
        if (!cost)
            return attn_fail_nomem(err);
        replay->cost = cost;
    }
    bool ok = result->outcome == ATTN_OUTCOME_OK && result->median_ns > 0;
    replay->cost[index] = ok ? result->median_ns : INFINITY;
    if (replay->cost[index] < replay->best)
        replay->best = replay->cost[index];
    return ATTN_OK;
}

/* All rows of one family. They are read twice, since the family's parameters must be known before
 * its first point is added. */
static attn_status add_family(attn_replay *replay, const attn_db_rows *rows, const char *family,
                              attn_error *err) {
    struct words *words = calloc(1, sizeof *words);
    attn_config config;
    attn_status status = words ? ATTN_OK : attn_fail_nomem(err);
    for (int pass = 0; pass < 2 && status == ATTN_OK; pass++) {
        if (pass == 1)
            status = attn_search_space_family(&replay->space, words->params, words->values, err);
        for (size_t i = 0; i < rows->count && status == ATTN_OK; i++) {
            const attn_db_row *row = &rows->row[i];
            if (strcmp(row->variant.family, family) != 0)
                continue;
            status = read_config(words, row->variant.config, &config, err);
            if (pass == 1 && status == ATTN_OK)
                status = add_point(replay, &config, &row->result, err);
        }
    }
    for (size_t p = 0; words && p < ATTN_PARAMS_MAX; p++)
        for (size_t v = 0; v < words->values[p]; v++)
            free(words->value[p][v]);
    free(words);
    return status;
}

attn_status attn_replay_open(const attn_db_rows *rows, attn_replay *replay, attn_error *err) {
    *replay = (attn_replay){.best = INFINITY};
    for (size_t i = 0; i < rows->count; i++) {
        bool met = false;
        for (size_t k = 0; k < i && !met; k++)
            met = strcmp(rows->row[k].variant.family, rows->row[i].variant.family) == 0;
        if (!met)
            ATTN_TRY(add_family(replay, rows, rows->row[i].variant.family, err));
    }
    if (!(replay->best < INFINITY))
        return attn_fail(err, ATTN_ERR_INVALID, "no trial of the record is ok");
    return ATTN_OK;
}

void attn_replay_close(attn_replay *replay) {
    attn_search_space_free(&replay->space);
    free(replay->cost);
    *replay = (attn_replay){0};
}

/*-*** Running a search ******************************************/

attn_status attn_replay_run(const attn_replay *replay, const attn_strategy *strategy, uint64_t seed,
                            size_t trials, size_t at_once, double *best, attn_error *err) {
    enum { OUT_MAX = 64 };
    size_t out[OUT_MAX], waiting = 0;
    double least = INFINITY;
    attn_search *search;
    ATTN_TRY(attn_search_open(strategy, &replay->space, seed, &search, err));
    at_once = at_once < 1 ? 1 : at_once > OUT_MAX ? OUT_MAX : at_once;
    for (size_t told = 0; told < trials; told++) {
        while (waiting < at_once && told + waiting < trials) {
            size_t point = attn_search_ask(search, (double)(told + waiting) / (double)trials);
            if (point == ATTN_SEARCH_END)
                break;
            out[waiting++] = point;
        }
        if (waiting > 0) {
            double cost = replay->cost[out[0]];
            attn_search_tell(search, out[0], cost);
            memmove(out, out + 1, --waiting * sizeof *out);
            least = fmin(least, cost);
        }
        best[told] = least;
    }
    attn_search_close(search);
    return ATTN_OK;
}

double attn_replay_share(const attn_replay *replay, double factor) {
    size_t ok = 0, within = 0;
    for (size_t i = 0; i < replay->space.count; i++) {
        ok += replay->cost[i] < INFINITY;
        within += replay->cost[i] <= factor * replay->best;
    }
    return ok > 0 ? (double)within / (double)ok : NAN;
}
