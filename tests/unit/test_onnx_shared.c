/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_shared.c: models that weft once refused or took too long for, where ../shared/defects has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECES = 1000 };

/* Runs a model of one input, by a plan; the test is skipped where the file is not there. `check` sees the results. */
static void run_model(const char *name, const struct weft_tensor *input,
                      void (*check)(const struct weft_execution *execution))
{
    char path[1024];
    const char *source = getenv("WEFT_SOURCE");
    snprintf(path, sizeof path, "%s/../shared/defects/%s", source ? source : ".", name);
    if (access(path, R_OK) != 0) {
        print_message("skipped: there is no %s\n", path);
        skip();
    }
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    if (weft_load(context, path, &graph) != WEFT_OK || weft_compile(graph, NULL, &plan) != WEFT_OK ||
        weft_execution_create(plan, &execution) != WEFT_OK || weft_bind_input(execution, 0, input) != WEFT_OK ||
        weft_run(execution) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    check(execution);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static struct weft_tensor numbers(float *data, int rank, const int64_t *extent)
{
    struct weft_tensor tensor = {.data = data, .dtype = WEFT_F32, .rank = rank};
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= tensor.extent[i] = extent[i];
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)i;
    weft_tensor_dense(&tensor);
    return tensor;
}

static const float *result(const struct weft_execution *execution, size_t i, int64_t *ret_count)
{
    struct weft_tensor tensor;
    assert_int_equal(weft_output(execution, i, &tensor), WEFT_OK);
    *ret_count = 1;
    for (int axis = 0; axis < tensor.rank; axis++)
        *ret_count *= tensor.extent[axis];
    return tensor.data;
}

static void check_pieces(const struct weft_execution *execution)
{
    for (size_t i = 0; i < PIECES; i++) {
        int64_t count;
        assert_true(result(execution, i, &count)[0] == (float)i);
        assert_int_equal(count, 1);
    }
}

static void check_reversed(const struct weft_execution *execution)
{
    int64_t count;
    const float *y = result(execution, 0, &count);
    assert_int_equal(count, PIECES);
    for (int i = 0; i < PIECES; i++)
        assert_true(y[i] == (float)(PIECES - 1 - i));
}

/* The larger of two rows. */
static void check_window(const struct weft_execution *execution)
{
    int64_t count;
    const float *y = result(execution, 0, &count);
    assert_int_equal(count, 8);
    for (int i = 0; i < 8; i++)
        assert_true(y[i] == (float)(8 + i));
}

static void a_thousand_pieces(void **state)
{
    float x[PIECES];
    const struct weft_tensor input = numbers(x, 1, (const int64_t[]){PIECES});
    run_model("split1000.onnx", &input, check_pieces);
}

static void a_thousand_pieces_in_reverse(void **state)
{
    float x[PIECES];
    const struct weft_tensor input = numbers(x, 1, (const int64_t[]){PIECES});
    run_model("split_concat1000.onnx", &input, check_reversed);
}

static void a_window_larger_than_the_operand(void **state)
{
    float x[16];
    const struct weft_tensor input = numbers(x, 4, (const int64_t[]){1, 1, 2, 8});
    run_model("pool_ceil.onnx", &input, check_window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_pieces),
        cmocka_unit_test(a_thousand_pieces_in_reverse),
        cmocka_unit_test(a_window_larger_than_the_operand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
