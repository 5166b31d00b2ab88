/* builders.h: a pool of worker processes that compile.
 *
 * Tasks are done in the order they were added. What was built is kept, by its key, while the pool
 * lives, so that identical builds compile once: for the next problem of the same class, too. */
#ifndef ATTN_BUILDERS_H
#define ATTN_BUILDERS_H

#include "backend.h"
#include "worker.h"

typedef struct attn_builders attn_builders;

/* jobs: processes at once, at least 1. None is started before it has something to do. */
attn_status attn_builders_open(int32_t jobs, attn_builders **builders, attn_error *err);
void attn_builders_close(attn_builders *builders);

/* What came of a task. */
typedef struct attn_built {
    void *owner;               /* as added */
    attn_outcome outcome;      /* OK, COMPILE_ERROR, TIMEOUT, OOM or CRASH */
    bool hopeless;             /* no build would fare better: no folder for files, a full disk */
    bool no_tool;              /* none with this compiler would, which is no fault of the build */
    const attn_binary *binary; /* if OK; owned by the pool, good until attn_builders_trim */
    char line[ATTN_TRIAL_ERROR];
} attn_built;

/* Copies everything of the build. owner is not NULL. ERR_NOMEM. */
attn_status attn_builders_add(attn_builders *builders, const attn_backend *backend,
                              const attn_build *build, void *owner, attn_error *err);

/* Puts a binary that is there already (from the database) into the pool; it takes it over. */
attn_status attn_builders_keep(attn_builders *builders, attn_binary *binary, attn_error *err);

/* How many more tasks would begin at once. */
size_t attn_builders_idle(const attn_builders *builders);

/* Nobody waits for this owner's task any more. A compiler that is at it goes on. */
void attn_builders_forget(attn_builders *builders, const void *owner);

/* Between problems, when no binary is in use: drops some if they have become too many, and ends the
 * compilers that nobody waits for. */
void attn_builders_trim(attn_builders *builders);

/* Looks, without waiting, after all workers, and sends them more to do. True: *built is a task that
 * has ended; call again until false. */
bool attn_builders_next(attn_builders *builders, attn_built *built);

/* The workers, to wait for; at most `room`. */
size_t attn_builders_workers(attn_builders *builders, attn_worker **workers, size_t room);

#endif
