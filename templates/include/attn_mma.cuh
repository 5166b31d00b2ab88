// attn_mma.cuh: warp-level pieces of sm_80 and up: 16-bit tiles in shared memory, ldmatrix,
// mma.sync, cp.async. Plain CUDA C and inline PTX; includes nothing.
//
// A tile is rows of 16-byte pieces (8 elements). Where a piece lies within its row is the tile's
// layout: straight with some padding behind each row, or permuted by the row's number (XOR), either
// so that the 8 rows that ldmatrix reads at a time fall into different banks.
#ifndef ATTN_MMA_CUH
#define ATTN_MMA_CUH

typedef unsigned short attn_half; // bits of an f16 or bf16
typedef unsigned int attn_u32;

#define ATTN_DEVICE __device__ __forceinline__

template <bool BF16> ATTN_DEVICE attn_u32 attn_pack2(float low, float high) {
    attn_u32 bits;
    if constexpr (BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}

ATTN_DEVICE float attn_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

ATTN_DEVICE float attn_log2(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

ATTN_DEVICE float attn_infinity() {
    return __int_as_float(0x7f800000);
}

ATTN_DEVICE attn_u32 attn_shared_address(const void *p) {
    return (attn_u32)__cvta_generic_to_shared(p);
}

// p + offset in shared memory. The compiler does not see from what it is made, and so does not hold
// all addresses that are derived from it in registers from one tile to the next.
ATTN_DEVICE attn_u32 attn_address(const void *p, attn_u32 offset) {
    attn_u32 address = attn_shared_address(p) + offset;
    asm volatile("" : "+r"(address));
    return address;
}

// d += a b, or d = a b if first, for a 16x16 tile a and an 8-column tile b; the layouts are PTX's
// for m16n8k16.
template <bool BF16>
ATTN_DEVICE void attn_mma(float d[4], const attn_u32 a[4], attn_u32 b0, attn_u32 b1, bool first) {
    const float c[4] = {first ? 0.0f : d[0], first ? 0.0f : d[1], first ? 0.0f : d[2],
                        first ? 0.0f : d[3]};
    if constexpr (BF16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]),
                       "f"(c[1]), "f"(c[2]), "f"(c[3]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]),
                       "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

ATTN_DEVICE void attn_ldmatrix4(attn_u32 r[4], attn_u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

ATTN_DEVICE void attn_ldmatrix4_transposed(attn_u32 r[4], attn_u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// 16 bytes to shared memory in the background; zeros if !there (the source is then not read).
ATTN_DEVICE void attn_copy_async(attn_u32 to, const void *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}

ATTN_DEVICE void attn_copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all but the last N groups of this thread have arrived.
template <int N> ATTN_DEVICE void attn_copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// A tile in shared memory: COLUMNS elements a row and PAD behind them.
template <int COLUMNS, int PAD, bool SWIZZLE> struct attn_tile {
    static constexpr int PIECES = COLUMNS / 8;
    static constexpr int LANES = PIECES <= 2    ? 2
                                 : PIECES <= 4  ? 4
                                 : PIECES <= 8  ? 8
                                 : PIECES <= 16 ? 16
                                                : 32; // threads that copy a row
    static constexpr int PITCH = 2 * (COLUMNS + PAD); // bytes from row to row
    static_assert(COLUMNS % 8 == 0 && PAD % 8 == 0, "rows are whole 16-byte pieces");
    static_assert(!SWIZZLE || PIECES % 8 == 0, "the permutation is of 8 pieces");

    // Bytes from the tile's start to piece `piece` of row `row`.
    static ATTN_DEVICE attn_u32 at(int row, int piece) {
        return (attn_u32)(row * PITCH + 16 * (SWIZZLE ? piece ^ (row & 7) : piece));
    }

    // From the address of one of the first two pieces of a row, that of the piece `count` (even)
    // further on, without the row's number. The tile lies at a multiple of 128 bytes.
    static ATTN_DEVICE attn_u32 along(attn_u32 address, int count) {
        return (SWIZZLE ? address ^ 16 * (count % 8) : address + 16 * (count % 8)) +
               128 * (count / 8);
    }
};

template <bool ALIGNED> ATTN_DEVICE uint4 attn_load_piece(const attn_half *from, bool there) {
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

template <bool ASYNC, bool ALIGNED>
ATTN_DEVICE void attn_copy_piece(unsigned char *to, const attn_half *from, bool there) {
    if constexpr (ASYNC)
        attn_copy_async(attn_shared_address(to), from, there);
    else
        *(uint4 *)to = attn_load_piece<ALIGNED>(from, there);
}

// The block copies rows first..first+ROWS-1 of a tensor; rows from `end` on and columns from
// COLUMNS on are zeros, whatever lies there. Each thread has one piece of every STEP-th row, so
// that from one copy to the next it adds constants.
template <int THREADS, int ROWS, int COLUMNS, typename TILE, bool ASYNC, bool ALIGNED>
ATTN_DEVICE void attn_copy_tile(unsigned char *tile, const attn_half *tensor, long long stride,
                                int first, int end) {
    constexpr int STEP = THREADS / TILE::LANES;
    const int piece = threadIdx.x % TILE::LANES, row = threadIdx.x / TILE::LANES;
    const bool inside = 8 * piece < COLUMNS;
    if (TILE::LANES > TILE::PIECES && piece >= TILE::PIECES)
        return;
    const attn_half *from = tensor + (first + row) * stride + 8 * piece;
    if (first + ROWS <= end && ROWS % STEP == 0) {
#pragma unroll
        for (int i = 0; i < ROWS; i += STEP, from += STEP * stride)
            attn_copy_piece<ASYNC, ALIGNED>(tile + TILE::at(row + i, piece), inside ? from : tensor,
                                            inside);
        return;
    }
#pragma unroll 1
    for (int i = row; i < ROWS; i += STEP, from += STEP * stride) {
        const bool there = inside && first + i < end;
        attn_copy_piece<ASYNC, ALIGNED>(tile + TILE::at(i, piece), there ? from : tensor, there);
    }
}

#endif
