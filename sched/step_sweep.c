/* SPDX-License-Identifier: Apache-2.0 */
/* step_sweep.c: steps that walk over arrays once: elementwise maps, reductions. */
#include "codegen/pointwise.h"
#include "sched/step.h"

/* --- map ---------------------------------------------------------------------------------------------------------- */

static void bind_map(struct weft_bind *bind, void *descriptor)
{
    const struct weft_step *step = bind->step;
    struct weft_map *map = descriptor;
    *map = (struct weft_map){.kernel = step->strip, .inputs = (int)step->ins, .rank = bind->out.rank,
                             .param = {step->param[0], step->param[1]}};
    for (int i = 0; i < map->rank; i++) {
        map->extent[i] = bind->out.extent[i];
        map->stride[0][i] = bind->out.stride[i];
        for (int k = 0; k < map->inputs; k++)
            map->stride[1 + k][i] = bind->in[k].stride[i];
    }
    map->bytes[0] = (int32_t)weft_dtype_bits(bind->out.dtype) / 8;
    for (int k = 0; k < map->inputs; k++)
        map->bytes[1 + k] = (int32_t)weft_dtype_bits(bind->in[k].dtype) / 8;
    weft_map_prepare(map, bind->workers);
    bind->parts = map->parts;
}

static void run_map(const void *descriptor, struct weft_call *call)
{
    weft_map_run(descriptor, call->out, call->in, call->part, call->parts);
}

static uint32_t cpu_map(const void *descriptor) { return ((const struct weft_map *)descriptor)->kernel->cpu; }

static const char *name_map(const void *descriptor, const struct weft_step *step)
{
    return ((const struct weft_map *)descriptor)->kernel->name;
}

static void account_map(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    const struct weft_map *const map = descriptor;
    ret->overhead_ns = weft_map_overhead_ns(map) + weft_strip_ns(map->kernel) * weft_tensor_elements(&bind->out);
    ret->signature.arithmetic = WEFT_ARITHMETIC_OP;
}

const struct weft_step_kind weft_step_map = {
    .name = "map", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_map), .bind = bind_map,
    .run = run_map, .kernel = name_map, .cpu = cpu_map, .account = account_map};

/* --- reduce ------------------------------------------------------------------------------------------------------- */

static enum weft_reduce_op reduce_op(int opcode)
{
    enum weft_reduce_op op = WEFT_K_SUM;
    const bool folds = weft_pointwise_fold(opcode, &op);
    weft_assert(folds);
    return op;
}

void weft_step_fill_reduce(const struct weft_bind *bind, struct weft_reduce *reduce)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    *reduce = (struct weft_reduce){.op = reduce_op(weft_opcode_of(g, n)), .in_dtype = (uint8_t)bind->in[0].dtype,
                                   .out_dtype = (uint8_t)bind->out.dtype, .cpu = weft_bind_cpu(bind)};
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    const bool keepdims = weft_attr_int(g, n, WEFT_ATTR_keepdims);
    uint32_t next = 0;
    int result = 0;
    for (int i = 0; i < bind->in[0].rank; i++) {
        if (next < axes->count && weft_dim_value(axes->integers[next]) == i) {
            reduce->reduced_extent[reduce->reduced] = bind->in[0].extent[i];
            reduce->in_reduced[reduce->reduced++] = bind->in[0].stride[i];
            next++;
            result += keepdims;
        } else {
            reduce->kept_extent[reduce->kept] = bind->in[0].extent[i];
            reduce->in_kept[reduce->kept] = bind->in[0].stride[i];
            reduce->out_stride[reduce->kept++] = bind->out.stride[result++];
        }
    }
}

static void bind_reduce(struct weft_bind *bind, void *descriptor)
{
    struct weft_reduce *reduce = descriptor;
    weft_step_fill_reduce(bind, reduce);
    weft_reduce_prepare(reduce, bind->workers);
    bind->parts = reduce->parts;
    bind->shared = reduce->shared;
}

enum { EMPTY_VECTORS = 5 }; /* a vector of results in which none has work takes a fifth of a line */

double weft_step_reduce_lines(const struct weft_reduce *reduce, double elements, double results)
{
    int64_t lanes;
    const int64_t columns = weft_reduce_columns(reduce, &lanes);
    if (columns == 0) { /* of each result, one for each point of the axes in front of the last */
        const double line = (double)reduce->reduced_extent[reduce->reduced - 1];
        return line > 0 && elements > results * line ? elements / line : results;
    }
    return columns >= lanes
               ? 0 : elements / (double)columns * (double)(lanes - columns) / (double)lanes / EMPTY_VECTORS;
}

static void account_reduce(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    int64_t lanes;
    *ret = (struct weft_account){
        .count = weft_step_reduce_lines(descriptor, weft_tensor_elements(&bind->in[0]),
                                        weft_tensor_elements(&bind->out)),
        .price = WEFT_PRICE_reduce_line,
        .signature = {.arithmetic = weft_reduce_columns(descriptor, &lanes) > 0 ? WEFT_ARITHMETIC_COLUMNS
                                                                                : WEFT_ARITHMETIC_SUMS,
                      .slices = (uint16_t)((const struct weft_reduce *)descriptor)->slices}};
}

static void run_reduce(const void *descriptor, struct weft_call *call)
{
    weft_reduce_run(descriptor, call->out, call->in[0], call->shared, call->part, call->parts);
}

static uint32_t cpu_reduce(const void *descriptor) { return weft_reduce_cpu(descriptor); }

static const char *name_reduce(const void *descriptor, const struct weft_step *step)
{
    return weft_reduce_name(descriptor);
}

const struct weft_step_kind weft_step_reduce = {
    .name = "reduce", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_reduce), .bind = bind_reduce,
    .run = run_reduce, .kernel = name_reduce, .cpu = cpu_reduce, .account = account_reduce};
