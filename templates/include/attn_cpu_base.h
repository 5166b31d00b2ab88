/* attn_cpu_base.h: what every CPU kernel is written with: how functions are inlined, and the
 * smaller and the larger of two counts, named as CUDA names them.
 */
#ifndef ATTN_CPU_BASE_H
#define ATTN_CPU_BASE_H

#include <stdint.h>

#define ATTN_INLINE static inline __attribute__((always_inline))
#define ATTN_NOINLINE static __attribute__((noinline))
#define ATTN_PRAGMA(text) _Pragma(#text)

ATTN_INLINE int32_t min(int32_t a, int32_t b) {
    return a < b ? a : b;
}

ATTN_INLINE int32_t max(int32_t a, int32_t b) {
    return a > b ? a : b;
}

#endif
