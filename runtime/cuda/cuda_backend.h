/* cuda_backend.h: what the files of the CUDA backend share.
 *
 *     cuda_api.c      the driver, by dlopen        nvrtc_api.c     the compilers, by dlopen
 *     cuda_compile.c  CUDA C and PTX to cubins     cuda_log.c      what a compiler's log says
 *     cuda_device.c   devices, memory, streams     cuda_info.c     their properties
 *     cuda_kernel.c   loading                      cuda_run.c      launching; cuda_maps.c: tensor
 * maps cuda_time.c     events and graph replay      cuda_nvml.c     clocks, power, temperature
 *
 * With own_context the device retains its primary context and every call makes it current. Without,
 * calls find the caller's context current and only look at it. */
#ifndef ATTN_CUDA_BACKEND_H
#define ATTN_CUDA_BACKEND_H

#include "backend.h"
#include "cuda_api.h"

struct attn_backend_device {
    const attn_cuda_api *api;
    CUdevice device;
    int32_t ordinal;
    bool own_context;
    CUcontext context; /* own_context only */
    CUstream stream;   /* own_context only: of sync and time */
    CUevent begin, end;
    attn_device_info info;
    int32_t sms;
    struct attn_nvml_device *nvml; /* NULL: not there */
};

struct attn_kernel {
    attn_backend_device *device;
    attn_launch launch;
    CUlibrary library; /* CUDA 12 drivers: good in every context */
    CUmodule module;   /* older ones: good in the context it was loaded in */
    CUcontext module_context;
    CUfunction function[ATTN_STEPS_MAX]; /* a CUkernel where library is set */
    double last_ns;                      /* of a launch, to decide on graph replay */
};

/* cuda_device.c: makes the device's own context current; without one checks that the caller's
 * context is on this device: ERR_DEVICE. */
attn_status attn_cuda_enter(const attn_backend_device *device, attn_error *err);

/* cuda_info.c */
attn_status attn_cuda_info(attn_backend_device *device, attn_error *err);

/* cuda_compile.c */
attn_status attn_cuda_toolchain(const char *language, const char *options, attn_str *identity,
                                attn_error *err);
attn_status attn_cuda_target(const attn_device_info *info, const char *options, attn_str *target,
                             attn_error *err);
bool attn_cuda_runs(const attn_device_info *info, const char *target);
attn_status attn_cuda_compile(const attn_build *build, attn_binary *binary, attn_error *err);
void attn_cuda_command(const char *language, const char *options, const char *target,
                       const char *file, attn_str *out);

/* cuda_log.c: registers, spills and shared memory that ptxas -v reports, -1 where it does not. */
void attn_cuda_read_log(attn_binary *binary);

/* cuda_kernel.c, cuda_run.c, cuda_time.c */
attn_status attn_cuda_load(attn_backend_device *device, const attn_binary *binary,
                           const char *target, const attn_launch *launch, attn_kernel **kernel,
                           attn_error *err);
void attn_cuda_unload(attn_kernel *kernel);
attn_status attn_cuda_run(attn_kernel *kernel, const attn_call *call, void *stream,
                          attn_error *err);
attn_status attn_cuda_time(attn_kernel *kernel, const attn_call *calls, int32_t count,
                           int32_t launches, double *ns, attn_error *err);
bool attn_cuda_fits(const attn_kernel *kernel, const attn_call *call);

/* cuda_maps.c: encodes the tensor maps that the launch record wants into args. */
attn_status attn_cuda_maps(const attn_cuda_api *api, const attn_launch *launch,
                           const attn_problem *problem, attn_forward_args *args, attn_error *err);

/* cuda_nvml.c */
struct attn_nvml_device *attn_nvml_open(const char *uuid);
void attn_nvml_close(struct attn_nvml_device *device);
void attn_nvml_state(const struct attn_nvml_device *device, attn_device_state *state);
bool attn_nvml_driver(char *version, size_t size); /* "580.159.04" */

#endif
