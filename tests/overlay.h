/* overlay.h: a temporary overlay folder with one family, cpu/t, for tests of the generator.
 *
 * OVERLAY_SPACE and OVERLAY_TEMPLATE are right; a test replaces one piece of them. */
#ifndef ATTN_TEST_OVERLAY_H
#define ATTN_TEST_OVERLAY_H

#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static const char OVERLAY_SPACE[] =
    "return family {\n"
    "  name = \"t\", op = \"forward\", backend = \"cpu\",\n"
    "  template = \"cpu/t.c\", doc = \"A test.\",\n"
    "  accepts = function(p, dev) return p.head_dim <= 128 end,\n"
    "  params = {\n"
    "    { \"A\", { 1, 2, 3 }, \"first\" },\n"
    "    { \"B\", { 1, 2 }, \"second\" },\n"
    "    { \"WORD\", { \"x\", \"y\" }, \"third\" },\n"
    "  },\n"
    "  core = { A = { 1, 2 } },\n"
    "  derive = function(c, p)\n"
    "    c.SUM = c.A + c.B\n"
    "    c.TEXT = c.WORD .. p.head_dim\n"
    "  end,\n"
    "  require = {\n"
    "    { \"the sum is small\", { \"A\", \"B\" }, function(c)\n"
    "      return c.SUM < 5 end },\n"
    "  },\n"
    "  launch = function(c, p, dev)\n"
    "    return { { grid = \"tiles\", rows = c.A } }\n"
    "  end,\n"
    "  options = function(c) return { flags = { \"-O\" .. c.B } } end,\n"
    "  defaults = function(p) return { A = 1, B = 2, WORD = \"x\" } end,\n"
    "}\n";

static const char OVERLAY_TEMPLATE[] =
    "#include \"attn_abi.h\"\n"
    "enum { A = $(A), SUM = $(SUM) };\n"
    "//@ for i = 1, B do\n"
    "int f$(i)_$(WORD)(void);\n"
    "//@ end\n"
    "const char *text = \"$(TEXT)\";\n"
    "int $(KERNEL)(const attn_forward_args *a, int task, int w);\n";

__attribute__((unused)) static void overlay_write(const char *folder, const char *name,
                                                  const char *text) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    if (!CHECK(f != NULL))
        exit(1);
    CHECK(fputs(text, f) >= 0);
    CHECK(fclose(f) == 0);
}

/* Writes `text` with the first `from` in it replaced by `to` (from NULL: as it is). */
__attribute__((unused)) static void overlay_write_changed(const char *folder, const char *name,
                                                          const char *text, const char *from,
                                                          const char *to) {
    char *changed = malloc(strlen(text) + (to ? strlen(to) : 0) + 1);
    if (!CHECK(changed != NULL))
        exit(1);
    strcpy(changed, text);
    if (from) {
        const char *at = strstr(text, from);
        if (!CHECK(at != NULL))
            exit(1);
        strcpy(changed + (at - text), to);
        strcat(changed, at + strlen(from));
    }
    overlay_write(folder, name, changed);
    free(changed);
}

/* Makes a fresh folder; the caller gives room for its path. */
__attribute__((unused)) static void overlay_make(char folder[64]) {
    strcpy(folder, "/tmp/attn_overlay_XXXXXX");
    if (!CHECK(mkdtemp(folder) != NULL))
        exit(1);
}

__attribute__((unused)) static void overlay_remove(const char *folder) {
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
}

#endif
