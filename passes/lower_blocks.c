/* SPDX-License-Identifier: Apache-2.0 */
/* lower_blocks: values with split axes become plain arrays with an axis more for each split.
 *
 *   %y: f32[1,32,8,8]{0 1/16 2 3 1%16} = relu %x     →     %y: f32[1,2,16,8,8]{0 1 3 4 2} = relu %x
 *
 * Frameworks whose kernels are blocked have their layouts decided by propagate_memory_format; kernels of weft's walk
 * strides, of which a split axis has none. So what stands between such kernels is run on the array of blocks: ops on
 * elements as they are, windows with the blocks counted as images (each is an image of 16 channels, channels-last),
 * concats by whole blocks, sums over both axes of a split one. The walk asks for an operand in the form that it needs,
 * `plain` (the array of blocks) or `whole` (as it was, not split), and makes the one from the other where it has to,
 * once for each value: an op without a rule reads and writes whole values.
 *
 * Where blocks do not divide an axis, the last is filled up. Nobody may see with what: so it is NaN (of integers, an
 * odd number) from the conversion on, always and not in a mode for tests, and rules that would add it up are not used.
 *
 * A kernel that was chosen for blocks is dropped, and a group with such values opened, with a remark; so is it said of
 * what is not stored in blocks in the end, since nothing can write or nobody reads it so.
 * Plans need this, so compiling runs it once more where the pipeline did not come to it (NO_PASSES, WEFT_STOP_AFTER). A
 * framework that runs graphs by itself does not: where the target has kernels of the caller's, blocks stay. In a plan
 * for such a target they stay between its kernels (lower_blocks_kept.c).
 * Needs: nothing. Not done: results and parameters in blocks, which no tensor can state (what becomes a `mut` parameter
 * lies as the graph says until it is copied there); splits of axes that are not constant; more than 8 axes with the
 * splits. */
#include "passes/lower_blocks.h"
#include "passes/passes.h"
#include "sched/alias.h"

#include <math.h>
#include <string.h>

static const char who[] = "lower_blocks";

enum { FILLING = 77 }; /* of integers */

static weft_val fill_up(struct weft_lowering *l, weft_val v, const struct weft_type *full)
{
    struct weft_graph *g = l->graph;
    const struct weft_type type = *weft_type_of(g, v), scalar = {.dtype = type.dtype};
    weft_dim pad[2 * WEFT_MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        pad[i] = weft_dim_of(0);
        pad[type.rank + i] = weft_dim_sub(g->dims, full->extent[i], type.extent[i]);
    }
    if (weft_type_same(&type, full))
        return v;
    const weft_val both[] = {v, weft_build_splat(&l->build, &scalar, weft_dtype_is_float(type.dtype) ? NAN : FILLING)};
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, 2u * type.rank, pad);
    return weft_build(&l->build, WEFT_OP_pad, 2, both, 1, &attr, NULL);
}

static weft_val reshape(struct weft_lowering *l, weft_val v, const struct weft_type *type)
{
    return weft_type_same(weft_type_of(l->graph, v), type) ? v : weft_build_reshape(&l->build, v, type);
}

static weft_val split(struct weft_lowering *l, weft_val v, const struct weft_blocks *b)
{
    const struct weft_type full = weft_blocks_filled(l->graph, weft_type_of(l->graph, v), b);
    return reshape(l, fill_up(l, v, &full), &b->type);
}

static weft_val unite(struct weft_lowering *l, weft_val v, const struct weft_type *type, const struct weft_blocks *b)
{
    struct weft_graph *g = l->graph;
    const struct weft_type full = weft_blocks_filled(g, type, b);
    const weft_val whole = reshape(l, v, &full);
    if (weft_type_same(&full, type))
        return whole;
    weft_dim start[WEFT_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        start[i] = weft_dim_of(0);
    const struct weft_attr attr[] = {weft_attr_of_dims(WEFT_ATTR_start, type->rank, start),
                                     weft_attr_of_dims(WEFT_ATTR_end, type->rank, type->extent)};
    return weft_build(&l->build, WEFT_OP_slice, 1, &whole, 2, attr, NULL);
}

/* --- operands in the form that a rule needs ----------------------------------------------------------------------- */

static const struct weft_blocks *blocks_of(const struct weft_lowering *l, weft_val v)
{
    return v.id < l->values ? l->blocks[v.id] : NULL;
}

weft_val weft_lowered_whole(struct weft_lowering *l, weft_val v)
{
    const struct weft_blocks *b = blocks_of(l, v);
    if (b && !l->whole[v.id].id && l->kept[v.id])
        l->whole[v.id] = weft_kept_whole(l, v);
    if (b && !l->whole[v.id].id) {
        const struct weft_type type = *weft_type_of(l->graph, v);
        l->whole[v.id] = unite(l, l->plain[v.id], &type, b);
    }
    return b ? l->whole[v.id] : v;
}

static bool same_blocks(const struct weft_blocks *a, const struct weft_blocks *b)
{
    return weft_type_same(&a->type, &b->type) && memcmp(a->div, b->div, sizeof a->div) == 0 &&
           memcmp(a->first, b->first, sizeof a->first) == 0;
}

/* As an array of these blocks, which are those of the value itself if it has any: else it is converted. */
static weft_val plain_of(struct weft_lowering *l, weft_val v, const struct weft_blocks *b)
{
    const struct weft_blocks *own = blocks_of(l, v);
    if (own && same_blocks(own, b) && !l->plain[v.id].id && l->kept[v.id])
        l->plain[v.id] = weft_kept_plain(l, v);
    if (own && same_blocks(own, b) && l->plain[v.id].id)
        return l->plain[v.id];
    const weft_val array = weft_build_unary(&l->build, WEFT_OP_relayout, split(l, weft_lowered_whole(l, v), b));
    weft_set_value_layout(l->graph, array, &b->layout);
    if (own && same_blocks(own, b))
        l->plain[v.id] = array;
    return array;
}

/* --- rules: the node's result as an array of its blocks, or none -------------------------------------------------- */

static weft_val rebuild(struct weft_lowering *l, weft_node n, unsigned operands, const weft_val *operand,
                        const struct weft_type *stated)
{
    const struct weft_node_info *info = &l->graph->node[n.id];
    const bool is_stated = weft_ops[info->op].traits & WEFT_STATED;
    return weft_build(&l->build, info->op, operands, operand, info->attrs, info->attr, is_stated ? stated : NULL);
}

/* The operand is split where it runs along a split axis; it stays small, and a view repeats it. */
static weft_val on_broadcast(struct weft_lowering *l, weft_node n, const struct weft_blocks *b)
{
    struct weft_graph *g = l->graph;
    const weft_val x = weft_lowered_whole(l, weft_operand(g, n, 0));
    const struct weft_type type = *weft_type_of(g, x), to = *weft_type_of(g, weft_result(g, n, 0));
    struct weft_blocks small = {.type = {.dtype = type.dtype}};
    int axis[WEFT_MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        const int dim = (int)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, (unsigned)i));
        const bool follows = weft_dim_same(type.extent[i], to.extent[dim]);
        small.first[i] = small.type.rank;
        for (int k = b->first[dim]; k < (follows ? b->first[dim + 1] : b->first[dim] + 1); k++) {
            axis[small.type.rank] = k;
            small.type.extent[small.type.rank++] = follows ? b->type.extent[k] : type.extent[i];
        }
    }
    small.first[type.rank] = small.type.rank;
    return weft_build_bcast(&l->build, split(l, x, &small), &b->type, axis);
}

/* What is repeated is no array of its own: a view repeats its blocks too. */
static weft_val on_elements(struct weft_lowering *l, weft_node n, const struct weft_blocks *b)
{
    const unsigned operands = l->graph->node[n.id].operands;
    weft_val *operand = weft_new(&l->graph->root->scratch, weft_val, operands);
    for (unsigned i = 0; i < operands; i++) {
        const weft_val v = weft_operand(l->graph, n, i);
        struct weft_blocks here = *b;
        here.type.dtype = weft_type_of(l->graph, v)->dtype;
        operand[i] = !blocks_of(l, v) && weft_def_opcode(l->graph, v) == WEFT_OP_bcast
                         ? on_broadcast(l, weft_def(l->graph, v), &here) : plain_of(l, v, &here);
    }
    return rebuild(l, n, operands, operand, &b->type);
}

/* Along a split axis only if each part but the last is known to be whole blocks. */
static weft_val on_concat(struct weft_lowering *l, weft_node n, const struct weft_blocks *b)
{
    struct weft_graph *g = l->graph;
    const unsigned operands = g->node[n.id].operands;
    const int axis = (int)weft_attr_int(g, n, WEFT_ATTR_axis), at = b->first[axis];
    const int64_t block = b->div[at];
    weft_val *part = weft_new(&g->root->scratch, weft_val, operands);
    for (unsigned i = 0; i + 1 < operands && weft_blocks_split(b, axis); i++) {
        const weft_dim extent = weft_type_of(g, weft_operand(g, n, i))->extent[axis];
        if (!weft_dim_is_constant(extent) || weft_dim_value(extent) % block != 0)
            return WEFT_NO_VALUE;
    }
    for (unsigned i = 0; i < operands; i++) {
        const weft_val v = weft_operand(g, n, i);
        struct weft_blocks here = *b;
        here.type.extent[at] =
            weft_dim_ceil_div(g->dims, weft_type_of(g, v)->extent[axis],
                              weft_dim_of(weft_blocks_split(b, axis) ? block : 1));
        part[i] = plain_of(l, v, &here);
    }
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, at);
    return weft_build(&l->build, WEFT_OP_concat, operands, part, 1, &attr, NULL);
}

/* The layout of the same memory as an array of that type; false where an axis of it would be split. */
static bool lies_as(struct weft_graph *g, const struct weft_blocks *b, const struct weft_type *type,
                    struct weft_layout *ret)
{
    weft_dim stride[WEFT_MAX_RANK];
    return weft_layout_reshape(g->dims, &b->layout, &b->type, type, ret) &&
           weft_layout_logical_strides(g->dims, ret, type, stride);
}

/* Each block is an image of its channels, if images follow each other: not where all first blocks come first. */
static weft_val on_windows(struct weft_lowering *l, weft_node n, const struct weft_blocks *b)
{
    struct weft_graph *g = l->graph;
    const struct weft_blocks *from = blocks_of(l, weft_operand(g, n, 0));
    if (!from || b->type.rank != weft_type_of(g, weft_result(g, n, 0))->rank + 1 || b->first[2] - b->first[1] != 2 ||
        from->type.rank != b->type.rank || from->first[2] - from->first[1] != 2 || from->div[1] != b->div[1])
        return WEFT_NO_VALUE;
    struct weft_type images = from->type, results = b->type;
    images.rank = results.rank = (uint8_t)(b->type.rank - 1);
    images.extent[0] = results.extent[0] = weft_dim_mul(g->dims, b->type.extent[0], b->type.extent[1]);
    for (int i = 1; i < images.rank; i++) {
        images.extent[i] = from->type.extent[i + 1];
        results.extent[i] = b->type.extent[i + 1];
    }
    struct weft_layout read, written;
    if (!lies_as(g, from, &images, &read) || !lies_as(g, b, &results, &written))
        return WEFT_NO_VALUE;
    const weft_val x = reshape(l, plain_of(l, weft_operand(g, n, 0), from), &images);
    weft_set_value_layout(l->graph, x, &read);
    const weft_val y = rebuild(l, n, 1, &x, NULL);
    weft_set_value_layout(l->graph, y, &written);
    return reshape(l, y, &b->type);
}

static weft_val on_conversion(struct weft_lowering *l, weft_node n, const struct weft_blocks *b)
{
    return plain_of(l, weft_operand(l->graph, n, 0), b);
}

static weft_val find_plain(struct weft_lowering *l, weft_node n, const struct weft_blocks *b)
{
    static weft_val (*const rules[WEFT_OP_COUNT])(struct weft_lowering *, weft_node, const struct weft_blocks *) = {
#define BLOCKS(op, rule) [WEFT_OP_##op] = on_##rule,
#include "passes/blocks.def"
#undef BLOCKS
    };
    weft_val (*const rule)(struct weft_lowering *, weft_node, const struct weft_blocks *) =
        weft_op_of(l->graph, n)->traits & WEFT_ELEMENTWISE ? on_elements : rules[weft_opcode_of(l->graph, n)];
    return rule ? rule(l, n, b) : WEFT_NO_VALUE;
}

/* --- rules: the node's result, not split, or none ----------------------------------------------------------------- */

/* The attributes with the axes of the array in the place of the value's; false if one of them is filled up. */
static bool reduced_axes(struct weft_lowering *l, weft_node n, const struct weft_blocks *b, struct weft_attr *ret,
                         bool *ret_goes)
{
    struct weft_graph *g = l->graph;
    const struct weft_node_info *info = &g->node[n.id];
    const struct weft_type type = *weft_type_of(g, weft_operand(g, n, 0)), full = weft_blocks_filled(g, &type, b);
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    int64_t reduced[WEFT_MAX_RANK];
    unsigned count = 0;
    for (uint32_t i = 0; i < axes->count; i++) {
        const int axis = (int)weft_dim_value(axes->integers[i]);
        if (!weft_dim_same(full.extent[axis], type.extent[axis]))
            return false;
        ret_goes[axis] = true;
        for (int k = b->first[axis]; k < b->first[axis + 1]; k++)
            reduced[count++] = k;
    }
    for (uint32_t i = 0; i < info->attrs; i++)
        ret[i] = info->attr[i].key == WEFT_ATTR_axes ? weft_attr_of_ints(g, WEFT_ATTR_axes, count, reduced)
                                                     : info->attr[i];
    return true;
}

/* Sums of split axes are sums of both, unless that would add up what fills the last block. */
static weft_val on_reduction(struct weft_lowering *l, weft_node n)
{
    struct weft_graph *g = l->graph;
    const weft_val x = weft_operand(g, n, 0);
    const struct weft_blocks *b = blocks_of(l, x);
    const struct weft_type type = *weft_type_of(g, x), result = *weft_type_of(g, weft_result(g, n, 0));
    struct weft_attr *attr = weft_new(&g->root->scratch, struct weft_attr, g->node[n.id].attrs);
    bool goes[WEFT_MAX_RANK] = {false};
    if (!b || !weft_attr_find(g, n, WEFT_ATTR_axes) || !reduced_axes(l, n, b, attr, goes))
        return WEFT_NO_VALUE;
    const weft_val array = plain_of(l, x, b);
    const weft_val y = weft_build(&l->build, weft_opcode_of(g, n), 1, &array, g->node[n.id].attrs, attr, NULL);
    struct weft_blocks rest = {.type = *weft_type_of(g, y)};
    int at = 0, to = 0;
    for (int i = 0; i < type.rank; i++) {
        if (goes[i] && !weft_attr_int(g, n, WEFT_ATTR_keepdims))
            continue;
        rest.first[to++] = at;
        at += b->first[i + 1] - b->first[i];
    }
    rest.first[to] = at;
    return unite(l, y, &result, &rest);
}

/* Out of blocks the array is put in the order of the result, which then is a view of it. Where the last block is filled
 * up, it would be a part with gaps. */
static weft_val on_relayout(struct weft_lowering *l, weft_node n)
{
    struct weft_graph *g = l->graph;
    const weft_val x = weft_operand(g, n, 0), y = weft_result(g, n, 0);
    const struct weft_blocks *b = blocks_of(l, x);
    const struct weft_type type = *weft_type_of(g, x), full = b ? weft_blocks_filled(g, &type, b) : type;
    const struct weft_layout to = weft_own_layout(g, y);
    if (b && !l->plain[x.id].id && weft_layout_is_row_major(&to) && !to.align && !g->value[y.id].returns)
        return weft_lowered_whole(l, x); /* nothing could write it in blocks */
    if (!b || !l->plain[x.id].id || !to.dense || to.axes != type.rank || !weft_type_same(&full, &type))
        return WEFT_NO_VALUE;
    int order[WEFT_MAX_RANK], axes = 0;
    for (int i = 0; i < to.axes; i++)
        for (int k = b->first[to.axis[i].axis]; k < b->first[to.axis[i].axis + 1]; k++)
            order[axes++] = k;
    const struct weft_layout array = weft_layout_order(axes, order);
    const weft_val plain = plain_of(l, x, b), turned = weft_build_unary(&l->build, WEFT_OP_relayout, plain);
    weft_set_value_layout(l->graph, turned, &array);
    for (uint32_t i = 0; i < g->conversions; i++)
        if (weft_is(g->conversion[i].to, y)) {
            g->conversion[i].from = plain;
            g->conversion[i].to = turned;
        }
    return reshape(l, turned, &type);
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

static bool touches(const struct weft_lowering *l, weft_node n)
{
    const struct weft_graph *g = l->graph;
    for (uint32_t i = 0; i < g->node[n.id].operands; i++)
        if (blocks_of(l, weft_operand(g, n, i)))
            return true;
    for (uint32_t i = 0; i < g->node[n.id].results; i++)
        if (blocks_of(l, weft_result(g, n, i)))
            return true;
    return false;
}

/* Without a rule: the node reads and writes values that are not split. */
static void lower_whole(struct weft_lowering *l, weft_node n)
{
    struct weft_graph *g = l->graph;
    for (uint32_t i = 0; i < g->node[n.id].operands; i++) {
        const weft_val v = weft_operand(g, n, i), whole = weft_lowered_whole(l, v);
        if (!weft_is(v, whole))
            weft_replace_operand(g, n, i, whole);
    }
    for (uint32_t i = 0; i < g->node[n.id].results; i++) {
        const weft_val v = weft_result(g, n, i);
        if (!blocks_of(l, v))
            continue;
        weft_add_remark(g, who, v, "undone", "it is not stored in blocks: %s has no way to write these",
                        weft_op_of(g, n)->name);
        g->value[v.id].layout = 0;
        l->whole[v.id] = v;
    }
}

/* `whole` stands for v. What was there before keeps its layout: others state it, as the caller does of a parameter. */
static void put_in_place(struct weft_lowering *l, weft_val v, weft_val whole)
{
    struct weft_graph *g = l->graph;
    if (whole.id < l->values && g->value[whole.id].layout != g->value[v.id].layout)
        whole = weft_build_unary(&l->build, WEFT_OP_relayout, whole);
    if (whole.id >= l->values)
        weft_take_layout(g, whole, v);
    weft_replace_uses(g, v, whole);
}

/* Elements below a byte are stored row-major only, so that no operand of such ones can be converted. */
static bool can_split_operands(const struct weft_graph *g, weft_node n)
{
    for (uint32_t i = 0; i < g->node[n.id].operands; i++)
        if (weft_dtype_bits(weft_type_of(g, weft_operand(g, n, i))->dtype) < 8)
            return false;
    return true;
}

/* True if others stand for the node now. */
static bool lower_node(struct weft_lowering *l, weft_node n)
{
    struct weft_graph *g = l->graph;
    const weft_val v = weft_result(g, n, 0);
    const struct weft_blocks *b = blocks_of(l, v);
    l->build.before = n;
    if (weft_opcode_of(g, n) == WEFT_OP_relayout && b && !blocks_of(l, weft_operand(g, n, 0))) {
        l->whole[v.id] = weft_operand(g, n, 0); /* split where somebody reads it so */
        return true;
    }
    const bool can_split = b && g->node[n.id].results == 1 && can_split_operands(g, n);
    const weft_val plain = can_split ? find_plain(l, n, b) : WEFT_NO_VALUE;
    if (plain.id) {
        weft_set_value_layout(l->graph, plain, &b->layout);
        l->plain[v.id] = plain;
        g->value[v.id].heir = plain;
        if (g->value[v.id].name && !g->value[plain.id].name)
            weft_move_name(g, v, plain);
        return true;
    }
    const bool is_reduction = weft_op_of(g, n)->traits & WEFT_REDUCTION && g->node[n.id].results == 1;
    const weft_val whole = is_reduction                                 ? on_reduction(l, n)
                           : weft_opcode_of(g, n) == WEFT_OP_relayout && !b ? on_relayout(l, n)
                                                                        : WEFT_NO_VALUE;
    if (!whole.id) {
        lower_whole(l, n);
        return false;
    }
    if (b) {
        l->whole[v.id] = whole;
    } else {
        put_in_place(l, v, whole);
    }
    return true;
}

/* Is it returned in its own layout? What becomes a `mut` parameter is returned in the parameter's. */
static bool is_promised(const struct weft_graph *g, weft_val v)
{
    bool promised = false;
    for (uint32_t slot = g->value[v.id].first_return; slot && !promised; slot = g->ret[slot - 1].next)
        promised = !g->ret[slot - 1].mut.id;
    return promised;
}

/* Nodes from number `first` on were made of this one. */
static void say_origin(struct weft_graph *g, uint32_t first, weft_node from)
{
    for (uint32_t id = first; id < g->nodes; id++) {
        g->node[id].name = g->node[from.id].name;
        g->node[id].line = g->node[from.id].line;
    }
}

/* New values of `mut` parameters, behind all nodes. */
static void return_whole(struct weft_lowering *l)
{
    l->build.before = WEFT_NO_NODE;
    for (uint32_t i = 0; i < l->graph->returns; i++) {
        const weft_val v = l->graph->ret[i].value;
        const bool lowered = blocks_of(l, v) && (l->kept[v.id] || l->plain[v.id].id || l->whole[v.id].id);
        const uint32_t first = l->graph->nodes;
        const weft_val whole = lowered ? weft_lowered_whole(l, v) : v;
        if (!weft_is(whole, v))
            weft_replace_return(l->graph, i, whole);
        say_origin(l->graph, first, weft_def(l->graph, v));
    }
}

/* Parameters and results of the graph cannot be split: whoever compiles says so. */
static bool find_all(struct weft_lowering *l)
{
    struct weft_graph *g = l->graph;
    bool any = false;
    for (uint32_t v = 1; v < g->values; v++) {
        const struct weft_value *value = &g->value[v];
        struct weft_blocks blocks;
        if (!value->layout || value->is_param || !value->def.id || is_promised(g, (weft_val){.id = v}) ||
            !weft_blocks_find(g, (weft_val){.id = v}, &blocks))
            continue;
        l->blocks[v] = weft_new(&g->root->scratch, struct weft_blocks, 1);
        *l->blocks[v] = blocks;
        any = true;
    }
    return any;
}

bool weft_pass_lower_blocks(struct weft_graph *graph, const struct weft_target *target)
{
    if ((target->kernel && !target->planned) || !weft_has_blocks(graph))
        return false;
    struct weft_arena *scratch = &graph->root->scratch;
    struct weft_lowering l = {.graph = graph, .target = target, .build = {.graph = graph}, .values = graph->values,
                         .kept = weft_new(scratch, bool, graph->values),
                         .blocked = weft_new(scratch, weft_val, graph->values),
                         .plain = weft_new(scratch, weft_val, graph->values),
                         .whole = weft_new(scratch, weft_val, graph->values),
                         .blocks = weft_new(scratch, struct weft_blocks *, graph->values),
                         .done = weft_new(scratch, weft_node, graph->nodes)};
    bool changed = false;
    if (!find_all(&l))
        return false;
    weft_foreach_node(graph, n) {
        if (!touches(&l, n) || weft_stays_in_blocks(&l, n))
            continue;
        if (!weft_permit(graph, who, weft_result(graph, n, 0)))
            break;
        weft_undo_decision(graph, who, n, "blocks, which plans do not run");
        const uint32_t first = graph->nodes;
        if (lower_node(&l, n))
            l.done[l.count++] = n;
        say_origin(graph, first, n);
        changed = true;
    }
    return_whole(&l);
    while (l.count > 0) {
        const weft_val v = weft_result(graph, l.done[--l.count], 0);
        if (blocks_of(&l, v) && !l.plain[v.id].id)
            weft_add_remark(graph, who, v, "undone", "it is not stored in blocks: no reader uses that layout");
        weft_erase_unused(graph, l.done[l.count]);
    }
    return changed;
}
