/* server.c: main of a worker: answers requests one after the other until its parent closes. */
#include "server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tune.h"

static attn_handler *const HANDLERS[ATTN_MSG_COUNT] = {
    [ATTN_MSG_PROBE] = attn_serve_probe,     [ATTN_MSG_COMPILE] = attn_serve_compile,
    [ATTN_MSG_OPEN] = attn_serve_open,       [ATTN_MSG_PEAK] = attn_serve_peak,
    [ATTN_MSG_PROBLEM] = attn_serve_problem, [ATTN_MSG_PROVE] = attn_serve_prove,
    [ATTN_MSG_RACE] = attn_serve_race,       [ATTN_MSG_ROUNDS] = attn_serve_rounds,
};

void attn_server_step(attn_server *server, attn_step_kind kind, size_t slot) {
    server->pulse->since = attn_now_ns();
    server->pulse->slot = (uint32_t)slot;
    server->pulse->kind = kind;
}

static void begin_waiting(void *server) {
    attn_server_step(server, ATTN_STEP_WAITING, 0);
}

attn_status attn_server_lock_work(attn_server *server, attn_error *err) {
    if (server->device_lock.gate < 0 && server->cpu_lock.gate < 0)
        ATTN_TRY(attn_lock_open("cpu", &server->cpu_lock, err));
    if (server->device_lock.gate >= 0)
        ATTN_TRY(attn_lock_take(&server->device_lock, false, begin_waiting, server, err));
    if (server->cpu_lock.gate >= 0)
        ATTN_TRY(attn_lock_take(&server->cpu_lock, false, begin_waiting, server, err));
    attn_server_step(server, ATTN_STEP_WORK, 0);
    return ATTN_OK;
}

attn_status attn_server_lock_device(attn_server *server, attn_error *err) {
    ATTN_TRY(attn_lock_take(&server->device_lock, true, begin_waiting, server, err));
    attn_server_step(server, ATTN_STEP_SAMPLING, 0);
    return ATTN_OK;
}

void attn_server_unlock(attn_server *server) {
    if (server->device_lock.gate >= 0)
        attn_lock_release(&server->device_lock);
    if (server->cpu_lock.gate >= 0)
        attn_lock_release(&server->cpu_lock);
}

/* The parent has died, or wants us to: take compilers that we have started along. */
static void end_group(int signal) {
    (void)signal;
    (void)kill(0, SIGKILL);
}

/* Ends with the parent, is the first choice of the kernel when memory runs out, and leaves the
 * parent's terminal alone. */
static bool settle(void) {
    struct sigaction action = {.sa_handler = end_group};
    if (sigaction(SIGTERM, &action, NULL) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0)
        return false;
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = write(fd, "800", 3);
        (void)n; /* a worse choice, no fault */
        close(fd);
    }
    return fcntl(ATTN_WORKER_FD, F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(ATTN_PULSE_FD, F_SETFD, FD_CLOEXEC) == 0;
}

static attn_status answer(attn_server *server, attn_message_type type, attn_fields *fields,
                          attn_error *err) {
    attn_error failure = ATTN_ERROR_INIT;
    attn_server_step(server, ATTN_STEP_WORK, 0);
    attn_str body = ATTN_STR_INIT, reply = ATTN_STR_INIT;
    attn_status status = HANDLERS[type](server, fields, &body, &failure);
    if (status == ATTN_OK && fields->bad)
        status = attn_fail(&failure, ATTN_ERR_INTERNAL, "a request was cut short");
    attn_server_unlock(server);
    attn_server_step(server, ATTN_STEP_WORK,
                     server->pulse->slot); /* of a fault: the parent looks */
    attn_put_u32(&reply, (uint32_t)status);
    attn_put_text(&reply, failure.line);
    attn_str_append_bytes(&reply, body.data, body.size);
    if (body.failed)
        reply.failed = true;
    status = attn_message_send(ATTN_WORKER_FD, type, &reply, err);
    attn_str_free(&body);
    attn_str_free(&reply);
    return status;
}

static bool open_pulse(attn_server *server) {
    server->pulse =
        mmap(NULL, sizeof *server->pulse, PROT_READ | PROT_WRITE, MAP_SHARED, ATTN_PULSE_FD, 0);
    /* Should the parent have died before we asked to be told of it, there is nothing to do. */
    return server->pulse != MAP_FAILED && server->pulse->parent == getppid();
}

static attn_status serve(attn_server *server, attn_error *err) {
    attn_message_type type;
    attn_fields fields;
    for (;;) {
        attn_status status = attn_inbox_take(&server->inbox, &type, &fields, err);
        if (status == ATTN_OK)
            status = answer(server, type, &fields, err);
        else if (status == ATTN_ERR_NOT_FOUND)
            status = attn_inbox_read(&server->inbox, ATTN_WORKER_FD, err);
        if (status != ATTN_OK)
            return status;
    }
}

int attn_worker_main(void) {
    attn_error err = ATTN_ERROR_INIT;
    attn_server server = {.device_lock = ATTN_LOCK_INIT, .cpu_lock = ATTN_LOCK_INIT};
    if (!settle() || !open_pulse(&server))
        return 1;
    /* What is open is left to the kernel: a poisoned device may hang in its own clean-up. */
    return serve(&server, &err) == ATTN_ERR_NOT_FOUND ? 0 : 1;
}
