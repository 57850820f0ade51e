/* SPDX-License-Identifier: Apache-2.0 */
/* test_load.c: relayouts of constants are done when the plan is made: no step is left, the numbers are those of the
 * evaluator, and memory is counted: what is read, once, and not what is only packed. */
#include "tests/unit/plan_support.h"

static struct scene open_loaded(const char *text) { return open_scene(text, WEFT_COMPILE_NO_PASSES); }

static struct weft_statistics statistics_of(const struct scene *c)
{
    struct weft_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(weft_execution_statistics(c->execution, &statistics), WEFT_OK);
    return statistics;
}

/* Two runs, so that nobody has written over what was made once; result 0 as the evaluator has it. */
static void run_and_compare(struct scene *c, const struct weft_tensor *in, double tolerance)
{
    for (int run = 0; run < 2; run++) {
        if (weft_bind_input(c->execution, 0, in) != WEFT_OK || weft_run(c->execution) != WEFT_OK)
            fail_msg("%s", weft_execution_error(c->execution));
    }
    struct weft_tensor want = {0}, got;
    assert_int_equal(weft_evaluate(c->graph, in, 1, &want, 1), WEFT_OK);
    assert_int_equal(weft_output(c->execution, 0, &got), WEFT_OK);
    int64_t elements = 1;
    for (int i = 0; i < got.rank; i++)
        elements *= got.extent[i];
    assert_true(elements > 0);
    for (int64_t i = 0; i < elements; i++) {
        int64_t rest = i, mine = 0, its = 0;
        for (int axis = got.rank - 1; axis >= 0; rest /= got.extent[axis--]) {
            mine += rest % got.extent[axis] * got.stride[axis];
            its += rest % got.extent[axis] * want.stride[axis];
        }
        assert_float_equal(((const float *)got.data)[mine], ((const float *)want.data)[its], tolerance);
    }
    weft_tensor_free(c->context, &want);
}

/* What stands right of `!` at the node that makes a value. */
static const char *note_of(const struct scene *c, const char *name, const char *key)
{
    const struct weft_graph *g = weft_plan_graph(c->plan);
    const weft_val v = weft_value_find_heir(g, name, strlen(name));
    const struct weft_plan_note *plan = g->node[weft_def(g, v).id].plan;
    for (uint32_t i = 0; plan && i < plan->count; i++)
        if (strcmp(plan->key[i], key) == 0)
            return plan->value[i];
    return "";
}

enum { ROWS = 24, COLUMNS = 40, BYTES = ROWS * COLUMNS * 4 };

static void read_as_it_is(void **state)
{
    static float x[ROWS * COLUMNS];
    struct scene c = open_loaded("graph @g(%x: f32[24,40]) {\n  %w: f32[24,40] = const random=3\n"
                                "  %t: f32[24,40]{1 0} = relayout %w\n  %y: f32[24,40] = add %x, %t\n"
                                "  return %y\n}\n");
    const struct weft_tensor in = tensor_of(x, 2, (const int64_t[]){ROWS, COLUMNS});
    run_and_compare(&c, &in, 0);
    assert_int_equal(statistics_of(&c).kernels, 1);
    assert_int_equal(statistics_of(&c).relayouts, 0);
    assert_int_equal(statistics_of(&c).constant_bytes, BYTES); /* and not the constant besides, which nobody reads */
    assert_int_equal(weft_plan_relayouts(c.plan), 1);          /* the add reads one in the order of the other */
    assert_string_equal(note_of(&c, "t", "when"), "load");
    assert_string_equal(note_of(&c, "t", "at"), "const+0");
    struct weft_plan_value value = {.size = sizeof value};
    assert_int_equal(weft_plan_find(c.plan, "t", &value), WEFT_OK);
    assert_int_equal(value.memory, WEFT_MEMORY_CONSTANT);
    assert_int_equal(value.stride[0], 1);
    assert_int_equal(value.stride[1], ROWS);
    close_scene(&c);
}

/* Products and convolutions pack their weights from the constant itself, also through two relayouts, and nothing but
 * the pack is kept. */
static void packed_only(void **state)
{
    static float x[4 * 8 * 25];
    static const struct {
        const char *text;
        int rank;
        int64_t extent[4];
    } cases[] = {
        {"graph @g(%x: f32[4,40]) {\n  %w: f32[40,24] = const random=5\n  %t: f32[40,24]{1 0} = relayout %w\n"
         "  %y: f32[4,24] = matmul %x, %t\n  return %y\n}\n", 2, {4, 40}},
        {"graph @g(%x: f32[1,8,10,10]) {\n  %w: f32[24,8,3,3] = const random=5\n"
         "  %s: f32[24,8,3,3]{2 3 1 0} = relayout %w\n  %t: f32[24,8,3,3]{0 2 3 1} = relayout %s\n"
         "  %y: f32[1,24,8,8] = conv %x, %t\n  return %y\n}\n", 4, {1, 8, 10, 10}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene c = open_loaded(cases[i].text);
        struct weft_graph *plain; /* the same without relayouts */
        struct weft_plan *direct;
        assert_int_equal(weft_graph_clone(c.graph, &plain), WEFT_OK);
        assert_true(weft_strip(plain));
        direct = compile(plain, WEFT_COMPILE_NO_PASSES);
        const struct weft_tensor in = tensor_of(x, cases[i].rank, cases[i].extent);
        run_and_compare(&c, &in, 1e-4);
        assert_true(direct->constant_bytes > 0);
        assert_int_equal(statistics_of(&c).constant_bytes, direct->constant_bytes);
        assert_int_equal(statistics_of(&c).kernels, 1);
        assert_string_equal(note_of(&c, "t", "when"), "load");
        assert_string_equal(note_of(&c, "t", "at"), "-");
        weft_plan_destroy(direct);
        weft_graph_destroy(plain);
        close_scene(&c);
    }
}

/* A relayout of a relayout; of a part; a reshape that is no view of this order: each is made from the one before. */
static void one_from_another(void **state)
{
    static float x[8 * 60];
    struct scene c = open_loaded("graph @g(%x: f32[480]) {\n  %w: f32[8,6,10] = const random=6\n"
                                "  %a: f32[8,6,10]{2 0 1} = relayout %w\n  %b: f32[8,6,10]{1 2 0} = relayout %a\n"
                                "  %r: f32[480] = reshape %b\n  %y: f32[480] = mul %x, %r\n  return %y\n}\n");
    const struct weft_tensor in = tensor_of(x, 1, (const int64_t[]){480});
    run_and_compare(&c, &in, 0);
    assert_int_equal(statistics_of(&c).kernels, 1);
    assert_int_equal(statistics_of(&c).constant_bytes, 480 * 4);
    close_scene(&c);
    c = open_loaded("graph @g(%x: f32[5,6]) {\n  %w: f32[8,6] = const random=6\n"
                   "  %s: f32[5,6] = slice %w start=[2 0] end=[7 6]\n  %t: f32[5,6]{1 0} = relayout %s\n"
                   "  %y: f32[5,6] = mul %x, %t\n  return %y\n}\n");
    const struct weft_tensor part = tensor_of(x, 2, (const int64_t[]){5, 6});
    run_and_compare(&c, &part, 0);
    assert_int_equal(statistics_of(&c).kernels, 1);
    assert_int_equal(statistics_of(&c).constant_bytes, 30 * 4);
    close_scene(&c);
}

/* Rows with gaps, from a constant that other nodes read as it is, too. */
static void shared_with_readers_of_the_original(void **state)
{
    static float x[6 * 10];
    struct scene c = open_loaded("graph @g(%x: f32[6,10]) {\n  %w: f32[6,10] = const random=7\n"
                                "  %t: f32[6,10]{1 0} = relayout %w\n  %a: f32[6,10] = mul %x, %t\n"
                                "  %b: f32[6,10] = add %a, %w\n  %y: f32[6,10] = sub %b, %t\n  return %y\n}\n");
    const struct weft_tensor in = tensor_of(x, 2, (const int64_t[]){6, 10});
    run_and_compare(&c, &in, 1e-6);
    assert_int_equal(statistics_of(&c).kernels, 3);
    assert_int_equal(statistics_of(&c).constant_bytes, 2 * 60 * 4);
    close_scene(&c);
}

/* A broadcast would become memory for the life of the plan; a result is written in each run, and a size that is not
 * known yet cannot be made. */
static void stays_a_step(void **state)
{
    static float x[32 * 10];
    const char *const texts[] = {
        "graph @g(%x: f32[32,10]) {\n  %w: f32[10] = const random=8\n  %b: f32[32,10] = bcast %w dims=[1]\n"
        "  %t: f32[32,10]{1 0} = relayout %b\n  %y: f32[32,10] = mul %x, %t\n  return %y\n}\n",
        "graph @g(%x: f32[32,10]) {\n  %w: f32[32,10] = const random=8\n  %y: f32[32,10]{1 0} = relayout %w\n"
        "  return %y\n}\n",
        "graph @g<N=1..30 hint=2>(%x: f32[N,10]) {\n  %w: f32[32,10] = const random=8\n"
        "  %s: f32[N,10] = slice %w start=[1 0] end=[(N + 1) 10]\n  %t: f32[N,10]{1 0} = relayout %s\n"
        "  %y: f32[N,10] = mul %x, %t\n  return %y\n}\n",
        "graph @g<N=1..30 hint=2>(%x: f32[5,N]) {\n  %w: f32[40,10] = const random=8\n"
        "  %s: f32[5,10] = slice %w start=[N 0] end=[(N + 5) 10]\n  %t: f32[5,10]{1 0} = relayout %s\n"
        "  %r: f32[5] = reduce_max %x axes=[1]\n  %b: f32[5,10] = bcast %r dims=[0]\n"
        "  %y: f32[5,10] = mul %b, %t\n  return %y\n}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct scene c = open_loaded(texts[i]);
        const int64_t extent[] = {i == 3 ? 5 : i == 2 ? 7 : 32, i == 3 ? 9 : 10};
        const struct weft_tensor in = tensor_of(x, 2, extent);
        run_and_compare(&c, &in, 0);
        assert_true(statistics_of(&c).kernels >= (i == 1 ? 1 : 2));
        assert_string_equal(note_of(&c, i == 1 ? "y" : "t", "when"), "");
        close_scene(&c);
    }
}

/* In a body, which has constants of its own. */
static void inside_of_a_body(void **state)
{
    static float x[6 * 10];
    struct scene c = open_loaded("graph @g(%x: f32[6,10]) {\n  graph @body(%trip: i64[], %a: f32[6,10]) {\n"
                                "    %w: f32[6,10] = const random=9\n    %t: f32[6,10]{1 0} = relayout %w\n"
                                "    %n: f32[6,10] = add %a, %t\n    return %n\n  }\n"
                                "  %c: i64[] = const value=3\n  %y: f32[6,10] = loop %c, %x body=@body\n"
                                "  return %y\n}\n");
    const struct weft_tensor in = tensor_of(x, 2, (const int64_t[]){6, 10});
    run_and_compare(&c, &in, 0);
    assert_int_equal(statistics_of(&c).relayouts, 0);
    assert_true(statistics_of(&c).constant_bytes >= 60 * 4);
    close_scene(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_as_it_is),
        cmocka_unit_test(packed_only),
        cmocka_unit_test(one_from_another),
        cmocka_unit_test(shared_with_readers_of_the_original),
        cmocka_unit_test(stays_a_step),
        cmocka_unit_test(inside_of_a_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
