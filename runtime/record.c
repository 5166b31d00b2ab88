/* record.c: ATTNTUNE_RECORD=FILE: the problems that had no exact winner, a line each, once each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "context.h"

enum { RECORD_MAX = 4096 }; /* problems a process; more are not of use to a tuner */

struct attn_record {
    pthread_mutex_t lock;
    int fd;
    size_t count;
    attn_hash seen[RECORD_MAX];
};

struct attn_record *attn_record_open(const char *path, attn_error *err) {
    struct attn_record *record = calloc(1, sizeof *record);
    if (!record) {
        (void)attn_fail_nomem(err);
        return NULL;
    }
    /* A pipe that nobody reads would block; a device, too, may. */
    record->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (record->fd < 0 || pthread_mutex_init(&record->lock, NULL) != 0) {
        (void)attn_fail(err, ATTN_ERR_IO, "cannot record problems in %s: %s", path,
                        strerror(errno));
        if (record->fd >= 0)
            (void)close(record->fd);
        free(record);
        return NULL;
    }
    return record;
}

static bool is_new(struct attn_record *record, attn_hash hash) {
    for (size_t i = 0; i < record->count; i++)
        if (attn_hash_equal(record->seen[i], hash))
            return false;
    if (record->count == RECORD_MAX)
        return false;
    record->seen[record->count++] = hash;
    return true;
}

void attn_record_add(struct attn_record *record, const attn_problem *problem) {
    char line[ATTN_PROBLEM_TEXT + 1];
    size_t n = attn_problem_print(problem, line, sizeof line - 1);
    line[n++] = '\n';
    attn_hash hash = attn_problem_hash(problem);
    (void)pthread_mutex_lock(&record->lock);
    if (is_new(record, hash)) { /* one write a line: processes may share the file */
        ssize_t written = write(record->fd, line, n);
        (void)written; /* a full disk costs the record, not the call */
    }
    (void)pthread_mutex_unlock(&record->lock);
}

void attn_record_close(struct attn_record *record) {
    if (!record)
        return;
    (void)close(record->fd);
    (void)pthread_mutex_destroy(&record->lock);
    free(record);
}
