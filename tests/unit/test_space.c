/* test_space.c: listing never builds the product, and agrees with brute force; `specialise`. */
#include <time.h>

#include "check.h"
#include "core/launch.h"
#include "core/problem.h"
#include "gen.h"
#include "gen_files.h"
#include "overlay.h"

static attn_error err = ATTN_ERROR_INIT;

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* others may have the CPUs */
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A family cpu/t with these params and constraints (Lua text), opened. */
static attn_gen *gen;
static char folder[64];

static attn_space *open_with(const char *params, const char *require, const char *more,
                             const char *problem_text) {
    attn_problem problem;
    attn_device_info device;
    attn_space *space = NULL;
    char text[4096];
    (void)snprintf(text, sizeof text,
                   "return family { name = 't', op = 'forward', backend = 'cpu', template = "
                   "'cpu/t.c', doc = '', accepts = function() return true end,\n"
                   "params = { %s }, require = { %s },\n"
                   "launch = function(c, p) return { { grid = 'tiles', rows = 1 } } end,\n"
                   "defaults = function(p) return {} end, %s }\n",
                   params, require, more);
    overlay_make(folder);
    overlay_write(folder, "spaces/cpu/t.lua", text);
    overlay_write(folder, "templates/cpu/t.c", "int $(KERNEL);\n");
    CHECK_OK(attn_gen_open(folder, &gen, &err), err.line);
    CHECK_OK(attn_problem_parse(problem_text, &problem, NULL, 0), "");
    CHECK_OK(attn_gen_profile(gen, "cpu:avx2", &device, &err), err.line);
    CHECK_OK(attn_space_open(gen, "t", &problem, &device, &space, &err), err.line);
    return space;
}

static void close_all(attn_space *space) {
    attn_space_close(space);
    attn_gen_close(gen);
    overlay_remove(folder);
}

#define TEN "{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }"

/* 10^8 combinations, of which 2000 are valid. */
static void large_space(void) {
    attn_space *space = open_with(
        "{ 'A', " TEN ", '' }, { 'B', " TEN ", '' }, { 'C', " TEN ", '' }, { 'D', " TEN ", '' }, "
        "{ 'E', " TEN ", '' }, { 'F', " TEN ", '' }, { 'G', " TEN ", '' }, { 'H', " TEN ", '' }",
        "{ 'b is a', { 'A', 'B' }, function(c) return c.A == c.B end },"
        "{ 'd is c', { 'C', 'D' }, function(c) return c.C == c.D end },"
        "{ 'f is e', { 'E', 'F' }, function(c) return c.E == c.F end },"
        "{ 'g and h', { 'G', 'H' }, function(c) return c.G + c.H < 1 + c.G % 2 and c.G < 2 end },",
        "", "fwd:f32:b1:h1:s64:d64");
    attn_config_list list;
    double start = seconds();
    CHECK_OK(attn_space_list(space, false, SIZE_MAX, &list, &err), err.line);
    double took = seconds() - start;
    CHECK_NEAR(list.combinations, 1e8, 0);
    CHECK_EQ_INT(list.count, 2000);
    double rejected = 0;
    for (size_t i = 0; i < list.rejections; i++)
        rejected += list.rejection[i].count;
    CHECK_NEAR(rejected, 1e8 - 2000, 0);
    CHECK_NEAR(list.rejection[0].count, 9e7, 0);
    if (!CHECK(took < 1.0))
        fprintf(stderr, "it took %g s\n", took);
    attn_config_list_free(&list);
    close_all(space);
}

/* A space that cannot be listed in any reasonable time is an error, not a hang: here no constraint
 * can be tested before the last of 12 parameters. */
static void endless_space(void) {
    char params[2048] = "";
    for (int i = 0; i < 12; i++)
        (void)snprintf(params + strlen(params), sizeof params - strlen(params),
                       "{ 'P%d', " TEN ", '' },", i);
    attn_space *space = open_with(params, "{ 'never', { 'P11' }, function() return false end }", "",
                                  "fwd:f32:b1:h1:s64:d64");
    attn_config_list list;
    CHECK_STATUS(attn_space_list(space, false, SIZE_MAX, &list, &err), ATTN_ERR_TEMPLATE, err.line);
    CHECK_HAS(err.line, "spaces/cpu/t.lua: the space is too large to list");
    CHECK(list.config == NULL);
    close_all(space);
}

/* Counts of reasons and the configurations themselves, against a walk over the whole product. */
static void against_brute_force(void) {
    attn_space *space = open_with(
        "{ 'A', { 1, 2, 3, 4, 5 }, '' }, { 'B', { 1, 2, 3 }, '' }, { 'C', { 1, 2, 3, 4 }, '' }, "
        "{ 'D', { 'x', 'y' }, '' }",
        "{ 'ac', { 'C', 'A' }, function(c) return c.A * c.C < 9 end },"
        "{ 'sum', { 'A', 'B' }, function(c) return c.AB ~= 6 end },"
        "{ 'y', { 'D', 'A' }, function(c) return c.D == 'x' or c.A > 1 end },"
        "{ 'class', {}, function(c, p) return p.head_dim == 64 end },",
        "derive = function(c) c.AB = c.A + c.B c.ABC = c.AB + c.C end, core = { A = { 2, 5 } },",
        "fwd:f32:b1:h1:s64:d64");
    attn_config_list list;
    CHECK_OK(attn_space_list(space, false, SIZE_MAX, &list, &err), err.line);
    size_t n = 0;
    double rejected[4] = {0};
    for (int a = 1; a <= 5; a++)
        for (int b = 1; b <= 3; b++)
            for (int c = 1; c <= 4; c++)
                for (int d = 0; d < 2; d++) {
                    int reason = a + b == 6 ? 1 : a * c >= 9 ? 0 : d == 1 && a == 1 ? 2 : -1;
                    if (reason >= 0) {
                        rejected[reason]++;
                        continue;
                    }
                    if (CHECK(n < list.count)) {
                        const uint8_t *v = list.config[n].value;
                        CHECK(v[0] == a - 1 && v[1] == b - 1 && v[2] == c - 1 && v[3] == d);
                    }
                    n++;
                }
    CHECK_EQ_INT(list.count, n);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(list.rejection[i].count, rejected[i], 0);
    for (size_t i = 0; i < list.count; i++)
        CHECK_OK(attn_space_check(space, &list.config[i], &err), err.line);
    attn_config_list_free(&list);
    CHECK_OK(attn_space_list(space, true, SIZE_MAX, &list, &err), err.line);
    CHECK_NEAR(list.combinations, 2 * 3 * 4 * 2, 0);
    for (size_t i = 0; i < list.count; i++)
        CHECK(list.config[i].value[0] == 1 || list.config[i].value[0] == 4);
    attn_config_list_free(&list);
    close_all(space);
}

/* A specialised field is in the class text, in `p` and in the limits; others stay hidden. */
static void specialise(void) {
    attn_space *space =
        open_with("", "{ 'short', {}, function(c, p) return p.seq_kv <= 512 end }",
                  "specialise = { 'seq_kv', 'group' },", "fwd:f32:b1:hq8:hkv2:sq64:sk100:d64");
    attn_config config;
    attn_variant variant;
    attn_launch launch;
    attn_problem problem;
    CHECK_OK(attn_space_default(space, &config, &err), err.line);
    CHECK_OK(attn_space_render(space, &config, &variant, &err), err.line);
    CHECK_STR(variant.class_text, "fwd:f32:d64:dv64:none:a16 seq_kv=100 group=4");
    CHECK_STR(variant.config, "");
    CHECK_OK(attn_launch_parse(variant.launch, &launch, &err), err.line);
    CHECK_EQ_INT(launch.limits, 2);
    CHECK_OK(attn_problem_parse("fwd:f32:b9:hq4:hkv1:sq7:sk100:d64", &problem, NULL, 0), "");
    CHECK(attn_limits_broken(&launch, &problem) == NULL);
    CHECK_OK(attn_problem_parse("fwd:f32:b9:hq4:hkv1:sq7:sk101:d64", &problem, NULL, 0), "");
    CHECK(attn_limits_broken(&launch, &problem) != NULL);
    CHECK_OK(attn_problem_parse("fwd:f32:b9:hq2:hkv1:sq7:sk100:d64", &problem, NULL, 0), "");
    CHECK(attn_limits_broken(&launch, &problem) != NULL);
    attn_variant_free(&variant);
    close_all(space);
}

/* Defaults may follow the length, which nothing else sees. */
static void defaults_by_length(void) {
    static const char *const problems[] = {"fwd:f32:b1:h2:s64:d64", "fwd:f32:b1:h2:s512:d64"};
    for (int n = 0; n < 2; n++) {
        attn_space *space = open_with(
            "{ 'A', { 1, 2 }, '' }", "",
            "defaults = function(p) return { A = p.seq_q > 100 and 2 or 1 } end", problems[n]);
        attn_config config;
        CHECK_OK(attn_space_default(space, &config, &err), err.line);
        CHECK_EQ_INT(config.value[0], n);
        close_all(space);
    }
}

/* A family whose default's limits exclude a shape does not admit it; `rows` is seq_q x group. */
static void admits(void) {
    attn_space *space = open_with("", "", "", "fwd:f32:b1:h1:s64:d64");
    attn_problem problem;
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h1:s64:d64", &problem, NULL, 0), "");
    CHECK_OK(attn_space_admits(space, &problem, &err), err.line);
    close_all(space);
    space = open_with("", "", "specialise = { 'rows' },", "fwd:f32:b1:hq6:hkv2:sq5:sk9:d64");
    CHECK_OK(attn_problem_parse("fwd:f32:b9:hq3:hkv1:sq5:sk7:d64", &problem, NULL, 0), "");
    CHECK_OK(attn_space_admits(space, &problem, &err), err.line);
    CHECK_OK(attn_problem_parse("fwd:f32:b1:hq6:hkv2:sq4:sk9:d64", &problem, NULL, 0), "");
    CHECK_EQ_INT(attn_space_admits(space, &problem, &err), ATTN_ERR_NOT_ACCEPTED);
    CHECK_STR(err.line, "cpu/t does not accept the shape: rows is 12, but this variant takes 15");
    close_all(space);
}

/* The identity of a variant is the same in every generator, whatever was asked of it before. */
static void same_identity(void) {
    attn_hash seen[2], sources[2];
    for (int n = 0; n < 2; n++) {
        attn_space *space = open_with("{ 'A', { 1, 2 }, '' }, { 'B', { true, false }, '' }", "",
                                      "derive = function(c) c.T = { z = 1, y = 2, x = 3 } end,",
                                      "fwd:f32:b1:h1:s64:d64");
        attn_config_list list;
        attn_variant variant;
        overlay_write(folder, "templates/cpu/t.c", "changed after opening: not seen\n");
        CHECK_OK(attn_space_list(space, false, SIZE_MAX, &list, &err), err.line);
        for (size_t i = (size_t)n; i < list.count; i++) {
            CHECK_OK(attn_space_render(space, &list.config[i], &variant, &err), err.line);
            if (i == 3)
                seen[n] = variant.hash;
            CHECK_STR(variant.source, "#line 1 \"templates/cpu/t.c\"\nint t;\n");
            attn_variant_free(&variant);
        }
        CHECK_OK(attn_gen_source_hash(gen, "t", &sources[n], &err), err.line);
        attn_config_list_free(&list);
        close_all(space);
    }
    CHECK(attn_hash_equal(seen[0], seen[1]));
    CHECK(attn_hash_equal(sources[0], sources[1]));
}

/* The hash of a family's files changes with each of them, and with no other. */
static void source_hash(void) {
    static const struct {
        const char *name, *text;
        bool changes;
    } files[] = {{"templates/cpu/t.c", "#include \"one.h\"\nint $(KERNEL);\n", true},
                 {"include/one.h", "#include \"two.h\"\n", true},
                 {"include/two.h", "/* 2 */\n", true},
                 {"include/three.h", "/* 3 */\n", false},
                 {"spaces/cpu/u.lua", "", false},
                 {"templates/cpu/tt.c", "", false},
                 {"templates/include/two.h", "/* 3 */\n", true},
                 {"lua/lib.lua", "-- another engine\n", true}};
    attn_hash before = {0, 0}, now;
    overlay_make(folder);
    overlay_write(folder, "spaces/cpu/t.lua", "return family {}\n");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        attn_files all;
        CHECK_CASE("%s", files[i].name);
        overlay_write(folder, files[i].name, files[i].text);
        CHECK_OK(attn_files_open(folder, &all, &err), err.line);
        CHECK_OK(attn_source_hash(&all, "cpu/t", &now, &err), err.line);
        attn_files_close(&all);
        CHECK(attn_hash_equal(before, now) == !files[i].changes);
        before = now;
    }
    CHECK_CASE("-");
    overlay_remove(folder);
}

int main(void) {
    large_space();
    endless_space();
    against_brute_force();
    specialise();
    defaults_by_length();
    admits();
    same_identity();
    source_hash();
    return check_done();
}
