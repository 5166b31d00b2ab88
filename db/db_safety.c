/* db_safety.c: where a database lies, and who could change it.
 *
 * Its binaries are run, so whoever can write the file, its -wal, its -shm or its folder can run
 * code as the reader. Links are resolved first, so that what is checked is what is opened. */
#include "db_internal.h"

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Allocated; NULL if out of memory. */
static char *folder_of(const char *path) {
    char *copy = strdup(path);
    char *folder = copy ? strdup(dirname(copy)) : NULL;
    free(copy);
    return folder;
}

static attn_status missing_folder(const char *path, attn_error *err) {
    attn_status status = errno == ENOENT ? ATTN_ERR_NOT_FOUND : ATTN_ERR_IO;
    return attn_fail(err, status, "database %s: its folder cannot be used: %s", path,
                     strerror(errno));
}

attn_status attn_db_resolve(const char *path, char **real, attn_error *err) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return attn_fail(err, ATTN_ERR_IO, "database %s: names a folder; name a file in it", path);
    *real = realpath(path, NULL);
    if (*real)
        return ATTN_OK;
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) /* a file may just have been made */
        return attn_fail(err, ATTN_ERR_IO, "database %s: a link that leads nowhere: %s", path,
                         strerror(errno));
    char *folder = folder_of(path);
    if (!folder)
        return attn_fail_nomem(err);
    char *whole = realpath(folder, NULL);
    free(folder);
    if (!whole)
        return missing_folder(path, err);
    int length = asprintf(real, "%s/%s", strcmp(whole, "/") == 0 ? "" : whole, name);
    free(whole);
    if (length >= 0)
        return ATTN_OK;
    *real = NULL;
    return attn_fail_nomem(err);
}

attn_status attn_db_make_folder(const char *path, attn_error *err) {
    char *copy = strdup(path);
    attn_status status = ATTN_OK;
    if (!copy)
        return attn_fail_nomem(err);
    for (char *at = copy; status == ATTN_OK && (at = strchr(at + 1, '/'));) {
        *at = '\0';
        int reason = mkdir(copy, 0700) == 0 ? 0 : errno;
        if (reason && reason != EEXIST && access(copy, F_OK) != 0)
            status = attn_fail(err, ATTN_ERR_IO,
                               "database %s: the folder %s cannot be made: %s; name another file "
                               "with --db or ATTNTUNE_DB",
                               path, copy, strerror(reason));
        *at = '/';
    }
    free(copy);
    return status;
}

/* Many systems give each user a group of one's own and let it write (umask 002): that is nobody
 * else. */
static bool is_private_group(gid_t gid, uid_t uid) {
    char buffer[4096];
    struct group group, *found = NULL;
    struct passwd user, *owner = NULL;
    if (getgrgid_r(gid, &group, buffer, sizeof buffer, &found) != 0 || !found ||
        found->gr_mem[0] != NULL)
        return false;
    char name[256];
    snprintf(name, sizeof name, "%s", group.gr_name);
    return getpwuid_r(uid, &user, buffer, sizeof buffer, &owner) == 0 && owner &&
           owner->pw_gid == gid && strcmp(owner->pw_name, name) == 0;
}

static attn_status safe_file(const char *path, bool folder, attn_error *err) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT
                   ? ATTN_OK
                   : attn_fail(err, ATTN_ERR_IO, "database %s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode) && !folder)
        return attn_fail(err, ATTN_ERR_IO, "database %s: a folder; name a file in it", path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return attn_fail(err, ATTN_ERR_DB_UNSAFE, "database %s: not a plain file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return attn_fail(err, ATTN_ERR_DB_UNSAFE,
                         "%s belongs to user %u, who could put code into the database: use one of "
                         "your own (--db or ATTNTUNE_DB)",
                         path, (unsigned)st.st_uid);
    if ((st.st_mode & S_IWOTH) ||
        ((st.st_mode & S_IWGRP) && !is_private_group(st.st_gid, st.st_uid)))
        return attn_fail(
            err, ATTN_ERR_DB_UNSAFE,
            "%s can be written by others, who could put code into the database: %s", path,
            st.st_mode & S_ISVTX ? "move it into a folder of your own" : "chmod go-w it");
    return ATTN_OK;
}

attn_status attn_db_safe(const char *path, attn_error *err) {
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    char *name = folder_of(path);
    if (!name)
        return attn_fail_nomem(err);
    attn_status status = safe_file(name, true, err);
    free(name);
    for (size_t i = 0; status == ATTN_OK && i < sizeof endings / sizeof endings[0]; i++) {
        if (asprintf(&name, "%s%s", path, endings[i]) < 0)
            return attn_fail_nomem(err);
        status = safe_file(name, false, err);
        free(name);
    }
    return status;
}

bool attn_db_on_network(const char *path) {
    /* nfs, smb, cifs, smb2, fuse (sshfs and the like), 9p, ceph, lustre, gpfs, afs, coda, ncp,
     * gfs2, ocfs2, beegfs, vboxsf: numbers as statfs(2) has them */
    static const uint32_t kinds[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                                     0x65735546, 0x01021997, 0x00c36400, 0x0bd00bd0,
                                     0x47504653, 0x5346414f, 0x73757245, 0x564c,
                                     0x01161970, 0x7461636f, 0x19830326, 0x786f4256};
    struct statfs fs;
    char *folder = folder_of(path);
    int failed = folder ? statfs(folder, &fs) : -1;
    free(folder);
    for (size_t i = 0; !failed && i < sizeof kinds / sizeof kinds[0]; i++)
        if ((uint32_t)fs.f_type == kinds[i])
            return true;
    return false;
}
