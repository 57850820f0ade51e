/* SPDX-License-Identifier: Apache-2.0 */
/* test_transposed.c: large weights that products read transposed are packed from where they lie: no pass writes
 * a transposed copy of them. Others are transposed when the plan is made. */
#include "plan_support.h"

enum { ROWS = 8, TERMS = 256, COLUMNS = 160 };

struct lent {
    int released;
};

static void take_back(void *user, const void *data) { ((struct lent *)user)->released++; }

static weft_val append(struct weft_graph *graph, const char *op, weft_val a, weft_val b)
{
    weft_val made;
    const struct weft_op node = {.size = sizeof node, .op = op, .operand = (const weft_val[]){a, b}, .operands = 2};
    assert_int_equal(weft_append(graph, &node, &made), WEFT_OK);
    return made;
}

/* y = x @ wᵀ, with w of 160 x 256; `read`: and wᵀ + other. `step` between the numbers: with 1/3 they are no bf16. */
static struct weft_graph *build(struct weft_context *context, float *w, double step, bool read, struct lent *lent)
{
    struct weft_graph *graph;
    weft_val x, other, weights, turned, result[2];
    const weft_dim perm[] = {weft_extent(1), weft_extent(0)};
    for (int i = 0; i < COLUMNS * TERMS; i++)
        w[i] = (float)(((i * 29 + 7) % 31 - 15) * step);
    assert_int_equal(weft_graph_create(context, "turned", &graph), WEFT_OK);
    assert_int_equal(weft_param(graph, "x", WEFT_F32, 2, (weft_dim[]){weft_extent(ROWS), weft_extent(TERMS)}, &x),
                     WEFT_OK);
    assert_int_equal(weft_param(graph, "other", WEFT_F32, 2, (weft_dim[]){weft_extent(TERMS), weft_extent(COLUMNS)},
                                &other), WEFT_OK);
    *lent = (struct lent){0};
    assert_int_equal(weft_constant_borrowed(graph, WEFT_F32, 2, (const int64_t[]){COLUMNS, TERMS}, w, take_back, lent,
                                            &weights), WEFT_OK);
    const struct weft_attribute attribute = {.name = "perm", .integers = perm, .count = 2};
    const struct weft_op node = {.size = sizeof node, .op = "transpose", .operand = &weights, .operands = 1,
                                 .attribute = &attribute, .attributes = 1};
    assert_int_equal(weft_append(graph, &node, &turned), WEFT_OK);
    result[0] = append(graph, "matmul", x, turned);
    if (read)
        result[1] = append(graph, "add", turned, other);
    assert_int_equal(weft_return(graph, result, read ? 2 : 1), WEFT_OK);
    return graph;
}

static void expect_transposes(double step, bool read, bool product_turns, int transposes)
{
    struct weft_context *const context = open_context(2);
    float *const w = aligned_alloc(64, sizeof(float) * COLUMNS * TERMS);
    struct lent lent;
    struct weft_graph *const graph = build(context, w, step, read, &lent);
    char *text;
    assert_true(weft_run_pipeline(graph, NULL) >= 0);
    assert_int_equal(weft_print(graph, &text), WEFT_OK);
    assert_int_equal(strstr(text, "trans_b=1") != NULL, product_turns);
    int found = 0;
    for (const char *at = text; (at = strstr(at, "= transpose")); at++)
        found++;
    assert_int_equal(found, transposes);
    weft_free_text(context, text);
    weft_graph_destroy(graph);
    weft_close(context);
    assert_int_equal(lent.released, 1);
    free(w);
}

static void products_read_large_weights_transposed(void **state) { expect_transposes(1.0 / 3, false, true, 0); }

/* Other readers would walk columns. */
static void read_weights_are_transposed_once(void **state) { expect_transposes(1.0 / 3, true, false, 0); }

/* They are packed as bf16, by rows. */
static void small_numbers_are_transposed_once(void **state) { expect_transposes(1.0 / 16, false, false, 0); }

static void runs_are_right(void **state)
{
    struct weft_context *const context = open_context(2);
    float *const w = aligned_alloc(64, sizeof(float) * COLUMNS * TERMS);
    static float x[ROWS * TERMS], other[TERMS * COLUMNS];
    struct lent lent;
    struct weft_graph *const graph = build(context, w, 1.0 / 3, false, &lent);
    struct weft_plan *const plan = compile(graph, 0);
    struct weft_execution *e;
    struct weft_tensor y, in = tensor_of(x, 2, (const int64_t[]){ROWS, TERMS}),
                       unread = tensor_of(other, 2, (const int64_t[]){TERMS, COLUMNS});
    for (int i = 0; i < ROWS * TERMS; i++)
        x[i] = (float)(i % 13 - 6) / 8;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &in), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 1, &unread), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < COLUMNS; n++) {
            double sum = 0;
            for (int k = 0; k < TERMS; k++)
                sum += (double)x[m * TERMS + k] * (double)w[n * TERMS + k];
            assert_true(fabs(sum - (double)((float *)y.data)[m * COLUMNS + n]) < 1e-3);
        }
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_read_large_weights_transposed),
        cmocka_unit_test(read_weights_are_transposed_once),
        cmocka_unit_test(small_numbers_are_transposed_once),
        cmocka_unit_test(runs_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
