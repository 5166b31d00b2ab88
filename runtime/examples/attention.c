/* attention.c: the shortest way from tensors to attention.
 *
 *     cc attention.c $(pkg-config --cflags --libs attntune) -lm -o attention && ./attention
 *
 * Runs causal attention of 8 heads over 1024 tokens on the CPU, says which kernel was chosen and
 * why, and checks a property of the result: the first row sees only the first key, so it is the
 * first row of V. */
#include <attntune/attntune.h>
#include <stdio.h>
#include <stdlib.h>

static float *tensor(size_t elements) {
    float *data = aligned_alloc(64, (elements * sizeof *data + 63) / 64 * 64);
    for (size_t i = 0; data && i < elements; i++)
        data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return data;
}

static int attend(attn_context *ctx, const attn_problem *problem, float *const data[4]) {
    attn_forward_tensors tensors = ATTN_FORWARD_TENSORS_INIT;
    attn_choice choice = ATTN_CHOICE_INIT;
    tensors.q = data[0];
    tensors.k = data[1];
    tensors.v = data[2];
    tensors.o = data[3];
    attn_forward_strides(problem, &tensors);

    /* Choosing happens here, once a class of problems; it may compile a kernel. */
    size_t ws_bytes = attn_workspace_size(ctx, problem, ATTN_DEVICE_CPU);
    void *ws = ws_bytes ? aligned_alloc(256, (ws_bytes + 255) / 256 * 256) : NULL;
    int failed = ws_bytes && !ws;

    if (!failed)
        failed = attn_run(ctx, problem, ATTN_DEVICE_CPU, &tensors, ws, ws_bytes, NULL) != ATTN_OK;
    if (!failed)
        failed = attn_choice_get(ctx, problem, ATTN_DEVICE_CPU, &choice) != ATTN_OK;
    free(ws);
    if (failed) {
        fprintf(stderr, "attention: %s\n", attn_last_error(ctx));
        return 1;
    }
    printf("%s %s (%s)\n", choice.family, choice.configuration, attn_origin_name(choice.origin));
    for (int i = 0; i < problem->head_dim_v; i++)
        if (!(fabsf(data[3][i] - data[2][i]) <= 1e-5f))
            return 1;
    printf("row 0 of O is row 0 of V, as it must be\n");
    return 0;
}

int main(void) {
    attn_context *ctx = NULL;
    attn_problem problem;
    char error[256];
    if (attn_problem_parse("fwd:f32:b1:h8:s1024:d64:causal", &problem, error, sizeof error) !=
        ATTN_OK) {
        fprintf(stderr, "attention: %s\n", error);
        return 1;
    }
    if (attn_open(NULL, &ctx) != ATTN_OK) {
        fprintf(stderr, "attention: %s\n", attn_last_error(NULL));
        return 1;
    }
    size_t elements = (size_t)problem.heads_q * (size_t)problem.seq_q * (size_t)problem.head_dim;
    float *data[4];
    int result = 0;
    for (int i = 0; i < 4; i++)
        result |= (data[i] = tensor(elements)) == NULL;
    if (result == 0)
        result = attend(ctx, &problem, data);
    for (int i = 0; i < 4; i++)
        free(data[i]);
    attn_close(ctx);
    return result;
}
