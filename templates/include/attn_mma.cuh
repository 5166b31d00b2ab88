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

// d += a b for a 16x16 tile a and an 8-column tile b; the layouts are PTX's for m16n8k16.
template <bool BF16>
ATTN_DEVICE void attn_mma(float d[4], const attn_u32 a[4], attn_u32 b0, attn_u32 b1) {
    if constexpr (BF16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
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
    static constexpr int PITCH = 2 * (COLUMNS + PAD); // bytes from row to row
    static_assert(COLUMNS % 8 == 0 && PAD % 8 == 0, "rows are whole 16-byte pieces");
    static_assert(!SWIZZLE || PIECES % 8 == 0, "the permutation is of 8 pieces");

    // Bytes from the tile's start to piece `piece` of row `row`.
    static ATTN_DEVICE attn_u32 at(int row, int piece) {
        return (attn_u32)(row * PITCH + 16 * (SWIZZLE ? piece ^ (row & 7) : piece));
    }
};

#endif
