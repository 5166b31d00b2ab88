/* test_gen.c: families found by folder, their spaces listed, checked and rendered. */
#include "check.h"
#include "core/problem.h"
#include "gen.h"

static attn_error err = ATTN_ERROR_INIT;

static attn_problem problem_of(const char *text) {
    attn_problem problem;
    char line[256];
    CHECK_OK(attn_problem_parse(text, &problem, line, sizeof line), line);
    return problem;
}

static attn_gen *open_toy(void) {
    attn_gen *gen = NULL;
    char path[1024];
    const char *source = getenv("ATTN_SOURCE");
    if (!source)
        check_skip("ATTN_SOURCE is not set");
    (void)snprintf(path, sizeof path, "%s/tests/toy", source);
    CHECK_OK(attn_gen_open(path, &gen, &err), err.line);
    return gen;
}

static attn_space *open_space(attn_gen *gen, const char *problem_text, const char *arch) {
    attn_problem problem = problem_of(problem_text);
    attn_device_info device;
    attn_space *space = NULL;
    CHECK_OK(attn_gen_profile(gen, arch, &device, &err), err.line);
    CHECK_OK(attn_space_open(gen, "toy_forward", &problem, &device, &space, &err), err.line);
    return space;
}

static void families(void) {
    attn_gen *gen = open_toy();
    attn_family_info info;
    bool listed = false;
    for (size_t i = 0; i < attn_gen_family_count(gen); i++)
        listed = listed || strcmp(attn_gen_family_name(gen, i), "cpu/toy_forward") == 0;
    CHECK(listed);
    CHECK_OK(attn_gen_family(gen, "toy_forward", &info, &err), err.line);
    CHECK_STR(info.name, "cpu/toy_forward");
    CHECK_STR(info.backend, "cpu");
    CHECK(!info.reference);
    CHECK_STATUS(attn_gen_family(gen, "toy_forwrd", &info, &err), ATTN_ERR_NOT_FOUND, err.line);
    CHECK_STR(err.line, "no family 'toy_forwrd'; did you mean cpu/toy_forward?");
    attn_gen_close(gen);
}

static void listing(void) {
    attn_gen *gen = open_toy();
    attn_space *space = open_space(gen, "fwd:f32:b1:h1:s64:d20", "cpu:avx2");
    attn_config_list list;
    CHECK_OK(attn_space_list(space, false, SIZE_MAX, &list, &err), err.line);
    CHECK_NEAR(list.combinations, 3 * 4 * 2 * 2, 0);
    CHECK_EQ_INT(list.rejections, 2);
    CHECK_STR(list.rejection[0].reason, "lanes divide head_dim");
    CHECK_NEAR(list.rejection[0].count, 3 * 1 * 4, 0); /* LANES=8 */
    CHECK_EQ_INT(list.count, 3 * 3 * 4);
    CHECK(!list.cut);
    attn_config_list_free(&list);
    CHECK_OK(attn_space_list(space, true, SIZE_MAX, &list, &err), err.line);
    CHECK_EQ_INT(list.count, 2 * 3 * 2);
    attn_config_list_free(&list);
    CHECK_OK(attn_space_list(space, false, 5, &list, &err), err.line);
    CHECK_EQ_INT(list.count, 5);
    CHECK(list.cut);
    attn_config_list_free(&list);
    attn_space_close(space);
    attn_gen_close(gen);
}

static void rendering(void) {
    attn_gen *gen = open_toy();
    attn_space *space = open_space(gen, "fwd:f32:b1:h1:s64:d32:causal:lse", "cpu:avx2");
    attn_config config;
    attn_variant variant;
    attn_str text = ATTN_STR_INIT;
    CHECK_OK(attn_space_default(space, &config, &err), err.line);
    CHECK_OK(attn_config_parse(space, "LANES=2 ORDER=longest_first", &config, &err), err.line);
    attn_config_print(space, &config, &text);
    CHECK_STR(attn_str_text(&text), "ROWS=4 LANES=2 ORDER=longest_first OPT=-O2");
    CHECK_OK(attn_space_render(space, &config, &variant, &err), err.line);
    CHECK_STR(variant.family, "cpu/toy_forward");
    CHECK_STR(variant.language, "c");
    CHECK_STR(variant.class_text, "fwd:f32:d32:dv32:causal:lse:a16");
    CHECK_STR(variant.options, "-O2");
    CHECK_HAS(variant.launch, "step symbol=toy_forward");
    CHECK_HAS(variant.launch, "order=longest_first");
    CHECK_HAS(variant.source, "#line 1 \"templates/cpu/toy_forward.c\"\n");
    CHECK_HAS(variant.source, "#line 1 \"templates/include/attn_abi.h\"\n");
    CHECK_HAS(variant.source, "sum[1] += a[d + 1] * b[d + 1];\n#line 14 ");
    CHECK_HAS(variant.source, "a->lse[");
    attn_variant_free(&variant);
    attn_str_free(&text);
    attn_space_close(space);
    attn_gen_close(gen);
}

int main(void) {
    families();
    listing();
    rendering();
    return check_done();
}
