/* SPDX-License-Identifier: Apache-2.0 */
/* known.c: what is known about the elements of a value while importing.
 *
 * Elements of small integer tensors are known as expressions where they follow from extents: content.c keeps them up to
 * date node by node. What follows from constants alone, also through floats, is evaluated when somebody asks: some
 * exporters compute the length of a Range or the trips of a Loop in floats. That is bounded in elements and in nodes,
 * and leaves the graph as it is but for the constant that comes out. */
#include "onnx/import.h"

#include "ir/eval.h"

#include <string.h>

/* --- from constants ----------------------------------------------------------------------------------------------- */

#define MAX_FOLDED_NODES    256
#define MAX_FOLDED_OPERANDS 8

static bool is_small(struct onnx_op *op, const struct weft_type *type)
{
    const weft_dim elements = weft_type_elements(op->graph->dims, type);
    return weft_type_is_constant(type) && weft_dim_is_constant(elements) &&
           weft_dim_value(elements) <= WEFT_MAX_CONTENT;
}

static bool has_symbols(const struct weft_node_info *info)
{
    for (unsigned a = 0; a < info->attrs; a++) {
        const struct weft_attr *attr = &info->attr[a];
        if (attr->kind == WEFT_ATTR_INT && !weft_dim_is_constant(attr->integer))
            return true;
        for (uint32_t i = 0; attr->kind == WEFT_ATTR_INTS && i < attr->count; i++)
            if (!weft_dim_is_constant(attr->integers[i]))
                return true;
    }
    return false;
}

/* The elements of a value that follows from constants, in scratch memory. Recursion is as deep as there is `budget`. */
static bool evaluate(struct onnx_op *op, weft_val value, unsigned *budget, struct weft_tensor *ret)
{
    const struct weft_graph *graph = op->graph;
    const struct weft_type *type = weft_type_of(graph, value);
    const weft_node node = weft_def(graph, value);
    if (!node.id || !is_small(op, type) || *budget == 0)
        return false;
    --*budget;
    weft_eval_shape(graph, type, NULL, ret);
    ret->data = weft_arena_new(op->importer->reader.arena, weft_tensor_bytes(ret) + sizeof(double));
    const struct weft_node_info *info = weft_node_of(graph, node);
    if (weft_is_const(graph, value)) {
        weft_const_write(graph, value, ret->data);
        return true;
    }
    struct weft_tensor in[MAX_FOLDED_OPERANDS];
    if (info->operands > MAX_FOLDED_OPERANDS || info->results != 1 || has_symbols(info) ||
        (weft_ops[info->op].traits & (WEFT_CONTROL | WEFT_DATA | WEFT_OPAQUE)))
        return false;
    for (unsigned i = 0; i < info->operands; i++)
        if (!evaluate(op, weft_operand(graph, node, i), budget, &in[i]))
            return false;
    struct weft_eval eval = {.graph = graph, .node = node, .context = graph->context, .in = in, .out = ret};
    return weft_eval_node(&eval);
}

weft_val weft_onnx_folded(struct onnx_op *op, weft_val value)
{
    unsigned budget = MAX_FOLDED_NODES;
    struct weft_tensor tensor;
    if (op->failed || !value.id || weft_is_const(op->graph, value) || !evaluate(op, value, &budget, &tensor))
        return value;
    const weft_val folded = weft_onnx_copy_constant(op->importer, op->graph, &tensor, op->name);
    return folded.id ? folded : value;
}

/* --- elements as expressions -------------------------------------------------------------------------------------- */

/* Constants may hold what no dim can: INT64_MAX stands for "to the end". */
static weft_dim saturated(int64_t value)
{
    const int64_t limit = INT64_MAX / 4;
    return weft_dim_of(value > limit ? limit : value < -limit ? -limit : value);
}

bool weft_onnx_elements(struct onnx_op *op, weft_val value, weft_dim ret[WEFT_MAX_CONTENT], unsigned *ret_count)
{
    *ret_count = 0;
    if (op->failed || !value.id)
        return false;
    /* What a dim cannot hold has no content, but a constant that was only reshaped is as good as the constant. */
    while (!weft_value_of(op->graph, value)->content && weft_def_opcode(op->graph, value) == WEFT_OP_reshape)
        value = weft_operand(op->graph, weft_def(op->graph, value), 0);
    if (!weft_value_of(op->graph, value)->content)
        value = weft_onnx_folded(op, value);
    const struct weft_value *info = weft_value_of(op->graph, value);
    const weft_dim elements = weft_type_elements(op->graph->dims, &info->type);
    if (!weft_dim_is_constant(elements) || weft_dim_value(elements) > WEFT_MAX_CONTENT ||
        weft_dtype_is_float(info->type.dtype))
        return false;
    const unsigned count = (unsigned)weft_dim_value(elements);
    *ret_count = count;
    if (weft_is_const(op->graph, value)) {
        uint64_t data[WEFT_MAX_CONTENT];
        weft_const_write(op->graph, value, data);
        for (unsigned i = 0; i < count; i++)
            ret[i] = saturated(weft_load_integer(info->type.dtype, data, i));
        return true;
    }
    if (info->content && count)
        memcpy(ret, info->content, count * sizeof *ret);
    return info->content || count == 0;
}

#define MAX_SOUGHT 64 /* values that are looked at for a message */

/* An input of the model that `value` is computed from, if all that it is computed from are scalars and lists: then
 * whoever fixes these makes the value known. NULL if there is none. */
static const char *small_source(struct onnx_op *op, weft_val value)
{
    weft_val open[MAX_SOUGHT] = {value};
    const char *found = NULL;
    for (unsigned next = 0, count = 1; next < count; next++) {
        const struct weft_value *info = weft_value_of(op->graph, open[next]);
        const weft_node node = weft_def(op->graph, open[next]);
        const unsigned operands = node.id ? weft_node_of(op->graph, node)->operands : 0;
        if (info->is_param && (op->graph != op->graph->root || info->type.rank > 1 || !info->name))
            return NULL;
        if (info->is_param && !found)
            found = info->name;
        if (count + operands > MAX_SOUGHT)
            return NULL;
        for (unsigned i = 0; i < operands; i++)
            open[count++] = weft_operand(op->graph, node, i);
    }
    return found;
}

void weft_onnx_fail_unknown(struct onnx_op *op, unsigned input, const char *what, const char *need)
{
    const weft_val value = weft_onnx_input(op, input);
    const char *source = op->failed ? NULL : small_source(op, value);
    if (source)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED,
                       "input %s %s, but it comes from input \"%s\" of the model; if that is the same in every run, "
                       "fix it while loading: --fix %s=FILE.npy, or weft_load_fixed", what, need, source, source);
    else
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "input %s %s, but it is computed from data", what, need);
}

bool weft_onnx_known(struct onnx_op *op, unsigned input, const char *what, weft_dim ret[WEFT_MAX_CONTENT],
                     unsigned *ret_count)
{
    const weft_val value = weft_onnx_input(op, input);
    if (weft_onnx_elements(op, value, ret, ret_count))
        return true;
    weft_onnx_fail_unknown(op, input, what, "must be a constant or follow from extents");
    return false;
}

bool weft_onnx_known_ints(struct onnx_op *op, unsigned input, const char *what, int64_t ret[WEFT_MAX_CONTENT],
                          unsigned *ret_count)
{
    weft_dim dims[WEFT_MAX_CONTENT];
    bool constant = weft_onnx_known(op, input, what, dims, ret_count);
    for (unsigned i = 0; constant && i < *ret_count; i++) {
        constant = weft_dim_is_constant(dims[i]);
        ret[i] = constant ? weft_dim_value(dims[i]) : 0;
    }
    if (!constant && !op->failed)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "input %s must be constant, but it follows from extents", what);
    return constant;
}

bool weft_onnx_axes(struct onnx_op *op, bool as_input, unsigned rank, bool ret_chosen[WEFT_MAX_RANK])
{
    int64_t known[WEFT_MAX_CONTENT];
    const int64_t *axes = known;
    unsigned count = 0;
    memset(ret_chosen, 0, WEFT_MAX_RANK * sizeof *ret_chosen);
    if (!as_input)
        axes = weft_onnx_ints(op, "axes", &count);
    else if (weft_onnx_has(op, 1))
        weft_onnx_known_ints(op, 1, "axes", known, &count);
    for (unsigned i = 0; i < count && !op->failed; i++) {
        const unsigned axis = weft_onnx_axis(op, axes[i], rank);
        if (ret_chosen[axis])
            weft_onnx_fail(op, WEFT_ERR_INVALID, "axis %u is named twice", axis);
        ret_chosen[axis] = true;
    }
    return count > 0;
}

/* --- extents that have to be something ---------------------------------------------------------------------------- */

#define MAX_NARROWED 65536 /* sizes that are tried one by one */

/* The one symbol that an extent depends on. */
static bool only_symbol(const struct weft_dims *dims, weft_dim extent, uint32_t *ret)
{
    unsigned mentioned = 0;
    for (uint32_t i = 0; i < weft_symbol_count(dims); i++)
        if (weft_dim_mentions(dims, extent, i)) {
            *ret = i;
            mentioned++;
        }
    return mentioned == 1 && !weft_symbol_at(dims, *ret)->data;
}

/* The smallest size in [low, high + 1] whose extent is at least `value`, if extents do not fall as sizes rise. */
static int64_t first_size(const struct weft_dims *dims, weft_dim extent, int64_t *symbols, uint32_t symbol,
                          int64_t value)
{
    int64_t low = weft_symbol_at(dims, symbol)->low, past = weft_symbol_at(dims, symbol)->high + 1;
    while (low < past) {
        symbols[symbol] = low + (past - low) / 2;
        if (weft_dim_evaluate(dims, extent, symbols) >= value)
            past = symbols[symbol];
        else
            low = symbols[symbol] + 1;
    }
    return low;
}

bool weft_onnx_narrow(struct onnx_op *op, weft_dim extent, int64_t value)
{
    struct weft_dims *dims = op->graph->dims;
    uint32_t symbol = 0;
    if (op->failed || op->graph != op->graph->root || !only_symbol(dims, extent, &symbol))
        return false; /* what holds in a branch need not hold for the whole */
    const struct weft_symbol_info info = *weft_symbol_at(dims, symbol);
    int64_t *symbols = weft_new(op->importer->reader.arena, int64_t, weft_symbol_count(dims));
    const int64_t first = first_size(dims, extent, symbols, symbol, value);
    const int64_t past = first_size(dims, extent, symbols, symbol, value + 1);
    bool all = first < past && past - first <= MAX_NARROWED;
    for (int64_t size = first; all && size < past; size++) {
        symbols[symbol] = size;
        all = weft_dim_evaluate(dims, extent, symbols) == value;
    }
    if (!all)
        return false;
    if (first > info.low || past <= info.high)
        weft_note(op->importer->reader.context, WEFT_NOTE,
                  &(struct weft_place){.file = op->importer->reader.path, .where = op->name},
                  "%s is limited to %lld..%lld, where the extent %s is %lld", info.name, (long long)first,
                  (long long)(past - 1), weft_onnx_dim_text(op, extent), (long long)value);
    weft_symbol_add(dims, info.name, first, past - 1, info.hint >= first && info.hint < past ? info.hint : first);
    return true;
}
