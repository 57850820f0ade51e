/* SPDX-License-Identifier: Apache-2.0 */
/* own_run.c: a framework whose convolutions are fast on channels in blocks of 16, nChw16c, and weft runs them. Weft
 * finds out where blocks pay, keeps values in them from one such kernel to the next, converts constant weights once,
 * and computes by itself what there is no kernel for, on the same memory where it can.
 *
 *     cc own_run.c $(pkg-config --cflags --libs weft) -lm && ./a.out model.onnx
 *
 * Two kernels: convolutions of groups of one whose channels fill their blocks, and relu between them. */
#include <weft/weft.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 };

static void must(const struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", weft_status_text(status), weft_last_error(context));
    exit(1);
}

/* --- what weft is told -------------------------------------------------------------------------------------------- */

static struct weft_value_facts facts_of(const struct weft_graph *graph, weft_val value)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    weft_value_read(graph, value, &facts);
    return facts;
}

static bool fills_blocks(const struct weft_value_facts *value)
{
    return value->dtype == WEFT_F32 && value->rank == 4 && value->hint[1] % BLOCK == 0;
}

static bool conv_fits(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts x = facts_of(graph, weft_node_operand(graph, node, 0));
    const struct weft_value_facts y = facts_of(graph, weft_node_result(graph, node, 0));
    struct weft_attribute groups = {0};
    weft_node_attribute(graph, node, "groups", &groups);
    return fills_blocks(&x) && fills_blocks(&y) && groups.integer == 1;
}

static bool relu_fits(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts y = facts_of(graph, weft_node_result(graph, node, 0));
    return fills_blocks(&y);
}

static const char *layout(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    struct weft_node_facts facts = {.size = sizeof facts};
    weft_node_read(graph, node, &facts);
    return i == 1 && facts.operands == 2 ? "{0/16 1/16 2 3 1%16 0%16}" /* weights */ : "{0 1/16 2 3 1%16}";
}

/* In microseconds: `user` points at what an element of the result takes. */
static double cost(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts y = facts_of(graph, weft_node_result(graph, node, 0));
    return *(const double *)user * (double)(y.hint[0] * y.hint[1] * y.hint[2] * y.hint[3]) * 1e-6;
}

static bool yes(void *user, const struct weft_graph *graph, weft_node node, size_t i) { return true; }

/* --- the kernels -------------------------------------------------------------------------------------------------- */

/* A part is a share of the blocks of the result, of all images: as many as there are workers, if there are so many. */
static int64_t blocks_of(const struct weft_kernel_array *y) { return y->extent[0] * (y->extent[1] / BLOCK); }

static int32_t parts(void *user, const struct weft_kernel_call *call)
{
    const int64_t blocks = blocks_of(call->result);
    return blocks < call->workers ? (int32_t)blocks : call->workers;
}

static int64_t number(const struct weft_kernel_call *call, const char *name, size_t i, int64_t otherwise)
{
    struct weft_attribute attribute = {0};
    int64_t value = otherwise;
    if (weft_node_attribute(call->graph, call->node, name, &attribute) == WEFT_OK && i < attribute.count)
        weft_call_extent(call, attribute.integers[i], &value);
    return value;
}

/* One row of 16 channels of the result: y[column][k] += x[column][c] * w[tap][c][k]. */
static void conv_row(const struct weft_kernel_call *call, const float *x, const float *w, int64_t i, float *y)
{
    const int64_t *in = call->operand[0].extent, *tap = call->operand[1].extent, *out = call->result->extent;
    const int64_t step = number(call, "stride", 1, 1), pad[] = {number(call, "pad", 0, 0), number(call, "pad", 1, 0)};
    const int64_t spread[] = {number(call, "dilation", 0, 1), number(call, "dilation", 1, 1)};
    for (int64_t block = 0; block < in[1] / BLOCK; block++)
        for (int64_t t = 0; t < tap[2] * tap[3]; t++) {
            const int64_t row = i * number(call, "stride", 0, 1) + t / tap[3] * spread[0] - pad[0];
            const float *weight = w + (block * tap[2] * tap[3] + t) * BLOCK * BLOCK;
            for (int64_t j = 0; j < out[3] && row >= 0 && row < in[2]; j++) {
                const int64_t column = j * step + t % tap[3] * spread[1] - pad[1];
                const float *from = x + ((block * in[2] + row) * in[3] + column) * BLOCK;
                for (int c = 0; c < BLOCK && column >= 0 && column < in[3]; c++)
                    for (int k = 0; k < BLOCK; k++)
                        y[j * BLOCK + k] += from[c] * weight[c * BLOCK + k];
            }
        }
}

static int conv(void *user, const struct weft_kernel_call *call)
{
    const struct weft_kernel_array *x = &call->operand[0], *w = &call->operand[1], *y = call->result;
    const int64_t channels = y->extent[1] / BLOCK, row = y->extent[3] * BLOCK;
    for (int64_t b = blocks_of(y) * call->part / call->parts; b < blocks_of(y) * (call->part + 1) / call->parts; b++) {
        const float *image = (const float *)x->data + b / channels * x->extent[1] * x->extent[2] * x->extent[3];
        const int64_t taps = w->extent[1] * w->extent[2] * w->extent[3]; /* of one channel of the result */
        const float *weight = (const float *)w->data + b % channels * BLOCK * taps;
        for (int64_t i = 0; i < y->extent[2]; i++) {
            float *const to = (float *)y->data + (b * y->extent[2] + i) * row;
            memset(to, 0, (size_t)row * sizeof(float));
            conv_row(call, image, weight, i, to);
        }
    }
    return 0;
}

static int relu(void *user, const struct weft_kernel_call *call)
{
    const int64_t n = call->result->bytes / (int64_t)sizeof(float);
    const float *x = call->operand[0].data;
    float *y = call->result->data;
    for (int64_t i = n * call->part / call->parts; i < n * (call->part + 1) / call->parts; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
    return 0;
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static void count(const struct weft_plan *plan)
{
    int own = 0, converted = 0, others = 0;
    struct weft_plan_step step = {.size = sizeof step};
    for (size_t i = 0; weft_plan_step(plan, i, &step) == WEFT_OK; i++) {
        own += step.own;
        others += !step.own;
        if (step.op && !strcmp(step.op, "relayout")) {
            struct weft_plan_operand from = {.size = sizeof from}, to = {.size = sizeof to};
            weft_plan_step_operand(plan, i, 0, &from);
            weft_plan_step_result(plan, i, 0, &to);
            printf("converted %s: from %s to %s\n", from.value, from.layout, to.layout);
            converted++;
        }
    }
    printf("steps of own kernels: %d; of weft's: %d, of which conversions: %d\n", own, others, converted);
}

static struct weft_execution *run(const struct weft_context *context, const struct weft_plan *plan, float *input)
{
    struct weft_execution *execution;
    struct weft_port port = {.size = sizeof port};
    weft_plan_input(plan, 0, &port);
    struct weft_tensor tensor = {.data = input, .dtype = port.dtype, .rank = port.rank};
    memcpy(tensor.extent, port.extent, sizeof tensor.extent);
    memcpy(tensor.stride, port.stride, sizeof tensor.stride);
    must(context, weft_execution_create(plan, &execution));
    must(context, weft_bind_input(execution, 0, &tensor));
    if (weft_run(execution) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_execution_error(execution));
        exit(1);
    }
    return execution;
}

static int64_t elements(const int64_t *extent, int rank)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= extent[i];
    return n;
}

static double compare(const struct weft_plan *plan, const struct weft_execution *mine,
                      const struct weft_execution *weft)
{
    double most = 0;
    for (size_t i = 0; i < weft_plan_outputs(plan); i++) {
        struct weft_tensor got, expected;
        weft_output(mine, i, &got);
        weft_output(weft, i, &expected);
        for (int64_t k = 0; k < elements(got.extent, got.rank); k++) {
            const double a = ((const float *)got.data)[k], b = ((const float *)expected.data)[k];
            most = fmax(most, fabs(a - b) / fmax(1, fabs(b)));
        }
    }
    return most;
}

int main(int argc, char **argv)
{
    double conv_time = 0.5, relu_time = 0.01;
    const struct weft_kernel kernels[] = {
        {.size = sizeof kernels[0], .name = "blocks.conv", .op = "conv", .user = &conv_time, .fits = conv_fits,
         .layout = layout, .cost = cost, .run = conv, .parts = parts},
        {.size = sizeof kernels[0], .name = "blocks.relu", .op = "relu", .user = &relu_time, .fits = relu_fits,
         .layout = layout, .cost = cost, .run = relu, .parts = parts, .in_place = yes}};
    struct weft_context *context = NULL;
    struct weft_graph *graph;
    struct weft_target *target;
    struct weft_plan *mine, *weft;
    if (argc != 2 || weft_open(NULL, &context) != WEFT_OK) {
        fprintf(stderr, "usage: own_run MODEL\n");
        return 2;
    }
    must(context, weft_load(context, argv[1], &graph));
    must(context, weft_target_create(context, &target));
    for (int k = 0; k < 2; k++)
        must(context, weft_target_add(target, &kernels[k]));
    const struct weft_compile_options options = {.size = sizeof options, .target = target};
    must(context, weft_compile(graph, &options, &mine));
    must(context, weft_compile(graph, NULL, &weft));
    weft_target_destroy(target);
    count(mine);
    struct weft_port port = {.size = sizeof port};
    weft_plan_input(mine, 0, &port);
    const int64_t n = elements(port.extent, port.rank);
    float *const input = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++)
        input[i] = (float)(i * 37 % 256) / 256;
    struct weft_execution *const first = run(context, mine, input), *const second = run(context, weft, input);
    const double difference = compare(mine, first, second);
    printf("largest relative difference from weft's kernels: %.2g\n", difference);
    weft_execution_destroy(first);
    weft_execution_destroy(second);
    weft_plan_destroy(mine);
    weft_plan_destroy(weft);
    free(input);
    weft_graph_destroy(graph);
    weft_close(context);
    return difference < 1e-3 ? 0 : 1;
}
