/* cuda_maps.c: tensor maps for the bulk tensor copy engine, from the caller's own strides. */
#include <string.h>

#include "cuda_backend.h"

/* A tensor as the engine sees it: dimensions in elements, strides in bytes, the last one first. */
struct view {
    const void *data;
    const int64_t *stride;
    int64_t dim, rows, heads, batch;
};

static struct view view_of(char tensor, const attn_problem *p, const attn_forward_args *a) {
    switch (tensor) {
    case 'q':
        return (struct view){a->q, a->q_stride, p->head_dim, p->seq_q, p->heads_q, p->batch};
    case 'k':
        return (struct view){a->k, a->k_stride, p->head_dim, p->seq_kv, p->heads_kv, p->batch};
    case 'v':
        return (struct view){a->v, a->v_stride, p->head_dim_v, p->seq_kv, p->heads_kv, p->batch};
    default:
        return (struct view){a->o, a->o_stride, p->head_dim_v, p->seq_q, p->heads_q, p->batch};
    }
}

static CUtensorMapSwizzle swizzle_of(int32_t bytes) {
    return (CUtensorMapSwizzle)(bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                              : CU_TENSOR_MAP_SWIZZLE_NONE);
}

static CUtensorMapDataType type_of(attn_dtype dtype) {
    return (CUtensorMapDataType)(attn_dtype_size(dtype) == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                 : dtype == ATTN_F16         ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                             : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
}

/* The engine wants strides that are multiples of 16 bytes and not 0; the stride of a dimension of
 * size 1 is never used, so any good one will do. */
static uint64_t stride_bytes(int64_t elements, int64_t extent, size_t element) {
    return extent > 1 ? (uint64_t)elements * element : 16;
}

enum { CHUNK = 64 }; /* columns of one box row: 128 bytes of a 16-bit type */

static CUresult encode(const attn_cuda_api *api, const attn_map_wanted *wanted,
                       const attn_problem *p, const struct view *t, CUtensorMap *map) {
    size_t element = attn_dtype_size(p->dtype);
    uint64_t row = stride_bytes(t->stride[2], t->rows, element);
    uint64_t head = stride_bytes(t->stride[1], t->heads, element);
    uint64_t batch = stride_bytes(t->stride[0], t->batch, element);
    bool chunked = wanted->rank == 5;
    const uint64_t dims5[] = {CHUNK, (uint64_t)t->rows, (uint64_t)t->dim / CHUNK,
                              (uint64_t)t->heads, (uint64_t)t->batch};
    const uint64_t dims4[] = {(uint64_t)t->dim, (uint64_t)t->rows, (uint64_t)t->heads,
                              (uint64_t)t->batch};
    const uint64_t strides5[] = {row, CHUNK * element, head, batch};
    const uint64_t strides4[] = {row, head, batch};
    const uint32_t box5[] = {CHUNK, (uint32_t)wanted->rows, (uint32_t)(t->dim / CHUNK), 1, 1};
    const uint32_t box4[] = {CHUNK, (uint32_t)wanted->rows, 1, 1};
    static const uint32_t ones[] = {1, 1, 1, 1, 1};
    return api->tensor_map_tiled(
        map, type_of(p->dtype), (uint32_t)wanted->rank, (void *)(uintptr_t)t->data,
        chunked ? dims5 : dims4, chunked ? strides5 : strides4, chunked ? box5 : box4, ones,
        (CUtensorMapInterleave)0, swizzle_of(wanted->swizzle),
        (CUtensorMapL2promotion)CU_TENSOR_MAP_L2_PROMOTION_L2_128B, (CUtensorMapFloatOOBfill)0);
}

attn_status attn_cuda_maps(const attn_cuda_api *api, const attn_launch *launch,
                           const attn_problem *problem, attn_forward_args *args, attn_error *err) {
    _Static_assert(sizeof(CUtensorMap) == sizeof(attn_tensor_map), "a tensor map is 128 bytes");
    for (int32_t i = 0; i < launch->maps; i++) {
        CUtensorMap map;
        struct view t = view_of(launch->map[i].tensor, problem, args);
        if (!api->tensor_map_tiled)
            return attn_fail(err, ATTN_ERR_LAUNCH, "this driver has no tensor maps");
        ATTN_CUDA_TRY(api, "cuTensorMapEncodeTiled",
                      encode(api, &launch->map[i], problem, &t, &map), err);
        memcpy(&args->map[i], &map, sizeof map);
    }
    return ATTN_OK;
}

/* Strides of 0 over more than one element, and those that are no multiple of 16 bytes, cannot be
 * addressed; nor can an empty tensor. */
static bool is_addressable(const struct view *t, size_t element) {
    const int64_t extents[] = {t->batch, t->heads, t->rows};
    if ((uintptr_t)t->data % 16)
        return false;
    for (int i = 0; i < 3; i++) {
        if (extents[i] <= 0)
            return false;
        int64_t bytes = t->stride[i] * (int64_t)element;
        if (extents[i] > 1 && (bytes <= 0 || bytes % 16 || bytes >= (int64_t)1 << 40))
            return false;
    }
    return true;
}

bool attn_cuda_fits(const attn_kernel *kernel, const attn_call *call) {
    size_t element = attn_dtype_size(call->problem->dtype);
    for (int32_t i = 0; i < kernel->launch.maps; i++) {
        struct view t = view_of(kernel->launch.map[i].tensor, call->problem, &call->args);
        if (!is_addressable(&t, element))
            return false;
    }
    return true;
}
