/* test_builds.c: the kernels of a class are compiled at once, and the class is what it would be if
 * they had been compiled one after another, also where one of them fails. */
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "check.h"
#include "context.h"
#include "core/interrupt.h"
#include "overlay.h"

static char folder[64]; /* families, the compiler, and what it writes */

/* Families whose defaults follow seq_kv. The first takes none above 4096, the others all. */
static const char SPACE[] =
    "return family {\n"
    "  name = \"%s\", op = \"forward\", backend = \"cpu\", template = \"cpu/%s.c\",\n"
    "  doc = \"A test.\", preference = %d,\n"
    "  accepts = function() return true end,\n"
    "  params = { { \"ROWS\", { 16, 512, 2048, 8192 }, \"rows of a task\" } },\n"
    "  launch = function(c) return { { grid = \"tiles\", rows = c.ROWS }%s } end,\n"
    "  defaults = function(p) return { ROWS = p.seq_kv } end,\n"
    "}\n";
static const char TEMPLATE[] = "#include \"attn_abi.h\"\n"
                               "const char wanted[] = \"%s $(ROWS)\";\n"
                               "int $(KERNEL)(const attn_forward_args *a, int task, int worker) {\n"
                               "    return a && task == worker ? 0 * $(ROWS) : 0;\n"
                               "}\n";

/* Logs the kernels that it compiles. One that $FAIL names fails; $MEET waits for another one; with
 * $ALONE the second of two at once fails. */
static const char COMPILER[] =
    "#!/bin/sh\n"
    "for word; do case $word in */kernel.c) source=$word ;; esac; done\n"
    "name=$(sed -n 's/^const char wanted.*\"\\(.*\\)\";/\\1/p' ${source:-/dev/null})\n"
    "if [ \"$name\" ]; then\n"
    "    echo \"$name\" >>\"$LOG\"\n"
    "    [ \"$name\" != \"$FAIL\" ] || { echo 'error: planted' >&2; exit 1; }\n"
    "    for i in $(seq $MEET); do [ $(wc -l <\"$LOG\") -lt 2 ] || break; sleep 0.05; done\n"
    "    if [ \"$ALONE\" ]; then\n"
    "        mkdir \"$LOG.busy\" 2>/dev/null || { echo 'error: not alone' >&2; exit 1; }\n"
    "        trap 'rmdir \"$LOG.busy\"' EXIT\n"
    "        sleep 0.2\n"
    "        $REAL_CC \"$@\"\n"
    "        exit\n"
    "    fi\n"
    "fi\n"
    "exec $REAL_CC \"$@\"\n";

static void write_family(const char *name, int preference, const char *limits) {
    char path[96], text[1024];
    (void)snprintf(text, sizeof text, SPACE, name, name, preference, limits);
    (void)snprintf(path, sizeof path, "spaces/cpu/%s.lua", name);
    overlay_write(folder, path, text);
    (void)snprintf(text, sizeof text, TEMPLATE, name);
    (void)snprintf(path, sizeof path, "templates/cpu/%s.c", name);
    overlay_write(folder, path, text);
}

static void write_all(void) {
    char path[96];
    overlay_make(folder);
    write_family("first", 1000, ", limits = { { field = \"seq_kv\", min = 0, max = 4096 } }");
    write_family("second", 999, "");
    write_family("third", 998, "");
    overlay_write(folder, "cc", COMPILER);
    (void)snprintf(path, sizeof path, "%s/cc", folder);
    CHECK_EQ_INT(chmod(path, 0700), 0);
    setenv("REAL_CC", getenv("CC") ? getenv("CC") : "cc", 1);
    setenv("CC", path, 1);
    (void)snprintf(path, sizeof path, "%s/log", folder);
    setenv("LOG", path, 1);
}

static attn_context *open_with(int32_t threads) {
    attn_context *ctx = NULL;
    attn_options options = ATTN_OPTIONS_INIT;
    options.threads = threads;
    options.family_path = folder;
    options.system_db = "/none";
    CHECK_OK(attn_open(&options, &ctx), attn_last_error(NULL));
    return ctx;
}

/* The candidates of the class, in order, "FAMILY ROWS" each, the reference's as "-". */
static void list_candidates(attn_context *ctx, char list[512]) {
    attn_runtime_device *device = attn_context_device(ctx, ATTN_DEVICE_CPU);
    attn_problem p;
    attn_choice choice = ATTN_CHOICE_INIT;
    list[0] = '\0';
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h1:s16:d16", &p, NULL, 0), "");
    CHECK_OK(attn_choice_get(ctx, &p, ATTN_DEVICE_CPU, &choice), attn_last_error(ctx));
    const attn_class *entry = attn_table_find(atomic_load(&device->table), attn_class_key_of(&p));
    for (size_t i = 0; entry && i < entry->count; i++) {
        const attn_candidate *c = &entry->candidate[i];
        const char *rows = strchr(c->config, '=');
        size_t used = strlen(list);
        CHECK(c->loaded && c->loaded->kernel);
        (void)snprintf(list + used, 512 - used, "%s%s %s", i ? ", " : "",
                       c->family + strlen("cpu/"), rows ? rows + 1 : "-");
    }
}

/* What the compiler was asked for, in order, "FAMILY ROWS" each. */
static void take_log(char log[512]) {
    attn_str text = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    log[0] = '\0';
    CHECK_OK(attn_str_read_file(&text, getenv("LOG"), &err), err.line);
    for (char *save = NULL, *line = strtok_r(text.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        (void)snprintf(log + strlen(log), 512 - strlen(log), "%s%s", *log ? ", " : "", line);
    attn_str_free(&text);
    CHECK_EQ_INT(unlink(getenv("LOG")), 0);
}

/* The typical sizes have 512, 2048, 8192 and 8192 keys. */
static const struct {
    const char *fail, *candidates, *compiled; /* compiled: by one thread, in order */
} CASES[] = {
    {"",
     "first 16, first 512, first 2048, first 8192, first 8192, "
     "second 16, second 8192, second 8192, reference_forward -",
     "first 16, first 512, first 2048, first 8192, second 16, second 8192"},
    {"first 16",
     "second 16, second 512, second 2048, second 8192, second 8192, reference_forward -",
     "first 16, second 16, second 512, second 2048, second 8192"},
    {"first 512",
     "first 16, second 16, second 512, second 2048, second 8192, second 8192, reference_forward -",
     "first 16, first 512, second 16, second 512, second 2048, second 8192"},
    {"first 8192",
     "first 16, first 512, first 2048, second 16, second 8192, second 8192, reference_forward -",
     "first 16, first 512, first 2048, first 8192, second 16, second 8192"},
    {"second 16",
     "first 16, first 512, first 2048, first 8192, first 8192, "
     "third 16, third 8192, third 8192, reference_forward -",
     "first 16, first 512, first 2048, first 8192, second 16, third 16, third 8192"},
    {"second 8192",
     "first 16, first 512, first 2048, first 8192, first 8192, second 16, reference_forward -",
     "first 16, first 512, first 2048, first 8192, second 16, second 8192"},
};

static void test_same_list(int32_t threads) {
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char list[512], log[512];
        CHECK_CASE("%d threads, %s fails", (int)threads, CASES[i].fail);
        setenv("FAIL", CASES[i].fail, 1);
        attn_context *ctx = open_with(threads);
        list_candidates(ctx, list);
        CHECK_STR(list, CASES[i].candidates);
        if (*CASES[i].fail)
            CHECK_HAS(attn_last_error(ctx), "error: planted");
        take_log(log);
        if (threads == 1)
            CHECK_STR(log, CASES[i].compiled);
        attn_close(ctx);
    }
    setenv("FAIL", "", 1);
    check_case[0] = '\0';
}

/* The first compile does not end before the second has begun; and the host's signals stay as they
 * are. */
static void test_overlap(void) {
    sigset_t after;
    char list[512], log[512];
    setenv("MEET", "1200", 1);
    attn_context *ctx = open_with(2);
    time_t begin = time(NULL);
    list_candidates(ctx, list);
    CHECK(time(NULL) - begin < 50);
    CHECK_STR(list, CASES[0].candidates);
    take_log(log);
    CHECK_EQ_INT(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    CHECK(sigismember(&after, SIGINT) == 0 && sigismember(&after, SIGUSR1) == 0);
    attn_close(ctx);
}

/* Where there is room for one compiler only, no kernel is lost. */
static void test_crowded(void) {
    char list[512], log[512];
    size_t asked = 1;
    setenv("ALONE", "1", 1);
    attn_context *ctx = open_with(2);
    list_candidates(ctx, list);
    CHECK_STR(list, CASES[0].candidates);
    take_log(log);
    for (const char *at = log; (at = strchr(at, ',')); at++)
        asked++;
    CHECK(asked > 6); /* or none was refused */
    attn_close(ctx);
    setenv("ALONE", "", 1);
}

/* A program that blocks SIGINT to end in its own time waits for none of the compilers. */
static void test_interrupted(int32_t threads) {
    char list[512];
    sigset_t ending;
    int signal = 0;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    setenv("MEET", "1200", 1);
    attn_context *ctx = open_with(threads);
    attn_interrupt_watch();
    CHECK_EQ_INT(pthread_sigmask(SIG_BLOCK, &ending, NULL), 0);
    CHECK_EQ_INT(kill(getpid(), SIGINT), 0);
    time_t begin = time(NULL);
    list_candidates(ctx, list);
    CHECK(time(NULL) - begin < 50);
    CHECK_STR(list, "reference_forward -");
    CHECK_HAS(attn_last_error(ctx), "interrupted while");
    CHECK_EQ_INT(sigwait(&ending, &signal), 0);
    CHECK_EQ_INT(pthread_sigmask(SIG_UNBLOCK, &ending, NULL), 0);
    attn_close(ctx);
}

int main(void) {
    write_all();
    setenv("MEET", "0", 1);
    setenv("ALONE", "", 1);
    test_same_list(1);
    attn_context *ctx = open_with(2);
    attn_runtime_device *device = attn_context_device(ctx, ATTN_DEVICE_CPU);
    bool two = device->backend->workers(device->handle) == 2;
    attn_close(ctx);
    if (two) {
        test_same_list(2);
        test_crowded();
        test_overlap();
    } else {
        printf("not tried: compiles at once, with one core\n");
    }
    test_interrupted(two ? 2 : 1);
    overlay_remove(folder);
    return check_done();
}
