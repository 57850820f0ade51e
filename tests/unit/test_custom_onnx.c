/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of ONNX models that functions of the caller's compute, found by domain and op. */
#include "weft/weft.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/onnx_writer.h"

enum { FLOAT = 1, INT64 = 7 };

static int runs_nothing(void *user, const struct weft_custom_call *call) { return 1; }

/* Two results like the operand, the second of i64. */
static int two_like(void *user, struct weft_custom_types *types)
{
    if (types->operands == 0 || types->operand[0].dtype != WEFT_F32) {
        snprintf(types->message, types->message_bytes, "it wants f32");
        return 1;
    }
    types->result = types->more[0] = types->operand[0];
    types->more[0].dtype = WEFT_I64;
    return 0;
}

static void enroll(struct weft_context *context, const char *name, const char *domain, const char *op)
{
    const struct weft_custom custom = {.size = sizeof custom, .name = name, .most_operands = 3, .results = 2,
                                       .run = runs_nothing, .type = two_like, .domain = domain, .op = op};
    assert_int_equal(weft_register(context, &custom), WEFT_OK);
}

static struct folder open_with_functions(void)
{
    struct folder folder = open_folder();
    enroll(folder.context, "top_two", "acme", "TopTwo");
    enroll(folder.context, "my_relu", "ai.onnx", "Relu");
    return folder;
}

static void expect(const struct bytes *model, const char *expected)
{
    expect_text_in(open_with_functions(), model, expected);
}

static void expect_refusal(const struct bytes *model, int status, const char *message)
{
    struct folder folder = open_with_functions();
    struct weft_graph *graph = NULL;
    assert_int_equal(load_model(&folder, model, &graph), status);
    if (!strstr(weft_last_error(folder.context), message))
        fail_msg("\"%s\" is not in: %s", message, weft_last_error(folder.context));
    assert_null(graph);
    close_folder(&folder);
}

static struct bytes acme_node(const char *op, const char *inputs, const char *outputs)
{
    struct bytes node = node_of(op, inputs, outputs);
    put_text(&node, 7, "acme");
    return node;
}

/* A model of one such node. */
static struct bytes model_with(const struct bytes *node, const char *outputs)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "N 8");
    put_message(&graph, 1, node);
    for (const char *name = outputs; *name; name += *name != '\0') {
        put_output(&graph, (const char[]){*name, '\0'});
    }
    return model_of(&graph, 8, 13);
}

static struct bytes model_of_all_kinds(void)
{
    struct bytes node = acme_node("TopTwo", "x", "v,i"), payload = {.count = 0};
    put_int_attribute(&node, "axis", -1);
    put_float_attribute(&node, "factor", 0.5f);
    put_text_attribute(&node, "mode", "fast");
    put_ints_attribute(&node, "axes", 2, (const int64_t[]){0, 2});
    put_float(&payload, 7, 1);
    put_float(&payload, 7, 0.25f);
    put_attribute(&node, "scales", 6, &payload);
    payload.count = 0;
    put_text(&payload, 9, "a");
    put_text(&payload, 9, "b c");
    put_attribute(&node, "names", 8, &payload);
    payload.count = 0;
    const float table[] = {1, 2, 3, 4};
    struct bytes tensor = tensor_of("table", FLOAT, 2, (const int64_t[]){2, 2});
    put_bytes(&tensor, 9, table, sizeof table);
    put_message(&payload, 5, &tensor);
    put_attribute(&node, "table", 4, &payload);
    return model_with(&node, "vi");
}

static void attributes_of_all_kinds_reach_the_function(void **state)
{
    const struct bytes model = model_of_all_kinds();
    expect(&model, "graph @main<N>(%x: f32[N,8]) {\n"
                   "  %v: f32[N,8], %i: i64[N,8] = custom %x function=top_two with=[axis=-1 factor=0.5 mode=\"fast\" "
                   "axes=[0 2] scales=[1.0 0.25] names=[\"a\" \"b c\"] table=f32[2,2][1 2 3 4]]\n"
                   "  return %v, %i\n}\n");
}

static void a_node_may_have_fewer_outputs(void **state)
{
    struct bytes node = acme_node("TopTwo", "x", "v");
    struct bytes model = model_with(&node, "v");
    expect(&model, "graph @main<N>(%x: f32[N,8]) {\n  %v: f32[N,8], %0: i64[N,8] = custom %x function=top_two\n"
                   "  return %v\n}\n");
    node = acme_node("TopTwo", "x", ",i");
    model = model_with(&node, "i");
    expect(&model, "graph @main<N>(%x: f32[N,8]) {\n  %0: f32[N,8], %i: i64[N,8] = custom %x function=top_two\n"
                   "  return %i\n}\n");
    node = acme_node("TopTwo", "x,x,", "v"); /* an absent input at the end */
    model = model_with(&node, "v");
    expect(&model, "graph @main<N>(%x: f32[N,8]) {\n  %v: f32[N,8], %0: i64[N,8] = custom %x, %x function=top_two\n"
                   "  return %v\n}\n");
}

/* The caller's function goes before weft's own op, and before a function of the model. */
static void what_the_caller_registers_goes_first(void **state)
{
    struct bytes graph = {.count = 0}, function = {.count = 0}, opset = {.count = 0};
    const struct bytes node = acme_node("TopTwo", "x", "v");
    put_input(&graph, "x", "N 8");
    put_node(&graph, "Relu", "x", "r");
    put_message(&graph, 1, &node);
    put_node(&graph, "Add", "r,v", "y");
    put_output(&graph, "y");
    struct bytes model = model_of(&graph, 8, 13);
    put_text(&function, 1, "TopTwo");
    put_text(&function, 4, "a");
    put_text(&function, 5, "b");
    const struct bytes inner = node_of("Neg", "a", "b");
    put_message(&function, 7, &inner);
    put_text(&function, 10, "acme");
    put_integer(&opset, 2, 13);
    put_message(&function, 9, &opset);
    put_message(&model, 25, &function);
    expect(&model, "graph @main<N>(%x: f32[N,8]) {\n  %r: f32[N,8], %0: i64[N,8] = custom %x function=my_relu\n"
                   "  %v: f32[N,8], %1: i64[N,8] = custom %x function=top_two\n"
                   "  %y: f32[N,8] = add %r, %v\n  return %y\n}\n");
}

static void what_is_missing_says_what_to_register(void **state)
{
    const struct bytes node = acme_node("TopThree", "x", "v");
    const struct bytes model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_UNSUPPORTED,
                   "unsupported op acme.TopThree: 1 node, first \"TopThree_v\"; register a custom function for op "
                   "\"TopThree\" of domain \"acme\"");
}

static void wrong_nodes_are_refused(void **state)
{
    struct bytes node = acme_node("TopTwo", "x", "v,i,w"), payload = {.count = 0};
    struct bytes model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_INVALID, "the node has 3 outputs, but custom function 'top_two' has 2 results");
    node = acme_node("TopTwo", "x,,x", "v");
    model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_UNSUPPORTED, "TopTwo_v: TopTwo: input 1 is absent");
    node = acme_node("TopTwo", "x,x,x,x", "v");
    model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_INVALID, "top_two takes at most 3 operands, not 4");
    node = acme_node("TopTwo", "", "v");
    model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_INVALID, "top_two refuses these operands: it wants f32");
    node = acme_node("TopTwo", "x", "v");
    put_graph_attribute(&node, "body", &payload);
    model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_UNSUPPORTED, "attribute body is of a kind that custom functions do not get");
    node = acme_node("TopTwo", "x", "v");
    put_int_attribute(&node, "no word", 1);
    model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_UNSUPPORTED, "the name of an attribute, \"no word\", is no word");
    node = acme_node("TopTwo", "x", "v");
    put_int_attribute(&node, "axis", 1);
    put_int_attribute(&node, "axis", 2);
    model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_UNSUPPORTED, "two named values have the same name");
    node = acme_node("TopTwo", "x", "v");
    struct bytes tensor = tensor_of("table", FLOAT, 2, (const int64_t[]){512, 512});
    put_message(&payload, 5, &tensor);
    put_attribute(&node, "table", 4, &payload);
    model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_UNSUPPORTED, "attribute table has more than 65536 elements");
    node = acme_node("TopTwo", "x", "v");
    payload.count = 0;
    tensor = tensor_of("table", 8, 1, (const int64_t[]){1}); /* of texts */
    put_message(&payload, 5, &tensor);
    put_attribute(&node, "table", 4, &payload);
    model = model_with(&node, "v");
    expect_refusal(&model, WEFT_ERR_UNSUPPORTED, "elements of type string (8) are not supported");
}

/* Cut at every byte, and with every byte changed, it is a graph or an error. */
static void damaged_models_are_refused_or_right(void **state)
{
    const struct bytes model = model_of_all_kinds();
    struct folder folder = open_with_functions();
    for (size_t i = 0; i < model.count; i++)
        for (int change = 0; change < 4; change++) {
            struct bytes damaged = model;
            struct weft_graph *graph = NULL;
            damaged.data[i] ^= (uint8_t[]){0, 1, 0x80, 0xff}[change];
            const int status = weft_load_memory(folder.context, damaged.data, change ? damaged.count : i, NULL, &graph);
            if (status == WEFT_OK) {
                assert_int_equal(weft_validate(graph), WEFT_OK);
                char *text;
                struct weft_graph *again = NULL;
                assert_int_equal(weft_print(graph, &text), WEFT_OK);
                if (weft_parse(folder.context, text, strlen(text), "again", &again) != WEFT_OK)
                    fail_msg("%s\n%s", weft_last_error(folder.context), text);
                weft_free_text(folder.context, text);
                weft_graph_destroy(again);
            } else {
                assert_true(weft_last_error(folder.context)[0]);
            }
            weft_graph_destroy(graph);
        }
    close_folder(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_of_all_kinds_reach_the_function),
        cmocka_unit_test(a_node_may_have_fewer_outputs),
        cmocka_unit_test(what_the_caller_registers_goes_first),
        cmocka_unit_test(what_is_missing_says_what_to_register),
        cmocka_unit_test(wrong_nodes_are_refused),
        cmocka_unit_test(damaged_models_are_refused_or_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
