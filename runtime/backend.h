/* backend.h: where kernels run.
 *
 * A backend is one folder under runtime/ (or, for `fake`, one file under tests/) that fills this
 * table, and one line in backends.c. Nothing above this header knows which backend it talks to.
 * Slots marked (optional) may be NULL; the default is stated.
 *
 * Threads: the slots that take no device, and info, workers, capturing, fits and run, may be called
 * from any thread at any time; the rest of a device is used by one thread at a time.
 *
 * Failures: ERR_LAUNCH is a refusal after which the device goes on; ERR_DEVICE means that it is
 * lost to this process and only close may follow; ERR_NOMEM is the device's memory running out. */
#ifndef ATTN_BACKEND_H
#define ATTN_BACKEND_H

#include <math.h>
#include <stdbool.h>

#include "core/build.h"
#include "core/device_info.h"
#include "core/launch.h"
#include "core/str.h"

typedef struct attn_backend_device attn_backend_device; /* each backend defines its own */
typedef struct attn_kernel attn_kernel;

typedef struct attn_device_options {
    int32_t threads;  /* CPU: at most so many; 0: the budget (affinity, cgroup, OMP_NUM_THREADS) */
    bool own_context; /* CUDA: true makes a context for alloc, copy, sync and time (the tuner);
                         false makes none: kernels run in the caller's current one, and only info,
                         load, unload, capturing, fits and run are called (the library) */
} attn_device_options;

/* Tensors of one call as addresses on the device, and the problem they belong to. */
typedef struct attn_call {
    const attn_problem *problem;
    attn_forward_args args; /* filled by attn_problem_args and attn_workspace_assign */
} attn_call;

typedef enum attn_copy { ATTN_COPY_TO_DEVICE, ATTN_COPY_FROM_DEVICE } attn_copy;

/* What the device is doing right now; NaN where it cannot be told. */
typedef struct attn_device_state {
    double canary; /* CPU: FMA rate of this moment, GFLOP/s on one thread */
    double clock_mhz;
    double power_w;
    double temperature_c;
    bool throttled;     /* too hot: what it measures now says little */
    bool power_limited; /* it would be faster if it were allowed to draw more */
} attn_device_state;

#define ATTN_DEVICE_STATE_INIT                                                                     \
    { .canary = NAN, .clock_mhz = NAN, .power_w = NAN, .temperature_c = NAN }

typedef struct attn_backend {
    const char *name; /* "cpu" */
    attn_backend_id id;

    /* Devices of this kind here; 0 and ATTN_OK if there are none. err->line may then say what is
     * missing and how to get it. */
    attn_status (*count)(int32_t *count, attn_error *err);

    attn_status (*open)(int32_t ordinal, const attn_device_options *options,
                        attn_backend_device **device, attn_error *err);
    void (*close)(attn_backend_device *device);
    void (*info)(const attn_backend_device *device, attn_device_info *info);

    /* Identity of the toolchain that these options select: name, version, path-independent. */
    attn_status (*toolchain)(const char *language, const char *options, attn_str *identity,
                             attn_error *err);

    /* What a build with these options needs of a device: "sm_90a", "cpu:x86_64+avx2+fma". Needs no
     * device. A device's arch is the coarse word for "same architecture"; this is exact. */
    attn_status (*target)(const attn_device_info *info, const char *options, attn_str *target,
                          attn_error *err);

    /* Can a binary of that target run on that device? load refuses it otherwise. */
    bool (*runs)(const attn_device_info *info, const char *target);

    /* Needs no device. Appends `attn_key` to the source in the language's own form. ERR_COMPILE
     * with the log, ERR_NO_TOOL, ERR_INVALID (an option that is not allowed), ERR_TIMEOUT, ERR_IO,
     * ERR_NOMEM. */
    attn_status (*compile)(const attn_build *build, attn_binary *binary, attn_error *err);

    /* The command that compiles `file` by hand with these options, for `attntune show`. */
    void (*command)(const char *language, const char *options, const char *target, const char *file,
                    attn_str *out);

    /* Loads a binary made for `target` and checks the key it exports; ERR_LOAD. The launch record
     * is copied, and the binary may be freed afterwards. */
    attn_status (*load)(attn_backend_device *device, const attn_binary *binary, const char *target,
                        const attn_launch *launch, attn_kernel **kernel, attn_error *err);
    void (*unload)(attn_kernel *kernel);

    /* Workers that a call has (CPU: threads; else 0), for workspace sizes; constant while open. */
    int32_t (*workers)(const attn_backend_device *device);

    /* Queues one call; on the CPU it is done on return. Clears zero_bytes, sets args.tiles for each
     * step in its own copy of the args. Allocates nothing, waits for nothing. Works in the child of
     * a fork on the CPU (threads are made anew); ERR_FORKED on CUDA. */
    attn_status (*run)(attn_kernel *kernel, const attn_call *call, void *stream, attn_error *err);

    /* Waits for all queued work and reports its failures. */
    attn_status (*sync)(attn_backend_device *device, attn_error *err);

    /* Wall time of `launches` calls that cycle through calls[0..count), total ns, after the work
     * before has ended. */
    attn_status (*time)(attn_kernel *kernel, const attn_call *calls, int32_t count,
                        int32_t launches, double *ns, attn_error *err);

    /* Device memory, 256-byte aligned, content undefined. ERR_NOMEM. */
    attn_status (*alloc)(attn_backend_device *device, size_t size, void **memory, attn_error *err);
    void (*free)(attn_backend_device *device, void *memory);

    /* Copies between host and device, done on return. */
    attn_status (*copy)(attn_backend_device *device, void *to, const void *from, size_t size,
                        attn_copy direction, attn_error *err);

    /* (optional) Fills in what can be told of the device's state. Default: all unknown. */
    void (*state)(attn_backend_device *device, attn_device_state *state);

    /* (optional) Is the stream being captured into a graph? Default: no. */
    bool (*capturing)(attn_backend_device *device, void *stream);

    /* (optional) Can this kernel address the call's strides? Default: yes. */
    bool (*fits)(const attn_kernel *kernel, const attn_call *call);

    /* (optional) A stream of the tuner's own, to keep the device busy beside a check. Default: the
     * device has no streams. */
    attn_status (*stream_create)(attn_backend_device *device, void **stream, attn_error *err);
    void (*stream_destroy)(attn_backend_device *device, void *stream);

    /* (optional) The plain kernel that is compiled into the library and runs every problem: the
     * last resort. Unloaded like any other. Default: there is none. */
    attn_status (*reference)(attn_backend_device *device, attn_launch *launch, attn_kernel **kernel,
                             attn_error *err);

    /* (optional) Best rate of fused multiply-adds measured on that many threads, GFLOP/s.
     * Default: NaN, no % of peak is shown. */
    double (*peak)(attn_backend_device *device, int32_t threads);

    /* (optional) Removes what processes that were killed left behind in the system's temporary
     * folder. Default: they leave nothing. */
    void (*sweep)(void);
} attn_backend;

/* The backends of this program, in the order in which devices are listed; ends with NULL. */
extern const attn_backend *const attn_backends[];

/* NULL if there is none of that name. */
const attn_backend *attn_backend_find(const char *name);
const attn_backend *attn_backend_by_id(attn_backend_id id);

extern const attn_backend attn_backend_cpu;
extern const attn_backend attn_backend_cuda;
extern const attn_backend attn_backend_fake; /* tests only: in attntune-fake */

#endif
