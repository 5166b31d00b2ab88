/* fma.h: how fast this core multiplies and adds right now. */
#ifndef ATTN_FMA_H
#define ATTN_FMA_H

#include <stdint.h>

/* Runs that many rounds of independent fused multiply-adds of the widest usable kind (attn_isa);
 * returns the floating-point operations done. 1000 rounds take about 5 us. */
double attn_fma_run(uint32_t usable, int64_t rounds);

/* GFLOP/s of the calling thread over about 100 us. */
double attn_fma_canary(uint32_t usable);

/* Monotonic clock, nanoseconds. */
int64_t attn_clock_ns(void);

#endif
