/* lab.h: a few variants side by side on one device: what `attntune bench` runs.
 *
 * Every call blocks until it is answered. A variant that crashes, hangs or fails has its outcome in
 * its result and takes nothing else with it: the worker is replaced, and what was loaded before is
 * loaded again when it is next used. */
#ifndef ATTN_LAB_H
#define ATTN_LAB_H

#include "db.h"
#include "gen.h"

typedef struct attn_lab attn_lab;

typedef struct attn_lab_options {
    attn_gen *gen; /* for the kernel that judges all others; NULL: none does */
    const attn_device_info *device;
    int32_t threads; /* as in attn_tune_options */
    attn_mode mode;
    uint64_t seed;
    void (*note)(const char *line); /* warnings; may be NULL */
    int stop_fd; /* -1, or of attn_stop_open: calls then return ERR_TIMEOUT once a signal came */
} attn_lab_options;

attn_status attn_lab_open(const attn_lab_options *options, attn_lab **lab, attn_error *err);
void attn_lab_close(attn_lab *lab);

/* Sets the problem that what follows is about; variants added before are forgotten. */
attn_status attn_lab_problem(attn_lab *lab, const attn_problem *problem, attn_error *err);

/* Compiles (or takes `binary`, if not NULL, as it is), loads and proves a variant; *slot is its
 * number. ATTN_OK whatever came of it: result->outcome is OK, WRONG, COMPILE_ERROR, ... */
attn_status attn_lab_add(attn_lab *lab, const attn_variant *variant, const attn_binary *binary,
                         size_t *slot, attn_trial_result *result, attn_error *err);

/* Times the slots interleaved, round by round, under the device's timing lock:
 * ns[round * count + i] is one launch of slots[i], peak[round] the device's peak after that round
 * (see stand.h). ERR_LAUNCH names the slot that failed. */
attn_status attn_lab_rounds(attn_lab *lab, const size_t *slots, size_t count, int32_t rounds,
                            double *ns, double *peak, attn_error *err);

#endif
