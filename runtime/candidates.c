/* candidates.c: what could run a class of problems on a device.
 *
 * The winners that the user's and the shipped database hold for the class (on this device, or on
 * another of its architecture), the families' defaults, and the reference. What is stored with its
 * binary comes first: where the winner that the problem gets is among that, no compiler is asked.
 * Else all of them are loaded, once, so that no later problem of the class waits for a compiler.
 * They are gathered as if all were to compile, and then compiled at once; where one fails, all are
 * gathered again, with that known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "stale.h"

/* A default depends on the sizes, and a class is made for all that come: beside the families'
 * defaults for the problem at hand it has those for these, each of the first family that serves it.
 */
static const struct {
    int32_t batch, seq_q, seq_kv;
} typical[] = {{32, 512, 512}, {8, 2048, 2048}, {2, 8192, 8192}, {1, 1, 8192}};

enum { TYPICAL = sizeof typical / sizeof typical[0] };

/* What is gathered while a class is made. */
struct maker {
    attn_context *ctx;
    attn_runtime_device *device;
    const attn_problem *problem;
    attn_effort effort;
    bool lean; /* load only what is stored with its binary */
    attn_class *entry;
    size_t capacity;
    bool has_typical[TYPICAL];
    attn_error failure; /* the last candidate that could not be loaded */
};

static void free_candidate(attn_candidate *c) {
    free(c->family);
    free(c->config);
}

void attn_class_free(attn_class *entry) {
    if (!entry)
        return;
    for (size_t i = 0; i < entry->count; i++)
        free_candidate(&entry->candidate[i]);
    free(entry);
}

static attn_status add(struct maker *m, const char *family, const char *config, attn_candidate c,
                       attn_error *err) {
    attn_class *entry = m->entry;
    if (!entry || entry->count == m->capacity) {
        size_t capacity = entry ? 2 * m->capacity : 8;
        entry = realloc(entry, sizeof *entry + capacity * sizeof entry->candidate[0]);
        if (!entry)
            return attn_fail_nomem(err);
        if (!m->entry) {
            entry->count = 0;
            entry->lean = false;
        }
        m->entry = entry;
        m->capacity = capacity;
    }
    c.family = strdup(family);
    c.config = strdup(config);
    if (!c.family || !c.config) {
        free_candidate(&c);
        return attn_fail_nomem(err);
    }
    entry->candidate[entry->count++] = c;
    return ATTN_OK;
}

/* Renders a configuration (NULL: the default) of a family for the class. */
static attn_status render(struct maker *m, const char *family, const attn_problem *problem,
                          const char *config, attn_variant *variant, attn_error *err) {
    attn_gen *gen;
    ATTN_TRY(attn_context_gen(m->ctx, &gen, err));
    return attn_gen_render(gen, family, problem, &m->device->info, &config, config ? 1 : 0, variant,
                           err);
}

/* What a rendered variant tells of its row. On another device of the architecture it may be another
 * one though no file has changed. */
static void judge_rendered(const attn_db_row *row, const attn_variant *variant,
                           const char *toolchain, attn_candidate *c) {
    if (c->stale[0])
        return;
    if (!attn_hash_equal(variant->hash, row->variant.hash))
        (void)snprintf(c->stale, sizeof c->stale, "source: it is another one on this device");
    else if (strcmp(toolchain, row->toolchain) != 0)
        (void)snprintf(c->stale, sizeof c->stale, "toolchain: was %.90s", row->toolchain);
}

/* A row whose binary is not stored: rendered and compiled again. */
static attn_status load_rendered(struct maker *m, const attn_db_row *row, attn_candidate *c,
                                 attn_error *err) {
    attn_variant variant = {0};
    attn_str toolchain = ATTN_STR_INIT;
    attn_status status =
        render(m, row->variant.family, &row->problem, row->variant.config, &variant, err);
    if (status == ATTN_OK)
        status = attn_kernel_rendered(m->device, &variant, &c->loaded, &toolchain, err);
    if (status == ATTN_OK)
        judge_rendered(row, &variant, attn_str_text(&toolchain), c);
    attn_variant_free(&variant);
    attn_str_free(&toolchain);
    return status;
}

/* Staleness that can be told without a compiler. */
static void judge_row(struct maker *m, const attn_db_row *row, attn_candidate *c) {
    attn_gen *gen;
    attn_error ignored = ATTN_ERROR_INIT;
    const char *source = NULL;
    if (attn_context_gen(m->ctx, &gen, &ignored) == ATTN_OK)
        source = attn_stale_source(gen, &m->device->info, row);
    if (strcmp(row->environment, m->device->info.environment) != 0)
        (void)snprintf(c->stale, sizeof c->stale, "environment: was %.90s", row->environment);
    else if (source)
        (void)snprintf(c->stale, sizeof c->stale, "source: %s", source);
}

/* Orders rows of one step: stale after fresh, hot after cold, far thread counts after near. */
static double penalty_of(const struct maker *m, const attn_db_row *row, bool stale) {
    int32_t workers = m->device->backend->workers(m->device->handle);
    double threads = 0;
    if (row->threads > 0 && workers > 0)
        threads = fabs(log2((double)row->threads / workers));
    return (stale ? 4 : 0) + (row->mode == ATTN_HOT ? 2 : 0) + threads / (1 + threads);
}

static attn_status add_row(struct maker *m, attn_db *db, const attn_db_row *row, bool system,
                           attn_error *err) {
    attn_candidate c = {.problem = row->problem, .expected_ns = row->final_ns};
    attn_error problem = ATTN_ERROR_INIT;
    attn_hash here = attn_device_hash(&m->device->info);
    bool same = attn_hash_equal(row->device, here);
    c.exact = !same ? ATTN_ORIGIN_ARCH : system ? ATTN_ORIGIN_SYSTEM : ATTN_ORIGIN_USER;
    c.near = !same ? ATTN_ORIGIN_ARCH : system ? ATTN_ORIGIN_SYSTEM_NEAR : ATTN_ORIGIN_USER_NEAR;
    attn_candidate_sizes(&row->problem, c.log_size);
    judge_row(m, row, &c);
    attn_status status = ATTN_ERR_NOT_FOUND;
    if (row->has_binary)
        status = attn_kernel_stored(m->device, db, row, &c.loaded, &problem);
    if (status != ATTN_OK && m->effort > ATTN_CACHED && !m->lean)
        status = load_rendered(m, row, &c, &problem);
    if (status != ATTN_OK && !m->lean) {
        if (problem.status != ATTN_OK)
            m->failure = problem;
        return ATTN_OK;
    }
    c.penalty = penalty_of(m, row, c.stale[0] != '\0');
    return add(m, row->variant.family, row->variant.config, c, err);
}

static bool same_problem_and_device(const attn_db_row *a, const attn_db_row *b) {
    char text_a[ATTN_PROBLEM_TEXT], text_b[ATTN_PROBLEM_TEXT];
    (void)attn_problem_print(&a->problem, text_a, sizeof text_a);
    (void)attn_problem_print(&b->problem, text_b, sizeof text_b);
    return attn_hash_equal(a->device, b->device) && strcmp(text_a, text_b) == 0;
}

/* Of the rows of one problem (other modes and thread counts) only the best is worth loading. */
static bool is_best_of_its_problem(const struct maker *m, const attn_db_rows *rows, size_t at) {
    double penalty = penalty_of(m, &rows->row[at], false);
    for (size_t i = 0; i < rows->count; i++) {
        double other = penalty_of(m, &rows->row[i], false);
        if (i != at && same_problem_and_device(&rows->row[i], &rows->row[at]) &&
            (other < penalty || (other == penalty && i < at)))
            return false;
    }
    return true;
}

/* A database that cannot be read leaves the class to what else there is. */
static attn_status add_database(struct maker *m, const char *path, attn_db_mode mode,
                                attn_error *err) {
    attn_db *db = NULL;
    attn_db_rows rows = {0};
    attn_error problem = ATTN_ERROR_INIT;
    char class_text[ATTN_CLASS_TEXT];
    if (!path)
        return ATTN_OK;
    attn_class_print(m->problem, class_text);
    attn_db_filter filter = {.class_text = class_text,
                             .device = &m->device->info,
                             .same_arch = true,
                             .winners = true,
                             .ended = true};
    attn_status status = attn_db_open(path, mode, &db, &problem);
    if (status == ATTN_OK)
        status = attn_db_find(db, &filter, &rows, &problem);
    if (status != ATTN_OK && status != ATTN_ERR_NOT_FOUND)
        m->failure = problem;
    status = ATTN_OK;
    for (size_t i = 0; i < rows.count && status == ATTN_OK; i++)
        if (is_best_of_its_problem(m, &rows, i))
            status = add_row(m, db, &rows.row[i], mode == ATTN_DB_SYSTEM, err);
    attn_db_rows_free(&rows);
    attn_db_close(db);
    return status;
}

/* One with that configuration that is loaded: its kernel serves again. Not one of another device,
 * for which the same configuration may be rendered otherwise. */
static const attn_candidate *find(const struct maker *m, const char *family, const char *config) {
    for (size_t i = 0; m->entry && i < m->entry->count; i++) {
        const attn_candidate *c = &m->entry->candidate[i];
        if (c->loaded && !c->stale[0] && c->exact != ATTN_ORIGIN_ARCH &&
            strcmp(c->family, family) == 0 && strcmp(c->config, config) == 0)
            return c;
    }
    return NULL;
}

/* The family's default for a problem of the class, if it admits that and it compiles. rank: of the
 * family among the others. *fit: OK; NOT_ACCEPTED, by the family or the kernel's limits; else why
 * there is no kernel. */
static attn_status add_default(struct maker *m, const char *family, const attn_problem *problem,
                               attn_origin origin, int rank, attn_status *fit, attn_error *err) {
    attn_variant variant = {0};
    attn_str toolchain = ATTN_STR_INIT;
    attn_error failure = ATTN_ERROR_INIT;
    attn_candidate c = {.exact = origin, .near = origin, .penalty = rank, .expected_ns = NAN};
    attn_candidate_sizes(problem, c.log_size);
    attn_status status = render(m, family, problem, NULL, &variant, &failure);
    if (status == ATTN_OK) {
        const attn_candidate *same = find(m, family, variant.config);
        c.loaded = same ? same->loaded : NULL;
        if (!same)
            status = attn_kernel_rendered(m->device, &variant, &c.loaded, &toolchain, &failure);
    }
    if (status != ATTN_OK && status != ATTN_ERR_NOT_ACCEPTED)
        m->failure = failure;
    *fit = status;
    if (status == ATTN_OK && attn_limits_broken(&c.loaded->launch, problem))
        *fit = ATTN_ERR_NOT_ACCEPTED;
    status = status == ATTN_OK ? add(m, family, variant.config, c, err) : ATTN_OK;
    attn_variant_free(&variant);
    attn_str_free(&toolchain);
    return status;
}

static attn_status add_family(struct maker *m, const char *family, attn_origin origin, int rank,
                              attn_error *err) {
    attn_status fit;
    ATTN_TRY(add_default(m, family, m->problem, origin, rank, &fit, err));
    for (size_t i = 0; i < TYPICAL && (fit == ATTN_OK || fit == ATTN_ERR_NOT_ACCEPTED); i++) {
        attn_problem other = *m->problem;
        other.batch = typical[i].batch;
        other.seq_q = typical[i].seq_q;
        other.seq_kv = typical[i].seq_kv;
        if (m->has_typical[i])
            continue;
        ATTN_TRY(add_default(m, family, &other, origin, rank, &fit, err));
        m->has_typical[i] = fit == ATTN_OK;
    }
    return ATTN_OK;
}

/* The next family after (preference, name) = (below, last), the highest preference first. */
static attn_status next_family(struct maker *m, attn_gen *gen, bool reference, int32_t below,
                               const char *last, attn_family_info *next) {
    bool found = false;
    for (size_t i = 0; i < attn_gen_family_count(gen); i++) {
        attn_family_info f;
        attn_error problem = ATTN_ERROR_INIT;
        if (attn_gen_family(gen, attn_gen_family_name(gen, i), &f, &problem) != ATTN_OK) {
            m->failure = problem;
            continue;
        }
        bool after = f.preference < below || (f.preference == below && strcmp(f.name, last) > 0);
        if (after && f.reference == reference && strcmp(f.backend, m->device->backend->name) == 0 &&
            (!found || f.preference > next->preference)) {
            *next = f;
            found = true;
        }
    }
    return found ? ATTN_OK : ATTN_ERR_NOT_FOUND;
}

/* Was a candidate added to the first `before` that takes every shape? */
static bool takes_all(const struct maker *m, size_t before) {
    for (size_t i = before; m->entry && i < m->entry->count; i++)
        if (m->entry->candidate[i].loaded->launch.limits == 0)
            return true;
    return false;
}

/* The families of the backend: those that are tuned, or the references. None is compiled that comes
 * behind one that takes every shape, since it would not be chosen. */
static attn_status add_families(struct maker *m, bool reference, attn_error *err) {
    attn_gen *gen;
    attn_origin origin = reference ? ATTN_ORIGIN_REFERENCE : ATTN_ORIGIN_DEFAULT;
    if (m->effort == ATTN_CACHED || attn_context_gen(m->ctx, &gen, &m->failure) != ATTN_OK)
        return ATTN_OK;
    attn_family_info family = {.name = "", .preference = INT32_MAX};
    for (int rank = 0;
         next_family(m, gen, reference, family.preference, family.name, &family) == ATTN_OK;
         rank++) {
        size_t before = m->entry ? m->entry->count : 0;
        ATTN_TRY(add_family(m, family.name, origin, rank, err));
        if (takes_all(m, before))
            break;
    }
    return ATTN_OK;
}

/* The last resort: compiled into the library where the backend can do that, else a family. */
static attn_status add_reference(struct maker *m, attn_error *err) {
    attn_candidate c = {
        .exact = ATTN_ORIGIN_REFERENCE, .near = ATTN_ORIGIN_REFERENCE, .expected_ns = NAN};
    char family[32];
    if (!m->device->backend->reference)
        return add_families(m, true, err);
    if (attn_kernel_reference(m->device, &c.loaded, &m->failure) != ATTN_OK)
        return ATTN_OK;
    (void)snprintf(family, sizeof family, "%s/reference_forward", m->device->backend->name);
    return add(m, family, "", c, err);
}

static attn_status add_databases(struct maker *m, attn_error *err) {
    ATTN_TRY(add_database(m, m->ctx->user_path, ATTN_DB_READ, err));
    return add_database(m, m->ctx->system_path, ATTN_DB_SYSTEM, err);
}

static void start_anew(struct maker *m) {
    attn_class_free(m->entry);
    *m = (struct maker){
        .ctx = m->ctx, .device = m->device, .problem = m->problem, .effort = m->effort};
}

/* *serves: what is stored with its binary is enough; else nothing has been gathered. */
static attn_status gather_stored(struct maker *m, bool *serves, attn_error *err) {
    m->lean = true;
    ATTN_TRY(add_databases(m, err));
    if (m->entry)
        m->entry->lean = true;
    *serves = m->entry && attn_class_pick(m->entry, m->problem).serves;
    if (!*serves)
        start_anew(m);
    return ATTN_OK;
}

static attn_status gather(struct maker *m, bool whole, attn_error *err) {
    bool serves = false;
    if (!whole)
        ATTN_TRY(gather_stored(m, &serves, err));
    if (serves)
        return ATTN_OK;
    ATTN_TRY(add_databases(m, err));
    ATTN_TRY(add_families(m, false, err));
    ATTN_TRY(add_reference(m, err));
    if (m->entry)
        return ATTN_OK;
    if (m->failure.status != ATTN_OK)
        return attn_fail(err, ATTN_ERR_NO_KERNEL, "no kernel: %.900s", m->failure.line);
    return attn_fail(err, ATTN_ERR_NO_KERNEL,
                     "nothing is stored for this class of problems, and the effort is CACHED");
}

/* Ends, since each time one build more is known to fail. As many compilers at once as the context
 * may use cores, whatever the device. */
static attn_status gather_compiled(struct maker *m, bool whole, attn_error *err) {
    const attn_runtime_device *cpu = attn_context_device(m->ctx, ATTN_DEVICE_CPU);
    int32_t threads = cpu ? cpu->backend->workers(cpu->handle) : 1;
    do {
        start_anew(m);
        ATTN_TRY(gather(m, whole, err));
    } while (!attn_kernels_compile(m->device, threads));
    return ATTN_OK;
}

attn_status attn_class_make(attn_context *ctx, attn_runtime_device *device,
                            const attn_problem *problem, attn_effort effort, bool whole,
                            attn_class **entry, attn_error *err) {
    struct maker m = {.ctx = ctx, .device = device, .problem = problem, .effort = effort};
    attn_status status = gather_compiled(&m, whole, err);
    attn_kernels_forget(device);
    if (status != ATTN_OK) {
        attn_class_free(m.entry);
        return status;
    }
    if (m.failure.status != ATTN_OK)
        attn_warn(ctx, &m.failure);
    m.entry->key = attn_class_key_of(problem);
    m.entry->effort = effort;
    *entry = m.entry;
    return ATTN_OK;
}
