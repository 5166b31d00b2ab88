/* lock.c: flocks in the system's temporary folder. */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* /tmp and never $TMPDIR, which differs between users who share the device. Opened without O_CREAT
 * first: with it, the kernel refuses other users' files in a sticky folder. */
static attn_status open_file(const char *name, const char *ending, int *fd, attn_error *err) {
    const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    char path[128] = P_tmpdir "/attntune-";
    struct stat st;
    size_t n = strlen(path);
    for (; *name && n < sizeof path - 20; name++)
        path[n++] = strchr("/ \t\n", *name) ? '_' : *name;
    (void)snprintf(path + n, sizeof path - n, "%s", ending);
    for (int attempt = 0; attempt < 3; attempt++) {
        *fd = open(path, flags);
        if (*fd < 0 && errno == ENOENT) {
            *fd = open(path, flags | O_CREAT | O_EXCL, 0666);
            if (*fd >= 0)
                (void)fchmod(*fd, 0666); /* the umask took some of it away */
            else if (errno == EEXIST)
                continue; /* another process was faster */
        }
        break;
    }
    if (*fd < 0)
        return attn_fail(err, ATTN_ERR_IO, "the timing lock %s cannot be opened: %s", path,
                         errno == ELOOP ? "it is a link; remove it" : strerror(errno));
    if (fstat(*fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(*fd);
        *fd = -1;
        return attn_fail(err, ATTN_ERR_IO, "the timing lock %s is no plain file; remove it", path);
    }
    return ATTN_OK;
}

attn_status attn_lock_open(const char *name, attn_lock *lock, attn_error *err) {
    *lock = (attn_lock)ATTN_LOCK_INIT;
    attn_status status = open_file(name, ".lock", &lock->gate, err);
    if (status == ATTN_OK)
        status = open_file(name, ".turn.lock", &lock->turnstile, err);
    if (status != ATTN_OK)
        attn_lock_close(lock);
    return status;
}

void attn_lock_close(attn_lock *lock) {
    if (lock->gate >= 0)
        close(lock->gate);
    if (lock->turnstile >= 0)
        close(lock->turnstile);
    *lock = (attn_lock)ATTN_LOCK_INIT;
}

static int wait_for(int fd, int how, bool *waited, void (*on_wait)(void *user), void *user) {
    if (flock(fd, how | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK && errno != EINTR)
        return -1;
    if (!*waited && on_wait)
        on_wait(user);
    *waited = true;
    while (flock(fd, how) != 0)
        if (errno != EINTR)
            return -1;
    return 0;
}

attn_status attn_lock_take(attn_lock *lock, bool exclusive, void (*on_wait)(void *user), void *user,
                           attn_error *err) {
    bool waited = false;
    int rc = wait_for(lock->turnstile, LOCK_EX, &waited, on_wait, user);
    if (rc == 0)
        rc = wait_for(lock->gate, exclusive ? LOCK_EX : LOCK_SH, &waited, on_wait, user);
    int failure = errno;
    (void)flock(lock->turnstile, LOCK_UN);
    if (rc != 0)
        return attn_fail(err, ATTN_ERR_IO, "the timing lock cannot be taken: %s",
                         strerror(failure));
    return ATTN_OK;
}

void attn_lock_release(attn_lock *lock) {
    (void)flock(lock->gate, LOCK_UN);
}
