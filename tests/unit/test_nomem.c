/* SPDX-License-Identifier: Apache-2.0 */
/* test_nomem.c: every public function while memory is refused.
 *
 * For each function of weft.h (and viz.h, where there is Graphviz) there is a call in the table below. Each is made
 * again and again in a new world, whose allocator refuses the n-th request, for n = 0, 1, 2 … until none is refused:
 * once so that everything after it is refused too, and once so that it alone is. Each time the function returns
 * WEFT_ERR_NOMEM or succeeds; results are untouched unless it succeeds; every object is as good as before; and when all
 * is destroyed, the allocator has everything back. The table is compared with the headers, so a function without an
 * entry is a failure. Under the address sanitizer each piece of an arena is an allocation (ir/base.c), and so each is
 * refused once. */
#include "tests/unit/declarations.h"
#include "tests/unit/nomem_builder.h"
#include "tests/unit/nomem_edit.h"
#include "tests/unit/nomem_passes.h"
#include "tests/unit/nomem_read.h"
#include "tests/unit/nomem_static.h"
#include "tests/unit/nomem_world.h"

#ifdef WITH_VIZ
#include "weft/viz.h"
#endif

static int settle_text(struct world *w, int status, char *text)
{
    settle(status, text);
    if (status >= 0)
        weft_free_text(w->context, text);
    return status;
}

/* --- what allocates nothing --------------------------------------------------------------------------------------- */

static int words(struct world *w)
{
    struct weft_plan_value value = {.size = sizeof value};
    struct weft_port port = {.size = sizeof port};
    struct weft_remark remark = {.size = sizeof remark};
    struct weft_tensor tensor;
    struct weft_statistics statistics = {.size = sizeof statistics};
    const struct weft_custom_value named = {.name = "a", .kind = WEFT_CUSTOM_INTEGER};
    assert_ptr_equal(weft_custom_value_of(&named, 1, "a"), &named);
    assert_string_equal(weft_version(), WEFT_VERSION);
    assert_int_equal(weft_version_number(), WEFT_VERSION_NUMBER);
    assert_string_equal(weft_status_text(WEFT_ERR_NOMEM), "out of memory");
    assert_string_equal(weft_dtype_name(WEFT_F32), "f32");
    assert_int_equal(weft_dtype_from_name("bf16"), WEFT_BF16);
    assert_int_equal(weft_dtype_bits(WEFT_I4), 4);
    assert_non_null(weft_last_error(w->context));
    assert_non_null(weft_execution_error(w->execution));
    assert_non_null(weft_context_target(w->context));
    assert_non_null(weft_plan_graph(w->plan));
    assert_int_equal(weft_plan_compiled(w->plan, NULL, NULL, NULL), WEFT_OK);
    assert_int_equal(weft_plan_stored(w->plan, NULL, NULL), WEFT_OK);
    assert_int_equal(weft_plan_inputs(w->plan), 2);
    assert_int_equal(weft_plan_outputs(w->plan), WORLD_RESULTS);
    assert_int_equal(weft_plan_input(w->plan, 0, &port), WEFT_OK);
    assert_int_equal(weft_plan_output(w->plan, 0, &port), WEFT_OK);
    assert_true(weft_plan_values(w->plan) > 0 && weft_plan_relayouts(w->plan) < 100);
    assert_int_equal(weft_plan_value(w->plan, 0, &value), WEFT_OK);
    assert_int_equal(weft_plan_find(w->plan, value.name, &value), WEFT_OK);
    struct weft_plan_step step = {.size = sizeof step};
    struct weft_plan_block block = {.size = sizeof block};
    assert_true(weft_plan_steps(w->plan) > 0 && weft_plan_blocks(w->plan) > 0);
    assert_int_equal(weft_plan_step(w->plan, 0, &step), WEFT_OK);
    assert_int_equal(weft_plan_block(w->plan, 0, &block), WEFT_OK);
    struct weft_plan_operand operand = {.size = sizeof operand};
    int64_t extent = 0;
    const struct weft_kernel_call call = {.graph = w->graph, .sizes = &extent};
    assert_int_equal(weft_plan_step_operand(w->plan, 0, 0, &operand), WEFT_OK);
    assert_int_equal(weft_plan_step_result(w->plan, 0, 0, &operand), WEFT_OK);
    assert_true(weft_plan_arena_bytes(w->plan) >= 0);
    assert_int_equal(weft_call_extent(&call, weft_extent(5), &extent), WEFT_OK);
    assert_true(weft_remark_count(weft_plan_graph(w->plan)) > 0);
    assert_int_equal(weft_remark_get(weft_plan_graph(w->plan), 0, &remark), WEFT_OK);
    assert_int_equal(weft_output(w->execution, 0, &tensor), WEFT_OK);
    assert_int_equal(weft_execution_statistics(w->execution, &statistics), WEFT_OK);
    assert_true(weft_extent(3).bits != weft_extent(4).bits);
    assert_int_equal(w->scarce.refused, 0);
    return WEFT_OK;
}

/* What releases works without memory. */
static int ends(struct world *w)
{
    weft_execution_destroy(w->execution);
    weft_plan_destroy(w->plan);
    weft_graph_destroy(w->graph);
    weft_graph_destroy(w->built);
    weft_free_text(w->context, NULL);
    weft_tensor_free(w->context, &(struct weft_tensor){0});
    weft_close(w->context);
    assert_int_equal(w->scarce.refused, 0);
    const int64_t left = w->scarce.left;
    world_open(w, w->path);
    w->scarce.left = left;
    return WEFT_OK;
}

/* --- contexts and graphs ------------------------------------------------------------------------------------------ */

static int open_context(struct world *w)
{
    const struct weft_allocator allocator = scarce_allocator(&w->scarce);
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator};
    struct weft_context *context = UNTOUCHED;
    const int status = weft_open(&options, &context);
    settle(status, context);
    if (status == WEFT_OK)
        weft_close(context);
    return status;
}

static int load(struct world *w)
{
    struct weft_graph *graph = UNTOUCHED;
    const int status = weft_load(w->context, w->path, &graph);
    return settle_graph(status, graph);
}

/* An ONNX model with an `if` whose condition is known. */
static int load_fixed(struct world *w)
{
    const struct weft_fixed_input fixed = {.name = "c", .tensor = &w->input[1]};
    struct weft_graph *graph = UNTOUCHED;
    char model[512];
    snprintf(model, sizeof model, "%s/tests/cases/if_two_True/model.onnx", getenv("WEFT_SOURCE"));
    const int status = weft_load_fixed(w->context, model, &fixed, 1, &graph);
    return settle_graph(status, graph);
}

static void give_back(void *user, const void *data, size_t bytes) { ++*(int *)user; }

/* The text is given back exactly where loading succeeds. */
static int load_memory(struct world *w)
{
    int given_back = 0;
    struct weft_graph *graph = UNTOUCHED;
    const struct weft_load_options options = {.size = sizeof options, .release = give_back,
                                              .release_user = &given_back};
    const int status = weft_load_memory(w->context, world_text, sizeof world_text - 1, &options, &graph);
    assert_int_equal(given_back, status == WEFT_OK);
    return settle_graph(status, graph);
}

static int parse(struct world *w)
{
    struct weft_graph *graph = UNTOUCHED;
    const int status = weft_parse(w->context, world_text, sizeof world_text - 1, "world", &graph);
    return settle_graph(status, graph);
}

/* Long enough that arenas take several chunks. */
static int parse_long(struct world *w)
{
    enum { NODES = 1500 };
    char *text = malloc(NODES * 48 + 200);
    size_t n = (size_t)sprintf(text, "graph @chain<N>(%%x: f32[N,4]) {\n  %%v0: f32[N,4] = exp %%x\n");
    for (int i = 1; i < NODES; i++)
        n += (size_t)sprintf(text + n, "  %%v%d: f32[N,4] = %s %%v%d\n", i, i % 2 ? "tanh" : "exp", i - 1);
    n += (size_t)sprintf(text + n, "  return %%v%d\n}\n", NODES - 1);
    struct weft_graph *graph = UNTOUCHED;
    struct weft_plan *plan = NULL;
    int status = weft_parse(w->context, text, n, "long", &graph);
    settle(status, graph);
    free(text);
    if (status < 0)
        return status;
    status = weft_compile(graph, NULL, &plan);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    return status;
}

/* Wrong text: its messages need memory, and it is a mistake even where they find none. */
static int parse_wrong(struct world *w)
{
    static const char wrong[] = "graph @f(%x: f32[4]) {\n  %y: f32[4] = expp %x\n  return %y\n}\n";
    struct weft_graph *graph = UNTOUCHED;
    const int status = weft_parse(w->context, wrong, sizeof wrong - 1, "wrong", &graph);
    assert_true(status < 0);
    assert_ptr_equal(graph, UNTOUCHED);
    return status == WEFT_ERR_NOMEM ? status : WEFT_OK;
}

static int clone(struct world *w)
{
    struct weft_graph *graph = UNTOUCHED;
    const int status = weft_graph_clone(w->graph, &graph);
    return settle_graph(status, graph);
}

static int print(struct world *w)
{
    char *text = UNTOUCHED;
    const int status = weft_print(w->graph, &text);
    return settle_text(w, status, text);
}

static int validate(struct world *w) { return weft_validate(w->graph); }

/* --- passes and plans --------------------------------------------------------------------------------------------- */

static int run_pass(struct world *w)
{
    const int status = weft_run_pass(w->graph, "decompose", NULL);
    return status < 0 ? status : WEFT_OK;
}

static int run_pipeline(struct world *w)
{
    const int status = weft_run_pipeline(w->graph, NULL);
    return status < 0 ? status : WEFT_OK;
}

static int run_pipeline_with(struct world *w)
{
    const struct weft_pipeline_options options = {.size = sizeof options, .skip = "cse,fuse"};
    const int status = weft_run_pipeline_with(w->graph, NULL, &options);
    return status < 0 ? status : WEFT_OK;
}

static int compile(struct world *w)
{
    struct weft_plan *plan = UNTOUCHED;
    const int status = weft_compile(w->graph, NULL, &plan);
    settle(status, plan);
    if (status == WEFT_OK)
        weft_plan_destroy(plan);
    return status;
}

/* WEFT_CC is none: what is refused while a compiler runs is the business of test_compiler. */
static int plan_wait(struct world *w) { return weft_plan_wait(w->plan); }

static int plan_print(struct world *w)
{
    char *text = UNTOUCHED;
    const int status = weft_plan_print(w->plan, &text);
    return settle_text(w, status, text);
}

/* --- executions --------------------------------------------------------------------------------------------------- */

static int execution_create(struct world *w)
{
    struct weft_execution *execution = UNTOUCHED;
    const int status = weft_execution_create(w->plan, &execution);
    settle(status, execution);
    if (status == WEFT_OK)
        weft_execution_destroy(execution);
    return status;
}

static int bind_input(struct world *w) { return weft_bind_input(w->execution, 0, &w->input[0]); }

/* To an execution of its own: the next run would write there. */
static int bind_named(struct world *w)
{
    struct weft_port in = {.size = sizeof in}, out = {.size = sizeof out};
    size_t i;
    assert_int_equal(weft_plan_input(w->plan, 0, &in), WEFT_OK);
    assert_int_equal(weft_plan_output(w->plan, 0, &out), WEFT_OK);
    assert_int_equal(weft_plan_find_input(w->plan, in.name, &i), WEFT_OK);
    assert_int_equal(weft_plan_find_output(w->plan, out.name, &i), WEFT_OK);
    const int status = weft_bind_input_named(w->execution, in.name, &w->input[0]);
    return status == WEFT_OK ? weft_bind_output_named(w->execution, out.name, NULL) : status;
}

static int rebind(struct world *w)
{
    static float out[8 * WORLD_ROWS];
    struct weft_tensor need;
    assert_int_equal(weft_rebind_output(w->execution, 0, out), WEFT_ERR_ARGUMENT); /* none is bound */
    const int status = weft_rebind_input(w->execution, 0, w->in);
    return status == WEFT_OK ? weft_output_needed(w->execution, 0, &need) : status;
}

static int bind_output(struct world *w)
{
    static float out[8 * WORLD_ROWS];
    struct weft_execution *execution;
    const struct weft_tensor tensor = {
        .data = out, .dtype = WEFT_F32, .rank = 2, .extent = {WORLD_ROWS, 8}, .stride = {8, 1}};
    const int64_t left = w->scarce.left;
    w->scarce.left = -1;
    world_require(w, weft_execution_create(w->plan, &execution));
    w->scarce.left = left;
    const int status = weft_bind_output(execution, 0, &tensor);
    weft_execution_destroy(execution);
    return status;
}

/* With sizes that are new to the execution. */
static int run(struct world *w)
{
    w->input[0].extent[0] = 1;
    const int status = weft_bind_input(w->execution, 0, &w->input[0]);
    return status == WEFT_OK ? weft_run(w->execution) : status;
}

static void ignore_step(void *user, const char *kernel, const char *value, int64_t ns) { ++*(int *)user; }

static int run_timed(struct world *w)
{
    int steps = 0;
    const int status = weft_run_timed(w->execution, ignore_step, &steps);
    assert_true(status < 0 || steps > 0);
    return status;
}

static int cancel(struct world *w)
{
    assert_int_equal(weft_cancel(w->execution), WEFT_OK);
    const int status = run(w);
    return status == WEFT_ERR_CANCELLED ? WEFT_OK : status;
}

static int evaluate(struct world *w)
{
    struct weft_tensor out[WORLD_RESULTS] = {{0}};
    const int status = weft_evaluate(w->graph, w->input, 2, out, WORLD_RESULTS);
    for (size_t i = 0; i < WORLD_RESULTS; i++) {
        assert_true((out[i].data != NULL) == (status == WEFT_OK));
        weft_tensor_free(w->context, &out[i]);
    }
    return status;
}

#ifdef WITH_VIZ
static int dot(struct world *w)
{
    char *text = UNTOUCHED;
    const int status = weft_dot(w->graph, &(struct weft_dot_options){.size = sizeof(struct weft_dot_options)}, &text);
    return settle_text(w, status, text);
}
#endif

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const struct entry {
    int (*call)(struct world *);
    const char *functions; /* separated by blanks */
    bool needs_memory;
} entries[] = {
    {words,
     "weft_version weft_version_number weft_status_text weft_dtype_name weft_dtype_from_name weft_dtype_bits "
     "weft_last_error weft_execution_error weft_context_target weft_plan_graph weft_plan_compiled weft_plan_inputs "
     "weft_plan_stored "
     "weft_plan_outputs weft_plan_input weft_plan_output weft_plan_values weft_plan_value weft_plan_find "
     "weft_plan_relayouts weft_plan_steps weft_plan_step weft_plan_blocks weft_plan_block weft_remark_count "
     "weft_plan_step_operand weft_plan_step_result weft_plan_arena_bytes weft_call_extent "
     "weft_remark_get weft_output weft_execution_statistics weft_extent weft_custom_value_of",
     false},
    {ends,
     "weft_close weft_free_text weft_graph_destroy weft_plan_destroy weft_execution_destroy weft_tensor_free",
     false},
    {open_context, "weft_open", true},
    {load, "weft_load", true},
    {register_function, "weft_register", true},
    {register_library, "weft_register_library", true},
    {own_kernel, "weft_target_create weft_target_add weft_target_restrict weft_target_destroy", true},
    {register_pass, "weft_register_pass", true},
    {register_alternative, "weft_register_alternative", true},
    {edit, "weft_insert_before weft_insert_after weft_graph_replace weft_graph_set_operand weft_graph_erase weft_match",
     false},
    {read_graph,
     "weft_graph_params weft_graph_param weft_graph_returns weft_graph_return weft_next_node weft_node_read "
     "weft_node_operand weft_node_result weft_node_attribute weft_value_read",
     false},
    {read_numbers, "weft_constant_read weft_extent_text weft_extent_at", true},
    {save, "weft_save", true},
    {load_fixed, "weft_load_fixed", true},
    {load_memory, "weft_load_memory", true},
    {parse, "weft_parse", true},
    {parse_long, "weft_parse", true},
    {parse_wrong, "weft_parse", true},
    {clone, "weft_graph_clone", true},
    {print, "weft_print", true},
    {validate, "weft_validate", true},
    {create, "weft_graph_create", true},
    {create_body, "weft_graph_create_body", false},
    {symbol, "weft_symbol", false},
    {combine, "weft_extent_combine", false},
    {param, "weft_param", false},
    {param_mut, "weft_param_mut", false},
    {param_static, "weft_param_static", false},
    {constant, "weft_constant", true},
    {constant_borrowed, "weft_constant_borrowed", true},
    {splat, "weft_splat", false},
    {splat_integer, "weft_splat_integer", false},
    {append, "weft_append", false},
    {return_plain, "weft_return", false},
    {return_mut, "weft_return_mut", false},
    {set_layout, "weft_set_layout", false},
    {ask_access, "weft_access", true},
    {run_pass, "weft_run_pass", true},
    {run_pipeline, "weft_run_pipeline", true},
    {run_pipeline_with, "weft_run_pipeline_with", true},
    {compile, "weft_compile", true},
    {plan_print, "weft_plan_print", true},
    {plan_wait, "weft_plan_wait", true},
    {execution_create, "weft_execution_create", true},
    {bind_input, "weft_bind_input", false},
    {bind_output, "weft_bind_output", false},
    {bind_named, "weft_plan_find_input weft_plan_find_output weft_bind_input_named weft_bind_output_named", false},
    {rebind, "weft_rebind_input weft_rebind_output weft_output_needed", false},
    {refresh, "weft_refresh", true},
    {run, "weft_run", true},
    {run_timed, "weft_run_timed", true},
    {cancel, "weft_cancel", true},
    {evaluate, "weft_evaluate", true},
#ifdef WITH_VIZ
    {dot, "weft_dot", true},
#endif
};
enum { ENTRIES = sizeof entries / sizeof *entries };

static char *path; /* of a file with world_text */

/* One entry with one request refused, and all behind it or none; true when nothing had to be refused. */
static bool refuse_one(const struct entry *entry, int64_t n, bool once)
{
    struct world world;
    world_open(&world, path);
    world.scarce.left = n;
    world.scarce.once = once;
    world.scarce.refused = 0;
    const int status = entry->call(&world);
    const bool refused = world.scarce.refused > 0;
    world.scarce.left = -1;
    if (status != WEFT_OK && (status != WEFT_ERR_NOMEM || !refused))
        fail_msg("%s with request %lld refused: %s", entry->functions, (long long)n, weft_status_text(status));
    world_prove(&world);
    world_close(&world);
    return !refused;
}

/* Under the address sanitizer there are thousands of requests: beyond the first hundred not every one is refused. */
static void every_refusal_is_a_status(void **state)
{
    for (size_t i = 0; i < ENTRIES; i++)
        for (int once = 0; once < 2; once++) {
            int64_t n = 0, refusals = 0;
            for (; !refuse_one(&entries[i], n, once); n += 1 + n / 100)
                refusals++;
            if (entries[i].needs_memory && refusals == 0)
                fail_msg("%s asked for no memory", entries[i].functions);
        }
}

/* --- the headers -------------------------------------------------------------------------------------------------- */

static bool is_listed(const char *name, size_t length)
{
    for (size_t i = 0; i < ENTRIES; i++)
        for (const char *at = entries[i].functions; *at; at += strcspn(at, " "), at += *at == ' ')
            if (strcspn(at, " ") == length && memcmp(at, name, length) == 0)
                return true;
    return false;
}

static void need_entry(const char *header, const char *name)
{
    if (!is_listed(name, strlen(name)))
        fail_msg("%s declares %s, which has no entry here", header, name);
}

static void every_function_has_an_entry(void **state)
{
#ifdef WITH_VIZ
    const int with_viz = 1;
#else
    const int with_viz = 0;
#endif
    const int functions = public_declarations(with_viz, need_entry);
    int listed = 0;
    for (size_t i = 0; i < ENTRIES; i++)
        for (const char *at = entries[i].functions; at; at = strchr(at, ' '), at += at != NULL)
            listed++;
    assert_int_equal(functions + /* weft_parse of other texts */ 2, listed);
}

int main(void)
{
    char name[] = "/tmp/weft_nomem_XXXXXX.weft";
    const int file = mkstemps(name, 5);
    if (file < 0 || write(file, world_text, sizeof world_text - 1) != (ssize_t)sizeof world_text - 1)
        return 1;
    close(file);
    path = name;
    setenv("WEFT_CC", "none", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_has_an_entry),
        cmocka_unit_test(every_refusal_is_a_status),
        cmocka_unit_test(refused_passes_leave_the_graph_as_good),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(name);
    return failed;
}
