/* table.c: the classes a device has met, published as one immutable table. */
#include <stdlib.h>
#include <string.h>

#include "context.h"

attn_class_key attn_class_key_of(const attn_problem *problem) {
    attn_class_key key;
    memset(&key, 0, sizeof key);
    key.head_dim = problem->head_dim;
    key.head_dim_v = problem->head_dim_v;
    key.features = problem->features;
    key.op = (uint8_t)problem->op;
    key.dtype = (uint8_t)problem->dtype;
    key.mask = (uint8_t)problem->mask;
    key.alignment = (uint8_t)problem->alignment;
    return key;
}

/* A process meets a handful of classes: a walk over them is faster than a hash. */
const attn_class *attn_table_find(const attn_table *table, attn_class_key key) {
    if (!table)
        return NULL;
    for (size_t i = 0; i < table->count; i++)
        if (memcmp(&table->entry[i]->key, &key, sizeof key) == 0)
            return table->entry[i];
    return NULL;
}

static attn_status own_class(attn_context *ctx, attn_class *entry, attn_error *err) {
    if (ctx->class_count == ctx->class_capacity) {
        size_t capacity = ctx->class_capacity ? 2 * ctx->class_capacity : 8;
        attn_class **classes = realloc(ctx->classes, capacity * sizeof *classes);
        if (!classes)
            return attn_fail_nomem(err);
        ctx->classes = classes;
        ctx->class_capacity = capacity;
    }
    ctx->classes[ctx->class_count++] = entry;
    return ATTN_OK;
}

/* Publishes a table with the class added, or put in place of an earlier one of its key. */
static attn_status publish(attn_runtime_device *device, const attn_class *entry, attn_error *err) {
    const attn_table *old = atomic_load(&device->table);
    size_t count = old ? old->count : 0, at = 0;
    attn_table *table = malloc(sizeof *table + (count + 1) * sizeof table->entry[0]);
    if (!table)
        return attn_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        table->entry[i] = old->entry[i];
    while (at < count && memcmp(&table->entry[at]->key, &entry->key, sizeof entry->key) != 0)
        at++;
    table->entry[at] = entry;
    table->count = at == count ? count + 1 : count;
    table->older = (attn_table *)(uintptr_t)old;
    atomic_store_explicit(&device->table, table, memory_order_release);
    return ATTN_OK;
}

static attn_status make(attn_context *ctx, attn_runtime_device *device, const attn_problem *problem,
                        bool whole, const attn_class **entry, attn_error *err) {
    attn_class *made = NULL;
    ATTN_TRY(attn_class_make(ctx, device, problem, ctx->options.effort, whole, &made, err));
    if (own_class(ctx, made, err) != ATTN_OK) {
        attn_class_free(made);
        return err->status;
    }
    *entry = made;
    return publish(device, made, err);
}

attn_status attn_table_class(attn_context *ctx, attn_runtime_device *device,
                             const attn_problem *problem, attn_class_need need,
                             const attn_class **entry, attn_error *err) {
    attn_class_key key = attn_class_key_of(problem);
    attn_status status = ATTN_OK;
    (void)pthread_mutex_lock(&ctx->lock);
    const attn_class *there = attn_table_find(atomic_load(&device->table), key);
    bool met = need == ATTN_CLASS_SERVES ? attn_class_pick(there, problem).serves
                                         : need == ATTN_CLASS_WHOLE && there && !there->lean;
    if (met) /* by another thread, that has been here first */
        *entry = there;
    else
        status = make(ctx, device, problem, there || need != ATTN_CLASS_SERVES, entry, err);
    (void)pthread_mutex_unlock(&ctx->lock);
    return status;
}
