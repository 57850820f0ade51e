/* SPDX-License-Identifier: Apache-2.0 */
/* test_executor.c: plans on executors of every kind, and one plan on many threads: always the same bits. */
#include "kernels/kernels.h"
#include "tests/unit/plan_support.h"

#include <pthread.h>
#include <time.h>

static const char *const large_text = "graph @t(%x: f32[64,48]) {\n  %w: f32[48,48] = const random=2 scale=1\n"
                                      "  %a: f32[64,48] = matmul %x, %w\n  %b: f32[64,48] = tanh %a\n  %c: f32[64,48] "
                                      "= matmul %b, %w\n  %d: f32[64,48] = exp %c\n"
                                      "  %s: f32[64] = sum %d axes=[1]\n  return %s\n}\n";

static int three_workers(void *user) { return 3; }

/* Large enough for three parts a worker, which whoever is ready takes. */
static const char *const turns_text = "graph @t(%x: f32[192,256]) {\n  %w: f32[256,320] = const random=2 scale=1\n"
                                      "  %a: f32[192,320] = matmul %x, %w\n  %s: f32[320] = sum %a axes=[0]\n"
                                      "  return %s\n}\n";

/* Convolutions of which the same goes: their forms cut pixels, blocks of tiles, rows or images. */
static const char *const turns_convs[] = {
    "graph @direct(%x: f32[192,256]) {\n  %i: f32[1,16,48,64] = reshape %x\n  %w: f32[80,16,5,5] = const random=2 "
    "scale=1\n  %a: f32[1,80,44,60] = conv %i, %w\n  %s: f32[1,80] = sum %a axes=[2 3]\n  return %s\n}\n",
    "graph @winograd(%x: f32[192,256]) {\n  %i: f32[1,16,48,64] = reshape %x\n  %w: f32[80,16,3,3] = const random=2 "
    "scale=1\n  %a: f32[1,80,48,64] = conv %i, %w pad=[1 1 1 1]\n  %s: f32[1,80] = sum %a axes=[2 3]\n  return "
    "%s\n}\n",
    "graph @point(%x: f32[192,256]) {\n  %i: f32[1,48,64,16] = reshape %x\n  %n: f32[1,16,48,64] = transpose %i "
    "perm=[0 3 1 2]\n  %w: f32[80,16,1,1] = const random=2 scale=1\n  %a: f32[1,80,48,64] = conv %n, %w\n  %r: "
    "f32[1,80,48,64] = relu %a\n  %s: f32[1,80] = sum %r axes=[2 3]\n  return %s\n}\n",
    "graph @channels(%x: f32[192,256]) {\n  %i: f32[1,48,32,32] = reshape %x\n  %n: f32[1,32,48,32] = transpose %i "
    "perm=[0 3 1 2]\n  %w: f32[32,1,9,9] = const random=2 scale=1\n  %a: f32[1,32,48,32] = conv %n, %w pad=[4 4 4 4] "
    "groups=32\n  %s: f32[1,32] = sum %a axes=[2 3]\n  return %s\n}\n",
    "graph @windows(%x: f32[192,256]) {\n  %i: f32[48,32,32] = reshape %x\n  %t: f32[32,48,32] = transpose %i "
    "perm=[2 0 1]\n  %n: f32[10,32,48,32] = bcast %t dims=[1 2 3]\n  %w: f32[32,1,3,3] = const random=2 scale=1\n  "
    "%a: f32[10,32,48,32] = conv %n, %w pad=[1 1 1 1] groups=32\n  %s: f32[10,32] = sum %a axes=[2 3]\n  return "
    "%s\n}\n",
};

/* Convolutions whose weights come with a run, so that its parts pack them together: by Winograd's transform, in panels
 * with and without phases, in tiles, and of two groups, which two parts pack for themselves. */
#define WEIGHTS(shape)                                                                                                 \
    "(%x: f32[192,256]) {\n  %i: f32[1,64,24,32] = reshape %x\n  %v: f32[49152] = reshape %x\n"                        \
    "  %u: f32[36864] = slice %v start=[0] end=[36864]\n  %w: f32" shape " = reshape %u\n"
static const char *const packing_convs[] = {
    "graph @winograd" WEIGHTS("[64,64,3,3]") "  %a: f32[1,64,24,32] = conv %i, %w pad=[1 1 1 1]\n"
    "  %s: f32[1,64] = sum %a axes=[2 3]\n  return %s\n}\n",
    "graph @direct" WEIGHTS("[64,64,3,3]") "  %t: f32[1,24,32,64] = transpose %i perm=[0 2 3 1]\n"
    "  %n: f32[1,64,24,32] = transpose %t perm=[0 3 1 2]\n  %a: f32[1,64,12,16] = conv %n, %w pad=[1 1 1 1] "
    "stride=[2 2]\n  %s: f32[1,64] = sum %a axes=[2 3]\n  return %s\n}\n",
    "graph @adjoint" WEIGHTS("[64,64,3,3]") "  %a: f32[1,64,49,65] = conv_transpose %i, %w stride=[2 2]\n"
    "  %s: f32[1,64] = sum %a axes=[2 3]\n  return %s\n}\n",
    "graph @phases" WEIGHTS("[36,64,4,4]") "  %a: f32[1,36,21,29] = conv %i, %w\n"
    "  %s: f32[1,36] = sum %a axes=[2 3]\n  return %s\n}\n",
    "graph @groups" WEIGHTS("[128,32,3,3]") "  %a: f32[1,128,24,32] = conv %i, %w pad=[1 1 1 1] groups=2\n"
    "  %s: f32[1,128] = sum %a axes=[2 3]\n  return %s\n}\n",
};
static const int64_t packing_results[] = {64, 64, 64, 36, 128};

/* Backwards, one after the other: legal where nothing was promised. */
static void run_backwards(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    assert_in_range(n, 2, 3);
    (*(int *)user)++;
    for (int i = n - 1; i >= 0; i--)
        fn(arg, i);
}

struct call {
    void (*fn)(void *arg, int i);
    void *arg;
    int i;
};

static void *call_one(void *arg)
{
    struct call *call = arg;
    call->fn(call->arg, call->i);
    return NULL;
}

static void run_on_threads(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    pthread_t thread[3];
    struct call call[3];
    assert_in_range(n, 1, 3);
    for (int i = 0; i < n; i++) {
        call[i] = (struct call){fn, arg, i};
        assert_int_equal(pthread_create(&thread[i], NULL, call_one, &call[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}

/* Worker 0 comes when the others have done what there is to do without it. */
static void run_with_one_late(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    pthread_t thread[3];
    struct call call[3];
    assert_in_range(n, 1, 3);
    for (int i = n - 1; i > 0; i--) {
        call[i] = (struct call){fn, arg, i};
        assert_int_equal(pthread_create(&thread[i], NULL, call_one, &call[i]), 0);
    }
    if (n > 1)
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    fn(arg, 0);
    for (int i = 1; i < n; i++)
        pthread_join(thread[i], NULL);
}

enum { RESULTS = 320 };

/* The results of 20 runs of a graph with one input of this shape. */
static void run_text(struct weft_context *context, const char *source, const int64_t extent[2], int64_t results,
                     float *ret)
{
    struct weft_graph *graph = parse(context, source);
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    static float in[192 * 256];
    const struct weft_tensor x = tensor_of(in, 2, extent);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(weft_run(e), WEFT_OK);
    struct weft_tensor y;
    assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
    memcpy(ret, y.data, (size_t)results * sizeof *ret);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
}

static void check_executors(const char *source, const int64_t extent[2], int64_t results)
{
    float want[RESULTS] = {0}, got[RESULTS] = {0};
    struct weft_context *context = open_context(1);
    run_text(context, source, extent, results, want);
    weft_close(context);
    int calls = 0;
    const struct weft_executor executors[] = {
        {.size = sizeof(struct weft_executor), .user = &calls, .workers = three_workers, .run = run_backwards},
        {.size = sizeof(struct weft_executor),
         .flags = WEFT_EXECUTOR_CONCURRENT,
         .workers = three_workers,
         .run = run_on_threads},
        {.size = sizeof(struct weft_executor),
         .flags = WEFT_EXECUTOR_CONCURRENT,
         .workers = three_workers,
         .run = run_with_one_late},
    };
    for (size_t i = 0; i < sizeof executors / sizeof *executors; i++) {
        struct weft_context_options options = {.size = sizeof options, .executor = &executors[i]};
        assert_int_equal(weft_open(&options, &context), WEFT_OK);
        run_text(context, source, extent, results, got);
        weft_close(context);
        assert_memory_equal(want, got, sizeof want);
    }
    assert_true(calls > 0); /* some kernel was large enough to be shared out */
    for (int threads = 2; threads <= 4; threads++) {
        context = open_context(threads);
        run_text(context, source, extent, results, got);
        weft_close(context);
        assert_memory_equal(want, got, sizeof want);
    }
}

static void any_executor_gives_the_same_bits(void **state)
{
    check_executors(large_text, (int64_t[]){64, 48}, 64);
}

/* Has a step of the plan three parts for each of two workers? */
static bool has_turns(const char *source)
{
    struct weft_context *context = open_context(2);
    struct weft_graph *graph = parse(context, source);
    struct weft_plan *plan = compile(graph, 0);
    char *text;
    assert_int_equal(weft_print(weft_plan_graph(plan), &text), WEFT_OK);
    const bool turns = plan->workers < 2 || strstr(text, "parts=6");
    weft_free_text(context, text);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
    return turns;
}

static void and_so_it_does_where_workers_take_turns(void **state)
{
    if (!WEFT_CPU_BUILT)
        skip(); /* plain loops, which divide evenly */
    assert_true(has_turns(turns_text));
    check_executors(turns_text, (int64_t[]){192, 256}, RESULTS);
}

static void and_in_convolutions(void **state)
{
    if (!WEFT_CPU_BUILT)
        skip();
    for (size_t i = 0; i < sizeof turns_convs / sizeof *turns_convs; i++) {
        print_message("%.16s\n", turns_convs[i]);
        assert_true(has_turns(turns_convs[i]));
        check_executors(turns_convs[i], (int64_t[]){192, 256}, i == 4 ? 320 : i == 3 ? 32 : 80);
    }
}

/* Do two workers pack the weights of the plan's convolution together? */
static bool packs_together(const char *source)
{
    struct scene s = open_scene(source, 0);
    static float in[192 * 256];
    const struct weft_tensor x = tensor_of(in, 2, (const int64_t[]){192, 256});
    bool together = false;
    assert_int_equal(weft_bind_input(s.execution, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(s.execution), WEFT_OK);
    for (uint32_t i = 0; i < s.plan->steps; i++) {
        const struct weft_conv *const conv = weft_frame_descriptor(s.execution->frame, &s.plan->step[i]);
        together = together || (s.plan->step[i].kind == &weft_step_conv && conv->packs_together);
    }
    close_scene(&s);
    return together;
}

static void and_where_parts_pack_weights(void **state)
{
    if (!WEFT_CPU_BUILT)
        skip();
    for (size_t i = 0; i < sizeof packing_convs / sizeof *packing_convs; i++) {
        print_message("%.16s\n", packing_convs[i]);
        assert_int_equal(packs_together(packing_convs[i]), i < 4);
        check_executors(packing_convs[i], (int64_t[]){192, 256}, packing_results[i]);
    }
}

struct racer {
    const struct weft_plan *plan;
    float out[64];
    bool ok;
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    float in[64 * 48];
    const int64_t extent[] = {64, 48};
    const struct weft_tensor x = tensor_of(in, 2, extent);
    struct weft_execution *e;
    racer->ok = weft_execution_create(racer->plan, &e) == WEFT_OK && weft_bind_input(e, 0, &x) == WEFT_OK;
    for (int i = 0; i < 50; i++)
        racer->ok = racer->ok && weft_run(e) == WEFT_OK;
    struct weft_tensor y;
    racer->ok = racer->ok && weft_output(e, 0, &y) == WEFT_OK;
    if (racer->ok)
        memcpy(racer->out, y.data, sizeof racer->out);
    weft_execution_destroy(e);
    return NULL;
}

static void one_plan_runs_on_many_threads(void **state)
{
    struct weft_context *context = open_context(2);
    struct weft_graph *graph = parse(context, large_text);
    struct weft_plan *plan = compile(graph, 0);
    struct racer racer[4];
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) {
        racer[i] = (struct racer){.plan = plan};
        assert_int_equal(pthread_create(&thread[i], NULL, race, &racer[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_true(racer[i].ok);
        assert_memory_equal(racer[0].out, racer[i].out, sizeof racer[0].out);
    }
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_executor_gives_the_same_bits),
        cmocka_unit_test(and_so_it_does_where_workers_take_turns), cmocka_unit_test(and_in_convolutions),
        cmocka_unit_test(and_where_parts_pack_weights),
        cmocka_unit_test(one_plan_runs_on_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
