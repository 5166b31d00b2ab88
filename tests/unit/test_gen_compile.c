/* test_gen_compile.c: rendered sources go through the C compiler: every family's default on every
 * profile that this host can compile for, others of the widest, and errors that name the template's
 * own lines. */
#include "check.h"
#include "core/problem.h"
#include "gen.h"
#include "overlay.h"

static attn_error err = ATTN_ERROR_INIT;
static char folder[64];

/* Compiles a variant for its syntax; the compiler's output is appended to log. */
static int compile(const attn_variant *variant, const char *flags, attn_str *log) {
    const char *cc = getenv("CC");
    char file[128], line[512];
    attn_str command = ATTN_STR_INIT;
    (void)snprintf(file, sizeof file, "%s/rendered.c", folder);
    overlay_write(folder, "rendered.c", variant->source);
    attn_str_append_f(&command, "%s -std=gnu11 -fsyntax-only -Wall -Werror %s", cc ? cc : "cc",
                      flags);
    attn_str_append_f(&command, " %s 2>&1", file);
    FILE *p = popen(attn_str_text(&command), "r");
    attn_str_free(&command);
    if (!CHECK(p != NULL))
        return -1;
    while (fgets(line, sizeof line, p))
        attn_str_append(log, line);
    return pclose(p);
}

enum { DRAWN = 4, CORE_MAX = 3000 };

/* The default, or of the core the n-th of DRAWN configurations, which lie far apart. */
static attn_status draw(attn_space *space, int n, attn_config *config) {
    attn_config_list list;
    if (n == 0)
        return attn_space_default(space, config, &err);
    ATTN_TRY(attn_space_list(space, true, CORE_MAX, &list, &err));
    *config = list.config[list.count * (size_t)n / DRAWN];
    attn_config_list_free(&list);
    return ATTN_OK;
}

static attn_status render(attn_gen *gen, const char *family, const attn_problem *problem,
                          const attn_device_info *device, int n, attn_variant *variant) {
    attn_space *space;
    attn_config config;
    ATTN_TRY(attn_space_open(gen, family, problem, device, &space, &err));
    attn_status st = draw(space, n, &config);
    if (st == ATTN_OK)
        st = attn_space_render(space, &config, variant, &err);
    attn_space_close(space);
    return st;
}

/* The flags of "compiler=gcc -O3 ...", without the compiler. */
static const char *flags_of(const attn_variant *variant) {
    const char *text = variant->options;
    return strncmp(text, "compiler=", 9) == 0 ? text + strcspn(text, " ") : text;
}

static void one_variant(attn_gen *gen, const char *family, const char *text,
                        const attn_device_info *device, int n) {
    attn_problem problem;
    attn_variant variant;
    attn_str log = ATTN_STR_INIT;
    CHECK_CASE("%s %s %s %d", family, text, device->arch, n);
    CHECK_OK(attn_problem_parse(text, &problem, NULL, 0), "");
    attn_status st = render(gen, family, &problem, device, n, &variant);
    if (st == ATTN_ERR_NOT_ACCEPTED || !CHECK_OK(st, err.line))
        return;
    CHECK_EQ_INT(compile(&variant, flags_of(&variant), &log), 0);
    CHECK_STR(attn_str_text(&log), "");
    attn_str_free(&log);
    attn_variant_free(&variant);
}

static void every_family(void) {
    attn_gen *gen = NULL;
    char path[1024];
    const char *source = getenv("ATTN_SOURCE");
    (void)snprintf(path, sizeof path, "%s/tests/toy", source ? source : ".");
    CHECK_OK(attn_gen_open(path, &gen, &err), err.line);
    static const char *const problems[] = {"fwd:f32:b1:h4:s1024:d64",
                                           "fwd:f32:b1:h4:s1024:d72:dv40:causal:lse:a1",
                                           "fwd:bf16:b1:h4:s1024:d72:dv40:causal:lse:a1"};
    for (size_t i = 0; gen && i < attn_gen_family_count(gen); i++) {
        const char *name = attn_gen_family_name(gen, i), *arch;
        for (size_t d = 0; (arch = attn_gen_profile_name(gen, d)); d++) {
            attn_device_info device;
            CHECK_OK(attn_gen_profile(gen, arch, &device, &err), err.line);
            if (strncmp(arch, "cpu:", 4) != 0 || !attn_device_prop(&device, "x86_64"))
                continue;
            int count = strcmp(arch, "cpu:avx512_amx") == 0 ? DRAWN : 1;
            for (size_t k = 0; k < sizeof problems / sizeof problems[0]; k++)
                for (int n = 0; n < count; n++)
                    one_variant(gen, name, problems[k], &device, n);
        }
    }
    attn_gen_close(gen);
}

/* A template with a fault in C at one place; the compiler must name that place. */
static void error_place(const char *from, const char *to, const char *helper, const char *place) {
    attn_gen *gen = NULL;
    attn_problem problem;
    attn_device_info device;
    attn_variant variant;
    attn_str log = ATTN_STR_INIT;
    CHECK_CASE("%s", place);
    overlay_write(folder, "spaces/cpu/t.lua", OVERLAY_SPACE);
    overlay_write_changed(folder, "templates/cpu/t.c", OVERLAY_TEMPLATE, from, to);
    overlay_write(folder, "include/helper.h", helper);
    CHECK_OK(attn_gen_open(folder, &gen, &err), err.line);
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h4:s64:d64", &problem, NULL, 0), "");
    CHECK_OK(attn_gen_profile(gen, "cpu:avx2", &device, &err), err.line);
    if (CHECK_OK(render(gen, "t", &problem, &device, 0, &variant), err.line)) {
        CHECK(compile(&variant, "", &log) != 0);
        CHECK_HAS(attn_str_text(&log), place);
        attn_variant_free(&variant);
    }
    attn_str_free(&log);
    attn_gen_close(gen);
}

static void error_places(void) {
    static const char helper[] = "/* helper.h */\n#include \"attn_abi.h\"\nint helper;\n";
    error_place("enum {", "enun {", helper, "templates/cpu/t.c:2:");
    error_place("(void);", "(void) +;", helper, "templates/cpu/t.c:4:");
    error_place("int task, int w);", "int task, int w) +;", helper, "templates/cpu/t.c:7:");
    error_place("#include \"attn_abi.h\"\n", "#include \"helper.h\"\n#include \"attn_abi.h\"\n",
                "int a;\n\nint b +;\n", "templates/include/helper.h:3:");
    error_place("#include \"attn_abi.h\"\n",
                "#include \"helper.h\"\n#include \"attn_abi.h\"\nint +;\n", helper,
                "templates/cpu/t.c:3:");
    error_place("//@ end\n",
                "//@ end\n\n//@ for i = 1, 3 do\nint g$(i);\n//@ end\nint $(2 *\n3);\n", helper,
                "templates/cpu/t.c:10:");
}

int main(void) {
    overlay_make(folder);
    every_family();
    error_places();
    overlay_remove(folder);
    return check_done();
}
