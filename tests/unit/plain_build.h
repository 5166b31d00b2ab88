/* plain_build.h: builds of small sources on the CPU's backend, for tests of compiling itself. */
#ifndef ATTN_PLAIN_BUILD_H
#define ATTN_PLAIN_BUILD_H

#include "backend.h"
#include "check.h"

static const attn_backend *const cpu = &attn_backend_cpu;
static const char plain[] = "int KERNEL(const void *a, int task, int worker) { return 0; }";

static attn_build make_build(const char *source, const char *options, const char *target) {
    return (attn_build){"c", source, options, target, "0123456789abcdef0123456789abcdef", 0};
}

/* Without an instruction set of its own; must succeed. */
static bool compile(const char *source, const char *options, attn_binary *binary) {
    attn_build build = make_build(source, options, "cpu:generic");
    attn_error err = ATTN_ERROR_INIT;
    return CHECK_OK(cpu->compile(&build, binary, &err), err.line);
}

#endif
