/* test_preference.c: which family a problem gets where nothing was measured, on CPUs and GPUs that
 * need not be here: the best that is legal there, and never a new one by its name alone. */
#include "check.h"
#include "context.h"
#include "gen.h"
#include "naive.h"
#include "overlay.h"

static attn_error err = ATTN_ERROR_INIT;
static char folder[64];

static attn_problem parse(const char *text) {
    attn_problem p = {0};
    CHECK_OK(attn_problem_parse(text, &p, err.line, sizeof err.line), err.line);
    return p;
}

/* A family that takes everything and says nothing of preference; its name comes first. */
static const char NEW_SPACE[] =
    "return family {\n"
    "  name = \"a_new_forward\", op = \"forward\", backend = \"%s\",\n"
    "  template = \"%s/a_new_forward.%s\", doc = \"New.\",\n"
    "  accepts = function() return true end,\n"
    "  params = { { \"ROWS\", { 16, 32 }, \"rows of a task\" } },\n"
    "  launch = function(c) return { { grid = \"tiles\", rows = c.ROWS%s } } end,\n"
    "  defaults = function() return { ROWS = 16 } end,\n"
    "}\n";
static const char NEW_TEMPLATE[] =
    "#include \"attn_abi.h\"\n"
    "int $(KERNEL)(const attn_forward_args *a, int task, int worker) {\n"
    "    return a && task == worker ? 0 * $(ROWS) : 0;\n"
    "}\n";

static void write_new(const char *backend, const char *ext, const char *launch) {
    char name[96], text[1024];
    (void)snprintf(text, sizeof text, NEW_SPACE, backend, backend, ext, launch);
    (void)snprintf(name, sizeof name, "spaces/%s/a_new_forward.lua", backend);
    overlay_write(folder, name, text);
    (void)snprintf(name, sizeof name, "templates/%s/a_new_forward.%s", backend, ext);
    overlay_write(folder, name, NEW_TEMPLATE);
}

/* By the rule that gen.h gives: of the families that take the problem, the most preferred one; of
 * equals, the first by name. Its default's build options go to `options`. */
static const char *preferred(attn_gen *gen, const attn_problem *p, const char *arch,
                             char options[256]) {
    attn_device_info device;
    attn_family_info best = {.name = "none", .preference = INT32_MIN};
    CHECK_OK(attn_gen_profile(gen, arch, &device, &err), err.line);
    for (size_t i = 0; i < attn_gen_family_count(gen); i++) {
        attn_family_info f;
        attn_space *space = NULL;
        attn_error no = ATTN_ERROR_INIT;
        CHECK_OK(attn_gen_family(gen, attn_gen_family_name(gen, i), &f, &err), err.line);
        if (f.reference || f.preference <= best.preference ||
            strcmp(f.backend, device.backend) != 0 ||
            attn_space_open(gen, f.name, p, &device, &space, &no) != ATTN_OK)
            continue;
        if (attn_space_admits(space, p, &no) == ATTN_OK)
            best = f;
        attn_space_close(space);
    }
    attn_variant variant = {0};
    if (CHECK_OK(attn_gen_render(gen, best.name, p, &device, NULL, 0, &variant, &err), err.line))
        (void)snprintf(options, 256, "%s", variant.options);
    attn_variant_free(&variant);
    return best.name;
}

#define PREFILL(dtype) "fwd:" dtype ":b1:h8:s1024:d64:causal"
#define DECODE(dtype) "fwd:" dtype ":b1:hq32:hkv8:sq1:sk4096:d128"

/* A CPU without AMX loses AMX alone, and one without AVX-512 nothing but that. */
static void test_profiles(void) {
    static const struct {
        const char *arch, *problem, *family, *has, *has_not; /* flags of the compiler */
    } rows[] = {
        {"cpu:generic", PREFILL("f32"), "cpu/simd_forward", "-O3", "-mavx"},
        {"cpu:generic", DECODE("f32"), "cpu/decode_forward", "-O3", "-mavx"},
        {"cpu:avx2", PREFILL("f32"), "cpu/simd_forward", "-mavx2", "-mavx512"},
        {"cpu:avx2", PREFILL("bf16"), "cpu/simd_forward", "-mavx2", "-mavx512"},
        {"cpu:avx2", DECODE("f16"), "cpu/decode_forward", "-mavx2", "-mavx512"},
        {"cpu:avx512", PREFILL("f32"), "cpu/simd_forward", "-mavx512f", "-mamx"},
        {"cpu:avx512", PREFILL("bf16"), "cpu/simd_forward", "-mavx512f", "-mamx"},
        {"cpu:avx512", DECODE("bf16"), "cpu/decode_forward", "-mavx512f", "-mamx"},
        {"cpu:avx512_amx", PREFILL("bf16"), "cpu/amx_forward", "-mamx", "-mavx2"},
        {"cpu:avx512_amx", PREFILL("f16"), "cpu/simd_forward", "-mavx512f", "-mamx"},
        {"cpu:avx512_amx", DECODE("bf16"), "cpu/decode_forward", "-mavx512f", "-mamx"},
        {"cpu:neon", PREFILL("f32"), "cpu/simd_forward", "-O3", "-mavx"},
        {"sm_80", PREFILL("f16"), "cuda/mma_forward", "", "-m"},
        {"sm_89", PREFILL("bf16"), "cuda/mma_forward", "", "-m"},
        {"sm_90a", PREFILL("f16"), "cuda/wgmma_forward", "", "-m"},
        {"sm_120", PREFILL("f16"), "cuda/mma_forward", "", "-m"},
        {"sm_80", PREFILL("f32"), "cuda/tf32x3_forward", "", "-m"},
    };
    attn_gen *gen = NULL;
    if (!CHECK_OK(attn_gen_open(folder, &gen, &err), err.line))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char options[256] = "";
        attn_problem p = parse(rows[i].problem);
        CHECK_CASE("%s, %s", rows[i].arch, rows[i].problem);
        CHECK_STR(preferred(gen, &p, rows[i].arch, options), rows[i].family);
        CHECK_HAS(options, rows[i].has);
        check_that(!strstr(options, rows[i].has_not), __FILE__, __LINE__, "%s has %s", options,
                   rows[i].has_not);
    }
    attn_gen_close(gen);
}

static void run(attn_context *ctx, const attn_problem *p) {
    naive_tensors n = {.t = ATTN_FORWARD_TENSORS_INIT};
    size_t bytes = attn_workspace_size(ctx, p, ATTN_DEVICE_CPU);
    void *ws = aligned_alloc(256, (bytes + 256) / 256 * 256);
    attn_forward_strides(p, &n.t);
    if (CHECK(naive_fill(p, &n) && ws)) {
        CHECK_OK(attn_run(ctx, p, ATTN_DEVICE_CPU, &n.t, ws, bytes, NULL), attn_last_error(ctx));
        CHECK_NEAR(naive_error(p, &n), 0, 2e-5);
    }
    naive_free(&n);
    free(ws);
}

/* The library on this CPU, made a lesser one: it chooses by the same rule, and what it chooses
 * runs. */
static void test_here(void) {
    static const struct {
        const char *isa, *problem, *family;
    } rows[] = {
        {"generic", "fwd:f32:b1:h2:s50:d40:window9,3", "cpu/simd_forward"},
        {"avx2", "fwd:f32:b1:hq4:hkv2:sq65:sk90:d40:causal:lse", "cpu/simd_forward"},
        {"avx2", DECODE("f32"), "cpu/decode_forward"},
        {"avx512", PREFILL("bf16"), "cpu/simd_forward"}, /* and no AMX */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        attn_options options = ATTN_OPTIONS_INIT;
        attn_choice choice = ATTN_CHOICE_INIT;
        attn_context *ctx = NULL;
        attn_problem p = parse(rows[i].problem);
        options.family_path = folder;
        CHECK_CASE("as %s, %s", rows[i].isa, rows[i].problem);
        setenv("ATTNTUNE_CPU_ISA", rows[i].isa, 1);
        attn_status status = attn_open(&options, &ctx);
        unsetenv("ATTNTUNE_CPU_ISA");
        if (!CHECK_OK(status, attn_last_error(NULL)))
            continue;
        CHECK_OK(attn_choice_get(ctx, &p, ATTN_DEVICE_CPU, &choice), attn_last_error(ctx));
        CHECK_STR(choice.family, rows[i].family);
        CHECK_EQ_INT(choice.origin, ATTN_ORIGIN_DEFAULT);
        if (p.dtype == ATTN_F32 && p.seq_q < 100)
            run(ctx, &p);
        attn_close(ctx);
    }
}

int main(void) {
    overlay_make(folder);
    write_new("cpu", "c", "");
    write_new("cuda", "cu", ", threads = 128");
    test_profiles();
#if defined(__x86_64__)
    test_here();
#endif
    overlay_remove(folder);
    return check_done();
}
