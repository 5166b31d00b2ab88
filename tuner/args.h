/* args.h: the options of the command line, read by one table.
 *
 * A verb names the options it takes ("device threads budget"); parsing, checking, --help and the
 * nearest word of a mistake all come from the table in args.c. `--name value` and `--name=value`
 * are the same; `--` ends the options; a later option replaces an earlier one. */
#ifndef ATTN_ARGS_H
#define ATTN_ARGS_H

#include "core/str.h"

/* What was given. Texts belong to argv, the arrays to the struct; NULL, 0 and false: not given. */
typedef struct attn_args {
    const char *db;
    const char *system_db;
    const char *path;
    const char *device;
    const char *search;
    const char *family;
    const char *arch;
    const char *output;
    const char **config; /* each --config */
    size_t configs;
    int32_t format; /* attn_format */
    int32_t mode;   /* attn_mode */
    int32_t threads;
    int32_t jobs;
    int32_t rounds;
    int32_t limit;
    uint64_t seed;
    double budget_s;
    bool quick;
    bool dry_run;
    bool whole;
    bool fresh;
    bool again;
    bool lint;
    bool winner;
    bool winners;
    bool samples;
    bool all;
    bool system;
    bool help;
    const char **word; /* what is not an option */
    size_t words;
} attn_args;

/* Reads argv[0..argc), the words after the verb. `allowed`: names of options without dashes, blank
 * between them. ERR_INVALID: one line that names the fault and the nearest right form. Free *args
 * in every case. */
attn_status attn_args_parse(int argc, const char *const *argv, const char *allowed, attn_args *args,
                            attn_error *err);
void attn_args_free(attn_args *args);

/* Appends the help of the options in `allowed`, one or more lines each. */
void attn_args_help(const char *allowed, attn_str *out);

/* Is `name` among the blank-separated `names`? */
bool attn_args_allows(const char *names, const char *name);

#endif
