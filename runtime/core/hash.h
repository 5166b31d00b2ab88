/* hash.h: the 128-bit identity of content (FNV-1a).
 *
 * It tells contents apart and catches damaged bytes; it is no defence against an attacker, which
 * is why the database's file permissions are checked (see db.h). Fields are fed with their length,
 * so that ("ab", "c") and ("a", "bc") differ. */
#ifndef ATTN_HASH_H
#define ATTN_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct attn_hash {
    uint64_t hi;
    uint64_t lo;
} attn_hash;

enum { ATTN_HASH_TEXT = 33 }; /* 32 hex digits and the NUL */

attn_hash attn_hash_begin(void);
void attn_hash_field(attn_hash *h, const void *data, size_t size);
void attn_hash_text_field(attn_hash *h, const char *text);
void attn_hash_u64_field(attn_hash *h, uint64_t value);

void attn_hash_print(attn_hash h, char text[ATTN_HASH_TEXT]);
bool attn_hash_parse(const char *text, attn_hash *h); /* exactly 32 lower-case hex digits */
bool attn_hash_equal(attn_hash a, attn_hash b);

#endif
