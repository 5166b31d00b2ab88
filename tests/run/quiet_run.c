/* quiet_run.c: a warm attn_run, for quiet.sh to look at.
 *
 *     quiet_run THREADS
 *
 * Runs problems of one class until all is warm, then 500 calls between two getppid() marks, which
 * the script finds in strace's log. Counts allocations between the marks itself: malloc and its
 * siblings are this file's, on top of glibc's. */
#include <attntune/attntune.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static atomic_long allocations;

void *malloc(size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc says nmemb
void *calloc(size_t n, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(n, size);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc says ptr
void *realloc(void *memory, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(memory, size);
}

enum { HEADS = 4, DIM = 64, SEQ_MAX = 96 };

static float q[HEADS * SEQ_MAX * DIM], k[HEADS * SEQ_MAX * DIM], v[HEADS * SEQ_MAX * DIM],
    o[HEADS * SEQ_MAX * DIM];

static attn_status call(attn_context *ctx, int seq, void *ws, size_t bytes) {
    attn_problem p = {.dtype = ATTN_F32,
                      .batch = 1,
                      .heads_q = HEADS,
                      .heads_kv = HEADS,
                      .seq_q = seq,
                      .seq_kv = seq,
                      .head_dim = DIM,
                      .head_dim_v = DIM,
                      .mask = ATTN_MASK_CAUSAL,
                      .alignment = ATTN_A1};
    attn_forward_tensors t = ATTN_FORWARD_TENSORS_INIT;
    t.q = q;
    t.k = k;
    t.v = v;
    t.o = o;
    attn_forward_strides(&p, &t);
    if (attn_workspace_size(ctx, &p, ATTN_DEVICE_CPU) > bytes)
        return ATTN_ERR_WORKSPACE;
    return attn_run(ctx, &p, ATTN_DEVICE_CPU, &t, ws, bytes, NULL);
}

int main(int argc, char **argv) {
    attn_context *ctx = NULL;
    attn_options options = ATTN_OPTIONS_INIT;
    size_t bytes = 16 << 20;
    void *ws = aligned_alloc(256, bytes);
    options.threads = argc > 1 ? atoi(argv[1]) : 1;
    if (!ws || attn_open(&options, &ctx) != ATTN_OK)
        return 1;
    for (int i = 0; i < 20; i++)
        if (call(ctx, SEQ_MAX, ws, bytes) != ATTN_OK) {
            fprintf(stderr, "quiet_run: %s\n", attn_last_error(ctx));
            return 1;
        }
    (void)usleep(100 * 1000); /* the pool's threads have come up and sleep */
    long before = atomic_load(&allocations);
    attn_status status = ATTN_OK;
    (void)getppid();
    for (int i = 0; i < 500 && status == ATTN_OK; i++)
        status = call(ctx, 1 + i % SEQ_MAX, ws, bytes);
    (void)getppid();
    long after = atomic_load(&allocations);
    attn_close(ctx);
    free(ws);
    printf("%ld allocations\n", after - before);
    return status != ATTN_OK || after != before;
}
