/* test_worker.c: messages, worker processes and the timing lock, on the fake device. The workers
 * are this program. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "builders.h"
#include "check.h"
#include "judge_kernel.h"
#include "lock.h"
#include "resident.h"
#include "tune.h"

/*-*** Messages **************************************************/

static void check_fields(void) {
    attn_str body = ATTN_STR_INIT;
    attn_binary binary = ATTN_BINARY_INIT, back;
    attn_error err = ATTN_ERROR_INIT;
    double pair[2] = {1, 2}, got[2];
    size_t size;
    attn_put_u32(&body, 7);
    attn_put_f64(&body, -0.5);
    attn_put_text(&body, "a text");
    attn_put_text(&body, NULL);
    attn_put_bytes(&body, pair, sizeof pair);
    binary.data = body.data;
    binary.size = 8;
    binary.registers = 33;
    strcpy(binary.key, "key");
    attn_put_binary(&body, &binary);
    attn_fields fields = {body.data, body.size, 0, false};
    CHECK_EQ_INT(attn_get_u32(&fields), 7);
    CHECK_NEAR(attn_get_f64(&fields), -0.5, 0);
    CHECK_STR(attn_get_text(&fields), "a text");
    CHECK_STR(attn_get_text(&fields), "");
    attn_get_struct(&fields, got, sizeof got);
    CHECK_NEAR(got[1], 2, 0);
    CHECK_OK(attn_get_binary(&fields, &back, &err), err.line);
    CHECK_EQ_INT(back.size, 8);
    CHECK_EQ_INT(back.registers, 33);
    CHECK_STR(back.key, "key");
    attn_binary_free(&back);
    CHECK(!fields.bad);
    CHECK_EQ_INT(fields.at, fields.size);

    /* Cut short anywhere, or with a wrong length, it is bad and nothing behind it is read. */
    for (size_t cut = 0; cut < 60; cut++) {
        fields = (attn_fields){body.data, cut, 0, false};
        (void)attn_get_u32(&fields);
        (void)attn_get_f64(&fields);
        (void)attn_get_text(&fields);
        (void)attn_get_text(&fields);
        attn_get_struct(&fields, got, sizeof got);
        (void)attn_get_bytes(&fields, &size);
        CHECK(fields.bad && fields.at <= cut);
    }
    body.data[12] = 0x7f; /* the text's length */
    fields = (attn_fields){body.data, body.size, 12, false};
    CHECK_STR(attn_get_text(&fields), "");
    CHECK(fields.bad);
    attn_str_free(&body);
}

static void check_messages(void) {
    int pair[2];
    attn_inbox inbox = {ATTN_STR_INIT, 0};
    attn_error err = ATTN_ERROR_INIT;
    attn_message_type type;
    attn_fields fields;
    attn_str body = ATTN_STR_INIT;
    if (!CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0))
        return;
    attn_put_text(&body, "hello");
    CHECK_OK(attn_message_send(pair[0], ATTN_MSG_PEAK, &body, &err), err.line);
    CHECK_OK(attn_message_send(pair[0], ATTN_MSG_RACE, NULL, &err), err.line);
    while (attn_inbox_take(&inbox, &type, &fields, &err) == ATTN_ERR_NOT_FOUND)
        CHECK_OK(attn_inbox_read(&inbox, pair[1], &err), err.line);
    CHECK_EQ_INT(type, ATTN_MSG_PEAK);
    CHECK_STR(attn_get_text(&fields), "hello");
    while (attn_inbox_take(&inbox, &type, &fields, &err) == ATTN_ERR_NOT_FOUND)
        CHECK_OK(attn_inbox_read(&inbox, pair[1], &err), err.line);
    CHECK_EQ_INT(type, ATTN_MSG_RACE);
    CHECK_EQ_INT(fields.size, 0);
    CHECK(write(pair[0], "this is no message at all", 25) == 25);
    CHECK_OK(attn_inbox_read(&inbox, pair[1], &err), err.line);
    CHECK_STATUS(attn_inbox_take(&inbox, &type, &fields, &err), ATTN_ERR_IO, err.line);
    close(pair[0]);
    CHECK_STATUS(attn_inbox_read(&inbox, pair[1], &err), ATTN_ERR_NOT_FOUND, err.line);
    CHECK_STATUS(attn_message_send(pair[1], ATTN_MSG_RACE, &body, &err), ATTN_ERR_IO, err.line);
    close(pair[1]);
    attn_inbox_free(&inbox);
    attn_str_free(&body);
}

/*-*** Workers ***************************************************/

static void put_build(attn_str *body, const char *outcome) {
    char source[128], key[ATTN_HASH_TEXT] = "0123456789abcdef0123456789abcdef";
    snprintf(source, sizeof source, "// FAKE cost_ns=1000 outcome=%s\n", outcome);
    attn_str_clear(body);
    attn_put_text(body, "fake");
    attn_put_text(body, "c");
    attn_put_text(body, source);
    attn_put_text(body, "");
    attn_put_text(body, "fake");
    attn_put_bytes(body, key, sizeof key);
}

/* One worker, one compile after the other: what comes of each. */
static void check_worker(void) {
    static const struct {
        const char *outcome;
        attn_status status;
        attn_outcome loss;
        const char *part;
    } CASES[] = {
        {"ok", ATTN_OK, ATTN_OUTCOME_OK, ""},
        {"compile_error", ATTN_ERR_COMPILE, ATTN_OUTCOME_OK, "this was asked for"},
        {"compile_crash", ATTN_ERR_DEVICE, ATTN_OUTCOME_CRASH, "Segmentation fault"},
        {"ok", ATTN_OK, ATTN_OUTCOME_OK, ""},
        {"compile_hang", ATTN_ERR_DEVICE, ATTN_OUTCOME_TIMEOUT, "the compiler has not ended"},
        {"ok", ATTN_OK, ATTN_OUTCOME_OK, ""},
    };
    attn_worker worker = ATTN_WORKER_INIT;
    attn_str body = ATTN_STR_INIT;
    attn_fields fields;
    attn_loss loss;
    attn_worker_limits(&worker, 0, 1.0, 0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        attn_error err = ATTN_ERROR_INIT;
        CHECK_CASE("%zu: %s", i, CASES[i].outcome);
        put_build(&body, CASES[i].outcome);
        attn_status status =
            attn_worker_ask(&worker, ATTN_MSG_COMPILE, &body, -1, &fields, &loss, &err);
        CHECK_STATUS(status, CASES[i].status, err.line);
        CHECK_HAS(err.line, CASES[i].part);
        if (CASES[i].loss != ATTN_OUTCOME_OK)
            CHECK_EQ_INT(loss.outcome, CASES[i].loss);
        CHECK_EQ_INT(worker.pid == 0, CASES[i].loss != ATTN_OUTCOME_OK);
    }
    /* Killed from outside, while it works. */
    attn_error err = ATTN_ERROR_INIT;
    CHECK_CASE("killed");
    put_build(&body, "compile_hang");
    attn_worker_limits(&worker, 0, 60, 0);
    CHECK_OK(attn_worker_send(&worker, ATTN_MSG_COMPILE, &body, &err), err.line);
    CHECK(attn_memory_resident(worker.pid) > 0);
    kill(worker.pid, SIGKILL);
    attn_worker_event event = ATTN_WORKER_NOTHING;
    for (int i = 0; i < 100 && event == ATTN_WORKER_NOTHING; i++) {
        attn_worker *one = &worker;
        attn_worker_wait(&one, 1, -1, 100);
        event = attn_worker_look(&worker, &fields, &err, &loss);
    }
    CHECK_EQ_INT(event, ATTN_WORKER_LOST);
    CHECK_EQ_INT(loss.outcome, ATTN_OUTCOME_OOM);
    attn_worker_kill(&worker);
    attn_worker_kill(&worker);
    attn_str_free(&body);
    check_case[0] = '\0';
}

/* A request of the wrong form is refused, and the worker goes on. */
static void check_bad_requests(void) {
    attn_worker worker = ATTN_WORKER_INIT;
    attn_str body = ATTN_STR_INIT;
    attn_fields fields;
    attn_loss loss;
    for (int type = ATTN_MSG_COMPILE; type < ATTN_MSG_COUNT; type++) {
        attn_error err = ATTN_ERROR_INIT;
        attn_status status =
            attn_worker_ask(&worker, (attn_message_type)type, &body, -1, &fields, &loss, &err);
        CHECK_CASE("request %d", type);
        CHECK_STATUS(status, ATTN_ERR_INTERNAL, err.line);
    }
    check_case[0] = '\0';
    attn_worker_kill(&worker);
    attn_str_free(&body);
}

/* Opens the fake device and has a problem's references made; the result is the seconds that took.
 */
static double make_references(attn_worker *worker) {
    attn_str body = ATTN_STR_INIT;
    attn_error err = ATTN_ERROR_INIT;
    attn_fields fields;
    attn_loss loss;
    attn_problem problem;
    const attn_device_info device = {.backend = "fake"};
    const uint64_t seed = 1;
    attn_put_text(&body, "fake");
    attn_put_u32(&body, 0);
    attn_put_u32(&body, 0);
    CHECK_OK(attn_worker_ask(worker, ATTN_MSG_OPEN, &body, -1, &fields, &loss, &err), err.line);
    attn_str_clear(&body);
    CHECK_OK(attn_problem_parse("fwd:f32:b1:h4:s512:d32", &problem, err.line, sizeof err.line),
             err.line);
    attn_put_bytes(&body, &problem, sizeof problem);
    attn_put_u32(&body, ATTN_COLD);
    attn_put_bytes(&body, &seed, sizeof seed);
    attn_judge_put(&body, NULL, &device, &problem); /* none */
    const int64_t begun = attn_now_ns();
    CHECK_OK(attn_worker_ask(worker, ATTN_MSG_PROBLEM, &body, -1, &fields, &loss, &err), err.line);
    attn_str_free(&body);
    return (double)(attn_now_ns() - begun) * 1e-9;
}

/* A step is not late because others have the CPU: here, one is shared with eight that never rest.
 */
static void check_starved(void) {
    enum { OTHERS = 8 };
    pid_t other[OTHERS];
    cpu_set_t before, one;
    attn_worker worker = ATTN_WORKER_INIT;
    CPU_ZERO(&one);
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &before))
            CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    const double alone_s = make_references(&worker);
    attn_worker_kill(&worker);
    for (int i = 0; i < OTHERS; i++)
        if ((other[i] = fork()) == 0)
            for (;;)
                ;
    attn_worker_limits(&worker, 0, 2 * alone_s, 0);
    (void)make_references(&worker);
    for (int i = 0; i < OTHERS; i++) {
        kill(other[i], SIGKILL);
        (void)waitpid(other[i], NULL, 0);
    }
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    attn_worker_kill(&worker);
}

/*-*** The pool **************************************************/

static void check_builders(void) {
    static const char *const OUTCOMES[] = {
        "ok", "compile_hang", "ok", "compile_error", "ok", "ok", "ok", "ok", "compile_crash",
        "ok", "ok",           "ok"};
    enum { TASKS = sizeof OUTCOMES / sizeof OUTCOMES[0] };
    int owner[TASKS], ended = 0;
    attn_outcome outcome[TASKS] = {ATTN_OUTCOME_RUNNING};
    attn_error err = ATTN_ERROR_INIT;
    attn_builders *builders;
    attn_built built;
    CHECK_OK(attn_builders_open(2, &builders, &err), err.line);
    for (int i = 0; i < TASKS; i++) {
        char source[128];
        attn_build build = {"c", source, "", "fake", "", 0};
        snprintf(source, sizeof source, "// FAKE cost_ns=%d outcome=%s\n", i, OUTCOMES[i]);
        snprintf(build.key, sizeof build.key, "%032d", i == 11 ? 0 : i); /* as the first */
        CHECK_OK(attn_builders_add(builders, &attn_backend_fake, &build, &owner[i], &err),
                 err.line);
    }
    attn_builders_forget(builders, &owner[10]); /* nobody wants it any more */
    while (ended < TASKS - 1) {
        attn_worker *workers[2];
        while (attn_builders_next(builders, &built)) {
            int i = (int)((int *)built.owner - owner);
            CHECK(i != 10 && outcome[i] == ATTN_OUTCOME_RUNNING);
            outcome[i] = built.outcome;
            CHECK((built.binary != NULL) == (built.outcome == ATTN_OUTCOME_OK));
            ended++;
        }
        CHECK_EQ_INT(attn_builders_workers(builders, workers, 2), 2);
        attn_worker_wait(workers, 2, -1, 20);
    }
    for (int i = 0; i < TASKS; i++) {
        CHECK_CASE("task %d: %s", i, OUTCOMES[i]);
        CHECK_EQ_INT(outcome[i], i == 10                                    ? ATTN_OUTCOME_RUNNING
                                 : strcmp(OUTCOMES[i], "ok") == 0           ? ATTN_OUTCOME_OK
                                 : strcmp(OUTCOMES[i], "compile_hang") == 0 ? ATTN_OUTCOME_TIMEOUT
                                 : strcmp(OUTCOMES[i], "compile_crash") == 0
                                     ? ATTN_OUTCOME_CRASH
                                     : ATTN_OUTCOME_COMPILE_ERROR);
    }
    check_case[0] = '\0';
    attn_builders_trim(builders);
    attn_builders_close(builders);
}

/*-*** The timing lock *******************************************/

enum { PATIENT_MS = 20000 };

static void sleep_ms(int milliseconds) {
    usleep((useconds_t)milliseconds * 1000);
}

/* Whether another process gets the lock within so many milliseconds: many where it should, since it
 * may not run for a while, and few where that cannot be. */
static bool others_get(const char *name, bool exclusive, int ms) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        const struct itimerval limit = {.it_value = {ms / 1000, ms % 1000 * 1000L}};
        attn_lock lock;
        attn_error err = ATTN_ERROR_INIT;
        signal(SIGALRM, SIG_DFL);
        (void)setitimer(ITIMER_REAL, &limit, NULL);
        _exit(attn_lock_open(name, &lock, &err) != ATTN_OK ||
              attn_lock_take(&lock, exclusive, NULL, NULL, &err) != ATTN_OK);
    }
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A process that takes the shared lock again and again, as compilers do, each time for 20 ms. */
static pid_t busy_sharer(const char *name) {
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    attn_lock lock;
    attn_error err = ATTN_ERROR_INIT;
    if (attn_lock_open(name, &lock, &err) != ATTN_OK)
        _exit(1);
    for (;;) {
        if (attn_lock_take(&lock, false, NULL, NULL, &err) != ATTN_OK)
            _exit(1);
        sleep_ms(20);
        attn_lock_release(&lock);
    }
}

static void count_wait(void *user) {
    (*(int *)user)++;
}

static void check_lock(void) {
    char name[64], path[128], turn[128];
    attn_lock lock;
    attn_error err = ATTN_ERROR_INIT;
    struct stat st;
    int waits = 0;
    snprintf(name, sizeof name, "test-%d", (int)getpid());
    snprintf(path, sizeof path, "/tmp/attntune-%s.lock", name);
    snprintf(turn, sizeof turn, "/tmp/attntune-%s.turn.lock", name);
    mode_t before = umask(077);
    CHECK_OK(attn_lock_open(name, &lock, &err), err.line);
    umask(before);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0666);

    CHECK_OK(attn_lock_take(&lock, false, count_wait, &waits, &err), err.line);
    CHECK(others_get(name, false, PATIENT_MS));
    CHECK(!others_get(name, true, 100));
    attn_lock_release(&lock);
    CHECK_OK(attn_lock_take(&lock, true, count_wait, &waits, &err), err.line);
    CHECK(!others_get(name, false, 100));
    CHECK(!others_get(name, true, 100));
    attn_lock_release(&lock);
    CHECK(others_get(name, true, PATIENT_MS)); /* and its end has released it */
    CHECK_EQ_INT(waits, 0);

    /* Sharers that overlap without a gap do not starve who wants it alone. */
    pid_t sharer[3];
    for (int i = 0; i < 3; i++) {
        sharer[i] = busy_sharer(name);
        sleep_ms(7);
    }
    int64_t begun = attn_now_ns();
    for (int i = 0; i < 5; i++) {
        CHECK_OK(attn_lock_take(&lock, true, count_wait, &waits, &err), err.line);
        attn_lock_release(&lock);
        sleep_ms(1);
    }
    CHECK((double)(attn_now_ns() - begun) * 1e-9 < 20);
    CHECK(waits > 0);
    for (int i = 0; i < 3; i++) {
        kill(sharer[i], SIGKILL);
        (void)waitpid(sharer[i], NULL, 0);
    }
    attn_lock_close(&lock);
    attn_lock_close(&lock);

    /* A link is not followed, and nothing but a plain file will do. */
    unlink(path);
    CHECK(symlink("/dev/null", path) == 0);
    CHECK_STATUS(attn_lock_open(name, &lock, &err), ATTN_ERR_IO, err.line);
    CHECK_HAS(err.line, "link");
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_STATUS(attn_lock_open(name, &lock, &err), ATTN_ERR_IO, err.line);
    CHECK_HAS(err.line, "no plain file");
    unlink(path);
    unlink(turn);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], ATTN_WORKER_FLAG) == 0)
        return attn_worker_main();
    check_fields();
    check_messages();
    check_worker();
    check_bad_requests();
    check_starved();
    check_builders();
    check_lock();
    return check_done();
}
