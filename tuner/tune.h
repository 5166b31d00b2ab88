/* tune.h: the tuner as a library: what `attntune tune` and `attntune verify` run.
 *
 *     ask -> render -> claim -> compile -> load -> verify -> measure -> tell -> record
 *
 * The caller opens generator and database; attn_tune_run owns everything else: the worker
 * processes, the timing lock, the search. It calls no driver: whatever touches a device or a
 * compiler runs in a worker, started as `/proc/self/exe --worker`, so the program's main must
 * begin with
 *
 *     if (argc == 2 && strcmp(argv[1], ATTN_WORKER_FLAG) == 0)
 *         return attn_worker_main();
 *
 * See probe.h for the devices, lab.h for measuring a few chosen variants, stop.h for signals. */
#ifndef ATTN_TUNE_H
#define ATTN_TUNE_H

#include "db.h"
#include "gen.h"

#define ATTN_WORKER_FLAG "--worker"

/* Serves requests on descriptor 3 until it closes; the result is the exit code. */
int attn_worker_main(void);

/*-*** What happens while it runs ********************************/

/* State of one device's work, for the progress line. */
typedef struct attn_tune_progress {
    const attn_device_info *device;
    const attn_problem *problem;
    size_t problem_index; /* from 0 */
    size_t problems;      /* on this device */
    size_t tried;
    size_t left;      /* candidates not tried yet */
    bool decided;     /* best_ns and gain are the summary's; else as the search has them so far */
    double best_ns;   /* NaN: none yet */
    double gain;      /* its family's default's time / best_ns; NaN: not known yet */
    double seconds;   /* left of the budget */
    const char *note; /* "waiting for another tuner", "finals" or "" */
    bool last;        /* the last report for this problem */
} attn_tune_progress;

/* One trial that has ended, or was found done in the database (`repeated`). */
typedef struct attn_tune_trial {
    const attn_device_info *device;
    const attn_problem *problem;
    const char *family;
    const char *config; /* every parameter */
    const attn_trial_result *result;
    bool repeated;
} attn_tune_trial;

/* Each function may be NULL. All are called from the thread that runs attn_tune_run. */
typedef struct attn_tune_events {
    void (*progress)(void *user, const attn_tune_progress *progress); /* at most 10 a second */
    void (*trial)(void *user, const attn_tune_trial *trial);
    void (*note)(void *user, const char *line); /* warnings; a line without the newline */
    void *user;
} attn_tune_events;

/*-*** What is asked for *****************************************/

/* Zero is the default of every field but the first three and stop_fd. */
typedef struct attn_tune_options {
    attn_gen *gen;
    attn_db *db;     /* open for writing; NULL: nothing is recorded or resumed (verify_only) */
    attn_db *system; /* shipped results to begin with; may be NULL */

    const attn_problem *problems;
    size_t problem_count;
    const attn_device_info *devices; /* of attn_probe; every problem is tuned on every one */
    size_t device_count;

    double budget_s; /* wall time of the whole run; 0: 20 s a problem and device, 6 s if quick */
    double share_s;  /* of a larger budget that this run is a part of, for a problem; 0: budget_s
                      * by the number of problems and devices */
    bool quick;
    const char *search;  /* "exhaustive", "random", "climb"; NULL: climb */
    const char *command; /* the command line, for the session's row; may be NULL */
    const char *path;    /* of the generator's overlay, for reproducing commands; may be NULL */
    uint64_t seed;
    int32_t jobs;    /* compilers at once; 0: as many as this process may use CPUs */
    int32_t threads; /* CPU: of a kernel; 0: the budget of the device */
    attn_mode mode;

    const char *family; /* only this one; NULL: all that accept the problem */
    const char *config; /* verify_only: only this configuration ("BK=64 ..."; needs family) */
    bool whole;         /* search all of a family's space, not its core alone */
    bool fresh;         /* look at no earlier winner: neither shipped, nor stored, nor near */
    bool again;         /* search problems whose search has ended, too, and try again what failed */
    bool dry_run;       /* list what would be tried: spaces are counted, nothing is built */
    bool verify_only;   /* every candidate is built and proved, none timed or recorded */

    int stop_fd; /* of attn_stop_open; -1: signals are not looked at */
    attn_tune_events events;
} attn_tune_options;

/* The names of the searches, ends with NULL; and what each is, for --help. */
const char *const *attn_search_names(void);
const char *attn_search_doc(const char *name);

/*-*** What came of it *******************************************/

enum { ATTN_SHARES = 3 }; /* within 1, 3 and 5 % of the best */

/* One problem on one device. Texts are owned by the result. */
typedef struct attn_tune_summary {
    size_t device;      /* index into the options' devices */
    size_t problem;     /* index into the options' problems */
    attn_status status; /* OK: there is a winner (verify_only: nothing was wrong); else `reason` */
    char *reason;       /* why there is no winner, naming each family asked; NULL with one */
    bool resumed;       /* nothing was left to do: the winner is an earlier run's */
    bool complete;      /* the search came to its end; false: the budget did */

    char *family; /* the winner, as it is stored; NULL if there is none */
    char *config;
    bool is_default;   /* the default stayed: nothing beat it outside the noise band */
    double ns;         /* of the winner: the final rounds' median */
    double band;       /* relative noise band of the final rounds */
    double default_ns; /* of its family's default in the same rounds */

    size_t candidates; /* valid configurations that the search may choose from, all families */
    size_t tried;      /* trials that have an end, earlier runs' included */
    size_t outcome[ATTN_OUTCOME_LOST + 1]; /* of those */
    double share[ATTN_SHARES]; /* of the ok ones, within 1, 3, 5 % of the best race median */
    double seconds;
    double first_s; /* of these, until the first variant was measured; NaN: none was */
    bool cut;       /* its share of the budget was over */
    bool missed;    /* the run did not come to it: the winner, if any, is an earlier run's */
} attn_tune_summary;

typedef struct attn_tune_result {
    attn_tune_summary *summary; /* device by device, problem by problem, as far as it came */
    size_t count;
    double *peak; /* a device: measured FMA peak at the threads used, GFLOP/s; NaN: not known */
    size_t device_count;
    double share_s; /* of the budget, for each problem; INFINITY: no limit */
    int signal;     /* that ended the run, or 0 */
} attn_tune_result;

/* Runs until everything is done, the budget is spent or a signal came. ATTN_OK even if some problem
 * has no winner: see the summaries. Errors: of the database, the generator (outside a family),
 * of starting workers, or ERR_IO if compilers cannot write their files. *result is valid in every
 * case; free it with attn_tune_result_free.
 *
 * Running the same command again resumes: trials that have an end are not repeated, and a problem
 * whose search was complete, or that had a share of this size before (in runs of all families), and
 * whose winner is fresh (same sources, toolchain, environment, threads, mode) is only reported,
 * unless `again` or `fresh`. Such a problem's share of the budget is not spent; the rest is dealt
 * evenly, each time anew, among the problems that are still to be searched, those without a winner
 * first. Where shares are too short to measure anything, the first problems have the time of the
 * last. */
attn_status attn_tune_run(const attn_tune_options *options, attn_tune_result *result,
                          attn_error *err);
void attn_tune_result_free(attn_tune_result *result);

/* The command that shows one trial's failure again:
 *     attntune verify PROBLEM --device cpu --family cpu/simd_forward --config "BK=64 NV=2" */
void attn_tune_reproducer(const attn_tune_trial *trial, const attn_tune_options *options,
                          attn_str *out);

#endif
