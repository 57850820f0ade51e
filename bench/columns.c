/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c: what pad_strides is worth: a custom function sums the columns of an intermediate, element by element, with
 * rows as they are and with rows a cache line longer, in turns; the time is the function's own.
 *
 *     build/tests/bench_columns [ROWS COLUMNS] */
#include <weft/weft.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15 };

static double spent; /* microseconds of the last call */
static int64_t found; /* the stride of rows that it saw */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static bool any_strides(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

static void columns(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret)
{
    if (i == 0)
        ret->along = 0;
}

static int sum_columns(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *x = &call->operand[0];
    const int64_t rows = x->extent[0], stride = x->stride[0];
    const double start = now();
    for (int64_t j = 0; j < x->extent[1]; j++) {
        const float *at = (const float *)x->data + j;
        float sum[4] = {0};
        int64_t i = 0;
        for (; i + 4 <= rows; i += 4)
            for (int k = 0; k < 4; k++)
                sum[k] += at[(i + k) * stride];
        for (; i < rows; i++)
            sum[0] += at[i * stride];
        ((float *)call->result->data)[j] = sum[0] + sum[1] + sum[2] + sum[3];
    }
    spent = now() - start;
    found = stride;
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void must(const struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", weft_status_text(status), context ? weft_last_error(context) : "");
    exit(1);
}

int main(int argc, char **argv)
{
    const int64_t rows = argc > 2 ? atoll(argv[1]) : 2048, width = argc > 2 ? atoll(argv[2]) : 2048;
    const struct weft_custom op = {.size = sizeof op, .name = "sum_columns", .least_operands = 1, .most_operands = 1,
                                   .run = sum_columns, .layout = any_strides, .demand = columns};
    struct weft_context *context = NULL;
    struct weft_execution *execution[2];
    struct weft_plan *plan[2];
    struct weft_graph *graph;
    double time[2][ROUNDS], ratio[ROUNDS];
    int64_t stride[2];
    char text[512];
    snprintf(text, sizeof text, "graph @g(%%x: f32[%" PRId64 ",%" PRId64 "]) {\n  %%y: f32[%" PRId64 ",%" PRId64
             "] = relu %%x\n  %%z: f32[%" PRId64 "] = custom %%y function=sum_columns\n  return %%z\n}\n",
             rows, width, rows, width, width);
    must(NULL, weft_open(NULL, &context));
    must(context, weft_register(context, &op));
    must(context, weft_parse(context, text, strlen(text), "columns", &graph));
    struct weft_tensor x = {.data = calloc((size_t)(rows * width), sizeof(float)), .dtype = WEFT_F32, .rank = 2,
                            .extent = {rows, width}, .stride = {width, 1}};
    for (int k = 0; k < 2; k++) {
        const struct weft_compile_options options = {.size = sizeof options, .flags = k ? 0 : WEFT_COMPILE_NO_PASSES};
        must(context, weft_compile(graph, &options, &plan[k]));
        must(context, weft_execution_create(plan[k], &execution[k]));
        must(context, weft_bind_input(execution[k], 0, &x));
        must(context, weft_run(execution[k]));
    }
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 2; k++) {
            must(context, weft_run(execution[k]));
            time[k][i] = spent;
            stride[k] = found;
        }
        ratio[i] = time[0][i] / time[1][i];
    }
    for (int k = 0; k < 2; k++)
        qsort(time[k], ROUNDS, sizeof **time, by_size);
    qsort(ratio, ROUNDS, sizeof *ratio, by_size);
    printf("%" PRId64 " x %" PRId64 ": stride %" PRId64 " %.0f us, stride %" PRId64 " %.0f us; median ratio %.2f, of "
           "minima %.2f\n", rows, width, stride[0], time[0][0], stride[1], time[1][0], ratio[ROUNDS / 2],
           time[0][0] / time[1][0]);
    for (int k = 0; k < 2; k++) {
        weft_execution_destroy(execution[k]);
        weft_plan_destroy(plan[k]);
    }
    free(x.data);
    weft_graph_destroy(graph);
    weft_close(context);
    return 0;
}
