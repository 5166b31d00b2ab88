/* test_threads.c: 64 threads that create plans and run problems on one context. */
#include "check.h"
#include "naive.h"

#include <pthread.h>

enum { THREADS = 64, ROUNDS = 6 };

static const char *const PROBLEMS[] = {
    "fwd:f32:b1:h2:s48:d64:causal",
    "fwd:f32:b2:hq4:hkv2:sq17:sk40:d64:causal", /* the same class */
    "fwd:f32:b1:h2:s33:d16:lse",
    "fwd:f32:b1:h3:s20:d24:window4,0",
};

struct job {
    attn_context *ctx;
    unsigned seed;
    const char *fault; /* NULL: all went well */
};

static bool run_once(attn_context *ctx, const attn_problem *p, const attn_plan *plan) {
    naive_tensors n = {.t = ATTN_FORWARD_TENSORS_INIT};
    attn_forward_strides(p, &n.t);
    size_t bytes = plan ? attn_plan_workspace(plan) : attn_workspace_size(ctx, p, ATTN_DEVICE_CPU);
    void *ws = bytes ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
    bool good = naive_fill(p, &n) && (ws || !bytes);
    if (good)
        good = (plan ? attn_forward(plan, &n.t, ws, bytes, NULL)
                     : attn_run(ctx, p, ATTN_DEVICE_CPU, &n.t, ws, bytes, NULL)) == ATTN_OK;
    good = good && naive_error(p, &n) <= 2e-5;
    free(ws);
    naive_free(&n);
    return good;
}

static void *work(void *argument) {
    struct job *job = argument;
    for (unsigned i = 0; i < ROUNDS && !job->fault; i++) {
        attn_problem p;
        attn_plan *plan = NULL;
        const char *text = PROBLEMS[(job->seed + i) % (sizeof PROBLEMS / sizeof PROBLEMS[0])];
        if (attn_problem_parse(text, &p, NULL, 0) != ATTN_OK)
            job->fault = "parse";
        else if (i % 2 &&
                 attn_plan_create(job->ctx, &p, ATTN_DEVICE_CPU, ATTN_ESTIMATE, &plan) != ATTN_OK)
            job->fault = "plan";
        else if (!run_once(job->ctx, &p, plan))
            job->fault = text;
        attn_plan_destroy(plan);
    }
    return NULL;
}

int main(void) {
    attn_context *ctx = NULL;
    static pthread_t threads[THREADS];
    static struct job jobs[THREADS];
    if (!CHECK_OK(attn_open(NULL, &ctx), attn_last_error(NULL)))
        return check_done();
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){ctx, i, NULL};
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ_INT(pthread_join(threads[i], NULL), 0);
        CHECK_STR(jobs[i].fault, NULL);
    }
    attn_close(ctx);
    return check_done();
}
