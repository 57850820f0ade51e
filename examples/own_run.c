/* SPDX-License-Identifier: Apache-2.0 */
/* own_run.c: a framework whose kernels are fast on channels in blocks of 16, nChw16c, and weft runs them. Weft finds
 * out where blocks pay, keeps values in them from one such kernel to the next, converts constant weights once, and
 * computes by itself what there is no kernel for, on the same memory where it can.
 *
 *     cc -O3 own_run.c $(pkg-config --cflags --libs weft) -lm && ./a.out model.onnx
 *
 *   blocks.conv      convolutions from blocks to blocks
 *   blocks.image     convolutions from a row-major image of few channels to blocks
 *   blocks.add, .relu  what stands between them: a bias is read as it is, without being repeated in memory
 *   blocks.product   matrix products of row-major arrays with constant weights in blocks of 16 columns
 *
 * Models to try: what torch.onnx.export makes of torchvision's resnet50, or of BertModel from transformers, with
 * extents that are numbers. */
#include "own_data.h"

enum { BLOCK = 16 };

/* --- what weft is told -------------------------------------------------------------------------------------------- */

static struct weft_value_facts facts_of(const struct weft_graph *graph, weft_val value)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    weft_value_read(graph, value, &facts);
    return facts;
}

static struct weft_value_facts operand_of(const struct weft_graph *graph, weft_node node, size_t i)
{
    return facts_of(graph, weft_node_operand(graph, node, i));
}

static struct weft_value_facts result_of(const struct weft_graph *graph, weft_node node)
{
    return facts_of(graph, weft_node_result(graph, node, 0));
}

static bool is_op(const struct weft_graph *graph, weft_node node, const char *op)
{
    struct weft_node_facts facts = {.size = sizeof facts};
    return weft_node_read(graph, node, &facts) == WEFT_OK && !strcmp(facts.op, op);
}

static int64_t integer(const struct weft_graph *graph, weft_node node, const char *name)
{
    struct weft_attribute attribute = {0};
    weft_node_attribute(graph, node, name, &attribute);
    return attribute.integer;
}

static bool fills_blocks(const struct weft_value_facts *value)
{
    return value->dtype == WEFT_F32 && value->rank == 4 && value->hint[1] % BLOCK == 0;
}

static bool writes_blocks(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts y = result_of(graph, node);
    return fills_blocks(&y);
}

static bool conv_fits(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts x = operand_of(graph, node, 0);
    return fills_blocks(&x) && writes_blocks(user, graph, node) && integer(graph, node, "groups") == 1;
}

static bool image_fits(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts x = operand_of(graph, node, 0);
    return x.hint[1] < BLOCK && writes_blocks(user, graph, node) && integer(graph, node, "groups") == 1;
}

static bool product_fits(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts w = operand_of(graph, node, 1);
    return w.constant && w.dtype == WEFT_F32 && w.rank == 2 && result_of(graph, node).dtype == WEFT_F32 &&
           !integer(graph, node, "trans_a");
}

static const char *conv_layout(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    return i == 1 ? "{0/16 1/16 2 3 1%16 0%16}" /* weights */ : "{0 1/16 2 3 1%16}";
}

static const char *image_layout(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    return i == 0 ? "{0 1 2 3}" : i == 1 ? "{0/16 1 2 3 0%16}" : "{0 1/16 2 3 1%16}";
}

/* What is repeated may lie in any strides, 0 among them. */
static const char *between_layout(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    const struct weft_value_facts x = operand_of(graph, node, i); /* behind the last operand: of none */
    return is_op(graph, x.node, "bcast") ? NULL : "{0 1/16 2 3 1%16}";
}

static const char *product_layout(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    return i != 1 ? "{0 1}" : integer(graph, node, "trans_b") ? "{0/16 1 0%16}" : "{1/16 0 1%16}";
}

/* In microseconds: `user` points at what an element of the result takes. */
static double cost(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct weft_value_facts y = result_of(graph, node);
    return *(const double *)user * (double)count(y.hint, y.rank) * 1e-6;
}

static bool yes(void *user, const struct weft_graph *graph, weft_node node, size_t i) { return true; }

/* --- convolutions ------------------------------------------------------------------------------------------------- */

/* A part is a share of the blocks of the result, of all images: as many as there are workers, if there are so many. */
static int64_t blocks_of(const struct weft_kernel_array *y) { return y->extent[0] * (y->extent[1] / BLOCK); }

static int32_t parts(void *user, const struct weft_kernel_call *call)
{
    const int64_t blocks = blocks_of(call->result);
    return blocks < call->workers ? (int32_t)blocks : call->workers;
}

/* For each axis of the plane. */
struct window {
    int64_t stride[2], pad[2], dilation[2];
};

static int64_t number(const struct weft_kernel_call *call, const char *name, size_t i, int64_t otherwise)
{
    struct weft_attribute attribute = {0};
    int64_t value = otherwise;
    if (weft_node_attribute(call->graph, call->node, name, &attribute) == WEFT_OK && i < attribute.count)
        weft_call_extent(call, attribute.integers[i], &value);
    return value;
}

static struct window window_of(const struct weft_kernel_call *call)
{
    struct window window;
    for (size_t i = 0; i < 2; i++) {
        window.stride[i] = number(call, "stride", i, 1);
        window.pad[i] = number(call, "pad", i, 0);
        window.dilation[i] = number(call, "dilation", i, 1);
    }
    return window;
}

/* How x lies: `lane` channels stand side by side, 16 or, in an image, 1. */
struct source {
    const float *x;
    const int64_t *extent;
    int64_t lane;
};

/* One row of 16 channels of the result: y[column][k] += x[column][c] * w[tap][c][k]. */
static void conv_row(const struct window *window, struct source x, const struct weft_kernel_array *w,
                     const float *weight, int64_t i, int64_t columns, float *y)
{
    const int64_t taps = w->extent[2] * w->extent[3];
    for (int64_t t = 0; t < x.extent[1] / x.lane * taps; t++, weight += x.lane * BLOCK) {
        const int64_t row = i * window->stride[0] + t % taps / w->extent[3] * window->dilation[0] - window->pad[0];
        const float *const line = x.x + (t / taps * x.extent[2] + row) * x.extent[3] * x.lane;
        for (int64_t j = 0; j < columns && row >= 0 && row < x.extent[2]; j++) {
            const int64_t column = j * window->stride[1] + t % w->extent[3] * window->dilation[1] - window->pad[1];
            for (int64_t c = 0; c < x.lane && column >= 0 && column < x.extent[3]; c++)
                for (int k = 0; k < BLOCK; k++)
                    y[j * BLOCK + k] += line[column * x.lane + c] * weight[c * BLOCK + k];
        }
    }
}

static int conv(void *user, const struct weft_kernel_call *call)
{
    const struct weft_kernel_array *x = &call->operand[0], *w = &call->operand[1], *y = call->result;
    const struct window window = window_of(call);
    const int64_t channels = y->extent[1] / BLOCK, row = y->extent[3] * BLOCK;
    const int64_t weights = w->extent[1] * w->extent[2] * w->extent[3] * BLOCK; /* of a block of the result */
    for (int64_t b = blocks_of(y) * call->part / call->parts; b < blocks_of(y) * (call->part + 1) / call->parts; b++) {
        const float *const image = (const float *)x->data + b / channels * x->extent[1] * x->extent[2] * x->extent[3];
        const struct source source = {image, x->extent, x->extent[1] < BLOCK ? 1 : BLOCK};
        for (int64_t i = 0; i < y->extent[2]; i++) {
            float *const to = (float *)y->data + (b * y->extent[2] + i) * row;
            memset(to, 0, (size_t)row * sizeof(float));
            conv_row(&window, source, w, (const float *)w->data + b % channels * weights, i, y->extent[3], to);
        }
    }
    return 0;
}

/* --- between them ------------------------------------------------------------------------------------------------- */

/* How far it is to the next image, block, row, column and channel. */
static void steps_of(const struct weft_kernel_array *a, int64_t *step)
{
    const int64_t *e = a->extent, *s = a->stride;
    const int64_t plane = e[2] * e[3] * BLOCK;
    memcpy(step, a->split ? (int64_t[]){e[1] / BLOCK * plane, plane, e[3] * BLOCK, BLOCK, 1}
                          : (int64_t[]){s[0], s[1] * BLOCK, s[2], s[3], s[1]}, 5 * sizeof *step);
}

static int add(void *user, const struct weft_kernel_call *call)
{
    const struct weft_kernel_array *y = call->result;
    const int64_t channels = y->extent[1] / BLOCK, columns = y->extent[3];
    const int64_t rows = blocks_of(y) * y->extent[2];
    int64_t p[5], q[5];
    steps_of(&call->operand[0], p);
    steps_of(&call->operand[1], q);
    for (int64_t r = rows * call->part / call->parts; r < rows * (call->part + 1) / call->parts; r++) {
        const int64_t i = r % y->extent[2], block = r / y->extent[2] % channels, n = r / y->extent[2] / channels;
        const float *a = (const float *)call->operand[0].data + n * p[0] + block * p[1] + i * p[2];
        const float *b = (const float *)call->operand[1].data + n * q[0] + block * q[1] + i * q[2];
        float *to = (float *)y->data + r * columns * BLOCK;
        for (int64_t j = 0; j < columns; j++, a += p[3], b += q[3], to += BLOCK)
            for (int k = 0; k < BLOCK; k++)
                to[k] = a[k * p[4]] + b[k * q[4]];
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

/* --- products ----------------------------------------------------------------------------------------------------- */

static int64_t columns_of(const struct weft_kernel_array *y) { return (y->extent[1] + BLOCK - 1) / BLOCK; }

static int32_t product_parts(void *user, const struct weft_kernel_call *call)
{
    const int64_t blocks = columns_of(call->result);
    return blocks < call->workers ? (int32_t)blocks : call->workers;
}

/* The last block of columns may be filled up with anything: that is computed and not stored. */
static int product(void *user, const struct weft_kernel_call *call)
{
    const struct weft_kernel_array *x = &call->operand[0], *y = call->result;
    const int64_t depth = x->extent[1], columns = y->extent[1], blocks = columns_of(y);
    for (int64_t b = blocks * call->part / call->parts; b < blocks * (call->part + 1) / call->parts; b++) {
        const float *const w = (const float *)call->operand[1].data + b * depth * BLOCK;
        const int64_t left = columns - b * BLOCK, stored = left < BLOCK ? left : BLOCK;
        for (int64_t i = 0; i < y->extent[0]; i++) {
            const float *const row = (const float *)x->data + i * depth;
            float sum[BLOCK] = {0};
            for (int64_t k = 0; k < depth; k++)
                for (int j = 0; j < BLOCK; j++)
                    sum[j] += row[k] * w[k * BLOCK + j];
            memcpy((float *)y->data + i * columns + b * BLOCK, sum, (size_t)stored * sizeof *sum);
        }
    }
    return 0;
}

/* --- a plan ------------------------------------------------------------------------------------------------------- */

static void add_kernels(const struct weft_context *context, struct weft_target *target)
{
    static double slow = 0.5, fast = 0.01;
    const struct weft_kernel kernels[] = {
        {.size = sizeof kernels[0], .name = "blocks.conv", .op = "conv", .user = &slow, .fits = conv_fits,
         .layout = conv_layout, .cost = cost, .run = conv, .parts = parts},
        {.size = sizeof kernels[0], .name = "blocks.image", .op = "conv", .user = &slow, .fits = image_fits,
         .layout = image_layout, .cost = cost, .run = conv, .parts = parts},
        {.size = sizeof kernels[0], .name = "blocks.add", .op = "add", .user = &fast, .fits = writes_blocks,
         .layout = between_layout, .cost = cost, .run = add, .parts = parts, .in_place = yes},
        {.size = sizeof kernels[0], .name = "blocks.relu", .op = "relu", .user = &fast, .fits = writes_blocks,
         .layout = between_layout, .cost = cost, .run = relu, .parts = parts, .in_place = yes},
        {.size = sizeof kernels[0], .name = "blocks.product", .op = "matmul", .user = &slow, .fits = product_fits,
         .layout = product_layout, .cost = cost, .run = product, .parts = product_parts}};
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
        must(context, weft_target_add(target, &kernels[k]));
}

/* A relayout that is no step of a run was done when the plan was made. */
static void report(const struct weft_plan *plan)
{
    const struct weft_graph *const graph = weft_plan_graph(plan);
    int own = 0, others = 0, each = 0, once = 0;
    struct weft_plan_step step = {.size = sizeof step};
    for (weft_node n = weft_next_node(graph, (weft_node){0}); n.id; n = weft_next_node(graph, n))
        once += is_op(graph, n, "relayout");
    for (size_t i = 0; weft_plan_step(plan, i, &step) == WEFT_OK; i++) {
        struct weft_plan_operand from = {.size = sizeof from}, to = {.size = sizeof to};
        own += step.own;
        if (!step.op || (strcmp(step.op, "relayout") && strcmp(step.op, "reshape"))) {
            others += !step.own;
            continue;
        }
        weft_plan_step_operand(plan, i, 0, &from);
        weft_plan_step_result(plan, i, 0, &to);
        printf("converted %s: from %s to %s\n", from.value, from.layout, to.layout);
        once -= step.node.id && is_op(graph, step.node, "relayout");
        each++;
    }
    printf("steps of own kernels: %d; of weft's: %d; conversions in each run: %d; once: %d\n", own, others, each, once);
}

int main(int argc, char **argv)
{
    struct weft_context *context = NULL;
    struct weft_graph *graph;
    struct weft_target *target;
    struct weft_plan *mine, *weft;
    double most = 0;
    if (argc != 2 || weft_open(NULL, &context) != WEFT_OK) {
        fprintf(stderr, "usage: own_run MODEL\n");
        return 2;
    }
    must(context, weft_load(context, argv[1], &graph));
    must(context, weft_target_create(context, &target));
    add_kernels(context, target);
    const struct weft_compile_options options = {.size = sizeof options, .target = target};
    must(context, weft_compile(graph, &options, &mine));
    must(context, weft_compile(graph, NULL, &weft));
    weft_target_destroy(target);
    report(mine);
    const size_t inputs = weft_plan_inputs(mine);
    struct weft_tensor *const input = calloc(inputs + 1, sizeof *input);
    for (size_t i = 0; i < inputs; i++)
        input[i] = input_for(mine, i);
    struct weft_execution *const first = run(context, mine, input), *const second = run(context, weft, input);
    for (size_t i = 0; i < weft_plan_outputs(mine); i++) {
        struct weft_tensor got;
        weft_output(first, i, &got);
        most = fmax(most, difference(second, i, got.data));
    }
    printf("largest relative difference from weft's kernels: %.2g\n", most);
    weft_execution_destroy(first);
    weft_execution_destroy(second);
    weft_plan_destroy(mine);
    weft_plan_destroy(weft);
    for (size_t i = 0; i < inputs; i++)
        free(input[i].data);
    free(input);
    weft_graph_destroy(graph);
    weft_close(context);
    return most < 1e-3 ? 0 : 1;
}
