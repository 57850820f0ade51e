/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the caller's with several results, in several parts.
 *
 *   moments  [M,N] → its rows less their means [M,N], the means [M], the places of the largest i64[M]: rows in parts */
#include "ir/custom.h"
#include "plan_support.h"

#include <pthread.h>

enum { SEEN = 64 };

/* What the functions were told. */
static struct {
    int calls, most_parts, most_workers;
    bool part[SEEN];
    int copies; /* calls whose operand was not row-major */
} seen;

static double scale_of(const struct weft_custom_value *value, size_t values)
{
    const struct weft_custom_value *const scale = weft_custom_value_of(value, values, "scale");
    return scale ? scale->real : 1;
}

static int moments(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *const x = call->operand;
    assert_int_equal(call->results, 3);
    assert_true(call->part >= 0 && call->part < call->parts && call->worker >= 0 && call->worker < call->workers);
    float *const room = call->scratch;
    assert_int_equal((uintptr_t)room % 64, 0);
    __atomic_fetch_add(&seen.calls, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&seen.part[call->part % SEEN], true, __ATOMIC_RELAXED);
    __atomic_store_n(&seen.most_parts, call->parts, __ATOMIC_RELAXED);
    const double scale = scale_of(call->value, call->values);
    const int64_t rows = x->extent[0], n = x->extent[1];
    for (int64_t i = rows * call->part / call->parts; i < rows * (call->part + 1) / call->parts; i++) {
        double sum = 0;
        int64_t largest = 0;
        for (int64_t j = 0; j < n; j++) {
            room[j] = ((const float *)x->data)[i * x->stride[0] + j * x->stride[1]];
            sum += (double)room[j];
            largest = room[j] > room[largest] ? j : largest;
        }
        const float mean = (float)(sum / (double)n);
        for (int64_t j = 0; j < n; j++)
            ((float *)call->result[0].data)[i * call->result[0].stride[0] + j * call->result[0].stride[1]] =
                (room[j] - mean) * (float)scale;
        ((float *)call->result[1].data)[i * call->result[1].stride[0]] = mean;
        ((int64_t *)call->result[2].data)[i * call->result[2].stride[0]] = largest;
    }
    return 0;
}

static int moments_type(void *user, struct weft_custom_types *types)
{
    const struct weft_custom_type *const x = types->operand;
    assert_int_equal(types->results, 3);
    if (x->rank != 2 || x->dtype != WEFT_F32) {
        snprintf(types->message, types->message_bytes, "it takes an f32 matrix");
        return 1;
    }
    types->result = *x;
    types->more[0] = types->more[1] = (struct weft_custom_type){.dtype = WEFT_F32, .rank = 1, .extent = {x->extent[0]}};
    types->more[1].dtype = WEFT_I64;
    return 0;
}

static int32_t in_parts(void *user, const struct weft_custom_call *call)
{
    assert_null(call->operand->data);
    __atomic_store_n(&seen.most_workers, call->workers, __ATOMIC_RELAXED);
    return user ? *(const int32_t *)user : call->workers;
}

static size_t a_row(void *user, const struct weft_custom_call *call)
{
    return (size_t)call->operand->extent[1] * sizeof(float);
}

static bool any_strides(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

static void rows_together(void *user, size_t i, size_t operands, int rank, int *ret_axis)
{
    for (int axis = 0; axis < rank; axis++)
        ret_axis[axis] = axis;
}

static int fails_late(void *user, const struct weft_custom_call *call)
{
    if (call->part != call->parts - 1)
        return 0;
    snprintf(call->message, call->message_bytes, "part %d has no luck", (int)call->part);
    return 3;
}

static const int32_t seven = 7;

static void register_all(struct weft_context *context)
{
    const struct weft_custom plain = {.size = sizeof plain, .name = "moments", .least_operands = 1, .most_operands = 1,
                                      .results = 3, .run = moments, .type = moments_type, .scratch = a_row};
    struct weft_custom all[4] = {plain, plain, plain, plain};
    all[1].name = "moments_in_parts";
    all[1].parts = in_parts;
    all[2].name = "moments_of_seven";
    all[2].parts = in_parts;
    all[2].user = (void *)&seven;
    all[2].layout = any_strides;
    all[2].axes = rows_together;
    all[3].name = "fails_late";
    all[3].parts = in_parts;
    all[3].run = fails_late;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(weft_register(context, &all[i]), WEFT_OK);
}

enum { ROWS = 37, COLUMNS = 11 };

static const char text_of[] = "graph @g<M>(%%x: f32[M,11]) {\n"
                              "  %%y: f32[M,11], %%m: f32[M], %%i: i64[M] = custom %%x function=%s with=[scale=2.0]\n"
                              "  return %%y, %%m, %%i\n}\n";

static void assert_right(const float *x, const struct weft_tensor out[3])
{
    for (int64_t i = 0; i < ROWS; i++) {
        double sum = 0;
        int64_t largest = 0;
        for (int64_t j = 0; j < COLUMNS; j++) {
            sum += (double)x[i * COLUMNS + j];
            largest = x[i * COLUMNS + j] > x[i * COLUMNS + largest] ? j : largest;
        }
        const float mean = (float)(sum / COLUMNS);
        assert_true(((const float *)out[1].data)[i * out[1].stride[0]] == mean);
        assert_true(((const int64_t *)out[2].data)[i * out[2].stride[0]] == largest);
        for (int64_t j = 0; j < COLUMNS; j++)
            assert_true(((const float *)out[0].data)[i * out[0].stride[0] + j * out[0].stride[1]] ==
                        (x[i * COLUMNS + j] - mean) * 2);
    }
}

static struct weft_execution *make(const struct weft_plan *plan, const struct weft_tensor *x)
{
    struct weft_execution *e;
    assert_int_equal(weft_execution_create((struct weft_plan *)plan, &e), WEFT_OK);
    if (weft_bind_input(e, 0, x) != WEFT_OK)
        fail_msg("%s", weft_execution_error(e));
    return e;
}

static void outputs_of(struct weft_execution *e, struct weft_tensor out[3])
{
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(weft_output(e, i, &out[i]), WEFT_OK);
}

/* --- several results, on one thread and on all -------------------------------------------------------------------- */

static void all_results_on_any_number_of_threads(void **state)
{
    static const struct {
        const char *function;
        int32_t parts; /* 0: as many as there are threads */
    } cases[] = {{"moments", 1}, {"moments_in_parts", 0}, {"moments_of_seven", 7}};
    float data[ROWS * COLUMNS];
    const struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){ROWS, COLUMNS});
    for (int threads = 1; threads <= 4; threads++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            struct weft_context *context = open_context(threads);
            char text[400];
            struct weft_tensor out[3] = {{0}};
            register_all(context);
            snprintf(text, sizeof text, text_of, cases[k].function);
            struct weft_graph *const graph = parse(context, text);
            struct weft_plan *const plan = compile(graph, 0);
            const int there = context->target.threads;
            struct weft_execution *const e = make(plan, &x);
            memset(&seen, 0, sizeof seen);
            assert_int_equal(weft_run(e), WEFT_OK);
            const int parts = cases[k].parts ? cases[k].parts : there;
            assert_int_equal(seen.calls, parts);
            for (int i = 0; i < parts; i++)
                assert_true(seen.part[i]);
            outputs_of(e, out);
            assert_right(data, out);
            const int before = allocations;
            assert_int_equal(weft_run(e), WEFT_OK); /* the second run allocates nothing */
            assert_int_equal(allocations, before);
            weft_execution_destroy(e);
            memset(out, 0, sizeof out);
            assert_int_equal(weft_evaluate(graph, &x, 1, out, 3), WEFT_OK);
            assert_right(data, out);
            for (int i = 0; i < 3; i++)
                weft_tensor_free(context, &out[i]);
            weft_plan_destroy(plan);
            weft_graph_destroy(graph);
            weft_close(context);
        }
}

/* What has to be copied is copied once: such a call is one part. */
static void a_call_that_copies_is_one_part(void **state)
{
    struct weft_context *context = open_context(2);
    float data[COLUMNS * ROWS];
    const struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){COLUMNS, ROWS});
    register_all(context);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[11,37]) {\n  %t: f32[37,11] = transpose %x perm=[1 0]\n"
        "  %y: f32[37,11], %m: f32[37], %i: i64[37] = custom %t function=moments_in_parts with=[scale=2.0]\n"
        "  return %y, %m, %i\n}\n");
    for (int passes = 0; passes < 2; passes++) {
        struct weft_plan *const plan = compile(graph, passes ? 0 : WEFT_COMPILE_NO_PASSES);
        struct weft_execution *const e = make(plan, &x);
        struct weft_tensor out[3];
        float turned[ROWS * COLUMNS];
        memset(&seen, 0, sizeof seen);
        assert_int_equal(weft_run(e), WEFT_OK);
        assert_int_equal(seen.most_parts, passes ? context->target.threads : 1); /* with passes there is a relayout */
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                turned[i * COLUMNS + j] = data[j * ROWS + i];
        outputs_of(e, out);
        assert_right(turned, out);
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
    }
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Results that nobody reads are computed, in memory of their own. */
static void some_results_may_be_idle(void **state)
{
    struct weft_context *context = open_context(2);
    float data[ROWS * COLUMNS];
    const struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){ROWS, COLUMNS});
    register_all(context);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[37,11]) {\n  %r: f32[37,11] = relu %x\n"
        "  %y: f32[37,11], %m: f32[37], %i: i64[37] = custom %r function=moments_in_parts\n"
        "  %n: f32[37] = neg %m\n  return %n\n}\n");
    struct weft_plan *const plan = compile(graph, 0);
    struct weft_execution *const e = make(plan, &x);
    struct weft_tensor n;
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &n), WEFT_OK);
    for (int64_t i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int64_t j = 0; j < COLUMNS; j++)
            sum += fmax((double)data[i * COLUMNS + j], 0);
        assert_true(((const float *)n.data)[i] == -(float)(sum / COLUMNS));
    }
    /* nothing is computed over the operand: the function may read it after it has begun to write */
    struct weft_plan_value value[2] = {{.size = sizeof *value}, {.size = sizeof *value}};
    assert_int_equal(weft_plan_find(plan, "r", &value[0]), WEFT_OK);
    assert_int_equal(weft_plan_find(plan, "y", &value[1]), WEFT_OK);
    assert_int_equal(value[0].memory, WEFT_MEMORY_ARENA);
    assert_true(value[0].storage != value[1].storage);
    for (size_t a = 0; a < weft_plan_blocks(plan); a++)
        for (size_t b = 0; b < a; b++) {
            struct weft_plan_block one = {.size = sizeof one}, other = {.size = sizeof other};
            assert_int_equal(weft_plan_block(plan, a, &one), WEFT_OK);
            assert_int_equal(weft_plan_block(plan, b, &other), WEFT_OK);
            const bool together = one.first <= other.last && other.first <= one.last;
            assert_true(!together || one.offset + one.bytes <= other.offset ||
                        other.offset + other.bytes <= one.offset);
        }
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* In a loop's body too, which has sizes and steps of its own. */
static void a_body_calls_it_in_parts(void **state)
{
    struct weft_context *context = open_context(2);
    float data[ROWS * COLUMNS];
    const struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){ROWS, COLUMNS});
    register_all(context);
    struct weft_graph *graph = parse(context, "graph @g(%x: f32[37,11]) {\n"
        "  graph @body(%i: i64[], %a: f32[37,11], %o: f32[37]) {\n"
        "    %y: f32[37,11], %m: f32[37], %k: i64[37] = custom %a function=moments_in_parts with=[scale=2.0]\n"
        "    %s: f32[37] = add %o, %m\n    return %y, %s\n  }\n"
        "  %n: i64[] = const value=3\n  %z: f32[37] = const value=0\n"
        "  %r: f32[37,11], %t: f32[37] = loop %n, %x, %z body=@body\n  return %r, %t\n}\n");
    struct weft_plan *const plan = compile(graph, 0);
    struct weft_execution *const e = make(plan, &x);
    struct weft_tensor got[2], want[2] = {{0}};
    memset(&seen, 0, sizeof seen);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(seen.calls, 3 * context->target.threads);
    assert_int_equal(weft_evaluate(graph, &x, 1, want, 2), WEFT_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weft_output(e, (size_t)i, &got[i]), WEFT_OK);
        assert_memory_equal(got[i].data, want[i].data, (size_t)(i ? ROWS : ROWS * COLUMNS) * sizeof(float));
        weft_tensor_free(context, &want[i]);
    }
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

struct runner {
    const struct weft_plan *plan;
    float data[ROWS * COLUMNS];
};

static void *run_many(void *arg)
{
    struct runner *const r = arg;
    struct weft_tensor x = {.data = r->data, .dtype = WEFT_F32, .rank = 2, .extent = {ROWS, COLUMNS},
                            .stride = {COLUMNS, 1}};
    struct weft_execution *const e = make(r->plan, &x);
    for (int i = 0; i < 50; i++) {
        struct weft_tensor out[3];
        assert_int_equal(weft_run(e), WEFT_OK);
        outputs_of(e, out);
        assert_right(r->data, out);
    }
    weft_execution_destroy(e);
    return NULL;
}

static void executions_run_side_by_side(void **state)
{
    enum { RUNNERS = 3 };
    static struct runner runner[RUNNERS];
    struct weft_context *context = open_context(2);
    char text[400];
    pthread_t thread[RUNNERS];
    register_all(context);
    snprintf(text, sizeof text, text_of, "moments_of_seven");
    struct weft_graph *const graph = parse(context, text);
    struct weft_plan *const plan = compile(graph, 0);
    for (int i = 0; i < RUNNERS; i++) {
        runner[i].plan = plan;
        for (int k = 0; k < ROWS * COLUMNS; k++)
            runner[i].data[k] = (float)((k * 37 + i * 5) % 41 - 20) / 8;
        assert_int_equal(pthread_create(&thread[i], NULL, run_many, &runner[i]), 0);
    }
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(thread[i], NULL);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void a_failing_part_ends_the_run(void **state)
{
    float data[ROWS * COLUMNS];
    const struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){ROWS, COLUMNS});
    for (int threads = 1; threads <= 4; threads++) {
        struct weft_context *context = open_context(threads);
        char text[400];
        struct weft_tensor out[3] = {{0}};
        register_all(context);
        snprintf(text, sizeof text, text_of, "fails_late");
        struct weft_graph *const graph = parse(context, text);
        struct weft_plan *const plan = compile(graph, 0);
        struct weft_execution *const e = make(plan, &x);
        assert_int_equal(weft_run(e), WEFT_ERR_CUSTOM);
        assert_non_null(strstr(weft_execution_error(e), "%y: custom function 'fails_late' reports error 3: part "));
        assert_non_null(strstr(weft_execution_error(e), "has no luck"));
        assert_int_equal(weft_evaluate(graph, &x, 1, out, 3), WEFT_ERR_CUSTOM);
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

static void wrong_uses_are_refused(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"%y: f32[4,2], %m: f32[4] = custom %x function=moments", "moments has 3 results, not 2"},
        {"%y: f32[4,2], %m: f32[5], %i: i64[4] = custom %x function=moments",
         "moments makes f32[4] of these operands, but the result 1 is stated as f32[5]"},
        {"%y: f32[4,2], %m: f32[4], %i: f32[4] = custom %x function=moments",
         "moments makes i64[4] of these operands, but the result 2 is stated as f32[4]"},
        {"%y: f32[4,2], %m: f32[4], %i: i64[4] = custom %s function=moments", "moments refuses these operands"},
        {"%y: f32[4,2] = custom %x function=f with=[a=1 a=2]", "a is given twice"},
        {"%y: f32[4,2] = custom %x function=f with=[a=[1 2.5]]", "are all integers, or all have a point"},
        {"%y: f32[4,2] = custom %x function=f with=[a=word]", "texts stand in double quotes"},
        {"%y: f32[4,2] = custom %x function=f with=[a=f32[2][1]]", "the array has 2 elements, but 1 are given"},
        {"%y: f32[4,2] = custom %x function=f with=[a=f32[N][1]]", "'N'"},
        {"%y: f32[4,2] = custom %x function=f with=[a=u8[1][300]]", "'300' is no element of u8"},
        {"%y: f32[4,2] = custom %x function=f with=[1]", "expected a name and '='"},
        {"%y: f32[4,2] = custom %x function=f with=[a=", "expected a number, a text, a list or an array"},
    };
    struct weft_context *context = open_context(1);
    register_all(context);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct weft_graph *graph = NULL;
        snprintf(text, sizeof text, "graph @g(%%x: f32[4,2], %%s: f32[4]) {\n  %s\n  return %%y\n}\n", cases[i].line);
        assert_true(weft_parse(context, text, strlen(text), "text", &graph) < 0);
        if (!strstr(weft_last_error(context), cases[i].message))
            fail_msg("'%s' is not '%s'", weft_last_error(context), cases[i].message);
    }
    weft_close(context);
}

static void wrong_registrations_are_refused(void **state)
{
    const struct weft_custom right = {.size = sizeof right, .name = "f", .most_operands = -1, .run = moments,
                                      .type = moments_type, .domain = "acme", .op = "Moments"};
    struct weft_custom wrong[6] = {right, right, right, right, right, right};
    static const char *const message[] = {"is custom function 'f' already", "1 to 64 results", "1 to 64 results",
                                          "has a rule for types", "has a domain and the name",
                                          "bits that mean nothing"};
    struct weft_context *context = open_context(1);
    assert_int_equal(weft_register(context, &right), WEFT_OK);
    wrong[1].results = -1;
    wrong[2].results = 65;
    wrong[3].type = NULL;
    wrong[4].op = NULL;
    wrong[5].flags = 4;
    for (size_t i = 0; i < 6; i++) {
        wrong[i].name = "g";
        assert_int_equal(weft_register(context, &wrong[i]), WEFT_ERR_ARGUMENT);
        if (!strstr(weft_last_error(context), message[i]))
            fail_msg("case %zu: '%s'", i, weft_last_error(context));
    }
    /* a program of an older header: its struct ends before all that */
    struct weft_custom old = right;
    old.size = offsetof(struct weft_custom, results);
    old.name = "old";
    assert_int_equal(weft_register(context, &old), WEFT_OK);
    assert_int_equal(weft_custom_find(context, "old")->custom.results, 1);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_results_on_any_number_of_threads),
        cmocka_unit_test(a_call_that_copies_is_one_part),
        cmocka_unit_test(some_results_may_be_idle),
        cmocka_unit_test(a_body_calls_it_in_parts),
        cmocka_unit_test(executions_run_side_by_side),
        cmocka_unit_test(a_failing_part_ends_the_run),
        cmocka_unit_test(wrong_uses_are_refused),
        cmocka_unit_test(wrong_registrations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
