/* test_gen_bounds.c: memory that runs out at every point, and generators in several threads. */
#include <pthread.h>

#include "check.h"
#include "gen_internal.h"

static char path[1024];

/* Opens the toy space, lists it and renders every STEP-th configuration; the hash of all. */
static attn_status render_some(attn_gen *gen, size_t step, attn_hash *hash, attn_error *err) {
    attn_problem problem = {.batch = 1,
                            .heads_q = 1,
                            .heads_kv = 1,
                            .seq_q = 64,
                            .seq_kv = 64,
                            .head_dim = 64,
                            .head_dim_v = 64,
                            .mask = ATTN_MASK_CAUSAL};
    attn_device_info device;
    attn_space *space;
    attn_config_list list = {NULL, 0, 0, NULL, 0, false};
    attn_variant variant;
    *hash = attn_hash_begin();
    ATTN_TRY(attn_gen_profile(gen, "cpu:avx2", &device, err));
    ATTN_TRY(attn_space_open(gen, "toy_forward", &problem, &device, &space, err));
    attn_status st = attn_space_list(space, false, SIZE_MAX, &list, err);
    for (size_t i = 0; st == ATTN_OK && i < list.count; i += step) {
        st = attn_space_render(space, &list.config[i], &variant, err);
        if (st == ATTN_OK) {
            attn_hash_u64_field(hash, variant.hash.hi);
            attn_variant_free(&variant);
        }
    }
    attn_config_list_free(&list);
    attn_space_close(space);
    return st;
}

/* With a little more memory each time, the same work fails at ever later points, cleanly. */
static void memory(void) {
    attn_error err = ATTN_ERROR_INIT;
    attn_hash right, hash;
    attn_gen *gen = NULL;
    size_t failed = 0, passed = 0;
    CHECK_OK(attn_gen_open(path, &gen, &err), err.line);
    CHECK_OK(render_some(gen, 7, &right, &err), err.line);
    attn_gen_close(gen);
    for (size_t more = 0; more < 60; more++) {
        CHECK_OK(attn_gen_open(path, &gen, &err), err.line);
        attn_gen_bounds(gen, (gen->lua.memory + more * 8192) / 2, UINT64_MAX / 2);
        attn_status st = render_some(gen, 7, &hash, &err);
        if (st == ATTN_OK) {
            passed++;
            CHECK(attn_hash_equal(hash, right));
        } else {
            failed++;
            CHECK_STATUS(st, ATTN_ERR_TEMPLATE, err.line);
            CHECK_HAS(err.line, "MiB of memory");
        }
        attn_gen_bounds(gen, (size_t)64 << 20, 200000000);
        CHECK_OK(render_some(gen, 7, &hash, &err), err.line);
        CHECK(attn_hash_equal(hash, right));
        attn_gen_close(gen);
    }
    CHECK(failed > 3 && passed > 3);
}

/* The same for work: no bound leaves the generator unusable. */
static void work(void) {
    attn_error err = ATTN_ERROR_INIT;
    attn_hash right, hash;
    attn_gen *gen = NULL;
    size_t failed = 0;
    CHECK_OK(attn_gen_open(path, &gen, &err), err.line);
    CHECK_OK(render_some(gen, 7, &right, &err), err.line);
    for (uint64_t steps = 0; steps < 60000; steps += 1000) {
        attn_gen_bounds(gen, (size_t)64 << 20, steps);
        attn_status st = render_some(gen, 7, &hash, &err);
        failed += st != ATTN_OK;
        if (st != ATTN_OK)
            CHECK_HAS(err.line, "million steps");
        attn_gen_bounds(gen, (size_t)64 << 20, 200000000);
        CHECK_OK(render_some(gen, 7, &hash, &err), err.line);
        CHECK(attn_hash_equal(hash, right));
    }
    CHECK(failed > 3);
    attn_gen_close(gen);
}

static void *one_thread(void *result) {
    attn_error err = ATTN_ERROR_INIT;
    attn_gen *gen = NULL;
    if (attn_gen_open(path, &gen, &err) == ATTN_OK)
        (void)render_some(gen, 1, result, &err);
    attn_gen_close(gen);
    return NULL;
}

static void threads(void) {
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    attn_hash hash[THREADS] = {{0, 0}};
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ_INT(pthread_create(&thread[i], NULL, one_thread, &hash[i]), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ_INT(pthread_join(thread[i], NULL), 0);
    CHECK(hash[0].lo != 0);
    for (int i = 1; i < THREADS; i++)
        CHECK(attn_hash_equal(hash[i], hash[0]));
}

int main(void) {
    const char *source = getenv("ATTN_SOURCE");
    if (!source)
        check_skip("ATTN_SOURCE is not set");
    (void)snprintf(path, sizeof path, "%s/tests/toy", source);
    memory();
    work();
    threads();
    return check_done();
}
