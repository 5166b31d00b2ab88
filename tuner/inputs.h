/* inputs.h: the tensors that kernels are proved and timed with.
 *
 * Every buffer is poisoned with NaNs first: guard regions on both sides, padding and, for outputs,
 * the elements too. Poison of inputs and outputs differ, so that a fault tells where it came from.
 * The host keeps an image of each buffer that never changes after attn_inputs_make; the device has
 * a copy of it. Everything follows from the problem and the spec, bit for bit. */
#ifndef ATTN_INPUTS_H
#define ATTN_INPUTS_H

#include "backend.h"

typedef enum attn_input_kind {
    ATTN_INPUT_STD1,   /* logits of standard deviation 1 */
    ATTN_INPUT_STD8,   /* of standard deviation 8 */
    ATTN_INPUT_PEAKED, /* one key of each row weighs over 0.9 */
    /* The rest are for hostile problems only. */
    ATTN_INPUT_TIES,      /* all keys of a head are equal */
    ATTN_INPUT_HUGE,      /* logits rise from key to key by the scale, some by 0 */
    ATTN_INPUT_DENORMAL,  /* every other column of V is denormal */
    ATTN_INPUT_NAN_QUERY, /* one query row of each head is NaN */
    ATTN_INPUT_NAN_KEY    /* one key and value of the first (batch, kv head) are NaN */
} attn_input_kind;

typedef enum attn_strides {
    ATTN_STRIDES_LAYOUT, /* the problem's layout; rows as close as its alignment allows */
    ATTN_STRIDES_PADDED, /* gaps behind rows, heads and batches; bases no more aligned than due */
    ATTN_STRIDES_ROW_MAJOR, /* [row][batch][head] */
    ATTN_STRIDES_REPEATED   /* every head of K and every batch of V is the same memory */
} attn_strides;

typedef struct attn_input_spec {
    attn_input_kind kind;
    attn_strides strides;
    float scale; /* NaN: the default, as in attn_forward_tensors */
    uint64_t seed;
} attn_input_spec;

const char *attn_input_kind_name(attn_input_kind kind); /* "std 8" */
const char *attn_strides_name(attn_strides strides);    /* "padded strides" */

/* One buffer: host image and device copy, `size` bytes each, guards included. */
typedef struct attn_image {
    unsigned char *host;
    void *device;
    size_t size;
} attn_image;

/* Q holds K and V as well in layout qkv: their images are then empty. */
enum { ATTN_IMAGE_Q, ATTN_IMAGE_K, ATTN_IMAGE_V, ATTN_IMAGE_O, ATTN_IMAGE_LSE, ATTN_IMAGES };

typedef struct attn_inputs {
    attn_problem problem;
    attn_input_spec spec;
    attn_forward_tensors host;   /* pointers into the host images, strides and scale */
    attn_forward_tensors device; /* the same on the device; NULL before attn_inputs_upload */
    attn_image image[ATTN_IMAGES];
    const attn_backend *backend; /* owner of the device copies */
    attn_backend_device *owner;
} attn_inputs;

/* Makes the host side. ERR_NOMEM. *inputs needs no initialisation; free it in any case. */
attn_status attn_inputs_make(const attn_problem *problem, const attn_input_spec *spec,
                             attn_inputs *inputs, attn_error *err);

/* Allocates the device copies and fills them, poisoned outputs included; a second call only fills
 * them again. ERR_NOMEM, ERR_DEVICE. */
attn_status attn_inputs_upload(attn_inputs *inputs, const attn_backend *backend,
                               attn_backend_device *device, attn_error *err);

/* Fills only the outputs with poison again. */
attn_status attn_inputs_poison(attn_inputs *inputs, attn_error *err);

void attn_inputs_free(attn_inputs *inputs);

/* True if the n elements at `at` are all poison of an output, or any is poison of an input. */
bool attn_poison_is_output(attn_dtype dtype, const void *at, size_t n);
bool attn_poison_has_input(attn_dtype dtype, const void *at, size_t n);

/* Sets n elements to the poison of an output. */
void attn_poison_output(attn_dtype dtype, void *at, size_t n);

/* The keys that row sees: begin <= key < end, both 0 if none. */
void attn_visible_keys(const attn_forward_args *args, int64_t row, int64_t *begin, int64_t *end);

/* A small generator of reproducible numbers. */
typedef struct attn_random {
    uint64_t state;
} attn_random;

uint64_t attn_random_next(attn_random *random);
uint64_t attn_random_below(attn_random *random, uint64_t n); /* 0 <= result < n; n >= 1 */
float attn_random_normal(attn_random *random);               /* mean 0, std 1 */

/* No |attn_random_normal| is larger. */
#define ATTN_RANDOM_LARGEST 3.4641

#endif
