/* SPDX-License-Identifier: Apache-2.0 */
/* What custom functions and kernels of the caller's demand of memory: columns that do not compete for a cache's sets,
 * addresses that are multiples of a line. Inputs end at a page that may not be touched, at every misalignment. */
#include "plan_support.h"
#include "sched/format.h"

#include <sys/mman.h>
#include <unistd.h>

static int64_t row_stride; /* as sum_columns found it */
static int misaligned;     /* operands that add_aligned was given so */

static bool any_strides(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

static void walk_columns(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret)
{
    assert_int_equal(ret->along, -1);
    assert_int_equal(ret->align, 0);
    ret->along = i < operands ? 0 : -1;
}

static void want_lines(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret) { ret->align = 64; }

static void want_nonsense(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret)
{
    ret->align = 48;
    ret->along = rank;
}

static int sum_columns(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *x = &call->operand[0];
    row_stride = x->stride[0];
    for (int64_t j = 0; j < x->extent[1]; j++) {
        float sum = 0;
        for (int64_t i = 0; i < x->extent[0]; i++)
            sum += ((const float *)x->data)[i * x->stride[0] + j * x->stride[1]];
        ((float *)call->result->data)[j * call->result->stride[0]] = sum;
    }
    return 0;
}

/* The first operand, element by element along one axis, plus 1; operands and result have that axis only. */
static int add_aligned(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *x = &call->operand[0], *y = call->result;
    for (size_t i = 0; i < call->operands; i++)
        misaligned += (uintptr_t)call->operand[i].data % 64 != 0;
    misaligned += (uintptr_t)y->data % 64 != 0;
    for (int64_t i = 0; i < x->extent[0]; i++)
        ((float *)y->data)[i * y->stride[0]] = ((const float *)x->data)[i * x->stride[0]] + 1;
    return 0;
}

static struct weft_context *open_demanding(int threads)
{
    static const struct weft_custom all[] = {
        {.size = sizeof *all, .name = "sum_columns", .least_operands = 1, .most_operands = 1, .run = sum_columns,
         .layout = any_strides, .demand = walk_columns},
        {.size = sizeof *all, .name = "add_aligned", .least_operands = 1, .most_operands = 2, .run = add_aligned,
         .layout = any_strides, .demand = want_lines},
        {.size = sizeof *all, .name = "add_whatever", .least_operands = 1, .most_operands = 2, .run = add_aligned,
         .layout = any_strides, .demand = want_nonsense},
    };
    struct weft_context *context = open_context(threads);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(weft_register(context, &all[i]), WEFT_OK);
    return context;
}

static int nodes_of(const struct weft_graph *graph, const char *op)
{
    struct weft_node_facts facts = {.size = sizeof facts};
    int count = 0;
    for (weft_node n = weft_next_node(graph, (weft_node){0}); n.id; n = weft_next_node(graph, n)) {
        assert_int_equal(weft_node_read(graph, n, &facts), WEFT_OK);
        count += !strcmp(facts.op, op);
    }
    return count;
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

static void columns_are_walked_over_padded_rows(void **state)
{
    enum { ROWS = 600, COLUMNS = 1024 };
    static const char text[] = "graph @g(%x: f32[600,1024]) {\n"
                               "  %y: f32[600,1024] = relu %x\n"
                               "  %z: f32[1024] = custom %y function=sum_columns\n"
                               "  %m: f32[1024] = sum %y axes=[0]\n"
                               "  %d: f32[1024] = sub %z, %m\n"
                               "  return %d\n}";
    float *data = malloc(ROWS * COLUMNS * sizeof *data);
    struct weft_tensor out;
    struct weft_context *context = open_demanding(2);
    struct weft_graph *graph = parse(context, text);
    struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){ROWS, COLUMNS});
    for (int padded = 0; padded < 2; padded++) {
        struct weft_plan *plan = compile(graph, padded ? 0 : WEFT_COMPILE_NO_PASSES);
        struct weft_execution *e;
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
        assert_int_equal(weft_run(e), WEFT_OK);
        assert_int_equal(row_stride, padded ? COLUMNS + 16 : COLUMNS);
        assert_int_equal(weft_output(e, 0, &out), WEFT_OK);
        for (int i = 0; i < COLUMNS; i++)
            assert_true(((const float *)out.data)[i] == 0);
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
    }
    assert_int_equal(weft_run_pass(graph, "pad-strides", NULL), 1);
    assert_int_equal(weft_run_pass(graph, "pad-strides", NULL), 0);
    assert_true(is_remarked(graph, "pad_strides", "padded", "sum_columns walks across 600"));
    free(data);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void refusals_are_explained(void **state)
{
    static const char *const row[][2] = {
        {"%z: f32[1024] = custom %y function=sum_columns\n return %z, %y\n}", "it is returned"},
        {"%z: f32[1024] = custom %y function=sum_columns\n %r: f32[614400] = reshape %y\n %s: f32[] = sum %r axes=[0]\n"
         " return %z, %s\n}", "%r would become a copy"},
        {"%z: f32[1024] = custom %y function=sum_columns\n %c: f32[1200,1024] = concat %y, %x axis=0\n"
         " return %z, %c\n}", "%c may have it computed in place"},
        {"%z: f32[1024] = custom %y function=sum_columns\n %k: f32[600,1024] = neg %y ! own.neg\n return %z, %k\n}",
         "%k or its group has a kernel"},
    };
    struct weft_context *context = open_demanding(1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[512];
        snprintf(text, sizeof text, "graph @g(%%x: f32[600,1024]) {\n %%y: f32[600,1024] = relu %%x\n %s", row[i][0]);
        struct weft_graph *graph = parse(context, text);
        assert_int_equal(weft_run_pass(graph, "pad_strides", NULL), 0);
        assert_true(is_remarked(graph, "pad_strides", "refused", row[i][1]));
        weft_graph_destroy(graph);
    }
    weft_close(context);
}

/* Without a shared cache, what fits the private one is still there. */
static void levels_are_told_apart_without_a_shared_cache(void **state)
{
    const struct weft_target target = {.l2 = 1 << 20, .arithmetic = WEFT_CONV_F2};
    const enum weft_price first = WEFT_PRICE_read_private;
    assert_int_equal(weft_format_level(&target, first, 1 << 19), first);
    assert_int_equal(weft_format_level(&target, first, (1 << 19) + 1), first + 2);
}

/* --- alignment ---------------------------------------------------------------------------------------------------- */

/* `elements` floats that end where memory ends, so that the first lies at some address; and where that is. */
static float *at_the_end(size_t elements, char **ret_pages, size_t *ret_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (elements * sizeof(float) + page - 1) / page * page;
    char *pages = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + bytes, page, PROT_NONE), 0);
    *ret_pages = pages;
    *ret_bytes = bytes + page;
    return (float *)(pages + bytes) - elements;
}

struct aligned_case {
    const char *text;
    int64_t elements, first, last; /* of x; those of y are x[first … last) + 1 */
    int copies;                    /* relayouts that the pass puts in */
};

/* Every misalignment of an element's size, for input and result. */
static void run_misaligned(const struct aligned_case *c, bool passes)
{
    struct weft_context *context = open_demanding(2);
    struct weft_graph *graph = parse(context, c->text);
    struct weft_plan *plan = compile(graph, passes ? 0 : WEFT_COMPILE_NO_PASSES);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    misaligned = 0;
    for (size_t more = 0; more < 16; more++) {
        char *pages[2];
        size_t bytes[2];
        float *from = at_the_end((size_t)c->elements + more, &pages[0], &bytes[0]);
        float *to = at_the_end((size_t)(c->last - c->first) + 15 - more, &pages[1], &bytes[1]);
        struct weft_tensor x = tensor_of(from, 1, &c->elements), y = {.data = to, .dtype = WEFT_F32, .rank = 1,
                                                                      .extent = {c->last - c->first}, .stride = {1}};
        assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
        assert_int_equal(weft_bind_output(e, 0, &y), WEFT_OK);
        assert_int_equal(weft_run(e), WEFT_OK);
        for (int64_t i = 0; i < y.extent[0]; i++)
            assert_true(to[i] == from[c->first + i] + 1);
        munmap(pages[0], bytes[0]);
        munmap(pages[1], bytes[1]);
    }
    assert_int_equal(misaligned, 0);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    assert_true(weft_run_pass(graph, "align_buffers", NULL) >= 0);
    assert_int_equal(nodes_of(graph, "relayout"), c->copies);
    assert_true(!c->copies || is_remarked(graph, "align_buffers", "copied", "multiple of 64"));
    assert_int_equal(weft_run_pass(graph, "align_buffers", NULL), 0);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void misaligned_data_give_right_results(void **state)
{
    static const struct aligned_case cases[] = {
        {"graph @whole(%x: f32[1040]) {\n %y: f32[1040] = custom %x function=add_aligned\n return %y\n}", 1040, 0, 1040,
         1},
        {"graph @inner(%x: f32[1040]) {\n %s: f32[1024] = slice %x start=[1] end=[1025]\n"
         " %y: f32[1024] = custom %s function=add_aligned\n return %y\n}", 1040, 1, 1025, 1},
        {"graph @rows(%x: f32[130]) {\n %r: f32[2,65] = reshape %x\n %s: f32[1,65] = slice %r start=[1 0] end=[2 65]\n"
         " %t: f32[65] = reshape %s\n %y: f32[65] = custom %t function=add_aligned\n return %y\n}", 130, 65, 130, 1},
        {"graph @own(%x: f32[130]) {\n %a: f32[130] = add %x, %x\n %b: f32[130] = sub %a, %x\n"
         " %s: f32[64] = slice %b start=[16] end=[80]\n %y: f32[64] = custom %s function=add_aligned\n return %y\n}",
         130, 16, 80, 0},
        {"graph @shared(%x: f32[64]) {\n %p: f32[64] = custom %x function=add_aligned\n %n: f32[64] = sub %p, %p\n"
         " %y: f32[64] = custom %x, %n function=add_aligned\n return %y\n}", 64, 0, 64, 1},
        {"graph @weft(%x: f32[1040]) {\n %s: f32[1024] = slice %x start=[1] end=[1025]\n"
         " %c: f32[1024] = const value=1\n %y: f32[1024] = add %s, %c\n return %y\n}", 1040, 1, 1025, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int passes = 0; passes < 2; passes++)
            run_misaligned(&cases[i], passes);
}

static void a_promise_is_held_to(void **state)
{
    struct weft_context *context = open_demanding(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[64]{0 align=64}) {\n"
                                              "  %y: f32[64] = custom %x function=add_aligned\n  return %y\n}");
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    _Alignas(64) float data[80];
    struct weft_tensor x = tensor_of(data + 1, 1, (const int64_t[]){64});
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(e), "not aligned to 64 bytes"));
    x.data = data + 16;
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Of what is empty nothing has an address. */
static void a_promise_is_held_to_for_results(void **state)
{
    struct weft_context *context = open_demanding(1);
    struct weft_graph *graph = parse(context, "graph @g<N>(%x: f32[N]{0 align=64}) {\n"
                                              "  %y: f32[N]{0 align=64} = relu %x\n  return %y\n}");
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    _Alignas(64) float data[80], out[80];
    struct weft_tensor x = tensor_of(data, 1, (const int64_t[]){64});
    struct weft_tensor y = tensor_of(out + 1, 1, (const int64_t[]){64});
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_output(e, 0, &y), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(e), "output 0 'y': data is not aligned to 64 bytes"));
    y.data = out + 16;
    assert_int_equal(weft_bind_output(e, 0, &y), WEFT_OK);
    x.extent[0] = y.extent[0] = 0;
    x.data = (char *)data + 1;
    y.data = (char *)out + 1;
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_bind_output(e, 0, &y), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* What wants a line keeps memory of its own: the concat copies it. */
static void a_place_inside_another_is_refused(void **state)
{
    struct weft_context *context = open_demanding(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[63]) {\n  %a: f32[63] = relu %x\n"
                                              "  %b: f32[63] = neg %a\n"
                                              "  %y: f32[63] = custom %b function=add_aligned\n"
                                              "  %c: f32[189] = concat %x, %b, %y axis=0\n  return %c\n}");
    assert_int_equal(weft_run_pass(graph, "align_buffers", NULL), 1);
    assert_int_equal(nodes_of(graph, "relayout"), 0);
    weft_run_pass(graph, "mark_aliases", NULL);
    assert_true(is_remarked(graph, "mark_aliases", "refused", "it has to be aligned"));
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Each of many slices of one value is copied, in time that grows with their number. */
static void many_views_of_one_value(void **state)
{
    enum { SLICES = 40000, BYTES = 160 };
    char *const text = malloc(SLICES * BYTES);
    int used = sprintf(text, "graph @g(%%x: f32[8,64]) {\n %%r: f32[8,64] = relu %%x\n");
    for (int i = 0; i < SLICES; i++)
        used += sprintf(text + used, " %%s%d: f32[8,63] = slice %%r start=[0 1] end=[8 64]\n"
                        " %%y%d: f32[8,63] = custom %%s%d function=add_aligned\n", i, i, i);
    sprintf(text + used, " return %%y0\n}\n");
    struct weft_context *context = open_demanding(1);
    struct weft_graph *graph = parse(context, text);
    assert_true(weft_run_pass(graph, "align_buffers", NULL) >= 0);
    assert_int_equal(nodes_of(graph, "relayout"), SLICES);
    weft_graph_destroy(graph);
    weft_close(context);
    free(text);
}

static void nonsense_is_no_demand(void **state)
{
    struct weft_context *context = open_demanding(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[64]) {\n"
                                              "  %y: f32[64] = custom %x function=add_whatever\n  return %y\n}");
    assert_int_equal(weft_run_pass(graph, "align_buffers", NULL), 0);
    assert_int_equal(weft_run_pass(graph, "pad_strides", NULL), 0);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- kernels of a target ------------------------------------------------------------------------------------------ */

static double instant(void *user, const struct weft_graph *graph, weft_node node) { return 1; }

static void kernel_demand(void *user, const struct weft_graph *graph, weft_node node, size_t i, struct weft_demand *ret)
{
    ret->along = i == 0 ? 0 : -1;
    ret->align = i == 1 ? 32 : 0;
}

static const char *takes_any(void *user, const struct weft_graph *graph, weft_node node, size_t i) { return NULL; }

static void kernels_of_a_target_are_asked(void **state)
{
    struct weft_context *context = open_demanding(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[600,1024], %w: f32[1024,8]) {\n"
                                              "  %y: f32[600,1024] = relu %x\n"
                                              "  %z: f32[600,8] = matmul %y, %w\n  return %z\n}");
    struct weft_target *target;
    const struct weft_kernel kernel = {.size = sizeof kernel, .name = "by_columns", .op = "matmul", .cost = instant,
                                       .layout = takes_any, .demand = kernel_demand};
    struct weft_value_facts y = {.size = sizeof y};
    assert_int_equal(weft_run_pass(graph, "pad_strides", NULL), 0);
    assert_int_equal(weft_target_create(context, &target), WEFT_OK);
    assert_int_equal(weft_target_add(target, &kernel), WEFT_OK);
    assert_int_equal(weft_run_pass(graph, "propagate_memory_format", target), 1);
    assert_int_equal(weft_run_pass(graph, "pad_strides", target), 1);
    const int64_t layouts_ps = graph->format_ps;
    assert_int_equal(weft_run_pass(graph, "align_buffers", target), 1);
    assert_int_equal(nodes_of(graph, "relayout"), 1);
    assert_int_equal(graph->conversions, 1);
    assert_true(graph->conversion[0].ps > 1024 * 8 * 4 && !graph->conversion[0].once); /* 32 KiB at 1 TB/s */
    assert_int_equal(graph->format_ps, layouts_ps + graph->conversion[0].ps);
    weft_node n = weft_next_node(graph, (weft_node){0});
    while (weft_value_read(graph, weft_node_result(graph, n, 0), &y) == WEFT_OK &&
           (!y.name || strcmp(y.name, "y") != 0))
        n = weft_next_node(graph, n);
    assert_int_equal(y.storage[0].stride, 1040);
    assert_true(is_remarked(graph, "align_buffers", "copied", "by_columns, which wants an address"));
    weft_target_destroy(target);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void result_demand(void *user, const struct weft_graph *graph, weft_node node, size_t i, struct weft_demand *ret)
{
    ret->align = i == 1 ? 64 : 0;
}

/* Nothing stands behind a kernel that could copy: where its result may lie anywhere, a remark says so. */
static void results_of_kernels_that_lie_anywhere_are_named(void **state)
{
    const struct weft_kernel kernel = {.size = sizeof kernel, .name = "by_lines", .op = "relu", .cost = instant,
                                       .layout = takes_any, .demand = result_demand};
    struct weft_context *context = open_demanding(1);
    for (int returned = 0; returned < 2; returned++) {
        struct weft_graph *graph = parse(context, returned ? "graph @g(%x: f32[64]) {\n  %y: f32[64] = relu %x\n"
                                                             "  return %y\n}"
                                                           : "graph @g(%x: f32[64]) {\n  %y: f32[64] = relu %x\n"
                                                             "  %z: f32[64] = exp %y\n  return %z\n}");
        struct weft_target *target;
        assert_int_equal(weft_target_create(context, &target), WEFT_OK);
        assert_int_equal(weft_target_add(target, &kernel), WEFT_OK);
        assert_true(weft_run_pass(graph, "align_buffers", target) >= 0);
        assert_int_equal(is_remarked(graph, "align_buffers", "refused", "by_lines wants its result"), returned);
        assert_int_equal(weft_run_pass(graph, "align_buffers", target), 0);
        weft_target_destroy(target);
        weft_graph_destroy(graph);
    }
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_walked_over_padded_rows), cmocka_unit_test(refusals_are_explained),
        cmocka_unit_test(misaligned_data_give_right_results),  cmocka_unit_test(a_promise_is_held_to),
        cmocka_unit_test(a_place_inside_another_is_refused),   cmocka_unit_test(nonsense_is_no_demand),
        cmocka_unit_test(kernels_of_a_target_are_asked),       cmocka_unit_test(a_promise_is_held_to_for_results),
        cmocka_unit_test(many_views_of_one_value),
        cmocka_unit_test(results_of_kernels_that_lie_anywhere_are_named),
        cmocka_unit_test(levels_are_told_apart_without_a_shared_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
