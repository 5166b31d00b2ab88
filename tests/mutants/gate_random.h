/* gate_random.h: many random variants through the gate. */
#ifndef ATTN_GATE_RANDOM_H
#define ATTN_GATE_RANDOM_H

#include "cpu_variants.h"
#include "verify.h"

/* Checks one built variant and prints its verdict; 0 right, 1 wrong, 2 failed. */
int gate_one(const cpu_host *host, attn_verifier *verifier, cpu_variant *variant);

/* n random valid configurations of the family, the same number for each problem, compiled on two
 * threads. Returns the worst code. */
int gate_random(const cpu_host *host, int n, uint64_t seed, const char *family, int problems,
                char **problem_texts);

#endif
