// mma_forward.cu: flash attention on mma.sync tensor cores, one tile of query rows a block.
//
// Each warp owns 16 x ROW_TILES query rows. It walks over the keys tile by tile: scores S = Q K^T
// in registers, weights P = 2^(S - running maximum), outputs O += P V. P never leaves the
// registers: the accumulators of the first product are laid out as the operand of the second. K and
// V come through shared memory, ahead of use by STAGES buffers.
#include "attn_abi.h"
#include "attn_mma.cuh"

constexpr bool BF16 = $(BF16);      // else f16
constexpr int D = $(HEAD_DIM);      // columns of Q and K
constexpr int DV = $(HEAD_DIM_V);   // columns of V and O
constexpr int DK = $(DK);           // D in whole k-steps of 16; zeros behind D
constexpr int DVP = $(DVP);         // DV in whole pairs of 8 columns; zeros behind DV
constexpr int BLOCK_M = $(BLOCK_M); // query rows of a block
constexpr int BLOCK_N = $(BLOCK_N); // keys of a tile
constexpr int WARPS = $(WARPS);
constexpr int STAGES = $(STAGES);            // buffers of K and V
constexpr int PAD = $(PAD);                  // elements behind each row in shared memory
constexpr bool SWIZZLE = $(SWIZZLE);         // or the pieces of a row permuted
constexpr bool Q_REGISTERS = $(Q_REGISTERS); // Q is read from shared memory once, or for each tile
constexpr bool ASYNC = $(COPY == "async");   // cp.async, or loads and stores
constexpr bool ALIGNED = $(ALIGNED);         // rows begin at multiples of 16 bytes
constexpr bool EXP2 = $(EXP == "exp2");      // 2^x with log2(e) in the scale, or expf
constexpr bool SHUFFLE =
    $(REDUCE == "shuffle");                   // a row's maximum through shuffles or shared memory
constexpr bool PAIRED = $(STORE == "paired"); // outputs two at a time, or one
constexpr bool LONGEST_FIRST = $(ORDER == "longest_first");
constexpr bool MASKED = $(MASKED); // there is a mask
constexpr bool LSE = $(LSE);

constexpr int THREADS = 32 * WARPS;
constexpr int ROW_TILES = BLOCK_M / (16 * WARPS);
constexpr int KEY_TILES = BLOCK_N / 8; // n-tiles of the scores
constexpr int V_TILES = DV / 8;        // n-tiles of the outputs

using q_tile = attn_tile<DK, PAD, SWIZZLE>;
using v_tile = attn_tile<DVP, PAD, SWIZZLE>;

constexpr int Q_BYTES = BLOCK_M * q_tile::PITCH;
constexpr int K_BYTES = BLOCK_N * q_tile::PITCH;
constexpr int V_BYTES = BLOCK_N * v_tile::PITCH;

extern __shared__ __align__(128) unsigned char shared[];

ATTN_DEVICE unsigned char *k_buffer(int n) {
    return shared + Q_BYTES + (n % STAGES) * K_BYTES;
}

ATTN_DEVICE unsigned char *v_buffer(int n) {
    return shared + Q_BYTES + STAGES * K_BYTES + (n % STAGES) * V_BYTES;
}

// The four lanes that hold a row combine their values here where REDUCE is "shared".
ATTN_DEVICE float *reduce_buffer() {
    return (float *)(shared + Q_BYTES + STAGES * (K_BYTES + V_BYTES));
}

ATTN_DEVICE uint4 load_piece(const attn_half *from, bool there) {
    uint4 piece = {0, 0, 0, 0};
    if (!there)
        return piece;
    if constexpr (ALIGNED)
        return *(const uint4 *)from;
    attn_u32 *words = (attn_u32 *)&piece;
#pragma unroll
    for (int i = 0; i < 4; i++)
        words[i] = from[2 * i] | (attn_u32)from[2 * i + 1] << 16;
    return piece;
}

// Copies rows first..first+ROWS-1 of a tensor; rows from `end` on and columns from COLUMNS on are
// zeros, whatever lies there.
template <int ROWS, int COLUMNS, typename TILE>
ATTN_DEVICE void copy_tile(unsigned char *tile, const attn_half *tensor, attn_i64 stride, int first,
                           int end) {
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * TILE::PIECES; i += THREADS) {
        const int row = i / TILE::PIECES, piece = i % TILE::PIECES;
        const bool there = first + row < end && 8 * piece < COLUMNS;
        const attn_half *from = there ? tensor + (first + row) * stride + 8 * piece : tensor;
        unsigned char *to = tile + TILE::at(row, piece);
        if constexpr (ASYNC)
            attn_copy_async(attn_shared_address(to), from, there);
        else
            *(uint4 *)to = load_piece(from, there);
    }
}

ATTN_DEVICE void commit() {
    if constexpr (ASYNC)
        attn_copy_commit();
}

template <int PENDING> ATTN_DEVICE void wait() {
    if constexpr (ASYNC)
        attn_copy_wait<PENDING>();
    __syncthreads();
}

// What a block works on.
struct job {
    const attn_half *k, *v;
    attn_i64 k_stride, v_stride;
    int seq_kv;
    int row;         // first query row of this lane's first half-tile; others are +8, +16 ...
    int left, right; // row i sees the keys i + left <= key <= i + right
    int first_row, last_row; // of the block: tiles that all of its rows see need no mask
    float scale;             // of the scores in the exponent, never 0 or negative
};

struct state {
    float o[ROW_TILES][V_TILES][4];
    float max[ROW_TILES][2], sum[ROW_TILES][2]; // of this lane's rows; sums are of this lane alone
    attn_u32 q[Q_REGISTERS ? ROW_TILES : 1][Q_REGISTERS ? DK / 16 : 1][4];
};

// The operand tile of Q: 16 rows, 16 columns from 16 x step on.
ATTN_DEVICE void load_q(attn_u32 q[4], int tile, int step) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = (warp * ROW_TILES + tile) * 16 + lane % 16;
    attn_ldmatrix4(q, attn_shared_address(shared) + q_tile::at(row, 2 * step + lane / 16));
}

ATTN_DEVICE void score(const state &st, float s[ROW_TILES][KEY_TILES][4], const unsigned char *k) {
    const int lane = threadIdx.x % 32;
    const attn_u32 base = attn_shared_address(k);
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                s[r][j][e] = 0.0f;
#pragma unroll
    for (int step = 0; step < DK / 16; step++) {
        attn_u32 q[ROW_TILES][4];
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++) {
            if constexpr (Q_REGISTERS) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    q[r][e] = st.q[r][step][e];
            } else {
                load_q(q[r], r, step);
            }
        }
#pragma unroll
        for (int j = 0; j < KEY_TILES; j += 2) {
            attn_u32 b[4]; // two n-tiles: keys 8j.., 8j+8..
            const int key = 8 * j + lane % 8 + lane / 16 * 8;
            attn_ldmatrix4(b, base + q_tile::at(key, 2 * step + lane / 8 % 2));
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++) {
                attn_mma<BF16>(s[r][j], q[r], b[0], b[1]);
                attn_mma<BF16>(s[r][j + 1], q[r], b[2], b[3]);
            }
        }
    }
}

ATTN_DEVICE void mask(const job &w, float s[ROW_TILES][KEY_TILES][4], int first_key) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = w.row + 16 * r + 8 * h, key = first_key + 2 * (lane % 4);
            int end = w.seq_kv - key;
            int begin = 0;
            if constexpr (MASKED) {
                end = min(end, row + w.right + 1 - key);
                begin = row + w.left - key;
            }
#pragma unroll
            for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int column = 8 * j + e;
                    if (column >= end || (MASKED && column < begin))
                        s[r][j][2 * h + e] = -attn_infinity();
                }
        }
}

// The largest of the four lanes that hold a row.
ATTN_DEVICE float row_max(float x, int row_in_block) {
    if constexpr (SHUFFLE) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
        return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
    }
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

// Scores of one row to weights: 2^(scale (s - top)), summed onto `sum`. Up to 4096 the exponent is
// one FMA from base = scale top; the rounding of base is common to the row and cancels. Beyond, it
// would come near 1: there the difference is taken first.
template <bool FAR>
ATTN_DEVICE float row_weights(float s[KEY_TILES][4], int h, float top, float base, float scale,
                              bool far, float sum) {
#pragma unroll
    for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; e++) {
            float x = s[j][e] * scale - base;
            if (FAR && far)
                x = (s[j][e] - top) * scale;
            s[j][e] = exponential(x);
            sum += s[j][e];
        }
    return sum;
}

// Scores to weights; O and the sums are brought to the new maximum.
ATTN_DEVICE void soften(state &st, float s[ROW_TILES][KEY_TILES][4], float scale) {
    const int row = threadIdx.x / 32 * 16 * ROW_TILES + threadIdx.x % 32 / 4;
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float before = st.max[r][h];
            float top = before;
#pragma unroll
            for (int j = 0; j < KEY_TILES; j++)
                top = fmaxf(top, fmaxf(s[r][j][2 * h], s[r][j][2 * h + 1]));
            top = row_max(top, row + 16 * r + 8 * h);
            // While a row has seen no key its maximum is -inf, and -inf - -inf would be NaN.
            const float base = top == -attn_infinity() ? 0.0f : __fmul_rn(top, scale);
            const bool far = fabsf(base) > 4096.0f;
            const float alpha =
                exponential(far ? (before - top) * scale : __fmul_rn(before, scale) - base);
            const float sum = st.sum[r][h] * alpha;
            if (__any_sync(0xffffffffu, far))
                st.sum[r][h] = row_weights<true>(s[r], h, top, base, scale, far, sum);
            else
                st.sum[r][h] = row_weights<false>(s[r], h, top, base, scale, far, sum);
            st.max[r][h] = top;
#pragma unroll
            for (int j = 0; j < V_TILES; j++) {
                st.o[r][j][2 * h] *= alpha;
                st.o[r][j][2 * h + 1] *= alpha;
            }
        }
}

ATTN_DEVICE void weigh(state &st, const float p[ROW_TILES][KEY_TILES][4], const unsigned char *v) {
    const int lane = threadIdx.x % 32;
    const attn_u32 base = attn_shared_address(v);
#pragma unroll
    for (int step = 0; step < BLOCK_N / 16; step++) {
        attn_u32 a[ROW_TILES][4];
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float *pair = &p[r][2 * step + e / 2][e % 2 * 2];
                a[r][e] = attn_pack2<BF16>(pair[0], pair[1]);
            }
#pragma unroll
        for (int j = 0; j < V_TILES; j += 2) {
            attn_u32 b[4]; // two n-tiles: columns 8j.., 8j+8..
            attn_ldmatrix4_transposed(b, base + v_tile::at(16 * step + lane % 16, j + lane / 16));
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++) {
                attn_mma<BF16>(st.o[r][j], a[r], b[0], b[1]);
                if (j + 1 < V_TILES)
                    attn_mma<BF16>(st.o[r][j + 1], a[r], b[2], b[3]);
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

ATTN_DEVICE void attend_scores(const job &w, state &st, float s[ROW_TILES][KEY_TILES][4], int n) {
    const int first = n * BLOCK_N, last = first + BLOCK_N - 1;
    bool all = last < w.seq_kv;
    if constexpr (MASKED)
        all = all && first >= w.last_row + w.left && last <= w.first_row + w.right;
    if (!all)
        mask(w, s, first);
    soften(st, s, w.scale);
}

// One buffer each: V comes while the scores are computed, the next K while they are softened.
ATTN_DEVICE void walk_single(const job &w, state &st, int begin, int end) {
    for (int n = begin; n < end; n++) {
        float s[ROW_TILES][KEY_TILES][4];
        wait<0>();
        load_v(w, n);
        commit();
        score(st, s, k_buffer(n));
        __syncthreads();
        if (n + 1 < end)
            load_k(w, n + 1);
        commit();
        attend_scores(w, st, s, n);
        wait<1>();
        weigh(st, s, v_buffer(n));
    }
}

// Several: tile n + STAGES - 1 is on its way while tile n is worked on. K and V are groups of their
// own, and there is a group for each even past the end, so that the counts stay the same.
ATTN_DEVICE void fetch(const job &w, int n, int end) {
    if (n < end)
        load_k(w, n);
    commit();
    if (n < end)
        load_v(w, n);
    commit();
}

ATTN_DEVICE void walk_staged(const job &w, state &st, int begin, int end) {
    for (int n = begin; n < end; n++) {
        float s[ROW_TILES][KEY_TILES][4];
        wait<2 * (STAGES - 1) - 1>();
        fetch(w, n + STAGES - 1, end);
        score(st, s, k_buffer(n));
        attend_scores(w, st, s, n);
        wait<2 * (STAGES - 1)>();
        weigh(st, s, v_buffer(n));
    }
}

// Q is in shared memory when this returns. A negative scale changes its sign there, so that the
// largest score is always the largest exponent.
ATTN_DEVICE void finish_q(state &st, bool negate) {
    if constexpr (STAGES > 1)
        wait<2 * (STAGES - 1)>();
    else
        wait<1>();
    if (negate) {
        for (int i = threadIdx.x; i < Q_BYTES / 4; i += THREADS)
            ((attn_u32 *)shared)[i] ^= 0x80008000u;
        __syncthreads();
    }
    if constexpr (Q_REGISTERS) {
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
            for (int step = 0; step < DK / 16; step++)
                load_q(st.q[r][step], r, step);
    }
}

ATTN_DEVICE void store_pair(attn_half *o, float low, float high) {
    const attn_u32 bits = attn_pack2<BF16>(low, high);
    if constexpr (PAIRED) {
        *(attn_u32 *)o = bits;
    } else {
        o[0] = (attn_half)bits;
        o[1] = (attn_half)(bits >> 16);
    }
}

ATTN_DEVICE void store(const attn_forward_args &a, const state &st, int row, attn_half *o,
                       float *lse, float scale) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int i = row + 16 * r + 8 * h;
            float sum = st.sum[r][h];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (i >= a.seq_q)
                continue;
            const float factor = sum == 0.0f ? 0.0f : 1.0f / sum; // 0: the row saw no key
#pragma unroll
            for (int j = 0; j < V_TILES; j++)
                store_pair(o + i * a.o_stride[2] + 8 * j + 2 * (lane % 4),
                           st.o[r][j][2 * h] * factor, st.o[r][j][2 * h + 1] * factor);
            if (LSE && lane % 4 == 0) {
                const float ln2 = 0.69314718f, top = st.max[r][h] * scale;
                const float value = EXP2 ? (top + attn_log2(sum)) * ln2 : top + logf(sum);
                lse[i] = sum == 0.0f ? -attn_infinity() : value;
            }
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, $(MIN_BLOCKS))
    $(KERNEL)(const __grid_constant__ attn_forward_args a) {
    const int heads = a.batch * a.heads_q, index = blockIdx.x;
    const int tile = LONGEST_FIRST ? a.tiles - 1 - index / heads : index % a.tiles;
    const int head = LONGEST_FIRST ? index % heads : index / a.tiles;
    const int b = head / a.heads_q, h = head % a.heads_q, kv = h / a.group;
    const int first_row = tile * BLOCK_M, last_row = min(first_row + BLOCK_M, a.seq_q) - 1;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const attn_half *q = (const attn_half *)a.q + b * a.q_stride[0] + h * a.q_stride[1];
    attn_half *o = (attn_half *)a.o + b * a.o_stride[0] + h * a.o_stride[1];

    // A scale of 0 would make NaN of a masked score's -inf; one this small makes all weights equal.
    const float asked = EXP2 ? a.scale_log2 : a.scale;
    job w;
    w.k = (const attn_half *)a.k + b * a.k_stride[0] + kv * a.k_stride[1];
    w.v = (const attn_half *)a.v + b * a.v_stride[0] + kv * a.v_stride[1];
    w.k_stride = a.k_stride[2];
    w.v_stride = a.v_stride[2];
    w.seq_kv = a.seq_kv;
    w.row = first_row + warp * 16 * ROW_TILES + lane / 4;
    w.left = a.mask_offset - a.mask_left;
    w.right = a.mask_offset + a.mask_right;
    w.first_row = first_row;
    w.last_row = last_row;
    w.scale = asked == 0.0f ? 1.17549435e-38f : fabsf(asked);

    int begin = 0, end = (a.seq_kv + BLOCK_N - 1) / BLOCK_N; // tiles of keys that any row sees
    if constexpr (MASKED) {
        begin = max(0, first_row + w.left) / BLOCK_N;
        end = (max(0, min(a.seq_kv, last_row + w.right + 1)) + BLOCK_N - 1) / BLOCK_N;
    }

    state st;
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            st.max[r][half] = -attn_infinity();
            st.sum[r][half] = 0.0f;
#pragma unroll
            for (int j = 0; j < V_TILES; j++)
                st.o[r][j][2 * half] = st.o[r][j][2 * half + 1] = 0.0f;
        }

    if (begin < end) {
        copy_tile<BLOCK_M, D, q_tile>(shared, q, a.q_stride[2], first_row, a.seq_q);
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
        if constexpr (STAGES == 1)
            walk_single(w, st, begin, end);
        else
            walk_staged(w, st, begin, end);
    }
    store(a, st, w.row, o, LSE ? a.lse + (attn_i64)head * a.seq_q : nullptr, w.scale);
}
