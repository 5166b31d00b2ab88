/* probe.c: asks a worker what devices there are. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "worker.h"

static const double PROBE_S = 30; /* to open all devices of a backend */

static attn_status add_devices(attn_fields *fields, attn_probed *probed, attn_str *missing,
                               attn_error *err) {
    size_t found = attn_get_u32(fields);
    if (found > 1024)
        return attn_fail(err, ATTN_ERR_INTERNAL, "the probe found %zu devices", found);
    attn_device_info *device =
        realloc(probed->device, (probed->count + found + 1) * sizeof *device);
    if (!device)
        return attn_fail_nomem(err);
    probed->device = device;
    for (size_t i = 0; i < found; i++)
        ATTN_TRY(attn_device_parse(attn_get_text(fields), &device[probed->count++], err));
    attn_str_append(missing, attn_get_text(fields));
    return ATTN_OK;
}

/* One worker for each backend, so that a driver that crashes takes no other along. */
static attn_status probe_backend(const attn_backend *backend, int32_t threads, int stop_fd,
                                 attn_probed *probed, attn_str *missing, attn_error *err) {
    attn_worker worker = ATTN_WORKER_INIT;
    attn_str body = ATTN_STR_INIT;
    attn_fields fields;
    attn_loss loss;
    attn_put_text(&body, backend->name);
    attn_put_u32(&body, (uint32_t)threads);
    attn_worker_limits(&worker, 0, PROBE_S, 0);
    attn_status status =
        attn_worker_ask(&worker, ATTN_MSG_PROBE, &body, stop_fd, &fields, &loss, err);
    if (status == ATTN_OK)
        status = add_devices(&fields, probed, missing, err);
    else if (status == ATTN_ERR_DEVICE)
        attn_str_append_f(missing, "%s: looking for devices failed: %s\n", backend->name,
                          loss.line);
    attn_worker_kill(&worker);
    attn_str_free(&body);
    return status == ATTN_ERR_DEVICE ? ATTN_OK : status;
}

attn_status attn_probe(int32_t threads, int stop_fd, attn_probed *probed, attn_error *err) {
    attn_str missing = ATTN_STR_INIT;
    attn_status status = ATTN_OK;
    *probed = (attn_probed){0};
    for (size_t i = 0; status == ATTN_OK && attn_backends[i]; i++)
        status = probe_backend(attn_backends[i], threads, stop_fd, probed, &missing, err);
    attn_str_append(&missing, "");
    probed->missing = attn_str_take(&missing);
    if (status == ATTN_OK && !probed->missing)
        status = attn_fail_nomem(err);
    if (status != ATTN_OK)
        attn_probed_free(probed);
    return status;
}

void attn_probed_free(attn_probed *probed) {
    free(probed->device);
    free(probed->missing);
    *probed = (attn_probed){0};
}

attn_status attn_probe_peaks(const attn_device_info *device, int32_t threads[ATTN_PEAKS_MAX],
                             double peak[ATTN_PEAKS_MAX], int32_t *count,
                             void (*on_wait)(void *user, const char *line), void *user,
                             attn_error *err) {
    attn_worker worker = ATTN_WORKER_INIT;
    attn_fields fields;
    attn_loss loss;
    attn_str body = ATTN_STR_INIT;
    int32_t all = (int32_t)attn_device_prop(device, "threads");
    *count = 0;
    worker.patience = (attn_patience){0, on_wait, user};
    attn_put_text(&body, device->backend);
    attn_put_u32(&body, (uint32_t)device->ordinal);
    attn_put_u32(&body, (uint32_t)all);
    attn_status status = attn_worker_ask(&worker, ATTN_MSG_OPEN, &body, -1, &fields, &loss, err);
    for (int32_t n = 1; status == ATTN_OK && *count < ATTN_PEAKS_MAX; n *= 2) {
        int32_t now = n < all ? n : all;
        attn_str_clear(&body);
        attn_put_u32(&body, (uint32_t)now);
        status = attn_worker_ask(&worker, ATTN_MSG_PEAK, &body, -1, &fields, &loss, err);
        double rate = status == ATTN_OK ? attn_get_f64(&fields) : 0;
        if (!(rate > 0))
            break;
        threads[*count] = now;
        peak[(*count)++] = rate;
        if (now >= all)
            break;
    }
    attn_worker_kill(&worker);
    attn_str_free(&body);
    return status;
}

/*-*** Names *****************************************************/

/* A backend with one device needs no number. */
void attn_device_label(const attn_device_info *device, char *text, size_t size) {
    if (strcmp(device->backend, "cuda") == 0 || device->ordinal > 0)
        (void)snprintf(text, size, "%s:%d", device->backend, device->ordinal);
    else
        (void)snprintf(text, size, "%s", device->backend);
}

static bool is_called(const attn_device_info *device, const char *text) {
    char numbered[64];
    (void)snprintf(numbered, sizeof numbered, "%s:%d", device->backend, device->ordinal);
    return strcmp(text, numbered) == 0 ||
           (device->ordinal == 0 && strcmp(text, device->backend) == 0);
}

attn_status attn_probe_choose(const attn_probed *probed, const char *text, size_t *chosen,
                              size_t *count, attn_error *err) {
    attn_str names = ATTN_STR_INIT;
    char label[64];
    bool all = strcmp(text, "all") == 0;
    *count = 0;
    for (size_t i = 0; i < probed->count; i++) {
        if (all || is_called(&probed->device[i], text))
            chosen[(*count)++] = i;
        attn_device_label(&probed->device[i], label, sizeof label);
        attn_str_append_f(&names, "%s%s", i > 0 ? ", " : "is ", label);
    }
    if (*count == 0)
        (void)attn_fail(err, ATTN_ERR_NO_DEVICE, "there is no device '%s' here; there %s", text,
                        names.size ? attn_str_text(&names) : "is none at all");
    attn_str_free(&names);
    return *count > 0 ? ATTN_OK : ATTN_ERR_NO_DEVICE;
}
