// simt_forward.cu: float32 attention without tensor cores, a query row at a time: from one thread a
// row, step by step, to warps that share tiles of K and V. The parameters are the steps of a
// write-up's ladder; the space file says which configuration is which version. Fast float32 is
// simt_tiled_forward.cu; this one shows what each step is worth.
#include "attn_abi.h"
#include "attn_simt.cuh"

constexpr int D = $(HEAD_DIM), DV = $(HEAD_DIM_V);
constexpr int WARPS = $(WARPS);
constexpr bool THREAD = $(DOT == "thread");           // a row is one thread's, or a warp's,
constexpr bool DOWN = $(DOT == "down");               // that adds its sums by shuffle-down, or XOR
constexpr bool ONLINE = $(SOFTMAX == "online");       // one pass over the keys, or two
constexpr bool Q_REGISTERS = $(Q == "registers");     // Q is read once, or for each key
constexpr bool OUT_REGISTERS = $(OUT == "registers"); // O is written once, or for each key
constexpr int VECTOR = $(VECTOR);                     // floats of a load
constexpr int KEYS = $(KEYS);                         // keys at a time
constexpr int TILE = $(TILE);                         // keys in shared memory together; 0: none are
constexpr bool ALIGNED = $(ALIGNED);                  // rows begin at multiples of 16 bytes
constexpr bool LSE = $(LSE);

constexpr int THREADS = 32 * WARPS;
constexpr int LANES = THREAD ? 1 : 32;         // threads of a row
constexpr int BLOCK_M = THREADS / LANES;       // query rows of a block
constexpr int STEP = LANES * VECTOR;           // columns that they read together
constexpr int Q_PARTS = (D + STEP - 1) / STEP; // times that they do so
constexpr int O_PARTS = (DV + STEP - 1) / STEP;
constexpr int PITCH = (D + 3) / 4 * 4, PITCH_V = (DV + 3) / 4 * 4; // of K and V in shared memory
constexpr int SHARED_BYTES = 4 * TILE * (PITCH + PITCH_V);

extern __shared__ __align__(16) float shared[];

struct alignas(4 * VECTOR) vector {
    float x[VECTOR];
};

// The first column of this thread in part p.
ATTN_DEVICE int column(int p) {
    return STEP * p + (THREAD ? 0 : threadIdx.x % 32 * VECTOR);
}

// This thread's columns of part p of a row; zeros behind COLUMNS.
template <int COLUMNS> ATTN_DEVICE vector load(const float *row, int p) {
    if (COLUMNS % STEP == 0 || column(p) < COLUMNS)
        return *(const vector *)(row + column(p));
    return vector{};
}

template <int COLUMNS> ATTN_DEVICE void store(float *row, int p, vector v) {
    if (COLUMNS % STEP == 0 || column(p) < COLUMNS)
        *(vector *)(row + column(p)) = v;
}

// The sum over the threads of a row, in all of them.
ATTN_DEVICE float row_sum(float x) {
    if constexpr (!THREAD)
#pragma unroll
        for (int offset = 16; offset; offset /= 2)
            x += DOWN ? __shfl_down_sync(0xffffffffu, x, offset)
                      : __shfl_xor_sync(0xffffffffu, x, offset);
    return DOWN ? __shfl_sync(0xffffffffu, x, 0) : x;
}

// One query row.
struct row {
    const float *q;
    float *o;
    int first, end; // of the keys that it sees
    float scale, top, sum;
    vector query[Q_REGISTERS ? Q_PARTS : 1], out[OUT_REGISTERS ? O_PARTS : 1];
};

// Keys of which K and V are at hand: key j is row j - first.
struct keys {
    const float *k, *v;
    attn_i64 k_stride, v_stride;
    int first, end;
};

// The logits of keys j..j+KEYS-1, -infinity for those that are not there.
ATTN_DEVICE void score(const row &r, const keys &at, int j, int end, float logit[KEYS]) {
    float sum[KEYS] = {};
#pragma unroll
    for (int p = 0; p < Q_PARTS; p++) {
        const vector query = Q_REGISTERS ? r.query[Q_REGISTERS ? p : 0] : load<D>(r.q, p);
#pragma unroll
        for (int u = 0; u < KEYS; u++) {
            // Behind the last key it is read again, and not used.
            const attn_i64 line = min(j + u, end - 1) - at.first;
            const vector key = load<D>(at.k + line * at.k_stride, p);
#pragma unroll
            for (int e = 0; e < VECTOR; e++)
                sum[u] = fmaf(query.x[e], key.x[e], sum[u]);
        }
    }
#pragma unroll
    for (int u = 0; u < KEYS; u++) {
        // Never as part of an FMA: both passes must find the same logit.
        const float whole = __fmul_rn(row_sum(sum[u]), r.scale);
        logit[u] = j + u < end ? whole : -attn_infinity();
    }
}

// O = O alpha + the sum of weight V.
ATTN_DEVICE void accumulate(row &r, const keys &at, int j, int end, float alpha,
                            const float weight[KEYS]) {
#pragma unroll
    for (int p = 0; p < O_PARTS; p++) {
        vector out = OUT_REGISTERS ? r.out[OUT_REGISTERS ? p : 0] : load<DV>(r.o, p);
#pragma unroll
        for (int e = 0; e < VECTOR; e++)
            out.x[e] *= alpha;
#pragma unroll
        for (int u = 0; u < KEYS; u++) {
            const attn_i64 line = min(j + u, end - 1) - at.first;
            const vector value = load<DV>(at.v + line * at.v_stride, p);
#pragma unroll
            for (int e = 0; e < VECTOR; e++)
                out.x[e] = fmaf(weight[u], value.x[e], out.x[e]);
        }
        if constexpr (OUT_REGISTERS)
            r.out[p] = out;
        else
            store<DV>(r.o, p, out);
    }
}

// The largest logit: the first of two passes.
ATTN_DEVICE void find_top(row &r, const keys &at) {
    const int begin = max(r.first, at.first), end = min(r.end, at.end);
    for (int j = begin; j < end; j += KEYS) {
        float logit[KEYS];
        score(r, at, j, end, logit);
#pragma unroll
        for (int u = 0; u < KEYS; u++)
            r.top = fmaxf(r.top, logit[u]);
    }
}

// Softmax and outputs; online, the largest logit so far stands for the largest of all.
ATTN_DEVICE void attend(row &r, const keys &at) {
    const int begin = max(r.first, at.first), end = min(r.end, at.end);
    for (int j = begin; j < end; j += KEYS) {
        float logit[KEYS], alpha = 1.0f;
        score(r, at, j, end, logit);
        if constexpr (ONLINE) {
            float top = r.top;
#pragma unroll
            for (int u = 0; u < KEYS; u++)
                top = fmaxf(top, logit[u]);
            alpha = r.top == top ? 1.0f : expf(r.top - top);
            r.top = top;
            r.sum *= alpha;
        }
#pragma unroll
        for (int u = 0; u < KEYS; u++) {
            logit[u] = expf(logit[u] - r.top);
            r.sum += logit[u];
        }
        accumulate(r, at, j, end, alpha, logit);
    }
}

// K and V by way of shared memory; `all` is what the rows of the block see together.
ATTN_DEVICE void attend_tiles(row &r, const keys &all) {
    for (int first = all.first; first < all.end; first += TILE) {
        const keys at = {shared, shared + TILE * PITCH,     PITCH, PITCH_V,
                         first,  min(first + TILE, all.end)};
        attn_copy_rows<THREADS, TILE, D, PITCH, PITCH, ALIGNED>(shared, all.k, all.k_stride, first,
                                                                at.end);
        attn_copy_rows<THREADS, TILE, DV, PITCH_V, PITCH_V, ALIGNED>(shared + TILE * PITCH, all.v,
                                                                     all.v_stride, first, at.end);
        attn_copy_commit();
        attn_copy_wait<0>();
        __syncthreads();
        attend(r, at);
        __syncthreads();
    }
}

ATTN_DEVICE void begin_row(row &r) {
    if constexpr (Q_REGISTERS)
#pragma unroll
        for (int p = 0; p < Q_PARTS; p++)
            r.query[p] = load<D>(r.q, p);
#pragma unroll
    for (int p = 0; p < O_PARTS; p++)
        if constexpr (OUT_REGISTERS)
            r.out[p] = vector{};
        else
            store<DV>(r.o, p, vector{});
    r.top = -attn_infinity();
    r.sum = 0.0f;
}

ATTN_DEVICE void end_row(row &r, float *lse) {
    const float factor = r.sum == 0.0f ? 0.0f : 1.0f / r.sum; // 0: the row saw no key
#pragma unroll
    for (int p = 0; p < O_PARTS; p++) {
        vector out = OUT_REGISTERS ? r.out[OUT_REGISTERS ? p : 0] : load<DV>(r.o, p);
#pragma unroll
        for (int e = 0; e < VECTOR; e++)
            out.x[e] *= factor;
        store<DV>(r.o, p, out);
    }
    if (LSE && (THREAD || threadIdx.x % 32 == 0))
        *lse = r.sum == 0.0f ? -attn_infinity() : r.top + logf(r.sum);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    $(KERNEL)(const __grid_constant__ attn_forward_args a) {
    const int tile = blockIdx.x % a.tiles, head = blockIdx.x / a.tiles;
    const int b = head / a.heads_q, h = head % a.heads_q, kv = h / a.group;
    const int first_row = tile * BLOCK_M, last_row = min(first_row + BLOCK_M, a.seq_q) - 1;
    const int index = first_row + threadIdx.x / LANES;
    const bool there = index < a.seq_q; // if not, it helps with the tiles
    const int i = there ? index : last_row;
    const int left = a.mask_offset - a.mask_left, right = a.mask_offset + a.mask_right + 1;

    row r;
    r.q = (const float *)a.q + b * a.q_stride[0] + h * a.q_stride[1] + i * a.q_stride[2];
    r.o = (float *)a.o + b * a.o_stride[0] + h * a.o_stride[1] + i * a.o_stride[2];
    r.first = max(0, i + left);
    r.end = there ? min(a.seq_kv, i + right) : 0;
    r.scale = a.scale;

    const float *k = (const float *)a.k + b * a.k_stride[0] + kv * a.k_stride[1];
    const float *v = (const float *)a.v + b * a.v_stride[0] + kv * a.v_stride[1];
    if (TILE == 0 && !there)
        return;
    if (there)
        begin_row(r);
    if constexpr (TILE != 0) {
        const int first = max(0, first_row + left), end = min(a.seq_kv, last_row + right);
        attend_tiles(r, {k, v, a.k_stride[2], a.v_stride[2], first, end});
    } else {
        const keys all = {k, v, a.k_stride[2], a.v_stride[2], 0, a.seq_kv};
        if constexpr (!ONLINE)
            find_top(r, all);
        attend(r, all);
    }
    if (there)
        end_row(r, LSE ? a.lse + (attn_i64)head * a.seq_q + i : nullptr);
}
