/* SPDX-License-Identifier: Apache-2.0 */
/* test_public.c: the builder of weft.h against callers that are wrong: every mistake is a status and a message, and the
 * graph stays what it was. */
#include "builder_support.h"

/* --- constants ---------------------------------------------------------------------------------------------------- */

static void test_constants_need_their_data(void **state)
{
    (void)state;
    struct builder b = open_builder();
    const int64_t hundred[] = {100}, none[] = {0, 5}, huge[] = {(int64_t)1 << 40, (int64_t)1 << 40},
                  large[] = {(int64_t)1 << 50}, negative[] = {-1}, wide[] = {INT64_MAX};
    const float number = 1;
    weft_val v = {0};
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, hundred, NULL, &v), "data");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 0, NULL, NULL, &v), "data");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, NULL, &number, &v), "rank");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 9, hundred, &number, &v), "rank");
    assert_refused(&b, weft_constant(b.graph, 77, 1, hundred, &number, &v), "element type");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 2, huge, &number, &v), "bytes");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, large, &number, &v), "bytes");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, wide, &number, &v), "extent");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, negative, &number, &v), "extent");
    assert_int_equal(b.graph->nodes, 1);
    assert_int_equal(weft_constant(b.graph, WEFT_F32, 2, none, NULL, &v), WEFT_OK);
    assert_int_equal(weft_constant(b.graph, WEFT_F32, 0, NULL, &number, &v), WEFT_OK);
    close_builder(&b);
}

/* --- bodies ------------------------------------------------------------------------------------------------------- */

/* A body that takes nothing and returns `numbers` numbers. */
static struct weft_graph *numbers_body(struct weft_graph *parent, const char *name, int64_t numbers)
{
    struct weft_graph *body = NULL;
    const weft_dim extent[] = {weft_extent(numbers)};
    weft_val v;
    assert_int_equal(weft_graph_create_body(parent, name, &body), WEFT_OK);
    assert_int_equal(weft_splat(body, WEFT_F32, 1, extent, 1, &v), WEFT_OK);
    assert_int_equal(weft_return(body, &v, 1), WEFT_OK);
    return body;
}

static int append_if(struct weft_graph *graph, weft_val condition, struct weft_graph *yes, struct weft_graph *no,
                     weft_val *ret_result)
{
    const struct weft_attribute bodies[] = {{.name = "then", .graph = yes}, {.name = "else", .graph = no}};
    const struct weft_op op = {.size = sizeof op, .op = "if", .operand = &condition, .operands = 1,
                               .attribute = bodies, .attributes = 2};
    return weft_append(graph, &op, ret_result);
}

static void test_used_bodies_cannot_change(void **state)
{
    (void)state;
    struct builder b = open_builder();
    weft_val condition, result, v;
    assert_int_equal(weft_param(b.graph, "c", WEFT_BOOL, 0, NULL, &condition), WEFT_OK);
    struct weft_graph *yes = numbers_body(b.graph, "yes", 300), *no = numbers_body(b.graph, "no", 300);
    assert_int_equal(append_if(b.graph, condition, yes, no, &result), WEFT_OK);
    assert_int_equal(weft_return(b.graph, &result, 1), WEFT_OK);

    const struct weft_op op = {.size = sizeof op, .op = "neg", .operand = &(weft_val){.id = 1}, .operands = 1};
    const float number = 0;
    struct weft_graph *inner;
    assert_refused(&b, weft_return(yes, NULL, 0), "uses this body");
    assert_refused(&b, weft_param(yes, "x", WEFT_F32, 0, NULL, &v), "uses this body");
    assert_refused(&b, weft_constant(yes, WEFT_F32, 0, NULL, &number, &v), "uses this body");
    assert_refused(&b, weft_splat(yes, WEFT_F32, 0, NULL, 1, &v), "uses this body");
    assert_refused(&b, weft_append(no, &op, &v), "uses this body");
    assert_refused(&b, weft_set_layout(no, (weft_val){.id = 1}, "{0}"), "uses this body");
    assert_refused(&b, weft_graph_create_body(no, "inner", &inner), "uses this body");
    assert_int_equal(weft_validate(b.graph), WEFT_OK);
    close_builder(&b);
}

static void test_outputs_must_state_what_they_hold(void **state)
{
    (void)state;
    struct builder b = open_builder();
    const weft_dim extent[] = {weft_extent(3)};
    weft_val v;
    assert_int_equal(weft_splat(b.graph, WEFT_F32, 1, extent, 2, &v), WEFT_OK);
    assert_int_equal(weft_return(b.graph, &v, 1), WEFT_OK);
    float data[3] = {0};
    const struct weft_tensor wrong[] = {
        {.data = data, .dtype = WEFT_F64, .rank = 1, .extent = {3}},
        {.data = data, .dtype = WEFT_F32, .rank = 2, .extent = {3, 1}},
        {.data = data, .dtype = WEFT_F32, .rank = 1, .extent = {2}},
        {.data = data},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct weft_tensor out = wrong[i];
        assert_int_equal(weft_evaluate(b.graph, NULL, 0, &out, 1), WEFT_ERR_BINDING);
        assert_non_null(strstr(weft_last_error(b.context), "result 0"));
        assert_memory_equal(&out, &wrong[i], sizeof out);
        assert_true(data[0] == 0);
    }
    struct weft_tensor right = {.data = data, .dtype = WEFT_F32, .rank = 1, .extent = {3}};
    assert_int_equal(weft_evaluate(b.graph, NULL, 0, &right, 1), WEFT_OK);
    assert_true(data[2] == 2 && right.stride[0] == 1);
    close_builder(&b);
}

static void test_bodies_belong_to_the_graph_that_uses_them(void **state)
{
    (void)state;
    struct builder b = open_builder();
    weft_val condition, result;
    assert_int_equal(weft_param(b.graph, "c", WEFT_BOOL, 0, NULL, &condition), WEFT_OK);
    struct weft_graph *child = numbers_body(b.graph, "child", 2), *grandchild = numbers_body(child, "grandchild", 2);
    assert_int_equal(append_if(b.graph, condition, child, grandchild, &result), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(b.context), "attribute else is no body of this graph"));
    assert_int_equal(append_if(b.graph, condition, b.graph, b.graph, &result), WEFT_ERR_INVALID);
    assert_int_equal(append_if(b.graph, condition, child, child, &result), WEFT_OK);
    weft_graph_destroy(child); /* does nothing: it dies with its parent */
    assert_int_equal(weft_return(b.graph, &result, 1), WEFT_OK);
    assert_int_equal(weft_validate(b.graph), WEFT_OK);
    close_builder(&b);
}

static void test_invalid_graphs_are_neither_cloned_nor_compiled(void **state)
{
    (void)state;
    struct builder b = open_builder();
    const weft_dim extent[] = {weft_extent(3)};
    weft_val x;
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 1, extent, &x), WEFT_OK);
    struct weft_graph *copy = NULL;
    struct weft_plan *plan = NULL;
    assert_int_equal(weft_graph_clone(b.graph, &copy), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(b.context), "returns nothing"));
    assert_int_equal(weft_compile(b.graph, NULL, &plan), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(b.context), "returns nothing"));
    assert_true(!copy && !plan);
    assert_int_equal(weft_return(b.graph, &x, 1), WEFT_OK);
    assert_int_equal(weft_graph_clone(b.graph, &copy), WEFT_OK);
    weft_graph_destroy(copy);
    close_builder(&b);
}

/* --- extents ------------------------------------------------------------------------------------------------------ */

static void test_extents_of_nowhere_are_refused(void **state)
{
    (void)state;
    struct builder b = open_builder();
    const weft_dim wild[] = {{12345678901}}, negative[] = {{-1}}, one[] = {weft_extent(1)};
    weft_dim d;
    weft_val v, x;
    const char *part = "no expression of this graph";
    assert_refused(&b, weft_extent_combine(b.graph, '+', wild[0], one[0], &d), part);
    assert_refused(&b, weft_extent_combine(b.graph, '/', one[0], wild[0], &d), part);
    assert_refused(&b, weft_extent_combine(b.graph, '*', one[0], negative[0], &d), part);
    assert_refused(&b, weft_param(b.graph, "x", WEFT_F32, 1, wild, &v), part);
    assert_refused(&b, weft_param(b.graph, "x", WEFT_F32, 1, negative, &v), part);
    assert_refused(&b, weft_splat(b.graph, WEFT_F32, 1, wild, 0, &v), part);
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 1, one, &x), WEFT_OK);
    const struct weft_attribute axes = {.name = "axes", .integers = wild, .count = 1};
    struct weft_op op = {.size = sizeof op, .op = "sum", .operand = &x, .operands = 1, .attribute = &axes,
                         .attributes = 1};
    assert_refused(&b, weft_append(b.graph, &op, &v), part);
    op = (struct weft_op){.size = sizeof op, .op = "cast", .operand = &x, .operands = 1, .dtype = WEFT_F64, .rank = 1,
                          .extent = wild};
    assert_refused(&b, weft_append(b.graph, &op, &v), part);
    close_builder(&b);
}

static void test_integers_beyond_the_limit_do_not_wrap(void **state)
{
    (void)state;
    struct builder b = open_builder();
    const int64_t limit = ((int64_t)1 << 62) - 1;
    assert_true(weft_dim_is(weft_extent(INT64_MAX), limit));
    assert_true(weft_dim_is(weft_extent(limit + 6), limit));
    assert_true(weft_dim_is(weft_extent(INT64_MIN), -limit));
    assert_true(weft_dim_is(weft_extent(limit), limit));
    const weft_dim extent[] = {weft_extent(4)}, negative[] = {weft_extent(INT64_MIN)};
    weft_val x, v;
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 1, extent, &x), WEFT_OK);
    assert_refused(&b, weft_param(b.graph, "y", WEFT_F32, 1, negative, &v), "negative");
    for (int i = 0; i < 2; i++) {
        const struct weft_attribute axis = {.name = "axis", .integer = i ? INT64_MAX : INT64_MIN};
        const struct weft_op op = {.size = sizeof op, .op = "softmax", .operand = &x, .operands = 1, .attribute = &axis,
                                   .attributes = 1};
        assert_refused(&b, weft_append(b.graph, &op, &v), "2^62 - 1");
    }
    close_builder(&b);
}

/* --- mut parameters ----------------------------------------------------------------------------------------------- */

static void test_mut_parameters_are_built_and_run(void **state)
{
    (void)state;
    struct builder b = open_builder();
    const weft_dim extent[] = {weft_extent(4)};
    weft_val w, g, sum, negative, v;
    assert_int_equal(weft_param_mut(b.graph, "w", WEFT_F32, 1, extent, &w), WEFT_OK);
    assert_int_equal(weft_param(b.graph, "g", WEFT_F32, 1, extent, &g), WEFT_OK);
    struct weft_op op = {.size = sizeof op, .op = "add", .operand = (weft_val[]){w, g}, .operands = 2};
    assert_int_equal(weft_append(b.graph, &op, &sum), WEFT_OK);
    op = (struct weft_op){.size = sizeof op, .op = "neg", .operand = &g, .operands = 1};
    assert_int_equal(weft_append(b.graph, &op, &negative), WEFT_OK);

    const weft_val values[] = {sum, negative}, updated[] = {w, {0}}, wrong[] = {g, {0}};
    assert_refused(&b, weft_return_mut(b.graph, values, wrong, 2), "not a mut parameter");
    assert_int_equal(weft_return(b.graph, values, 2), WEFT_OK);
    assert_int_equal(weft_validate(b.graph), WEFT_ERR_INVALID); /* no new value */
    assert_int_equal(weft_return_mut(b.graph, values, updated, 2), WEFT_OK);
    assert_prints_twice(&b, "return mut %w = %0, %1");
    struct weft_graph *body = NULL;
    assert_int_equal(weft_graph_create_body(b.graph, "body", &body), WEFT_OK);
    assert_refused(&b, weft_param_mut(body, "w", WEFT_F32, 1, extent, &v), "body");

    struct weft_plan *plan = NULL;
    struct weft_execution *execution = NULL;
    float buffer[] = {1, 2, 3, 4}, gradient[] = {10, 20, 30, 40};
    struct weft_tensor tensor = {.data = buffer, .dtype = WEFT_F32, .rank = 1, .extent = {4}, .stride = {1}};
    assert_int_equal(weft_compile(b.graph, NULL, &plan), WEFT_OK);
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    assert_int_equal(weft_bind_input(execution, 0, &tensor), WEFT_OK);
    tensor.data = gradient;
    assert_int_equal(weft_bind_input(execution, 1, &tensor), WEFT_OK);
    for (int i = 0; i < 2; i++)
        if (weft_run(execution) != WEFT_OK)
            fail_msg("%s", weft_execution_error(execution));
    assert_true(buffer[0] == 21 && buffer[3] == 84);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    close_builder(&b);
}

/* --- many --------------------------------------------------------------------------------------------------------- */

static void test_counts_beyond_sixteen_bits(void **state)
{
    (void)state;
    enum { MANY = 70000 };
    struct builder b = open_builder();
    weft_val condition, last = {0};
    assert_int_equal(weft_param(b.graph, "c", WEFT_BOOL, 0, NULL, &condition), WEFT_OK);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(weft_param(b.graph, NULL, WEFT_F32, 0, NULL, &last), WEFT_OK);
    weft_val *values = malloc((MANY + 1) * sizeof *values);
    assert_non_null(values);
    struct weft_graph *body[2] = {NULL};
    for (int i = 0; i < 2; i++) {
        weft_val v;
        assert_int_equal(weft_graph_create_body(b.graph, i ? "no" : "yes", &body[i]), WEFT_OK);
        assert_int_equal(weft_splat(body[i], WEFT_F32, 0, NULL, i, &v), WEFT_OK);
        for (int k = 0; k < MANY; k++)
            values[k] = v;
        assert_int_equal(weft_return(body[i], values, MANY), WEFT_OK);
    }
    assert_int_equal(append_if(b.graph, condition, body[0], body[1], values), WEFT_OK);
    values[MANY] = last;
    assert_int_equal(weft_return(b.graph, values, MANY + 1), WEFT_OK);
    if (weft_validate(b.graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(b.context));
    struct weft_graph *copy = NULL;
    assert_int_equal(weft_graph_clone(b.graph, &copy), WEFT_OK);
    assert_int_equal(copy->returns, MANY + 1);
    weft_graph_destroy(copy);

    const struct weft_attribute axis = {.name = "axis"};
    const struct weft_op op = {.size = sizeof op, .op = "concat", .operand = values, .operands = MANY,
                               .attribute = &axis, .attributes = 1};
    assert_refused(&b, weft_append(b.graph, &op, &last), "65535");
    free(values);
    close_builder(&b);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static int fail_in_scratch(void *arg)
{
    struct weft_graph *graph = arg;
    (void)weft_arena_new(&graph->scratch, 100);
    weft_out_of_memory(graph->context);
}

static void test_the_call_after_a_refusal_finds_empty_scratch(void **state)
{
    (void)state;
    struct builder b = open_builder();
    assert_int_equal(weft_protected_graph(b.graph, fail_in_scratch, b.graph), WEFT_ERR_NOMEM);
    assert_non_null(b.graph->scratch.chunk);
    const weft_dim one[] = {weft_extent(1)};
    weft_val x;
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 1, one, &x), WEFT_OK);
    assert_null(b.graph->scratch.chunk);
    close_builder(&b);
}

/* --- sizes of structs --------------------------------------------------------------------------------------------- */

static void *plain_allocate(void *user, size_t bytes, size_t align)
{
    (void)user;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void plain_release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static void test_structs_say_how_large_they_are(void **state)
{
    (void)state;
    struct builder b = open_builder();
    weft_val x, y;
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 0, NULL, &x), WEFT_OK);
    struct weft_op op = {.op = "neg", .operand = &x, .operands = 1};
    assert_refused(&b, weft_append(b.graph, &op, &y), "size");
    op.size = offsetof(struct weft_op, attribute); /* an older caller's */
    op.attributes = 99;
    assert_int_equal(weft_append(b.graph, &op, &y), WEFT_OK);
    assert_int_equal(weft_return(b.graph, &y, 1), WEFT_OK);

    struct weft_plan *plan = NULL;
    struct weft_compile_options compile = {.flags = WEFT_COMPILE_REFERENCE};
    assert_int_equal(weft_compile(b.graph, &compile, &plan), WEFT_ERR_ARGUMENT);
    compile.size = sizeof compile;
    assert_int_equal(weft_compile(b.graph, &compile, &plan), WEFT_OK);
    struct weft_execution *execution = NULL;
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    struct weft_statistics statistics = {.total_ns = 7};
    assert_int_equal(weft_execution_statistics(execution, &statistics), WEFT_ERR_ARGUMENT);
    statistics.size = offsetof(struct weft_statistics, total_ns);
    assert_int_equal(weft_execution_statistics(execution, &statistics), WEFT_OK);
    assert_true(statistics.workers > 0 && statistics.total_ns == 7);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);

    struct weft_context *context = NULL;
    struct weft_allocator allocator = {.allocate = plain_allocate, .release = plain_release};
    struct weft_executor executor = {.size = sizeof executor};
    struct weft_context_options options = {0};
    assert_int_equal(weft_open(&options, &context), WEFT_ERR_ARGUMENT);
    options = (struct weft_context_options){.size = sizeof options, .allocator = &allocator};
    assert_int_equal(weft_open(&options, &context), WEFT_ERR_ARGUMENT);
    allocator.size = offsetof(struct weft_allocator, release);
    assert_int_equal(weft_open(&options, &context), WEFT_ERR_ARGUMENT);
    allocator.size = sizeof allocator;
    options.executor = &executor;
    assert_int_equal(weft_open(&options, &context), WEFT_ERR_ARGUMENT); /* it runs nothing */
    options.executor = NULL;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    weft_close(context);
    close_builder(&b);
}

static void test_bodies_of_one_name_are_found(void **state)
{
    (void)state;
    struct builder b = open_builder();
    weft_val condition, result;
    assert_int_equal(weft_param(b.graph, "c", WEFT_BOOL, 0, NULL, &condition), WEFT_OK);
    (void)numbers_body(b.graph, "same", 2); /* of no node's, so its name does not matter */
    struct weft_graph *yes = numbers_body(b.graph, "same", 2), *no = numbers_body(b.graph, "same", 2);
    assert_int_equal(append_if(b.graph, condition, yes, yes, &result), WEFT_OK);
    assert_int_equal(weft_return(b.graph, &result, 1), WEFT_OK);
    assert_int_equal(weft_validate(b.graph), WEFT_OK);
    struct weft_graph *copy = NULL;
    assert_int_equal(weft_graph_clone(b.graph, &copy), WEFT_OK);
    assert_int_equal(copy->bodies, 3);
    assert_ptr_equal(copy->node[copy->first.id].attr[0].graph, copy->body[1]);
    weft_graph_destroy(copy);
    assert_int_equal(append_if(b.graph, condition, yes, no, &result), WEFT_OK);
    assert_int_equal(weft_validate(b.graph), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(b.context), "two bodies are called @same"));
    close_builder(&b);
}

static void test_symbols_that_no_parameter_determines_do_not_compile(void **state)
{
    (void)state;
    struct builder b = open_builder();
    weft_dim n, loose;
    weft_val x, v;
    assert_int_equal(weft_symbol(b.graph, "N", 0, 10, 0, &n), WEFT_OK);
    assert_int_equal(weft_symbol(b.graph, "Loose", 0, 10, 0, &loose), WEFT_OK);
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 1, &n, &x), WEFT_OK);
    assert_int_equal(weft_return(b.graph, &x, 1), WEFT_OK);
    struct weft_plan *plan = NULL;
    assert_int_equal(weft_compile(b.graph, NULL, &plan), WEFT_OK); /* nothing needs it */
    weft_plan_destroy(plan);
    assert_int_equal(weft_splat(b.graph, WEFT_F32, 1, &loose, 1, &v), WEFT_OK);
    assert_int_equal(weft_return(b.graph, &v, 1), WEFT_OK);
    assert_int_equal(weft_compile(b.graph, NULL, &plan), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(b.context), "determine symbol Loose"));
    close_builder(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants_need_their_data),
        cmocka_unit_test(test_used_bodies_cannot_change),
        cmocka_unit_test(test_outputs_must_state_what_they_hold),
        cmocka_unit_test(test_bodies_belong_to_the_graph_that_uses_them),
        cmocka_unit_test(test_invalid_graphs_are_neither_cloned_nor_compiled),
        cmocka_unit_test(test_extents_of_nowhere_are_refused),
        cmocka_unit_test(test_integers_beyond_the_limit_do_not_wrap),
        cmocka_unit_test(test_mut_parameters_are_built_and_run),
        cmocka_unit_test(test_counts_beyond_sixteen_bits),
        cmocka_unit_test(test_the_call_after_a_refusal_finds_empty_scratch),
        cmocka_unit_test(test_structs_say_how_large_they_are),
        cmocka_unit_test(test_bodies_of_one_name_are_found),
        cmocka_unit_test(test_symbols_that_no_parameter_determines_do_not_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
