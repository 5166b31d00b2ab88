/* pool.h: the threads that run CPU kernels.
 *
 * A call is a short list of steps; the tasks of a step are dealt to the caller (worker 0) and the
 * pool's threads, and a step begins when the one before has ended. The caller never depends on a
 * thread: one that is slow to wake, or that could not be created, only helps less. Which worker
 * runs which task changes no result, since tasks share nothing but read-only inputs. */
#ifndef ATTN_POOL_H
#define ATTN_POOL_H

#include <sched.h>

#include "core/launch.h"

typedef struct attn_pool attn_pool;

/* A kernel's entry point: see attn_abi.h. */
typedef int attn_task_function(const attn_forward_args *args, int task, int worker);

typedef struct attn_pool_step {
    attn_task_function *function;
    const attn_forward_args *args; /* tiles is of this step */
    const attn_step *step;         /* order and dealing */
    int32_t tasks;
} attn_pool_step;

/* A pool of so many workers, the caller included. Threads start with the first call that wants
 * them: their creation is the only allocation and the only system call but futex wait and wake. */
attn_status attn_pool_create(int32_t threads, attn_pool **pool, attn_error *err);

/* No call may be running. Also right in the child of a fork, where the threads do not exist. */
void attn_pool_destroy(attn_pool *pool);

int32_t attn_pool_threads(const attn_pool *pool);

/* Runs the steps (at most ATTN_STEPS_MAX) on at most so many workers; returns 0, or what a task
 * returned that failed (the other tasks have run all the same). Any thread may call at any time,
 * the child of a fork included; calls that want more than one worker take turns. With one worker,
 * or one task a step, there is no system call and no lock. */
int attn_pool_run(attn_pool *pool, const attn_pool_step *steps, int32_t count, int32_t workers);

/* For timing: pins the calling thread to the CPU it is on and each worker to one of the next ones
 * that the process may use; unpin undoes it. `before` keeps what was allowed. */
void attn_pool_pin(attn_pool *pool, cpu_set_t *before);
void attn_pool_unpin(attn_pool *pool, const cpu_set_t *before);

#endif
