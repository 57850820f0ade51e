/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_known.c: lengths, shapes and conditions that follow from constants and extents, however many elements that
 * goes through; and where messages point when too much is not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/ir.h"
#include "tests/unit/onnx_writer.h"

enum { PIECES = 300 };

/* "v0,v1,…" of so many names, in static memory. */
static const char *names_of(const char *prefix, unsigned count)
{
    static char room[4][8 * PIECES];
    static unsigned next;
    char *text = room[next++ % 4];
    size_t length = 0;
    for (unsigned i = 0; i < count; i++)
        length += (size_t)sprintf(text + length, "%s%s%u", i ? "," : "", prefix, i);
    return text;
}

/* Loads the model, whose graph is valid; `ret` has to be closed by close_model. */
struct loaded {
    struct folder folder;
    struct weft_graph *graph;
};

static struct loaded load(const struct bytes *model)
{
    struct loaded loaded = {.folder = open_folder()};
    if (load_model(&loaded.folder, model, &loaded.graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(loaded.folder.context));
    assert_int_equal(weft_validate(loaded.graph), WEFT_OK);
    return loaded;
}

static void close_model(struct loaded *loaded)
{
    weft_graph_destroy(loaded->graph);
    close_folder(&loaded->folder);
}

static unsigned count_op(const struct weft_graph *graph, int op)
{
    unsigned count = 0;
    weft_foreach_node(graph, n) count += weft_opcode_of(graph, n) == op;
    return count;
}

static void expect_type(const struct weft_graph *graph, unsigned result, const char *expected)
{
    struct weft_text text = {.context = graph->context};
    weft_type_print(graph->dims, weft_type_of(graph, graph->ret[result].value), &text);
    assert_string_equal(text.data, expected);
    weft_text_close(&text);
}

/* The model loads, and its first result is of that type. */
static void expect_loads(const struct bytes *graph, const char *type)
{
    const struct bytes model = model_of(graph, 8, 17);
    struct loaded loaded = load(&model);
    expect_type(loaded.graph, 0, type);
    close_model(&loaded);
}

static struct bytes concat_of(const char *inputs, const char *output)
{
    struct bytes node = node_of("Concat", inputs, output);
    put_int_attribute(&node, "axis", 0);
    return node;
}

static void put_concat(struct bytes *graph, const char *inputs, const char *output)
{
    const struct bytes node = concat_of(inputs, output);
    put_message(graph, 1, &node);
}

/* Splits x by `lengths`, puts the pieces together and expects slices and nothing that comes out of data. */
static void expect_pieces(struct bytes *graph, unsigned pieces, const char *type)
{
    put_node(graph, "Split", "x,lengths", names_of("v", pieces));
    put_concat(graph, names_of("v", pieces), "y");
    put_output(graph, "y");
    const struct bytes model = model_of(graph, 8, 17);
    struct loaded loaded = load(&model);
    assert_int_equal(count_op(loaded.graph, WEFT_OP_compress), 0);
    assert_true(count_op(loaded.graph, WEFT_OP_slice) >= pieces);
    expect_type(loaded.graph, 0, type);
    close_model(&loaded);
}

static void put_ones(struct bytes *graph, const char *name, unsigned count, int64_t one)
{
    int64_t list[PIECES];
    for (unsigned i = 0; i < count; i++)
        list[i] = one;
    put_ints(graph, name, count, list);
}

static void lengths_are_constant_whatever_their_number(void **state)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "300");
    put_ones(&graph, "lengths", PIECES, 1);
    expect_pieces(&graph, PIECES, "f32[300]");
}

static void lengths_that_are_computed_from_constants_are_known(void **state)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "600");
    put_ones(&graph, "ones", PIECES, 1);
    put_ints(&graph, "two", 1, &(int64_t){2});
    put_node(&graph, "Mul", "ones,two", "lengths");
    expect_pieces(&graph, PIECES, "f32[600]");
}

/* Each length is a node of its own: more than one step of the way to what is known has hundreds of operands. */
static void lengths_that_are_put_together_are_known(void **state)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "150");
    put_ints(&graph, "c", 1, &(int64_t){1});
    for (unsigned i = 0; i < 150; i++) {
        char name[16];
        snprintf(name, sizeof name, "l%u", i);
        put_node(&graph, "Identity", "c", name);
    }
    put_concat(&graph, names_of("l", 150), "lengths");
    expect_pieces(&graph, 150, "f32[150]");
}

/* The first length is an extent: [N 1 1 … 1]. */
static void lengths_may_follow_from_extents(void **state)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "z", "N");
    put_input(&graph, "w", "99");
    put_concat(&graph, "z,w", "x");
    put_ones(&graph, "ones", 99, 1);
    put_node(&graph, "Shape", "z", "n");
    put_concat(&graph, "n,ones", "lengths");
    expect_pieces(&graph, 100, "f32[N + 99]");
}

static void lengths_that_do_not_add_up_are_refused(void **state)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "301");
    put_ones(&graph, "lengths", PIECES, 1);
    put_node(&graph, "Split", "x,lengths", names_of("v", PIECES));
    put_output(&graph, "v0");
    const struct bytes model = model_of(&graph, 8, 17);
    expect_error(&model, WEFT_ERR_INVALID,
                 "Split_v0: Split: the lengths add up to 300, which is not known to be the extent of axis 0, 301");
}

/* In the body of an `if`, where no extent can come out of data. */
static void lengths_are_known_in_bodies(void **state)
{
    struct bytes graph = {.count = 0}, body = {.count = 0};
    put_text(&body, 2, "body");
    put_node(&body, "Split", "x,lengths", names_of("v", 100));
    put_concat(&body, names_of("v", 100), "joined");
    put_output(&body, "joined");
    put_input(&graph, "x", "200");
    put_value(&graph, 11, "c", 9, "");
    put_ones(&graph, "ones", 100, 1);
    put_ints(&graph, "two", 1, &(int64_t){2});
    put_node(&graph, "Mul", "ones,two", "lengths");
    struct bytes node = node_of("If", "c", "y");
    put_graph_attribute(&node, "then_branch", &body);
    put_graph_attribute(&node, "else_branch", &body);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    expect_loads(&graph, "f32[200]");
}

/* A condition that is known outside is known in a body: the inner `if` is its branch. */
static void conditions_are_known_in_bodies(void **state)
{
    struct bytes graph = {.count = 0}, body = {.count = 0}, inner = {.count = 0}, other = {.count = 0};
    put_text(&inner, 2, "inner");
    put_node(&inner, "Neg", "x", "p");
    put_output(&inner, "p");
    put_text(&other, 2, "other");
    put_concat(&other, "x,x", "p");
    put_output(&other, "p");
    struct bytes node = node_of("If", "known", "q");
    put_graph_attribute(&node, "then_branch", &inner);
    put_graph_attribute(&node, "else_branch", &other);
    put_text(&body, 2, "body");
    put_message(&body, 1, &node);
    put_output(&body, "q");
    put_input(&graph, "x", "4");
    put_value(&graph, 11, "c", 9, "");
    put_ints(&graph, "one", 1, &(int64_t){1});
    put_ints(&graph, "two", 1, &(int64_t){2});
    put_node(&graph, "Less", "one,two", "known");
    node = node_of("If", "c", "y");
    put_graph_attribute(&node, "then_branch", &body);
    put_graph_attribute(&node, "else_branch", &body);
    put_message(&graph, 1, &node);
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 17);
    struct loaded loaded = load(&model);
    expect_type(loaded.graph, 0, "f32[4]");
    assert_int_equal(count_op(loaded.graph, WEFT_OP_if), 1);
    close_model(&loaded);
}

/* A shape that is read from a table of 300 numbers, and one that a symbol is put into. */
static void shapes_may_be_picked_from_large_tables(void **state)
{
    struct bytes graph = {.count = 0};
    int64_t table[PIECES];
    for (int64_t i = 0; i < PIECES; i++)
        table[i] = i % 7;
    put_input(&graph, "x", "N 6");
    put_ints(&graph, "table", PIECES, table);
    put_ints(&graph, "place", 2, (const int64_t[]){289, 290}); /* 2 and 3 */
    put_node(&graph, "Gather", "table,place", "picked");
    put_node(&graph, "Shape", "x", "s");
    put_concat(&graph, "s,table", "mixed");
    put_ints(&graph, "first", 1, &(int64_t){0});
    put_node(&graph, "Gather", "mixed,first", "n");
    put_concat(&graph, "n,picked", "shape");
    put_node(&graph, "Reshape", "x,shape", "y");
    put_output(&graph, "y");
    expect_loads(&graph, "f32[N,2,3]");
}

/* Factors that are computed, in floats. */
static void factors_may_be_computed(void **state)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "1 1 4 6");
    put_ints(&graph, "twos", 4, (const int64_t[]){1, 1, 3, 5});
    put_ints(&graph, "halves", 4, (const int64_t[]){1, 1, 2, 2});
    struct bytes cast = node_of("Cast", "twos", "a");
    put_int_attribute(&cast, "to", 1);
    put_message(&graph, 1, &cast);
    cast = node_of("Cast", "halves", "b");
    put_int_attribute(&cast, "to", 1);
    put_message(&graph, 1, &cast);
    put_node(&graph, "Div", "a,b", "factors");
    put_node(&graph, "Resize", "x,,factors", "y");
    put_output(&graph, "y");
    expect_loads(&graph, "f32[1,1,6,15]");
}

/* A tensor of as many axes as there can be has no room for one that repeats. */
static void tensors_of_all_axes_are_repeated(void **state)
{
    struct bytes graph = {.count = 0};
    char extents[4 * WEFT_MAX_RANK] = "2 N", type[8 * WEFT_MAX_RANK] = "f32[200,N";
    int64_t repeats[WEFT_MAX_RANK] = {100, 1};
    for (int i = 2; i < WEFT_MAX_RANK; i++) {
        strcat(extents, " 1");
        strcat(type, i == 2 ? ",70" : ",1");
        repeats[i] = i == 2 ? 70 : 1;
    }
    strcat(type, "]");
    put_input(&graph, "x", extents);
    put_ints(&graph, "repeats", WEFT_MAX_RANK, repeats);
    put_node(&graph, "Tile", "x,repeats", "y");
    put_output(&graph, "y");
    expect_loads(&graph, type);
}

/* The sum of 300 lengths that are not known is more than an expression can say: where is that? */
static void what_cannot_be_said_has_a_place(void **state)
{
    struct bytes graph = {.count = 0};
    put_input(&graph, "x", "300");
    put_value(&graph, 11, "lengths", 7, "300");
    put_node(&graph, "Split", "x,lengths", names_of("v", PIECES));
    put_concat(&graph, names_of("v", PIECES), "y");
    put_output(&graph, "y");
    const struct bytes model = model_of(&graph, 8, 17);
    expect_error(&model, WEFT_ERR_UNSUPPORTED, "model.onnx: Concat_y: the expression of an extent is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_constant_whatever_their_number),
        cmocka_unit_test(lengths_that_are_computed_from_constants_are_known),
        cmocka_unit_test(lengths_that_are_put_together_are_known),
        cmocka_unit_test(lengths_may_follow_from_extents),
        cmocka_unit_test(lengths_that_do_not_add_up_are_refused),
        cmocka_unit_test(lengths_are_known_in_bodies),
        cmocka_unit_test(conditions_are_known_in_bodies),
        cmocka_unit_test(shapes_may_be_picked_from_large_tables),
        cmocka_unit_test(factors_may_be_computed),
        cmocka_unit_test(tensors_of_all_axes_are_repeated),
        cmocka_unit_test(what_cannot_be_said_has_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
