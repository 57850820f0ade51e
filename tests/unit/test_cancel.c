/* SPDX-License-Identifier: Apache-2.0 */
/* test_cancel.c: runs that are ended from outside, by another thread, a signal handler, a function within the run, on
 * every kind of executor; and that the execution is as good as new afterwards. */
#include "tests/unit/plan_support.h"
#include "tests/unit/thread_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Steps of one part and of several in each trip, and no step at all. */
static const char loop_text[] = "graph @t(%x: f32[64,48], %n: i64[]) {\n"
                                "  graph @body(%i: i64[], %a: f32[64,48]) {\n"
                                "    %w: f32[48,48] = const random=3 scale=0.1\n"
                                "    %m: f32[64,48] = matmul %a, %w\n"
                                "    %b: f32[64,48] = tanh %m\n"
                                "    return %b\n"
                                "  }\n"
                                "  %p: f32[64,48] = loop %n, %x body=@body\n"
                                "  %s: f32[64] = sum %p axes=[1]\n"
                                "  return %s\n"
                                "}\n";
static const char empty_text[] = "graph @t(%x: f32[64,48], %n: i64[]) {\n"
                                 "  graph @body(%i: i64[], %a: f32[64,48]) {\n"
                                 "    return %a\n"
                                 "  }\n"
                                 "  %p: f32[64,48] = loop %n, %x body=@body\n"
                                 "  %s: f32[64] = sum %p axes=[1]\n"
                                 "  return %s\n"
                                 "}\n";
static const char *const texts[] = {loop_text, empty_text};

/* --- executors ---------------------------------------------------------------------------------------------------- */

#if defined(__SANITIZE_THREAD__)
enum { FIRST_EXECUTOR = 1 }; /* gcc's OpenMP is not built for the thread sanitizer */
#else
enum { FIRST_EXECUTOR = 0 };
#endif

static int two_workers(void *user) { return 2; }

static void run_on_threads(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    pthread_t thread[2];
    struct worker_call call[2];
    for (int i = 1; i < n; i++) {
        call[i] = (struct worker_call){fn, arg, i};
        if (pthread_create(&thread[i], NULL, call_worker, &call[i]) != 0)
            abort();
    }
    fn(arg, 0);
    for (int i = 1; i < n; i++)
        pthread_join(thread[i], NULL);
}

static void run_backwards(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    for (int i = n - 1; i >= 0; i--)
        fn(arg, i);
}

enum { OPENMP, CONCURRENT, FORKS, ALONE, EXECUTORS };

static struct weft_context *open_with(int kind)
{
    const struct weft_executor executor = {.size = sizeof executor,
                                           .flags = kind == CONCURRENT ? WEFT_EXECUTOR_CONCURRENT : 0,
                                           .workers = two_workers,
                                           .run = kind == CONCURRENT ? run_on_threads : run_backwards};
    const struct weft_context_options options = {.size = sizeof options,
                                                 .executor = kind == OPENMP || kind == ALONE ? NULL : &executor,
                                                 .threads = kind == ALONE ? 1 : 2};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    return context;
}

static struct scene open_scene_with(int kind, const char *text)
{
    struct scene s = {.context = open_with(kind)};
    s.graph = parse(s.context, text);
    s.plan = compile(s.graph, 0);
    assert_int_equal(weft_execution_create(s.plan, &s.execution), WEFT_OK);
    return s;
}

/* --- who cancels -------------------------------------------------------------------------------------------------- */

static void *cancel_soon(void *arg)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    (void)weft_cancel(arg);
    return NULL;
}

static struct weft_execution *_Atomic signalled;

static void on_alarm(int number) { (void)weft_cancel(signalled); }

static int run_and_cancel(struct weft_execution *e, bool by_signal, bool timed)
{
    pthread_t thread;
    signalled = e;
    if (by_signal) {
        const struct sigaction action = {.sa_handler = on_alarm};
        const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
        assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
        assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    } else {
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, e), 0);
    }
    const int status = timed ? weft_run_timed(e, NULL, NULL) : weft_run(e);
    if (!by_signal)
        pthread_join(thread, NULL);
    return status;
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static void check_endless(const char *text, int executor, uint32_t flags)
{
    struct weft_context *context = open_with(executor);
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile(graph, flags);
    struct weft_execution *e;
    static float in[64 * 48];
    const int64_t extent[] = {64, 48};
    int64_t trips = 3;
    const struct weft_tensor x = tensor_of(in, 2, extent), n = {.data = &trips, .dtype = WEFT_I64};
    struct weft_tensor y;
    float want[64];
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 1, &n), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
    memcpy(want, y.data, sizeof want);
    for (int round = 0; round < 3; round++) {
        trips = INT64_MAX;
        assert_int_equal(run_and_cancel(e, round == 1, round == 2), WEFT_ERR_CANCELLED);
        assert_non_null(strstr(weft_execution_error(e), "weft_cancel"));
        assert_int_equal(weft_output(e, 0, &y), WEFT_ERR_ARGUMENT);
        trips = 3;
        assert_int_equal(weft_run(e), WEFT_OK);
        assert_string_equal(weft_execution_error(e), "");
        assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
        assert_memory_equal(want, y.data, sizeof want);
    }
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void endless_loops_end_when_asked(void **state)
{
    for (int t = 0; t < 2; t++)
        for (int executor = FIRST_EXECUTOR; executor < EXECUTORS; executor++) {
            check_endless(texts[t], executor, WEFT_COMPILE_NO_PASSES); /* they would leave an empty body out */
            check_endless(texts[t], executor, WEFT_COMPILE_NO_PASSES | WEFT_COMPILE_REFERENCE);
        }
}

static void a_cancel_that_comes_early_holds_for_the_next_run(void **state)
{
    struct scene s = open_scene_with(FIRST_EXECUTOR, "graph @t(%x: f32[4]) {\n  %y: f32[4] = exp %x\n"
                                                     "  return %y\n}\n");
    float in[4];
    const int64_t extent[] = {4};
    const struct weft_tensor x = tensor_of(in, 1, extent);
    assert_int_equal(weft_cancel(NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_bind_input(s.execution, 0, &x), WEFT_OK);
    assert_int_equal(weft_cancel(s.execution), WEFT_OK);
    assert_int_equal(weft_cancel(s.execution), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_ERR_CANCELLED);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    assert_string_equal(weft_status_text(WEFT_ERR_CANCELLED), "cancelled");
    close_scene(&s);
}

/* A function that cancels the run it is in, or counts that it was called. */
struct caller {
    struct weft_execution *execution; /* or NULL */
    int calls;
};

static int call(void *user, const struct weft_custom_call *c)
{
    struct caller *caller = user;
    caller->calls++;
    if (caller->execution)
        (void)weft_cancel(caller->execution);
    memcpy(c->result->data, c->operand->data, 4 * sizeof(float));
    return 0;
}

static void steps_behind_a_cancel_are_left_out(void **state)
{
    static const char text[] = "graph @t(%x: f32[4]) {\n  %a: f32[4] = custom %x function=first\n"
                               "  %b: f32[4] = neg %a\n  %c: f32[4] = custom %b function=second\n  return %c\n}\n";
    struct weft_context *context = open_context(2);
    struct caller first = {0}, second = {0};
    struct weft_custom custom = {.size = sizeof custom, .name = "first", .user = &first, .least_operands = 1,
                                 .most_operands = 1, .run = call};
    assert_int_equal(weft_register(context, &custom), WEFT_OK);
    custom.name = "second";
    custom.user = &second;
    assert_int_equal(weft_register(context, &custom), WEFT_OK);
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    float in[4];
    const int64_t extent[] = {4};
    const struct weft_tensor x = tensor_of(in, 1, extent);
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    first.execution = e;
    assert_int_equal(weft_run(e), WEFT_ERR_CANCELLED);
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 0);
    first.execution = NULL;
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(second.calls, 1);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* Cancels once part 0 of the step with several parts is done. */
static struct weft_execution *cancelled_between_parts;

static void run_and_cancel_between(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    for (int i = 0; i < n; i++) {
        fn(arg, i);
        if (cancelled_between_parts)
            (void)weft_cancel(cancelled_between_parts);
    }
}

/* Parts of a sum share a count of those that are done, which a cancelled run leaves behind. */
static void what_parts_share_is_clean_again(void **state)
{
    const struct weft_executor executor = {.size = sizeof executor, .workers = two_workers,
                                           .run = run_and_cancel_between};
    const struct weft_context_options options = {.size = sizeof options, .executor = &executor};
    static const char *const sums[] = {
        "graph @t(%x: f32[1000000]) {\n  %y: f32[] = sum %x axes=[0]\n  return %y\n}\n",
        "graph @t(%x: f32[2,500000]) {\n  %w: f32[500000,2] = const value=1\n  %m: f32[2,2] = matmul %x, %w\n"
        "  %y: f32[] = sum %m axes=[0 1]\n  return %y\n}\n",
    };
    static float in[1000000];
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        struct weft_context *context;
        assert_int_equal(weft_open(&options, &context), WEFT_OK);
        struct weft_graph *graph = parse(context, sums[i]);
        struct weft_plan *plan = compile(graph, 0);
        struct weft_execution *e;
        const int64_t line[] = {1000000}, rows[] = {2, 500000};
        const struct weft_tensor x = i ? tensor_of(in, 2, rows) : tensor_of(in, 1, line);
        struct weft_tensor y;
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
        assert_int_equal(weft_run(e), WEFT_OK);
        assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
        const float want = *(const float *)y.data;
        for (int round = 0; round < 3; round++) {
            cancelled_between_parts = e;
            assert_int_equal(weft_run(e), WEFT_ERR_CANCELLED);
            cancelled_between_parts = NULL;
            assert_int_equal(weft_run(e), WEFT_OK);
            assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
            assert_true(*(const float *)y.data == want);
        }
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
}

/* Sizes that come out of data are not looked for once a run is cancelled, and are found again in the next one. */
static void sizes_out_of_data_are_found_again(void **state)
{
    struct scene s = open_scene_with(FIRST_EXECUTOR,
                                "graph @t<K=data(6)>(%x: f32[6], %n: i64[]) {\n"
                                "  graph @body(%i: i64[], %a: f32[6]) {\n    %b: f32[6] = abs %a\n    return %b\n  }\n"
                                "  %p: f32[6] = loop %n, %x body=@body\n"
                                "  %k: i64[1,K] = nonzero %p extent=[K]\n  %r: i64[1,K] = add %k, %k\n"
                                "  return %r\n}\n");
    float in[6] = {0, 1, 0, 2, 3, 0};
    int64_t trips = INT64_MAX;
    const struct weft_tensor x = {.data = in, .dtype = WEFT_F32, .rank = 1, .extent = {6}, .stride = {1}},
                             n = {.data = &trips, .dtype = WEFT_I64};
    struct weft_tensor y;
    assert_int_equal(weft_bind_input(s.execution, 0, &x), WEFT_OK);
    assert_int_equal(weft_bind_input(s.execution, 1, &n), WEFT_OK);
    for (int round = 0; round < 2; round++) {
        trips = INT64_MAX;
        assert_int_equal(run_and_cancel(s.execution, false, false), WEFT_ERR_CANCELLED);
        trips = 2;
        assert_int_equal(weft_run(s.execution), WEFT_OK);
        assert_int_equal(weft_output(s.execution, 0, &y), WEFT_OK);
        assert_int_equal(y.extent[1], 3);
        assert_int_equal(((const int64_t *)y.data)[2], 8);
    }
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endless_loops_end_when_asked),
        cmocka_unit_test(a_cancel_that_comes_early_holds_for_the_next_run),
        cmocka_unit_test(steps_behind_a_cancel_are_left_out),
        cmocka_unit_test(what_parts_share_is_clean_again),
        cmocka_unit_test(sizes_out_of_data_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
