/* worker.c: starting, watching and ending one worker process. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "resident.h"
#include "stop.h"
#include "tune.h"

extern char **environ;

static const double LAUNCH_S = 2, WORK_S = 120;

/*-*** Starting and ending ***************************************/

/* Descriptors of the child's side: socket, pulse, stderr. They are moved out of the way of the
 * numbers they will get, so that no dup2 of one overwrites another. */
static attn_status open_pipes(attn_worker *worker, int child[3], attn_error *err) {
    int pair[2];
    child[0] = child[1] = child[2] = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return attn_fail(err, ATTN_ERR_IO, "no socket for a worker: %s", strerror(errno));
    worker->fd = pair[0];
    child[0] = fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
    close(pair[1]);
    int pulse = memfd_create("attntune-pulse", MFD_CLOEXEC);
    worker->error_fd = memfd_create("attntune-stderr", MFD_CLOEXEC);
    if (pulse >= 0) {
        child[1] = fcntl(pulse, F_DUPFD_CLOEXEC, 10);
        close(pulse);
    }
    if (worker->error_fd >= 0)
        child[2] = fcntl(worker->error_fd, F_DUPFD_CLOEXEC, 10);
    if (child[0] < 0 || child[1] < 0 || child[2] < 0 ||
        ftruncate(child[1], sizeof *worker->pulse) != 0)
        return attn_fail(err, ATTN_ERR_IO, "no descriptors for a worker: %s", strerror(errno));
    worker->pulse =
        mmap(NULL, sizeof *worker->pulse, PROT_READ | PROT_WRITE, MAP_SHARED, child[1], 0);
    if (worker->pulse == MAP_FAILED) {
        worker->pulse = NULL;
        return attn_fail_nomem(err);
    }
    worker->pulse->parent = getpid();
    return ATTN_OK;
}

static int spawn(pid_t *pid, const int child[3]) {
    char name[] = "attntune", flag[] = ATTN_WORKER_FLAG;
    char *const argv[] = {name, flag, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigemptyset(&all);
    sigaddset(&all, SIGINT);
    sigaddset(&all, SIGTERM);
    sigaddset(&all, SIGPIPE);
    int rc = posix_spawn_file_actions_init(&files);
    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc != 0) {
        posix_spawn_file_actions_destroy(&files);
        return rc;
    }
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, child[2], 2);
    posix_spawn_file_actions_adddup2(&files, child[0], ATTN_WORKER_FD);
    posix_spawn_file_actions_adddup2(&files, child[1], ATTN_PULSE_FD);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    rc = posix_spawn(pid, "/proc/self/exe", &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

attn_status attn_worker_start(attn_worker *worker, attn_error *err) {
    int child[3];
    const double launch_s = worker->launch_s, work_s = worker->work_s;
    const int64_t memory = worker->memory_limit;
    attn_worker_kill(worker);
    attn_worker_limits(worker, launch_s > 0 ? launch_s : LAUNCH_S, work_s > 0 ? work_s : WORK_S,
                       memory > 0 ? memory : attn_memory_share(0));
    attn_status status = open_pipes(worker, child, err);
    if (status == ATTN_OK) {
        int rc = spawn(&worker->pid, child);
        if (rc != 0)
            status = attn_fail(err, ATTN_ERR_IO, "a worker cannot be started: %s", strerror(rc));
    }
    for (int i = 0; i < 3; i++)
        if (child[i] >= 0)
            close(child[i]);
    if (status != ATTN_OK) {
        worker->pid = 0;
        attn_worker_kill(worker);
    }
    return status;
}

/* A worker that is killed may have been about to compile. */
static void sweep(void) {
    for (const attn_backend *const *backend = attn_backends; *backend; backend++)
        if ((*backend)->sweep)
            (*backend)->sweep();
}

/* Kills, reaps and closes; the result is that of waitpid. */
static int finish(attn_worker *worker) {
    int state = 0;
    if (worker->pid > 0) {
        (void)kill(-worker->pid, SIGKILL);
        (void)kill(worker->pid, SIGKILL); /* should it not have its group yet */
        while (waitpid(worker->pid, &state, 0) < 0 && errno == EINTR)
            ;
        sweep();
    }
    if (worker->fd >= 0)
        close(worker->fd);
    if (worker->error_fd >= 0)
        close(worker->error_fd);
    if (worker->pulse)
        munmap(worker->pulse, sizeof *worker->pulse);
    attn_inbox_free(&worker->inbox);
    const double launch_s = worker->launch_s, work_s = worker->work_s;
    const int64_t memory = worker->memory_limit;
    const attn_patience patience = worker->patience;
    *worker = (attn_worker)ATTN_WORKER_INIT;
    worker->patience = patience;
    attn_worker_limits(worker, launch_s, work_s, memory);
    return state;
}

void attn_worker_kill(attn_worker *worker) {
    (void)finish(worker);
}

void attn_worker_limits(attn_worker *worker, double launch_s, double work_s, int64_t memory) {
    if (launch_s > 0)
        worker->launch_s = launch_s;
    if (work_s > 0)
        worker->work_s = work_s;
    if (memory > 0)
        worker->memory_limit = memory;
}

/*-*** Requests **************************************************/

attn_status attn_worker_send(attn_worker *worker, attn_message_type type, const attn_str *body,
                             attn_error *err) {
    if (worker->pid == 0)
        ATTN_TRY(attn_worker_start(worker, err));
    worker->pulse->kind = ATTN_STEP_WORK;
    worker->pulse->since = attn_now_ns();
    worker->memory_base = attn_memory_resident(worker->pid);
    worker->busy = true;
    worker->request = type;
    /* Should it have died meanwhile, the next look tells how. */
    attn_status status = attn_message_send(worker->fd, type, body, err);
    return status == ATTN_ERR_IO ? ATTN_OK : status;
}

static void last_error_line(const attn_worker *worker, char *line, size_t size) {
    char text[1024];
    struct {
        const char *from;
        size_t n;
    } found = {"", 0};
    off_t end = lseek(worker->error_fd, 0, SEEK_END);
    off_t begin = end > (off_t)sizeof text ? end - (off_t)sizeof text : 0;
    ssize_t n = end > 0 ? pread(worker->error_fd, text, sizeof text, begin) : 0;
    for (ssize_t i = 0, from = 0; i < n; i++) {
        if (text[i] != '\n')
            continue;
        if (i > from) {
            found.from = text + from;
            found.n = (size_t)(i - from);
        }
        from = i + 1;
    }
    (void)snprintf(line, size, "%s%.*s", found.n ? ": " : "", (int)found.n, found.from);
}

/* Does a worker that we no longer hear of end by itself? If not, that it is killed is our doing. */
static bool ends(pid_t pid) {
    const struct timespec pause = {0, 5000000};
    for (int i = 0; i < 40; i++) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static attn_worker_event lose(attn_worker *worker, attn_loss *loss, attn_outcome outcome,
                              const char *line) {
    char said[200];
    loss->slot = worker->pulse->slot;
    loss->launching =
        worker->pulse->kind == ATTN_STEP_LAUNCH || worker->pulse->kind == ATTN_STEP_SAMPLING;
    last_error_line(worker, said, sizeof said);
    if (!line && !ends(worker->pid))
        line = "the worker has closed its connection";
    int state = finish(worker);
    loss->outcome = outcome;
    if (line) {
        (void)snprintf(loss->line, sizeof loss->line, "%s", line);
        return ATTN_WORKER_LOST;
    }
    if (WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL) {
        loss->outcome = ATTN_OUTCOME_OOM;
        (void)snprintf(loss->line, sizeof loss->line,
                       "the worker was killed from outside, most likely for want of memory");
    } else if (WIFSIGNALED(state)) {
        (void)snprintf(loss->line, sizeof loss->line, "the worker died: %s%s",
                       strsignal(WTERMSIG(state)), said);
    } else {
        (void)snprintf(loss->line, sizeof loss->line, "the worker ended with code %d%s",
                       WEXITSTATUS(state), said);
    }
    return ATTN_WORKER_LOST;
}

/* Is a step over its limit? What others on a busy machine had of its time does not count. */
static bool is_late(attn_worker *worker, double limit_s) {
    const int64_t since = worker->pulse->since;
    if (worker->step_ns != since)
        worker->starved_base = attn_starved_ns(worker->pid);
    worker->step_ns = since;
    const double spent_s = (double)(attn_now_ns() - since) * 1e-9;
    if (spent_s <= limit_s)
        return false;
    return spent_s - (double)(attn_starved_ns(worker->pid) - worker->starved_base) * 1e-9 > limit_s;
}

/* Ends a worker that has gone over a limit. One that has grown a lot when its time is up was on its
 * way to all the memory there is. */
static attn_worker_event check_limits(attn_worker *worker, attn_loss *loss) {
    char line[160];
    uint32_t kind = worker->pulse->kind;
    bool launching = kind == ATTN_STEP_LAUNCH || kind == ATTN_STEP_SAMPLING;
    double limit = launching ? worker->launch_s : worker->work_s;
    bool late = kind != ATTN_STEP_WAITING && is_late(worker, limit);
    int64_t grown = attn_memory_resident(worker->pid) - worker->memory_base;
    if (grown > (late ? worker->memory_limit / 4 : worker->memory_limit)) {
        (void)snprintf(line, sizeof line, "took %.1f GB of memory", (double)grown * 1e-9);
        return lose(worker, loss, ATTN_OUTCOME_OOM, line);
    }
    if (!late)
        return ATTN_WORKER_NOTHING;
    (void)snprintf(line, sizeof line, "%s has not ended after %.3g s",
                   launching                             ? "a launch"
                   : worker->request == ATTN_MSG_COMPILE ? "the compiler"
                                                         : "a step of the worker",
                   limit);
    return lose(worker, loss, ATTN_OUTCOME_TIMEOUT, line);
}

attn_worker_event attn_worker_look(attn_worker *worker, attn_fields *fields, attn_error *reply,
                                   attn_loss *loss) {
    attn_message_type type;
    attn_error err = ATTN_ERROR_INIT;
    if (!worker->busy)
        return ATTN_WORKER_NOTHING;
    for (;;) {
        attn_status status = attn_inbox_take(&worker->inbox, &type, fields, &err);
        if (status == ATTN_OK && type == worker->request) {
            worker->busy = false;
            reply->status = (attn_status)attn_get_u32(fields);
            (void)snprintf(reply->line, sizeof reply->line, "%s", attn_get_text(fields));
            if (!fields->bad)
                return ATTN_WORKER_REPLY;
            status = ATTN_ERR_IO;
        }
        if (status != ATTN_ERR_NOT_FOUND)
            return lose(worker, loss, ATTN_OUTCOME_CRASH, "the worker sent garbage");
        struct pollfd ready = {.fd = worker->fd, .events = POLLIN};
        if (poll(&ready, 1, 0) <= 0)
            return check_limits(worker, loss);
        if (attn_inbox_read(&worker->inbox, worker->fd, &err) != ATTN_OK)
            return lose(worker, loss, ATTN_OUTCOME_CRASH, NULL);
    }
}

void attn_worker_wait(attn_worker *const *workers, size_t count, int stop_fd, int milliseconds) {
    struct pollfd ready[130];
    nfds_t n = 0;
    if (stop_fd >= 0)
        ready[n++] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
    for (size_t i = 0; i < count && n < sizeof ready / sizeof ready[0]; i++)
        if (workers[i]->busy)
            ready[n++] = (struct pollfd){.fd = workers[i]->fd, .events = POLLIN};
    (void)poll(ready, n, milliseconds);
}

attn_status attn_worker_ask(attn_worker *worker, attn_message_type type, const attn_str *body,
                            int stop_fd, attn_fields *fields, attn_loss *loss, attn_error *err) {
    const attn_patience *patience = &worker->patience;
    bool told = !patience->on_wait;
    ATTN_TRY(attn_worker_send(worker, type, body, err));
    for (;;) {
        switch (attn_worker_look(worker, fields, err, loss)) {
        case ATTN_WORKER_REPLY:
            return err->status;
        case ATTN_WORKER_LOST:
            return attn_fail(err, ATTN_ERR_DEVICE, "%s", loss->line);
        case ATTN_WORKER_NOTHING:
            break;
        }
        if (attn_stop_signal(stop_fd) != 0) {
            attn_worker_kill(worker);
            return attn_fail(err, ATTN_ERR_TIMEOUT, "interrupted");
        }
        if (!told && attn_worker_held_up(worker)) {
            patience->on_wait(patience->user, ATTN_WAITING_LINE);
            told = true;
        }
        if (patience->end_ns > 0 && attn_now_ns() > patience->end_ns) {
            attn_worker_kill(worker);
            return attn_fail(err, ATTN_ERR_TIMEOUT, "no answer of a worker within the budget");
        }
        attn_worker_wait(&worker, 1, stop_fd, 50);
    }
}

uint32_t attn_worker_slot(const attn_worker *worker) {
    return worker->pulse ? worker->pulse->slot : 0;
}

bool attn_worker_waiting(const attn_worker *worker) {
    return worker->busy && worker->pulse->kind == ATTN_STEP_WAITING;
}

bool attn_worker_held_up(const attn_worker *worker) {
    static const int64_t TURN_NS = 2000000000;
    return attn_worker_waiting(worker) && attn_now_ns() - worker->pulse->since > TURN_NS;
}

bool attn_worker_sampling(const attn_worker *worker) {
    return worker->busy && worker->pulse->kind == ATTN_STEP_SAMPLING;
}
