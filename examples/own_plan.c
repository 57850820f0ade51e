/* SPDX-License-Identifier: Apache-2.0 */
/* own_plan.c: a framework that computes everything by itself, row-major, and lets weft optimise a model and plan it:
 * the order of steps, the places in one arena, what is a view of what. It walks through the plan with its own loops
 * (own_plan_kernels.h), and compares its answers with those of weft's kernels.
 *
 *     cc -O2 own_plan.c $(pkg-config --cflags --libs weft) -lm && ./a.out model.onnx
 *
 * It has kernels for softmax, layer_norm and gelu, so these stay whole; it has none for attention, so that stays the
 * products and the softmax that it was. What is computed element by element takes operands in any strides; the other
 * kernels take dense row-major arrays. Where the model has a view that is none of these (a transpose), the plan has a
 * relayout, which is a loop like any other.
 *
 * Models to try: what torch.onnx.export makes of torchvision's resnet50, or of BertModel from transformers, with
 * extents that are numbers. A convolution or a product is a plain loop here: ResNet-50 takes some seconds. */
#include "own_data.h"
#include "own_plan_kernels.h"

#include <inttypes.h>

/* --- what weft is told of the kernels ----------------------------------------------------------------------------- */

struct kernel {
    const char *op, *name;
    void (*run)(const struct call *);
    const char *types; /* of the result, then of operands, the last for all that follow: f32, i64, bool, any */
    bool strides;      /* does it take operands in any? */
};
static const struct kernel kernels[] = {
    {"add", "plain.add", add, "fff", true},
    {"sub", "plain.sub", sub, "fff", true},
    {"mul", "plain.mul", mul, "fff", true},
    {"div", "plain.div", divide, "fff", true},
    {"relu", "plain.relu", relu, "ff", true},
    {"exp", "plain.exp", exponential, "ff", true},
    {"tanh", "plain.tanh", hyperbolic_tangent, "ff", true},
    {"gelu", "plain.gelu", gelu, "ff", true},
    {"is_nan", "plain.is_nan", is_nan, "bf", true},
    {"select", "plain.select", choose, "fbff", true},
    {"cast", "plain.bool", bool_of, "bi", true},
    {"softmax", "plain.softmax", softmax, "ff", false},
    {"layer_norm", "plain.norm", layer_norm, "ffff", false},
    {"mean", "plain.mean", mean, "ff", false},
    {"matmul", "plain.matmul", matmul, "fff", false},
    {"conv", "plain.conv", convolve, "fff", false},
    {"max_pool", "plain.pool", max_pool, "ff", false},
    {"gather", "plain.gather", gather, "aai", false},
    {"gather_nd", "plain.gather_nd", gather_nd, "aai", false},
    {"concat", "plain.concat", concat, "aa", false},
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

static struct weft_value_facts facts_of(const struct weft_graph *graph, weft_val value)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    weft_value_read(graph, value, &facts);
    return facts;
}

static bool is_of_type(char type, int dtype)
{
    return type == 'f'   ? dtype == WEFT_F32
           : type == 'i' ? dtype == WEFT_I64
           : type == 'b' ? dtype == WEFT_BOOL : weft_dtype_bits(dtype) >= 8;
}

/* A kernel that reduces does so over the last axes. */
static bool reduces_last_axes(const struct call *call, int rank)
{
    struct weft_attribute axes = attribute_of(call, "axes");
    for (size_t i = 0; i < axes.count; i++)
        if (number(call, "axes", i, 0) != rank - (int64_t)(axes.count - i))
            return false;
    return true;
}

static bool fits(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct kernel *kernel = user;
    const struct call call = {.graph = graph, .node = node};
    const struct weft_value_facts x = facts_of(graph, weft_node_operand(graph, node, 0));
    struct weft_node_facts facts = {.size = sizeof facts};
    weft_node_read(graph, node, &facts);
    if (facts.operands > MOST_OPERANDS || facts.operands + 1 < strlen(kernel->types) ||
        !is_of_type(kernel->types[0], facts_of(graph, weft_node_result(graph, node, 0)).dtype))
        return false;
    for (size_t i = 0, type = 1; i < facts.operands; i++, type += kernel->types[type + 1] != 0)
        if (!is_of_type(kernel->types[type], facts_of(graph, weft_node_operand(graph, node, i)).dtype))
            return false;
    if (kernel->run == convolve || kernel->run == max_pool)
        return x.rank == 4;
    if (kernel->run == softmax || kernel->run == layer_norm)
        return attribute_of(&call, "axis").integer == x.rank - 1;
    if (kernel->run == gelu)
        return !strcmp(attribute_of(&call, "form").word, "erf");
    if (kernel->run == gather_nd)
        return attribute_of(&call, "batch").integer == 0;
    return kernel->run != mean || reduces_last_axes(&call, x.rank);
}

/* Any layout of operands, row-major results. A kernel without this function takes nothing but row-major arrays. */
static const char *any_strides(void *user, const struct weft_graph *graph, weft_node node, size_t i) { return NULL; }

static double cost(void *user, const struct weft_graph *graph, weft_node node) { return 10; }

static struct weft_plan *plan_for(const struct weft_context *context, const struct weft_graph *graph,
                                  struct weft_target *target)
{
    struct weft_plan *plan;
    const struct weft_compile_options options = {.size = sizeof options, .target = target};
    must(context, weft_target_restrict(target, WEFT_TARGET_OWN_ONLY));
    for (int k = 0; k < KERNELS; k++)
        must(context, weft_target_add(target, &(struct weft_kernel){
            .size = sizeof(struct weft_kernel), .name = kernels[k].name, .op = kernels[k].op,
            .user = (void *)&kernels[k], .fits = fits, .layout = kernels[k].strides ? any_strides : NULL,
            .cost = cost}));
    must(context, weft_compile(graph, &options, &plan));
    return plan;
}

/* --- walking through a plan --------------------------------------------------------------------------------------- */

struct memory {
    char *arena;
    struct weft_tensor *input, *output;
};

static struct weft_kernel_array place(const struct memory *m, const struct weft_plan_operand *operand)
{
    struct weft_kernel_array array = operand->array; /* of a constant, with its data */
    if (operand->memory == WEFT_MEMORY_INPUT)
        array.data = (char *)m->input[operand->port].data + operand->offset;
    else if (operand->memory == WEFT_MEMORY_OUTPUT)
        array.data = (char *)m->output[operand->port].data + operand->offset;
    else if (operand->memory == WEFT_MEMORY_ARENA)
        array.data = m->arena + operand->offset;
    return array;
}

static void walk(const struct weft_plan *plan, const struct memory *m)
{
    int own = 0, relayouts = 0;
    for (size_t i = 0; i < weft_plan_steps(plan); i++) {
        struct weft_plan_step step = {.size = sizeof step};
        struct weft_plan_operand operand = {.size = sizeof operand};
        struct call call = {.graph = weft_plan_graph(plan)};
        weft_plan_step(plan, i, &step);
        call.node = step.node;
        call.operands = step.operands;
        for (int k = 0; k < step.operands; k++) {
            weft_plan_step_operand(plan, i, (size_t)k, &operand);
            call.in[k] = place(m, &operand);
        }
        weft_plan_step_result(plan, i, 0, &operand);
        call.out = place(m, &operand);
        for (int k = 0; step.own && k < KERNELS; k++)
            if (!strcmp(kernels[k].name, step.kernel))
                kernels[k].run(&call);
        if (!step.own)
            relayout(&call);
        own += step.own;
        relayouts += !step.own;
        printf("%2zu %-12s %-28s %s at %" PRId64 "\n", i, step.own ? step.kernel : step.op, step.value,
               operand.memory == WEFT_MEMORY_ARENA ? "arena" : "output", operand.offset);
    }
    printf("steps of own kernels: %d; relayouts: %d\n", own, relayouts);
}

/* --- the same by weft --------------------------------------------------------------------------------------------- */

static double compare(const struct weft_context *context, const struct weft_graph *graph, const struct memory *m)
{
    struct weft_plan *plan;
    double most = 0;
    must(context, weft_compile(graph, NULL, &plan));
    struct weft_execution *const weft = run(context, plan, m->input);
    for (size_t i = 0; i < weft_plan_outputs(plan); i++)
        most = fmax(most, difference(weft, i, m->output[i].data));
    weft_execution_destroy(weft);
    weft_plan_destroy(plan);
    return most;
}

int main(int argc, char **argv)
{
    struct weft_context *context = NULL;
    struct weft_graph *graph;
    struct weft_target *target;
    if (argc != 2 || weft_open(NULL, &context) != WEFT_OK) {
        fprintf(stderr, "usage: own_plan MODEL\n");
        return 2;
    }
    must(context, weft_load(context, argv[1], &graph));
    must(context, weft_target_create(context, &target));
    struct weft_plan *const plan = plan_for(context, graph, target);
    const size_t inputs = weft_plan_inputs(plan), outputs = weft_plan_outputs(plan);
    const struct memory m = {.input = calloc(inputs + 1, sizeof *m.input),
                             .output = calloc(outputs + 1, sizeof *m.output),
                             .arena = aligned_alloc(64, (size_t)(weft_plan_arena_bytes(plan) + 127) / 64 * 64)};
    for (size_t i = 0; i < inputs; i++)
        m.input[i] = input_for(plan, i);
    for (size_t i = 0; i < outputs; i++)
        m.output[i] = tensor_for(plan, weft_graph_return(weft_plan_graph(plan), i));
    walk(plan, &m);
    const double most = compare(context, graph, &m);
    printf("arena: %" PRId64 " bytes; largest relative difference from weft's kernels: %.2g\n",
           weft_plan_arena_bytes(plan), most);
    for (size_t i = 0; i < inputs; i++)
        free(m.input[i].data);
    for (size_t i = 0; i < outputs; i++)
        free(m.output[i].data);
    free(m.input);
    free(m.output);
    free(m.arena);
    weft_plan_destroy(plan);
    weft_target_destroy(target);
    weft_graph_destroy(graph);
    weft_close(context);
    return most < 1e-4 ? 0 : 1;
}
