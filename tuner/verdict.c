/* verdict.c: see verdict.h. */
#include "verdict.h"

#include <inttypes.h>
#include <stdio.h>

/* "batch 0 head 3 row 17: ", as far as it is known. */
static void print_place(const attn_problem *p, int64_t head, int64_t row, char *text, size_t size) {
    int64_t batch = head / (p->heads_q ? p->heads_q : 1);
    text[0] = '\0';
    if (head < 0)
        return;
    head -= batch * p->heads_q;
    if (row < 0)
        (void)snprintf(text, size, "batch %" PRId64 " head %" PRId64 ": ", batch, head);
    else
        (void)snprintf(text, size, "batch %" PRId64 " head %" PRId64 " row %" PRId64 ": ", batch,
                       head, row);
}

bool attn_verdict_wrong(attn_verdict *verdict, const attn_inputs *inputs, int64_t head, int64_t row,
                        const char *what) {
    const char *strides = attn_strides_name(inputs->spec.strides);
    char problem[ATTN_PROBLEM_TEXT], place[96];
    (void)attn_problem_print(&inputs->problem, problem, sizeof problem);
    print_place(&inputs->problem, head, row, place, sizeof place);
    verdict->right = false;
    (void)snprintf(verdict->reason, sizeof verdict->reason, "%s%s%s, %s: %s%s",
                   attn_input_kind_name(inputs->spec.kind), strides[0] ? ", " : "", strides,
                   problem, place, what);
    return false;
}

bool attn_verdict_too_large(attn_verdict *verdict, const attn_inputs *inputs, int64_t head,
                            int64_t row, const char *of, double error, double bound) {
    char what[160];
    (void)snprintf(what, sizeof what, "%s %.2e, bound %.2e", of, error, bound);
    verdict->error = error;
    verdict->bound = bound;
    return attn_verdict_wrong(verdict, inputs, head, row, what);
}
