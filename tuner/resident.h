/* resident.h: what /proc tells of a process: its memory, and its wait for a CPU. */
#ifndef ATTN_RESIDENT_H
#define ATTN_RESIDENT_H

#include <stdint.h>
#include <sys/types.h>

/* Bytes resident of a process and all its descendants; 0 if it is gone. */
int64_t attn_memory_resident(pid_t pid);

/* What a worker may take beyond what it has: for a problem of that size on a device, eight times
 * the problem and 1 GiB; for a compiler (0 bytes), 2 GiB; but no more than 70 % of what is
 * available. */
int64_t attn_memory_share(double problem_bytes);

/* Nanoseconds in which the main thread of a process could have run, but others had the CPUs; 0 if
 * it is gone, or where the kernel does not count this. */
int64_t attn_starved_ns(pid_t pid);

#endif
