/* stand.h: times kernels on one problem.
 *
 * A stand holds the problem's tensors on the device: one copy (hot), or so many that a walk over
 * them exceeds twice the last-level cache (cold). A sample is the mean of as many launches as fill
 * 2 ms, each on the next copy. Where the device knows how fast it is just now (the CPU's FMA
 * canary), a sample taken while it was slow is taken again, three times at most. */
#ifndef ATTN_STAND_H
#define ATTN_STAND_H

#include "backend.h"
#include "db.h"

typedef struct attn_stand attn_stand;

/* One kernel being timed; the caller sets kernel and launch, zeroes the rest and owns it all. */
typedef struct attn_timed {
    attn_kernel *kernel;
    const attn_launch *launch;
    int32_t launches;             /* of a sample; 0: not warm yet */
    int32_t wanted;               /* of a race: samples it is worth */
    int32_t count;                /* samples taken */
    double ns[ATTN_SAMPLES_MAX];  /* of one launch each */
    double spent_ns;              /* wall time, samples thrown away and canaries included */
    bool throttled;               /* the device was slow three times in a row */
    attn_device_state last_state; /* after the last sample */
} attn_timed;

/* Fills the copies; ERR_NOMEM, ERR_DEVICE. backend and device must outlive the stand. */
attn_status attn_stand_open(const attn_backend *backend, attn_backend_device *device,
                            const attn_problem *problem, attn_mode mode, uint64_t seed,
                            attn_stand **stand, attn_error *err);
void attn_stand_close(attn_stand *stand);

/* One launch that is not counted, and one that tells how many fill a sample. */
attn_status attn_stand_warm(attn_stand *stand, attn_timed *timed, attn_error *err);

/* One sample: *ns of one launch; also counted in `timed` while there is room. */
attn_status attn_stand_sample(attn_stand *stand, attn_timed *timed, double *ns, attn_error *err);

double attn_median(const double *values, size_t count); /* NaN if there are none */

/*-*** Racing ****************************************************/

/* Races kernels that were proved right: 2 samples each; those within 1.5 x the best so far (best_ns
 * of earlier races, NaN if none, included) go on to 7, those within 1.1 x to 25. A kernel that
 * takes long stops at fewer: after half a second, but not before 5 samples. Samples are
 * interleaved. */
attn_status attn_race(attn_stand *stand, attn_timed *timed, size_t count, double best_ns,
                      attn_error *err);

/* Times the kernels round by round, each round beginning with the next one:
 * ns[round * count + i]. peak, if not NULL, gets the device's peak of fused multiply-adds with all
 * workers, GFLOP/s, measured after each round (NaN: it has no such measure): what the machine could
 * do just then, clocks and neighbours included. */
attn_status attn_rounds(attn_stand *stand, attn_timed *timed, size_t count, int32_t rounds,
                        double *ns, double *peak, attn_error *err);

/* Holds each kernel alone for ATTN_HOLD_S, and all of them again, and fills ns as attn_rounds does
 * with what the second halves gave. At a device's power limit all kernels of interleaved rounds
 * share one clock, the thrifty and the hungry alike; what a kernel's own consumption leaves it of
 * the clock shows only so. */
#define ATTN_HOLD_S 0.3
#define ATTN_HOLD_PASSES 2
attn_status attn_hold(attn_stand *stand, attn_timed *timed, size_t count, int32_t rounds,
                      double *ns, attn_error *err);

/* That peak, now; NaN: the device has no such measure. */
double attn_stand_peak(const attn_stand *stand);

#endif
