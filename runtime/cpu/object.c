/* object.c: loading kernels; see object.h. */
#include "object.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compile.h"
#include "folder.h"

/* Compilers put the table of sections last. */
bool attn_object_is_whole(const void *data, size_t size) {
    Elf64_Ehdr h;
    if (size < sizeof h)
        return false;
    memcpy(&h, data, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    return h.e_ident[EI_CLASS] != ELFCLASS64 ||
           (h.e_shoff <= size && (size - h.e_shoff) / sizeof(Elf64_Shdr) >= h.e_shnum);
}

static bool write_all(int fd, const void *data, size_t size) {
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static attn_status open_path(const char *path, attn_object *object, attn_error *err) {
    object->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object->handle)
        return ATTN_OK;
    const char *reason = dlerror();
    return attn_fail(err, ATTN_ERR_LOAD, "the kernel could not be loaded: %s",
                     reason ? reason : "unknown reason");
}

static attn_status open_memory(const void *data, size_t size, attn_object *object,
                               attn_error *err) {
    char path[32];
    attn_status status;
    object->fd = memfd_create("attntune-kernel", MFD_CLOEXEC);
    if (object->fd < 0)
        return attn_fail(err, ATTN_ERR_LOAD, "memfd_create: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/self/fd/%d", object->fd);
    if (!write_all(object->fd, data, size))
        status = attn_fail(err, ATTN_ERR_NOMEM, "no memory for a kernel: %s", strerror(errno));
    else
        status = open_path(path, object, err);
    if (status != ATTN_OK) {
        close(object->fd);
        object->fd = -1;
    }
    return status;
}

/* The name is unique, and the file is gone as soon as it is loaded. */
static attn_status open_file(const char *folder, const void *data, size_t size, attn_object *object,
                             attn_error *err) {
    attn_str path = ATTN_STR_INIT;
    attn_status status;
    attn_str_append_f(&path, "%s/attntune-kernel-XXXXXX", folder);
    int fd = path.failed ? -1 : mkostemp(path.data, O_CLOEXEC);
    if (fd < 0) {
        attn_str_free(&path);
        return attn_fail(err, ATTN_ERR_LOAD, "no file can be made in %s: %s", folder,
                         strerror(errno));
    }
    bool written = write_all(fd, data, size);
    written &= close(fd) == 0;
    if (!written)
        status =
            attn_fail(err, ATTN_ERR_LOAD, "%s cannot be written: %s", path.data, strerror(errno));
    else
        status = open_path(path.data, object, err);
    unlink(path.data);
    attn_str_free(&path);
    if (status != ATTN_OK && written && strstr(err->line, "failed to map"))
        attn_fail(err, ATTN_ERR_LOAD,
                  "%s does not allow programs to be run (noexec); set TMPDIR to a folder that does",
                  folder);
    return status;
}

attn_status attn_object_open_way(attn_object_way way, const char *folder, const void *data,
                                 size_t size, attn_object *object, attn_error *err) {
    *object = (attn_object){NULL, -1};
    return way == ATTN_OBJECT_MEMORY ? open_memory(data, size, object, err)
                                     : open_file(folder, data, size, object, err);
}

/* Memory first; where that is not possible (no /proc, memory that may not be run), a file. */
static attn_status open_either(const void *data, size_t size, attn_object *object,
                               attn_error *err) {
    attn_error second = ATTN_ERROR_INIT;
    if (attn_object_open_way(ATTN_OBJECT_MEMORY, NULL, data, size, object, err) == ATTN_OK)
        return ATTN_OK;
    if (attn_object_open_way(ATTN_OBJECT_FILE, attn_folder_base(), data, size, object, &second) ==
        ATTN_OK) {
        *err = (attn_error)ATTN_ERROR_INIT;
        return ATTN_OK;
    }
    char first[512];
    snprintf(first, sizeof first, "%.500s", err->line);
    return attn_fail(err, ATTN_ERR_LOAD, "%s; and from a file: %.500s", first, second.line);
}

static attn_status check_key(const attn_object *object, const attn_binary *binary,
                             attn_error *err) {
    const char *key = dlsym(object->handle, "attn_key");
    if (!key)
        return attn_fail(err, ATTN_ERR_LOAD, "the binary exports no attn_key");
    if (strncmp(key, binary->key, ATTN_HASH_TEXT) != 0)
        return attn_fail(err, ATTN_ERR_LOAD, "the binary has the key %.32s, not %.32s", key,
                         binary->key);
    return ATTN_OK;
}

/* Unloading an OpenMP runtime while its threads sleep in its code would crash the process, so one
 * that a kernel brought in stays. */
static void keep_openmp(const attn_object *object) {
    static const char *const entries[] = {"GOMP_parallel", "__kmpc_fork_call"};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        Dl_info info;
        void *entry = dlsym(object->handle, entries[i]);
        if (entry && dladdr(entry, &info) && info.dli_fname)
            dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

attn_status attn_object_open(const attn_binary *binary, attn_object *object, attn_error *err) {
    size_t size = attn_binary_object_size(binary->data, binary->size);
    *object = (attn_object){NULL, -1};
    if (size == 0)
        return attn_fail(err, ATTN_ERR_LOAD, "the binary is damaged: %zu bytes whose hash is wrong",
                         binary->size);
    ATTN_TRY(open_either(binary->data, size, object, err));
    keep_openmp(object);
    attn_status status = check_key(object, binary, err);
    if (status != ATTN_OK)
        attn_object_close(object);
    return status;
}

void attn_object_close(attn_object *object) {
    if (object->handle)
        dlclose(object->handle);
    if (object->fd >= 0)
        close(object->fd);
    *object = (attn_object){NULL, -1};
}

attn_any_function *attn_object_function(const attn_object *object, const char *symbol) {
    attn_any_function *function;
    void *address = dlsym(object->handle, symbol);
    memcpy(&function, &address, sizeof function); /* ISO C has no cast for this */
    return function;
}
