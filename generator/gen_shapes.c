/* gen_shapes.c: the lines of a shape file that are for one backend. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gen_internal.h"

static const char *const SECTIONS[] = {"all", "cpu", "cuda", "fake"};
enum { N_SECTIONS = sizeof SECTIONS / sizeof SECTIONS[0] };

/* The section that a line "[cpu]" opens; NULL if it is no such line. */
static const char *section(const char *line, size_t size) {
    for (size_t i = 0; i < N_SECTIONS; i++) {
        size_t n = strlen(SECTIONS[i]);
        if (size >= n + 2 && line[0] == '[' && strncmp(line + 1, SECTIONS[i], n) == 0 &&
            line[n + 1] == ']' && strspn(line + n + 2, " \t\r") >= size - n - 2)
            return SECTIONS[i];
    }
    return NULL;
}

attn_status attn_gen_shapes(attn_gen *gen, const char *name, const char *backend, char **text,
                            attn_error *err) {
    ATTN_TRY(attn_gen_file(gen, name, text, err));
    bool wanted = true;
    int number = 1;
    for (char *line = *text; *line; number++) {
        size_t size = strcspn(line, "\n");
        const char *opened = section(line, size);
        if (line[0] == '[' && !opened) {
            attn_status st =
                attn_fail(err, ATTN_ERR_INVALID, "%s:%d: '%.*s' is not [cpu], [cuda] or [all]",
                          name, number, size < 32 ? (int)size : 32, line);
            free(*text);
            *text = NULL;
            return st;
        }
        if (opened)
            wanted = !backend || strcmp(opened, "all") == 0 || strcmp(opened, backend) == 0;
        if (opened || !wanted)
            memset(line, ' ', size);
        line += size + (line[size] == '\n');
    }
    return ATTN_OK;
}
