/* compile.h: source text to a shared object in memory, by the machine's C compiler. */
#ifndef ATTN_COMPILE_H
#define ATTN_COMPILE_H

#include "core/build.h"
#include "core/device_info.h"

/* The slots of attn_backend of the same names. A binary exports attn_key and ends with a hash of
 * itself. */
attn_status attn_cpu_compile(const attn_build *build, attn_binary *binary, attn_error *err);
attn_status attn_cpu_toolchain(const char *language, const char *options, attn_str *identity,
                               attn_error *err);
attn_status attn_cpu_target(const attn_device_info *info, const char *options, attn_str *target,
                            attn_error *err);
void attn_cpu_command(const char *language, const char *options, const char *target,
                      const char *file, attn_str *out);

/* The hash behind the shared object: loading a damaged one would crash the loader. */
enum { ATTN_SEAL_SIZE = 24 };
void attn_binary_seal(const void *object, size_t size, unsigned char seal[ATTN_SEAL_SIZE]);

/* Size of the object in front of the seal, 0 if the binary is damaged. */
size_t attn_binary_object_size(const void *data, size_t size);

#endif
