/* kernels.c: the kernels of a device that are loaded, by build.
 *
 * A build is loaded once, however many candidates share it, and stays until the context closes, so
 * that a table or plan that points to it is always good. What a class wants compiled is compiled at
 * once: one after another, kernels would take seconds before the first answer. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"

enum { THREADS_MAX = 64 };

/* A build that the class in the making wants compiled. */
struct attn_wanted {
    struct attn_wanted *next;
    attn_variant variant; /* of it, what a compiler needs */
    char *target;
    attn_loaded *loaded; /* what it is to become: there, but without a kernel */
    attn_binary binary;
    attn_error failure;
    bool failed; /* in an earlier round: not tried again */
};

static attn_loaded *find_loaded(const attn_runtime_device *device, attn_hash build) {
    for (attn_loaded *l = device->loaded; l; l = l->next)
        if (attn_hash_equal(l->build, build))
            return l;
    return NULL;
}

static attn_status new_loaded(attn_hash build, const char *launch, attn_loaded **loaded,
                              attn_error *err) {
    attn_loaded *l = calloc(1, sizeof *l);
    if (!l)
        return attn_fail_nomem(err);
    l->build = build;
    attn_status status = launch ? attn_launch_parse(launch, &l->launch, err) : ATTN_OK;
    if (status != ATTN_OK) {
        free(l);
        return status;
    }
    *loaded = l;
    return ATTN_OK;
}

static void keep(attn_runtime_device *device, attn_loaded *l, attn_loaded **loaded) {
    l->next = device->loaded;
    device->loaded = l;
    *loaded = l;
}

static attn_status load_binary(attn_runtime_device *device, attn_hash build,
                               const attn_binary *binary, const char *target, const char *launch,
                               attn_loaded **loaded, attn_error *err) {
    attn_loaded *l = NULL;
    ATTN_TRY(new_loaded(build, launch, &l, err));
    if (device->backend->load(device->handle, binary, target, &l->launch, &l->kernel, err) !=
        ATTN_OK) {
        free(l);
        return err->status;
    }
    keep(device, l, loaded);
    return ATTN_OK;
}

attn_status attn_kernel_stored(attn_runtime_device *device, attn_db *db, const attn_db_row *row,
                               attn_loaded **loaded, attn_error *err) {
    *loaded = find_loaded(device, row->build);
    if (*loaded)
        return ATTN_OK;
    if (row->abi != ATTN_ABI_VERSION)
        return attn_fail(err, ATTN_ERR_LOAD, "it was built for another version of the kernel ABI");
    if (!device->backend->runs(&device->info, row->target))
        return attn_fail(err, ATTN_ERR_LOAD, "it was built for %s, which this device is not",
                         row->target);
    attn_binary binary = ATTN_BINARY_INIT;
    attn_status status = attn_db_binary_get(db, row->build, &binary, err);
    if (status == ATTN_OK)
        status =
            load_binary(device, row->build, &binary, row->target, row->variant.launch, loaded, err);
    attn_binary_free(&binary);
    return status;
}

static void free_wanted(struct attn_wanted *w) {
    attn_variant_free(&w->variant);
    attn_binary_free(&w->binary);
    free(w->target);
    free(w->loaded);
    free(w);
}

static attn_status new_wanted(attn_variant *variant, attn_str *target, attn_hash build,
                              struct attn_wanted **wanted, attn_error *err) {
    struct attn_wanted *w = calloc(1, sizeof *w);
    attn_status status =
        w ? new_loaded(build, variant->launch, &w->loaded, err) : attn_fail_nomem(err);
    if (status != ATTN_OK) {
        free(w);
        return status;
    }
    w->target = attn_str_take(target);
    w->variant.language = variant->language;
    w->variant.source = variant->source;
    w->variant.options = variant->options;
    variant->language = variant->source = variant->options = NULL;
    *wanted = w;
    return ATTN_OK;
}

/* A build that is not loaded is to be compiled, unless it has failed; and none is after a compiler
 * has hung: the next one would be waited for as long, for nothing. */
static attn_status want(attn_runtime_device *device, attn_variant *variant, attn_str *target,
                        attn_hash build, attn_loaded **loaded, attn_error *err) {
    struct attn_wanted **link = &device->wanted;
    while (*link && !attn_hash_equal((*link)->loaded->build, build))
        link = &(*link)->next;
    const attn_error *failure = *link ? &(*link)->failure : &device->hung;
    if (failure->status != ATTN_OK) {
        *err = *failure;
        return err->status;
    }
    if (!*link)
        ATTN_TRY(new_wanted(variant, target, build, link, err));
    *loaded = (*link)->loaded;
    return ATTN_OK;
}

attn_status attn_kernel_rendered(attn_runtime_device *device, attn_variant *variant,
                                 attn_loaded **loaded, attn_str *toolchain, attn_error *err) {
    const attn_backend *backend = device->backend;
    attn_str target = ATTN_STR_INIT;
    attn_status status = backend->toolchain(variant->language, variant->options, toolchain, err);
    if (status == ATTN_OK)
        status = backend->target(&device->info, variant->options, &target, err);
    if (status == ATTN_OK && (toolchain->failed || target.failed))
        status = attn_fail_nomem(err);
    if (status == ATTN_OK) {
        attn_hash build =
            attn_build_hash(variant->hash, attn_str_text(toolchain), attn_str_text(&target));
        *loaded = find_loaded(device, build);
        if (!*loaded)
            status = want(device, variant, &target, build, loaded, err);
    }
    attn_str_free(&target);
    return status;
}

static attn_status compile(const attn_runtime_device *device, struct attn_wanted *w) {
    attn_build build = {.language = w->variant.language,
                        .source = w->variant.source,
                        .options = w->variant.options,
                        .target = w->target,
                        .seconds = device->compile_seconds};
    attn_hash_print(w->loaded->build, build.key);
    return device->backend->compile(&build, &w->binary, &w->failure);
}

/* Threads that compile: each takes the next build. After a failure none is left to take: what would
 * come next may not be wanted any more. */
struct crew {
    const attn_runtime_device *device;
    _Atomic(struct attn_wanted *) next;
};

static void *work(void *context) {
    struct crew *crew = context;
    struct attn_wanted *w = atomic_load(&crew->next);
    while (w) {
        if (!atomic_compare_exchange_weak(&crew->next, &w, w->next))
            continue;
        if (!w->failed && compile(crew->device, w) != ATTN_OK)
            atomic_store(&crew->next, NULL);
        w = atomic_load(&crew->next);
    }
    return NULL;
}

/* The caller is one of them, and the only one where no thread can be made. Signals go to the
 * program's own threads. */
static void compile_all(const attn_runtime_device *device, int32_t threads) {
    struct crew crew = {device, device->wanted};
    pthread_t thread[THREADS_MAX];
    int32_t started = 0, most = threads < THREADS_MAX ? threads : THREADS_MAX;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (const struct attn_wanted *w = device->wanted; w && w->next && started + 1 < most;
         w = w->next)
        started += pthread_create(&thread[started], NULL, work, &crew) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)work(&crew);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

/* What has failed beside others is tried once more by itself, and then what comes behind it:
 * several compilers need several times the memory, processes and disk of one. */
static void compile_alone(const attn_runtime_device *device) {
    for (struct attn_wanted *w = device->wanted; w; w = w->next) {
        if (w->failed || w->binary.data)
            continue;
        if (w->failure.status == ATTN_ERR_TIMEOUT)
            return;
        attn_binary_free(&w->binary); /* the log of the first try */
        w->failure = (attn_error)ATTN_ERROR_INIT;
        if (compile(device, w) != ATTN_OK)
            return;
    }
}

static bool load_wanted(attn_runtime_device *device, struct attn_wanted *w) {
    if (w->failure.status == ATTN_ERR_TIMEOUT)
        device->hung = w->failure;
    if (!w->binary.data ||
        device->backend->load(device->handle, &w->binary, w->target, &w->loaded->launch,
                              &w->loaded->kernel, &w->failure) != ATTN_OK)
        return false;
    keep(device, w->loaded, &w->loaded);
    w->loaded = NULL; /* it is the device's now */
    return true;
}

static void drop_wanted(attn_runtime_device *device, bool failed) {
    for (struct attn_wanted *w, **link = &device->wanted; (w = *link);) {
        if (w->failed && !failed) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        free_wanted(w);
    }
}

bool attn_kernels_compile(attn_runtime_device *device, int32_t threads) {
    bool all = true;
    compile_all(device, threads);
    if (threads > 1)
        compile_alone(device);
    for (struct attn_wanted *w = device->wanted; w; w = w->next) {
        all &= w->failed || load_wanted(device, w);
        w->failed = w->failure.status != ATTN_OK;
    }
    drop_wanted(device, false);
    return all;
}

void attn_kernels_forget(attn_runtime_device *device) {
    drop_wanted(device, true);
}

attn_status attn_kernel_reference(attn_runtime_device *device, attn_loaded **loaded,
                                  attn_error *err) {
    attn_hash none = {0, 0};
    *loaded = find_loaded(device, none);
    if (*loaded)
        return ATTN_OK;
    if (!device->backend->reference)
        return attn_fail(err, ATTN_ERR_NO_KERNEL, "device %s has no reference kernel",
                         device->name);
    attn_loaded *l = NULL;
    ATTN_TRY(new_loaded(none, NULL, &l, err));
    if (device->backend->reference(device->handle, &l->launch, &l->kernel, err) != ATTN_OK) {
        free(l);
        return err->status;
    }
    keep(device, l, loaded);
    return ATTN_OK;
}

void attn_kernels_close(attn_runtime_device *device) {
    while (device->loaded) {
        attn_loaded *l = device->loaded;
        device->loaded = l->next;
        device->backend->unload(l->kernel);
        free(l);
    }
}
