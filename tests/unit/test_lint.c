/* test_lint.c: the three rules of lint, each with a family that breaks it and one that does not. */
#include "check.h"
#include "core/problem.h"
#include "gen.h"
#include "overlay.h"

static attn_error err = ATTN_ERROR_INIT;
static attn_str report = ATTN_STR_INIT;
static size_t compiled;

static void keep_line(void *user, const char *line) {
    (void)user;
    attn_str_append_f(&report, "%s\n", line);
}

/* Stands for a compiler that drops comments: two sources that differ in comments only are the same
 * machine code, and so are -O2 and -O3. */
static attn_status compile(void *user, const attn_variant *variant, const attn_device_info *device,
                           attn_hash *code, attn_error *error) {
    (void)user;
    (void)error;
    compiled++;
    *code = attn_hash_begin();
    attn_hash_text_field(code, device->arch);
    bool comment = false;
    for (const char *at = variant->source; *at; at++) {
        comment = comment ? *at != '\n' : strncmp(at, "//", 2) == 0;
        if (!comment)
            attn_hash_field(code, at, 1);
    }
    if (strstr(variant->options, "-O1"))
        attn_hash_text_field(code, "slow");
    return ATTN_OK;
}

static size_t lint_folder(const char *folder, bool with_compiler) {
    attn_gen *gen = NULL;
    size_t faults = 0;
    attn_str_clear(&report);
    compiled = 0;
    CHECK_OK(attn_gen_open(folder, &gen, &err), err.line);
    CHECK_OK(
        attn_gen_lint(gen, "t", with_compiler ? compile : NULL, keep_line, NULL, &faults, &err),
        err.line);
    attn_gen_close(gen);
    overlay_remove(folder);
    return faults;
}

/* Lints the family of overlay.h with one piece of space or template changed. */
static size_t lint(const char *from, const char *to, bool in_space, bool with_compiler) {
    char folder[64];
    overlay_make(folder);
    overlay_write_changed(folder, "spaces/cpu/t.lua", OVERLAY_SPACE, in_space ? from : NULL, to);
    overlay_write_changed(folder, "templates/cpu/t.c", OVERLAY_TEMPLATE, in_space ? NULL : from,
                          to);
    return lint_folder(folder, with_compiler);
}

static void right(void) {
    CHECK_CASE("right");
    CHECK_EQ_INT(lint(NULL, "", true, false), 0);
    CHECK_STR(attn_str_text(&report), "");
    CHECK_EQ_INT(compiled, 0);
    CHECK_EQ_INT(lint(NULL, "", true, true), 0);
    CHECK_STR(attn_str_text(&report), "");
    CHECK(compiled > 0 && compiled < 100);
}

/* Rule 1: WORD is used by the template alone, once directly and once through TEXT. */
static void reads(void) {
    CHECK_CASE("read through a derived value");
    CHECK_EQ_INT(lint("f$(i)_$(WORD)", "f$(i)", false, false), 0);
    CHECK_CASE("read directly");
    CHECK_EQ_INT(lint("$(TEXT)", "", false, false), 0);
    CHECK_CASE("read nowhere");
    CHECK_EQ_INT(
        lint("{ \"WORD\", {", "{ \"IDLE\", { 1, 2 }, \"\" },\n    { \"WORD\", {", true, false),
        1); /* its default is missing, which ends the lint */
    CHECK_HAS(attn_str_text(&report), "defaults: IDLE is missing");
    CHECK_EQ_INT(lint("int f$(i)_$(WORD)(void);\n//@ end\nconst char *text = \"$(TEXT)\";\n",
                      "//@ end\n", false, false),
                 1);
    CHECK_HAS(attn_str_text(&report),
              "/spaces/cpu/t.lua: WORD is read by nothing: not the template, launch or options\n");
}

/* Rule 2 */
static void reachable(void) {
    CHECK_CASE("unreachable");
    CHECK_EQ_INT(lint("return c.SUM < 5", "return c.SUM < 4", true, false), 1);
    CHECK_HAS(attn_str_text(&report), "/spaces/cpu/t.lua: A=3 is never valid\n");
    CHECK_CASE("reachable on one profile only");
    CHECK_EQ_INT(lint("function(c)\n      return c.SUM < 5",
                      "function(c, p, dev)\n"
                      "      return c.A < 3 or dev.neon == 1",
                      true, false),
                 0);
    CHECK_CASE("reachable for one class only");
    CHECK_EQ_INT(lint("function(c)\n      return c.SUM < 5",
                      "function(c, p)\n      return c.A < 3 or (p.lse and p.alignment == 'a1' and "
                      "p.mask == 'causal_tl')",
                      true, false),
                 0);
}

/* Rule 3 */
static void different(void) {
    CHECK_CASE("values that only a comment tells apart");
    CHECK_EQ_INT(lint("int f$(i)_$(WORD)(void);\n//@ end\nconst char *text = \"$(TEXT)\";\n",
                      "//@ end\n// $(WORD)\n", false, true),
                 1);
    CHECK_HAS(attn_str_text(&report),
              "/spaces/cpu/t.lua: WORD=x and WORD=y give the same machine code, options and launch "
              "record wherever they were compared\n");
    CHECK_CASE("options that change nothing are noted");
    char folder[64];
    overlay_make(folder);
    overlay_write_changed(folder, "spaces/cpu/t.lua", OVERLAY_SPACE, "\"-O\" .. c.B",
                          "c.WORD == 'x' and '-O2' or '-O3', '-DB=' .. c.B");
    overlay_write(folder, "templates/cpu/t.c", "enum { A = $(A), B = $(B) };\n");
    CHECK_EQ_INT(lint_folder(folder, true), 0);
    CHECK_HAS(attn_str_text(&report),
              "/spaces/cpu/t.lua: note: WORD=x and WORD=y give the same machine code\n");
}

static void nothing_accepted(void) {
    CHECK_CASE("nothing accepted");
    CHECK_EQ_INT(lint("return p.head_dim <= 128", "return false", true, false), 1);
    CHECK_HAS(attn_str_text(&report), "it accepts no class of problems on any device profile");
    CHECK_CASE("fault");
    CHECK_EQ_INT(lint("rows = c.A", "row = c.A", true, false), 1);
    CHECK_HAS(attn_str_text(&report), "spaces/cpu/t.lua:19: launch: a step has no field 'row'");
}

/* Every embedded family and the toy families pass the rules that need no compiler. */
static void all_families(void) {
    attn_gen *gen = NULL;
    char path[1024];
    const char *source = getenv("ATTN_SOURCE");
    (void)snprintf(path, sizeof path, "%s/tests/toy", source ? source : ".");
    CHECK_OK(attn_gen_open(path, &gen, &err), err.line);
    for (size_t i = 0; gen && i < attn_gen_family_count(gen); i++) {
        const char *name = attn_gen_family_name(gen, i);
        size_t faults = 0;
        CHECK_CASE("%s", name);
        attn_str_clear(&report);
        if (strncmp(name, "fake/", 5) == 0)
            continue; /* there is no profile of the fake device */
        CHECK_OK(attn_gen_lint(gen, name, NULL, keep_line, NULL, &faults, &err), err.line);
        CHECK_EQ_INT(faults, 0);
        CHECK_STR(attn_str_text(&report), "");
    }
    attn_gen_close(gen);
}

int main(void) {
    right();
    reads();
    reachable();
    different();
    nothing_accepted();
    all_families();
    attn_str_free(&report);
    return check_done();
}
