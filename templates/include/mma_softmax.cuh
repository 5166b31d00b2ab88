// mma_softmax.cuh: online softmax of mma_forward.cu, in which it is included: it knows that file's
// constants and its state. How scores lie in registers is in mma_scores.cuh.

// The four lanes that hold a row combine their values here where REDUCE is "shared".
ATTN_DEVICE float *reduce_buffer() {
    return (float *)(shared + Q_BYTES + STAGES * (K_BYTES + V_BYTES));
}

// The largest of the four lanes that hold a row.
ATTN_DEVICE float row_max(float x, int row_in_block) {
    if constexpr (SHUFFLE)
        return row_max(x);
    float *line = reduce_buffer() + 4 * row_in_block;
    line[threadIdx.x % 4] = x;
    __syncwarp();
    x = fmaxf(fmaxf(line[0], line[1]), fmaxf(line[2], line[3]));
    __syncwarp();
    return x;
}

ATTN_DEVICE float exponential(float x) {
    return EXP2 ? attn_exp2(x) : expf(x);
}

constexpr float FAR = 4096.0f;

// While a row has seen no key its maximum is -inf, and -inf - -inf would be NaN.
ATTN_DEVICE float row_base(float max, float scale) {
    return max == -attn_infinity() ? 0.0f : __fmul_rn(max, scale);
}

// What a sum or output under the maximum `before` is worth under the maximum `top`.
ATTN_DEVICE float shrink(float before, float top, float scale) {
    const float base = row_base(top, scale);
    return exponential(fabsf(base) > FAR ? (before - top) * scale
                                         : __fmul_rn(before, scale) - base);
}

ATTN_DEVICE void rescale(state &st, const float top[ROW_TILES][2], float scale) {
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float alpha = shrink(st.max[r][h], top[r][h], scale);
            st.max[r][h] = top[r][h];
            st.sum[r][h] *= alpha;
#pragma unroll
            for (int j = 0; j < V_TILES; j++) {
                st.o[r][j][2 * h] *= alpha;
                st.o[r][j][2 * h + 1] *= alpha;
            }
        }
}

// Brings the maxima, and with them O and the sums, up to this tile's scores. The weight of a score
// is 2^(scale s - base): one FMA. The rounding of base = scale max is common to the row and cancels
// up to FAR; beyond, it would come near 1: there s - max is taken here, and base is 0.
ATTN_DEVICE void soften(state &st, scores &s, float base[ROW_TILES][2], float scale) {
    const int row = row_warp() * 16 * ROW_TILES + threadIdx.x % 32 / 4;
    float top[ROW_TILES][2];
    bool grown = false, far = false;
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            top[r][h] = st.max[r][h];
#pragma unroll
            for (int j = 0; j < KEY_TILES; j++)
                top[r][h] = fmaxf(top[r][h], fmaxf(s[r][j][2 * h], s[r][j][2 * h + 1]));
        }
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            top[r][h] = row_max(top[r][h], row + 16 * r + 8 * h);
            // A row that has seen no key has -inf - -inf = NaN here, which has not grown.
            grown |= (top[r][h] - st.max[r][h]) * scale > LAZY;
        }
    if (__any_sync(0xffffffffu, grown))
        rescale(st, top, scale);
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            base[r][h] = row_base(st.max[r][h], scale);
            far |= fabsf(base[r][h]) > FAR;
        }
    if (__any_sync(0xffffffffu, far)) {
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                if (fabsf(base[r][h]) > FAR) {
                    base[r][h] = 0.0f;
#pragma unroll
                    for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
                        for (int e = 2 * h; e < 2 * h + 2; e++)
                            s[r][j][e] -= st.max[r][h];
                }
    }
}

// The state of the warps that share rows becomes that of the first, by halves: the second half
// leaves its state in shared memory, which nobody needs any more, and the first takes it in.
ATTN_DEVICE void merge(state &st, float scale) {
    constexpr int VALUES = ROW_TILES * (4 * V_TILES + 4); // of a lane
    for (int half = KEY_WARPS / 2; half > 0; half /= 2) {
        float *at = (float *)shared + threadIdx.x % 32 +
                    32 * VALUES * (key_warp() % half * WARPS + row_warp());
        const bool gives = key_warp() >= half && key_warp() < 2 * half, takes = key_warp() < half;
        __syncthreads();
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                if (gives) {
                    float *line = at + 32 * (r * (4 * V_TILES + 4) + h * (2 * V_TILES + 2));
                    line[0] = st.max[r][h];
                    line[32] = st.sum[r][h];
#pragma unroll
                    for (int i = 0; i < 2 * V_TILES; i++)
                        line[32 * (i + 2)] = st.o[r][i / 2][2 * h + i % 2];
                }
        __syncthreads();
        if (!takes)
            continue;
        float top[ROW_TILES][2];
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                top[r][h] =
                    fmaxf(st.max[r][h], at[32 * (r * (4 * V_TILES + 4) + h * (2 * V_TILES + 2))]);
        rescale(st, top, scale);
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const float *line = at + 32 * (r * (4 * V_TILES + 4) + h * (2 * V_TILES + 2));
                const float alpha = shrink(line[0], top[r][h], scale);
                st.sum[r][h] += alpha * line[32];
#pragma unroll
                for (int i = 0; i < 2 * V_TILES; i++)
                    st.o[r][i / 2][2 * h + i % 2] += alpha * line[32 * (i + 2)];
            }
    }
    __syncthreads(); // outputs may be staged where states were
}
