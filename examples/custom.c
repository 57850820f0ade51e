/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: an op of your own, in C, called from a graph like any other. Soft thresholding, the step of many sparse
 * solvers: what is small becomes 0, all else moves towards 0 by as much,
 *
 *     %y: f32[N,4] = custom %x function=soft_threshold parameters=[0.5]
 *
 * A function says what type its result has, which layouts it takes (here any strides, so views need no copy), and what
 * a call costs. Then weft plans, runs and explains it like its own.
 *
 *     cc custom.c $(pkg-config --cflags --libs weft) -lm && ./a.out */
#include <weft/weft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "graph @shrink<N>(%x: f32[N,4]) {\n"
                           "  %t: f32[4,N] = transpose %x perm=[1 0]\n"
                           "  %y: f32[4,N] = custom %t function=soft_threshold parameters=[0.5]\n"
                           "  return %y\n"
                           "}\n";

static void must(const struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", weft_status_text(status), context ? weft_last_error(context) : "");
    exit(1);
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

static int type_rule(void *user, struct weft_custom_types *types)
{
    if (types->operand[0].dtype != WEFT_F32 || types->operand[0].rank != 2 || types->parameters != 1) {
        snprintf(types->message, types->message_bytes, "it takes an f32 matrix and one parameter");
        return 1;
    }
    types->result = types->operand[0];
    return 0;
}

static bool layout_rule(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

static void cost(void *user, const struct weft_custom_call *call, double *ret_operations, double *ret_bytes)
{
    const double elements = (double)call->result->extent[0] * (double)call->result->extent[1];
    *ret_operations = 3 * elements;
    *ret_bytes = 2 * elements * sizeof(float);
}

static int soft_threshold(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *x = &call->operand[0], *y = call->result;
    const float limit = (float)call->parameter[0];
    if (limit < 0) {
        snprintf(call->message, call->message_bytes, "a threshold of %g is negative", call->parameter[0]);
        return 1;
    }
    for (int64_t i = 0; i < y->extent[0]; i++)
        for (int64_t j = 0; j < y->extent[1]; j++) {
            const float in = ((const float *)x->data)[i * x->stride[0] + j * x->stride[1]];
            float *out = (float *)y->data + i * y->stride[0] + j * y->stride[1];
            *out = in > limit ? in - limit : in < -limit ? in + limit : 0;
        }
    return 0;
}

/* --- its use ------------------------------------------------------------------------------------------------------ */

int main(void)
{
    struct weft_context *context = NULL;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    const struct weft_custom op = {.size = sizeof op, .name = "soft_threshold", .least_operands = 1, .most_operands = 1,
                                   .run = soft_threshold, .type = type_rule, .layout = layout_rule, .cost = cost};
    float numbers[3][4] = {{1, -1, 0.25f, 0}, {2, -3, 0.5f, -0.5f}, {0.75f, -0.625f, 8, -8}};
    const struct weft_tensor x = {.data = numbers, .dtype = WEFT_F32, .rank = 2, .extent = {3, 4}, .stride = {4, 1}};
    struct weft_tensor y;
    must(NULL, weft_open(NULL, &context));
    must(context, weft_register(context, &op));
    must(context, weft_parse(context, text, strlen(text), "shrink", &graph));
    must(context, weft_compile(graph, NULL, &plan));
    must(context, weft_execution_create(plan, &execution));
    if (weft_bind_input(execution, 0, &x) != WEFT_OK || weft_run(execution) != WEFT_OK ||
        weft_output(execution, 0, &y) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_execution_error(execution));
        return 1;
    }
    int wrong = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) {
            const float in = numbers[i][j];
            const float right = copysignf(fmaxf(fabsf(in) - 0.5f, 0), in);
            wrong += ((const float *)y.data)[j * y.stride[0] + i * y.stride[1]] != right;
        }
    printf("%d of 12 numbers differ from the formula\n", wrong);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
    return wrong != 0;
}
