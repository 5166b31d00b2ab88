/* main.c: the program attntune: finds the verb, reads its options, runs it, writes what it made.
 *
 * A new verb is one file cmd_NAME.c and one row here. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "stop.h"
#include "tune.h"

#define COMMON "path format help"

static const attn_verb verbs[] = {
    {"tune", "[PROBLEM|@FILE...]", "find the fastest variant of each problem on each device",
     "Each variant is built, proved right, measured and recorded as it ends: Ctrl-C loses "
     "nothing,\n"
     "and the same command goes on where it stopped. Without a problem, the default ones are\n"
     "tuned: shapes/default.txt, or shapes/quick.txt with --quick.\n"
     "@FILE holds one problem a line; '#' begins a comment. A line [cpu] or [cuda] makes those\n"
     "below it, up to the next such line, be for devices of that backend alone; [all] makes them\n"
     "be for every device again. @- is standard input.\n"
     "With --family, the winner of another family stays unless it is clearly slower.\n"
     "Prints each problem's winner, its time, GFLOP/s, per cent of the measured peak of fused\n"
     "multiply-adds, and how many times faster it is than its family's default; or why there is\n"
     "none.\n",
     "device budget quick search seed jobs threads mode family whole fresh again dry-run db "
     "system-db " COMMON,
     0, 0, attn_cmd_tune, NULL},
    {"devices", "", "what is here, what is missing and how to get it",
     "Properties of each device as space files see them, the measured peak of fused multiply-adds\n"
     "on some numbers of threads, the compilers that kernels can be built with, and what is\n"
     "missing.\n",
     "device threads " COMMON, 0, 0, attn_cmd_devices, NULL},
    {"space", "[FAMILY [PROBLEM]]", "parameters, counts, what each constraint rejects",
     "Without a family: the families there are. Without a problem: the first default one that the\n"
     "family accepts. --lint builds pairs of variants and may take minutes.\n",
     "arch device lint " COMMON, 0, 2, attn_cmd_space, NULL},
    {"show", "FAMILY PROBLEM [NAME=VALUE...]", "the source of a variant, in one file",
     "Prints one file that compiles alone, by the command on its first line. At its end: options,\n"
     "launch record, and the resources that the build takes. Parameters not given are the\n"
     "default's. --config \"NAME=VALUE ...\" is another way to give them.\n",
     "config arch device output path help", 2, 0, attn_cmd_show, NULL},
    {"bench", "PROBLEM|@FILE...", "the winner, the default and chosen configurations, interleaved",
     "Measures the winner in the databases, the default of each family that accepts the problem,\n"
     "and each --config, round by round, so that all see the same clocks. Each is proved first.\n"
     "One that is several of these has one row, with all their names.\n",
     "device config family rounds threads mode seed db system-db " COMMON, 1, 0, attn_cmd_bench,
     NULL},
    {"verify", "PROBLEM|@FILE...", "prove variants right: every family's, one, or the winner",
     "Builds the variants of every family that accepts the problem (its core, --whole for all) "
     "and\n"
     "compares them with a float64 reference, on hostile problems of the class, too. Exit code 1\n"
     "if one is wrong or fails.\n",
     "device family config winner whole budget jobs threads seed db system-db " COMMON, 1, 0,
     attn_cmd_verify, NULL},
    {"db", "VERB", "look into the database, carry results from machine to machine", NULL, NULL, 0,
     0, NULL, attn_db_verbs},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL},
};

static const char *const top_help =
    "attntune finds the fastest attention kernels for this machine.\n\n"
    "usage: attntune                       tune the default problems on every device here\n"
    "       attntune VERB [WORD...] [--option VALUE...]\n"
    "       attntune VERB --help | --version\n\n";

static const char *const closing_help =
    "\nA problem: fwd:DTYPE:bN:(hN|hqN:hkvN):(sN|sqN:skN):dN[:dvN][:causal|:causal_tl|:windowL,R]\n"
    "           [:lse][:bshd|:qkv][:a1]      for instance fwd:f32:b1:h4:s1024:d64:causal\n"
    "Exit codes: 0 done; 1 something was found while working; 2 the command line cannot be\n"
    "understood; 3 no such device; 130 SIGINT and 143 SIGTERM, after saving.\n";

static void list_verbs(const attn_verb *list, attn_str *out) {
    attn_str_append(out, "verbs:\n");
    for (; list->name; list++)
        attn_str_append_f(out, "  %-10s%s\n", list->name, list->line);
}

static void verb_help(const attn_verb *verb, const char *prefix, attn_str *out) {
    attn_str_append_f(out, "attntune %s%s: %s\n\nusage: attntune %s%s%s%s%s\n\n", prefix,
                      verb->name, verb->line, prefix, verb->name, verb->words[0] ? " " : "",
                      verb->words,
                      verb->verbs ? " [WORD...] [--option VALUE...]" : " [--option VALUE...]");
    if (verb->verbs) {
        list_verbs(verb->verbs, out);
        return;
    }
    attn_str_append_f(out, "%s\noptions:\n", verb->help);
    attn_args_help(verb->options, out);
}

/* NULL, having said which verb may have been meant. */
static const attn_verb *find_verb(const attn_verb *list, const char *prefix, const char *name) {
    const char *names[32];
    size_t n = 0;
    for (const attn_verb *verb = list; verb->name; verb++) {
        if (strcmp(verb->name, name) == 0)
            return verb;
        names[n++] = verb->name;
    }
    const char *near = attn_nearest_word(name, names, n);
    if (near)
        attn_say("there is no verb \"%s%s\"; did you mean \"%s%s\"?", prefix, name, prefix, near);
    else if (list == verbs && (strchr(name, ':') || name[0] == '@'))
        attn_say("there is no verb \"%s\"; a problem comes after one: attntune tune %s", name,
                 name);
    else
        attn_say("there is no verb \"%s%s\"; attntune %s--help lists them", prefix, name, prefix);
    return NULL;
}

static int run_verb(const attn_verb *verb, const char *prefix, int argc, char **argv,
                    attn_cli *cli) {
    attn_error err = ATTN_ERROR_INIT;
    if (attn_args_parse(argc, (const char *const *)argv, verb->options, &cli->args, &err) !=
        ATTN_OK)
        return attn_misuse("%s", err.line);
    if (cli->args.help) {
        verb_help(verb, prefix, &cli->out);
        return ATTN_EXIT_OK;
    }
    size_t words = cli->args.words, max = verb->max || !verb->words[0] ? verb->max : SIZE_MAX;
    if (words < verb->min)
        return attn_misuse("more is needed: attntune %s%s %s", prefix, verb->name, verb->words);
    if (words > max)
        return attn_misuse("\"%s\" is too much: attntune %s%s%s%s", cli->args.word[max], prefix,
                           verb->name, max ? " " : "", verb->words);
    return verb->run(cli);
}

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

/* Finds the verb and runs it. */
static int dispatch(int argc, char **argv, attn_cli *cli) {
    const attn_verb *list = verbs;
    const char *prefix = "";
    if (argc > 1 && is_help(argv[1])) {
        attn_str_append(&cli->out, top_help);
        list_verbs(verbs, &cli->out);
        attn_str_append(&cli->out, closing_help);
        return ATTN_EXIT_OK;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        attn_str_append_f(&cli->out, "attntune %s\n", attn_version());
        return ATTN_EXIT_OK;
    }
    if (argc < 2 || argv[1][0] == '-')
        return run_verb(&verbs[0], prefix, argc - 1, argv + 1, cli);
    const attn_verb *verb = find_verb(list, prefix, argv[1]);
    if (!verb)
        return ATTN_EXIT_USAGE;
    if (!verb->verbs)
        return run_verb(verb, prefix, argc - 2, argv + 2, cli);
    if (argc > 2 && is_help(argv[2])) {
        verb_help(verb, prefix, &cli->out);
        return ATTN_EXIT_OK;
    }
    prefix = "db ";
    if (argc < 3)
        return attn_misuse("a verb is missing: attntune db --help lists them");
    verb = find_verb(verb->verbs, prefix, argv[2]);
    return verb ? run_verb(verb, prefix, argc - 3, argv + 3, cli) : ATTN_EXIT_USAGE;
}

static int write_out(const attn_str *out, int code) {
    if (out->failed) {
        attn_say("%s", attn_status_text(ATTN_ERR_NOMEM));
        return ATTN_EXIT_FOUND;
    }
    for (size_t done = 0; done < out->size;) {
        ssize_t n = write(STDOUT_FILENO, out->data + done, out->size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            attn_say("cannot write to standard output: %s", strerror(errno));
            return code ? code : ATTN_EXIT_FOUND;
        }
        done += (size_t)n;
    }
    return code;
}

int main(int argc, char **argv) {
    (void)signal(SIGXFSZ, SIG_IGN); /* a file over `ulimit -f` is an error of write */
    if (argc == 2 && strcmp(argv[1], ATTN_WORKER_FLAG) == 0)
        return attn_worker_main();
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write */
    attn_str command = ATTN_STR_INIT;
    for (int i = 0; i < argc; i++)
        attn_str_append_f(&command, "%s%s", i ? " " : "", i ? argv[i] : "attntune");
    attn_cli cli = {.command = attn_str_text(&command), .stop_fd = -1};
    int code = dispatch(argc, argv, &cli);
    int signal_come = attn_stop_end(cli.stop_fd); /* wherever it was waited for something */
    code = write_out(&cli.out, code);
    if (signal_come)
        code = ATTN_EXIT_SIGNAL + signal_come;
    attn_cli_close(&cli);
    attn_str_free(&command);
    return code;
}
