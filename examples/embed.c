/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c: weft inside another program, from nothing but weft.h. A small network is built node by node,
 *
 *     picture [1,3,16,16] ── conv 3x3 ── + bias ── relu ── reshape [1,2048] ── matmul ── classes [1,10]
 *
 * planned once, and run; then plain loops compute the same, and both are compared. A framework that hands graphs to
 * weft does just this: walk its own graph, one weft_append for each node, and keep the plan.
 *
 *     cc embed.c $(pkg-config --cflags --libs weft) -lm && ./a.out */
#include <weft/weft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANNELS = 3, SIZE = 16, FILTERS = 8, FEATURES = FILTERS * SIZE * SIZE, CLASSES = 10 };

static float picture[CHANNELS][SIZE][SIZE], filter[FILTERS][CHANNELS][3][3], bias[FILTERS], dense[FEATURES][CLASSES];

static void fill(float *x, size_t count, unsigned seed, float scale)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = scale * ((float)(seed >> 8) / 8388608.0f - 1.0f);
    }
}

/* Every call returns a status; what went wrong is kept by the context as text. */
static void must(const struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", weft_status_text(status), context ? weft_last_error(context) : "");
    exit(1);
}

/* A type given as plain numbers. Sizes that are known only later would be symbols: weft_symbol. */
struct shape {
    int rank;
    weft_dim extent[4];
};

static struct shape shape(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape){rank, {weft_extent(a), weft_extent(b), weft_extent(c), weft_extent(d)}};
}

/* One node with one result. The operand list ends with a value of id 0. `result` is needed by ops that do not infer
 * their type: reshape, bcast, cast. */
static weft_val node(struct weft_context *context, struct weft_graph *graph, const char *op, const weft_val operand[3],
                     const struct weft_attribute *attribute, size_t attributes, const struct shape *result)
{
    size_t operands = 0;
    while (operands < 2 && operand[operands].id)
        operands++;
    const struct weft_op what = {
        .size = sizeof what, .op = op, .operand = operand, .operands = operands, .attribute = attribute,
        .attributes = attributes, .dtype = result ? WEFT_F32 : 0, .rank = result ? result->rank : 0,
        .extent = result ? result->extent : NULL};
    weft_val value;
    must(context, weft_append(graph, &what, &value));
    return value;
}

static struct weft_graph *build(struct weft_context *context)
{
    struct weft_graph *graph;
    must(context, weft_graph_create(context, "classify", &graph));

    const struct shape picture_shape = shape(4, 1, CHANNELS, SIZE, SIZE), map_shape = shape(4, 1, FILTERS, SIZE, SIZE),
                       row_shape = shape(2, 1, FEATURES, 0, 0);
    weft_val x, w, b, d;
    must(context, weft_param(graph, "picture", WEFT_F32, 4, picture_shape.extent, &x));
    must(context, weft_constant(graph, WEFT_F32, 4, (int64_t[]){FILTERS, CHANNELS, 3, 3}, filter, &w));
    must(context, weft_constant(graph, WEFT_F32, 1, (int64_t[]){FILTERS}, bias, &b));
    must(context, weft_constant(graph, WEFT_F32, 2, (int64_t[]){FEATURES, CLASSES}, dense, &d));

    const weft_dim ones[4] = {weft_extent(1), weft_extent(1), weft_extent(1), weft_extent(1)};
    const struct weft_attribute pad = {.name = "pad", .integers = ones, .count = 4}; /* befores, then afters */
    weft_val y = node(context, graph, "conv", (weft_val[3]){x, w}, &pad, 1, NULL);

    /* A bias is an explicit bcast: axis 0 of the vector is axis 1 of the map. */
    const weft_dim axis = weft_extent(1);
    const struct weft_attribute dims = {.name = "dims", .integers = &axis, .count = 1};
    b = node(context, graph, "bcast", (weft_val[3]){b}, &dims, 1, &map_shape);
    y = node(context, graph, "add", (weft_val[3]){y, b}, NULL, 0, NULL);
    y = node(context, graph, "relu", (weft_val[3]){y}, NULL, 0, NULL);
    y = node(context, graph, "reshape", (weft_val[3]){y}, NULL, 0, &row_shape);
    y = node(context, graph, "matmul", (weft_val[3]){y, d}, NULL, 0, NULL);
    must(context, weft_return(graph, &y, 1));
    must(context, weft_validate(graph));
    return graph;
}

/* The same by plain loops, in double. */
static double expected(int class)
{
    double sum = 0;
    for (int f = 0; f < FILTERS; f++)
        for (int row = 0; row < SIZE; row++)
            for (int column = 0; column < SIZE; column++) {
                double y = bias[f];
                for (int c = 0; c < CHANNELS; c++)
                    for (int i = 0; i < 3; i++)
                        for (int j = 0; j < 3; j++) {
                            const int r = row + i - 1, q = column + j - 1;
                            if (r >= 0 && r < SIZE && q >= 0 && q < SIZE)
                                y += (double)picture[c][r][q] * (double)filter[f][c][i][j];
                        }
                sum += (y > 0 ? y : 0) * (double)dense[(f * SIZE + row) * SIZE + column][class];
            }
    return sum;
}

int main(void)
{
    fill(&picture[0][0][0], sizeof picture / sizeof(float), 1, 1.0f);
    fill(&filter[0][0][0][0], sizeof filter / sizeof(float), 2, 0.2f);
    fill(bias, FILTERS, 3, 0.1f);
    fill(&dense[0][0], sizeof dense / sizeof(float), 4, 0.05f);

    struct weft_context *context = NULL;
    must(NULL, weft_open(NULL, &context));
    struct weft_graph *graph = build(context);
    struct weft_plan *plan;
    must(context, weft_compile(graph, NULL, &plan));
    weft_graph_destroy(graph); /* the plan keeps what it needs */

    /* One execution per thread; here one. */
    struct weft_execution *execution;
    must(context, weft_execution_create(plan, &execution));
    const struct weft_tensor input = {.data = picture, .dtype = WEFT_F32, .rank = 4,
                                      .extent = {1, CHANNELS, SIZE, SIZE},
                                      .stride = {CHANNELS * SIZE * SIZE, SIZE * SIZE, SIZE, 1}};
    float classes[CLASSES] = {0};
    const struct weft_tensor output = {.data = classes, .dtype = WEFT_F32, .rank = 2, .extent = {1, CLASSES},
                                       .stride = {CLASSES, 1}};
    if (weft_bind_input(execution, 0, &input) < 0 || weft_bind_output(execution, 0, &output) < 0 ||
        weft_run(execution) < 0) {
        fprintf(stderr, "%s\n", weft_execution_error(execution));
        return 1;
    }

    /* Two sums, of 27 and of 2048 products: 1e-4 is a wide bound for results of this size. */
    int wrong = 0;
    for (int c = 0; c < CLASSES; c++) {
        const double want = expected(c);
        const int close = fabs((double)classes[c] - want) <= 1e-4 * (1 + fabs(want));
        printf("class %d: %9.6f, plain loops %9.6f%s\n", c, (double)classes[c], want, close ? "" : "   WRONG");
        wrong += !close;
    }
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_close(context);
    return wrong ? 1 : 0;
}
