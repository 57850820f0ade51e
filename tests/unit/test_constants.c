/* SPDX-License-Identifier: Apache-2.0 */
/* What constants alone decide: which of it is computed when the plan is made, that runs no longer do it, and that the
 * numbers are those that a run would compute. */
#include "tests/unit/emulated.h"
#include "tests/unit/plan_support.h"
#include "tests/unit/scarce.h"

#include "passes/constants.h"

static struct weft_plan *compile_within(const struct weft_graph *graph, int64_t bytes)
{
    struct weft_plan *plan;
    const struct weft_compile_options options = {.size = sizeof options, .constant_bytes = bytes};
    if (weft_compile(graph, &options, &plan) != WEFT_OK)
        fail_msg("%s", weft_last_error(graph->context));
    return plan;
}

/* How many steps of the plan, its bodies included, compute nodes of this op? */
static int steps_of(const struct weft_plan *plan, int op)
{
    int count = 0;
    for (uint32_t i = 0; i < plan->steps; i++) {
        count += plan->step[i].node.id && weft_opcode_of(plan->graph, plan->step[i].node) == op;
        const struct weft_control *control = plan->step[i].control ? &plan->control[plan->step[i].control] : NULL;
        for (uint32_t k = 0; control && k < control->bodies; k++)
            count += steps_of(control->body[k], op);
    }
    return count;
}

static bool has_remark(const struct weft_plan *plan, const char *where, const char *verdict)
{
    struct weft_remark remark = {.size = sizeof remark};
    for (size_t i = 0; i < weft_remark_count(plan->graph); i++)
        if (weft_remark_get(plan->graph, i, &remark) == WEFT_OK && strcmp(remark.who, "constants") == 0 &&
            strcmp(remark.where, where) == 0 && strcmp(remark.verdict, verdict) == 0)
            return true;
    return false;
}

/* The first result, of a graph whose parameters are f32 of constant shapes. */
static void run(const struct weft_plan *plan, float *data, struct weft_tensor *ret)
{
    static float in[2][1 << 16];
    struct weft_execution *execution;
    for (int i = 0; i < 1 << 17; i++)
        in[i >> 16][i & 0xffff] = (float)(i % 37) / 37 - 0.3f;
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    for (size_t i = 0; i < weft_plan_inputs(plan); i++) {
        struct weft_port port = {.size = sizeof port};
        assert_int_equal(weft_plan_input(plan, i, &port), WEFT_OK);
        const struct weft_tensor tensor = tensor_of(in[i], port.rank, port.extent);
        assert_int_equal(weft_bind_input(execution, i, &tensor), WEFT_OK);
    }
    if (weft_run(execution) != WEFT_OK)
        fail_msg("%s", weft_execution_error(execution));
    assert_int_equal(weft_output(execution, 0, ret), WEFT_OK);
    memcpy(data, ret->data, weft_tensor_bytes(ret));
    weft_execution_destroy(execution);
}

/* To a few roundings of sums. */
static void expect_near(const struct weft_plan *plan, const struct weft_plan *other)
{
    static float got[1 << 17], wanted[1 << 17];
    struct weft_tensor result;
    run(other, wanted, &result);
    run(plan, got, &result);
    const int64_t n = weft_tensor_count(&result);
    float largest = 0;
    assert_true(n > 0 && n <= 1 << 17);
    for (int64_t i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(wanted[i]));
    for (int64_t i = 0; i < n; i++)
        assert_true(fabsf(got[i] - wanted[i]) <= 1e-5f * largest);
}

/* The reference evaluator's numbers. */
static void expect_same(const struct weft_graph *graph, const struct weft_plan *plan)
{
    struct weft_plan *const reference = compile(graph, WEFT_COMPILE_REFERENCE);
    expect_near(plan, reference);
    weft_plan_destroy(reference);
}

static const char product[] = "graph @g(%x: f32[2,300,64]) {\n"
                              "  %e: f32[300,128] = const random=1\n"
                              "  %w: f32[128,64] = const random=2\n"
                              "  %p: f32[300,64] = matmul %e, %w\n"
                              "  %b: f32[2,300,64] = bcast %p dims=[1 2]\n"
                              "  %y: f32[2,300,64] = add %x, %b\n"
                              "  return %y\n}\n";

static void products_of_constants_are_computed_once(void **state)
{
    struct weft_context *context = open_context(2);
    struct weft_graph *graph = parse(context, product);
    struct weft_plan *plan = compile_within(graph, 0);
    assert_int_equal(steps_of(plan, WEFT_OP_matmul), 0);
    assert_int_equal(plan->steps, 1);
    assert_true(has_remark(plan, "%p", "computed"));
    assert_int_equal(plan->constant_bytes, 300 * 64 * 4);
    expect_same(graph, plan);
    weft_plan_destroy(plan);

    plan = compile_within(graph, -1); /* none are */
    assert_int_equal(steps_of(plan, WEFT_OP_matmul), 1);
    weft_plan_destroy(plan);
    plan = compile(graph, WEFT_COMPILE_NO_PASSES);
    assert_int_equal(steps_of(plan, WEFT_OP_matmul), 1);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Only what a 16-bit weight is packed from is kept: the file's bytes and the pack. */
static void weights_of_16_bits_are_widened_once(void **state)
{
    struct scene s = open_scene("graph @g(%x: f32[8,256]) {\n"
                                "  %h: bf16[256,512] = const random=3\n"
                                "  %f: f32[256,512] = cast %h\n"
                                "  %y: f32[8,512] = matmul %x, %f\n"
                                "  return %y\n}\n",
                                0);
    assert_int_equal(steps_of(s.plan, WEFT_OP_cast), 0);
    assert_int_equal(s.plan->steps, 1);
    assert_true(s.plan->step[0].pack != 0);
    assert_true(s.plan->constant_bytes >= 256 * 512 * 4 && s.plan->constant_bytes < 256 * 512 * 4 * 3 / 2);
    expect_same(s.graph, s.plan);

    /* What was packed and given up prints as what it was, and is no graph to plan again. */
    char *text;
    assert_int_equal(weft_plan_print(s.plan, &text), WEFT_OK);
    assert_non_null(strstr(text, "%f: f32[256,512] = const blob="));
    weft_free_text(s.context, text);
    struct weft_graph *copy;
    struct weft_plan *again;
    assert_int_equal(weft_graph_clone(weft_plan_graph(s.plan), &copy), WEFT_ERR_INVALID);
    assert_int_equal(weft_compile(weft_plan_graph(s.plan), NULL, &again), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(s.context), "given up"));
    close_scene(&s);
}

/* A mask of known sizes is a constant; of unknown ones it is not, nor are random numbers. */
static void masks_are_constants_where_sizes_are(void **state)
{
    struct scene s = open_scene("graph @g(%x: f32[2,200,200]) {\n"
                                "  %i: i64[200] = iota axis=0\n"
                                "  %r: i64[200,200] = bcast %i dims=[0]\n"
                                "  %c: i64[200,200] = bcast %i dims=[1]\n"
                                "  %m: bool[200,200] = ge %r, %c\n"
                                "  %b: bool[2,200,200] = bcast %m dims=[1 2]\n"
                                "  %z: f32[2,200,200] = const value=-4\n"
                                "  %y: f32[2,200,200] = select %b, %x, %z\n"
                                "  return %y\n}\n",
                                0);
    assert_int_equal(s.plan->steps, 1);
    expect_same(s.graph, s.plan);
    close_scene(&s);

    s = open_scene("graph @g<N=1..999 hint=200>(%x: f32[N,N]) {\n"
                   "  %i: i64[N] = iota axis=0\n"
                   "  %r: i64[N,N] = bcast %i dims=[0]\n"
                   "  %c: i64[N,N] = bcast %i dims=[1]\n"
                   "  %m: bool[N,N] = ge %r, %c\n"
                   "  %z: f32[N,N] = const value=-4\n"
                   "  %u: f32[200,200] = rand_uniform seed=4\n"
                   "  %t: f32[] = sum %u axes=[0 1]\n"
                   "  %tb: f32[N,N] = bcast %t dims=[]\n"
                   "  %s: f32[N,N] = select %m, %x, %z\n"
                   "  %y: f32[N,N] = add %s, %tb\n"
                   "  return %y\n}\n",
                   0);
    assert_int_equal(steps_of(s.plan, WEFT_OP_ge), 1);
    assert_int_equal(steps_of(s.plan, WEFT_OP_rand_uniform), 1);
    close_scene(&s);
}

/* Two products of the same kind: what is cheap per saved time comes first, the other is refused by name, and what that
 * one is computed from is looked at instead. */
static void the_budget_goes_where_it_saves_most(void **state)
{
    static const char text[] = "graph @g(%x: f32[300,300], %z: f32[300,64]) {\n"
                               "  %e: f32[300,4] = const random=1\n"
                               "  %k: f32[4,300] = const random=2\n"
                               "  %large: f32[300,300] = matmul %e, %k\n"
                               "  %d: f32[300,900] = const random=3\n"
                               "  %w: f32[900,64] = const random=4\n"
                               "  %small: f32[300,64] = matmul %d, %w\n"
                               "  %a: f32[300,300] = add %x, %large\n"
                               "  %b: f32[300,64] = add %z, %small\n"
                               "  %y: f32[300,64] = matmul %a, %b\n"
                               "  return %y\n}\n";
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile_within(graph, 100000);
    assert_int_equal(steps_of(plan, WEFT_OP_matmul), 2);
    assert_true(has_remark(plan, "%small", "computed"));
    assert_true(has_remark(plan, "%large", "refused"));
    expect_same(graph, plan);
    weft_plan_destroy(plan);
    plan = compile_within(graph, 76000); /* both are too large */
    assert_int_equal(steps_of(plan, WEFT_OP_matmul), 3);
    assert_true(has_remark(plan, "%small", "refused") && has_remark(plan, "%large", "refused"));
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void what_is_refused_is_computed_from_constants_in_part(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[70,300,6]) {\n"
                                              "  %e: f32[70,300,99] = const random=1\n"
                                              "  %s: f32[70,300] = sum %e axes=[2]\n"
                                              "  %r: f32[70,300,6] = bcast %s dims=[0 1]\n"
                                              "  %t: f32[300,6] = const random=2\n"
                                              "  %c: f32[70,300,6] = bcast %t dims=[1 2]\n"
                                              "  %q: f32[70,300,6] = mul %r, %c\n"
                                              "  %y: f32[70,300,6] = add %x, %q\n"
                                              "  return %y\n}\n");
    struct weft_plan *plan = compile_within(graph, 100000);
    assert_int_equal(steps_of(plan, WEFT_OP_sum), 0);
    assert_int_equal(steps_of(plan, WEFT_OP_mul), 1);
    assert_true(has_remark(plan, "%q", "refused") && has_remark(plan, "%s", "computed"));
    expect_same(graph, plan);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Bodies have constants of their own, and a chain is computed as one. A result that is constant is computed in each
 * run: to copy it would take as long. */
static void bodies_have_constants(void **state)
{
    struct scene s = open_scene("graph @g(%x: f32[300,300], %c: f32[]) {\n"
                                "  graph @step(%n: i64[], %a: f32[300,300]) {\n"
                                "    %h: f16[300,300] = const random=5\n"
                                "    %f: f32[300,300] = cast %h\n"
                                "    %e: f32[300,300] = exp %f\n"
                                "    %r: f32[300,300] = mul %a, %e\n"
                                "    return %r\n"
                                "  }\n"
                                "  %n: i64[] = const value=3\n"
                                "  %l: f32[300,300] = loop %n, %x body=@step\n"
                                "  %k: f16[200,200] = const random=6\n"
                                "  %kf: f32[200,200] = cast %k\n"
                                "  return %l, %kf\n}\n",
                                0);
    assert_int_equal(steps_of(s.plan, WEFT_OP_cast), 1);
    assert_int_equal(steps_of(s.plan, WEFT_OP_exp), 0);
    expect_same(s.graph, s.plan);
    close_scene(&s);
}

/* The budget has room for one of two products: that of the body, which a run computes as often as the loop has trips,
 * where these are enough of them; the other one, which is larger, where they are not. */
static void what_bodies_compute_counts_with_their_trips(void **state)
{
    static const char text[] = "graph @g(%%x: f32[300,64]) {\n"
                               "  graph @step(%%n: i64[], %%a: f32[300,64]) {\n"
                               "    %%e: f32[300,100] = const random=5\n"
                               "    %%w: f32[100,64] = const random=6\n"
                               "    %%inner: f32[300,64] = matmul %%e, %%w\n"
                               "    %%r: f32[300,64] = add %%a, %%inner\n"
                               "    return %%r\n"
                               "  }\n"
                               "  %%n: i64[] = const value=%d\n"
                               "  %%d: f32[300,900] = const random=3\n"
                               "  %%v: f32[900,64] = const random=4\n"
                               "  %%outer: f32[300,64] = matmul %%d, %%v\n"
                               "  %%s: f32[300,64] = add %%x, %%outer\n"
                               "  %%y: f32[300,64] = loop %%n, %%s body=@step\n"
                               "  return %%y\n}\n";
    struct weft_context *context = open_context(1);
    for (int trips = 2; trips <= 40; trips += 38) {
        char many[1024];
        snprintf(many, sizeof many, text, trips);
        struct weft_graph *graph = parse(context, many);
        struct weft_plan *plan = compile_within(graph, 80000);
        assert_int_equal(has_remark(plan, "%inner", "computed"), trips > 2);
        assert_int_equal(has_remark(plan, "%outer", "computed"), trips == 2);
        assert_int_equal(steps_of(plan, WEFT_OP_matmul), 1);
        expect_same(graph, plan);
        weft_plan_destroy(plan);
        plan = compile_within(graph, 160000);
        assert_int_equal(steps_of(plan, WEFT_OP_matmul), 0);
        expect_same(graph, plan);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
    }
    weft_close(context);
}

/* Weights that are packed more than once: through a view or a relayout with two readers, and in a body that two loops
 * run. Their elements are there until the last pack is made. */
static void weights_of_several_readers_are_packed_for_each(void **state)
{
    static const char *const texts[] = {
        "graph @g(%x: f32[8,256], %z: f32[8,256]) {\n"
        "  %h: bf16[2,128,512] = const random=3\n"
        "  %f: f32[2,128,512] = cast %h\n"
        "  %v: f32[256,512] = reshape %f\n"
        "  %a: f32[8,512] = matmul %x, %v\n"
        "  %b: f32[8,512] = matmul %z, %v\n"
        "  %y: f32[8,512] = mul %a, %b\n"
        "  return %y\n}\n",
        "graph @g(%x: f32[8,256], %z: f32[8,256]) {\n"
        "  %h: bf16[256,512] = const random=3\n"
        "  %f: f32[256,512] = cast %h\n"
        "  %v: f32[256,512]{1 0} = relayout %f\n"
        "  %a: f32[8,512] = matmul %x, %v\n"
        "  %b: f32[8,512] = matmul %z, %v\n"
        "  %y: f32[8,512] = mul %a, %b\n"
        "  return %y\n}\n",
        "graph @g(%x: f32[8,256], %z: f32[8,256]) {\n"
        "  graph @step(%i: i64[], %c: f32[8,256]) {\n"
        "    %h: bf16[256,256] = const random=3\n"
        "    %f: f32[256,256] = cast %h\n"
        "    %m: f32[8,256] = matmul %c, %f\n"
        "    %t: f32[8,256] = tanh %m\n"
        "    return %t\n"
        "  }\n"
        "  %n: i64[] = const value=2\n"
        "  %a: f32[8,256] = loop %n, %x body=@step\n"
        "  %b: f32[8,256] = loop %n, %z body=@step\n"
        "  %y: f32[8,256] = sub %a, %b\n"
        "  return %y\n}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct scene s = open_scene(texts[i], 0);
        assert_int_equal(steps_of(s.plan, WEFT_OP_cast), 0);
        expect_same(s.graph, s.plan);
        close_scene(&s);
    }
}

/* What is stored in blocks or otherwise as somebody states is left to runs, which know how to. */
static void stated_layouts_are_left_to_runs(void **state)
{
    struct scene s = open_scene("graph @g(%x: f32[2,32,16,16]) {\n"
                                "  %k: f32[2,32,16,16] = const random=7\n"
                                "  %a: f32[2,32,16,16]{0 1/16 2 3 1%16} = tanh %k\n"
                                "  %s: f32[2,32,16,16]{0 1/16 2 3 1%16} = cumsum %a axis=1\n"
                                "  %b: f32[2,32,16,16] = tanh %s\n"
                                "  %y: f32[2,32,16,16] = add %x, %b\n"
                                "  return %y\n}\n",
                                0);
    expect_same(s.graph, s.plan);
    close_scene(&s);
}

/* Three batches, by their bytes. %s is read by two of them, by one through a view, and by the run, for which the budget
 * has no room; %one by one batch only. */
static const char batched[] = "graph @g(%x: f32[4,2100], %z: f32[2100]) {\n"
                              "  %r: f32[2100,256] = const random=1\n"
                              "  %s: f32[2100,256] = exp %r\n"
                              "  %c: f32[256,2100] = const random=3\n"
                              "  %a: f32[2100,2100] = matmul %s, %c\n"
                              "  %o: f32[2100,2100] = const random=4\n"
                              "  %one: f32[2100,2100] = tanh %o\n"
                              "  %h: f32[2100,2100] = exp %one\n"
                              "  %v: f32[2100,128] = slice %s start=[0 0] end=[2100 128]\n"
                              "  %d: f32[128,2100] = const random=5\n"
                              "  %b: f32[2100,2100] = matmul %v, %d\n"
                              "  %xa: f32[4,2100] = matmul %x, %a\n"
                              "  %xh: f32[4,2100] = matmul %x, %h\n"
                              "  %xb: f32[4,2100] = matmul %x, %b\n"
                              "  %ah: f32[4,2100] = add %xa, %xh\n"
                              "  %t: f32[4,2100] = add %ah, %xb\n"
                              "  %zb: f32[2100,256] = bcast %z dims=[0]\n"
                              "  %zs: f32[2100,256] = mul %zb, %s\n"
                              "  %zr: f32[2100,256] = add %zs, %r\n"
                              "  %w: f32[2100] = sum %zr axes=[1]\n"
                              "  %wb: f32[4,2100] = bcast %w dims=[1]\n"
                              "  %y: f32[4,2100] = add %t, %wb\n"
                              "  return %y\n}\n";

static void what_batches_share_is_computed_once(void **state)
{
    struct weft_context *context = open_context(2);
    struct weft_graph *graph = parse(context, batched);
    struct weft_plan *const none = compile_within(graph, -1);
    for (int i = 0; i < 2; i++) {
        struct weft_plan *const plan = compile_within(graph, i ? 0 : 54000000);
        assert_true(has_remark(plan, "%a", "computed") && has_remark(plan, "%b", "computed") &&
                    has_remark(plan, "%h", "computed"));
        assert_true(has_remark(plan, "%s", i ? "computed" : "shared") && !has_remark(plan, "%one", "shared"));
        assert_int_equal(has_remark(plan, "%s", "refused"), !i);
        assert_int_equal(steps_of(plan, WEFT_OP_exp), !i);
        assert_null(plan->known);
        expect_near(plan, none);
        weft_plan_destroy(plan);
    }
    weft_plan_destroy(none);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* A cast to 4 bits, and from them, in the graph and in a body: with a budget for the packed elements only, those are
 * the constants. */
static void four_bits_are_computed(void **state)
{
    static const char text[] = "graph @g(%x: f32[301,63]) {\n"
                               "  graph @step(%i: i64[], %a: f32[301,63]) {\n"
                               "    %e: f32[301,63] = const random=5\n"
                               "    %es: f32[301,63] = exp %e\n"
                               "    %inner: u4[301,63] = cast %es\n"
                               "    %if: f32[301,63] = cast %inner\n"
                               "    %r: f32[301,63] = add %a, %if\n"
                               "    return %r\n"
                               "  }\n"
                               "  %t: i64[] = const value=3\n"
                               "  %d: f32[301,63] = const random=3\n"
                               "  %dd: f32[301,63] = add %d, %d\n"
                               "  %dt: f32[301,63] = sinh %dd\n"
                               "  %outer: i4[301,63] = cast %dt\n"
                               "  %of: f32[301,63] = cast %outer\n"
                               "  %s: f32[301,63] = add %x, %of\n"
                               "  %y: f32[301,63] = loop %t, %s body=@step\n"
                               "  return %y\n}\n";
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile_within(graph, 2 * (301 * 63 + 1) / 2);
    assert_true(has_remark(plan, "%outer", "computed") && has_remark(plan, "%inner", "computed"));
    assert_int_equal(steps_of(plan, WEFT_OP_cast), 2);
    expect_same(graph, plan);
    weft_plan_destroy(plan);
    plan = compile_within(graph, 0);
    assert_int_equal(steps_of(plan, WEFT_OP_cast), 0);
    expect_same(graph, plan);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static const char in_body[] = "graph @g(%x: f32[300,64]) {\n"
                              "  graph @step(%i: i64[], %a: f32[300,64]) {\n"
                              "    %e: f32[300,100] = const random=5\n"
                              "    %w: f32[100,64] = const random=6\n"
                              "    %p: f32[300,64] = matmul %e, %w\n"
                              "    %r: f32[300,64] = add %a, %p\n"
                              "    return %r\n"
                              "  }\n"
                              "  %n: i64[] = const value=3\n"
                              "  %y: f32[300,64] = loop %n, %x body=@step\n"
                              "  return %y\n}\n";

/* Whatever allocation is refused, everything is given back. Steps of `op` are computed when planning. */
static void refuse_each(const char *text, int op)
{
    for (int64_t n = 0, refused = 1; refused > 0; n++) {
        struct scarce scarce = {.left = -1};
        const struct weft_allocator allocator = scarce_allocator(&scarce);
        const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .threads = 1};
        struct weft_context *context;
        assert_int_equal(weft_open(&options, &context), WEFT_OK);
        struct weft_graph *graph = parse(context, text);
        struct weft_plan *plan = NULL;
        scarce.left = n;
        const int status = weft_compile(graph, NULL, &plan);
        assert_int_equal(status, (refused = scarce.refused) ? WEFT_ERR_NOMEM : WEFT_OK);
        assert_true(refused ? !plan : steps_of(plan, op) == 0);
        scarce.left = -1;
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
        assert_int_equal(scarce.blocks, 0);
        assert_true(n < 5000);
    }
}

static void refused_memory_leaves_nothing(void **state)
{
    refuse_each(product, WEFT_OP_matmul);
    refuse_each(in_body, WEFT_OP_matmul);
#if !defined(__SANITIZE_ADDRESS__) /* a hundred runs over large constants would take minutes, as in an emulator */
    is_emulated() ? (void)0 : refuse_each(batched, WEFT_OP_exp);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_constants_are_computed_once),
        cmocka_unit_test(weights_of_16_bits_are_widened_once),
        cmocka_unit_test(masks_are_constants_where_sizes_are),
        cmocka_unit_test(the_budget_goes_where_it_saves_most),
        cmocka_unit_test(what_is_refused_is_computed_from_constants_in_part),
        cmocka_unit_test(bodies_have_constants),
        cmocka_unit_test(what_bodies_compute_counts_with_their_trips),
        cmocka_unit_test(weights_of_several_readers_are_packed_for_each),
        cmocka_unit_test(stated_layouts_are_left_to_runs),
        cmocka_unit_test(what_batches_share_is_computed_once),
        cmocka_unit_test(four_bits_are_computed),
        cmocka_unit_test(refused_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
