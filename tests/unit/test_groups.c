/* SPDX-License-Identifier: Apache-2.0 */
/* test_groups.c: forming, opening and labelling groups: texts before and after, all of them valid. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Nodes 1 to 4 are a, b, c, d. */
static const char *const plain = "graph @f(%x: f32[8]) {\n"
                                 "  %a: f32[8] = exp %x\n"
                                 "  %b: f32[8] = neg %a\n"
                                 "  %c: f32[8] = relu %b\n"
                                 "  %d: f32[8] = add %c, %a\n"
                                 "  return %d\n"
                                 "}\n";

struct trial {
    const char *text, *want;
    void (*edit)(struct weft_graph *graph);
    struct weft_graph *graph;
};

static int edit_one(void *arg)
{
    struct trial *trial = arg;
    trial->edit(trial->graph);
    return WEFT_OK;
}

static void expect(const char *text, void (*edit)(struct weft_graph *), const char *want)
{
    struct weft_context *context = NULL;
    struct trial trial = {.text = text, .want = want, .edit = edit};
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    if (weft_parse(context, text, strlen(text), "text", &trial.graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    assert_int_equal(weft_protected(context, edit_one, &trial), WEFT_OK);
    assert_int_equal(weft_validate(trial.graph), WEFT_OK);
    char *got = NULL;
    assert_int_equal(weft_print(trial.graph, &got), WEFT_OK);
    assert_string_equal(strchr(got, '\n') + 1, want); /* behind the version */
    weft_free_text(context, got);
    weft_graph_destroy(trial.graph);
    weft_close(context);
}

static weft_node node(uint32_t id) { return (weft_node){.id = id}; }

static void form_two(struct weft_graph *g)
{
    assert_true(weft_form_group(g, node(1), node(2), "k"));
    assert_true(weft_form_group(g, node(3), node(4), "k"));
    assert_int_equal(weft_group_first(g, node(2)).id, 1);
    assert_int_equal(weft_group_last(g, node(1)).id, 2);
    assert_int_equal(weft_group_first(g, node(3)).id, 3);
    assert_int_equal(weft_group_last(g, node(3)).id, 4);
}

static void groups_are_neighbours_of_unique_names(void **state)
{
    expect(plain, form_two, "graph @f(%x: f32[8]) {\n"
                            "  fuse @k {\n"
                            "    %a: f32[8] = exp %x\n"
                            "    %b: f32[8] = neg %a\n"
                            "  }\n"
                            "  fuse @k.2 {\n"
                            "    %c: f32[8] = relu %b\n"
                            "    %d: f32[8] = add %c, %a\n"
                            "  }\n"
                            "  return %d\n"
                            "}\n");
}

static void form_wrong(struct weft_graph *g)
{
    assert_true(weft_form_group(g, node(2), node(3), "k"));
    assert_false(weft_form_group(g, node(1), node(4), "whole"));  /* holds nodes of a group */
    assert_false(weft_form_group(g, node(1), node(2), "torn"));   /* ends in one */
    assert_false(weft_form_group(g, node(3), node(4), "torn"));   /* begins in one */
    assert_false(weft_form_group(g, node(4), node(1), "back"));   /* in the wrong order */
    assert_int_equal(weft_group_first(g, node(4)).id, 4);
    assert_int_equal(weft_group_last(g, node(1)).id, 1);
}

static void what_is_no_free_run_stays(void **state)
{
    expect(plain, form_wrong, "graph @f(%x: f32[8]) {\n"
                              "  %a: f32[8] = exp %x\n"
                              "  fuse @k {\n"
                              "    %b: f32[8] = neg %a\n"
                              "    %c: f32[8] = relu %b\n"
                              "  }\n"
                              "  %d: f32[8] = add %c, %a\n"
                              "  return %d\n"
                              "}\n");
}

/* A group of each node: the names of all are one table, and each number is tried once. */
static void form_many(struct weft_graph *g)
{
    enum { MANY = 20000 };
    weft_val v = weft_result(g, g->last, 0);
    struct weft_builder b = {.graph = g};
    for (int i = 0; i < MANY; i++)
        v = weft_build_unary(&b, WEFT_OP_neg, v);
    weft_node n = g->first;
    for (int i = 0; i < MANY; i++, n = g->node[n.id].next)
        assert_true(weft_form_group(g, n, n, i % 2 ? "rows" : "k.2"));
    assert_string_equal(g->group[1].name, "k.2");
    assert_string_equal(g->group[2].name, "rows");
    assert_string_equal(g->group[3].name, "k.2.2");
    assert_string_equal(g->group[MANY].name, "rows.10000");
    assert_int_equal(g->group[2].namesakes, MANY / 2 - 1); /* as many numbers as names */
    assert_true(weft_form_group(g, n, n, "k"));
    assert_string_equal(g->group[MANY + 1].name, "k");
    assert_true(weft_form_group(g, g->node[n.id].next, g->node[n.id].next, "k")); /* @k.2 is taken */
    assert_string_equal(g->group[MANY + 2].name, "k.3");
    while (g->last.id > 4) {
        weft_replace_uses(g, weft_result(g, g->last, 0), weft_operand(g, g->last, 0));
        weft_erase_node(g, g->last);
    }
    for (n = g->first; n.id; n = g->node[n.id].next)
        weft_open_group(g, n);
}

static void many_groups_take_their_time_only(void **state) { expect(plain, form_many, plain); }

static const char *const grouped = "graph @f(%x: f32[8]) {\n"
                                   "  fuse @k ! both tile=[1 8] {\n"
                                   "    %a: f32[8]{-} = exp %x ! one\n"
                                   "    %b: f32[8] = neg %a\n"
                                   "  }\n"
                                   "  fuse @l ! other {\n"
                                   "    %c: f32[8] = relu %b\n"
                                   "    %d: f32[8] = add %c, %b\n"
                                   "  }\n"
                                   "  return %d\n"
                                   "}\n";

static void open_first(struct weft_graph *g)
{
    weft_add_remark(g, "test", weft_result(g, node(2), 0), "kept", "before it was opened");
    weft_open_group(g, node(2));
    assert_int_equal(weft_remark_count(g), 1);
    assert_int_equal(g->node[2].group, 0);
}

static void opening_keeps_what_is_said_of_nodes(void **state)
{
    expect(grouped, open_first, "graph @f(%x: f32[8]) {\n"
                                "  %a: f32[8] = exp %x ! one\n"
                                "  %b: f32[8] = neg %a\n"
                                "  fuse @l ! other {\n"
                                "    %c: f32[8] = relu %b\n"
                                "    %d: f32[8] = add %c, %b\n"
                                "  }\n"
                                "  return %d\n"
                                "}\n");
}

static void open_and_form(struct weft_graph *g)
{
    weft_open_group(g, node(3));
    weft_open_group(g, node(1));
    assert_true(weft_form_group(g, node(2), node(4), "k")); /* the name is free again */
}

static void names_of_opened_groups_are_free(void **state)
{
    expect(grouped, open_and_form, "graph @f(%x: f32[8]) {\n"
                                   "  %a: f32[8] = exp %x ! one\n"
                                   "  fuse @k {\n"
                                   "    %b: f32[8] = neg %a\n"
                                   "    %c: f32[8] = relu %b\n"
                                   "    %d: f32[8] = add %c, %b\n"
                                   "  }\n"
                                   "  return %d\n"
                                   "}\n");
}

static void label(struct weft_graph *g)
{
    static const char *const key[] = {"tile"}, *const value[] = {"[2 4]"};
    weft_label_group(g, node(2), "better", 1, key, value);
    weft_label_group(g, node(3), NULL, 0, NULL, NULL);
}

static void labels_replace_notes(void **state)
{
    expect(grouped, label, "graph @f(%x: f32[8]) {\n"
                           "  fuse @k ! better tile=[2 4] {\n"
                           "    %a: f32[8]{-} = exp %x ! one\n"
                           "    %b: f32[8] = neg %a\n"
                           "  }\n"
                           "  fuse @l {\n"
                           "    %c: f32[8] = relu %b\n"
                           "    %d: f32[8] = add %c, %b\n"
                           "  }\n"
                           "  return %d\n"
                           "}\n");
}

/* Compiling opens those that no kernel computes, and says of no group that a kernel of the text's computes it. */
static void plans_say_what_runs(void **state)
{
    static const char text[] = "graph @f(%x: f32[8]) {\n"
                               "  fuse @pair ! both {\n"
                               "    %a: f32[8]{-} = exp %x\n"
                               "    %b: f32[8] = flip %a axes=[0]\n"
                               "  }\n"
                               "  fuse @alone ! one {\n"
                               "    %c: f32[8] = tanh %b\n"
                               "  }\n"
                               "  return %c\n"
                               "}\n";
    struct weft_context *context = NULL;
    struct weft_graph *graph = NULL;
    struct weft_plan *plan = NULL;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    assert_int_equal(weft_parse(context, text, sizeof text - 1, "text", &graph), WEFT_OK);
    for (uint32_t flags = 0; flags <= WEFT_COMPILE_NO_PASSES; flags += WEFT_COMPILE_NO_PASSES) {
        const struct weft_compile_options options = {.size = sizeof options, .flags = flags};
        assert_int_equal(weft_compile(graph, &options, &plan), WEFT_OK);
        char *got = NULL;
        assert_int_equal(weft_plan_print(plan, &got), WEFT_OK);
        assert_null(strstr(got, "@pair"));
        assert_non_null(strstr(got, "fuse @alone {"));
        weft_free_text(context, got);
        struct weft_remark remark = {.size = sizeof remark};
        assert_int_equal(weft_remark_get(weft_plan_graph(plan), 0, &remark), WEFT_OK);
        assert_string_equal(remark.verdict, "opened");
        assert_string_equal(remark.reason, "group @pair (exp, flip): no kernel computes these nodes as one: %b looks "
                                           "up what the group computes");
        weft_plan_destroy(plan);
    }
    weft_graph_destroy(graph);
    weft_close(context);
}

/* The kernel of a group is recorded at its first node; an edit of any of its nodes, or of who reads them, drops it. */
static void edits_drop_what_was_recorded_of_a_group(void **state)
{
    static const char text[] = "graph @f(%x: f32[64,64], %z: f32[64,64]) {\n"
                               "  %a: f32[64,64] = exp %x\n"
                               "  %b: f32[64,64] = neg %a\n"
                               "  %c: f32[64,64] = flip %b axes=[0]\n"
                               "  %d: f32[64,64] = flip %z axes=[0]\n"
                               "  return %c, %d, %b\n"
                               "}\n";
    for (int edit = 0; edit < 4; edit++) {
        struct weft_context *context = NULL;
        struct weft_graph *graph = NULL;
        assert_int_equal(weft_open(NULL, &context), WEFT_OK);
        assert_int_equal(weft_parse(context, text, sizeof text - 1, "text", &graph), WEFT_OK);
        assert_int_equal(weft_run_pass(graph, "fuse", NULL), 1);
        const weft_node exp = graph->first, neg = graph->node[exp.id].next, flip = graph->node[neg.id].next;
        const weft_val a = weft_result(graph, exp, 0), z = graph->param[1];
        assert_true(graph->node[exp.id].group && graph->node[exp.id].group == graph->node[neg.id].group);
        assert_non_null(graph->node[exp.id].choices);
        if (edit == 0)
            weft_replace_operand(graph, neg, 0, z);
        else if (edit == 1)
            weft_replace_operand(graph, graph->node[flip.id].next, 0, a); /* read outside now */
        else if (edit == 2)
            weft_replace_operand(graph, flip, 0, z); /* read less */
        else
            weft_replace_return(graph, 2, z);
        assert_null(graph->node[exp.id].choices);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

/* Nobody opens them: not silently planned as what they are not. */
static void groups_that_come_to_a_plan_are_refused(void **state)
{
    static const char text[] = "graph @f(%c: bool[], %x: f32[8]) {\n"
                               "  graph @yes(%p: f32[8]) {\n"
                               "    fuse @inner {\n"
                               "      %q: f32[8]{-} = exp %p\n"
                               "      %r: f32[8] = flip %q axes=[0]\n"
                               "    }\n"
                               "    return %r\n"
                               "  }\n"
                               "  graph @no(%p: f32[8]) {\n"
                               "    return %p\n"
                               "  }\n"
                               "  %y: f32[8] = if %c, %x then=@yes else=@no\n"
                               "  return %y\n"
                               "}\n";
    struct weft_context *context = NULL;
    struct weft_graph *graph = NULL;
    struct weft_plan *plan = NULL;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    assert_int_equal(weft_parse(context, text, sizeof text - 1, "text", &graph), WEFT_OK);
    setenv("WEFT_SKIP", "open_groups", 1);
    assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_ERR_UNSUPPORTED);
    unsetenv("WEFT_SKIP");
    assert_non_null(strstr(weft_last_error(context),
                           "text:4:1: group @inner: no kernel computes these nodes as one: %r looks up"));
    assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_OK);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static bool has_remark(const struct weft_graph *graph, const char *where, const char *verdict, const char *reason)
{
    struct weft_remark remark = {.size = sizeof remark};
    for (size_t i = 0; weft_remark_get(graph, i, &remark) == WEFT_OK; i++)
        if (strcmp(remark.where, where) == 0 && strcmp(remark.verdict, verdict) == 0 &&
            strcmp(remark.reason, reason) == 0)
            return true;
    return false;
}

/* tests/golden/mark_aliases/groups.weft says what is marked. */
static void what_groups_write_over_is_said(void **state)
{
    static const char text[] = "graph @f(%x: f32[8,8], %y: f32[8,8]) {\n"
                               "  %b: f32[8,8] = exp %x\n"
                               "  %c: f32[8,8] = exp %y\n"
                               "  %k: f32[8,8] = abs %y\n"
                               "  fuse @g {\n"
                               "    %m: f32[8,8]{-} = transpose %b perm=[1 0]\n"
                               "    %o: f32[8,8] = add %m, %b\n"
                               "    %p: bf16[8,8] = cast %o\n"
                               "  }\n"
                               "  fuse @h {\n"
                               "    %s: f32[8,8]{-} = sigmoid %c\n"
                               "    %q: f32[8,8] = mul %s, %c\n"
                               "  }\n"
                               "  fuse @i {\n"
                               "    %j: f32[16,8] = concat %k, %y axis=0\n"
                               "    %i: f32[16,8] = neg %j\n"
                               "  }\n"
                               "  %n: f32[8,8] = mul %o, %q\n"
                               "  return %n, %i, %j, %p\n"
                               "}\n";
    struct weft_context *context = NULL;
    struct weft_graph *graph = NULL;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    if (weft_parse(context, text, sizeof text - 1, "text", &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    assert_true(weft_run_pass(graph, "mark_aliases", NULL) >= 0);
    assert_true(has_remark(graph, "%b", "refused",
                           "not overwritten by %o: it is read at another index than is written, by %o"));
    assert_true(has_remark(graph, "%c", "done", "computed where %q is written over it"));
    assert_true(has_remark(graph, "%k", "refused", "copied into %j: group @i does that"));
    assert_true(has_remark(graph, "%o", "done", "computed where %n is written over it"));
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_neighbours_of_unique_names),
        cmocka_unit_test(what_is_no_free_run_stays),
        cmocka_unit_test(many_groups_take_their_time_only),
        cmocka_unit_test(opening_keeps_what_is_said_of_nodes),
        cmocka_unit_test(names_of_opened_groups_are_free),
        cmocka_unit_test(labels_replace_notes),
        cmocka_unit_test(plans_say_what_runs),
        cmocka_unit_test(edits_drop_what_was_recorded_of_a_group),
        cmocka_unit_test(groups_that_come_to_a_plan_are_refused),
        cmocka_unit_test(what_groups_write_over_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
