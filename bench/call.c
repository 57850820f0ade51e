/* SPDX-License-Identifier: Apache-2.0 */
/* call.c: what a call of a plan costs beside its work: a relu of 64 numbers, and further inputs of 64 numbers each
 * that nobody reads, bound anew for each run, given another address, or left as they are.
 *
 *     build/tests/bench_call [INPUTS]...        usual: 1 100 400 */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 1000, SIZE = 64, CALLS = 2000, ROUNDS = 9 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(int status, const char *message)
{
    if (status >= 0)
        return;
    fprintf(stderr, "bench_call: %s: %s\n", weft_status_text(status), message);
    exit(1);
}

static struct weft_execution *prepare(struct weft_context *context, int inputs)
{
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    weft_val input[MOST], y;
    const weft_dim size = weft_extent(SIZE);
    must(weft_graph_create(context, "call", &graph), weft_last_error(context));
    for (int i = 0; i < inputs; i++)
        must(weft_param(graph, NULL, WEFT_F32, 1, &size, &input[i]), weft_last_error(context));
    must(weft_append(graph, &(struct weft_op){.size = sizeof(struct weft_op), .op = "relu", .operand = input,
                                              .operands = 1}, &y), weft_last_error(context));
    must(weft_return(graph, &y, 1), weft_last_error(context));
    must(weft_compile(graph, NULL, &plan), weft_last_error(context));
    weft_plan_wait(plan);
    must(weft_execution_create(plan, &execution), weft_last_error(context));
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    return execution;
}

enum way { ALONE, BOUND, REBOUND, WAYS };

static void call(struct weft_execution *execution, int inputs, enum way way, int turn)
{
    static float in[2][MOST][SIZE], out[2][SIZE];
    struct weft_tensor tensor = {.dtype = WEFT_F32, .rank = 1, .extent = {SIZE}, .stride = {1}};
    for (int i = 0; i < inputs && way != ALONE; i++) {
        tensor.data = in[turn][i];
        must(way == BOUND ? weft_bind_input(execution, (size_t)i, &tensor)
                          : weft_rebind_input(execution, (size_t)i, tensor.data), weft_execution_error(execution));
    }
    tensor.data = out[turn];
    if (way != ALONE)
        must(way == BOUND ? weft_bind_output(execution, 0, &tensor) : weft_rebind_output(execution, 0, tensor.data),
             weft_execution_error(execution));
    must(weft_run(execution), weft_execution_error(execution));
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"1", "100", "400"};
    struct weft_context *context;
    must(weft_open(NULL, &context), "no context");
    const int counts = argc > 1 ? argc - 1 : 3;
    printf("ns a call, least of %d rounds   run alone   all bound   all rebound\n", ROUNDS);
    for (int k = 0; k < counts; k++) {
        const int inputs = atoi(argc > 1 ? argv[k + 1] : usual[k]);
        if (inputs < 1 || inputs > MOST) {
            fprintf(stderr, "bench_call: from 1 to %d inputs\n", MOST);
            return 2;
        }
        struct weft_execution *const execution = prepare(context, inputs);
        double least[WAYS] = {1e18, 1e18, 1e18};
        call(execution, inputs, BOUND, 0);
        for (int round = 0; round < ROUNDS; round++)
            for (int way = 0; way < WAYS; way++) {
                const double start = now_ns();
                for (int i = 0; i < CALLS; i++)
                    call(execution, inputs, (enum way)way, i & 1);
                const double ns = (now_ns() - start) / CALLS;
                least[way] = ns < least[way] ? ns : least[way];
            }
        printf("%4d input%s                      %10.0f  %10.0f  %12.0f\n", inputs, inputs == 1 ? " " : "s",
               least[ALONE], least[BOUND], least[REBOUND]);
        weft_execution_destroy(execution);
    }
    weft_close(context);
    return 0;
}
