/* SPDX-License-Identifier: Apache-2.0 */
/* Custom functions that take one order of axes get it, and write it: by relayouts that propagate_memory_format puts in,
 * or within the call where nothing put them in. The functions refuse to run on anything else. */
#include "plan_support.h"

enum { ROWS = 40, COLUMNS = 24, ELEMENTS = ROWS * COLUMNS };

static int from_pages; /* calls of copy_pages whose operand began a page */

static bool columns_first(void *user, size_t i, size_t operands, int rank, int *ret_order)
{
    for (int k = 0; k < rank; k++)
        ret_order[k] = rank - 1 - k;
    return true;
}

static void want_pages(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret)
{
    ret->align = i < operands ? 4096 : 0;
}

/* Operand 0, of packed operands of one shape whose first axis lies innermost; or the last, for `user`. */
static int copy_packed(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *x = &call->operand[0], *y = call->result;
    const int inner = user ? 1 : 0;
    for (size_t i = 0; i <= call->operands; i++) {
        const struct weft_tensor *t = i < call->operands ? &call->operand[i] : y;
        if (t->stride[inner] != 1 || t->stride[!inner] != t->extent[inner])
            return 1;
    }
    memcpy(y->data, x->data, (size_t)(x->extent[0] * x->extent[1]) * sizeof(float));
    return 0;
}

static int copy_pages(void *user, const struct weft_custom_call *call)
{
    from_pages += (uintptr_t)call->operand[0].data % 4096 == 0;
    return copy_packed(user, call);
}

static struct weft_context *open_ordered(void)
{
    static int rows;
    const struct weft_custom all[] = {
        {.size = sizeof *all, .name = "copy_turned", .least_operands = 1, .most_operands = 2, .run = copy_packed,
         .layout = columns_first},
        {.size = sizeof *all, .name = "copy_rows", .least_operands = 1, .most_operands = 2, .run = copy_packed,
         .user = &rows},
        {.size = sizeof *all, .name = "copy_pages", .least_operands = 1, .most_operands = 1, .run = copy_pages,
         .layout = columns_first, .demand = want_pages},
    };
    struct weft_context *context = open_context(2);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(weft_register(context, &all[i]), WEFT_OK);
    return context;
}

static int relayouts_of(const struct weft_graph *graph)
{
    int count = 0;
    weft_foreach_node(graph, n)
        count += weft_opcode_of(graph, n) == WEFT_OP_relayout;
    for (uint32_t i = 0; i < graph->bodies; i++)
        count += relayouts_of(graph->body[i]);
    return count;
}

/* Runs a plan of %x and returns its first result, or what a run leaves in %x where there is none. */
static void run_plan(struct weft_plan *plan, bool updates, float *ret)
{
    struct weft_execution *e;
    float data[ELEMENTS];
    struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){ROWS, COLUMNS}), y;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    if (!updates) {
        assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
        memcpy(ret, y.data, ELEMENTS * sizeof *ret);
    } else {
        memcpy(ret, data, sizeof data);
    }
    weft_execution_destroy(e);
}

/* --- with the choice, without it, without the pass, without any --------------------------------------------------- */

struct ordered_case {
    const char *text;
    int relayouts; /* without the choice: for functions alone */
    bool updates;
};

static const struct ordered_case cases[] = {
    {"graph @slices(%x: f32[40,24]) {\n %s: f32[39,23] = slice %x start=[1 1] end=[40 24]\n"
     " %p: f32[39,23] = custom %s function=copy_rows\n %q: f32[39,23] = custom %s, %p function=copy_turned\n"
     " %z: f32[] = const value=2\n %y: f32[40,24] = pad %q, %z pad=[1 1 0 0]\n return %y\n}", 4, false},
    {"graph @rows(%x: f32[40,24]) {\n %s: f32[1,24] = slice %x start=[3 0] end=[4 24]\n %r: f32[24] = reshape %s\n"
     " %b: f32[40,24] = bcast %r dims=[1]\n %p: f32[40,24] = custom %x, %b function=copy_rows\n"
     " %y: f32[40,24] = custom %b, %p function=copy_rows\n return %y\n}", 1, false},
    {"graph @read_by_all(%x: f32[40,24]) {\n %h: f32[40,24] = custom %x function=copy_turned\n"
     " %k: f32[40,24] = custom %h function=copy_rows\n %l: f32[40,24] = custom %h function=copy_turned\n"
     " %y: f32[40,24] = sub %h, %k\n %z: f32[40,24] = add %y, %l\n return %z, %h, %l\n}", 3, false},
    {"graph @loop(%x: f32[40,24]) {\n %n: i64[] = const value=3\n"
     " graph @body(%i: i64[], %a: f32[40,24]) {\n  %e: f32[40,24] = neg %a\n"
     "  %t: f32[40,24] = custom %e function=copy_turned\n  %h: f32[40,24] = custom %t, %a function=copy_rows\n"
     "  return %h\n }\n %y: f32[40,24] = loop %n, %x body=@body\n return %y\n}", 2, false},
    {"graph @updated(%x: mut f32[40,24]) {\n %n: f32[40,24] = neg %x\n"
     " %h: f32[40,24] = custom %n, %x function=copy_turned\n return mut %x = %h\n}", 3, true},
    {"graph @open(%x: f32[40,24]) {\n %n: f32[40,24]{?} = neg %x\n"
     " %h: f32[40,24]{?} = custom %n function=copy_turned\n %y: f32[40,24] = neg %h\n return %y, %n\n}", 1, false},
    {"graph @group(%x: f32[40,24]) {\n fuse @both {\n  %n: f32[40,24]{-} = neg %x\n"
     "  %h: f32[40,24] = custom %n function=copy_turned\n }\n return %h\n}", 2, false},
};

/* Functions only copy, so that all give the same bits. */
static void functions_get_their_orders_whatever_is_skipped(void **state)
{
    static const char *const skip[] = {"", "propagate_memory_format.choice", "propagate_memory_format"};
    struct weft_context *context = open_ordered();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_graph *graph = parse(context, cases[i].text);
        struct weft_plan *plan = compile(graph, WEFT_COMPILE_NO_PASSES);
        float expected[ELEMENTS], found[ELEMENTS];
        assert_int_equal(weft_plan_relayouts(plan), 0);
        run_plan(plan, cases[i].updates, expected);
        weft_plan_destroy(plan);
        for (int k = 0; k < 3; k++) {
            setenv("WEFT_SKIP", skip[k], 1);
            plan = compile(graph, 0);
            unsetenv("WEFT_SKIP");
            run_plan(plan, cases[i].updates, found);
            assert_memory_equal(found, expected, sizeof found);
            weft_plan_destroy(plan);
        }
        weft_graph_destroy(graph);
    }
    weft_close(context);
}

/* The pass without its choice moves nothing else, and done again it changes nothing. */
static void only_what_functions_require_is_turned(void **state)
{
    struct weft_context *context = open_ordered();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_graph *graph = parse(context, cases[i].text);
        setenv("WEFT_SKIP", "propagate_memory_format.choice", 1);
        assert_int_equal(weft_run_pass(graph, "propagate_memory_format", NULL), 1);
        if (relayouts_of(graph) != cases[i].relayouts)
            print_message("%s\n", cases[i].text);
        assert_int_equal(relayouts_of(graph), cases[i].relayouts);
        assert_false(is_remarked(graph, "propagate_memory_format", "weighed", ""));
        assert_int_equal(weft_run_pass(graph, "propagate_memory_format", NULL), 0);
        unsetenv("WEFT_SKIP");
        weft_graph_destroy(graph);
    }
    weft_close(context);
}

static void the_pass_alone_is_done_at_once(void **state)
{
    struct weft_context *context = open_ordered();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_graph *graph = parse(context, cases[i].text);
        assert_int_equal(weft_run_pass(graph, "propagate_memory_format", NULL), 1);
        assert_true(i || is_remarked(graph, "propagate_memory_format", "converted",
                                     "for custom %p, which cannot read it as it is"));
        assert_int_equal(weft_run_pass(graph, "propagate_memory_format", NULL), 0);
        assert_int_equal(weft_run_pass(graph, "align_buffers", NULL), 0);
        weft_graph_destroy(graph);
    }
    weft_close(context);
}

/* Packing rows is no part of what the search weighs, and is one of what all layouts cost. */
static void what_packing_costs_is_in_the_estimate(void **state)
{
    struct weft_context *context = open_ordered();
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[40,24]) {\n"
                                              "  %s: f32[39,23] = slice %x start=[1 1] end=[40 24]\n"
                                              "  %y: f32[39,23] = custom %s function=copy_rows\n  return %y\n}");
    assert_int_equal(weft_run_pass(graph, "propagate_memory_format", NULL), 1);
    assert_int_equal(graph->conversions, 1);
    assert_true(graph->conversion[0].ps > 1000 && !graph->conversion[0].once);
    assert_true(graph->format_ps >= graph->conversion[0].ps);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* Data that change their order for a function do so in steps of their own, which are counted; a constant does it once,
 * when the plan is made. */
static void orders_for_functions_are_steps(void **state)
{
    enum { BYTES = ELEMENTS * (int)sizeof(float) };
    static const char text[] = "graph @g(%x: f32[40,24]) {\n"
                               "  %k: f32[40,24] = const random=1\n"
                               "  %r: f32[40,24] = neg %x\n"
                               "  %y: f32[40,24] = custom %r function=copy_turned\n"
                               "  %c: f32[40,24] = custom %k function=copy_turned\n"
                               "  %d: f32[40,24] = sub %c, %k\n"
                               "  return %y, %d\n}";
    float data[ELEMENTS];
    struct weft_context *context = open_ordered();
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){ROWS, COLUMNS}), y, d;
    assert_int_equal(weft_plan_relayouts(plan), 3);
    assert_true(is_remarked(weft_plan_graph(plan), "propagate_memory_format", "converted",
                            "once, for custom %c, which would take"));
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    struct weft_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(weft_execution_statistics(e, &statistics), WEFT_OK);
    assert_int_equal(statistics.relayouts, 3); /* of %r and of both results */
    assert_int_equal(statistics.copied_bytes, 3 * BYTES);
    assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
    assert_int_equal(weft_output(e, 1, &d), WEFT_OK);
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(((const float *)y.data)[i] == -data[i] && ((const float *)d.data)[i] == 0);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* What is turned is turned to where it is wanted: not turned, and copied then. */
static void a_relayout_is_made_at_the_address(void **state)
{
    struct weft_context *context = open_ordered();
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[40,24]) {\n"
                                              "  %y: f32[40,24] = custom %x function=copy_pages\n  return %y\n}");
    struct weft_plan *plan = compile(graph, 0);
    float found[ELEMENTS];
    from_pages = 0;
    run_plan(plan, /* updates= */ false, found);
    assert_int_equal(from_pages, 1);
    assert_int_equal(weft_plan_relayouts(plan), 2); /* of %x and of the result */
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_get_their_orders_whatever_is_skipped),
        cmocka_unit_test(only_what_functions_require_is_turned),
        cmocka_unit_test(the_pass_alone_is_done_at_once),
        cmocka_unit_test(what_packing_costs_is_in_the_estimate),
        cmocka_unit_test(orders_for_functions_are_steps),
        cmocka_unit_test(a_relayout_is_made_at_the_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
