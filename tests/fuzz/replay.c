/* replay.c: runs a fuzz target without a fuzzer.
 *
 *     fuzz_NAME [--mutations N] [--seed S] FILE|FOLDER...
 *
 * Feeds every file to the target, then N inputs made from them by a few small random edits, so
 * that the corpus and its surroundings are tested in every build and by any compiler. The edits
 * follow from the seed, so a crash comes back; the input being tried is printed when one happens.
 */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20, GROWTH = 64 };

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

typedef struct corpus {
    input *inputs;
    size_t count;
} corpus;

static void *must(void *p) {
    if (!p) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static input trying; /* what the target is working on, for show_input */

static void show_input(void) {
    static const char text[] = "\nthe input was:\n";
    if (write(2, text, sizeof text - 1) < 0 || write(2, trying.data, trying.size) < 0)
        return;
}

static void on_signal(int number) {
    show_input();
    signal(number, SIG_DFL);
    raise(number);
}

/* Sanitizers end the program themselves; this is how they say so, where one is linked. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch_for_crashes(void) {
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(show_input);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!__sanitizer_set_death_callback || numbers[i] == SIGALRM)
            signal(numbers[i], on_signal);
}

/* The target gets a block of exactly the right size, so that a sanitizer sees any overrun, and ten
 * seconds. */
static void run(const uint8_t *data, size_t size) {
    uint8_t *copy = must(malloc(size ? size : 1));
    memcpy(copy, data, size);
    trying = (input){copy, size};
    alarm(10);
    LLVMFuzzerTestOneInput(copy, size);
    alarm(0);
    free(copy);
}

static void add_file(corpus *c, const char *path) {
    FILE *f = fopen(path, "rb");
    input in = {must(malloc(INPUT_MAX)), 0};
    if (!f) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    in.size = fread(in.data, 1, INPUT_MAX, f);
    fclose(f);
    in.data = must(realloc(in.data, in.size + GROWTH));
    c->inputs = must(realloc(c->inputs, (c->count + 1) * sizeof *c->inputs));
    c->inputs[c->count++] = in;
}

static void add_path(corpus *c, const char *path) {
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort);
    if (n < 0) {
        add_file(c, path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char *inner = must(malloc(strlen(path) + strlen(names[i]->d_name) + 2));
        sprintf(inner, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            add_path(c, inner);
        free(inner);
        free(names[i]);
    }
    free(names);
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t below(uint64_t *state, size_t n) {
    return n ? (size_t)(next(state) % n) : 0;
}

/* One edit: a byte changed, a stretch removed or doubled, a stretch of another input spliced in,
 * or a number replaced by an extreme one. Never grows past size + GROWTH. */
static size_t edit(uint64_t *rng, uint8_t *data, size_t size, size_t room, const corpus *c) {
    static const char *const numbers[] = {"0", "-1", "2147483647", "2147483648", "99999999999"};
    size_t at = below(rng, size), length = 1 + below(rng, 8);
    const uint8_t *source = data;
    if (length > size - at)
        length = size - at;
    switch (below(rng, 5)) {
    case 0:
        if (size)
            data[at] = (uint8_t)next(rng);
        return size;
    case 1:
        memmove(data + at, data + at + length, size - at - length);
        return size - length;
    case 2: {
        const input *other = &c->inputs[below(rng, c->count)];
        size_t from = below(rng, other->size);
        length = 1 + below(rng, 16);
        length = length < other->size - from ? length : other->size - from;
        source = other->data + from;
        break;
    }
    case 3:
        source = (const uint8_t *)numbers[below(rng, sizeof numbers / sizeof *numbers)];
        length = strlen((const char *)source);
        break;
    default:
        source = data + at;
    }
    uint8_t piece[32];
    if (size + length > room || length > sizeof piece)
        return size;
    memcpy(piece, source, length);
    memmove(data + at + length, data + at, size - at);
    memcpy(data + at, piece, length);
    return size + length;
}

static void mutate(const corpus *c, uint64_t seed, size_t count) {
    uint64_t rng = seed * 2654435769u + 88172645463325252u;
    for (size_t i = 0; i < count && c->count; i++) {
        const input *base = &c->inputs[below(&rng, c->count)];
        size_t size = base->size;
        uint8_t *data = must(malloc(base->size + GROWTH));
        memcpy(data, base->data, size);
        for (size_t edits = 1 + below(&rng, 4); edits > 0; edits--)
            size = edit(&rng, data, size, base->size + GROWTH, c);
        run(data, size);
        free(data);
    }
}

int main(int argc, char **argv) {
    corpus c = {NULL, 0};
    size_t mutations = 0;
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--mutations") == 0 && i + 1 < argc)
            mutations = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else
            add_path(&c, argv[i]);
    }
    watch_for_crashes();
    run((const uint8_t *)"", 0);
    for (size_t i = 0; i < c.count; i++)
        run(c.inputs[i].data, c.inputs[i].size);
    mutate(&c, seed, mutations);
    printf("%zu inputs, %zu mutations\n", c.count, c.count ? mutations : 0);
    for (size_t i = 0; i < c.count; i++)
        free(c.inputs[i].data);
    free(c.inputs);
    if (c.count == 0)
        fputs("no input was given\n", stderr);
    return c.count == 0;
}
