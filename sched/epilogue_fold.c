/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue_fold.c: folds of all pixels of what a convolution's group makes. The contract: epilogue.h.
 *
 *   fuse @conv_add_relu_mean {
 *     %c: f32[1,96,14,14]{-} = conv %x, %w groups=96
 *     %d: f32[1,96,14,14]{-} = add %c, %b
 *     %y: f32[1,96,14,14] = relu %d
 *     %m: f32[1,96,1,1] = mean %y axes=[2 3] keepdims=1
 *   } */
#include "codegen/pointwise.h"
#include "sched/epilogue.h"

uint32_t weft_epilogue_take_fold(const struct weft_graph *g, struct weft_group_fit *fit, uint32_t rest)
{
    enum weft_reduce_op op;
    if (weft_select_kind(weft_opcode_of(g, fit->head)) != &weft_step_conv || rest < 2)
        return rest;
    for (uint32_t i = rest; i-- > 1;) { /* the first node finishes the convolution */
        if (!weft_pointwise_fold(weft_opcode_of(g, fit->rest[i]), &op))
            continue;
        fit->fold = fit->rest[i];
        for (; i + 1 < rest; i++)
            fit->rest[i] = fit->rest[i + 1];
        return rest - 1;
    }
    return rest;
}

/* The axes that pixels have, and those that are folded. */
static void find_axes(const struct weft_members *m, const struct weft_group_fit *fit, uint16_t *ret_pixels,
                      uint16_t *ret_folded)
{
    const struct weft_graph *g = m->graph;
    const uint32_t p = weft_member_place(m, weft_def(g, fit->out));
    const int8_t *const map = m->member[fit->fit.node[p].id]->result;
    const struct weft_attr *const axes = weft_attr_find(g, fit->fold, WEFT_ATTR_axes);
    *ret_pixels = *ret_folded = 0;
    for (int d = 2; d < weft_type_of(g, weft_result(g, fit->head, 0))->rank; d++)
        if (fit->axis[d] >= 0)
            *ret_pixels |= (uint16_t)(1u << fit->axis[d]);
    for (uint32_t i = 0; i < axes->count; i++) {
        const int8_t axis = map[weft_dim_value(axes->integers[i])];
        if (axis >= 0 && fit->fit.axes.of[p][axis] >= 0)
            *ret_folded |= (uint16_t)(1u << fit->fit.axes.of[p][axis]);
    }
}

const char *weft_epilogue_check_fold(const struct weft_members *m, const struct weft_group_fit *fit)
{
    const struct weft_graph *g = m->graph;
    const weft_val folded = weft_result(g, fit->fold, 0);
    bool read = g->value[fit->out.id].returns > 0, waits = false;
    if (!weft_is(weft_operand(g, fit->fold, 0), fit->out))
        return "reduces another value than the one that is stored";
    if (weft_member_place(m, weft_def(g, fit->out)) == UINT32_MAX)
        return "reduces what the contraction makes, of which other nodes make something else";
    for (uint32_t use = g->value[fit->out.id].first_use; use; use = g->slot[use - 1].next) {
        const weft_node n = g->slot[use - 1].node;
        read |= n.id != fit->fold.id && weft_member_place(m, n) == UINT32_MAX;
    }
    for (uint32_t use = g->value[folded.id].first_use; use; use = g->slot[use - 1].next) {
        const weft_node n = g->slot[use - 1].node;
        waits |= n.id == fit->head.id || weft_member_place(m, n) != UINT32_MAX;
    }
    uint16_t pixels, axes;
    find_axes(m, fit, &pixels, &axes);
    return waits                                          ? "is whole when all is done, and is read before"
           : !read                                        ? "reduces results of a contraction that have no other reader"
           : weft_type_of(g, folded)->dtype != WEFT_F32 ? "is of another type than what it reduces"
           : !pixels || axes != pixels                    ? "reduces other axes than all those of pixels" : NULL;
}
