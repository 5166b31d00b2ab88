/* proto.h: messages between the tuner and its workers.
 *
 * Both ends are the same program (/proc/self/exe), so numbers and plain structs travel as their
 * bytes. Nothing that is read is trusted all the same, since a variant may have written over the
 * worker's memory: lengths are checked, and a field that is not there reads as zero and marks the
 * message bad. */
#ifndef ATTN_PROTO_H
#define ATTN_PROTO_H

#include "core/build.h"

enum {
    ATTN_PROTO_MAGIC = 0x41545431, /* "ATT1": the last digit is the version */
    ATTN_MESSAGE_MAX = 256 << 20,  /* bytes of one body */
    ATTN_WORKER_FD = 3,            /* the worker's end */
    ATTN_PULSE_FD = 4,             /* its pulse */
    ATTN_SLOTS = 64,               /* kernels that a worker may hold */
    ATTN_ROUNDS_MAX = 1000         /* of one request */
};

/* What a worker is at, in memory that it shares with its parent: the parent looks now and then and
 * ends a worker whose step takes too long. No message and no wake-up disturbs a sample so. */
typedef enum attn_step_kind {
    ATTN_STEP_WORK,    /* anything but the others: host code that is our own, a compiler */
    ATTN_STEP_LAUNCH,  /* `slot` is being loaded or run */
    ATTN_STEP_WAITING, /* for the timing lock: nothing is overdue */
    ATTN_STEP_SAMPLING /* as LAUNCH, under the exclusive lock */
} attn_step_kind;

typedef struct attn_pulse {
    _Atomic uint32_t kind;
    _Atomic uint32_t slot;
    _Atomic int64_t since;  /* attn_now_ns at its beginning */
    _Atomic int64_t parent; /* its pid, before the worker starts */
} attn_pulse;

int64_t attn_now_ns(void); /* CLOCK_MONOTONIC */

/* Requests have one reply each, of the same type, in order. */
typedef enum attn_message_type {
    ATTN_MSG_PROBE,
    ATTN_MSG_COMPILE,
    ATTN_MSG_OPEN,
    ATTN_MSG_PEAK,
    ATTN_MSG_PROBLEM,
    ATTN_MSG_PROVE,
    ATTN_MSG_RACE,
    ATTN_MSG_ROUNDS,
    ATTN_MSG_COUNT
} attn_message_type;

/* How ATTN_MSG_ROUNDS measures. */
typedef enum attn_rounds_kind {
    ATTN_ROUNDS_PLAIN, /* interleaved */
    ATTN_ROUNDS_PEAKS, /* interleaved, and the device's peak after each round */
    ATTN_ROUNDS_HELD   /* each kernel alone */
} attn_rounds_kind;

/* Writing a body; see attn_str for what happens when memory runs out. */
void attn_put_u32(attn_str *body, uint32_t value);
void attn_put_f64(attn_str *body, double value);
void attn_put_text(attn_str *body, const char *text); /* NULL is sent as "" */
void attn_put_bytes(attn_str *body, const void *data, size_t size);

/* Reading one. Texts and bytes point into the body. */
typedef struct attn_fields {
    const char *data;
    size_t size;
    size_t at;
    bool bad;
} attn_fields;

uint32_t attn_get_u32(attn_fields *fields);
double attn_get_f64(attn_fields *fields);
const char *attn_get_text(attn_fields *fields); /* "" if bad */
const void *attn_get_bytes(attn_fields *fields, size_t *size);
void attn_get_struct(attn_fields *fields, void *data, size_t size); /* exactly so many bytes */

/* A binary as fields of a message. */
void attn_put_binary(attn_str *body, const attn_binary *binary);
attn_status attn_get_binary(attn_fields *fields, attn_binary *binary, attn_error *err);

/* Sends one message, waiting as long as the other end takes it. ERR_IO when it is gone. */
attn_status attn_message_send(int fd, attn_message_type type, const attn_str *body,
                              attn_error *err);

/* What has been received so far of a stream of messages. */
typedef struct attn_inbox {
    attn_str bytes;
    size_t used; /* of the message before, dropped by the next attn_inbox_take */
} attn_inbox;

/* Reads what is there (waits for something on a blocking descriptor). ERR_NOT_FOUND: the other end
 * has closed; ERR_IO: it failed. */
attn_status attn_inbox_read(attn_inbox *inbox, int fd, attn_error *err);

/* The next whole message, which is good until the next call: ATTN_OK; ERR_NOT_FOUND: not there yet;
 * ERR_IO: these are no messages. */
attn_status attn_inbox_take(attn_inbox *inbox, attn_message_type *type, attn_fields *fields,
                            attn_error *err);
void attn_inbox_free(attn_inbox *inbox);

#endif
