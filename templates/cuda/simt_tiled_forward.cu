// simt_tiled_forward.cu: float32 attention by multiply-adds alone, register-blocked as a fast
// SGEMM.
//
// A warp owns LANES_M x ROWS query rows and works on LANES x KEYS keys at a time; each thread has a
// ROWS x KEYS block of the scores S = Q K^T and a ROWS x OUT block of the outputs O += P V. Q, K
// and V lie row by row in shared memory and are read four floats at a time, along the columns for S
// and along the keys for P; V comes with cp.async while S is computed, and the next K while V is
// used. The weights P go from the threads that computed them to those that need them through a
// buffer of the warp's own. What was measured is in tests/peers/performance.md.
constexpr int D = $(HEAD_DIM);    // columns of Q and K
constexpr int DV = $(HEAD_DIM_V); // columns of V and O
constexpr int WARPS = $(WARPS);
constexpr int LANES = $(LANES);   // lanes of a warp that share rows, side by side along the keys
constexpr int ROWS = $(ROWS);     // query rows of a thread
constexpr int KEYS = $(KEYS);     // keys of a thread
constexpr int STAGES = $(STAGES); // buffers of K and V
constexpr int PARTS = $(PARTS);   // the weights change hands in so many parts
constexpr bool AHEAD = $(AHEAD);  // operands are loaded a step before their use
constexpr bool IN_ROW = $(ORDER == "row");        // query tiles of a head: as they come, or
constexpr bool SECTIONS = $(ORDER == "sections"); // longest first: of some heads, or of all
constexpr bool ALIGNED = $(ALIGNED);              // rows begin at multiples of 16 bytes
constexpr bool MASKED = $(MASKED);                // there is a mask
constexpr bool LSE = $(LSE);

constexpr int THREADS = 32 * WARPS;
constexpr int LANES_M = 32 / LANES;
constexpr int WARP_ROWS = LANES_M * ROWS;
constexpr int BLOCK_M = WARPS * WARP_ROWS; // query rows of a block
constexpr int BLOCK_N = LANES * KEYS;      // keys of a tile
constexpr int DK = $(DK);                  // D in whole pieces of 4 floats
constexpr int PITCH = $(PITCH);            // floats from row to row of Q and K: see the space file
constexpr int PITCH_V = $(PITCH_V);        // of V: 4 floats a lane, OUT / 4 times
constexpr int DVP = PITCH_V;               // all of which are filled
constexpr int OUT = PITCH_V / LANES;       // columns of O of a thread
constexpr int PART_KEYS = BLOCK_N / PARTS; // keys whose weights are in the warp's buffer together
constexpr int PITCH_P = $(PITCH_P);        // floats from row to row of that buffer

struct state {
    float o[ROWS][OUT];         // columns 4 * (lane_n() + LANES * c) + 0..3
    float max[ROWS], sum[ROWS]; // of a row; the sum is of this lane's keys alone
};

using scores = float[ROWS][KEYS]; // of rows lane_m() + LANES_M * i, keys lane_n() + LANES * j

#include "f32_tiles.cuh"

ATTN_DEVICE float *p_buffer() {
    return shared + TILE_FLOATS + threadIdx.x / 32 * WARP_ROWS * PITCH_P;
}

ATTN_DEVICE int lane_n() {
    return threadIdx.x % LANES;
}

ATTN_DEVICE int lane_m() {
    return threadIdx.x % 32 / LANES;
}

ATTN_DEVICE void start(state &st) {
    st = {};
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        st.max[i] = -attn_infinity();
}

ATTN_DEVICE float4 load_four(const float *from) {
    return *(const float4 *)from;
}

ATTN_DEVICE void multiply_add(float4 a, float4 b, float &sum) {
    sum = fmaf(a.x, b.x, sum);
    sum = fmaf(a.y, b.y, sum);
    sum = fmaf(a.z, b.z, sum);
    sum = fmaf(a.w, b.w, sum);
}

// The first row's and all keys' operands of a step.
ATTN_DEVICE void load_step(float4 &a, float4 b[KEYS], const float *q, const float *k) {
    a = load_four(q);
#pragma unroll
    for (int j = 0; j < KEYS; j++)
        b[j] = load_four(k + LANES * j * PITCH);
}

// S = Q K^T. AHEAD, the operands of the next four columns are on their way as soon as the last row
// has used these.
ATTN_DEVICE void score(const state &st, scores &s, int n) {
    const float *k = k_buffer(n) + lane_n() * PITCH;
    const float *q = shared + (threadIdx.x / 32 * WARP_ROWS + lane_m()) * PITCH;
    float4 a, b[KEYS];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < KEYS; j++)
            s[i][j] = 0.0f;
    if constexpr (AHEAD)
        load_step(a, b, q, k);
#pragma unroll $(UNROLL)
    for (int d = 0; d < DK; d += 4) {
        const int next = d + 4 < DK ? d + 4 : 0;
        if constexpr (!AHEAD)
            load_step(a, b, q + d, k + d);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const float4 row = a;
            const bool last = i + 1 == ROWS;
            if (AHEAD || !last)
                a = load_four(q + (last ? next : LANES_M * (i + 1) * PITCH + d));
#pragma unroll
            for (int j = 0; j < KEYS; j++) {
                multiply_add(row, b[j], s[i][j]);
                if (AHEAD && last)
                    b[j] = load_four(k + LANES * j * PITCH + next);
            }
        }
    }
}

// Scores as exponents of 2, -infinity where the row does not see the key.
ATTN_DEVICE void mask(const job &w, float s[ROWS][KEYS], int first_key) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int row = w.first_row + lane_m() + LANES_M * i;
        const int begin = MASKED ? row + w.left : 0;
        const int end = MASKED ? min(w.seq_kv, row + w.right + 1) : w.seq_kv;
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
            const int key = first_key + lane_n() + LANES * j;
            if (key < begin || key >= end)
                s[i][j] = -attn_infinity();
        }
    }
}

// Scores to weights 2^(s - maximum); brings O and the sums to the new maxima.
ATTN_DEVICE void soften(state &st, float s[ROWS][KEYS]) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        float top = st.max[i];
#pragma unroll
        for (int j = 0; j < KEYS; j++)
            top = fmaxf(top, s[i][j]);
#pragma unroll
        for (int offset = LANES / 2; offset; offset /= 2)
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
        // While a row has seen no key its maximum is -inf, and -inf - -inf would be NaN.
        const float base = top == -attn_infinity() ? 0.0f : top;
        const float alpha = attn_exp2(st.max[i] - base);
        st.max[i] = top;
        st.sum[i] *= alpha;
#pragma unroll
        for (int c = 0; c < OUT; c++)
            st.o[i][c] *= alpha;
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
            s[i][j] = attn_exp2(s[i][j] - base);
            st.sum[i] += s[i][j];
        }
    }
}

// One of four, by a number that the compiler knows.
ATTN_DEVICE float one_of(const float4 &x, int e) {
    return e == 0 ? x.x : e == 1 ? x.y : e == 2 ? x.z : x.w;
}

ATTN_DEVICE void add_four(float *o, float weight, float4 v) {
    o[0] = fmaf(weight, v.x, o[0]);
    o[1] = fmaf(weight, v.y, o[1]);
    o[2] = fmaf(weight, v.z, o[2]);
    o[3] = fmaf(weight, v.w, o[3]);
}

// The weights of one part of the keys to where the whole warp can read them.
ATTN_DEVICE void hand_over(const float s[ROWS][KEYS], float *p, int part) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < KEYS / PARTS; j++)
            p[(lane_m() + LANES_M * i) * PITCH_P + lane_n() + LANES * j] =
                s[i][part * (KEYS / PARTS) + j];
    __syncwarp();
}

// O += P V for the keys of one part, whose weights are in p and values in v.
ATTN_DEVICE void add_part(state &st, const float *p, const float *v) {
    float4 weight[ROWS], value[OUT / 4]; // AHEAD: of the next four keys, of the next key
    if constexpr (AHEAD) {
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            weight[i] = load_four(p + LANES_M * i * PITCH_P);
#pragma unroll
        for (int c = 0; c < OUT / 4; c++)
            value[c] = load_four(v + 4 * LANES * c);
    }
#pragma unroll $(UNROLL)
    for (int key = 0; key < PART_KEYS; key += 4) {
        const int next = key + 4 < PART_KEYS ? key + 4 : 0;
        if constexpr (!AHEAD)
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                weight[i] = load_four(p + LANES_M * i * PITCH_P + key);
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int c = 0; c < OUT / 4; c++) {
                const float *column = v + 4 * LANES * c;
                const float4 four = AHEAD ? value[c] : load_four(column + (key + e) * PITCH_V);
                if constexpr (AHEAD)
                    value[c] = load_four(column + (e < 3 ? key + e + 1 : next) * PITCH_V);
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    add_four(&st.o[i][4 * c], one_of(weight[i], e), four);
                    if (AHEAD && e == 3 && c + 1 == OUT / 4)
                        weight[i] = load_four(p + LANES_M * i * PITCH_P + next);
                }
            }
    }
}

ATTN_DEVICE void weigh(state &st, const float s[ROWS][KEYS], const float *v) {
    float *p = p_buffer();
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        hand_over(s, p, part);
        add_part(st, p + lane_m() * PITCH_P, v + part * PART_KEYS * PITCH_V + 4 * lane_n());
    }
}

ATTN_DEVICE void attend(const job &w, state &st, scores &s, int n) {
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < KEYS; j++)
            s[i][j] = __fmul_rn(s[i][j], w.scale); // the maximum of these is subtracted from them
    if (!sees_all(w, n))
        mask(w, s, n * BLOCK_N);
    soften(st, s);
    weigh(st, s, v_buffer(n));
}

ATTN_DEVICE void store(const attn_forward_args &a, state &st, int first_row, float *o, float *lse) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int row = first_row + lane_m() + LANES_M * i;
        float sum = st.sum[i];
#pragma unroll
        for (int offset = LANES / 2; offset; offset /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        if (row >= a.seq_q)
            continue;
        const float factor = sum == 0.0f ? 0.0f : 1.0f / sum; // 0: the row saw no key
#pragma unroll
        for (int c = 0; c < OUT; c++)
            st.o[i][c] *= factor;
#pragma unroll
        for (int c = 0; c < OUT; c += 4)
            store_columns(o + row * a.o_stride[2], &st.o[i][c], LANES * c + 4 * lane_n(), 4);
        if (LSE && lane_n() == 0)
            lse[row] = sum == 0.0f ? -attn_infinity() : st.max[i] * 0.69314718f + logf(sum);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, $(MIN_BLOCKS))
    $(KERNEL)(const __grid_constant__ attn_forward_args a) {
    forward(a);
}
