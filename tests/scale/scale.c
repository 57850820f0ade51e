/* SPDX-License-Identifier: Apache-2.0 */
/* scale.c: does the work on a graph grow with its size, and no faster?
 *
 *   weft-scale [--shape NAME] [--nodes N]… [--front]   a table: milliseconds of processor time by phase, microseconds
 *                                                      and kilobytes a node; --front: without planning and running
 *   weft-scale --check                                 a small and a large graph of each shape; fails where a node of
 *                                                      the large one costs far more
 *
 * Two things are held flat. Bytes taken from the allocator, a node: the same in every run, so the bound is tighter;
 * both sizes stand at the same place between two powers of two, where arrays double. And time of this process on the
 * processor, a node, the best of a few attempts: not wall-clock time, so other work on the machine hardly counts. Its
 * bound is generous, since caches and clocks differ, and still far below what anything quadratic adds when the graph
 * grows by a factor of 32. */
#include "ir/ir.h"
#include "scale/shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum phase { PARSE, VALIDATE, PASSES, PRINT, PLAN, BIND, RUN, PHASES };
static const char *const phase_name[PHASES] = {"parse", "validate", "passes", "print", "plan", "bind", "run"};

struct cost {
    double ms[PHASES];     /* user time */
    int64_t bytes[PHASES]; /* taken from the allocator */
    uint32_t nodes;        /* of the graph as it was read */
};

/* --- counted memory ----------------------------------------------------------------------------------------------- */

static void *allocate_counted(void *user, size_t bytes, size_t align)
{
    *(_Atomic int64_t *)user += (int64_t)bytes;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void release_counted(void *user, void *memory, size_t bytes) { free(memory); }

/* --- one graph ---------------------------------------------------------------------------------------------------- */

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

struct meter {
    struct cost *cost;
    _Atomic int64_t bytes;
    double ms;
    int64_t before;
};

static void start(struct meter *meter)
{
    meter->before = meter->bytes;
    meter->ms = processor_ms();
}

static void stop(struct meter *meter, enum phase phase)
{
    meter->cost->ms[phase] = processor_ms() - meter->ms;
    meter->cost->bytes[phase] = meter->bytes - meter->before;
}

static uint32_t count_nodes(const struct weft_graph *graph)
{
    uint32_t nodes = graph->live_nodes;
    for (uint32_t i = 0; i < graph->bodies; i++) /* bodies of bodies do not occur here */
        nodes += graph->body[i]->live_nodes;
    return nodes;
}

static void drop_names(struct weft_graph *graph)
{
    for (uint32_t i = 1; i < graph->values; i++)
        graph->value[i].name = NULL;
}

/* Plans the graph, binds zeros to its inputs, with each symbol at 2, and runs it. */
static int plan_and_run(const struct weft_graph *graph, struct meter *meter)
{
    static int64_t zeros[1024];
    struct weft_plan *plan = NULL;
    struct weft_execution *execution = NULL;
    start(meter);
    int status = weft_compile(graph, NULL, &plan);
    stop(meter, PLAN);
    start(meter);
    if (status == WEFT_OK)
        status = weft_execution_create(plan, &execution);
    for (size_t i = 0; status == WEFT_OK && i < weft_plan_inputs(plan); i++) {
        const struct weft_type *type = weft_type_of(graph, graph->param[i]);
        struct weft_tensor input = {.data = zeros, .dtype = type->dtype, .rank = type->rank};
        for (int axis = 0; axis < type->rank; axis++)
            input.extent[axis] = weft_dim_is_constant(type->extent[axis]) ? weft_dim_value(type->extent[axis]) : 2;
        weft_tensor_dense(&input);
        status = weft_bind_input(execution, i, &input);
    }
    if (status == WEFT_OK)
        status = weft_run(execution); /* the first run prepares: kernels, offsets, memory */
    stop(meter, BIND);
    start(meter);
    if (status == WEFT_OK)
        status = weft_run(execution);
    stop(meter, RUN);
    if (status != WEFT_OK && execution)
        fprintf(stderr, "%s\n", weft_execution_error(execution));
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    return status;
}

static bool measure(const struct shape *shape, uint32_t nodes, bool run, struct cost *cost)
{
    struct meter meter = {.cost = cost};
    const struct weft_allocator allocator = {sizeof allocator, &meter.bytes, allocate_counted, release_counted};
    struct weft_context *context;
    struct text text = {0};
    struct weft_graph *graph = NULL;
    char *printed = NULL;
    *cost = (struct cost){0};
    shape->write(&text, nodes);
    int status = weft_open(&(struct weft_context_options){.size = sizeof(struct weft_context_options),
                                                          .allocator = &allocator, .threads = 1}, &context);
    if (status != WEFT_OK)
        return false;
    start(&meter);
    status = weft_parse(context, text.data, text.length, shape->name, &graph);
    stop(&meter, PARSE);
    text_free(&text);
    if (status == WEFT_OK && shape->unnamed)
        drop_names(graph);
    cost->nodes = graph ? count_nodes(graph) : 0;
    start(&meter);
    if (status == WEFT_OK)
        status = weft_validate(graph);
    stop(&meter, VALIDATE);
    if (status == WEFT_OK && run)
        status = plan_and_run(graph, &meter);
    start(&meter);
    if (status == WEFT_OK)
        status = weft_run_pipeline(graph, NULL);
    stop(&meter, PASSES);
    start(&meter);
    if (status >= 0)
        status = weft_print(graph, &printed);
    stop(&meter, PRINT);
    if (status < 0)
        fprintf(stderr, "%s of %u nodes: %s\n%s\n", shape->name, nodes, weft_status_text(status),
                weft_last_error(context));
    weft_free_text(context, printed);
    weft_graph_destroy(graph);
    weft_close(context);
    return status >= 0;
}

/* --- printing ----------------------------------------------------------------------------------------------------- */

/* What the front end does, and all of it. */
static double front_ms(const struct cost *cost)
{
    return cost->ms[PARSE] + cost->ms[VALIDATE] + cost->ms[PASSES] + cost->ms[PRINT];
}

static void print_head(void)
{
    printf("%-11s %8s |", "shape", "nodes");
    for (int i = 0; i <= PRINT; i++)
        printf(" %8s", phase_name[i]);
    printf(" | %8s %8s |", "sum ms", "us/node");
    for (int i = PLAN; i < PHASES; i++)
        printf(" %8s", phase_name[i]);
    printf(" | %8s %8s\n", "us/node", "kB/node");
}

static void print_cost(const struct shape *shape, const struct cost *cost)
{
    double rest = 0, bytes = 0;
    printf("%-11s %8u |", shape->name, cost->nodes);
    for (int i = 0; i <= PRINT; i++)
        printf(" %8.1f", cost->ms[i]);
    printf(" | %8.1f %8.2f |", front_ms(cost), 1e3 * front_ms(cost) / cost->nodes);
    for (int i = PLAN; i < PHASES; i++) {
        printf(" %8.1f", cost->ms[i]);
        rest += cost->ms[i];
    }
    for (int i = 0; i < PHASES; i++)
        bytes += (double)cost->bytes[i];
    printf(" | %8.2f %8.2f\n", 1e3 * rest / cost->nodes, 1e-3 * bytes / cost->nodes);
    fflush(stdout);
}

/* --- the check ---------------------------------------------------------------------------------------------------- */

#define SMALL 1000
#define LARGE 32000
#define MOST_TIME 8.0    /* microseconds a node in the large graph, over those in the small one, which caches hold */
#define MOST_BYTES 2.2     /* the same for bytes: names have more digits, arrays double */
#define MOST_TOTAL 1.5     /* the same for the bytes of all phases together, whose pieces even out */
#define CHUNK_BYTES 0x1p24 /* arenas grow by so much at most: the phase that needs the next piece pays for all of it */
#define LEAST_MS 4.0     /* a phase that takes no longer for the large graph is not judged by its time */

static void keep_best(struct cost *best, const struct cost *cost)
{
    const bool first = best->nodes == 0;
    for (int i = 0; i < PHASES; i++)
        if (first || cost->ms[i] < best->ms[i])
            best->ms[i] = cost->ms[i];
    memcpy(best->bytes, cost->bytes, sizeof best->bytes);
    best->nodes = cost->nodes;
}

/* Is each phase of `large` flat beside `small`? Says which is not. */
static bool is_flat(const char *name, const struct cost *small, const struct cost *large, bool speak)
{
    bool flat = true;
    const double growth = (double)large->nodes / small->nodes;
    double small_bytes = 0, large_bytes = 0;
    for (int i = 0; i < PHASES; i++) {
        small_bytes += (double)small->bytes[i];
        large_bytes += (double)large->bytes[i];
    }
    if (large_bytes / growth > MOST_TOTAL * small_bytes) {
        flat = false;
        if (speak)
            printf("%s: %.0f bytes a node of %u nodes, but %.0f of %u\n", name, large_bytes / large->nodes,
                   large->nodes, small_bytes / small->nodes, small->nodes);
    }
    for (int i = 0; i < PHASES; i++) {
        const double ms = large->ms[i] / growth, bytes = (double)large->bytes[i] / growth;
        if (large->ms[i] > LEAST_MS && ms > MOST_TIME * small->ms[i]) {
            flat = false;
            if (speak)
                printf("%s: %s takes %.2f us a node of %u nodes, but %.2f us of %u\n", name, phase_name[i],
                       1e3 * large->ms[i] / large->nodes, large->nodes, 1e3 * small->ms[i] / small->nodes,
                       small->nodes);
        }
        if (bytes > MOST_BYTES * (double)small->bytes[i] + CHUNK_BYTES / growth) {
            flat = false;
            if (speak)
                printf("%s: %s takes %.0f bytes a node of %u nodes, but %.0f of %u\n", name, phase_name[i],
                       (double)large->bytes[i] / large->nodes, large->nodes,
                       (double)small->bytes[i] / small->nodes, small->nodes);
        }
    }
    return flat;
}

/* The check itself: linear costs with a factor of 2 of noise pass; a fifth of the work that is quadratic does not. */
static bool check_the_check(void)
{
    struct cost small = {.nodes = SMALL}, linear = {.nodes = LARGE}, slow = {.nodes = LARGE}, fat = {.nodes = LARGE};
    const double growth = (double)LARGE / SMALL;
    for (int i = 0; i < PHASES; i++) {
        small.ms[i] = 1;
        small.bytes[i] = 1000000;
        linear.ms[i] = slow.ms[i] = fat.ms[i] = 2 * growth;
        linear.bytes[i] = slow.bytes[i] = fat.bytes[i] = (int64_t)(1e6 * growth);
    }
    slow.ms[PLAN] = growth * (2 + 0.2 * growth);
    fat.bytes[PASSES] = (int64_t)(1e6 * growth * (0.9 + 0.1 * growth));
    return is_flat("", &small, &linear, false) && !is_flat("", &small, &slow, false) &&
           !is_flat("", &small, &fat, false);
}

/* Noise only ever adds: a shape that is not flat at once gets a few more attempts. */
static bool check_shape(const struct shape *shape)
{
    struct cost small = {0}, large = {0}, cost;
    enum { ATTEMPTS = 5 };
    for (int attempt = 1;; attempt++) {
        for (int i = 0; i < 3; i++) {
            if (!measure(shape, SMALL, true, &cost))
                return false;
            keep_best(&small, &cost);
        }
        if (!measure(shape, LARGE, true, &cost))
            return false;
        keep_best(&large, &cost);
        if (is_flat(shape->name, &small, &large, attempt == ATTEMPTS))
            return true;
        if (attempt == ATTEMPTS)
            return false;
    }
}

static int check(void)
{
    int passed = 0, failed = 0;
    if (check_the_check())
        passed++;
    else
        failed++, printf("the check does not tell linear from quadratic\n");
    for (unsigned s = 0; s < shape_count; s++)
        if (check_shape(&shapes[s]))
            passed++;
        else
            failed++, printf("FAILED: %s\n", shapes[s].name);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed > 0;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static int usage(void)
{
    printf("usage: weft-scale [--shape NAME] [--nodes N]... [--front]\n       weft-scale --check\nshapes:\n");
    for (unsigned s = 0; s < shape_count; s++)
        printf("  %-11s %s\n", shapes[s].name, shapes[s].help);
    return 2;
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    enum { SIZES = 8 };
    uint32_t sizes[SIZES] = {1000, 10000, 100000}, count = 0;
    bool run = true, ok = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0 && argc == 2)
            return check();
        else if (strcmp(argv[i], "--shape") == 0 && i + 1 < argc && shape_find(argv[i + 1]))
            only = argv[++i];
        else if (strcmp(argv[i], "--nodes") == 0 && i + 1 < argc && count < SIZES && atoi(argv[i + 1]) >= 100)
            sizes[count++] = (uint32_t)atoi(argv[++i]);
        else if (strcmp(argv[i], "--front") == 0)
            run = false;
        else
            return usage();
    }
    count = count ? count : 3;
    print_head();
    for (unsigned s = 0; s < shape_count; s++)
        for (uint32_t i = 0; (!only || strcmp(only, shapes[s].name) == 0) && i < count; i++) {
            struct cost cost;
            if (measure(&shapes[s], sizes[i], run, &cost))
                print_cost(&shapes[s], &cost);
            else
                ok = false;
        }
    return ok ? 0 : 1;
}
