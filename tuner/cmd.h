/* cmd.h: what the verbs of the command line share.
 *
 * One verb is one function and one row of a table. It appends its data to cli->out, which main
 * writes when it has returned, says everything else on stderr, and returns the exit code. So a
 * verb that fails on its arguments has printed no data, and there is one place that writes. */
#ifndef ATTN_CMD_H
#define ATTN_CMD_H

#include "args.h"
#include "db.h"
#include "gen.h"
#include "probe.h"
#include "report.h"

enum {
    ATTN_EXIT_OK = 0,
    ATTN_EXIT_FOUND = 1,  /* something was found while working */
    ATTN_EXIT_USAGE = 2,  /* the command line cannot be understood */
    ATTN_EXIT_DEVICE = 3, /* no such device */
    ATTN_EXIT_SIGNAL = 128
};

/* The run of one verb. Everything but out is opened by the functions below, when a verb asks. */
typedef struct attn_cli {
    const char *command; /* the whole command line, for the session's row */
    attn_args args;
    attn_str out;
    attn_gen *gen;
    attn_db *db;
    attn_db *system; /* NULL: there is none */
    attn_probed probed;
    attn_device_info *device; /* the chosen ones */
    size_t devices;
    attn_problem *problem;
    const char **meant; /* the backend that each problem is meant for, by name; NULL: all */
    size_t problems;
    size_t *seen; /* problems by hash: 1 + the number of one, 0: free */
    size_t seen_size;
    int stop_fd; /* -1: signals end the program at once */
} attn_cli;

typedef struct attn_verb {
    const char *name;
    const char *words;   /* how its usage line goes on: "PROBLEM|@FILE..." */
    const char *line;    /* what it does, for lists */
    const char *help;    /* the same at length; paragraphs, ends with a line end */
    const char *options; /* names from the table in args.c; "format help" not to be forgotten */
    size_t min, max;     /* how many words; max 0: any number */
    int (*run)(attn_cli *cli);
    const struct attn_verb *verbs; /* verbs of its own, ends with a row without name; or NULL */
} attn_verb;

int attn_cmd_tune(attn_cli *cli);
int attn_cmd_devices(attn_cli *cli);
int attn_cmd_space(attn_cli *cli);
int attn_cmd_show(attn_cli *cli);
int attn_cmd_bench(attn_cli *cli);
int attn_cmd_verify(attn_cli *cli);
extern const attn_verb attn_db_verbs[];

/* Does what it is given unless a step before has failed: `ATTN_STEP(attn_cli_devices(cli));` */
#define ATTN_STEP(expression)                                                                      \
    do {                                                                                           \
        int step_ = (expression);                                                                  \
        if (step_ != ATTN_EXIT_OK)                                                                 \
            return step_;                                                                          \
    } while (0)

/*-*** Saying things on stderr ***********************************/

/* "attntune: ..." and a line end. */
void attn_say(const char *format, ...) ATTN_PRINTF(1, 2);

/* Says it and returns ATTN_EXIT_USAGE. */
int attn_misuse(const char *format, ...) ATTN_PRINTF(1, 2);

/* Says that memory ran out and returns ATTN_EXIT_FOUND. */
int attn_failure_nomem(void);

/* Says err's line and returns the code of the status: ATTN_EXIT_DEVICE for ERR_NO_DEVICE, else
 * ATTN_EXIT_FOUND. ATTN_OK: says nothing, returns ATTN_EXIT_OK, whatever is in err. */
int attn_failure(attn_status status, const attn_error *err);

/*-*** Steps that verbs begin with; each says its own failure ****/

/* cli->stop_fd: from here on SIGINT and SIGTERM are asked for, not obeyed. Before any worker. */
int attn_cli_stop(attn_cli *cli);

/* cli->gen, with the folders of --path or ATTNTUNE_PATH. */
int attn_cli_gen(attn_cli *cli);

/* cli->problem of these words: problems, @FILE or @- (standard input), in the form of
 * generator/shapes: one a line, '#' begins a comment, [cpu] what is meant for one backend. Each
 * problem once. */
int attn_cli_problems(attn_cli *cli, const char *const *words, size_t count);

/* Is problem number i meant for that device? */
bool attn_cli_meant(const attn_cli *cli, size_t i, const attn_device_info *device);

/* Is there a problem that is meant for one of the devices? If not, it says so. */
int attn_cli_any_meant(const attn_cli *cli);

/* cli->problem of a shape file of the generator: "shapes/quick.txt". */
int attn_cli_shapes(attn_cli *cli, const char *name);

/* cli->probed and cli->device, as --device and --threads say. More threads than may be used are a
 * misuse. */
int attn_cli_devices(attn_cli *cli);

/* The device that --arch describes, else the first of that backend (NULL: of any) that is here and
 * that --device chooses. Needs cli->gen for --arch. */
int attn_cli_target(attn_cli *cli, const char *backend, attn_device_info *info);

/* The family of that name; *info is as attn_gen_family gives it. */
int attn_cli_family(attn_cli *cli, const char *name, attn_family_info *info);

/* A --config: "FAMILY: NAME=VALUE ...", or "NAME=VALUE ..." of --family. Sets *family (of the
 * generator's storage) and where the values begin. */
int attn_cli_config(attn_cli *cli, const char *text, const char **family, const char **config);

/* A parameter or value that the family does not have, for a problem and device it accepts, is a
 * misuse. */
int attn_cli_check_config(attn_cli *cli, const char *family, const char *config);

/* cli->db. ATTN_DB_READ: a file that is not there is a misuse if --db named it; else *absent is
 * set, if it is not NULL, and cli->db stays NULL. */
int attn_cli_db(attn_cli *cli, attn_db_mode mode, bool *absent);

/* cli->system, if there is one; one that cannot be used is said and left out. */
int attn_cli_system(attn_cli *cli);

/* Can no file have this name, for what it is made of? errno says why. */
bool attn_leads_nowhere(const char *name);

/* A misuse: the file that was named is not there. */
int attn_no_file(const char *name);

/* Appends the file (or standard input, "-") to text; one that is not there is a misuse. */
int attn_cli_read(const char *name, attn_str *text);

/* Writes text into the file of --output, whole or not at all. */
int attn_cli_write(attn_cli *cli, const attn_str *text);

void attn_cli_close(attn_cli *cli);

/*-*** Small things **********************************************/

/* The winners of a problem on a device, of the user's database, else of the system's; the one for
 * the mode and the number of threads asked for, or nearest to them, comes first. No rows: there is
 * none. Free with attn_db_rows_free. */
attn_status attn_cli_winner(const attn_cli *cli, const attn_problem *problem,
                            const attn_device_info *device, attn_db_rows *rows, attn_error *err);

/* How many times faster a winner is than its family's default, by its final rounds; NaN: it had
 * none that tell, and times of different moments are no measure of that. */
double attn_times_default(double ns, double default_ns, double band);

/* The device of a stored row, with its threads. */
attn_status attn_row_device(const attn_db_row *row, attn_device_info *device, attn_error *err);

/* Why a stored row is no longer what would be made today, NULL if it is: text that lives as long
 * as the program. */
const char *attn_row_stale(attn_gen *gen, const attn_db_row *row);

/* The problem's text form, in text. */
const char *attn_problem_text(const attn_problem *problem, char text[ATTN_PROBLEM_TEXT]);

#endif
