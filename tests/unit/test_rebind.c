/* SPDX-License-Identifier: Apache-2.0 */
/* test_rebind.c: runs whose inputs and outputs are bound at other addresses than before: what they compute, and that
 * whatever may not be is refused as if everything were bound anew. */
#include "tests/unit/plan_support.h"

static void bind(struct scene *s, size_t i, struct weft_tensor t)
{
    if (weft_bind_input(s->execution, i, &t) != WEFT_OK)
        fail_msg("%s", weft_execution_error(s->execution));
}

/* Of rows x columns elements, or of `columns` if there are no rows. */
static struct weft_tensor dense(void *data, int64_t rows, int64_t columns)
{
    struct weft_tensor t = {.data = data, .dtype = WEFT_F32, .rank = 1 + (rows > 0), .extent = {rows, columns}};
    if (!rows)
        t.extent[0] = columns;
    weft_tensor_dense(&t);
    return t;
}

static const char sum_text[] = "graph @n<N=1..64>(%x: f32[N,4], %c: f32[4]) {\n  %b: f32[N,4] = bcast %c dims=[1]\n"
                               "  %y: f32[N,4] = add %x, %b\n  return %y\n}\n";

static void other_addresses_are_read_and_written(void **state)
{
    float x[2][8], c[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}}, y[2][8] = {{0}};
    for (int i = 0; i < 16; i++)
        x[i / 8][i % 8] = (float)i;
    struct scene s = open_scene(sum_text, 0);
    const struct weft_tensor out = dense(y[0], 2, 4);
    bind(&s, 0, dense(x[0], 2, 4));
    bind(&s, 1, dense(c[0], 0, 4));
    assert_int_equal(weft_bind_output(s.execution, 0, &out), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    const int before = allocations;
    for (int k = 0; k < 8; k++) {
        memset(y, 0, sizeof y);
        assert_int_equal(weft_rebind_input(s.execution, 0, x[k & 1]), WEFT_OK);
        bind(&s, 1, dense(c[k >> 1 & 1], 0, 4));
        assert_int_equal(weft_rebind_output(s.execution, 0, y[k >> 2]), WEFT_OK);
        assert_int_equal(weft_run(s.execution), WEFT_OK);
        for (int i = 0; i < 8; i++) {
            assert_true(y[k >> 2][i] == x[k & 1][i] + c[k >> 1 & 1][i % 4]);
            assert_true(y[!(k >> 2)][i] == 0);
        }
    }
    assert_int_equal(allocations, before);
    close_scene(&s);
}

/* Results that are views of an input follow it. */
static void views_follow(void **state)
{
    float x[2][8] = {{1, 2, 3, 4, 5, 6, 7, 8}, {9}};
    struct scene s = open_scene("graph @v(%x: f32[2,4]) {\n  %y: f32[8]{?} = reshape %x\n  return %y\n}\n", 0);
    struct weft_tensor got;
    bind(&s, 0, dense(x[0], 2, 4));
    for (int k = 0; k < 3; k++) {
        assert_int_equal(weft_rebind_input(s.execution, 0, x[k & 1]), WEFT_OK);
        assert_int_equal(weft_run(s.execution), WEFT_OK);
        assert_int_equal(weft_output(s.execution, 0, &got), WEFT_OK);
        assert_memory_equal(got.data, x[k & 1], sizeof x[0]);
    }
    close_scene(&s);
}

static void mutable_inputs_are_written_where_they_are(void **state)
{
    float x[4] = {1, 2, 3, 4}, m[2][4] = {{10, 10, 10, 10}, {20, 20, 20, 20}};
    struct scene s = open_scene("graph @m(%x: f32[4], %m: mut f32[4]) {\n  %s: f32[4] = add %x, %m\n"
                                "  return %x, mut %m = %s\n}\n", 0);
    struct weft_port port = {.size = sizeof port};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(weft_plan_input(s.plan, i, &port), WEFT_OK);
        assert_true(port.is_mutable == (i == 1) && port.updates == -1);
        assert_int_equal(weft_plan_output(s.plan, i, &port), WEFT_OK);
        assert_true(!port.is_mutable && port.updates == (i == 1 ? 1 : -1));
    }
    bind(&s, 0, dense(x, 0, 4));
    bind(&s, 1, dense(m[0], 0, 4));
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_int_equal(weft_rebind_input(s.execution, 1, m[1]), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    for (int i = 0; i < 4; i++)
        assert_true(m[0][i] == 11 + i && m[1][i] == 21 + i);
    close_scene(&s);
}

static void wrong_addresses_are_refused(void **state)
{
    float x[12] = {0}, c[4] = {0}, y[8];
    struct scene s = open_scene(sum_text, 0);
    const struct weft_tensor out = dense(y, 2, 4);
    assert_int_equal(weft_rebind_input(s.execution, 0, x), WEFT_ERR_ARGUMENT);
    assert_string_equal(weft_execution_error(s.execution), "input 0 was not bound before");
    assert_int_equal(weft_rebind_output(s.execution, 0, y), WEFT_ERR_ARGUMENT);
    assert_string_equal(weft_execution_error(s.execution), "output 0 was not bound before");
    assert_int_equal(weft_rebind_input(s.execution, 2, x), WEFT_ERR_ARGUMENT);
    assert_string_equal(weft_execution_error(s.execution), "there is no input 2: the plan has 2");
    assert_int_equal(weft_rebind_output(s.execution, 1, x), WEFT_ERR_ARGUMENT);
    bind(&s, 0, dense(x, 2, 4));
    bind(&s, 1, dense(c, 0, 4));
    assert_int_equal(weft_bind_output(s.execution, 0, &out), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_int_equal(weft_rebind_input(s.execution, 0, (char *)x + 2), WEFT_ERR_BINDING);
    assert_string_equal(weft_execution_error(s.execution), "input 0 'x': data is not aligned to its element type");
    assert_int_equal(weft_rebind_input(s.execution, 0, NULL), WEFT_ERR_BINDING);
    assert_int_equal(weft_rebind_output(s.execution, 0, x + 2), WEFT_OK); /* seen when all is known */
    for (int again = 0; again < 2; again++) {
        assert_int_equal(weft_run(s.execution), WEFT_ERR_BINDING);
        assert_string_equal(weft_execution_error(s.execution), "output 0 'y' overlaps input 0 'x'");
    }
    assert_int_equal(weft_rebind_output(s.execution, 0, y), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_int_equal(weft_rebind_input(s.execution, 1, y + 4), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_ERR_BINDING);
    assert_string_equal(weft_execution_error(s.execution), "output 0 'y' overlaps input 1 'c'");
    close_scene(&s);
}

/* What is unbound, or has no elements, and mutable inputs that come to overlap. */
static void unbound_empty_and_mutable(void **state)
{
    float x[8] = {0}, m[4] = {0}, y[4];
    struct scene s = open_scene("graph @m<N=0..8>(%x: f32[N], %m: mut f32[4]) {\n  %n: f32[4] = neg %m\n"
                                "  %y: f32[N] = neg %x\n  return %y, mut %m = %n\n}\n", 0);
    const struct weft_tensor out = dense(y, 0, 4);
    bind(&s, 0, dense(x, 0, 4));
    bind(&s, 1, dense(m, 0, 4));
    assert_int_equal(weft_bind_output(s.execution, 0, &out), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_int_equal(weft_bind_output(s.execution, 0, NULL), WEFT_OK);
    assert_int_equal(weft_rebind_output(s.execution, 0, y), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_int_equal(weft_rebind_input(s.execution, 1, x + 2), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_ERR_BINDING);
    assert_string_equal(weft_execution_error(s.execution), "mutable input 1 'm' overlaps input 0 'x'");
    assert_int_equal(weft_rebind_input(s.execution, 1, x + 4), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    struct weft_tensor nothing = dense(x, 0, 4);
    nothing.extent[0] = 0;
    bind(&s, 0, nothing);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_int_equal(weft_rebind_input(s.execution, 0, NULL), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_int_equal(weft_rebind_input(s.execution, 0, x + 4), WEFT_OK); /* where %m is: nothing overlaps */
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    close_scene(&s);
}

/* Outputs whose layout promises an address. */
static void promised_addresses(void **state)
{
    static _Alignas(64) float x[16], y[32];
    struct scene s = open_scene("graph @a(%x: f32[16]) {\n  %y: f32[16]{0 align=64} = neg %x\n  return %y\n}\n", 0);
    const struct weft_tensor out = dense(y, 0, 16);
    bind(&s, 0, dense(x, 0, 16));
    assert_int_equal(weft_bind_output(s.execution, 0, &out), WEFT_OK);
    for (int ran = 0; ran < 2; ran++) {
        assert_int_equal(weft_rebind_output(s.execution, 0, y + 1), WEFT_ERR_BINDING);
        assert_non_null(strstr(weft_execution_error(s.execution), "not aligned to 64 bytes, as promised"));
        assert_int_equal(weft_rebind_output(s.execution, 0, y + 16), WEFT_OK);
        assert_int_equal(weft_run(s.execution), WEFT_OK);
    }
    close_scene(&s);
}

/* Other sizes between runs at other addresses. */
static void sizes_change_too(void **state)
{
    float x[32], c[4] = {1, 1, 1, 1};
    struct scene s = open_scene(sum_text, 0);
    struct weft_tensor got;
    for (int i = 0; i < 32; i++)
        x[i] = (float)i;
    bind(&s, 1, dense(c, 0, 4));
    for (int k = 0; k < 6; k++) {
        const int rows = k % 3 + 1, from = 4 * (k % 2);
        bind(&s, 0, dense(x, rows, 4));
        assert_int_equal(weft_run(s.execution), WEFT_OK);
        assert_int_equal(weft_rebind_input(s.execution, 0, x + from), WEFT_OK);
        assert_int_equal(weft_run(s.execution), WEFT_OK);
        assert_int_equal(weft_output(s.execution, 0, &got), WEFT_OK);
        assert_int_equal(got.extent[0], rows);
        for (int i = 0; i < 4 * rows; i++)
            assert_true(((float *)got.data)[i] == x[from + i] + 1);
    }
    close_scene(&s);
}

static void what_an_output_needs(void **state)
{
    float x[32] = {0}, c[4] = {0};
    struct scene s = open_scene(sum_text, 0);
    struct weft_tensor need;
    assert_int_equal(weft_output_needed(s.execution, 1, &need), WEFT_ERR_ARGUMENT);
    bind(&s, 0, dense(x, 5, 4));
    assert_int_equal(weft_output_needed(s.execution, 0, &need), WEFT_ERR_BINDING);
    assert_string_equal(weft_execution_error(s.execution), "input 1 'c' is not bound");
    bind(&s, 1, dense(c, 0, 4));
    for (int rows = 5; rows < 8; rows++) {
        bind(&s, 0, dense(x, rows, 4));
        for (int again = 0; again < 2; again++) {
            assert_int_equal(weft_output_needed(s.execution, 0, &need), WEFT_OK);
            assert_int_equal(need.dtype, WEFT_F32);
            assert_int_equal(need.rank, 2);
            assert_true(need.extent[0] == rows && need.extent[1] == 4 && need.stride[0] == 4 && need.stride[1] == 1);
            assert_null(need.data);
            assert_int_equal(weft_run(s.execution), WEFT_OK);
        }
    }
    close_scene(&s);
}

/* Sizes that come out of data: as many as there can be. */
static void the_most_that_data_can_ask_for(void **state)
{
    float x[6] = {0, 1, 0, 2, 3, 0};
    struct scene s = open_scene("graph @d<K=data(6)>(%x: f32[6]) {\n  %i: i64[1,K] = nonzero %x extent=[K]\n"
                                "  return %i\n}\n", 0);
    struct weft_tensor need, got;
    bind(&s, 0, dense(x, 0, 6));
    assert_int_equal(weft_output_needed(s.execution, 0, &need), WEFT_OK);
    assert_true(need.dtype == WEFT_I64 && need.extent[1] == 6);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_int_equal(weft_output(s.execution, 0, &got), WEFT_OK);
    assert_int_equal(got.extent[1], 3);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_addresses_are_read_and_written),
        cmocka_unit_test(views_follow),
        cmocka_unit_test(mutable_inputs_are_written_where_they_are),
        cmocka_unit_test(wrong_addresses_are_refused),
        cmocka_unit_test(unbound_empty_and_mutable),
        cmocka_unit_test(promised_addresses),
        cmocka_unit_test(sizes_change_too),
        cmocka_unit_test(what_an_output_needs),
        cmocka_unit_test(the_most_that_data_can_ask_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
