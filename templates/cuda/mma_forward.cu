// mma_forward.cu: flash attention on mma.sync tensor cores, one tile of query rows a block.
//
// Each warp owns 16 x ROW_TILES query rows. It walks over the keys tile by tile: scores S = Q K^T
// in registers, weights P = 2^(S - running maximum), outputs O += P V. P never leaves the
// registers: the accumulators of the first product are laid out as the operand of the second. K and
// V come through shared memory, ahead of use by STAGES buffers. What each step was worth is in
// tests/peers/performance.md.
#include "attn_abi.h"
#include "attn_mma.cuh"

using element = attn_half;

constexpr bool BF16 = $(BF16);               // else f16
constexpr int D = $(HEAD_DIM);               // columns of Q and K
constexpr int DV = $(HEAD_DIM_V);            // columns of V and O
constexpr int DK = $(DK);                    // D in whole k-steps of 16; zeros behind D
constexpr int DVP = $(DVP);                  // DV in whole pairs of 8 columns; zeros behind DV
constexpr int BLOCK_M = $(BLOCK_M);          // query rows of a block
constexpr int BLOCK_N = $(BLOCK_N);          // keys of a tile
constexpr int WARPS = $(WARPS);              // along the rows
constexpr int KEY_WARPS = $(KEY_WARPS);      // along the keys: each tile is shared among so many
constexpr int STAGES = $(STAGES);            // buffers of K and V
constexpr int PAD = $(PAD);                  // elements behind each row in shared memory
constexpr bool SWIZZLE = $(SWIZZLE);         // or the pieces of a row permuted
constexpr bool Q_REGISTERS = $(Q_REGISTERS); // Q is read from shared memory once, or for each tile
constexpr bool ASYNC = $(COPY == "async");   // cp.async, or loads and stores
constexpr bool ALIGNED = $(ALIGNED);         // rows begin at multiples of 16 bytes
constexpr bool EXP2 = $(EXP == "exp2");      // 2^x with log2(e) in the scale, or expf
constexpr bool SHUFFLE = $(REDUCE == "shuffle");  // rows' maxima that way, or by shared memory
constexpr bool PAIRED = $(STORE == "paired");     // outputs two at a time,
constexpr bool STAGED = $(STORE == "staged");     // eight, by way of Q's place, or one
constexpr bool IN_ROW = $(ORDER == "row");        // query tiles of a head: as they come, or
constexpr bool SECTIONS = $(ORDER == "sections"); // longest first: of some heads, or of all
constexpr float LAZY = $(LAZY);    // O is rescaled when a maximum has grown by more than this
constexpr bool MASKED = $(MASKED); // there is a mask
constexpr bool LSE = $(LSE);

constexpr int THREADS = 32 * WARPS * KEY_WARPS;
constexpr int WARP_ROWS = BLOCK_M / WARPS;
constexpr int WARP_KEYS = BLOCK_N / KEY_WARPS; // of a tile
constexpr int ROW_TILES = WARP_ROWS / 16;
constexpr int KEY_TILES = WARP_KEYS / 8; // n-tiles of the scores
constexpr int V_TILES = DV / 8;          // n-tiles of the outputs

using q_tile = attn_tile<DK, PAD, SWIZZLE>;
using v_tile = attn_tile<DVP, PAD, SWIZZLE>;

constexpr int Q_BYTES = BLOCK_M * q_tile::PITCH;
constexpr int K_BYTES = BLOCK_N * q_tile::PITCH;
constexpr int V_BYTES = BLOCK_N * v_tile::PITCH;

extern __shared__ __align__(128) unsigned char shared[];

ATTN_DEVICE int row_warp() {
    return threadIdx.x / 32 % WARPS;
}

ATTN_DEVICE int key_warp() {
    return KEY_WARPS == 1 ? 0 : threadIdx.x / 32 / WARPS;
}

ATTN_DEVICE unsigned char *k_buffer(int n) {
    return shared + Q_BYTES + (n % STAGES) * K_BYTES;
}

ATTN_DEVICE unsigned char *v_buffer(int n) {
    return shared + Q_BYTES + STAGES * K_BYTES + (n % STAGES) * V_BYTES;
}

template <int ROWS, int COLUMNS, typename TILE>
ATTN_DEVICE void copy_tile(unsigned char *tile, const attn_half *tensor, attn_i64 stride, int first,
                           int end) {
    attn_copy_tile<THREADS, ROWS, COLUMNS, TILE, ASYNC, ALIGNED>(tile, tensor, stride, first, end);
}

struct state {
    float o[ROW_TILES][V_TILES][4];
    float max[ROW_TILES][2], sum[ROW_TILES][2]; // of this lane's rows; sums are of this lane alone
    attn_u32 q[Q_REGISTERS ? DK / 16 : 1][ROW_TILES][4];
};

using scores = float[ROW_TILES][KEY_TILES][4];

#include "mma_scores.cuh"
#include "mma_softmax.cuh"

// Where this lane reads Q: the first row tile, the first step.
ATTN_DEVICE attn_u32 q_address() {
    const int lane = threadIdx.x % 32;
    return attn_address(shared, q_tile::at(row_warp() * ROW_TILES * 16 + lane % 16, lane / 16));
}

// The operand tiles of Q: 16 rows each, 16 columns from 16 x step on.
ATTN_DEVICE void load_q(attn_u32 q[ROW_TILES][4], attn_u32 from, int step) {
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
        attn_ldmatrix4(q[r], q_tile::along(from, 2 * step) + 16 * r * q_tile::PITCH);
}

// S = Q K^T. The next operands are on their way while these are multiplied.
ATTN_DEVICE void score(const state &st, scores &s, int n) {
    constexpr int PAIRS = KEY_TILES / 2;
    const int lane = threadIdx.x % 32;
    const attn_u32 from = attn_address(
        k_buffer(n), q_tile::at(key_warp() * WARP_KEYS + lane % 8 + lane / 16 * 8, lane / 8 % 2));
    const attn_u32 q_from = Q_REGISTERS ? 0 : q_address();
    attn_u32 q[2][ROW_TILES][4], b[2][4]; // b: two n-tiles, 16 keys
    if constexpr (!Q_REGISTERS)
        load_q(q[0], q_from, 0);
    attn_ldmatrix4(b[0], from);
#pragma unroll
    for (int step = 0; step < DK / 16; step++) {
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            const int now = (step * PAIRS + j) % 2;
            const int next_step = step + (j + 1) / PAIRS, next_j = (j + 1) % PAIRS;
            if (next_step < DK / 16)
                attn_ldmatrix4(b[1 - now],
                               q_tile::along(from, 2 * next_step) + 16 * next_j * q_tile::PITCH);
            if (!Q_REGISTERS && next_j == 0 && next_step < DK / 16)
                load_q(q[next_step % 2], q_from, next_step);
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++) {
                const attn_u32 *a = Q_REGISTERS ? st.q[Q_REGISTERS ? step : 0][r] : q[step % 2][r];
                attn_mma<BF16>(s[r][2 * j], a, b[now][0], b[now][1], step == 0);
                attn_mma<BF16>(s[r][2 * j + 1], a, b[now][2], b[now][3], step == 0);
            }
        }
    }
}

// Scores to weights, 16 keys at a time, between the products with V that hide their cost.
ATTN_DEVICE void weigh(state &st, const scores &s, const float base[ROW_TILES][2], float scale,
                       int n) {
    const int lane = threadIdx.x % 32;
    const attn_u32 from =
        attn_address(v_buffer(n), v_tile::at(key_warp() * WARP_KEYS + lane % 16, lane / 16));
#pragma unroll
    for (int step = 0; step < WARP_KEYS / 16; step++) {
        attn_u32 a[ROW_TILES][4];
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int h = e % 2;
                const float *pair = &s[r][2 * step + e / 2][2 * h];
                const float low = exponential(pair[0] * scale - base[r][h]);
                const float high = exponential(pair[1] * scale - base[r][h]);
                st.sum[r][h] += low + high;
                a[r][e] = attn_pack2<BF16>(low, high);
            }
#pragma unroll
        for (int j = 0; j < V_TILES; j += 2) {
            attn_u32 b[4]; // two n-tiles: columns 8j.., 8j+8..
            attn_ldmatrix4_transposed(b, v_tile::along(from, j) + 16 * step * v_tile::PITCH);
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++) {
                attn_mma<BF16>(st.o[r][j], a[r], b[0], b[1], false);
                if (j + 1 < V_TILES)
                    attn_mma<BF16>(st.o[r][j + 1], a[r], b[2], b[3], false);
            }
        }
    }
}

ATTN_DEVICE void load_k(const job &w, int n) {
    copy_tile<BLOCK_N, D, q_tile>(k_buffer(n), w.k, w.k_stride, n * BLOCK_N, w.seq_kv);
}

ATTN_DEVICE void load_v(const job &w, int n) {
    copy_tile<BLOCK_N, DV, v_tile>(v_buffer(n), w.v, w.v_stride, n * BLOCK_N, w.seq_kv);
}

ATTN_DEVICE void attend(const job &w, state &st, scores &s, int n) {
    float base[ROW_TILES][2];
    if (!sees_all(w, n))
        mask(w, s, first_key(n));
    soften(st, s, base, w.scale);
    weigh(st, s, base, w.scale, n);
}

// Q is in shared memory when this returns. A negative scale changes its sign there, so that the
// largest score is always the largest exponent.
ATTN_DEVICE void finish_q(state &st, bool negate) {
    wait<STAGES == 1 ? 1 : STAGES - 1>();
    if (negate) {
        for (int i = threadIdx.x; i < Q_BYTES / 4; i += THREADS)
            ((attn_u32 *)shared)[i] ^= 0x80008000u;
        __syncthreads();
    }
    if constexpr (Q_REGISTERS) {
        const attn_u32 from = q_address();
#pragma unroll
        for (int step = 0; step < DK / 16; step++)
            load_q(st.q[step], from, step);
    }
}

ATTN_DEVICE void store_pair(attn_half *o, attn_u32 bits) {
    if constexpr (PAIRED) {
        *(attn_u32 *)o = bits;
    } else {
        o[0] = (attn_half)bits;
        o[1] = (attn_half)(bits >> 16);
    }
}

// Copies this warp's rows from where it had Q, 16 bytes a lane.
ATTN_DEVICE void store_staged(const attn_forward_args &a, const unsigned char *tile, int first_row,
                              attn_half *o) {
    __syncwarp();
#pragma unroll
    for (int i = threadIdx.x % 32; i < 2 * ROW_TILES * DV; i += 32) {
        const int row = i / (DV / 8), piece = i % (DV / 8);
        if (first_row + row < a.seq_q)
            *(uint4 *)(o + (first_row + row) * a.o_stride[2] + 8 * piece) =
                *(const uint4 *)(tile + v_tile::at(row, piece));
    }
}

ATTN_DEVICE void store(const attn_forward_args &a, const state &st, int first_row, attn_half *o,
                       float *lse, float scale) {
    const int lane = threadIdx.x % 32;
    unsigned char *tile = shared + row_warp() * 16 * ROW_TILES * q_tile::PITCH;
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = 16 * r + 8 * h + lane / 4;
            const float sum = row_sum(st.sum[r][h]);
            if (!STAGED && first_row + row >= a.seq_q)
                continue;
            const float factor = sum == 0.0f ? 0.0f : 1.0f / sum; // 0: the row saw no key
#pragma unroll
            for (int j = 0; j < V_TILES; j++) {
                const attn_u32 bits =
                    attn_pack2<BF16>(st.o[r][j][2 * h] * factor, st.o[r][j][2 * h + 1] * factor);
                if constexpr (STAGED)
                    ((attn_u32 *)(tile + v_tile::at(row, j)))[lane % 4] = bits;
                else
                    store_pair(o + (first_row + row) * a.o_stride[2] + 8 * j + 2 * (lane % 4),
                               bits);
            }
            if (LSE && lane % 4 == 0 && first_row + row < a.seq_q) {
                const float ln2 = 0.69314718f, top = st.max[r][h] * scale;
                const float value = EXP2 ? (top + attn_log2(sum)) * ln2 : top + logf(sum);
                lse[first_row + row] = sum == 0.0f ? -attn_infinity() : value;
            }
        }
    if constexpr (STAGED)
        store_staged(a, tile, first_row, o);
}

extern "C" __global__ void __launch_bounds__(THREADS, $(MIN_BLOCKS))
    $(KERNEL)(const __grid_constant__ attn_forward_args a) {
    const place at = place_of(a);
    const attn_half *q =
        (const attn_half *)a.q + at.batch * a.q_stride[0] + at.head * a.q_stride[1];

    // A scale of 0 would make NaN of a masked score's -inf; one this small makes all weights equal.
    const float asked = EXP2 ? a.scale_log2 : a.scale;
    job w = job_of(a, at);
    w.scale = asked == 0.0f ? 1.17549435e-38f : fabsf(asked);

    int begin = 0, end = (a.seq_kv + BLOCK_N - 1) / BLOCK_N; // tiles of keys that any row sees
    if constexpr (MASKED) {
        begin = max(0, at.first_row + w.left) / BLOCK_N;
        end = (max(0, min(a.seq_kv, at.last_row + w.right + 1)) + BLOCK_N - 1) / BLOCK_N;
    }
    state st;
    start(st);
    if (begin < end) {
        copy_tile<BLOCK_M, D, q_tile>(shared, q, a.q_stride[2], at.first_row, a.seq_q);
        commit();
        if constexpr (STAGES == 1) {
            load_k(w, begin);
            commit();
        } else {
#pragma unroll
            for (int i = 0; i < STAGES - 1; i++)
                fetch(w, begin + i, end);
        }
        finish_q(st, asked < 0.0f);
        walk(w, st, begin, end);
    }
    if constexpr (KEY_WARPS > 1)
        merge(st, w.scale);
    if (key_warp() > 0)
        return;
    attn_half *o = (attn_half *)a.o + at.batch * a.o_stride[0] + at.head * a.o_stride[1];
    store(a, st, w.first_row, o, LSE ? a.lse + (attn_i64)at.index * a.seq_q : nullptr, w.scale);
}
