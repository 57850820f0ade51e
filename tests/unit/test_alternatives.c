/* SPDX-License-Identifier: Apache-2.0 */
/* test_alternatives.c: alternatives of the caller's: one that is cheaper takes the node's place and computes the same,
 * one that is not does not; what a function gets wrong is named; and weft's own, taken whatever they cost. */
#include "builder_support.h"

#include <math.h>
#include <stdio.h>

static const char product[] = "graph @f(%x: f32[16,64], %w: f32[64,8]) {\n"
                              "  %y: f32[16,8] = matmul %x, %w\n"
                              "  %z: f32[16,8] = relu %y\n"
                              "  return %z\n"
                              "}\n";

/* What a test asks of the functions below. */
struct wish {
    int asked, built;
    bool fits;
    int status;       /* of build */
    double cost_ns;
    bool compiles;    /* its own trial, to measure it, say */
    int mistake;      /* 0: none; 1: another type; 2: an operand; 3: two results; 4: an op that there is not */
};

static bool wish_fits(void *user, const struct weft_graph *graph, weft_node node)
{
    struct wish *const wish = user;
    struct weft_node_facts facts = {.size = sizeof facts};
    assert_int_equal(weft_node_read(graph, node, &facts), WEFT_OK);
    assert_string_equal(facts.op, "matmul");
    wish->asked++;
    return wish->fits;
}

static double wish_cost(void *user, const struct weft_graph *graph, weft_node node)
{
    return ((const struct wish *)user)->cost_ns;
}

/* x·w = neg(neg(x)·w), which nobody wants unless it says that it costs nothing. */
static int build_negated(void *user, struct weft_graph *trial, const weft_node *node, size_t nodes)
{
    struct wish *const wish = user;
    struct weft_value_facts facts = {.size = sizeof facts};
    weft_val operand[2] = {weft_node_operand(trial, node[0], 0), weft_node_operand(trial, node[0], 1)}, y[2];
    assert_int_equal(nodes, 1);
    assert_int_equal(weft_value_read(trial, operand[1], &facts), WEFT_OK);
    assert_int_equal(facts.constant, WEFT_CONSTANT_NONE);
    wish->built++;
    if (wish->status <= 0)
        return wish->status;
    const struct weft_op neg = {.size = sizeof neg, .op = wish->mistake == 4 ? "nag" : "neg", .operand = operand,
                                .operands = 1};
    if (weft_append(trial, &neg, operand) != WEFT_OK)
        return 1; /* it counts as refused all the same */
    const struct weft_op matmul = {.size = sizeof matmul, .op = "matmul", .operand = operand, .operands = 2};
    assert_int_equal(weft_append(trial, &matmul, y), WEFT_OK);
    const struct weft_op last = {.size = sizeof last, .op = "neg", .operand = y, .operands = 1};
    assert_int_equal(weft_append(trial, &last, y), WEFT_OK);
    if (wish->compiles) {
        struct weft_plan *plan;
        assert_int_equal(weft_return(trial, y, 1), WEFT_OK);
        assert_int_equal(weft_compile(trial, NULL, &plan), WEFT_OK);
        weft_plan_destroy(plan);
    }
    y[0] = wish->mistake == 1 ? operand[0] : wish->mistake == 2 ? operand[1] : y[0];
    y[1] = y[0];
    assert_int_equal(weft_return(trial, y, wish->mistake == 3 ? 2 : 1), WEFT_OK);
    return 1;
}

static struct weft_alternative alternative_of(struct wish *wish)
{
    return (struct weft_alternative){.size = sizeof(struct weft_alternative), .name = "negated", .op = "matmul",
                                     .user = wish, .fits = wish_fits, .build = build_negated, .cost_ns = wish_cost};
}

struct world {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
};

static int compile(struct world *w, const struct weft_alternative *alternative, const char *text)
{
    memset(w, 0, sizeof *w);
    assert_int_equal(weft_open(&(struct weft_context_options){.size = sizeof(struct weft_context_options),
                                                              .prices = ""}, &w->context), WEFT_OK);
    if (alternative)
        assert_int_equal(weft_register_alternative(w->context, alternative), WEFT_OK);
    assert_int_equal(weft_parse(w->context, text, strlen(text), "test", &w->graph), WEFT_OK);
    return weft_compile(w->graph, NULL, &w->plan);
}

static void close_world(struct world *w)
{
    weft_plan_destroy(w->plan);
    weft_graph_destroy(w->graph);
    weft_close(w->context);
}

static bool plan_has(const struct world *w, const char *needle)
{
    char *text;
    assert_int_equal(weft_plan_print(w->plan, &text), WEFT_OK);
    const bool has = strstr(text, needle);
    weft_free_text(w->context, text);
    return has;
}

static bool has_remark(const struct world *w, const char *who, const char *verdict, const char *reason)
{
    const struct weft_graph *const graph = weft_plan_graph(w->plan);
    struct weft_remark remark = {.size = sizeof remark};
    bool has = false;
    for (size_t i = 0; i < weft_remark_count(graph); i++)
        has |= weft_remark_get(graph, i, &remark) == WEFT_OK && strcmp(remark.who, who) == 0 &&
               strcmp(remark.verdict, verdict) == 0 && strstr(remark.reason, reason);
    return has;
}

enum { SYMBOL = 11 }; /* no hint of a symbol below */

/* The plan's results beside those of the evaluator, on the graph as it was read. */
static void expect_same(const struct world *w, double bound)
{
    struct weft_execution *execution;
    struct weft_tensor in[4] = {{0}}, expected[4] = {{0}}, out;
    struct weft_port port = {.size = sizeof port};
    assert_int_equal(weft_execution_create(w->plan, &execution), WEFT_OK);
    const size_t ins = weft_plan_inputs(w->plan), outs = weft_plan_outputs(w->plan);
    for (size_t i = 0; i < ins; i++) {
        int64_t elements = 1;
        assert_int_equal(weft_plan_input(w->plan, i, &port), WEFT_OK);
        in[i] = (struct weft_tensor){.dtype = port.dtype, .rank = port.rank};
        for (int a = port.rank - 1; a >= 0; a--) {
            in[i].extent[a] = port.extent[a] < 0 ? SYMBOL : port.extent[a];
            in[i].stride[a] = port.stride[a];
            elements *= in[i].extent[a];
        }
        float *const data = malloc((size_t)elements * sizeof *data);
        for (int64_t e = 0; e < elements; e++)
            data[e] = (float)((e * 7 + (int64_t)i) % 13 - 6) / 8;
        in[i].data = data;
        assert_int_equal(weft_bind_input(execution, i, &in[i]), WEFT_OK);
    }
    assert_int_equal(weft_run(execution), WEFT_OK);
    assert_int_equal(weft_evaluate(w->graph, in, ins, expected, outs), WEFT_OK);
    for (size_t i = 0; i < outs; i++) {
        assert_int_equal(weft_output(execution, i, &out), WEFT_OK);
        int64_t elements = 1;
        for (int a = 0; a < out.rank; a++)
            elements *= out.extent[a];
        for (int64_t e = 0; e < elements; e++)
            assert_true(fabs((double)((float *)out.data)[e] - ((float *)expected[i].data)[e]) <= bound);
        weft_tensor_free(w->context, &expected[i]);
    }
    for (size_t i = 0; i < ins; i++)
        free(in[i].data);
    weft_execution_destroy(execution);
}

/* --- its price ---------------------------------------------------------------------------------------------------- */

static void cheaper_one_is_taken(void **state)
{
    struct wish wish = {.fits = true, .status = 1, .cost_ns = 1};
    struct weft_alternative alternative = alternative_of(&wish);
    struct world w;
    assert_int_equal(compile(&w, &alternative, product), WEFT_OK);
    assert_int_equal(wish.built, 1);
    assert_true(plan_has(&w, "neg %x"));
    assert_true(has_remark(&w, "choose_alternatives.negated", "chose", "predicted to take 0.001 us, as it is"));
    expect_same(&w, 1e-4);
    close_world(&w);
}

static void trials_may_be_compiled(void **state)
{
    struct wish wish = {.fits = true, .status = 1, .cost_ns = 1, .compiles = true};
    struct weft_alternative alternative = alternative_of(&wish);
    struct world w;
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(compile(&w, &alternative, product), WEFT_OK);
        assert_int_equal(wish.built, i); /* none is asked about what is compiled inside of another */
        assert_true(plan_has(&w, "neg %x"));
        expect_same(&w, 1e-4);
        close_world(&w);
    }
}

static void dearer_one_is_not(void **state)
{
    struct wish wish = {.fits = true, .status = 1, .cost_ns = 1e9};
    struct weft_alternative alternative = alternative_of(&wish);
    struct world w;
    assert_int_equal(compile(&w, &alternative, product), WEFT_OK);
    assert_int_equal(wish.built, 1);
    assert_false(plan_has(&w, "neg"));
    assert_true(has_remark(&w, "choose_alternatives.negated", "refused", "it would take 1000000.000 us"));
    close_world(&w);
    alternative.cost_ns = NULL; /* three steps take longer than one */
    assert_int_equal(compile(&w, &alternative, product), WEFT_OK);
    assert_true(has_remark(&w, "choose_alternatives.negated", "refused", "as it is"));
    expect_same(&w, 1e-4);
    close_world(&w);
}

static void costs_that_cannot_be_are_refused(void **state)
{
    const double cost[] = {-1, NAN, INFINITY, 1e10};
    for (int i = 0; i < 4; i++) {
        struct wish wish = {.fits = true, .status = 1, .cost_ns = cost[i]};
        struct weft_alternative alternative = alternative_of(&wish);
        struct world w;
        assert_int_equal(compile(&w, &alternative, product), WEFT_OK);
        assert_true(has_remark(&w, "choose_alternatives.negated", "refused", "which cannot be"));
        close_world(&w);
    }
}

static void others_are_left_alone(void **state)
{
    struct wish wish = {.fits = false, .status = 1, .cost_ns = 1};
    struct weft_alternative alternative = alternative_of(&wish);
    struct world w;
    assert_int_equal(compile(&w, &alternative, product), WEFT_OK);
    assert_int_equal(wish.asked, 1);
    assert_int_equal(wish.built, 0);
    close_world(&w);
    wish = (struct wish){.fits = true, .status = 0, .cost_ns = 1};
    assert_int_equal(compile(&w, &alternative, product), WEFT_OK);
    assert_int_equal(wish.built, 1);
    assert_false(plan_has(&w, "neg"));
    close_world(&w);
    wish = (struct wish){.fits = true, .status = 1, .cost_ns = 1};
    setenv("WEFT_SKIP", "choose_alternatives.negated", 1);
    assert_int_equal(compile(&w, &alternative, product), WEFT_OK);
    unsetenv("WEFT_SKIP");
    assert_int_equal(wish.asked, 0);
    close_world(&w);
    setenv("WEFT_STOP_AFTER", "0", 1);
    assert_int_equal(compile(&w, &alternative, product), WEFT_OK);
    unsetenv("WEFT_STOP_AFTER");
    assert_false(plan_has(&w, "neg"));
    close_world(&w);
}

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

static void mistakes_are_named(void **state)
{
    static const struct {
        int mistake, status, expected;
        const char *message;
    } cases[] = {
        {0, WEFT_ERR_UNSUPPORTED, WEFT_ERR_UNSUPPORTED, "alternative negated: it could not be built"},
        {1, 1, WEFT_ERR_INVALID, "is not of the type f32[16,8], but f32[16,64]"},
        {3, 1, WEFT_ERR_INVALID, "it returns more results than the nodes have"},
        {4, 1, WEFT_ERR_ARGUMENT, "alternative negated: it could not be built"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wish wish = {.fits = true, .status = cases[i].status, .mistake = cases[i].mistake, .cost_ns = 1};
        struct weft_alternative alternative = alternative_of(&wish);
        struct world w;
        assert_int_equal(compile(&w, &alternative, product), cases[i].expected);
        assert_non_null(strstr(weft_last_error(w.context), cases[i].message));
        assert_non_null(strstr(weft_last_error(w.context), "%y"));
        close_world(&w);
    }
    struct wish wish = {.fits = true, .status = 1, .mistake = 2, .cost_ns = 1};
    struct weft_alternative alternative = alternative_of(&wish);
    struct world w;
    assert_int_equal(compile(&w, &alternative, "graph @f(%x: f32[8,8], %w: f32[8,8]) {\n"
                                               "  %y: f32[8,8] = matmul %x, %w\n  return %y\n}\n"), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(w.context), "it returns an operand"));
    close_world(&w);
}

static void wrong_ones_are_refused(void **state)
{
    struct wish wish = {0};
    const struct weft_alternative good = alternative_of(&wish);
    struct weft_alternative wrong[6] = {good, good, good, good, good, good};
    struct weft_context *context;
    wrong[0].size = 0;
    wrong[1].name = "a b";
    wrong[2].name = "decompose_k";
    wrong[3].name = "all";
    wrong[4].build = NULL;
    wrong[5].op = "matmull";
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(weft_register_alternative(context, &wrong[i]), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_register_alternative(context, &good), WEFT_OK);
    assert_int_equal(weft_register_alternative(context, &good), WEFT_ERR_ARGUMENT);
    weft_close(context);
}

/* --- weft's own, whatever they cost ------------------------------------------------------------------------------- */

static void own_ones_compute_the_same(void **state)
{
    static const struct {
        const char *name, *plan, *text;
    } cases[] = {
        {"decompose_k", "f32[16,8,4]", "graph @f(%x: f32[8,4096], %w: f32[4096,4]) {\n"
                                                "  %y: f32[8,4] = matmul %x, %w\n  return %y\n}\n"},
        {"decompose_k", "f32[16,8,4]", "graph @f(%x: f32[4096,8], %w: f32[4,4096]) {\n"
                                                "  %y: f32[8,4] = matmul %x, %w trans_a=1 trans_b=1\n"
                                                "  %z: f32[8,4] = relu %y\n  return %z\n}\n"},
        {"copy_operand", "relayout", "graph @f(%x: f32[8,64]{1 0}, %w: f32[64,4]) {\n"
                                     "  %y: f32[8,4] = matmul %x, %w\n  return %y\n}\n"},
        {"merge_products", "slice", "graph @f<N=1..99 hint=7>(%x: f32[N,64]) {\n"
                                    "  %v: f32[64,4] = const random=1 scale=1\n"
                                    "  %w: f32[64,2] = const random=2 scale=1\n"
                                    "  %p: f32[N,4] = matmul %x, %v\n  %q: f32[N,2] = matmul %x, %w\n"
                                    "  %n: f32[N,2] = neg %q\n  return %p, %n\n}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        setenv("WEFT_ALTERNATIVE", cases[i].name, 1);
        assert_int_equal(compile(&w, NULL, cases[i].text), WEFT_OK);
        unsetenv("WEFT_ALTERNATIVE");
        assert_true(plan_has(&w, cases[i].plan));
        expect_same(&w, 1e-2);
        close_world(&w);
    }
}

/* Bodies are graphs like others. */
static void nodes_of_bodies_are_weighed(void **state)
{
    static const char text[] = "graph @g(%n: i64[], %x: f32[8,8], %w: f32[8,8]) {\n"
                               "  graph @body(%k: i64[], %s: f32[8,8], %v: f32[8,8]) {\n"
                               "    %m: f32[8,8] = matmul %s, %v\n    %f: f32[8,8] = neg %m\n    return %f\n  }\n"
                               "  %y: f32[8,8] = loop %n, %x, %w body=@body carried=1\n  return %y\n}";
    struct wish wish = {.fits = true, .status = 1, .cost_ns = 1};
    struct weft_alternative alternative = alternative_of(&wish);
    struct world w;
    assert_int_equal(compile(&w, &alternative, text), WEFT_OK);
    assert_int_equal(wish.built, 1);
    assert_true(plan_has(&w, "neg %s"));
    close_world(&w);
}

static bool count_node(void *user, const struct weft_graph *graph, weft_node node)
{
    ++*(int *)user;
    return false;
}

/* Nodes whose types or attributes have a size that another node finds: a trial has no such node. */
static void sizes_out_of_data_are_left_alone(void **state)
{
    static const char text[] = "graph @g<K=data(4)>(%k: bool[4], %x: f32[4]) {\n"
                               "  %c: f32[K] = compress %x, %k extent=[K]\n  %e: i64[1] = extents value=[K]\n"
                               "  %y: f32[K] = tanh %c\n  %z: f32[4] = tanh %x\n  return %e, %y, %z\n}";
    static const struct {
        const char *op;
        int nodes;
    } cases[] = {{"extents", 0}, {"compress", 0}, {"tanh", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wish wish = {0};
        int asked = 0;
        struct weft_alternative alternative = alternative_of(&wish);
        struct world w;
        alternative.op = cases[i].op;
        alternative.fits = count_node;
        alternative.user = &asked;
        assert_int_equal(compile(&w, &alternative, text), WEFT_OK);
        assert_int_equal(asked, cases[i].nodes);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cheaper_one_is_taken),      cmocka_unit_test(trials_may_be_compiled),
        cmocka_unit_test(dearer_one_is_not),
        cmocka_unit_test(costs_that_cannot_be_are_refused), cmocka_unit_test(others_are_left_alone),
        cmocka_unit_test(mistakes_are_named),        cmocka_unit_test(wrong_ones_are_refused),
        cmocka_unit_test(own_ones_compute_the_same), cmocka_unit_test(nodes_of_bodies_are_weighed),
        cmocka_unit_test(sizes_out_of_data_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
