/* test_db_processes.c: many processes on one file, killed ones, and an unprivileged reader. */
#include "db_fixture.h"

#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "db_internal.h"

enum { PROCESSES = 16, TRIALS = 25, ROUNDS = 3 };

static attn_error err;

typedef struct board {
    int ready, go;
    int won[TRIALS]; /* how often each trial was claimed */
} board;

/* A child's whole life: 0 if every call did what it should. */
static int compete(board *b, const char *path, int who) {
    attn_db *db;
    __atomic_add_fetch(&b->ready, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&b->go, __ATOMIC_SEQ_CST))
        usleep(200);
    if (attn_db_open(path, ATTN_DB_WRITE, &db, &err) != ATTN_OK ||
        attn_db_session_begin(db, "compete", &err) != ATTN_OK)
        return 1;
    for (int i = 0; i < TRIALS; i++) {
        int n = (i + who) % TRIALS;
        attn_claim claim;
        attn_trial_id id;
        attn_trial_result result = fixture_result(ATTN_OUTCOME_OK, 100 + n), found;
        fixture_trial t;
        fixture_make(&t, n, 0);
        if (attn_db_claim(db, &t.key, &claim, &id, &found, &err) != ATTN_OK)
            return 1;
        if (claim != ATTN_CLAIM_MINE)
            continue;
        __atomic_add_fetch(&b->won[n], 1, __ATOMIC_SEQ_CST);
        if (attn_db_trial_end(db, &id, &result, &err) != ATTN_OK)
            return 1;
    }
    if (attn_db_session_end(db, &err) != ATTN_OK)
        return 1;
    attn_db_close(db);
    return 0;
}

static void race(board *b, const char *path) {
    pid_t children[PROCESSES];
    attn_db *db;
    int64_t n;
    memset(b, 0, sizeof *b);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            int failed = compete(b, path, i);
            if (failed)
                fprintf(stderr, "process %d: %s\n", i, err.line);
            _exit(failed);
        }
    }
    while (__atomic_load_n(&b->ready, __ATOMIC_SEQ_CST) < PROCESSES)
        usleep(200);
    __atomic_store_n(&b->go, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        waitpid(children[i], &status, 0);
        CHECK_EQ_INT(status, 0);
    }
    for (int i = 0; i < TRIALS; i++)
        CHECK_EQ_INT(b->won[i], 1);
    CHECK_OK(attn_db_open(path, ATTN_DB_READ, &db, &err), err.line);
    CHECK_OK(attn_db_ask(db, "SELECT count(*) FROM trial WHERE outcome = 'ok'", &n, &err),
             err.line);
    CHECK_EQ_INT(n, TRIALS);
    CHECK_OK(attn_db_ask(db, "SELECT count(*) FROM sample", &n, &err), err.line);
    CHECK_EQ_INT(n, 3 * TRIALS);
    CHECK_OK(attn_db_ask(db, "SELECT count(*) FROM session WHERE ended IS NOT NULL", &n, &err),
             err.line);
    CHECK_EQ_INT(n, PROCESSES);
    attn_db_close(db);
}

static void test_races(void) {
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        exit(1);
    for (int i = 0; i < ROUNDS; i++) {
        char name[32];
        snprintf(name, sizeof name, "race%d.db", i);
        race(b, fixture_path(name));
    }
    munmap(b, sizeof *b);
}

/* What a process has done with its claim when it dies. */
typedef enum fate { WAITING, BEGUN, PUT_BACK, ENDED } fate;

/* Claims a trial and dies of SIGKILL; not yet waited for. */
static pid_t claim_and_die(const char *path, fate then) {
    pid_t child = fork();
    if (child == 0) {
        attn_claim claim;
        attn_trial_id id;
        attn_trial_result found;
        fixture_trial t;
        attn_db *db = fixture_open(path);
        fixture_make(&t, 1, 0);
        if (attn_db_claim(db, &t.key, &claim, &id, &found, &err) != ATTN_OK ||
            claim != ATTN_CLAIM_MINE)
            _exit(1);
        const attn_trial_mark marks[] = {{id, true}, {id, false}};
        for (size_t i = 0; i < 2 && i < (size_t)then; i++)
            if (attn_db_trial_mark(db, &marks[i], 1, &err) != ATTN_OK)
                _exit(1);
        if (then == ENDED) {
            attn_trial_result ok = fixture_result(ATTN_OUTCOME_OK, 5);
            if (attn_db_trial_end(db, &id, &ok, &err) != ATTN_OK)
                _exit(1);
        }
        kill(getpid(), SIGKILL);
    }
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    CHECK_EQ_INT(info.si_code, CLD_KILLED);
    return child;
}

static attn_claim ask(attn_db *db, attn_trial_id *id, attn_trial_result *found) {
    fixture_trial t;
    attn_claim claim = ATTN_CLAIM_TAKEN;
    fixture_make(&t, 1, 0);
    CHECK_OK(attn_db_claim(db, &t.key, &claim, id, found, &err), err.line);
    return claim;
}

static void test_killed(void) {
    const char *path = fixture_path("killed.db");
    attn_trial_id id;
    attn_trial_result found;
    attn_db *db;
    int64_t n;
    pid_t zombie = claim_and_die(path, BEGUN); /* before the parent waits for it */
    db = fixture_open(path);
    CHECK_OK(attn_db_ask(db, "SELECT count(*) FROM trial WHERE outcome = 'lost'", &n, &err),
             err.line);
    CHECK_EQ_INT(n, 1);
    waitpid(zombie, NULL, 0);
    waitpid(claim_and_die(path, BEGUN), NULL, 0);        /* the one retry, lost as well */
    CHECK_EQ_INT(ask(db, &id, &found), ATTN_CLAIM_DONE); /* found dead while this session runs */
    CHECK_EQ_INT(found.outcome, ATTN_OUTCOME_LOST);
    attn_db_close(db);
    path = fixture_path("committed.db");
    waitpid(claim_and_die(path, ENDED), NULL, 0);
    db = fixture_open(path);
    CHECK_EQ_INT(ask(db, &id, &found), ATTN_CLAIM_DONE); /* what was committed is there */
    CHECK_EQ_INT(found.outcome, ATTN_OUTCOME_OK);
    CHECK_EQ_INT(found.samples, 3);
    attn_db_close(db);
}

/* What only waited for a worker is not to blame, however often it happens. */
static void test_waiting(void) {
    static const fate fates[] = {WAITING, WAITING, PUT_BACK, BEGUN, WAITING};
    const char *path = fixture_path("waiting.db");
    attn_trial_id id;
    attn_trial_result found;
    attn_db *db = fixture_open(path);
    for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++)
        waitpid(claim_and_die(path, fates[i]), NULL, 0);
    CHECK_EQ_INT(ask(db, &id, &found), ATTN_CLAIM_MINE);
    CHECK_OK(attn_db_trial_drop(db, &id, &err), err.line);
    waitpid(claim_and_die(path, BEGUN), NULL, 0);
    CHECK_EQ_INT(ask(db, &id, &found), ATTN_CLAIM_DONE);
    CHECK_EQ_INT(found.outcome, ATTN_OUTCOME_LOST);
    attn_db_close(db);
}

/* Killed at any moment of writing: what was acknowledged is there, and nothing is damaged. */
static void test_killed_while_writing(void) {
    const char *path = fixture_path("writing.db");
    int *stored =
        mmap(NULL, sizeof *stored, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned seed = 7;
    if (stored == MAP_FAILED)
        exit(1);
    for (int round = 0; round < 12; round++) {
        int status;
        int64_t n, good;
        attn_db *db;
        pid_t child = fork();
        if (child == 0) {
            check_failures = 0;
            db = fixture_open(path);
            for (int i = 0; i < 100000; i++) {
                fixture_run(db, 1000 * round + i, 0, ATTN_OUTCOME_OK, 100);
                if (check_failures)
                    _exit(1);
                __atomic_add_fetch(stored, 1, __ATOMIC_SEQ_CST);
            }
            _exit(0);
        }
        int before = *stored; /* every second one gets somewhere first */
        while (round % 2 && __atomic_load_n(stored, __ATOMIC_SEQ_CST) == before)
            usleep(500);
        usleep((unsigned)rand_r(&seed) % 60000);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        CHECK(WIFSIGNALED(status));
        CHECK_OK(attn_db_open(path, ATTN_DB_WRITE, &db, &err), err.line);
        CHECK_OK(attn_db_ask(db, "SELECT count(*) FROM trial WHERE outcome = 'ok'", &n, &err),
                 err.line);
        CHECK(n == *stored || n == *stored + 1); /* killed between the commit and the count */
        *stored = (int)n;
        CHECK_OK(attn_db_ask(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check", &good,
                             &err),
                 err.line);
        CHECK_EQ_INT(good, 1);
        attn_db_close(db);
    }
    CHECK(*stored >= 6);
    munmap(stored, sizeof *stored);
}

/* Sessions that ours cannot look at, made by changing what the row of one says. */
static void test_other_hosts(void) {
    static const struct {
        const char *change;
        attn_claim claim;
    } rows[] = {
        {"host = 'elsewhere', boot_id = 'other'", ATTN_CLAIM_TAKEN},
        {"host = 'elsewhere', boot_id = 'other', seen = seen - 500", ATTN_CLAIM_TAKEN},
        {"host = 'elsewhere', boot_id = 'other', seen = seen - 700", ATTN_CLAIM_MINE},
        {"pid_space = 'pid:[1]', pid = 999999999", ATTN_CLAIM_TAKEN},
        {"pid_space = 'pid:[1]', seen = seen - 700", ATTN_CLAIM_MINE},
        {"boot_id = 'the boot before'", ATTN_CLAIM_MINE},
        {"started = started - 1", ATTN_CLAIM_MINE}, /* the number went to a later process */
        {"pid = 999999999", ATTN_CLAIM_MINE},
        {"seen = seen - 100000", ATTN_CLAIM_TAKEN}, /* this very process: it lives */
        {"ended = 5", ATTN_CLAIM_MINE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[32], change[256];
        attn_trial_id id, other;
        attn_trial_result found, result = fixture_result(ATTN_OUTCOME_OK, 7);
        CHECK_CASE("%s", rows[i].change);
        snprintf(name, sizeof name, "host%zu.db", i);
        attn_db *theirs = fixture_open(fixture_path(name)), *ours;
        CHECK_EQ_INT(ask(theirs, &other, &found), ATTN_CLAIM_MINE);
        snprintf(change, sizeof change, "UPDATE session SET %s", rows[i].change);
        CHECK_OK(attn_db_exec(theirs, change, &err), err.line);
        ours = fixture_open(fixture_path(name));
        CHECK_EQ_INT(ask(ours, &id, &found), rows[i].claim);
        CHECK_OK(attn_db_trial_end(theirs, &other, &result, &err), err.line); /* never refused */
        attn_db_close(ours);
        attn_db_close(theirs);
    }
    CHECK_CASE("%s", "");
}

/* As a user who may read but not write. */
static int read_only(const char *path) {
    attn_db *db;
    attn_db_rows rows;
    attn_db_filter all = {.limit = 0};
    for (int mode = ATTN_DB_READ; mode <= ATTN_DB_SYSTEM; mode++) {
        CHECK_OK(attn_db_open(path, (attn_db_mode)mode, &db, &err), err.line);
        if (!db)
            return 1;
        CHECK_OK(attn_db_find(db, &all, &rows, &err), err.line);
        CHECK_EQ_INT(rows.count, 1);
        attn_db_rows_free(&rows);
        attn_db_close(db);
    }
    CHECK_STATUS(attn_db_open(path, ATTN_DB_WRITE, &db, &err), ATTN_ERR_IO, err.line);
    CHECK_HAS(err.line, "read-only");
    CHECK_HAS(err.line, "--db");
    CHECK_STATUS(attn_db_open(fixture_path("ro/new.db"), ATTN_DB_WRITE, &db, &err), ATTN_ERR_IO,
                 err.line);
    CHECK_HAS(err.line, "--db");
    CHECK_STATUS(attn_db_open(fixture_path("ro/deep/new.db"), ATTN_DB_WRITE, &db, &err),
                 ATTN_ERR_IO, err.line);
    CHECK_HAS(err.line, "cannot be made");
    return check_failures > 0;
}

static void test_read_only_folder(void) {
    const char *path = fixture_path("ro/read.db");
    int status = -1;
    attn_db *db = fixture_open(path);
    fixture_run(db, 1, 0, ATTN_OUTCOME_OK, 100);
    attn_db_close(db);
    CHECK_EQ_INT(chmod(path, 0444), 0);
    CHECK_EQ_INT(chmod(fixture_path("ro"), 0555), 0);
    CHECK_EQ_INT(chmod(fixture_folder, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        check_failures = 0;
        if (geteuid() == 0 && (setgroups(0, NULL) || setgid(65534) || setuid(65534)))
            _exit(2);
        _exit(read_only(path));
    }
    waitpid(child, &status, 0);
    CHECK_EQ_INT(status, 0);
    CHECK_EQ_INT(chmod(fixture_path("ro"), 0755), 0);
}

/* A lock that is held too long ends in a line that says so; here after a short wait. */
static void test_locked(void) {
    attn_db *db = fixture_open(fixture_path("locked.db")), *other;
    CHECK_OK(attn_db_open(fixture_path("locked.db"), ATTN_DB_WRITE, &other, &err), err.line);
    CHECK_OK(attn_db_begin(db, &err), err.line);
    CHECK_OK(attn_db_exec(other, "PRAGMA busy_timeout=20", &err), err.line);
    CHECK_STATUS(attn_db_session_begin(other, "test", &err), ATTN_ERR_DB, err.line);
    CHECK_HAS(err.line, "locked.db: locked by another process");
    CHECK_OK(attn_db_finish(db, ATTN_OK, &err), err.line);
    CHECK_OK(attn_db_session_begin(other, "test", &err), err.line);
    attn_db_close(other);
    attn_db_close(db);
}

/* Another process that has the lock nearly all the time does not keep it for itself. */
static void test_greedy(void) {
    attn_db *db = fixture_open(fixture_path("greedy.db"));
    time_t begun = time(NULL);
    pid_t child = fork();
    if (child == 0) {
        attn_db *own = fixture_open(fixture_path("greedy.db"));
        while (attn_db_begin(own, &err) == ATTN_OK) {
            usleep(200000);
            (void)attn_db_finish(own, ATTN_OK, &err);
            usleep(10000);
        }
        _exit(1);
    }
    usleep(300000);
    for (int i = 0; i < 10; i++) {
        CHECK_OK(attn_db_begin(db, &err), err.line);
        CHECK_OK(attn_db_finish(db, ATTN_OK, &err), err.line);
        usleep(20000); /* so that the other one has it again */
    }
    CHECK(time(NULL) - begun <= 8);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    attn_db_close(db);
}

int main(void) {
    fixture_begin();
    test_races();
    test_killed();
    test_waiting();
    test_killed_while_writing();
    test_other_hosts();
    test_read_only_folder();
    test_locked();
    test_greedy();
    fixture_end();
    return check_done();
}
