/* cmd_db.h: what the verbs of `attntune db` share. */
#ifndef ATTN_CMD_DB_H
#define ATTN_CMD_DB_H

#include "cmd.h"

int attn_cmd_db_best(attn_cli *cli);
int attn_cmd_db_list(attn_cli *cli);
int attn_cmd_db_bundle(attn_cli *cli);
int attn_cmd_db_prune(attn_cli *cli);

/* Winners that are used here: the user's, then those of the system that no winner of the user's
 * goes before (same problem, device, threads and mode). */
typedef struct attn_best {
    attn_db_rows user;
    attn_db_rows system; /* without those that are never looked at */
} attn_best;

/* Of the problems in cli (none: of all), on the devices in cli if --device was given. cli->db and
 * cli->system may be NULL. */
attn_status attn_best_find(const attn_cli *cli, attn_best *best, attn_error *err);
void attn_best_free(attn_best *best);

/* Rows of one database that match the problems, devices and filter, in order. */
attn_status attn_rows_find(const attn_cli *cli, attn_db *db, const attn_db_filter *filter,
                           attn_db_rows *rows, attn_error *err);

/* Reads problems from the words and, if --device was given, finds the devices. */
int attn_cli_selection(attn_cli *cli);

/* Time to show for a row: of the final rounds, else of the race. */
double attn_row_ns(const attn_db_row *row);

/* "2026-11-30T06:19:32Z", "" for 0. */
void attn_time_text(int64_t seconds, char text[32]);

#endif
