/* job.h: one problem on one device, from its first candidate to the decision. Inside the tuner.
 *
 *     job_space.c      the families' spaces as one search space, and the points to begin with
 *     job_resume.c     what earlier runs have left
 *     job_candidate.c  a point rendered: its identity, its claim, its end
 *     job_feed.c       which points are tried next
 *     job_device.c     what the device's worker is asked: prove, race, rounds
 *     job_final.c      finalists and the decision
 *     job.c            the loop over these, and its deadlines */
#ifndef ATTN_JOB_H
#define ATTN_JOB_H

#include "backend.h"
#include "builders.h"
#include "search.h"
#include "tune.h"

/* A device with its worker: outlives a problem. */
typedef struct attn_lane {
    const attn_tune_options *options;
    const attn_strategy *strategy;
    attn_builders *builders; /* shared by all lanes */
    const attn_backend *backend;
    attn_device_info device; /* as the worker has opened it, with the threads asked for */
    attn_worker worker;
    bool opened;            /* the worker has the device ... */
    bool ready;             /* ... and the present problem */
    char said[400];         /* the last note on what is not compared, so that it is made once */
    int64_t waits_since_ns; /* for another tuner that holds the timing lock; 0: it does not */
    bool noted;             /* a note was made that it waits for long */
    bool held_up;           /* before its first problem, to the end of the budget */
} attn_lane;

typedef struct attn_family {
    attn_space *space;
    const char *name; /* owned by the generator */
    attn_hash source;
    int32_t preference; /* see gen.h */
    size_t first_point; /* the default's; ATTN_SEARCH_END if it has none for this problem */
} attn_family;

typedef enum attn_stage { ATTN_WAITING, ATTN_COMPILING, ATTN_BUILT, ATTN_PROVED } attn_stage;

/* A variant on its way through the stages. */
typedef struct attn_candidate {
    struct attn_candidate *next;
    attn_stage stage;
    size_t point;
    attn_variant variant;
    attn_launch launch;
    char *target;
    const char *toolchain; /* owned by the job */
    attn_hash build;
    attn_trial_id id;          /* empty: not claimed (no database, or a finalist) */
    const attn_binary *binary; /* of the pool */
    uint32_t slot;
    bool begun;   /* the database has been told that a worker has it */
    bool doubted; /* failed once, on a worker that others had used before it */
    attn_trial_result result;
} attn_candidate;

/* A trial that ended ok, now or earlier: what finalists are chosen from. */
typedef struct attn_passed {
    size_t point;
    double ns; /* median of its race */
    int32_t registers, smem;
    attn_trial_id id;
    bool out; /* failed when it was looked at again */
} attn_passed;

/* The winner that the database has: for families as they are, with the toolchain of now. */
typedef struct attn_stored {
    char *family; /* NULL: there is none */
    char *config;
    size_t point; /* ATTN_SEARCH_END: the present search has none such */
    bool rival;   /* of another family than the only one that this run is about */
    double ns;    /* of its final rounds, or of its race */
    double
        band; /* 1: there were no final rounds, its default was not among them, or noise hid all */
    double default_ns;
} attn_stored;

typedef struct attn_toolchain attn_toolchain;

/* What a problem may take. No limits: INT64_MAX, INFINITY. */
typedef struct attn_job_time {
    int64_t end_ns;     /* attn_now_ns; its part of the budget is over */
    int64_t patient_ns; /* as long as nothing of it has been measured: no earlier than end_ns */
    double share_s;     /* of the budget, as is each problem's */
} attn_job_time;

typedef struct attn_points {
    size_t *at;
    size_t count, next, capacity;
} attn_points;

enum { ATTN_CUT_OFF = 255 }; /* the end of an earlier run cut it off, once: it is tried again */
enum { ATTN_BATCH = 4, ATTN_FINALISTS = 5, ATTN_ROUNDS = 11, ATTN_REPEATS = 10 };

typedef struct attn_job {
    attn_lane *lane;
    const attn_tune_options *options;
    const attn_problem *problem;
    attn_tune_summary *summary;
    attn_tune_progress progress; /* as last reported */

    attn_family family[ATTN_SEARCH_FAMILIES];
    size_t families;
    attn_search_space space;
    attn_search *search;
    attn_points first; /* to begin with: defaults, earlier winners */
    attn_points
        late; /* put off: another session is at them, one died over them, or time was short */
    size_t late_due; /* of these, those whose time has come although the search goes on */
    attn_hash *lost; /* variants that a session died over */
    size_t lost_count;
    attn_toolchain *toolchains;
    size_t unbuildable; /* points whose compiler is not here, or is broken */
    bool faulty;        /* some points cannot be rendered: a space or template has an error */
    char refused[400];  /* why the first point that cannot be tried cannot be; "": all can */

    attn_candidate *on_way;
    size_t on_way_count;
    size_t moves; /* steps taken by any candidate: while there are some, nothing is waited for */
    attn_passed *passed;
    size_t passed_count, passed_capacity;
    double best_ns; /* NaN: none yet */
    bool exhausted; /* every point was taken */
    bool cut;       /* some that were asked for were dropped instead, for want of time */
    bool held_up;   /* it has waited long for another tuner that holds the timing lock */

    attn_candidate *asked[ATTN_FINALISTS + ATTN_SEARCH_FAMILIES];
    size_t asked_count; /* whom the worker's present request is about; 0: nobody */
    int64_t asked_ns;   /* when */
    double race_s;      /* that a race has taken, the longest, fading */
    double proof_s;     /* mean of what a proof takes, the latest ones weighing most */
    bool worn;          /* the worker has run a variant before */
    int32_t losses;     /* of workers in a row, with no variant to blame */
    size_t batch;       /* variants of a race; 1 after a race was lost with nobody to blame */

    bool finals;
    bool limited; /* the device was seen at its power limit */
    bool held;    /* the finalists' rounds are those of attn_hold, or about to be ... */
    bool alone;   /* ... and are it */
    size_t finalist[ATTN_FINALISTS + ATTN_SEARCH_FAMILIES]; /* indices into passed */
    size_t finalist_count;
    double *round_ns; /* [rounds][finalist_count] */
    int32_t rounds;

    attn_stored stored;
    uint8_t *before; /* [points] 1 + the outcome that an earlier run has left; 0: none;
                      * ATTN_CUT_OFF; may be NULL */
    size_t cut_off;  /* points that are ATTN_CUT_OFF */

    int64_t begin_ns, search_end_ns; /* INT64_MAX: no limit */
    attn_job_time time;
    int64_t next_progress_ns;
    double seconds_before; /* spent by earlier runs */
    int signal;
} attn_job;

/* Tunes one problem within its time. Fails only for what ends the whole run: the database, memory,
 * no room for a compiler's files. The rest is told in *summary. If earlier runs have spent less
 * than the problem's share on it, the search goes on. */
attn_status attn_job_run(attn_lane *lane, const attn_problem *problem, const attn_tune_progress *at,
                         const attn_job_time *time, attn_tune_summary *summary, int *signal,
                         attn_error *err);

/* Has every point come to an end, and could every one be tried? */
bool attn_job_complete(const attn_job *job);

/* The search's time is up, but as nothing has been measured it may go on, one variant at a time. */
bool attn_job_is_patient(const attn_job *job);

/* Remembers why a point cannot be tried: the first such reason. */
void attn_job_refuse(attn_job *job, const char *line);

/* A line for the caller, as in attn_tune_events. */
void attn_job_note(const attn_job *job, const char *line);

/*-*** job_space.c ***********************************************/

/* Opens the spaces of all families that accept the problem. None: ERR_NOT_ACCEPTED, and err->line
 * says for each family why. */
attn_status attn_job_open_space(attn_job *job, attn_error *err);

/* Adds the points to begin with, then opens the search. */
attn_status attn_job_open_search(attn_job *job, attn_error *err);
void attn_job_close_space(attn_job *job);

attn_status attn_points_add(attn_points *points, size_t point, attn_error *err);

/* The default of the point's family, ATTN_SEARCH_END if it has none for this problem. */
size_t attn_job_default(const attn_job *job, size_t point);

/* The point of a stored configuration, ATTN_SEARCH_END if the present search has none such. */
size_t attn_job_point(const attn_job *job, const attn_db_row *row);

/*-*** job_resume.c **********************************************/

/* Looks at what earlier runs have left: the points tried, which count as such from the beginning,
 * and the winner. *done: there is nothing to do, the winner is in the summary. This is the one
 * place that decides so. */
attn_status attn_job_resume(attn_job *job, bool *done, attn_error *err);

/* Has the database a winner that a job for the problem would begin with? The summary, if one is
 * given, then gets it. */
attn_status attn_lane_has_winner(const attn_lane *lane, const attn_problem *problem, bool *has,
                                 attn_tune_summary *summary, attn_error *err);

/* Before a decision: another tuner of the same file may have decided since the run began, and it is
 * that winner which ours has to beat. */
attn_status attn_job_look_again(attn_job *job, attn_error *err);
void attn_job_forget_stored(attn_job *job);

/* The stored winner, if there is one, is the summary's. */
attn_status attn_job_keep_stored(attn_job *job, attn_error *err);

/*-*** job_candidate.c *******************************************/

/* Renders a point. ERR_NOT_FOUND: it cannot be built or run here, which is no trial; other errors
 * end the run. *candidate is on the way. */
attn_status attn_candidate_make(attn_job *job, size_t point, attn_candidate **candidate,
                                attn_error *err);

attn_trial_key attn_candidate_key(const attn_job *job, const attn_candidate *candidate);

/* The oldest one at a stage, but before it the one that has been promised a fresh worker; NULL if
 * there is none. *count is how many there are. */
attn_candidate *attn_candidate_oldest(const attn_job *job, attn_stage stage, size_t *count);

/* Tells the database which claims are in workers' hands: those compiling, and those asked about. To
 * be called before anything is sent. */
attn_status attn_candidates_mark(attn_job *job, attn_error *err);

/* Has it compiled, or takes the binary from the database. */
attn_status attn_candidate_build(attn_job *job, attn_candidate *candidate, attn_error *err);

/* Ends its trial with its result: records, tells the search and the caller. Frees it. */
attn_status attn_candidate_end(attn_job *job, attn_candidate *candidate, attn_error *err);

/* Its compiler is broken, as `line` says: no trial, neither for it nor for others of that compiler.
 * Frees it. */
attn_status attn_candidate_unbuildable(attn_job *job, attn_candidate *candidate, const char *line,
                                       attn_error *err);

/* The same for a result that was found in the database. */
attn_status attn_candidate_repeat(attn_job *job, attn_candidate *candidate, attn_error *err);

/* Takes it off the way and frees it; a claim is given back. */
attn_status attn_candidate_drop(attn_job *job, attn_candidate *candidate, attn_error *err);

/* Why no compiler is here for any point rendered so far; NULL: there is one, or no point. */
const char *attn_job_missing(const attn_job *job);

void attn_job_free_toolchains(attn_job *job);
void attn_trial_result_init(attn_trial_result *result);

/*-*** job_feed.c ************************************************/

/* Starts as many trials as there is room for. */
attn_status attn_job_feed(attn_job *job, attn_error *err);

/* Takes what the compilers have ended. */
attn_status attn_job_collect(attn_job *job, attn_error *err);

/*-*** job_device.c **********************************************/

/* Gives an idle worker its next request, if there is one; takes the answer of one that has ended.
 * ERR_DEVICE: the device cannot be used (any more). */
attn_status attn_job_device(attn_job *job, attn_error *err);

/* Is a compile kept from running while the device is sampled? Then races are worth bundling. */
bool attn_lane_shares_cpu(const attn_lane *lane);

/* Asks the worker for the device, without a job. */
attn_status attn_lane_open(attn_lane *lane, attn_error *err);

/*-*** job_final.c ***********************************************/

/* Chooses the finalists and sets them on their way; none: job->finals stays false. */
attn_status attn_job_begin_finals(attn_job *job, attn_error *err);

/* Takes rounds that have been measured; *more: there should be more of them. */
attn_status attn_job_take_rounds(attn_job *job, const double *ns, int32_t rounds, bool *more,
                                 attn_error *err);

/* Chooses the winner from the rounds (or, without, from the races), and records it. */
attn_status attn_job_decide(attn_job *job, attn_error *err);

/* A finalist has failed: it is out. Frees the candidate. */
attn_status attn_job_lose_finalist(attn_job *job, attn_candidate *candidate, attn_error *err);

/* What finals will take, seconds. */
double attn_job_final_seconds(const attn_job *job);

#endif
