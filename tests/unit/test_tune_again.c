/* test_tune_again.c: what a run of the tuner makes of others of the same file: of those before it,
 * of one that holds a trial and is killed, of one that decides first. The workers are this program.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"
#include "overlay.h"
#include "probe.h"
#include "stop.h"
#include "tune.h"

/* A family with far more variants than any run here comes to. */
static const char SPACE[] =
    "local function range(n)\n"
    "  local values = {}\n"
    "  for i = 1, n do values[i] = i end\n"
    "  return values\n"
    "end\n"
    "return family { name = \"wide\", op = \"forward\", backend = \"fake\",\n"
    "  template = \"fake/wide.c\", doc = \"For tests.\",\n"
    "  accepts = function() return true end,\n"
    "  params = { { \"A\", range(64), \"first\" }, { \"B\", range(64), \"second\" } },\n"
    "  core = { A = range(32) },\n"
    "  launch = function() return { { grid = \"tiles\", rows = 16 } } end,\n"
    "  defaults = function() return { A = 1, B = 1 } end }\n";
static const char TEMPLATE[] = "#include \"attn_abi.h\"\n"
                               "// FAKE cost_ns=$(2000 + 10 * A + B) noise=0.002\n"
                               "int $(KERNEL)(const attn_forward_args *a, int task, int worker);\n";

/* What all tests share, made by main. */
static struct {
    char folder[64], db_path[96];
    attn_probed probed;
    const attn_device_info *device;
    attn_gen *gen;
    attn_problem problem;
} the;

static attn_tune_options options_for(attn_db *db) {
    return (attn_tune_options){.gen = the.gen,
                               .db = db,
                               .problems = &the.problem,
                               .problem_count = 1,
                               .devices = the.device,
                               .device_count = 1,
                               .budget_s = 3,
                               .search = "random",
                               .stop_fd = -1};
}

static attn_db *open_db(void) {
    attn_db *db = NULL;
    attn_error err = ATTN_ERROR_INIT;
    CHECK_OK(attn_db_open(the.db_path, ATTN_DB_WRITE, &db, &err), err.line);
    return db;
}

/*-*** The other tuner *******************************************/

/* Claims the trial of a configuration; what it does not say is the default's. */
static attn_status claim(attn_db *db, const char *config, attn_trial_id *id, attn_error *err) {
    static const char family[] = "fake/wide";
    const attn_backend *backend = attn_backend_find("fake");
    attn_str toolchain = ATTN_STR_INIT, target = ATTN_STR_INIT;
    attn_variant variant = {0};
    attn_trial_key key = {.device = the.device, .problem = &the.problem, .variant = &variant};
    attn_trial_result found;
    attn_claim claim = ATTN_CLAIM_TAKEN;
    attn_status status =
        attn_gen_render(the.gen, family, &the.problem, the.device, &config, 1, &variant, err);
    if (status == ATTN_OK)
        status = attn_gen_source_hash(the.gen, family, &key.source_hash, err);
    if (status == ATTN_OK)
        status = backend->toolchain(variant.language, variant.options, &toolchain, err);
    if (status == ATTN_OK)
        status = backend->target(the.device, variant.options, &target, err);
    key.toolchain = attn_str_text(&toolchain);
    key.target = attn_str_text(&target);
    if (status == ATTN_OK) {
        key.build = attn_build_hash(variant.hash, key.toolchain, key.target);
        status = attn_db_claim(db, &key, &claim, id, &found, err);
    }
    if (status == ATTN_OK && claim != ATTN_CLAIM_MINE)
        status = attn_fail(err, ATTN_ERR_INTERNAL, "the trial of %s is not to be had", config);
    attn_variant_free(&variant);
    attn_str_free(&toolchain);
    attn_str_free(&target);
    return status;
}

/* A process that is at the default's trial until it is killed. */
static pid_t hold_default(void) {
    int ready[2];
    char byte;
    if (!CHECK(pipe(ready) == 0))
        return 0;
    pid_t pid = fork();
    if (pid == 0) {
        attn_error err = ATTN_ERROR_INIT;
        attn_db *db = open_db();
        attn_trial_mark mark = {.begun = true};
        attn_status status = db ? attn_db_session_begin(db, "other", &err) : ATTN_ERR_DB;
        if (status == ATTN_OK)
            status = claim(db, "", &mark.id, &err);
        if (status == ATTN_OK)
            status = attn_db_trial_mark(db, &mark, 1, &err);
        if (status != ATTN_OK || write(ready[1], "", 1) != 1) {
            fprintf(stderr, "the other tuner: %s\n", err.line);
            _exit(1);
        }
        for (;;)
            pause();
    }
    close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    return pid;
}

static const char DECIDED[] = "A=64 B=64"; /* none of the core */

/* Measures one variant, decides for it, and stops the run that is under way. */
static void decide_first(void *user, const attn_tune_trial *trial) {
    bool *decided = user;
    attn_error err = ATTN_ERROR_INIT;
    const double ns = 1;
    attn_finalist winner = {.final_ns = ns, .band = 0.01, .rounds = 1, .round_ns = &ns};
    const attn_search_extent extent = {.seconds = 1};
    attn_trial_result result = {.outcome = ATTN_OUTCOME_OK, .median_ns = ns};
    (void)trial;
    if (*decided)
        return;
    *decided = true;
    attn_db *db = open_db();
    CHECK_OK(attn_db_session_begin(db, "other", &err), err.line);
    CHECK_OK(claim(db, DECIDED, &winner.id, &err), err.line);
    CHECK_OK(attn_db_trial_end(db, &winner.id, &result, &err), err.line);
    CHECK_OK(attn_db_decide(db, &winner, 1, 2 * ns, &extent, &err), err.line);
    CHECK_OK(attn_db_session_end(db, &err), err.line);
    attn_db_close(db);
    raise(SIGTERM);
}

/*-*** Runs ******************************************************/

/* Runs, again where a loaded machine has left no time for final rounds. */
static void run_to_finals(const attn_tune_options *options, attn_tune_result *result) {
    attn_error err = ATTN_ERROR_INIT;
    CHECK_OK(attn_tune_run(options, result, &err), err.line);
    for (int more = 3; more > 0 && !(result->summary[0].band < 1); more--) {
        attn_tune_result_free(result);
        CHECK_OK(attn_tune_run(options, result, &err), err.line);
    }
}

/* A problem that a run could not give its whole share is done all the same for a run with the same
 * budget; a larger share is something to do. */
static void check_shares(void) {
    static const struct {
        const char *name;
        double budget_s, share_s;
        bool resumed;
    } runs[] = {{"less than its share", 2, 4, false},
                {"the same again", 4, 4, true},
                {"a smaller share", 2, 2, true},
                {"a larger share", 2, 100, false}};
    attn_db *db = open_db();
    attn_tune_result result;
    attn_tune_options options = options_for(db);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        CHECK_CASE("%s", runs[i].name);
        options.budget_s = runs[i].budget_s;
        options.share_s = runs[i].share_s;
        run_to_finals(&options, &result);
        CHECK(result.summary[0].family != NULL && !result.summary[0].complete);
        CHECK_EQ_INT(result.summary[0].resumed, runs[i].resumed);
        attn_tune_result_free(&result);
    }
    attn_db_close(db);
    unlink(the.db_path);
    check_case[0] = '\0';
}

/* Rounds without the default decide nothing for good: the winner is provisional, and the next run
 * measures the default too. */
static void check_default_elsewhere(void) {
    attn_tune_result result;
    attn_error err = ATTN_ERROR_INIT;
    pid_t other = hold_default();
    attn_db *db = open_db();
    attn_tune_options options = options_for(db);
    const attn_tune_summary *s;

    CHECK_CASE("another tuner has the default");
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    s = &result.summary[0];
    CHECK(s->family != NULL && !s->complete && isnan(s->default_ns));
    CHECK_NEAR(s->band, 1, 0);
    attn_tune_result_free(&result);
    kill(other, SIGKILL);
    CHECK_EQ_INT(waitpid(other, NULL, 0), other);

    CHECK_CASE("it was killed");
    options.budget_s = 6;
    run_to_finals(&options, &result);
    s = &result.summary[0];
    CHECK(s->family != NULL && !s->complete && !s->resumed && s->default_ns > 0 && s->band < 1);
    attn_tune_result_free(&result);

    CHECK_CASE("nothing is left to do");
    options.budget_s = 3;
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK(result.summary[0].resumed);
    attn_tune_result_free(&result);
    attn_db_close(db);
    unlink(the.db_path);
    check_case[0] = '\0';
}

/* A winner that another tuner has stored since the run began is not replaced by a slower one that
 * was in no rounds with it. */
static void check_decided_meanwhile(void) {
    attn_tune_result result;
    attn_error err = ATTN_ERROR_INIT;
    attn_db *db = open_db();
    attn_tune_options options = options_for(db);
    attn_db_rows rows = {0};
    const attn_db_filter filter = {.problem = &the.problem, .device = the.device, .winners = true};
    bool decided = false;
    int got;
    sigset_t set;
    options.events.trial = decide_first;
    options.events.user = &decided;
    CHECK_OK(attn_stop_open(&options.stop_fd, &err), err.line);
    CHECK_OK(attn_tune_run(&options, &result, &err), err.line);
    CHECK_EQ_INT(result.signal, SIGTERM);
    CHECK_STR(result.summary[0].config, DECIDED);
    CHECK_NEAR(result.summary[0].ns, 1, 0);
    CHECK_NEAR(result.summary[0].band, 0.01, 0);
    attn_tune_result_free(&result);
    CHECK_OK(attn_db_find(db, &filter, &rows, &err), err.line);
    CHECK(rows.count == 1 && strcmp(rows.row[0].variant.config, DECIDED) == 0);
    attn_db_rows_free(&rows);
    attn_db_close(db);
    unlink(the.db_path);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    CHECK(sigwait(&set, &got) == 0 && got == SIGTERM);
    close(options.stop_fd);
}

int main(int argc, char **argv) {
    attn_error err = ATTN_ERROR_INIT;
    char error[256];
    size_t chosen[8], count = 0;
    if (argc == 2 && strcmp(argv[1], ATTN_WORKER_FLAG) == 0)
        return attn_worker_main();
    overlay_make(the.folder);
    overlay_write(the.folder, "spaces/fake/wide.lua", SPACE);
    overlay_write(the.folder, "templates/fake/wide.c", TEMPLATE);
    snprintf(the.db_path, sizeof the.db_path, "%s/tune.db", the.folder);
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h1:s64:d64", &the.problem, error, sizeof error), error);
    if (CHECK_OK(attn_gen_open(the.folder, &the.gen, &err), err.line) &&
        CHECK_OK(attn_probe(0, -1, &the.probed, &err), err.line) &&
        CHECK_OK(attn_probe_choose(&the.probed, "fake", chosen, &count, &err), err.line)) {
        the.device = &the.probed.device[chosen[0]];
        check_shares();
        check_default_elsewhere();
        check_decided_meanwhile();
    }
    attn_probed_free(&the.probed);
    attn_gen_close(the.gen);
    overlay_remove(the.folder);
    return check_done();
}
