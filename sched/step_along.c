/* SPDX-License-Identifier: Apache-2.0 */
/* step_along.c: steps along one axis: arguments of extremes, scans, orders. */
#include "kernels/along/scan.h"
#include "sched/step.h"

#include <string.h>

enum weft_along_op weft_step_along_op(int opcode)
{
    switch (opcode) {
    case WEFT_OP_arg_max: return WEFT_K_ARG_MAX;
    case WEFT_OP_arg_min: return WEFT_K_ARG_MIN;
    case WEFT_OP_cumsum: return WEFT_K_CUMSUM;
    case WEFT_OP_cumprod: return WEFT_K_CUMPROD;
    case WEFT_OP_cummax: return WEFT_K_CUMMAX;
    case WEFT_OP_cummin: return WEFT_K_CUMMIN;
    default: weft_assert(opcode == WEFT_OP_sort || opcode == WEFT_OP_top_k); return WEFT_K_SORT;
    }
}

/* The kernel takes the dtype, and indices fit its 32 bits. */
bool weft_step_is_along(const struct weft_graph *g, weft_node n)
{
    const struct weft_type *x = weft_type_of(g, weft_operand(g, n, 0));
    const enum weft_along_op op = weft_step_along_op(weft_opcode_of(g, n));
    int64_t low, high = 0;
    weft_dim_range(g->dims, x->extent[weft_attr_int(g, n, WEFT_ATTR_axis)], &low, &high);
    return weft_along_supports(op, x->dtype) && (op != WEFT_K_SORT || high <= UINT32_MAX);
}

static void read_flags(const struct weft_graph *g, weft_node n, struct weft_along *along)
{
    const int op = weft_opcode_of(g, n);
    if (along->op <= WEFT_K_ARG_MIN)
        along->last = strcmp(weft_attr_word(g, n, WEFT_ATTR_ties), "last") == 0;
    else if (along->op < WEFT_K_SORT) {
        along->exclusive = weft_attr_int(g, n, WEFT_ATTR_exclusive) != 0;
        along->reverse = weft_attr_int(g, n, WEFT_ATTR_reverse) != 0;
    } else {
        along->descending = weft_attr_int(g, n, op == WEFT_OP_sort ? WEFT_ATTR_descending : WEFT_ATTR_largest) != 0;
        along->by_index = op == WEFT_OP_top_k && !weft_attr_int(g, n, WEFT_ATTR_sorted);
    }
}

static void bind_along(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *in = &bind->in[0], *out = &bind->out;
    struct weft_along *along = descriptor;
    *along = (struct weft_along){.op = weft_step_along_op(weft_opcode_of(g, n)), .dtype = (uint8_t)in->dtype,
                                 .cpu = weft_bind_cpu(bind), .cache = bind->target->l3};
    read_flags(g, n, along);
    struct weft_tensor index = {0};
    if (along->op == WEFT_K_SORT)
        index = weft_bind_tensor(bind, weft_result(g, n, 1));
    const int axis = (int)weft_attr_int(g, n, WEFT_ATTR_axis);
    along->n = in->extent[axis];
    along->in_step = in->stride[axis];
    along->k = along->op == WEFT_K_SORT ? out->extent[axis] : 1;
    along->k = along->k < along->n ? along->k : along->n;
    along->out_step = out->rank == in->rank ? out->stride[axis] : 0;
    along->index_step = index.stride[axis];
    for (int i = 0, result = 0; i < in->rank; i++) {
        if (i != axis) {
            along->extent[along->rank] = in->extent[i];
            along->in_stride[along->rank] = in->stride[i];
            along->out_stride[along->rank] = out->stride[result];
            along->index_stride[along->rank++] = index.stride[i];
        }
        result += i != axis || out->rank == in->rank;
    }
    along->split = along->op >= WEFT_K_CUMSUM && along->op < WEFT_K_SORT;
    weft_along_prepare(along, bind->workers);
    bind->parts = along->parts;
    bind->scratch = along->scratch;
    bind->shared = along->shared;
}

static void run_along(const void *descriptor, struct weft_call *call)
{
    const struct weft_along *along = descriptor;
    int64_t *const index = along->op == WEFT_K_SORT ? call->tensor(call, call->step->out[1]).data : NULL;
    weft_along_run(along, call->out, index, call->in[0], along->shared ? call->shared : call->scratch, call->part,
                   call->parts);
}

static uint32_t cpu_along(const void *descriptor) { return weft_along_cpu(descriptor); }

static const char *name_along(const void *descriptor, const struct weft_step *step)
{
    return weft_along_name(descriptor);
}

static void account_along(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    (void)bind;
    *ret = (struct weft_account){.overhead_ns = weft_along_ns(descriptor),
                                 .signature = {.arithmetic = WEFT_ARITHMETIC_SUMS}};
}

const struct weft_step_kind weft_step_along = {
    .name = "along", .arithmetic = WEFT_ARITHMETIC_SUMS, .traits = WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct weft_along), .bind = bind_along,
    .run = run_along, .kernel = name_along, .cpu = cpu_along, .account = account_along};
