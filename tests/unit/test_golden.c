/* test_golden.c: what the default of every family is rendered to, against tests/golden.
 *
 * ATTN_UPDATE_GOLDEN=1 rewrites the files; their diffs are to be reviewed. Helpers are left out:
 * a golden file changes with its own template, space or engine only. */
#include "check.h"
#include "core/problem.h"
#include "core/str.h"
#include "gen.h"

static attn_error err = ATTN_ERROR_INIT;
static const char *source;

/* Appends the text without the parts that come from templates/include. */
static void append_own(attn_str *out, const char *text) {
    bool own = true;
    while (*text) {
        size_t size = strcspn(text, "\n") + 1;
        if (strncmp(text, "#line ", 6) == 0)
            own = strncmp(strchr(text, '"'), "\"templates/include/", 19) != 0;
        if (own)
            attn_str_append_bytes(out, text, size);
        text += size;
    }
}

/* The first of these problems and profiles that the family accepts. */
static attn_status open_first(attn_gen *gen, const char *family, attn_space **space,
                              const char **arch) {
    static const char *const problems[] = {"fwd:f32:b1:h4:s1024:d64:causal",
                                           "fwd:f16:b1:h4:s1024:d128:causal",
                                           "fwd:bf16:b1:h4:s1024:d128:causal"};
    attn_device_info fake = {.backend = "fake", .arch = "fake"};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        attn_problem problem;
        CHECK_OK(attn_problem_parse(problems[i], &problem, NULL, 0), "");
        for (size_t d = 0; (*arch = attn_gen_profile_name(gen, d)); d++) {
            attn_device_info device;
            ATTN_TRY(attn_gen_profile(gen, *arch, &device, &err));
            attn_status st = attn_space_open(gen, family, &problem, &device, space, &err);
            if (st != ATTN_ERR_NOT_ACCEPTED)
                return st;
        }
        *arch = "fake";
        attn_status st = attn_space_open(gen, family, &problem, &fake, space, &err);
        if (st != ATTN_ERR_NOT_ACCEPTED)
            return st;
    }
    return err.status;
}

static attn_status describe(attn_gen *gen, const char *family, attn_str *out) {
    attn_space *space = NULL;
    attn_config config;
    attn_variant variant;
    const char *arch;
    ATTN_TRY(open_first(gen, family, &space, &arch));
    attn_status st = attn_space_default(space, &config, &err);
    if (st == ATTN_OK)
        st = attn_space_render(space, &config, &variant, &err);
    if (st == ATTN_OK) {
        attn_str_append_f(out, "family %s\narch %s\nclass %s\nconfig %s\noptions %s\n%s\n",
                          variant.family, arch, variant.class_text, variant.config, variant.options,
                          variant.launch);
        append_own(out, variant.source);
        attn_variant_free(&variant);
    }
    attn_space_close(space);
    return st;
}

/* Number of the first line in which a and b differ. */
static int first_difference(const char *a, const char *b) {
    int line = 1;
    for (; *a && *a == *b; a++, b++)
        line += *a == '\n';
    return line;
}

static void check_family(attn_gen *gen, const char *family) {
    attn_str is = ATTN_STR_INIT, want = ATTN_STR_INIT;
    char path[1024];
    CHECK_CASE("%s", family);
    (void)snprintf(path, sizeof path, "%s/tests/golden/%s.txt", source, family);
    *strrchr(path, '/') = '_';
    if (CHECK_OK(describe(gen, family, &is), err.line)) {
        if (getenv("ATTN_UPDATE_GOLDEN")) {
            FILE *f = fopen(path, "w");
            if (CHECK(f != NULL)) {
                CHECK(fputs(attn_str_text(&is), f) >= 0);
                CHECK(fclose(f) == 0);
            }
        }
        if (attn_str_read_file(&want, path, &err) != ATTN_OK)
            check_that(false, path, 1, "%s; record it with ATTN_UPDATE_GOLDEN=1", err.line);
        else if (strcmp(attn_str_text(&is), attn_str_text(&want)) != 0)
            check_that(false, path, first_difference(attn_str_text(&is), attn_str_text(&want)),
                       "the rendered default differs from here on; if it should, record it with "
                       "ATTN_UPDATE_GOLDEN=1");
    }
    attn_str_free(&is);
    attn_str_free(&want);
}

int main(void) {
    attn_gen *gen = NULL;
    char path[1024];
    source = getenv("ATTN_SOURCE");
    if (!source)
        check_skip("ATTN_SOURCE is not set");
    (void)snprintf(path, sizeof path, "%s/tests/toy", source);
    CHECK_OK(attn_gen_open(path, &gen, &err), err.line);
    for (size_t i = 0; gen && i < attn_gen_family_count(gen); i++)
        check_family(gen, attn_gen_family_name(gen, i));
    attn_gen_close(gen);
    return check_done();
}
