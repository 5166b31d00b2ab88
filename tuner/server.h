/* server.h: the worker's side: what one worker process holds, and the requests that it answers.
 *
 * A reply is a u32 status, the error's line, and, if the status is ATTN_OK, what the handler put.
 * See worker.h for the other side. */
#ifndef ATTN_SERVER_H
#define ATTN_SERVER_H

#include "backend.h"
#include "lock.h"
#include "proto.h"
#include "stand.h"
#include "verify.h"

typedef struct attn_server attn_server;

/* A loaded kernel. What the verifier and the stand are given as attn_kernel * is this struct: the
 * watched backend's `run` and `time` put the slot that is about to launch into the pulse and hand
 * on to the real one, so that the parent knows whom a crash or a hang belongs to. */
typedef struct attn_slot {
    attn_server *server;
    attn_kernel *kernel; /* NULL: free */
    attn_launch launch;
} attn_slot;

struct attn_server {
    attn_inbox inbox;
    attn_pulse *pulse;
    const attn_backend *backend; /* the real one; NULL before OPEN */
    attn_backend watched;
    attn_backend_device *device;
    attn_device_info info;
    attn_lock device_lock; /* exclusive: samples; shared: a proof on the device */
    attn_lock cpu_lock;    /* shared: work of the CPU's; not open if it is the device's own */
    attn_problem problem;
    attn_mode mode;
    uint64_t seed;
    attn_verifier *verifier; /* of the problem; NULL before PROBLEM */
    attn_stand *stand;
    attn_slot slot[ATTN_SLOTS + 1]; /* the last one is the judge's */
};

/* One request; what it puts into the reply is dropped if it fails. */
typedef attn_status attn_handler(attn_server *server, attn_fields *fields, attn_str *reply,
                                 attn_error *err);

attn_handler attn_serve_probe;   /* text backend "" all, u32 threads -> (text info)*, text notes */
attn_handler attn_serve_compile; /* texts backend language source options target, bytes key ->
                                  * f64 seconds, binary */
attn_handler attn_serve_open;    /* text backend, u32 ordinal, u32 threads -> text info */
attn_handler attn_serve_peak;    /* u32 threads -> f64 */
attn_handler attn_serve_problem; /* problem, u32 mode, bytes seed, the judge (judge_kernel.h) ->
                                  * attn_judge_reply */
attn_handler attn_serve_prove;   /* u32 slot, binary, text target, launch, u32 repeats (0: the whole
                                  * check) -> verdict; loads it into the slot first */
attn_handler attn_serve_race;    /* f64 best, u32 count, u32 slot... -> attn_timed... */
attn_handler attn_serve_rounds;  /* u32 rounds, u32 attn_rounds_kind, u32 count, u32 slot... ->
                                  * bytes ns, bytes peak, u32 is the device at its power limit? */

/* What the watched backend takes for a kernel. */
attn_kernel *attn_server_kernel(attn_slot *slot);

/* Says that the next step begins; slot matters for launches. */
void attn_server_step(attn_server *server, attn_step_kind kind, size_t slot);

/* The locks of a proof or a compile, and of a sample; both wait. */
attn_status attn_server_lock_work(attn_server *server, attn_error *err);
attn_status attn_server_lock_device(attn_server *server, attn_error *err);
void attn_server_unlock(attn_server *server);

#endif
