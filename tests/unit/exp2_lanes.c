/* exp2_lanes.c: the vectors' 2^x, compiled once for each instruction set, width and degree:
 * test_exp2.c holds them all against libm. */
#include "attn_cpu.h"

#include "exp2_lanes.h"

void EXP2_LANES(const float *t, float *native, float *magic, int count) {
    for (int i = 0; i + ATTN_VL <= count; i += ATTN_VL) {
        attn_vf x;
        memcpy(&x, t + i, sizeof x);
        const attn_vf a = attn_vexp2_native(x), b = attn_vexp2_magic(x);
        memcpy(native + i, &a, sizeof a);
        memcpy(magic + i, &b, sizeof b);
    }
}
