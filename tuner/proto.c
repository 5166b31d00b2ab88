/* proto.c: length-prefixed messages over a socket. */
#include "proto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct header {
    uint32_t magic;
    uint32_t type;
    uint32_t size;
};

int64_t attn_now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void attn_put_u32(attn_str *body, uint32_t value) {
    attn_str_append_bytes(body, &value, sizeof value);
}

void attn_put_f64(attn_str *body, double value) {
    attn_str_append_bytes(body, &value, sizeof value);
}

void attn_put_bytes(attn_str *body, const void *data, size_t size) {
    if (size > ATTN_MESSAGE_MAX)
        body->failed = true;
    attn_put_u32(body, (uint32_t)size);
    attn_str_append_bytes(body, data, size);
}

void attn_put_text(attn_str *body, const char *text) {
    attn_put_bytes(body, text ? text : "", (text ? strlen(text) : 0) + 1);
}

/* NULL, and bad from now on, if there are not so many bytes. */
static const void *take(attn_fields *fields, size_t size) {
    if (fields->bad || size > fields->size - fields->at) {
        fields->bad = true;
        return NULL;
    }
    const char *data = fields->data + fields->at;
    fields->at += size;
    return data;
}

uint32_t attn_get_u32(attn_fields *fields) {
    uint32_t value = 0;
    const void *data = take(fields, sizeof value);
    if (data)
        memcpy(&value, data, sizeof value);
    return value;
}

double attn_get_f64(attn_fields *fields) {
    double value = 0;
    const void *data = take(fields, sizeof value);
    if (data)
        memcpy(&value, data, sizeof value);
    return value;
}

const void *attn_get_bytes(attn_fields *fields, size_t *size) {
    *size = attn_get_u32(fields);
    const void *data = take(fields, *size);
    if (!data)
        *size = 0;
    return data;
}

const char *attn_get_text(attn_fields *fields) {
    size_t size;
    const char *text = attn_get_bytes(fields, &size);
    if (!text || size == 0 || text[size - 1] != '\0') {
        fields->bad = true;
        return "";
    }
    return text;
}

void attn_get_struct(attn_fields *fields, void *data, size_t size) {
    size_t sent;
    const void *from = attn_get_bytes(fields, &sent);
    if (!from || sent != size) {
        fields->bad = true;
        memset(data, 0, size);
        return;
    }
    memcpy(data, from, size);
}

void attn_put_binary(attn_str *body, const attn_binary *binary) {
    const int32_t numbers[] = {binary->registers, binary->spills, binary->smem};
    attn_put_bytes(body, binary->data, binary->size);
    attn_put_text(body, binary->key);
    attn_put_text(body, attn_str_text(&binary->log));
    attn_put_bytes(body, numbers, sizeof numbers);
}

attn_status attn_get_binary(attn_fields *fields, attn_binary *binary, attn_error *err) {
    int32_t numbers[3];
    size_t size;
    *binary = (attn_binary)ATTN_BINARY_INIT;
    const void *data = attn_get_bytes(fields, &size);
    const char *key = attn_get_text(fields);
    attn_str_append(&binary->log, attn_get_text(fields));
    attn_get_struct(fields, numbers, sizeof numbers);
    if (fields->bad || strlen(key) >= sizeof binary->key) {
        attn_binary_free(binary);
        return attn_fail(err, ATTN_ERR_INTERNAL, "a binary was cut short on its way");
    }
    memcpy(binary->key, key, strlen(key) + 1);
    binary->registers = numbers[0];
    binary->spills = numbers[1];
    binary->smem = numbers[2];
    binary->data = malloc(size + 1);
    if (!binary->data || binary->log.failed) {
        attn_binary_free(binary);
        return attn_fail_nomem(err);
    }
    if (size > 0)
        memcpy(binary->data, data, size);
    binary->size = size;
    return ATTN_OK;
}

static attn_status send_all(int fd, const void *data, size_t size, int flags, attn_error *err) {
    const char *at = data;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL | flags);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return attn_fail(err, ATTN_ERR_IO, "a message could not be sent: %s", strerror(errno));
        at += n;
        size -= (size_t)n;
    }
    return ATTN_OK;
}

attn_status attn_message_send(int fd, attn_message_type type, const attn_str *body,
                              attn_error *err) {
    size_t size = body ? body->size : 0;
    if (body && body->failed)
        return attn_fail_nomem(err);
    if (size > ATTN_MESSAGE_MAX)
        return attn_fail(err, ATTN_ERR_IO, "a message of %zu bytes is too long", size);
    struct header header = {ATTN_PROTO_MAGIC, (uint32_t)type, (uint32_t)size};
    ATTN_TRY(send_all(fd, &header, sizeof header, size > 0 ? MSG_MORE : 0, err));
    return size > 0 ? send_all(fd, body->data, size, 0, err) : ATTN_OK;
}

attn_status attn_inbox_read(attn_inbox *inbox, int fd, attn_error *err) {
    char buffer[1 << 16];
    ssize_t n;
    do
        n = recv(fd, buffer, sizeof buffer, 0);
    while (n < 0 && errno == EINTR);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return attn_fail(err, ATTN_ERR_NOT_FOUND, "the other end has closed");
    if (n < 0)
        return attn_fail(err, ATTN_ERR_IO, "a message could not be read: %s", strerror(errno));
    attn_str_append_bytes(&inbox->bytes, buffer, (size_t)n);
    return inbox->bytes.failed ? attn_fail_nomem(err) : ATTN_OK;
}

/* Moves what comes after the message that was taken to the front. */
static void drop_used(attn_inbox *inbox) {
    size_t left = inbox->bytes.size - inbox->used;
    if (inbox->used == 0)
        return;
    memmove(inbox->bytes.data, inbox->bytes.data + inbox->used, left);
    inbox->bytes.size = left;
    inbox->used = 0;
}

attn_status attn_inbox_take(attn_inbox *inbox, attn_message_type *type, attn_fields *fields,
                            attn_error *err) {
    struct header header;
    drop_used(inbox);
    if (inbox->bytes.size < sizeof header)
        return ATTN_ERR_NOT_FOUND;
    memcpy(&header, inbox->bytes.data, sizeof header);
    if (header.magic != ATTN_PROTO_MAGIC || header.type >= ATTN_MSG_COUNT ||
        header.size > ATTN_MESSAGE_MAX)
        return attn_fail(err, ATTN_ERR_IO, "what came is no message");
    if (inbox->bytes.size - sizeof header < header.size)
        return ATTN_ERR_NOT_FOUND;
    inbox->used = sizeof header + header.size;
    *type = (attn_message_type)header.type;
    *fields = (attn_fields){inbox->bytes.data + sizeof header, header.size, 0, false};
    return ATTN_OK;
}

void attn_inbox_free(attn_inbox *inbox) {
    attn_str_free(&inbox->bytes);
    inbox->used = 0;
}
