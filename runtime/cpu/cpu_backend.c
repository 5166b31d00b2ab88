/* cpu_backend.c: the CPU as a device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend.h"
#include "budget.h"
#include "compile.h"
#include "cpu_kernel.h"
#include "fma.h"
#include "folder.h"
#include "isa.h"
#include "tool.h"

static attn_status cpu_count(int32_t *count, attn_error *err) {
    (void)err;
    *count = 1;
    return ATTN_OK;
}

/* One word of /sys/devices/system/cpu/cpu0/cache/indexN/FILE. */
static bool cache_word(int index, const char *file, char word[32]) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, file);
    FILE *f = fopen(path, "re");
    bool got = f && fgets(word, 32, f);
    if (f)
        fclose(f);
    return got;
}

/* Bytes of the data cache of that level, 0 if unknown: glibc asks the CPU on x86, elsewhere sysfs
 * knows. */
static int64_t cache_size(int level, int sysconf_name) {
    char word[32];
    long size = sysconf(sysconf_name);
    for (int i = 0; size <= 0 && cache_word(i, "level", word); i++) {
        if (strtol(word, NULL, 10) != level)
            continue;
        if (!cache_word(i, "type", word) || strncmp(word, "Instruction", 11) == 0)
            continue;
        if (cache_word(i, "size", word))
            size = 1024 * strtol(word, NULL, 10); /* "32K" */
    }
    return size > 0 ? size : 0;
}

static int64_t cache_line(void) {
    long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
    return line > 0 ? line : 64;
}

static bool has_tool(const char *name) {
    attn_tool tool;
    attn_error ignored = ATTN_ERROR_INIT;
    bool found = attn_tool_find(name, &tool, &ignored) == ATTN_OK;
    attn_tool_free(&tool);
    return found;
}

/* The identity lists what may be used rather than the model's name: a virtual machine shows part of
 * what its CPU has. */
static attn_status describe(attn_backend_device *device, attn_error *err) {
    attn_device_info *info = &device->info;
    attn_str isa = ATTN_STR_INIT;
    char model[64];
    strcpy(info->backend, "cpu");
    strcpy(info->lock, "cpu");
    attn_cpu_model(model, sizeof model, info->name, sizeof info->name);
    snprintf(info->arch, sizeof info->arch, "cpu:%s", attn_cpu_arch(device->usable));
    attn_isa_print(device->usable, &isa);
    if (isa.failed)
        return attn_fail_nomem(err);
    snprintf(info->identity, sizeof info->identity, "%s %s", model, attn_str_text(&isa));
    attn_str_free(&isa);
    for (int bit = 0; bit < ATTN_ISA_COUNT; bit++)
        if (device->usable & 1U << bit)
            attn_device_prop_set(info, attn_isa_name(bit), 1);
    const attn_prop props[] = {
        {"l1d", cache_size(1, _SC_LEVEL1_DCACHE_SIZE)},
        {"l2", cache_size(2, _SC_LEVEL2_CACHE_SIZE)},
        {"l3", cache_size(3, _SC_LEVEL3_CACHE_SIZE)},
        {"line", cache_line()},
        {"threads", attn_pool_threads(device->pool)},
        {"cc", has_tool(NULL)},
        {"gcc", has_tool("gcc")},
        {"clang", has_tool("clang")},
    };
    for (size_t i = 0; i < sizeof props / sizeof *props; i++)
        attn_device_prop_set(info, props[i].name, props[i].value);
    return ATTN_OK;
}

static void cpu_close(attn_backend_device *device) {
    if (!device)
        return;
    attn_pool_destroy(device->pool);
    free(device);
}

static attn_status cpu_open(int32_t ordinal, const attn_device_options *options,
                            attn_backend_device **out, attn_error *err) {
    *out = NULL;
    if (ordinal != 0)
        return attn_fail(err, ATTN_ERR_NO_DEVICE, "there is one CPU device, cpu, and no cpu:%d",
                         (int)ordinal);
    attn_backend_device *device = calloc(1, sizeof *device);
    if (!device)
        return attn_fail_nomem(err);
    attn_folder_sweep(); /* who only runs stored kernels makes none */
    int32_t threads = attn_cpu_budget(options ? options->threads : 0);
    attn_status status =
        attn_isa_limit(attn_isa_detect(), getenv("ATTNTUNE_CPU_ISA"), &device->usable, err);
    if (status == ATTN_OK)
        status = attn_pool_create(threads, &device->pool, err);
    if (status == ATTN_OK)
        status = describe(device, err);
    if (status == ATTN_OK)
        *out = device;
    else
        cpu_close(device);
    return status;
}

static void cpu_info(const attn_backend_device *device, attn_device_info *info) {
    *info = device->info;
}

static bool cpu_runs(const attn_device_info *info, const char *target) {
    uint32_t needs, has = 0;
    for (int bit = 0; bit < ATTN_ISA_COUNT; bit++)
        if (attn_device_prop(info, attn_isa_name(bit)))
            has |= 1U << bit;
    return attn_cpu_target_needs(target, &needs) && (needs & ~has) == 0;
}

static int32_t cpu_workers(const attn_backend_device *device) {
    return attn_pool_threads(device->pool);
}

static attn_status cpu_sync(attn_backend_device *device, attn_error *err) {
    (void)device;
    (void)err;
    return ATTN_OK;
}

/* Much memory lies in huge pages where the system gives them on request, as they do unasked on
 * systems whose setting is `always` (Debian's). Else each page of 4 KB of a tensor that comes from
 * memory costs a walk of the page tables, up to 2 us on a virtual machine, and times depend on
 * that.
 */
static attn_status cpu_alloc(attn_backend_device *device, size_t size, void **memory,
                             attn_error *err) {
    enum { HUGE_PAGE = 2 << 20 };
    (void)device;
    const size_t unit = size < HUGE_PAGE ? 256 : HUGE_PAGE;
    const size_t units = size / unit + 1; /* not 0 */
    *memory = size > SIZE_MAX - unit ? NULL : aligned_alloc(unit, units * unit);
    if (*memory && unit == HUGE_PAGE)
        (void)madvise(*memory, size / unit * unit, MADV_HUGEPAGE); /* a wish */
    return *memory ? ATTN_OK : attn_fail(err, ATTN_ERR_NOMEM, "no memory for %zu bytes", size);
}

static void cpu_free(attn_backend_device *device, void *memory) {
    (void)device;
    free(memory);
}

static attn_status cpu_copy(attn_backend_device *device, void *to, const void *from, size_t size,
                            attn_copy direction, attn_error *err) {
    (void)device;
    (void)direction;
    (void)err;
    if (size > 0)
        memcpy(to, from, size);
    return ATTN_OK;
}

static void cpu_state(attn_backend_device *device, attn_device_state *state) {
    *state = (attn_device_state)ATTN_DEVICE_STATE_INIT;
    state->canary = attn_fma_canary(device->usable);
}

/* The peak is measured by the pool like any kernel, with `usable` where the tensors would be. */
enum { PEAK_ROUNDS = 400000, PEAK_REPEATS = 10 };

static int peak_task(const attn_forward_args *args, int task, int worker) {
    (void)task;
    (void)worker;
    attn_fma_run(*(const uint32_t *)args->q, PEAK_ROUNDS);
    return 0;
}

static double cpu_peak(attn_backend_device *device, int32_t threads) {
    const attn_step step = {.order = ATTN_ORDER_ROW, .deal = ATTN_DEAL_STATIC};
    const attn_forward_args args = {.q = &device->usable, .tiles = 1};
    const attn_pool_step job = {peak_task, &args, &step, threads};
    double flops = attn_fma_run(device->usable, 1) * PEAK_ROUNDS * threads, best = 0;
    cpu_set_t before;
    if (threads < 1 || threads > attn_pool_threads(device->pool))
        return NAN;
    attn_pool_pin(device->pool, &before);
    for (int i = 0; i < PEAK_REPEATS; i++) {
        int64_t begin = attn_clock_ns();
        attn_pool_run(device->pool, &job, 1, threads);
        best = fmax(best, flops / (double)(attn_clock_ns() - begin));
    }
    attn_pool_unpin(device->pool, &before);
    return best;
}

const attn_backend attn_backend_cpu = {
    .name = "cpu",
    .id = ATTN_BACKEND_CPU,
    .count = cpu_count,
    .open = cpu_open,
    .close = cpu_close,
    .info = cpu_info,
    .toolchain = attn_cpu_toolchain,
    .target = attn_cpu_target,
    .runs = cpu_runs,
    .compile = attn_cpu_compile,
    .command = attn_cpu_command,
    .load = attn_cpu_load,
    .unload = attn_cpu_unload,
    .workers = cpu_workers,
    .run = attn_cpu_run,
    .sync = cpu_sync,
    .time = attn_cpu_time,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .state = cpu_state,
    .reference = attn_cpu_reference,
    .peak = cpu_peak,
    .sweep = attn_folder_sweep,
};
