/* builders.c: the compile pool. */
#include "builders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A compiler that takes over twenty times as long as the slowest that has ended so far will not
 * end; before five have ended nothing is known of it. */
static const double FIRST_LIMIT_S = ATTN_COMPILE_LIMIT_S, LEAST_LIMIT_S = 2, LIMIT_FACTOR = 20;
enum { LEARNED = 5, JOBS_MAX = 128 };
static const size_t KEPT_BYTES_MAX = (size_t)512 << 20;

struct task {
    struct task *next;
    attn_str request; /* body of the message */
    char key[ATTN_HASH_TEXT];
    void *owner; /* NULL: forgotten */
};

struct kept {
    struct kept *next;
    attn_binary binary;
};

struct attn_builders {
    struct task *queue, **tail;
    struct kept *kept;
    size_t kept_bytes;
    double slowest_s;
    int32_t ended;
    int32_t jobs;
    attn_worker *worker; /* [jobs] */
    struct task **doing; /* [jobs] */
};

static void free_task(struct task *task) {
    if (!task)
        return;
    attn_str_free(&task->request);
    free(task);
}

attn_status attn_builders_open(int32_t jobs, attn_builders **builders, attn_error *err) {
    attn_builders *b = calloc(1, sizeof *b);
    *builders = NULL;
    if (!b)
        return attn_fail_nomem(err);
    b->tail = &b->queue;
    b->jobs = jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    b->worker = calloc((size_t)b->jobs, sizeof *b->worker);
    b->doing = calloc((size_t)b->jobs, sizeof(struct task *));
    if (!b->worker || !b->doing) {
        b->jobs = 0;
        attn_builders_close(b);
        return attn_fail_nomem(err);
    }
    for (int32_t i = 0; i < b->jobs; i++)
        b->worker[i] = (attn_worker)ATTN_WORKER_INIT;
    *builders = b;
    return ATTN_OK;
}

void attn_builders_close(attn_builders *builders) {
    if (!builders)
        return;
    for (int32_t i = 0; i < builders->jobs; i++) {
        attn_worker_kill(&builders->worker[i]);
        free_task(builders->doing[i]);
    }
    while (builders->queue) {
        struct task *next = builders->queue->next;
        free_task(builders->queue);
        builders->queue = next;
    }
    while (builders->kept) {
        struct kept *next = builders->kept->next;
        attn_binary_free(&builders->kept->binary);
        free(builders->kept);
        builders->kept = next;
    }
    free(builders->worker);
    free(builders->doing);
    free(builders);
}

static const attn_binary *find_kept(const attn_builders *builders, const char *key) {
    for (const struct kept *kept = builders->kept; kept; kept = kept->next)
        if (strcmp(kept->binary.key, key) == 0)
            return &kept->binary;
    return NULL;
}

attn_status attn_builders_keep(attn_builders *builders, attn_binary *binary, attn_error *err) {
    struct kept *kept = calloc(1, sizeof *kept);
    if (!kept) {
        attn_binary_free(binary);
        return attn_fail_nomem(err);
    }
    kept->binary = *binary;
    *binary = (attn_binary)ATTN_BINARY_INIT;
    kept->next = builders->kept;
    builders->kept = kept;
    builders->kept_bytes += kept->binary.size;
    return ATTN_OK;
}

attn_status attn_builders_add(attn_builders *builders, const attn_backend *backend,
                              const attn_build *build, void *owner, attn_error *err) {
    struct task *task = calloc(1, sizeof *task);
    if (!task)
        return attn_fail_nomem(err);
    memcpy(task->key, build->key, sizeof task->key);
    task->owner = owner;
    attn_put_text(&task->request, backend->name);
    attn_put_text(&task->request, build->language);
    attn_put_text(&task->request, build->source);
    attn_put_text(&task->request, build->options);
    attn_put_text(&task->request, build->target);
    attn_put_bytes(&task->request, build->key, sizeof build->key);
    if (task->request.failed) {
        free_task(task);
        return attn_fail_nomem(err);
    }
    *builders->tail = task;
    builders->tail = &task->next;
    return ATTN_OK;
}

size_t attn_builders_idle(const attn_builders *builders) {
    size_t idle = 0, queued = 0;
    for (int32_t i = 0; i < builders->jobs; i++)
        idle += !builders->doing[i];
    for (const struct task *task = builders->queue; task; task = task->next)
        queued++;
    return idle > queued ? idle - queued : 0;
}

/* Takes a task out of the queue. */
static struct task *take(attn_builders *builders, struct task **link) {
    struct task *task = *link;
    *link = task->next;
    if (!*link)
        builders->tail = link;
    return task;
}

void attn_builders_forget(attn_builders *builders, const void *owner) {
    for (struct task **link = &builders->queue; *link;) {
        if ((*link)->owner == owner)
            free_task(take(builders, link));
        else
            link = &(*link)->next;
    }
    for (int32_t i = 0; i < builders->jobs; i++)
        if (builders->doing[i] && builders->doing[i]->owner == owner)
            builders->doing[i]->owner = NULL;
}

void attn_builders_trim(attn_builders *builders) {
    for (int32_t i = 0; i < builders->jobs; i++) {
        if (!builders->doing[i] || builders->doing[i]->owner)
            continue;
        attn_worker_kill(&builders->worker[i]);
        free_task(builders->doing[i]);
        builders->doing[i] = NULL;
    }
    while (builders->kept && builders->kept_bytes > KEPT_BYTES_MAX) {
        struct kept *next = builders->kept->next;
        builders->kept_bytes -= builders->kept->binary.size;
        attn_binary_free(&builders->kept->binary);
        free(builders->kept);
        builders->kept = next;
    }
}

static double compile_limit(const attn_builders *builders) {
    double learned = LIMIT_FACTOR * builders->slowest_s;
    if (builders->ended < LEARNED)
        return FIRST_LIMIT_S;
    return learned < LEAST_LIMIT_S   ? LEAST_LIMIT_S
           : learned > FIRST_LIMIT_S ? FIRST_LIMIT_S
                                     : learned;
}

/* What a compiler's answer means for the trial. Want of memory is no fault of the build. */
static attn_outcome outcome_of(attn_status status) {
    return status == ATTN_OK          ? ATTN_OUTCOME_OK
           : status == ATTN_ERR_NOMEM ? ATTN_OUTCOME_OOM
                                      : ATTN_OUTCOME_COMPILE_ERROR;
}

static void take_answer(attn_builders *builders, attn_fields *fields, attn_error *reply,
                        attn_built *built) {
    attn_binary binary;
    double seconds = attn_get_f64(fields);
    attn_status status = reply->status;
    if (status == ATTN_OK)
        status = attn_get_binary(fields, &binary, reply);
    if (status == ATTN_OK)
        status = attn_builders_keep(builders, &binary, reply);
    builders->ended += status == ATTN_OK;
    if (status == ATTN_OK && seconds > builders->slowest_s)
        builders->slowest_s = seconds;
    built->outcome = outcome_of(status);
    built->hopeless = status == ATTN_ERR_IO;
    built->no_tool = status == ATTN_ERR_NO_TOOL;
    built->binary = status == ATTN_OK ? &builders->kept->binary : NULL;
    (void)snprintf(built->line, sizeof built->line, "%s", status == ATTN_OK ? "" : reply->line);
}

/* True if worker i has ended its task and somebody wants to know. */
static bool look_after(attn_builders *builders, int32_t i, attn_built *built) {
    attn_error reply = ATTN_ERROR_INIT;
    attn_fields fields;
    attn_loss loss;
    struct task *task = builders->doing[i];
    attn_worker_limits(&builders->worker[i], 0, compile_limit(builders), 0);
    attn_worker_event event = attn_worker_look(&builders->worker[i], &fields, &reply, &loss);
    if (!task || event == ATTN_WORKER_NOTHING)
        return false;
    *built = (attn_built){.owner = task->owner};
    if (event == ATTN_WORKER_REPLY) {
        take_answer(builders, &fields, &reply, built);
    } else {
        built->outcome = loss.outcome;
        (void)snprintf(built->line, sizeof built->line, "%s%s",
                       loss.outcome == ATTN_OUTCOME_CRASH ? "while compiling, " : "", loss.line);
    }
    builders->doing[i] = NULL;
    free_task(task);
    return built->owner != NULL;
}

/* True if the first task needs no worker, or cannot get one. */
static bool begin_first(attn_builders *builders, int32_t i, attn_built *built) {
    attn_error err = ATTN_ERROR_INIT;
    struct task *task = take(builders, &builders->queue);
    const attn_binary *kept = find_kept(builders, task->key);
    if (!kept) {
        if (attn_worker_send(&builders->worker[i], ATTN_MSG_COMPILE, &task->request, &err) ==
            ATTN_OK) {
            builders->doing[i] = task;
            return false;
        }
    }
    *built = (attn_built){
        .owner = task->owner, .outcome = kept ? ATTN_OUTCOME_OK : ATTN_OUTCOME_OOM, .binary = kept};
    (void)snprintf(built->line, sizeof built->line, "%s", err.line);
    free_task(task);
    return true;
}

bool attn_builders_next(attn_builders *builders, attn_built *built) {
    for (int32_t i = 0; i < builders->jobs; i++) {
        if (builders->doing[i] && look_after(builders, i, built))
            return true;
        while (builders->queue && !builders->doing[i])
            if (begin_first(builders, i, built))
                return true;
    }
    return false;
}

size_t attn_builders_workers(attn_builders *builders, attn_worker **workers, size_t room) {
    size_t count = 0;
    for (int32_t i = 0; i < builders->jobs && count < room; i++)
        workers[count++] = &builders->worker[i];
    return count;
}
