/* nvrtc_api.c: opening the compilers by the names that toolkits and wheels give them. */
#include "nvrtc_api.h"

#include <pthread.h>

#include "open_library.h"

static attn_nvrtc_api nvrtc;
static attn_nvjitlink_api nvjitlink;
static const char *nvrtc_missing, *nvjitlink_missing;
static pthread_once_t nvrtc_once = PTHREAD_ONCE_INIT, nvjitlink_once = PTHREAD_ONCE_INIT;

static void open_nvrtc(void) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                        "libnvrtc.so", NULL};
    static const attn_symbol symbols[] = {
#define XX(result, field, symbol, arguments) {#symbol, offsetof(attn_nvrtc_api, field), false},
        ATTN_NVRTC_FUNCTION_MAP(XX)
#undef XX
    };
    nvrtc_missing = attn_open_library(names, symbols, sizeof symbols / sizeof symbols[0], &nvrtc);
}

static void open_nvjitlink(void) {
    static const char *const names[] = {"libnvJitLink.so.13", "libnvJitLink.so.12",
                                        "libnvJitLink.so", NULL};
    static const attn_symbol symbols[] = {
#define XX(result, field, symbol, arguments) {#symbol, offsetof(attn_nvjitlink_api, field), false},
        ATTN_NVJITLINK_FUNCTION_MAP(XX)
#undef XX
    };
    nvjitlink_missing =
        attn_open_library(names, symbols, sizeof symbols / sizeof symbols[0], &nvjitlink);
}

/* pip3 with --target works without a virtual environment, which Debian else wants. */
static attn_status not_found(const char *tool, const char *what, const char *library,
                             const char *package, attn_error *err) {
    return attn_fail(err, ATTN_ERR_NO_TOOL,
                     "CUDA's %s is missing (%s was not found): install the CUDA toolkit, or `pip3 "
                     "install --target DIR %s` (pip3 is in Debian's python3-pip) and set "
                     "LD_LIBRARY_PATH to the folder in it that has %s (DIR/nvidia/cu13/lib)",
                     tool, what, package, library);
}

attn_status attn_nvrtc_open(const attn_nvrtc_api **api, attn_error *err) {
    (void)pthread_once(&nvrtc_once, open_nvrtc);
    if (nvrtc_missing)
        return not_found("run-time compiler NVRTC", nvrtc_missing, "libnvrtc.so.13",
                         "nvidia-cuda-nvrtc", err);
    *api = &nvrtc;
    return ATTN_OK;
}

attn_status attn_nvjitlink_open(const attn_nvjitlink_api **api, attn_error *err) {
    (void)pthread_once(&nvjitlink_once, open_nvjitlink);
    if (nvjitlink_missing)
        return not_found("linker nvJitLink", nvjitlink_missing, "libnvJitLink.so.13",
                         "nvidia-nvjitlink", err);
    *api = &nvjitlink;
    return ATTN_OK;
}
