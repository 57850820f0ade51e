/* SPDX-License-Identifier: Apache-2.0 */
/* test_threads.c: what weft.h promises about threads, under ./dev tsan too, which finds races that do no harm today.
 *
 *   one plan, many threads: each with an execution of its own that shares the plan, its weights, the context's
 *   allocator and executor; beside them a thread whose calls fail, so that messages are made meanwhile
 *   many contexts, a thread each: parsing, importing, passes, compiling, running, printing at the same time
 *
 * Every result has the bits that one thread alone gets. Workers are threads that are made for each call: gcc's OpenMP
 * is not built for the thread sanitizer, which cannot see how it hands work over. */
#include "tests/unit/plan_support.h"
#include "tests/unit/thread_support.h"

#include <pthread.h>

enum { THREADS = 4, WORKERS = 2, RUNS = 3, MOST_PORTS = 8 };

/* --- workers ------------------------------------------------------------------------------------------------------ */

static int count_workers(void *user) { return WORKERS; }

static void run_parts(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    pthread_t thread[WORKERS];
    struct worker_call part[WORKERS] = {{fn, arg, 0}};
    for (int i = 1; i < n; i++)
        part[i] = (struct worker_call){fn, arg, i};
    for (int i = 1; i < n; i++)
        if (pthread_create(&thread[i], NULL, call_worker, &part[i]) != 0)
            abort();
    call_worker(&part[0]);
    for (int i = 1; i < n; i++)
        pthread_join(thread[i], NULL);
}

static void count_message(void *user, const struct weft_diagnostic *diagnostic)
{
    __atomic_fetch_add((int *)user, diagnostic->severity == WEFT_ERROR, __ATOMIC_RELAXED);
}

/* Rows times a factor, and their sums, in five parts, each by way of its worker's scratch memory. */
static int split(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *const x = call->operand;
    const double factor = weft_custom_value_of(call->value, call->values, "factor")->real;
    for (int64_t i = x->extent[0] * call->part / call->parts; i < x->extent[0] * (call->part + 1) / call->parts; i++) {
        float *const row = call->scratch;
        float sum = 0;
        for (int64_t j = 0; j < x->extent[1]; j++)
            sum += row[j] = ((const float *)x->data)[i * x->stride[0] + j] * (float)factor;
        memcpy((float *)call->result[0].data + i * call->result[0].stride[0], row, (size_t)x->extent[1] * sizeof *row);
        ((float *)call->result[1].data)[i] = sum;
    }
    return 0;
}

static int split_types(void *user, struct weft_custom_types *types)
{
    types->result = *types->operand;
    types->more[0] = (struct weft_custom_type){.dtype = WEFT_F32, .rank = 1, .extent = {types->operand->extent[0]}};
    return 0;
}

static int32_t five(void *user, const struct weft_custom_call *call) { return 5; }

static size_t a_row(void *user, const struct weft_custom_call *call)
{
    return (size_t)call->operand->extent[1] * sizeof(float);
}

static struct weft_context *open_with_workers(int *messages)
{
    const struct weft_executor executor = {
        .size = sizeof executor, .flags = WEFT_EXECUTOR_CONCURRENT, .workers = count_workers, .run = run_parts};
    const struct weft_context_options options = {
        .size = sizeof options, .executor = &executor, .diagnose = count_message, .diagnose_user = messages};
    const struct weft_custom custom = {.size = sizeof custom, .name = "split", .least_operands = 1, .most_operands = 1,
                                       .results = 2, .run = split, .type = split_types, .parts = five,
                                       .scratch = a_row};
    struct weft_context *context = NULL;
    return weft_open(&options, &context) == WEFT_OK && weft_register(context, &custom) == WEFT_OK ? context : NULL;
}

/* --- models ------------------------------------------------------------------------------------------------------- */

/* Steps of one part and of several, a loop, a body, a step without a kernel, a function of the caller's, a size that
 * comes out of data, a convolution whose parts pack its weights together. */
static const char mixed[] = "graph @mixed<K=data(64)>(%x: f32[64,48], %n: i64[]) {\n"
                            "  graph @body(%i: i64[], %a: f32[64,48]) {\n"
                            "    %b: f32[64,48] = mul %a, %a\n"
                            "    return %b\n"
                            "  }\n"
                            "  %w: f32[48,48] = const random=2 scale=1\n"
                            "  %a: f32[64,48] = matmul %x, %w\n"
                            "  %h: f32[64,48], %e: f32[64] = custom %a function=split with=[factor=0.5]\n"
                            "  %t: f32[64,48] = tanh %h\n"
                            "  %p: f32[64,48] = loop %n, %t body=@body\n"
                            "  %s: f32[64] = sum %p axes=[1]\n"
                            "  %z: f32[64] = relu %s\n"
                            "  %k: i64[1,K] = nonzero %z extent=[K]\n"
                            "  %d: f64[64,48] = cast %p\n"
                            "  %q: f64[48,48] = const random=3 scale=1\n"
                            "  %m: f64[64,48] = matmul %d, %q\n"
                            "  %i: f32[48,8,8] = reshape %x\n"
                            "  %j: f32[8,48,8,8] = bcast %i dims=[1 2 3]\n"
                            "  %o: f32[48,48] = slice %a start=[0 0] end=[48 48]\n"
                            "  %f: f32[48,48,3,3] = bcast %o dims=[0 1]\n"
                            "  %c: f32[8,48,8,8] = conv %j, %f pad=[1 1 1 1]\n"
                            "  return %m, %k, %e, %c\n"
                            "}\n";

static const char *const models[] = {"" /* mixed */, "examples/models/ultraface-rfb-320/model.onnx",
                                     "tests/models/mnist/model.onnx", "tests/cases/gru_lbr_7/model.onnx",
                                     "tests/cases/loop_while/model.onnx"};
enum { MODELS = sizeof models / sizeof *models };

static struct weft_graph *load(struct weft_context *context, const char *model)
{
    struct weft_graph *graph = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", getenv("WEFT_SOURCE"), model);
    const int status = *model ? weft_load(context, path, &graph)
                              : weft_parse(context, mixed, sizeof mixed - 1, "mixed", &graph);
    return status == WEFT_OK ? graph : NULL;
}

/* Inputs, the same for all threads, and what a run makes of them: a hash of the bytes of all results. */
struct inputs {
    struct weft_tensor tensor[MOST_PORTS];
    size_t count;
};

static bool make_inputs(const struct weft_plan *plan, struct inputs *inputs)
{
    *inputs = (struct inputs){.count = weft_plan_inputs(plan)};
    for (size_t i = 0; i < inputs->count; i++) {
        struct weft_port port = {.size = sizeof port};
        if (i == MOST_PORTS || weft_plan_input(plan, i, &port) != WEFT_OK)
            return false;
        struct weft_tensor *t = &inputs->tensor[i];
        *t = (struct weft_tensor){.dtype = port.dtype, .rank = port.rank};
        int64_t count = 1;
        for (int axis = 0; axis < port.rank; axis++)
            count *= t->extent[axis] = port.extent[axis];
        weft_tensor_dense(t);
        t->data = calloc((size_t)count, 8);
        for (int64_t k = 0; k < count; k++)
            if (weft_dtype_is_float(t->dtype))
                weft_store_real(t->dtype, t->data, k, (double)((k * 37 + 11) % 41 - 20) / 40);
            else
                weft_store_integer(t->dtype, t->data, k, 1);
    }
    return true;
}

static void drop_inputs(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->tensor[i].data);
}

static uint64_t hash(uint64_t seed, const void *data, size_t bytes)
{
    for (const unsigned char *at = data; bytes > 0; at++, bytes--)
        seed = (seed ^ *at) * 1099511628211u;
    return seed;
}

/* 0 if anything goes wrong. */
static uint64_t run_plan(const struct weft_plan *plan, const struct inputs *inputs)
{
    struct weft_execution *e = NULL;
    uint64_t all = 14695981039346656037u;
    bool right = weft_execution_create(plan, &e) == WEFT_OK;
    for (size_t i = 0; right && i < inputs->count; i++)
        right = weft_bind_input(e, i, &inputs->tensor[i]) == WEFT_OK;
    for (int run = 0; run < RUNS; run++)
        right = right && weft_run(e) == WEFT_OK;
    for (size_t i = 0; right && i < weft_plan_outputs(plan); i++) {
        struct weft_tensor t;
        right = weft_output(e, i, &t) == WEFT_OK;
        int64_t count = 1;
        for (int axis = 0; axis < t.rank; axis++)
            count *= t.extent[axis];
        all = hash(all, t.data, (size_t)weft_dtype_bytes(t.dtype, count));
    }
    weft_execution_destroy(e);
    return right ? all : 0;
}

/* --- one plan, many threads --------------------------------------------------------------------------------------- */

struct runner {
    const struct weft_plan *plan;
    const struct inputs *inputs;
    uint64_t result;
};

static void *run_it(void *arg)
{
    struct runner *runner = arg;
    runner->result = run_plan(runner->plan, runner->inputs);
    return NULL;
}

/* Nothing is bound: each run is refused, with a message. */
static void *fail_it(void *arg)
{
    struct runner *runner = arg;
    struct weft_execution *e;
    if (weft_execution_create(runner->plan, &e) != WEFT_OK)
        return NULL;
    for (int i = 0; i < 20; i++)
        runner->result += weft_run(e) == WEFT_ERR_BINDING && *weft_execution_error(e);
    weft_execution_destroy(e);
    return NULL;
}

static void one_plan_on_many_threads(void **state)
{
    for (int m = 0; m < MODELS; m++) {
        int messages = 0;
        struct weft_context *context = open_with_workers(&messages);
        struct weft_graph *graph = load(context, models[m]);
        assert_non_null(graph);
        struct weft_plan *plan = compile(graph, 0);
        struct inputs inputs;
        assert_true(make_inputs(plan, &inputs));
        const uint64_t alone = run_plan(plan, &inputs);
        assert_int_not_equal(alone, 0);
        struct runner runner[THREADS];
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            runner[i] = (struct runner){.plan = plan, .inputs = &inputs};
            assert_int_equal(pthread_create(&thread[i], NULL, i ? run_it : fail_it, &runner[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        assert_int_equal(runner[0].result, 20);
        assert_int_equal(messages, 0); /* those of a run are the execution's: weft_execution_error */
        for (int i = 1; i < THREADS; i++)
            assert_true(runner[i].result == alone);
        drop_inputs(&inputs);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

/* --- many contexts, a thread each --------------------------------------------------------------------------------- */

struct worker {
    int first;               /* number of the model to begin with */
    uint64_t result[MODELS]; /* by model */
    size_t printed[MODELS];  /* characters of the plan's text */
};

static void *compile_all(void *arg)
{
    struct worker *worker = arg;
    int messages = 0;
    for (int i = 0; i < MODELS; i++) {
        const int m = (worker->first + i) % MODELS;
        struct weft_context *context = open_with_workers(&messages);
        struct weft_graph *graph = load(context, models[m]);
        struct weft_plan *plan = NULL;
        struct inputs inputs = {.count = 0};
        char *text = NULL;
        if (graph && weft_compile(graph, NULL, &plan) == WEFT_OK && weft_plan_print(plan, &text) == WEFT_OK &&
            make_inputs(plan, &inputs)) {
            worker->result[m] = run_plan(plan, &inputs);
            worker->printed[m] = strlen(text);
        }
        drop_inputs(&inputs);
        weft_free_text(context, text);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
    return NULL;
}

static void many_contexts_at_once(void **state)
{
    struct worker worker[THREADS] = {{0}};
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        worker[i].first = i;
        assert_int_equal(pthread_create(&thread[i], NULL, compile_all, &worker[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++)
        for (int m = 0; m < MODELS; m++) {
            assert_int_not_equal(worker[i].result[m], 0);
            assert_true(worker[i].result[m] == worker[0].result[m]);
            assert_int_equal(worker[i].printed[m], worker[0].printed[m]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_plan_on_many_threads),
        cmocka_unit_test(many_contexts_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
