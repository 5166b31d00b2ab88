/* test_far_winner.c: a winner of one size, which may well be its family's default, takes that
 * default from no other size of the class. */
#include "context.h"
#include "db_fixture.h"
#include "gen.h"

static attn_error err = ATTN_ERROR_INIT;

static attn_context *open_with(const char *db) {
    attn_options options = ATTN_OPTIONS_INIT;
    attn_context *ctx = NULL;
    options.db_path = db;
    options.system_db = "/none";
    CHECK_OK(attn_open(&options, &ctx), attn_last_error(NULL));
    return ctx;
}

static attn_choice choose(attn_context *ctx, const char *text) {
    attn_choice choice = ATTN_CHOICE_INIT;
    attn_problem p;
    CHECK_OK(attn_problem_parse(text, &p, err.line, sizeof err.line), err.line);
    CHECK_OK(attn_choice_get(ctx, &p, ATTN_DEVICE_CPU, &choice), attn_last_error(ctx));
    return choice;
}

/* Writes that the default of simd_forward has won at `text`. */
static void win(const char *db_path, const char *text) {
    attn_context *ctx = open_with(db_path);
    attn_runtime_device *device = attn_context_device(ctx, ATTN_DEVICE_CPU);
    attn_gen *gen = NULL;
    attn_problem p;
    attn_variant variant = {0};
    attn_str toolchain = ATTN_STR_INIT;
    CHECK_OK(attn_problem_parse(text, &p, err.line, sizeof err.line), err.line);
    CHECK_OK(attn_context_gen(ctx, &gen, &err), err.line);
    CHECK_OK(attn_gen_render(gen, "cpu/simd_forward", &p, &device->info, NULL, 0, &variant, &err),
             err.line);
    CHECK_OK(device->backend->toolchain(variant.language, variant.options, &toolchain, &err),
             err.line);

    attn_db *db = fixture_open(db_path);
    attn_trial_key key = {.device = &device->info, .problem = &p, .variant = &variant};
    attn_trial_result result = fixture_result(ATTN_OUTCOME_OK, 1e6), found;
    attn_claim claim = ATTN_CLAIM_TAKEN;
    attn_finalist finalist = {.final_ns = 1e6, .band = 0.01};
    attn_search_extent extent = {1, true};
    key.toolchain = attn_str_text(&toolchain);
    key.target = "x";
    key.threads = 1;
    key.build = attn_build_hash(variant.hash, key.toolchain, key.target);
    CHECK_OK(attn_db_claim(db, &key, &claim, &finalist.id, &found, &err), err.line);
    CHECK_OK(attn_db_trial_end(db, &finalist.id, &result, &err), err.line);
    CHECK_OK(attn_db_decide(db, &finalist, 1, 1e6, &extent, &err), err.line);
    CHECK_OK(attn_db_session_end(db, &err), err.line);
    attn_db_close(db);
    attn_str_free(&toolchain);
    attn_variant_free(&variant);
    attn_close(ctx);
}

int main(void) {
    static const char near[] = "fwd:f32:b1:h8:s512:d32:causal";
    static const char far[] = "fwd:f32:b1:h8:s8192:d32:causal";
    fixture_begin();
    const char *db = fixture_path("winners.db");
    win(db, near);
    attn_context *with = open_with(db), *without = open_with("/none");
    attn_choice won = choose(with, near), there = choose(with, far), plain = choose(without, far);
    CHECK_EQ_INT(won.origin, ATTN_ORIGIN_USER);
    CHECK_EQ_INT(there.origin, ATTN_ORIGIN_DEFAULT);
    CHECK_STR(there.family, "cpu/simd_forward");
    CHECK_STR(there.configuration, plain.configuration);
    CHECK_STR(there.configuration, won.configuration); /* or this test would show nothing */
    attn_close(with);
    attn_close(without);
    fixture_end();
    return check_done();
}
