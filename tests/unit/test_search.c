/* test_search.c: search spaces and strategies, on made-up costs: no device, no clock. */
#include "check.h"
#include "search_replay.h"
#include "tune.h"

/*-*** Made-up records *******************************************/

enum { PARAMS = 8, SEEDS = 10 };
static const size_t VALUES[PARAMS] = {4, 4, 6, 3, 2, 2, 5, 2};

static double unit(uint64_t *state) {
    attn_random random = {*state};
    uint64_t next = attn_random_next(&random);
    *state = random.state;
    return (double)(next >> 11) * 0x1p-53;
}

/* A cost with a best value for each parameter, pairs that matter together, a part of the space that
 * is not valid, and a grain that no search can foresee. Like kernels: most are 1.1 to 3 x the
 * best. */
static void make_record(uint64_t seed, attn_replay *replay) {
    attn_error err = ATTN_ERROR_INIT;
    double best[PARAMS], weight[PARAMS], pair[PARAMS];
    uint64_t state = seed * 77 + 1;
    size_t index, total = 1;
    *replay = (attn_replay){.best = INFINITY};
    for (size_t p = 0; p < PARAMS; p++) {
        best[p] = floor(unit(&state) * (double)VALUES[p]);
        weight[p] = 0.02 + 0.2 * unit(&state);
        pair[p] = 0.1 * unit(&state);
        total *= VALUES[p];
    }
    CHECK_OK(attn_search_space_family(&replay->space, PARAMS, VALUES, &err), err.line);
    for (size_t i = 0; i < total; i++) {
        attn_config config = {{0}};
        double cost = 1, distance[PARAMS];
        size_t rest = i;
        for (size_t p = 0; p < PARAMS; p++) {
            config.value[p] = (uint8_t)(rest % VALUES[p]);
            rest /= VALUES[p];
            distance[p] = fabs(config.value[p] - best[p]);
            cost += weight[p] * distance[p];
        }
        for (size_t p = 1; p < PARAMS; p++)
            cost += pair[p] * distance[p] * distance[p - 1];
        if (config.value[0] * config.value[2] > 9) /* "does not fit the registers" */
            continue;
        uint64_t grain = seed ^ i;
        cost *= 1 + 0.03 * unit(&grain);
        CHECK_OK(attn_search_space_add(&replay->space, &config, true, &index, &err), err.line);
        replay->cost = realloc(replay->cost, replay->space.capacity * sizeof *replay->cost);
        replay->cost[index] = unit(&grain) < 0.02 ? INFINITY : cost * 1e5;
        replay->best = fmin(replay->best, replay->cost[index]);
    }
}

/*-*** Spaces ****************************************************/

static void check_space(void) {
    attn_search_space space = {0};
    attn_error err = ATTN_ERROR_INIT;
    const size_t values[] = {200, 100};
    size_t index;
    attn_config config = {{0}};
    CHECK_OK(attn_search_space_family(&space, 2, values, &err), err.line);
    for (size_t i = 0; i < 20000; i++) {
        config.value[0] = (uint8_t)(i % 200);
        config.value[1] = (uint8_t)(i / 200);
        config.value[2] = (uint8_t)i; /* behind the parameters: not looked at */
        CHECK_OK(attn_search_space_add(&space, &config, i % 2 == 0, &index, &err), err.line);
        CHECK_EQ_INT(index, i);
    }
    CHECK_OK(attn_search_space_add(&space, &config, true, &index, &err), err.line);
    CHECK_EQ_INT(index, 19999);
    CHECK_EQ_INT(space.count, 20000);
    CHECK_OK(attn_search_space_family(&space, 1, values, &err), err.line);
    CHECK(attn_search_space_find(&space, 1, &config) == ATTN_SEARCH_END);
    config.value[0] = 7;
    config.value[1] = 9;
    CHECK_EQ_INT(attn_search_space_find(&space, 0, &config), 9 * 200 + 7);

    /* What begins with the cores has no other point before all of them have been given. */
    attn_search *search;
    size_t cores = 0;
    CHECK_OK(attn_search_open(attn_strategy_find("climb"), &space, 1, &search, &err), err.line);
    for (size_t i = 0; i < 10000; i++) {
        size_t point = attn_search_any(search);
        cores += space.point[point].core;
        CHECK(attn_search_mark(search, point));
    }
    CHECK_EQ_INT(cores, 10000);
    CHECK(!space.point[attn_search_any(search)].core);
    attn_search_close(search);
    attn_search_space_free(&space);
}

/*-*** Strategies ************************************************/

/* Every strategy asks for every point once, then for none; and the same again with the seed. */
static void check_complete(const attn_replay *replay) {
    attn_error err = ATTN_ERROR_INIT;
    size_t count = replay->space.count;
    size_t *first = calloc(count, sizeof *first);
    for (const char *const *name = attn_search_names(); *name; name++) {
        const attn_strategy *strategy = attn_strategy_find(*name);
        CHECK_CASE("%s", *name);
        if (!CHECK(strategy != NULL) || !CHECK(attn_search_doc(*name) != NULL))
            continue;
        for (int run = 0; run < 2; run++) {
            attn_search *search;
            bool *seen = calloc(count, sizeof *seen);
            size_t twice = 0, moved = 0;
            CHECK_OK(attn_search_open(strategy, &replay->space, 42, &search, &err), err.line);
            CHECK(attn_search_mark(search, 5));
            CHECK(!attn_search_mark(search, 5));
            seen[5] = true;
            for (size_t i = 1; i < count; i++) {
                size_t point = attn_search_ask(search, (double)i / (double)count);
                if (!CHECK(point < count))
                    break;
                twice += seen[point];
                seen[point] = true;
                moved += run == 1 && first[i] != point;
                first[i] = point;
                attn_search_tell(search, point, replay->cost[point]);
            }
            CHECK_EQ_INT(twice, 0);
            CHECK_EQ_INT(moved, 0);
            CHECK(attn_search_ask(search, 1) == ATTN_SEARCH_END);
            CHECK_NEAR(search->cost[search->best], replay->best, replay->cost[5] <= replay->best);
            attn_search_close(search);
            free(seen);
        }
    }
    check_case[0] = '\0';
    free(first);
}

/* Mean over the seeds of best / found after so many trials. */
static double quality(const attn_replay *replay, const char *name, size_t trials, size_t at_once) {
    attn_error err = ATTN_ERROR_INIT;
    double *best = calloc(trials, sizeof *best), sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        CHECK_OK(
            attn_replay_run(replay, attn_strategy_find(name), seed, trials, at_once, best, &err),
            err.line);
        sum += replay->best / best[trials - 1];
    }
    free(best);
    return sum / SEEDS;
}

/* Over ten seeds climbing is not worse than chance with as many trials, on any of the records; and
 * over all of them it is better, also when several points are out at once. */
static void check_quality(void) {
    static const size_t TRIALS[] = {25, 50, 100, 200};
    enum { RECORDS = 6 };
    for (size_t k = 0; k < sizeof TRIALS / sizeof TRIALS[0]; k++) {
        double climbed = 0, parallel = 0, drawn = 0;
        for (uint64_t record = 0; record < RECORDS; record++) {
            attn_replay replay;
            make_record(record + 1, &replay);
            double c = quality(&replay, "climb", TRIALS[k], 1);
            double p = quality(&replay, "climb", TRIALS[k], 10);
            double r = quality(&replay, "random", TRIALS[k], 1);
            CHECK_CASE("record %d, %zu trials: climb %.3f, 10 at once %.3f, random %.3f",
                       (int)record, TRIALS[k], c, p, r);
            CHECK(c >= r - 0.02);
            CHECK(p >= r - 0.03);
            climbed += c / RECORDS;
            parallel += p / RECORDS;
            drawn += r / RECORDS;
            attn_replay_close(&replay);
        }
        printf("%3zu trials: climb %.3f, 10 at once %.3f, random %.3f of the best\n", TRIALS[k],
               climbed, parallel, drawn);
        CHECK_CASE("%zu trials", TRIALS[k]);
        CHECK(climbed > drawn);
        CHECK(TRIALS[k] < 50 || parallel > drawn);
    }
    check_case[0] = '\0';
}

/*-*** Records from the database *********************************/

static void check_rows(void) {
    attn_error err = ATTN_ERROR_INIT;
    attn_replay replay;
    char family[] = "cpu/a", other[] = "cpu/b";
    char config[6][32] = {"NV=1 MR=4", "NV=2 MR=4", "NV=1 MR=8", "NV=2 MR=8", "BK=32", "BK=64"};
    const double ns[6] = {100, 101, 200, 102.9, 104, 0};
    attn_db_row row[6] = {{.rank = 0}};
    for (int i = 0; i < 6; i++) {
        row[i].variant.family = i < 4 ? family : other;
        row[i].variant.config = config[i];
        row[i].result.outcome = i < 5 ? ATTN_OUTCOME_OK : ATTN_OUTCOME_WRONG;
        row[i].result.median_ns = ns[i];
    }
    attn_db_rows rows = {row, 6};
    CHECK_OK(attn_replay_open(&rows, &replay, &err), err.line);
    CHECK_EQ_INT(replay.space.count, 6);
    CHECK_EQ_INT(replay.space.families, 2);
    CHECK_NEAR(replay.best, 100, 0);
    CHECK_NEAR(attn_replay_share(&replay, 1.01), 0.4, 1e-12);
    CHECK_NEAR(attn_replay_share(&replay, 1.03), 0.6, 1e-12);
    CHECK_NEAR(attn_replay_share(&replay, 1.05), 0.8, 1e-12);
    attn_replay_close(&replay);
    rows.row = &row[5];
    rows.count = 1;
    CHECK_STATUS(attn_replay_open(&rows, &replay, &err), ATTN_ERR_INVALID, err.line);
    attn_replay_close(&replay);
}

int main(void) {
    attn_replay replay;
    check_space();
    make_record(3, &replay);
    check_complete(&replay);
    attn_replay_close(&replay);
    check_quality();
    check_rows();
    return check_done();
}
