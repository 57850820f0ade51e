/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory.c: models and constants in the caller's memory, which is given back once; packs that several plans have
 * are in memory once; inputs and outputs by name. */
#include "plan_support.h"

/* --- the caller's memory ------------------------------------------------------------------------------------------ */

struct lent {
    const void *data;
    size_t bytes;
    int released;
};

static void take_back(void *user, const void *data)
{
    struct lent *lent = user;
    assert_ptr_equal(data, lent->data);
    lent->released++;
}

static void take_bytes_back(void *user, const void *data, size_t bytes)
{
    assert_int_equal(bytes, ((struct lent *)user)->bytes);
    take_back(user, data);
}

enum { ROWS = 96, COLUMNS = 128 };
static float *new_weights(void)
{
    float *w = aligned_alloc(64, sizeof(float) * ROWS * COLUMNS);
    assert_non_null(w);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        w[i] = (float)((i * 29 + 7) % 31 - 15) / 16;
    return w;
}

static weft_val append(struct weft_graph *graph, const char *op, const char *name, weft_val a, weft_val b)
{
    weft_val made;
    const struct weft_op node = {.size = sizeof node, .op = op, .name = name, .operand = (const weft_val[]){a, b},
                                 .operands = 2};
    assert_int_equal(weft_append(graph, &node, &made), WEFT_OK);
    return made;
}

/* y = (x @ w) of 8 x 96, and z = w + w, which reads w as it is. */
static struct weft_graph *build(struct weft_context *context, const float *w, struct lent *lent, bool plain)
{
    struct weft_graph *graph;
    const weft_dim extent[2] = {weft_extent(8), weft_extent(ROWS)};
    weft_val x, weights, result[2];
    assert_int_equal(weft_graph_create(context, "lent", &graph), WEFT_OK);
    assert_int_equal(weft_param(graph, "x", WEFT_F32, 2, extent, &x), WEFT_OK);
    *lent = (struct lent){.data = w, .bytes = sizeof(float) * ROWS * COLUMNS};
    assert_int_equal(weft_constant_borrowed(graph, WEFT_F32, 2, (const int64_t[]){ROWS, COLUMNS}, w, take_back, lent,
                                            &weights), WEFT_OK);
    result[0] = append(graph, "matmul", "y", x, weights);
    if (plain) {
        weft_val other;
        const weft_dim wide[2] = {weft_extent(ROWS), weft_extent(COLUMNS)};
        assert_int_equal(weft_param(graph, "other", WEFT_F32, 2, wide, &other), WEFT_OK);
        result[1] = append(graph, "add", "z", weights, other);
    }
    assert_int_equal(weft_return(graph, result, plain ? 2 : 1), WEFT_OK);
    return graph;
}

static void run_product(struct weft_execution *e, const float *w)
{
    static float data[8 * ROWS];
    struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){8, ROWS}), y;
    for (int i = 0; i < 8 * ROWS; i++)
        data[i] = (float)(i % 13 - 6) / 8;
    assert_int_equal(weft_bind_input_named(e, "x", &x), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
    for (int n = 0; n < COLUMNS; n++) {
        double sum = 0;
        for (int k = 0; k < ROWS; k++)
            sum += (double)data[k] * (double)w[k * COLUMNS + n];
        assert_true(fabs(sum - (double)((float *)y.data)[n]) < 1e-4);
    }
}

/* Graph, clone, plans and an execution read one piece of memory; it is given back when the last of them goes. */
static void borrowed_constants_are_released_once(void **state)
{
    struct weft_context *context = open_context(2);
    struct lent lent;
    float *const w = new_weights();
    struct weft_graph *graph = build(context, w, &lent, false), *clone;
    assert_int_equal(weft_graph_clone(graph, &clone), WEFT_OK);
    struct weft_plan *first = compile(graph, 0), *second = compile(clone, 0);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(second, &e), WEFT_OK);
    weft_graph_destroy(graph);
    weft_plan_destroy(first);
    weft_graph_destroy(clone);
    weft_plan_destroy(second);
    weft_close(context);
    assert_int_equal(lent.released, 0);
    run_product(e, w);
    weft_execution_destroy(e);
    assert_int_equal(lent.released, 1);
    free(w);
}

/* A reader that packs nothing reads it where it lies. */
static void borrowed_constants_are_read_in_place(void **state)
{
    struct weft_context *context = open_context(2);
    struct lent lent;
    float *const w = new_weights();
    struct weft_graph *graph = build(context, w, &lent, true);
    struct weft_plan *plan = compile(graph, WEFT_COMPILE_NO_COMPILER);
    bool in_place = false;
    for (uint32_t i = 1; i < plan->storages; i++)
        in_place |= plan->storage[i].kind == WEFT_IN_CONSTANT && plan->storage[i].data == w;
    assert_true(in_place);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    assert_int_equal(lent.released, 1);
    weft_close(context);
    free(w);
}

static void refused_constants_stay_the_callers(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph;
    struct lent lent = {0};
    weft_val none = {0};
    assert_int_equal(weft_graph_create(context, "g", &graph), WEFT_OK);
    assert_int_equal(weft_constant_borrowed(graph, WEFT_F32, 1, &(int64_t){4}, NULL, take_back, &lent, &none),
                     WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_constant_borrowed(graph, 99, 1, &(int64_t){4}, "", take_back, &lent, &none),
                     WEFT_ERR_ARGUMENT);
    assert_int_equal(none.id, 0);
    assert_int_equal(weft_constant_borrowed(graph, WEFT_F32, 1, &(int64_t){0}, NULL, take_back, &lent, &none), WEFT_OK);
    weft_graph_destroy(graph);
    assert_int_equal(lent.released, 1); /* the empty one */
    weft_close(context);
}

/* --- models in memory --------------------------------------------------------------------------------------------- */

static void *read_model(size_t *ret_bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/models/mnist/model.onnx", getenv("WEFT_SOURCE"));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char data[1 << 20];
    *ret_bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    char *const own = malloc(*ret_bytes);
    memcpy(own, data, *ret_bytes);
    return own;
}

static void models_are_loaded_from_memory(void **state)
{
    struct weft_context *context = open_context(2);
    size_t bytes;
    void *const data = read_model(&bytes);
    struct lent lent = {.data = data, .bytes = bytes};
    struct weft_graph *copied, *borrowed;
    char *a, *b;
    const struct weft_load_options options = {.size = sizeof options, .release = take_bytes_back,
                                              .release_user = &lent};
    assert_int_equal(weft_load_memory(context, data, bytes, NULL, &copied), WEFT_OK);
    assert_int_equal(weft_load_memory(context, data, bytes, &options, &borrowed), WEFT_OK);
    assert_int_equal(weft_print(copied, &a), WEFT_OK);
    assert_int_equal(weft_print(borrowed, &b), WEFT_OK);
    assert_string_equal(a, b);
    weft_free_text(context, a);
    weft_free_text(context, b);
    struct weft_plan *plan = compile(borrowed, 0);
    assert_int_equal(lent.released, 0);
    weft_graph_destroy(borrowed);
    weft_plan_destroy(plan);
    assert_int_equal(lent.released, 1);
    memset(data, 0, bytes); /* the other has its own */
    plan = compile(copied, 0);
    weft_plan_destroy(plan);
    weft_graph_destroy(copied);
    weft_close(context);
    free(data);
}

static void mistakes_in_memory_have_a_name(void **state)
{
    struct weft_context *context = open_context(1);
    struct lent lent = {.data = "weft 1\ngraph @g(%x: f32[4]) {\n  return %z\n}\n"};
    struct weft_graph *graph = NULL;
    struct weft_load_options options = {.size = sizeof options, .name = "held", .release = take_bytes_back,
                                        .release_user = &lent};
    lent.bytes = strlen(lent.data);
    assert_int_equal(weft_load_memory(context, lent.data, lent.bytes, &options, &graph), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(context), "held:3:"));
    assert_int_equal(lent.released, 0);
    lent.data = "graph @g() {\n  %w: f32[4] = const file=\"w.bin\"\n  return %w\n}\n";
    lent.bytes = strlen(lent.data);
    assert_int_equal(weft_load_memory(context, lent.data, lent.bytes, &options, &graph), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(context), "w.bin: a text in memory may name no files"));
    options.folder = "/nowhere";
    assert_int_equal(weft_load_memory(context, lent.data, lent.bytes, &options, &graph), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(context), "/nowhere/w.bin"));
    assert_int_equal(lent.released, 0);
    assert_null(graph);
    lent.data = "graph @g(%x: f32[4]) {\n  return %x\n}\n";
    lent.bytes = strlen(lent.data);
    assert_int_equal(weft_load_memory(context, lent.data, lent.bytes, &options, &graph), WEFT_OK);
    assert_int_equal(lent.released, 1); /* a text is not needed any more */
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- packs that plans share --------------------------------------------------------------------------------------- */

static struct weft_statistics statistics_of(const struct weft_plan *plan)
{
    struct weft_statistics statistics = {.size = sizeof statistics};
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_execution_statistics(e, &statistics), WEFT_OK);
    weft_execution_destroy(e);
    return statistics;
}

static const void *pack_of(const struct weft_plan *plan)
{
    for (uint32_t i = 0; i < plan->steps; i++)
        if (plan->step[i].pack)
            return plan->pack[plan->step[i].pack].data;
    return NULL;
}

static void equal_packs_are_in_memory_once(void **state)
{
    struct weft_context *context = open_context(2);
    struct lent lent[2];
    float *const w = new_weights();
    struct weft_graph *graph = build(context, w, &lent[0], false), *other = build(context, w, &lent[1], true);
    struct weft_plan *first = compile(graph, 0);
    const void *const pack = pack_of(first);
    assert_non_null(pack);
    assert_int_equal(statistics_of(first).shared_bytes, 0);
    struct weft_plan *second = compile(other, 0); /* another graph, the same weights */
    assert_ptr_equal(pack_of(second), pack);
    const struct weft_statistics both = statistics_of(first);
    assert_true(both.shared_bytes >= (int64_t)(sizeof(float) * ROWS * COLUMNS) &&
                both.shared_bytes <= both.constant_bytes);
    weft_plan_destroy(first); /* the second keeps it */
    assert_int_equal(statistics_of(second).shared_bytes, 0);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(second, &e), WEFT_OK);
    static float wide[ROWS * COLUMNS];
    const struct weft_tensor addend = tensor_of(wide, 2, (const int64_t[]){ROWS, COLUMNS});
    assert_int_equal(weft_bind_input_named(e, "other", &addend), WEFT_OK);
    run_product(e, w);
    weft_execution_destroy(e);
    weft_plan_destroy(second);
    struct weft_plan *third = compile(graph, 0); /* the entry of what is gone gives way to a new one */
    assert_int_equal(statistics_of(third).shared_bytes, 0);
    weft_plan_destroy(third);
    weft_graph_destroy(graph);
    weft_graph_destroy(other);
    assert_int_equal(lent[0].released + lent[1].released, 2);
    weft_close(context);
    free(w);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Passes make %b and %c one value; each keeps its name outside. */
static void ports_have_the_names_of_the_graph(void **state)
{
    struct scene s = open_scene("weft 1\ngraph @g(%first: f32[8], %second: f32[8]) {\n"
                                "  %a: f32[8] = add %first, %second\n  %b: f32[8] = exp %a\n  %c: f32[8] = exp %a\n"
                                "  return %b, %c\n}\n", 0);
    size_t i = 9;
    struct weft_port port = {.size = sizeof port};
    static float x[8], out[8];
    const struct weft_tensor tensor = tensor_of(x, 1, &(int64_t){8}), result = tensor_of(out, 1, &(int64_t){8});
    assert_int_equal(weft_plan_find_input(s.plan, "second", &i), WEFT_OK);
    assert_int_equal(i, 1);
    assert_int_equal(weft_plan_find_output(s.plan, "c", &i), WEFT_OK);
    assert_int_equal(i, 1);
    assert_int_equal(weft_plan_output(s.plan, 1, &port), WEFT_OK);
    assert_string_equal(port.name, "c");
    assert_int_equal(weft_plan_find_input(s.plan, "c", &i), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_plan_find_output(s.plan, "", &i), WEFT_ERR_ARGUMENT);
    assert_int_equal(i, 1);
    assert_int_equal(weft_bind_input_named(s.execution, "frist", &tensor), WEFT_ERR_ARGUMENT);
    assert_string_equal(weft_execution_error(s.execution), "there is no input 'frist' (did you mean first?)");
    assert_int_equal(weft_bind_output_named(s.execution, "zzzzzzzz", &result), WEFT_ERR_ARGUMENT);
    assert_string_equal(weft_execution_error(s.execution), "there is no output 'zzzzzzzz': the plan has 2, 'b' first");
    assert_int_equal(weft_bind_input_named(s.execution, "first", &tensor), WEFT_OK);
    assert_int_equal(weft_bind_input_named(s.execution, "second", &tensor), WEFT_OK);
    assert_int_equal(weft_bind_output_named(s.execution, "c", &result), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_true(fabs((double)out[3] - exp(2 * (double)x[3])) < 1e-3 * exp(2 * (double)x[3]));
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borrowed_constants_are_released_once),
        cmocka_unit_test(borrowed_constants_are_read_in_place),
        cmocka_unit_test(refused_constants_stay_the_callers),
        cmocka_unit_test(models_are_loaded_from_memory),
        cmocka_unit_test(mistakes_in_memory_have_a_name),
        cmocka_unit_test(equal_packs_are_in_memory_once),
        cmocka_unit_test(ports_have_the_names_of_the_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
