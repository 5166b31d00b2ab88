/* gen_source.c: what a variant's source is made of: pasting helpers in, and hashing them. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/str.h"
#include "gen_files.h"

enum { HELPER_NAME = 96, DEPTH_MAX = 16 };

struct paster {
    const attn_files *files;
    bool *pasted;  /* by file: it is in the text already */
    attn_str *out; /* NULL: only `pasted` is wanted, and unknown helpers are no error */
    bool unknown;  /* there was a name that is only known after rendering */
};

/* A line's `#word "name"`: copies the name, and the number before it where there is one (#line). */
static bool directive(const char *at, const char *word, long *number, char name[HELPER_NAME]) {
    at += strspn(at, " \t");
    if (*at++ != '#')
        return false;
    at += strspn(at, " \t");
    if (strncmp(at, word, strlen(word)) != 0)
        return false;
    at += strlen(word);
    at += strspn(at, " \t");
    if (number) {
        char *end;
        *number = strtol(at, &end, 10);
        at = end + strspn(end, " \t");
    }
    size_t n = *at == '"' ? strcspn(at + 1, "\"\n") : 0;
    if (n == 0 || n >= HELPER_NAME || at[1 + n] != '"')
        return false;
    memcpy(name, at + 1, n);
    name[n] = '\0';
    return true;
}

static void put(struct paster *p, const char *text, size_t size) {
    if (p->out)
        attn_str_append_bytes(p->out, text, size);
}

static void put_line(struct paster *p, long line, const char *file) {
    if (p->out)
        attn_str_append_f(p->out, "#line %ld \"%s\"\n", line, file);
}

static attn_status paste(struct paster *p, const char *name, const char *text, int depth,
                         attn_error *err);

static attn_status no_helper(struct paster *p, const char *file, long line, const char *name,
                             attn_error *err) {
    const char *helpers[256];
    size_t n = 0;
    if (!p->out) {
        p->unknown = true;
        return ATTN_OK;
    }
    for (size_t i = 0; i < p->files->count && n < sizeof helpers / sizeof helpers[0]; i++)
        if (strncmp(p->files->file[i].name, "include/", 8) == 0)
            helpers[n++] = p->files->file[i].name + 8;
    const char *near = attn_nearest_word(name, helpers, n);
    return attn_fail(err, ATTN_ERR_TEMPLATE, "%s:%ld: there is no templates/include/%s%s%s%s", file,
                     line, name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* Pastes the helper that line `line` of `file` includes. */
static attn_status paste_helper(struct paster *p, const char *file, long line, const char *helper,
                                int depth, attn_error *err) {
    char name[HELPER_NAME + 32];
    strcat(strcpy(name, "include/"), helper);
    const attn_file *found = attn_files_find(p->files, name);
    if (!found)
        return no_helper(p, file, line, helper, err);
    bool *pasted = &p->pasted[found - p->files->file];
    if (*pasted) {
        put(p, "\n", 1);
        return ATTN_OK;
    }
    if (depth >= DEPTH_MAX)
        return attn_fail(err, ATTN_ERR_TEMPLATE, "%s:%ld: helpers are nested too deeply", file,
                         line);
    *pasted = true;
    strcat(strcpy(name, "templates/include/"), helper);
    put_line(p, 1, name);
    attn_status st = paste(p, name, found->data, depth + 1, err);
    put_line(p, line + 1, file);
    return st;
}

static attn_status paste(struct paster *p, const char *name, const char *text, int depth,
                         attn_error *err) {
    char file[HELPER_NAME + 32], helper[HELPER_NAME];
    long line = 1, number;
    strncat(strcpy(file, ""), name, sizeof file - 1);
    while (*text) {
        size_t size = strcspn(text, "\n");
        if (directive(text, "include", NULL, helper)) {
            ATTN_TRY(paste_helper(p, file, line, helper, depth, err));
        } else {
            put(p, text, size);
            put(p, "\n", 1);
        }
        if (directive(text, "line", &number, helper)) {
            strncat(strcpy(file, ""), helper, sizeof file - 1);
            line = number - 1;
        }
        line++;
        text += size + (text[size] == '\n');
    }
    return ATTN_OK;
}

attn_status attn_source_paste(const attn_files *files, const char *name, const char *text,
                              attn_str *out, attn_error *err) {
    struct paster p = {files, calloc(files->count + 1, sizeof(bool)), out, false};
    if (!p.pasted)
        return attn_fail_nomem(err);
    attn_status st = paste(&p, name, text, 0, err);
    free(p.pasted);
    if (st != ATTN_OK)
        return attn_files_locate(files, err);
    return out->failed ? attn_fail_nomem(err) : ATTN_OK;
}

static void hash_file(attn_hash *hash, const attn_file *file) {
    attn_hash_text_field(hash, file->name);
    attn_hash_field(hash, file->data, file->size);
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

attn_status attn_source_hash(const attn_files *files, const char *family, attn_hash *hash,
                             attn_error *err) {
    attn_str space = ATTN_STR_INIT, stem = ATTN_STR_INIT;
    struct paster p = {files, calloc(files->count + 1, sizeof(bool)), NULL, false};
    attn_status st = ATTN_OK;
    attn_str_append_f(&space, "spaces/%s.lua", family);
    attn_str_append_f(&stem, "templates/%s.", family);
    *hash = attn_hash_begin();
    if (!p.pasted || space.failed || stem.failed) {
        st = attn_fail_nomem(err);
        goto end;
    }
    if (!attn_files_find(files, space.data))
        st = attn_fail(err, ATTN_ERR_NOT_FOUND, "no family '%s'", family);
    for (size_t i = 0; st == ATTN_OK && i < files->count; i++) {
        const attn_file *file = &files->file[i];
        if (begins(file->name, stem.data))
            st = paste(&p, file->name, file->data, 0, err);
    }
    for (size_t i = 0; st == ATTN_OK && i < files->count; i++) {
        const attn_file *file = &files->file[i];
        bool helper = begins(file->name, "include/") && (p.pasted[i] || p.unknown);
        if (helper || begins(file->name, "lua/") || begins(file->name, stem.data) ||
            strcmp(file->name, space.data) == 0)
            hash_file(hash, file);
    }
end:
    free(p.pasted);
    attn_str_free(&space);
    attn_str_free(&stem);
    return st;
}
