/* SPDX-License-Identifier: Apache-2.0 */
/* build.c: the one gate through which nodes come to be, and the cursor builder that passes use.
 *
 * A node that got through has legal operands, checked attributes in the order of its op's row without those that equal
 * their defaults, inferred result types, and the symbolic elements of small integer results. So no pass checks any of
 * this again. */
#include "ir/custom.h"
#include "ir/infer.h"
#include "ir/values.h"

#include <string.h>

/* --- attributes --------------------------------------------------------------------------------------------------- */

static bool is_default(const struct weft_attr_spec *spec, const struct weft_attr *attr)
{
    if (!spec->has_default)
        return attr->kind == WEFT_ATTR_VALUES && attr->count == 0;
    switch ((enum weft_attr_kind)attr->kind) {
    case WEFT_ATTR_INT:
        return weft_dim_is(attr->integer, (int64_t)spec->fallback);
    case WEFT_ATTR_REAL:
        return attr->real == spec->fallback;
    case WEFT_ATTR_WORD:
        return strcmp(attr->word, spec->word) == 0;
    case WEFT_ATTR_INTS:
        for (uint32_t i = 0; i < attr->count; i++)
            if (!weft_dim_is(attr->integers[i], (int64_t)spec->fallback))
                return false;
        return true;
    default:
        return false;
    }
}

static struct weft_attr copy_attr(struct weft_arena *arena, const struct weft_attr *attr)
{
    struct weft_attr copy = *attr;
    if (attr->kind == WEFT_ATTR_INTS) {
        weft_dim *integers = weft_new(arena, weft_dim, attr->count);
        if (attr->count)
            memcpy(integers, attr->integers, attr->count * sizeof *integers);
        copy.integers = integers;
    } else if (attr->kind == WEFT_ATTR_REALS) {
        double *reals = weft_new(arena, double, attr->count);
        if (attr->count)
            memcpy(reals, attr->reals, attr->count * sizeof *reals);
        copy.reals = reals;
    } else if (attr->kind == WEFT_ATTR_WORD) {
        copy.word = weft_arena_copy(arena, attr->word, strlen(attr->word));
    } else if (attr->kind == WEFT_ATTR_VALUES) {
        copy.values = weft_values_copy(arena, attr->values, attr->count);
    }
    return copy;
}

/* Those of `given` that the op has and that say more than the default, in the order of the op's row. */
static struct weft_attr *normal_attrs(struct weft_graph *g, int op, const struct weft_attr *given, unsigned count,
                                      uint16_t *ret_count)
{
    struct weft_attr *attrs = weft_new(g->arena, struct weft_attr, count);
    unsigned kept = 0;
    for (const struct weft_attr_spec *spec = weft_ops[op].attrs; spec->key != WEFT_ATTR_NONE; spec++)
        for (unsigned i = 0; i < count; i++)
            if (given[i].key == spec->key && !is_default(spec, &given[i]))
                attrs[kept++] = copy_attr(g->arena, &given[i]);
    *ret_count = (uint16_t)kept;
    return attrs;
}

/* --- the gate ----------------------------------------------------------------------------------------------------- */

static unsigned most_results(const struct weft_graph *graph, const struct weft_node_spec *spec)
{
    if (weft_ops[spec->op].results >= 0)
        return (unsigned)weft_ops[spec->op].results;
    if (spec->op == WEFT_OP_custom)
        return spec->results ? spec->results : weft_custom_results(graph->context, spec->attr, spec->attrs);
    unsigned most = 0;
    for (unsigned i = 0; i < spec->attrs; i++)
        if (spec->attr[i].kind == WEFT_ATTR_GRAPH && spec->attr[i].graph && spec->attr[i].graph->returns > most)
            most = spec->attr[i].graph->returns;
    return most;
}

static void link_use(struct weft_graph *g, uint32_t slot, weft_val value, weft_node node)
{
    struct weft_value *v = &g->value[value.id];
    value.graph = 0;
    g->slot[slot] = (struct weft_operand){.value = value, .node = node, .next = v->first_use};
    if (v->first_use)
        g->slot[v->first_use - 1].previous = slot + 1;
    v->first_use = slot + 1;
    v->uses++;
}

static void link_node(struct weft_graph *g, weft_node node, weft_node before)
{
    struct weft_node_info *info = &g->node[node.id];
    info->next = before;
    info->previous = before.id ? g->node[before.id].previous : g->last;
    *(info->previous.id ? &g->node[info->previous.id].next : &g->first) = node;
    *(before.id ? &g->node[before.id].previous : &g->last) = node;
    g->live_nodes++;
    g->analyses &= ~WEFT_ORDER;
}

/* A splat is an element of its type, as a cast would make it; so text and evaluation see the same number. */
static void settle_splat(struct weft_constant *constant, int dtype)
{
    uint64_t element = 0;
    if (constant->integer)
        weft_store_integer(dtype, &element, 0, constant->splat);
    else
        weft_store_real(dtype, &element, 0, constant->real);
    constant->integer = !weft_dtype_is_float(dtype);
    constant->splat = constant->integer ? weft_load_integer(dtype, &element, 0) : 0;
    constant->real = weft_load_real(dtype, &element, 0);
}

static struct weft_constant *keep_constant(struct weft_graph *g, const struct weft_constant *constant, int dtype)
{
    if (!constant)
        return NULL;
    struct weft_constant *copy = weft_new(g->arena, struct weft_constant, 1);
    *copy = *constant;
    if (copy->kind == WEFT_CONST_SPLAT)
        settle_splat(copy, dtype);
    return copy;
}

static void reserve_arrays(struct weft_graph *g, unsigned operands, unsigned results)
{
    g->node = weft_grow(g->arena, g->node, &g->node_capacity, g->nodes + 1, sizeof *g->node);
    g->value = weft_grow(g->arena, g->value, &g->value_capacity, g->values + results, sizeof *g->value);
    g->slot = weft_grow(g->arena, g->slot, &g->slot_capacity, g->slots + operands, sizeof *g->slot);
}

static bool check_claim(struct weft_infer *infer, const struct weft_type *claimed)
{
    if (!claimed || infer->results == 0 || weft_type_same(claimed, &infer->result[0]))
        return true;
    return weft_infer_fail(infer, "the result is declared %s, but of these operands it is %s",
                           weft_infer_type_text(infer, claimed), weft_infer_type_text(infer, &infer->result[0]));
}

weft_node weft_add_node(struct weft_graph *graph, const struct weft_node_spec *spec)
{
    struct weft_type small[2] = {{0}};
    const unsigned most = most_results(graph, spec);
    struct weft_infer infer = {
        .graph = graph, .op = spec->op, .operand = spec->operand, .operands = spec->operands,
        .attr = spec->attr, .attrs = spec->attrs, .constant = spec->constant, .place = &spec->place,
        .result = most <= 2 ? small : weft_new(graph->arena, struct weft_type, most), .results = most,
    };
    if ((weft_ops[spec->op].traits & WEFT_STATED) && spec->stated)
        memcpy(infer.result, spec->stated, (spec->op == WEFT_OP_custom ? most : 1) * sizeof *infer.result);
    if (!weft_infer_run(&infer) || !check_claim(&infer, spec->claimed))
        return WEFT_NO_NODE;

    struct weft_node_info info = {.op = (uint16_t)spec->op, .operands = spec->operands,
                                  .results = infer.results, .line = spec->place.line};
    info.attr = normal_attrs(graph, spec->op, spec->attr, spec->attrs, &info.attrs);
    info.constant = keep_constant(graph, spec->constant, infer.result[0].dtype);
    info.name = spec->name ? weft_arena_copy(graph->arena, spec->name, strlen(spec->name)) : NULL;
    reserve_arrays(graph, spec->operands, infer.results);

    const weft_node node = {.id = graph->nodes++};
    info.first_operand = graph->slots;
    info.first_result = graph->values;
    graph->node[node.id] = info;
    for (unsigned i = 0; i < spec->operands; i++)
        link_use(graph, graph->slots++, spec->operand[i], node);
    for (unsigned i = 0; i < infer.results; i++)
        graph->value[graph->values++] =
            (struct weft_value){.type = infer.result[i], .def = node, .result = i};
    link_node(graph, node, spec->before);
    for (unsigned i = 0; i < info.attrs; i++)
        if (info.attr[i].kind == WEFT_ATTR_GRAPH)
            info.attr[i].graph->frozen = true;
    if (infer.results == 1)
        graph->value[info.first_result].content = weft_content_of(graph, node);
    return node;
}

/* --- the cursor builder ------------------------------------------------------------------------------------------- */

weft_val weft_build(struct weft_builder *b, int op, unsigned operands, const weft_val *operand, unsigned attrs,
                    const struct weft_attr *attr, const struct weft_type *stated)
{
    const weft_node node = weft_add_node(
        b->graph, &(struct weft_node_spec){.op = op, .operand = operand, .operands = operands, .attr = attr,
                                           .attrs = attrs, .stated = stated, .before = b->before});
    weft_assert(node.id);
    for (unsigned i = 0; i < operands; i++)
        weft_show_value(b->graph, operand[i], /* group= */ 0);
    return weft_result(b->graph, node, 0);
}

weft_val weft_build_unary(struct weft_builder *b, int op, weft_val x)
{
    return weft_build(b, op, 1, &x, 0, NULL, NULL);
}

weft_val weft_build_binary(struct weft_builder *b, int op, weft_val x, weft_val y)
{
    return weft_build(b, op, 2, (const weft_val[]){x, y}, 0, NULL, NULL);
}

static weft_val build_constant(struct weft_builder *b, const struct weft_type *type,
                               const struct weft_constant *constant)
{
    const weft_node node = weft_add_node(b->graph, &(struct weft_node_spec){
        .op = WEFT_OP_const, .stated = type, .constant = constant, .before = b->before});
    weft_assert(node.id);
    return weft_result(b->graph, node, 0);
}

weft_val weft_build_element(struct weft_builder *b, const struct weft_type *type, const struct weft_element *element)
{
    weft_assert(element->is_integer == !weft_dtype_is_float(type->dtype));
    return build_constant(b, type, &(struct weft_constant){
        .kind = WEFT_CONST_SPLAT, .integer = element->is_integer, .real = element->is_integer ? 0 : element->real,
        .splat = element->is_integer ? element->integer : 0});
}

weft_val weft_build_splat(struct weft_builder *b, const struct weft_type *type, double value)
{
    return build_constant(b, type, &(struct weft_constant){.kind = WEFT_CONST_SPLAT, .real = value});
}

weft_val weft_build_const(struct weft_builder *b, const struct weft_type *type, const void *data)
{
    const int64_t n = weft_dim_value(weft_type_elements(b->graph->dims, type));
    const size_t bytes = (size_t)weft_dtype_bytes(type->dtype, n);
    struct weft_blob *blob = weft_blob_new(b->graph->context, bytes);
    if (!blob)
        weft_out_of_memory(b->graph->context);
    if (bytes)
        memcpy(blob->data, data, bytes);
    weft_graph_hold(b->graph, blob);
    return weft_build_blob(b, type, blob);
}

weft_val weft_build_blob(struct weft_builder *b, const struct weft_type *type, struct weft_blob *blob)
{
    return build_constant(b, type, &(struct weft_constant){.kind = WEFT_CONST_BLOB, .blob = blob});
}

weft_val weft_build_cast(struct weft_builder *b, weft_val x, int dtype)
{
    struct weft_type type = *weft_type_of(b->graph, x);
    type.dtype = (uint8_t)dtype;
    return weft_build(b, WEFT_OP_cast, 1, &x, 0, NULL, &type);
}

weft_val weft_build_transpose(struct weft_builder *b, weft_val x, const int *perm)
{
    weft_dim axes[WEFT_MAX_RANK];
    const unsigned rank = weft_type_of(b->graph, x)->rank;
    for (unsigned i = 0; i < rank; i++)
        axes[i] = weft_dim_of(perm[i]);
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_perm, rank, axes);
    return weft_build(b, WEFT_OP_transpose, 1, &x, 1, &attr, NULL);
}

weft_val weft_build_reshape(struct weft_builder *b, weft_val x, const struct weft_type *type)
{
    return weft_build(b, WEFT_OP_reshape, 1, &x, 0, NULL, type);
}

weft_val weft_build_bcast(struct weft_builder *b, weft_val x, const struct weft_type *type, const int *result_axis)
{
    weft_dim axes[WEFT_MAX_RANK];
    const unsigned rank = weft_type_of(b->graph, x)->rank;
    for (unsigned i = 0; i < rank; i++)
        axes[i] = weft_dim_of(result_axis[i]);
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_dims, rank, axes);
    return weft_build(b, WEFT_OP_bcast, 1, &x, 1, &attr, type);
}

weft_val weft_build_reduce(struct weft_builder *b, int op, weft_val x, unsigned axes, const int *axis, bool keepdims)
{
    weft_dim list[WEFT_MAX_RANK];
    for (unsigned i = 0; i < axes; i++)
        list[i] = weft_dim_of(axis[i]);
    const struct weft_attr attr[] = {weft_attr_of_dims(WEFT_ATTR_axes, axes, list),
                                     weft_attr_of_int(WEFT_ATTR_keepdims, keepdims)};
    return weft_build(b, op, 1, &x, 2, attr, NULL);
}

struct weft_attr weft_attr_of_int(int key, int64_t value)
{
    return (struct weft_attr){.key = (uint8_t)key, .kind = WEFT_ATTR_INT, .integer = weft_dim_of(value)};
}

struct weft_attr weft_attr_of_real(int key, double value)
{
    return (struct weft_attr){.key = (uint8_t)key, .kind = WEFT_ATTR_REAL, .real = value};
}

struct weft_attr weft_attr_of_word(int key, const char *word)
{
    return (struct weft_attr){.key = (uint8_t)key, .kind = WEFT_ATTR_WORD, .word = word};
}

struct weft_attr weft_attr_of_dims(int key, unsigned count, const weft_dim *values)
{
    return (struct weft_attr){.key = (uint8_t)key, .kind = WEFT_ATTR_INTS, .count = count, .integers = values};
}

struct weft_attr weft_attr_of_ints(struct weft_graph *graph, int key, unsigned count, const int64_t *values)
{
    weft_dim *list = weft_new(graph->arena, weft_dim, count);
    for (unsigned i = 0; i < count; i++)
        list[i] = weft_dim_of(values[i]);
    return weft_attr_of_dims(key, count, list);
}
