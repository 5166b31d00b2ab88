/* function_backend.h: a backend in the test's own memory, whose kernels are C functions of the
 * test. Good for whatever is tested of verification without a compiler. */
#ifndef ATTN_FUNCTION_BACKEND_H
#define ATTN_FUNCTION_BACKEND_H

#include "backend.h"

/* As the CPU ABI's kernels. */
typedef int attn_function(const attn_forward_args *args, int task, int worker);

struct attn_kernel {
    attn_function *function;
    attn_launch launch;
};

extern const attn_backend attn_function_backend;

/* A kernel with the launch record of the text, which must parse. */
attn_kernel attn_function_kernel(attn_function *function, const char *launch);

#endif
