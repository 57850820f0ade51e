/* SPDX-License-Identifier: Apache-2.0 */
/* side_by_side.c: requests that are served side by side, with the machine's threads split among those who serve them.
 *
 * One run with all threads answers soonest; several runs with a part each answer more in all, since small steps do not
 * fill many threads. A context has one gang of threads: while a run has it, other runs of that context have one thread
 * each. So whoever serves has a context of its own, with its share of the threads. A model's file is mapped, and its
 * pages are in memory once for all of them; packed weights are each context's own.
 *
 *     cc side_by_side.c $(pkg-config --cflags --libs weft) -pthread -lm && ./a.out 4 2       four threads for two */
#include <weft/weft.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 256, COLUMNS = 128, REQUESTS = 50, MOST = 16 };

static const char text[] = "graph @serve(%x: f32[256,128]) {\n"
                           "  %w: f32[128,128] = const random=1 scale=0.1\n"
                           "  %h: f32[256,128] = matmul %x, %w\n"
                           "  %y: f32[256,128] = tanh %h\n"
                           "  return %y\n"
                           "}\n";

struct server {
    pthread_t thread;
    int threads;            /* its share */
    int workers;            /* what its runs had */
    const float *request;   /* the same of all, so that all answers are */
    float answer[ROWS * COLUMNS];
    char problem[256];
};

static void serve(struct server *s, struct weft_execution *execution)
{
    const struct weft_tensor x = {.data = (void *)s->request, .dtype = WEFT_F32, .rank = 2, .extent = {ROWS, COLUMNS},
                                  .stride = {COLUMNS, 1}};
    struct weft_tensor y = x;
    struct weft_statistics statistics = {.size = sizeof statistics};
    y.data = s->answer;
    int status = weft_bind_input_named(execution, "x", &x);
    if (status == WEFT_OK)
        status = weft_bind_output_named(execution, "y", &y);
    for (int i = 0; i < REQUESTS && status == WEFT_OK; i++)
        status = weft_run(execution);
    if (status == WEFT_OK)
        status = weft_execution_statistics(execution, &statistics);
    s->workers = statistics.workers;
    if (status != WEFT_OK)
        snprintf(s->problem, sizeof s->problem, "%s", weft_execution_error(execution));
}

static void *start(void *arg)
{
    struct server *s = arg;
    struct weft_context *context = NULL;
    struct weft_graph *graph = NULL;
    struct weft_plan *plan = NULL;
    struct weft_execution *execution = NULL;
    const struct weft_context_options options = {.size = sizeof options, .threads = s->threads, .prices = ""};
    int status = weft_open(&options, &context);
    if (status == WEFT_OK)
        status = weft_parse(context, text, strlen(text), "serve", &graph);
    if (status == WEFT_OK)
        status = weft_compile(graph, NULL, &plan);
    if (status == WEFT_OK)
        status = weft_execution_create(plan, &execution);
    if (status == WEFT_OK)
        serve(s, execution);
    else
        snprintf(s->problem, sizeof s->problem, "%s", context ? weft_last_error(context) : weft_status_text(status));
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
    return NULL;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 2, servers = argc > 2 ? atoi(argv[2]) : 2;
    static float request[ROWS * COLUMNS];
    static struct server server[MOST];
    int wrong = 0;
    if (servers < 1 || servers > MOST || threads < servers) {
        fprintf(stderr, "usage: %s THREADS SERVERS, at most %d, with a thread each\n", argv[0], MOST);
        return 2;
    }
    for (int i = 0; i < ROWS * COLUMNS; i++)
        request[i] = (float)((i * 37 + 11) % 41 - 20) / 20;
    for (int i = 0; i < servers; i++) {
        server[i].threads = threads / servers + (i < threads % servers);
        server[i].request = request;
        if (pthread_create(&server[i].thread, NULL, start, &server[i]) != 0)
            return 1;
    }
    for (int i = 0; i < servers; i++)
        pthread_join(server[i].thread, NULL);
    for (int i = 0; i < servers; i++) {
        const int same = memcmp(server[i].answer, server[0].answer, sizeof server[i].answer) == 0;
        printf("server %d: %d of %d threads, %d requests, %s\n", i, server[i].workers, threads, REQUESTS,
               server[i].problem[0] ? server[i].problem : same ? "the same bits as the first" : "OTHER BITS");
        wrong += server[i].problem[0] || !same || server[i].workers > server[i].threads ||
                 !isfinite(server[i].answer[0]);
    }
    return wrong > 0;
}
