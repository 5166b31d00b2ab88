// planted.cu: plain attention, one thread a query row; WHAT says what is wrong with it.
#include "attn_abi.h"

constexpr int D = $(HEAD_DIM), DV = $(HEAD_DIM_V), UNROLL = $(UNROLL);

extern "C" __global__ void __launch_bounds__($(THREADS))
    $(KERNEL)(const __grid_constant__ attn_forward_args a) {
    const int tile = blockIdx.x % a.tiles, head = blockIdx.x / a.tiles;
    const int b = head / a.heads_q, h = head % a.heads_q, kv = h / a.group;
    const int i = tile * $(THREADS) + threadIdx.x;
    if (i >= a.seq_q)
        return;
    const float *q = (const float *)a.q + b * a.q_stride[0] + h * a.q_stride[1] + i * a.q_stride[2];
    const float *k = (const float *)a.k + b * a.k_stride[0] + kv * a.k_stride[1];
    const float *v = (const float *)a.v + b * a.v_stride[0] + kv * a.v_stride[1];
    float *o = (float *)a.o + b * a.o_stride[0] + h * a.o_stride[1] + i * a.o_stride[2];
    const int first = max(0, i + a.mask_offset - a.mask_left);
    const int end = min(a.seq_kv, i + a.mask_offset + a.mask_right + 1);
    float out[DV] = {}, top = -__int_as_float(0x7f800000), sum = 0.0f;
    for (int j = first; j < end; j += UNROLL) {
        float logit[UNROLL];
        for (int u = 0; u < UNROLL; u++) {
            logit[u] = 0.0f;
            for (int c = 0; c < D && j + u < end; c++)
                logit[u] += q[c] * k[(j + u) * a.k_stride[2] + c];
        }
        for (int u = 0; u < UNROLL && j + u < end; u++) {
            const float x = logit[u] * a.scale, above = fmaxf(top, x);
            const float alpha = top == above ? 1.0f : expf(top - above);
            const float weight = x == above ? 1.0f : expf(x - above);
            sum = sum * alpha + weight;
            for (int c = 0; c < DV; c++)
                out[c] = out[c] * alpha + weight * v[(j + u) * a.v_stride[2] + c];
            top = above;
        }
    }
    const bool seen = first < end;
    //@ if WHAT == "last_row" then
    if (i == a.seq_q - 1)
        sum *= 1.01f;
    //@ end
    for (int c = 0; c < DV; c++)
        o[c] = seen ? out[c] / sum : 0.0f;
    //@ if p.lse then
    float lse = seen ? top + logf(sum) : -__int_as_float(0x7f800000);
    //@   if WHAT == "lse" then
    lse += seen && i % 17 == 3 ? 0.001f : 0.0f;
    //@   end
    a.lse[(attn_i64)head * a.seq_q + i] = lse;
    //@ end
    //@ if WHAT == "wild" then
    *(volatile float *)((char *)o + (1ll << 46)) = 1.0f;
    //@ elseif WHAT == "misaligned" then
    o[0] += *(volatile float *)((char *)v + 1);
    //@ elseif WHAT == "trap" then
    asm volatile("trap;");
    //@ elseif WHAT == "endless" then
    while (*(volatile float *)o != 12345.678f)
        ;
    //@ elseif WHAT == "compile" then
    asm volatile("no.such.instruction;");
    //@ end
}
