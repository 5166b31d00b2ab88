// simt_tiled_forward.cu: float32 attention by multiply-adds alone, register-blocked as a fast
// SGEMM.
//
// A warp owns LANES_M x ROWS query rows and works on LANES x KEYS keys at a time; each thread has a
// ROWS x KEYS block of the scores S = Q K^T and a ROWS x OUT block of the outputs O += P V. Q, K
// and V lie row by row in shared memory and are read four floats at a time, along the columns for S
// and along the keys for P; V comes with cp.async while S is computed, and the next K while V is
// used. The weights P go from the threads that computed them to those that need them through a
// buffer of the warp's own. What was measured is in tests/peers/performance.md.
#include "attn_abi.h"
#include "attn_simt.cuh"

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
constexpr int OUT = PITCH_V / LANES;       // columns of O of a thread
constexpr int PART_KEYS = BLOCK_N / PARTS; // keys whose weights are in the warp's buffer together
constexpr int PITCH_P = $(PITCH_P);        // floats from row to row of that buffer

constexpr int Q_FLOATS = BLOCK_M * PITCH;
constexpr int K_FLOATS = BLOCK_N * PITCH;
constexpr int V_FLOATS = BLOCK_N * PITCH_V;

extern __shared__ __align__(16) float shared[];

ATTN_DEVICE float *k_buffer(int n) {
    return shared + Q_FLOATS + n % STAGES * K_FLOATS;
}

ATTN_DEVICE float *v_buffer(int n) {
    return shared + Q_FLOATS + STAGES * K_FLOATS + n % STAGES * V_FLOATS;
}

ATTN_DEVICE float *p_buffer() {
    return shared + Q_FLOATS + STAGES * (K_FLOATS + V_FLOATS) +
           threadIdx.x / 32 * WARP_ROWS * PITCH_P;
}

ATTN_DEVICE int lane_n() {
    return threadIdx.x % LANES;
}

ATTN_DEVICE int lane_m() {
    return threadIdx.x % 32 / LANES;
}

// What a block works on.
struct job {
    const float *k, *v;
    attn_i64 k_stride, v_stride;
    int seq_kv;
    int left, right; // row i sees the keys i + left <= key <= i + right
    int first_row;   // of the warp; this thread has first_row + lane_m() + LANES_M * i
    float scale;     // of the scores, in the exponent of 2
};

struct state {
    float o[ROWS][OUT];         // columns 4 * (lane_n() + LANES * c) + 0..3
    float max[ROWS], sum[ROWS]; // of a row; the sum is of this lane's keys alone
};

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

// S = Q K^T. This thread's keys are lane_n() + LANES * j. AHEAD, the operands of the next four
// columns are on their way as soon as the last row has used these.
ATTN_DEVICE void score(float s[ROWS][KEYS], const float *k) {
    const float *q = shared + (threadIdx.x / 32 * WARP_ROWS + lane_m()) * PITCH;
    float4 a, b[KEYS];
    k += lane_n() * PITCH;
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
ATTN_DEVICE float element(const float4 &x, int e) {
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
                    add_four(&st.o[i][4 * c], element(weight[i], e), four);
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

ATTN_DEVICE void load_k(const job &w, int n) {
    attn_copy_rows<THREADS, BLOCK_N, D, PITCH, DK, ALIGNED>(k_buffer(n), w.k, w.k_stride,
                                                            n * BLOCK_N, w.seq_kv);
}

ATTN_DEVICE void load_v(const job &w, int n) {
    attn_copy_rows<THREADS, BLOCK_N, DV, PITCH_V, PITCH_V, ALIGNED>(v_buffer(n), w.v, w.v_stride,
                                                                    n * BLOCK_N, w.seq_kv);
}

// Whether this warp's rows see any key of the tile, and whether they see all.
ATTN_DEVICE bool sees_any(const job &w, int n) {
    return !MASKED || (n * BLOCK_N <= w.first_row + WARP_ROWS - 1 + w.right &&
                       n * BLOCK_N + BLOCK_N - 1 >= w.first_row + w.left);
}

ATTN_DEVICE bool sees_all(const job &w, int n) {
    const int first = n * BLOCK_N, last = first + BLOCK_N - 1;
    return last < w.seq_kv && (!MASKED || (first >= w.first_row + WARP_ROWS - 1 + w.left &&
                                           last <= w.first_row + w.right));
}

ATTN_DEVICE void attend(const job &w, state &st, float s[ROWS][KEYS], int n) {
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

// One buffer each: V comes while the scores are computed, the next K while V is used.
ATTN_DEVICE void walk_single(const job &w, state &st, int begin, int end) {
    load_k(w, begin);
    attn_copy_commit();
    for (int n = begin; n < end; n++) {
        float s[ROWS][KEYS];
        attn_copy_wait<0>();
        __syncthreads();
        load_v(w, n);
        attn_copy_commit();
        if (sees_any(w, n))
            score(s, k_buffer(n));
        attn_copy_wait<0>();
        __syncthreads();
        if (n + 1 < end)
            load_k(w, n + 1);
        attn_copy_commit();
        if (sees_any(w, n))
            attend(w, st, s, n);
    }
}

// Two: the next tile is on its way while this one is worked on, and there is one barrier a tile.
ATTN_DEVICE void fetch(const job &w, int n, int end) {
    if (n < end) {
        load_k(w, n);
        load_v(w, n);
    }
    attn_copy_commit();
}

ATTN_DEVICE void walk_double(const job &w, state &st, int begin, int end) {
    fetch(w, begin, end);
    for (int n = begin; n < end; n++) {
        attn_copy_wait<0>();
        __syncthreads();
        fetch(w, n + 1, end);
        if (sees_any(w, n)) {
            float s[ROWS][KEYS];
            score(s, k_buffer(n));
            attend(w, st, s, n);
        }
    }
}

ATTN_DEVICE void store_four(float *o, const float *x, int column) {
    if (ALIGNED && column + 4 <= DV) {
        *(float4 *)(o + column) = make_float4(x[0], x[1], x[2], x[3]);
        return;
    }
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (column + e < DV)
            o[column + e] = x[e];
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
            store_four(o + row * a.o_stride[2], &st.o[i][c], LANES * c + 4 * lane_n());
        if (LSE && lane_n() == 0)
            lse[row] = sum == 0.0f ? -attn_infinity() : st.max[i] * 0.69314718f + logf(sum);
    }
}

// Heads whose K and V stay in the cache together: whole groups, 32 MB.
ATTN_DEVICE int section(const attn_forward_args &a) {
    const attn_i64 bytes = 4 * (attn_i64)(D + DV) * max(a.seq_kv, 1);
    return a.group * (int)max((attn_i64)1, (32 << 20) / bytes);
}

extern "C" __global__ void __launch_bounds__(THREADS, $(MIN_BLOCKS))
    $(KERNEL)(const __grid_constant__ attn_forward_args a) {
    const int heads = a.batch * a.heads_q, index = blockIdx.x;
    int tile = index % a.tiles, head = index / a.tiles;
    if constexpr (!IN_ROW) {
        const int first = SECTIONS ? head / section(a) * section(a) : 0;
        const int count = SECTIONS ? min(section(a), heads - first) : heads;
        tile = a.tiles - 1 - (index - first * a.tiles) / count;
        head = first + (index - first * a.tiles) % count;
    }
    const int b = head / a.heads_q, h = head % a.heads_q, kv = h / a.group;
    const int first_row = tile * BLOCK_M, last_row = min(first_row + BLOCK_M, a.seq_q) - 1;

    job w;
    w.k = (const float *)a.k + b * a.k_stride[0] + kv * a.k_stride[1];
    w.v = (const float *)a.v + b * a.v_stride[0] + kv * a.v_stride[1];
    w.k_stride = a.k_stride[2];
    w.v_stride = a.v_stride[2];
    w.seq_kv = a.seq_kv;
    w.left = a.mask_offset - a.mask_left;
    w.right = a.mask_offset + a.mask_right;
    w.first_row = first_row + threadIdx.x / 32 * WARP_ROWS;
    w.scale = a.scale_log2;

    int begin = 0, end = (a.seq_kv + BLOCK_N - 1) / BLOCK_N; // tiles of keys that any row sees
    if constexpr (MASKED) {
        begin = max(0, first_row + w.left) / BLOCK_N;
        end = (max(0, min(a.seq_kv, last_row + w.right + 1)) + BLOCK_N - 1) / BLOCK_N;
    }

    state st = {};
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        st.max[i] = -attn_infinity();
    if (begin < end) {
        const float *q = (const float *)a.q + b * a.q_stride[0] + h * a.q_stride[1];
        attn_copy_rows<THREADS, BLOCK_M, D, PITCH, DK, ALIGNED>(shared, q, a.q_stride[2], first_row,
                                                                a.seq_q);
        if constexpr (STAGES == 1)
            walk_single(w, st, begin, end);
        else
            walk_double(w, st, begin, end);
    }
    float *o = (float *)a.o + b * a.o_stride[0] + h * a.o_stride[1];
    store(a, st, w.first_row, o, LSE ? a.lse + (attn_i64)head * a.seq_q : nullptr);
}
