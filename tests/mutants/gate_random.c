/* gate_random.c: see gate_random.h. */
#include "gate_random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

enum { COMPILERS = 2, SPACE_MAX = 400000 };

/* What the compiling threads share: item i is taken by one thread. */
struct work {
    const cpu_host *host;
    attn_variant *rendered;
    cpu_variant *built;
    attn_status *status;
    attn_error *error;
    int count;
    int next; /* atomic */
};

static void *compile(void *argument) {
    struct work *w = argument;
    for (;;) {
        int i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED);
        if (i >= w->count)
            return NULL;
        w->status[i] = cpu_variant_build(w->host, &w->rendered[i], &w->built[i], &w->error[i]);
    }
}

static void compile_all(struct work *w) {
    pthread_t thread[COMPILERS];
    int started = 0;
    while (started < COMPILERS && pthread_create(&thread[started], NULL, compile, w) == 0)
        started++;
    if (started == 0)
        (void)compile(w);
    for (int i = 0; i < started; i++)
        (void)pthread_join(thread[i], NULL);
}

static attn_status render_random(attn_space *space, int n, attn_random *random, attn_variant *out,
                                 attn_error *err) {
    attn_config_list list;
    attn_status st = attn_space_list(space, false, SPACE_MAX, &list, err);
    for (int i = 0; st == ATTN_OK && i < n; i++)
        st = attn_space_render(space, &list.config[attn_random_below(random, list.count)], &out[i],
                               err);
    if (st == ATTN_OK)
        attn_config_list_free(&list);
    return st;
}

static int judge_all(const cpu_host *host, const attn_problem *problem, struct work *w) {
    attn_error err = ATTN_ERROR_INIT;
    attn_verifier *verifier = NULL;
    int worst = 0;
    if (attn_verifier_create(&attn_backend_cpu, host->device, problem, 1, &verifier, &err) !=
        ATTN_OK) {
        printf("failed: %s\n", err.line);
        return 2;
    }
    for (int i = 0; i < w->count; i++) {
        int code = 2;
        if (w->status[i] == ATTN_OK)
            code = gate_one(host, verifier, &w->built[i]);
        else
            printf("failed: %s: %s\n", w->built[i].variant.config, w->error[i].line);
        worst = code > worst ? code : worst;
    }
    attn_verifier_destroy(verifier);
    return worst;
}

static int gate_problem(const cpu_host *host, int n, attn_random *random, const char *family,
                        const char *text) {
    attn_error err = ATTN_ERROR_INIT;
    attn_problem problem;
    attn_space *space = NULL;
    size_t count = (size_t)n;
    struct work w = {.host = host, .count = n};
    int code = 2;
    w.rendered = calloc(count, sizeof *w.rendered);
    w.built = calloc(count, sizeof *w.built);
    w.status = calloc(count, sizeof *w.status);
    w.error = calloc(count, sizeof *w.error);
    printf("%s\n", text);
    attn_status st = w.rendered && w.built && w.status && w.error ? ATTN_OK : attn_fail_nomem(&err);
    if (st == ATTN_OK)
        st = attn_problem_parse(text, &problem, err.line, sizeof err.line);
    if (st == ATTN_OK)
        st = attn_space_open(host->gen, family, &problem, &host->info, &space, &err);
    if (st == ATTN_OK)
        st = render_random(space, n, random, w.rendered, &err);
    if (st == ATTN_OK) {
        compile_all(&w);
        code = judge_all(host, &problem, &w);
    } else {
        printf("failed: %s\n", err.line);
    }
    attn_space_close(space);
    for (int i = 0; w.built && i < n; i++)
        cpu_variant_free(&w.built[i]);
    free(w.rendered);
    free(w.built);
    free(w.status);
    free(w.error);
    return code;
}

int gate_random(const cpu_host *host, int n, uint64_t seed, const char *family, int problems,
                char **problem_texts) {
    attn_random random = {seed};
    int worst = 0;
    for (int i = 0; i < problems; i++) {
        int share = n / problems + (i < n % problems);
        int code = share ? gate_problem(host, share, &random, family, problem_texts[i]) : 0;
        worst = code > worst ? code : worst;
    }
    return worst;
}
