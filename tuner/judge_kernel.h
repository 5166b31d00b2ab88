/* judge_kernel.h: which kernel judges the others (judge.h): the reference family of the backend, in
 * its default configuration. The tuner, which has the generator, renders it; the worker that has
 * the device builds it, if a reference of the problem turns out to lack rows. */
#ifndef ATTN_JUDGE_KERNEL_H
#define ATTN_JUDGE_KERNEL_H

#include "gen.h"
#include "server.h"

/* Appends it, or the reason why it cannot be rendered, or that the backend has none, to a request.
 * gen may be NULL: none. */
void attn_judge_put(attn_str *body, attn_gen *gen, const attn_device_info *device,
                    const attn_problem *problem);

/* The worker's side: takes that from the request, builds and loads the kernel into `slot`, has it
 * judge for the server's verifier, and appends to the reply what attn_judge_take_reply reads. Fails
 * if the judge is wrong, or with ERR_DEVICE; else a judge that cannot be had is no failure. */
attn_status attn_judge_serve(attn_server *server, attn_slot *slot, attn_fields *fields,
                             attn_str *reply, attn_error *err);

typedef struct attn_judge_reply {
    const char *name;   /* of the family; texts are the message's */
    double seconds;     /* that building and running it took; 0: it was not needed */
    const char *reason; /* "", or a line that says why some elements are not compared */
} attn_judge_reply;

attn_judge_reply attn_judge_take_reply(attn_fields *fields);

#endif
