/* SPDX-License-Identifier: Apache-2.0 */
/* two_builds.c: two builds of the library beside each other in one process, on the same models in turns: so the noise
 * of a shared machine meets both alike.
 *
 *     build/tests/bench_two_builds [--threads N] [--seconds S] OLD.so NEW.so MODEL | MxKxN…
 *
 * A model is an .onnx file or weft text of known sizes; MxKxN is a product of an input by a constant. Inputs are small
 * numbers, the same for both. Each line: the median time of both, the median of new over old by pairs with the middle
 * nine tenths of the pairs, and for products the rate of the fastest tenth. Groups are compiled before timing. */
#include <weft/weft.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_PAIRS = 20000, MOST_INPUTS = 64, LEAST_PAIRS = 5 };

/* Member of a build, and the library's function of that name. */
#define FUNCTIONS(F)                                                                                                   \
    F(open, weft_open)                                                                                                 \
    F(parse, weft_parse)                                                                                               \
    F(load, weft_load)                                                                                                 \
    F(compile, weft_compile)                                                                                           \
    F(wait, weft_plan_wait)                                                                                            \
    F(inputs, weft_plan_inputs)                                                                                        \
    F(input, weft_plan_input)                                                                                          \
    F(create, weft_execution_create)                                                                                   \
    F(bind, weft_bind_input)                                                                                           \
    F(run, weft_run)                                                                                                   \
    F(error, weft_last_error)                                                                                          \
    F(run_error, weft_execution_error)                                                                                 \
    F(destroy, weft_execution_destroy)                                                                                 \
    F(drop_plan, weft_plan_destroy)                                                                                    \
    F(drop_graph, weft_graph_destroy)                                                                                  \
    F(close, weft_close)

/* One build, loaded at run time: both have the same symbols. */
struct build {
#define MEMBER(member, function) __typeof__(&function) member;
    FUNCTIONS(MEMBER)
#undef MEMBER
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    double us[MOST_PAIRS];
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_two_builds: %s: %s\n", what, why);
    exit(1);
}

/* A function by its name, to be stored through `to`, the address of a pointer to functions of its type. */
static void find(void *object, const char *name, void *to)
{
    void *const found = dlsym(object, name);
    if (!found)
        fail(name, dlerror());
    memcpy(to, &found, sizeof found);
}

static void load(struct build *b, const char *path)
{
    /* Each its own symbols first: the builds must not call into each other. */
    void *const object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!object)
        fail(path, dlerror());
#define FIND(member, function) find(object, #function, &b->member);
    FUNCTIONS(FIND)
#undef FIND
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Numbers from -0.5 to 0.5 as f32, 0 and 1 in turns as i64 (indices, masks), zeros of other types. */
static struct weft_tensor make_input(const struct weft_port *port, const char *model)
{
    struct weft_tensor t = {.dtype = port->dtype, .rank = port->rank};
    size_t elements = 1;
    for (int d = 0; d < port->rank; d++) {
        if (port->extent[d] < 1)
            fail(model, port->extent[d] < 0 ? "has an input of open size" : "has an empty input");
        t.extent[d] = port->extent[d], t.stride[d] = port->stride[d];
        elements += (size_t)((port->extent[d] - 1) * port->stride[d]);
    }
    t.data = calloc(elements, 8);
    if (!t.data)
        fail(model, "out of memory");
    for (size_t i = 0; port->dtype == WEFT_F32 && i < elements; i++)
        ((float *)t.data)[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
    for (size_t i = 0; port->dtype == WEFT_I64 && i < elements; i++)
        ((int64_t *)t.data)[i] = (int64_t)(i & 1);
    return t;
}

/* If the word is MxKxN: that product as text, and its operations. */
static bool product_text(const char *word, char *text, size_t size, double *flops)
{
    int m, k, n, end = 0;
    if (sscanf(word, "%dx%dx%d%n", &m, &k, &n, &end) != 3 || word[end])
        return false;
    snprintf(text, size, "graph @product(%%x: f32[%d,%d]) {\n  %%w: f32[%d,%d] = const random=1\n"
                         "  %%y: f32[%d,%d] = matmul %%x, %%w\n  return %%y\n}\n", m, k, k, n, m, n);
    *flops = 2.0 * m * k * n;
    return true;
}

static void begin(struct build *b, const char *model, int threads, double *flops)
{
    char text[512];
    if (b->open(&(struct weft_context_options){.size = sizeof(struct weft_context_options), .threads = threads},
                &b->context) != WEFT_OK)
        fail(model, "no context");
    const int status = product_text(model, text, sizeof text, flops)
                           ? b->parse(b->context, text, strlen(text), model, &b->graph)
                           : b->load(b->context, model, &b->graph);
    if (status != WEFT_OK || b->compile(b->graph, NULL, &b->plan) != WEFT_OK || b->wait(b->plan) != WEFT_OK ||
        b->create(b->plan, &b->execution) != WEFT_OK)
        fail(model, b->error(b->context));
}

static void end(struct build *b)
{
    b->destroy(b->execution);
    b->drop_plan(b->plan);
    b->drop_graph(b->graph);
    b->close(b->context);
}

static void time_run(struct build *b, int pair)
{
    const double start = now_us();
    if (b->run(b->execution) != WEFT_OK)
        fail("run", b->run_error(b->execution));
    b->us[pair] = now_us() - start;
}

static void compare(struct build *builds, const char *model, int threads, double seconds)
{
    static double ratio[MOST_PAIRS];
    struct weft_tensor input[MOST_INPUTS];
    double flops = 0;
    for (int i = 0; i < 2; i++)
        begin(&builds[i], model, threads, &flops);
    const size_t inputs = builds[0].inputs(builds[0].plan);
    if (inputs > MOST_INPUTS)
        fail(model, "has more than 64 inputs");
    if (builds[1].inputs(builds[1].plan) != inputs)
        fail(model, "has other inputs in the two builds");
    for (size_t i = 0; i < inputs; i++) {
        struct weft_port port = {.size = sizeof port};
        if (builds[0].input(builds[0].plan, i, &port) != WEFT_OK)
            fail(model, builds[0].error(builds[0].context));
        input[i] = make_input(&port, model);
        for (int k = 0; k < 2; k++)
            if (builds[k].bind(builds[k].execution, i, &input[i]) != WEFT_OK)
                fail(model, builds[k].run_error(builds[k].execution));
    }
    for (int k = 0; k < 4; k++) /* to touch all memory */
        time_run(&builds[k % 2], 0);
    int pairs = 0;
    const double stop = now_us() + seconds * 1e6;
    while ((now_us() < stop && pairs < MOST_PAIRS) || pairs < LEAST_PAIRS) {
        time_run(&builds[pairs % 2], pairs);
        time_run(&builds[1 - pairs % 2], pairs);
        ratio[pairs] = builds[1].us[pairs] / builds[0].us[pairs];
        pairs++;
    }
    qsort(ratio, (size_t)pairs, sizeof *ratio, by_number);
    for (int i = 0; i < 2; i++)
        qsort(builds[i].us, (size_t)pairs, sizeof *builds[i].us, by_number);
    printf("%-28s %10.1f %10.1f us, new / old %.3f (%.3f to %.3f, %d pairs)", model, builds[0].us[pairs / 2],
           builds[1].us[pairs / 2], ratio[pairs / 2], ratio[pairs / 20], ratio[pairs - 1 - pairs / 20], pairs);
    if (flops > 0)
        printf(", %.1f and %.1f GFLOP/s", flops * 1e-3 / builds[0].us[pairs / 10],
               flops * 1e-3 / builds[1].us[pairs / 10]);
    printf("\n");
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        end(&builds[i]);
    for (size_t i = 0; i < inputs; i++)
        free(input[i].data);
}

int main(int argc, char **argv)
{
    static struct build builds[2];
    int threads = 1, i = 1;
    double seconds = 2;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]);
        else
            break;
    }
    if (argc - i < 3 || argv[i][0] == '-' || threads < 1) {
        fprintf(stderr, "usage: bench_two_builds [--threads N] [--seconds S] OLD.so NEW.so MODEL | MxKxN...\n");
        return 2;
    }
    load(&builds[0], argv[i]);
    load(&builds[1], argv[i + 1]);
    for (i += 2; i < argc; i++)
        compare(builds, argv[i], threads, seconds);
    return 0;
}
