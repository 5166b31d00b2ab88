/* job_space.c: the spaces of the families that accept a problem, joined into one search space. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

/* Points listed of one family's space; a larger one is searched as far as that. */
enum { POINTS_MAX = 1 << 21, SEEDS_MAX = 10 };

attn_status attn_points_add(attn_points *points, size_t point, attn_error *err) {
    if (points->count == points->capacity) {
        size_t capacity = points->capacity ? points->capacity * 2 : 16;
        size_t *at = realloc(points->at, capacity * sizeof *at);
        if (!at)
            return attn_fail_nomem(err);
        points->at = at;
        points->capacity = capacity;
    }
    points->at[points->count++] = point;
    return ATTN_OK;
}

/*-*** Families **************************************************/

static bool wanted(const attn_job *job, const attn_family_info *info) {
    return !info->reference && strcmp(info->backend, job->lane->backend->name) == 0 &&
           (!job->options->family || strcmp(info->name, job->options->family) == 0);
}

static attn_status add_list(attn_job *job, const attn_family *family, bool core, attn_error *err) {
    attn_config_list list = {0};
    size_t index;
    attn_status status = attn_space_list(family->space, core, POINTS_MAX, &list, err);
    if (status == ATTN_OK)
        status = attn_search_space_reserve(&job->space, list.count, err);
    for (size_t i = 0; status == ATTN_OK && i < list.count; i++)
        status = attn_search_space_add(&job->space, &list.config[i], core, &index, err);
    attn_config_list_free(&list);
    return status;
}

/* The problem's winner, which a search of the whole space may have found outside of the core: who
 * is to take its place must be measured beside it. */
static attn_status add_winner(attn_job *job, const attn_family *family, attn_error *err) {
    const attn_db_filter filter = {
        .problem = job->problem, .device = &job->lane->device, .winners = true};
    attn_error ignored = ATTN_ERROR_INIT;
    attn_db_rows rows = {0};
    size_t index;
    if (!job->options->db || job->options->verify_only)
        return ATTN_OK;
    ATTN_TRY(attn_db_find(job->options->db, &filter, &rows, err));
    attn_status status = ATTN_OK;
    for (size_t i = 0; status == ATTN_OK && i < rows.count; i++) {
        attn_config config = job->space.point[family->first_point].config;
        if (strcmp(rows.row[i].variant.family, family->name) == 0 &&
            attn_config_parse(family->space, rows.row[i].variant.config, &config, &ignored) ==
                ATTN_OK &&
            attn_space_check(family->space, &config, &ignored) == ATTN_OK)
            status = attn_search_space_add(&job->space, &config, false, &index, err);
    }
    attn_db_rows_free(&rows);
    return status;
}

/* Declares the space to the search, with the points that the search is about. */
static attn_status add_points(attn_job *job, attn_family *family, attn_error *err) {
    const attn_tune_options *o = job->options;
    size_t values[ATTN_PARAMS_MAX], params = attn_space_params(family->space);
    attn_config config;
    for (size_t i = 0; i < params; i++)
        values[i] = attn_space_values(family->space, i);
    ATTN_TRY(attn_search_space_family(&job->space, params, values, err));
    ATTN_TRY(attn_space_default(family->space, &config, err));
    if (o->config) {
        ATTN_TRY(attn_config_parse(family->space, o->config, &config, err));
        ATTN_TRY(attn_space_check(family->space, &config, err));
    }
    ATTN_TRY(attn_search_space_add(&job->space, &config, true, &family->first_point, err));
    if (o->config)
        return ATTN_OK;
    ATTN_TRY(add_list(job, family, true, err));
    return o->whole ? add_list(job, family, false, err) : add_winner(job, family, err);
}

static attn_status add_family(attn_job *job, const attn_family_info *info, attn_error *err) {
    const char *name = info->name;
    attn_family *family = &job->family[job->families];
    *family =
        (attn_family){.name = name, .preference = info->preference, .first_point = ATTN_SEARCH_END};
    if (job->families == ATTN_SEARCH_FAMILIES)
        return attn_fail(err, ATTN_ERR_UNSUPPORTED, "more than %d families accept a problem",
                         ATTN_SEARCH_FAMILIES);
    ATTN_TRY(attn_gen_source_hash(job->options->gen, name, &family->source, err));
    ATTN_TRY(attn_space_open(job->options->gen, name, job->problem, &job->lane->device,
                             &family->space, err));
    attn_status status =
        job->options->config ? ATTN_OK : attn_space_admits(family->space, job->problem, err);
    if (status != ATTN_OK) {
        attn_space_close(family->space);
        return status;
    }
    job->families++;
    return add_points(job, family, err);
}

/* A broken family, or one that does not accept the problem, does not stop the others. */
static bool stops(attn_status status) {
    return status == ATTN_ERR_NOMEM || status == ATTN_ERR_INTERNAL;
}

attn_status attn_job_open_space(attn_job *job, attn_error *err) {
    attn_gen *gen = job->options->gen;
    attn_str reasons = ATTN_STR_INIT;
    attn_family_info info;
    attn_status status = ATTN_OK;
    for (size_t i = 0; status == ATTN_OK && i < attn_gen_family_count(gen); i++) {
        attn_error failure = ATTN_ERROR_INIT;
        const char *name = attn_gen_family_name(gen, i);
        status = attn_gen_family(gen, name, &info, &failure);
        if (status == ATTN_OK && !wanted(job, &info))
            continue;
        if (status == ATTN_OK)
            status = add_family(job, &info, &failure);
        if (status == ATTN_OK)
            continue;
        if (status == ATTN_ERR_TEMPLATE) {
            attn_job_note(job, failure.line);
            attn_job_refuse(job, failure.line);
            job->faulty = true;
        }
        attn_str_append_f(&reasons, "%s%s", reasons.size ? "; " : "", failure.line); /* names it */
        status = stops(status) ? attn_fail(err, status, "%s", failure.line) : ATTN_OK;
    }
    if (status == ATTN_OK && job->families == 0)
        status = attn_fail(err, ATTN_ERR_NOT_ACCEPTED, "%s",
                           reasons.size ? attn_str_text(&reasons) : "there is no family for it");
    attn_str_free(&reasons);
    return status;
}

/*-*** Where to begin ********************************************/

size_t attn_job_default(const attn_job *job, size_t point) {
    return job->family[job->space.point[point].family].first_point;
}

/* What a configuration does not say is the default's: it may be older than a parameter. */
size_t attn_job_point(const attn_job *job, const attn_db_row *row) {
    attn_error ignored = ATTN_ERROR_INIT;
    for (size_t i = 0; i < job->families; i++) {
        const attn_family *family = &job->family[i];
        if (strcmp(family->name, row->variant.family) != 0 ||
            family->first_point == ATTN_SEARCH_END)
            continue;
        attn_config config = job->space.point[family->first_point].config;
        if (attn_config_parse(family->space, row->variant.config, &config, &ignored) == ATTN_OK)
            return attn_search_space_find(&job->space, i, &config);
    }
    return ATTN_SEARCH_END;
}

struct near {
    const attn_db_row *row;
    double distance;
};

static int compare_near(const void *a, const void *b) {
    const struct near *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return strcmp(x->row->id.text, y->row->id.text);
}

/* The nearest winners of the class on this architecture, the problem's own first. */
static attn_status add_winners(attn_job *job, attn_db *db, attn_error *err) {
    char class_text[ATTN_CLASS_TEXT];
    attn_class_print(job->problem, class_text);
    const attn_db_filter filter = {
        .class_text = class_text, .device = &job->lane->device, .same_arch = true, .winners = true};
    attn_db_rows rows = {0};
    if (!db)
        return ATTN_OK;
    ATTN_TRY(attn_db_find(db, &filter, &rows, err));
    struct near *near = calloc(rows.count + 1, sizeof *near);
    attn_status status = near ? ATTN_OK : attn_fail_nomem(err);
    for (size_t i = 0; near && i < rows.count; i++)
        near[i] =
            (struct near){&rows.row[i], attn_problem_distance(job->problem, &rows.row[i].problem)};
    if (near)
        qsort(near, rows.count, sizeof *near, compare_near);
    for (size_t i = 0; near && status == ATTN_OK && i < rows.count && i < SEEDS_MAX; i++) {
        size_t point = attn_job_point(job, near[i].row);
        if (point != ATTN_SEARCH_END) /* valid here and now */
            status = attn_points_add(&job->first, point, err);
    }
    free(near);
    attn_db_rows_free(&rows);
    return status;
}

/* The families' defaults, the one that the library would run first in front: a short budget may not
 * come to the others. */
static attn_status add_defaults(attn_job *job, attn_error *err) {
    bool added[ATTN_SEARCH_FAMILIES] = {false};
    for (size_t n = 0; n < job->families; n++) {
        size_t best = job->families;
        for (size_t i = 0; i < job->families; i++)
            if (!added[i] &&
                (best == job->families || job->family[i].preference > job->family[best].preference))
                best = i;
        added[best] = true;
        if (job->family[best].first_point != ATTN_SEARCH_END)
            ATTN_TRY(attn_points_add(&job->first, job->family[best].first_point, err));
    }
    return ATTN_OK;
}

attn_status attn_job_open_search(attn_job *job, attn_error *err) {
    const attn_tune_options *o = job->options;
    ATTN_TRY(add_defaults(job, err));
    if (!o->fresh && !o->config && !o->verify_only) {
        ATTN_TRY(add_winners(job, o->db, err));
        ATTN_TRY(add_winners(job, o->system, err));
    }
    job->summary->candidates = job->space.count;
    return attn_search_open(job->lane->strategy, &job->space, o->seed, &job->search, err);
}

void attn_job_close_space(attn_job *job) {
    attn_search_close(job->search);
    attn_search_space_free(&job->space);
    for (size_t i = 0; i < job->families; i++)
        attn_space_close(job->family[i].space);
    free(job->first.at);
    free(job->late.at);
}
