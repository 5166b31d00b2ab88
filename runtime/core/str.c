/* str.c: a byte string that grows. */
#include "core/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and the NUL. */
static bool reserve(attn_str *s, size_t more) {
    if (s->failed)
        return false;
    if (more >= SIZE_MAX / 2 - s->size) {
        s->failed = true;
        return false;
    }
    size_t need = s->size + more + 1;
    if (need <= s->capacity)
        return true;
    size_t capacity = need < 64 ? 64 : need + need / 2;
    char *data = realloc(s->data, capacity);
    if (!data) {
        s->failed = true;
        return false;
    }
    s->data = data;
    s->capacity = capacity;
    return true;
}

void attn_str_append_bytes(attn_str *s, const void *data, size_t size) {
    if (!reserve(s, size))
        return;
    if (size)
        memcpy(s->data + s->size, data, size);
    s->size += size;
    s->data[s->size] = '\0';
}

void attn_str_append(attn_str *s, const char *text) {
    attn_str_append_bytes(s, text, strlen(text));
}

void attn_str_append_f(attn_str *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !reserve(s, (size_t)n)) {
        s->failed = true;
        return;
    }
    va_start(args, format);
    (void)vsnprintf(s->data + s->size, (size_t)n + 1, format, args);
    va_end(args);
    s->size += (size_t)n;
}

const char *attn_str_text(const attn_str *s) {
    return s->data ? s->data : "";
}

void attn_str_clear(attn_str *s) {
    s->size = 0;
    s->failed = false;
    if (s->data)
        s->data[0] = '\0';
}

void attn_str_free(attn_str *s) {
    free(s->data);
    *s = (attn_str)ATTN_STR_INIT;
}

char *attn_str_take(attn_str *s) {
    attn_str_append_bytes(s, "", 0); /* so that an empty string is "", not NULL */
    char *data = s->failed ? NULL : s->data;
    if (!data)
        free(s->data);
    *s = (attn_str)ATTN_STR_INIT;
    return data;
}

attn_status attn_str_read_file(attn_str *s, const char *path, attn_error *err) {
    FILE *file = fopen(path, "rbe");
    if (!file)
        return attn_fail(err, errno == ENOENT ? ATTN_ERR_NOT_FOUND : ATTN_ERR_IO,
                         "cannot open %s: %s", path, strerror(errno));
    char block[16384];
    size_t n;
    while (s->size <= ATTN_FILE_MAX && (n = fread(block, 1, sizeof block, file)) > 0)
        attn_str_append_bytes(s, block, n);
    int failed = s->size > ATTN_FILE_MAX ? EFBIG : ferror(file) ? errno : 0;
    (void)fclose(file);
    if (failed)
        return attn_fail(err, ATTN_ERR_IO, "cannot read %s: %s", path, strerror(failed));
    return s->failed ? attn_fail_nomem(err) : ATTN_OK;
}
