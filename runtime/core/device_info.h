/* device_info.h: what is known of a device, as data.
 *
 * Backends fill it, space files see its properties as `dev`, `attntune devices` prints it, the
 * database hashes its identity. Profiles of absent devices (generator/devices.lua) have the same
 * form, so that every kernel can be rendered and compiled without the device. */
#ifndef ATTN_DEVICE_INFO_H
#define ATTN_DEVICE_INFO_H

#include <stdbool.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"

enum { ATTN_PROPS_MAX = 96 };

typedef struct attn_prop {
    char name[32]; /* "cc", "sms", "smem_optin", "avx512f", "l2", "threads" */
    int64_t value;
} attn_prop;

typedef struct attn_device_info {
    char backend[16];      /* "cpu", "cuda", "fake" */
    char name[96];         /* "Intel(R) Xeon(R) Processor", "NVIDIA H200" */
    char arch[48];         /* target that binaries are made for: "cpu:avx512", "sm_90a" */
    char identity[256];    /* what makes two devices the same one for stored results */
    char environment[256]; /* what a trial depends on beside the device: driver, runtime versions */
    char lock[64];         /* name of its lock file: the uuid, or "cpu" */
    int32_t ordinal;
    int32_t prop_count;
    attn_prop props[ATTN_PROPS_MAX]; /* the rest is 0: an absent property reads as 0 */
} attn_device_info;

/* Value of a property, 0 if absent. */
int64_t attn_device_prop(const attn_device_info *info, const char *name);

/* Sets or replaces one; false if the table is full or the name too long. */
bool attn_device_prop_set(attn_device_info *info, const char *name, int64_t value);

/* Hash of backend and identity: the device's key in the database. */
attn_hash attn_device_hash(const attn_device_info *info);

/* Text form, one "key value" a line: how a probe worker reports devices and the database keeps
 * them. parse(print(x)) == x. */
void attn_device_print(const attn_device_info *info, attn_str *out);
attn_status attn_device_parse(const char *text, attn_device_info *info, attn_error *err);

#endif
