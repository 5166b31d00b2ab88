/* probe.h: the devices that are here, found by a worker process, so that a broken driver costs the
 * caller a message and nothing else. */
#ifndef ATTN_PROBE_H
#define ATTN_PROBE_H

#include "core/device_info.h"

typedef struct attn_probed {
    attn_device_info *device; /* in the order of the table of backends */
    size_t count;
    char *missing; /* lines "backend: what is missing and how to get it"; "" if nothing is */
} attn_probed;

/* threads, stop_fd: as in attn_tune_options. ERR_TIMEOUT: a signal has come. A backend that crashes
 * or hangs the probe is a line in `missing`. */
attn_status attn_probe(int32_t threads, int stop_fd, attn_probed *probed, attn_error *err);
void attn_probed_free(attn_probed *probed);

/* Best measured rate of fused multiply-adds on 1, 2, 4 ... and all threads of the device, GFLOP/s
 * (peak[i] belongs to threads[i]); *count is 0 where the backend cannot tell. Takes the device's
 * timing lock; on_wait is told if another tuner holds it. */
enum { ATTN_PEAKS_MAX = 16 };
attn_status attn_probe_peaks(const attn_device_info *device, int32_t threads[ATTN_PEAKS_MAX],
                             double peak[ATTN_PEAKS_MAX], int32_t *count,
                             void (*on_wait)(void *user, const char *line), void *user,
                             attn_error *err);

/* "cpu", "cuda:0", "fake"; a backend's name alone is its device 0. "all" selects every device. On
 * success *chosen holds *count indices. ERR_NO_DEVICE names what there is. */
attn_status attn_probe_choose(const attn_probed *probed, const char *text, size_t *chosen,
                              size_t *count, attn_error *err);

/* "cpu", "cuda:0": what the CLI takes and prints. */
void attn_device_label(const attn_device_info *device, char *text, size_t size);

#endif
