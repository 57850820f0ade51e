/* SPDX-License-Identifier: Apache-2.0 */
/* program.c: a program of weft 0.2 and later: it fills each struct that the library reads and asks for each that the
 * library fills, with marks behind it, which a library that knows longer structs may not touch. README.md tells what
 * for. */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

/* --- structs with marks behind them ------------------------------------------------------------------------------- */

enum { MARKS = 256, MARK = 0xa5 };
#define MARKED(type, name) \
    struct { \
        struct type it; \
        unsigned char mark[MARKS]; \
    } name; \
    memset(&name, MARK, sizeof name); \
    name.it.size = sizeof name.it

static int marked(const unsigned char *mark)
{
    int good = 0;
    for (int i = 0; i < MARKS; i++)
        good += mark[i] == MARK;
    return good == MARKS;
}
#define GIVEN(call, name) NEED((call) == WEFT_OK && marked(name.mark) && name.it.size == sizeof name.it)

/* --- what the library calls --------------------------------------------------------------------------------------- */

static int messages;
static void diagnose(void *user, const struct weft_diagnostic *d)
{
    ++*(int *)user;
    NEED(d->severity == WEFT_ERROR && d->status == WEFT_ERR_SYNTAX && d->line == 1 && d->message);
}

static void *allocate(void *user, size_t bytes, size_t align)
{
    (void)user;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user, (void)bytes;
    free(memory);
}

static int workers(void *user) { return user ? 1 : 2; }

static void run(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    (void)user;
    for (int i = 0; i < n; i++)
        fn(arg, i);
}

static int twice(void *user, const struct weft_custom_call *call)
{
    (void)user;
    NEED(call->operands == 1 && call->parameters == 1 && call->operand[0].rank == 2);
    const float *from = call->operand[0].data;
    float *to = call->result->data;
    for (int64_t i = 0; i < call->result->extent[0] * call->result->extent[1]; i++)
        to[i] = (float)call->parameter[0] * from[i];
    return 0;
}

static int same_type(void *user, struct weft_custom_types *types)
{
    (void)user;
    NEED(types->operands == 1 && types->operand[0].dtype == WEFT_F32);
    types->result = types->operand[0];
    return 0;
}

static void aligned_operand(void *user, size_t i, size_t operands, int rank, struct weft_demand *demand)
{
    (void)user, (void)operands, (void)rank;
    demand->align = i == 0 ? 16 : 0;
}

static double cheap(void *user, const struct weft_graph *graph, weft_node node)
{
    (void)user, (void)graph, (void)node;
    return 1;
}

/* --- the program -------------------------------------------------------------------------------------------------- */

static struct weft_context *open_context(void)
{
    struct weft_context *context;
    const struct weft_allocator allocator = {.size = sizeof allocator, .allocate = allocate, .release = release};
    const struct weft_executor executor = {.size = sizeof executor, .workers = workers, .run = run};
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .executor = &executor,
                                                 .diagnose = diagnose, .diagnose_user = &messages, .threads = 1,
                                                 .prices = ""};
    const struct weft_custom custom = {.size = sizeof custom, .name = "twice", .least_operands = 1, .most_operands = 1,
                                       .run = twice, .type = same_type, .demand = aligned_operand};
    NEED(weft_open(&options, &context) == WEFT_OK);
    NEED(weft_register(context, &custom) == WEFT_OK);
    return context;
}

/* y = twice(exp(x) @ w), of 2 x 3 and 3 x 4 */
static struct weft_graph *build(struct weft_context *context)
{
    static const float w[12] = {1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1};
    struct weft_graph *graph;
    weft_dim extent[2] = {weft_extent(2), weft_extent(3)};
    weft_val x, e, weights, product, y;
    const double factor[1] = {2};
    NEED(weft_graph_create(context, "program", &graph) == WEFT_OK);
    NEED(weft_param(graph, "x", WEFT_F32, 2, extent, &x) == WEFT_OK);
    NEED(weft_constant(graph, WEFT_F32, 2, (const int64_t[]){3, 4}, w, &weights) == WEFT_OK);
    const struct weft_op exponential = {.size = sizeof exponential, .op = "exp", .operand = &x, .operands = 1};
    NEED(weft_append(graph, &exponential, &e) == WEFT_OK);
    const struct weft_op matmul = {.size = sizeof matmul, .op = "matmul", .name = "p",
                                   .operand = (const weft_val[]){e, weights}, .operands = 2};
    NEED(weft_append(graph, &matmul, &product) == WEFT_OK);
    const struct weft_attribute attribute[2] = {{.name = "function", .word = "twice"},
                                                {.name = "parameters", .reals = factor, .count = 1}};
    const struct weft_op call = {.size = sizeof call, .op = "custom", .name = "y", .operand = &product, .operands = 1,
                                 .attribute = attribute, .attributes = 2};
    NEED(weft_append(graph, &call, &y) == WEFT_OK);
    NEED(weft_return(graph, &y, 1) == WEFT_OK);
    return graph;
}

static void read_graph(const struct weft_graph *graph)
{
    MARKED(weft_node_facts, node);
    MARKED(weft_value_facts, value);
    MARKED(weft_access_width, width);
    struct {
        struct weft_attribute it;
        unsigned char mark[MARKS];
    } attribute;
    memset(&attribute, MARK, sizeof attribute);
    weft_node last = {0, 0};
    for (weft_node n = weft_next_node(graph, last); n.id; n = weft_next_node(graph, n))
        last = n;
    GIVEN(weft_node_read(graph, last, &node.it), node);
    NEED(strcmp(node.it.op, "custom") == 0 && node.it.operands == 1);
    GIVEN(weft_value_read(graph, weft_graph_param(graph, 0), &value.it), value);
    NEED(value.it.rank == 2 && value.it.hint[1] == 3);
    NEED(weft_node_attribute(graph, last, "parameters", &attribute.it) == WEFT_OK && marked(attribute.mark));
    NEED(attribute.it.count == 1 && attribute.it.reals[0] == 2);
    const struct weft_access access = {.size = sizeof access, .value = weft_graph_param(graph, 0)};
    GIVEN(weft_access(graph, &access, &width.it), width);
    NEED(width.it.width >= 1);
}

static void use_target(struct weft_context *context, const struct weft_graph *source)
{
    struct weft_target *target;
    struct weft_graph *graph;
    const struct weft_kernel kernel = {.size = sizeof kernel, .name = "my_matmul", .op = "matmul", .cost = cheap};
    NEED(weft_target_create(context, &target) == WEFT_OK && weft_target_add(target, &kernel) == WEFT_OK);
    NEED(weft_graph_clone(source, &graph) == WEFT_OK);
    NEED(weft_run_pass(graph, "propagate_memory_format", target) >= 0);
    MARKED(weft_remark, remark);
    NEED(weft_remark_count(graph) > 0);
    GIVEN(weft_remark_get(graph, 0, &remark.it), remark);
    NEED(remark.it.who && remark.it.reason);
    weft_graph_destroy(graph);
    weft_target_destroy(target);
}

static void read_plan(const struct weft_plan *plan)
{
    MARKED(weft_port, in);
    MARKED(weft_port, out);
    MARKED(weft_plan_value, value);
    MARKED(weft_plan_step, step);
    MARKED(weft_plan_block, block);
    GIVEN(weft_plan_input(plan, 0, &in.it), in);
    GIVEN(weft_plan_output(plan, 0, &out.it), out);
    NEED(strcmp(in.it.name, "x") == 0 && out.it.extent[1] == 4);
    GIVEN(weft_plan_find(plan, "p", &value.it), value);
    NEED(value.it.rank == 2);
    NEED(weft_plan_steps(plan) > 0 && weft_plan_blocks(plan) > 0);
    GIVEN(weft_plan_step(plan, 0, &step.it), step);
    GIVEN(weft_plan_block(plan, 0, &block.it), block);
    NEED(step.it.kernel && block.it.bytes > 0);
}

static void run_plan(const struct weft_plan *plan)
{
    static float data[6]; /* exp(0) = 1 */
    struct weft_execution *execution;
    MARKED(weft_statistics, statistics);
    struct {
        struct weft_tensor it;
        unsigned char mark[MARKS];
    } result;
    memset(&result, MARK, sizeof result);
    const struct weft_tensor x = {.data = data, .dtype = WEFT_F32, .rank = 2, .extent = {2, 3}, .stride = {3, 1}};
    NEED(weft_execution_create(plan, &execution) == WEFT_OK);
    NEED(weft_bind_input(execution, 0, &x) == WEFT_OK && weft_run(execution) == WEFT_OK);
    NEED(weft_output(execution, 0, &result.it) == WEFT_OK && marked(result.mark));
    const float *y = result.it.data;
    NEED(y[0] == 2 && y[1] == 2 && y[2] == 2 && y[3] == 6 && y[7] == 6);
    GIVEN(weft_execution_statistics(execution, &statistics.it), statistics);
    NEED(statistics.it.kernels > 0 && statistics.it.workers == 1);
    weft_execution_destroy(execution);
}

int main(void)
{
    struct weft_context *context = open_context();
    struct weft_graph *graph = build(context), *none = NULL;
    struct weft_plan *plan;
    NEED(weft_version_number() >= WEFT_VERSION_NUMBER);
    NEED(weft_parse(context, "nonsense", 8, "text", &none) == WEFT_ERR_SYNTAX && messages == 1 && !none);
    read_graph(graph);
    use_target(context, graph);
    const struct weft_compile_options options = {.size = sizeof options, .flags = WEFT_COMPILE_NO_COMPILER};
    NEED(weft_compile(graph, &options, &plan) == WEFT_OK);
    read_plan(plan);
    run_plan(plan);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
    return 0;
}
