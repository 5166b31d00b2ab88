/* kernels.c: the kernels of a device that are loaded, by build.
 *
 * A build is loaded once, however many candidates share it, and stays until the context closes, so
 * that a table or plan that points to it is always good. */
#include <stdlib.h>
#include <string.h>

#include "context.h"

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

static attn_status compile(attn_runtime_device *device, const attn_variant *variant,
                           const char *target, attn_hash build, attn_loaded **loaded,
                           attn_error *err) {
    attn_binary binary = ATTN_BINARY_INIT;
    attn_build request = {.language = variant->language,
                          .source = variant->source,
                          .options = variant->options,
                          .target = target,
                          .seconds = device->compile_seconds};
    if (device->hung.status != ATTN_OK) { /* the next class would wait as long, for nothing */
        *err = device->hung;
        return err->status;
    }
    attn_hash_print(build, request.key);
    attn_status status = device->backend->compile(&request, &binary, err);
    if (status == ATTN_ERR_TIMEOUT)
        device->hung = *err;
    if (status == ATTN_OK)
        status = load_binary(device, build, &binary, target, variant->launch, loaded, err);
    attn_binary_free(&binary);
    return status;
}

attn_status attn_kernel_rendered(attn_runtime_device *device, const attn_variant *variant,
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
            status = compile(device, variant, attn_str_text(&target), build, loaded, err);
    }
    attn_str_free(&target);
    return status;
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
