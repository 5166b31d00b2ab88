/* fake_backend.c: a deterministic device for tests, in attntune-fake only.
 *
 * Its "compiler" looks in the rendered source for one line such as
 *
 *     // FAKE cost_ns=12345 ns_per_mflop=20 noise=0.01 hungry=0.2 slow=1 outcome=ok
 *
 * (every word is optional). Kernels compute real attention, with the library's plain kernel, so
 * that verification is real; `time` waits for nothing and returns cost_ns + ns_per_mflop x MFLOP a
 * call, with a relative noise of that standard deviation which follows from key, problem and count
 * of samples. A hungry kernel brings the device to its power limit, and after 0.1 s of nothing else
 * it takes so much longer (0.2: 1.2 times). Timing a slow one takes cost_ns a call in truth. The
 * outcome is one of the table below. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "cpu_reference.h"
#include "host_memory.h"

/* What may go wrong, and where. */
#define FAKE_OUTCOME_MAP(XX)                                                                       \
    XX(OK, "ok")                                                                                   \
    XX(COMPILE_ERROR, "compile_error")   /* compile fails, with a log */                           \
    XX(COMPILE_HANG, "compile_hang")     /* compile never ends */                                  \
    XX(COMPILE_CRASH, "compile_crash")   /* compile ends the process */                            \
    XX(LOAD_ERROR, "load_error")         /* load fails */                                          \
    XX(LAUNCH_ERROR, "launch_error")     /* run fails, the device goes on */                       \
    XX(DEVICE_LOST, "device_lost")       /* run fails with ERR_DEVICE, and so does all after it */ \
    XX(CRASH, "crash")                   /* run ends the process by SIGSEGV */                     \
    XX(ILLEGAL, "illegal")               /* run ends the process by SIGILL */                      \
    XX(HANG, "hang")                     /* run never ends */                                      \
    XX(OOM, "oom")                       /* run takes more and more memory */                      \
    XX(WRONG, "wrong")                   /* every row has a wrong element */                       \
    XX(WRONG_LAST_ROW, "wrong_last_row") /* only the last row of the last head */                  \
    XX(WRONG_LATER, "wrong_later") /* one row, in the third run on over 1e5 keys and after */      \
    XX(WRONG_LSE, "wrong_lse")     /* O is right */                                                \
    XX(WILD, "wild")               /* an element behind the last row of O is written */            \
    XX(FLAKY, "flaky")             /* every second run differs in one bit */

typedef enum fake_outcome {
#define XX(name, text) FAKE_##name,
    FAKE_OUTCOME_MAP(XX)
#undef XX
        FAKE_OUTCOMES
} fake_outcome;

static const char *const outcome_names[] = {
#define XX(name, text) text,
    FAKE_OUTCOME_MAP(XX)
#undef XX
};

/* A "binary" is this struct. */
typedef struct fake_code {
    char key[ATTN_HASH_TEXT];
    fake_outcome outcome;
    double cost_ns, ns_per_mflop, noise, hungry, slow;
} fake_code;

struct attn_backend_device {
    attn_device_info info;
    bool lost;
    bool limited;             /* at its power limit */
    const attn_kernel *timed; /* the last one */
    double alone_ns;          /* that it was timed for, nothing between */
};

struct attn_kernel {
    attn_backend_device *device;
    fake_code code;
    uint64_t runs, long_runs, samples;
};

static attn_status fake_count(int32_t *count, attn_error *err) {
    (void)err;
    *count = 1;
    return ATTN_OK;
}

static attn_status fake_open(int32_t ordinal, const attn_device_options *options,
                             attn_backend_device **out, attn_error *err) {
    (void)options;
    *out = NULL;
    if (ordinal != 0)
        return attn_fail(err, ATTN_ERR_NO_DEVICE, "there is one fake device");
    attn_backend_device *device = calloc(1, sizeof *device);
    if (!device)
        return attn_fail_nomem(err);
    device->info = (attn_device_info){.backend = "fake",
                                      .name = "Fake device",
                                      .arch = "fake",
                                      .identity = "fake 1",
                                      .environment = "driver 1",
                                      .lock = "fake"};
    attn_device_prop_set(&device->info, "fake", 1);
    *out = device;
    return ATTN_OK;
}

static void fake_close(attn_backend_device *device) {
    free(device);
}

static void fake_info(const attn_backend_device *device, attn_device_info *info) {
    *info = device->info;
}

static attn_status fake_toolchain(const char *language, const char *options, attn_str *identity,
                                  attn_error *err) {
    (void)language;
    (void)options;
    attn_str_append(identity, "fake compiler 1");
    return identity->failed ? attn_fail_nomem(err) : ATTN_OK;
}

static attn_status fake_target(const attn_device_info *info, const char *options, attn_str *target,
                               attn_error *err) {
    (void)info;
    (void)options;
    attn_str_append(target, "fake");
    return target->failed ? attn_fail_nomem(err) : ATTN_OK;
}

static bool fake_runs(const attn_device_info *info, const char *target) {
    return strcmp(info->backend, "fake") == 0 && strcmp(target, "fake") == 0;
}

static bool read_word(const char *word, fake_code *code) {
    char name[32] = "", text[32] = "", *end;
    if (sscanf(word, "%31[a-z_]=%31s", name, text) != 2)
        return false;
    double value = strtod(text, &end);
    bool number = *end == '\0';
    if (strcmp(name, "cost_ns") == 0)
        code->cost_ns = value;
    else if (strcmp(name, "ns_per_mflop") == 0)
        code->ns_per_mflop = value;
    else if (strcmp(name, "noise") == 0)
        code->noise = value;
    else if (strcmp(name, "hungry") == 0)
        code->hungry = value;
    else if (strcmp(name, "slow") == 0)
        code->slow = value;
    else if (strcmp(name, "outcome") != 0)
        return false;
    for (int i = 0; strcmp(name, "outcome") == 0 && i < FAKE_OUTCOMES; i++)
        if (strcmp(text, outcome_names[i]) == 0) {
            code->outcome = (fake_outcome)i;
            return true;
        }
    return number;
}

static attn_status read_directive(const char *source, fake_code *code, attn_error *err) {
    const char *line = strstr(source, "// FAKE");
    char words[512], *save = NULL;
    if (!line)
        return attn_fail(err, ATTN_ERR_COMPILE, "the source has no line // FAKE cost_ns=...");
    line += strlen("// FAKE");
    snprintf(words, sizeof words, "%.*s", (int)strcspn(line, "\n"), line);
    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        if (!read_word(w, code))
            return attn_fail(err, ATTN_ERR_COMPILE, "// FAKE: what is %s?", w);
    return ATTN_OK;
}

static void end_process(int signal_number) {
    signal(signal_number, SIG_DFL); /* sanitizers handle it */
    raise(signal_number);
}

static void never_end(void) {
    for (;;)
        pause();
}

static attn_status fake_compile(const attn_build *build, attn_binary *binary, attn_error *err) {
    fake_code code = {.outcome = FAKE_OK, .cost_ns = 1e5};
    *binary = (attn_binary)ATTN_BINARY_INIT;
    memcpy(code.key, build->key, sizeof code.key);
    memcpy(binary->key, build->key, sizeof binary->key);
    attn_status status = read_directive(build->source, &code, err);
    if (status == ATTN_OK && code.outcome == FAKE_COMPILE_HANG)
        never_end();
    if (status == ATTN_OK && code.outcome == FAKE_COMPILE_CRASH)
        end_process(SIGSEGV);
    if (status == ATTN_OK && code.outcome == FAKE_COMPILE_ERROR)
        status = attn_fail(err, ATTN_ERR_COMPILE, "toy.c:3: error: this was asked for");
    if (status != ATTN_OK) {
        attn_str_append(&binary->log, err->line);
        return status;
    }
    if (!(binary->data = malloc(sizeof code)))
        return attn_fail_nomem(err);
    memcpy(binary->data, &code, sizeof code);
    binary->size = sizeof code;
    return ATTN_OK;
}

static void fake_command(const char *language, const char *options, const char *target,
                         const char *file, attn_str *out) {
    (void)language;
    (void)target;
    attn_str_append_f(out, "cc %s -c %s", options, file);
}

static attn_status fake_load(attn_backend_device *device, const attn_binary *binary,
                             const char *target, const attn_launch *launch, attn_kernel **out,
                             attn_error *err) {
    fake_code code;
    (void)launch;
    *out = NULL;
    if (binary->size != sizeof code)
        return attn_fail(err, ATTN_ERR_LOAD, "this is no binary of the fake backend");
    memcpy(&code, binary->data, sizeof code);
    if (!fake_runs(&device->info, target) || memcmp(code.key, binary->key, sizeof code.key) != 0)
        return attn_fail(err, ATTN_ERR_LOAD, "the binary is another one or for another target");
    if (code.outcome == FAKE_LOAD_ERROR)
        return attn_fail(err, ATTN_ERR_LOAD, "loading fails, as was asked for");
    if (!(*out = calloc(1, sizeof **out)))
        return attn_fail_nomem(err);
    **out = (attn_kernel){.device = device, .code = code};
    return ATTN_OK;
}

static void fake_unload(attn_kernel *kernel) {
    free(kernel);
}

static int32_t fake_workers(const attn_backend_device *device) {
    (void)device;
    return 0;
}

static void sleep_ns(long ns) { /* less than a second */
    const struct timespec moment = {0, ns};
    nanosleep(&moment, NULL);
}

/* 1.6 GB/s, at most 8 GB, so that a tuner which does not notice harms nobody else. */
static void take_memory(void) {
    enum { STEP = 32 << 20, STEPS = 256 };
    for (int i = 0; i < STEPS; i++) {
        volatile char *part = malloc(STEP);
        for (size_t at = 0; part && at < STEP; at += 4096)
            part[at] = 1;
        sleep_ns(20000000);
    }
    never_end();
}

/* The element of O at (batch, head, row, column). */
static char *output(const attn_call *call, int64_t b, int64_t h, int64_t row, int64_t column) {
    const attn_forward_args *a = &call->args;
    int64_t at = b * a->o_stride[0] + h * a->o_stride[1] + row * a->o_stride[2] + column;
    return (char *)a->o + at * (int64_t)attn_dtype_size(call->problem->dtype);
}

/* Changes the sign or, of a zero, the value: wrong by any measure. */
static void spoil(const attn_call *call, char *element) {
    size_t size = attn_dtype_size(call->problem->dtype);
    element[size - 1] ^= element[size - 1] & 0x7f ? (char)0x80 : 0x3f;
}

static void spoil_result(attn_kernel *kernel, const attn_call *call) {
    const attn_problem *p = call->problem;
    int64_t b_last = p->batch - 1, h_last = p->heads_q - 1, row_last = p->seq_q - 1;
    if (b_last < 0 || h_last < 0 || row_last < 0)
        return;
    switch (kernel->code.outcome) {
    case FAKE_WRONG:
        for (int64_t b = 0; b <= b_last; b++)
            for (int64_t h = 0; h <= h_last; h++)
                for (int64_t row = 0; row <= row_last; row++)
                    spoil(call, output(call, b, h, row, row % p->head_dim_v));
        break;
    case FAKE_WRONG_LAST_ROW:
        for (int64_t column = 0; column < p->head_dim_v; column++)
            spoil(call, output(call, b_last, h_last, row_last, column));
        break;
    case FAKE_WRONG_LATER:
        for (int64_t column = 0; kernel->long_runs > 2 && column < p->head_dim_v; column++)
            spoil(call, output(call, 0, p->heads_q / 2, 0, column));
        break;
    case FAKE_WRONG_LSE:
        if (call->args.lse)
            call->args.lse[(b_last * p->heads_q + h_last) * p->seq_q + row_last] += 0.5F;
        break;
    case FAKE_WILD:
        spoil(call, output(call, b_last, h_last, row_last, p->head_dim_v));
        break;
    case FAKE_FLAKY:
        *output(call, 0, 0, 0, 0) ^= (char)(kernel->runs & 1);
        break;
    default:
        break;
    }
}

static attn_status fake_run(attn_kernel *kernel, const attn_call *call, void *stream,
                            attn_error *err) {
    fake_outcome outcome = kernel->code.outcome;
    attn_task_function *task = attn_reference_function(call->problem->dtype);
    attn_forward_args args = call->args;
    attn_launch launch;
    (void)stream;
    if (outcome == FAKE_CRASH || outcome == FAKE_ILLEGAL)
        end_process(outcome == FAKE_CRASH ? SIGSEGV : SIGILL);
    if (outcome == FAKE_HANG)
        never_end();
    if (outcome == FAKE_OOM)
        take_memory();
    if (outcome == FAKE_LAUNCH_ERROR)
        return attn_fail(err, ATTN_ERR_LAUNCH, "launching fails, as was asked for");
    kernel->device->lost |= outcome == FAKE_DEVICE_LOST;
    if (kernel->device->lost)
        return attn_fail(err, ATTN_ERR_DEVICE, "the device is lost, as was asked for");
    attn_reference_launch(&launch);
    args.tiles = (int32_t)attn_step_tiles(&launch.step[0], call->problem);
    int64_t tasks = attn_step_tasks(&launch.step[0], &launch, call->problem);
    for (int64_t i = 0; i < tasks; i++)
        task(&args, (int)i, 0);
    kernel->long_runs += call->problem->seq_kv > 100000;
    spoil_result(kernel, call);
    kernel->runs++;
    return ATTN_OK;
}

static attn_status fake_sync(attn_backend_device *device, attn_error *err) {
    return device->lost ? attn_fail(err, ATTN_ERR_DEVICE, "the device is lost") : ATTN_OK;
}

/* Sum of twelve uniform numbers from a hash: close to normal, standard deviation 1. */
static double normal(attn_hash seed, uint64_t sample) {
    double sum = -6;
    for (uint64_t i = 0; i < 12; i++) {
        attn_hash h = attn_hash_begin();
        attn_hash_u64_field(&h, seed.lo);
        attn_hash_u64_field(&h, sample * 12 + i);
        sum += (double)(h.hi >> 11) * 0x1p-53;
    }
    return sum;
}

/* How much longer it takes for what the device's power limit does to it. */
static double hunger(attn_kernel *kernel, double ns) {
    attn_backend_device *device = kernel->device;
    if (device->timed != kernel)
        device->alone_ns = 0;
    device->timed = kernel;
    device->alone_ns += ns;
    device->limited = kernel->code.hungry > 0;
    return device->alone_ns > 1e8 ? 1 + kernel->code.hungry : 1;
}

static attn_status fake_time(attn_kernel *kernel, const attn_call *calls, int32_t count,
                             int32_t launches, double *ns, attn_error *err) {
    const fake_code *code = &kernel->code;
    attn_hash seed = attn_problem_hash(calls[0].problem);
    (void)count;
    ATTN_TRY(fake_run(kernel, &calls[0], NULL, err));
    attn_hash_text_field(&seed, code->key);
    double mflop = attn_problem_flops(calls[0].problem) * 1e-6;
    double noise = fmax(-0.5, code->noise * normal(seed, kernel->samples++));
    *ns = launches * (code->cost_ns + code->ns_per_mflop * mflop) * (1 + noise);
    *ns *= hunger(kernel, *ns);
    if (code->slow > 0)
        sleep_ns(launches * (long)code->cost_ns);
    return ATTN_OK;
}

static void fake_state(attn_backend_device *device, attn_device_state *state) {
    *state = (attn_device_state)ATTN_DEVICE_STATE_INIT;
    state->power_limited = device->limited;
}

static attn_status fake_copy(attn_backend_device *device, void *to, const void *from, size_t size,
                             attn_copy direction, attn_error *err) {
    (void)host_copy(device, to, from, size, direction, err);
    return fake_sync(device, err);
}

const attn_backend attn_backend_fake = {
    .name = "fake",
    .id = ATTN_BACKEND_FAKE,
    .count = fake_count,
    .open = fake_open,
    .close = fake_close,
    .info = fake_info,
    .toolchain = fake_toolchain,
    .target = fake_target,
    .runs = fake_runs,
    .compile = fake_compile,
    .command = fake_command,
    .load = fake_load,
    .unload = fake_unload,
    .workers = fake_workers,
    .run = fake_run,
    .sync = fake_sync,
    .time = fake_time,
    .alloc = host_alloc,
    .free = host_free,
    .copy = fake_copy,
    .state = fake_state,
};
