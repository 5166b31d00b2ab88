/* folder.h: a private temporary folder for the length of one compile. */
#ifndef ATTN_FOLDER_H
#define ATTN_FOLDER_H

#include "core/error.h"
#include "core/str.h"

typedef struct attn_folder {
    attn_str path;
    int fd; /* open and locked, which tells others that the folder is in use; -1: there is none */
} attn_folder;

#define ATTN_FOLDER_INIT                                                                           \
    { ATTN_STR_INIT, -1 }

/* Where temporary files go: TMPDIR, else /tmp. */
const char *attn_folder_base(void);

/* Removes the folders there that processes of this user left behind as they were killed. */
void attn_folder_sweep(void);

/* Makes one there (mode 0700), after a sweep. */
attn_status attn_folder_make(attn_folder *folder, attn_error *err);

/* Removes it with the files in it. */
void attn_folder_remove(attn_folder *folder);

#endif
