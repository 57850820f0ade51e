/* SPDX-License-Identifier: Apache-2.0 */
/* test_messages.c: calls on what has no message of its own yet, a context that is not opened, ports without names:
 * what is told names the culprit. */
#include "tests/unit/plan_support.h"

static struct {
    char where[128], message[512];
    int status, calls;
} said;

static void keep(void *user, const struct weft_diagnostic *d)
{
    assert_ptr_equal(user, &said);
    said.calls++;
    said.status = d->status;
    snprintf(said.where, sizeof said.where, "%s", d->where ? d->where : "");
    snprintf(said.message, sizeof said.message, "%s", d->message);
}

static void assert_not_opened(struct weft_context_options options, const char *where, const char *message)
{
    struct weft_context *context = NULL;
    options.size = sizeof options;
    options.diagnose = keep;
    options.diagnose_user = &said;
    memset(&said, 0, sizeof said);
    assert_int_equal(weft_open(&options, &context), WEFT_ERR_ARGUMENT);
    assert_null(context);
    assert_int_equal(said.calls, 1);
    assert_int_equal(said.status, WEFT_ERR_ARGUMENT);
    assert_string_equal(said.where, where);
    if (!strstr(said.message, message))
        fail_msg("'%s' instead of '%s'", said.message, message);
}

static int one_worker(void *user) { return 1; }

static void what_is_wrong_with_options_is_said(void **state)
{
    const struct weft_allocator sizeless = {.allocate = counting_allocate, .release = counting_release},
                                half = {.size = sizeof half, .allocate = counting_allocate};
    const struct weft_executor no_size = {.workers = one_worker},
                               no_run = {.size = sizeof no_run, .workers = one_worker};
    assert_not_opened((struct weft_context_options){.cpu = "neon"}, "weft_context_options.cpu",
                      "there is no CPU level 'neon'; there are baseline ");
#ifdef __x86_64__
    assert_not_opened((struct weft_context_options){.cpu = "avx-512"}, "weft_context_options.cpu",
                      "'avx-512' (did you mean avx512?); there are");
#endif
    assert_not_opened((struct weft_context_options){.threads = -3}, "weft_context_options.threads",
                      "threads is -3: it is at least 1");
    assert_not_opened((struct weft_context_options){.allocator = &sizeless}, "weft_context_options.allocator", "size");
    assert_not_opened((struct weft_context_options){.allocator = &half}, "weft_context_options.allocator",
                      "release is NULL");
    assert_not_opened((struct weft_context_options){.executor = &no_size}, "weft_context_options.executor", "size");
    assert_not_opened((struct weft_context_options){.executor = &no_run}, "weft_context_options.executor",
                      "run is NULL");
    setenv("WEFT_CPU", "neon", 1);
    assert_not_opened((struct weft_context_options){.threads = 1}, "WEFT_CPU", "there is no CPU level 'neon'");
    unsetenv("WEFT_CPU");
    struct weft_context *context = NULL; /* without a callback it is a status */
    assert_int_equal(weft_open(&(struct weft_context_options){.size = sizeof(struct weft_context_options),
                                                              .threads = -3}, &context), WEFT_ERR_ARGUMENT);
}

static void ports_without_names_have_numbers(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = NULL;
    const weft_dim four = weft_extent(4);
    weft_val x, y;
    assert_int_equal(weft_graph_create(context, "g", &graph), WEFT_OK);
    assert_int_equal(weft_param(graph, NULL, WEFT_F32, 1, &four, &x), WEFT_OK);
    const struct weft_op op = {.size = sizeof op, .op = "exp", .operand = &x, .operands = 1};
    assert_int_equal(weft_append(graph, &op, &y), WEFT_OK);
    assert_int_equal(weft_return(graph, &y, 1), WEFT_OK);
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    float in[4];
    const int64_t extent[] = {4};
    struct weft_tensor in_tensor = tensor_of(in, 1, extent), out = in_tensor;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_ERR_BINDING);
    assert_string_equal(weft_execution_error(e), "input 0 '%0' is not bound");
    in_tensor.dtype = WEFT_I32;
    assert_int_equal(weft_bind_input(e, 0, &in_tensor), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(e), "input 0 '%0': the plan has f32"));
    out.rank = 2;
    assert_int_equal(weft_bind_output(e, 0, &out), WEFT_ERR_BINDING);
    assert_non_null(strstr(weft_execution_error(e), "output 0 '%1': the plan has rank 1"));
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* A call without what it needs says which call. */
static void missing_arguments_name_the_function(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = NULL;
    assert_int_equal(weft_graph_create(context, "g", &graph), WEFT_OK);
    assert_int_equal(weft_param(graph, "x", WEFT_F32, 0, NULL, NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "weft_param: an argument that is needed is NULL"));
    assert_int_equal(weft_print(graph, NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "weft_print: "));
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_with_options_is_said),
        cmocka_unit_test(ports_without_names_have_numbers),
        cmocka_unit_test(missing_arguments_name_the_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
