/* cpu_variants.h: families rendered, compiled and loaded on the CPU (or on a first device of
 * another backend), for tests of verification. */
#ifndef ATTN_CPU_VARIANTS_H
#define ATTN_CPU_VARIANTS_H

#include "backend.h"
#include "gen.h"

/* A generator and an open device. */
typedef struct cpu_host {
    const attn_backend *backend;
    attn_gen *gen;
    attn_backend_device *device;
    attn_device_info info;
} cpu_host;

/* A variant on its way to a kernel. */
typedef struct cpu_variant {
    const attn_backend *backend;
    attn_variant variant;
    attn_binary binary;
    attn_launch launch;
    char target[128];
    attn_kernel *kernel;
} cpu_variant;

/* path: of the generator's overlay, or NULL. */
attn_status cpu_host_open(const char *path, int32_t threads, cpu_host *host, attn_error *err);
/* The backend's first device, in a context of its own. */
attn_status cpu_host_open_on(const attn_backend *backend, const char *path, cpu_host *host,
                             attn_error *err);
void cpu_host_close(cpu_host *host);

/* Renders and compiles one configuration; any thread. Free the variant in any case. */
attn_status cpu_variant_build(const cpu_host *host, attn_variant *rendered, cpu_variant *variant,
                              attn_error *err);
attn_status cpu_variant_load(const cpu_host *host, cpu_variant *variant, attn_error *err);
void cpu_variant_free(cpu_variant *variant);

/* All of it: the family's default for the problem, changed by `config` (may be ""). */
attn_status cpu_variant_make(const cpu_host *host, const char *family, const attn_problem *problem,
                             const char *config, cpu_variant *variant, attn_error *err);

#endif
