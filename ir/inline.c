/* SPDX-License-Identifier: Apache-2.0 */
/* inline.c: the nodes of one graph copied into another, in front of a node there.
 *
 *   graph @small(%a, %b) {         %p = neg %x          %p = neg %x
 *     %s = mul %a, %b              %y = sub %p, %q  →   %s = mul %p, %q
 *     return %s                                         %y = sub %p, %q      for arguments %p, %q in front of %y
 *   }
 *
 * Both graphs have tables of sizes and of layouts of their own, so each extent is looked up, or read from its text, and
 * each layout interned again. Weights are shared. Why not copy.c: that makes a graph, whose tables it copies whole. */
#include "ir/ir.h"

#include <string.h>

struct inlining {
    struct weft_graph *to;
    const struct weft_graph *from;
    struct weft_arena *arena;   /* of what is needed on the way */
    weft_val *value;            /* old to new */
    const char *why;
};

/* --- sizes and layouts -------------------------------------------------------------------------------------------- */

static weft_dim find_dim(struct inlining *in, weft_dim dim)
{
    if (weft_dim_exists(in->to->dims, dim))
        return dim;
    struct weft_text text = {.arena = in->arena};
    weft_dim found = weft_dim_of(0);
    const char *message = NULL;
    weft_dim_print(in->from->dims, dim, &text);
    const char *cursor = text.data;
    if (!weft_dim_parse(in->to->dims, &cursor, text.data + text.length, &found, &message))
        in->why = weft_arena_format(in->arena, "size %s: %s", text.data, message);
    return found;
}

static struct weft_type find_type(struct inlining *in, const struct weft_type *type)
{
    struct weft_type found = *type;
    for (int i = 0; i < type->rank; i++)
        found.extent[i] = find_dim(in, type->extent[i]);
    return found;
}

static void set_layout(struct inlining *in, weft_val from, weft_val to)
{
    const struct weft_value *const old = &in->from->value[from.id];
    struct weft_layout layout = weft_layout_of(in->from, from);
    layout.offset = find_dim(in, layout.offset);
    for (int i = 0; i < layout.axes; i++)
        layout.stride[i] = find_dim(in, layout.stride[i]);
    if (old->layout)
        in->to->value[to.id].layout = weft_intern_layout(in->to, &layout, weft_type_of(in->to, to));
    in->to->value[to.id].stated = old->stated;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* Can all sizes be said in the other graph? Those of layouts follow from types, or were there. */
static void check_node(struct inlining *in, weft_node n)
{
    const struct weft_node_info *const info = &in->from->node[n.id];
    if (info->group || info->plan)
        in->why = "it has groups or kernels";
    for (unsigned i = 0; i < info->results; i++)
        find_type(in, &in->from->value[info->first_result + i].type);
    for (unsigned i = 0; i < info->attrs; i++) {
        const struct weft_attr *const attr = &info->attr[i];
        if (attr->kind == WEFT_ATTR_GRAPH)
            in->why = "it has bodies";
        else if (attr->kind == WEFT_ATTR_INT)
            find_dim(in, attr->integer);
        for (uint32_t k = 0; attr->kind == WEFT_ATTR_INTS && k < attr->count; k++)
            find_dim(in, attr->integers[k]);
    }
}

static struct weft_attr *copy_attrs(struct inlining *in, const struct weft_node_info *info)
{
    struct weft_attr *const attrs = weft_new(in->arena, struct weft_attr, info->attrs);
    for (unsigned i = 0; i < info->attrs; i++) {
        attrs[i] = info->attr[i];
        if (attrs[i].kind == WEFT_ATTR_INT)
            attrs[i].integer = find_dim(in, attrs[i].integer);
        if (attrs[i].kind != WEFT_ATTR_INTS)
            continue;
        weft_dim *const integers = weft_new(in->arena, weft_dim, attrs[i].count);
        for (uint32_t k = 0; k < attrs[i].count; k++)
            integers[k] = find_dim(in, attrs[i].integers[k]);
        attrs[i].integers = integers;
    }
    return attrs;
}

static void copy_node(struct inlining *in, weft_node n, weft_node before)
{
    const struct weft_node_info *const info = &in->from->node[n.id];
    const bool is_custom = info->op == WEFT_OP_custom;
    weft_val *const operand = weft_new(in->arena, weft_val, info->operands);
    struct weft_type *const type = weft_new(in->arena, struct weft_type, info->results);
    for (unsigned i = 0; i < info->operands; i++)
        operand[i] = in->value[weft_operand(in->from, n, i).id];
    for (unsigned i = 0; i < info->results; i++)
        type[i] = find_type(in, &in->from->value[info->first_result + i].type);
    if (info->constant && info->constant->kind == WEFT_CONST_BLOB)
        weft_graph_hold(in->to, weft_blob_hold(info->constant->blob));
    const weft_node node = weft_add_node(
        in->to, &(struct weft_node_spec){.op = info->op,
                                         .operand = operand,
                                         .operands = info->operands,
                                         .attr = copy_attrs(in, info),
                                         .attrs = info->attrs,
                                         .stated = info->results ? type : NULL,
                                         .results = is_custom ? info->results : 0,
                                         .constant = info->constant,
                                         .before = before,
                                         .name = info->name,
                                         .place = {.line = info->line}});
    weft_assert(node.id);
    for (unsigned i = 0; i < info->results; i++) {
        const weft_val old = weft_result(in->from, n, i), new = weft_result(in->to, node, i);
        const char *const name = in->from->value[old.id].name;
        in->value[old.id] = new;
        set_layout(in, old, new);
        if (name)
            weft_set_name(in->to, new, name, strlen(name));
    }
    for (unsigned i = 0; i < info->operands; i++)
        weft_show_value(in->to, operand[i], /* group= */ 0);
}

const char *weft_graph_inline(struct weft_graph *to, weft_node before, const struct weft_graph *from,
                              const weft_val *argument, weft_val *ret_result)
{
    struct weft_arena *const arena = &to->root->scratch;
    struct inlining in = {.to = to, .from = from, .arena = arena, .value = weft_new(arena, weft_val, from->values)};
    for (uint32_t i = 0; i < from->params; i++)
        in.value[from->param[i].id] = argument[i];
    weft_foreach_node(from, n)
        check_node(&in, n);
    if (in.why)
        return in.why;
    weft_foreach_node(from, n)
        copy_node(&in, n, before);
    for (uint32_t i = 0; i < from->returns; i++)
        ret_result[i] = in.value[from->ret[i].value.id];
    return NULL;
}
