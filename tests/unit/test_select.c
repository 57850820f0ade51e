/* SPDX-License-Identifier: Apache-2.0 */
/* test_select.c: lists of choices (sched/select.h). For every op and dtype, and for products and convolutions that have
 * many forms: the list is never empty and ends with the reference evaluator, what is first is what runs, no kernel is
 * listed twice, each says whether it has vectors as the list of kernels does, and whatever a plan takes from the lists
 * computes the same: near the evaluator, and with the bits of the first choices where all signatures are theirs. */
#include "tests/unit/plan_support.h"
#include "tests/unit/sample_support.h"

enum { MOST = 8, MEMORY = 1 << 20, SIZE = 7, MOST_CHOICES = 64 };

/* --- lists -------------------------------------------------------------------------------------------------------- */

static const char *kernel_of(const struct weft_graph *g, weft_node n)
{
    return g->node[n.id].plan ? g->node[n.id].plan->kernel : NULL;
}

/* What a kind says of its kernel's vectors, beside the list of all kernels, where strip programs are not. */
static bool says_what_it_needs(const struct weft_choice *choice)
{
    const struct weft_kernel_info *info = NULL;
    unsigned i = 0;
    while ((info = weft_kernel_at(i++)) && strcmp(info->name, choice->kernel) != 0) {}
    const bool is_reference = strcmp(choice->kernel, "weft_reference") == 0;
    return info ? !info->cpu == !choice->cpu : is_reference ? !choice->cpu : choice->step.code != NULL;
}

static void check_list(const struct weft_graph *g, weft_node n, const struct weft_choices *list)
{
    const char *const op = weft_ops[weft_opcode_of(g, n)].name;
    if (list->count == 0)
        fail_msg("%s: there are %u choices", op, list->count);
    const bool placed = list->count == 1; /* parts of it are in their places */
    if (!placed && strcmp(list->choice[list->count - 1].kernel, "weft_reference") != 0)
        fail_msg("%s: the last choice is %s", op, list->choice[list->count - 1].kernel);
    if (strcmp(list->choice[0].kernel, kernel_of(g, n)) != 0)
        fail_msg("%s: %s runs, and the first choice is %s", op, kernel_of(g, n), list->choice[0].kernel);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct weft_choice *c = &list->choice[i];
        if (c->ps <= 0)
            fail_msg("%s: %s takes no time", op, c->kernel);
        if (!says_what_it_needs(c))
            fail_msg("%s: %s is said to need %#x of the CPU", op, c->kernel, c->cpu);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(list->choice[k].kernel, c->kernel) == 0 &&
                weft_signature_same(&list->choice[k].signature, &c->signature))
                fail_msg("%s: %s is listed twice", op, c->kernel);
    }
}

/* The longest list of a plan; `ret_text`: the signatures of what its nodes take. */
static uint32_t check_lists(const struct weft_plan *plan, char *ret_text)
{
    struct weft_graph *g = plan->graph;
    uint32_t most = 1;
    weft_foreach_node(g, n) {
        const struct weft_unit *const unit = weft_unit_of(&plan->units, n);
        const struct weft_choices *list = kernel_of(g, n) ? weft_plan_list_choices(plan, unit, g->arena) : NULL;
        if (!list)
            continue;
        if (plan->pick == 0)
            check_list(g, n, list);
        most = list->count > most ? list->count : most;
        const uint32_t taken = plan->pick < list->count ? plan->pick : list->count - 1;
        ret_text += sprintf(ret_text, "%s;", weft_signature_text(&list->choice[taken].signature, g->arena));
    }
    return most;
}

/* --- running what they say ---------------------------------------------------------------------------------------- */

/* Transforms have another error. */
static bool near(const struct weft_tensor *got, const struct weft_tensor *want, int64_t i, bool transforms)
{
    return sample_near(got, want, i) || (transforms && fabs(weft_load_real(got->dtype, got->data, i) -
                                                            weft_load_real(want->dtype, want->data, i)) < 1e-3);
}

static void run(const struct weft_plan *plan, const struct weft_tensor *in, const struct weft_tensor *want,
                const char *what, const char *signatures, char *ret)
{
    const bool transforms = strstr(signatures, "winograd");
    const struct weft_graph *g = plan->graph;
    struct weft_execution *e;
    struct weft_tensor got;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    bind_inputs(e, g, in, what);
    if (weft_run(e) != WEFT_OK)
        fail_msg("%s: %s", what, weft_execution_error(e));
    for (uint32_t i = 0; i < g->returns; i++) {
        assert_int_equal(weft_output(e, i, &got), WEFT_OK);
        const int64_t count = weft_tensor_count(&want[i]);
        assert_int_equal(weft_tensor_count(&got), count);
        for (int64_t k = 0; k < count; k++)
            if (!near(&got, &want[i], k, transforms))
                fail_msg("%s, choice %u: element %lld is %.9g instead of %.9g", what, plan->pick + 1, (long long)k,
                         weft_load_real(got.dtype, got.data, k), weft_load_real(want[i].dtype, want[i].data, k));
        for (int64_t k = 0; k < count; k++) { /* any NaN is as good as another */
            const double x = weft_dtype_is_float(got.dtype) ? weft_load_real(got.dtype, got.data, k) : 0;
            if (x != x)
                weft_store_real(got.dtype, got.data, k, (double)NAN);
        }
        if (count > 0)
            memcpy(ret, got.data, weft_tensor_bytes(&got));
        ret += weft_tensor_bytes(&got);
    }
    weft_execution_destroy(e);
}

static struct weft_plan *compile_choice(const struct weft_graph *graph, uint32_t number, uint32_t flags)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    setenv("WEFT_CHOICE", text, 1);
    struct weft_plan *plan = compile(graph, flags);
    unsetenv("WEFT_CHOICE");
    assert_int_equal(plan->pick + 1, number);
    return plan;
}

/* Returns how many choices the graph has, and takes the graph. */
static uint32_t check(struct weft_graph *graph, const char *what, uint32_t flags)
{
    static char memory[MEMORY], first[MEMORY], other[MEMORY], taken[4096], signatures[4096];
    struct weft_tensor in[MOST], want[MOST] = {{0}};
    uint32_t most = 1;
    sample_fill(graph, in, SIZE, memory);
    if (weft_evaluate(graph, in, graph->params, want, graph->returns) != WEFT_OK)
        fail_msg("%s: %s", what, weft_last_error(graph->context));
    for (uint32_t number = 1; number <= most; number++) {
        struct weft_plan *plan = compile_choice(graph, number, flags);
        const uint32_t count = check_lists(plan, number == 1 ? signatures : taken);
        most = number == 1 ? count : most;
        if (number == 1 && plan->has_records && plan->unexpected_units > 0)
            fail_msg("%s: %d of %d units do not run as they were recorded", what, plan->unexpected_units,
                     plan->kernel_units);
        assert_true(most < MOST_CHOICES);
        memset(other, 0, sizeof other);
        run(plan, in, want, what, number == 1 ? signatures : taken, number == 1 ? first : other);
        size_t bytes = 0;
        for (uint32_t i = 0; i < graph->returns; i++)
            bytes += weft_tensor_bytes(&want[i]);
        if (number > 1 && strcmp(taken, signatures) == 0 && memcmp(first, other, bytes) != 0)
            fail_msg("%s: choice %u has the signatures of the first, %s and other bits", what, number, taken);
        weft_plan_destroy(plan);
    }
    for (uint32_t i = 0; i < graph->returns; i++)
        weft_tensor_free(graph->context, &want[i]);
    weft_graph_destroy(graph);
    return most;
}

/* --- every op ----------------------------------------------------------------------------------------------------- */

static void test_ops(void **state)
{
    struct weft_context *context = open_context(2);
    int graphs = 0;
    for (int dtype = SAMPLE_FIRST; dtype <= SAMPLE_LAST; dtype++) {
        for (size_t i = 0; i < SAMPLES; i++) {
            struct weft_graph *graph = sample_graph(context, &samples[i], dtype);
            graphs += graph != NULL;
            if (graph)
                check(graph, weft_ops[samples[i].op].name, 0);
        }
        for (int op = 1; op < WEFT_OP_COUNT; op++) {
            bool sampled = !(weft_ops[op].traits & WEFT_ELEMENTWISE);
            for (size_t i = 0; i < SAMPLES; i++)
                sampled |= samples[i].op == op;
            struct weft_graph *graph = sampled ? NULL : sample_elementwise(context, op, dtype);
            graphs += graph != NULL;
            if (graph)
                check(graph, weft_ops[op].name, 0);
        }
    }
    assert_true(graphs > 500);
    weft_close(context);
}

/* --- many forms --------------------------------------------------------------------------------------------------- */

/* Operands are parameters (not called x, which would give them NaNs), with `least` choices at all levels that this
 * machine has beyond the baseline. */
static const struct {
    const char *text;
    uint32_t least, flags;
} forms[] = {
    {"%a: f32[1,16,20,20], %w: f32[16,16,3,3]) { %y: f32[1,16,18,18] = conv %a, %w", 4, 0},
    {"%a: f32[2,16,9,9], %w: f32[24,16,3,3]) { %b: f32[2,16,9,9]{0 2 3 1} = relayout %a\n"
     "%c: f32[2,24,9,9]{0 2 3 1} = conv %b, %w pad=[1 1 1 1]\n %y: f32[2,24,9,9] = relayout %c", 4,
     WEFT_COMPILE_NO_PASSES},
    {"%a: f32[1,32,9,9], %w: f32[8,32,1,1]) { %y: f32[1,8,9,9] = conv %a, %w", 3, 0},
    {"%a: f32[1,32,9,9], %w: f32[8,32,1,1]) { %b: f32[1,32,9,9]{0 2 3 1} = relayout %a\n"
     "%c: f32[1,8,9,9]{0 2 3 1} = conv %b, %w\n %y: f32[1,8,9,9] = relayout %c", 3, WEFT_COMPILE_NO_PASSES},
    {"%a: f32[1,24,11,11], %w: f32[24,1,3,3]) { %y: f32[1,24,11,11] = conv %a, %w pad=[1 1 1 1] groups=24", 6, 0},
    {"%a: f32[1,24,11,11], %w: f32[24,1,5,5]) { %b: f32[1,24,11,11]{0 2 3 1} = relayout %a\n"
     "%c: f32[1,24,4,4]{0 2 3 1} = conv %b, %w stride=[2 2] groups=24\n %y: f32[1,24,4,4] = relayout %c", 4,
     WEFT_COMPILE_NO_PASSES},
    {"%a: f32[1,32,9,9], %w: f32[32,4,3,3]) { %y: f32[1,32,7,7] = conv %a, %w groups=8", 4, 0},
    {"%a: f32[1,3,17,17], %w: f32[8,3,3,3]) { %y: f32[1,8,8,8] = conv %a, %w stride=[2 2]", 4, 0},
    {"%a: f32[1,6,5,5], %w: f32[6,4,3,3]) { %y: f32[1,4,11,11] = conv_transpose %a, %w stride=[2 2]", 2, 0},
    {"%a: f32[1,6,5,5], %w: f32[6,4,3,3]) { %y: f32[1,4,7,7] = conv_transpose %a, %w", 2, 0},
    {"%a: f32[4,5000], %w: f32[5000,8]) { %y: f32[4,8] = matmul %a, %w", 3, 0},
    {"%a: f32[1,600], %w: f32[16,600]) { %y: f32[1,16] = matmul %a, %w trans_b=1", 3, 0},
    {"%a: f32[7,4099]) { %y: f32[7] = sum %a axes=[1]", 3, 0},
    {"%a: f32[1000,37]) { %y: f32[37] = mean %a axes=[0]", 3, 0},
    {"%a: f32[3,4099]) { %y: f32[3,4099] = cumsum %a axis=1", 3, 0},
    {"%a: f32[2,3,20,8], %w: f32[2,3,8,20]) { %y: f32[2,3,20,20] = matmul %a, %w", 2, 0},
    {"%a: f32[50,16]) { %w: f32[16,32] = const random=1\n %y: f32[50,32] = matmul %a, %w", 2, 0},
};

static void test_forms(void **state)
{
    static const uint32_t flags[] = {0, WEFT_COMPILE_NO_WINOGRAD, WEFT_COMPILE_WINOGRAD_4};
    struct weft_context *context = open_context(2);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (int k = 0; k < 3; k++) {
            char text[512];
            snprintf(text, sizeof text, "graph @t(%s\n return %%y }", forms[i].text);
            const uint32_t count = check(parse(context, text), text, flags[k] | forms[i].flags);
            if (k == 0 && context->target.cpu && count < forms[i].least)
                fail_msg("%u choices: %s", count, text);
        }
    }
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
