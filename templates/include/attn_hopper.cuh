// attn_hopper.cuh: pieces of sm_90a: mbarriers, the bulk tensor copy engine, warpgroup matrix
// products. Plain CUDA C and inline PTX; includes nothing. Facts about encodings: PTX ISA, wgmma
// and tensormap.
#ifndef ATTN_HOPPER_CUH
#define ATTN_HOPPER_CUH

#include "attn_mma.cuh"

// A loop over registers, all of whose turns are unrolled.
#define ATTN_EACH(i, from, to) _Pragma("unroll") for (int i = (from); i < (to); i++)

//--- mbarriers; all addresses are of shared memory ------------------------------------------------

ATTN_DEVICE void attn_barrier_init(attn_u32 barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// Makes the inits above seen by the copy engine; a __syncthreads() follows.
ATTN_DEVICE void attn_barrier_init_done() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

ATTN_DEVICE void attn_barrier_expect(attn_u32 barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

ATTN_DEVICE void attn_barrier_arrive(attn_u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

ATTN_DEVICE void attn_barrier_arrive_by_warp(attn_u32 barrier) {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        attn_barrier_arrive(barrier);
}

ATTN_DEVICE void attn_barrier_wait(attn_u32 barrier, int parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra passed;\n"
                 "bra again;\n"
                 "passed:\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// A place in a ring of buffers, and the parity of its barriers.
template <int STAGES> struct attn_ring {
    int stage, parity;

    ATTN_DEVICE attn_ring before() const {
        return stage == 0 ? attn_ring{STAGES - 1, parity ^ 1} : attn_ring{stage - 1, parity};
    }

    ATTN_DEVICE void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

//--- named barriers of warpgroups -----------------------------------------------------------------

ATTN_DEVICE void attn_named_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

ATTN_DEVICE void attn_named_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

//--- the copy engine ------------------------------------------------------------------------------

ATTN_DEVICE void attn_tma_prefetch(const attn_tensor_map &map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// One box of a 4-D tensor (column, row, head, batch) to shared memory; elements outside are zeros.
ATTN_DEVICE void attn_tma_load(attn_u32 to, const attn_tensor_map &map, attn_u32 barrier,
                               int column, int row, int head, int batch) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch)
        : "memory");
}

// The same the other way; what is outside the tensor is not written.
ATTN_DEVICE void attn_tma_store(const attn_tensor_map &map, attn_u32 from, int column, int row,
                                int head, int batch) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
            &map),
        "r"(from), "r"(column), "r"(row), "r"(head), "r"(batch)
        : "memory");
}

ATTN_DEVICE void attn_tma_store_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until the stores of this thread have read their shared memory.
ATTN_DEVICE void attn_tma_store_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Ordinary writes to shared memory become visible to the copy engine and to wgmma.
ATTN_DEVICE void attn_fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

ATTN_DEVICE void attn_stmatrix4(attn_u32 address, const attn_u32 r[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

//--- wgmma ----------------------------------------------------------------------------------------

ATTN_DEVICE void attn_wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

ATTN_DEVICE void attn_wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> ATTN_DEVICE void attn_wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Keeps the compiler from moving a register across an issue or a wait.
template <int N> ATTN_DEVICE void attn_pin(float (&x)[N]) {
    ATTN_EACH (i, 0, N)
        asm volatile("" : "+f"(x[i])::"memory");
}

template <int N> ATTN_DEVICE void attn_pin(attn_u32 (&x)[N]) {
    ATTN_EACH (i, 0, N)
        asm volatile("" : "+r"(x[i])::"memory");
}

// Low half of a descriptor of a tile of [chunk of 64 columns][rows][128 bytes], 128-byte swizzle;
// the high half is ATTN_DESCRIPTOR_HIGH for every tile. `chunk_bytes`: from one chunk to the next.
#define ATTN_DESCRIPTOR_HIGH "0x40000040"

ATTN_DEVICE attn_u32 attn_descriptor(attn_u32 address, int chunk_bytes) {
    return (address & 0x3FFFF) >> 4 | (attn_u32)(chunk_bytes >> 4) << 16;
}

// A value that is the same in all lanes, so that ptxas keeps it, and what is computed from it, in
// the uniform registers that descriptors are taken from.
ATTN_DEVICE attn_u32 attn_uniform(attn_u32 x) {
    return __shfl_sync(0xffffffffu, x, 0);
}

ATTN_DEVICE float attn_reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <int N> ATTN_DEVICE void attn_registers_raise() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> ATTN_DEVICE void attn_registers_lower() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

#endif
