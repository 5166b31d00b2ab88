/* decode.c: plans for a fixed shape, as a server uses them: one token of each sequence against a
 * growing cache of keys and values, eight query heads to a key head.
 *
 *     decode [TOKENS]        (default 64)
 *
 * The cache has room for more keys than are valid, which strides express: the kernel sees the
 * valid ones alone. A plan is made for each length; loaded kernels are shared, so only the first
 * one costs more than a look-up. */
#include <attntune/attntune.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS_Q = 16, HEADS_KV = 2, DIM = 64, ROOM = 4096 };

struct cache {
    float *k, *v; /* [HEADS_KV][ROOM][DIM] */
    float *q, *o; /* [HEADS_Q][1][DIM] */
    void *ws;
    size_t ws_bytes;
};

static float *zeros(size_t elements) {
    float *data = aligned_alloc(64, elements * sizeof *data);
    if (data)
        memset(data, 0, elements * sizeof *data);
    return data;
}

static void append_token(struct cache *c, int at) {
    for (int h = 0; h < HEADS_KV; h++)
        for (int i = 0; i < DIM; i++) {
            c->k[(h * ROOM + at) * DIM + i] = (float)rand() / (float)RAND_MAX - 0.5f;
            c->v[(h * ROOM + at) * DIM + i] = 1.0f; /* so that every output must be 1 */
        }
    for (int i = 0; i < HEADS_Q * DIM; i++)
        c->q[i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

static int grow_workspace(struct cache *c, size_t bytes) {
    if (bytes <= c->ws_bytes)
        return 1;
    free(c->ws);
    c->ws_bytes = (bytes + 255) / 256 * 256;
    c->ws = aligned_alloc(256, c->ws_bytes);
    return c->ws != NULL;
}

static attn_status step(attn_context *ctx, struct cache *c, int keys) {
    attn_problem problem;
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    attn_plan *plan;
    char text[128];
    (void)snprintf(text, sizeof text, "fwd:f32:b1:hq%d:hkv%d:sq1:sk%d:d%d", HEADS_Q, HEADS_KV, keys,
                   DIM);
    attn_status status = attn_problem_parse(text, &problem, NULL, 0);
    if (status == ATTN_OK)
        status = attn_plan_create(ctx, &problem, ATTN_DEVICE_CPU, ATTN_ESTIMATE, &plan);
    if (status != ATTN_OK)
        return status;
    t.q = c->q;
    t.k = c->k;
    t.v = c->v;
    t.o = c->o;
    attn_forward_strides(&problem, &t);
    t.k_stride[1] = t.v_stride[1] = (int64_t)ROOM * DIM; /* heads are ROOM rows apart */
    if (grow_workspace(c, attn_plan_workspace(plan)))
        status = attn_forward(plan, &t, c->ws, c->ws_bytes, NULL);
    else
        status = ATTN_ERR_NOMEM;
    attn_plan_destroy(plan);
    return status;
}

static int generate(attn_context *ctx, struct cache *c, int tokens) {
    for (int at = 0; at < tokens; at++) {
        append_token(c, at);
        attn_status status = step(ctx, c, at + 1);
        if (status != ATTN_OK) {
            fprintf(stderr, "decode: %s: %s\n", attn_status_name(status), attn_last_error(ctx));
            return 1;
        }
        for (int i = 0; i < HEADS_Q * DIM; i++)
            if (!(fabsf(c->o[i] - 1.0f) <= 1e-5f))
                return 1;
    }
    printf("%d tokens, every output is 1, as it must be\n", tokens);
    return 0;
}

int main(int argc, char **argv) {
    int tokens = argc > 1 ? atoi(argv[1]) : 64;
    struct cache c = {zeros((size_t)HEADS_KV * ROOM * DIM),
                      zeros((size_t)HEADS_KV * ROOM * DIM),
                      zeros((size_t)HEADS_Q * DIM),
                      zeros((size_t)HEADS_Q * DIM),
                      NULL,
                      0};
    attn_context *ctx = NULL;
    int result = 1;
    if (tokens < 1 || tokens > ROOM)
        fprintf(stderr, "decode: TOKENS is from 1 to %d\n", ROOM);
    else if (!c.k || !c.v || !c.q || !c.o || attn_open(NULL, &ctx) != ATTN_OK)
        fprintf(stderr, "decode: %s\n", attn_last_error(NULL));
    else
        result = generate(ctx, &c, tokens);
    attn_close(ctx);
    free(c.k);
    free(c.v);
    free(c.q);
    free(c.o);
    free(c.ws);
    return result;
}
