// tf32x3_forward.cu: float32 attention on tensor cores, each product as three.
//
// A float is big + small: big has the 11 bits of tf32, small is what is left of it. Of the product
// of two, big x big, big x small and small x big are computed by mma.sync and added in float32;
// small x small, at most 2^-20 of it, is left out.
//
// Each warp owns 16 x ROW_TILES query rows and walks over the keys tile by tile: scores S = Q K^T
// in registers, weights P = 2^(S - running maximum), outputs O += P V. Numbers are split after they
// are loaded, in registers, and shared memory holds them once. P never leaves the registers: the
// accumulators of the first product are the left operand of the second, its keys taken in the order
// 0 2 4 6 1 3 5 7.
//
// All three products of S are of tf32, since an error of S is one of an exponent. Those of O that
// have a small part are of bf16, 16 keys at a time: half the work, and 8 bits of what is 2^-11 of
// the whole. What was tried is in tests/peers/performance.md.
#include "attn_simt.cuh"

constexpr int D = $(HEAD_DIM);    // columns of Q and K
constexpr int DV = $(HEAD_DIM_V); // columns of V and O
constexpr int DK = $(DK);         // D in whole steps of 8
constexpr int DVP = $(DVP);       // DV in whole n-tiles of 8, and these in groups: see width()
constexpr int PITCH = DK + 4;     // floats from row to row in shared memory: rows an odd number of
constexpr int PITCH_V = DVP + 4;  // 16-byte pieces apart are read without bank conflicts
constexpr int WARPS = $(WARPS);
constexpr int ROW_TILES = $(ROW_TILES);           // of a warp, 16 rows each
constexpr int BLOCK_N = $(BLOCK_N);               // keys of a tile
constexpr int STAGES = $(STAGES);                 // buffers of K and V
constexpr int WIDTH = $(WIDTH);                   // n-tiles of O that are worked on at a time,
constexpr int PARTS = $(PARTS);                   // and parts of the keys of a tile
constexpr int PASSES = $(PASSES);                 // over the columns of Q and K
constexpr bool SINGLE = $(SINGLE);                // big x big alone: problems of tf32
constexpr bool IN_ROW = $(ORDER == "row");        // query tiles of a head: as they come, or
constexpr bool SECTIONS = $(ORDER == "sections"); // longest first: of some heads, or of all
constexpr bool ALIGNED = $(ALIGNED);              // rows begin at multiples of 16 bytes
constexpr bool MASKED = $(MASKED);                // there is a mask
constexpr bool LSE = $(LSE);

constexpr int THREADS = 32 * WARPS;
constexpr int WARP_ROWS = 16 * ROW_TILES;
constexpr int BLOCK_M = WARPS * WARP_ROWS; // query rows of a block
constexpr int STEPS = DK / 8;              // of the first product, so many of them unrolled
constexpr int UNROLL = $(UNROLL) < STEPS ? $(UNROLL) : STEPS;
constexpr int KEY_TILES = BLOCK_N / 8; // n-tiles of S; two are a step of the second product
constexpr int V_TILES = DVP / 8;       // n-tiles of O
constexpr int GROUPS = (V_TILES + WIDTH - 1) / WIDTH;
constexpr int PART_STEPS = KEY_TILES / 2 / PARTS;

// Operands of mma.sync in their layout, 4 numbers a lane of 16 rows x 8, 2 of 8 x 8 columns; and of
// two steps: big as two of tf32, whole numbers and small as one of pairs of bf16.
template <int N> struct operand { attn_u32 big[N], small[N]; };
template <int N> struct operand_16 { attn_u32 big[2][N], whole[N], small[N]; };

struct state {
    float o[ROW_TILES][V_TILES][4];
    float max[ROW_TILES][2];   // of rows 16 r + 8 h + lane / 4
    float sum[ROW_TILES][2];   // of this lane's keys alone
    float alpha[ROW_TILES][2]; // what O is still to be multiplied with
};

using scores = float[ROW_TILES][KEY_TILES][4];

#include "f32_tiles.cuh"
#include "mma_scores.cuh"

ATTN_DEVICE int lane() {
    return threadIdx.x % 32;
}

// Tensor cores leave out the low 13 bits of an operand of tf32. So big is the number itself, cut,
// at no cost where it is loaded as an operand is; or it is rounded half away from zero, in what
// would else be a move. Small has 13 bits or 12, of which 11 are taken.
template <bool ROUND> ATTN_DEVICE void split(attn_u32 bits, attn_u32 &big, attn_u32 &small) {
    big = ROUND ? bits + 0x1000 : bits;
    small = __float_as_uint(__uint_as_float(bits) - __uint_as_float(big & 0xffffe000));
}

template <int N> ATTN_DEVICE void cut(const attn_u32 bits[N], operand<N> &to) {
#pragma unroll
    for (int i = 0; i < N; i++)
        split<SINGLE>(bits[i], to.big[i], to.small[i]);
}

// Of scores from numbers that are cut, what is left out is on average 2.7e-7, all of one sign.
constexpr float CUT_SCALE = SINGLE ? 1.0f : 1.00000024f;

// Two numbers rounded to bf16.
ATTN_DEVICE attn_u32 pair(attn_u32 low, attn_u32 high) {
    attn_u32 x;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
        : "=r"(x)
        : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));
    return x;
}

// Two steps of 8 to one of 16. What tf32 has at k and k + 4 are neighbours as bf16: numbers i and
// i + 2 of a left operand, i and i + 1 of a right one.
template <bool LEFT, int N> ATTN_DEVICE void join(const attn_u32 bits[2][N], operand_16<N> &to) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        attn_u32 small[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            split<true>(bits[h][i], to.big[h][i], small[i]);
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            const int low = LEFT ? i : 2 * i, high = low + (LEFT ? 2 : 1);
            const int at = LEFT ? 2 * h + i : 2 * i + h;
            to.whole[at] = pair(bits[h][low], bits[h][high]);
            to.small[at] = pair(small[low], small[high]);
        }
    }
}

// d += a b, or d = a b if first, of tf32 numbers, or of pairs of bf16.
#define MULTIPLY(name, shape)                                                                      \
    ATTN_DEVICE void name(float d[4], const attn_u32 a[4], const attn_u32 b[2], bool first) {      \
        const float c[4] = {first ? 0.0f : d[0], first ? 0.0f : d[1], first ? 0.0f : d[2],         \
                            first ? 0.0f : d[3]};                                                  \
        asm volatile("mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "          \
                     "{%10,%11,%12,%13};"                                                          \
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),           \
                       "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));                                \
    }
MULTIPLY(multiply, "m16n8k8.row.col.f32.tf32.tf32.f32")
MULTIPLY(multiply_pairs, "m16n8k16.row.col.f32.bf16.bf16.f32")
#undef MULTIPLY

// Which of the three products: those with a small part, big x big.
enum { SMALL = 1, BIG = 2 };

// S += a b for 4 n-tiles from the j-th on, whose operands are pairs of b: small x big, big x big,
// big x small, so that what is added to one sum stands far apart.
template <int WHICH>
ATTN_DEVICE void multiply_split(scores &s, int j, const operand<4> a[ROW_TILES],
                                const operand<8> &b) {
#pragma unroll
    for (int part = 0; part < 3; part++)
#pragma unroll
        for (int t = 0; t < 4; t++)
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++)
                if (WHICH & (part == 1 ? BIG : SMALL))
                    multiply(s[r][j + t], part == 0 ? a[r].small : a[r].big,
                             (part == 2 ? b.small : b.big) + 2 * t, false);
}

// The same of operands of 16, for `count` n-tiles; d = a b if first.
ATTN_DEVICE void multiply_split(float d[ROW_TILES][WIDTH][4], const operand_16<4> a[ROW_TILES],
                                const operand_16<2 * WIDTH> &b, int count, bool first) {
#pragma unroll
    for (int part = 0; part < 4; part++)
#pragma unroll
        for (int t = 0; t < count; t++)
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++)
                if (part % 2)
                    multiply(d[r][t], a[r].big[part / 2], b.big[part / 2] + 2 * t,
                             SINGLE && first && part == 1);
                else if (!SINGLE)
                    multiply_pairs(d[r][t], part == 0 ? a[r].small : a[r].whole,
                                   (part == 0 ? b.whole : b.small) + 2 * t, first && part == 0);
}

// Where this lane reads Q, for ldmatrix: the first row tile, the first step.
ATTN_DEVICE attn_u32 q_address() {
    const int row = threadIdx.x / 32 * WARP_ROWS + lane() % 16;
    return attn_address(shared, 4 * (row * PITCH + lane() / 16 * 4));
}

ATTN_DEVICE void load_q(attn_u32 q[ROW_TILES][4], attn_u32 from, int step) {
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
        attn_ldmatrix4(q[r], from + 4 * (16 * r * PITCH + 8 * step));
}

// 32 keys: four n-tiles of K, columns 8 x step on.
ATTN_DEVICE void load_keys(attn_u32 k[8], attn_u32 from, int j, int step) {
    attn_ldmatrix4(k, from + 4 * (8 * j * PITCH + 8 * step));
    attn_ldmatrix4(k + 4, from + 4 * (8 * (j + 2) * PITCH + 8 * step));
}

// Adds some of the products to S. What is loaded is split at once, so that its registers are free
// for the next.
template <int WHICH> ATTN_DEVICE void add_products(scores &s, attn_u32 q_from, attn_u32 k_from) {
    attn_u32 loaded_q[ROW_TILES][4], loaded_k[8];
    load_q(loaded_q, q_from, 0);
    load_keys(loaded_k, k_from, 0, 0);
#pragma unroll $(UNROLL < STEPS and 1 or STEPS)
    for (int first = 0; first < STEPS; first += UNROLL)
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int step = first + u;
            const int next = step + 1 < STEPS ? step + 1 : 0;
            operand<4> q[ROW_TILES];
#pragma unroll
            for (int r = 0; r < ROW_TILES; r++)
                cut<4>(loaded_q[r], q[r]);
            load_q(loaded_q, q_from, next);
#pragma unroll
            for (int j = 0; j < KEY_TILES; j += 4) {
                const bool last = j + 4 == KEY_TILES;
                operand<8> keys;
                cut<8>(loaded_k, keys);
                load_keys(loaded_k, k_from, last ? 0 : j + 4, last ? next : step);
                multiply_split<WHICH>(s, j, q, keys);
            }
        }
}

// S = Q K^T. Tensor cores round a sum towards zero each time that they add to it. While it consists
// of small products alone, that is little; hence two passes, where there are many columns.
ATTN_DEVICE void score(const state &st, scores &s, int n) {
    const int key = lane() % 8 + lane() / 16 * 8;
    const attn_u32 k_from = attn_address(k_buffer(n), 4 * (key * PITCH + lane() / 8 % 2 * 4));
    const attn_u32 q_from = q_address();
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                s[r][j][e] = 0.0f;
    if constexpr (SINGLE) {
        add_products<BIG>(s, q_from, k_from);
    } else if constexpr (PASSES == 2) {
        add_products<SMALL>(s, q_from, k_from);
        add_products<BIG>(s, q_from, k_from);
    } else {
        add_products<SMALL | BIG>(s, q_from, k_from);
    }
}

// Scores, as exponents of 2, to weights 2^(s - maximum); brings the sums to the new maxima.
ATTN_DEVICE void soften(state &st, scores &s) {
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = st.max[r][h];
#pragma unroll
            for (int j = 0; j < KEY_TILES; j++)
                top = fmaxf(top, fmaxf(s[r][j][2 * h], s[r][j][2 * h + 1]));
            top = row_max(top);
            // While a row has seen no key its maximum is -inf, and -inf - -inf would be NaN.
            const float base = top == -attn_infinity() ? 0.0f : top;
            st.alpha[r][h] = attn_exp2(st.max[r][h] - base);
            st.max[r][h] = top;
            st.sum[r][h] *= st.alpha[r][h];
#pragma unroll
            for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; e++) {
                    s[r][j][e] = attn_exp2(s[r][j][e] - base);
                    st.sum[r][h] += s[r][j][e];
                }
        }
}

// The weights of 16 keys as left operand: rows lane / 4 and 8 more, of the even keys and the odd.
ATTN_DEVICE void take_weights(const float p[2][4], operand_16<4> &to) {
    const attn_u32 bits[2][4] = {{__float_as_uint(p[0][0]), __float_as_uint(p[0][2]),
                                  __float_as_uint(p[0][1]), __float_as_uint(p[0][3])},
                                 {__float_as_uint(p[1][0]), __float_as_uint(p[1][2]),
                                  __float_as_uint(p[1][1]), __float_as_uint(p[1][3])}};
    join<true, 4>(bits, to);
}

// n-tiles of O from the j-th on that are worked on together: WIDTH, or what is left (never 3).
ATTN_DEVICE constexpr int width(int j) {
    return V_TILES - j < WIDTH ? V_TILES - j : WIDTH;
}

// The right operands of the n-tiles from the j-th on, for the keys of n-tiles `keys` and the next
// of the scores: keys 2 (lane % 4) and the next. A lane reads adjacent columns, so the t-th n-tile
// has the columns width(j) n + t of the group.
ATTN_DEVICE void load_values(attn_u32 loaded[2][2 * WIDTH], const float *v, int j, int keys) {
    const float *from = v + (8 * keys + lane() % 4 * 2) * PITCH_V + 8 * j + width(j) * (lane() / 4);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float *row = from + (i / 2 * 8 + i % 2) * PITCH_V;
        attn_u32 *to = loaded[i / 2] + i % 2;
        if (width(j) == 4) {
            const uint4 x = *(const uint4 *)row;
            to[0] = x.x, to[2] = x.y;
            if constexpr (WIDTH == 4)
                to[4] = x.z, to[6] = x.w;
        } else if (width(j) == 2) {
            const uint2 x = *(const uint2 *)row;
            to[0] = x.x, to[2] = x.y;
        } else {
            to[0] = *(const attn_u32 *)row;
        }
    }
}

// The second product goes through all groups of n-tiles of O for one part of the keys after the
// other, so that only this part's weights are there split. Of its i-th step, the first n-tile of O,
// and the first n-tile of the scores whose keys it takes:
ATTN_DEVICE constexpr int group_at(int i) {
    return i / PART_STEPS % GROUPS * WIDTH;
}

ATTN_DEVICE constexpr int keys_at(int i) {
    return 2 * (i / (PART_STEPS * GROUPS) * PART_STEPS + i % PART_STEPS);
}

// Adds what came of one part of the keys to `count` n-tiles of O from the j-th on: by this rounding
// to nearest, errors of one sign cannot pile up over the keys.
ATTN_DEVICE void add_part(state &st, const float sum[ROW_TILES][WIDTH][4], int j, int count,
                          bool first) {
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int t = 0; t < count; t++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float &o = st.o[r][j + t][e];
                o = fmaf(o, first ? st.alpha[r][e / 2] : 1.0f, sum[r][t][e]);
            }
}

// O = alpha O + P V.
ATTN_DEVICE void weigh(state &st, const scores &p, const float *v) {
    constexpr int TURNS = GROUPS * PART_STEPS * PARTS;
    attn_u32 loaded[2][2 * WIDTH];
    float sum[ROW_TILES][WIDTH][4];
    load_values(loaded, v, 0, 0);
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        const int next = i + 1 < TURNS ? i + 1 : 0, count = width(group_at(i));
        operand_16<4> weights[ROW_TILES];
        operand_16<2 * WIDTH> values;
#pragma unroll
        for (int r = 0; r < ROW_TILES; r++)
            take_weights(p[r] + keys_at(i), weights[r]);
        join<false, 2 * WIDTH>(loaded, values);
        load_values(loaded, v, group_at(next), keys_at(next));
        multiply_split(sum, weights, values, count, i % PART_STEPS == 0);
        if (i % PART_STEPS == PART_STEPS - 1)
            add_part(st, sum, group_at(i), count, i < PART_STEPS * GROUPS);
    }
}

ATTN_DEVICE void attend(const job &w, state &st, scores &s, int n) {
    const float scale = w.scale * CUT_SCALE;
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                s[r][j][e] = __fmul_rn(s[r][j][e], scale); // what is subtracted is one of these
    if (!sees_all(w, n))
        mask(w, s, first_key(n));
    soften(st, s);
    weigh(st, s, v_buffer(n));
}

ATTN_DEVICE void store(const attn_forward_args &a, state &st, int first_row, float *o, float *lse) {
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = first_row + 16 * r + 8 * h + lane() / 4;
            const float sum = row_sum(st.sum[r][h]);
            if (row >= a.seq_q)
                continue;
            const float factor = sum == 0.0f ? 0.0f : 1.0f / sum; // 0: the row saw no key
#pragma unroll
            for (int j = 0; j < V_TILES; j += WIDTH) {
                float x[8]; // a lane has columns 2 n and 2 n + 1 of each n-tile: see load_values
#pragma unroll
                for (int i = 0; i < 2 * width(j); i++)
                    x[i] = st.o[r][j + i % width(j)][2 * h + i / width(j)] * factor;
                store_columns(o + row * a.o_stride[2], x, 8 * j + 2 * width(j) * (lane() % 4),
                              2 * width(j));
            }
            if (LSE && lane() % 4 == 0)
                lse[row] = sum == 0.0f ? -attn_infinity() : st.max[r][h] * 0.69314718f + logf(sum);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, $(MIN_BLOCKS))
    $(KERNEL)(const __grid_constant__ attn_forward_args a) {
    forward(a);
}
