/* gen_lint.c: is every parameter of a family read, every value reachable, every pair of values a
 * difference?
 *
 * A family is looked at in cases: a class of problems on a device profile. What one case shows is
 * settled; the next ones are asked only for what is left, up to bounds on the work. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen_internal.h"

enum {
    RENDERS_MAX = 20000,
    COMPILES_MAX = 2000,
    FIND_STEPS = 200000, /* of one search for a configuration with a given value */
    BASES = 6,           /* configurations of a case around which values are compared */
    TRIES = 100
};

struct lint {
    attn_gen *gen;
    attn_family_info family;
    char name[96];    /* of its space file */
    const char *file; /* where that is */
    attn_lint_compile *compile;
    attn_lint_report *report;
    void *user;
    size_t faults;
    size_t accepted; /* cases */
    bool specialises;
    size_t renders, compiles, uncompiled;
    uint64_t random;
    /* What is settled. Names are kept for the report, since every case has a space of its own. */
    size_t params;
    attn_param param[ATTN_PARAMS_MAX];
    uint64_t read;                                        /* by parameter */
    uint64_t reached[ATTN_PARAMS_MAX];                    /* by parameter: values */
    uint64_t compared[ATTN_PARAMS_MAX][ATTN_VALUES_MAX];  /* by parameter and value: values */
    uint64_t differing[ATTN_PARAMS_MAX][ATTN_VALUES_MAX]; /* in code or launch record */
    uint64_t by_option[ATTN_PARAMS_MAX][ATTN_VALUES_MAX]; /* in options, and maybe in code */
};

/* One value of the parameter under comparison, rendered. */
struct sample {
    bool valid;
    bool compiled;
    attn_variant variant;
    attn_hash code;
};

static uint64_t all_values(const attn_param *param) {
    return param->values == 64 ? UINT64_MAX : ((uint64_t)1 << param->values) - 1;
}

static void say(struct lint *l, bool fault, const char *format, ...) ATTN_PRINTF(3, 4);

static void say(struct lint *l, bool fault, const char *format, ...) {
    char line[512];
    va_list args;
    int n = snprintf(line, sizeof line, "%s: %s", l->file, fault ? "" : "note: ");
    va_start(args, format);
    (void)vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    l->faults += fault;
    l->report(l->user, line);
}

/*-*** Rule 1 and 3: reads and differences ***********************/

static attn_status render(struct lint *l, attn_space *space, const attn_config *config,
                          attn_variant *variant, attn_error *err) {
    uint64_t reads = 0;
    attn_status st = attn_space_render_noting(space, config, variant, &reads, err);
    l->renders++;
    l->read |= reads;
    return st;
}

/* A variant that cannot be compiled here (another architecture, no compiler) tells nothing. */
static attn_status compile_sample(struct lint *l, const attn_device_info *device, struct sample *s,
                                  attn_error *err) {
    if (s->compiled)
        return ATTN_OK;
    s->compiled = true;
    l->compiles++;
    attn_status st = l->compile(l->user, &s->variant, device, &s->code, err);
    if (st == ATTN_ERR_COMPILE && l->uncompiled++ == 0)
        say(l, false, "%s does not compile for %s", s->variant.config, device->arch);
    if (st != ATTN_ERR_COMPILE && st != ATTN_ERR_NO_TOOL && st != ATTN_ERR_UNSUPPORTED)
        return st;
    s->code = (attn_hash){0, 0};
    return ATTN_OK;
}

/* Whether the values i and j of a parameter are still worth comparing. */
static bool open_pair(const struct lint *l, size_t param, size_t i, size_t j) {
    return !(l->differing[param][i] >> j & 1);
}

static bool open_value(const struct lint *l, size_t param, size_t i) {
    for (size_t j = 0; j < l->param[param].values; j++)
        if (j != i && open_pair(l, param, i < j ? i : j, i < j ? j : i))
            return true;
    return false;
}

static attn_status compare(struct lint *l, const attn_device_info *device, size_t param,
                           struct sample *samples, size_t i, size_t j, attn_error *err) {
    struct sample *a = &samples[i], *b = &samples[j];
    uint64_t bit = (uint64_t)1 << j;
    static const attn_hash none = {0, 0};
    if (strcmp(a->variant.launch, b->variant.launch) != 0) {
        l->differing[param][i] |= bit;
        return ATTN_OK;
    }
    if (strcmp(a->variant.options, b->variant.options) != 0)
        l->by_option[param][i] |= bit;
    else if (strcmp(a->variant.source, b->variant.source) == 0) {
        l->compared[param][i] |= bit;
        return ATTN_OK;
    }
    if (l->compiles >= COMPILES_MAX)
        return ATTN_OK;
    ATTN_TRY(compile_sample(l, device, a, err));
    ATTN_TRY(compile_sample(l, device, b, err));
    if (attn_hash_equal(a->code, none) || attn_hash_equal(b->code, none))
        return ATTN_OK;
    l->compared[param][i] |= bit;
    if (!attn_hash_equal(a->code, b->code))
        l->differing[param][i] |= bit;
    return ATTN_OK;
}

/* Renders the base with every value of one parameter that is not settled, and compares them. */
static attn_status vary(struct lint *l, attn_space *space, const attn_device_info *device,
                        const attn_config *base, size_t param, attn_error *err) {
    struct sample *samples = calloc(ATTN_VALUES_MAX, sizeof *samples);
    attn_config config = *base;
    attn_status st = samples ? ATTN_OK : attn_fail_nomem(err);
    size_t values = samples ? l->param[param].values : 0;
    for (size_t i = 0; st == ATTN_OK && i < values; i++) {
        if (!open_value(l, param, i) && l->read >> param & 1)
            continue;
        config.value[param] = (uint8_t)i;
        st = attn_space_check(space, &config, err);
        samples[i].valid = st == ATTN_OK;
        if (st == ATTN_OK)
            st = render(l, space, &config, &samples[i].variant, err);
        else if (st == ATTN_ERR_INVALID)
            st = ATTN_OK;
    }
    for (size_t i = 0; st == ATTN_OK && l->compile && i < values; i++)
        for (size_t j = i + 1; st == ATTN_OK && j < values; j++)
            if (samples[i].valid && samples[j].valid && open_pair(l, param, i, j))
                st = compare(l, device, param, samples, i, j, err);
    for (size_t i = 0; i < values; i++)
        attn_variant_free(&samples[i].variant);
    free(samples);
    return st;
}

static bool settled(const struct lint *l, size_t param) {
    bool open = !(l->read >> param & 1);
    for (size_t i = 0; l->compile && !open && i < l->param[param].values; i++)
        open = open_value(l, param, i);
    return !open;
}

static size_t below(struct lint *l, size_t n) {
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(l->random >> 33) % n;
}

/* A valid configuration at random; *found is false if TRIES draws were all rejected. */
static attn_status draw(struct lint *l, attn_space *space, attn_config *config, bool *found,
                        attn_error *err) {
    *found = false;
    for (int n = 0; n < TRIES && !*found; n++) {
        for (size_t i = 0; i < l->params; i++)
            config->value[i] = (uint8_t)below(l, l->param[i].values);
        attn_status st = attn_space_check(space, config, err);
        if (st != ATTN_OK && st != ATTN_ERR_INVALID)
            return st;
        *found = st == ATTN_OK;
    }
    return ATTN_OK;
}

static attn_status differences(struct lint *l, attn_space *space, const attn_device_info *device,
                               const attn_config *standard, attn_error *err) {
    attn_config base = *standard;
    bool found = true;
    for (int n = 0; n < BASES && found; n++) {
        size_t open = 0;
        for (size_t i = 0; i < l->params && l->renders < RENDERS_MAX; i++) {
            if (settled(l, i))
                continue;
            open++;
            ATTN_TRY(vary(l, space, device, &base, i, err));
        }
        if (open == 0)
            break;
        ATTN_TRY(draw(l, space, &base, &found, err));
    }
    return ATTN_OK;
}

/*-*** Rule 2: reachable values **********************************/

static attn_status reach(struct lint *l, attn_space *space, size_t param, size_t value,
                         attn_error *err) {
    uint64_t mask[ATTN_PARAMS_MAX];
    attn_config_list list;
    memset(mask, 0xff, sizeof mask);
    mask[param] = (uint64_t)1 << value;
    attn_status st = attn_space_list_masked(space, mask, 1, FIND_STEPS, &list, err);
    if (st == ATTN_ERR_TIMEOUT)
        return ATTN_OK;
    for (size_t i = 0; st == ATTN_OK && list.count > 0 && i < l->params; i++)
        l->reached[i] |= (uint64_t)1 << list.config[0].value[i];
    attn_config_list_free(&list);
    return st;
}

static attn_status reach_all(struct lint *l, attn_space *space, attn_error *err) {
    for (size_t i = 0; i < l->params; i++)
        for (size_t k = 0; k < l->param[i].values; k++)
            if (!(l->reached[i] >> k & 1))
                ATTN_TRY(reach(l, space, i, k, err));
    return ATTN_OK;
}

/*-*** The cases *************************************************/

static attn_status visit(struct lint *l, const attn_problem *problem,
                         const attn_device_info *device, attn_error *err) {
    attn_space *space;
    attn_config standard;
    attn_status st = attn_space_open(l->gen, l->family.name, problem, device, &space, err);
    if (st == ATTN_ERR_NOT_ACCEPTED)
        return ATTN_OK;
    ATTN_TRY(st);
    l->accepted++;
    l->specialises = strchr(space->class_text, ' ') != NULL;
    l->params = space->params;
    memcpy(l->param, space->param, sizeof l->param);
    st = attn_space_default(space, &standard, err);
    if (st == ATTN_OK)
        st = reach_all(l, space, err);
    if (st == ATTN_OK)
        st = differences(l, space, device, &standard, err);
    attn_space_close(space);
    return st;
}

/* The classes, each in a few shapes for families that specialise. Common ones come first. */
static attn_status visit_all(struct lint *l, attn_error *err) {
    static const int32_t dims[][2] = {{64, 64}, {128, 128}, {192, 128},
                                      {80, 80}, {256, 256}, {33, 33}};
    static const struct {
        int32_t heads_q, heads_kv, seq_q, seq_kv;
    } shapes[] = {{4, 4, 1024, 1024}, {8, 2, 1, 4096}, {4, 4, 48, 64}};
    static const attn_mask masks[] = {ATTN_MASK_NONE, ATTN_MASK_CAUSAL, ATTN_MASK_WINDOW,
                                      ATTN_MASK_CAUSAL_TL};
    enum { DIMS = 6, SHAPES = 3, MASKS = 4, DTYPES = 3, FEATURES = 4 };
    for (int n = 0; n < DIMS * SHAPES * MASKS * DTYPES * FEATURES; n++) {
        int dim = n / (DTYPES * MASKS) % DIMS, feature = n / (DTYPES * MASKS * DIMS) % FEATURES;
        int shape = n / (DTYPES * MASKS * DIMS * FEATURES), mask = n / DTYPES % MASKS;
        if (shape > 0 && l->accepted > 0 && !l->specialises)
            break;
        attn_problem problem = {.op = ATTN_OP_FORWARD,
                                .dtype = (attn_dtype)(n % DTYPES),
                                .batch = 1,
                                .heads_q = shapes[shape].heads_q,
                                .heads_kv = shapes[shape].heads_kv,
                                .seq_q = shapes[shape].seq_q,
                                .seq_kv = shapes[shape].seq_kv,
                                .head_dim = dims[dim][0],
                                .head_dim_v = dims[dim][1],
                                .mask = masks[mask],
                                .window_left = masks[mask] == ATTN_MASK_WINDOW ? 100 : 0,
                                .features = feature & 1 ? ATTN_FEATURE_LSE : 0,
                                .alignment = feature & 2 ? ATTN_A1 : ATTN_A16};
        for (size_t d = 0; d < l->gen->profiles; d++)
            if (strcmp(l->gen->profile[d].backend, l->family.backend) == 0)
                ATTN_TRY(visit(l, &problem, &l->gen->profile[d], err));
    }
    return ATTN_OK;
}

static void judge_pairs(struct lint *l, const attn_param *param, size_t p) {
    for (size_t i = 0; i < param->values; i++) {
        for (size_t j = i + 1; j < param->values; j++) {
            bool same = open_pair(l, p, i, j) && l->compared[p][i] >> j & 1;
            bool option = l->by_option[p][i] >> j & 1;
            if (same)
                say(l, !option, "%s=%s and %s=%s give the same machine code%s", param->name,
                    param->text[i], param->name, param->text[j],
                    option ? "" : ", options and launch record wherever they were compared");
        }
    }
}

static void judge(struct lint *l) {
    if (l->accepted == 0)
        say(l, true, "it accepts no class of problems on any device profile");
    for (size_t i = 0; i < l->params; i++) {
        const attn_param *param = &l->param[i];
        uint64_t missing = all_values(param) & ~l->reached[i];
        if (!(l->read >> i & 1))
            say(l, true, "%s is read by nothing: not the template, launch or options", param->name);
        for (size_t k = 0; k < param->values; k++)
            if (missing >> k & 1)
                say(l, true, "%s=%s is never valid", param->name, param->text[k]);
        judge_pairs(l, param, i);
    }
}

attn_status attn_gen_lint(attn_gen *gen, const char *family, attn_lint_compile *compile,
                          attn_lint_report *report, void *user, size_t *faults, attn_error *err) {
    struct lint *l = calloc(1, sizeof *l);
    *faults = 0;
    if (!l)
        return attn_fail_nomem(err);
    l->gen = gen;
    l->compile = compile;
    l->report = report;
    l->user = user;
    l->random = 1;
    attn_status st = attn_gen_family(gen, family, &l->family, err);
    if (st == ATTN_OK) {
        (void)snprintf(l->name, sizeof l->name, "spaces/%s.lua", l->family.name);
        l->file = attn_files_place(&gen->files, l->name);
        st = visit_all(l, err);
    }
    if (st == ATTN_OK)
        judge(l);
    if (st == ATTN_ERR_TEMPLATE) { /* the family's own fault: the one that ends the lint */
        report(user, err->line);
        l->faults++;
        st = ATTN_OK;
    }
    if (st == ATTN_OK) /* what single cases refused is no failure of the lint */
        *err = (attn_error)ATTN_ERROR_INIT;
    *faults = l->faults;
    free(l);
    return st;
}
