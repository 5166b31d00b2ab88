/* test_tune.c: whole runs of the tuner as a library, and the lab, on the fake device. The workers
 * are this program. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "lab.h"
#include "probe.h"
#include "stop.h"
#include "tune.h"

/* What all tests share, made by main. */
static struct {
    char folder[64], db_path[96], toy[256];
    attn_probed probed;
    attn_gen *gen;
    attn_problem problem;
} the;

typedef struct seen {
    size_t trials, repeated, failed, notes, reports, last;
    const char *wanted; /* a configuration, and which trial it was */
    size_t wanted_at;
    attn_tune_progress final; /* as last reported */
} seen;

static void on_trial(void *user, const attn_tune_trial *trial) {
    seen *s = user;
    s->trials++;
    if (s->wanted && strcmp(trial->config, s->wanted) == 0)
        s->wanted_at = s->trials;
    s->repeated += trial->repeated;
    s->failed += trial->result->outcome != ATTN_OUTCOME_OK;
}

static void on_progress(void *user, const attn_tune_progress *progress) {
    seen *s = user;
    s->reports++;
    s->last += progress->last;
    s->final = *progress;
    CHECK(progress->problems == 1 && progress->problem_index == 0);
}

static void on_note(void *user, const char *line) {
    seen *s = user;
    s->notes++;
    CHECK(line[0] != '\0');
}

static const attn_device_info *fake_device(void) {
    size_t chosen[8], count = 0;
    attn_error err = ATTN_ERROR_INIT;
    CHECK_OK(attn_probe_choose(&the.probed, "fake", chosen, &count, &err), err.line);
    return count == 1 ? &the.probed.device[chosen[0]] : NULL;
}

static attn_tune_options options_for(attn_db *db, seen *s) {
    return (attn_tune_options){
        .gen = the.gen,
        .db = db,
        .problems = &the.problem,
        .problem_count = 1,
        .devices = fake_device(),
        .device_count = 1,
        .budget_s = 200, /* exhaustive searches end before it, however slow the machine */
        .search = "exhaustive",
        .family = "fake/toy_cost",
        .stop_fd = -1,
        .events = {on_progress, on_trial, on_note, s}};
}

static attn_db *open_db(void) {
    attn_db *db = NULL;
    attn_error err = ATTN_ERROR_INIT;
    unlink(the.db_path);
    CHECK_OK(attn_db_open(the.db_path, ATTN_DB_WRITE, &db, &err), err.line);
    return db;
}

/*-*** Devices ***************************************************/

static void check_probe(void) {
    size_t chosen[8], count;
    char label[32];
    attn_error err = ATTN_ERROR_INIT;
    CHECK(the.probed.count >= 2);
    CHECK_OK(attn_probe_choose(&the.probed, "all", chosen, &count, &err), err.line);
    CHECK_EQ_INT(count, the.probed.count);
    CHECK_OK(attn_probe_choose(&the.probed, "cpu:0", chosen, &count, &err), err.line);
    CHECK_EQ_INT(count, 1);
    attn_device_label(&the.probed.device[chosen[0]], label, sizeof label);
    CHECK_STR(label, "cpu");
    CHECK_STATUS(attn_probe_choose(&the.probed, "gpu", chosen, &count, &err), ATTN_ERR_NO_DEVICE,
                 err.line);
    CHECK_HAS(err.line, "fake");
    CHECK_EQ_INT(count, 0);
}

/*-*** Runs ******************************************************/

static void check_run(void) {
    attn_db *db = open_db();
    attn_tune_result result;
    attn_error err = ATTN_ERROR_INIT;
    seen s = {0};
    attn_tune_options options = options_for(db, &s);

    CHECK_CASE("dry run");
    options.dry_run = true;
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK_EQ_INT(result.count, 1);
    size_t candidates = result.summary[0].candidates;
    CHECK(candidates > 50);
    CHECK_EQ_INT(s.trials, 0);
    attn_tune_result_free(&result);

    CHECK_CASE("first run");
    options.dry_run = false;
    s = (seen){0};
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    const attn_tune_summary *first = &result.summary[0];
    CHECK_STATUS(first->status, ATTN_OK, first->reason);
    CHECK_EQ_INT(s.trials, candidates);
    CHECK_EQ_INT(s.failed, 0);
    CHECK_EQ_INT(s.last, 1);
    CHECK_EQ_INT(first->tried, candidates);
    CHECK_EQ_INT(first->outcome[ATTN_OUTCOME_OK], candidates);
    CHECK(first->complete && !first->resumed && !first->is_default);
    CHECK_STR(first->family, "fake/toy_cost");
    /* The best is known; what the noise cannot tell from it may win as well. */
    CHECK_HAS(first->config, "TILE=64");
    CHECK(first->ns < first->default_ns);
    CHECK(s.final.decided && s.final.best_ns == first->ns); /* the line and the table agree */
    CHECK_NEAR(s.final.gain, first->default_ns / first->ns, 0);
    CHECK(first->band > 0 && first->band < 0.05);
    CHECK(first->share[0] <= first->share[1] && first->share[1] <= first->share[2]);
    CHECK(isnan(result.peak[0]));
    attn_tune_result_free(&result);

    CHECK_CASE("second run");
    s = (seen){0};
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK(result.summary[0].resumed && result.summary[0].complete);
    CHECK_EQ_INT(s.trials, 0);
    CHECK_EQ_INT(result.summary[0].tried, candidates);
    CHECK_HAS(result.summary[0].config, "TILE=64");
    CHECK(s.final.decided && s.final.best_ns == result.summary[0].ns);
    attn_tune_result_free(&result);

    CHECK_CASE("again: nothing is tried twice");
    s = (seen){0};
    options.again = true;
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK_EQ_INT(s.trials, candidates);
    CHECK_EQ_INT(s.repeated, candidates);
    CHECK(!result.summary[0].resumed && result.summary[0].family != NULL);
    attn_tune_result_free(&result);

    CHECK_CASE("fresh: what is stored ends no search");
    options.again = false;
    options.fresh = true;
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK(!result.summary[0].resumed && result.summary[0].family != NULL);
    attn_tune_result_free(&result);
    options.again = true;
    options.fresh = false;

    CHECK_CASE("what was tried outside the core is no candidate of a search of the core");
    options.whole = true;
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK(result.summary[0].tried > candidates);
    attn_tune_result_free(&result);
    options.whole = options.again = false;
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK(result.summary[0].resumed);
    CHECK_EQ_INT(result.summary[0].tried, candidates);
    CHECK_EQ_INT(result.summary[0].candidates, candidates);
    attn_tune_result_free(&result);
    attn_db_close(db);

    CHECK_CASE("without a database");
    s = (seen){0};
    options.db = NULL;
    options.search = "climb";
    options.budget_s = 3;
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK(s.trials > 0 && s.repeated == 0);
    CHECK(result.summary[0].family != NULL);
    attn_tune_result_free(&result);
    check_case[0] = '\0';
}

/* A second problem of the class begins with the winner of the first. */
static void check_seeds(void) {
    attn_db *db = open_db();
    attn_tune_result result;
    attn_error err = ATTN_ERROR_INIT;
    seen s = {0};
    char best[256];
    attn_tune_options options = options_for(db, &s);
    options.search = "climb";
    options.budget_s = 3;
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    snprintf(best, sizeof best, "%s", result.summary[0].config);
    attn_tune_result_free(&result);
    attn_problem near = the.problem;
    near.seq_q = near.seq_kv = 96;
    options.problems = &near;
    options.search = "random";
    options.seed = 7;
    options.budget_s = 3;
    s = (seen){.wanted = best};
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK(s.wanted_at >= 1 && s.wanted_at <= 4); /* several are on their way at once */
    attn_tune_result_free(&result);
    attn_db_close(db);
}

static void check_verify_only(void) {
    attn_tune_result result;
    attn_error err = ATTN_ERROR_INIT;
    seen s = {0};
    attn_tune_options options = options_for(NULL, &s);
    options.verify_only = true;
    options.budget_s = 0;
    options.config = "TILE=128 STAGES=2";
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK_EQ_INT(s.trials, 1);
    CHECK_EQ_INT(result.summary[0].outcome[ATTN_OUTCOME_OK], 1);
    attn_tune_result_free(&result);
}

static void check_refusals(void) {
    attn_tune_result result;
    attn_error err = ATTN_ERROR_INIT;
    seen s = {0};
    attn_tune_options options = options_for(NULL, &s);
    options.search = "nonsense";
    CHECK_STATUS(attn_tune_run(&options, &result, &err), ATTN_ERR_INVALID, err.line);
    attn_tune_result_free(&result);
    options.search = NULL;
    options.family = "cpu/toy_forward"; /* of another backend */
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK_EQ_INT(result.summary[0].status, ATTN_ERR_NOT_ACCEPTED);
    CHECK(result.summary[0].reason != NULL && result.summary[0].family == NULL);
    attn_tune_result_free(&result);
}

/* A signal that is pending ends a run at once. */
static void check_signal(void) {
    attn_tune_result result;
    attn_error err = ATTN_ERROR_INIT;
    seen s = {0};
    int fd, got;
    sigset_t set;
    attn_tune_options options = options_for(NULL, &s);
    CHECK_EQ_INT(attn_stop_signal(-1), 0);
    CHECK_OK(attn_stop_open(&fd, &err), err.line);
    CHECK_EQ_INT(attn_stop_signal(fd), 0);
    raise(SIGTERM);
    CHECK_EQ_INT(attn_stop_signal(fd), SIGTERM);
    CHECK_EQ_INT(attn_stop_signal(fd), SIGTERM);
    options.stop_fd = fd;
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK_EQ_INT(result.signal, SIGTERM);
    CHECK_EQ_INT(s.trials, 0);
    attn_tune_result_free(&result);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    CHECK(sigwait(&set, &got) == 0 && got == SIGTERM);
    close(fd);
}

static void check_reproducer(void) {
    attn_str line = ATTN_STR_INIT;
    seen s = {0};
    attn_tune_options options = options_for(NULL, &s);
    attn_trial_result result = {.outcome = ATTN_OUTCOME_WRONG};
    const attn_tune_trial trial = {fake_device(),    &the.problem, "fake/toy_cost",
                                   "TILE=16 PACK=0", &result,      false};
    options.threads = 2;
    attn_tune_reproducer(&trial, &options, &line);
    CHECK_STR(attn_str_text(&line), "attntune verify fwd:f32:b1:h1:s128:d16 --device fake "
                                    "--threads 2 --family fake/toy_cost --config \"TILE=16 "
                                    "PACK=0\"");
    attn_str_free(&line);
}

/*-*** The lab ***************************************************/

static attn_status add_variant(attn_lab *lab, const char *config, size_t *slot,
                               attn_trial_result *result, attn_error *err) {
    attn_space *space = NULL;
    attn_config values;
    attn_variant variant;
    ATTN_TRY(attn_space_open(the.gen, "fake/toy_cost", &the.problem, fake_device(), &space, err));
    attn_status status = attn_space_default(space, &values, err);
    if (status == ATTN_OK)
        status = attn_config_parse(space, config, &values, err);
    if (status == ATTN_OK)
        status = attn_space_render(space, &values, &variant, err);
    if (status == ATTN_OK) {
        status = attn_lab_add(lab, &variant, NULL, slot, result, err);
        attn_variant_free(&variant);
    }
    attn_space_close(space);
    return status;
}

static void check_lab(void) {
    attn_lab *lab;
    attn_error err = ATTN_ERROR_INIT;
    attn_trial_result result = {.outcome = ATTN_OUTCOME_RUNNING};
    size_t slot[2];
    double ns[2 * 5] = {0}, peak[5];
    const attn_lab_options options = {.device = fake_device(), .stop_fd = -1};
    CHECK_OK(attn_lab_open(&options, &lab, &err), err.line);
    CHECK_OK(attn_lab_problem(lab, &the.problem, &err), err.line);
    CHECK_OK(add_variant(lab, "TILE=64 STAGES=2 UNROLL=4 PACK=1", &slot[0], &result, &err),
             err.line);
    CHECK_EQ_INT(result.outcome, ATTN_OUTCOME_OK);
    CHECK(result.error_max >= 0);
    CHECK_OK(add_variant(lab, "TILE=16", &slot[1], &result, &err), err.line);
    CHECK_OK(attn_lab_rounds(lab, slot, 2, 5, ns, peak, &err), err.line);
    for (int i = 0; i < 5; i++)
        CHECK(isnan(peak[i]) || peak[i] > 0);
    for (int i = 0; i < 10; i += 2)
        CHECK(ns[i] > 0 && ns[i + 1] > ns[i]); /* the first is known to be the best */
    slot[1] = 9;
    CHECK_STATUS(attn_lab_rounds(lab, slot, 2, 5, ns, peak, &err), ATTN_ERR_INVALID, err.line);
    attn_lab_close(lab);
    attn_lab_close(NULL);
}

int main(int argc, char **argv) {
    attn_error err = ATTN_ERROR_INIT;
    char error[256];
    const char *source = getenv("ATTN_SOURCE");
    if (argc == 2 && strcmp(argv[1], ATTN_WORKER_FLAG) == 0)
        return attn_worker_main();
    if (!source)
        check_skip("ATTN_SOURCE does not say where tests/toy is");
    strcpy(the.folder, "/tmp/attntune-test-XXXXXX");
    if (!CHECK(mkdtemp(the.folder) != NULL))
        return check_done();
    snprintf(the.db_path, sizeof the.db_path, "%s/tune.db", the.folder);
    snprintf(the.toy, sizeof the.toy, "%.200s/tests/toy", source);
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h1:s128:d16", &the.problem, error, sizeof error),
             error);
    if (CHECK_OK(attn_gen_open(the.toy, &the.gen, &err), err.line) &&
        CHECK_OK(attn_probe(0, -1, &the.probed, &err), err.line)) {
        check_probe();
        check_run();
        check_seeds();
        check_verify_only();
        check_refusals();
        check_signal();
        check_reproducer();
        check_lab();
    }
    attn_probed_free(&the.probed);
    attn_gen_close(the.gen);
    unlink(the.db_path);
    rmdir(the.folder);
    return check_done();
}
