/* cpu_reference.h: attention in plain C, the kernel of last resort.
 *
 * Compiled into the library; runs every valid problem on every CPU without a compiler or a
 * database. It is not a tuning candidate. The tuner's float64 reference is separate code, so that
 * each checks the other. */
#ifndef ATTN_CPU_REFERENCE_H
#define ATTN_CPU_REFERENCE_H

#include "core/launch.h"
#include "pool.h"

/* The kernel for tensors of that type, with the signature of attn_abi.h. One task computes one tile
 * of attn_reference_launch; tasks may run in any order. Returns 0. It uses 60 KB of stack. */
attn_task_function *attn_reference_function(attn_dtype dtype);

/* Its launch record: one step, no workspace, no limits. */
void attn_reference_launch(attn_launch *launch);

#endif
