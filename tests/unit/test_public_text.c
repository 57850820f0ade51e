/* SPDX-License-Identifier: Apache-2.0 */
/* test_public_text.c: what the builder of weft.h accepts has a text, which parses back to the same graph: numbers,
 * names and bounds that no text can hold are refused. */
#include "builder_support.h"

#include <math.h>

/* --- splats ------------------------------------------------------------------------------------------------------- */

static void test_splats_are_elements_of_their_type(void **state)
{
    (void)state;
    static const struct {
        int dtype;
        double value;
        const char *text;
    } cases[] = {
        {WEFT_F32, 16777217, "16777216"}, {WEFT_F16, 2049, "2048"},      {WEFT_F16, 1e6, "inf"},
        {WEFT_BF16, 257, "256"},          {WEFT_F8E5M2, 1.3, "1.2"},     {WEFT_F64, 0.1, "0.1"},
        {WEFT_F32, 1e-60, "0"},           {WEFT_U64, 0x1p63, "9223372036854775808"}, {WEFT_I4, -8, "-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct builder b = open_builder();
        char part[64] = "value=";
        weft_val v;
        assert_int_equal(weft_splat(b.graph, cases[i].dtype, 0, NULL, cases[i].value, &v), WEFT_OK);
        assert_int_equal(weft_return(b.graph, &v, 1), WEFT_OK);
        assert_prints_twice(&b, strcat(part, cases[i].text));
        close_builder(&b);
    }
}

static void test_splats_outside_of_integer_types_are_refused(void **state)
{
    (void)state;
    static const struct {
        int dtype;
        double value;
    } cases[] = {
        {WEFT_I8, 300}, {WEFT_I8, -129}, {WEFT_U8, -1}, {WEFT_I32, NAN}, {WEFT_I32, 0.5}, {WEFT_I64, 0x1p63},
        {WEFT_U64, 0x1p64}, {WEFT_BOOL, 2}, {WEFT_I4, 8}, {WEFT_U4, 16}, {WEFT_U64, -1}, {WEFT_I64, INFINITY},
    };
    struct builder b = open_builder();
    weft_val v;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(&b, weft_splat(b.graph, cases[i].dtype, 0, NULL, cases[i].value, &v), "no such element");
    assert_int_equal(weft_splat(b.graph, WEFT_I64, 0, NULL, -0x1p63, &v), WEFT_OK);
    assert_int_equal(weft_splat(b.graph, WEFT_BOOL, 0, NULL, 1, &v), WEFT_OK);
    close_builder(&b);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Row-major is kept where it was stated, in a copy too, and another layout takes its place. */
static void test_row_major_is_stated_or_not(void **state)
{
    struct builder b = open_builder();
    const weft_dim extent[] = {weft_extent(2), weft_extent(3)};
    weft_val x, y, z;
    struct weft_graph *clone;
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 2, extent, &x), WEFT_OK);
    const struct weft_op first = {.size = sizeof first, .op = "exp", .name = "y", .operand = &x, .operands = 1};
    assert_int_equal(weft_append(b.graph, &first, &y), WEFT_OK);
    const struct weft_op last = {.size = sizeof last, .op = "neg", .name = "z", .operand = &y, .operands = 1};
    assert_int_equal(weft_append(b.graph, &last, &z), WEFT_OK);
    assert_int_equal(weft_return(b.graph, &z, 1), WEFT_OK);
    assert_prints_twice(&b, "f32[2,3] = exp");
    assert_int_equal(weft_set_layout(b.graph, y, "{0 1}"), WEFT_OK);
    assert_prints_twice(&b, "f32[2,3]{0 1} = exp");
    assert_int_equal(weft_graph_clone(b.graph, &clone), WEFT_OK);
    assert_prints_twice(&(struct builder){b.context, clone}, "f32[2,3]{0 1} = exp");
    weft_graph_destroy(clone);
    assert_int_equal(weft_set_layout(b.graph, z, "{0 1}"), WEFT_OK); /* as it was promised all along */
    assert_prints_twice(&b, "f32[2,3] = neg");
    assert_int_equal(weft_set_layout(b.graph, y, "{1 0}"), WEFT_OK);
    assert_prints_twice(&b, "f32[2,3]{1 0} = exp");
    assert_int_equal(weft_set_layout(b.graph, y, "{0 1 hint}"), WEFT_OK);
    assert_prints_twice(&b, "f32[2,3]{0 1 hint} = exp");
    assert_int_equal(weft_set_layout(b.graph, x, "{0 1}"), WEFT_OK);
    assert_prints_twice(&b, "x: f32[2,3])");
    close_builder(&b);
}

static void test_names_that_no_text_can_hold_are_refused(void **state)
{
    (void)state;
    struct builder b = open_builder();
    static const char *const symbols[] = {"a b", "min", "max", "", "1N", ".N", "N-1", "N\xc3"};
    weft_dim d;
    weft_val v;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        assert_refused(&b, weft_symbol(b.graph, symbols[i], 0, 10, 0, &d), "a symbol is a word");
    assert_refused(&b, weft_symbol(b.graph, NULL, 0, 10, 0, &d), "a symbol is a word");
    assert_refused(&b, weft_param(b.graph, "", WEFT_F32, 0, NULL, &v), "at least one character");
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 0, NULL, &v), WEFT_OK);
    const struct weft_op op = {.size = sizeof op, .op = "neg", .name = "", .operand = &v, .operands = 1};
    assert_refused(&b, weft_append(b.graph, &op, &v), "at least one character");
    struct weft_graph *body = NULL;
    assert_refused(&b, weft_graph_create_body(b.graph, "", &body), "at least one character");
    assert_refused(&b, weft_graph_create(b.context, "", &body), "at least one character");
    close_builder(&b);
}

static void test_hints_move_with_their_bounds(void **state)
{
    (void)state;
    struct builder b = open_builder();
    weft_dim n;
    weft_val x;
    assert_int_equal(weft_symbol(b.graph, "N.1", 0, 100, 50, &n), WEFT_OK);
    assert_refused(&b, weft_symbol(b.graph, "N.1", 101, 200, 0, &n), "no number in common");
    assert_int_equal(weft_symbol(b.graph, "N.1", 0, 10, 0, &n), WEFT_OK);
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 1, &n, &x), WEFT_OK);
    assert_int_equal(weft_return(b.graph, &x, 1), WEFT_OK);
    assert_prints_twice(&b, "<N.1=0..10 hint=10>");
    close_builder(&b);
}

static void test_bounds_that_no_text_can_hold_are_refused(void **state)
{
    (void)state;
    struct builder b = open_builder();
    weft_dim n;
    assert_refused(&b, weft_symbol(b.graph, "N", 0, 5000000000, 0, &n), "2147483647");
    assert_refused(&b, weft_symbol(b.graph, "N", -1, 10, 0, &n), "0 <= low");
    assert_refused(&b, weft_symbol(b.graph, "N", 11, 10, 0, &n), "low <= hint");
    assert_refused(&b, weft_symbol(b.graph, "N", 1, 10, 11, &n), "hint <= high");
    weft_val x;
    assert_int_equal(weft_symbol(b.graph, "N", 0, INT32_MAX, 0, &n), WEFT_OK);
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 1, &n, &x), WEFT_OK);
    assert_int_equal(weft_return(b.graph, &x, 1), WEFT_OK);
    assert_prints_twice(&b, "@g<N>(");
    close_builder(&b);
}

static void test_integer_splats_are_exact(void **state)
{
    (void)state;
    static const struct {
        int dtype;
        int64_t value;
        const char *text; /* NULL: refused */
    } cases[] = {
        {WEFT_I64, INT64_MAX, "9223372036854775807"}, {WEFT_I64, ((int64_t)1 << 53) + 1, "9007199254740993"},
        {WEFT_U64, -1, "18446744073709551615"},       {WEFT_I8, -128, "-128"},
        {WEFT_U4, 15, "15"},                          {WEFT_BOOL, 1, "1"},
        {WEFT_I8, 128, NULL},                         {WEFT_U32, -1, NULL},
        {WEFT_BOOL, 2, NULL},                         {WEFT_F32, 1, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct builder b = open_builder();
        char part[64] = "value=";
        weft_val v;
        const int status = weft_splat_integer(b.graph, cases[i].dtype, 0, NULL, cases[i].value, &v);
        if (cases[i].text) {
            assert_int_equal(status, WEFT_OK);
            assert_int_equal(weft_return(b.graph, &v, 1), WEFT_OK);
            assert_prints_twice(&b, strcat(part, cases[i].text));
        } else {
            assert_refused(&b, status, "no such element");
        }
        close_builder(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splats_are_elements_of_their_type),
        cmocka_unit_test(test_splats_outside_of_integer_types_are_refused),
        cmocka_unit_test(test_row_major_is_stated_or_not),
        cmocka_unit_test(test_names_that_no_text_can_hold_are_refused),
        cmocka_unit_test(test_hints_move_with_their_bounds),
        cmocka_unit_test(test_bounds_that_no_text_can_hold_are_refused),
        cmocka_unit_test(test_integer_splats_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
