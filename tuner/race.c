/* race.c: how many samples each kernel is worth. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stand.h"

/* A kernel within `keep` x the best after the stage before goes on to `samples`. */
static const struct {
    double keep;
    int32_t samples;
} STAGES[] = {{INFINITY, 2}, {1.5, 7}, {1.1, 25}};

static const double LONG_NS = 5e8; /* spent on one kernel: then a few samples are enough */
enum { LONG_SAMPLES = 5 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double attn_median(const double *values, size_t count) {
    double sorted[1024];
    if (count == 0)
        return NAN;
    if (count > sizeof sorted / sizeof sorted[0])
        count = sizeof sorted / sizeof sorted[0];
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, compare);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* Sets how many samples each kernel is to have after this stage. */
static void choose(attn_timed *timed, size_t count, double limit, int32_t samples) {
    for (size_t i = 0; i < count; i++)
        if (timed[i].count == 0 || attn_median(timed[i].ns, (size_t)timed[i].count) <= limit)
            timed[i].wanted = samples;
}

static bool wants_more(const attn_timed *timed) {
    bool tired = timed->spent_ns > LONG_NS && timed->count >= LONG_SAMPLES;
    return timed->count < timed->wanted && !tired;
}

attn_status attn_race(attn_stand *stand, attn_timed *timed, size_t count, double best_ns,
                      attn_error *err) {
    double best = isnan(best_ns) ? INFINITY : best_ns, ns;
    for (size_t stage = 0; stage < sizeof STAGES / sizeof STAGES[0]; stage++) {
        choose(timed, count, stage == 0 ? INFINITY : best * STAGES[stage].keep,
               STAGES[stage].samples);
        for (int32_t n = 0; n < STAGES[stage].samples; n++)
            for (size_t i = 0; i < count; i++)
                if (wants_more(&timed[i]))
                    ATTN_TRY(attn_stand_sample(stand, &timed[i], &ns, err));
        for (size_t i = 0; i < count; i++)
            best = fmin(best, attn_median(timed[i].ns, (size_t)timed[i].count));
    }
    return ATTN_OK;
}

attn_status attn_rounds(attn_stand *stand, attn_timed *timed, size_t count, int32_t rounds,
                        double *ns, double *peak, attn_error *err) {
    for (size_t i = 0; i < count; i++)
        ATTN_TRY(attn_stand_warm(stand, &timed[i], err));
    for (int32_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            size_t at = (i + (size_t)round) % count;
            ATTN_TRY(attn_stand_sample(stand, &timed[at], &ns[(size_t)round * count + at], err));
        }
        if (peak)
            peak[round] = attn_stand_peak(stand);
    }
    return ATTN_OK;
}

/* `step` apart: ns[0], ns[step], ... */
static attn_status hold(attn_stand *stand, attn_timed *timed, int32_t samples, double *ns,
                        size_t step, attn_error *err) {
    const double half = ATTN_HOLD_S * 1e9 / 2;
    double one, held = 0;
    ATTN_TRY(attn_stand_sample(stand, timed, &one, err));
    timed->launches = (int32_t)fmax(1, half / (fmax(1, samples) * fmax(1, one)));
    while (held < half) {
        ATTN_TRY(attn_stand_sample(stand, timed, &one, err));
        held += one * timed->launches;
    }
    for (int32_t i = 0; i < samples; i++)
        ATTN_TRY(attn_stand_sample(stand, timed, &ns[(size_t)i * step], err));
    return ATTN_OK;
}

attn_status attn_hold(attn_stand *stand, attn_timed *timed, size_t count, int32_t rounds,
                      double *ns, attn_error *err) {
    for (int32_t pass = 0; pass < ATTN_HOLD_PASSES; pass++) {
        int32_t first = rounds * pass / ATTN_HOLD_PASSES;
        int32_t end = rounds * (pass + 1) / ATTN_HOLD_PASSES;
        for (size_t i = 0; i < count; i++)
            ATTN_TRY(
                hold(stand, &timed[i], end - first, &ns[(size_t)first * count + i], count, err));
    }
    return ATTN_OK;
}
