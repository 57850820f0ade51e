/* SPDX-License-Identifier: Apache-2.0 */
/* test_alias.c: values that are computed in the memory of others: over an operand, in a `mut` parameter. What is marked
 * and what is not is in tests/golden/mark_aliases; here plans follow the marks, say what they did, and compute what the
 * evaluator computes, also graphs that are drawn at random. All run with poisoned memory. */
#include "tests/unit/plan_support.h"

enum { MOST = 8, SIDE = 8, ELEMENTS = 2048 };

static float memory[MOST][ELEMENTS];
static struct weft_tensor in[MOST];

/* Small whole numbers; indices are small enough to be inside. */
static void fill(const struct scene *s, size_t i, uint32_t seed)
{
    struct weft_port port = {.size = sizeof port};
    assert_int_equal(weft_plan_input(s->plan, i, &port), WEFT_OK);
    struct weft_tensor t = {.data = memory[i], .dtype = port.dtype, .rank = port.rank};
    for (int axis = 0; axis < port.rank; axis++) {
        t.extent[axis] = port.extent[axis];
        t.stride[axis] = port.stride[axis];
    }
    for (int k = 0; k < ELEMENTS; k++)
        if (port.dtype == WEFT_I64 && k < ELEMENTS / 2)
            ((int64_t *)t.data)[k] = (k + seed) % 3;
        else if (port.dtype == WEFT_F32)
            memory[i][k] = (float)((k * 7 + (int)(i * 5 + seed)) % 31 - 15);
    in[i] = t;
}

static bool same(const struct weft_tensor *a, const struct weft_tensor *b)
{
    int64_t elements = 1;
    for (int axis = 0; axis < a->rank; axis++)
        elements *= a->extent[axis];
    for (int64_t k = 0; k < elements; k++) {
        int64_t one = 0, two = 0, rest = k;
        for (int axis = a->rank - 1; axis >= 0; rest /= a->extent[axis--]) {
            one += rest % a->extent[axis] * a->stride[axis];
            two += rest % a->extent[axis] * b->stride[axis];
        }
        if (((const float *)a->data)[one] != ((const float *)b->data)[two])
            return false;
    }
    return true;
}

/* Results, and what the buffers of `mut` parameters hold then, are what the evaluator finds; with results bound to
 * memory of the caller as without. */
static bool agrees(struct scene *s, bool bound, uint32_t seed)
{
    static float room[MOST][ELEMENTS];
    struct weft_tensor want[MOST] = {{0}}, got;
    const size_t inputs = weft_plan_inputs(s->plan), outputs = weft_plan_outputs(s->plan);
    bool right = true;
    for (size_t i = 0; i < inputs; i++)
        fill(s, i, seed);
    assert_int_equal(weft_evaluate(s->graph, in, inputs, want, outputs), WEFT_OK);
    for (size_t i = 0; i < outputs; i++) {
        struct weft_port port = {.size = sizeof port};
        assert_int_equal(weft_plan_output(s->plan, i, &port), WEFT_OK);
        struct weft_tensor t = {.data = room[i], .dtype = port.dtype, .rank = port.rank};
        memcpy(t.extent, port.extent, sizeof t.extent);
        memcpy(t.stride, port.stride, sizeof t.stride);
        assert_int_equal(weft_bind_output(s->execution, i, bound ? &t : NULL), WEFT_OK);
    }
    for (size_t i = 0; i < inputs; i++)
        assert_int_equal(weft_bind_input(s->execution, i, &in[i]), WEFT_OK);
    if (weft_run(s->execution) != WEFT_OK)
        fail_msg("%s", weft_execution_error(s->execution));
    const struct weft_graph *g = s->graph;
    for (size_t i = 0; i < outputs; i++) {
        assert_int_equal(weft_output(s->execution, i, &got), WEFT_OK);
        right &= same(&want[i], &got) && (!bound || got.data == room[i]);
        if (g->ret[i].mut.id)
            right &= same(&want[i], &in[g->value[g->ret[i].mut.id].result]);
        weft_tensor_free(s->context, &want[i]);
    }
    return right;
}

static void run_scene(struct scene *s, int64_t copied)
{
    struct weft_statistics statistics = {.size = sizeof statistics};
    assert_true(agrees(s, false, 1));
    assert_int_equal(weft_execution_statistics(s->execution, &statistics), WEFT_OK);
    assert_int_equal(statistics.copied_bytes, copied);
    assert_true(agrees(s, true, 2));
    assert_true(agrees(s, false, 3));
}

static bool says(const struct scene *s, const char *where, const char *verdict, const char *reason)
{
    const struct weft_graph *g = weft_plan_graph(s->plan);
    for (uint32_t i = 0; i < g->remarks; i++)
        if (strcmp(g->remark[i].who, "mark_aliases") == 0 && strcmp(g->remark[i].where, where) == 0 &&
            strcmp(g->remark[i].verdict, verdict) == 0 && strstr(g->remark[i].reason, reason))
            return true;
    return false;
}

/* --- one by one --------------------------------------------------------------------------------------------------- */

static void a_chain_has_one_block(void **state)
{
    struct scene s = open_scene("graph @g(%x: f32[8,8]) {\n  %a: f32[8,8] = neg %x\n  %b: f32[8,8] = abs %a\n"
                                "  %c: f32[8,8] = sub %b, %a\n  %d: f32[8,8] = relu %c\n"
                                "  %e: f32[8] = reduce_max %d axes=[0]\n  return %e\n}\n", WEFT_COMPILE_NO_PASSES);
    char *text;
    assert_int_equal(weft_plan_print(s.plan, &text), WEFT_OK);
    assert_non_null(strstr(text, "parts=1 in=%d\n"));
    weft_free_text(s.context, text);
    assert_true(says(&s, "%c", "done", "where %d is written over it"));
    assert_true(says(&s, "%a", "refused", "not overwritten by %b: it is read later, by %c"));
    run_scene(&s, 0);
    struct weft_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(weft_execution_statistics(s.execution, &statistics), WEFT_OK);
    assert_true(statistics.arena_bytes < 3 * 256);
    assert_int_equal(statistics.inside, 0);
    assert_int_equal(statistics.overwriting, 2);
    assert_int_equal(statistics.updating, 0);
    close_scene(&s);
}

static void a_cache_is_not_copied(void **state)
{
    struct scene s = open_scene("graph @g(%k: mut f32[16,8], %r: f32[1,8], %at: i64[2]) {\n"
                                "  %n: f32[16,8] = dynamic_update %k, %r, %at\n  %s: f32[8] = reduce_max %n axes=[0]\n"
                                "  return mut %k = %n, %s\n}\n", WEFT_COMPILE_NO_PASSES);
    struct weft_plan_value value = {.size = sizeof value};
    struct weft_tensor got;
    run_scene(&s, 0);
    assert_int_equal(weft_output(s.execution, 0, &got), WEFT_OK);
    assert_ptr_equal(got.data, memory[0]);
    assert_int_equal(weft_plan_find(s.plan, "n", &value), WEFT_OK);
    assert_int_equal(value.memory, WEFT_MEMORY_INPUT);
    assert_int_equal(value.copies, 0);
    close_scene(&s);
}

static void a_reader_of_the_old_value_is_named(void **state)
{
    struct scene s = open_scene("graph @g(%w: mut f32[8,8], %g: f32[8,8]) {\n  %n: f32[8,8] = sub %w, %g\n"
                                "  %r: f32[8,8] = transpose %n perm=[1 0]\n  %m: f32[8,8] = max %w, %r\n"
                                "  return mut %w = %n, %m\n}\n",
                                WEFT_COMPILE_NO_PASSES);
    assert_true(says(&s, "%n", "refused", "copied into %w: the old value is read later"));
    assert_true(says(&s, "%n", "refused", "by %m"));
    run_scene(&s, 256);
    close_scene(&s);
}

/* What is written over takes with it all that is computed inside. */
static void a_part_of_what_is_overwritten(void **state)
{
    struct scene s = open_scene("graph @g(%x: f32[2,16], %y: f32[2,16], %z: f32[2,32]) {\n"
                                "  %a: f32[2,16] = relu %x\n  %b: f32[2,16] = neg %y\n"
                                "  %c: f32[2,32] = concat %a, %b axis=1\n  %e: f32[2,32] = abs %z\n"
                                "  %d: f32[4,32] = concat %c, %e axis=0\n  %n: f32[4,32] = neg %d\n"
                                "  %s: f32[4] = reduce_max %n axes=[1]\n  %t: f32[2] = reduce_max %a axes=[1]\n"
                                "  return %s, %t\n}\n", WEFT_COMPILE_NO_PASSES);
    assert_true(says(&s, "%d", "done", "where %n is written over it"));
    assert_true(says(&s, "%a", "refused", "copied into %c: it is read later, by %t"));
    run_scene(&s, 128);
    close_scene(&s);
}

static void a_value_that_stays_is_not_copied(void **state)
{
    struct scene s = open_scene("graph @g(%w: mut f32[8,8]) {\n  %n: f32[8,8] = neg %w\n"
                                "  return mut %w = %w, %n\n}\n", WEFT_COMPILE_NO_PASSES);
    run_scene(&s, 0);
    close_scene(&s);
}

/* --- at random ---------------------------------------------------------------------------------------------------- */

struct maker {
    uint32_t state;
    int values;
    char text[8192];
    size_t length;
};

static unsigned choose(struct maker *m, unsigned n)
{
    m->state = m->state * 1664525 + 1013904223;
    return (m->state >> 16) % n;
}

static WEFT_PRINTF(2, 3) void add(struct maker *m, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    m->length += (size_t)vsnprintf(m->text + m->length, sizeof m->text - m->length, format, arguments);
    va_end(arguments);
    assert_true(m->length < sizeof m->text);
}

/* A value of 8 x 8, of the newest more often. */
static int pick(struct maker *m)
{
    return choose(m, 2) && m->values > 3 ? m->values - 1 - (int)choose(m, 3) : (int)choose(m, (unsigned)m->values);
}

static void add_node(struct maker *m)
{
    static const char *const unary[] = {"neg", "abs", "relu"}, *const binary[] = {"add", "sub", "max"};
    const int v = m->values, a = pick(m), b = pick(m), rows = 1 + (int)choose(m, SIDE - 1), first = (int)choose(m, 2);
    const char *order = choose(m, 6) ? "" : "{1 0}";
    switch (choose(m, 9)) {
    case 0: case 1: add(m, "  %%v%d: f32[8,8]%s = %s %%v%d\n", v, order, unary[choose(m, 3)], a); break;
    case 2: case 3: add(m, "  %%v%d: f32[8,8]%s = %s %%v%d, %%v%d\n", v, order, binary[choose(m, 3)], a, b); break;
    case 4: add(m, "  %%v%d: f32[8,8] = transpose %%v%d perm=[1 0]\n", v, a); break;
    case 5:
        add(m, "  %%s%d: f32[%d,8] = slice %%v%d start=[0 0] end=[%d 8]\n", v, rows, a, rows);
        add(m, "  %%t%d: f32[%d,8] = slice %%v%d start=[%d 0] end=[%d 8]\n", v, 8 - rows, b, first ? 0 : rows,
            first ? 8 - rows : 8);
        add(m, "  %%v%d: f32[8,8] = concat %%s%d, %%t%d axis=0\n", v, v, v);
        break;
    case 6:
        add(m, "  %%s%d: f32[%d,8] = slice %%v%d start=[0 0] end=[%d 8]\n", v, rows, b, rows);
        add(m, "  %%v%d: f32[8,8] = dynamic_update %%v%d, %%s%d, %%at\n", v, a, v);
        break;
    case 7:
        add(m, "  %%s%d: f32[64] = reshape %%v%d\n  %%t%d: f32[64] = neg %%s%d\n", v, a, v, v);
        add(m, "  %%v%d: f32[8,8] = reshape %%t%d\n", v, v);
        break;
    default:
        add(m, "  %%s%d: f32[8] = reduce_max %%v%d axes=[%d]\n", v, a, first);
        add(m, "  %%t%d: f32[8,8] = bcast %%s%d dims=[1]\n  %%v%d: f32[8,8] = sub %%v%d, %%t%d\n", v, v, v, b, v);
        break;
    }
    m->values++;
}

static void make_graph(struct maker *m)
{
    add(m, "graph @g(%%at: i64[2]");
    for (; m->values < 3; m->values++)
        add(m, ", %%v%d: %sf32[8,8]%s", m->values, m->values < 2 ? "mut " : "", choose(m, 4) ? "" : "{1 0}");
    add(m, ") {\n");
    for (int nodes = 2 + (int)choose(m, 8); nodes > 0; nodes--)
        add_node(m);
    add(m, "  return mut %%v0 = %%v%d, mut %%v1 = %%v%d, %%v%d\n}\n", pick(m), pick(m), pick(m));
}

static void graphs_that_update(void **state)
{
    int in_place = 0;
    for (uint32_t seed = 1; seed <= 1500; seed++) {
        struct maker m = {.state = seed * 2654435761u};
        make_graph(&m);
        struct scene s = open_scene(m.text, (seed % 2 ? WEFT_COMPILE_NO_PASSES : 0) |
                                                (seed % 3 ? 0 : WEFT_COMPILE_SHARE_RESULTS));
        for (uint32_t run = 0; run < 3; run++)
            if (!agrees(&s, run == 1, seed + run))
                fail_msg("seed %u, run %u:\n%s", seed, run, m.text);
        in_place += s.plan->alias.ret[0].updated + s.plan->alias.ret[1].updated;
        close_scene(&s);
    }
    assert_true(in_place > 300);
}

/* What layouts take to stay where it is, since the graph alone says so, is what no concat gets into its result. */
static void what_stays_is_no_part(void **state)
{
    static const struct {
        const char *text; /* makes %p */
        bool stays;
    } parts[] = {
        {"%p: f32[8,32] = exp %x", false},
        {"%a: f32[256] = reshape %x\n  %e: f32[256] = exp %a\n  %p: f32[8,32] = reshape %e", false},
        {"%p: f32[8,32] = slice %x start=[0 0] end=[8 32]", true},
        {"%e: f32[8,32] = exp %x\n  %f: f32[16,32] = concat %e, %e axis=0\n"
         "  %p: f32[8,32] = slice %f start=[4 0] end=[12 32]", true},
        {"%r: f32[32] = sum %x axes=[0]\n  %p: f32[8,32] = bcast %r dims=[1]", true},
        {"%p: f32[8,32] = const random=1", true},
        {"%p: f32[8,32], %i: i64[8,32] = sort %x axis=1", true},
        {"%m: f32[8,32], %i: i64[8,32] = sort %x axis=1\n  %p: f32[8,32] = reshape %m", true},
        {"graph @body(%i: i64[], %a: f32[8,32]) {\n    %b: f32[8,32] = exp %a\n    return %b\n  }\n"
         "  %n: i64[] = const value=2\n  %p: f32[8,32] = loop %n, %x body=@body", true},
    };
    struct weft_context *context = open_context(1);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char text[512];
        snprintf(text, sizeof text, "graph @g(%%x: f32[8,32]) {\n  %s\n  %%q: f32[8,32] = abs %%x\n"
                 "  %%y: f32[16,32] = concat %%p, %%q axis=0\n  return %%y\n}\n", parts[i].text);
        struct weft_graph *graph = parse(context, text);
        struct weft_plan *plan = compile(graph, WEFT_COMPILE_NO_PASSES);
        const struct weft_graph *const g = plan->graph;
        const weft_node concat = weft_def(g, g->ret[0].value);
        weft_val root = weft_operand(g, concat, 0);
        if (weft_alias_stays(g, root) != parts[i].stays)
            fail_msg("it is said to %s: %s", parts[i].stays ? "move" : "stay", text);
        while (weft_is_view(g, weft_def(g, root)))
            root = weft_operand(g, weft_def(g, root), 0);
        if ((plan->alias.of[root.id].kind == WEFT_ALIAS_PART) == parts[i].stays)
            fail_msg("it is %sa part of the result: %s", parts[i].stays ? "" : "not ", text);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
    }
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_has_one_block),           cmocka_unit_test(a_cache_is_not_copied),
        cmocka_unit_test(a_reader_of_the_old_value_is_named), cmocka_unit_test(a_value_that_stays_is_not_copied),
        cmocka_unit_test(a_part_of_what_is_overwritten),   cmocka_unit_test(graphs_that_update),
        cmocka_unit_test(what_stays_is_no_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
