/* db_record.c: a record of the text form becomes a row. */
#include "db_internal.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "core/launch.h"
#include "db_text.h"

/* NULL if absent. */
static const char *value(const attn_text_record *r, int field) {
    return r->present[field] ? attn_str_text(&r->values[field]) : NULL;
}

static attn_status bad_hash(attn_error *err, const char *what, const char *text) {
    return attn_fail(err, ATTN_ERR_INVALID, "%s '%s' is not 32 hex digits", what, text);
}

static attn_status read_hash(const char *what, const char *text, attn_hash *hash, attn_error *err) {
    return attn_hash_parse(text, hash) ? ATTN_OK : bad_hash(err, what, text);
}

static attn_status put_device(attn_db *db, const attn_text_record *r, attn_error *err) {
    int64_t row;
    attn_hash hash;
    ATTN_TRY(read_hash("device", attn_str_text(&r->name), &hash, err));
    attn_device_info *info = malloc(sizeof *info);
    if (!info)
        return attn_fail_nomem(err);
    attn_status status = attn_device_parse(value(r, DEVICE_INFO), info, err);
    if (status == ATTN_OK && !attn_hash_equal(hash, attn_device_hash(info)))
        status = attn_fail(err, ATTN_ERR_INVALID, "the device's hash does not fit its description");
    if (status == ATTN_OK)
        status = attn_db_put_device(db, info, &row, err);
    free(info);
    return status;
}

static attn_status read_problem(const char *text, attn_problem *problem, attn_error *err) {
    char why[256];
    if (attn_problem_parse(text, problem, why, sizeof why) != ATTN_OK)
        return attn_fail(err, ATTN_ERR_INVALID, "%s", why);
    return ATTN_OK;
}

static attn_status put_problem(attn_db *db, const attn_text_record *r, attn_error *err) {
    int64_t row;
    attn_problem problem;
    ATTN_TRY(read_problem(attn_str_text(&r->name), &problem, err));
    return attn_db_put_problem(db, &problem, &row, err);
}

static attn_status read_abi(const char *text, int64_t *abi, attn_error *err) {
    char *end;
    errno = 0;
    *abi = strtoll(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9')
        return attn_fail(err, ATTN_ERR_INVALID, "abi '%.40s' is not a whole number", text);
    return ATTN_OK;
}

static attn_status put_variant(attn_db *db, const attn_text_record *r, attn_error *err) {
    int64_t row, abi;
    attn_hash source_hash;
    attn_launch launch;
    attn_variant v = {.family = r->values[VARIANT_FAMILY].data,
                      .config = r->values[VARIANT_CONFIG].data,
                      .class_text = r->values[VARIANT_CLASS].data,
                      .language = r->values[VARIANT_LANGUAGE].data,
                      .options = r->values[VARIANT_OPTIONS].data,
                      .launch = r->values[VARIANT_LAUNCH].data};
    ATTN_TRY(read_hash("variant", attn_str_text(&r->name), &v.hash, err));
    ATTN_TRY(read_hash("source_hash", value(r, VARIANT_SOURCE_HASH), &source_hash, err));
    ATTN_TRY(attn_launch_parse(v.launch, &launch, err));
    ATTN_TRY(read_abi(value(r, VARIANT_ABI), &abi, err));
    return attn_db_put_variant(db, &v, source_hash, abi, &row, err);
}

/* The row that a field names, which must stand before it in the file. */
static attn_status named_row(attn_db *db, const char *what, const char *query, attn_hash hash,
                             const char *text, int64_t *row, attn_error *err) {
    attn_sql q = attn_sql_prepare(db, query);
    attn_sql_bind_hash(&q, hash);
    *row = attn_sql_next(&q) ? attn_sql_int(&q) : 0;
    ATTN_TRY(attn_sql_end(&q, err));
    if (*row == 0)
        return attn_fail(err, ATTN_ERR_INVALID, "no %s %s stands before this", what, text);
    return ATTN_OK;
}

static attn_status keep_resources(attn_db *db, const attn_text_record *r, int64_t row,
                                  attn_error *err) {
    attn_sql q =
        attn_sql_prepare(db, "UPDATE build SET registers = ?, spills = ?, smem = ? WHERE id = ?");
    for (int i = BUILD_REGISTERS; i <= BUILD_SMEM; i++)
        attn_sql_bind_text(&q, value(r, i));
    attn_sql_bind_int(&q, row);
    return attn_sql_run(&q, err);
}

static attn_status put_build(attn_db *db, const attn_text_record *r, attn_error *err) {
    int64_t variant, row;
    attn_hash hash, variant_hash;
    const char *toolchain = value(r, BUILD_TOOLCHAIN), *target = value(r, BUILD_TARGET);
    ATTN_TRY(read_hash("build", attn_str_text(&r->name), &hash, err));
    ATTN_TRY(read_hash("variant", value(r, BUILD_VARIANT), &variant_hash, err));
    if (!attn_hash_equal(hash, attn_build_hash(variant_hash, toolchain, target)))
        return attn_fail(err, ATTN_ERR_INVALID,
                         "the build's hash does not fit its variant, toolchain and target");
    ATTN_TRY(named_row(db, "variant", "SELECT id FROM variant WHERE hash = ?", variant_hash,
                       value(r, BUILD_VARIANT), &variant, err));
    ATTN_TRY(attn_db_put_build(db, hash, variant, toolchain, target, &row, err));
    return keep_resources(db, r, row, err);
}

/* Numbers in a row; what they look like is left to the column's type. */
static attn_status put_samples(attn_db *db, const char *trial, const char *phase, char *numbers,
                               attn_error *err) {
    char *rest, *number = strtok_r(numbers, " ", &rest);
    attn_sql q =
        attn_sql_prepare(db, "INSERT INTO sample (trial_id, phase, n, ns) VALUES (?, ?, ?, ?)");
    for (int n = 0; number; n++) {
        attn_sql_bind_text(&q, trial);
        attn_sql_bind_text(&q, phase);
        attn_sql_bind_int(&q, n);
        attn_sql_bind_text(&q, number);
        number = attn_sql_again(&q) ? strtok_r(NULL, " ", &rest) : NULL;
    }
    return attn_sql_end(&q, err);
}

static attn_status insert_trial(attn_db *db, const attn_text_record *r, const int64_t rows[3],
                                attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db, "INSERT INTO trial (problem_id, device_id, build_id, id, threads, mode, environment, "
            "outcome, begun, ended, rank, median_ns, final_ns, band, default_ns, searched_s, "
            "exhausted, throttled, clock_mhz, power_w, temperature_c, error_max, error) VALUES (?, "
            "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, 0), coalesce(?, 0), ?, ?, ?, "
            "?, coalesce(?, ''))");
    for (int i = 0; i < 3; i++)
        attn_sql_bind_int(&q, rows[i]);
    attn_sql_bind_text(&q, attn_str_text(&r->name));
    for (int i = TRIAL_PLAIN; i < TRIAL_SAMPLES; i++)
        attn_sql_bind_text(&q, value(r, i));
    return attn_sql_run(&q, err);
}

static attn_status check_words(const char *outcome, const char *mode, attn_error *err) {
    attn_outcome known;
    if (!attn_outcome_parse(outcome, &known))
        return attn_fail(err, ATTN_ERR_INVALID, "'%.40s' is no outcome of a trial", outcome);
    if (known == ATTN_OUTCOME_RUNNING)
        return attn_fail(err, ATTN_ERR_INVALID, "a running trial cannot be imported");
    if (strcmp(mode, "cold") != 0 && strcmp(mode, "hot") != 0)
        return attn_fail(err, ATTN_ERR_INVALID, "mode '%.40s' is neither cold nor hot", mode);
    return ATTN_OK;
}

/* Is the text a number, and least <= number <= most? NaN is none. */
static attn_status check_number(const char *what, const char *text, double least, double most,
                                attn_error *err) {
    char *end;
    double number = strtod(text, &end);
    if (end != text && !*end && number >= least && number <= most)
        return ATTN_OK;
    return attn_fail(err, ATTN_ERR_INVALID, "%s '%.40s' is not a number from %g to %g", what, text,
                     least, most);
}

/* A time of no or of less than no nanoseconds would win for ever. */
static const double NS_LEAST = 1e-3, NS_MOST = 1e15;

static attn_status check_numbers(const attn_text_record *r, attn_error *err) {
    static const double year_2200 = 7258118400.0;
    const struct {
        const char *field;
        double least, most;
    } ranges[] = {
        {"threads", 0, 65536},
        {"begun", 0, year_2200},
        {"ended", 0, year_2200},
        {"median_ns", NS_LEAST, NS_MOST},
        {"final_ns", NS_LEAST, NS_MOST},
        {"default_ns", NS_LEAST, NS_MOST},
        {"band", 0, 1000},
        {"searched_s", 0, 1e9},
        {"exhausted", 0, 1},
        {"throttled", 0, 1},
        {"clock_mhz", 0, 1e6},
        {"power_w", 0, 1e6},
        {"temperature_c", -300, 1e4},
    };
    for (int i = TRIAL_PLAIN; i < TRIAL_SAMPLES; i++)
        for (size_t k = 0; r->present[i] && k < sizeof ranges / sizeof ranges[0]; k++)
            if (strcmp(r->kind->fields[i], ranges[k].field) == 0)
                ATTN_TRY(check_number(ranges[k].field, value(r, i), ranges[k].least, ranges[k].most,
                                      err));
    return ATTN_OK;
}

static attn_status put_trial(attn_db *db, const attn_text_record *r, attn_error *err) {
    attn_hash id, build, device;
    attn_problem problem;
    int64_t rows[3];
    const char *name = attn_str_text(&r->name);
    ATTN_TRY(read_hash("trial", name, &id, err));
    ATTN_TRY(read_problem(value(r, TRIAL_PROBLEM), &problem, err));
    ATTN_TRY(read_hash("device", value(r, TRIAL_DEVICE), &device, err));
    ATTN_TRY(read_hash("build", value(r, TRIAL_BUILD), &build, err));
    ATTN_TRY(named_row(db, "problem", "SELECT id FROM problem WHERE hash = ?",
                       attn_problem_hash(&problem), value(r, TRIAL_PROBLEM), &rows[0], err));
    ATTN_TRY(named_row(db, "device", "SELECT id FROM device WHERE hash = ?", device,
                       value(r, TRIAL_DEVICE), &rows[1], err));
    ATTN_TRY(named_row(db, "build", "SELECT id FROM build WHERE hash = ?", build,
                       value(r, TRIAL_BUILD), &rows[2], err));
    ATTN_TRY(check_words(value(r, TRIAL_OUTCOME), value(r, TRIAL_MODE), err));
    ATTN_TRY(check_numbers(r, err));
    ATTN_TRY(insert_trial(db, r, rows, err));
    for (int i = TRIAL_SAMPLES; i < ATTN_TEXT_FIELDS; i++)
        if (r->present[i])
            ATTN_TRY(put_samples(db, name, r->kind->fields[i], r->values[i].data, err));
    return ATTN_OK;
}

static attn_status (*const PUT[ATTN_TEXT_KINDS])(attn_db *, const attn_text_record *,
                                                 attn_error *) = {
    [ATTN_TEXT_DEVICE] = put_device,   [ATTN_TEXT_PROBLEM] = put_problem,
    [ATTN_TEXT_VARIANT] = put_variant, [ATTN_TEXT_BUILD] = put_build,
    [ATTN_TEXT_TRIAL] = put_trial,
};

attn_status attn_text_put(attn_db *db, const attn_text_record *r, attn_error *err) {
    if (!r->kind)
        return ATTN_OK;
    for (int i = 0; i < r->kind->required; i++)
        if (!r->present[i])
            return attn_fail(err, ATTN_ERR_INVALID, "the %s has no %s", r->kind->name,
                             r->kind->fields[i]);
    attn_status status = PUT[r->kind - attn_text_kinds](db, r, err);
    if (status == ATTN_ERR_DB && (db->code & 0xff) == SQLITE_CONSTRAINT)
        return attn_fail(err, ATTN_ERR_INVALID, "the %s breaks a rule of the database: %s",
                         r->kind->name, sqlite3_errmsg(db->sql));
    return status;
}
