/* SPDX-License-Identifier: Apache-2.0 */
/* lower_blocks_kept.c: blocks that stay. In a plan for kernels of the caller's these read and write blocks, and so do
 * relayouts; only what weft computes between them goes by arrays of blocks, which are views:
 *
 *   %a: f32[1,32,8,8]{0 1/16 2 3 1%16} = conv %x, %w          ! my.conv
 *   %0: f32[1,2,16,8,8]{0 1 3 4 2} = reshape %a                 the same memory
 *   %1: f32[1,2,16,8,8]{0 1 3 4 2} = relu %0
 *   %b: f32[1,32,8,8]{0 1/16 2 3 1%16} = reshape %1             the same memory
 *   %y: f32[1,32,8,8]{0 1/16 2 3 1%16} = conv %b, %v          ! my.conv
 *
 * Where the last block is filled up there is no such view, and values are converted. */
#include "passes/lower_blocks.h"
#include "passes/passes.h"
#include "sched/alias.h"
#include "sched/target.h"

static bool is_filled_up(const struct weft_lowering *l, weft_val v)
{
    const struct weft_type *const type = weft_type_of(l->graph, v);
    const struct weft_type full = weft_blocks_filled(l->graph, type, l->blocks[v.id]);
    return !weft_type_same(type, &full);
}

static weft_val convert(struct weft_lowering *l, weft_val v, const struct weft_layout *layout)
{
    const weft_val converted = weft_build_unary(&l->build, WEFT_OP_relayout, v);
    weft_state_layout(l->graph, converted, layout);
    return converted;
}

static weft_val view(struct weft_lowering *l, weft_val v, const struct weft_type *type,
                     const struct weft_layout *layout)
{
    const weft_val seen = weft_build_reshape(&l->build, v, type);
    weft_state_layout(l->graph, seen, layout);
    return seen;
}

weft_val weft_kept_plain(struct weft_lowering *l, weft_val v)
{
    const struct weft_blocks *const b = l->blocks[v.id];
    return is_filled_up(l, v) ? WEFT_NO_VALUE : view(l, v, &b->type, &b->layout);
}

weft_val weft_kept_whole(struct weft_lowering *l, weft_val v)
{
    const struct weft_layout rows = weft_layout_row_major(weft_type_of(l->graph, v)->rank);
    return convert(l, v, &rows);
}

/* A value that weft computes as an array, in its blocks again. */
static weft_val blocked_of(struct weft_lowering *l, weft_val v)
{
    const struct weft_type type = *weft_type_of(l->graph, v);
    const struct weft_layout layout = weft_layout_of(l->graph, v);
    if (!l->blocked[v.id].id)
        l->blocked[v.id] = l->plain[v.id].id && !is_filled_up(l, v) ? view(l, l->plain[v.id], &type, &layout)
                                                                    : convert(l, weft_lowered_whole(l, v), &layout);
    return l->blocked[v.id];
}

/* A view that has its operand's memory, as an earlier run of the pass builds them. */
static bool is_exact_view(struct weft_graph *g, weft_node n)
{
    if (!weft_is_view(g, n))
        return false;
    const struct weft_layout from = weft_own_layout(g, weft_operand(g, n, 0)), own = weft_own_layout(g,
                                                                                       weft_result(g, n, 0));
    struct weft_layout seen;
    return weft_view_layout(g, n, &from, &seen) &&
           weft_layout_equal(g->dims, &seen, &own, weft_type_of(g, weft_result(g, n, 0)));
}

static const struct weft_blocks *blocks_of(const struct weft_lowering *l, weft_val v)
{
    return v.id < l->values ? l->blocks[v.id] : NULL;
}

bool weft_stays_in_blocks(struct weft_lowering *l, weft_node n)
{
    struct weft_graph *const g = l->graph;
    if (!l->target->planned)
        return false;
    const weft_val first = weft_result(g, n, 0);
    const bool is_relayout = weft_opcode_of(g, n) == WEFT_OP_relayout;
    const weft_val read = is_relayout ? weft_operand(g, n, 0) : WEFT_NO_VALUE;
    const bool reads_kept = is_relayout && (!blocks_of(l, read) || l->kept[read.id]);
    if (!weft_target_kernel_noted(l->target, g, n) && !(is_relayout && (blocks_of(l, first) || reads_kept)) &&
        !is_exact_view(g, n))
        return false;
    l->build.before = n;
    for (uint32_t i = 0; i < g->node[n.id].operands; i++) {
        const weft_val v = weft_operand(g, n, i);
        if (blocks_of(l, v) && !l->kept[v.id])
            weft_replace_operand(g, n, i, blocked_of(l, v));
    }
    for (uint32_t i = 0; i < g->node[n.id].results; i++) {
        const weft_val v = weft_result(g, n, i);
        if (blocks_of(l, v))
            l->kept[v.id] = true;
    }
    if (is_relayout && blocks_of(l, first) && !blocks_of(l, read))
        l->whole[first.id] = read;
    return true;
}
