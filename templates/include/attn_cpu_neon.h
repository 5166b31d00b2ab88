/* attn_cpu_neon.h: attn_cpu.h's vectors on 64-bit Arm: 4 lanes. */
#ifndef ATTN_CPU_NEON_H
#define ATTN_CPU_NEON_H

#include <arm_neon.h>

#if ATTN_VL != 4
#error "NEON takes ATTN_VL 4"
#endif

ATTN_INLINE attn_vf attn_vmax(attn_vf a, attn_vf b) {
    return (attn_vf)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
}

#endif
