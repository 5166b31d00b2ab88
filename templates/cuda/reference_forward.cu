// reference_forward.cu: plain attention for every problem: one warp a query row, one key at a time,
// in float32. The judge of other kernels on the device, and the last resort; never tuned.
#include "attn_abi.h"

constexpr int D = $(HEAD_DIM), DV = $(HEAD_DIM_V), ROWS = $(ROWS);
constexpr int Q_PARTS = (D + 31) / 32, O_PARTS = (DV + 31) / 32; // columns of a lane

//@ if p.dtype == "f32" then
typedef float element;

__device__ float widen(element x) {
    return x;
}

__device__ element narrow(float x) {
    return x;
}
//@ elseif p.dtype == "bf16" then
typedef unsigned short element;

__device__ float widen(element x) {
    return __uint_as_float((unsigned)x << 16);
}

__device__ element narrow(float x) {
    element bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
//@ else
typedef unsigned short element;

__device__ float widen(element x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

__device__ element narrow(float x) {
    element bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
//@ end

__device__ float warp_sum(float x) {
    for (int offset = 16; offset; offset /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, offset);
    return x;
}

extern "C" __global__ void __launch_bounds__(32 * ROWS)
    $(KERNEL)(const __grid_constant__ attn_forward_args a) {
    const int lane = threadIdx.x % 32, tile = blockIdx.x % a.tiles, head = blockIdx.x / a.tiles;
    const int b = head / a.heads_q, h = head % a.heads_q, kv = h / a.group;
    const int i = tile * ROWS + threadIdx.x / 32;
    if (i >= a.seq_q)
        return;
    const element *q =
        (const element *)a.q + b * a.q_stride[0] + h * a.q_stride[1] + i * a.q_stride[2];
    const element *k = (const element *)a.k + b * a.k_stride[0] + kv * a.k_stride[1];
    const element *v = (const element *)a.v + b * a.v_stride[0] + kv * a.v_stride[1];
    element *o = (element *)a.o + b * a.o_stride[0] + h * a.o_stride[1] + i * a.o_stride[2];
    const int first = max(0, i + a.mask_offset - a.mask_left);
    const int end = min(a.seq_kv, i + a.mask_offset + a.mask_right + 1);

    float query[Q_PARTS], out[O_PARTS] = {}, top = -__int_as_float(0x7f800000), sum = 0.0f;
    for (int c = 0; c < Q_PARTS; c++)
        query[c] = lane + 32 * c < D ? widen(q[lane + 32 * c]) : 0.0f;
    for (int j = first; j < end; j++) {
        float part = 0.0f;
        for (int c = 0; c < Q_PARTS; c++)
            if (lane + 32 * c < D)
                part += query[c] * widen(k[j * a.k_stride[2] + lane + 32 * c]);
        const float logit = warp_sum(part) * a.scale, above = fmaxf(top, logit);
        const float alpha = top == above ? 1.0f : expf(top - above);
        const float weight = logit == above ? 1.0f : expf(logit - above);
        sum = sum * alpha + weight;
        for (int c = 0; c < O_PARTS; c++)
            if (lane + 32 * c < DV)
                out[c] = out[c] * alpha + weight * widen(v[j * a.v_stride[2] + lane + 32 * c]);
        top = above;
    }
    for (int c = 0; c < O_PARTS; c++)
        if (lane + 32 * c < DV)
            o[lane + 32 * c] = narrow(first < end ? out[c] / sum : 0.0f);
    //@ if p.lse then
    if (lane == 0)
        a.lse[(attn_i64)head * a.seq_q + i] =
            first < end ? top + logf(sum) : -__int_as_float(0x7f800000);
    //@ end
}
