/* test_limits.c: limits of launch records against the same rows as a Lua predicate, on 100,000
 * random problems. */
#include "check.h"
#include "core/launch.h"
#include "core/problem.h"
#include "gen_internal.h"

enum { PROBLEMS = 100000, BATCH = 1000 };

static attn_error err = ATTN_ERROR_INIT;
static uint64_t state = 1;

static int32_t below(int32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((state >> 33) % (uint64_t)n);
}

/* Reads problems as lines of fields and a list of rows; answers with a 0 or 1 for each line. */
static const char predicate[] =
    "local _, argument = ...\n"
    "local rows, problems = string.match(argument, '^(.-)\\n%-%-\\n(.*)$')\n"
    "local tests, answers = {}, {}\n"
    "for field, min, max, multiple in string.gmatch(rows .. '\\n',\n"
    "    'limit field=(%S+) min=(%S+) max=(%S+) multiple_of=(%S+)\\n') do\n"
    "  min, max = math.tointeger(min), max == '-' and math.huge or math.tointeger(max)\n"
    "  multiple = math.tointeger(multiple)\n"
    "  tests[#tests + 1] = function(p)\n"
    "    local v = p[field]\n"
    "    return min <= v and v <= max and v % multiple == 0\n"
    "  end\n"
    "end\n"
    "for line in string.gmatch(problems, '[^\\n]+') do\n"
    "  local p, ok = {}, true\n"
    "  for name, value in string.gmatch(line, '(%S+)=(%S+)') do p[name] = math.tointeger(value) "
    "end\n"
    "  for _, test in ipairs(tests) do ok = ok and test(p) end\n"
    "  answers[#answers + 1] = ok and '1' or '0'\n"
    "end\n"
    "return table.concat(answers)\n";

static attn_limit random_row(void) {
    static const int64_t multiples[] = {1, 1, 1, 2, 4, 16, 64};
    attn_limit row = {(attn_field)below(ATTN_FIELD_COUNT), below(4) ? -1 : below(40), INT64_MAX,
                      multiples[below(7)]};
    if (below(2))
        row.max = row.min + below(100);
    return row;
}

static attn_problem random_problem(void) {
    int32_t heads_kv = below(8) ? 1 + below(4) : 0;
    attn_problem p = {.batch = below(6),
                      .heads_kv = heads_kv,
                      .heads_q = heads_kv * (1 + below(4)),
                      .seq_q = below(150),
                      .seq_kv = below(4) ? 16 * below(12) : below(150),
                      .head_dim = 64,
                      .head_dim_v = 64,
                      .mask = ATTN_MASK_WINDOW,
                      .window_left = below(60) - 1,
                      .window_right = below(60) - 1};
    return p;
}

static size_t one_batch(attn_gen *gen) {
    attn_launch launch = {.steps = 1, .splits = 1};
    attn_problem problem[BATCH];
    attn_str text = ATTN_STR_INIT, answers = ATTN_STR_INIT;
    size_t within = 0;
    launch.step[0] = (attn_step){.symbol = "k", .cluster = 1, .rows = 1, .blocks_per_sm = 1};
    launch.limits = 1 + below(3);
    for (int32_t i = 0; i < launch.limits; i++)
        launch.limit[i] = random_row();
    attn_launch_print(&launch, &text);
    attn_str_append(&text, "\n--\n");
    for (int i = 0; i < BATCH; i++) {
        problem[i] = random_problem();
        for (int f = 0; f < ATTN_FIELD_COUNT; f++)
            attn_str_append_f(&text, "%s=%lld ", attn_field_name((attn_field)f),
                              (long long)attn_field_get(&problem[i], (attn_field)f));
        attn_str_append(&text, "\n");
    }
    CHECK_OK(attn_gen_script(gen, "predicate", predicate, attn_str_text(&text), &answers, &err),
             err.line);
    CHECK_EQ_INT(answers.size, BATCH);
    for (size_t i = 0; i < answers.size; i++) {
        bool kept = attn_limits_broken(&launch, &problem[i]) == NULL;
        within += kept;
        if ((answers.data[i] == '1') != kept)
            CHECK_STR(attn_str_text(&text), kept ? "(C: within)" : "(C: broken)");
    }
    attn_str_free(&text);
    attn_str_free(&answers);
    return within;
}

int main(void) {
    attn_gen *gen = NULL;
    size_t within = 0;
    CHECK_OK(attn_gen_open(NULL, &gen, &err), err.line);
    for (int i = 0; i < PROBLEMS / BATCH && check_failures == 0; i++)
        within += one_batch(gen);
    CHECK(20 * within > PROBLEMS && 20 * within < 19 * (size_t)PROBLEMS);
    attn_gen_close(gen);
    return check_done();
}
