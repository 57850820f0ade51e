/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that are multiples of more than a cache line: blocks of the arena begin at lines, but those that a custom
 * function wants at pages, or that are stated so, begin there, wherever the memory of an execution lies. */
#include "plan_support.h"

enum { ELEMENTS = 100, PAGE = 4096 };

static int misplaced; /* tensors that were given at other addresses */

static bool any_strides(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

static void want_pages(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret) { ret->align = PAGE; }

static int add_one(const struct weft_custom_call *call)
{
    const struct weft_tensor *x = &call->operand[0], *y = call->result;
    misplaced += (uintptr_t)x->data % PAGE != 0;
    for (int64_t i = 0; i < x->extent[0]; i++)
        ((float *)y->data)[i * y->stride[0]] = ((const float *)x->data)[i * x->stride[0]] + 1;
    return 0;
}

/* Wants operands and result at pages. */
static int add_pages(void *user, const struct weft_custom_call *call)
{
    for (size_t i = 1; i < call->operands; i++)
        misplaced += (uintptr_t)call->operand[i].data % PAGE != 0;
    misplaced += (uintptr_t)call->result->data % PAGE != 0;
    return add_one(call);
}

/* Wants nothing, but its operand states where it is. */
static int add_stated(void *user, const struct weft_custom_call *call) { return add_one(call); }

static const char *const texts[] = {
    /* y = x + 1 in all of them, for x > 0 */
    "graph @parameter(%x: f32[100]) {\n"
    "  %y: f32[100] = custom %x function=add_pages\n"
    "  return %y\n}",
    "graph @chain(%x: f32[100]) {\n"
    "  %a: f32[100] = relu %x\n"
    "  %b: f32[100] = custom %a function=add_pages\n"
    "  %y: f32[100] = relu %b\n"
    "  return %y\n}",
    "graph @written_over(%x: f32[100]) {\n"
    "  %a: f32[100]{0 align=4096} = relu %x\n"
    "  %b: f32[100] = custom %a function=add_stated\n"
    "  %y: f32[100] = relu %b\n"
    "  return %y\n}",
    "graph @writes_over(%x: f32[100]) {\n"
    "  %a: f32[100]{0 align=4096} = relu %x\n"
    "  %b: f32[100] = neg %a\n"
    "  %c: f32[100] = neg %b\n"
    "  %y: f32[100] = custom %c function=add_pages\n"
    "  return %y\n}",
    "graph @not_written_over(%x: f32[100]) {\n"
    "  %e: f32[100] = exp %x\n"
    "  %a: f32[100]{0 align=4096} = relu %x\n"
    "  %b: f32[100] = custom %a function=add_stated\n"
    "  %s: f32[100] = mul %a, %e\n"
    "  %t: f32[100] = mul %s, %e\n"
    "  %m: f32[] = sum %t axes=[0]\n"
    "  return %b, %m\n}",
    "graph @constant(%x: f32[100]) {\n"
    "  %k: f32[100] = const random=1\n"
    "  %y: f32[100] = custom %x, %k function=add_pages\n"
    "  return %y\n}",
    "graph @part(%x: f32[100]) {\n"
    "  %a: f32[100]{0 align=4096} = relu %x\n"
    "  %y: f32[100] = custom %a function=add_stated\n"
    "  %c: f32[200] = concat %a, %x axis=0\n"
    "  %s: f32[] = sum %c axes=[0]\n"
    "  return %y, %s\n}",
    "graph @branch(%x: f32[100], %p: bool[]) {\n"
    "graph @yes(%a: f32[100]) {\n"
    "  %r: f32[100] = relu %a\n"
    "  %b: f32[100] = custom %r function=add_pages\n"
    "  return %b\n}\n"
    "graph @no(%a: f32[100]) {\n"
    "  return %a\n}\n"
    "  %y: f32[100] = if %p, %x then=@yes else=@no\n"
    "  return %y\n}"};

static struct weft_context *open_with_pages(void)
{
    static const struct weft_custom all[] = {
        {.size = sizeof *all, .name = "add_pages", .least_operands = 1, .most_operands = 2, .run = add_pages,
         .layout = any_strides, .demand = want_pages},
        {.size = sizeof *all, .name = "add_stated", .least_operands = 1, .most_operands = 1, .run = add_stated,
         .layout = any_strides},
    };
    struct weft_context *context = open_context(2);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(weft_register(context, &all[i]), WEFT_OK);
    return context;
}

static void run_at_other_addresses(const struct weft_plan *plan)
{
    float data[ELEMENTS + 1];
    bool yes = true;
    struct weft_tensor x = tensor_of(data, 1, (const int64_t[]){ELEMENTS}), out;
    const struct weft_tensor p = {.data = &yes, .dtype = WEFT_BOOL};
    struct weft_execution *execution[5];
    for (int i = 0; i <= ELEMENTS; i++)
        data[i] = (float)i;
    x.data = data + 1;
    for (int k = 0; k < 5; k++) { /* all alive, so each has memory of its own */
        assert_int_equal(weft_execution_create(plan, &execution[k]), WEFT_OK);
        assert_int_equal(weft_bind_input(execution[k], 0, &x), WEFT_OK);
        assert_true(weft_plan_inputs(plan) == 1 || weft_bind_input(execution[k], 1, &p) == WEFT_OK);
        assert_int_equal(weft_run(execution[k]), WEFT_OK);
        assert_int_equal(weft_output(execution[k], 0, &out), WEFT_OK);
        for (int i = 0; i < ELEMENTS; i++)
            assert_true(((const float *)out.data)[i] == data[i + 1] + 1);
    }
    for (int k = 0; k < 5; k++)
        weft_execution_destroy(execution[k]);
}

static void pages_are_kept(void **state)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int passes = 0; passes < 2; passes++) {
            struct weft_context *context = open_with_pages();
            struct weft_graph *graph = parse(context, texts[i]);
            struct weft_plan *plan = compile(graph, passes ? 0 : WEFT_COMPILE_NO_PASSES);
            misplaced = 0;
            run_at_other_addresses(plan);
            if (misplaced)
                fail_msg("%d tensors are misplaced in %s", misplaced, texts[i]);
            weft_plan_destroy(plan);
            weft_graph_destroy(graph);
            weft_close(context);
        }
}

/* Carried values move from trip to trip. */
static void bodies_are_given_lines(void **state)
{
    struct weft_context *context = open_with_pages();
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[100], %p: bool[]) {\n"
                                              "graph @yes(%a: f32[100]{0 align=4096}) {\n  return %a\n}\n"
                                              "graph @no(%a: f32[100]) {\n  return %a\n}\n"
                                              "  %y: f32[100] = if %p, %x then=@yes else=@no\n  return %y\n}");
    struct weft_plan *plan;
    const struct weft_compile_options options = {.size = sizeof options, .flags = WEFT_COMPILE_NO_PASSES};
    assert_int_equal(weft_compile(graph, &options, &plan), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(context), "%a: is aligned to more than 64 bytes"));
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_are_kept), cmocka_unit_test(bodies_are_given_lines)};
    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
