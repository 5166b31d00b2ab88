/* status.c: names and texts of the public enums. */
#include "attntune/attntune.h"

const char *attn_status_name(attn_status status) {
    switch (status) {
#define XX(name, number, text)                                                                     \
    case ATTN_##name:                                                                              \
        return "ATTN_" #name;
        ATTN_STATUS_MAP(XX)
#undef XX
    }
    return "ATTN_ERR_?";
}

const char *attn_status_text(attn_status status) {
    switch (status) {
#define XX(name, number, text)                                                                     \
    case ATTN_##name:                                                                              \
        return text;
        ATTN_STATUS_MAP(XX)
#undef XX
    }
    return "unknown status";
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *attn_version(void) {
    return TEXT(ATTN_VERSION_MAJOR) "." TEXT(ATTN_VERSION_MINOR) "." TEXT(ATTN_VERSION_PATCH);
}

const char *attn_origin_name(attn_origin origin) {
    static const char *const names[] = {"user", "system",  "user-near", "system-near",
                                        "arch", "default", "reference"};
    return (unsigned)origin < sizeof names / sizeof names[0] ? names[origin] : "?";
}
