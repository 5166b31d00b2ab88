/* search_replay.h: a recorded run as a simulated device, so that searches are judged without one.
 */
#ifndef ATTN_SEARCH_REPLAY_H
#define ATTN_SEARCH_REPLAY_H

#include "db.h"
#include "search.h"

typedef struct attn_replay {
    attn_search_space space;
    double *cost; /* [space.count] ns; INFINITY: the trial failed */
    double best;
} attn_replay;

/* Points and costs of recorded trials of one problem on one device. Parameters and values are those
 * that occur in the rows. ERR_INVALID if there is no ok trial; free it in any case. */
attn_status attn_replay_open(const attn_db_rows *rows, attn_replay *replay, attn_error *err);
void attn_replay_close(attn_replay *replay);

/* Runs a search for so many trials; best[i] is the least cost after trial i. `at_once` points are
 * out at a time, as when several compilers run. A search that ends early repeats its last. */
attn_status attn_replay_run(const attn_replay *replay, const attn_strategy *strategy, uint64_t seed,
                            size_t trials, size_t at_once, double *best, attn_error *err);

/* Share of the points that did not fail whose cost is at most `factor` x the best. */
double attn_replay_share(const attn_replay *replay, double factor);

#endif
