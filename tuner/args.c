/* args.c: the table of options, and reading a command line by it. */
#include "args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "tune.h"

typedef enum option_kind {
    FLAG,
    TEXT,
    LIST,    /* a text that may be given more than once */
    CHOICE,  /* one of words(); stored as its index */
    WORD,    /* one of words(); stored as text */
    COUNT,   /* 1 and more */
    SEED,    /* any unsigned 64-bit number */
    DURATION /* "90", "90s", "1.5m", "2h", "500ms" */
} option_kind;

/* Words that a value may be. */
typedef struct word_list {
    const char *const *(*names)(void);    /* ends with NULL */
    const char *(*doc)(const char *name); /* of help's line for each; may be NULL */
} word_list;

typedef struct option {
    const char *name;
    const char *value; /* how help shows it; NULL for a flag */
    option_kind kind;
    size_t offset;          /* of its field in attn_args */
    const word_list *words; /* of CHOICE and WORD */
    const char *help;       /* may hold line ends */
} option;

static const char *const *format_names(void) {
    return attn_format_words;
}

static const char *const *mode_names(void) {
    static const char *const names[] = {"cold", "hot", NULL}; /* the order of attn_mode */
    return names;
}

static const word_list formats = {format_names, NULL};
static const word_list modes = {mode_names, NULL};
static const word_list searches = {attn_search_names, attn_search_doc};

#define AT(field) offsetof(attn_args, field)

static const option options[] = {
    {"device", "NAME", TEXT, AT(device), NULL,
     "cpu, cuda:N, or all (the default): see `attntune devices`"},
    {"budget", "TIME", DURATION, AT(budget_s), NULL,
     "wall time of the whole run: 60s, 5m, 1h\n"
     "(default: tune takes 20s a problem, 6s with --quick;\n"
     "verify goes on to the end)"},
    {"quick", NULL, FLAG, AT(quick), NULL, "fewer default problems, and less time for each"},
    {"search", "NAME", WORD, AT(search), &searches, "how variants are chosen (default climb):"},
    {"seed", "N", SEED, AT(seed), NULL, "of everything random (default 0)"},
    {"jobs", "N", COUNT, AT(jobs), NULL, "compilers at once (default: one a CPU)"},
    {"threads", "N", COUNT, AT(threads), NULL,
     "CPU threads of a kernel (default, and at most: what affinity,\n"
     "cgroup and OMP_NUM_THREADS allow)"},
    {"mode", "cold|hot", CHOICE, AT(mode), &modes,
     "tensors come from memory (cold, the default) or from the cache"},
    {"family", "NAME", TEXT, AT(family), NULL, "only this family: `attntune space` lists them"},
    {"config", "TEXT", LIST, AT(config), NULL,
     "\"NAME=VALUE ...\" of the family named, the rest being the default's;\n"
     "or \"FAMILY: NAME=VALUE ...\""},
    {"rounds", "N", COUNT, AT(rounds), NULL, "times that each variant is measured (default 15)"},
    {"whole", NULL, FLAG, AT(whole), NULL, "every variant of the space, not its core only"},
    {"fresh", NULL, FLAG, AT(fresh), NULL, "begin without any earlier winner"},
    {"again", NULL, FLAG, AT(again), NULL,
     "search again what has been searched to its end, decide anew on its winner,\n"
     "and try again what failed"},
    {"dry-run", NULL, FLAG, AT(dry_run), NULL, "say what would be done, and do nothing"},
    {"winner", NULL, FLAG, AT(winner), NULL, "only the winners in the databases"},
    {"arch", "NAME", TEXT, AT(arch), NULL,
     "for a device that need not be here: sm_90a, cpu:avx2, ..."},
    {"lint", NULL, FLAG, AT(lint), NULL, "look for parameters and values that change nothing"},
    {"all", NULL, FLAG, AT(all), NULL,
     "list: every trial, running ones included, however many\n"
     "best: winners of devices that are not here, too"},
    {"limit", "N", COUNT, AT(limit), NULL, "at most so many rows (default 100)"},
    {"winners", NULL, FLAG, AT(winners), NULL, "only the winners"},
    {"samples", NULL, FLAG, AT(samples), NULL, "with the samples of each trial"},
    {"system", NULL, FLAG, AT(system), NULL, "the system's database, not the user's"},
    {"output", "FILE", TEXT, AT(output), NULL, "write into FILE, not to standard output (-o FILE)"},
    {"db", "FILE", TEXT, AT(db), NULL,
     "the database; a file so named must exist, unless the verb makes it\n"
     "(default: $ATTNTUNE_DB, else the file that `attntune db path` prints)"},
    {"system-db", "FILE", TEXT, AT(system_db), NULL,
     "the shipped results\n(default: $ATTNTUNE_SYSTEM_DB, else the installed ones)"},
    {"path", "DIR[:DIR]", TEXT, AT(path), NULL,
     "folders with families of your own, or changed ones\n(default: $ATTNTUNE_PATH)"},
    {"format", "NAME", CHOICE, AT(format), &formats,
     "table (the default), csv or jsonl; a table shortens \"config\"\n"
     "to the parameters that differ from the family's default\n"
     "(not `db best`: defaults may follow the length)"},
    {"help", NULL, FLAG, AT(help), NULL, "this text (-h)"},
};
enum { OPTIONS = sizeof options / sizeof options[0] };

bool attn_args_allows(const char *names, const char *name) {
    size_t size = strlen(name);
    for (const char *at = strstr(names, name); at; at = strstr(at + 1, name))
        if ((at == names || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0'))
            return true;
    return false;
}

static size_t count_words(const char *const *words) {
    size_t n = 0;
    while (words[n])
        n++;
    return n;
}

/*-*** Values ****************************************************/

static attn_status read_number(const option *o, const char *text, double max, double *number,
                               const char **end, attn_error *err) {
    char *stop;
    errno = 0;
    *number = strtod(text, &stop);
    bool good = stop != text && strchr("0123456789.", text[0]) && !strpbrk(text, "xXpPnN");
    if (!good || !isfinite(*number) || *number > max)
        return attn_fail(err, ATTN_ERR_INVALID, "--%s takes %s, not \"%s\"", o->name,
                         "a time such as 60s, 5m or 1h", text);
    *end = stop;
    return ATTN_OK;
}

static attn_status read_count(const option *o, const char *text, int32_t *count, attn_error *err) {
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || text[strspn(text, "0123456789")] || number < 1 || number > INT32_MAX)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "--%s takes a whole number from 1 to %d, not \"%s\"", o->name, INT32_MAX,
                         text);
    *count = (int32_t)number;
    return ATTN_OK;
}

static attn_status read_seed(const option *o, const char *text, uint64_t *seed, attn_error *err) {
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (errno || *end || text[strspn(text, "0123456789")] || !text[0])
        return attn_fail(err, ATTN_ERR_INVALID,
                         "--%s takes a whole number from 0 to 2^64 - 1, not \"%s\"", o->name, text);
    return ATTN_OK;
}

static attn_status read_duration(const option *o, const char *text, double *seconds,
                                 attn_error *err) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
    double number = 0;
    const char *end = "";
    ATTN_TRY(read_number(o, text, 1e9, &number, &end, err));
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].name) != 0)
            continue;
        *seconds = number * units[i].seconds;
        if (*seconds > 0)
            return ATTN_OK;
    }
    return attn_fail(err, ATTN_ERR_INVALID, "--%s takes a time such as 60s, 5m or 1h, not \"%s\"",
                     o->name, text);
}

static attn_status read_word(const option *o, const char *text, size_t *index, attn_error *err) {
    const char *const *words = o->words->names();
    size_t count = count_words(words);
    for (size_t i = 0; i < count; i++) {
        *index = i;
        if (strcmp(words[i], text) == 0)
            return ATTN_OK;
    }
    const char *near = attn_nearest_word(text, words, count);
    if (near)
        return attn_fail(err, ATTN_ERR_INVALID, "--%s has no \"%s\"; did you mean %s?", o->name,
                         text, near);
    attn_str all = ATTN_STR_INIT;
    for (size_t i = 0; i < count; i++)
        attn_str_append_f(&all, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", words[i]);
    (void)attn_fail(err, ATTN_ERR_INVALID, "--%s is %s, not \"%s\"", o->name, attn_str_text(&all),
                    text);
    attn_str_free(&all);
    return ATTN_ERR_INVALID;
}

static attn_status append(const char ***list, size_t *count, const char *text, attn_error *err) {
    const char **longer = realloc(*list, (*count + 1) * sizeof *longer);
    if (!longer)
        return attn_fail_nomem(err);
    longer[(*count)++] = text;
    *list = longer;
    return ATTN_OK;
}

static attn_status store(const option *o, const char *text, attn_args *args, attn_error *err) {
    void *field = (char *)args + o->offset;
    size_t index = 0;
    if (o->kind != FLAG && !text[0])
        return attn_fail(err, ATTN_ERR_INVALID, "--%s needs a value: --%s %s", o->name, o->name,
                         o->value);
    switch (o->kind) {
    case FLAG:
        *(bool *)field = true;
        return ATTN_OK;
    case TEXT:
        *(const char **)field = text;
        return ATTN_OK;
    case LIST:
        return append(&args->config, &args->configs, text, err);
    case CHOICE:
        ATTN_TRY(read_word(o, text, &index, err));
        *(int32_t *)field = (int32_t)index;
        return ATTN_OK;
    case WORD:
        ATTN_TRY(read_word(o, text, &index, err));
        *(const char **)field = text;
        return ATTN_OK;
    case COUNT:
        return read_count(o, text, field, err);
    case SEED:
        return read_seed(o, text, field, err);
    case DURATION:
        return read_duration(o, text, field, err);
    }
    return attn_fail(err, ATTN_ERR_INTERNAL, "--%s has no kind", o->name);
}

/*-*** Names *****************************************************/

static attn_status find(const char *name, size_t size, const char *allowed, const option **found,
                        attn_error *err) {
    const char *known[OPTIONS];
    char word[64];
    size_t n = 0;
    if (size >= sizeof word)
        size = sizeof word - 1;
    memcpy(word, name, size);
    word[size] = '\0';
    *found = NULL;
    for (size_t i = 0; i < OPTIONS; i++) {
        if (attn_args_allows(allowed, options[i].name))
            known[n++] = options[i].name;
        if (strcmp(options[i].name, word) == 0)
            *found = &options[i];
    }
    if (*found && attn_args_allows(allowed, word))
        return ATTN_OK;
    if (*found)
        return attn_fail(err, ATTN_ERR_INVALID, "--%s has no meaning here; see --help", word);
    const char *near = attn_nearest_word(word, known, n);
    if (near)
        return attn_fail(err, ATTN_ERR_INVALID, "there is no --%s; did you mean --%s?", word, near);
    return attn_fail(err, ATTN_ERR_INVALID, "there is no --%s; see --help", word);
}

/* Words that begin with a dash: -h, -o FILE, --name[=value]. Sets *used to the words consumed. */
static attn_status read_option(int argc, const char *const *argv, const char *allowed,
                               attn_args *args, int *used, attn_error *err) {
    const char *word = argv[0];
    const char *name = strcmp(word, "-h") == 0 ? "help" : strcmp(word, "-o") == 0 ? "output" : NULL;
    if (!name && word[1] != '-')
        return attn_fail(err, ATTN_ERR_INVALID, "there is no %s; options are written --name value",
                         word);
    if (!name)
        name = word + 2;
    const char *value = strchr(name, '=');
    const option *o;
    *used = 1;
    ATTN_TRY(find(name, value ? (size_t)(value - name) : strlen(name), allowed, &o, err));
    if (o->kind == FLAG && value)
        return attn_fail(err, ATTN_ERR_INVALID, "--%s takes no value, but was given \"%s\"",
                         o->name, value + 1);
    if (value)
        value++;
    else if (o->kind != FLAG) {
        if (argc < 2)
            return attn_fail(err, ATTN_ERR_INVALID, "--%s needs a value: --%s %s", o->name, o->name,
                             o->value);
        value = argv[1];
        *used = 2;
    }
    return store(o, value ? value : "", args, err);
}

attn_status attn_args_parse(int argc, const char *const *argv, const char *allowed, attn_args *args,
                            attn_error *err) {
    bool ended = false;
    memset(args, 0, sizeof *args);
    for (int i = 0, used; i < argc; i += used) {
        used = 1;
        if (!ended && strcmp(argv[i], "--") == 0)
            ended = true;
        else if (!ended && argv[i][0] == '-' && argv[i][1] != '\0')
            ATTN_TRY(read_option(argc - i, argv + i, allowed, args, &used, err));
        else
            ATTN_TRY(append(&args->word, &args->words, argv[i], err));
    }
    return ATTN_OK;
}

void attn_args_free(attn_args *args) {
    free(args->config);
    free(args->word);
    memset(args, 0, sizeof *args);
}

/*-*** Help ******************************************************/

enum { HELP_COLUMN = 24 };

static void help_line(const char *head, const char *text, attn_str *out) {
    const char *end = text + strcspn(text, "\n");
    attn_str_append_f(out, "  %-*s%.*s\n", HELP_COLUMN - 2, head, (int)(end - text), text);
    if (*end)
        help_line("", end + 1, out);
}

void attn_args_help(const char *allowed, attn_str *out) {
    for (size_t i = 0; i < OPTIONS; i++) {
        const option *o = &options[i];
        char head[64] = "--";
        if (!attn_args_allows(allowed, o->name))
            continue;
        strcat(head, o->name);
        if (o->value)
            strcat(strcat(head, " "), o->value);
        help_line(head, o->help, out);
        const char *const *words = o->words && o->words->doc ? o->words->names() : NULL;
        for (size_t w = 0; words && words[w]; w++)
            attn_str_append_f(out, "  %-*s%-12s%s\n", HELP_COLUMN, "", words[w],
                              o->words->doc(words[w]));
    }
}
