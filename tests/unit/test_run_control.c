/* SPDX-License-Identifier: Apache-2.0 */
/* test_run_control.c: plans with bodies against the evaluator, at one and at several threads, with whole and with
 * forked executors: what is carried, collected, read in place; no trips, ends that come early, nested bodies. */
#include "tests/unit/plan_support.h"

#define MOST 8

/* Inputs are i64[] 0 to 4, bool[], then f32 of the extents that the parameters state, all deterministic. */
static void fill(const struct weft_graph *g, int64_t number, bool truth, struct weft_tensor *in, int64_t n,
                 void *memory)
{
    char *at = memory;
    for (uint32_t i = 0; i < g->params; i++) {
        const struct weft_type *type = weft_type_of(g, g->param[i]);
        int64_t extent[WEFT_MAX_RANK], count = 1;
        for (int axis = 0; axis < type->rank; axis++)
            count *= extent[axis] = weft_dim_is_constant(type->extent[axis]) ? weft_dim_value(type->extent[axis]) : n;
        in[i] = (struct weft_tensor){.data = at, .dtype = type->dtype, .rank = type->rank};
        memcpy(in[i].extent, extent, sizeof extent);
        weft_tensor_dense(&in[i]);
        if (type->dtype == WEFT_I64)
            *(int64_t *)at = number;
        else if (type->dtype == WEFT_BOOL)
            *at = truth;
        else
            in[i] = tensor_of((float *)at, type->rank, extent);
        at += (count * 8 + 63) / 64 * 64;
    }
}

static void compare(const struct weft_tensor *got, const struct weft_tensor *want)
{
    assert_int_equal(weft_tensor_count(got), weft_tensor_count(want));
    if (weft_tensor_count(want) > 0)
        assert_memory_equal(got->data, want->data, weft_tensor_bytes(want));
}

static void run(struct weft_context *context, const char *text, int64_t number, bool truth, int64_t n)
{
    static char memory[1 << 20];
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    struct weft_tensor in[MOST], want[MOST] = {{0}}, got;
    fill(graph, number, truth, in, n, memory);
    assert_int_equal(plan->fallbacks, 0);
    if (weft_evaluate(graph, in, graph->params, want, graph->returns) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    for (uint32_t i = 0; i < graph->params; i++)
        assert_int_equal(weft_bind_input(e, i, &in[i]), WEFT_OK);
    for (int again = 0; again < 3; again++) {
        const int before = allocations;
        assert_int_equal(weft_run(e), WEFT_OK);
        assert_true(again == 0 || allocations == before);
        for (uint32_t i = 0; i < graph->returns; i++) {
            assert_int_equal(weft_output(e, i, &got), WEFT_OK);
            compare(&got, &want[i]);
        }
    }
    for (uint32_t i = 0; i < graph->returns; i++)
        weft_tensor_free(context, &want[i]);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
}

/* Calls fn for the parts from the last to the first: an executor that promises nothing. */
static int three_workers(void *user) { return 3; }
static void backwards(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    while (n-- > 0)
        fn(arg, n);
}

static void check(const char *text, bool truth, int64_t n)
{
    struct weft_executor executor = {.size = sizeof executor, .workers = three_workers, .run = backwards};
    struct weft_allocator allocator = {
        .size = sizeof allocator, .allocate = counting_allocate, .release = counting_release};
    struct weft_context_options options = {
        .size = sizeof options, .allocator = &allocator, .threads = 3, .executor = &executor};
    struct weft_context *context[3] = {open_context(1), open_context(3)};
    assert_int_equal(weft_open(&options, &context[2]), WEFT_OK);
    for (int i = 0; i < 3; i++) {
        for (int64_t number = -1; number < 6; number++)
            run(context[i], text, number, truth, n);
        weft_close(context[i]);
    }
}

/* Sums that trips carry and collect; %x is a view that is read in place, %z lies transposed and must be copied once. */
static const char sums[] =
    "graph @t<N>(%n: i64[], %a: f32[N,3], %z: f32[3,N]) {\n"
    "graph @b(%i: i64[], %s: f32[N,3], %p: f32[N,3], %x: f32[3,N]) {\n"
    "%y: f32[N,3] = transpose %x perm=[1 0]\n%t: f32[N,3] = add %s, %y\n%u: f32[N,3] = sub %p, %t\n"
    "%r: f32[N] = sum %u axes=[1]\n%f: f32[3*N] = reshape %u\nreturn %t, %u, %r, %f, %p\n}\n"
    "%v: f32[N,3] = transpose %z perm=[1 0]\n%w: f32[3,N] = transpose %a perm=[1 0]\n"
    "%s: f32[N,3], %p: f32[N,3], %r: f32[4,N], %f: f32[4,3*N], %o: f32[4,N,3] = loop %n, %a, %v, %w body=@b carried=2 "
    "length=4\nreturn %s, %p, %r, %f, %o\n}\n";

static void test_loop(void **state)
{
    check(sums, true, 5);
    check(sums, true, 20000 / 3);
    check(sums, true, 0);
}

/* What two values swap, what stays itself, what is constant. */
static void test_returned_as_they_are(void **state)
{
    check("graph @t(%n: i64[], %a: f32[6], %c: f32[6], %d: f32[6]) {\n"
          "graph @b(%i: i64[], %a: f32[6], %c: f32[6], %d: f32[6]) {\n%k: f32[6] = const value=[1 2 3 4 5 6]\n"
          "%s: f32[6] = const value=2\nreturn %c, %a, %d, %k, %s, %k\n}\n"
          "%x: f32[6], %y: f32[6], %z: f32[6], %k: f32[5,6], %s: f32[5,6], %l: f32[5,6] = loop %n, %a, %c, %d body=@b "
          "length=5\nreturn %x, %y, %z, %k, %s, %l\n}\n",
          true, 1);
}

static const char early[] =
    "graph @t<N>(%n: i64[], %go: bool[], %a: f32[N]) {\n"
    "graph @b(%i: i64[], %g: bool[], %s: f32[N]) {\n%one: f32[N] = const value=1\n%t: f32[N] = add %s, %one\n"
    "%m: f32[] = reduce_max %t axes=[0]\n%l: f32[] = const value=5\n%c: bool[] = lt %m, %l\nreturn %c, %t, %t\n}\n"
    "%g: bool[], %s: f32[N], %c: f32[4,N] = loop %n, %go, %a body=@b while=1 length=4\nreturn %g, %s, %c\n}\n";

static void test_condition(void **state)
{
    check(early, true, 41);
    check(early, false, 41);
    check(early, true, 50000);
}

static const char branches[] =
    "graph @t<N>(%c: bool[], %a: f32[N,4], %k: f32[4,4]) {\n"
    "graph @then(%x: f32[N,4], %k: f32[4,4]) {\n%y: f32[N,4] = matmul %x, %k\n%r: f32[4*N] = reshape %y\n"
    "return %r, %x\n}\n"
    "graph @else(%x: f32[N,4], %k: f32[4,4]) {\n%y: f32[N,4] = neg %x\n%r: f32[4*N] = reshape %x\nreturn %r, %y\n}\n"
    "%r: f32[4*N], %y: f32[N,4] = if %c, %a, %k then=@then else=@else\n"
    "%z: f32[4*N] = add %r, %r\nreturn %z, %r, %y\n}\n";

static void test_branches(void **state)
{
    check(branches, true, 7);
    check(branches, false, 7);
    check(branches, true, 9000);
    check(branches, false, 9000);
}

/* A loop in a branch in a loop; the inner number of trips is the outer one's number. */
static const char nested[] =
    "graph @t<N>(%n: i64[], %a: f32[N]) {\n"
    "graph @outer(%i: i64[], %s: f32[N]) {\n"
    "graph @then(%i: i64[], %s: f32[N]) {\n"
    "graph @inner(%j: i64[], %s: f32[N]) {\n%h: f32[N] = mul %s, %s\n%t: f32[N] = sub %h, %s\nreturn %t, %h\n}\n"
    "%r: f32[N], %all: f32[3,N] = loop %i, %s body=@inner length=3\n%m: f32[N] = mean %all axes=[0]\n"
    "%w: f32[N] = add %m, %r\nreturn %w\n}\n"
    "graph @else(%i: i64[], %s: f32[N]) {\nreturn %s\n}\n"
    "%two: i64[] = const value=2\n%c: bool[] = lt %i, %two\n%t: f32[N] = if %c, %i, %s then=@then else=@else\n"
    "return %t\n}\n"
    "%r: f32[N] = loop %n, %a body=@outer\nreturn %r\n}\n";

static void test_nested(void **state)
{
    check(nested, true, 3);
    check(nested, true, 40000);
}

/* Orders that values inside and around require: of what is carried, handed over, collected, and handed through. */
static const char orders[] =
    "graph @t<N>(%n: i64[], %a: f32[N,3,4], %z: f32[N,3,4]) {\n"
    "graph @b(%i: i64[], %s: f32[N,3,4], %p: f32[N,3,4], %x: f32[N,3,4]) {\n"
    "%t: f32[N,3,4]{2 0 1} = add %s, %x\n%u: f32[N,3,4]{2 0 1} = sub %p, %t\n"
    "%q: f32[N,3,4]{0 1 2} = sub %s, %u\nreturn %u, %t, %t, %x, %q\n}\n"
    "%v: f32[N,3,4]{2 0 1} = add %a, %z\n"
    "%s: f32[N,3,4], %p: f32[N,3,4], %c: f32[4,N,3,4], %d: f32[4,N,3,4], %q: f32[4,N,3,4] = loop %n, %v, %z, %a "
    "body=@b carried=2 length=4\n"
    "%e: f32[4,N,3,4]{1 3 2 0} = neg %c\n%g: f32[4,N,3,4] = add %e, %d\n%f: f32[N,3,4]{1 0 2} = neg %s\n"
    "%h: f32[N,3,4] = add %f, %p\nreturn %s, %p, %c, %d, %q, %g, %h\n}\n";

/* Two bodies that want another order each of one operand, and hand it through; a loop in one of them. */
static const char torn[] =
    "graph @t<N>(%n: i64[], %c: bool[], %a: f32[N,3,4]) {\n"
    "graph @then(%n: i64[], %x: f32[N,3,4]) {\n"
    "graph @b(%i: i64[], %s: f32[N,3,4], %w: f32[N,3,4]) {\n%r: f32[N,3,4]{1 2 0} = add %s, %w\nreturn %r\n}\n"
    "%y: f32[N,3,4]{2 1 0} = neg %x\n%r: f32[N,3,4] = loop %n, %y, %x body=@b carried=1\nreturn %r, %x, %y, %y\n}\n"
    "graph @else(%n: i64[], %x: f32[N,3,4]) {\n%y: f32[N,3,4]{0 2 1} = neg %x\nreturn %x, %y, %x, %y\n}\n"
    "%r: f32[N,3,4], %s: f32[N,3,4], %t: f32[N,3,4], %u: f32[N,3,4]{2 1 0} = if %c, %n, %a then=@then else=@else\n"
    "%v: f32[N,3,4]{0 2 1} = neg %r\n%w: f32[N,3,4] = sub %u, %v\nreturn %r, %s, %t, %w\n}\n";

static void test_orders(void **state)
{
    check(orders, true, 5);
    check(orders, true, 3000);
    check(orders, true, 0);
    check(torn, true, 5);
    check(torn, false, 5);
    check(torn, true, 3000);
    check(torn, false, 3000);
}

/* Data change their order before the first trip and after the last. */
static void test_trips_keep_the_order(void **state)
{
    enum { BYTES = 2 * 32 * 14 * 14 * 4 };
    static const char text[] =
        "graph @t(%x: f32[2,32,14,14]) {\n"
        "graph @b(%i: i64[], %c: f32[2,32,14,14], %h: f32[2,32,14,14]) {\n%w: f32[32,1,3,3] = const random=1\n"
        "%v: f32[2,32,14,14] = conv %c, %w pad=[1 1 1 1] groups=32\n%a: f32[2,32,14,14] = add %v, %h\n"
        "%t: f32[2,32,14,14] = sub %c, %a\nreturn %t\n}\n"
        "%n: i64[] = const value=20\n%y: f32[2,32,14,14]{0 2 3 1} = loop %n, %x, %x body=@b carried=1\nreturn %y\n}\n";
    static float data[BYTES / 4];
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    struct weft_tensor x = tensor_of(data, 4, (const int64_t[]){2, 32, 14, 14});
    struct weft_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(weft_plan_relayouts(plan), 1); /* of %x, for both operands */
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_execution_statistics(e, &statistics), WEFT_OK);
    assert_int_equal(statistics.relayouts, 1);
    assert_int_equal(statistics.copied_bytes, BYTES);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Kernels and places of bodies are in the text of a plan: carried values at the results, the arena of the body inside
 * the outer one. */
static void test_text(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, nested);
    struct weft_plan *plan = compile(graph, 0);
    char *text;
    assert_int_equal(weft_plan_print(plan, &text), WEFT_OK);
    static const char *const want[] = {"loop %n, %a body=@outer ! weft_loop at=out0+0 parts=1",
                                       "then=@then else=@else ! weft_if at=result0+0 parts=1",
                                       "body=@inner length=3 ! weft_loop at=arena+",
                                       "fuse @mul_sub ! weft_mul_sub_f32 at=result1+0", "%h: f32[N] = mul %s, %s\n"};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (!strstr(text, want[i]))
            fail_msg("'%s' is not in\n%s", want[i], text);
    assert_null(strstr(text, "weft_reference"));
    weft_free_text(context, text);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* The hint of N, 1, is no size that the body can have. */
static void test_hints(void **state)
{
    check("graph @t<N>(%n: i64[], %a: f32[N]) {\n"
          "graph @b(%i: i64[], %a: f32[N]) {\n%x: f32[N-64] = slice %a start=[64] end=[N]\n"
          "%y: f32[N-64] = neg %x\n%z: f32[64] = slice %a start=[0] end=[64]\n"
          "%r: f32[N] = concat %y, %z axis=0\nreturn %r\n}\n"
          "%r: f32[N] = loop %n, %a body=@b\nreturn %r\n}\n",
          true, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop),     cmocka_unit_test(test_returned_as_they_are),
        cmocka_unit_test(test_condition), cmocka_unit_test(test_branches),
        cmocka_unit_test(test_nested),   cmocka_unit_test(test_orders),
        cmocka_unit_test(test_text),     cmocka_unit_test(test_trips_keep_the_order),
        cmocka_unit_test(test_hints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
