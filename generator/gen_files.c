/* gen_files.c: collects the embedded files and those of the overlay folders. */
#include "gen_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/embed.h"
#include "core/str.h"

ATTN_EMBEDDED_TABLE(attn_generator_files);

enum { DEPTH_MAX = 3 }; /* spaces/BACKEND/NAME.lua */

static int by_name(const void *a, const void *b) {
    return strcmp(((const attn_file *)a)->name, ((const attn_file *)b)->name);
}

const attn_file *attn_files_find(const attn_files *files, const char *name) {
    size_t low = 0, high = files->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(files->file[middle].name, name);
        if (order == 0)
            return &files->file[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool has(const attn_files *files, const char *name) {
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->file[i].name, name) == 0)
            return true;
    return false;
}

const char *attn_files_place(const attn_files *files, const char *name) {
    const attn_file *file = attn_files_find(files, name);
    return file && file->path ? file->path : name;
}

attn_status attn_files_locate(const attn_files *files, attn_error *err) {
    char name[256];
    attn_error rest = *err;
    size_t length = strcspn(err->line, ":");
    if (length >= sizeof name || err->line[length] != ':')
        return err->status;
    memcpy(name, err->line, length);
    name[length] = '\0';
    const char *place = attn_files_place(files, name);
    if (place == name)
        return err->status;
    return attn_fail(err, rest.status, "%s%s", place, rest.line + length);
}

static void free_file(attn_file *file) {
    free(file->name);
    free(file->owned);
    free(file->path);
}

/* Appends a file unless there is one of that name; takes `owned` in any case. path: on disk, or
 * NULL.
 */
static attn_status add(attn_files *files, const char *name, const char *path, const char *data,
                       size_t size, char *owned, attn_error *err) {
    if (has(files, name)) {
        free(owned);
        return ATTN_OK;
    }
    attn_file file = {strdup(name), data, size, owned, path ? strdup(path) : NULL};
    attn_file *grown = realloc(files->file, (files->count + 1) * sizeof *grown);
    if (grown)
        files->file = grown;
    if (!file.name || (path && !file.path) || !grown) {
        free_file(&file);
        return attn_fail_nomem(err);
    }
    files->file[files->count++] = file;
    return ATTN_OK;
}

/* `templates/include` of a source tree is `include` here. */
static const char *known_name(const char *name) {
    static const char helpers[] = "templates/include/";
    return strncmp(name, helpers, sizeof helpers - 1) == 0 ? name + strlen("templates/") : name;
}

static attn_status add_disk_file(attn_files *files, const char *path, const char *name,
                                 attn_error *err) {
    attn_str text = ATTN_STR_INIT;
    attn_status st = attn_str_read_file(&text, path, err);
    if (st != ATTN_OK) {
        attn_str_free(&text);
        return st;
    }
    size_t size = text.size;
    char *data = attn_str_take(&text);
    attn_str_free(&text);
    return data ? add(files, known_name(name), path, data, size, data, err) : attn_fail_nomem(err);
}

static attn_status add_entry(attn_files *files, const char *root, const char *name, int depth,
                             attn_error *err);

static attn_status add_folder(attn_files *files, const char *root, const char *path,
                              const char *name, int depth, attn_error *err) {
    DIR *folder = opendir(path);
    if (!folder)
        return attn_fail(err, ATTN_ERR_IO, "cannot read the folder %s: %s", path, strerror(errno));
    attn_status st = ATTN_OK;
    struct dirent *entry;
    while (st == ATTN_OK && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        attn_str inner = ATTN_STR_INIT;
        attn_str_append_f(&inner, "%s/%s", name, entry->d_name);
        st = inner.failed ? attn_fail_nomem(err)
                          : add_entry(files, root, inner.data, depth + 1, err);
        attn_str_free(&inner);
    }
    closedir(folder);
    return st;
}

/* Adds root/name, a file or a folder, if it exists. */
static attn_status add_entry(attn_files *files, const char *root, const char *name, int depth,
                             attn_error *err) {
    attn_str path = ATTN_STR_INIT;
    struct stat info;
    attn_status st = ATTN_OK;
    attn_str_append_f(&path, "%s/%s", root, name);
    if (path.failed)
        st = attn_fail_nomem(err);
    else if (stat(path.data, &info) != 0)
        st = ATTN_OK;
    else if (S_ISREG(info.st_mode))
        st = add_disk_file(files, path.data, name, err);
    else if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX)
        st = add_folder(files, root, path.data, name, depth, err);
    attn_str_free(&path);
    return st;
}

static attn_status add_root(attn_files *files, const char *root, attn_error *err) {
    static const char *const entries[] = {"spaces", "templates", "include",
                                          "shapes", "lua",       "devices.lua"};
    struct stat info;
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = 0;
    if (fd < 0)
        return attn_fail(err, ATTN_ERR_NOT_FOUND,
                         "ATTNTUNE_PATH (or --path) names '%s', which is no folder", root);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        found += fstatat(fd, entries[i], &info, 0) == 0;
    close(fd);
    if (!found)
        return attn_fail(err, ATTN_ERR_NOT_FOUND,
                         "ATTNTUNE_PATH (or --path) names '%s', in which there is no spaces, "
                         "templates, include, shapes, lua or devices.lua",
                         root);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        ATTN_TRY(add_entry(files, root, entries[i], 1, err));
    return ATTN_OK;
}

attn_status attn_files_open(const char *path, attn_files *files, attn_error *err) {
    *files = (attn_files){NULL, 0};
    attn_status st = ATTN_OK;
    while (st == ATTN_OK && path && *path) {
        size_t length = strcspn(path, ":");
        char *root = strndup(path, length);
        if (!root)
            st = attn_fail_nomem(err);
        else if (length > 0)
            st = add_root(files, root, err);
        free(root);
        path += length + (path[length] == ':');
    }
    for (size_t i = 0; st == ATTN_OK && i < attn_generator_files_count; i++) {
        const attn_embedded *e = &attn_generator_files[i];
        st = add(files, e->name, NULL, (const char *)e->data, e->size, NULL, err);
    }
    if (st != ATTN_OK)
        attn_files_close(files);
    else
        qsort(files->file, files->count, sizeof *files->file, by_name);
    return st;
}

void attn_files_close(attn_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        free_file(&files->file[i]);
    }
    free(files->file);
    *files = (attn_files){NULL, 0};
}
