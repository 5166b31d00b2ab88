/* exp2_lanes.h: the functions that exp2_lanes.c is compiled to, by set, lanes and degree. */
#ifndef ATTN_EXP2_LANES_H
#define ATTN_EXP2_LANES_H

/* count is a multiple of 16. */
typedef void exp2_lanes(const float *t, float *native, float *magic, int count);

#define EXP2_DEGREES(set, lanes)                                                                   \
    exp2_lanes exp2_##set##_##lanes##_3, exp2_##set##_##lanes##_4, exp2_##set##_##lanes##_5,       \
        exp2_##set##_##lanes##_6;
EXP2_DEGREES(base, 4)
EXP2_DEGREES(avx2, 8)
EXP2_DEGREES(avx512, 8)
EXP2_DEGREES(avx512, 16)
#undef EXP2_DEGREES

#endif
