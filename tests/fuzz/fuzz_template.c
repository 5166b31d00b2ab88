/* fuzz_template.c: any text as a template: it never crashes, hangs or grows without bound, it ends
 * in a text or in one line that says why not, and twice in the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char script[] =
    "local engine, text = ...\n"
    "local names = { A = 3, B = 4, WORD = 'word', L = { 1, 2, 3 } }\n"
    "local env = engine.lib.environment(function(key) return names[key] end,\n"
    "  function() return { 'A', 'B', 'WORD', 'L' } end, 'template name')\n"
    "return engine.template.run('t.c', engine.template.compile('t.c', text, env))\n";

static void expect(bool holds, const char *what, const char *line) {
    if (holds)
        return;
    fprintf(stderr, "%s: %s\n", what, line);
    abort();
}

static attn_status expand(attn_gen *gen, const char *text, attn_str *out, attn_error *err) {
    attn_str raw = ATTN_STR_INIT;
    attn_status st = attn_gen_script(gen, "fuzz", script, text, &raw, err);
    if (st == ATTN_OK)
        st = attn_source_paste(&gen->files, "t.c", attn_str_text(&raw), out, err);
    attn_str_free(&raw);
    return st;
}

/* Text without Lua comes out as it is, beside #line lines and a newline at the end. */
static bool is_plain(const char *out, const char *text) {
    while (*out) {
        size_t size = strcspn(out, "\n") + 1, left = strlen(text);
        if (strncmp(out, "#line ", 6) != 0) {
            size_t n = size <= left ? size : left;
            if (strncmp(out, text, n) != 0)
                return false;
            text += n;
        }
        out += size;
    }
    return *text == '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static attn_gen *gen;
    attn_error err = ATTN_ERROR_INIT, again = ATTN_ERROR_INIT;
    attn_str first = ATTN_STR_INIT, second = ATTN_STR_INIT;
    char *text = malloc(size + 1);
    if (!gen) {
        expect(attn_gen_open(NULL, &gen, &err) == ATTN_OK, "open", err.line);
        attn_gen_bounds(gen, (size_t)4 << 20, 60000);
    }
    expect(text != NULL, "memory", "");
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    attn_status st = expand(gen, text, &first, &err);
    expect(st == ATTN_OK || (st == ATTN_ERR_TEMPLATE && err.line[0]), "status", err.line);
    expect(expand(gen, text, &second, &again) == st, "the second time", again.line);
    expect(strcmp(attn_str_text(&first), attn_str_text(&second)) == 0, "two texts", text);
    expect(gen->lua.memory < (size_t)8 << 20, "memory in use", "");
    if (st == ATTN_OK && !strstr(text, "//@") && !strstr(text, "$(") && !strchr(text, '\r') &&
        !strchr(text, '#'))
        expect(is_plain(attn_str_text(&first), text), "plain text", text);
    attn_str_free(&first);
    attn_str_free(&second);
    free(text);
    return 0;
}
