/* gate_random.c: see gate_random.h. */
#include "gate_random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inputs.h"

enum { COMPILERS_MAX = 16, SPACE_MAX = 400000, TRIES = 2000 };

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
    pthread_t thread[COMPILERS_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int started = 0;
    while (started < COMPILERS_MAX && started < cores &&
           pthread_create(&thread[started], NULL, compile, w) == 0)
        started++;
    if (started == 0)
        (void)compile(w);
    for (int i = 0; i < started; i++)
        (void)pthread_join(thread[i], NULL);
}

/* Values of configurations drawn so far: seen[param][value]. */
struct seen {
    bool at[ATTN_PARAMS_MAX][256];
};

static int new_values(const attn_space *space, const struct seen *seen, const attn_config *c) {
    int n = 0;
    for (size_t i = 0; i < attn_space_params(space); i++)
        n += !seen->at[i][(unsigned char)c->value[i]];
    return n;
}

static void note(const attn_space *space, struct seen *seen, const attn_config *c) {
    for (size_t i = 0; i < attn_space_params(space); i++)
        seen->at[i][(unsigned char)c->value[i]] = true;
}

/* Of many drawn ones that with the most values not seen yet; NULL once a full look finds none. */
static const attn_config *next_of_cover(const attn_space *space, const attn_config_list *list,
                                        const struct seen *seen, attn_random *random) {
    const attn_config *best = NULL;
    int most = 0;
    for (int i = 0; i < TRIES; i++) {
        const attn_config *c = &list->config[attn_random_below(random, list->count)];
        int n = new_values(space, seen, c);
        if (n > most) {
            most = n;
            best = c;
        }
    }
    for (size_t i = 0; !best && i < list->count; i++)
        if (new_values(space, seen, &list->config[i]) > 0)
            best = &list->config[i];
    return best;
}

/* Draws w->count configurations, a cover first if one is wanted; a cover may need more, up to
 * `room`. */
static attn_status render_drawn(attn_space *space, struct work *w, int room, bool cover,
                                attn_random *random, attn_error *err) {
    attn_config_list list;
    struct seen seen = {{{false}}};
    attn_status st = attn_space_list(space, false, SPACE_MAX, &list, err);
    if (st != ATTN_OK)
        return st;
    for (int i = 0; st == ATTN_OK && i < (cover ? room : w->count); i++) {
        const attn_config *c = cover ? next_of_cover(space, &list, &seen, random) : NULL;
        if (!c && i >= w->count)
            break;
        c = c ? c : &list.config[attn_random_below(random, list.count)];
        note(space, &seen, c);
        w->count = i < w->count ? w->count : i + 1;
        st = attn_space_render(space, c, &w->rendered[i], err);
    }
    for (size_t i = 0; cover && i < list.count; i++)
        if (new_values(space, &seen, &list.config[i]) > 0)
            st = attn_fail(err, ATTN_ERR_INTERNAL, "%d variants do not hold every value", room);
    attn_config_list_free(&list);
    return st;
}

static int judge_all(const cpu_host *host, const attn_problem *problem, struct work *w,
                     bool brief) {
    attn_error err = ATTN_ERROR_INIT;
    attn_verifier *verifier = NULL;
    int worst = 0;
    if (attn_verifier_create(host->backend, host->device, problem, 1, ATTN_VERIFIER_SECONDS,
                             &verifier, &err) != ATTN_OK) {
        printf("failed: %s\n", err.line);
        return 2;
    }
    for (int i = 0; i < w->count; i++) {
        int code = 2;
        if (w->status[i] == ATTN_OK)
            code = gate_one(host, verifier, &w->built[i], brief);
        else
            printf("failed: %s: %s\n", w->built[i].variant.config, w->error[i].line);
        worst = code > worst ? code : worst;
    }
    attn_verifier_destroy(verifier);
    return worst;
}

static attn_status work_alloc(struct work *w, size_t room, attn_error *err) {
    w->rendered = calloc(room, sizeof *w->rendered);
    w->built = calloc(room, sizeof *w->built);
    w->status = calloc(room, sizeof *w->status);
    w->error = calloc(room, sizeof *w->error);
    return w->rendered && w->built && w->status && w->error ? ATTN_OK : attn_fail_nomem(err);
}

static void work_free(struct work *w) {
    for (int i = 0; w->built && i < w->count; i++)
        cpu_variant_free(&w->built[i]);
    free(w->rendered);
    free(w->built);
    free(w->status);
    free(w->error);
}

static int gate_problem(const cpu_host *host, int n, bool cover, attn_random *random,
                        const char *family, const char *text) {
    attn_error err = ATTN_ERROR_INIT;
    attn_problem problem;
    attn_space *space = NULL;
    struct work w = {.host = host, .count = n};
    int code = 2, room = cover ? n + 200 : n;
    printf("%s\n", text);
    attn_status st = work_alloc(&w, (size_t)room, &err);
    if (st == ATTN_OK)
        st = attn_problem_parse(text, &problem, err.line, sizeof err.line);
    if (st == ATTN_OK)
        st = attn_space_open(host->gen, family, &problem, &host->info, &space, &err);
    if (st == ATTN_OK)
        st = render_drawn(space, &w, room, cover, random, &err);
    if (st == ATTN_OK) {
        compile_all(&w);
        code = judge_all(host, &problem, &w, cover);
        printf("%d variants%s\n", w.count, cover ? " that hold every value" : "");
    } else {
        printf("failed: %s\n", err.line);
    }
    attn_space_close(space);
    work_free(&w);
    return code;
}

int gate_random(const cpu_host *host, const gate_draw *draw, const char *family, int problems,
                char **problem_texts) {
    attn_random random = {draw->seed};
    int worst = 0;
    for (int i = 0; i < problems; i++) {
        int share = draw->n / problems + (i < draw->n % problems);
        int code =
            share ? gate_problem(host, share, draw->cover, &random, family, problem_texts[i]) : 0;
        worst = code > worst ? code : worst;
    }
    return worst;
}
