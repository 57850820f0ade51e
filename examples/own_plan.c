/* SPDX-License-Identifier: Apache-2.0 */
/* own_plan.c: a framework that computes everything by itself, row-major, and lets weft optimise a model and plan it:
 * the order of steps, the places in one arena, what is a view of what. It walks through the plan with its own loops,
 * and compares its answers with those of weft's kernels.
 *
 *     cc own_plan.c $(pkg-config --cflags --libs weft) -lm && ./a.out model.onnx
 *
 * Its kernels take what they are used to: dense row-major arrays. Where the model has a view that is none of these (a
 * broadcast, a transpose), the plan has a relayout, which is a loop like any other. */
#include <weft/weft.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(const struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", weft_status_text(status), weft_last_error(context));
    exit(1);
}

/* --- the kernels: loops over arrays in row-major order ------------------------------------------------------------ */

struct call {
    const struct weft_graph *graph;
    weft_node node;
    struct weft_kernel_array in[3], out;
};

static int64_t elements(const struct weft_kernel_array *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n *= a->extent[i];
    return n;
}

/* Number i of a list attribute, or `otherwise`. An extent that is a constant is its own value at any sizes. */
static int64_t number(const struct call *call, const char *name, size_t i, int64_t otherwise)
{
    struct weft_attribute attribute = {0};
    int64_t value = otherwise;
    if (weft_node_attribute(call->graph, call->node, name, &attribute) == WEFT_OK && i < attribute.count)
        weft_extent_at(call->graph, attribute.integers[i], NULL, 0, &value);
    return value;
}

static int64_t integer(const struct call *call, const char *name)
{
    struct weft_attribute attribute = {0};
    weft_node_attribute(call->graph, call->node, name, &attribute);
    return attribute.integer;
}

static void add(const struct call *c)
{
    const float *a = c->in[0].data, *b = c->in[1].data;
    for (int64_t i = 0; i < elements(&c->out); i++)
        ((float *)c->out.data)[i] = a[i] + b[i];
}

static void relu(const struct call *c)
{
    const float *x = c->in[0].data;
    for (int64_t i = 0; i < elements(&c->out); i++)
        ((float *)c->out.data)[i] = x[i] > 0 ? x[i] : 0;
}

static void matmul(const struct call *c)
{
    const int64_t rows = c->out.extent[0], columns = c->out.extent[1], depth = c->in[0].extent[1];
    const float *a = c->in[0].data, *b = c->in[1].data;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = 0;
            for (int64_t k = 0; k < depth; k++)
                sum += a[i * depth + k] * b[k * columns + j];
            ((float *)c->out.data)[i * columns + j] = sum;
        }
}

/* Windows of a convolution or a pool: both go over the images, and do something at each tap that is inside. */
static void convolve(const struct call *c)
{
    const int64_t *x = c->in[0].extent, *w = c->in[1].extent, *y = c->out.extent;
    const float *image = c->in[0].data, *weight = c->in[1].data;
    float *out = c->out.data;
    for (int64_t n = 0; n < y[0]; n++)
        for (int64_t k = 0; k < y[1]; k++)
            for (int64_t i = 0; i < y[2]; i++)
                for (int64_t j = 0; j < y[3]; j++) {
                    float sum = 0;
                    for (int64_t t = 0; t < w[1] * w[2] * w[3]; t++) {
                        const int64_t channel = t / (w[2] * w[3]), r = t / w[3] % w[2], s = t % w[3];
                        const int64_t row = i * number(c, "stride", 0, 1) + r - number(c, "pad", 0, 0);
                        const int64_t column = j * number(c, "stride", 1, 1) + s - number(c, "pad", 1, 0);
                        if (row >= 0 && row < x[2] && column >= 0 && column < x[3])
                            sum += image[((n * x[1] + channel) * x[2] + row) * x[3] + column] *
                                   weight[k * w[1] * w[2] * w[3] + t];
                    }
                    *out++ = sum;
                }
}

static void max_pool(const struct call *c)
{
    const int64_t *x = c->in[0].extent, *y = c->out.extent;
    float *out = c->out.data;
    for (int64_t n = 0; n < y[0] * y[1]; n++)
        for (int64_t i = 0; i < y[2]; i++)
            for (int64_t j = 0; j < y[3]; j++) {
                float most = -INFINITY;
                for (int64_t r = 0; r < number(c, "kernel", 0, 1); r++)
                    for (int64_t s = 0; s < number(c, "kernel", 1, 1); s++) {
                        const int64_t row = i * number(c, "stride", 0, 1) + r - number(c, "pad", 0, 0);
                        const int64_t column = j * number(c, "stride", 1, 1) + s - number(c, "pad", 1, 0);
                        if (row >= 0 && row < x[2] && column >= 0 && column < x[3])
                            most = fmaxf(most, ((const float *)c->in[0].data)[(n * x[2] + row) * x[3] + column]);
                    }
                *out++ = most;
            }
}

static float *at(const struct weft_kernel_array *a, const int64_t *index)
{
    int64_t place = 0;
    for (int k = 0; k < a->storage_axes; k++) {
        const int64_t digit = index[a->storage[k].axis] / a->storage[k].div;
        place += (a->storage[k].mod ? digit % a->storage[k].mod : digit) * a->storage[k].stride;
    }
    return (float *)a->data + place;
}

/* From any layout to any other. */
static void relayout(const struct call *c)
{
    int64_t index[WEFT_MAX_RANK] = {0};
    for (int64_t i = 0; i < elements(&c->out); i++) {
        *at(&c->out, index) = *at(&c->in[0], index);
        for (int axis = c->out.rank - 1; axis >= 0 && ++index[axis] == c->out.extent[axis]; axis--)
            index[axis] = 0;
    }
}

/* --- what weft is told of them ------------------------------------------------------------------------------------ */

static bool is_plain(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct call call = {.graph = graph, .node = node};
    struct weft_value_facts y = {.size = sizeof y};
    struct weft_node_facts facts = {.size = sizeof facts};
    weft_value_read(graph, weft_node_result(graph, node, 0), &y);
    weft_node_read(graph, node, &facts);
    if (y.dtype != WEFT_F32)
        return false;
    if (!strcmp(facts.op, "matmul"))
        return y.rank == 2 && !integer(&call, "trans_a") && !integer(&call, "trans_b");
    if (!strcmp(facts.op, "conv"))
        return y.rank == 4 && integer(&call, "groups") == 1 && number(&call, "dilation", 0, 1) == 1;
    return strcmp(facts.op, "max_pool") || y.rank == 4;
}

static double cost(void *user, const struct weft_graph *graph, weft_node node) { return 10; }

static const struct kernel {
    const char *op, *name;
    void (*run)(const struct call *);
} kernels[] = {
    {"add", "plain.add", add},          {"relu", "plain.relu", relu},         {"matmul", "plain.matmul", matmul},
    {"conv", "plain.conv", convolve},   {"max_pool", "plain.pool", max_pool}, {"relayout", NULL, relayout},
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

/* --- walking through a plan --------------------------------------------------------------------------------------- */

struct memory {
    char *arena, **input, **output;
};

static struct weft_kernel_array place(const struct memory *m, const struct weft_plan_operand *operand)
{
    struct weft_kernel_array array = operand->array; /* of a constant, with its data */
    if (operand->memory == WEFT_MEMORY_INPUT)
        array.data = m->input[operand->port] + operand->offset;
    else if (operand->memory == WEFT_MEMORY_OUTPUT)
        array.data = m->output[operand->port] + operand->offset;
    else if (operand->memory == WEFT_MEMORY_ARENA)
        array.data = m->arena + operand->offset;
    return array;
}

static void walk(const struct weft_plan *plan, const struct memory *m)
{
    for (size_t i = 0; i < weft_plan_steps(plan); i++) {
        struct weft_plan_step step = {.size = sizeof step};
        struct weft_plan_operand operand = {.size = sizeof operand};
        struct call call = {.graph = weft_plan_graph(plan)};
        weft_plan_step(plan, i, &step);
        call.node = step.node;
        for (int k = 0; k < step.operands && k < 3; k++) {
            weft_plan_step_operand(plan, i, (size_t)k, &operand);
            call.in[k] = place(m, &operand);
        }
        weft_plan_step_result(plan, i, 0, &operand);
        call.out = place(m, &operand);
        for (int k = 0; k < KERNELS; k++)
            if (!strcmp(kernels[k].op, step.op))
                kernels[k].run(&call);
        printf("%2zu %-12s %-28s %s at %" PRId64 "\n", i, step.own ? step.kernel : step.op, step.value,
               operand.memory == WEFT_MEMORY_ARENA ? "arena" : "output", operand.offset);
    }
}

/* --- the same by weft --------------------------------------------------------------------------------------------- */

static int64_t port_elements(const struct weft_port *port)
{
    int64_t n = 1;
    for (int i = 0; i < port->rank; i++)
        n *= port->extent[i];
    return n;
}

static double compare(const struct weft_context *context, const struct weft_graph *graph, const struct memory *m)
{
    struct weft_plan *plan;
    struct weft_execution *execution;
    double most = 0;
    must(context, weft_compile(graph, NULL, &plan));
    must(context, weft_execution_create(plan, &execution));
    for (size_t i = 0; i < weft_plan_inputs(plan); i++) {
        struct weft_port port = {.size = sizeof port};
        weft_plan_input(plan, i, &port);
        struct weft_tensor tensor = {.data = m->input[i], .dtype = port.dtype, .rank = port.rank};
        memcpy(tensor.extent, port.extent, sizeof tensor.extent);
        memcpy(tensor.stride, port.stride, sizeof tensor.stride);
        must(context, weft_bind_input(execution, i, &tensor));
    }
    must(context, weft_run(execution));
    for (size_t i = 0; i < weft_plan_outputs(plan); i++) {
        struct weft_port port = {.size = sizeof port};
        struct weft_tensor tensor;
        weft_plan_output(plan, i, &port);
        weft_output(execution, i, &tensor);
        for (int64_t k = 0; k < port_elements(&port); k++) {
            const double expected = ((const float *)tensor.data)[k], got = ((const float *)m->output[i])[k];
            most = fmax(most, fabs(got - expected) / fmax(1, fabs(expected)));
        }
    }
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    return most;
}

int main(int argc, char **argv)
{
    struct weft_context *context = NULL;
    struct weft_graph *graph;
    struct weft_target *target;
    struct weft_plan *plan;
    if (argc != 2 || weft_open(NULL, &context) != WEFT_OK) {
        fprintf(stderr, "usage: own_plan MODEL\n");
        return 2;
    }
    must(context, weft_load(context, argv[1], &graph));
    must(context, weft_target_create(context, &target));
    must(context, weft_target_restrict(target, WEFT_TARGET_OWN_ONLY));
    for (int k = 0; k < KERNELS; k++) {
        const struct weft_kernel kernel = {.size = sizeof kernel, .name = kernels[k].name, .op = kernels[k].op,
                                           .fits = is_plain, .cost = cost};
        if (kernel.name)
            must(context, weft_target_add(target, &kernel));
    }
    must(context, weft_compile(graph, &(struct weft_compile_options){.size = sizeof(struct weft_compile_options),
                                                                      .target = target}, &plan));
    char *input[8], *output[8];
    const struct memory m = {.input = input, .output = output,
                             .arena = aligned_alloc(64, (size_t)(weft_plan_arena_bytes(plan) + 127) / 64 * 64)};
    struct weft_port port = {.size = sizeof port};
    for (size_t i = 0; i < weft_plan_inputs(plan) && i < 8; i++) {
        weft_plan_input(plan, i, &port);
        input[i] = malloc((size_t)port_elements(&port) * sizeof(float));
        for (int64_t k = 0; k < port_elements(&port); k++)
            ((float *)input[i])[k] = (float)(k * 37 % 256) / 256;
    }
    for (size_t i = 0; i < weft_plan_outputs(plan) && i < 8; i++) {
        weft_plan_output(plan, i, &port);
        output[i] = malloc((size_t)port_elements(&port) * sizeof(float));
    }
    walk(plan, &m);
    const double difference = compare(context, graph, &m);
    printf("arena: %" PRId64 " bytes; largest relative difference from weft's kernels: %.2g\n",
           weft_plan_arena_bytes(plan), difference);
    for (size_t i = 0; i < weft_plan_inputs(plan) && i < 8; i++)
        free(input[i]);
    for (size_t i = 0; i < weft_plan_outputs(plan) && i < 8; i++)
        free(output[i]);
    free(m.arena);
    weft_plan_destroy(plan);
    weft_target_destroy(target);
    weft_graph_destroy(graph);
    weft_close(context);
    return difference < 1e-4 ? 0 : 1;
}
