/* compile.c: compiling CPU kernels; see compile.h. */
#include "compile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flags.h"
#include "folder.h"
#include "isa.h"
#include "object.h"
#include "tool.h"

/* Kernels for the other kind of CPU are compiled too, to see that they compile. */
#if defined(__aarch64__)
static const char cross_compiler[] = "x86_64-linux-gnu-gcc";
enum { OTHER_KIND = ATTN_ISA_X86_64 };
#else
static const char cross_compiler[] = "aarch64-linux-gnu-gcc";
enum { OTHER_KIND = ATTN_ISA_AARCH64 };
#endif

static const char *compiler_for(const attn_cpu_flags *flags, uint32_t needs) {
    bool plain = !flags->compiler || strcmp(flags->compiler, "gcc") == 0;
    return needs & OTHER_KIND && plain ? cross_compiler : flags->compiler;
}

/* -std may be given again: the last one counts. */
static const char *const always[] = {"-std=gnu11", "-fPIC"};
enum { ALWAYS = sizeof always / sizeof *always };

static attn_status compile_object(const attn_tool *tool, const attn_cpu_flags *flags,
                                  const char *source, const char *object, const char *folder,
                                  double seconds, attn_str *log, attn_error *err) {
    const char *argv[ATTN_FLAGS_MAX + ALWAYS + 8];
    int n = 0;
    for (int i = 0; i < ALWAYS; i++)
        argv[n++] = always[i];
    for (int i = 0; i < flags->count; i++)
        argv[n++] = flags->flag[i];
    const char *const rest[] = {"-c", source, "-o", object, NULL};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        argv[n++] = rest[i];
    return attn_tool_run(tool, argv, folder, seconds, log, err);
}

/* Never with the flags of the compile: -ffast-math would link code in that changes how the whole
 * process rounds denormal numbers. */
static attn_status link_object(const attn_tool *tool, const attn_cpu_flags *flags,
                               const char *object, const char *shared, const char *folder,
                               double seconds, attn_str *log, attn_error *err) {
    const char *const argv[] = {"-shared",
                                "-s",
                                "-Wl,-z,noexecstack",
                                "-Wl,--build-id=none",
                                "-Wl,-z,defs", /* what is missing is missed here */
                                object,
                                "-o",
                                shared,
                                "-lm",
                                flags->openmp ? "-fopenmp" : NULL,
                                NULL};
    return attn_tool_run(tool, argv, folder, seconds, log, err);
}

static void append_key(attn_str *source, const char *key) {
    attn_str_append_f(source,
                      "\n#line 1 \"attn_key\"\n"
                      "__attribute__((used, visibility(\"default\")))\n"
                      "const char attn_key[] = \"%s\";\n",
                      key);
}

static attn_status write_file(const char *path, const attn_str *text, attn_error *err) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t written = 0;
    while (fd >= 0 && written < text->size) {
        ssize_t n = write(fd, text->data + written, text->size - written);
        if (n < 0 && errno != EINTR)
            break;
        written += n > 0 ? (size_t)n : 0;
    }
    int error = errno;
    if (fd < 0 || close(fd) != 0 || written < text->size)
        return attn_fail(err, ATTN_ERR_IO, "%s cannot be written: %s", path, strerror(error));
    return ATTN_OK;
}

void attn_binary_seal(const void *object, size_t size, unsigned char seal[ATTN_SEAL_SIZE]) {
    static const unsigned char magic[8] = {'a', 't', 't', 'n', '-', 'c', 'p', 'u'};
    attn_hash h = attn_hash_begin();
    attn_hash_field(&h, object, size);
    memcpy(seal, magic, sizeof magic);
    memcpy(seal + 8, &h.hi, 8);
    memcpy(seal + 16, &h.lo, 8);
}

size_t attn_binary_object_size(const void *data, size_t size) {
    unsigned char seal[ATTN_SEAL_SIZE];
    if (!data || size <= ATTN_SEAL_SIZE)
        return 0;
    size -= ATTN_SEAL_SIZE;
    attn_binary_seal(data, size, seal);
    return memcmp((const char *)data + size, seal, ATTN_SEAL_SIZE) == 0 ? size : 0;
}

/* What a compiler has left at -o: one that fails may exit with 0 all the same. */
static attn_status read_output(const attn_tool *tool, const char *path, const char *what,
                               attn_str *bytes, attn_error *err) {
    const char *name = strrchr(path, '/') + 1;
    if (attn_str_read_file(bytes, path, err) != ATTN_OK)
        return attn_fail(err, ATTN_ERR_COMPILE, "%s left no %s: there is no %s", tool->word[0],
                         what, name);
    if (attn_object_is_whole(attn_str_text(bytes), bytes->size))
        return ATTN_OK;
    return attn_fail(err, ATTN_ERR_COMPILE, "%s left no %s: %s has %zu bytes that are %s",
                     tool->word[0], what, name, bytes->size,
                     bytes->size ? "not a whole ELF file" : "no file at all");
}

static attn_status check_object(const attn_tool *tool, const char *path, attn_error *err) {
    attn_str bytes = ATTN_STR_INIT;
    attn_status status = read_output(tool, path, "object file", &bytes, err);
    attn_str_free(&bytes);
    return status;
}

static attn_status read_binary(const attn_tool *tool, const char *path, attn_binary *binary,
                               attn_error *err) {
    unsigned char seal[ATTN_SEAL_SIZE];
    attn_str bytes = ATTN_STR_INIT;
    if (read_output(tool, path, "shared object", &bytes, err) != ATTN_OK) {
        attn_str_free(&bytes);
        return err->status;
    }
    attn_binary_seal(attn_str_text(&bytes), bytes.size, seal);
    attn_str_append_bytes(&bytes, seal, sizeof seal);
    binary->size = bytes.size;
    binary->data = attn_str_take(&bytes);
    return binary->data ? ATTN_OK : attn_fail_nomem(err);
}

typedef struct compile_paths {
    attn_folder folder;
    attn_str source, object, shared;
} compile_paths;

static attn_status make_paths(compile_paths *p, attn_error *err) {
    ATTN_TRY(attn_folder_make(&p->folder, err));
    const char *folder = p->folder.path.data;
    attn_str_append_f(&p->source, "%s/kernel.c", folder);
    attn_str_append_f(&p->object, "%s/kernel.o", folder);
    attn_str_append_f(&p->shared, "%s/kernel.so", folder);
    bool failed = p->source.failed || p->object.failed || p->shared.failed;
    return failed ? attn_fail_nomem(err) : ATTN_OK;
}

static void remove_paths(compile_paths *p) {
    attn_folder_remove(&p->folder);
    attn_str_free(&p->source);
    attn_str_free(&p->object);
    attn_str_free(&p->shared);
}

static attn_status compile_in(const compile_paths *p, const attn_build *build,
                              const attn_tool *tool, const attn_cpu_flags *flags,
                              attn_binary *binary, attn_error *err) {
    attn_str text = ATTN_STR_INIT;
    attn_str_append(&text, build->source);
    append_key(&text, build->key);
    attn_status status =
        text.failed ? attn_fail_nomem(err) : write_file(p->source.data, &text, err);
    attn_str_free(&text);
    ATTN_TRY(status);
    ATTN_TRY(compile_object(tool, flags, p->source.data, p->object.data, p->folder.path.data,
                            build->seconds, &binary->log, err));
    ATTN_TRY(check_object(tool, p->object.data, err));
    ATTN_TRY(link_object(tool, flags, p->object.data, p->shared.data, p->folder.path.data,
                         build->seconds, &binary->log, err));
    return read_binary(tool, p->shared.data, binary, err);
}

static attn_status check_build(const attn_build *build, const attn_cpu_flags *flags,
                               uint32_t *needs, attn_error *err) {
    if (strcmp(build->language, "c") != 0)
        return attn_fail(err, ATTN_ERR_INVALID, "the CPU backend compiles c, not %s",
                         build->language);
    if (!attn_cpu_target_needs(build->target, needs))
        return attn_fail(err, ATTN_ERR_INVALID,
                         "%s is no CPU target; say cpu:x86_64+avx2+fma or the like", build->target);
    if (flags->needs & ~*needs)
        return attn_fail(err, ATTN_ERR_INVALID, "the options %s go beyond the target %s",
                         build->options, build->target);
    return ATTN_OK;
}

/* What compilers and linkers say when the machine, not the source, is at fault (LC_ALL is C); *at
 * is where. */
static attn_status blame(const char *log, const char **at) {
    static const struct {
        const char *text;
        attn_status status;
    } rows[] = {{"No space left on device", ATTN_ERR_IO},
                {"Disk quota exceeded", ATTN_ERR_IO},
                {"Read-only file system", ATTN_ERR_IO},
                {"Killed signal terminated program", ATTN_ERR_NOMEM},
                {"out of memory", ATTN_ERR_NOMEM},
                {"virtual memory exhausted", ATTN_ERR_NOMEM},
                {"Cannot allocate memory", ATTN_ERR_NOMEM}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((*at = strstr(log, rows[i].text)))
            return rows[i].status;
    return ATTN_ERR_COMPILE;
}

/* The line of a log that says what was wrong: compilers put the way there before it. */
static const char *error_line(const char *log) {
    static const char *const words[] = {"error: ", "cannot find", "undefined reference"};
    const char *first = log + strspn(log, "\n");
    for (const char *line = first; *line; line += strcspn(line, "\n"), line += *line == '\n')
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            const char *at = strstr(line, words[i]);
            if (at && at < line + strcspn(line, "\n"))
                return line;
        }
    return first;
}

/* What kernels need of a compiler and of its installation at the least. */
static const char smallest[] = "#line 1 \"smallest.c\"\n"
                               "#include <math.h>\n"
                               "#include <stdint.h>\n"
                               "#include <string.h>\n"
                               "int32_t attn_smallest(float x) { return (int32_t)sqrtf(x); }\n";

/* A compiler that fails on that, too, is broken itself: no source is to be blamed. Then ERR_NO_TOOL
 * with its line; else ATTN_OK. */
static attn_status check_tool(const attn_tool *tool, const attn_cpu_flags *flags, double seconds,
                              attn_error *err) {
    const attn_build build = {.language = "c", .source = smallest, .seconds = seconds};
    const attn_cpu_flags plain = {.compiler = flags->compiler};
    compile_paths paths = {.folder = ATTN_FOLDER_INIT};
    attn_binary binary = ATTN_BINARY_INIT;
    attn_error failure = ATTN_ERROR_INIT;
    attn_status status = make_paths(&paths, &failure);
    if (status == ATTN_OK)
        status = compile_in(&paths, &build, tool, &plain, &binary, &failure);
    if (status == ATTN_ERR_COMPILE) {
        const char *line = error_line(attn_str_text(&binary.log));
        attn_str words = ATTN_STR_INIT;
        for (int i = 0; i < tool->count; i++)
            attn_str_append_f(&words, "%s%s", i ? " " : "", tool->word[i]);
        attn_fail(
            err, ATTN_ERR_NO_TOOL,
            "the C compiler `%.200s` is broken or not whole, it fails on the smallest program: "
            "%.200s%s%.*s",
            attn_str_text(&words), failure.line, *line ? ": " : "", (int)strcspn(line, "\n"), line);
        attn_str_free(&words);
    }
    remove_paths(&paths);
    attn_binary_free(&binary);
    return status == ATTN_ERR_COMPILE ? ATTN_ERR_NO_TOOL : ATTN_OK;
}

/* What a failed compile means, from its log. */
static attn_status explain(const attn_tool *tool, const attn_cpu_flags *flags, double seconds,
                           const char *log, attn_error *err) {
    const attn_error reason = *err;
    const char *at, *line = error_line(log);
    int length = (int)strcspn(line, "\n");
    bool more = strlen(log) > (size_t)length + 1;
    attn_status status = blame(log, &at);
    if (status == ATTN_ERR_IO)
        return attn_fail(err, status, "%.200s in %.200s (TMPDIR names it): %.*s", reason.line,
                         attn_folder_base(), (int)strcspn(at, "\n"), at);
    if (status == ATTN_ERR_COMPILE)
        ATTN_TRY(check_tool(tool, flags, seconds, err));
    return attn_fail(err, status, "%.200s%s%.*s%s%s", reason.line, length ? ": " : "", length, line,
                     more ? "\n" : "", more ? log : "");
}

/* What to do about a compiler that was stopped. */
static attn_status give_up(const char *log, attn_error *err) {
    const attn_error reason = *err;
    return attn_fail(
        err, reason.status,
        "%.200s and was stopped; if it hangs, name another one in CC, or let `attntune "
        "tune` store kernels that need none%s%.400s",
        reason.line, *log ? "\n" : "", log);
}

static attn_status compile_checked(const attn_build *build, const attn_cpu_flags *flags,
                                   attn_binary *binary, attn_error *err) {
    attn_tool tool = {0};
    compile_paths paths = {.folder = ATTN_FOLDER_INIT};
    uint32_t needs = 0;
    attn_status status = check_build(build, flags, &needs, err);
    if (status == ATTN_OK)
        status = attn_tool_find(compiler_for(flags, needs), &tool, err);
    if (status == ATTN_OK)
        status = make_paths(&paths, err);
    if (status == ATTN_OK)
        status = compile_in(&paths, build, &tool, flags, binary, err);
    remove_paths(&paths);
    if (status == ATTN_ERR_COMPILE)
        status = explain(&tool, flags, build->seconds, attn_str_text(&binary->log), err);
    if (status == ATTN_ERR_TIMEOUT)
        status = give_up(attn_str_text(&binary->log), err);
    attn_tool_free(&tool);
    return status;
}

attn_status attn_cpu_compile(const attn_build *build, attn_binary *binary, attn_error *err) {
    attn_cpu_flags flags = {0};
    *binary = (attn_binary)ATTN_BINARY_INIT;
    memcpy(binary->key, build->key, sizeof binary->key);
    attn_status status = attn_cpu_flags_parse(build->options, &flags, err);
    if (status == ATTN_OK)
        status = compile_checked(build, &flags, binary, err);
    attn_cpu_flags_free(&flags);
    return status;
}

attn_status attn_cpu_target(const attn_device_info *info, const char *options, attn_str *target,
                            attn_error *err) {
    attn_cpu_flags flags = {0};
    attn_status status = attn_cpu_flags_parse(options, &flags, err);
    if (status == ATTN_OK) {
        /* Every 64-bit Arm CPU has NEON. */
        uint32_t needs = flags.needs;
        needs |= attn_device_prop(info, "aarch64") ? ATTN_NEEDS_NEON : 0;
        needs |= attn_device_prop(info, "x86_64") ? ATTN_ISA_X86_64 : 0;
        attn_str_append(target, needs ? "cpu:" : "cpu:generic");
        attn_isa_print(needs, target);
        status = target->failed ? attn_fail_nomem(err) : ATTN_OK;
    }
    attn_cpu_flags_free(&flags);
    return status;
}

void attn_cpu_command(const char *language, const char *options, const char *target,
                      const char *file, attn_str *out) {
    attn_cpu_flags flags = {0};
    attn_error ignored = ATTN_ERROR_INIT;
    uint32_t needs = 0;
    (void)language;
    attn_cpu_target_needs(target, &needs);
    if (attn_cpu_flags_parse(options, &flags, &ignored) == ATTN_OK) {
        const char *compiler = compiler_for(&flags, needs);
        attn_str_append(out, compiler ? compiler : "cc");
        for (int i = 0; i < ALWAYS; i++)
            attn_str_append_f(out, " %s", always[i]);
        for (int i = 0; i < flags.count; i++)
            attn_str_append_f(out, " %s", flags.flag[i]);
        attn_str_append_f(out, " -c %s", file);
    }
    attn_cpu_flags_free(&flags);
}
