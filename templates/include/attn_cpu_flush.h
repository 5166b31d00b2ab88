/* attn_cpu_flush.h: denormal numbers count as 0 between two calls, and in the caller's mode after.
 *
 * A multiplication that meets one takes a hundred times as long on x86: where V or K has many, and
 * where weights of almost 0 come before a row's large ones. Arm's CPUs compute with them at full
 * speed. Include it behind attn_abi.h.
 */
#ifndef ATTN_CPU_FLUSH_H
#define ATTN_CPU_FLUSH_H

#include "attn_cpu_base.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Returns what attn_flush_end takes. Nothing changes under a scale so large that it could make
 * something of a denormal element of Q or K. */
ATTN_INLINE unsigned attn_flush_begin(const attn_forward_args *a) {
    const unsigned before = _mm_getcsr(), operands_are_zero = 0x40;
    if (a->scale < 0x1p20F && a->scale > -0x1p20F)
        _mm_setcsr(before | _MM_FLUSH_ZERO_ON | operands_are_zero);
    return before;
}

ATTN_INLINE void attn_flush_end(unsigned before) {
    _mm_setcsr(before);
}

#else

ATTN_INLINE unsigned attn_flush_begin(const attn_forward_args *a) {
    (void)a;
    return 0;
}

ATTN_INLINE void attn_flush_end(unsigned before) {
    (void)before;
}

#endif

#endif
