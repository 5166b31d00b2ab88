/* test_pool.c: the worker pool: every task once, steps in order, calls from many threads, forks,
 * threads that cannot be made. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "pool.h"

enum { TASKS = 300 };

/* The tensors of a call: each task of step 0 adds 1 to its count, each task of step 1 sees that all
 * of step 0 are done. */
typedef struct board {
    int count[TASKS];
    int second[TASKS];
    int wrong;
    _Atomic int worker_seen[64];
} board;

static int first_step(const attn_forward_args *args, int task, int worker) {
    board *b = args->o;
    b->count[task]++;
    atomic_store(&b->worker_seen[worker], 1);
    return 0;
}

static int second_step(const attn_forward_args *args, int task, int worker) {
    board *b = args->o;
    (void)worker;
    for (int i = 0; i < TASKS; i++)
        if (b->count[i] != 1) {
            b->second[task] = -1000;
            return 0;
        }
    b->second[task]++;
    return 0;
}

static int failing_step(const attn_forward_args *args, int task, int worker) {
    first_step(args, task, worker);
    return task == 17 ? 5 : 0;
}

static bool run_board(attn_pool *pool, attn_deal deal, attn_order order, int workers) {
    board b;
    memset(&b, 0, sizeof b);
    attn_forward_args args = {.o = &b, .tiles = TASKS / 3};
    attn_step step = {.rows = 1, .deal = deal, .order = order};
    attn_pool_step steps[] = {{first_step, &args, &step, TASKS},
                              {second_step, &args, &step, TASKS}};
    if (attn_pool_run(pool, steps, 2, workers) != 0)
        return false;
    for (int i = 0; i < TASKS; i++)
        if (b.count[i] != 1 || b.second[i] != 1)
            return false;
    for (int w = workers; w < 64; w++)
        if (b.worker_seen[w])
            return false;
    return true;
}

static attn_pool *new_pool(int threads) {
    attn_pool *pool;
    attn_error err = ATTN_ERROR_INIT;
    CHECK_OK(attn_pool_create(threads, &pool, &err), err.line);
    return pool;
}

static void test_dealing(void) {
    for (int threads = 1; threads <= 9; threads += 2) {
        attn_pool *pool = new_pool(threads);
        CHECK_EQ_INT(attn_pool_threads(pool), threads);
        for (int i = 0; i < 40; i++) {
            CHECK_CASE("%d threads, run %d", threads, i);
            CHECK(run_board(pool, i & 1 ? ATTN_DEAL_STATIC : ATTN_DEAL_DYNAMIC,
                            i & 2 ? ATTN_ORDER_LONGEST_FIRST : ATTN_ORDER_ROW,
                            i & 4 ? threads : 1 + i % threads));
        }
        attn_pool_destroy(pool);
    }
    CHECK_CASE("%s", "");
    attn_pool_destroy(NULL);
}

static void test_edges(void) {
    attn_pool *pool = new_pool(4);
    board b = {0};
    attn_forward_args args = {.o = &b, .tiles = 1};
    attn_step step = {.rows = 1, .deal = ATTN_DEAL_STATIC};
    for (int tasks = 0; tasks < 6; tasks++) {
        memset(&b, 0, sizeof b);
        attn_pool_step steps[] = {{first_step, &args, &step, 0},
                                  {first_step, &args, &step, tasks},
                                  {first_step, &args, &step, 0}};
        CHECK_EQ_INT(attn_pool_run(pool, steps, 3, 4), 0);
        for (int i = 0; i < 6; i++)
            CHECK_EQ_INT(b.count[i], i < tasks);
    }
    for (int workers = 1; workers <= 4; workers += 3) {
        memset(&b, 0, sizeof b);
        attn_pool_step failing = {failing_step, &args, &step, TASKS};
        CHECK_EQ_INT(attn_pool_run(pool, &failing, 1, workers), 5);
        CHECK_EQ_INT(b.count[TASKS - 1], 1);
    }
    CHECK(run_board(pool, ATTN_DEAL_DYNAMIC, ATTN_ORDER_ROW, 4)); /* the failure is forgotten */
    attn_pool_destroy(pool);
}

/* Worker 0's first task lasts until all others have ended. */
typedef struct slow {
    _Atomic int ended;
    bool begun, late;
} slow;

static int slow_step(const attn_forward_args *args, int task, int worker) {
    slow *s = args->o;
    time_t begin = time(NULL);
    (void)task;
    while (worker == 0 && !s->begun && atomic_load(&s->ended) < TASKS - 1 && !s->late) {
        s->late = time(NULL) - begin > 20;
        sched_yield();
    }
    if (worker == 0)
        s->begun = true;
    atomic_fetch_add(&s->ended, 1);
    return 0;
}

/* A core that is slow, or busy with something else, keeps no others waiting: they take its share,
 * however tasks are dealt. */
static void test_slow_worker(void) {
    attn_pool *pool = new_pool(3);
    for (int i = 0; i < 4; i++) {
        slow s = {0};
        attn_forward_args args = {.o = &s, .tiles = TASKS};
        attn_step step = {.rows = 1, .deal = i % 2 ? ATTN_DEAL_STATIC : ATTN_DEAL_DYNAMIC};
        attn_pool_step steps[] = {{slow_step, &args, &step, TASKS}};
        CHECK_EQ_INT(attn_pool_run(pool, steps, 1, 3), 0);
        CHECK_EQ_INT(s.ended, TASKS);
        CHECK(!s.late);
    }
    attn_pool_destroy(pool);
}

static void *caller(void *pool) {
    for (int i = 0; i < 60; i++)
        if (!run_board(pool, i & 1 ? ATTN_DEAL_STATIC : ATTN_DEAL_DYNAMIC, ATTN_ORDER_ROW, 3))
            return pool;
    return NULL;
}

static void test_many_callers(void) {
    attn_pool *pool = new_pool(3);
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, caller, pool), 0);
    for (int i = 0; i < 16; i++) {
        void *result = pool;
        pthread_join(threads[i], &result);
        CHECK(result == NULL);
    }
    attn_pool_destroy(pool);
}

/* The thread sanitizer cannot follow threads made in the child of a fork. */
#if defined(__SANITIZE_THREAD__)
enum { FORKS_MAY_MAKE_THREADS = false };
#else
enum { FORKS_MAY_MAKE_THREADS = true };
#endif

/* Runs `body` in a child and gives its exit code, or -1 if it hung or crashed. */
static int in_child(bool (*body)(attn_pool *), attn_pool *pool) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        _exit(body(pool) ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool child_runs(attn_pool *pool) {
    bool good = run_board(pool, ATTN_DEAL_DYNAMIC, ATTN_ORDER_ROW, 4);
    for (int i = 0; i < 20; i++)
        good = good && run_board(pool, ATTN_DEAL_STATIC, ATTN_ORDER_ROW, 4);
    attn_pool_destroy(pool);
    return good;
}

static bool grandchild_runs(attn_pool *pool) {
    return in_child(child_runs, pool) == 0 && run_board(pool, ATTN_DEAL_DYNAMIC, ATTN_ORDER_ROW, 4);
}

static bool child_destroys(attn_pool *pool) {
    attn_pool_destroy(pool);
    return true;
}

static void *keep_calling(void *context) {
    void **pool_and_stop = context;
    while (!atomic_load((_Atomic int *)pool_and_stop[1]))
        run_board(pool_and_stop[0], ATTN_DEAL_DYNAMIC, ATTN_ORDER_ROW, 4);
    return NULL;
}

static void test_fork(void) {
    attn_pool *pool = new_pool(4);
    CHECK_EQ_INT(in_child(child_runs, pool), 0); /* before there are threads */
    CHECK(run_board(pool, ATTN_DEAL_DYNAMIC, ATTN_ORDER_ROW, 4));
    CHECK_EQ_INT(in_child(child_runs, pool), 0);
    CHECK_EQ_INT(in_child(child_destroys, pool), 0);
    CHECK_EQ_INT(in_child(grandchild_runs, pool), 0);
    _Atomic int stop = 0;
    void *context[2] = {pool, &stop};
    pthread_t thread; /* forks while another thread is in the midst of a call */
    CHECK_EQ_INT(pthread_create(&thread, NULL, keep_calling, context), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ_INT(in_child(child_runs, pool), 0);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    attn_pool_destroy(pool);
}

static bool without_threads(attn_pool *pool) {
    const struct rlimit none = {0, 0};
    bool limited = setrlimit(RLIMIT_NPROC, &none) == 0 && (getuid() != 0 || setuid(65534) == 0);
    return limited && run_board(pool, ATTN_DEAL_STATIC, ATTN_ORDER_ROW, 4) &&
           run_board(pool, ATTN_DEAL_DYNAMIC, ATTN_ORDER_ROW, 4);
}

static void test_pin(void) {
    attn_pool *pool = new_pool(3);
    cpu_set_t before, now;
    attn_pool_pin(pool, &before);
    sched_getaffinity(0, sizeof now, &now);
    CHECK_EQ_INT(CPU_COUNT(&now), 1);
    CHECK(run_board(pool, ATTN_DEAL_DYNAMIC, ATTN_ORDER_ROW, 3));
    attn_pool_unpin(pool, &before);
    sched_getaffinity(0, sizeof now, &now);
    CHECK(CPU_EQUAL(&now, &before));
    attn_pool_destroy(pool);
}

int main(void) {
    test_dealing();
    test_edges();
    test_slow_worker();
    test_many_callers();
    test_pin();
    attn_pool *pool = new_pool(4);
    CHECK_EQ_INT(in_child(without_threads, pool), 0);
    attn_pool_destroy(pool);
    if (FORKS_MAY_MAKE_THREADS)
        test_fork();
    return check_done();
}
