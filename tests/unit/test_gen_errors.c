/* test_gen_errors.c: every fault in a space file or template names its own file and line, and the
 * nearest right form. Each case changes one piece of a right family (overlay.h). */
#include "check.h"
#include "core/problem.h"
#include "gen_internal.h"
#include "overlay.h"

static attn_error err = ATTN_ERROR_INIT;

enum step { LOAD, OPEN, LIST, DEFAULT, RENDER };

static const struct fault {
    const char *from, *to; /* in the space file, or, where it has no such piece, in the template */
    enum step step;        /* that meets the fault */
    const char *line;
} faults[] = {
    /* Space files as Lua. */
    {"name = \"t\"", "name = = 1", LOAD, "spaces/cpu/t.lua:2: unexpected symbol near '='"},
    {"return family", "return", LOAD, "spaces/cpu/t.lua:1: a space file ends with return family"},
    {"doc = \"A test.\"", "doc = os.time()", LOAD, "spaces/cpu/t.lua:3: unknown name 'os'"},
    {"doc = \"A test.\"", "doc = strin.rep('x', 2)", LOAD,
     "spaces/cpu/t.lua:3: unknown name 'strin'; did you mean 'string'?"},
    {"return family", "x = 1\nreturn family", LOAD,
     "spaces/cpu/t.lua:1: globals cannot be assigned: write 'local x'"},
    {"return family", "string.x = 1\nreturn family", LOAD,
     "spaces/cpu/t.lua:1: string cannot be changed"},
    {"return family", "math.random()\nreturn family", LOAD,
     "spaces/cpu/t.lua:1: attempt to call a nil value (field 'random')"},
    /* Fields of a family. */
    {"accepts =", "acepts =", LOAD,
     "spaces/cpu/t.lua:4: a family has no field 'acepts'; did you mean 'accepts'?"},
    {"doc = \"A test.\",", "", LOAD, "spaces/cpu/t.lua:1: the field 'doc' (a string) is missing"},
    {"doc = \"A test.\"", "doc = 7", LOAD,
     "spaces/cpu/t.lua:3: 'doc' is a number; it must be a string"},
    {"name = \"t\"", "name = \"u\"", LOAD,
     "spaces/cpu/t.lua:2: the file is cpu/t, so backend is 'cpu' and name is 't'"},
    {"\"forward\"", "\"foward\"", LOAD,
     "spaces/cpu/t.lua:2: no operation 'foward'; did you mean 'forward'?"},
    {"cpu/t.c", "cpu/t.cpp", LOAD,
     "spaces/cpu/t.lua:3: the template of cpu/t is cpu/t.c, .cu or .ptx, not 'cpu/t.cpp'"},
    {"{ \"B\", { 1, 2 }, \"second\" }", "{ \"A\", { 1, 2 }, \"second\" }", LOAD,
     "spaces/cpu/t.lua:6: parameter A stands twice"},
    {"{ \"B\", { 1, 2 }", "{ \"B\", { 1, 1 }", LOAD, "spaces/cpu/t.lua:7: B has the value 1 twice"},
    {"{ \"B\", { 1, 2 }", "{ \"B\", { 1.5, 2 }", LOAD,
     "spaces/cpu/t.lua:7: a value of B is '1.5': values are integers, words or booleans"},
    {"{ \"B\", { 1, 2 }", "{ \"B\", { 1, \"a b\" }", LOAD,
     "spaces/cpu/t.lua:7: a value of B is 'a b': values are integers, words or booleans"},
    {"{ \"B\", { 1, 2 }", "{ \"B\", { }", LOAD,
     "spaces/cpu/t.lua:7: parameter B needs a list of 1 to 64 values"},
    {"\"B\", { 1, 2 }, \"second\"", "\"B\", { 1, 2 }", LOAD,
     "spaces/cpu/t.lua:7: parameter B needs its doc, a text"},
    {"{ \"B\", {", "{ \"math\", {", LOAD,
     "spaces/cpu/t.lua:5: parameter 2: 'math' cannot be a parameter's name"},
    {"core = { A", "core = { AA", LOAD,
     "spaces/cpu/t.lua:10: core: no parameter 'AA'; did you mean 'A'?"},
    {"core = { A = { 1, 2 }", "core = { A = { 1, 4 }", LOAD,
     "spaces/cpu/t.lua:10: core: A has no value '4'; it has 1 2 3"},
    {"{ \"A\", \"B\" }, function", "{ \"A\", \"C\" }, function", LOAD,
     "spaces/cpu/t.lua:15: 'the sum is small' reads 'C', which is no parameter"},
    {"core =", "specialise = { \"seq_k\" }, core =", LOAD,
     "spaces/cpu/t.lua:10: 'seq_k' is no run-time field; did you mean 'seq_q'?"},
    /* What its functions see. */
    {"p.head_dim <= 128", "p.seq_kv <= 128", OPEN,
     "spaces/cpu/t.lua:4: p.seq_kv is a run-time field: a family that needs it while rendering "
     "lists it, specialise = { \"seq_kv\" }"},
    {"p.head_dim <= 128", "p.hed_dim <= 128", OPEN,
     "spaces/cpu/t.lua:4: a class has no field 'hed_dim'; did you mean 'head_dim'?"},
    {"p.head_dim <= 128", "p.layout == 1", OPEN, "spaces/cpu/t.lua:4: p.layout is unknown here"},
    {"p.head_dim <= 128", "dev.avx521f == 1", OPEN,
     "spaces/cpu/t.lua:4: no device has a property 'avx521f'; did you mean 'avx512f'?"},
    {"p.head_dim <= 128", "dev.fma", OPEN,
     "spaces/cpu/t.lua:4: accepts: it returned 1, not true or false (numbers are compared: "
     "dev.fma == 1)"},
    {"return c.SUM < 5", "return c.SUM < 5 and c.WORD == 'x'", LIST,
     "spaces/cpu/t.lua:17: 'the sum is small' reads WORD, which it does not list"},
    {"return c.SUM < 5", "return c.TEXT == ''", LIST,
     "spaces/cpu/t.lua:17: 'the sum is small' reads TEXT, but derive reads WORD before it sets "
     "that: list WORD too, or set it earlier"},
    {"return c.SUM < 5", "return c.SUN < 5", LIST,
     "spaces/cpu/t.lua:17: 'the sum is small' reads SUN"},
    {"return c.SUM < 5", "local x = c.SUM", LIST,
     "spaces/cpu/t.lua:16: 'the sum is small': it returned nil, not true or false"},
    {"return c.SUM < 5", "c.A = 1", LIST, "spaces/cpu/t.lua:17: c.A: c cannot be changed"},
    {"return c.SUM < 5", "return p.head_dim > 1", LIST, "spaces/cpu/t.lua:17: unknown name 'p'"},
    {"c.SUM = c.A + c.B", "c.A = 5", LIST,
     "spaces/cpu/t.lua:12: derive cannot set 'A': it has a meaning already"},
    {"c.SUM = c.A + c.B", "c.SUM = 1 c.SUM = 2", LIST,
     "spaces/cpu/t.lua:12: derive sets 'SUM' twice: each name is set once"},
    {"c.SUM = c.A + c.B", "c.SUM = c.A + c.BB", LIST,
     "spaces/cpu/t.lua:12: no parameter 'BB', and derive has not set it yet"},
    {"c.SUM = c.A + c.B", "c.SUM = c.A + nil", LIST,
     "spaces/cpu/t.lua:12: attempt to perform arithmetic on a nil value"},
    /* defaults */
    {"A = 1, B = 2, WORD", "A = 1, WORD", DEFAULT, "spaces/cpu/t.lua:23: defaults: B is missing"},
    {"A = 1, B = 2, WORD", "A = 9, B = 2, WORD", DEFAULT,
     "spaces/cpu/t.lua:23: defaults: A has no value '9'; it has 1 2 3"},
    {"A = 1, B = 2, WORD", "A = 1, B = 2, WROD = 1, WORD", DEFAULT,
     "spaces/cpu/t.lua:23: defaults: no parameter 'WROD'; did you mean 'WORD'?"},
    {"A = 1, B = 2, WORD", "A = 3, B = 2, WORD", DEFAULT,
     "spaces/cpu/t.lua: the default of fwd:f32:d64:dv64:none:a16 is: rejected: the sum is small"},
    /* launch and options */
    {"rows = c.A", "row = c.A", RENDER,
     "spaces/cpu/t.lua:19: launch: a step has no field 'row'; did you mean 'rows'?"},
    {"grid = \"tiles\", ", "", RENDER, "spaces/cpu/t.lua:19: launch: a step needs 'grid'"},
    {"\"tiles\"", "\"tile\"", RENDER,
     "spaces/cpu/t.lua:19: launch: grid of a step is 'tile'; it must be one of tiles kv_tiles "
     "split "
     "persistent; did you mean 'tiles'?"},
    {"rows = c.A", "rows = 0", RENDER,
     "spaces/cpu/t.lua:19: launch: rows=0 is not a number from 1"},
    {"rows = c.A", "rows = c.A / 2", RENDER,
     "spaces/cpu/t.lua:19: launch: rows of a step is '0.5'"},
    {"rows = c.A } }", "rows = c.A }, limit = {} }", RENDER,
     "spaces/cpu/t.lua:19: launch: a launch record has no field 'limit'; did you mean 'limits'?"},
    {"rows = c.A } }", "rows = c.A }, limits = { { field = \"seq\" } } }", RENDER,
     "spaces/cpu/t.lua:19: launch: field of a limit is 'seq'; it must be one of batch heads_q"},
    {"return { { grid = \"tiles\", rows = c.A } }", "return nil", RENDER,
     "spaces/cpu/t.lua:19: launch: it returns a list of 1 to 3 steps"},
    {"{ flags =", "{ flag =", RENDER,
     "spaces/cpu/t.lua:22: options: unknown field 'flag'; did you mean 'flags'?"},
    {"\"-O\" .. c.B", "\"-O 2\"", RENDER,
     "spaces/cpu/t.lua:22: options: '-O 2' is no compiler flag"},
    {"\"-O\" .. c.B", "\"-O2;reboot\"", RENDER,
     "spaces/cpu/t.lua:22: options: '-O2;reboot' is no compiler flag"},
    /* Templates: Lua's syntax, names, values. */
    {"//@ for i = 1, B do", "//@ for i = 1, B", RENDER,
     "templates/cpu/t.c:3: 'do' expected at the end of the Lua line"},
    {"//@ end\n", "\n", RENDER, "templates/cpu/t.c:7: 'end' expected (to close 'for' at line 3)"},
    {"//@ for i = 1, B do", "//@ for i = 1 B do", RENDER,
     "templates/cpu/t.c:3: ',' expected near 'B'"},
    {"//@ for i = 1, B do", "//@ for i = 1, nil do", RENDER,
     "templates/cpu/t.c:3: bad 'for' limit (number expected, got nil)"},
    {"//@ for i = 1, B do", "//@ n = 1 for i = 1, B do", RENDER,
     "templates/cpu/t.c:3: globals cannot be assigned: write 'local n'"},
    {"f$(i)_$(WORD)", "f$(i)_$(WROD)", RENDER,
     "templates/cpu/t.c:4: unknown template name 'WROD'; did you mean 'WORD'?"},
    {"f$(i)_$(WORD)", "f$(i)_$(io.open)", RENDER,
     "templates/cpu/t.c:4: unknown template name 'io'"},
    {"f$(i)_$(WORD)", "f$(i)_$(WORD", RENDER, "templates/cpu/t.c:4: $( without its )"},
    {"f$(i)_$(WORD)", "f$(i)_$()", RENDER, "templates/cpu/t.c:4: $() is empty"},
    {"f$(i)_$(WORD)", "f$(i)_$(a b)", RENDER, "templates/cpu/t.c:4: ')' expected near 'b'"},
    {"f$(i)_$(WORD)", "f$(i)_$(1, 2)", RENDER, "templates/cpu/t.c:4: ')' expected near ','"},
    {"f$(i)_$(WORD)", "f$(i)_$('a)", RENDER, "templates/cpu/t.c:4: unfinished string in $(...)"},
    {"f$(i)_$(WORD)", "f$(i)_$([[a)", RENDER, "templates/cpu/t.c:4: unfinished string in $(...)"},
    {"f$(i)_$(WORD)", "f$(i)_$(7 // 2)", RENDER,
     "templates/cpu/t.c:4: // in $(...) begins a comment for every C tool: use floor_div(a, b)"},
    {"f$(i)_$(WORD)", "f$(i)_$(A -- x\n)", RENDER,
     "templates/cpu/t.c:4: $(...) holds an expression, no comment"},
    {"f$(i)_$(WORD)", "f$(i)_$(7 / 2)", RENDER,
     "templates/cpu/t.c:4: 7 / 2 is not an integer: use ceil_div or floor_div"},
    {"f$(i)_$(WORD)", "f$(i)_$(7 / 2 * 2)", RENDER, "templates/cpu/t.c:4: 7 / 2 is not an integer"},
    {"f$(i)_$(WORD)", "f$(i)_$(7 / 0)", RENDER, "templates/cpu/t.c:4: division by zero"},
    {"f$(i)_$(WORD)", "f$(i)_$(0.5)", RENDER, "templates/cpu/t.c:4: 0.5 is not an integer"},
    {"f$(i)_$(WORD)", "f$(i)_$(({}).x)", RENDER, "templates/cpu/t.c:4: the value of $(...) is nil"},
    {"f$(i)_$(WORD)", "f$(i)_$({})", RENDER, "templates/cpu/t.c:4: a table has no text"},
    {"f$(i)_$(WORD)", "f$(i)_$(ceil_div)", RENDER, "templates/cpu/t.c:4: a function has no text"},
    {"f$(i)_$(WORD)", "f$(i)_$(tostring({}))", RENDER,
     "templates/cpu/t.c:4: tostring's argument has no text: it is a table"},
    {"f$(i)_$(WORD)", "f$(i)_$(string.format('%p', 'x'))", RENDER,
     "templates/cpu/t.c:4: format has no %p here"},
    {"f$(i)_$(WORD)", "f$(i)_$(ceil_div(1.5, 2))", RENDER,
     "templates/cpu/t.c:4: ceil_div's first argument is 1.5, not an integer"},
    {"f$(i)_$(WORD)", "f$(i)_$(error('no such tile'))", RENDER,
     "templates/cpu/t.c:4: no such tile"},
    {"f$(i)_$(WORD)", "f$(i)_$('\\0')", RENDER, "templates/cpu/t.c: a value holds a zero byte"},
    {"f$(i)_$(WORD)", "f$(\n\n7 / 2)", RENDER, "templates/cpu/t.c:6: 7 / 2 is not an integer"},
    {"f$(i)_$(WORD)", "f$(p.batch)", RENDER, "templates/cpu/t.c:4: p.batch is a run-time field"},
    {"attn_abi.h", "attn_api.h", RENDER,
     "templates/cpu/t.c:1: there is no templates/include/attn_api.h; did you mean attn_abi.h?"},
    /* The sandbox, its bounds included. */
    {"f$(i)_$(WORD)", "f$(i)_$(('x').dump(ceil_div))", RENDER,
     "templates/cpu/t.c:4: attempt to call a nil value (field 'dump')"},
    {"f$(i)_$(WORD)", "f$(i)_$(pcall(error))", RENDER, "unknown template name 'pcall'"},
    {"f$(i)_$(WORD)", "f$(i)_$(getmetatable('').__index)", RENDER,
     "unknown template name 'getmetatable'"},
    {"f$(i)_$(WORD)", "f$(i)_$(collectgarbage())", RENDER,
     "unknown template name 'collectgarbage'"},
    {"f$(i)_$(WORD)", "f$(i)_$(('x'):find('x'))", RENDER,
     "attempt to call a nil value (method 'find')"},
    {"//@ end", "while true do end end", RENDER, "templates/cpu/t.c:7: 'end' expected"},
    {"//@ end", "//@ while true do end end", RENDER,
     "templates/cpu/t.c:5: it takes more than 20 million steps: an endless loop?"},
    {"f$(i)_$(WORD)", "f$(i)_$(('x'):rep(1 << 40))", RENDER,
     "templates/cpu/t.c:4: it takes more than 20 million steps: an endless loop?"},
    {"f$(i)_$(WORD)", "f$(i)_$((''):rep(1 << 60))", RENDER,
     "templates/cpu/t.c:4: it takes more than 20 million steps: an endless loop?"},
    {"f$(i)_$(WORD)", "f$(i)_$(#('x'):rep(1900000))", RENDER, "it takes more than 1 MiB of memory"},
    {"//@ end", "//@ local t = {} while true do t[#t + 1] = {} end end", RENDER,
     "templates/cpu/t.c:5: it takes more than 1 MiB of memory"},
    {"//@ end", "//@ local function f() return f() + 1 end f() end", RENDER,
     "templates/cpu/t.c:5: it takes more than"},
    {"return c.SUM < 5", "while true do end", LIST,
     "spaces/cpu/t.lua:17: it takes more than 20 million steps: an endless loop?"},
    {"c.SUM = c.A + c.B", "while true do end", LIST,
     "spaces/cpu/t.lua:12: it takes more than 20 million steps: an endless loop?"},
    {"return family", "while true do end\nreturn family", LOAD,
     "spaces/cpu/t.lua:1: it takes more than 20 million steps: an endless loop?"},
};

static attn_status run(attn_gen *gen, enum step step) {
    attn_problem problem;
    attn_device_info device;
    attn_family_info info;
    attn_space *space = NULL;
    attn_config_list list;
    attn_config config;
    attn_variant variant;
    if (attn_gen_family(gen, "t", &info, &err) != ATTN_OK || step == LOAD)
        return err.status;
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h2:s64:d64", &problem, NULL, 0), "");
    CHECK_OK(attn_gen_profile(gen, "cpu:avx2", &device, &err), err.line);
    if (attn_space_open(gen, "t", &problem, &device, &space, &err) != ATTN_OK)
        return err.status;
    if (step == LIST) {
        if (attn_space_list(space, false, SIZE_MAX, &list, &err) == ATTN_OK)
            attn_config_list_free(&list);
    } else if (step > LIST && attn_space_default(space, &config, &err) == ATTN_OK &&
               step == RENDER) {
        if (attn_space_render(space, &config, &variant, &err) == ATTN_OK)
            attn_variant_free(&variant);
    }
    attn_space_close(space);
    return err.status;
}

static void check_fault(const struct fault *f) {
    char folder[64];
    attn_gen *gen = NULL;
    bool in_space = strstr(OVERLAY_SPACE, f->from) != NULL;
    CHECK_CASE("%s", f->to);
    overlay_make(folder);
    overlay_write_changed(folder, "spaces/cpu/t.lua", OVERLAY_SPACE, in_space ? f->from : NULL,
                          f->to);
    overlay_write_changed(folder, "templates/cpu/t.c", OVERLAY_TEMPLATE, in_space ? NULL : f->from,
                          f->to);
    err = (attn_error)ATTN_ERROR_INIT;
    if (CHECK_OK(attn_gen_open(folder, &gen, &err), err.line)) {
        attn_gen_bounds(gen, (size_t)1 << 20, 20000000);
        CHECK_STATUS(run(gen, f->step), ATTN_ERR_TEMPLATE, err.line);
        CHECK_HAS(err.line, f->line);
        if (strncmp(f->line, "spaces/", 7) == 0 || strncmp(f->line, "templates/", 10) == 0)
            CHECK(strncmp(err.line, folder, strlen(folder)) == 0); /* it begins with the path */
        CHECK(strchr(err.line, '\n') == NULL);
    }
    /* A broken family does not stop the others. */
    attn_family_info info;
    CHECK_STATUS(attn_gen_family(gen, "nothing", &info, &err), ATTN_ERR_NOT_FOUND, err.line);
    attn_gen_close(gen);
    overlay_remove(folder);
}

static void right_family(void) {
    char folder[64];
    attn_gen *gen = NULL;
    CHECK_CASE("the family without a fault");
    overlay_make(folder);
    overlay_write(folder, "spaces/cpu/t.lua", OVERLAY_SPACE);
    overlay_write(folder, "templates/cpu/t.c", OVERLAY_TEMPLATE);
    CHECK_OK(attn_gen_open(folder, &gen, &err), err.line);
    for (int step = LOAD; step <= RENDER; step++)
        CHECK_OK(run(gen, (enum step)step), err.line);
    attn_gen_close(gen);
    overlay_remove(folder);
}

static void missing_folder(void) {
    attn_gen *gen = NULL;
    CHECK_CASE("missing folder");
    CHECK_STATUS(attn_gen_open("/nonexistent/folder", &gen, &err), ATTN_ERR_NOT_FOUND, err.line);
    CHECK_HAS(err.line, "names '/nonexistent/folder', which is no folder");
    CHECK(gen == NULL);
}

static void missing_template(void) {
    char folder[64];
    attn_gen *gen = NULL;
    CHECK_CASE("missing template");
    overlay_make(folder);
    overlay_write(folder, "spaces/cpu/t.lua", OVERLAY_SPACE);
    err = (attn_error)ATTN_ERROR_INIT;
    CHECK_OK(attn_gen_open(folder, &gen, &err), err.line);
    CHECK_STATUS(run(gen, RENDER), ATTN_ERR_TEMPLATE, err.line);
    CHECK_HAS(err.line, "/spaces/cpu/t.lua:3: there is no file templates/cpu/t.c");
    CHECK(strncmp(err.line, folder, strlen(folder)) == 0);
    attn_gen_close(gen);
    overlay_remove(folder);
}

int main(void) {
    right_family();
    missing_folder();
    missing_template();
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        check_fault(&faults[i]);
    return check_done();
}
