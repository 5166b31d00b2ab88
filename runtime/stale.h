/* stale.h: is what is stored still what would be made today? The library and `attntune db` judge
 * alike. */
#ifndef ATTN_STALE_H
#define ATTN_STALE_H

#include "db.h"
#include "gen.h"

/* Why the row's variant would not be made today as it was, NULL: it would. Where the family's files
 * have changed, it is rendered for the device: they may render to the same source. The text lives
 * as long as the program. */
const char *attn_stale_source(attn_gen *gen, const attn_device_info *device,
                              const attn_db_row *row);

#endif
