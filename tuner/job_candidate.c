/* job_candidate.c: one variant: identity, claim, build, and the end of its trial. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

/* More points than any core has: if no compiler is here for all of these, there is none. */
enum { UNBUILDABLE_MAX = 4096 };

/*-*** Toolchains ************************************************/

/* Identity and target, asked for once for each language and options. */
struct attn_toolchain {
    attn_toolchain *next;
    char *language, *options;
    char *identity; /* NULL: it is not there */
    char *missing;  /* why it cannot be used; NULL: it can */
    char *target;
};

static void free_toolchain(attn_toolchain *t) {
    free(t->language);
    free(t->options);
    free(t->identity);
    free(t->missing);
    free(t->target);
    free(t);
}

void attn_job_free_toolchains(attn_job *job) {
    while (job->toolchains) {
        attn_toolchain *next = job->toolchains->next;
        free_toolchain(job->toolchains);
        job->toolchains = next;
    }
}

static const attn_toolchain *known_toolchain(const attn_job *job, const attn_variant *variant) {
    const attn_toolchain *t = job->toolchains;
    while (t && (strcmp(t->language, variant->language) != 0 ||
                 strcmp(t->options, variant->options) != 0))
        t = t->next;
    return t;
}

/* What is wrong with the compiler of that identity, if that has turned out before. */
static const char *known_broken(const attn_job *job, const char *identity) {
    for (const attn_toolchain *t = job->toolchains; t; t = t->next)
        if (t->missing && t->identity && strcmp(t->identity, identity) == 0)
            return t->missing;
    return NULL;
}

static attn_status ask_toolchain(attn_job *job, const attn_variant *variant, attn_error *err) {
    const attn_backend *backend = job->lane->backend;
    attn_error failure = ATTN_ERROR_INIT;
    attn_str identity = ATTN_STR_INIT, target = ATTN_STR_INIT;
    attn_toolchain *t = calloc(1, sizeof *t);
    if (!t)
        return attn_fail_nomem(err);
    attn_status status =
        backend->toolchain(variant->language, variant->options, &identity, &failure);
    if (status == ATTN_OK)
        status = backend->target(&job->lane->device, variant->options, &target, &failure);
    const char *broken = status == ATTN_OK ? known_broken(job, attn_str_text(&identity)) : NULL;
    if (status != ATTN_OK)
        attn_job_note(job, failure.line);
    t->language = strdup(variant->language);
    t->options = strdup(variant->options);
    if (status != ATTN_OK || broken) {
        t->missing = strdup(broken ? broken : failure.line);
    } else {
        t->identity = attn_str_take(&identity);
        t->target = attn_str_take(&target);
    }
    attn_str_free(&identity);
    attn_str_free(&target);
    bool whole = t->missing || (t->identity && t->target);
    if (!t->language || !t->options || !whole) {
        free_toolchain(t);
        return attn_fail_nomem(err);
    }
    t->next = job->toolchains;
    job->toolchains = t;
    return ATTN_OK;
}

const char *attn_job_missing(const attn_job *job) {
    const char *missing = NULL;
    for (const attn_toolchain *t = job->toolchains; t; t = t->next) {
        if (!t->missing)
            return NULL;
        missing = t->missing;
    }
    return missing;
}

/*-*** Making one ************************************************/

static void free_candidate(attn_candidate *c) {
    attn_variant_free(&c->variant);
    free(c->target);
    free(c);
}

void attn_trial_result_init(attn_trial_result *result) {
    memset(result, 0, sizeof *result);
    result->median_ns = result->error_max = NAN;
    result->clock_mhz = result->power_w = result->temperature_c = NAN;
    result->registers = result->spills = result->smem = -1;
}

static attn_status identify(attn_job *job, attn_candidate *c, attn_error *err) {
    const attn_point *point = &job->space.point[c->point];
    ATTN_TRY(attn_space_render(job->family[point->family].space, &point->config, &c->variant, err));
    ATTN_TRY(attn_launch_parse(c->variant.launch, &c->launch, err));
    const attn_limit *broken = attn_limits_broken(&c->launch, job->problem);
    if (broken)
        return attn_fail(err, ATTN_ERR_NOT_FOUND, "not for this shape");
    if (attn_launch_fits(&c->launch, job->problem, err) != ATTN_OK) {
        attn_job_refuse(job, err->line);
        return ATTN_ERR_NOT_FOUND;
    }
    if (!known_toolchain(job, &c->variant))
        ATTN_TRY(ask_toolchain(job, &c->variant, err));
    const attn_toolchain *toolchain = known_toolchain(job, &c->variant);
    if (!toolchain || toolchain->missing) {
        bool hopeless = ++job->unbuildable >= UNBUILDABLE_MAX && attn_job_missing(job);
        return hopeless ? attn_fail(err, ATTN_ERR_NO_TOOL, "%s", attn_job_missing(job))
                        : attn_fail(err, ATTN_ERR_NOT_FOUND, "its compiler is not here");
    }
    c->toolchain = toolchain->identity;
    c->target = strdup(toolchain->target);
    if (!c->target)
        return attn_fail_nomem(err);
    c->build = attn_build_hash(c->variant.hash, c->toolchain, c->target);
    return ATTN_OK;
}

attn_status attn_candidate_make(attn_job *job, size_t point, attn_candidate **candidate,
                                attn_error *err) {
    attn_candidate *c = calloc(1, sizeof *c);
    *candidate = NULL;
    if (!c)
        return attn_fail_nomem(err);
    c->point = point;
    attn_trial_result_init(&c->result);
    attn_status status = identify(job, c, err);
    if (status != ATTN_OK) {
        free_candidate(c);
        if (status == ATTN_ERR_TEMPLATE || status == ATTN_ERR_INVALID) {
            attn_job_note(job, err->line);
            attn_job_refuse(job, err->line);
            job->faulty = true;
            status = ATTN_ERR_NOT_FOUND;
        }
        return status;
    }
    c->next = job->on_way;
    job->on_way = c;
    job->on_way_count++;
    job->moves++;
    *candidate = c;
    return ATTN_OK;
}

attn_trial_key attn_candidate_key(const attn_job *job, const attn_candidate *candidate) {
    const attn_point *point = &job->space.point[candidate->point];
    return (attn_trial_key){
        .device = &job->lane->device,
        .problem = job->problem,
        .variant = &candidate->variant,
        .toolchain = candidate->toolchain,
        .target = candidate->target,
        .source_hash = job->family[point->family].source,
        .build = candidate->build,
        .threads = (int32_t)attn_device_prop(&job->lane->device, "threads"),
        .mode = job->options->mode,
        .again = job->options->again,
    };
}

/* Candidates are linked newest first. */
attn_candidate *attn_candidate_oldest(const attn_job *job, attn_stage stage, size_t *count) {
    attn_candidate *found = NULL;
    *count = 0;
    for (attn_candidate *c = job->on_way; c; c = c->next) {
        if (c->stage == stage) {
            found = found && found->doubted && !c->doubted ? found : c;
            (*count)++;
        }
    }
    return found;
}

static bool in_hand(const attn_job *job, const attn_candidate *c) {
    bool asked = false;
    for (size_t i = 0; i < job->asked_count; i++)
        asked |= job->asked[i] == c;
    return asked || c->stage == ATTN_COMPILING;
}

attn_status attn_candidates_mark(attn_job *job, attn_error *err) {
    enum { AT_ONCE = 32 };
    attn_trial_mark mark[AT_ONCE];
    size_t count = 0;
    for (attn_candidate *c = job->on_way; c; c = c->next) {
        bool begun = in_hand(job, c);
        if (c->id.text[0] && begun != c->begun)
            mark[count++] = (attn_trial_mark){c->id, begun};
        c->begun = begun;
        if (count == AT_ONCE || (count > 0 && !c->next)) {
            ATTN_TRY(attn_db_trial_mark(job->options->db, mark, count, err));
            count = 0;
        }
    }
    return ATTN_OK;
}

attn_status attn_candidate_build(attn_job *job, attn_candidate *c, attn_error *err) {
    attn_error missing = ATTN_ERROR_INIT;
    attn_binary kept = ATTN_BINARY_INIT;
    attn_build build = {.language = c->variant.language,
                        .source = c->variant.source,
                        .options = c->variant.options,
                        .target = c->target};
    attn_hash_print(c->build, build.key);
    if (job->options->db &&
        attn_db_binary_get(job->options->db, c->build, &kept, &missing) == ATTN_OK)
        ATTN_TRY(attn_builders_keep(job->lane->builders, &kept, err));
    return attn_builders_add(job->lane->builders, job->lane->backend, &build, c, err);
}

/*-*** Ending one ************************************************/

static void unlink_candidate(attn_job *job, attn_candidate *c) {
    attn_candidate **link = &job->on_way;
    while (*link && *link != c)
        link = &(*link)->next;
    if (!*link)
        return;
    *link = c->next;
    job->on_way_count--;
    job->moves++;
}

static attn_status remember(attn_job *job, const attn_candidate *c, attn_error *err) {
    if (job->passed_count == job->passed_capacity) {
        size_t capacity = job->passed_capacity ? job->passed_capacity * 2 : 64;
        attn_passed *passed = realloc(job->passed, capacity * sizeof *passed);
        if (!passed)
            return attn_fail_nomem(err);
        job->passed = passed;
        job->passed_capacity = capacity;
    }
    job->passed[job->passed_count++] = (attn_passed){.point = c->point,
                                                     .ns = c->result.median_ns,
                                                     .registers = c->result.registers,
                                                     .smem = c->result.smem,
                                                     .id = c->id};
    return ATTN_OK;
}

/* A point counts once, as what it has come to last. */
static void count(attn_job *job, const attn_candidate *c) {
    attn_tune_summary *s = job->summary;
    uint8_t *before = job->before ? &job->before[c->point] : NULL;
    if (before && *before == ATTN_CUT_OFF) {
        job->cut_off--;
    } else if (before && *before) {
        s->tried--;
        s->outcome[*before - 1]--;
    }
    if (before)
        *before = (uint8_t)(c->result.outcome + 1);
    s->tried++;
    s->outcome[c->result.outcome]++;
}

/* Tells everybody but the database what came of it. */
static attn_status tell(attn_job *job, const attn_candidate *c, bool repeated, attn_error *err) {
    const attn_tune_events *events = &job->options->events;
    const attn_tune_trial trial = {&job->lane->device, job->problem, c->variant.family,
                                   c->variant.config,  &c->result,   repeated};
    bool ok = c->result.outcome == ATTN_OUTCOME_OK;
    bool timed = ok && c->result.median_ns >= 0;
    count(job, c);
    attn_search_tell(job->search, c->point, timed ? c->result.median_ns : INFINITY);
    if (timed && !repeated && isnan(job->best_ns))
        job->summary->first_s = (double)(attn_now_ns() - job->begin_ns) * 1e-9;
    if (timed && !(job->best_ns <= c->result.median_ns))
        job->best_ns = c->result.median_ns;
    if (events->trial)
        events->trial(events->user, &trial);
    return timed ? remember(job, c, err) : ATTN_OK;
}

attn_status attn_candidate_end(attn_job *job, attn_candidate *c, attn_error *err) {
    attn_db *db = job->options->db;
    attn_status status = ATTN_OK;
    if (db && c->id.text[0])
        status = attn_db_trial_end(db, &c->id, &c->result, err);
    if (status == ATTN_OK)
        status = tell(job, c, false, err);
    if (status == ATTN_OK && db && c->id.text[0] && c->binary && job->best_ns > 0 &&
        c->result.outcome == ATTN_OUTCOME_OK && c->result.median_ns <= 1.1 * job->best_ns)
        status = attn_db_binary_put(db, c->build, c->binary, err);
    unlink_candidate(job, c);
    free_candidate(c);
    return status;
}

attn_status attn_candidate_repeat(attn_job *job, attn_candidate *c, attn_error *err) {
    attn_status status = tell(job, c, true, err);
    unlink_candidate(job, c);
    free_candidate(c);
    return status;
}

attn_status attn_candidate_unbuildable(attn_job *job, attn_candidate *c, const char *line,
                                       attn_error *err) {
    if (!known_broken(job, c->toolchain))
        attn_job_note(job, line);
    for (attn_toolchain *t = job->toolchains; t; t = t->next) {
        if (t->missing || strcmp(t->identity, c->toolchain) != 0)
            continue;
        if (!(t->missing = strdup(line)))
            return attn_fail_nomem(err);
    }
    job->unbuildable++;
    attn_search_tell(job->search, c->point, INFINITY);
    return attn_candidate_drop(job, c, err);
}

attn_status attn_candidate_drop(attn_job *job, attn_candidate *c, attn_error *err) {
    attn_status status = ATTN_OK;
    if (job->options->db && c->id.text[0] && !job->finals)
        status = attn_db_trial_drop(job->options->db, &c->id, err);
    attn_builders_forget(job->lane->builders, c);
    unlink_candidate(job, c);
    free_candidate(c);
    return status;
}
