/* SPDX-License-Identifier: Apache-2.0 */
/* test_public_null.c: each function of weft.h with NULL for each object and each place of a result: a status, 0 or an
 * empty text, and nothing has changed. The list is compared with the header. */
#include "builder_support.h"
#include "declarations.h"

#include <stdio.h>

/* Every function of weft.h that takes a pointer to an object, with NULL for it, or for where its result goes. */
static const char *const null_functions =
    "weft_dtype_from_name weft_open weft_close weft_last_error weft_context_target weft_free_text weft_load "
    "weft_load_fixed weft_load_memory weft_constant_borrowed "
    "weft_parse weft_graph_clone weft_graph_destroy weft_print weft_validate weft_graph_create "
    "weft_graph_params weft_graph_param weft_graph_returns weft_graph_return weft_next_node weft_node_read "
    "weft_node_operand weft_node_result weft_node_attribute weft_value_read weft_constant_read weft_extent_text "
    "weft_extent_at weft_save weft_target_create weft_target_destroy "
    "weft_target_restrict weft_call_extent weft_plan_step_operand weft_plan_step_result weft_plan_arena_bytes "
    "weft_insert_before weft_insert_after weft_graph_replace weft_graph_set_operand weft_graph_erase weft_match "
    "weft_register_pass weft_register_alternative weft_run_pipeline_with "
    "weft_target_add weft_graph_create_body weft_symbol weft_extent_combine weft_param weft_param_mut weft_constant "
    "weft_param_static weft_refresh "
    "weft_splat weft_splat_integer weft_append weft_return weft_return_mut weft_set_layout weft_access weft_run_pass "
    "weft_run_pipeline weft_remark_count weft_remark_get weft_register weft_register_library weft_custom_value_of "
    "weft_compile weft_plan_destroy "
    "weft_plan_wait weft_plan_compiled weft_plan_stored weft_plan_print "
    "weft_plan_steps weft_plan_step weft_plan_blocks weft_plan_block "
    "weft_plan_graph weft_plan_inputs weft_plan_outputs weft_plan_input weft_plan_output weft_plan_values "
    "weft_plan_find_input weft_plan_find_output weft_bind_input_named weft_bind_output_named "
    "weft_rebind_input weft_rebind_output weft_output_needed "
    "weft_plan_value weft_plan_find weft_plan_relayouts weft_execution_create "
    "weft_execution_destroy weft_bind_input weft_bind_output weft_run weft_output weft_execution_error "
    "weft_execution_statistics weft_run_timed weft_cancel weft_evaluate weft_tensor_free ";
/* They take no object. */
static const char *const number_functions =
    "weft_status_text weft_version weft_version_number weft_dtype_name weft_dtype_bits weft_extent ";

#define assert_null_refused(call) assert_int_equal((call), WEFT_ERR_ARGUMENT)

static void refuse_null_graphs(struct builder *b)
{
    const weft_dim one = weft_extent(1);
    const struct weft_op op = {.size = sizeof op, .op = "neg", .operand = &(weft_val){.id = 1}, .operands = 1};
    struct weft_graph *graph;
    char *text;
    weft_dim dim;
    weft_val v;
    assert_null_refused(weft_load(NULL, "x.weft", &graph));
    assert_null_refused(weft_load(b->context, "x.weft", NULL));
    assert_null_refused(weft_load_fixed(NULL, "x.weft", NULL, 0, &graph));
    assert_null_refused(weft_load_fixed(b->context, "x.weft", NULL, 0, NULL));
    assert_null_refused(weft_load_memory(NULL, "graph @g() {}", 13, NULL, &graph));
    assert_null_refused(weft_load_memory(b->context, NULL, 13, NULL, &graph));
    assert_null_refused(weft_load_memory(b->context, "graph @g() {}", 13, NULL, NULL));
    assert_null_refused(weft_parse(NULL, "", 0, "x", &graph));
    assert_null_refused(weft_parse(b->context, "", 0, "x", NULL));
    assert_null_refused(weft_graph_clone(NULL, &graph));
    assert_null_refused(weft_graph_clone(b->graph, NULL));
    assert_null_refused(weft_print(NULL, &text));
    assert_null_refused(weft_print(b->graph, NULL));
    assert_null_refused(weft_validate(NULL));
    assert_null_refused(weft_graph_create(NULL, "x", &graph));
    assert_null_refused(weft_graph_create(b->context, "x", NULL));
    assert_null_refused(weft_graph_create_body(NULL, "x", &graph));
    assert_null_refused(weft_graph_create_body(b->graph, "x", NULL));
    assert_null_refused(weft_symbol(NULL, "N", 1, 2, 0, &dim));
    assert_null_refused(weft_symbol(b->graph, "N", 1, 2, 0, NULL));
    assert_null_refused(weft_extent_combine(NULL, '+', one, one, &dim));
    assert_null_refused(weft_extent_combine(b->graph, '+', one, one, NULL));
    assert_null_refused(weft_param(NULL, "x", WEFT_F32, 1, &one, &v));
    assert_null_refused(weft_param(b->graph, "x", WEFT_F32, 1, &one, NULL));
    assert_null_refused(weft_param_mut(NULL, "x", WEFT_F32, 1, &one, &v));
    assert_null_refused(weft_param_mut(b->graph, "x", WEFT_F32, 1, &one, NULL));
    assert_null_refused(weft_param_static(NULL, "x", WEFT_F32, 1, &one, &v));
    assert_null_refused(weft_param_static(b->graph, "x", WEFT_F32, 1, &one, NULL));
    assert_null_refused(weft_constant(NULL, WEFT_F32, 0, NULL, &(float){1}, &v));
    assert_null_refused(weft_constant(b->graph, WEFT_F32, 0, NULL, &(float){1}, NULL));
    assert_null_refused(weft_constant_borrowed(NULL, WEFT_F32, 0, NULL, &(float){1}, NULL, NULL, &v));
    assert_null_refused(weft_constant_borrowed(b->graph, WEFT_F32, 0, NULL, &(float){1}, NULL, NULL, NULL));
    assert_null_refused(weft_splat(NULL, WEFT_F32, 0, NULL, 1, &v));
    assert_null_refused(weft_splat(b->graph, WEFT_F32, 0, NULL, 1, NULL));
    assert_null_refused(weft_splat_integer(NULL, WEFT_I64, 0, NULL, 1, &v));
    assert_null_refused(weft_splat_integer(b->graph, WEFT_I64, 0, NULL, 1, NULL));
    assert_null_refused(weft_append(NULL, &op, &v));
    assert_null_refused(weft_append(b->graph, NULL, &v));
    assert_null_refused(weft_append(b->graph, &op, NULL));
    const weft_node node = {0};
    const struct weft_pattern pattern = {.op = "neg"};
    assert_null_refused(weft_insert_before(NULL, node, &op, &v));
    assert_null_refused(weft_insert_before(b->graph, node, NULL, &v));
    assert_null_refused(weft_insert_before(b->graph, node, &op, NULL));
    assert_null_refused(weft_insert_after(NULL, node, &op, &v));
    assert_null_refused(weft_insert_after(b->graph, node, NULL, &v));
    assert_null_refused(weft_insert_after(b->graph, node, &op, NULL));
    assert_null_refused(weft_graph_replace(NULL, (weft_val){.id = 1}, (weft_val){.id = 2}));
    assert_null_refused(weft_graph_set_operand(NULL, node, 0, (weft_val){.id = 1}));
    assert_null_refused(weft_graph_erase(NULL, node));
    assert_null_refused(weft_match(NULL, node, &pattern, 1, &v));
    assert_null_refused(weft_match(b->graph, node, NULL, 1, &v));
    assert_null_refused(weft_match(b->graph, node, &pattern, 1, NULL));
    assert_null_refused(weft_register_pass(NULL, &(struct weft_pass){.size = sizeof(struct weft_pass)}));
    assert_null_refused(weft_register_pass(b->context, NULL));
    assert_null_refused(
        weft_register_alternative(NULL, &(struct weft_alternative){.size = sizeof(struct weft_alternative)}));
    assert_null_refused(weft_register_alternative(b->context, NULL));
    assert_null_refused(weft_return(NULL, NULL, 0));
    assert_null_refused(weft_return_mut(NULL, NULL, NULL, 0));
    assert_null_refused(weft_set_layout(NULL, (weft_val){.id = 1}, "{0}"));
    const struct weft_access access = {.size = sizeof access, .value = {1}};
    struct weft_access_width width = {.size = sizeof width};
    assert_null_refused(weft_access(NULL, &access, &width));
    assert_null_refused(weft_access(b->graph, NULL, &width));
    assert_null_refused(weft_access(b->graph, &access, NULL));
    assert_null_refused(weft_run_pass(NULL, "dce", NULL));
    assert_null_refused(weft_run_pipeline(NULL, NULL));
    assert_null_refused(weft_run_pipeline_with(NULL, NULL, NULL));
    assert_null_refused(weft_evaluate(NULL, NULL, 0, NULL, 0));
    assert_int_equal(b->graph->values + b->graph->bodies + weft_symbol_count(b->graph->dims), 1);
}

static void refuse_null_readings(struct builder *b)
{
    struct weft_attribute attribute;
    struct weft_target *target = NULL;
    const struct weft_kernel kernel = {.size = sizeof kernel};
    const weft_node node = {.id = 1};
    weft_val v;
    assert_int_equal(weft_graph_params(NULL) + weft_graph_returns(NULL), 0);
    assert_int_equal(weft_graph_param(NULL, 0).id + weft_graph_return(NULL, 0).id + weft_next_node(NULL, node).id, 0);
    assert_int_equal(weft_node_operand(NULL, node, 0).id + weft_node_result(NULL, node, 0).id, 0);
    assert_null_refused(weft_node_read(NULL, node, &(struct weft_node_facts){.size = sizeof(struct weft_node_facts)}));
    assert_null_refused(weft_node_attribute(NULL, node, "axis", &attribute));
    assert_null_refused(weft_value_read(NULL, (weft_val){.id = 1},
                                        &(struct weft_value_facts){.size = sizeof(struct weft_value_facts)}));
    assert_int_equal(weft_splat(b->graph, WEFT_F32, 0, NULL, 1, &v), WEFT_OK);
    assert_null_refused(weft_node_read(b->graph, node, NULL));
    assert_null_refused(weft_node_attribute(b->graph, node, NULL, &attribute));
    assert_null_refused(weft_node_attribute(b->graph, node, "value", NULL));
    assert_null_refused(weft_value_read(b->graph, v, NULL));
    struct weft_tensor tensor = {0};
    char *text;
    int64_t extent;
    assert_null_refused(weft_constant_read(NULL, v, &tensor));
    assert_null_refused(weft_constant_read(b->graph, v, NULL));
    assert_null_refused(weft_extent_text(NULL, weft_extent(1), &text));
    assert_null_refused(weft_extent_text(b->graph, weft_extent(1), NULL));
    assert_null_refused(weft_extent_at(NULL, weft_extent(1), NULL, 0, &extent));
    assert_null_refused(weft_extent_at(b->graph, weft_extent(1), NULL, 1, &extent));
    assert_null_refused(weft_extent_at(b->graph, weft_extent(1), NULL, 0, NULL));
    assert_null_refused(weft_save(NULL, "x.weft"));
    assert_null_refused(weft_save(b->graph, NULL));
    assert_null_refused(weft_target_create(NULL, &target));
    assert_null_refused(weft_target_create(b->context, NULL));
    assert_null_refused(weft_target_add(NULL, &kernel));
    assert_int_equal(weft_target_create(b->context, &target), WEFT_OK);
    assert_null_refused(weft_target_add(target, NULL));
    assert_null_refused(weft_target_restrict(NULL, 0));
    assert_null_refused(weft_call_extent(NULL, weft_extent(1), &extent));
    assert_null_refused(weft_call_extent(&(struct weft_kernel_call){.graph = b->graph}, weft_extent(1), &extent));
    weft_target_destroy(target);
    weft_target_destroy(NULL);
}

static void refuse_null_plans(struct builder *b)
{
    struct weft_plan *plan;
    struct weft_execution *execution;
    struct weft_port port = {.size = sizeof port};
    struct weft_tensor tensor;
    struct weft_statistics statistics = {.size = sizeof statistics};
    char *text;
    assert_null_refused(weft_compile(NULL, NULL, &plan));
    assert_null_refused(weft_compile(b->graph, NULL, NULL));
    assert_null_refused(weft_plan_wait(NULL));
    assert_null_refused(weft_plan_compiled(NULL, NULL, NULL, NULL));
    assert_null_refused(weft_plan_stored(NULL, NULL, NULL));
    assert_null_refused(weft_plan_print(NULL, &text));
    assert_null(weft_plan_graph(NULL));
    assert_int_equal(weft_plan_inputs(NULL), 0);
    assert_int_equal(weft_plan_outputs(NULL), 0);
    assert_null_refused(weft_plan_input(NULL, 0, &port));
    assert_null_refused(weft_plan_output(NULL, 0, &port));
    struct weft_plan_value value = {.size = sizeof value};
    assert_int_equal(weft_plan_values(NULL), 0);
    assert_null_refused(weft_plan_value(NULL, 0, &value));
    assert_null_refused(weft_plan_find(NULL, "x", &value));
    struct weft_plan_step step = {.size = sizeof step};
    struct weft_plan_block block = {.size = sizeof block};
    assert_int_equal(weft_plan_relayouts(NULL), 0);
    assert_int_equal(weft_plan_steps(NULL) + weft_plan_blocks(NULL), 0);
    assert_null_refused(weft_plan_step(NULL, 0, &step));
    assert_null_refused(weft_plan_block(NULL, 0, &block));
    struct weft_plan_operand operand = {.size = sizeof operand};
    assert_null_refused(weft_plan_step_operand(NULL, 0, 0, &operand));
    assert_null_refused(weft_plan_step_result(NULL, 0, 0, &operand));
    assert_int_equal(weft_plan_arena_bytes(NULL), 0);
    assert_null_refused(weft_execution_create(NULL, &execution));
    assert_null_refused(weft_bind_input(NULL, 0, &tensor));
    assert_null_refused(weft_bind_output(NULL, 0, &tensor));
    size_t i;
    assert_null_refused(weft_plan_find_input(NULL, "x", &i));
    assert_null_refused(weft_plan_find_output(NULL, "x", &i));
    assert_null_refused(weft_bind_input_named(NULL, "x", &tensor));
    assert_null_refused(weft_bind_output_named(NULL, "x", &tensor));
    assert_null_refused(weft_refresh(NULL, WEFT_ALL_INPUTS));
    assert_null_refused(weft_rebind_input(NULL, 0, &tensor));
    assert_null_refused(weft_rebind_output(NULL, 0, &tensor));
    assert_null_refused(weft_output_needed(NULL, 0, &tensor));
    assert_null_refused(weft_run(NULL));
    assert_null_refused(weft_output(NULL, 0, &tensor));
    assert_string_equal(weft_execution_error(NULL), "");
    assert_null_refused(weft_execution_statistics(NULL, &statistics));
    assert_null_refused(weft_run_timed(NULL, NULL, NULL));
    assert_null_refused(weft_cancel(NULL));
}

/* The same, for where the results of a plan go. */
static void refuse_null_results(struct builder *b)
{
    struct weft_plan *plan = NULL;
    struct weft_execution *execution = NULL;
    weft_val v;
    assert_int_equal(weft_splat(b->graph, WEFT_F32, 0, NULL, 1, &v), WEFT_OK);
    assert_int_equal(weft_return(b->graph, &v, 1), WEFT_OK);
    assert_int_equal(weft_compile(b->graph, NULL, &plan), WEFT_OK);
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    assert_int_equal(weft_run(execution), WEFT_OK);
    assert_null_refused(weft_remark_get(weft_plan_graph(plan), 0, NULL));
    assert_null_refused(weft_plan_print(plan, NULL));
    assert_null_refused(weft_plan_input(plan, 0, NULL));
    assert_null_refused(weft_plan_output(plan, 0, NULL));
    assert_null_refused(weft_plan_value(plan, 0, NULL));
    assert_null_refused(weft_plan_find(plan, "x", NULL));
    assert_null_refused(weft_plan_find(plan, NULL, &(struct weft_plan_value){.size = sizeof(struct weft_plan_value)}));
    assert_null_refused(weft_plan_find_input(plan, NULL, &(size_t){0}));
    assert_null_refused(weft_plan_find_input(plan, "x", NULL));
    assert_null_refused(weft_plan_find_output(plan, NULL, &(size_t){0}));
    assert_null_refused(weft_plan_find_output(plan, "x", NULL));
    assert_null_refused(weft_bind_input_named(execution, NULL, NULL));
    assert_null_refused(weft_bind_output_named(execution, NULL, NULL));
    assert_null_refused(weft_execution_create(plan, NULL));
    assert_null_refused(weft_output(execution, 0, NULL));
    assert_null_refused(weft_output_needed(execution, 0, NULL));
    assert_null_refused(weft_execution_statistics(execution, NULL));
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
}

static void test_null_is_a_wrong_argument(void **state)
{
    (void)state;
    struct builder b = open_builder();
    struct weft_remark remark = {.size = sizeof remark};
    const struct weft_custom custom = {.size = sizeof custom};
    assert_int_equal(weft_dtype_from_name(NULL), 0);
    assert_null_refused(weft_open(NULL, NULL));
    assert_string_equal(weft_last_error(NULL), "");
    assert_null(weft_context_target(NULL));
    assert_null_refused(weft_register(NULL, &custom));
    assert_null_refused(weft_register_library(NULL, "nowhere.so"));
    assert_null_refused(weft_register_library(b.context, NULL));
    assert_null(weft_custom_value_of(NULL, 3, "a"));
    assert_null(weft_custom_value_of(&(struct weft_custom_value){.name = "a"}, 1, NULL));
    assert_null_refused(weft_register(b.context, NULL));
    assert_int_equal(weft_remark_count(NULL), 0);
    assert_null_refused(weft_remark_get(NULL, 0, &remark));
    weft_close(NULL);
    weft_free_text(NULL, NULL);
    weft_tensor_free(NULL, NULL);
    weft_graph_destroy(NULL);
    weft_plan_destroy(NULL);
    weft_execution_destroy(NULL);
    refuse_null_graphs(&b);
    refuse_null_plans(&b);
    refuse_null_readings(&b);
    refuse_null_results(&b);
    close_builder(&b);
}

static void need_call(const char *header, const char *name)
{
    char word[128];
    snprintf(word, sizeof word, "%s ", name);
    if (!strstr(null_functions, word) && !strstr(number_functions, word))
        fail_msg("%s declares %s, which has no call with NULL here", header, name);
}

/* All names are in one of the two lists above. */
static void test_every_function_is_called_with_null(void **state)
{
    (void)state;
    assert_true(public_declarations(/* with_viz= */ 0, need_call) > 50);
}

/* What is said is about the call that failed last, also where that has little to say. */
static void test_the_last_error_is_of_the_last_call(void **state)
{
    struct builder b = open_builder();
    struct weft_graph *graph = NULL;
    struct weft_target *target;
    struct weft_plan *plan;
    const weft_dim one = weft_extent(1);
    weft_val v;
    assert_int_equal(weft_target_create(b.context, &target), WEFT_OK);
#define assert_said(call) \
    do { \
        assert_int_equal(weft_parse(b.context, "nonsense", 8, "older", &graph), WEFT_ERR_SYNTAX); \
        assert_non_null(strstr(weft_last_error(b.context), "older")); \
        assert_int_equal((call), WEFT_ERR_ARGUMENT); \
        assert_null(strstr(weft_last_error(b.context), "older")); \
        assert_non_null(strstr(weft_last_error(b.context), "NULL")); \
    } while (0)
    assert_said(weft_load(b.context, NULL, &graph));
    assert_said(weft_load_fixed(b.context, "x", &(struct weft_fixed_input){0}, 1, &graph));
    assert_said(weft_parse(b.context, NULL, 0, "x", &graph));
    assert_said(weft_graph_create(b.context, "x", NULL));
    assert_said(weft_graph_create_body(b.graph, "x", NULL));
    assert_said(weft_graph_clone(b.graph, NULL));
    assert_said(weft_print(b.graph, NULL));
    assert_said(weft_symbol(b.graph, "N", 1, 2, 0, NULL));
    assert_said(weft_extent_combine(b.graph, '+', one, one, NULL));
    assert_said(weft_splat(b.graph, WEFT_F32, 0, NULL, 1, NULL));
    assert_said(weft_append(b.graph, NULL, &v));
    assert_said(weft_access(b.graph, NULL, &(struct weft_access_width){.size = sizeof(struct weft_access_width)}));
    assert_said(weft_register(b.context, NULL));
    assert_said(weft_target_create(b.context, NULL));
    assert_said(weft_target_add(target, NULL));
    assert_said(weft_evaluate(b.graph, NULL, 1, NULL, 0));
    assert_said(weft_compile(b.graph, NULL, NULL));
    assert_said(weft_compile(b.graph, &(struct weft_compile_options){.size = 0}, &plan));
#undef assert_said
    weft_target_destroy(target);
    close_builder(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null_is_a_wrong_argument),
        cmocka_unit_test(test_every_function_is_called_with_null),
        cmocka_unit_test(test_the_last_error_is_of_the_last_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
