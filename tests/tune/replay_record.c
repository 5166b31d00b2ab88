/* replay_record.c: what the searches make of a recorded exhaustive run:
 *
 *     replay_record DB PROBLEM [TRIALS...]
 *
 * Prints the share of variants within 1, 3 and 5 % of the best, and for each search and number of
 * trials the mean over ten seeds, and the worst, of best / found. Fails if climbing is worse than
 * chance. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search_replay.h"

enum { SEEDS = 10, TRIALS_MAX = 100000 };

static int fail(const attn_error *err) {
    fprintf(stderr, "replay_record: %s\n", err->line);
    return 1;
}

/* Mean and worst of best / found over the seeds. */
static attn_status judge(const attn_replay *replay, const char *name, size_t trials, double *mean,
                         double *worst, attn_error *err) {
    double *best = calloc(trials, sizeof *best);
    attn_status status = best ? ATTN_OK : attn_fail_nomem(err);
    *mean = 0;
    *worst = 1;
    for (uint64_t seed = 1; status == ATTN_OK && seed <= SEEDS; seed++) {
        status = attn_replay_run(replay, attn_strategy_find(name), seed, trials, 4, best, err);
        double found = replay->best / best[trials - 1];
        *mean += found / SEEDS;
        *worst = fmin(*worst, found);
    }
    free(best);
    return status;
}

static int compare(const attn_replay *replay, size_t trials) {
    attn_error err = ATTN_ERROR_INIT;
    double climb, climb_worst, drawn, drawn_worst;
    if (judge(replay, "climb", trials, &climb, &climb_worst, &err) != ATTN_OK ||
        judge(replay, "random", trials, &drawn, &drawn_worst, &err) != ATTN_OK)
        return fail(&err);
    printf("%5zu trials: climb %.4f (worst %.4f), random %.4f (worst %.4f)\n", trials, climb,
           climb_worst, drawn, drawn_worst);
    return climb < drawn - 0.005;
}

int main(int argc, char **argv) {
    attn_error err = ATTN_ERROR_INIT;
    attn_problem problem;
    attn_db *db;
    attn_db_rows rows;
    attn_replay replay;
    int worse = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: replay_record DB PROBLEM [TRIALS...]\n");
        return 2;
    }
    if (attn_problem_parse(argv[2], &problem, err.line, sizeof err.line) != ATTN_OK)
        return fail(&err);
    const attn_db_filter filter = {.problem = &problem, .ended = true};
    if (attn_db_open(argv[1], ATTN_DB_READ, &db, &err) != ATTN_OK)
        return fail(&err);
    attn_status status = attn_db_find(db, &filter, &rows, &err);
    attn_db_close(db);
    if (status != ATTN_OK)
        return fail(&err);
    status = attn_replay_open(&rows, &replay, &err);
    attn_db_rows_free(&rows);
    if (status == ATTN_OK) {
        printf("%zu variants; within 1 %%: %.3f, 3 %%: %.3f, 5 %%: %.3f of them\n",
               replay.space.count, attn_replay_share(&replay, 1.01),
               attn_replay_share(&replay, 1.03), attn_replay_share(&replay, 1.05));
        for (int i = 3; i < argc; i++) {
            long trials = strtol(argv[i], NULL, 10);
            worse |= trials > 0 && trials < TRIALS_MAX ? compare(&replay, (size_t)trials) : 2;
        }
    }
    attn_replay_close(&replay);
    return status == ATTN_OK ? worse : fail(&err);
}
