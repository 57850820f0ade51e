/* SPDX-License-Identifier: Apache-2.0 */
/* test_static.c: static inputs (weft_param_static): their packs are made once, anew behind each refresh and each bind,
 * and give the bits of the packs of constants. How many were made, statistics tell: a run that reads old elements
 * though nobody refreshed is no mistake, so nothing here asks what such a run computes. */
#include "tests/unit/plan_support.h"

#include "tests/unit/scarce.h"

enum { ROWS = 8, TERMS = 64, COLUMNS = 48 };

static const char product_text[] = "graph @p(%x: f32[8,64], %w: static f32[64,48]) {\n"
                                   "  %y: f32[8,48] = matmul %x, %w\n  return %y\n}\n";

static struct weft_statistics statistics_of(const struct weft_execution *e)
{
    struct weft_statistics s = {.size = sizeof s};
    assert_int_equal(weft_execution_statistics(e, &s), WEFT_OK);
    return s;
}

#define assert_packs(execution, count) assert_int_equal(statistics_of(execution).static_packs, count)

static void bind(struct weft_execution *e, size_t i, const struct weft_tensor *t)
{
    if (weft_bind_input(e, i, t) != WEFT_OK)
        fail_msg("%s", weft_execution_error(e));
}

static void run(struct weft_execution *e)
{
    if (weft_run(e) != WEFT_OK)
        fail_msg("%s", weft_execution_error(e));
}

/* Result 0 is that of the evaluator for what is bound: sums of eighths are exact. */
static void assert_right(struct weft_execution *e, const struct weft_graph *graph, const struct weft_tensor *in)
{
    struct weft_tensor want = {0}, got;
    assert_int_equal(weft_evaluate(graph, in, weft_graph_params(graph), &want, 1), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &got), WEFT_OK);
    static float dense[2 * FLOATS];
    struct weft_tensor rows = want; /* where what lies by columns is copied to */
    rows.data = dense;
    assert_int_equal(weft_tensor_count(&got), weft_tensor_count(&want));
    weft_tensor_copy(&rows, 0, &got, 0);
    assert_memory_equal(dense, want.data, (size_t)weft_tensor_count(&want) * sizeof(float));
    weft_tensor_free(graph->context, &want);
}

static float x_data[FLOATS], w_data[FLOATS], other_data[FLOATS];

static struct weft_tensor x_tensor(void) { return tensor_of(x_data, 2, (const int64_t[]){ROWS, TERMS}); }
static struct weft_tensor w_tensor(void) { return tensor_of(w_data, 2, (const int64_t[]){TERMS, COLUMNS}); }

static void change(struct weft_tensor *t)
{
    for (int64_t i = 0; i < weft_tensor_count(t); i++)
        ((float *)t->data)[i] = (float)((i * 29 + (int64_t)((float *)t->data)[0] + 7) % 37 - 18) / 8;
}

/* --- when packs are made ------------------------------------------------------------------------------------------ */

/* Packs of a megabyte and more, which are cut into parts. Sums of eighths are exact. */
static void large_packs_are_cut(void **state)
{
    enum { SIDE = 512, CHANNELS = 192, PIXELS = 36, MOST = SIDE * SIDE + CHANNELS * CHANNELS * 9 };
    static const char *const texts[] = {
        "graph @p(%x: f32[8,512], %w: static f32[512,512]) {\n  %y: f32[8,512] = matmul %x, %w\n  return %y\n}\n",
        "graph @c(%x: f32[1,192,6,6], %w: static f32[192,192,3,3]) {\n"
        "  %y: f32[1,192,6,6] = conv %x, %w pad=[1 1 1 1]\n  return %y\n}\n",
        "graph @s(%x: f32[1,192,6,6], %w: static f32[192,192,3,3]) {\n"
        "  %y: f32[1,192,3,3] = conv %x, %w pad=[1 1 1 1] stride=[2 2]\n  return %y\n}\n"};
    static float x[CHANNELS * PIXELS], w[MOST];
    for (int t = 0; t < 3; t++) {
        struct scene s = open_scene(texts[t], 0);
        const struct weft_tensor in[] = {
            t == 0 ? tensor_of(x, 2, (const int64_t[]){ROWS, SIDE})
                   : tensor_of(x, 4, (const int64_t[]){1, CHANNELS, 6, 6}),
            t == 0 ? tensor_of(w, 2, (const int64_t[]){SIDE, SIDE})
                   : tensor_of(w, 4, (const int64_t[]){CHANNELS, CHANNELS, 3, 3})};
        bind_inputs(s.execution, s.plan->graph, in, "bind");
        run(s.execution);
        assert_packs(s.execution, 1);
        assert_true(statistics_of(s.execution).static_bytes > 2 * (256 << 10)); /* three parts at least */
        assert_right(s.execution, s.graph, in);
        close_scene(&s);
    }
}

static void packs_are_made_once(void **state)
{
    struct scene s = open_scene(product_text, 0);
    struct weft_tensor in[] = {x_tensor(), w_tensor()};
    bind_inputs(s.execution, s.plan->graph, in, "bind");
    assert_packs(s.execution, 0);
    assert_int_equal(statistics_of(s.execution).static_bytes, 0);
    run(s.execution);
    assert_right(s.execution, s.graph, in);
    const int64_t bytes = statistics_of(s.execution).static_bytes;
    assert_true(bytes >= TERMS * COLUMNS * (int64_t)sizeof(float));
    assert_int_equal(statistics_of(s.execution).constant_bytes, 0);
    for (int i = 0; i < 3; i++) {
        change(&in[0]); /* it is no static input: each run reads it */
        const int before = allocations;
        run(s.execution);
        assert_int_equal(allocations, before);
        assert_packs(s.execution, 1);
        assert_right(s.execution, s.graph, in);
    }
    for (int i = 0; i < 3; i++) {
        change(&in[1]);
        assert_int_equal(weft_refresh(s.execution, i == 2 ? WEFT_ALL_INPUTS : 1), WEFT_OK);
        assert_int_equal(weft_refresh(s.execution, 1), WEFT_OK);
        const int before = allocations;
        run(s.execution);
        assert_int_equal(allocations, before);
        assert_packs(s.execution, 2 + i);
        assert_right(s.execution, s.graph, in);
    }
    assert_int_equal(statistics_of(s.execution).static_bytes, bytes);
    close_scene(&s);
}

static void binding_refreshes(void **state)
{
    struct scene s = open_scene(product_text, 0);
    struct weft_tensor in[] = {x_tensor(), w_tensor()}, other = tensor_of(other_data, 2, (int64_t[]){TERMS, COLUMNS});
    bind_inputs(s.execution, s.plan->graph, in, "bind");
    run(s.execution);
    change(&other);
    in[1] = other;
    bind(s.execution, 1, &other);
    run(s.execution);
    assert_packs(s.execution, 2);
    assert_right(s.execution, s.graph, in);
    in[1] = w_tensor();
    assert_int_equal(weft_rebind_input(s.execution, 1, w_data), WEFT_OK);
    run(s.execution);
    assert_packs(s.execution, 3);
    assert_right(s.execution, s.graph, in);
    change(&in[1]); /* at the same address */
    assert_int_equal(weft_rebind_input(s.execution, 1, w_data), WEFT_OK);
    run(s.execution);
    assert_packs(s.execution, 4);
    assert_right(s.execution, s.graph, in);
    assert_int_equal(weft_rebind_input(s.execution, 0, x_data), WEFT_OK);
    bind(s.execution, 0, &in[0]);
    run(s.execution);
    assert_packs(s.execution, 4);
    assert_int_equal(weft_rebind_input(s.execution, 1, (char *)w_data + 2), WEFT_ERR_BINDING);
    run(s.execution);
    assert_packs(s.execution, 4); /* the old address stayed bound */
    close_scene(&s);
}

static void executions_pack_for_themselves(void **state)
{
    struct scene s = open_scene(product_text, 0);
    struct weft_execution *second;
    struct weft_tensor in[] = {x_tensor(), w_tensor()};
    const struct weft_tensor other = tensor_of(other_data, 2, (int64_t[]){TERMS, COLUMNS});
    struct weft_tensor second_in[] = {in[0], other};
    change(&second_in[1]);
    assert_int_equal(weft_execution_create(s.plan, &second), WEFT_OK);
    bind_inputs(s.execution, s.plan->graph, in, "first");
    bind_inputs(second, s.plan->graph, second_in, "second");
    for (int i = 0; i < 2; i++) {
        run(s.execution);
        run(second);
        assert_right(s.execution, s.graph, in);
        assert_right(second, s.graph, second_in);
    }
    change(&second_in[1]);
    assert_int_equal(weft_refresh(second, 1), WEFT_OK);
    run(s.execution);
    run(second);
    assert_right(s.execution, s.graph, in);
    assert_right(second, s.graph, second_in);
    assert_packs(s.execution, 1);
    assert_packs(second, 2);
    weft_execution_destroy(second);
    close_scene(&s);
}

static void what_cannot_be_refreshed_is_refused(void **state)
{
    struct scene s = open_scene(product_text, 0);
    assert_int_equal(weft_refresh(s.execution, 0), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_execution_error(s.execution), "'x' is not static"));
    assert_int_equal(weft_refresh(s.execution, 2), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_execution_error(s.execution), "there is no input 2"));
    assert_int_equal(weft_refresh(s.execution, 1), WEFT_OK); /* nothing is bound yet */
    struct weft_port port = {.size = sizeof port};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(weft_plan_input(s.plan, i, &port), WEFT_OK);
        assert_int_equal(port.is_static, i);
    }
    close_scene(&s);
}

/* --- which weights are packed ------------------------------------------------------------------------------------- */

/* How many packs one run makes; its result is right, and again when the weights have changed. */
static int64_t packs_of(const char *text, const int64_t x[WEFT_MAX_RANK], int x_rank, const int64_t w[WEFT_MAX_RANK],
                        int w_rank)
{
    struct scene s = open_scene(text, 0);
    struct weft_tensor in[] = {tensor_of(x_data, x_rank, x), tensor_of(w_data, w_rank, w)};
    bind_inputs(s.execution, s.plan->graph, in, text);
    run(s.execution);
    const int64_t packs = statistics_of(s.execution).static_packs;
    assert_right(s.execution, s.graph, in);
    for (int i = 0; i < 2; i++) {
        change(&in[1]);
        assert_int_equal(weft_refresh(s.execution, 1), WEFT_OK);
        run(s.execution);
        assert_right(s.execution, s.graph, in);
    }
    assert_packs(s.execution, 3 * packs);
    close_scene(&s);
    return packs;
}

#define PACKS(text, x, w) \
    packs_of(text, (const int64_t[WEFT_MAX_RANK])x, sizeof(int64_t[])x / sizeof(int64_t), \
             (const int64_t[WEFT_MAX_RANK])w, sizeof(int64_t[])w / sizeof(int64_t))
#define LIST(...) {__VA_ARGS__}

static void views_are_packed_where_they_lie(void **state)
{
    assert_int_equal(1, PACKS("graph @t(%x: f32[8,64], %w: static f32[48,64]) {\n"
                              "  %t: f32[64,48] = transpose %w perm=[1 0]\n"
                              "  %y: f32[8,48] = matmul %x, %t\n  return %y\n}\n", LIST(8, 64), LIST(48, 64)));
    assert_int_equal(1, PACKS("graph @s(%x: f32[8,32], %w: static f32[64,48]) {\n"
                              "  %s: f32[32,48] = slice %w start=[16 0] end=[48 48] step=[1 1]\n"
                              "  %y: f32[8,48] = matmul %x, %s\n  return %y\n}\n", LIST(8, 32), LIST(64, 48)));
    assert_int_equal(1, PACKS("graph @r(%x: f32[8,64], %w: static f32[8,8,48]) {\n"
                              "  %r: f32[64,48] = reshape %w\n"
                              "  %y: f32[8,48] = matmul %x, %r\n  return %y\n}\n", LIST(8, 64), LIST(8, 8, 48)));
}

static void convolutions_are_packed(void **state)
{
    assert_int_equal(1, PACKS("graph @c(%x: f32[1,8,6,6], %w: static f32[16,8,3,3]) {\n"
                              "  %y: f32[1,16,6,6] = conv %x, %w pad=[1 1 1 1]\n  return %y\n}\n",
                              LIST(1, 8, 6, 6), LIST(16, 8, 3, 3)));
    assert_int_equal(1, PACKS("graph @ohwi(%x: f32[1,8,6,6], %w: static f32[16,3,3,8]) {\n"
                              "  %t: f32[16,8,3,3] = transpose %w perm=[0 3 1 2]\n"
                              "  %y: f32[1,16,6,6] = conv %x, %t pad=[1 1 1 1]\n  return %y\n}\n",
                              LIST(1, 8, 6, 6), LIST(16, 3, 3, 8)));
}

/* Two products that want the same of the same weights have one pack; all other readers read the input. */
static void packs_are_shared(void **state)
{
    assert_int_equal(1, PACKS("graph @twice(%x: f32[8,48], %w: static f32[48,48]) {\n"
                              "  %a: f32[8,48] = matmul %x, %w\n  %r: f32[8,48] = relu %a\n"
                              "  %y: f32[8,48] = matmul %r, %w\n  return %y\n}\n", LIST(8, 48), LIST(48, 48)));
    assert_int_equal(1, PACKS("graph @beside(%x: f32[8,48], %w: static f32[48,48]) {\n"
                              "  %a: f32[8,48] = matmul %x, %w\n  %s: f32[48] = sum %w axes=[0]\n"
                              "  %b: f32[8,48] = bcast %s dims=[1]\n"
                              "  %y: f32[8,48] = add %a, %b\n  return %y\n}\n", LIST(8, 48), LIST(48, 48)));
}

/* In bodies, as a left operand, in another type: read as it lies. */
static void others_read_the_input(void **state)
{
    assert_int_equal(0, PACKS("graph @left(%x: f32[64,8], %w: static f32[48,64]) {\n"
                              "  %y: f32[48,8] = matmul %w, %x\n  return %y\n}\n", LIST(64, 8), LIST(48, 64)));
    assert_int_equal(0, PACKS("graph @body(%x: f32[8,48], %w: static f32[48,48]) {\n"
                              "  graph @once(%i: i64[], %c: f32[8,48], %v: f32[48,48]) {\n"
                              "    %m: f32[8,48] = matmul %c, %v\n    %h: f32[8,48] = relu %m\n    return %h\n  }\n"
                              "  %n: i64[] = const value=2\n"
                              "  %y: f32[8,48] = loop %n, %x, %w body=@once carried=1\n  return %y\n}\n",
                              LIST(8, 48), LIST(48, 48)));
    assert_int_equal(0, PACKS("graph @scaled(%x: f32[8,64], %w: static f32[64,48]) {\n"
                              "  %v: f32[64,48] = mul %w, %w\n"
                              "  %y: f32[8,48] = matmul %x, %v\n  return %y\n}\n", LIST(8, 64), LIST(64, 48)));
}

/* --- as constants are --------------------------------------------------------------------------------------------- */

/* The result has the bits of one by constant weights with these elements, by the same kernel. */
static void kernels_and_bits_are_those_of_constants(void **state)
{
    struct scene s = open_scene(product_text, 0);
    struct weft_tensor in[] = {x_tensor(), w_tensor()}, got, want;
    for (int64_t i = 0; i < ROWS * TERMS; i++)
        x_data[i] = (float)i / 7 - 3; /* sums are not exact */
    for (int64_t i = 0; i < TERMS * COLUMNS; i++)
        w_data[i] = 5 - (float)i / 611;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    weft_val v[3];
    const weft_dim extent[] = {weft_extent(ROWS), weft_extent(TERMS)};
    assert_int_equal(weft_graph_create(s.context, "c", &graph), WEFT_OK);
    assert_int_equal(weft_param(graph, "x", WEFT_F32, 2, extent, &v[0]), WEFT_OK);
    assert_int_equal(weft_constant(graph, WEFT_F32, 2, (const int64_t[]){TERMS, COLUMNS}, w_data, &v[1]), WEFT_OK);
    const struct weft_op op = {.size = sizeof op, .op = "matmul", .operand = v, .operands = 2};
    assert_int_equal(weft_append(graph, &op, &v[2]), WEFT_OK);
    assert_int_equal(weft_return(graph, &v[2], 1), WEFT_OK);
    plan = compile(graph, 0);
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    bind(execution, 0, &in[0]);
    bind_inputs(s.execution, s.plan->graph, in, "static");
    run(execution);
    run(s.execution);
    assert_int_equal(weft_output(execution, 0, &want), WEFT_OK);
    assert_int_equal(weft_output(s.execution, 0, &got), WEFT_OK);
    assert_memory_equal(got.data, want.data, ROWS * COLUMNS * sizeof(float));
    struct weft_plan_step constant_step = {.size = sizeof constant_step}, static_step = constant_step;
    assert_int_equal(weft_plan_step(plan, 0, &constant_step), WEFT_OK);
    assert_int_equal(weft_plan_step(s.plan, 0, &static_step), WEFT_OK);
    assert_string_equal(constant_step.kernel, static_step.kernel);
    assert_int_equal(statistics_of(s.execution).static_bytes, statistics_of(execution).constant_bytes);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    close_scene(&s);
}

/* Runs at all sizes of an axis of x, with other weights for each; sizes that want another pack, or none, read the
 * weights as they lie. */
static void run_sizes(const char *text, int rank, const int64_t *x, int axis, int64_t most, const int64_t *w)
{
    struct scene s = open_scene(text, 0);
    struct weft_tensor in[] = {x_tensor(), tensor_of(w_data, rank, w)};
    int64_t extent[WEFT_MAX_RANK];
    memcpy(extent, x, (size_t)rank * sizeof *x);
    assert_non_null(s.plan->step[0].plain);
    bind(s.execution, 1, &in[1]);
    for (int64_t size = 0; size <= most; size++) {
        extent[axis] = size;
        in[0] = tensor_of(x_data, rank, extent);
        change(&in[1]);
        assert_int_equal(weft_refresh(s.execution, WEFT_ALL_INPUTS), WEFT_OK);
        bind(s.execution, 0, &in[0]);
        run(s.execution);
        assert_packs(s.execution, size + 1);
        assert_right(s.execution, s.graph, in);
    }
    close_scene(&s);
}

static void all_sizes_are_right(void **state)
{
    run_sizes("graph @columns<N=0..40 hint=8>(%x: f32[N,48], %w: static f32[48,32]) {\n"
              "  %y: f32[N,32]{1 0} = matmul %x, %w\n  return %y\n}\n",
              2, (const int64_t[]){0, 48}, 0, 40, (const int64_t[]){48, 32});
    run_sizes("graph @height<H=0..12 hint=8>(%x: f32[1,8,H,6], %w: static f32[16,8,3,3]) {\n"
              "  %y: f32[1,16,H,6] = conv %x, %w pad=[1 1 1 1]\n  return %y\n}\n",
              4, (const int64_t[]){1, 8, 0, 6}, 2, 12, (const int64_t[]){16, 8, 3, 3});
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Whichever request of a first run is refused, the next run is as good as any. */
static void refused_memory_is_asked_for_again(void **state)
{
    for (int64_t n = 0, refused = 1; refused; n++) {
        struct scarce scarce = {.left = -1};
        const struct weft_allocator allocator = scarce_allocator(&scarce);
        struct scene s;
        const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .threads = 2};
        assert_int_equal(weft_open(&options, &s.context), WEFT_OK);
        s.graph = parse(s.context, "graph @two(%x: f32[8,48], %w: static f32[48,48], %v: static f32[48,48]) {\n"
                                   "  %a: f32[8,48] = matmul %x, %w\n  %y: f32[8,48] = matmul %a, %v\n"
                                   "  return %y\n}\n");
        s.plan = compile(s.graph, 0);
        assert_int_equal(weft_execution_create(s.plan, &s.execution), WEFT_OK);
        struct weft_tensor in[] = {tensor_of(x_data, 2, (int64_t[]){8, 48}), tensor_of(w_data, 2, (int64_t[]){48, 48}),
                                   tensor_of(other_data, 2, (int64_t[]){48, 48})};
        bind_inputs(s.execution, s.plan->graph, in, "bind");
        scarce.left = n;
        scarce.once = true;
        const int status = weft_run(s.execution);
        refused = scarce.refused;
        scarce.left = -1;
        assert_int_equal(status, refused ? WEFT_ERR_NOMEM : WEFT_OK);
        run(s.execution);
        assert_right(s.execution, s.graph, in);
        assert_packs(s.execution, 2);
        assert_true(refused || n > 4);
        close_scene(&s);
        assert_int_equal(scarce.blocks, 0);
    }
}

/* --- what is static ----------------------------------------------------------------------------------------------- */

static void static_parameters_are_built(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph, *body, *copy;
    const weft_dim extent[] = {weft_extent(48), weft_extent(48)};
    weft_val v[3], none;
    char *text;
    assert_int_equal(weft_graph_create(context, "b", &graph), WEFT_OK);
    assert_int_equal(weft_param(graph, "x", WEFT_F32, 2, extent, &v[0]), WEFT_OK);
    assert_int_equal(weft_param_static(graph, "w", WEFT_F32, 2, extent, &v[1]), WEFT_OK);
    assert_int_equal(weft_graph_create_body(graph, "inner", &body), WEFT_OK);
    assert_int_equal(weft_param_static(body, "w", WEFT_F32, 2, extent, &none), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "a body cannot have static parameters"));
    assert_int_equal(weft_return_mut(graph, &v[0], &v[1], 1), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "not a mut parameter"));
    weft_graph_destroy(graph);

    graph = parse(context, product_text);
    assert_int_equal(weft_graph_clone(graph, &copy), WEFT_OK);
    assert_int_equal(weft_print(copy, &text), WEFT_OK);
    assert_non_null(strstr(text, "%w: static f32[64,48]"));
    weft_free_text(context, text);
    weft_graph_destroy(copy);
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_packs_are_cut),
        cmocka_unit_test(packs_are_made_once),
        cmocka_unit_test(binding_refreshes),
        cmocka_unit_test(executions_pack_for_themselves),
        cmocka_unit_test(what_cannot_be_refreshed_is_refused),
        cmocka_unit_test(views_are_packed_where_they_lie),
        cmocka_unit_test(convolutions_are_packed),
        cmocka_unit_test(packs_are_shared),
        cmocka_unit_test(others_read_the_input),
        cmocka_unit_test(kernels_and_bits_are_those_of_constants),
        cmocka_unit_test(all_sizes_are_right),
        cmocka_unit_test(refused_memory_is_asked_for_again),
        cmocka_unit_test(static_parameters_are_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
