/* gate_random.h: many variants through the gate: drawn at random, or so that they hold every value
 * of every parameter. */
#ifndef ATTN_GATE_RANDOM_H
#define ATTN_GATE_RANDOM_H

#include "cpu_variants.h"
#include "verify.h"

/* Checks one built variant and prints its verdict; 0 right, 1 wrong, 2 failed. brief: on the
 * problem itself alone, twice. */
int gate_one(const cpu_host *host, attn_verifier *verifier, cpu_variant *variant, bool brief);

typedef struct gate_draw {
    int n;         /* variants, dealt over the problems; more if a cover needs more */
    uint64_t seed; /* of what is drawn */
    bool cover; /* of each problem, every value that a valid configuration has; checked briefly */
} gate_draw;

/* Draws valid configurations of the family, compiles them on all cores and checks them. Returns the
 * worst code. */
int gate_random(const cpu_host *host, const gate_draw *draw, const char *family, int problems,
                char **problem_texts);

#endif
