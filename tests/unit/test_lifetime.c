/* SPDX-License-Identifier: Apache-2.0 */
/* test_lifetime.c: what is made holds what it was made from, so that things can be given up in any order and on any
 * thread. Under the address sanitizer a use after free fails; without it, memory that is given back is overwritten
 * first, and has to come back in full. */
#include "tests/unit/plan_support.h"

#include <pthread.h>
#include <stdatomic.h>

static const char loop_text[] = "graph @t(%x: f32[64,48], %n: i64[]) {\n"
                                "  graph @body(%i: i64[], %a: f32[64,48]) {\n"
                                "    %b: f32[64,48] = mul %a, %a\n"
                                "    return %b\n"
                                "  }\n"
                                "  %w: f32[48,48] = const random=2 scale=1\n"
                                "  %m: f32[64,48] = matmul %x, %w\n"
                                "  %t: f32[64,48] = tanh %m\n"
                                "  %p: f32[64,48] = loop %n, %t body=@body\n"
                                "  return %p\n"
                                "}\n";

/* --- memory that shows when it is gone ---------------------------------------------------------------------------- */

static _Atomic int64_t held; /* bytes */

static void *allocate(void *user, size_t bytes, size_t align)
{
    void *memory = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (memory)
        atomic_fetch_add(&held, (int64_t)bytes);
    return memory;
}

static void release(void *user, void *memory, size_t bytes)
{
    memset(memory, 0xdd, bytes);
    atomic_fetch_sub(&held, (int64_t)bytes);
    free(memory);
}

/* --- one of everything -------------------------------------------------------------------------------------------- */

/* gcc's OpenMP is not built for the thread sanitizer. */
#if defined(__SANITIZE_THREAD__)
enum { WORKERS = 1 };
#else
enum { WORKERS = 2 };
#endif

enum { CONTEXT, GRAPH, CLONE, TARGET, TEXT, TENSOR, PLAN, EXECUTION, OTHER, THINGS };

struct world {
    struct weft_context *context;
    struct weft_graph *graph, *clone;
    struct weft_target *target;
    char *text;
    struct weft_tensor tensor; /* a result of weft_evaluate */
    struct weft_plan *plan;
    struct weft_execution *execution, *other;
    float x[64 * 48];
    int64_t trips;
    bool given_up[THINGS];
};

static void bind(struct world *w, struct weft_execution *e)
{
    const int64_t extent[] = {64, 48};
    const struct weft_tensor x = tensor_of(w->x, 2, extent), n = {.data = &w->trips, .dtype = WEFT_I64};
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 1, &n), WEFT_OK);
}

static void open_world(struct world *w)
{
    *w = (struct world){.trips = 2};
    const struct weft_allocator allocator = {.size = sizeof allocator, .allocate = allocate, .release = release};
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .threads = WORKERS};
    assert_int_equal(weft_open(&options, &w->context), WEFT_OK);
    w->graph = parse(w->context, loop_text);
    assert_int_equal(weft_graph_clone(w->graph, &w->clone), WEFT_OK);
    assert_int_equal(weft_target_create(w->context, &w->target), WEFT_OK);
    assert_int_equal(weft_print(w->graph, &w->text), WEFT_OK);
    const int64_t extent[] = {64, 48};
    const struct weft_tensor in[] = {tensor_of(w->x, 2, extent), {.data = &w->trips, .dtype = WEFT_I64}};
    assert_int_equal(weft_evaluate(w->graph, in, 2, &w->tensor, 1), WEFT_OK);
    const struct weft_compile_options compile = {.size = sizeof compile, .target = w->target};
    assert_int_equal(weft_compile(w->graph, &compile, &w->plan), WEFT_OK);
    assert_int_equal(weft_execution_create(w->plan, &w->execution), WEFT_OK);
    assert_int_equal(weft_execution_create(w->plan, &w->other), WEFT_OK);
    bind(w, w->execution);
    bind(w, w->other);
}

static void give_up(struct world *w, int thing)
{
    w->given_up[thing] = true;
    switch (thing) {
    case CONTEXT: weft_close(w->context); return;
    case GRAPH: weft_graph_destroy(w->graph); return;
    case CLONE: weft_graph_destroy(w->clone); return;
    case TARGET: weft_target_destroy(w->target); return;
    case TEXT: weft_free_text(w->context, w->text); return;
    case TENSOR: weft_tensor_free(w->context, &w->tensor); return;
    case PLAN: weft_plan_destroy(w->plan); return;
    case EXECUTION: weft_execution_destroy(w->execution); return;
    case OTHER: weft_execution_destroy(w->other); return;
    default: fail();
    }
}

static void run_and_compare(const struct world *w, struct weft_execution *e)
{
    struct weft_tensor got;
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &got), WEFT_OK);
    for (int i = 0; i < 64 * 48 && !w->given_up[TENSOR]; i++)
        assert_true(fabsf(((float *)got.data)[i] - ((float *)w->tensor.data)[i]) < 1e-3f);
}

/* Everything that has not been given up does its work. */
static void use(struct world *w)
{
    if (!w->given_up[EXECUTION])
        run_and_compare(w, w->execution);
    if (!w->given_up[OTHER])
        run_and_compare(w, w->other);
    char *text = NULL;
    if (!w->given_up[PLAN]) {
        struct weft_port port = {.size = sizeof port};
        assert_int_equal(weft_plan_input(w->plan, 0, &port), WEFT_OK);
        assert_string_equal(port.name, "x");
        assert_int_equal(weft_plan_print(w->plan, &text), WEFT_OK);
        weft_free_text(w->given_up[CONTEXT] ? weft_plan_graph(w->plan)->context : w->context, text);
    }
    struct weft_graph *const graph[] = {w->given_up[GRAPH] ? NULL : w->graph, w->given_up[CLONE] ? NULL : w->clone};
    for (int i = 0; i < 2; i++) {
        struct weft_plan *plan = NULL;
        if (!graph[i])
            continue;
        assert_int_equal(weft_validate(graph[i]), WEFT_OK);
        assert_int_equal(weft_compile(graph[i], NULL, &plan), WEFT_OK);
        weft_plan_destroy(plan);
    }
    if (!w->given_up[TEXT])
        assert_non_null(strstr(w->text, "loop %n, %t"));
}

static uint64_t random_state = 1;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static void any_order_of_destruction_is_fine(void **state)
{
    for (int round = 0; round < 60; round++) {
        struct world *w = calloc(1, sizeof *w);
        int order[THINGS];
        open_world(w);
        for (int i = 0; i < THINGS; i++) {
            const int k = (int)draw((uint32_t)i + 1);
            order[i] = order[k];
            order[k] = i;
        }
        for (int i = 0; i < THINGS; i++) {
            give_up(w, order[i]);
            use(w);
        }
        assert_int_equal(atomic_load(&held), 0);
        free(w);
    }
}

static void the_context_first_and_its_parts_in_each_order(void **state)
{
    for (int last = 1; last < THINGS; last++) {
        struct world *w = calloc(1, sizeof *w);
        open_world(w);
        give_up(w, CONTEXT);
        for (int i = 1; i < THINGS; i++)
            if (i != last)
                give_up(w, i);
        assert_true(atomic_load(&held) > 0);
        use(w);
        give_up(w, last);
        assert_int_equal(atomic_load(&held), 0);
        free(w);
    }
}

static void giving_up_twice_takes_no_hold_of_others(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    open_world(w);
    for (int i = 0; i < 3; i++) {
        weft_close(w->context);
        weft_plan_destroy(w->plan);
    }
    w->given_up[CONTEXT] = w->given_up[PLAN] = true;
    use(w);
    for (int i = 0; i < THINGS; i++)
        if (!w->given_up[i])
            give_up(w, i);
    assert_int_equal(atomic_load(&held), 0);
    free(w);
}

static void a_plan_outlives_the_target_of_another_context(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    open_world(w);
    struct weft_context *other = open_context(1);
    const struct weft_compile_options options = {.size = sizeof options, .target = weft_context_target(other)};
    struct weft_plan *plan;
    struct weft_execution *e;
    assert_int_equal(weft_compile(w->graph, &options, &plan), WEFT_OK);
    weft_close(other);
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    weft_plan_destroy(plan);
    bind(w, e);
    run_and_compare(w, e);
    weft_execution_destroy(e);
    for (int i = 0; i < THINGS; i++)
        give_up(w, i);
    assert_int_equal(atomic_load(&held), 0);
    free(w);
}

static void failed_calls_leave_no_hold(void **state)
{
    struct weft_context *context;
    const struct weft_allocator allocator = {.size = sizeof allocator, .allocate = allocate, .release = release};
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator};
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    struct weft_graph *graph = NULL, *copy = NULL;
    struct weft_plan *plan = NULL;
    struct weft_tensor out = {0};
    assert_true(weft_parse(context, "graph @x {", 10, "t", &graph) < 0);
    assert_true(weft_load(context, "nowhere.weft", &graph) < 0);
    assert_int_equal(weft_graph_create(context, "empty", &graph), WEFT_OK);
    assert_int_equal(weft_graph_clone(graph, &copy), WEFT_ERR_INVALID);
    assert_int_equal(weft_compile(graph, NULL, &plan), WEFT_ERR_INVALID);
    assert_true(weft_evaluate(graph, NULL, 0, &out, 1) < 0);
    weft_tensor_free(context, &out); /* there is none */
    weft_close(context);
    weft_graph_destroy(graph);
    assert_int_equal(atomic_load(&held), 0);
}

/* --- many threads ------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 12 };

struct share {
    struct world *world;
    struct weft_execution *execution;
    pthread_barrier_t *start;
    int thing; /* given up by this thread, after its runs */
    int status;
};

static void *run_and_give_up(void *arg)
{
    struct share *s = arg;
    pthread_barrier_wait(s->start);
    for (int i = 0; i < 3 && s->status == WEFT_OK; i++)
        s->status = weft_run(s->execution);
    give_up(s->world, s->thing);
    weft_execution_destroy(s->execution);
    return NULL;
}

/* Threads run executions of one plan, each gives up something that others still run on; the last one frees it all. */
static void threads_give_up_what_others_use(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct world *w = calloc(1, sizeof *w);
        struct share share[THREADS];
        pthread_t thread[THREADS];
        pthread_barrier_t start;
        static const int things[THREADS] = {CONTEXT, PLAN, GRAPH, EXECUTION};
        open_world(w);
        pthread_barrier_init(&start, NULL, THREADS);
        for (int i = 0; i < THREADS; i++) {
            share[i] = (struct share){.world = w, .start = &start, .thing = things[(i + round) % THREADS]};
            assert_int_equal(weft_execution_create(w->plan, &share[i].execution), WEFT_OK);
            bind(w, share[i].execution);
        }
        give_up(w, TEXT);
        give_up(w, TENSOR);
        give_up(w, CLONE);
        give_up(w, OTHER);
        give_up(w, TARGET);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, run_and_give_up, &share[i]), 0);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
            assert_int_equal(share[i].status, WEFT_OK);
        }
        pthread_barrier_destroy(&start);
        assert_int_equal(atomic_load(&held), 0);
        free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_of_destruction_is_fine),
        cmocka_unit_test(the_context_first_and_its_parts_in_each_order),
        cmocka_unit_test(giving_up_twice_takes_no_hold_of_others),
        cmocka_unit_test(a_plan_outlives_the_target_of_another_context),
        cmocka_unit_test(failed_calls_leave_no_hold),
        cmocka_unit_test(threads_give_up_what_others_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
