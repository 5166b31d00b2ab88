/* test_launch.c: launch records: text form, task numbering, workspace and limits. */
#include "check.h"

#include "core/launch.h"

static const char RECORD[] =
    "step symbol=pack grid=kv_tiles rows=64\n"
    "step symbol=attend threads=128 grid=tiles rows=32 order=longest_first deal=static\n"
    "workspace bytes=100 per=worker\n"
    "workspace bytes=256 per=key round=48\n"
    "zero_bytes 64\n"
    "tensor_map tensor=q rank=5 rows=64 swizzle=128\n"
    "limit field=seq_kv min=1 max=- multiple_of=64\n"
    "limit field=group min=1 max=1\n";

static attn_problem parse_problem(const char *text) {
    attn_problem p = {0};
    char error[256] = "";
    CHECK_OK(attn_problem_parse(text, &p, error, sizeof error), error);
    return p;
}

static attn_launch parse(const char *text) {
    attn_launch l;
    attn_error err = ATTN_ERROR_INIT;
    CHECK_OK(attn_launch_parse(text, &l, &err), err.line);
    return l;
}

static void test_text(void) {
    attn_launch a = parse(RECORD);
    attn_str once = ATTN_STR_INIT, twice = ATTN_STR_INIT;
    CHECK_EQ_INT(a.steps, 2);
    CHECK_STR(a.step[1].symbol, "attend");
    CHECK_EQ_INT(a.step[1].order, ATTN_ORDER_LONGEST_FIRST);
    CHECK_EQ_INT(a.step[1].deal, ATTN_DEAL_STATIC);
    CHECK_EQ_INT(a.step[0].deal, ATTN_DEAL_DYNAMIC);
    CHECK_EQ_INT(a.limit[0].max, INT64_MAX);
    CHECK_EQ_INT(a.map[0].tensor, 'q');
    CHECK_EQ_INT(a.zero_bytes, 64);
    attn_launch_print(&a, &once);
    attn_launch b = parse(attn_str_text(&once));
    attn_launch_print(&b, &twice);
    CHECK_STR(attn_str_text(&twice), attn_str_text(&once));
    // Parsing starts from zeroed bytes, padding included.
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    attn_str_free(&once);
    attn_str_free(&twice);
}

static void test_faults(void) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "at least one step"},
        {"step symbol=x grid=tiles", "lacks rows"},
        {"step symbol=x-y grid=tiles rows=1", "is no C name"},
        {"step symbol=x grid=round rows=1", "grid=round is unknown"},
        {"step symbol=x grid=tiles rows=0", "rows=0 is not a number from 1"},
        {"step symbol=x grid=tiles rows=1 rows=2", "rows stands twice"},
        {"step symbol=x grid=tiles rows=1 colour=2", "has no 'colour'"},
        {"steps symbol=x", "'steps' is no line"},
        {"splits", "splits has no value"},
        {"step symbol=a grid=tiles rows=1\nstep symbol=a grid=tiles rows=1\n"
         "step symbol=a grid=tiles rows=1\nstep symbol=a grid=tiles rows=1\n",
         "at most 3 step"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        attn_launch l;
        attn_error err = ATTN_ERROR_INIT;
        CHECK_CASE("%s", cases[i].text);
        CHECK_STATUS(attn_launch_parse(cases[i].text, &l, &err), ATTN_ERR_INVALID, err.line);
        CHECK_HAS(err.line, cases[i].says);
    }
    check_case[0] = '\0';
}

/* Every task of a step is dealt exactly once, and the longest first. */
static void test_order(void) {
    attn_launch l = parse(RECORD);
    attn_problem p = parse_problem("fwd:f32:b2:h3:s100:d64:causal");
    const attn_step *step = &l.step[1];
    int64_t tiles = attn_step_tiles(step, &p), tasks = attn_step_tasks(step, &l, &p);
    bool dealt[64] = {false};
    CHECK_EQ_INT(tiles, 4);
    CHECK_EQ_INT(tasks, 24);
    for (int64_t n = 0; n < tasks; n++) {
        int64_t task = attn_step_task_at(step, n, tiles, tasks);
        if (CHECK(task >= 0 && task < tasks)) {
            CHECK(!dealt[task]);
            dealt[task] = true;
            CHECK_EQ_INT(task % tiles, tiles - 1 - n / 6);
        }
    }
    CHECK_EQ_INT(attn_step_tasks(&l.step[0], &l, &p), 2 * 3 * 2);
    attn_problem huge = parse_problem("fwd:f32:b16777216:h1048576:s100:d64");
    attn_error err = ATTN_ERROR_INIT;
    CHECK_STATUS(attn_launch_fits(&l, &huge, &err), ATTN_ERR_UNSUPPORTED, err.line);
    CHECK_OK(attn_launch_fits(&l, &p, &err), err.line);
}

static void test_packed(void) {
    attn_launch l = parse("step symbol=x grid=split rows=16 packed=1\nsplits 4\n");
    attn_problem p = parse_problem("fwd:f32:b2:hq12:hkv4:sq10:sk100:d64");
    CHECK_EQ_INT(attn_step_tiles(&l.step[0], &p), 2); /* 10 x 3 rows */
    CHECK_EQ_INT(attn_step_tasks(&l.step[0], &l, &p), 2 * 4 * 2 * 4);
    attn_problem empty = parse_problem("fwd:f32:b0:h0:s0:d64");
    CHECK_EQ_INT(attn_step_tasks(&l.step[0], &l, &empty), 0);
}

static void test_workspace(void) {
    attn_launch l = parse(RECORD);
    attn_problem p = parse_problem("fwd:f32:b2:h3:s100:d64");
    _Alignas(256) static char ws[1 << 18];
    attn_forward_args args;
    size_t bytes = attn_workspace_bytes(&l, &p, 5);
    CHECK_EQ_INT(bytes, 512 + 256 * 6 * 144);
    attn_workspace_assign(&l, &p, 5, ws, &args);
    CHECK(args.workspace[0] == ws);
    CHECK(args.workspace[1] == ws + 512);
    CHECK_EQ_INT(args.workers, 5);
}

static void test_limits(void) {
    attn_launch l = parse(RECORD);
    attn_problem good = parse_problem("fwd:f32:b2:h3:s128:d64");
    attn_problem bad = parse_problem("fwd:f32:b2:h3:sq128:sk100:d64");
    attn_problem group = parse_problem("fwd:f32:b2:hq4:hkv2:s128:d64");
    attn_str text = ATTN_STR_INIT;
    CHECK(attn_limits_broken(&l, &good) == NULL);
    const attn_limit *broken = attn_limits_broken(&l, &bad);
    if (CHECK(broken == &l.limit[0])) {
        attn_limit_explain(broken, &bad, &text);
        CHECK_STR(attn_str_text(&text),
                  "seq_kv is 100, but this variant takes multiples of 64 from 1 up");
    }
    attn_str_clear(&text);
    broken = attn_limits_broken(&l, &group);
    if (CHECK(broken == &l.limit[1])) {
        attn_limit_explain(broken, &group, &text);
        CHECK_STR(attn_str_text(&text), "group is 2, but this variant takes 1");
    }
    attn_str_free(&text);
}

int main(void) {
    test_text();
    test_faults();
    test_order();
    test_packed();
    test_workspace();
    test_limits();
    return check_done();
}
