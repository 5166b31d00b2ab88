/* db_text.h: the text form of a database: what export writes and import reads.
 *
 *     attntune results 1
 *
 *     trial 0123456789abcdef0123456789abcdef
 *       problem fwd:f32:b1:h4:s1024:d64
 *       median_ns 123456.0
 *
 *     end 1
 *
 * A record is a line "KIND NAME" and fields "  KEY VALUE" of which the value is the rest of the
 * line; a value of several lines repeats its key; an absent field is NULL. Lines that begin with #
 * and empty lines are for readers. A record stands behind those it names. Records and fields come
 * in a fixed order, so that two exports differ only where the results do. The last line is "end"
 * and the number of records, so that a text that was cut off is known. */
#ifndef ATTN_DB_TEXT_H
#define ATTN_DB_TEXT_H

#include "core/str.h"
#include "db.h"

#define ATTN_TEXT_FIRST_LINE "attntune results 1"
#define ATTN_TEXT_END "end "

typedef enum attn_text_kind_id {
    ATTN_TEXT_DEVICE,
    ATTN_TEXT_PROBLEM,
    ATTN_TEXT_VARIANT,
    ATTN_TEXT_BUILD,
    ATTN_TEXT_TRIAL,
    ATTN_TEXT_KINDS
} attn_text_kind_id;

/* Fields of the kinds; the enums index values of a record. */
enum { DEVICE_INFO };
enum {
    VARIANT_FAMILY,
    VARIANT_CONFIG,
    VARIANT_CLASS,
    VARIANT_LANGUAGE,
    VARIANT_OPTIONS,
    VARIANT_ABI,
    VARIANT_SOURCE_HASH,
    VARIANT_LAUNCH
};
enum { BUILD_VARIANT, BUILD_TOOLCHAIN, BUILD_TARGET, BUILD_REGISTERS, BUILD_SPILLS, BUILD_SMEM };
enum {
    TRIAL_PROBLEM,
    TRIAL_DEVICE,
    TRIAL_BUILD,
    TRIAL_PLAIN, /* from here on: columns of `trial`, as they are */
    TRIAL_MODE = TRIAL_PLAIN + 1,
    TRIAL_OUTCOME = TRIAL_PLAIN + 3,
    TRIAL_SAMPLES = TRIAL_PLAIN + 19, /* from here on: one for each phase, numbers in order */
    ATTN_TEXT_FIELDS = TRIAL_SAMPLES + 3
};

typedef struct attn_text_kind {
    const char *name;
    const char *select; /* of what is in `hit`: the name, then the fields; NULL: absent */
    int required;       /* fields that must be there, from the first on */
    const char *fields[ATTN_TEXT_FIELDS + 1];
} attn_text_kind;

extern const attn_text_kind attn_text_kinds[ATTN_TEXT_KINDS];

/* One that has been read. */
typedef struct attn_text_record {
    const attn_text_kind *kind; /* NULL: none yet */
    int line;
    attn_str name;
    attn_str values[ATTN_TEXT_FIELDS];
    bool present[ATTN_TEXT_FIELDS];
} attn_text_record;

/* Inserts it; ERR_INVALID if it breaks a rule. A record of no kind is nothing. */
attn_status attn_text_put(attn_db *db, const attn_text_record *record, attn_error *err);

#endif
