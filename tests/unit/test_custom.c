/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the caller's: registered, called by the evaluator and by plans, refused, failing. */
#include "ir/custom.h"
#include "plan_support.h"

/* result[i][j] = sum over k <= i of x[k][j], plus parameter 0; walks x as dense columns, whatever its layout was. */
static int running_sum(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *x = &call->operand[0];
    const float *from = x->data;
    float *to = call->result->data;
    assert_int_equal(x->stride[0], 1);
    assert_int_equal(x->stride[1], x->extent[0]);
    assert_int_equal(call->result->stride[1], 1);
    assert_int_equal(call->result->stride[0], x->extent[1]);
    for (int64_t j = 0; j < x->extent[1]; j++) {
        float sum = call->parameters ? (float)call->parameter[0] : 0;
        for (int64_t i = 0; i < x->extent[0]; i++) {
            sum += from[j * x->extent[0] + i];
            to[i * x->extent[1] + j] = sum;
        }
    }
    if (user)
        __atomic_fetch_add((int *)user, 1, __ATOMIC_RELAXED);
    return 0;
}

static bool columns_in(void *user, size_t i, size_t operands, int rank, int *ret_order)
{
    for (int axis = 0; axis < rank; axis++)
        ret_order[axis] = i < operands ? rank - 1 - axis : axis;
    return true;
}

static int as_operand(void *user, struct weft_custom_types *types)
{
    if (types->operand[0].rank != 2 || types->operand[0].dtype != WEFT_F32) {
        snprintf(types->message, types->message_bytes, "it adds up columns of f32 matrices");
        return 1;
    }
    types->result = types->operand[0];
    return 0;
}

static int twice_as_long(void *user, struct weft_custom_types *types)
{
    types->result = types->operand[0];
    return weft_extent_combine(types->graph, '+', types->operand[0].extent[0], types->operand[0].extent[0],
                               &types->result.extent[0]);
}

static int repeat(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *x = &call->operand[0];
    for (int64_t i = 0; i < call->result->extent[0]; i++)
        ((float *)call->result->data)[i] = ((const float *)x->data)[i % x->extent[0] * x->stride[0]];
    return 0;
}

static bool any_strides(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

static int fails(void *user, const struct weft_custom_call *call)
{
    snprintf(call->message, call->message_bytes, "no luck with %s", call->where);
    return 7;
}

static int nonsense(void *user, struct weft_custom_types *types)
{
    types->result = types->operand[0];
    types->result.rank = 99;
    return 0;
}

static bool no_order(void *user, size_t i, size_t operands, int rank, int *ret_order)
{
    ret_order[0] = 5;
    return true;
}

static int calls;

static void register_all(struct weft_context *context)
{
    const struct weft_custom all[] = {
        {.size = sizeof *all, .name = "running_sum", .user = &calls, .least_operands = 1, .most_operands = 1,
         .run = running_sum, .type = as_operand, .layout = columns_in},
        {.size = sizeof *all, .name = "repeat", .most_operands = -1, .run = repeat, .type = twice_as_long,
         .layout = any_strides},
        {.size = sizeof *all, .name = "fails", .most_operands = -1, .run = fails},
        {.size = sizeof *all, .name = "nonsense", .most_operands = -1, .run = repeat, .type = nonsense},
        {.size = sizeof *all, .name = "no_order", .most_operands = -1, .run = repeat, .layout = no_order},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(weft_register(context, &all[i]), WEFT_OK);
}

/* Runs a text of one f32 input and one f32 result, by plan or by evaluator; returns the status and the error's text. */
static int run_text(struct weft_context *context, const char *text, struct weft_tensor x, bool planned, float *y,
                    char *message, size_t bytes)
{
    struct weft_graph *graph = parse(context, text);
    struct weft_tensor out = {0};
    int status;
    message[0] = '\0';
    if (!planned) {
        status = weft_evaluate(graph, &x, 1, &out, 1);
        snprintf(message, bytes, "%s", weft_last_error(context));
        for (int64_t i = 0; status == WEFT_OK && i < out.extent[0] * (out.rank > 1 ? out.extent[1] : 1); i++)
            y[i] = ((const float *)out.data)[i];
        weft_tensor_free(context, &out);
    } else {
        struct weft_plan *plan = compile(graph, 0);
        struct weft_execution *e;
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
        status = weft_run(e);
        snprintf(message, bytes, "%s", weft_execution_error(e));
        if (status == WEFT_OK) {
            const int before = allocations;
            assert_int_equal(weft_run(e), WEFT_OK); /* the second run allocates nothing */
            assert_int_equal(allocations, before);
            assert_int_equal(weft_output(e, 0, &out), WEFT_OK);
            for (int64_t i = 0; i < out.extent[0] * (out.rank > 1 ? out.extent[1] : 1); i++)
                y[i] = ((const float *)out.data)[i];
        }
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
    }
    weft_graph_destroy(graph);
    return status;
}

static void a_function_gets_the_layouts_that_it_wants(void **state)
{
    static const char text[] = "graph @g<N>(%x: f32[N,3]) {\n"
                               "  %t: f32[3,N] = transpose %x perm=[1 0]\n"
                               "  %y: f32[3,N] = custom %t function=running_sum parameters=[0.5]\n"
                               "  %a: f32[N,3] = transpose %y perm=[1 0]\n"
                               "  %z: f32[N,3] = custom %a function=running_sum\n"
                               "  return %z\n}\n";
    /* x = [[1 2 3] [4 5 6]]: sums along the rows with 0.5 before, then down the columns */
    float data[] = {1, 2, 3, 4, 5, 6};
    static const float right[] = {1.5f, 3.5f, 6.5f, 6, 13, 22};
    for (int planned = 0; planned < 2; planned++) {
        struct weft_context *context = open_context(2);
        register_all(context);
        struct weft_tensor x = {.data = data, .dtype = WEFT_F32, .rank = 2, .extent = {2, 3}, .stride = {3, 1}};
        float y[6] = {0};
        char message[512];
        calls = 0;
        assert_int_equal(run_text(context, text, x, planned, y, message, sizeof message), WEFT_OK);
        assert_int_equal(calls, planned ? 4 : 2);
        for (int i = 0; i < 6; i++)
            assert_true(y[i] == right[i]);
        weft_close(context);
    }
}

static void strides_may_be_any_where_the_function_says_so(void **state)
{
    static const char text[] = "graph @g<N>(%x: f32[2,N]) {\n"
                               "  %s: f32[1,N] = slice %x start=[1 0] end=[2 N]\n"
                               "  %t: f32[N] = reshape %s\n"
                               "  %y: f32[2*N] = custom %t function=repeat\n"
                               "  return %y\n}\n";
    float data[] = {9, 9, 9, 1, 2, 3};
    for (int planned = 0; planned < 2; planned++) {
        struct weft_context *context = open_context(1);
        register_all(context);
        struct weft_tensor x = {.data = data, .dtype = WEFT_F32, .rank = 2, .extent = {2, 3}, .stride = {3, 1}};
        float y[6] = {0};
        char message[512];
        assert_int_equal(run_text(context, text, x, planned, y, message, sizeof message), WEFT_OK);
        for (int i = 0; i < 6; i++)
            assert_true(y[i] == (float)(i % 3 + 1));
        weft_close(context);
    }
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void a_failing_function_names_the_node(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"graph @g(%x: f32[2]) {\n  %y: f32[2] = custom %x function=fails\n  %z: f32[2] = relu %y\n  return %z\n}\n",
         "%y: custom function 'fails' reports error 7: no luck with %y"},
        {"graph @g(%x: f32[2]) {\n  %y: f32[2] = custom %x function=no_order\n  return %y\n}\n",
         "%y: custom function 'no_order' wants operand 0 in an order that is none"},
        {"graph @g(%x: f32[2]) {\n  graph @body(%i: i64[], %a: f32[2]) {\n"
         "    %inner: f32[2] = custom %a function=fails\n    return %inner\n  }\n"
         "  %n: i64[] = const value=3\n  %y: f32[2] = loop %n, %x body=@body\n  return %y\n}\n",
         "%inner: custom function 'fails' reports error 7"},
    };
    float data[] = {1, 2}, y[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int planned = 0; planned < 2; planned++) {
            struct weft_context *context = open_context(2);
            register_all(context);
            struct weft_tensor x = {.data = data, .dtype = WEFT_F32, .rank = 1, .extent = {2}, .stride = {1}};
            char message[512];
            assert_int_equal(run_text(context, cases[i].text, x, planned, y, message, sizeof message), WEFT_ERR_CUSTOM);
            if (!strstr(message, cases[i].message))
                fail_msg("case %zu: '%s'", i, message);
            weft_close(context);
        }
}

static void without_its_function_a_text_is_read_but_not_run(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[2]) {\n  %y: f32[3] = custom %x function=gone\n"
                                              "  return %y\n}\n");
    assert_int_equal(weft_validate(graph), WEFT_OK);
    struct weft_plan *plan = NULL;
    assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(context), "custom function 'gone' is not registered"));
    float data[] = {1, 2};
    struct weft_tensor out = {0}, x = tensor_of(data, 1, &(int64_t){2});
    assert_int_equal(weft_evaluate(graph, &x, 1, &out, 1), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(context), "%y"));
    /* a graph is read, then its function comes, and says that the text was wrong */
    const struct weft_custom late = {.size = sizeof late, .name = "gone", .most_operands = -1, .run = repeat,
                                     .type = twice_as_long};
    assert_int_equal(weft_register(context, &late), WEFT_OK);
    assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(context), "gone makes f32[4] of these operands, but the result"));
    weft_graph_destroy(graph);
    weft_close(context);
}

static void wrong_uses_are_refused(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"%y: f32[2] = custom %x function=running_sum", "running_sum refuses these operands: it adds up columns"},
        {"%y: f32[2] = custom %x, %x function=running_sum", "running_sum takes at most 1 operands, not 2"},
        {"%y: f32[2] = custom function=running_sum", "running_sum takes at least 1 operands, not 0"},
        {"%y: f32[2] = custom %x function=repeat", "repeat makes f32[4] of these operands, but the result is stated"},
        {"%y: f32[2] = custom %x function=nonsense", "the function's rule gives a type that is none"},
        {"%y: f32[2] = custom %x function=_f", "function '_f' is no name"},
        {"%y: f32[2] = custom %x", "attribute function is missing"},
    };
    struct weft_context *context = open_context(1);
    register_all(context);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct weft_graph *graph = NULL;
        snprintf(text, sizeof text, "graph @g(%%x: f32[2]) {\n  %s\n  return %%y\n}\n", cases[i].line);
        assert_int_equal(weft_parse(context, text, strlen(text), "text", &graph), WEFT_ERR_INVALID);
        if (!strstr(weft_last_error(context), cases[i].message))
            fail_msg("'%s' is not '%s'", weft_last_error(context), cases[i].message);
    }
    weft_close(context);
}

static void wrong_registrations_are_refused(void **state)
{
    const struct weft_custom right = {.size = sizeof right, .name = "f", .most_operands = -1, .run = repeat};
    static const struct {
        const char *name;
        int32_t least, most;
        bool runs;
        const char *message;
    } cases[] = {
        {"a-b", 0, -1, true, "a letter, then letters"},
        {"", 0, -1, true, "a letter, then letters"},
        {NULL, 0, -1, true, "a letter, then letters"},
        {"g", 0, -1, false, "has no run"},
        {"g", 2, 1, true, "no such number of operands"},
        {"g", -1, 1, true, "no such number of operands"},
        {"f", 0, -1, true, "is registered already"},
    };
    struct weft_context *context = open_context(1);
    assert_int_equal(weft_register(context, &right), WEFT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct weft_custom custom = {.size = sizeof custom,
                                           .name = cases[i].name,
                                           .least_operands = cases[i].least,
                                           .most_operands = cases[i].most,
                                           .run = cases[i].runs ? repeat : NULL};
        assert_int_equal(weft_register(context, &custom), WEFT_ERR_ARGUMENT);
        if (!strstr(weft_last_error(context), cases[i].message))
            fail_msg("case %zu: '%s'", i, weft_last_error(context));
    }
    assert_int_equal(weft_register(context, &(struct weft_custom){.name = "h"}), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_register(context, NULL), WEFT_ERR_ARGUMENT);
    weft_close(context);
}

static void the_builder_asks_the_function_for_the_type(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph;
    weft_dim n, extent[1];
    weft_val x, y;
    register_all(context);
    assert_int_equal(weft_graph_create(context, "g", &graph), WEFT_OK);
    assert_int_equal(weft_symbol(graph, "N", 1, 9, 0, &n), WEFT_OK);
    extent[0] = n;
    assert_int_equal(weft_param(graph, "x", WEFT_F32, 1, extent, &x), WEFT_OK);
    const struct weft_attribute function = {.name = "function", .word = "repeat"};
    const struct weft_op op = {.size = sizeof op, .op = "custom", .name = "y", .operand = &x, .operands = 1,
                               .attribute = &function, .attributes = 1};
    assert_int_equal(weft_append(graph, &op, &y), WEFT_OK);
    assert_int_equal(weft_return(graph, &y, 1), WEFT_OK);
    char *text;
    assert_int_equal(weft_print(graph, &text), WEFT_OK);
    assert_non_null(strstr(text, "%y: f32[2*N] = custom %x function=repeat\n"));
    weft_free_text(context, text);
    const struct weft_attribute unknown = {.name = "function", .word = "unknown"};
    struct weft_op other = op;
    other.name = "z";
    other.attribute = &unknown;
    assert_int_equal(weft_append(graph, &other, &y), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(context), "the type of the result is missing"));
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- refused memory ----------------------------------------------------------------------------------------------- */

struct misery {
    int64_t left, held;
};

static void *stingy_allocate(void *user, size_t bytes, size_t align)
{
    struct misery *misery = user;
    if (__atomic_fetch_sub(&misery->left, 1, __ATOMIC_RELAXED) <= 0)
        return NULL;
    __atomic_fetch_add(&misery->held, 1, __ATOMIC_RELAXED);
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void stingy_release(void *user, void *memory, size_t bytes)
{
    struct misery *misery = user;
    if (memory)
        __atomic_fetch_sub(&misery->held, 1, __ATOMIC_RELAXED);
    free(memory);
}

/* Registers, reads, plans, runs and evaluates once; the status of what failed first. */
static int whole_way(struct weft_context *context)
{
    static const char text[] = "graph @g(%x: f32[2,3]) {\n  %y: f32[2,3] = custom %x function=running_sum\n"
                               "  return %y\n}\n";
    const struct weft_custom custom = {.size = sizeof custom, .name = "running_sum", .most_operands = 1,
                                       .run = running_sum, .type = as_operand, .layout = columns_in};
    float data[6];
    const struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){2, 3});
    struct weft_graph *graph = NULL;
    struct weft_plan *plan = NULL;
    struct weft_execution *e = NULL;
    struct weft_tensor out = {0};
    int status = weft_register(context, &custom);
    if (status == WEFT_OK)
        status = weft_parse(context, text, strlen(text), "text", &graph);
    if (status == WEFT_OK)
        status = weft_evaluate(graph, &x, 1, &out, 1);
    if (status == WEFT_OK)
        status = weft_compile(graph, NULL, &plan);
    if (status == WEFT_OK)
        status = weft_execution_create(plan, &e);
    if (status == WEFT_OK)
        status = weft_bind_input(e, 0, &x);
    if (status == WEFT_OK)
        status = weft_run(e);
    weft_tensor_free(context, &out);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    if (graph)
        weft_graph_destroy(graph);
    return status;
}

static void refused_memory_is_a_status_and_no_leak(void **state)
{
    bool finished = false;
    for (int64_t n = 1; !finished; n++) {
        assert_true(n < 1000);
        struct misery misery = {.left = n};
        const struct weft_allocator allocator = {sizeof allocator, &misery, stingy_allocate, stingy_release};
        const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .threads = 1};
        struct weft_context *context = NULL;
        int status = weft_open(&options, &context);
        if (status == WEFT_OK) {
            status = whole_way(context);
            weft_close(context);
        }
        finished = status == WEFT_OK;
        assert_true(finished || status == WEFT_ERR_NOMEM);
        assert_int_equal(misery.held, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_gets_the_layouts_that_it_wants),
        cmocka_unit_test(strides_may_be_any_where_the_function_says_so),
        cmocka_unit_test(a_failing_function_names_the_node),
        cmocka_unit_test(without_its_function_a_text_is_read_but_not_run),
        cmocka_unit_test(wrong_uses_are_refused),
        cmocka_unit_test(wrong_registrations_are_refused),
        cmocka_unit_test(the_builder_asks_the_function_for_the_type),
        cmocka_unit_test(refused_memory_is_a_status_and_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
