/* attn_abi.h: what a kernel is called with.
 *
 * One argument struct for one operation, shared by every family and backend: the host, NVRTC and
 * the CPU compiler all read this file, so it includes nothing and uses plain C. Offsets are
 * asserted on each side by the tail of this file.
 *
 *     CUDA   extern "C" __global__ void KERNEL(const __grid_constant__ attn_forward_args a);
 *     CPU    int KERNEL(const attn_forward_args *a, int task, int worker);
 *
 * A CPU kernel creates no thread, allocates nothing and returns 0, or non-zero if it could not
 * run; `worker` is below a->workers and selects that thread's slice of a per-worker workspace term.
 *
 * Tasks (CPU) and blocks (CUDA) of a step are numbered the same way. Grid rule `tiles`:
 *     task = (batch_index * heads + head) * a->tiles + tile
 * where heads is heads_q, or heads_kv for a packed step (the rows of a packed tile are
 * seq_q x group rows, row-major with the query position slowest), and tile counts blocks of
 * `rows` query rows. `kv_tiles`: the same over heads_kv and blocks of `rows` key rows. `split`:
 *     task = ((batch_index * heads + head) * a->tiles + tile) * a->splits + split
 * `persistent` blocks loop over the tasks of `tiles` themselves.
 */
#ifndef ATTN_ABI_H
#define ATTN_ABI_H

#define ATTN_ABI_VERSION 1

#if defined(__CUDACC_RTC__)
typedef int attn_i32;
typedef long long attn_i64;
#else
#include <stdint.h>
typedef int32_t attn_i32;
typedef int64_t attn_i64;
#endif

#if defined(__CUDACC_RTC__) /* has no offsetof, but the operator that EDG's is made of */
#define ATTN_OFFSETOF(type, member) __INTADDR__(&((type *)0)->member)
#else
#define ATTN_OFFSETOF(type, member) __builtin_offsetof(type, member)
#endif

#if defined(__cplusplus)
#define ATTN_ALIGNAS(n) alignas(n)
#define ATTN_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define ATTN_ALIGNAS(n) _Alignas(n)
#define ATTN_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

/* Sequence lengths are at most ATTN_SEQ_MAX, so sums of a row, an offset and a window side fit
 * 32 bits; a side that does not bound is exactly ATTN_UNBOUNDED. */
#define ATTN_SEQ_MAX (1 << 28)
#define ATTN_UNBOUNDED (1 << 29)

enum { ATTN_WORKSPACE_TERMS = 4, ATTN_TENSOR_MAPS = 4 };

/* A CUtensorMap by another name: 128 bytes, aligned as CUDA 13 aligns it. */
typedef struct attn_tensor_map {
    ATTN_ALIGNAS(128) unsigned char bytes[128];
} attn_tensor_map;

/* Strides are in elements, in the order batch, head, row; the last dimension is contiguous.
 *
 * Row i sees key j iff  i + mask_offset - mask_left <= j <= i + mask_offset + mask_right.
 * The host fills these for every mask kind (none: both sides unbounded; causal: right 0), and
 * mask_offset is 0 (top-left) or seq_kv - seq_q (bottom-right). A row that sees no key gets
 * O = 0 and LSE = -inf. */
typedef struct attn_forward_args {
    const void *q; /* [batch][heads_q][seq_q][head_dim] in the caller's strides */
    const void *k; /* [batch][heads_kv][seq_kv][head_dim] */
    const void *v; /* [batch][heads_kv][seq_kv][head_dim_v] */
    void *o;       /* [batch][heads_q][seq_q][head_dim_v] */
    float *lse;    /* [batch][heads_q][seq_q], contiguous; NULL without the lse feature */
    attn_i64 q_stride[3];
    attn_i64 k_stride[3];
    attn_i64 v_stride[3];
    attn_i64 o_stride[3];
    void *workspace[ATTN_WORKSPACE_TERMS]; /* start of each term of the launch record */
    attn_i32 batch;
    attn_i32 heads_q;
    attn_i32 heads_kv;
    attn_i32 group; /* heads_q / heads_kv */
    attn_i32 seq_q;
    attn_i32 seq_kv;
    attn_i32 head_dim;
    attn_i32 head_dim_v;
    attn_i32 mask_left;
    attn_i32 mask_right;
    attn_i32 mask_offset;
    attn_i32 tiles;                        /* tiles of one (batch, head) in the step being run */
    attn_i32 splits;                       /* key splits of the launch record, 1 without */
    attn_i32 workers;                      /* CPU: threads that may call; CUDA: 0 */
    float scale;                           /* finite, any sign */
    float scale_log2;                      /* scale * log2(e) */
    attn_tensor_map map[ATTN_TENSOR_MAPS]; /* filled only if the launch record asks */
} attn_forward_args;

ATTN_STATIC_ASSERT(sizeof(attn_tensor_map) == 128, "tensor maps are 128 bytes");
ATTN_STATIC_ASSERT(ATTN_OFFSETOF(attn_forward_args, q_stride) == 40, "ABI: q_stride");
ATTN_STATIC_ASSERT(ATTN_OFFSETOF(attn_forward_args, workspace) == 136, "ABI: workspace");
ATTN_STATIC_ASSERT(ATTN_OFFSETOF(attn_forward_args, batch) == 168, "ABI: batch");
ATTN_STATIC_ASSERT(ATTN_OFFSETOF(attn_forward_args, tiles) == 212, "ABI: tiles");
ATTN_STATIC_ASSERT(ATTN_OFFSETOF(attn_forward_args, scale) == 224, "ABI: scale");
ATTN_STATIC_ASSERT(ATTN_OFFSETOF(attn_forward_args, map) == 256, "ABI: map");
ATTN_STATIC_ASSERT(sizeof(attn_forward_args) == 768, "ABI: size");

#endif
