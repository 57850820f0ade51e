/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_hostile.c: files that are cut, bent, or ask for what they must not have. Nothing may crash or leak, and
 * each refusal has to say what is wrong and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "onnx/wire.h"
#include "tests/unit/onnx_writer.h"
#include "tests/unit/scarce.h"

#include <sys/stat.h>

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

/* A model with a bit of everything: symbols, raw and typed tensors, attributes of each kind, an `if`, two outputs. */
static struct bytes rich_model(void)
{
    struct bytes graph = {.count = 0}, yes = {.count = 0}, no = {.count = 0};
    put_text(&graph, 2, "rich");
    put_input(&graph, "x", "N 3");
    put_value(&graph, 11, "c", BOOL, "");
    put_ints(&graph, "shape", 2, (const int64_t[]){3, -1});
    struct bytes k = tensor_of("k", FLOAT, 1, &(int64_t){3});
    put_bytes(&k, 4, (const float[]){1, 2, 3}, 12);
    put_message(&graph, 5, &k);
    struct bytes node = node_of("Transpose", "x", "t");
    put_ints_attribute(&node, "perm", 2, (const int64_t[]){1, 0});
    put_message(&graph, 1, &node);
    node = node_of("LeakyRelu", "t", "l");
    put_float_attribute(&node, "alpha", 0.25f);
    put_message(&graph, 1, &node);
    put_node(&graph, "Reshape", "l,shape", "r");
    put_node(&yes, "Add", "x,k", "sum");
    put_output(&yes, "sum");
    put_node(&no, "Relu", "x", "kept");
    put_output(&no, "kept");
    node = node_of("If", "c", "y");
    put_graph_attribute(&node, "then_branch", &yes);
    put_graph_attribute(&node, "else_branch", &no);
    put_message(&graph, 1, &node);
    put_output(&graph, "r");
    put_output(&graph, "y");
    return model_of(&graph, 8, 13);
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

/* Each load ends with a graph or with a message; the sanitizers see the rest. */
static void load_and_forget(struct folder *folder, const struct bytes *model, int *accepted)
{
    struct weft_graph *graph = NULL;
    if (load_model(folder, model, &graph) == WEFT_OK) {
        assert_non_null(graph);
        assert_int_equal(weft_validate(graph), WEFT_OK);
        weft_graph_destroy(graph);
        ++*accepted;
    } else {
        assert_null(graph);
        assert_true(strlen(weft_last_error(folder->context)) > 0);
    }
}

static void test_every_truncation(void **state)
{
    (void)state;
    const struct bytes whole = rich_model();
    struct folder folder = open_folder();
    int accepted = 0;
    for (struct bytes model = whole; model.count-- > 0;)
        load_and_forget(&folder, &model, &accepted);
    assert_int_equal(accepted, 0);
    load_and_forget(&folder, &whole, &accepted);
    assert_int_equal(accepted, 1);
    close_folder(&folder);
}

static void test_every_bent_byte(void **state)
{
    (void)state;
    static const uint8_t masks[] = {0x01, 0x80, 0xff, 0x08};
    const struct bytes whole = rich_model();
    struct folder folder = open_folder();
    int accepted = 0;
    for (size_t i = 0; i < whole.count; i++)
        for (size_t m = 0; m < sizeof masks; m++) {
            struct bytes model = whole;
            model.data[i] ^= masks[m];
            load_and_forget(&folder, &model, &accepted);
        }
    assert_true(accepted > 0); /* letters of names, elements of tensors */
    close_folder(&folder);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Whichever allocation is refused, loading ends with WEFT_ERR_NOMEM and gives back everything it took. */
static void test_every_refused_allocation(void **state)
{
    (void)state;
    struct folder folder = open_folder();
    const struct bytes model = rich_model();
    write_file(folder.model, model.data, model.count);
    struct scarce scarce = {.left = -1};
    const struct weft_allocator allocator = scarce_allocator(&scarce);
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator};
    struct weft_context *context = NULL;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    int status = WEFT_ERR_NOMEM, granted = 0;
    for (; status != WEFT_OK && granted < 10000; granted++) {
        struct weft_graph *graph = NULL;
        const int64_t before = scarce.blocks;
        scarce.left = granted;
        status = weft_load(context, folder.model, &graph);
        assert_true(status == WEFT_OK || status == WEFT_ERR_NOMEM);
        scarce.left = -1;
        if (status == WEFT_OK)
            weft_graph_destroy(graph);
        assert_true(scarce.blocks <= before + 1); /* the text of the error may have grown, and stays */
    }
    assert_int_equal(status, WEFT_OK);
    assert_true(granted > 5);
    weft_close(context);
    assert_int_equal(scarce.blocks, 0);
    close_folder(&folder);
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

static void expect_bytes(const void *data, size_t count, const char *text)
{
    struct bytes model = {.count = 0};
    put_raw(&model, data, count);
    expect_error(&model, WEFT_ERR_SYNTAX, text);
}

static void test_wire_errors(void **state)
{
    (void)state;
    expect_bytes("", 0, "not an ONNX model: the file is empty");
    expect_bytes("\x08\x08", 2, "not an ONNX model: it has no graph");
    expect_bytes("\x08\x08\x3a", 3, "at byte 3, a number runs past the end of its message");
    expect_bytes("\x08\x08\x3a\x05\x0a", 5, "at byte 2, a field runs past the end of its message");
    expect_bytes("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
                 "at byte 0, a field runs past the end of its message");
    expect_bytes("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "at byte 1, a number is longer than 64 bits");
    expect_bytes("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "at byte 1, a number is longer than 64 bits");
    expect_bytes("\x0b\x00", 2, "at byte 0, a field has a wire type that ONNX does not use");
    expect_bytes("\x02\x00", 2, "at byte 0, a field has an impossible number");
    expect_bytes("\x38\x01", 2, "at byte 0, a field that holds bytes is encoded as a number");
    expect_bytes("\x0a\x01\x41", 3, "at byte 0, a field that holds an integer is encoded as something else");
    expect_bytes("\x3a\x02\x08\x01", 4, "at byte 2, a field that holds bytes is encoded as a number");
    expect_bytes("this is text", 12, "not a readable ONNX file");
}

static void test_packed_lists(void **state)
{
    (void)state;
    const uint8_t data[] = {0x0a, 0x03, 1, 0xac, 0x02, 0x08, 7, 0x12, 0x04, 0, 0, 0x80, 0x3f, 0x12, 0x03, 1, 2, 3};
    struct weft_wire wire = weft_wire_open((struct weft_span){data, sizeof data});
    struct weft_wire_field field;
    uint64_t bits;
    assert_true(weft_wire_next(&wire, &field));
    struct weft_wire_list list = weft_wire_list(&wire, &field, WEFT_WIRE_VARINT);
    assert_true(weft_wire_list_next(&list, &bits) && bits == 1);
    assert_true(weft_wire_list_next(&list, &bits) && bits == 300);
    assert_false(weft_wire_list_next(&list, &bits));
    assert_true(weft_wire_next(&wire, &field));
    list = weft_wire_list(&wire, &field, WEFT_WIRE_VARINT);
    assert_true(weft_wire_list_next(&list, &bits) && bits == 7);
    assert_false(weft_wire_list_next(&list, &bits));
    assert_true(weft_wire_next(&wire, &field));
    list = weft_wire_list(&wire, &field, WEFT_WIRE_FIXED32);
    assert_true(weft_wire_list_next(&list, &bits) && bits == 0x3f800000);
    assert_true(weft_wire_next(&wire, &field));
    list = weft_wire_list(&wire, &field, WEFT_WIRE_FIXED32);
    assert_false(weft_wire_list_next(&list, &bits));
    assert_string_equal(wire.error, "a packed list ends within an element");
    assert_ptr_equal(wire.culprit, data + 13);
    assert_false(weft_wire_next(&wire, &field));
}

static void test_deep_nesting(void **state)
{
    (void)state;
    struct bytes inner = {.count = 0};
    put_node(&inner, "Relu", "x", "r");
    put_output(&inner, "r");
    for (int depth = 0; depth < 80; depth++) {
        struct bytes outer = {.count = 0}, node = node_of("If", "c", "r");
        put_graph_attribute(&node, "then_branch", &inner);
        put_graph_attribute(&node, "else_branch", &(struct bytes){.count = 0});
        put_message(&outer, 1, &node);
        put_output(&outer, "r");
        inner = outer;
    }
    struct bytes constant = inner, known = tensor_of("c", BOOL, 0, NULL);
    put_input(&inner, "x", "2");
    put_value(&inner, 11, "c", BOOL, "");
    put_input(&constant, "x", "2");
    put_integer(&known, 5, 1);
    put_message(&constant, 5, &known);
    const struct bytes model = model_of(&inner, 8, 13), chosen = model_of(&constant, 8, 13);
    expect_error(&model, WEFT_ERR_INVALID, "nested more than 64 deep");
    expect_error(&chosen, WEFT_ERR_UNSUPPORTED, "subgraphs are nested more than 64 deep");
}

/* --- models ------------------------------------------------------------------------------------------------------- */

/* Everything at once: counts over the graph and its subgraphs, nodes behind an unknown op, other domains, other errors.
 */
static void test_all_unsupported_ops_at_once(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, yes = {.count = 0}, no = {.count = 0};
    put_input(&graph, "x", "2");
    put_value(&graph, 11, "c", BOOL, "");
    put_node(&graph, "Lepton", "x", "a");
    put_node(&graph, "Relu", "a", "b");
    put_node(&graph, "Lepton", "b", "d");
    struct bytes node = node_of("Boson", "x", "e");
    put_text(&node, 7, "com.microsoft");
    put_message(&graph, 1, &node);
    node = node_of("Relu", "x", "g");
    put_int_attribute(&node, "strange", 1);
    put_message(&graph, 1, &node);
    put_node(&yes, "Lepton", "d", "s");
    put_output(&yes, "s");
    put_node(&no, "Quark", "x", "s");
    put_output(&no, "s");
    node = node_of("If", "c", "y");
    put_graph_attribute(&node, "then_branch", &yes);
    put_graph_attribute(&node, "else_branch", &no);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 14);
    expect_errors(&model, WEFT_ERR_UNSUPPORTED,
                  (const char *const[]){"unsupported op Lepton (opset 14): 3 nodes, first \"Lepton_a\"",
                                        "unsupported op com.microsoft.Boson: 1 node, first \"Boson_e\"",
                                        "unsupported op Quark (opset 14): 1 node, first \"Quark_s\"",
                                        "Relu_g: Relu: attribute strange is not supported at opset 14", NULL});
}

static struct bytes relu_model(const char *input, const char *output, int64_t opset)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "2");
    put_node(&graph, "Relu", input, output);
    put_output(&graph, "y");
    return model_of(&graph, 8, opset);
}

static void test_broken_graphs(void **state)
{
    (void)state;
    const struct bytes undefined = relu_model("z", "y", 13), twice = relu_model("x", "x", 13),
                       missing = relu_model("x", "z", 13), old = relu_model("x", "y", 0),
                       new = relu_model("x", "y", 29);
    expect_error(&undefined, WEFT_ERR_INVALID, "Relu_y: Relu: its input \"z\" is not defined before it");
    expect_error(&twice, WEFT_ERR_INVALID, "Relu_x: Relu: its output \"x\" is defined twice");
    expect_error(&missing, WEFT_ERR_INVALID, "y: the output is not defined by any node");
    expect_error(&old, WEFT_ERR_UNSUPPORTED, "the model uses opset 0; weft reads 1 to 28");
    expect_error(&new, WEFT_ERR_UNSUPPORTED, "the model uses opset 29; weft reads 1 to 28");
}

static void test_shapes_from_data(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "6");
    put_value(&graph, 11, "s", INT64, "2");
    put_node(&graph, "Reshape", "x,s", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    expect_error(&model, WEFT_ERR_UNSUPPORTED,
                 "Reshape_y: Reshape: input shape must be a constant or follow from extents, but it comes from input "
                 "\"s\" of the model; if that is the same in every run, fix it while loading: --fix s=FILE.npy, or "
                 "weft_load_fixed");
}

static void test_attributes(void **state)
{
    (void)state;
    struct bytes graph = {.count = 0}, node = node_of("Concat", "x,x", "y"), mixed = {.count = 0},
                 payload = {.count = 0};
    put_float_attribute(&node, "axis", 0);
    put_input(&graph, "x", "2");
    mixed = graph;
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes wrong_kind = model_of(&graph, 8, 13);
    node = node_of("Concat", "x,x", "y");
    put_integer(&payload, 3, 0);
    put_float(&payload, 2, 0);
    put_attribute(&node, "axis", 2, &payload);
    put_message(&mixed, 1, &node);
    put_output(&mixed, "y");
    const struct bytes two_kinds = model_of(&mixed, 8, 13);
    expect_error(&wrong_kind, WEFT_ERR_INVALID, "Concat_y: Concat: attribute axis holds a float instead of an integer");
    expect_error(&two_kinds, WEFT_ERR_SYNTAX, "an attribute holds values of two kinds");
}

/* --- external data ------------------------------------------------------------------------------------------------ */

static void put_external(struct bytes *tensor, const char *key, const char *value)
{
    struct bytes entry = {.count = 0};
    put_text(&entry, 1, key);
    put_text(&entry, 2, value);
    put_message(tensor, 13, &entry);
}

static struct bytes external_model(const char *location, const char *offset, const char *length)
{
    struct bytes graph = {.count = 0}, tensor = tensor_of("w", FLOAT, 1, &(int64_t){3});
    put_external(&tensor, "location", location);
    if (offset)
        put_external(&tensor, "offset", offset);
    if (length)
        put_external(&tensor, "length", length);
    put_integer(&tensor, 14, 1);
    put_message(&graph, 5, &tensor);
    put_output(&graph, "w");
    return model_of(&graph, 8, 13);
}

static void expect_refused(const char *location, const char *offset, const char *length, int status, const char *text)
{
    const struct bytes model = external_model(location, offset, length);
    expect_error(&model, status, text);
}

static void test_external_refusals(void **state)
{
    (void)state;
    const char *wrong_path = "is not a relative path without \"..\"";
    expect_refused("/etc/hostname", NULL, NULL, WEFT_ERR_INVALID, wrong_path);
    expect_refused("../w.bin", NULL, NULL, WEFT_ERR_INVALID, wrong_path);
    expect_refused("a/../../w.bin", NULL, NULL, WEFT_ERR_INVALID, wrong_path);
    expect_refused("a/..", NULL, NULL, WEFT_ERR_INVALID, wrong_path);
    expect_refused("..\\w.bin", NULL, NULL, WEFT_ERR_INVALID, wrong_path);
    expect_refused("", NULL, NULL, WEFT_ERR_INVALID, wrong_path);
    expect_refused("w.bin", "-4", NULL, WEFT_ERR_INVALID, "offset or length of its data file is not a number");
    expect_refused("w.bin", NULL, "99999999999999999999", WEFT_ERR_INVALID,
                   "offset or length of its data file is not a number");
    expect_refused("absent.bin", NULL, NULL, WEFT_ERR_IO, "absent.bin: cannot be read");
    expect_refused("absent.bin", NULL, NULL, WEFT_ERR_IO, "its data file \"absent.bin\" has to lie beside the model");
}

/* The same model from memory: its data is looked for in the folder that is named, and nowhere else. */
static void try_external_memory(const struct folder *folder, const struct bytes *model, int status)
{
    struct weft_graph *graph = NULL;
    struct weft_load_options options = {.size = sizeof options, .name = "held"};
    assert_int_equal(weft_load_memory(folder->context, model->data, model->count, &options, &graph), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(folder->context), "may name none, unless its folder is given"));
    options.folder = folder->path;
    assert_int_equal(weft_load_memory(folder->context, model->data, model->count, &options, &graph), status);
    if (status == WEFT_OK)
        weft_graph_destroy(graph);
}

/* Loads a model beside a data file of 20 bytes and returns the status; `text` is what the errors must contain. */
static void try_external(const char *location, const char *offset, const char *length, int status, const char *text)
{
    struct folder folder = open_folder();
    char data[100], link[100];
    snprintf(data, sizeof data, "%s/w.bin", folder.path);
    snprintf(link, sizeof link, "%s/link.bin", folder.path);
    write_file(data, (const float[]){9, 1, 2, 3, 8}, 20);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    const struct bytes model = external_model(location, offset, length);
    struct weft_graph *graph = NULL;
    char *printed = NULL;
    assert_int_equal(load_model(&folder, &model, &graph), status);
    if (status == WEFT_OK) {
        assert_int_equal(weft_print(graph, &printed), WEFT_OK);
        assert_non_null(strstr(printed, text));
        weft_free_text(folder.context, printed);
        weft_graph_destroy(graph);
    } else if (!strstr(weft_last_error(folder.context), text)) {
        fail_msg("\"%s\" is not in: %s", text, weft_last_error(folder.context));
    }
    try_external_memory(&folder, &model, status);
    remove(data);
    remove(link);
    close_folder(&folder);
}

static void test_external_data(void **state)
{
    (void)state;
    try_external("w.bin", "4", "12", WEFT_OK, "%w: f32[3] = const value=[1 2 3]");
    try_external("./w.bin", NULL, NULL, WEFT_OK, "%w: f32[3] = const value=[9 1 2]");
    try_external("w.bin", "9", "12", WEFT_ERR_INVALID, "12 at offset 9 of \"w.bin\" (20 bytes)");
    try_external("w.bin", "18446744073709551615", "12", WEFT_ERR_INVALID, "at offset 18446744073709551615");
    try_external("w.bin", "0", "16", WEFT_ERR_INVALID, "its shape asks for 12 bytes, but it has 16");
    try_external("link.bin", NULL, NULL, WEFT_ERR_INVALID, "is a link out of the model's folder");
}

static void test_external_pipe(void **state)
{
    (void)state;
    struct folder folder = open_folder();
    char pipe[100];
    snprintf(pipe, sizeof pipe, "%s/w.bin", folder.path);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    const struct bytes model = external_model("w.bin", NULL, NULL);
    struct weft_graph *graph = NULL;
    assert_int_equal(load_model(&folder, &model, &graph), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(folder.context), "w.bin: cannot be read: not a regular file"));
    remove(pipe);
    close_folder(&folder);
}

/* Rows of a weight of 3 GiB, which are zeros that no disk holds: to load and to compile it reads next to none of it. */
static void test_large_external_data(void **state)
{
    (void)state;
    const int64_t extent[] = {3 << 18, 1024};
    struct bytes graph = {.count = 0}, tensor = tensor_of("w", FLOAT, 2, extent);
    put_external(&tensor, "location", "w.bin");
    put_integer(&tensor, 14, 1);
    put_message(&graph, 5, &tensor);
    put_value(&graph, 11, "i", INT64, "4");
    put_node(&graph, "Gather", "w,i", "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 13);
    struct folder folder = open_folder();
    struct rusage before, after;
    struct weft_graph *loaded = NULL;
    struct weft_plan *plan = NULL;
    char data[100];
    snprintf(data, sizeof data, "%s/w.bin", folder.path);
    write_file(data, "", 0);
    assert_int_equal(truncate(data, (off_t)3 << 30), 0);
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(load_model(&folder, &model, &loaded), WEFT_OK);
    assert_int_equal(weft_compile(loaded, NULL, &plan), WEFT_OK);
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 32 << 10); /* KiB */
    weft_plan_destroy(plan);
    weft_graph_destroy(loaded);
    remove(data);
    close_folder(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_every_bent_byte),
        cmocka_unit_test(test_every_refused_allocation),
        cmocka_unit_test(test_wire_errors),
        cmocka_unit_test(test_packed_lists),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_all_unsupported_ops_at_once),
        cmocka_unit_test(test_broken_graphs),
        cmocka_unit_test(test_shapes_from_data),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_external_refusals),
        cmocka_unit_test(test_external_data),
        cmocka_unit_test(test_external_pipe),
        cmocka_unit_test(test_large_external_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
