/* SPDX-License-Identifier: Apache-2.0 */
/* test_append.c: graphs that the builder could take for others than were meant: an attribute in the member of another
 * kind, values and extents of other graphs, types that do not follow. Each is refused, with a message that names the
 * node, what of it is wrong, and what was expected; and the graph stays what it was. */
#include "builder_support.h"

#include <math.h>
#include <stdio.h>

/* --- attributes --------------------------------------------------------------------------------------------------- */

static const weft_dim two_axes[] = {{0}, {2}}; /* 0 and 1 */
static const double numbers[] = {1, 2};

static const struct {
    const char *op;
    struct weft_attribute attribute;
    const char *message;
} wrong_members[] = {
    {"sum", {.name = "axes", .integer = 1},
     "attribute axes of sum is a list of integers: set .integers and .count, not .integer"},
    {"sum", {.name = "axes"}, "attribute axes of sum is a list of integers, but .integers and .count are not set"},
    {"sum", {.name = "axes", .count = 2}, "but .integers and .count are not set"},
    {"sum", {.name = "axes", .real = 1}, "set .integers and .count, not .real"},
    {"sum", {.name = "axes", .integers = two_axes, .count = 2, .integer = 1}, "not .integer"},
    {"sum", {.name = "axes", .reals = numbers, .count = 2}, "set .integers and .count, not .reals"},
    {"sum", {.name = "keepdims", .word = "yes"}, "attribute keepdims of sum is an integer: set .integer, not .word"},
    {"softmax", {.name = "axis", .real = 1}, "attribute axis of softmax is an integer: set .integer, not .real"},
    {"softmax", {.name = "axis", .real = NAN}, "set .integer, not .real"},
    {"softmax", {.name = "axis", .integers = two_axes}, "set .integer, not .integers"},
    {"softmax", {.name = "axis", .integer = 1, .count = 1}, "set .integer, not .count"},
    {"softmax", {.name = "axis", .integer = INT64_MAX},
     "attribute axis of softmax, 9223372036854775807, is beyond 2^62 - 1"},
    {"leaky_relu", {.name = "alpha", .integer = 2},
     "attribute alpha of leaky_relu is a number: set .real, not .integer"},
    {"leaky_relu", {.name = "alpha", .reals = numbers}, "set .real, not .reals"},
    {"gelu", {.name = "form", .integer = 1}, "attribute form of gelu is a word: set .word, not .integer"},
    {"gelu", {.name = "form"}, "attribute form of gelu is a word, but .word is not set"},
    {"gelu", {.name = "form", .word = "tahn"}, "must be one of"},
    {"cumsum", {.name = "axis", .graph = NULL, .reals = numbers}, "not .reals"},
    {"sum", {.name = "acc", .integer = WEFT_F64},
     "attribute acc of sum is an element type by its name: set .word, not .integer"},
    {"sum", {.name = "acc", .word = "float64"}, "there is no element type 'float64' (did you mean f64?)"},
    {"sum", {.name = "axs", .integer = 1}, "sum has no attribute 'axs' (did you mean axes?)"},
    {"sum", {.name = "alpha", .real = 1}, "sum has no attribute 'alpha'"},
    {"sum", {.name = NULL}, "an attribute of sum has no name"},
};

static void test_attributes_are_in_the_member_of_their_kind(void **state)
{
    struct builder b = open_builder();
    const weft_dim extent[] = {weft_extent(2), weft_extent(3)};
    weft_val x, y;
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 2, extent, &x), WEFT_OK);
    const uint32_t nodes = b.graph->nodes;
    for (size_t i = 0; i < sizeof wrong_members / sizeof *wrong_members; i++)
        for (int named = 0; named < 2; named++) {
            const struct weft_op op = {.size = sizeof op, .op = wrong_members[i].op, .name = named ? "result" : NULL,
                                       .operand = &x, .operands = 1, .attribute = &wrong_members[i].attribute,
                                       .attributes = 1};
            const int status = weft_append(b.graph, &op, &y);
            const char *error = weft_last_error(b.context);
            if ((status != WEFT_ERR_ARGUMENT && status != WEFT_ERR_INVALID) ||
                !strstr(error, wrong_members[i].message) || strncmp(error, named ? "result: " : "node 1 of @g: ", 8))
                fail_msg("case %zu: status %d, '%s'", i, status, error);
        }
    assert_int_equal(b.graph->nodes, nodes);
    close_builder(&b);
}

static void test_right_members_are_taken(void **state)
{
    static const struct {
        const char *op;
        struct weft_attribute attribute;
    } right[] = {
        {"sum", {.name = "axes", .integers = two_axes, .count = 2}},
        {"sum", {.name = "axes", .integers = two_axes, .count = 0}},
        {"softmax", {.name = "axis", .integer = 1}},
        {"softmax", {.name = "axis"}}, /* axis 0 */
        {"leaky_relu", {.name = "alpha", .real = 0.5}},
        {"leaky_relu", {.name = "alpha"}},
        {"gelu", {.name = "form", .word = "tanh"}},
        {"sum", {.name = "acc", .word = "f64"}},
    };
    struct builder b = open_builder();
    const weft_dim extent[] = {weft_extent(2), weft_extent(3)};
    weft_val x, y;
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 2, extent, &x), WEFT_OK);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        const struct weft_attribute all[] = {right[i].attribute, {.name = "axes", .integers = two_axes, .count = 1}};
        const bool more = strcmp(right[i].attribute.name, "acc") == 0; /* which needs axes beside it */
        const struct weft_op op = {.size = sizeof op, .op = right[i].op, .operand = &x, .operands = 1,
                                   .attribute = all, .attributes = more ? 2 : 1};
        if (weft_append(b.graph, &op, &y) != WEFT_OK)
            fail_msg("case %zu: %s", i, weft_last_error(b.context));
    }
    close_builder(&b);
}

/* What weft_node_attribute says of a node makes the same node again, lists left to their defaults included. */
static void test_attributes_that_were_read_can_be_written(void **state)
{
    struct builder b = open_builder();
    const weft_dim extent[] = {weft_extent(1), weft_extent(3), weft_extent(8), weft_extent(8)},
                   pad[] = {weft_extent(1), weft_extent(1), weft_extent(1), weft_extent(1)};
    weft_val x, y, again;
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 4, extent, &x), WEFT_OK);
    const weft_dim kernel[] = {weft_extent(3), weft_extent(3)};
    const struct weft_attribute set[] = {{.name = "kernel", .integers = kernel, .count = 2},
                                         {.name = "pad", .integers = pad, .count = 4}};
    struct weft_op op = {.size = sizeof op, .op = "max_pool", .operand = &x, .operands = 1, .attribute = set,
                         .attributes = 2};
    assert_int_equal(weft_append(b.graph, &op, &y), WEFT_OK);
    const weft_node node = weft_next_node(b.graph, (weft_node){0});
    static const char *const names[] = {"kernel", "stride", "pad", "dilation", "ceil"};
    struct weft_attribute read[5];
    for (int i = 0; i < 5; i++)
        assert_int_equal(weft_node_attribute(b.graph, node, names[i], &read[i]), WEFT_OK);
    op.attribute = read;
    op.attributes = 5;
    if (weft_append(b.graph, &op, &again) != WEFT_OK)
        fail_msg("%s", weft_last_error(b.context));
    assert_int_equal(weft_return(b.graph, (weft_val[]){y, again}, 2), WEFT_OK);
    assert_prints_twice(&b, "%1: f32[1,3,8,8] = max_pool %x kernel=[3 3] pad=[1 1 1 1]");
    close_builder(&b);
}

/* --- values of other graphs --------------------------------------------------------------------------------------- */

/* Each of these has one parameter of the same type and id. */
struct relatives {
    struct builder b;
    struct weft_graph *body, *inner, *other;
    weft_val in_graph, in_body, in_inner, in_other;
};

static struct relatives open_relatives(void)
{
    struct relatives r = {.b = open_builder()};
    const weft_dim extent[] = {weft_extent(3)};
    assert_int_equal(weft_graph_create_body(r.b.graph, "body", &r.body), WEFT_OK);
    assert_int_equal(weft_graph_create_body(r.body, "inner", &r.inner), WEFT_OK);
    assert_int_equal(weft_graph_create(r.b.context, "other", &r.other), WEFT_OK);
    assert_int_equal(weft_param_mut(r.b.graph, "x", WEFT_F32, 1, extent, &r.in_graph), WEFT_OK);
    assert_int_equal(weft_param(r.body, NULL, WEFT_F32, 1, extent, &r.in_body), WEFT_OK);
    assert_int_equal(weft_param(r.inner, "z", WEFT_F32, 1, extent, &r.in_inner), WEFT_OK);
    assert_int_equal(weft_param(r.other, "w", WEFT_F32, 1, extent, &r.in_other), WEFT_OK);
    assert_int_equal(r.in_graph.id, r.in_body.id);
    assert_int_equal(r.in_graph.id, r.in_inner.id);
    assert_int_equal(r.in_graph.id, r.in_other.id);
    return r;
}

static void close_relatives(struct relatives *r)
{
    weft_graph_destroy(r->other);
    close_builder(&r->b);
}

static int append_add(struct weft_graph *graph, weft_val a, weft_val b, weft_val *ret)
{
    const struct weft_op op = {.size = sizeof op, .op = "add", .name = "sum", .operand = (weft_val[]){a, b},
                               .operands = 2};
    return weft_append(graph, &op, ret);
}

static void test_values_of_other_graphs_are_refused(void **state)
{
    struct relatives r = open_relatives();
    struct builder *b = &r.b;
    weft_val v;
    assert_refused(b, append_add(r.body, r.in_body, r.in_graph, &v),
                   "sum: operand 1 of add is %x of @g, which @body does not see: a body sees what its node hands to");
    assert_refused(b, append_add(r.inner, r.in_graph, r.in_inner, &v), "operand 0 of add is %x of @g, which @inner");
    assert_refused(b, append_add(b->graph, r.in_body, r.in_graph, &v), "operand 0 of add is %0 of @body, which @g");
    assert_refused(b, append_add(b->graph, r.in_graph, r.in_other, &v),
                   "sum: operand 1 of add is a value of another graph than @g");
    assert_refused(b, append_add(b->graph, r.in_graph, (weft_val){0}, &v), "operand 1 of add is none (id 0)");
    assert_refused(b, append_add(b->graph, r.in_graph, (weft_val){.id = 77}, &v), "operand 1 of add is no value of @g");
    assert_refused(b, weft_return(r.body, (weft_val[]){r.in_body, r.in_graph}, 2), "body: result 1 is %x of @g, which");
    assert_refused(b, weft_return(b->graph, &r.in_other, 1), "g: result 0 is a value of another graph than @g");
    assert_refused(b, weft_return_mut(b->graph, &r.in_graph, &r.in_other, 1), "g: what result 0 updates is a value of");
    assert_refused(b, weft_return_mut(b->graph, &r.in_graph, &r.in_body, 1), "g: what result 0 updates is %0 of @body");
    assert_refused(b, weft_set_layout(b->graph, r.in_other, "{0}"), "a value of another graph than @g");
    assert_refused(b, weft_set_layout(r.body, r.in_graph, "{0}"), "%x of @g, which @body");
    const struct weft_access access = {.size = sizeof access, .value = r.in_other};
    struct weft_access_width width = {.size = sizeof width};
    assert_refused(b, weft_access(b->graph, &access, &width), "a value of another graph than @g");
    struct weft_value_facts facts = {.size = sizeof facts};
    assert_int_equal(weft_value_read(b->graph, r.in_other, &facts), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_value_read(b->graph, r.in_graph, &facts), WEFT_OK);
    assert_int_equal(append_add(b->graph, r.in_graph, r.in_graph, &v), WEFT_OK);
    assert_int_equal(weft_return_mut(b->graph, &v, &r.in_graph, 1), WEFT_OK);
    assert_prints_twice(b, "%sum: f32[3] = add %x, %x");
    close_relatives(&r);
}

static void test_nodes_of_other_graphs_are_refused(void **state)
{
    struct relatives r = open_relatives();
    weft_val v, w;
    assert_int_equal(append_add(r.b.graph, r.in_graph, r.in_graph, &v), WEFT_OK);
    assert_int_equal(append_add(r.other, r.in_other, r.in_other, &w), WEFT_OK);
    const weft_node here = weft_next_node(r.b.graph, (weft_node){0}), there = weft_next_node(r.other, (weft_node){0});
    struct weft_node_facts facts = {.size = sizeof facts};
    struct weft_attribute attribute;
    assert_int_equal(here.id, there.id);
    assert_int_equal(weft_node_read(r.b.graph, there, &facts), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_node_read(r.b.graph, here, &facts), WEFT_OK);
    assert_int_equal(weft_node_operand(r.b.graph, there, 0).id, 0);
    assert_int_equal(weft_node_operand(r.b.graph, here, 0).id, r.in_graph.id);
    assert_int_equal(weft_node_operand(r.b.graph, here, 0).graph, r.in_graph.graph);
    assert_int_equal(weft_node_result(r.b.graph, there, 0).id, 0);
    assert_int_equal(weft_node_result(r.b.graph, here, 0).graph, v.graph);
    assert_int_equal(weft_node_attribute(r.b.graph, there, "axis", &attribute), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_next_node(r.b.graph, there).id, 0);
    close_relatives(&r);
}

static void test_a_clone_has_values_of_its_own(void **state)
{
    struct relatives r = open_relatives();
    struct weft_graph *copy;
    weft_val v;
    assert_int_equal(weft_return(r.other, &r.in_other, 1), WEFT_OK);
    assert_int_equal(weft_graph_clone(r.other, &copy), WEFT_OK);
    assert_refused(&r.b, append_add(copy, r.in_other, r.in_other, &v), "a value of another graph than @other");
    const weft_val own = weft_graph_param(copy, 0);
    assert_int_equal(append_add(copy, own, own, &v), WEFT_OK);
    assert_int_equal(weft_graph_return(copy, 0).graph, own.graph);
    weft_graph_destroy(copy);
    close_relatives(&r);
}

/* --- extents of other graphs -------------------------------------------------------------------------------------- */

static void test_symbols_of_other_graphs_are_refused(void **state)
{
    struct relatives r = open_relatives();
    struct builder *b = &r.b;
    weft_dim n, m, sum;
    weft_val v;
    assert_int_equal(weft_symbol(b->graph, "N", 1, 9, 0, &n), WEFT_OK);
    assert_int_equal(weft_symbol(r.other, "M", 1, 9, 0, &m), WEFT_OK);
    assert_int_equal(weft_extent_combine(b->graph, '+', n, weft_extent(1), &sum), WEFT_OK);
    const weft_dim mixed[] = {n, m};
    assert_refused(b, weft_param(b->graph, "p", WEFT_F32, 2, mixed, &v),
                   "p: the extent of axis 1 is no expression of this graph's symbols");
    assert_refused(b, weft_param(b->graph, NULL, WEFT_F32, 2, mixed, &v), "parameter 1 of @g: the extent of axis 1");
    assert_refused(b, weft_splat(b->graph, WEFT_F32, 1, &m, 0, &v), "node 1 of @g: the extent of axis 0");
    assert_refused(b, weft_extent_combine(b->graph, '+', n, m, &sum), "g: the right extent of + is no expression");
    assert_refused(b, weft_extent_combine(b->graph, '*', m, n, &sum), "g: the left extent of * is no expression");
    const struct weft_attribute axes = {.name = "axes", .integers = mixed, .count = 2};
    const struct weft_op op = {.size = sizeof op, .op = "sum", .operand = &r.in_graph, .operands = 1,
                               .attribute = &axes, .attributes = 1};
    assert_refused(b, weft_append(b->graph, &op, &v), "node 1 of @g: element 1 of attribute axes of sum is no expr");
    assert_int_equal(weft_param(r.body, "p", WEFT_F32, 1, &sum, &v), WEFT_OK); /* a body shares its root's symbols */
    close_relatives(&r);
}

/* A clone knows the extents that its source had, and neither knows what the other has made since. */
static void test_clones_share_the_extents_that_were_there(void **state)
{
    struct relatives r = open_relatives();
    struct weft_graph *copy;
    weft_dim n, old, after, copied;
    weft_val v;
    assert_int_equal(weft_symbol(r.other, "N", 1, 9, 0, &n), WEFT_OK);
    assert_int_equal(weft_extent_combine(r.other, '+', n, weft_extent(1), &old), WEFT_OK);
    assert_int_equal(weft_param(r.other, "p", WEFT_F32, 1, &old, &v), WEFT_OK);
    assert_int_equal(weft_return(r.other, &v, 1), WEFT_OK);
    assert_int_equal(weft_graph_clone(r.other, &copy), WEFT_OK);
    assert_int_equal(weft_extent_combine(r.other, '+', n, weft_extent(2), &after), WEFT_OK);
    assert_int_equal(weft_extent_combine(copy, '+', n, weft_extent(3), &copied), WEFT_OK);
    assert_int_equal(weft_param(copy, "a", WEFT_F32, 1, &old, &v), WEFT_OK);
    assert_int_equal(weft_param(copy, "b", WEFT_F32, 1, &copied, &v), WEFT_OK);
    assert_refused(&r.b, weft_param(copy, "c", WEFT_F32, 1, &after, &v), "c: the extent of axis 0 is no expression");
    assert_refused(&r.b, weft_param(r.other, "d", WEFT_F32, 1, &copied, &v), "d: the extent of axis 0 is no expr");
    weft_graph_destroy(copy);
    close_relatives(&r);
}

/* --- types -------------------------------------------------------------------------------------------------------- */

static void test_stated_types_are_those_that_follow(void **state)
{
    struct builder b = open_builder();
    weft_dim n, m;
    weft_val x, y;
    assert_int_equal(weft_symbol(b.graph, "N", 1, 9, 0, &n), WEFT_OK);
    assert_int_equal(weft_symbol(b.graph, "M", 1, 9, 0, &m), WEFT_OK);
    const weft_dim right[] = {n, weft_extent(3)}, other[] = {n, weft_extent(4)}, another[] = {m, weft_extent(3)};
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 2, right, &x), WEFT_OK);
    const struct {
        int dtype, rank;
        const weft_dim *extent;
        const char *stated;
    } wrong[] = {{WEFT_F32, 2, other, "f32[N,4]"}, {WEFT_F32, 2, another, "f32[M,3]"}, {WEFT_F32, 1, right, "f32[N]"},
                 {WEFT_I32, 2, right, "i32[N,3]"}};
    struct weft_op op = {.size = sizeof op, .op = "neg", .name = "y", .operand = &x, .operands = 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[128];
        op.dtype = wrong[i].dtype;
        op.rank = wrong[i].rank;
        op.extent = wrong[i].extent;
        snprintf(message, sizeof message, "y: neg: the result is declared %s, but of these operands it is f32[N,3]",
                 wrong[i].stated);
        assert_int_equal(weft_append(b.graph, &op, &y), WEFT_ERR_INVALID);
        assert_non_null(strstr(weft_last_error(b.context), message));
        assert_int_equal(b.graph->nodes, 1);
    }
    op.dtype = WEFT_F32;
    op.rank = 2;
    op.extent = right;
    assert_int_equal(weft_append(b.graph, &op, &y), WEFT_OK);
    op.name = NULL;
    op.dtype = 0; /* nothing is stated */
    assert_int_equal(weft_append(b.graph, &op, &y), WEFT_OK);
    close_builder(&b);
}

/* --- ops and places ----------------------------------------------------------------------------------------------- */

static void test_ops_that_there_are_not(void **state)
{
    static const char *const wrong[][2] = {
        {"Conv", "there is no op 'Conv' (did you mean conv?)"},
        {"BatchNormalization", "'BatchNormalization' (did you mean batch_norm?)"},
        {"ReduceSum", "'ReduceSum' (did you mean sum?)"},
        {"Gemm", "'Gemm' (did you mean matmul?)"},
        {"quite_another_thing", "there is no op 'quite_another_thing'"},
        {"const", "constants are made by weft_constant and weft_splat"},
        {NULL, "weft_op.op is NULL"},
    };
    struct builder b = open_builder();
    weft_val x, y;
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 0, NULL, &x), WEFT_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct weft_op op = {.size = sizeof op, .op = wrong[i][0], .operand = &x, .operands = 1};
        assert_refused(&b, weft_append(b.graph, &op, &y), wrong[i][1]);
        assert_refused(&b, weft_append(b.graph, &op, &y), "node 1 of @g: ");
    }
    assert_null(strstr(weft_last_error(b.context), "did you mean"));
    close_builder(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attributes_are_in_the_member_of_their_kind),
        cmocka_unit_test(test_right_members_are_taken),
        cmocka_unit_test(test_attributes_that_were_read_can_be_written),
        cmocka_unit_test(test_values_of_other_graphs_are_refused),
        cmocka_unit_test(test_nodes_of_other_graphs_are_refused),
        cmocka_unit_test(test_a_clone_has_values_of_its_own),
        cmocka_unit_test(test_symbols_of_other_graphs_are_refused),
        cmocka_unit_test(test_clones_share_the_extents_that_were_there),
        cmocka_unit_test(test_stated_types_are_those_that_follow),
        cmocka_unit_test(test_ops_that_there_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
