/* test_core.c: errors, strings, hashes, variants and device descriptions. */
#include "check.h"

#include "core/build.h"
#include "core/device_info.h"
#include "core/variant.h"

static void test_status(void) {
    CHECK_STR(attn_status_name(ATTN_ERR_ALIGNMENT), "ATTN_ERR_ALIGNMENT");
    CHECK_STR(attn_status_name((attn_status)9999), "ATTN_ERR_?");
    CHECK_STR(attn_status_text((attn_status)-1), "unknown status");
    CHECK_STR(attn_version(), "0.1.0");
    CHECK_STR(attn_origin_name(ATTN_ORIGIN_REFERENCE), "reference");
}

static void test_error(void) {
    attn_error err = ATTN_ERROR_INIT;
    CHECK_STATUS(attn_fail(&err, ATTN_ERR_IO, "file %d", 7), ATTN_ERR_IO, err.line);
    CHECK_STATUS(attn_fail_prefix(&err, "opening %s", "x"), ATTN_ERR_IO, err.line);
    CHECK_STR(err.line, "opening x: file 7");
    for (int i = 0; i < 500; i++) /* a line that is full is cut, not overrun */
        (void)attn_fail_prefix(&err, "again");
    CHECK_EQ_INT(strlen(err.line), sizeof err.line - 1);
    const char *const words[] = {"causal", "causal_tl", "window"};
    CHECK_STR(attn_nearest_word("casual", words, 3), "causal");
    CHECK_STR(attn_nearest_word("windwo", words, 3), "window");
    CHECK(attn_nearest_word("zebra", words, 3) == NULL);
    CHECK(attn_nearest_word("", words, 3) == NULL);
    CHECK_STR(attn_nearest_word("CAUSAL", words, 3), "causal");
    static const char *const families[] = {"decode_forward", "simd_forward"};
    CHECK_STR(attn_nearest_word("simd", families, 2), "simd_forward");
    CHECK(attn_nearest_word("si", families, 2) == NULL);
}

static void test_str(void) {
    attn_str s = ATTN_STR_INIT;
    CHECK_STR(attn_str_text(&s), "");
    for (int i = 0; i < 1000; i++)
        attn_str_append_f(&s, "%d,", i % 10);
    CHECK_EQ_INT(s.size, 2000);
    attn_str_append_bytes(&s, "a\0b", 3);
    CHECK_EQ_INT(s.size, 2003);
    attn_str_clear(&s);
    attn_str_append(&s, "kept");
    char *taken = attn_str_take(&s);
    CHECK_STR(taken, "kept");
    free(taken);
    taken = attn_str_take(&s);
    CHECK_STR(taken, "");
    free(taken);
    attn_error err = ATTN_ERROR_INIT;
    CHECK_STATUS(attn_str_read_file(&s, "/nowhere/at/all", &err), ATTN_ERR_NOT_FOUND, err.line);
    CHECK_STATUS(attn_str_read_file(&s, "/", &err), ATTN_ERR_IO, err.line);
    attn_str_free(&s);
}

static void test_hash(void) {
    char text[ATTN_HASH_TEXT];
    attn_hash h = attn_hash_begin(), other;
    attn_hash_print(h, text); /* FNV-1a of nothing: its published offset */
    CHECK_STR(text, "6c62272e07bb014262b821756295c58d");
    CHECK(attn_hash_parse(text, &other) && attn_hash_equal(h, other));
    attn_hash a = h, b = h;
    attn_hash_text_field(&a, "ab");
    attn_hash_text_field(&a, "c");
    attn_hash_text_field(&b, "a");
    attn_hash_text_field(&b, "bc");
    CHECK(!attn_hash_equal(a, b));
    CHECK(!attn_hash_parse("6C62272E07BB014262B821756295C58D", &other));
    CHECK(!attn_hash_parse("6c62", &other));
    CHECK(!attn_hash_parse("6c62272e07bb014262b821756295c58d0", &other));
}

static void test_variant(void) {
    char value[16];
    CHECK(attn_config_get("NV=4 MR=12 M=7", "MR", value, sizeof value));
    CHECK_STR(value, "12");
    CHECK(attn_config_get("NV=4 MR=12 M=7", "M", value, sizeof value));
    CHECK_STR(value, "7");
    CHECK(!attn_config_get("NV=4", "V", value, sizeof value));
    CHECK(!attn_config_get("NV=4 MR=12345678901234567", "MR", value, sizeof value));
    attn_hash v = attn_hash_begin();
    CHECK(!attn_hash_equal(attn_build_hash(v, "gcc 12", "cpu:avx2"),
                           attn_build_hash(v, "gcc 12", "cpu:avx512")));
}

static void test_device(void) {
    attn_device_info a = {.backend = "cpu", .name = "A B", .arch = "cpu:avx2", .identity = "x y"};
    attn_device_info b;
    attn_error err = ATTN_ERROR_INIT;
    attn_str text = ATTN_STR_INIT, again = ATTN_STR_INIT;
    CHECK(attn_device_prop_set(&a, "l2", 2097152));
    CHECK(attn_device_prop_set(&a, "l2", 1048576));
    CHECK(!attn_device_prop_set(&a, "a_name_that_is_far_too_long_for_a_property", 1));
    CHECK_EQ_INT(attn_device_prop(&a, "l2"), 1048576);
    CHECK_EQ_INT(attn_device_prop(&a, "l3"), 0);
    attn_device_print(&a, &text);
    CHECK_OK(attn_device_parse(attn_str_text(&text), &b, &err), err.line);
    attn_device_print(&b, &again);
    CHECK_STR(attn_str_text(&again), attn_str_text(&text));
    CHECK_STR(b.environment, "");
    CHECK(attn_hash_equal(attn_device_hash(&a), attn_device_hash(&b)));
    CHECK_STATUS(attn_device_parse("colour red\n", &b, &err), ATTN_ERR_INVALID, err.line);
    CHECK_STATUS(attn_device_parse("prop l2 many\n", &b, &err), ATTN_ERR_INVALID, err.line);
    attn_str_free(&text);
    attn_str_free(&again);
}

int main(void) {
    test_status();
    test_error();
    test_str();
    test_hash();
    test_variant();
    test_device();
    return check_done();
}
