/* worker.h: the parent's side of one worker process.
 *
 * A worker is killable at any moment: it runs in its own process group, compilers it starts
 * included, and ends with its parent. While it is at a request the parent looks at its pulse and
 * its memory; a step that takes too long or eats too much ends the worker. Time in which others
 * had the CPU is not counted as the step's. */
#ifndef ATTN_WORKER_H
#define ATTN_WORKER_H

#include <poll.h>
#include <sys/types.h>

#include "db.h"
#include "proto.h"

/* How long attn_worker_ask waits, and whom it tells that another tuner holds the timing lock. */
typedef struct attn_patience {
    int64_t end_ns;                                /* attn_now_ns; 0: as long as it takes */
    void (*on_wait)(void *user, const char *line); /* once a request; may be NULL */
    void *user;
} attn_patience;

typedef struct attn_worker {
    pid_t pid; /* 0: not running */
    int fd;
    int error_fd; /* what it writes to stderr */
    attn_pulse *pulse;
    attn_inbox inbox;
    bool busy;
    attn_message_type request; /* that it is at */
    double launch_s;           /* limits of a step */
    double work_s;
    int64_t memory_base;  /* bytes resident when the request was sent */
    int64_t memory_limit; /* that may come on top */
    int64_t step_ns;      /* the beginning of the step that was last looked at ... */
    int64_t starved_base; /* ... and attn_starved_ns then */
    attn_patience patience;
} attn_worker;

#define ATTN_WORKER_INIT                                                                           \
    {                                                                                              \
        0, -1, -1, NULL, {ATTN_STR_INIT, 0}, false, ATTN_MSG_PROBE, 0, 0, 0, 0, 0, 0, {            \
            0, NULL, NULL                                                                          \
        }                                                                                          \
    }

#define ATTN_WAITING_LINE "waiting for another tuner, which holds the timing lock"

/* Starts /proc/self/exe --worker. ERR_IO. */
attn_status attn_worker_start(attn_worker *worker, attn_error *err);

/* Ends the worker and everything it has started; harmless if there is none. */
void attn_worker_kill(attn_worker *worker);

/* Limits that requests get from now on; 0 keeps the one before. */
void attn_worker_limits(attn_worker *worker, double launch_s, double work_s, int64_t memory);

/* Sends a request to an idle worker, starting one if none runs. */
attn_status attn_worker_send(attn_worker *worker, attn_message_type type, const attn_str *body,
                             attn_error *err);

/* Why a worker was lost. */
typedef struct attn_loss {
    attn_outcome outcome; /* CRASH, TIMEOUT or OOM */
    char line[400];
    uint32_t slot; /* whose launch it was; meaningless for steps of other work */
    bool launching;
} attn_loss;

typedef enum attn_worker_event {
    ATTN_WORKER_NOTHING,
    ATTN_WORKER_REPLY,
    ATTN_WORKER_LOST /* it is gone; the next send starts another */
} attn_worker_event;

/* Looks, without waiting, at what a busy worker does. REPLY: *fields is the reply behind its status
 * and line, which are in *reply; good until the next call. LOST: *loss says why. */
attn_worker_event attn_worker_look(attn_worker *worker, attn_fields *fields, attn_error *reply,
                                   attn_loss *loss);

/* Waits until one of the busy workers may have something to say, a signal came or so many
 * milliseconds have passed. stop_fd may be -1. */
void attn_worker_wait(attn_worker *const *workers, size_t count, int stop_fd, int milliseconds);

/* Sends a request and waits for its reply: for callers with one worker and nothing else to do.
 * ERR_DEVICE with the line of the loss if the worker was lost; ERR_TIMEOUT after a signal, or when
 * worker->patience was at its end: then the worker is gone, too. */
attn_status attn_worker_ask(attn_worker *worker, attn_message_type type, const attn_str *body,
                            int stop_fd, attn_fields *fields, attn_loss *loss, attn_error *err);

/* Slot of the last launch, for a reply that failed. */
uint32_t attn_worker_slot(const attn_worker *worker);
bool attn_worker_waiting(const attn_worker *worker);  /* for the timing lock */
bool attn_worker_held_up(const attn_worker *worker);  /* so, for longer than taking turns takes */
bool attn_worker_sampling(const attn_worker *worker); /* leave the machine alone */

#endif
