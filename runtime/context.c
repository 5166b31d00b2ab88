/* context.c: opening and closing a context, its devices, and the last error of a thread. */
#include "context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Like errno: a message belongs to the thread that got it. `serial` is the context it is about. */
static _Thread_local struct {
    uint64_t serial;
    attn_error error;
} last;

attn_status attn_report(attn_context *ctx, const attn_error *err) {
    last.serial = ctx ? ctx->serial : 0;
    last.error = *err;
    return err->status;
}

void attn_warn(attn_context *ctx, const attn_error *err) {
    (void)attn_report(ctx, err);
}

const char *attn_last_error(attn_context *ctx) {
    return last.serial == (ctx ? ctx->serial : 0) ? last.error.line : "";
}

/* The address of a context may be used again by the next one; its number is not. */
static uint64_t next_serial(void) {
    static _Atomic uint64_t counter;
    return atomic_fetch_add(&counter, 1) + 1;
}

static attn_status copy_text(const char **text, attn_error *err) {
    if (!*text)
        return ATTN_OK;
    *text = strdup(*text);
    return *text ? ATTN_OK : attn_fail_nomem(err);
}

static attn_status copy_options(attn_context *ctx, const attn_options *options, attn_error *err) {
    ctx->options = (attn_options)ATTN_OPTIONS_INIT;
    if (!options)
        return ATTN_OK;
    if (options->size != sizeof *options)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "attn_options.size is %zu; begin with ATTN_OPTIONS_INIT", options->size);
    if ((unsigned)options->effort > ATTN_ESTIMATE)
        return attn_fail(err, ATTN_ERR_INVALID,
                         "attn_options.effort is CACHED or ESTIMATE; MEASURE is for plans");
    if (options->threads < 0 || !(options->measure_seconds >= 0))
        return attn_fail(err, ATTN_ERR_INVALID,
                         "attn_options.threads and measure_seconds are not negative");
    ctx->options = *options;
    const char **const texts[] = {&ctx->options.db_path, &ctx->options.system_db,
                                  &ctx->options.family_path, &ctx->options.tool_path};
    attn_status status = ATTN_OK;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (status == ATTN_OK)
            status = copy_text(texts[i], err);
        else
            *texts[i] = NULL; /* the caller's: not ours to free */
    }
    return status;
}

/* Was it asked for, by the option or the environment? */
static bool is_named(const char *option, const char *variable) {
    const char *value = getenv(variable);
    return (option && *option) || (value && *value);
}

/* Tells whether a database can be used; one that cannot is a warning, not a failure. One that is
 * not there may come: it is looked for again with each class. */
static void try_database(attn_context *ctx, char **path, attn_db_mode mode, bool named) {
    attn_error err = ATTN_ERROR_INIT;
    attn_db *db = NULL;
    if (!*path)
        return;
    attn_status status = attn_db_open(*path, mode, &db, &err);
    attn_db_close(db);
    if (status == ATTN_OK || (status == ATTN_ERR_NOT_FOUND && !named))
        return;
    attn_warn(ctx, &err);
    if (status == ATTN_ERR_NOT_FOUND)
        return;
    free(*path);
    *path = NULL;
}

static void find_databases(attn_context *ctx) {
    attn_error err = ATTN_ERROR_INIT;
    if (attn_db_user_path(ctx->options.db_path, &ctx->user_path, &err) != ATTN_OK)
        attn_warn(ctx, &err);
    if (attn_db_system_path(ctx->options.system_db, &ctx->system_path, &err) != ATTN_OK &&
        err.status != ATTN_ERR_NOT_FOUND)
        attn_warn(ctx, &err);
    try_database(ctx, &ctx->system_path, ATTN_DB_SYSTEM,
                 is_named(ctx->options.system_db, "ATTNTUNE_SYSTEM_DB"));
    try_database(ctx, &ctx->user_path, ATTN_DB_READ, is_named(ctx->options.db_path, "ATTNTUNE_DB"));
}

static attn_status open_device(attn_context *ctx, const attn_backend *backend, int32_t ordinal,
                               attn_error *err) {
    attn_device_options options = {.threads = ctx->options.threads};
    attn_runtime_device *devices =
        realloc(ctx->device, sizeof *devices * ((size_t)ctx->device_count + 1));
    if (!devices)
        return attn_fail_nomem(err);
    ctx->device = devices;
    attn_runtime_device *device = &devices[ctx->device_count];
    memset(device, 0, sizeof *device);
    if (backend->open(ordinal, &options, &device->handle, err) != ATTN_OK) {
        attn_warn(ctx, err);
        return ATTN_OK; /* one device that fails hides none of the others */
    }
    ctx->device_count++;
    device->id = (attn_device){backend->id, ordinal};
    device->backend = backend;
    atomic_init(&device->table, NULL);
    device->compile_seconds = ATTN_COMPILE_LIMIT_S;
    device->hung = (attn_error)ATTN_ERROR_INIT;
    backend->info(device->handle, &device->info);
    if (backend->id == ATTN_BACKEND_CPU)
        (void)snprintf(device->name, sizeof device->name, "%s", backend->name);
    else
        (void)snprintf(device->name, sizeof device->name, "%s:%d", backend->name, ordinal);
    (void)snprintf(device->description, sizeof device->description, "%s (%s)", device->info.name,
                   device->info.arch);
    return ATTN_OK;
}

static attn_status open_devices(attn_context *ctx, attn_error *err) {
    for (const attn_backend *const *backend = attn_backends; *backend; backend++) {
        int32_t count = 0;
        if ((*backend)->count(&count, err) != ATTN_OK) {
            attn_warn(ctx, err);
            continue;
        }
        for (int32_t i = 0; i < count; i++)
            ATTN_TRY(open_device(ctx, *backend, i, err));
    }
    return ATTN_OK;
}

/* Folders that were named are looked at now, so that what is wrong with them is told; without any,
 * the generator is opened when a class needs it. */
static void find_families(attn_context *ctx) {
    attn_error err = ATTN_ERROR_INIT;
    attn_gen *gen;
    if (is_named(ctx->options.family_path, "ATTNTUNE_PATH") &&
        attn_context_gen(ctx, &gen, &err) != ATTN_OK)
        attn_warn(ctx, &err);
}

static attn_status open_context(attn_context *ctx, const attn_options *options, attn_error *err) {
    ATTN_TRY(copy_options(ctx, options, err));
    find_databases(ctx);
    find_families(ctx);
    const char *record = getenv("ATTNTUNE_RECORD");
    if (record && *record) {
        attn_error problem = ATTN_ERROR_INIT;
        ctx->record = attn_record_open(record, &problem);
        if (!ctx->record)
            attn_warn(ctx, &problem);
    }
    return open_devices(ctx, err);
}

attn_status attn_open(const attn_options *options, attn_context **context) {
    attn_error err = ATTN_ERROR_INIT;
    if (!context) {
        (void)attn_fail(&err, ATTN_ERR_INVALID, "the context has nowhere to go: context is NULL");
        return attn_report(NULL, &err);
    }
    *context = NULL;
    (void)attn_report(NULL, &err);
    attn_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx) {
        (void)attn_fail_nomem(&err);
        return attn_report(NULL, &err);
    }
    ctx->serial = next_serial();
    if (pthread_mutex_init(&ctx->lock, NULL) != 0) {
        free(ctx);
        (void)attn_fail_nomem(&err);
        return attn_report(NULL, &err);
    }
    if (open_context(ctx, options, &err) != ATTN_OK) {
        attn_close(ctx);
        return attn_report(NULL, &err);
    }
    *context = ctx;
    return ATTN_OK;
}

static void close_device(attn_runtime_device *device) {
    const attn_table *table = atomic_load(&device->table);
    while (table) {
        const attn_table *older = table->older;
        free((void *)(uintptr_t)table);
        table = older;
    }
    attn_kernels_close(device);
    device->backend->close(device->handle);
}

void attn_close(attn_context *ctx) {
    if (!ctx)
        return;
    for (int32_t i = 0; i < ctx->device_count; i++)
        close_device(&ctx->device[i]);
    for (size_t i = 0; i < ctx->class_count; i++)
        attn_class_free(ctx->classes[i]);
    free(ctx->classes);
    free(ctx->device);
    attn_record_close(ctx->record);
    attn_gen_close(ctx->gen);
    free(ctx->user_path);
    free(ctx->system_path);
    const char *const texts[] = {ctx->options.db_path, ctx->options.system_db,
                                 ctx->options.family_path, ctx->options.tool_path};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free((void *)(uintptr_t)texts[i]);
    (void)pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}

attn_runtime_device *attn_context_device(attn_context *ctx, attn_device id) {
    for (int32_t i = 0; i < ctx->device_count; i++)
        if (ctx->device[i].id.backend == id.backend && ctx->device[i].id.ordinal == id.ordinal)
            return &ctx->device[i];
    return NULL;
}

attn_status attn_context_gen(attn_context *ctx, attn_gen **gen, attn_error *err) {
    const char *path =
        ctx->options.family_path ? ctx->options.family_path : getenv("ATTNTUNE_PATH");
    if (!ctx->gen)
        ATTN_TRY(attn_gen_open(path && *path ? path : NULL, &ctx->gen, err));
    *gen = ctx->gen;
    return ATTN_OK;
}

int32_t attn_device_count(attn_context *ctx) {
    return ctx ? ctx->device_count : 0;
}

attn_status attn_device_get(attn_context *ctx, int32_t index, attn_device *device,
                            const char **name, const char **description) {
    attn_error err = ATTN_ERROR_INIT;
    if (!ctx) {
        (void)attn_fail(&err, ATTN_ERR_INVALID, "the context is NULL");
        return attn_report(ctx, &err);
    }
    if (index < 0 || index >= ctx->device_count) {
        (void)attn_fail(&err, ATTN_ERR_NO_DEVICE, "there is no device number %d; there are %d",
                        index, ctx->device_count);
        return attn_report(ctx, &err);
    }
    if (device)
        *device = ctx->device[index].id;
    if (name)
        *name = ctx->device[index].name;
    if (description)
        *description = ctx->device[index].description;
    return ATTN_OK;
}
