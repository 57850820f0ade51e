/* SPDX-License-Identifier: Apache-2.0 */
/* test_inspect.c: what a plan says of its values: memory, views, what passes put in the place of others, and the number
 * of places where data changes its order. */
#include "tests/unit/plan_support.h"

struct inspected {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
};

static struct inspected inspect(const char *text, uint32_t flags)
{
    struct inspected i = {.context = open_context(1)};
    i.graph = parse(i.context, text);
    i.plan = compile(i.graph, flags);
    return i;
}

static void done(struct inspected *i)
{
    weft_plan_destroy(i->plan);
    weft_graph_destroy(i->graph);
    weft_close(i->context);
}

static struct weft_plan_value find(const struct inspected *i, const char *name)
{
    struct weft_plan_value value = {.size = sizeof value};
    if (weft_plan_find(i->plan, name, &value) != WEFT_OK)
        fail_msg("no value '%s'", name);
    return value;
}

static void test_memory(void **state)
{
    struct inspected i = inspect("graph @g(%p: f32[4,6], %x: f32[4,6]) {\n %t: f32[6,4] = transpose %x perm=[1 0]\n"
                                 " %s: f32[3,4] = slice %t start=[2 0] end=[5 4]\n %w: f32[3,4] = sin %s\n"
                                 " %y: f32[3] = sum %w axes=[1]\n %z: f32[4] = sum %w axes=[0]\n return %y, %z\n}",
                                 WEFT_COMPILE_NO_PASSES);
    const struct weft_plan_value x = find(&i, "x"), s = find(&i, "s"), w = find(&i, "w"), z = find(&i, "z");
    assert_int_equal(x.memory, WEFT_MEMORY_INPUT);
    assert_int_equal(x.port, 1);
    assert_int_equal(s.storage, x.storage);
    assert_string_equal(s.root, "x");
    assert_int_equal(s.offset, 2);
    assert_int_equal(s.stride[0], 1);
    assert_int_equal(s.stride[1], 6);
    assert_int_equal(w.memory, WEFT_MEMORY_ARENA);
    assert_int_not_equal(w.storage, x.storage);
    assert_int_equal(z.memory, WEFT_MEMORY_OUTPUT);
    assert_int_equal(z.port, 1);
    assert_int_equal(z.copies, 0);
    struct weft_plan_value none = {.size = sizeof none};
    assert_int_equal(weft_plan_find(i.plan, "nobody", &none), WEFT_ERR_ARGUMENT);
    done(&i);
}

/* Steps in their order, blocks that do not overlap while both are alive, and whose values say the same storage. */
static void test_steps_and_blocks(void **state)
{
    struct inspected i = inspect("graph @g(%x: f32[64,96], %n: i64[]) {\n"
                                 " graph @body(%k: i64[], %s: f32[64,64]) {\n  %e: f32[64,64] = tanh %s\n"
                                 "  %f: f32[64,64] = matmul %e, %s\n  return %f\n }\n"
                                 " %w: f32[96,64] = const random=1\n %m: f32[64,64] = matmul %x, %w\n"
                                 " %a: f32[64,64] = softmax %m axis=1\n %l: f32[64,64] = loop %n, %a body=@body\n"
                                 " %o: f32[64,64] = matmul %l, %a\n %y: f32[64,64] = exp %o\n"
                                 " %t: f32[64,64] = transpose %o perm=[1 0]\n %u: f32[64,64] = matmul %t, %m\n"
                                 " return %y, %u\n}",
                                 0);
    const size_t steps = weft_plan_steps(i.plan), blocks = weft_plan_blocks(i.plan);
    struct weft_plan_step step = {.size = sizeof step};
    bool grouped = false, looped = false;
    assert_true(steps >= 4 && blocks > 2);
    for (size_t k = 0; k < steps; k++) {
        struct weft_plan_value value = {.size = sizeof value};
        assert_int_equal(weft_plan_step(i.plan, k, &step), WEFT_OK);
        assert_int_equal(weft_plan_find(i.plan, step.value, &value), WEFT_OK);
        assert_true(step.nodes >= 1 && step.parts >= 1 && strncmp(step.kernel, "weft_", 5) == 0);
        grouped |= step.group && step.nodes > 1;
        looped |= strcmp(step.value, "l") == 0;
    }
    assert_true(grouped && looped);
    assert_int_equal(weft_plan_step(i.plan, steps, &step), WEFT_ERR_ARGUMENT);
    struct weft_plan_block a = {.size = sizeof a}, b = {.size = sizeof b};
    bool works = false;
    for (size_t k = 0; k < blocks; k++) {
        assert_int_equal(weft_plan_block(i.plan, k, &a), WEFT_OK);
        assert_true(a.bytes > 0 && a.offset >= 0 && a.first <= a.last && a.last < (int32_t)steps);
        works |= !a.value;
        if (a.value)
            assert_int_equal(find(&i, a.value).storage, a.storage);
        for (size_t j = 0; j < k; j++) {
            assert_int_equal(weft_plan_block(i.plan, j, &b), WEFT_OK);
            const bool together = a.first <= b.last && b.first <= a.last;
            assert_false(together && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes);
        }
    }
    assert_true(works); /* the loop's */
    assert_int_equal(weft_plan_block(i.plan, blocks, &a), WEFT_ERR_ARGUMENT);
    done(&i);
}

/* All values once, in order of definition; no more behind the last. */
static void test_iteration(void **state)
{
    struct inspected i = inspect("graph @g(%x: f32[4]) {\n %a: f32[4] = sin %x\n %b: f32[4] = cos %a\n return %b\n}",
                                 0);
    static const char *const names[] = {"x", "a", "b"};
    struct weft_plan_value value = {.size = sizeof value};
    assert_int_equal(weft_plan_values(i.plan), 3);
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(weft_plan_value(i.plan, k, &value), WEFT_OK);
        assert_string_equal(value.name, names[k]);
    }
    assert_int_equal(weft_plan_value(i.plan, 3, &value), WEFT_ERR_ARGUMENT);
    done(&i);
}

/* A name leads to what took the value's place, through one replacement after the other. */
static void test_heirs(void **state)
{
    struct inspected i = inspect("graph @g(%x: f32[3,4]) {\n %t: f32[4,3] = transpose %x perm=[1 0]\n"
                                 " %u: f32[3,4] = transpose %t perm=[1 0]\n %v: f32[3,4] = reshape %u\n"
                                 " %a: f32[3,4] = sin %v\n %b: f32[3,4] = sin %x\n %y: f32[3,4] = mul %a, %b\n"
                                 " return %y, %b\n}", 0);
    assert_string_equal(find(&i, "u").name, "x");
    assert_string_equal(find(&i, "v").name, "x");
    assert_int_equal(find(&i, "a").storage, find(&i, "b").storage);
    struct weft_plan_value none = {.size = sizeof none};
    assert_int_equal(weft_plan_find(i.plan, "t", &none), WEFT_ERR_ARGUMENT); /* nothing of it is left */
    done(&i);
}

static void test_relayouts(void **state)
{
    static const struct {
        size_t count;
        const char *text;
    } cases[] = {
        {0, "graph @g(%x: f32[4,6]) {\n %y: f32[4,6] = sin %x\n return %y\n}"},
        {1, "graph @g(%x: f32[4,6]{1 0}, %z: f32[4,6]) {\n %y: f32[4,6] = add %x, %z\n return %y\n}"},
        {1, "graph @g(%x: f32[4,6]{1 0}) {\n %y: f32[4,6] = mul %x, %x\n return %y\n}"},
        {1, "graph @g(%x: f32[4,6]) {\n %y: f32[6,4] = transpose %x perm=[1 0]\n return %y\n}"},
        {0, "graph @g(%x: f32[4,6]) {\n %y: f32[6,4]{1 0} = transpose %x perm=[1 0]\n return %y\n}"},
        {0, "graph @g(%x: f32[4,1]{1 0}, %z: f32[4,6]) {\n %b: f32[4,6] = bcast %x dims=[0 1]\n"
            " %y: f32[4,6] = add %b, %z\n return %y\n}"},
        {0, "graph @g(%x: f32[4,5,7]{1 0 2 | 4 7 1}) {\n %y: f32[4,5,7]{1 0 2} = relu %x\n return %y\n}"},
        {1, "graph @g(%x: f32[4,5,6]{1 0 2}) {\n %y: f32[4,5] = sum %x axes=[2]\n return %y\n}"},
        {0, "graph @g(%x: f32[4,5,6]{0 2 1}) {\n %y: f32[4,5] = sum %x axes=[2]\n return %y\n}"},
        {0, "graph @g(%x: f32[8,6]{1 0}, %w: f32[6,4]) {\n %y: f32[8,4] = matmul %x, %w\n return %y\n}"},
        {1, "graph @g(%x: f32[4,5,6]{1 0 2}) {\n fuse @f {\n  %a: f32[4,5,6]{-} = sin %x\n"
            "  %y: f32[4,5] = sum %a axes=[2]\n }\n return %y\n}"},
        {0, "graph @g(%x: f32[4,5,6]{0 2 1}) {\n fuse @f {\n  %a: f32[4,5,6]{-} = sin %x\n"
            "  %y: f32[4,5] = sum %a axes=[2]\n }\n return %y\n}"},
        {1, "graph @g(%x: f32[4,6]{1 0}, %z: f32[4,6]) {\n fuse @f {\n  %a: f32[4,6]{-} = mul %z, %z\n"
            "  %y: f32[4,6] = add %a, %x\n }\n return %y\n}"},
        {2, "graph @g(%n: i64[], %x: f32[4,6]{1 0}) {\n graph @body(%i: i64[], %a: f32[4,6]) {\n"
            "  %b: f32[4,6] = sin %a\n  return %b\n }\n %y: f32[4,6]{1 0} = loop %n, %x body=@body\n"
            " %z: f32[4,6] = neg %y\n %v: f32[4,6] = exp %y\n return %z, %v\n}"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct inspected i = inspect(cases[k].text, WEFT_COMPILE_NO_PASSES);
        if (weft_plan_relayouts(i.plan) != cases[k].count)
            fail_msg("%zu, not %zu: %s", weft_plan_relayouts(i.plan), cases[k].count, cases[k].text);
        done(&i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_steps_and_blocks), cmocka_unit_test(test_iteration),
        cmocka_unit_test(test_heirs),
        cmocka_unit_test(test_relayouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
