/* SPDX-License-Identifier: Apache-2.0 */
/* test_npy.c: .npy files: what is written can be read, other writers' variants can be read, hostile bytes are refused
 * with a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file of version 1 with this header and these bytes behind it. */
static FILE *open_array(const char *header, const void *data, size_t bytes)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    const size_t length = strlen(header);
    const unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(length & 255),
                                     (unsigned char)(length >> 8)};
    fwrite(start, 1, 10, f);
    fwrite(header, 1, length, f);
    fwrite(data, 1, bytes, f);
    rewind(f);
    return f;
}

static void save_and_load(const struct weft_tensor *tensor, struct weft_tensor *ret)
{
    char path[] = "/tmp/weft_npy_XXXXXX", message[WEFT_NPY_MESSAGE] = "";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (!weft_npy_save(path, tensor, message) || !weft_npy_load(path, ret, message))
        fail_msg("%s", message);
    unlink(path);
}

static void every_type_survives(void **state)
{
    static const int dtypes[] = {WEFT_F64, WEFT_F32, WEFT_F16, WEFT_I64, WEFT_I32, WEFT_I16,
                                 WEFT_I8,  WEFT_U64, WEFT_U32, WEFT_U16, WEFT_U8};
    unsigned char bytes[6 * 8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(37 * i + 11);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        const struct weft_tensor tensor = {bytes, dtypes[d], 2, {2, 3}, {3, 1}};
        struct weft_tensor back;
        save_and_load(&tensor, &back);
        assert_int_equal(back.dtype, dtypes[d]);
        assert_int_equal(back.rank, 2);
        assert_int_equal(back.extent[0], 2);
        assert_int_equal(back.extent[1], 3);
        assert_int_equal(back.stride[0], 3);
        assert_memory_equal(back.data, bytes, 6 * weft_dtype_bits(dtypes[d]) / 8);
        weft_npy_free(&back);
    }
}

static void strides_are_packed(void **state)
{
    const int32_t grid[3][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}};
    const struct weft_tensor turned = {(void *)(uintptr_t)grid, WEFT_I32, 2, {4, 3}, {1, 4}};
    struct weft_tensor back;
    save_and_load(&turned, &back);
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < 3; r++)
            assert_int_equal(((int32_t *)back.data)[c * 3 + r], grid[r][c]);
    weft_npy_free(&back);
}

static void bf16_becomes_f32(void **state)
{
    uint16_t halves[3] = {0x3f80, 0xc040, 0x7f80}; /* 1, -3, infinity */
    const struct weft_tensor tensor = {halves, WEFT_BF16, 1, {3}, {1}};
    struct weft_tensor back;
    save_and_load(&tensor, &back);
    assert_int_equal(back.dtype, WEFT_F32);
    const float *x = back.data;
    assert_true(x[0] == 1.0f && x[1] == -3.0f && x[2] > 3e38f);
    weft_npy_free(&back);
}

static void scalars_and_empty_arrays(void **state)
{
    double one = 1.5;
    struct weft_tensor back;
    save_and_load(&(struct weft_tensor){&one, WEFT_F64, 0, {0}, {0}}, &back);
    assert_int_equal(back.rank, 0);
    assert_true(*(double *)back.data == 1.5);
    weft_npy_free(&back);
    save_and_load(&(struct weft_tensor){&one, WEFT_F64, 3, {2, 0, 4}, {0, 4, 1}}, &back);
    assert_int_equal(back.rank, 3);
    assert_int_equal(back.extent[1], 0);
    weft_npy_free(&back);
}

static void fortran_order_is_turned(void **state)
{
    const float columns[6] = {0, 3, 1, 4, 2, 5}; /* of [[0 1 2] [3 4 5]] */
    char message[WEFT_NPY_MESSAGE] = "";
    FILE *f = open_array("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", columns, sizeof columns);
    struct weft_tensor tensor;
    assert_true(weft_npy_read(f, &tensor, message));
    for (int i = 0; i < 6; i++)
        assert_true(((float *)tensor.data)[i] == (float)i);
    weft_npy_free(&tensor);
    fclose(f);
}

static void other_writers_variants(void **state)
{
    static const char *const headers[] = {
        "{\"shape\":(2L,3L),\"fortran_order\":False,\"descr\":\"|u1\"}",
        "{ 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , 'descr' : '|u1' , }        \n",
        "{'descr':'=u1','fortran_order':False,'shape':(6,)}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char message[WEFT_NPY_MESSAGE] = "";
        struct weft_tensor tensor;
        FILE *f = open_array(headers[i], "abcdef", 6);
        if (!weft_npy_read(f, &tensor, message))
            fail_msg("%s: %s", headers[i], message);
        assert_memory_equal(tensor.data, "abcdef", 6);
        weft_npy_free(&tensor);
        fclose(f);
    }
    char message[WEFT_NPY_MESSAGE] = "";
    struct weft_tensor tensor;
    FILE *f = open_array("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n", "\x00\x02\xff", 3);
    assert_true(weft_npy_read(f, &tensor, message));
    assert_memory_equal(tensor.data, "\x00\x01\x01", 3);
    weft_npy_free(&tensor);
    fclose(f);
}

static void hostile_headers_are_refused(void **state)
{
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"", "no dictionary"},
        {"{}", "lacks"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } x", "goes on"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", "no dictionary"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3), }", "neither True nor False"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3), }", "twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", "unknown key"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", "big-endian"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", "not supported"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }", "not supported"},
        {"{'descr': '', 'fortran_order': False, 'shape': (2, 3), }", "not supported"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", "no simple type"},
        {"{'descr': '<fffffffffffffffffffffffff4', 'fortran_order': False, 'shape': (2, 3), }", "no simple type"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3], }", "no tuple"},
        {"{'descr':'<f4','fortran_order':False,'shape':(0, 9223372036854775807,9223372036854775807)}", "too large"},
        {"{'descr':'<f4','fortran_order':True,'shape':(9223372036854775807,9223372036854775807,0)}", "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", "no tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }", "something else than sizes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "more than 8 axes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952, 3), }", "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", "the file holds"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[WEFT_NPY_MESSAGE] = "";
        struct weft_tensor tensor;
        FILE *f = open_array(cases[i].header, "0123456789abcdef01234567", 24);
        assert_false(weft_npy_read(f, &tensor, message));
        if (!strstr(message, cases[i].message))
            fail_msg("%s: '%s' lacks '%s'", cases[i].header, message, cases[i].message);
        fclose(f);
    }
}

static void every_truncation_is_refused(void **state)
{
    char whole[256], message[WEFT_NPY_MESSAGE];
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    FILE *f = open_array(header, "0123456789abcdef01234567", 24);
    const size_t bytes = fread(whole, 1, sizeof whole, f);
    fclose(f);
    for (size_t cut = 0; cut < bytes; cut++) {
        f = tmpfile();
        fwrite(whole, 1, cut, f);
        rewind(f);
        struct weft_tensor tensor;
        message[0] = '\0';
        assert_false(weft_npy_read(f, &tensor, message));
        assert_true(message[0]);
        fclose(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_survives),      cmocka_unit_test(strides_are_packed),
        cmocka_unit_test(bf16_becomes_f32),         cmocka_unit_test(scalars_and_empty_arrays),
        cmocka_unit_test(fortran_order_is_turned),  cmocka_unit_test(other_writers_variants),
        cmocka_unit_test(hostile_headers_are_refused), cmocka_unit_test(every_truncation_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
