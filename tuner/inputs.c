/* inputs.c: where the elements of a problem's tensors lie, and their images on host and device. */
#include "inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inputs_fill.h"

/* Bytes on both sides of every buffer: more than a row of any head_dim up to 1024. */
enum { GUARD = 4096 };

/* No machine has so much, and twenty times that (short rows that are padded) fits into 64 bits. */
static const double BYTES_MAX = 1e15;

static const char *const KINDS[] = {"std 1",       "std 8",      "peaked",    "ties",
                                    "huge logits", "denormal V", "NaN query", "NaN key"};
static const char *const STRIDES[] = {"", "padded strides", "row-major strides", "repeated heads"};

const char *attn_input_kind_name(attn_input_kind kind) {
    return KINDS[kind];
}

const char *attn_strides_name(attn_strides strides) {
    return STRIDES[strides];
}

static int64_t round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* How rows of `dim` elements follow each other; unit: elements that alignment asks for; gaps: how
 * many of them a padded row gets, another number for each tensor. */
static void set_strides(int64_t stride[3], attn_strides kind, attn_layout layout, int64_t batch,
                        int64_t heads, int64_t rows, int64_t dim, int64_t unit, int64_t gaps) {
    int64_t gap = kind == ATTN_STRIDES_PADDED ? unit * gaps : 0;
    int64_t pitch = round_up(dim, unit) + gap;
    if (kind == ATTN_STRIDES_ROW_MAJOR) {
        stride[1] = pitch;
        stride[0] = heads * pitch;
        stride[2] = batch * heads * pitch;
    } else if (layout == ATTN_BHSD) {
        stride[2] = pitch;
        stride[1] = rows * pitch + 3 * gap;
        stride[0] = heads * stride[1] + 5 * gap;
    } else {
        stride[1] = pitch;
        stride[2] = heads * pitch + 3 * gap;
        stride[0] = rows * stride[2] + 5 * gap;
    }
}

/* q, k and v side by side in rows of one buffer. */
static void set_together(const attn_problem *p, int64_t unit, attn_forward_tensors *t) {
    int64_t d = round_up(p->head_dim, unit), dv = round_up(p->head_dim_v, unit);
    int64_t row = (p->heads_q + p->heads_kv) * d + p->heads_kv * dv;
    int64_t *strides[] = {t->q_stride, t->k_stride, t->v_stride};
    int64_t head[] = {d, d, dv};
    for (int i = 0; i < 3; i++) {
        strides[i][0] = p->seq_q * row;
        strides[i][1] = head[i];
        strides[i][2] = row;
    }
}

/* Elements from a tensor's first to its last, both included. */
static int64_t extent(const int64_t stride[3], int64_t batch, int64_t heads, int64_t rows,
                      int64_t dim) {
    if (batch == 0 || heads == 0 || rows == 0)
        return 0;
    return (batch - 1) * stride[0] + (heads - 1) * stride[1] + (rows - 1) * stride[2] + dim;
}

static void poison(attn_dtype dtype, void *at, size_t n, bool output) {
    if (attn_dtype_size(dtype) == 4) {
        uint32_t *word = at;
        for (size_t i = 0; i < n; i++)
            word[i] = output ? ATTN_POISON_OUTPUT_F32 : ATTN_POISON_INPUT_F32;
    } else {
        uint16_t *word = at;
        for (size_t i = 0; i < n; i++)
            word[i] = output ? ATTN_POISON_OUTPUT_16 : ATTN_POISON_INPUT_16;
    }
}

void attn_poison_output(attn_dtype dtype, void *at, size_t n) {
    poison(dtype, at, n, true);
}

bool attn_poison_is_output(attn_dtype dtype, const void *at, size_t n) {
    enum { PART = 256 }; /* elements between two looks at what was found: these become vectors */
    const uint32_t *word = at;
    const uint16_t *half = at;
    uint32_t other = 0;
    for (size_t i = 0; i < n && !other; i += PART) {
        const size_t end = n - i < PART ? n : i + PART;
        if (attn_dtype_size(dtype) == 4)
            for (size_t k = i; k < end; k++)
                other |= word[k] ^ ATTN_POISON_OUTPUT_F32;
        else
            for (size_t k = i; k < end; k++)
                other |= half[k] ^ ATTN_POISON_OUTPUT_16;
    }
    return other == 0;
}

bool attn_poison_has_input(attn_dtype dtype, const void *at, size_t n) {
    const uint32_t *word = at;
    const uint16_t *half = at;
    for (size_t i = 0; i < n; i++)
        if (attn_dtype_size(dtype) == 4 ? word[i] == ATTN_POISON_INPUT_F32
                                        : half[i] == ATTN_POISON_INPUT_16)
            return true;
    return false;
}

/* Makes a poisoned image for `elements`, and gives the address of its first one. */
static attn_status make_image(const attn_inputs *inputs, attn_image *image, attn_dtype dtype,
                              int64_t elements, bool output, unsigned char **first,
                              attn_error *err) {
    size_t element = attn_dtype_size(dtype), shift = 0;
    if (inputs->spec.strides == ATTN_STRIDES_PADDED) /* no more aligned than promised */
        shift =
            inputs->problem.alignment == ATTN_A16 && dtype == inputs->problem.dtype ? 16 : element;
    size_t inner = (size_t)round_up(elements * (int64_t)element, 256);
    size_t size = 2 * (size_t)GUARD + 256 + inner;
    image->host = malloc(size);
    if (!image->host)
        return attn_fail_nomem(err);
    image->size = size;
    poison(dtype, image->host, size / element, output);
    *first = image->host + GUARD + shift;
    return ATTN_OK;
}

static attn_status place_inputs(attn_inputs *inputs, attn_error *err) {
    const attn_problem *p = &inputs->problem;
    attn_forward_tensors *t = &inputs->host;
    attn_strides kind = inputs->spec.strides;
    attn_image *image = inputs->image;
    int64_t element = (int64_t)attn_dtype_size(p->dtype);
    int64_t unit = p->alignment == ATTN_A16 ? 16 / element : 1;
    unsigned char *q = NULL, *k = NULL, *v = NULL;
    if (p->layout == ATTN_QKV && kind == ATTN_STRIDES_LAYOUT) {
        set_together(p, unit, t);
        ATTN_TRY(make_image(inputs, &image[ATTN_IMAGE_Q], p->dtype, p->batch * t->q_stride[0],
                            false, &q, err));
        k = q + p->heads_q * t->q_stride[1] * element;
        v = k + p->heads_kv * t->k_stride[1] * element;
    } else {
        set_strides(t->q_stride, kind, p->layout, p->batch, p->heads_q, p->seq_q, p->head_dim, unit,
                    1);
        set_strides(t->k_stride, kind, p->layout, p->batch, p->heads_kv, p->seq_kv, p->head_dim,
                    unit, 2);
        set_strides(t->v_stride, kind, p->layout, p->batch, p->heads_kv, p->seq_kv, p->head_dim_v,
                    unit, 3);
        if (kind == ATTN_STRIDES_REPEATED)
            t->k_stride[1] = t->v_stride[0] = 0;
        ATTN_TRY(make_image(inputs, &image[ATTN_IMAGE_Q], p->dtype,
                            extent(t->q_stride, p->batch, p->heads_q, p->seq_q, p->head_dim), false,
                            &q, err));
        ATTN_TRY(make_image(inputs, &image[ATTN_IMAGE_K], p->dtype,
                            extent(t->k_stride, p->batch, p->heads_kv, p->seq_kv, p->head_dim),
                            false, &k, err));
        ATTN_TRY(make_image(inputs, &image[ATTN_IMAGE_V], p->dtype,
                            extent(t->v_stride, p->batch, p->heads_kv, p->seq_kv, p->head_dim_v),
                            false, &v, err));
    }
    t->q = q;
    t->k = k;
    t->v = v;
    return ATTN_OK;
}

static attn_status place_outputs(attn_inputs *inputs, attn_error *err) {
    const attn_problem *p = &inputs->problem;
    attn_forward_tensors *t = &inputs->host;
    int64_t unit = p->alignment == ATTN_A16 ? 16 / (int64_t)attn_dtype_size(p->dtype) : 1;
    unsigned char *o = NULL, *lse = NULL;
    set_strides(t->o_stride, inputs->spec.strides, p->layout, p->batch, p->heads_q, p->seq_q,
                p->head_dim_v, unit, 4);
    ATTN_TRY(make_image(inputs, &inputs->image[ATTN_IMAGE_O], p->dtype,
                        extent(t->o_stride, p->batch, p->heads_q, p->seq_q, p->head_dim_v), true,
                        &o, err));
    t->o = o;
    if (p->features & ATTN_FEATURE_LSE) {
        ATTN_TRY(make_image(inputs, &inputs->image[ATTN_IMAGE_LSE], ATTN_F32,
                            (int64_t)p->batch * p->heads_q * p->seq_q, true, &lse, err));
        t->lse = (float *)(void *)lse;
    }
    return ATTN_OK;
}

attn_status attn_inputs_make(const attn_problem *problem, const attn_input_spec *spec,
                             attn_inputs *inputs, attn_error *err) {
    memset(inputs, 0, sizeof *inputs);
    inputs->problem = *problem;
    inputs->spec = *spec;
    inputs->host = (attn_forward_tensors)ATTN_FORWARD_TENSORS_INIT;
    inputs->host.scale = spec->scale;
    if (attn_problem_bytes(problem) > BYTES_MAX)
        return attn_fail_nomem(err);
    ATTN_TRY(place_inputs(inputs, err));
    ATTN_TRY(place_outputs(inputs, err));
    return attn_inputs_fill(inputs, err);
}

/* The device's address of what `at` is on the host. */
static void *moved(const attn_inputs *inputs, const void *at) {
    uintptr_t address = (uintptr_t)at;
    for (int i = 0; i < ATTN_IMAGES; i++) {
        const attn_image *image = &inputs->image[i];
        uintptr_t host = (uintptr_t)image->host;
        if (image->size && address >= host && address < host + image->size)
            return (char *)image->device + (address - host);
    }
    return NULL;
}

attn_status attn_inputs_upload(attn_inputs *inputs, const attn_backend *backend,
                               attn_backend_device *device, attn_error *err) {
    inputs->backend = backend;
    inputs->owner = device;
    for (int i = 0; i < ATTN_IMAGES; i++) {
        attn_image *image = &inputs->image[i];
        if (!image->size)
            continue;
        if (!image->device)
            ATTN_TRY(backend->alloc(device, image->size, &image->device, err));
        ATTN_TRY(backend->copy(device, image->device, image->host, image->size, ATTN_COPY_TO_DEVICE,
                               err));
    }
    inputs->device = inputs->host;
    inputs->device.q = moved(inputs, inputs->host.q);
    inputs->device.k = moved(inputs, inputs->host.k);
    inputs->device.v = moved(inputs, inputs->host.v);
    inputs->device.o = moved(inputs, inputs->host.o);
    inputs->device.lse = moved(inputs, inputs->host.lse);
    return ATTN_OK;
}

attn_status attn_inputs_poison(attn_inputs *inputs, attn_error *err) {
    for (int i = ATTN_IMAGE_O; i <= ATTN_IMAGE_LSE; i++) {
        attn_image *image = &inputs->image[i];
        if (image->size)
            ATTN_TRY(inputs->backend->copy(inputs->owner, image->device, image->host, image->size,
                                           ATTN_COPY_TO_DEVICE, err));
    }
    return ATTN_OK;
}

void attn_inputs_free(attn_inputs *inputs) {
    for (int i = 0; i < ATTN_IMAGES; i++) {
        if (inputs->image[i].device)
            inputs->backend->free(inputs->owner, inputs->image[i].device);
        free(inputs->image[i].host);
    }
    memset(inputs, 0, sizeof *inputs);
}
