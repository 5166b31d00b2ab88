/* cuda_api.c: opening the driver, and what its results mean. */
#include "cuda_api.h"

#include <pthread.h>
#include <stdatomic.h>

#include "open_library.h"

static const attn_symbol SYMBOLS[] = {
#define REQUIRED(field, symbol, arguments) {#symbol, offsetof(attn_cuda_api, field), false},
#define OPTIONAL(field, symbol, arguments) {#symbol, offsetof(attn_cuda_api, field), true},
    ATTN_CUDA_FUNCTION_MAP(REQUIRED, OPTIONAL)
#undef REQUIRED
#undef OPTIONAL
};

/* The driver is one a process, and so is this. */
static attn_cuda_api driver;
static attn_error driver_error = ATTN_ERROR_INIT;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static atomic_bool forked;

static void after_fork(void) {
    atomic_store(&forked, true);
}

static void open_driver(void) {
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
    const char *missing =
        attn_open_library(names, SYMBOLS, sizeof SYMBOLS / sizeof SYMBOLS[0], &driver);
    if (missing == names[0]) {
        (void)attn_fail(&driver_error, ATTN_ERR_NO_TOOL,
                        "no NVIDIA GPU can be used, as the NVIDIA driver is not installed "
                        "(libcuda.so.1, in Debian's nvidia-driver)");
        return;
    }
    if (missing) {
        (void)attn_fail(&driver_error, ATTN_ERR_NO_TOOL,
                        "the NVIDIA driver is too old: it has no %s; CUDA 11.4 is the oldest that "
                        "will do",
                        missing);
        return;
    }
    CUresult result = driver.init(0);
    if (result != 0) {
        (void)attn_cuda_fail(&driver, result, ATTN_ERR_NO_DEVICE, "cuInit", &driver_error);
        return;
    }
    (void)pthread_atfork(NULL, NULL, after_fork);
}

attn_status attn_cuda_open(const attn_cuda_api **api, attn_error *err) {
    (void)pthread_once(&driver_once, open_driver);
    if (driver_error.status != ATTN_OK) {
        *err = driver_error;
        return err->status;
    }
    if (atomic_load_explicit(&forked, memory_order_relaxed))
        return attn_fail(err, ATTN_ERR_FORKED,
                         "CUDA was used before this process was forked; use exec, or fork first");
    *api = &driver;
    return ATTN_OK;
}

/* Results after which the context, and with it the process, can do no more work. */
static bool is_sticky(CUresult result) {
    static const CUresult sticky[] = {
        214, /* uncorrectable ECC error */
        220, /* NVLink error */
        700, /* illegal address */
        702, /* launch timeout */
        709, /* context is destroyed */
        710, /* assert */
        714, /* hardware stack error */
        715, /* illegal instruction */
        716, /* misaligned address */
        717, /* invalid address space */
        718, /* invalid program counter */
        719, /* launch failed */
    };
    for (size_t i = 0; i < sizeof sticky / sizeof sticky[0]; i++)
        if (result == sticky[i])
            return true;
    return false;
}

enum { OUT_OF_MEMORY = 2, NO_DEVICE = 100 };

attn_status attn_cuda_fail(const attn_cuda_api *api, CUresult result, attn_status refused,
                           const char *what, attn_error *err) {
    const char *name = NULL, *text = NULL;
    (void)api->error_name(result, &name);
    (void)api->error_string(result, &text);
    attn_status status = result == OUT_OF_MEMORY ? ATTN_ERR_NOMEM
                         : result == NO_DEVICE   ? ATTN_ERR_NO_DEVICE
                         : is_sticky(result)     ? ATTN_ERR_DEVICE
                                                 : refused;
    return attn_fail(err, status, "%s: %s (%s)", what, name ? name : "unknown error",
                     text ? text : "?");
}
