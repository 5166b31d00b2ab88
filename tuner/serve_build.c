/* serve_build.c: what a worker does without an open device: finding devices, and compiling. */
#include <stdlib.h>
#include <string.h>

#include "server.h"

/* Devices of one backend; failures are a line of `notes` and no failure of the probe. */
static void probe_backend(const attn_backend *backend, const attn_device_options *options,
                          uint32_t *found, attn_str *devices, attn_str *notes) {
    attn_error err = ATTN_ERROR_INIT;
    attn_device_info info;
    attn_str text = ATTN_STR_INIT;
    int32_t count = 0;
    (void)backend->count(&count, &err);
    if (err.line[0])
        attn_str_append_f(notes, "%s: %s\n", backend->name, err.line);
    for (int32_t i = 0; i < count; i++) {
        attn_backend_device *device;
        if (backend->open(i, options, &device, &err) != ATTN_OK) {
            attn_str_append_f(notes, "%s:%d: %s\n", backend->name, i, err.line);
            continue;
        }
        backend->info(device, &info);
        backend->close(device);
        attn_str_clear(&text);
        attn_device_print(&info, &text);
        attn_put_text(devices, attn_str_text(&text));
        (*found)++;
    }
    if (text.failed)
        devices->failed = true;
    attn_str_free(&text);
}

attn_status attn_serve_probe(attn_server *server, attn_fields *fields, attn_str *reply,
                             attn_error *err) {
    const char *only = attn_get_text(fields);
    const attn_device_options options = {.threads = (int32_t)attn_get_u32(fields),
                                         .own_context = true};
    attn_str devices = ATTN_STR_INIT, notes = ATTN_STR_INIT;
    uint32_t found = 0;
    (void)server;
    (void)err;
    for (size_t i = 0; attn_backends[i]; i++)
        if (!only[0] || strcmp(only, attn_backends[i]->name) == 0)
            probe_backend(attn_backends[i], &options, &found, &devices, &notes);
    attn_put_u32(reply, found);
    attn_str_append_bytes(reply, devices.data, devices.size);
    attn_put_text(reply, attn_str_text(&notes));
    if (devices.failed || notes.failed)
        reply->failed = true;
    attn_str_free(&devices);
    attn_str_free(&notes);
    return ATTN_OK;
}

attn_status attn_serve_compile(attn_server *server, attn_fields *fields, attn_str *reply,
                               attn_error *err) {
    attn_build build = {.seconds = 0}; /* the parent watches */
    const char *name = attn_get_text(fields);
    build.language = attn_get_text(fields);
    build.source = attn_get_text(fields);
    build.options = attn_get_text(fields);
    build.target = attn_get_text(fields);
    attn_get_struct(fields, build.key, sizeof build.key);
    const attn_backend *backend = attn_backend_find(name);
    if (fields->bad || !backend)
        return attn_fail(err, ATTN_ERR_INTERNAL, "there is no backend '%s' to compile for", name);
    ATTN_TRY(attn_server_lock_work(server, err));
    attn_binary binary = ATTN_BINARY_INIT;
    int64_t begun = attn_now_ns();
    attn_status status = backend->compile(&build, &binary, err);
    if (status == ATTN_OK) {
        attn_put_f64(reply, (double)(attn_now_ns() - begun) * 1e-9);
        attn_put_binary(reply, &binary);
    }
    attn_binary_free(&binary);
    return status;
}
