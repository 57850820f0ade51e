/* SPDX-License-Identifier: Apache-2.0 */
/* test_fork.c: children that fork made compute what their parent computes, with what it made and with what they make
 * themselves, whatever the parent's threads were doing at that moment. A child that hangs is ended by an alarm. */
#include "tests/unit/emulated.h"
#include "tests/unit/plan_support.h"
#include "tests/unit/thread_support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "graph @t(%x: f32[64,48], %n: i64[]) {\n"
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

static float in[64 * 48];
static int64_t trips = 40;

/* --- what parent and child do ------------------------------------------------------------------------------------- */

static bool bind(struct weft_execution *e)
{
    const int64_t extent[] = {64, 48};
    const struct weft_tensor x = tensor_of(in, 2, extent), n = {.data = &trips, .dtype = WEFT_I64};
    return weft_bind_input(e, 0, &x) == WEFT_OK && weft_bind_input(e, 1, &n) == WEFT_OK;
}

static bool run_execution(struct weft_execution *e, float *ret)
{
    struct weft_tensor y;
    if (weft_run(e) != WEFT_OK || weft_output(e, 0, &y) != WEFT_OK)
        return false;
    memcpy(ret, y.data, 64 * sizeof *ret);
    return true;
}

static bool run_plan(const struct weft_plan *plan, float *ret)
{
    struct weft_execution *e = NULL;
    const bool right = weft_execution_create(plan, &e) == WEFT_OK && bind(e) && run_execution(e, ret);
    weft_execution_destroy(e);
    return right;
}

static bool run_graph(const struct weft_graph *graph, float *ret)
{
    struct weft_plan *plan = NULL;
    const bool right = weft_compile(graph, NULL, &plan) == WEFT_OK && run_plan(plan, ret);
    weft_plan_destroy(plan);
    return right;
}

static bool run_anew(float *ret)
{
    struct weft_context *context = NULL;
    struct weft_graph *graph = NULL;
    const bool right = weft_open(NULL, &context) == WEFT_OK &&
                       weft_parse(context, text, sizeof text - 1, "t", &graph) == WEFT_OK && run_graph(graph, ret);
    weft_graph_destroy(graph);
    weft_close(context);
    return right;
}

/* --- children ----------------------------------------------------------------------------------------------------- */

struct family {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution; /* that no thread was running, or NULL */
    float want[64];
    int generations;
};

static bool same(const struct family *f, const float *got) { return memcmp(f->want, got, sizeof f->want) == 0; }

static int wait_for(pid_t child)
{
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* The number of the first thing that went wrong, or 0. */
static int live(const struct family *f, int generation)
{
    float got[64] = {0};
    (void)alarm(60);
    if (f->execution && !(run_execution(f->execution, got) && same(f, got)))
        return 1;
    if (!run_plan(f->plan, got) || !same(f, got))
        return 2;
    if (!run_graph(f->graph, got) || !same(f, got))
        return 3;
    if (!run_anew(got) || !same(f, got))
        return 4;
    if (weft_gang_size(f->context) != 1)
        return 5;
    if (generation == f->generations)
        return 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(live(f, generation + 1));
    return wait_for(child) == 0 ? 0 : 6;
}

static int fork_and_wait(const struct family *f)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(live(f, 1));
    return wait_for(child);
}

static struct family open_family(struct weft_context *context)
{
    struct family f = {.context = context, .generations = 1};
    f.graph = parse(f.context, text);
    f.plan = compile(f.graph, 0);
    assert_int_equal(weft_execution_create(f.plan, &f.execution), WEFT_OK);
    assert_true(bind(f.execution));
    assert_true(run_execution(f.execution, f.want));
    return f;
}

static int two_workers(void *user) { return 2; }

static void close_family(struct family *f)
{
    weft_execution_destroy(f->execution);
    weft_plan_destroy(f->plan);
    weft_graph_destroy(f->graph);
    weft_close(f->context);
}

static void children_compute_what_their_parent_does(void **state)
{
    struct family f = open_family(open_context(2));
    const int size = weft_gang_size(f.context);
    f.generations = 2;
    for (int i = 0; i < 3; i++) {
        float got[64];
        assert_int_equal(fork_and_wait(&f), 0);
        assert_true(run_execution(f.execution, got) && same(&f, got));
        assert_int_equal(weft_gang_size(f.context), size); /* the parent has what it had */
    }
    close_family(&f);
}

static struct weft_executor openmp;

static void run_with_openmp(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    openmp.run(openmp.user, n, fn, arg);
}

static void executors_without_promises_work_in_children(void **state)
{
    weft_executor_default(&openmp);
    const struct weft_executor forks = {.size = sizeof forks, .workers = two_workers, .run = run_with_openmp};
    struct weft_context_options options = {.size = sizeof options, .executor = &forks, .threads = 2};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    struct family f = open_family(context);
    assert_int_equal(fork_and_wait(&f), 0);
    close_family(&f);
}

/* --- while another thread runs ------------------------------------------------------------------------------------ */

struct runner {
    const struct weft_plan *plan;
    _Atomic bool stop;
    _Atomic int runs;
    bool right;
};

static void *run_on(void *arg)
{
    struct runner *r = arg;
    struct weft_execution *e = NULL;
    float got[64];
    r->right = weft_execution_create(r->plan, &e) == WEFT_OK && bind(e);
    while (r->right && !atomic_load(&r->stop)) {
        r->right = run_execution(e, got);
        atomic_fetch_add(&r->runs, 1);
    }
    weft_execution_destroy(e);
    return NULL;
}

static void forks_during_runs_of_other_threads(void **state)
{
    struct family f = open_family(open_context(2));
    struct runner runner = {.plan = f.plan};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_on, &runner), 0);
    for (int i = 0; i < 25; i++) {
        const int before = atomic_load(&runner.runs);
        while (atomic_load(&runner.runs) == before)
            sched_yield();
        assert_int_equal(fork_and_wait(&f), 0);
    }
    atomic_store(&runner.stop, true);
    pthread_join(thread, NULL);
    assert_true(runner.right);
    close_family(&f);
}

/* --- workers that know of forks ----------------------------------------------------------------------------------- */

static _Atomic int gangs;
static _Atomic bool held, may_go;

/* Makes its threads for each call, so that they are there in a child too. The first call does not end before it may. */
static void run_on_threads(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    const bool first = atomic_fetch_add(&gangs, 1) == 0;
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
    atomic_store(&held, true);
    while (first && !atomic_load(&may_go))
        sched_yield();
}

static void *run_once(void *arg)
{
    float got[64];
    return run_plan(arg, got) ? NULL : arg;
}

/* At the fork another thread has the workers; in the child nobody has. */
static void the_callers_workers_are_free_in_a_child(void **state)
{
    if (is_emulated())
        skip();
    const struct weft_executor executor = {
        .size = sizeof executor, .flags = WEFT_EXECUTOR_CONCURRENT, .workers = two_workers, .run = run_on_threads};
    const struct weft_context_options options = {.size = sizeof options, .executor = &executor};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile(graph, 0);
    pthread_t thread;
    float want[64], got[64];
    assert_int_equal(pthread_create(&thread, NULL, run_once, plan), 0);
    while (!atomic_load(&held))
        sched_yield();
    assert_true(run_plan(plan, want)); /* by one worker */
    assert_int_equal(atomic_load(&gangs), 1);
    const pid_t child = fork();
    if (child == 0) {
        (void)alarm(60);
        const bool right = run_plan(plan, got) && memcmp(want, got, sizeof want) == 0;
        _exit(!right ? 1 : atomic_load(&gangs) > 1 ? 0 : 2);
    }
    assert_int_equal(wait_for(child), 0);
    atomic_store(&may_go, true);
    void *wrong = NULL;
    pthread_join(thread, &wrong);
    assert_null(wrong);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_compute_what_their_parent_does),
        cmocka_unit_test(executors_without_promises_work_in_children),
        cmocka_unit_test(forks_during_runs_of_other_threads),
        cmocka_unit_test(the_callers_workers_are_free_in_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
