// wgmma_softmax.cuh: online softmax of scores that lie in registers as a wgmma accumulator: element
// i of a lane is in the lane's row i / 2 % 2. The common tile, in which no maximum rises by much,
// takes no shuffle, one vote and one branch for both rows; all else is in attn_softmax_raise.
#ifndef WGMMA_SOFTMAX_CUH
#define WGMMA_SOFTMAX_CUH

#include "attn_hopper.cuh"

// Of the lane's two rows. Weights are 2^(scale x (score - top)).
struct attn_softmax {
    float top[2];   // the row's maximum when it was last raised; -inf before it has seen a key
    float base[2];  // scale x top, rounded; 0 for -inf, since -inf - -inf would be NaN
    float limit[2]; // a score above it raises the maximum
    float sum[2];   // of this lane's weights alone
    bool far;       // some base of the warp is so large that its rounding would show
    bool positive;  // all limits of the warp are >= 0

    ATTN_DEVICE void start() {
        ATTN_EACH (h, 0, 2) {
            top[h] = limit[h] = -attn_infinity();
            base[h] = sum[h] = 0.0f;
        }
        far = positive = false;
    }
};

// Whether any score of the warp is above its row's limit. Bits of floats compare as integers do
// where the limit is not negative, and integers have a maximum of three. INTEGER: use that.
template <bool INTEGER, int N>
ATTN_DEVICE bool attn_softmax_above(const attn_softmax &x, const float (&s)[N]) {
    bool above = false;
    if (INTEGER && x.positive) {
        ATTN_EACH (h, 0, 2) {
            int most = __float_as_int(s[2 * h]);
            ATTN_EACH (j, 0, N / 4) {
                const int a = __float_as_int(s[4 * j + 2 * h]);
                const int b = __float_as_int(s[4 * j + 2 * h + 1]);
                most = max(max(most, a), b);
            }
            above = above || most > __float_as_int(x.limit[h]);
        }
    } else {
        ATTN_EACH (h, 0, 2) {
            float most = s[2 * h];
            ATTN_EACH (j, 0, N / 4)
                most = fmaxf(fmaxf(most, s[4 * j + 2 * h]), s[4 * j + 2 * h + 1]);
            above = above || most > x.limit[h];
        }
    }
    return __any_sync(0xffffffffu, above);
}

// Raises the maxima of all rows to what they are now; a limit is `rise` above its maximum.
// alpha: what earlier outputs of the rows are to be multiplied by.
template <int N>
ATTN_DEVICE void attn_softmax_raise(attn_softmax &x, const float (&s)[N], float scale, float rise,
                                    float (&alpha)[2]) {
    bool far = false;
    ATTN_EACH (h, 0, 2) {
        const float before = x.top[h];
        float top = before;
        ATTN_EACH (j, 0, N / 4)
            top = fmaxf(fmaxf(top, s[4 * j + 2 * h]), s[4 * j + 2 * h + 1]);
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        const bool none = top == -attn_infinity();
        const float base = none ? 0.0f : __fmul_rn(top, scale);
        const bool row_far = fabsf(base) > 4096.0f;
        alpha[h] = attn_exp2(row_far ? (before - top) * scale : __fmul_rn(before, scale) - base);
        x.sum[h] *= alpha[h];
        x.top[h] = top;
        x.base[h] = base;
        x.limit[h] = none ? top : top + rise;
        far = far || row_far;
    }
    x.far = __any_sync(0xffffffffu, far);
    x.positive = __all_sync(0xffffffffu, x.limit[0] >= 0.0f && x.limit[1] >= 0.0f);
}

template <bool FAR, int N>
ATTN_DEVICE void attn_softmax_turn(attn_softmax &x, float (&s)[N], float scale) {
    ATTN_EACH (i, 0, N) {
        const int h = i / 2 % 2;
        if (FAR)
            s[i] = (s[i] - (x.base[h] == 0.0f ? 0.0f : x.top[h])) * scale;
        else
            s[i] = s[i] * scale - x.base[h];
        s[i] = attn_exp2(s[i]);
        x.sum[h] += s[i];
    }
}

// Turns scores into weights, and adds them up.
template <int N>
ATTN_DEVICE void attn_softmax_weights(attn_softmax &x, float (&s)[N], float scale) {
    if (x.far)
        attn_softmax_turn<true>(x, s, scale);
    else
        attn_softmax_turn<false>(x, s, scale);
}

#endif
