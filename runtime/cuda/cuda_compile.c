/* cuda_compile.c: CUDA C by NVRTC and PTX by nvJitLink, to a cubin of one architecture. Needs no
 * device, except for PTX where nvJitLink is missing: there the driver's linker does it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_backend.h"
#include "nvrtc_api.h"

enum { OPTIONS_MAX = 24, OPTION_MAX = 96 };

/* Options of NVRTC and of ptxas that a space file may give; an ending '=' takes a value. */
static const char *const ALLOWED[] = {
    "--use_fast_math",
    "--fmad=",
    "--ftz=",
    "--prec-div=",
    "--prec-sqrt=",
    "--maxrregcount=",
    "--extra-device-vectorization",
    "--ptxas-options=-O",
};

struct options {
    char text[OPTIONS_MAX][OPTION_MAX];
    const char *pointer[OPTIONS_MAX];
    int count;
};

static bool is_allowed(const char *option) {
    for (size_t i = 0; i < sizeof ALLOWED / sizeof ALLOWED[0]; i++) {
        size_t n = strlen(ALLOWED[i]);
        bool open = ALLOWED[i][n - 1] == '=' || ALLOWED[i][n - 1] == 'O';
        if (open ? strncmp(option, ALLOWED[i], n) == 0 && option[n]
                 : strcmp(option, ALLOWED[i]) == 0)
            return true;
    }
    return false;
}

static attn_status add_option(struct options *o, const char *text, size_t length, attn_error *err) {
    if (o->count == OPTIONS_MAX || length >= OPTION_MAX)
        return attn_fail(err, ATTN_ERR_INVALID, "too many build options, or one is too long");
    memcpy(o->text[o->count], text, length);
    o->text[o->count][length] = '\0';
    o->pointer[o->count] = o->text[o->count];
    o->count++;
    return ATTN_OK;
}

static attn_status split_options(const char *text, struct options *o, attn_error *err) {
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t n = strcspn(text, " ");
        ATTN_TRY(add_option(o, text, n, err));
        if (!is_allowed(o->text[o->count - 1]))
            return attn_fail(err, ATTN_ERR_INVALID, "'%s' is no build option for CUDA kernels",
                             o->text[o->count - 1]);
        text += n;
    }
    return ATTN_OK;
}

attn_status attn_cuda_toolchain(const char *language, const char *options, attn_str *identity,
                                attn_error *err) {
    (void)options; /* one version of each compiler is opened, whatever the options */
    if (strcmp(language, "cu") == 0) {
        const attn_nvrtc_api *api;
        int major = 0, minor = 0;
        ATTN_TRY(attn_nvrtc_open(&api, err));
        if (api->version(&major, &minor) != 0)
            return attn_fail(err, ATTN_ERR_NO_TOOL, "NVRTC does not tell its version");
        attn_str_append_f(identity, "nvrtc %d.%d", major, minor);
        return ATTN_OK;
    }
    const attn_nvjitlink_api *api;
    unsigned major = 0, minor = 0;
    if (attn_nvjitlink_open(&api, err) == ATTN_OK && api->version(&major, &minor) == 0) {
        attn_str_append_f(identity, "nvjitlink %u.%u", major, minor);
        return ATTN_OK;
    }
    const attn_cuda_api *driver;
    int version = 0;
    ATTN_TRY(attn_cuda_open(&driver, err));
    ATTN_CUDA_TRY(driver, "cuDriverGetVersion", driver->driver_version(&version), err);
    attn_str_append_f(identity, "driver linker %d.%d", version / 1000, version % 1000 / 10);
    return ATTN_OK;
}

attn_status attn_cuda_target(const attn_device_info *info, const char *options, attn_str *target,
                             attn_error *err) {
    (void)options;
    (void)err;
    attn_str_append(target, info->arch);
    return ATTN_OK;
}

/* sm_80 code runs on 8.0 and later 8.x; an 'a' target on its own architecture alone. */
bool attn_cuda_runs(const attn_device_info *info, const char *target) {
    int64_t cc = attn_device_prop(info, "cc");
    char *end;
    if (strncmp(target, "sm_", 3) != 0)
        return false;
    long wanted = strtol(target + 3, &end, 10);
    if (*end == 'a')
        return wanted == cc && end[1] == '\0';
    return *end == '\0' && wanted / 10 == cc / 10 && wanted <= cc;
}

static attn_status take_memory(attn_binary *binary, size_t size, attn_error *err) {
    binary->data = malloc(size ? size : 1);
    binary->size = size;
    return binary->data ? ATTN_OK : attn_fail_nomem(err);
}

/* Appends a log whose size counts its NUL. */
static void append_log(attn_str *log, char *text, size_t size) {
    if (size > 1)
        attn_str_append_bytes(log, text, strnlen(text, size));
}

/*-*** CUDA C ****************************************************/

static attn_status run_nvrtc(const attn_nvrtc_api *api, nvrtcProgram program,
                             const struct options *o, attn_binary *binary, attn_error *err) {
    size_t size = 0;
    int failed = api->compile(program, o->count, o->pointer) != 0;
    if (api->log_size(program, &size) == 0 && size > 1) {
        char *text = malloc(size);
        if (text && api->log(program, text) == 0)
            append_log(&binary->log, text, size);
        free(text);
    }
    if (failed)
        return attn_fail(err, ATTN_ERR_COMPILE, "%.900s", attn_str_text(&binary->log));
    if (api->cubin_size(program, &size) != 0 || size == 0)
        return attn_fail(err, ATTN_ERR_COMPILE, "NVRTC made no cubin");
    ATTN_TRY(take_memory(binary, size, err));
    if (api->cubin(program, binary->data) != 0)
        return attn_fail(err, ATTN_ERR_COMPILE, "NVRTC did not hand over its cubin");
    return ATTN_OK;
}

static attn_status compile_cuda_c(const attn_build *build, struct options *o, const char *source,
                                  attn_binary *binary, attn_error *err) {
    const attn_nvrtc_api *api;
    nvrtcProgram program = NULL;
    char arch[48];
    (void)snprintf(arch, sizeof arch, "--gpu-architecture=%s", build->target);
    const char *const fixed[] = {arch, "--std=c++17", "--ptxas-options=-v"};
    ATTN_TRY(attn_nvrtc_open(&api, err));
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        ATTN_TRY(add_option(o, fixed[i], strlen(fixed[i]), err));
    if (api->create(&program, source, "kernel.cu", 0, NULL, NULL) != 0)
        return attn_fail(err, ATTN_ERR_COMPILE, "NVRTC cannot start");
    attn_status status = run_nvrtc(api, program, o, binary, err);
    (void)api->destroy(&program);
    return status;
}

/*-*** PTX *******************************************************/

static void read_jitlink_logs(const attn_nvjitlink_api *api, nvJitLinkHandle link, attn_str *log) {
    size_t size = 0;
    char *text;
    if (api->error_size(link, &size) == 0 && size > 1 && (text = malloc(size)) != NULL) {
        if (api->error_log(link, text) == 0)
            append_log(log, text, size);
        free(text);
    }
    if (api->info_size(link, &size) == 0 && size > 1 && (text = malloc(size)) != NULL) {
        if (api->info_log(link, text) == 0)
            append_log(log, text, size);
        free(text);
    }
}

static attn_status run_jitlink(const attn_nvjitlink_api *api, nvJitLinkHandle link,
                               const char *source, attn_binary *binary, attn_error *err) {
    size_t size = 0;
    bool good = api->add(link, (nvJitLinkInputType)ATTN_NVJITLINK_PTX, source, strlen(source) + 1,
                         "kernel.ptx") == 0 &&
                api->complete(link) == 0;
    read_jitlink_logs(api, link, &binary->log);
    if (!good || api->cubin_size(link, &size) != 0 || size == 0)
        return attn_fail(err, ATTN_ERR_COMPILE, "%.900s", attn_str_text(&binary->log));
    ATTN_TRY(take_memory(binary, size, err));
    if (api->cubin(link, binary->data) != 0)
        return attn_fail(err, ATTN_ERR_COMPILE, "nvJitLink did not hand over its cubin");
    return ATTN_OK;
}

/* The driver's linker works in a context: the device's primary one, for as long as this takes. */
static attn_status link_in_driver(const attn_cuda_api *api, const char *source, attn_binary *binary,
                                  attn_error *err) {
    enum { LOG_MAX = 16384 };
    static const CUjit_option names[] = {
        (CUjit_option)CU_JIT_INFO_LOG_BUFFER, (CUjit_option)CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        (CUjit_option)CU_JIT_ERROR_LOG_BUFFER, (CUjit_option)CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        (CUjit_option)CU_JIT_LOG_VERBOSE};
    char *info = calloc(2, LOG_MAX), *error = info ? info + LOG_MAX : NULL;
    void *values[] = {info, (void *)(uintptr_t)LOG_MAX, error, (void *)(uintptr_t)LOG_MAX,
                      (void *)(uintptr_t)1};
    CUjit_option options[5];
    CUlinkState link = NULL;
    void *cubin = NULL;
    size_t size = 0;
    if (!info)
        return attn_fail_nomem(err);
    memcpy(options, names, sizeof options);
    CUresult result = api->link_create(5, options, values, &link);
    if (result == 0)
        result = api->link_add(link, (CUjitInputType)CU_JIT_INPUT_PTX, (void *)(uintptr_t)source,
                               strlen(source) + 1, "kernel.ptx", 0, NULL, NULL);
    if (result == 0)
        result = api->link_complete(link, &cubin, &size);
    append_log(&binary->log, error, LOG_MAX);
    append_log(&binary->log, info, LOG_MAX);
    attn_status status = ATTN_OK;
    if (result != 0)
        status = attn_fail(err, ATTN_ERR_COMPILE, "%.900s", attn_str_text(&binary->log));
    else if ((status = take_memory(binary, size, err)) == ATTN_OK)
        memcpy(binary->data, cubin, size);
    if (link)
        (void)api->link_destroy(link);
    free(info);
    return status;
}

static attn_status compile_ptx_by_driver(const char *source, attn_binary *binary, attn_error *err) {
    const attn_cuda_api *api;
    CUcontext before = NULL, context = NULL;
    CUdevice device = 0;
    if (attn_cuda_open(&api, err) != ATTN_OK)
        return attn_fail(err, ATTN_ERR_NO_TOOL,
                         "PTX needs nvJitLink or an NVIDIA driver, and neither is here");
    ATTN_CUDA_TRY(api, "cuDeviceGet", api->device_get(&device, 0), err);
    ATTN_CUDA_TRY(api, "cuDevicePrimaryCtxRetain", api->primary_retain(&context, device), err);
    (void)api->ctx_get(&before);
    (void)api->ctx_set(context);
    attn_status status = link_in_driver(api, source, binary, err);
    (void)api->ctx_set(before);
    (void)api->primary_release(device);
    return status;
}

static attn_status compile_ptx(const attn_build *build, const struct options *o, const char *source,
                               attn_binary *binary, attn_error *err) {
    const attn_nvjitlink_api *api;
    nvJitLinkHandle link = NULL;
    char arch[48];
    if (o->count)
        return attn_fail(err, ATTN_ERR_INVALID, "PTX templates take no build options");
    if (attn_nvjitlink_open(&api, err) != ATTN_OK)
        return compile_ptx_by_driver(source, binary, err);
    (void)snprintf(arch, sizeof arch, "-arch=%s", build->target);
    const char *options[] = {arch, "-verbose"};
    if (api->create(&link, 2, options) != 0)
        return attn_fail(err, ATTN_ERR_COMPILE, "nvJitLink does not know %s", build->target);
    attn_status status = run_jitlink(api, link, source, binary, err);
    (void)api->destroy(&link);
    return status;
}

/*-*** Both ******************************************************/

/* nvJitLink takes a text for PTX only if it begins with comments and .version, not with the #line
 * of a rendered template: .version goes first, and a comment stays where it was. */
static void append_ptx(attn_str *out, const char *source) {
    const char *version = strstr(source, "\n.version");
    if (source[0] == '#' && version) {
        size_t length = strcspn(version + 1, "\n");
        attn_str_append_bytes(out, version + 1, length);
        attn_str_append(out, "\n");
        attn_str_append_bytes(out, source, (size_t)(version + 1 - source));
        attn_str_append(out, "//");
        source = version + 1;
    }
    attn_str_append(out, source);
}

/* The source with the key in the language's own form behind it. */
static char *with_key(const attn_build *build, bool ptx) {
    attn_str source = ATTN_STR_INIT;
    if (ptx) {
        append_ptx(&source, build->source);
        attn_str_append(&source, "\n.visible .const .align 1 .b8 attn_key[33] = {");
        for (int i = 0; i < 33; i++)
            attn_str_append_f(&source, "%s%d", i ? ", " : "", build->key[i]);
        attn_str_append(&source, "};\n");
    } else {
        attn_str_append(&source, build->source);
        attn_str_append_f(&source, "\nextern \"C\" __constant__ char attn_key[33] = \"%s\";\n",
                          build->key);
    }
    return attn_str_take(&source);
}

attn_status attn_cuda_compile(const attn_build *build, attn_binary *binary, attn_error *err) {
    bool ptx = strcmp(build->language, "ptx") == 0;
    struct options *o = calloc(1, sizeof *o);
    char *source = with_key(build, ptx);
    *binary = (attn_binary)ATTN_BINARY_INIT;
    memcpy(binary->key, build->key, sizeof binary->key);
    attn_status status = o && source ? split_options(build->options, o, err) : attn_fail_nomem(err);
    if (status == ATTN_OK)
        status = ptx ? compile_ptx(build, o, source, binary, err)
                     : compile_cuda_c(build, o, source, binary, err);
    attn_cuda_read_log(binary);
    free(source);
    free(o);
    return status;
}

void attn_cuda_command(const char *language, const char *options, const char *target,
                       const char *file, attn_str *out) {
    if (strcmp(language, "ptx") == 0)
        attn_str_append_f(out, "ptxas -v -arch=%s %s -o /dev/null", target, file);
    else
        attn_str_append_f(out,
                          "nvcc -cubin -std=c++17 -gencode=arch=compute_%s,code=%s -Xptxas -v%s%s "
                          "%s -o /dev/null",
                          target + strlen("sm_"), target, *options ? " " : "", options, file);
}
