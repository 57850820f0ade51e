/* SPDX-License-Identifier: Apache-2.0 */
/* test_viz.c: what weft_dot writes is a graph that cgraph reads back, of the right nodes and edges; the goldens of its
 * text are in tests/dot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weft/viz.h"

#include <cgraph.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The DOT of a text, owned by the caller. */
static char *draw(struct weft_context *context, const char *text, const struct weft_dot_options *options)
{
    struct weft_graph *graph;
    char *dot = NULL;
    if (weft_parse(context, text, strlen(text), "test", &graph) < 0)
        fail_msg("%s", weft_last_error(context));
    if (weft_dot(graph, options, &dot) < 0)
        fail_msg("%s", weft_last_error(context));
    weft_graph_destroy(graph);
    return dot;
}

static Agraph_t *read_back(char *dot)
{
    Agraph_t *graph = agmemread(dot);
    assert_non_null(graph);
    return graph;
}

/* cgraph takes char * for what it only reads. */
static Agnode_t *find(Agraph_t *graph, const char *name)
{
    return agnode(graph, (char *)name, 0);
}

static const char *attribute(void *object, const char *name)
{
    return agget(object, (char *)name);
}

static int open_context(void **state)
{
    return weft_open(NULL, (struct weft_context **)state);
}

static int close_context(void **state)
{
    weft_close(*state);
    return 0;
}

static const char diamond[] = "weft 1\n"
                              "graph @diamond(%x: f32[4,4]) {\n"
                              "  %w: f32[4] = const value=2.0\n"
                              "  %b: f32[4,4] = bcast %w dims=[1]\n"
                              "  %l: f32[4,4] = mul %x, %b\n"
                              "  %r: f32[4,4] = exp %x\n"
                              "  %y: f32[4,4] = add %l, %r\n"
                              "  return %y\n"
                              "}\n";

static void constants_fold_and_edges_are_right(void **state)
{
    char *dot = draw(*state, diamond, NULL);
    Agraph_t *graph = read_back(dot);
    assert_int_equal(agnnodes(graph), 5); /* x, l, r, y, return */
    assert_int_equal(agnedges(graph), 5);
    assert_null(find(graph, "w"));
    assert_null(find(graph, "b"));
    Agnode_t *l = find(graph, "l"), *y = find(graph, "y");
    assert_non_null(l);
    assert_non_null(agedge(graph, l, y, NULL, 0));
    const char *label = attribute(l, "label");
    assert_true(aghtmlstr((char *)label));
    assert_non_null(strstr(label, "%b = bcast of 2 f32[4]"));
    assert_string_equal(attribute(l, "id"), "l");
    agclose(graph);
    weft_free_text(*state, dot);
}

static void the_same_graph_gives_the_same_text(void **state)
{
    char *one = draw(*state, diamond, NULL), *two = draw(*state, diamond, NULL);
    assert_string_equal(one, two);
    weft_free_text(*state, one);
    weft_free_text(*state, two);
}

static void focus_keeps_the_neighbourhood(void **state)
{
    static const char chain[] = "weft 1\n"
                                "graph @chain(%x: f32[8]) {\n"
                                "  %a: f32[8] = exp %x\n"
                                "  %b: f32[8] = neg %a\n"
                                "  %c: f32[8] = abs %b\n"
                                "  %d: f32[8] = relu %c\n"
                                "  %e: f32[8] = tanh %d\n"
                                "  return %e\n"
                                "}\n";
    const struct weft_dot_options near = {.size = sizeof near, .focus = "c", .radius = 1};
    char *dot = draw(*state, chain, &near);
    Agraph_t *graph = read_back(dot);
    assert_int_equal(agnnodes(graph), 3);
    assert_non_null(find(graph, "b"));
    assert_non_null(find(graph, "d"));
    assert_non_null(strstr(attribute(find(graph, "b"), "label"), "1 neighbour not shown"));
    assert_non_null(strstr(attribute(graph, "label"), "3 nodes of 5"));
    agclose(graph);
    weft_free_text(*state, dot);

    const struct weft_dot_options cut = {.size = sizeof cut, .max_nodes = 2};
    dot = draw(*state, chain, &cut);
    graph = read_back(dot);
    assert_int_equal(agnnodes(graph), 3); /* x, a, b */
    agclose(graph);
    weft_free_text(*state, dot);
}

static void an_unknown_focus_is_an_error(void **state)
{
    const struct weft_dot_options options = {.size = sizeof options, .focus = "nowhere"};
    struct weft_graph *graph;
    char *dot = NULL;
    assert_int_equal(weft_parse(*state, diamond, strlen(diamond), "test", &graph), WEFT_OK);
    assert_int_equal(weft_dot(NULL, NULL, &dot), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_dot(graph, NULL, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_dot(graph, &options, &dot), WEFT_ERR_ARGUMENT);
    assert_null(dot);
    assert_non_null(strstr(weft_last_error(*state), "nowhere"));
    weft_graph_destroy(graph);
}

static void times_are_shown(void **state)
{
    const char *name[] = {"%l", "r", "gone", "l"}; /* with or without %; several steps for one value add up */
    const int64_t ns[] = {1000000, 1000000, 0, 2000000};
    const struct weft_dot_options options = {.size = sizeof options, .heat_name = name, .heat_ns = ns, .heats = 4};
    char *dot = draw(*state, diamond, &options);
    Agraph_t *graph = read_back(dot);
    assert_non_null(strstr(attribute(find(graph, "l"), "label"), "3.000 ms, 75.0 %"));
    assert_non_null(strstr(attribute(find(graph, "r"), "label"), "1.000 ms, 25.0 %"));
    assert_non_null(strstr(attribute(graph, "label"), "4.000 ms"));
    agclose(graph);
    weft_free_text(*state, dot);
}

/* The time of a group is that of the box, and of no node in it. */
static void a_group_has_one_time(void **state)
{
    static const char text[] = "graph @f(%x: f32[8]) {\n"
                               "  %a: f32[8] = exp %x\n"
                               "  fuse @both ! two_at_once {\n"
                               "    %b: f32[8]{-} = neg %a\n"
                               "    %c: f32[8] = relu %b\n"
                               "  }\n"
                               "  fuse @alone {\n"
                               "    %d: f32[8] = abs %c ! own.abs\n"
                               "  }\n"
                               "  return %d\n"
                               "}\n";
    const char *name[] = {"a", "c", "d"};
    const int64_t ns[] = {1000000, 2000000, 1000000};
    const struct weft_dot_options options = {.size = sizeof options, .heat_name = name, .heat_ns = ns, .heats = 3};
    char *dot = draw(*state, text, &options);
    Agraph_t *graph = read_back(dot), *both = agsubg(graph, (char *)"cluster_both", 0);
    assert_non_null(both);
    assert_int_equal(agnnodes(both), 2);
    assert_string_equal(attribute(both, "label"), "@both two_at_once  2.000 ms, 50.0 %");
    assert_null(strstr(attribute(find(graph, "c"), "label"), " ms"));
    assert_non_null(strstr(attribute(find(graph, "d"), "label"), "1.000 ms, 25.0 %"));
    assert_non_null(strstr(attribute(graph, "label"), "2.000 ms  @both  %c  two_at_once"));
    agclose(graph);
    weft_free_text(*state, dot);
}

/* Names of a model file may hold anything; here through the builder. */
static void hostile_names_are_only_text(void **state)
{
    static const char *const names[] = {"<b>&amp;\"\\N|{}", "]]>--", "a\nb\tc", "\xff\xc0\x80\xed\xa0\x80", "é∀", " "};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct weft_graph *graph;
        assert_int_equal(weft_graph_create(*state, names[i], &graph), WEFT_OK);
        const weft_dim four = weft_extent(4);
        weft_val x, y;
        if (weft_param(graph, names[i], WEFT_F32, 1, &four, &x) < 0) {
            weft_graph_destroy(graph); /* refused: then it cannot reach the picture */
            continue;
        }
        char name[64];
        snprintf(name, sizeof name, "result %s", names[i]);
        const struct weft_op op = {.size = sizeof op, .op = "exp", .name = name, .operand = &x, .operands = 1};
        assert_int_equal(weft_append(graph, &op, &y), WEFT_OK);
        assert_int_equal(weft_return(graph, &y, 1), WEFT_OK);
        char *dot = NULL;
        assert_int_equal(weft_dot(graph, NULL, &dot), WEFT_OK);
        Agraph_t *back = read_back(dot);
        assert_int_equal(agnnodes(back), 3);
        assert_int_equal(agnedges(back), 2);
        agclose(back);
        weft_free_text(*state, dot);
        weft_graph_destroy(graph);
    }
}

static void old_callers_options_are_accepted(void **state)
{
    struct weft_dot_options options = {.size = offsetof(struct weft_dot_options, max_nodes), .max_nodes = 1};
    char *dot = draw(*state, diamond, &options);
    Agraph_t *graph = read_back(dot);
    assert_int_equal(agnnodes(graph), 5); /* a member behind the stated size is not read */
    agclose(graph);
    weft_free_text(*state, dot);

    struct weft_graph *drawn = NULL;
    assert_int_equal(weft_parse(*state, diamond, strlen(diamond), "diamond", &drawn), WEFT_OK);
    options.size = 0;
    assert_int_equal(weft_dot(drawn, &options, &dot), WEFT_ERR_ARGUMENT);
    weft_graph_destroy(drawn);
}

/* An allocator that refuses from the n-th request on, and knows what it still owes. */
struct purse {
    int64_t left, live;
};

static void *take(void *user, size_t bytes, size_t align)
{
    struct purse *purse = user;
    if (purse->left-- <= 0)
        return NULL;
    purse->live++;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void give(void *user, void *memory, size_t bytes)
{
    struct purse *purse = user;
    purse->live -= memory != NULL;
    free(memory);
}

static void every_allocation_may_be_refused(void **state)
{
    struct purse purse = {.left = INT32_MAX};
    const struct weft_allocator allocator = {
        .size = sizeof allocator, .user = &purse, .allocate = take, .release = give};
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator};
    struct weft_context *context;
    struct weft_graph *graph;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    assert_int_equal(weft_parse(context, diamond, strlen(diamond), "test", &graph), WEFT_OK);
    const int64_t before = purse.live;
    int refused = 0;
    for (int status = WEFT_ERR_NOMEM; status == WEFT_ERR_NOMEM; refused++) {
        assert_true(refused < 1000);
        char *dot = NULL;
        purse.left = refused;
        status = weft_dot(graph, NULL, &dot);
        assert_true(status == WEFT_OK || status == WEFT_ERR_NOMEM);
        assert_true((dot != NULL) == (status == WEFT_OK));
        weft_free_text(context, dot);
    }
    assert_true(refused > 2);
    purse.left = INT32_MAX;
    weft_graph_destroy(graph);
    weft_close(context);
    assert_true(before > 0);
    assert_int_equal(purse.live, 0);
}

/* A relayout that was inserted has a bold box with its price and its reader; the title has the sum, and all colours. */
static void relayouts_have_a_price(void **state)
{
    static const char text[] = "graph @p(%x: f32[1,64,14,14], %w: f32[64,64,3,3]) {\n"
                               "  %c: f32[1,64,14,14] = conv %x, %w pad=[1 1 1 1]\n"
                               "  %y: f32[1,64,14,14] = max_pool %c kernel=[3 3] pad=[1 1 1 1]\n  return %y\n}\n";
    static const char *const wanted[] = {"1 relayout inserted, ", "layout row-major", "layout {0 2 3 1}",
                                         "BORDER=\"3\" CELLBORDER", " % of all layouts",
                                         "for result %y, whose layout is stated"};
    struct weft_graph *graph;
    char *dot;
    assert_int_equal(weft_parse(*state, text, strlen(text), "test", &graph), WEFT_OK);
    assert_int_equal(weft_dot(graph, NULL, &dot), WEFT_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_null(strstr(dot, wanted[i]));
    weft_free_text(*state, dot);
    assert_int_equal(weft_run_pass(graph, "propagate_memory_format", NULL), 1);
    assert_int_equal(weft_dot(graph, NULL, &dot), WEFT_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(dot, wanted[i]))
            fail_msg("not there: %s", wanted[i]);
    weft_run_pass(graph, "propagate_memory_format", NULL); /* has nothing to put in, and forgets nothing */
    weft_free_text(*state, dot);
    assert_int_equal(weft_dot(graph, NULL, &dot), WEFT_OK);
    assert_non_null(strstr(dot, wanted[0]));
    agclose(read_back(dot));
    weft_free_text(*state, dot);
    weft_graph_destroy(graph);
}

/* As many red edges as the plan says that data changes its order: relayouts, reshapes that move, operands that a kernel
 * or a group reads across. */
static void every_change_of_order_is_red(void **state)
{
    static const char *const texts[] = {
        "graph @g(%x: f32[64,48]) {\n  %y: f32[64,48] = exp %x\n  return %y\n}\n",
        "graph @g(%x: f32[64,48]) {\n  %t: f32[48,64] = transpose %x perm=[1 0]\n  %y: f32[48,64] = exp %t\n"
        "  return %y\n}\n",
        "graph @g(%x: f32[64,64], %z: f32[64,64]) {\n  %t: f32[64,64] = transpose %x perm=[1 0]\n"
        "  %y: f32[64,64] = mul %t, %z\n  %e: f32[64,64] = exp %y\n  return %e\n}\n",
        "graph @g(%x: f32[1,8,16,16]{0 2 3 1}) {\n  %y: f32[2048] = reshape %x\n  %e: f32[2048] = tanh %y\n"
        "  return %e\n}\n",
        "graph @g(%x: f32[512,640], %z: f32[640,512]) {\n  %t: f32[640,512] = transpose %x perm=[1 0]\n"
        "  %c: f32[1280,512] = concat %t, %z axis=0\n  return %c\n}\n",
    };
    size_t changes = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct weft_graph *graph;
        struct weft_plan *plan;
        char *dot;
        assert_int_equal(weft_parse(*state, texts[i], strlen(texts[i]), "test", &graph), WEFT_OK);
        assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_OK);
        assert_int_equal(weft_dot(weft_plan_graph(plan), NULL, &dot), WEFT_OK);
        Agraph_t *picture = read_back(dot);
        size_t red = 0;
        for (Agnode_t *n = agfstnode(picture); n; n = agnxtnode(picture, n))
            for (Agedge_t *e = agfstout(picture, n); e; e = agnxtout(picture, e))
                red += strcmp(attribute(e, "color"), "#c00000") == 0;
        if (red != weft_plan_relayouts(plan))
            fail_msg("text %zu: %zu red edges, and %zu changes of order", i, red, weft_plan_relayouts(plan));
        changes += red;
        agclose(picture);
        weft_free_text(*state, dot);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
    }
    assert_true(changes >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_fold_and_edges_are_right), cmocka_unit_test(the_same_graph_gives_the_same_text),
        cmocka_unit_test(focus_keeps_the_neighbourhood),      cmocka_unit_test(an_unknown_focus_is_an_error),
        cmocka_unit_test(a_group_has_one_time),
        cmocka_unit_test(times_are_shown),                    cmocka_unit_test(hostile_names_are_only_text),
        cmocka_unit_test(old_callers_options_are_accepted),   cmocka_unit_test(every_allocation_may_be_refused),
        cmocka_unit_test(relayouts_have_a_price),             cmocka_unit_test(every_change_of_order_is_red),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
