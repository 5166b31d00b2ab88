/* hash.c: FNV-1a with a 128-bit state, and its text form. */
#include "core/hash.h"

#include <string.h>

/* The published 128-bit parameters: prime 2^88 + 0x13b. */
static const attn_hash OFFSET = {0x6c62272e07bb0142u, 0x62b821756295c58du};

__extension__ typedef unsigned __int128 u128;

static void feed(attn_hash *h, const unsigned char *data, size_t size) {
    u128 state = ((u128)h->hi << 64) | h->lo;
    for (size_t i = 0; i < size; i++) {
        state ^= data[i];
        state = (state << 88) + state * 0x13b;
    }
    h->hi = (uint64_t)(state >> 64);
    h->lo = (uint64_t)state;
}

attn_hash attn_hash_begin(void) {
    return OFFSET;
}

void attn_hash_u64_field(attn_hash *h, uint64_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    feed(h, bytes, sizeof bytes);
}

void attn_hash_field(attn_hash *h, const void *data, size_t size) {
    attn_hash_u64_field(h, size);
    feed(h, data, size);
}

void attn_hash_text_field(attn_hash *h, const char *text) {
    attn_hash_field(h, text, strlen(text));
}

void attn_hash_print(attn_hash h, char text[ATTN_HASH_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        text[i] = digits[(h.hi >> (60 - 4 * i)) & 15];
        text[16 + i] = digits[(h.lo >> (60 - 4 * i)) & 15];
    }
    text[32] = '\0';
}

bool attn_hash_parse(const char *text, attn_hash *h) {
    uint64_t half[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
        char c = text[i];
        uint64_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint64_t)(c - 'a') + 10;
        else
            return false;
        half[i / 16] = half[i / 16] << 4 | digit;
    }
    if (text[32] != '\0')
        return false;
    *h = (attn_hash){half[0], half[1]};
    return true;
}

bool attn_hash_equal(attn_hash a, attn_hash b) {
    return a.hi == b.hi && a.lo == b.lo;
}
