/* db_session.c: who is writing, and whether they still live.
 *
 * A session is dead if it has ended; if it ran on this boot, in our space of process numbers, and
 * its process is gone (or the number belongs to a later process); or if it ran on this host under
 * another boot. One that cannot be looked at (another host or container) is dead when it has
 * claimed and ended nothing for ten minutes. A session wrongly taken for dead loses nothing:
 * attn_db_trial_end turns its `lost` row into what came of it. */
#include "db_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SILENT_SECONDS = 600 };

typedef struct identity {
    char host[256];
    char boot[64];
    char pids[64];
    int64_t pid;
    int64_t started;
} identity;

static void read_line(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Field 22 of /proc/PID/stat, clock ticks since boot; 0 if it cannot be read, -1 if the process
 * has ended and only waits for its parent. */
static int64_t start_time(int64_t pid) {
    enum { STATE = 3, STARTED = 22 };
    char path[64], text[1024], *rest;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    read_line(path, text, sizeof text);
    char *behind_name = strrchr(text, ')'); /* the name may hold anything */
    if (!behind_name)
        return 0;
    char *field = strtok_r(behind_name + 1, " ", &rest);
    if (field && (*field == 'Z' || *field == 'X'))
        return -1;
    for (int n = STATE; field && n < STARTED; n++)
        field = strtok_r(NULL, " ", &rest);
    return field ? strtoll(field, NULL, 10) : 0;
}

static void identify(identity *self) {
    memset(self, 0, sizeof *self);
    if (gethostname(self->host, sizeof self->host - 1) != 0)
        self->host[0] = '\0';
    read_line("/proc/sys/kernel/random/boot_id", self->boot, sizeof self->boot);
    if (readlink("/proc/self/ns/pid", self->pids, sizeof self->pids - 1) < 0)
        self->pids[0] = '\0';
    self->pid = getpid();
    self->started = start_time(self->pid);
}

static bool process_lives(int64_t pid, int64_t started) {
    if (pid <= 0 || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
        return false;
    int64_t now = start_time(pid);
    return now == 0 || now == started;
}

/* Of a row of `host, boot_id, pid_space, pid, started, ended, seen`. */
static bool is_dead(const identity *self, attn_sql *q) {
    const char *host = attn_sql_text(q), *boot = attn_sql_text(q), *pids = attn_sql_text(q);
    int64_t pid = attn_sql_int(q), started = attn_sql_int(q);
    bool ended = attn_sql_int_or(q, -1) >= 0;
    int64_t seen = attn_sql_int(q);
    if (ended)
        return true;
    if (strcmp(boot, self->boot) == 0 && strcmp(pids, self->pids) == 0)
        return !process_lives(pid, started);
    if (strcmp(host, self->host) == 0 && strcmp(boot, self->boot) != 0)
        return true;
    return seen + SILENT_SECONDS < attn_db_now();
}

static attn_status mark_lost(attn_db *db, const char *trial, attn_error *err) {
    attn_sql q = attn_sql_prepare(
        db, "UPDATE trial SET outcome = 'lost', ended = ?, error = iif(begun > 0, "
            "'its session ended before it', 'its session ended before it began') WHERE id = ?");
    attn_sql_bind_int(&q, attn_db_now());
    attn_sql_bind_text(&q, trial);
    return attn_sql_run(&q, err);
}

attn_status attn_db_reap(attn_db *db, const char *trial, attn_error *err) {
    identity self;
    attn_status status = ATTN_OK;
    identify(&self);
    attn_sql q = attn_sql_prepare(
        db, "SELECT t.id, s.id, s.host, s.boot_id, s.pid_space, s.pid, s.started, s.ended, s.seen "
            "FROM trial t LEFT JOIN session s ON s.id = t.session_id "
            "WHERE t.outcome = 'running' AND t.id = coalesce(?, t.id) ORDER BY t.id");
    attn_sql_bind_text(&q, trial);
    while (status == ATTN_OK && attn_sql_next(&q)) {
        char id[ATTN_HASH_TEXT];
        snprintf(id, sizeof id, "%s", attn_sql_text(&q));
        int64_t session = attn_sql_int(&q);
        if (session == 0 || (session != db->session && is_dead(&self, &q)))
            status = mark_lost(db, id, err);
    }
    attn_status end = attn_sql_end(&q, err);
    return status != ATTN_OK ? status : end;
}

static attn_status insert_session(attn_db *db, const char *command, attn_error *err) {
    identity self;
    attn_trial_id uid;
    identify(&self);
    ATTN_TRY(attn_db_random_id(&uid, err));
    attn_sql q = attn_sql_prepare(
        db, "INSERT INTO session (uid, host, boot_id, pid_space, pid, started, begun, seen, "
            "version, command) VALUES (?, ?, ?, ?, ?, ?, ?7, ?7, ?, ?) RETURNING id");
    attn_sql_bind_text(&q, uid.text);
    attn_sql_bind_text(&q, self.host);
    attn_sql_bind_text(&q, self.boot);
    attn_sql_bind_text(&q, self.pids);
    attn_sql_bind_int(&q, self.pid);
    attn_sql_bind_int(&q, self.started);
    attn_sql_bind_int(&q, attn_db_now());
    attn_sql_bind_text(&q, attn_version());
    attn_sql_bind_text(&q, command);
    if (attn_sql_next(&q))
        db->session = attn_sql_int(&q);
    return attn_sql_run(&q, err);
}

attn_status attn_db_session_seen(attn_db *db, attn_error *err) {
    attn_sql q = attn_sql_prepare(db, "UPDATE session SET seen = ? WHERE id = ?");
    attn_sql_bind_int(&q, attn_db_now());
    attn_sql_bind_int(&q, db->session);
    return attn_sql_run(&q, err);
}

attn_status attn_db_session_begin(attn_db *db, const char *command, attn_error *err) {
    ATTN_TRY(attn_db_begin(db, err));
    attn_status status = insert_session(db, command, err);
    if (status == ATTN_OK)
        status = attn_db_reap(db, NULL, err);
    status = attn_db_finish(db, status, err);
    if (status != ATTN_OK)
        db->session = 0;
    return status;
}

attn_status attn_db_session_end(attn_db *db, attn_error *err) {
    attn_sql q = attn_sql_prepare(db, "UPDATE session SET ended = ? WHERE id = ?");
    attn_sql_bind_int(&q, attn_db_now());
    attn_sql_bind_int(&q, db->session);
    ATTN_TRY(attn_sql_run(&q, err));
    db->session = 0;
    return ATTN_OK;
}
