/* db.h: the store of what was measured.
 *
 * The only door to SQLite. One file, WAL, synchronous=FULL; every read-modify-write is BEGIN
 * IMMEDIATE and every statement is prepared. A handle is used by one thread at a time; any number
 * of processes may share a file. Nothing committed is lost by a crash.
 *
 * The file holds code that will run, so a file (or its -wal, -shm or folder) that others can
 * write is refused: ERR_DB_UNSAFE. Other refusals: ERR_DB_NEWER (a newer schema),
 * ERR_DB_FOREIGN (not ours), ERR_DB (damaged, full disk, no locks), ERR_IO (cannot be opened); the
 * line names the file and the remedy. */
#ifndef ATTN_DB_H
#define ATTN_DB_H

#include <stdbool.h>

#include "core/build.h"
#include "core/device_info.h"
#include "core/problem.h"
#include "core/variant.h"

typedef struct attn_db attn_db;

typedef enum attn_db_mode {
    ATTN_DB_WRITE, /* created, migrated, folders made (0700) if need be */
    ATTN_DB_READ,  /* ERR_NOT_FOUND if it does not exist; ERR_DB if its schema is an older one */
    ATTN_DB_SYSTEM /* as READ, opened immutable: no lock, no -wal, for read-only folders */
} attn_db_mode;

attn_status attn_db_open(const char *path, attn_db_mode mode, attn_db **db, attn_error *err);
void attn_db_close(attn_db *db);
const char *attn_db_path(const attn_db *db);

/* Where the databases are: option (may be NULL), else the environment, else the default. The
 * result is allocated; ERR_NOT_FOUND if there is no home folder to put it in. */
attn_status attn_db_user_path(const char *option, char **path, attn_error *err);
attn_status attn_db_system_path(const char *option, char **path, attn_error *err);

/*-*** Sessions **************************************************/

/* Registers this process, and turns the running trials of dead sessions into `lost`. */
attn_status attn_db_session_begin(attn_db *db, const char *command, attn_error *err);
attn_status attn_db_session_end(attn_db *db, attn_error *err);

/*-*** Trials ****************************************************/

#define ATTN_OUTCOME_MAP(XX)                                                                       \
    XX(RUNNING, "running")             /* claimed, not ended */                                    \
    XX(OK, "ok")                       /* verified and measured */                                 \
    XX(WRONG, "wrong")                 /* verification failed; final for the build */              \
    XX(COMPILE_ERROR, "compile_error") /* final for the build */                                   \
    XX(LOAD_ERROR, "load_error")                                                                   \
    XX(LAUNCH_ERROR, "launch_error") /* refused by the device; it goes on */                       \
    XX(CRASH, "crash")               /* took the worker with it */                                 \
    XX(TIMEOUT, "timeout")           /* compile or launch; retried once a session */               \
    XX(OOM, "oom")                   /* likewise */                                                \
    XX(PRUNED, "pruned")             /* compiled, but not worth timing: the error says why */      \
    XX(LOST, "lost")                 /* its session died; retried once, last, if it had begun */

typedef enum attn_outcome {
#define XX(name, text) ATTN_OUTCOME_##name,
    ATTN_OUTCOME_MAP(XX)
#undef XX
} attn_outcome;

const char *attn_outcome_name(attn_outcome outcome);
bool attn_outcome_parse(const char *text, attn_outcome *outcome);

typedef enum attn_mode { ATTN_COLD, ATTN_HOT } attn_mode;
const char *attn_mode_name(attn_mode mode);

/* What a trial is of. Texts and structs belong to the caller. */
typedef struct attn_trial_key {
    const attn_device_info *device;
    const attn_problem *problem;
    const attn_variant *variant;
    const char *toolchain;
    const char *target;    /* attn_backend.target */
    attn_hash source_hash; /* of the family's files */
    attn_hash build;
    int32_t threads;
    attn_mode mode;
    bool again; /* a claim: what failed before this session is tried again, unless it was wrong */
} attn_trial_key;

typedef struct attn_trial_id {
    char text[ATTN_HASH_TEXT];
} attn_trial_id;

enum { ATTN_SAMPLES_MAX = 64, ATTN_TRIAL_ERROR = 512 };

/* What came of it. Unknown numbers are NaN, or -1 for resources. */
typedef struct attn_trial_result {
    attn_outcome outcome;
    char error[ATTN_TRIAL_ERROR];
    double median_ns;
    double error_max;
    double clock_mhz;
    double power_w;
    double temperature_c;
    bool throttled;
    int32_t registers;
    int32_t spills;
    int32_t smem;
    int32_t samples;
    double sample_ns[ATTN_SAMPLES_MAX];
} attn_trial_result;

typedef enum attn_claim {
    ATTN_CLAIM_MINE, /* a running row was committed: mark it, then end it */
    ATTN_CLAIM_DONE, /* there is a result to use: *id and *result are set */
    ATTN_CLAIM_TAKEN /* another live session is at it */
} attn_claim;

/* Asks for the right to run a trial. DONE: an ok, pruned, load_error, launch_error or crash trial
 * of this build, problem, device, threads, mode and environment; a wrong or compile_error of the
 * build anywhere (the latter unless it has compiled since); a timeout or oom, in any session, that
 * ended after this session began; two `lost` that had begun. With key->again, failures other than
 * wrong count only if they ended after this session began. */
attn_status attn_db_claim(attn_db *db, const attn_trial_key *key, attn_claim *claim,
                          attn_trial_id *id, attn_trial_result *result, attn_error *err);

/* Says of claimed trials whether a worker has them: set before it is sent, so that a crash of the
 * machine leaves the name of what may have caused it; and taken back when the trial waits again.
 * What only waited when its session died does not count as lost. One transaction. */
typedef struct attn_trial_mark {
    attn_trial_id id;
    bool begun;
} attn_trial_mark;

attn_status attn_db_trial_mark(attn_db *db, const attn_trial_mark *marks, size_t count,
                               attn_error *err);

/* Ends a claimed trial: row, samples and resources in one transaction. */
attn_status attn_db_trial_end(attn_db *db, const attn_trial_id *id, const attn_trial_result *result,
                              attn_error *err);

/* Gives a claim back as if it had never been made (interrupted, budget over). */
attn_status attn_db_trial_drop(attn_db *db, const attn_trial_id *id, attn_error *err);

/* One finalist of the interleaved rounds, ranks in order of decision: entry 0 is the winner. */
typedef struct attn_finalist {
    attn_trial_id id;
    double final_ns;
    double band;
    int32_t rounds;
    const double *round_ns;
} attn_finalist;

/* How far the search behind a decision went, so that the same command knows there is no more to
 * do, and a larger budget that there is. */
typedef struct attn_search_extent {
    double seconds; /* spent on this problem so far, all sessions together */
    bool exhausted; /* nothing of the space (or of the core subset) was left untried */
} attn_search_extent;

/* Records the decision: clears earlier ranks of (problem, device, threads, mode) and sets these. */
attn_status attn_db_decide(attn_db *db, const attn_finalist *finalists, size_t count,
                           double default_ns, const attn_search_extent *extent, attn_error *err);

/*-*** Binaries **************************************************/

/* Keeps the binary of a build that has a row; then drops the binaries that are over the caps (20 a
 * problem and device, 512 MB in all; winners last). */
attn_status attn_db_binary_put(attn_db *db, attn_hash build, const attn_binary *binary,
                               attn_error *err);

/* ERR_NOT_FOUND if none is kept; ERR_DB if its hash does not match its content. */
attn_status attn_db_binary_get(attn_db *db, attn_hash build, attn_binary *binary, attn_error *err);

/*-*** Looking up ************************************************/

/* A trial with everything that is known of it, as look-ups, lists and exports see it. */
typedef struct attn_db_row {
    attn_trial_id id;
    attn_problem problem;
    attn_hash device; /* attn_device_hash */
    char *device_name;
    char *device_text; /* attn_device_parse reads it; without what may differ from day to day */
    char *arch;
    char *environment;
    char *toolchain;
    char *target;
    attn_variant variant; /* source is NULL: not stored */
    attn_hash source_hash;
    attn_hash build;
    int32_t abi;
    int32_t threads;
    attn_mode mode;
    attn_trial_result result; /* without samples */
    double final_ns;
    double band;
    double default_ns;
    int32_t rank;              /* 0: not a finalist */
    attn_search_extent extent; /* of a winner */
    bool has_binary;
    int64_t begun; /* Unix seconds; 0: no worker had it */
    int64_t ended;
} attn_db_row;

typedef struct attn_db_rows {
    attn_db_row *row;
    size_t count;
} attn_db_rows;

void attn_db_rows_free(attn_db_rows *rows);

/* All fields may be NULL (or 0): no restriction. */
typedef struct attn_db_filter {
    const char *class_text;         /* class of the problem */
    const attn_problem *problem;    /* exactly this one */
    const attn_device_info *device; /* this device ... */
    bool same_arch;                 /* ... or any of its architecture */
    const char *family;
    attn_hash variant; /* zero: any */
    bool winners;      /* rank 1 only */
    bool finalists;    /* rank 1 and more */
    bool ended;        /* no running rows */
    size_t limit;      /* 0: all */
} attn_db_filter;

/* Rows by problem, device, threads, mode, then rank, then time (fastest first). */
attn_status attn_db_find(attn_db *db, const attn_db_filter *filter, attn_db_rows *rows,
                         attn_error *err);

/*-*** Files *****************************************************/

/* Text export of what the filter matches (with devices, toolchains, problems, variants, builds;
 * without samples and binaries unless asked): reviewable, sorted, the form of db/seed. */
attn_status attn_db_export(attn_db *db, const attn_db_filter *filter, bool samples, attn_str *out,
                           attn_error *err);

typedef struct attn_db_counts {
    int64_t added;   /* trials */
    int64_t present; /* trials that were there already */
} attn_db_counts;

/* Imports an export; all or nothing. `name` is for messages: "seed.txt:12: ...". Ranks are taken
 * over only where this database has no winner of its own. */
attn_status attn_db_import(attn_db *db, const char *text, const char *name, attn_db_counts *counts,
                           attn_error *err);

/* Would an import take the text? What is wrong with it is found before there is a database. */
attn_status attn_db_import_check(const char *text, const char *name, attn_error *err);

/* Adds everything of another database file that is not here, binaries included: a trial is known by
 * its id. An incoming rank is cleared where this database has a winner of its own; running rows
 * stay behind; a build here that has no binary takes theirs. */
attn_status attn_db_merge(attn_db *db, const char *path, attn_db_counts *counts, attn_error *err);

/* As attn_db_import_check. */
attn_status attn_db_merge_check(const char *path, attn_error *err);

/* Drops the ended trials that keep() refuses (the caller judges whether family files, toolchain and
 * ABI are still current) and everything that nothing refers to any more. dropped->added is how many
 * went, dropped->present how many stayed. */
typedef bool attn_db_keep(void *user, const attn_db_row *row);
attn_status attn_db_prune(attn_db *db, attn_db_keep *keep, void *user, attn_db_counts *dropped,
                          attn_error *err);

/* Integrity: SQLite's own check, foreign keys, hashes of binaries, texts that parse. Each fault is
 * one line to report(). */
attn_status attn_db_check(attn_db *db, void (*report)(void *user, const char *line), void *user,
                          size_t *faults, attn_error *err);

#endif
