// wgmma_forward.cu: flash attention for Hopper: bulk copies, warpgroup matrix products, one
// producer and CONSUMERS computing warpgroups of 64 query rows each.
//
// A consumer keeps two products in flight: the scores of the next tile of keys, Q K(n), and the
// outputs of the last one, P(n+1) V(n+1); while they run on the tensor cores nothing else is to do,
// and while a tile is softened the other warpgroup's products run (ping-pong). Keys are taken from
// the last tile to the first, so that tiles cut by a causal mask come first. P never leaves the
// registers. The producer's one thread loads K and V ahead through STAGES buffers each.
//
// With ACROSS a job's outputs are stored while the next one's first scores are computed. With
// PACK_GQA a block's rows are the same few of several heads that share K and V, head behind head.
#include "attn_abi.h"
#include "attn_hopper.cuh"
#include "wgmma_jobs.cuh"
#include "wgmma_rows.cuh"
#include "wgmma_softmax.cuh"

constexpr bool BF16 = $(BF16);    // else f16
constexpr int D = $(HEAD_DIM);    // columns of Q and K
constexpr int DV = $(HEAD_DIM_V); // columns of V and O
constexpr int BLOCKS_PER_SM = $(BLOCKS_PER_SM);
constexpr int CONSUMERS = $(CONSUMERS);      // warpgroups that compute
constexpr int BLOCK_M = 64 * CONSUMERS;      // query rows of a block
constexpr bool PACK_GQA = $(PACK_GQA == 1);  // they are of several heads
constexpr int BLOCK_N = $(BLOCK_N);          // keys of a tile
constexpr int STAGES = $(STAGES);            // buffers of K, and of V
constexpr int Q_BUFFERS = $(Q_BUFFERS);      // buffers of Q
constexpr bool Q_REGISTERS = $(Q_REGISTERS); // Q as the register operand, else from shared memory
constexpr bool PINGPONG = $(PINGPONG);       // warpgroups take turns at issuing their products
constexpr int LAZY = $(LAZY);                // maxima are raised when weights reach 2^LAZY, or 1
constexpr bool INTEGER_MAX = $(INTEGER_MAX); // maxima are of the scores' bits, three at a time
constexpr bool HALF = $(HALF);     // a first tile of which only the first half is seen is halved
constexpr bool ACROSS = $(ACROSS); // a job is stored while the next one begins
constexpr bool ATOMIC = $(SCHEDULE == "atomic"); // tiles come from a counter, else by turns
constexpr bool LONGEST_FIRST = $(ORDER == "longest_first"); // last tile of every head first
constexpr int SECTION = $(SECTION); // MiB of K and V whose heads are worked on together
constexpr bool MASKED = $(MASKED);  // there is a mask
constexpr bool WINDOW = $(WINDOW);  // that may also end to the left
constexpr bool LSE = $(LSE);
constexpr bool OVERLAY = $(OVERLAY);  // O is staged where Q was
constexpr int O_CHUNKS = $(O_CHUNKS); // of 64 columns of O that are staged at once

constexpr int Q_ROWS = $(Q_ROWS), O_ROWS = $(O_ROWS); // of one head, that one copy moves
constexpr int HALF_N = $(HALF_N);                     // keys of half a tile
constexpr int STEPS = (D + 15) / 16;                  // matrix steps of 16 columns of Q and K
constexpr int CHUNKS = (D + 63) / 64, V_CHUNKS = (DV + 63) / 64; // of 64 columns, 128 bytes a row
constexpr int Q_CHUNK = BLOCK_M * 128, KV_CHUNK = BLOCK_N * 128; // bytes
constexpr int Q_BYTES = CHUNKS * Q_CHUNK, K_BYTES = CHUNKS * KV_CHUNK,
              V_BYTES = V_CHUNKS * KV_CHUNK;
constexpr int K_AT = Q_BUFFERS * Q_BYTES, V_AT = K_AT + STAGES * K_BYTES,
              O_AT = V_AT + STAGES * V_BYTES;
constexpr int O_BYTES = OVERLAY ? 0 : O_CHUNKS * Q_CHUNK;
constexpr int BARRIERS_AT = O_AT + O_BYTES;
constexpr int JOB_AT = BARRIERS_AT + 128;
static_assert(JOB_AT + 32 * Q_BUFFERS == $(SMEM), "the launch record says otherwise");

extern __shared__ __align__(1024) unsigned char shared[];

// Barriers of 8 bytes: full and empty of each buffer of Q, of K and of V. Behind them is what the
// consumers are to do with each Q.
ATTN_DEVICE attn_u32 base() {
    return attn_shared_address(shared);
}

enum { FULL = 0, EMPTY = 8 };

ATTN_DEVICE attn_u32 q_barrier(int which, int stage) {
    return base() + BARRIERS_AT + which + 16 * stage;
}

ATTN_DEVICE attn_u32 kv_barrier(int which, bool v, int stage) {
    return q_barrier(which, Q_BUFFERS + 2 * stage + v);
}

using tile_rows = attn_tile_rows<BLOCK_M, PACK_GQA>;
using ring = attn_ring<STAGES>;
using q_ring = attn_ring<Q_BUFFERS>;

ATTN_DEVICE attn_job *job_of_q(int stage) {
    return (attn_job *)(shared + JOB_AT) + stage;
}

// The job of a block's turn; its row is -1 after the last.
ATTN_DEVICE attn_job job_of(const attn_forward_args &a, int turn) {
    const tile_rows t(a);
    const int index = ATOMIC || !LONGEST_FIRST ? turn : attn_dealt<BLOCKS_PER_SM>(turn);
    attn_job w = attn_job_at<BLOCK_N, MASKED, WINDOW>(
        a, t, attn_place_of<LONGEST_FIRST, SECTION>(a, t, index, 2 * (D + DV)));
    if (index >= t.jobs(a))
        w.row = -1;
    return w;
}

//--- the producer ---------------------------------------------------------------------------------

ATTN_DEVICE void load(const attn_forward_args &a, const attn_job &w, bool v, int n, ring &r) {
    attn_barrier_wait(kv_barrier(EMPTY, v, r.stage), r.parity ^ 1);
    const attn_u32 barrier = kv_barrier(FULL, v, r.stage);
    const int bytes = v ? V_BYTES : K_BYTES;
    const attn_u32 to = base() + (v ? V_AT : K_AT) + r.stage * bytes;
    attn_barrier_expect(barrier, bytes);
    for (int c = 0; c < (v ? V_CHUNKS : CHUNKS); c++)
        attn_tma_load(to + c * KV_CHUNK, a.map[v ? 2 : 1], barrier, 64 * c, n * BLOCK_N, w.kv_head,
                      w.batch);
    r.advance();
}

ATTN_DEVICE void load_q(const attn_forward_args &a, const attn_job &w, const q_ring &q) {
    const attn_u32 full = q_barrier(FULL, q.stage);
    attn_barrier_wait(q_barrier(EMPTY, q.stage), q.parity ^ 1);
    *job_of_q(q.stage) = w;
    attn_barrier_expect(full, Q_BYTES);
    const tile_rows t(a);
    for (int c = 0; c < CHUNKS; c++)
        for (int i = 0; i < BLOCK_M; i += Q_ROWS)
            attn_tma_load(base() + q.stage * Q_BYTES + c * Q_CHUNK + i * 128, a.map[0], full,
                          64 * c, t.row(w, i), t.head(w, i), w.batch);
}

ATTN_DEVICE void produce(const attn_forward_args &a) {
    ring k = {0, 0}, v = {0, 0};
    q_ring q = {0, 0};
    int turn = blockIdx.x;
    attn_job w = job_of(a, turn), next;
    while (w.row >= 0) {
        load(a, w, false, w.end - 1, k);
        load_q(a, w, q);
        if constexpr (ATOMIC)
            turn = gridDim.x + atomicAdd((int *)a.workspace[0], 1);
        else
            turn += gridDim.x;
        for (int n = w.end - 1; n >= w.begin; n--) {
            if (n > w.begin)
                load(a, w, false, n - 1, k);
            load(a, w, true, n, v);
            if (n == w.end - 1)
                next = job_of(a, turn); // now that the buffers are full
        }
        q.advance();
        w = next;
    }
    attn_barrier_wait(q_barrier(EMPTY, q.stage), q.parity ^ 1);
    *job_of_q(q.stage) = w;
    attn_barrier_arrive(q_barrier(FULL, q.stage));
}

//--- matrix products of a consumer ----------------------------------------------------------------

//@ local type = BF16 and "bf16" or "f16"
//@ local outputs = floor_div(HEAD_DIM_V, 2)
//@ local function numbers(n) return list(n, function(i) return "%" .. i end, ", ") end
//@ local function operands(n, form, name)
//@   return list(n, function(i) return '"' .. form .. '"(' .. name .. "[" .. i .. "])" end, ", ")
//@ end
// S = Q K' of one step of 16 columns, for a tile of keys or its first half: the first step
// overwrites S, the next ones add to it.
//@ for _, keys in ipairs { BLOCK_N, HALF and HALF_N or nil } do
//@   local scores = floor_div(keys, 2)
//@   for add, name in ipairs { "first", "next" } do
//@     local form = name == "first" and "=f" or "+f"
ATTN_DEVICE void scores_$(name)(float (&s)[$(scores)], const attn_u32 (&q)[4], attn_u32 qd,
                                attn_u32 kd) {
    //@ if Q_REGISTERS then
    asm volatile("{\n"
                 ".reg .b64 b;\n"
                 "mov.b64 b, {%$(scores + 4), " ATTN_DESCRIPTOR_HIGH "};\n"
                 "wgmma.mma_async.sync.aligned.m64n$(keys)k16.f32.$(type).$(type) "
                 "{$(numbers(scores))}, {%$(scores), %$(scores + 1), %$(scores + 2), "
                 "%$(scores + 3)}, b, $(add - 1), 1, 1, 0;\n"
                 "}"
                 : $(operands(scores, form, "s"))
                 : "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]), "r"(kd));
    //@ else
    asm volatile("{\n"
                 ".reg .b64 a, b;\n"
                 "mov.b64 a, {%$(scores), " ATTN_DESCRIPTOR_HIGH "};\n"
                 "mov.b64 b, {%$(scores + 1), " ATTN_DESCRIPTOR_HIGH "};\n"
                 "wgmma.mma_async.sync.aligned.m64n$(keys)k16.f32.$(type).$(type) "
                 "{$(numbers(scores))}, a, b, $(add - 1), 1, 1, 0, 0;\n"
                 "}"
                 : $(operands(scores, form, "s"))
                 : "r"(qd), "r"(kd));
    //@ end
}
//@   end
//@ end

// O = P V of 16 keys, added to what O is if `add`.
ATTN_DEVICE void outputs_step(float (&o)[DV / 2], const attn_u32 *p, attn_u32 vd, int add) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 ".reg .b64 b;\n"
                 "setp.ne.b32 add, %$(outputs + 5), 0;\n"
                 "mov.b64 b, {%$(outputs + 4), " ATTN_DESCRIPTOR_HIGH "};\n"
                 "wgmma.mma_async.sync.aligned.m64n$(HEAD_DIM_V)k16.f32.$(type).$(type) "
                 "{$(numbers(outputs))}, {%$(outputs), %$(outputs + 1), %$(outputs + 2), "
                 "%$(outputs + 3)}, b, add, 1, 1, 1;\n"
                 "}"
                 : $(operands(outputs, "+f", "o"))
                 : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(vd), "r"(add));
}

struct state {
    float s[BLOCK_N / 2];    // scores, then weights
    attn_u32 p[BLOCK_N / 4]; // weights as 16-bit operand
    float o[DV / 2];
    attn_softmax x;
    attn_u32 q[Q_REGISTERS ? STEPS : 1][4];
    int some; // O holds a product already
};

// s: st.s, or its first half.
template <int N>
ATTN_DEVICE void issue_scores(const state &st, float (&s)[N], attn_u32 q_low, int stage) {
    const attn_u32 k_low = attn_descriptor(base() + K_AT + stage * K_BYTES, 16);
    attn_pin(s);
    attn_wgmma_fence();
    ATTN_EACH (step, 0, STEPS) {
        const attn_u32 qd = q_low + step / 4 * (Q_CHUNK / 16) + step % 4 * 2;
        const attn_u32 kd = k_low + step / 4 * (KV_CHUNK / 16) + step % 4 * 2;
        if (step == 0)
            scores_first(s, st.q[0], qd, kd);
        else
            scores_next(s, st.q[Q_REGISTERS ? step : 0], qd, kd);
    }
    attn_wgmma_commit();
}

ATTN_DEVICE void issue_outputs(state &st, int stage) {
    const attn_u32 v_low = attn_descriptor(base() + V_AT + stage * V_BYTES, KV_CHUNK);
    attn_pin(st.o);
    attn_pin(st.p);
    attn_wgmma_fence();
    ATTN_EACH (step, 0, BLOCK_N / 16)
        outputs_step(st.o, st.p + 4 * step, v_low + 128 * step, step > 0 || st.some);
    attn_wgmma_commit();
    st.some = 1;
}

//--- a consumer -----------------------------------------------------------------------------------

ATTN_DEVICE attn_u32 q_operand(int group, int stage) {
    return attn_descriptor(base() + stage * Q_BYTES + group * 64 * 128, 16);
}

ATTN_DEVICE void take_q(state &st, int group, int stage) {
    if constexpr (Q_REGISTERS) {
        const int lane = threadIdx.x % 32, row = 64 * group + threadIdx.x / 32 % 4 * 16 + lane % 16;
        ATTN_EACH (step, 0, STEPS) {
            const int piece = (step % 4 * 2 + lane / 16) ^ (row & 7);
            attn_ldmatrix4(st.q[step],
                           base() + stage * Q_BYTES + step / 4 * Q_CHUNK + row * 128 + piece * 16);
        }
        if constexpr (!OVERLAY)
            attn_barrier_arrive_by_warp(q_barrier(EMPTY, stage));
    }
}

// Leaves out the tiles behind the last that a row of this warpgroup sees, but not all of them;
// gives the first to be worked on.
ATTN_DEVICE int skip(const attn_job &w, const attn_rows &r, int group, ring &k) {
    const int last = max(r.first + r.count - 1 + r.right, w.begin * BLOCK_N) / BLOCK_N;
    int n = w.end - 1;
#pragma unroll 1
    for (; n > last; n--) {
        if constexpr (PINGPONG) {
            attn_named_sync(2 + group, 256);
            attn_named_arrive(2 + (group + 1) % CONSUMERS, 256);
        }
        attn_barrier_wait(kv_barrier(FULL, false, k.stage), k.parity);
        attn_barrier_arrive_by_warp(kv_barrier(EMPTY, false, k.stage));
        attn_barrier_wait(kv_barrier(FULL, true, k.stage), k.parity);
        attn_barrier_arrive_by_warp(kv_barrier(EMPTY, true, k.stage));
        k.advance();
    }
    return n;
}

ATTN_DEVICE void rescale(state &st, const float (&alpha)[2]) {
    ATTN_EACH (i, 0, DV / 2)
        st.o[i] *= alpha[i / 2 % 2];
}

// Weights of a tile's first KEYS keys; those of the others are 0.
template <int KEYS> ATTN_DEVICE void pack(state &st) {
    ATTN_EACH (i, 0, BLOCK_N / 4)
        st.p[i] = i < KEYS / 4 ? attn_pack2<BF16>(st.s[2 * i], st.s[2 * i + 1]) : 0;
}

// The tiles before the n-th, whose weights are there already: scores of each, and outputs of the
// one behind it.
ATTN_DEVICE void attend(const attn_job &w, state &st, const attn_rows &r, int n, int group,
                        attn_u32 q_low, ring &k) {
    float alpha[2];
    for (n--; n >= w.begin; n--) {
        const ring v = k.before(); // V follows K by one tile
        attn_barrier_wait(kv_barrier(FULL, false, k.stage), k.parity);
        if constexpr (PINGPONG)
            attn_named_sync(2 + group, 256);
        issue_scores(st, st.s, q_low, k.stage);
        attn_barrier_wait(kv_barrier(FULL, true, v.stage), v.parity);
        issue_outputs(st, v.stage);
        if constexpr (PINGPONG)
            attn_named_arrive(2 + (group + 1) % CONSUMERS, 256);
        attn_wgmma_wait<1>();
        attn_pin(st.s);
        attn_barrier_arrive_by_warp(kv_barrier(EMPTY, false, k.stage));
        k.advance();
        attn_rows_look<MASKED, WINDOW>(r, st.s, n * BLOCK_N);
        const bool raise = attn_softmax_above<INTEGER_MAX>(st.x, st.s);
        if (raise)
            attn_softmax_raise(st.x, st.s, r.scale, r.rise, alpha);
        attn_softmax_weights(st.x, st.s, r.scale);
        attn_wgmma_wait<0>();
        attn_pin(st.o);
        attn_pin(st.p);
        attn_barrier_arrive_by_warp(kv_barrier(EMPTY, true, v.stage));
        if (raise)
            rescale(st, alpha);
        pack<BLOCK_N>(st);
    }
}

// Writes the rows' LSE; gives what their outputs are to be multiplied by. row: the lane's first in
// the tile.
ATTN_DEVICE void finish_rows(const attn_forward_args &a, const attn_job &w, const state &st,
                             const attn_rows &r, int row, float (&factor)[2]) {
    const int lane = threadIdx.x % 32;
    ATTN_EACH (h, 0, 2) {
        float sum = st.x.sum[h];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        factor[h] = sum == 0.0f ? 0.0f : attn_reciprocal(sum); // 0: the row saw no key
        if (LSE && lane % 4 == 0 && r.row[h] < a.seq_q) {
            const attn_i64 head = (attn_i64)w.batch * a.heads_q + tile_rows(a).head(w, row + 8 * h);
            const float value = (st.x.top[h] * r.scale + attn_log2(sum)) * 0.69314718f;
            a.lse[head * a.seq_q + r.row[h]] = sum == 0.0f ? -attn_infinity() : value;
        }
    }
}

// O goes through shared memory: each warp stages its 16 rows, as many columns as there is room for,
// and has them stored in the background.
ATTN_DEVICE void store(const attn_forward_args &a, const attn_job &w, const state &st,
                       const float (&factor)[2], int group, int q) {
    const int lane = threadIdx.x % 32, slab = 64 * group + threadIdx.x / 32 % 4 * 16;
    const tile_rows t(a);
    if constexpr (OVERLAY)
        attn_named_sync(6 + group, 128); // the whole warpgroup has done with its rows of Q
    const attn_u32 o = base() + (OVERLAY ? q * Q_BYTES : O_AT) + slab * 128;
    const attn_u32 to = o + lane % 16 * 128;
    ATTN_EACH (part, 0, (V_CHUNKS + O_CHUNKS - 1) / O_CHUNKS) {
        const int first = part * O_CHUNKS, end = min(first + O_CHUNKS, V_CHUNKS);
        if (!OVERLAY && lane == 0)
            attn_tma_store_read(); // what was staged before
        __syncwarp();
        ATTN_EACH (j, 4 * first, min(4 * end, (DV + 15) / 16)) {
            attn_u32 x[4] = {0, 0, 0, 0};
            ATTN_EACH (e, 0, 4)
                if (8 * j + 2 * e < DV / 2)
                    x[e] = attn_pack2<BF16>(st.o[8 * j + 2 * e] * factor[e % 2],
                                            st.o[8 * j + 2 * e + 1] * factor[e % 2]);
            const int piece = (j % 4 * 2 + lane / 16) ^ (lane & 7);
            attn_stmatrix4(to + (j / 4 - first) * Q_CHUNK + piece * 16, x);
        }
        attn_fence_async();
        __syncwarp();
        if (lane == 0) {
            for (int c = first; c < end; c++)
                for (int i = 0; i < 16; i += O_ROWS)
                    attn_tma_store(a.map[3], o + (c - first) * Q_CHUNK + i * 128, 64 * c,
                                   t.row(w, slab + i), t.head(w, slab + i), w.batch);
            attn_tma_store_commit();
            if constexpr (OVERLAY)
                attn_tma_store_read();
        }
    }
    if constexpr (OVERLAY)
        attn_barrier_arrive_by_warp(q_barrier(EMPTY, q));
}

// A job whose outputs are complete, but for their factors, and yet to be stored.
struct finished {
    attn_job job;
    float factor[2];
    int stage; // of its Q
    bool any;
};

// Weights of a job's first tile, of which no row sees more than its first KEYS keys. What an
// earlier job left is stored while the scores are computed.
template <int KEYS>
ATTN_DEVICE void begin(const attn_forward_args &a, state &st, const attn_rows &r, int first_key,
                       int group, attn_u32 q_low, const finished &f, ring &k) {
    float(&s)[KEYS / 2] = reinterpret_cast<float(&)[KEYS / 2]>(st.s);
    float alpha[2]; // of no use yet
    issue_scores(st, s, q_low, k.stage);
    if (ACROSS && f.any)
        store(a, f.job, st, f.factor, group, f.stage);
    attn_wgmma_wait<0>();
    attn_pin(s);
    attn_barrier_arrive_by_warp(kv_barrier(EMPTY, false, k.stage));
    k.advance();
    attn_rows_look<MASKED, WINDOW>(r, s, first_key);
    attn_softmax_raise(st.x, s, r.scale, r.rise, alpha);
    attn_softmax_weights(st.x, s, r.scale);
    pack<KEYS>(st);
}

// Waits for a job's last outputs, if there are `any`, and gives V back. The wait is on no branch:
// ptxas would put another before it.
ATTN_DEVICE void settle(state &st, int v_stage, bool any) {
    attn_wgmma_wait<0>();
    attn_pin(st.o);
    if (any)
        attn_barrier_arrive_by_warp(kv_barrier(EMPTY, true, v_stage));
}

ATTN_DEVICE void consume(const attn_forward_args &a, int group) {
    const int lane = threadIdx.x % 32, row = 64 * group + threadIdx.x / 32 % 4 * 16 + lane / 4;
    ring k = {0, 0};
    q_ring q = {0, 0};
    attn_rows r(a, lane, LAZY);
    state st;
    finished f;
    f.any = false;
    if (PINGPONG && group == CONSUMERS - 1)
        attn_named_arrive(2, 256);
    for (;; q.advance()) {
        attn_barrier_wait(q_barrier(FULL, q.stage), q.parity);
        const attn_job w = *job_of_q(q.stage);
        if constexpr (ACROSS)
            settle(st, k.before().stage, f.any);
        if (w.row < 0)
            break;
        const attn_u32 q_low = q_operand(group, q.stage);
        if constexpr (MASKED || LSE)
            tile_rows(a).look(w, group, row, r);
        take_q(st, group, q.stage);
        const int n = MASKED ? skip(w, r, group, k) : w.end - 1;
        st.x.start();
        st.some = 0;
        attn_barrier_wait(kv_barrier(FULL, false, k.stage), k.parity);
        const int end = MASKED ? min(r.seq_kv, r.first + r.count + r.right) : r.seq_kv;
        if (HALF && end <= n * BLOCK_N + HALF_N)
            begin<HALF ? HALF_N : BLOCK_N>(a, st, r, n * BLOCK_N, group, q_low, f, k);
        else
            begin<BLOCK_N>(a, st, r, n * BLOCK_N, group, q_low, f, k);
        attend(w, st, r, n, group, q_low, k);
        if constexpr (!Q_REGISTERS && !OVERLAY)
            attn_barrier_arrive_by_warp(q_barrier(EMPTY, q.stage));
        const ring v = k.before();
        attn_barrier_wait(kv_barrier(FULL, true, v.stage), v.parity);
        issue_outputs(st, v.stage);
        f.job = w;
        f.stage = q.stage;
        f.any = true;
        finish_rows(a, w, st, r, row, f.factor);
        if constexpr (!ACROSS) {
            settle(st, v.stage, true);
            store(a, w, st, f.factor, group, q.stage);
        }
    }
    if (ACROSS && f.any)
        store(a, f.job, st, f.factor, group, f.stage);
    if (lane == 0)
        attn_tma_store_read();
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), BLOCKS_PER_SM)
    $(KERNEL)(const __grid_constant__ attn_forward_args a) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < ATTN_TENSOR_MAPS; i++)
            attn_tma_prefetch(a.map[i]);
        for (int i = 0; i < Q_BUFFERS; i++) {
            attn_barrier_init(q_barrier(FULL, i), 1);
            attn_barrier_init(q_barrier(EMPTY, i), 4 * CONSUMERS);
        }
        for (int i = 0; i < STAGES; i++)
            for (int v = 0; v < 2; v++) {
                attn_barrier_init(kv_barrier(FULL, v, i), 1);
                attn_barrier_init(kv_barrier(EMPTY, v, i), 4 * CONSUMERS);
            }
        attn_barrier_init_done();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        attn_registers_lower<$(PRODUCER_REGISTERS)>();
        if (threadIdx.x == 0)
            produce(a);
    } else {
        attn_registers_raise<$(REGISTERS)>();
        consume(a, (int)attn_uniform(threadIdx.x / 128) - 1);
    }
}
