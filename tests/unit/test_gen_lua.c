/* test_gen_lua.c: runs the Lua tests of tests/lua in the embedded Lua, on the shipped scripts. */
#include <dirent.h>

#include "check.h"
#include "core/str.h"
#include "gen_internal.h"

static attn_error err = ATTN_ERROR_INIT;

static void run(attn_gen *gen, const char *source, const char *name) {
    attn_str text = ATTN_STR_INIT, report = ATTN_STR_INIT;
    char path[2048], chunk[512];
    CHECK_CASE("%s", name);
    (void)snprintf(path, sizeof path, "%s/tests/lua/%s", source, name);
    (void)snprintf(chunk, sizeof chunk, "@tests/lua/%s", name);
    if (CHECK_OK(attn_str_read_file(&text, path, &err), err.line) &&
        CHECK_OK(attn_gen_script(gen, chunk, attn_str_text(&text), "", &report, &err), err.line)) {
        CHECK_STR(attn_str_text(&report), "");
    }
    attn_str_free(&text);
    attn_str_free(&report);
}

static int is_script(const struct dirent *entry) {
    size_t n = strlen(entry->d_name);
    return n > 4 && strcmp(entry->d_name + n - 4, ".lua") == 0;
}

int main(void) {
    const char *source = getenv("ATTN_SOURCE");
    struct dirent **names;
    char folder[1024];
    if (!source)
        check_skip("ATTN_SOURCE is not set");
    (void)snprintf(folder, sizeof folder, "%s/tests/lua", source);
    int count = scandir(folder, &names, is_script, alphasort);
    CHECK(count > 0);
    for (int i = 0; i < count; i++) {
        attn_gen *gen = NULL;
        CHECK_OK(attn_gen_open(NULL, &gen, &err), err.line);
        run(gen, source, names[i]->d_name);
        attn_gen_close(gen);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return check_done();
}
