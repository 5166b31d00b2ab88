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

static attn_space *open_family(attn_gen *gen, const char *family, const char *problem_text,
                               const char *arch) {
    attn_problem problem = problem_of(problem_text);
    attn_device_info device;
    attn_space *space = NULL;
    CHECK_OK(attn_gen_profile(gen, arch, &device, &err), err.line);
    CHECK_OK(attn_space_open(gen, family, &problem, &device, &space, &err), err.line);
    return space;
}

static attn_space *open_space(attn_gen *gen, const char *problem_text, const char *arch) {
    return open_family(gen, "toy_forward", problem_text, arch);
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

/* Shape files: every line is a problem, those of the CPU in f32, those of GPUs in half. */
static void shapes(void) {
    attn_gen *gen = open_toy();
    const char *const names[] = {"shapes/quick.txt", "shapes/default.txt"};
    for (int i = 0; i < 2; i++) {
        size_t cpu = 0, cuda = 0;
        char *text = NULL, line[256];
        bool on_cpu = false, on_cuda = false;
        CHECK_CASE("%s", names[i]);
        CHECK_OK(attn_gen_file(gen, names[i], &text, &err), err.line);
        for (char *rest = text, *row; (row = strsep(&rest, "\n"));) {
            attn_problem problem;
            if (row[0] == '[') {
                on_cpu = strcmp(row, "[cpu]") == 0;
                on_cuda = strcmp(row, "[cuda]") == 0;
                CHECK(on_cpu || on_cuda);
            } else if (row[0] && row[0] != '#') {
                CHECK_OK(attn_problem_parse(row, &problem, line, sizeof line), line);
                CHECK((problem.dtype == ATTN_F32) == on_cpu);
                cpu += on_cpu;
                cuda += on_cuda;
            }
        }
        free(text);
        CHECK(cpu > 0 && cpu <= (i == 0 ? 12 : 30));
        CHECK(cuda > 0 && cuda <= 30);
    }
    CHECK_CASE("-");
    char *text = NULL;
    CHECK_STATUS(attn_gen_file(gen, "shapes/none.txt", &text, &err), ATTN_ERR_NOT_FOUND, err.line);
    attn_gen_close(gen);
}

/* Device profiles have the properties that backends report. */
static void profiles(void) {
    attn_gen *gen = open_toy();
    attn_device_info info;
    size_t count = 0;
    for (; attn_gen_profile_name(gen, count); count++) {
        CHECK_OK(attn_gen_profile(gen, attn_gen_profile_name(gen, count), &info, &err), err.line);
        CHECK_STR(info.arch, attn_gen_profile_name(gen, count));
        CHECK(info.prop_count > 0);
    }
    CHECK_EQ_INT(count, 11);
    CHECK_OK(attn_gen_profile(gen, "sm_90a", &info, &err), err.line);
    CHECK_EQ_INT(attn_device_prop(&info, "cc"), 90);
    CHECK_EQ_INT(attn_device_prop(&info, "smem_optin"), 227 * 1024);
    CHECK_EQ_INT(attn_device_prop(&info, "avx2"), 0);
    CHECK_OK(attn_gen_profile(gen, "cpu:avx512", &info, &err), err.line);
    CHECK_EQ_INT(attn_device_prop(&info, "avx512f"), 1);
    CHECK_STATUS(attn_gen_profile(gen, "sm_91", &info, &err), ATTN_ERR_NOT_FOUND, err.line);
    CHECK_HAS(err.line, "no profile 'sm_91'; there are cpu:generic cpu:avx2");
    attn_gen_close(gen);
}

/* Where tasks are few, cpu/simd_forward's default makes them small; the profiles have 8 threads. */
static void tasks_for_threads(void) {
    static const struct {
        const char *problem, *arch, *has;
    } cases[] = {
        {"fwd:f32:b1:h1:s64:d64", "cpu:avx512", " NV=1 "},
        {"fwd:f32:b1:h4:s64:d64", "cpu:avx512", " NV=2 "},
        {"fwd:f32:b1:h8:s64:d64", "cpu:avx512", " NV=4 "},
        {"fwd:f32:b1:hq8:hkv2:s64:d64", "cpu:avx512", " NV=4 "}, /* 256 rows a head */
        {"fwd:f32:b1:h1:s128:d64", "cpu:avx2", " NV=2 "},
        {"fwd:f32:b1:h32:s512:d128", "cpu:avx512", " NV=4 MR=6 MRV=6 BLOCK_K=96 GROUPS=4 "}};
    attn_gen *gen = open_toy();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_str text = ATTN_STR_INIT;
        attn_config config;
        CHECK_CASE("%s on %s", cases[i].problem, cases[i].arch);
        attn_space *space = open_family(gen, "cpu/simd_forward", cases[i].problem, cases[i].arch);
        CHECK_OK(attn_space_default(space, &config, &err), err.line);
        attn_config_print(space, &config, &text);
        CHECK_HAS(attn_str_text(&text), cases[i].has);
        attn_str_free(&text);
        attn_space_close(space);
    }
    CHECK_CASE("-");
    attn_gen_close(gen);
}

static void config_text(void) {
    attn_gen *gen = open_toy();
    attn_space *space = open_space(gen, "fwd:f32:b1:h1:s64:d32", "cpu:avx2");
    attn_config config;
    CHECK_OK(attn_space_default(space, &config, &err), err.line);
    attn_config before = config;
    static const struct {
        const char *text, *line;
    } bad[] = {{"ROWS", "'ROWS' is no NAME=VALUE"},
               {"ROWS=4 LANE=2", "cpu/toy_forward has no parameter 'LANE'; did you mean LANES?"},
               {"XYZ=1", "no parameter 'XYZ'; it has ROWS LANES ORDER OPT"},
               {"ROWS=16 LANES=3", "LANES has no value '3'; it has 1 2 4 8"},
               {"LANES=", "LANES has no value ''"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_STATUS(attn_config_parse(space, bad[i].text, &config, &err), ATTN_ERR_INVALID,
                     err.line);
        CHECK_HAS(err.line, bad[i].line);
        CHECK(memcmp(&config, &before, sizeof config) == 0);
    }
    CHECK_OK(attn_config_parse(space, " ROWS=16  LANES=8 ", &config, &err), err.line);
    CHECK_STATUS(attn_space_check(space, &config, &err), ATTN_ERR_INVALID, err.line);
    CHECK_STR(err.line, "rejected: few rows or few lanes");
    attn_variant variant;
    CHECK_STATUS(attn_space_render(space, &config, &variant, &err), ATTN_ERR_INVALID, err.line);
    attn_space_close(space);
    attn_gen_close(gen);
}

static void acceptance(void) {
    attn_gen *gen = open_toy();
    attn_problem problem = problem_of("fwd:f16:b1:h1:s64:d32");
    attn_device_info device;
    attn_space *space;
    CHECK_OK(attn_gen_profile(gen, "cpu:avx2", &device, &err), err.line);
    CHECK_STATUS(attn_space_open(gen, "toy_forward", &problem, &device, &space, &err),
                 ATTN_ERR_NOT_ACCEPTED, err.line);
    CHECK_STR(err.line, "cpu/toy_forward does not accept fwd:f16:d32:dv32:none:a16: it is for f32");
    CHECK_OK(attn_gen_profile(gen, "sm_90a", &device, &err), err.line);
    CHECK_STATUS(attn_space_open(gen, "toy_forward", &problem, &device, &space, &err),
                 ATTN_ERR_NOT_ACCEPTED, err.line);
    CHECK_HAS(err.line, ": it runs on cpu devices");
    CHECK(space == NULL);
    attn_gen_close(gen);
}

int main(void) {
    shapes();
    profiles();
    tasks_for_threads();
    config_text();
    acceptance();
    families();
    listing();
    rendering();
    return check_done();
}
