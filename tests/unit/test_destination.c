/* SPDX-License-Identifier: Apache-2.0 */
/* test_destination.c: operands of concats and bodies of paddings that are computed where the result has them. Each case
 * says how many bytes its plan still copies, and its values are those of the evaluator. */
#include "tests/unit/plan_support.h"

#define MOST 6
#define WIDE (64 * 1024)

static float input[MOST][WIDE];

/* Small numbers of both signs; a symbol in a parameter's shape is `n`. */
static struct weft_tensor fill(const struct weft_plan *plan, size_t i, int64_t n)
{
    struct weft_port port = {.size = sizeof port};
    assert_int_equal(weft_plan_input(plan, i, &port), WEFT_OK);
    struct weft_tensor t = {.data = input[i], .dtype = port.dtype, .rank = port.rank};
    int64_t elements = 1;
    for (int axis = 0; axis < port.rank; axis++) {
        t.extent[axis] = port.extent[axis] < 0 ? n : port.extent[axis];
        elements *= t.extent[axis];
    }
    weft_tensor_dense(&t);
    assert_true(elements <= WIDE);
    for (int64_t k = 0; k < elements; k++)
        if (port.dtype == WEFT_BOOL)
            ((uint8_t *)t.data)[k] = k % 3 == 0;
        else
            input[i][k] = (float)((k * 7 + (int64_t)i * 5) % 31 - 15) / 8;
    return t;
}

static void compare(const struct weft_execution *execution, size_t i, const struct weft_tensor *want)
{
    struct weft_tensor got;
    int64_t elements = 1;
    assert_int_equal(weft_output(execution, i, &got), WEFT_OK);
    for (int axis = 0; axis < want->rank; axis++) {
        assert_int_equal(got.extent[axis], want->extent[axis]);
        elements *= want->extent[axis];
    }
    for (int64_t k = 0; k < elements; k++) {
        int64_t place = 0, rest = k;
        for (int axis = want->rank - 1; axis >= 0; axis--) {
            place += rest % want->extent[axis] * got.stride[axis];
            rest /= want->extent[axis];
        }
        assert_true(((const float *)got.data)[place] == ((const float *)want->data)[k]);
    }
}

static void run_scene(struct scene *s, int64_t n, int64_t copied)
{
    struct weft_tensor in[MOST], want[MOST] = {{0}};
    const size_t inputs = weft_plan_inputs(s->plan), outputs = weft_plan_outputs(s->plan);
    for (size_t i = 0; i < inputs; i++) {
        in[i] = fill(s->plan, i, n);
        if (weft_bind_input(s->execution, i, &in[i]) != WEFT_OK)
            fail_msg("%s", weft_execution_error(s->execution));
    }
    if (weft_run(s->execution) != WEFT_OK)
        fail_msg("%s", weft_execution_error(s->execution));
    struct weft_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(weft_execution_statistics(s->execution, &statistics), WEFT_OK);
    assert_int_equal(statistics.copied_bytes, copied);
    assert_int_equal(weft_evaluate(s->graph, in, inputs, want, outputs), WEFT_OK);
    for (size_t i = 0; i < outputs; i++) {
        compare(s->execution, i, &want[i]);
        weft_tensor_free(s->context, &want[i]);
    }
}

static void expect(const char *text, int64_t n, int64_t copied)
{
    struct scene s = open_scene(text, WEFT_COMPILE_NO_PASSES);
    run_scene(&s, n, copied);
    close_scene(&s);
}

/* Is there a remark of this verdict about this value with this in its reason? */
static bool says(const struct scene *s, const char *where, const char *verdict, const char *reason)
{
    const struct weft_graph *g = weft_plan_graph(s->plan);
    for (uint32_t i = 0; i < g->remarks; i++)
        if (strcmp(g->remark[i].who, "mark_aliases") == 0 && strcmp(g->remark[i].where, where) == 0 &&
            strcmp(g->remark[i].verdict, verdict) == 0 && strstr(g->remark[i].reason, reason))
            return true;
    return false;
}

static void expect_refusal(const char *text, int64_t copied, const char *where, const char *reason)
{
    struct scene s = open_scene(text, WEFT_COMPILE_NO_PASSES);
    assert_true(says(&s, where, "refused", reason));
    run_scene(&s, 8, copied);
    close_scene(&s);
}

/* --- what is computed in place ------------------------------------------------------------------------------------ */

static void operands_of_a_concat(void **state)
{
    struct scene s = open_scene("graph @g(%x: f32[2,16,8], %y: f32[2,24,8]) {\n"
                                "  %a: f32[2,16,8] = relu %x\n  %b: f32[2,24,8] = neg %y\n"
                                "  %c: f32[2,40,8] = concat %a, %b axis=1\n  %z: f32[2,40] = sum %c axes=[2]\n"
                                "  return %z\n}\n", WEFT_COMPILE_NO_PASSES);
    char *text;
    assert_int_equal(weft_plan_print(s.plan, &text), WEFT_OK);
    assert_non_null(strstr(text, "concat %a, %b axis=1 ! weft_placed at=arena+0 steps=0"));
    assert_non_null(strstr(text, "neg %y ! ")); /* behind the 16 rows of %a */
    assert_non_null(strstr(text, "at=arena+512"));
    weft_free_text(s.context, text);
    assert_true(says(&s, "%a", "done", "inside %c"));
    run_scene(&s, 0, 0);
    close_scene(&s);
}

/* What is in a slot is read by others while it is there, and after. */
static void others_read_the_slot(void **state)
{
    expect("graph @g(%x: f32[2,16,8]) {\n"
           "  %a: f32[2,16,8] = relu %x\n  %b: f32[2,16,8] = neg %a\n  %c: f32[2,32,8] = concat %a, %b axis=1\n"
           "  %s: f32[2,16,8] = add %a, %b\n  %u: f32[2,4,8] = slice %a start=[0 12 0] end=[2 16 8]\n"
           "  %v: f32[2,4,8] = neg %u\n  return %c, %s, %v\n}\n", 0, 0);
}

/* The result of the whole graph: computed in the caller's memory. */
static void results_have_slots(void **state)
{
    expect("graph @g(%x: f32[3,20], %y: f32[3,40]) {\n"
           "  %a: f32[3,20] = relu %x\n  %b: f32[3,40] = neg %y\n  %c: f32[3,60] = concat %a, %b axis=1\n"
           "  return %c\n}\n", 0, 0);
}

static void through_views(void **state)
{
    expect("graph @stack(%x: f32[4,16], %y: f32[4,16]) {\n" /* a stack is a concat of reshapes */
           "  %a: f32[4,16] = relu %x\n  %b: f32[4,16] = neg %y\n  %p: f32[4,1,16] = reshape %a\n"
           "  %q: f32[4,1,16] = reshape %b\n  %c: f32[4,2,16] = concat %p, %q axis=1\n  return %c\n}\n", 0, 0);
    expect("graph @flat(%x: f32[1,3,8,8], %y: f32[1,3,4,4]) {\n" /* maps of several sizes, one list of places */
           "  %a: f32[1,3,8,8] = relu %x\n  %b: f32[1,3,4,4] = neg %y\n  %p: f32[1,3,64] = reshape %a\n"
           "  %q: f32[1,3,16] = reshape %b\n  %c: f32[1,3,80] = concat %p, %q axis=2\n  return %c\n}\n", 0, 0);
}

static void concats_in_concats(void **state)
{
    expect("graph @g(%x: f32[2,16], %y: f32[2,32]) {\n"
           "  %a: f32[2,16] = relu %x\n  %b: f32[2,32] = neg %y\n  %c: f32[2,48] = concat %a, %b axis=1\n"
           "  %d: f32[2,48] = abs %c\n  %e: f32[2,96] = concat %c, %d axis=1\n  %f: f32[2,96] = neg %e\n"
           "  return %f\n}\n", 0, 0);
}

static void symbolic_extents(void **state)
{
    static const char *const text = "graph @g<N>(%x: f32[N,16], %y: f32[4,16]) {\n"
                                    "  %a: f32[N,16] = relu %x\n  %b: f32[4,16] = neg %y\n"
                                    "  %c: f32[2*N + 4,16] = concat %a, %b, %x axis=0\n"
                                    "  %d: f32[2*N + 4,16] = abs %c\n"
                                    "  %e: f32[2*N + 4,32] = concat %c, %d axis=1\n  return %e\n}\n";
    struct scene s = open_scene(text, WEFT_COMPILE_NO_PASSES);
    static const int64_t sizes[] = {3, 0, 1, 17};
    for (int i = 0; i < 4; i++)
        run_scene(&s, sizes[i], sizes[i] * 16 * 4); /* the parameter */
    close_scene(&s);
}

static void empty_operands(void **state)
{
    expect("graph @g(%x: f32[2,0], %y: f32[2,32]) {\n"
           "  %a: f32[2,0] = relu %x\n  %b: f32[2,32] = neg %y\n  %c: f32[2,32] = concat %a, %b, %a axis=1\n"
           "  return %c\n}\n", 0, 0);
}

static void bodies_of_paddings(void **state)
{
    expect("graph @g(%x: f32[2,8,32], %v: f32[]) {\n"
           "  %a: f32[2,8,32] = relu %x\n  %c: f32[3,11,36] = pad %a, %v pad=[1 2 0 0 1 4]\n"
           "  %d: f32[3,11,36] = neg %c\n  return %d\n}\n", 0, 0);
    struct scene s = open_scene("graph @g<N>(%x: f32[N,32], %v: f32[]) {\n"
                                "  %a: f32[N,32] = relu %x\n  %c: f32[2*N,34] = pad %a, %v pad=[N 1 0 1]\n"
                                "  return %c\n}\n", WEFT_COMPILE_NO_PASSES);
    run_scene(&s, 5, 0);
    run_scene(&s, 0, 0);
    close_scene(&s);
}

/* --- what is copied ----------------------------------------------------------------------------------------------- */

static void memory_of_others(void **state)
{
    expect_refusal("graph @g(%x: f32[2,16]) {\n  %a: f32[2,16] = relu %x\n  %c: f32[2,32] = concat %x, %a axis=1\n"
                   "  return %c\n}\n", 128, "%x", "parameter");
    expect_refusal("graph @g(%x: f32[2,16]) {\n  %a: f32[2,16] = relu %x\n  %k: f32[2,16] = const value=3\n"
                   "  %c: f32[2,32] = concat %k, %a axis=1\n  return %c\n}\n", 128, "%k", "constant");
    expect_refusal("graph @g(%x: f32[2,16]) {\n  %a: f32[2,16] = relu %x\n  %b: f32[2,16] = neg %x\n"
                   "  %c: f32[2,32] = concat %b, %a axis=1\n  return %c, %a\n}\n", 128, "%a", "returned");
}

/* One value, two places: the larger saving is equal here, so the later result has it. */
static void two_want_one(void **state)
{
    struct scene s = open_scene("graph @g(%x: f32[2,16]) {\n  %a: f32[2,16] = relu %x\n"
                                "  %c: f32[2,32] = concat %a, %a axis=1\n  %n: f32[2,32] = neg %c\n"
                                "  %d: f32[2,48] = concat %n, %a axis=1\n  return %d, %c\n}\n", WEFT_COMPILE_NO_PASSES);
    assert_true(says(&s, "%a", "done", "inside %d"));
    assert_true(says(&s, "%a", "refused", "into %c"));
    run_scene(&s, 0, 2 * 128);
    close_scene(&s);
}

static void parts_and_repetitions(void **state)
{
    expect_refusal("graph @g(%x: f32[2,64]) {\n  %a: f32[2,64] = relu %x\n"
                   "  %s: f32[2,16] = slice %a start=[0 0] end=[2 16]\n  %b: f32[2,16] = neg %s\n"
                   "  %c: f32[2,32] = concat %s, %b axis=1\n  return %c\n}\n", 128, "%s", "part");
    expect_refusal("graph @g(%x: f32[16]) {\n  %a: f32[16] = relu %x\n  %s: f32[2,16] = bcast %a dims=[1]\n"
                   "  %b: f32[2,16] = neg %s\n  %c: f32[2,32] = concat %s, %b axis=1\n  return %c\n}\n", 128, "%s",
                   "repetition");
}

static void rows_and_orders(void **state)
{
    expect_refusal("graph @g(%x: f32[64,3]) {\n  %a: f32[64,3] = relu %x\n  %c: f32[64,6] = concat %a, %x axis=1\n"
                   "  return %c\n}\n", 2 * 64 * 12, "%a", "too short");
    expect_refusal("graph @g(%x: f32[16,32], %y: f32[32,16]) {\n  %a: f32[16,32] = relu %x\n"
                   "  %t: f32[32,16] = transpose %a perm=[1 0]\n  %b: f32[32,16] = neg %y\n"
                   "  %c: f32[64,16] = concat %t, %b axis=0\n  return %c\n}\n", 2048, "%t", "another order");
}

/* %r could be a view of %a no longer. */
static void another_view(void **state)
{
    expect_refusal("graph @g(%x: f32[4,16]) {\n  %a: f32[4,16] = relu %x\n  %r: f32[64] = reshape %a\n"
                   "  %n: f32[64] = neg %r\n  %b: f32[4,16] = neg %x\n  %c: f32[4,32] = concat %a, %b axis=1\n"
                   "  return %c, %n\n}\n", 256, "%a", "another view");
}

static void sizes_out_of_data(void **state)
{
    expect_refusal("graph @g<K=data(8)>(%x: f32[8,16], %m: bool[8]) {\n"
                   "  %p: f32[K,16] = compress %x, %m axis=0 extent=[K]\n  %a: f32[K,16] = relu %p\n"
                   "  %b: f32[8,16] = neg %x\n  %c: f32[K + 8,16] = concat %a, %b axis=0\n  return %c\n}\n",
                   3 * 64 + 512, "%b", "out of data");
}

static void paddings_that_cut(void **state)
{
    expect("graph @g(%x: f32[8,32], %v: f32[]) {\n  %a: f32[8,32] = relu %x\n"
           "  %c: f32[8,32] = pad %a, %v pad=[1 0 -1 0]\n  return %c\n}\n", 0, 7 * 32 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_of_a_concat), cmocka_unit_test(others_read_the_slot),
        cmocka_unit_test(results_have_slots),   cmocka_unit_test(through_views),
        cmocka_unit_test(concats_in_concats),   cmocka_unit_test(symbolic_extents),
        cmocka_unit_test(empty_operands),       cmocka_unit_test(bodies_of_paddings),
        cmocka_unit_test(memory_of_others),     cmocka_unit_test(two_want_one),
        cmocka_unit_test(parts_and_repetitions), cmocka_unit_test(rows_and_orders),
        cmocka_unit_test(another_view),         cmocka_unit_test(sizes_out_of_data),
        cmocka_unit_test(paddings_that_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
