/* SPDX-License-Identifier: Apache-2.0 */
/* test_suggest.c: "did you mean": what is near, what is nearer, and what is no neighbour at all. */
#include "ir/ir.h"
#include "ir/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_edits(void **state)
{
    static const struct {
        const char *a, *b;
        int edits;
    } cases[] = {{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abxc", 1},
                 {"abc", "ab", 1}, {"abc", "axc", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(weft_count_edits(cases[i].a, strlen(cases[i].a), cases[i].b, strlen(cases[i].b)),
                         cases[i].edits);
    char long_a[200], long_b[200]; /* of long words the ends count */
    memset(long_a, 'a', sizeof long_a);
    memset(long_b, 'b', sizeof long_b);
    memset(long_b + 100, 'a', 99);
    long_b[199] = 'c';
    assert_int_equal(weft_count_edits(long_a, 200, long_b, 200), 1);
}

static void test_ops(void **state)
{
    static const char *const cases[][2] = {
        {"Conv", "conv"},           {"Conv2d", "conv"},         {"MatMul", "matmul"},
        {"Relu", "relu"},           {"rleu", "relu"},           {"BatchNormalization", "batch_norm"},
        {"ReduceSum", "sum"},       {"ReduceMean", "mean"},     {"LayerNormalization", "layer_norm"},
        {"Where", "select"},        {"Expand", "bcast"},        {"GlobalMaxPool", "max_pool"},
        {"Gemm", "matmul"},         {"broadcast", "bcast"},     {"LogSoftmax", "log_softmax"},
        {"softmx", "softmax"},      {"max-pool", "max_pool"},   {"GatherElements", "gather_elements"},
        {"reducemax", "reduce_max"}, {"x", NULL},               {"zz", NULL},
        {"quite_another_thing", NULL}, {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_suggest s;
        const char *text = weft_suggest_op(&s, cases[i][0], strlen(cases[i][0]));
        char want[64] = "";
        if (cases[i][1])
            snprintf(want, sizeof want, " (did you mean %s?)", cases[i][1]);
        assert_string_equal(text, want);
    }
}

static void test_other_words(void **state)
{
    struct weft_suggest s;
    assert_string_equal(weft_suggest_dtype(&s, "float32", 7), " (did you mean f32?)");
    assert_string_equal(weft_suggest_dtype(&s, "int64_t", 7), " (did you mean i64?)");
    assert_string_equal(weft_suggest_dtype(&s, "f23", 3), " (did you mean f32?)");
    assert_string_equal(weft_suggest_attr(&s, WEFT_OP_conv, "strides", 7), " (did you mean stride?)");
    assert_string_equal(weft_suggest_attr(&s, WEFT_OP_transpose, "stride", 6), "");
    assert_string_equal(weft_suggest_attr(&s, 0, "strides", 7), " (did you mean stride?)");
    assert_string_equal(weft_suggest_among(&s, "nearest linear cubic", "bilinear", 8), " (did you mean linear?)");
    assert_string_equal(weft_suggest_among(&s, "", "linear", 6), "");
    weft_suggest_open(&s, "constant_fold", 13); /* the parts in another order */
    weft_suggest_offer(&s, "fold_shape");
    weft_suggest_offer(&s, "fold_const");
    weft_suggest_offer(&s, "scatter_const");
    assert_string_equal(weft_suggest_text(&s, "%"), " (did you mean %fold_const?)");
}

/* The nearest is told, the first of equals, and a long name by its first letters. */
static void test_the_nearest_is_told(void **state)
{
    struct weft_suggest s;
    weft_suggest_open(&s, "input", 5);
    weft_suggest_offer(&s, "inputs_2");
    weft_suggest_offer(&s, "inptu");
    weft_suggest_offer(&s, "Input");
    weft_suggest_offer(&s, "INPUT");
    assert_string_equal(weft_suggest_text(&s, ""), " (did you mean Input?)");
    char name[400];
    memset(name, 'n', sizeof name);
    name[399] = '\0';
    weft_suggest_open(&s, name, 398);
    weft_suggest_offer(&s, name);
    assert_true(strlen(weft_suggest_text(&s, "%")) < sizeof s.text);
    assert_non_null(strstr(s.text, "did you mean %nnnn"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_other_words),
        cmocka_unit_test(test_the_nearest_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
