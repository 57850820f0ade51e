/* SPDX-License-Identifier: Apache-2.0 */
/* test_unit.c: the units of graphs: which nodes they are, what they read, what others see of them, how they are called
 * and labelled. */
#include "sched/unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct trial {
    const char *text, *want;
    struct weft_context *context;
    struct weft_graph *graph;
};

static void add_values(struct weft_text *text, const char *const *label, uint32_t count, const weft_val *value)
{
    for (uint32_t i = 0; i < count; i++)
        weft_text_format(text, " %s", label[value[i].id]);
}

/* "z 3: x y > z" for a unit of three nodes that is called %z, in a line each. */
static int list_units(void *arg)
{
    struct trial *trial = arg;
    struct weft_graph *g = trial->graph;
    const struct weft_units units = weft_units_find(g, g->arena);
    const char **label = weft_value_labels(g, g->arena);
    struct weft_text text = {.context = g->context, .arena = g->arena};
    weft_text_format(&text, "%s", ""); /* it may stay empty */
    assert_ptr_equal(units.graph, g);
    for (uint32_t i = 1; i < units.count; i++) {
        const struct weft_unit *unit = &units.unit[i];
        uint32_t nodes = 1;
        assert_int_equal(unit->position, i);
        for (weft_node n = unit->first; n.id != unit->last.id; n = g->node[n.id].next, nodes++)
            assert_ptr_equal(weft_unit_of(&units, n), unit);
        assert_ptr_equal(weft_unit_of(&units, unit->last), unit);
        assert_int_equal(nodes, unit->nodes);
        weft_text_format(&text, "%s %u:", label[weft_unit_value(&units, unit).id], unit->nodes);
        add_values(&text, label, unit->ins, unit->in);
        weft_text_format(&text, " >");
        add_values(&text, label, unit->outs, unit->out);
        weft_text_format(&text, "\n");
    }
    assert_string_equal(text.data, trial->want);
    return WEFT_OK;
}

static void open_trial(struct trial *trial)
{
    assert_int_equal(weft_open(NULL, &trial->context), WEFT_OK);
    if (weft_parse(trial->context, trial->text, strlen(trial->text), "text", &trial->graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(trial->context));
}

static void close_trial(struct trial *trial)
{
    weft_graph_destroy(trial->graph);
    weft_close(trial->context);
}

static void expect(const char *text, const char *want)
{
    struct trial trial = {.text = text, .want = want};
    open_trial(&trial);
    assert_int_equal(weft_protected(trial.context, list_units, &trial), WEFT_OK);
    close_trial(&trial);
}

static void each_node_without_a_group_is_one(void **state)
{
    expect("graph @f(%x: f32[8]) {\n"
           "  %k: f32[8] = const value=2\n"
           "  %a: f32[8] = mul %x, %k\n"
           "  %b: f32[8] = mul %a, %a\n" /* read twice, listed once */
           "  %r: f32[2,4] = reshape %b\n"
           "  %dead: f32[8] = exp %a\n"
           "  return %r, %a\n"
           "}\n",
           "k 1: > k\n"
           "a 1: x k > a\n"
           "b 1: a > b\n"
           "r 1: b > r\n"
           "dead 1: a >\n");
}

static void a_group_shows_what_others_see(void **state)
{
    expect("graph @f(%x: f32[4,8], %y: f32[8]) {\n"
           "  %e: f32[4,8] = exp %x\n"
           "  fuse @rows {\n"
           "    %b: f32[4,8]{-} = bcast %y dims=[1]\n"
           "    %d: f32[4,8] = sub %e, %b\n"   /* used inside and outside */
           "    %s: f32[4,8]{-} = mul %d, %e\n"
           "    %i: f32[4,8] = abs %s\n"       /* has a layout, but nobody outside reads it */
           "    %t: f32[4,8] = tanh %i\n"      /* returned */
           "    %u: f32[4] = sum %d axes=[1]\n" /* read by nobody */
           "  }\n"
           "  %n: f32[4,8] = neg %d\n"
           "  return %n, %t\n"
           "}\n",
           "e 1: x > e\n"
           "t 6: y e > d t\n"
           "n 1: d > n\n");
}

static void groups_stand_side_by_side_and_between_nodes(void **state)
{
    expect("graph @f(%x: f32[8]) {\n"
           "  fuse @one {\n"
           "    %a: f32[8]{-} = exp %x\n"
           "    %b: f32[8] = neg %a\n"
           "  }\n"
           "  fuse @two {\n"
           "    %c: f32[8]{-} = add %b, %x\n"
           "    %d: f32[8] = mul %c, %b\n"
           "  }\n"
           "  %e: f32[8] = relu %d\n"
           "  fuse @alone {\n"
           "    %f: f32[8] = abs %e\n"
           "  }\n"
           "  return %f\n"
           "}\n",
           "b 2: x > b\n"
           "d 2: b x > d\n"
           "e 1: d > e\n"
           "f 1: e > f\n");
}

static void nodes_of_several_results_show_those_that_are_read(void **state)
{
    expect("graph @f(%x: f32[8]) {\n"
           "  %v: f32[2], %i: i64[2] = top_k %x k=2 axis=0\n"
           "  fuse @pair {\n"
           "    %p: f32[2], %q: i64[2] = top_k %v k=2 axis=0\n"
           "    %m: f32[2]{-} = neg %p\n"
           "    %n: f32[2] = exp %m\n"
           "  }\n"
           "  return %q, %n\n"
           "}\n",
           "v 1: x > v\n"
           "n 3: v > q n\n");
}

static void a_body_has_units_of_its_own(void **state)
{
    struct trial trial = {.text = "graph @f(%c: bool[], %x: f32[8]) {\n"
                                  "  graph @yes(%p: f32[8]) {\n"
                                  "    fuse @in {\n"
                                  "      %q: f32[8]{-} = exp %p\n"
                                  "      %r: f32[8] = neg %q\n"
                                  "    }\n"
                                  "    return %r\n"
                                  "  }\n"
                                  "  graph @no(%p: f32[8]) {\n"
                                  "    return %p\n"
                                  "  }\n"
                                  "  %y: f32[8] = if %c, %x then=@yes else=@no\n"
                                  "  return %y\n"
                                  "}\n",
                          .want = "y 1: c x > y\n"};
    open_trial(&trial);
    assert_int_equal(weft_protected(trial.context, list_units, &trial), WEFT_OK);
    struct weft_graph *root = trial.graph;
    trial.graph = root->body[0];
    trial.want = "r 2: p > r\n";
    assert_int_equal(weft_protected(trial.context, list_units, &trial), WEFT_OK);
    trial.graph = root->body[1];
    trial.want = "";
    assert_int_equal(weft_protected(trial.context, list_units, &trial), WEFT_OK);
    trial.graph = root;
    close_trial(&trial);
}

static int label_units(void *arg)
{
    static const char *const key[] = {"parts"}, *const value[] = {"2"};
    struct trial *trial = arg;
    struct weft_graph *g = trial->graph;
    const struct weft_units units = weft_units_find(g, g->arena);
    for (uint32_t i = 1; i < units.count; i++)
        weft_unit_label(g, &units.unit[i], "kernel", 1, key, value);
    weft_unit_label(g, &units.unit[units.count - 1], NULL, 0, NULL, NULL);
    return WEFT_OK;
}

static void a_label_stands_at_the_node_or_at_the_group(void **state)
{
    struct trial trial = {.text = "graph @f(%x: f32[8]) {\n"
                                  "  %a: f32[8] = exp %x\n"
                                  "  fuse @two {\n"
                                  "    %b: f32[8]{-} = neg %a ! first\n"
                                  "    %c: f32[8] = relu %b\n"
                                  "  }\n"
                                  "  fuse @one {\n"
                                  "    %d: f32[8] = abs %c\n"
                                  "  }\n"
                                  "  %e: f32[8] = neg %d ! old\n"
                                  "  return %e\n"
                                  "}\n"};
    open_trial(&trial);
    assert_int_equal(weft_protected(trial.context, label_units, &trial), WEFT_OK);
    char *got = NULL;
    assert_int_equal(weft_print(trial.graph, &got), WEFT_OK);
    assert_string_equal(strchr(got, '\n') + 1, "graph @f(%x: f32[8]) {\n"
                                               "  %a: f32[8] = exp %x ! kernel parts=2\n"
                                               "  fuse @two ! kernel parts=2 {\n"
                                               "    %b: f32[8]{-} = neg %a ! first\n"
                                               "    %c: f32[8] = relu %b\n"
                                               "  }\n"
                                               "  fuse @one {\n"
                                               "    %d: f32[8] = abs %c ! kernel parts=2\n"
                                               "  }\n"
                                               "  %e: f32[8] = neg %d\n"
                                               "  return %e\n"
                                               "}\n");
    weft_free_text(trial.context, got);
    close_trial(&trial);
}

static int find_what_is_stored(void *arg)
{
    const struct trial *trial = arg;
    const struct weft_graph *g = trial->graph;
    const struct weft_units units = weft_units_find(g, trial->graph->arena);
    static const char stored[] = "xae"; /* not b, not c, which has a layout, not the dead d */
    for (uint32_t i = 1; i < g->values; i++)
        assert_int_equal(weft_unit_stores(&units, (weft_val){.id = i}), strchr(stored, *g->value[i].name) != NULL);
    return WEFT_OK;
}

static void values_inside_have_no_memory(void **state)
{
    struct trial trial = {.text = "graph @f(%x: f32[8]) {\n"
                                  "  %a: f32[8] = exp %x\n"
                                  "  fuse @g {\n"
                                  "    %b: f32[8]{-} = neg %a\n"
                                  "    %c: f32[8] = relu %b\n"
                                  "    %d: f32[8] = abs %c\n"
                                  "    %e: f32[8] = tanh %c\n"
                                  "  }\n"
                                  "  return %e\n"
                                  "}\n"};
    open_trial(&trial);
    assert_int_equal(weft_protected(trial.context, find_what_is_stored, &trial), WEFT_OK);
    close_trial(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_node_without_a_group_is_one),
        cmocka_unit_test(a_group_shows_what_others_see),
        cmocka_unit_test(groups_stand_side_by_side_and_between_nodes),
        cmocka_unit_test(nodes_of_several_results_show_those_that_are_read),
        cmocka_unit_test(a_body_has_units_of_its_own),
        cmocka_unit_test(a_label_stands_at_the_node_or_at_the_group),
        cmocka_unit_test(values_inside_have_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
