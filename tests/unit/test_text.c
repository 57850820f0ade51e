/* SPDX-License-Identifier: Apache-2.0 */
/* test_text.c: what test files cannot say about the text form: unnamed values,
 * hostile bytes, and that FORMAT.md keeps its word. */
#include "ir/ir.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct weft_context *open_context(void)
{
    struct weft_context *context = NULL;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    return context;
}

static struct weft_graph *parse(struct weft_context *context, const char *text)
{
    struct weft_graph *graph = NULL;
    if (weft_parse(context, text, strlen(text), "text", &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    return graph;
}

static void assert_prints(const struct weft_graph *graph, const char *expected)
{
    char *text = NULL;
    assert_int_equal(weft_print(graph, &text), WEFT_OK);
    assert_string_equal(text, expected);
    weft_free_text(graph->context, text);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static void test_unnamed_values_are_numbered_around_names(void **state)
{
    (void)state;
    struct weft_context *context = open_context();
    struct weft_graph *graph = NULL;
    assert_int_equal(weft_graph_create(context, "f", &graph), WEFT_OK);
    const weft_dim extent[] = {weft_extent(2)};
    weft_val x, y[4];
    assert_int_equal(weft_param(graph, NULL, WEFT_F32, 1, extent, &x), WEFT_OK);
    const char *names[] = {"1", NULL, "a b", NULL};
    for (int i = 0; i < 4; i++)
        assert_int_equal(weft_append(graph,
                                     &(struct weft_op){.size = sizeof(struct weft_op),
                                                       .op = "neg",
                                                       .name = names[i],
                                                       .operand = i ? &y[i - 1] : &x,
                                                       .operands = 1},
                                     &y[i]),
                         WEFT_OK);
    assert_int_equal(weft_return(graph, &y[3], 1), WEFT_OK);
    assert_prints(graph, "weft 1\n"
                         "graph @f(%0: f32[2]) {\n"
                         "  %1: f32[2] = neg %0\n"
                         "  %2: f32[2] = neg %1\n"
                         "  %\"a b\": f32[2] = neg %2\n"
                         "  %3: f32[2] = neg %\"a b\"\n"
                         "  return %3\n"
                         "}\n");
    assert_string_equal(weft_value_text(graph, x), "%0");
    assert_string_equal(weft_value_text(graph, y[1]), "%2");
    assert_string_equal(weft_value_text(graph, y[2]), "%\"a b\"");
    assert_string_equal(weft_value_text(graph, y[3]), "%3");
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- several graphs, limits --------------------------------------------------------------------------------------- */

struct indexed {
    struct weft_context *context;
    const char *text;
    uint32_t index, count;
    struct weft_graph *graph;
};

static int parse_indexed(void *arg)
{
    struct indexed *call = arg;
    call->graph = weft_parse_graph(call->context, call->text, strlen(call->text), call->index, NULL, &call->count);
    return WEFT_OK;
}

static void test_graphs_of_a_text_are_reached_by_number(void **state)
{
    (void)state;
    struct weft_context *context = open_context();
    struct indexed call = {.context = context,
                           .text =
                               "weft 1\ngraph @a(%x: f32[2]{0}) { return %x }\n"
                               "graph @\"}\"(%x: f32[2]) { # }\n  graph @in() {\n return %x\n }\n nonsense \"}\" \n}\n"
                               "graph @c(%x: f32[2]) { return %x }\n"};
    const char *names[] = {"a", NULL, "c", NULL};
    for (call.index = 0; call.index < 4; call.index++) {
        const int status = weft_protected(context, parse_indexed, &call);
        assert_int_equal(status == WEFT_OK, names[call.index] != NULL);
        assert_int_equal(call.count, 3);
        if (!names[call.index])
            continue;
        assert_string_equal(call.graph->name, names[call.index]);
        weft_graph_destroy(call.graph);
    }
    assert_non_null(strstr(weft_last_error(context), "the text has only 3 graphs"));
    weft_close(context);
}

static void test_an_empty_text_has_no_graph(void **state)
{
    (void)state;
    struct weft_context *context = open_context();
    struct weft_graph *graph = NULL;
    assert_int_equal(weft_parse(context, "# nothing\n", 10, "empty.weft", &graph), WEFT_ERR_SYNTAX);
    assert_null(graph);
    assert_string_equal(weft_last_error(context), "empty.weft:2:1: there is no graph in the text");
    weft_close(context);
}

static void test_bodies_nest_only_so_deep(void **state)
{
    (void)state;
    enum { DEPTH = 5000 };
    char *text = malloc(DEPTH * 20);
    size_t length = 0;
    for (int i = 0; i < DEPTH; i++)
        length += (size_t)sprintf(text + length, "graph @f() {\n");
    for (int i = 0; i < DEPTH; i++)
        length += (size_t)sprintf(text + length, "}\n");
    struct weft_context *context = open_context();
    struct weft_graph *graph = NULL;
    assert_true(weft_parse(context, text, length, "deep", &graph) < 0);
    weft_close(context);
    free(text);
}

/* Groups and bodies are found by name whatever their number. */
static void test_many_groups_and_bodies_are_told_apart(void **state)
{
    (void)state;
    enum { MANY = 300 };
    struct weft_context *context = open_context();
    struct weft_text text = {.context = context};
    weft_text_add(&text, "weft 1\ngraph @f(%c: bool[], %x: f32[2]) {\n");
    for (int i = 0; i < MANY; i++)
        weft_text_format(&text,
                         "  graph @b%d(%%a: f32[2]) {\n    fuse @g%d {\n      %%y: f32[2] = relu %%a\n    }\n"
                         "    return %%y\n  }\n  %%v%d: f32[2] = if %%c, %%x then=@b%d else=@b%d\n",
                         i, i, i, i, i / 2);
    for (int i = 0; i < MANY; i++)
        weft_text_format(&text, "  fuse @g%d {\n    %%w%d: f32[2] = neg %%v%d\n  }\n", i, i, i);
    weft_text_add(&text, "  return %w0\n}\n");
    struct weft_graph *graph = NULL;
    if (weft_parse(context, text.data, text.length, "many", &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    assert_int_equal(graph->bodies, MANY);
    assert_int_equal(graph->groups, MANY + 1);
    assert_prints(graph, text.data);
    weft_graph_destroy(graph);
    weft_text_close(&text);
    weft_close(context);
}

static void test_errors_are_limited(void **state)
{
    (void)state;
    char text[20000];
    size_t length = (size_t)sprintf(text, "graph @f(%%x: f32[2]) {\n");
    for (int i = 0; i < 500; i++)
        length += (size_t)sprintf(text + length, "  %%y%d: f32[2] = nop %%x\n", i);
    struct weft_context *context = open_context();
    struct weft_graph *graph = NULL;
    assert_int_equal(weft_parse(context, text, length, "many", &graph), WEFT_ERR_INVALID);
    int lines = 1;
    for (const char *c = weft_last_error(context); *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 50);
    weft_close(context);
}

/* --- numbers do not depend on the locale -------------------------------------------------------------------------- */

static void test_numbers_ignore_the_locale(void **state)
{
    (void)state;
    const char *text = "weft 1\n"
                       "graph @f(%x: f32[2]) {\n"
                       "  %c: f32[2] = const value=[0.5 1.25e-10]\n"
                       "  %y: f32[2] = leaky_relu %x alpha=0.125\n"
                       "  return %y, %c\n"
                       "}\n";
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C"};
    for (unsigned i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (!setlocale(LC_ALL, locales[i]))
            continue; /* not installed here; "C" always is */
        struct weft_context *context = open_context();
        struct weft_graph *graph = parse(context, text);
        assert_prints(graph, text);
        weft_graph_destroy(graph);
        weft_close(context);
    }
    setlocale(LC_ALL, "C");
}

/* --- constants by content address, messages under lines ----------------------------------------------------------- */

static const char *place_blob(void *user, const void *data, size_t bytes, uint64_t *ret_offset)
{
    (void)data;
    assert_int_equal(bytes, 65 * 4);
    *ret_offset = 128;
    return user;
}

struct print {
    const struct weft_graph *graph;
    struct weft_print_options options;
    struct weft_text text;
};

static int print_with_options(void *arg)
{
    struct print *call = arg;
    call->text.length = 0;
    weft_print_graph(call->graph, &call->options, &call->text);
    return WEFT_OK;
}

static void test_large_constants_have_three_forms(void **state)
{
    (void)state;
    char text[1024] = "graph @f() {\n  %c: f32[65] = const value=[";
    for (int i = 0; i < 65; i++)
        strcat(text, "1 ");
    strcat(text, "]\n  return %c\n}\n");
    struct weft_context *context = open_context();
    struct weft_graph *graph = parse(context, text);
    struct print call = {.graph = graph, .text = {.context = context}};
    assert_int_equal(weft_protected(context, print_with_options, &call), WEFT_OK);
    assert_non_null(strstr(call.text.data, "const blob="));
    struct weft_graph *again = NULL; /* nobody has the bytes here */
    assert_int_equal(weft_parse(context, call.text.data, call.text.length, "t", &again), WEFT_ERR_INVALID);
    call.options = (struct weft_print_options){.all_inline = true};
    assert_int_equal(weft_protected(context, print_with_options, &call), WEFT_OK);
    assert_non_null(strstr(call.text.data, "const value=[1 1 1"));
    char path[] = "w.bin";
    call.options = (struct weft_print_options){.place_blob = place_blob, .user = path};
    assert_int_equal(weft_protected(context, print_with_options, &call), WEFT_OK);
    assert_non_null(strstr(call.text.data, "const file=\"w.bin\" offset=128"));
    weft_text_close(&call.text);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void test_messages_stand_under_their_lines(void **state)
{
    (void)state;
    struct weft_context *context = open_context();
    struct weft_graph *graph = parse(context, "graph @f(%x: f32[2]) {\n  %y: f32[2] = neg %x\n  return %y\n}\n");
    const char *under[2] = {NULL, "first\nsecond"};
    struct print call = {.graph = graph, .options = {.under = under}, .text = {.context = context}};
    assert_int_equal(weft_protected(context, print_with_options, &call), WEFT_OK);
    assert_string_equal(call.text.data, "graph @f(%x: f32[2]) {\n  %y: f32[2] = neg %x\n  # ^ first\n  # ^ second\n"
                                        "  return %y\n}\n");
    weft_text_close(&call.text);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- hostile bytes ------------------------------------------------------------------------------------------------ */

static const char *const sound = "graph @f<N>(%x: f32[N,3], %w: mut f32[2]) {\n"
                                 "  %e: i64[2] = extents value=[N 3]\n"
                                 "  fuse @g {\n"
                                 "    %a: f32[N,3]{-} = relu %x\n"
                                 "    %b: f32[N,3] = neg %a\n"
                                 "  }\n"
                                 "  %c: f32[2] = const value=[1 2]\n"
                                 "  %d: f32[2] = add %c, %w\n"
                                 "  %s: f32[N] = sum %b axes=[1]\n"
                                 "  %t: f32[3,N] = transpose %b perm=[1 0]\n"
                                 "  return %s, %t, mut %w = %d\n"
                                 "}\n";

static char *read_file(const char *name, size_t *ret_bytes)
{
    const char *source = getenv("WEFT_SOURCE");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", source ? source : ".", name);
    FILE *from = fopen(path, "rb");
    if (!from)
        fail_msg("cannot open %s", path);
    char *text = malloc(1 << 20);
    *ret_bytes = fread(text, 1, (1 << 20) - 1, from);
    text[*ret_bytes] = '\0';
    fclose(from);
    return text;
}

/* Some bytes dropped, doubled, or replaced by bytes that mean something. What parses must print, and parse again. */
static void mutate_and_parse(const char *text, size_t bytes, int rounds)
{
    static const char meaning[] = "{}[]()<>%@!=,:|+*/-#\" \n0129aNf?\\";
    struct weft_context *context = open_context();
    uint32_t random = 12345;
    char *mutant = malloc(2 * bytes + 16);
    for (int round = 0; round < rounds; round++) {
        size_t length = bytes;
        memcpy(mutant, text, bytes);
        for (int change = 0; change <= round % 4; change++) {
            random = random * 1664525u + 1013904223u;
            const size_t at = (random >> 8) % length;
            if (random >> 30 == 0) {
                memmove(mutant + at, mutant + at + 1, length - at - 1);
                length--;
            } else if (random >> 30 == 1) {
                memmove(mutant + at + 1, mutant + at, length - at);
                length++;
            } else
                mutant[at] = meaning[random % (sizeof meaning - 1)];
        }
        struct weft_graph *graph = NULL, *again = NULL;
        if (weft_parse(context, mutant, length, NULL, &graph) != WEFT_OK)
            continue;
        char *printed = NULL, *second = NULL;
        assert_int_equal(weft_print(graph, &printed), WEFT_OK);
        if (!strstr(printed, "blob=")) {
            assert_int_equal(weft_parse(context, printed, strlen(printed), NULL, &again), WEFT_OK);
            assert_int_equal(weft_print(again, &second), WEFT_OK);
            assert_string_equal(printed, second);
            weft_graph_destroy(again);
        }
        weft_free_text(context, second);
        weft_free_text(context, printed);
        weft_graph_destroy(graph);
    }
    free(mutant);
    weft_close(context);
}

static void test_mutants_of_texts_do_no_harm(void **state)
{
    (void)state;
    mutate_and_parse(sound, strlen(sound), 3000);
    static const char *const files[] = {"names",   "types", "attributes", "constants",
                                        "layouts", "plans", "bodies",     "mut"};
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
        char name[64];
        size_t bytes;
        snprintf(name, sizeof name, "tests/golden/text/%s.weft", files[i]);
        char *text = read_file(name, &bytes);
        mutate_and_parse(text, bytes, 300);
        free(text);
    }
}

/* --- FORMAT.md ---------------------------------------------------------------------------------------------------- */

static void test_the_examples_of_the_manual_parse(void **state)
{
    (void)state;
    size_t bytes;
    char *manual = read_file("ir/FORMAT.md", &bytes);
    struct weft_context *context = open_context();
    bool used[WEFT_OP_COUNT] = {false};
    int examples = 0;
    for (const char *at = manual; (at = strstr(at, "```weft\n")) != NULL; examples++) {
        at += strlen("```weft\n");
        const char *end = strstr(at, "```");
        assert_non_null(end);
        struct weft_graph *graph = NULL;
        if (weft_parse(context, at, (size_t)(end - at), "FORMAT.md", &graph) != WEFT_OK)
            fail_msg("%s", weft_last_error(context));
        weft_foreach_node(graph, n)
            used[weft_opcode_of(graph, n)] = true;
        weft_graph_destroy(graph);
        at = end + 3;
    }
    assert_true(examples >= 10);
    for (int op = 1; op < WEFT_OP_COUNT; op++) {
        char name[64];
        snprintf(name, sizeof name, "`%s`", weft_ops[op].name);
        if (!strstr(manual, name))
            fail_msg("FORMAT.md does not define %s", name);
        if (!used[op] && op != WEFT_OP_if)
            fail_msg("no example of FORMAT.md uses %s", name);
    }
    weft_close(context);
    free(manual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unnamed_values_are_numbered_around_names),
        cmocka_unit_test(test_graphs_of_a_text_are_reached_by_number),
        cmocka_unit_test(test_an_empty_text_has_no_graph),
        cmocka_unit_test(test_bodies_nest_only_so_deep),
        cmocka_unit_test(test_many_groups_and_bodies_are_told_apart),
        cmocka_unit_test(test_errors_are_limited),
        cmocka_unit_test(test_numbers_ignore_the_locale),
        cmocka_unit_test(test_large_constants_have_three_forms),
        cmocka_unit_test(test_messages_stand_under_their_lines),
        cmocka_unit_test(test_mutants_of_texts_do_no_harm),
        cmocka_unit_test(test_the_examples_of_the_manual_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
