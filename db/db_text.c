/* db_text.c: the records of the text form, and where they come from. */
#include "db_text.h"

#include <stddef.h>

#define SAMPLES(phase)                                                                             \
    "(SELECT group_concat(ns, ' ') FROM (SELECT ns FROM sample WHERE trial_id = t.id AND phase = " \
    "'" phase "' ORDER BY n))"

const attn_text_kind attn_text_kinds[ATTN_TEXT_KINDS] = {
    [ATTN_TEXT_DEVICE] =
        {
            "device",
            "SELECT hash, rtrim(info, char(10)) FROM device WHERE id IN (SELECT device_id FROM "
            "hit) "
            "ORDER BY backend, name, hash",
            1,
            {"info", NULL},
        },
    [ATTN_TEXT_PROBLEM] =
        {
            "problem",
            "SELECT text FROM problem WHERE id IN (SELECT problem_id FROM hit) ORDER BY text",
            0,
            {NULL},
        },
    [ATTN_TEXT_VARIANT] =
        {
            "variant",
            "SELECT hash, family, config, class, language, options, abi, source_hash, "
            "rtrim(launch, char(10)) FROM variant WHERE id IN (SELECT variant_id FROM build WHERE "
            "id IN (SELECT build_id FROM hit)) ORDER BY family, class, config, hash",
            8,
            {"family", "config", "class", "language", "options", "abi", "source_hash", "launch",
             NULL},
        },
    [ATTN_TEXT_BUILD] =
        {
            "build",
            "SELECT b.hash, v.hash, c.identity, b.target, b.registers, b.spills, b.smem FROM build "
            "b JOIN variant v ON v.id = b.variant_id JOIN toolchain c ON c.id = b.toolchain_id "
            "WHERE b.id IN (SELECT build_id FROM hit) ORDER BY v.family, v.class, v.config, "
            "b.target, c.identity, b.hash",
            3,
            {"variant", "toolchain", "target", "registers", "spills", "smem", NULL},
        },
    [ATTN_TEXT_TRIAL] =
        {
            "trial",
            "SELECT t.id, p.text, d.hash, b.hash, t.threads, t.mode, t.environment, t.outcome, "
            "t.begun, t.ended, t.rank, t.median_ns, t.final_ns, t.band, t.default_ns, "
            "t.searched_s, nullif(t.exhausted, 0), nullif(t.throttled, 0), t.clock_mhz, t.power_w, "
            "t.temperature_c, t.error_max, nullif(t.error, ''), " SAMPLES("race") ", " SAMPLES(
                "final") ", " SAMPLES("alone") " FROM hit t JOIN problem p ON p.id = t.problem_id "
                                               "JOIN device d ON d.id = t.device_id JOIN build b "
                                               "ON b.id = t.build_id "
                                               "ORDER BY p.text, d.hash, t.threads, t.mode, t.rank "
                                               "IS NULL, t.rank, "
                                               "t.median_ns IS NULL, t.median_ns, t.id",
            9,
            {"problem",     "device",    "build",     "threads",    "mode",
             "environment", "outcome",   "begun",     "ended",      "rank",
             "median_ns",   "final_ns",  "band",      "default_ns", "searched_s",
             "exhausted",   "throttled", "clock_mhz", "power_w",    "temperature_c",
             "error_max",   "error",     "race",      "final",      "alone",
             NULL},
        },
};
