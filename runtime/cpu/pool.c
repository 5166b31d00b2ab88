/* pool.c: dealing tasks to threads; see pool.h.
 *
 * The caller writes the job, opens the gate and changes the epoch, on which idle threads wait. A
 * thread enters by counting itself in at the open gate, and from then until it leaves the job
 * stays valid: the caller closes the gate when nothing is left to take, and waits for the count to
 * become 0. Threads that wake late find the gate closed and go back to sleep. */
#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "futex.h"

enum { GATE_OPEN = 1 << 30 }; /* the rest of the gate counts the threads inside */
enum { FORK_CHILD = 0, FORK_RESETTING, FORK_NONE };

typedef struct run_cursor {
    ATTN_OWN_LINE _Atomic uint32_t next;
} run_cursor;

typedef struct pool_thread {
    attn_pool *pool;
    pthread_t thread;
    int32_t worker;
    uint32_t epoch; /* of the pool when the thread was created */
} pool_thread;

struct attn_pool {
    attn_futex lock; /* held for the length of a call */
    attn_futex gate;
    attn_futex epoch;
    attn_futex done[ATTN_STEPS_MAX]; /* tasks that have ended */

    int32_t threads;
    int32_t started;  /* threads that exist; under the lock */
    bool start_fails; /* thread creation failed: not tried again; under the lock */
    pool_thread *thread;
    _Atomic uint32_t *fork_state; /* its page reads as zeros in the child of a fork */
    pid_t pid;                    /* where the kernel has no such pages; else 0 */

    /* The job: written by the caller before the gate opens. */
    const attn_pool_step *steps;
    int32_t count;
    int32_t workers;
    run_cursor *cursor; /* [ATTN_STEPS_MAX][threads]: the next position of each run of tasks */
    _Atomic int failure;
    _Atomic int32_t wanted; /* sleeping threads still to be woken */
    _Atomic bool stop;
};

int32_t attn_pool_threads(const attn_pool *pool) {
    return pool->threads;
}

/* The tasks of a step are dealt in runs, each with its own cursor: one run for all workers
 * (dynamic), or one for each (static). */
static int32_t step_runs(const attn_pool *pool, int32_t s) {
    return pool->steps[s].step->deal == ATTN_DEAL_STATIC ? pool->workers : 1;
}

static uint32_t run_begin(const attn_pool_step *step, int32_t run, int32_t runs) {
    return (uint32_t)((int64_t)step->tasks * run / runs);
}

static void run_task(attn_pool *pool, const attn_pool_step *step, int64_t position,
                     int32_t worker) {
    int64_t task = attn_step_task_at(step->step, position, step->args->tiles, step->tasks);
    int result = step->function(step->args, (int)task, worker);
    if (result)
        atomic_store_explicit(&pool->failure, result, memory_order_relaxed);
}

/* Takes tasks from the worker's own run, then from those of workers that are behind. */
static void take_tasks(attn_pool *pool, int32_t s, int32_t worker) {
    const attn_pool_step *step = &pool->steps[s];
    int32_t runs = step_runs(pool, s);
    uint32_t taken = 0;
    for (int32_t i = 0; i < runs; i++) {
        int32_t run = (worker + i) % runs;
        uint32_t end = run_begin(step, run + 1, runs);
        _Atomic uint32_t *next = &pool->cursor[s * pool->threads + run].next;
        while (atomic_load_explicit(next, memory_order_relaxed) < end) {
            uint32_t position = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
            if (position >= end)
                break;
            run_task(pool, step, position, worker);
            taken++;
        }
    }
    if (taken && atomic_fetch_add(&pool->done[s].value, taken) + taken == (uint32_t)step->tasks)
        attn_futex_wake(&pool->done[s], INT_MAX);
}

static void work(attn_pool *pool, int32_t worker) {
    for (int32_t s = 0; s < pool->count; s++) {
        uint32_t done;
        take_tasks(pool, s, worker);
        if (s == pool->count - 1)
            break;
        while ((done = atomic_load(&pool->done[s].value)) != (uint32_t)pool->steps[s].tasks)
            attn_futex_wait(&pool->done[s], done);
    }
}

/* Everybody who works wakes at most two, so that n sleepers wake in log n steps. */
static void wake_some(attn_pool *pool) {
    int count = 0;
    while (count < 2 && atomic_load_explicit(&pool->wanted, memory_order_relaxed) > 0 &&
           atomic_fetch_sub_explicit(&pool->wanted, 1, memory_order_relaxed) > 0)
        count++;
    if (count)
        attn_futex_wake(&pool->epoch, count);
}

static bool gate_enter(attn_pool *pool) {
    uint32_t gate = atomic_load(&pool->gate.value);
    while (gate & GATE_OPEN)
        if (atomic_compare_exchange_weak(&pool->gate.value, &gate, gate + 1))
            return true;
    return false;
}

static void gate_leave(attn_pool *pool) {
    if (atomic_fetch_sub(&pool->gate.value, 1) == 1)
        attn_futex_wake(&pool->gate, 1);
}

static void *thread_main(void *context) {
    pool_thread *self = context;
    attn_pool *pool = self->pool;
    uint32_t epoch = self->epoch;
    for (;;) {
        epoch = attn_futex_wait(&pool->epoch, epoch);
        if (atomic_load(&pool->stop))
            return NULL;
        if (!gate_enter(pool))
            continue;
        if (self->worker < pool->workers) {
            wake_some(pool);
            work(pool, self->worker);
        }
        gate_leave(pool);
    }
}

/* Signals go to the program's own threads. */
static void start_threads(attn_pool *pool) {
    sigset_t all, before;
    if (pool->started == pool->threads - 1 || pool->start_fails)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->started < pool->threads - 1) {
        pool_thread *t = &pool->thread[pool->started];
        *t = (pool_thread){
            .pool = pool, .worker = pool->started + 1, .epoch = atomic_load(&pool->epoch.value)};
        pool->start_fails = pthread_create(&t->thread, NULL, thread_main, t) != 0;
        if (pool->start_fails)
            break;
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool in_fork_child(const attn_pool *pool) {
    return pool->pid ? pool->pid != getpid() : atomic_load(pool->fork_state) != FORK_NONE;
}

/* The child of a fork has one thread, and the pool as it was in the midst of anything. The first
 * call there resets it; should there be two first calls, one waits for the other. */
static void reset_after_fork(attn_pool *pool) {
    uint32_t state = FORK_CHILD;
    if (!in_fork_child(pool))
        return;
    if (pool->pid)
        atomic_store(pool->fork_state, FORK_CHILD);
    if (!atomic_compare_exchange_strong(pool->fork_state, &state, FORK_RESETTING)) {
        while (atomic_load(pool->fork_state) == FORK_RESETTING)
            attn_cpu_relax();
        return;
    }
    attn_futex_reset(&pool->lock);
    attn_futex_reset(&pool->gate);
    attn_futex_reset(&pool->epoch);
    pool->started = 0;
    pool->start_fails = false;
    pool->pid = pool->pid ? getpid() : 0;
    atomic_store(pool->fork_state, FORK_NONE);
}

static int run_alone(const attn_pool_step *steps, int32_t count) {
    int failure = 0;
    for (const attn_pool_step *s = steps; s < steps + count; s++)
        for (int32_t n = 0; n < s->tasks; n++) {
            int64_t task = attn_step_task_at(s->step, n, s->args->tiles, s->tasks);
            int result = s->function(s->args, (int)task, 0);
            failure = result ? result : failure;
        }
    return failure;
}

static void prepare_job(attn_pool *pool, const attn_pool_step *steps, int32_t count,
                        int32_t workers, int32_t wanted) {
    pool->steps = steps;
    pool->count = count;
    pool->workers = workers;
    atomic_store_explicit(&pool->failure, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->wanted, wanted, memory_order_relaxed);
    for (int32_t s = 0; s < count; s++) {
        int32_t runs = step_runs(pool, s);
        attn_futex_reset(&pool->done[s]);
        for (int32_t r = 0; r < runs; r++)
            atomic_store_explicit(&pool->cursor[s * pool->threads + r].next,
                                  run_begin(&steps[s], r, runs), memory_order_relaxed);
    }
}

/* Wakes as many threads as there are tasks for. It cannot be said which ones the kernel wakes, so
 * all may enter whose number is below `workers`. */
static int run_together(attn_pool *pool, const attn_pool_step *steps, int32_t count,
                        int32_t workers, int32_t wanted) {
    uint32_t inside;
    attn_futex_lock(&pool->lock);
    start_threads(pool);
    prepare_job(pool, steps, count, workers, wanted);
    atomic_store(&pool->gate.value, GATE_OPEN);
    atomic_fetch_add(&pool->epoch.value, 1);
    wake_some(pool);
    work(pool, 0);
    atomic_fetch_and(&pool->gate.value, ~(uint32_t)GATE_OPEN);
    while ((inside = atomic_load(&pool->gate.value)) != 0)
        attn_futex_wait(&pool->gate, inside);
    int failure = atomic_load(&pool->failure);
    attn_futex_unlock(&pool->lock);
    return failure;
}

int attn_pool_run(attn_pool *pool, const attn_pool_step *steps, int32_t count, int32_t workers) {
    int32_t tasks = 0;
    for (int32_t s = 0; s < count; s++)
        tasks = steps[s].tasks > tasks ? steps[s].tasks : tasks;
    workers = workers < pool->threads ? workers : pool->threads;
    if (workers <= 1 || tasks <= 1)
        return run_alone(steps, count);
    reset_after_fork(pool);
    return run_together(pool, steps, count, workers, (workers < tasks ? workers : tasks) - 1);
}

static attn_status pool_allocate(attn_pool *pool, attn_error *err) {
    size_t threads = (size_t)pool->threads, size = ATTN_STEPS_MAX * threads * sizeof(run_cursor);
    pool->thread = calloc(threads, sizeof *pool->thread);
    pool->cursor = aligned_alloc(_Alignof(run_cursor), size);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pool->fork_state = page == MAP_FAILED ? NULL : page;
    if (!pool->thread || !pool->cursor || !pool->fork_state)
        return attn_fail_nomem(err);
    memset(pool->cursor, 0, size);
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0)
        pool->pid = getpid();
    atomic_store(pool->fork_state, FORK_NONE);
    return ATTN_OK;
}

attn_status attn_pool_create(int32_t threads, attn_pool **pool, attn_error *err) {
    attn_pool *made = aligned_alloc(_Alignof(attn_pool), sizeof(attn_pool));
    *pool = NULL;
    if (!made)
        return attn_fail_nomem(err);
    memset(made, 0, sizeof *made);
    made->threads = threads > 1 ? threads : 1;
    if (pool_allocate(made, err) != ATTN_OK) {
        attn_pool_destroy(made);
        return err->status;
    }
    *pool = made;
    return ATTN_OK;
}

void attn_pool_destroy(attn_pool *pool) {
    if (!pool)
        return;
    if (pool->started > 0 && !in_fork_child(pool)) {
        atomic_store(&pool->stop, true);
        atomic_fetch_add(&pool->epoch.value, 1);
        attn_futex_wake(&pool->epoch, INT_MAX);
        for (int32_t i = 0; i < pool->started; i++)
            pthread_join(pool->thread[i].thread, NULL);
    }
    if (pool->fork_state)
        munmap((void *)pool->fork_state, 4096);
    free(pool->cursor);
    free(pool->thread);
    free(pool);
}

void attn_pool_pin(attn_pool *pool, cpu_set_t *before) {
    int cpu = sched_getcpu();
    CPU_ZERO(before);
    if (cpu < 0 || pthread_getaffinity_np(pthread_self(), sizeof *before, before) != 0 ||
        CPU_COUNT(before) == 0)
        return;
    reset_after_fork(pool);
    attn_futex_lock(&pool->lock);
    start_threads(pool);
    for (int32_t i = -1; i < pool->started; i++) {
        cpu_set_t one;
        while (!CPU_ISSET((size_t)cpu % CPU_SETSIZE, before))
            cpu++;
        CPU_ZERO(&one);
        CPU_SET((size_t)cpu % CPU_SETSIZE, &one);
        pthread_setaffinity_np(i < 0 ? pthread_self() : pool->thread[i].thread, sizeof one, &one);
        cpu++;
    }
    attn_futex_unlock(&pool->lock);
}

void attn_pool_unpin(attn_pool *pool, const cpu_set_t *before) {
    if (CPU_COUNT(before) == 0)
        return;
    attn_futex_lock(&pool->lock);
    for (int32_t i = -1; i < pool->started; i++)
        pthread_setaffinity_np(i < 0 ? pthread_self() : pool->thread[i].thread, sizeof *before,
                               before);
    attn_futex_unlock(&pool->lock);
}
