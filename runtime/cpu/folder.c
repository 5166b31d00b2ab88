/* folder.c: temporary folders; see folder.h. */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "attntune-cc-";
enum { NAME_LENGTH = sizeof prefix - 1 + 6, TRIES = 100, DEPTH = 16 };

static void remove_files(int fd, int depth);

/* Of a compiler, or of what it calls; links are not followed. */
static void remove_subfolder(int fd, const char *name, int depth) {
    int sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub < 0)
        return;
    remove_files(sub, depth);
    close(sub);
    unlinkat(fd, name, AT_REMOVEDIR);
}

/* Each level holds descriptors, so there is an end to them. */
static void remove_files(int fd, int depth) {
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        bool own = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!own && unlinkat(fd, entry->d_name, 0) != 0 && depth > 0)
            remove_subfolder(fd, entry->d_name, depth - 1);
    }
    if (dir)
        closedir(dir);
    else if (copy >= 0)
        close(copy);
}

/* Was the folder left behind? Its owner holds a lock for as long as it lives. */
static bool left_behind(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void attn_folder_sweep(void) {
    DIR *dir = opendir(attn_folder_base());
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strlen(entry->d_name) != NAME_LENGTH ||
            strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0)
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && left_behind(fd)) {
            remove_files(fd, DEPTH);
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
        }
        if (fd >= 0)
            close(fd);
    }
    if (dir)
        closedir(dir);
}

const char *attn_folder_base(void) {
    const char *tmpdir = getenv("TMPDIR");
    return tmpdir && *tmpdir ? tmpdir : "/tmp";
}

/* Locks the folder that was just made: 0, or errno. Another process may have taken it for left
 * behind in between, and have removed it or be about to: EWOULDBLOCK or ENOENT. */
static int claim(attn_folder *folder) {
    struct stat held, there;
    folder->fd = open(folder->path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0 || flock(folder->fd, LOCK_EX | LOCK_NB) != 0 ||
        fstat(folder->fd, &held) != 0 || stat(folder->path.data, &there) != 0)
        return errno;
    return held.st_ino == there.st_ino && held.st_dev == there.st_dev ? 0 : ENOENT;
}

static attn_status make_one(attn_folder *folder, int *claimed, attn_error *err) {
    const char *base = attn_folder_base();
    *folder = (attn_folder)ATTN_FOLDER_INIT;
    attn_str_append_f(&folder->path, "%s/%sXXXXXX", base, prefix);
    if (folder->path.failed)
        return attn_fail_nomem(err);
    if (!mkdtemp(folder->path.data)) {
        attn_fail(err, ATTN_ERR_IO, "no temporary folder can be made in %s: %s (TMPDIR names it)",
                  base, strerror(errno));
        attn_str_free(&folder->path);
        return err->status;
    }
    *claimed = claim(folder);
    return ATTN_OK;
}

attn_status attn_folder_make(attn_folder *folder, attn_error *err) {
    int claimed = 0;
    attn_folder_sweep();
    for (int i = 0; i < TRIES; i++) {
        ATTN_TRY(make_one(folder, &claimed, err));
        if (claimed == 0)
            return ATTN_OK;
        if (claimed != EWOULDBLOCK && claimed != ENOENT)
            break;
        attn_folder_remove(folder);
    }
    attn_folder_remove(folder);
    return attn_fail(err, ATTN_ERR_IO, "a temporary folder in %s cannot be locked: %s",
                     attn_folder_base(), strerror(claimed));
}

void attn_folder_remove(attn_folder *folder) {
    if (folder->fd >= 0) {
        remove_files(folder->fd, DEPTH);
        close(folder->fd);
    }
    if (folder->path.data)
        rmdir(folder->path.data);
    attn_str_free(&folder->path);
    folder->fd = -1;
}
