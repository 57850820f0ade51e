/* SPDX-License-Identifier: Apache-2.0 */
/* known.c: what import functions ask about the elements of a value, and what is said where they are not known. How they
 * become known is in fold.c. */
#include "onnx/import.h"

#include <string.h>

/* --- elements ----------------------------------------------------------------------------------------------------- */

weft_val weft_onnx_folded(struct onnx_op *op, weft_val value)
{
    if (op->failed || !value.id || weft_is_const(op->graph, value))
        return value;
    const weft_val constant = weft_onnx_fold_constant(op->importer, op->graph, value);
    return constant.id ? constant : value;
}

weft_dim *weft_onnx_elements(struct onnx_op *op, weft_val value, unsigned *ret_count)
{
    *ret_count = 0;
    return op->failed || !value.id ? NULL : weft_onnx_fold_list(op->importer, op->graph, value, ret_count);
}

bool weft_onnx_single(struct onnx_op *op, weft_val value, weft_dim *ret)
{
    unsigned count;
    const weft_dim *list = weft_onnx_elements(op, value, &count);
    if (list && count == 1)
        *ret = list[0];
    return list && count == 1;
}

/* --- elements that have to be known ------------------------------------------------------------------------------- */

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

weft_dim *weft_onnx_known(struct onnx_op *op, unsigned input, const char *what, unsigned *ret_count)
{
    weft_dim *list = weft_onnx_elements(op, weft_onnx_input(op, input), ret_count);
    if (!list)
        weft_onnx_fail_unknown(op, input, what, "must be a constant or follow from extents");
    return list;
}

/* False, and an error, for what follows from extents. */
static bool is_number(struct onnx_op *op, weft_dim d, const char *what)
{
    if (!weft_dim_is_constant(d))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "input %s must be constant, but it follows from extents", what);
    return weft_dim_is_constant(d);
}

int64_t *weft_onnx_known_ints(struct onnx_op *op, unsigned input, const char *what, unsigned *ret_count)
{
    const weft_dim *list = weft_onnx_known(op, input, what, ret_count);
    if (!list)
        return NULL;
    int64_t *ret = weft_new(op->importer->reader.arena, int64_t, *ret_count + 1);
    for (unsigned i = 0; i < *ret_count; i++) {
        if (!is_number(op, list[i], what))
            return NULL;
        ret[i] = weft_dim_value(list[i]);
    }
    return ret;
}

double *weft_onnx_known_reals(struct onnx_op *op, unsigned input, const char *what, unsigned *ret_count)
{
    const weft_val value = weft_onnx_input(op, input);
    *ret_count = 0;
    if (op->failed)
        return NULL;
    const struct weft_tensor *numbers = weft_onnx_fold(op->importer, op->graph, value)->numbers;
    if (!numbers)
        weft_onnx_fail_unknown(op, input, what, "must be constant");
    else if (!weft_dtype_is_float(numbers->dtype) || numbers->rank > 1 || weft_tensor_count(numbers) > INT32_MAX)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "input %s must be a list of floats", what);
    if (op->failed)
        return NULL;
    const int64_t count = numbers->rank ? numbers->extent[0] : 1;
    double *ret = weft_new(op->importer->reader.arena, double, count + 1);
    for (int64_t i = 0; i < count; i++)
        ret[i] = weft_load_real(numbers->dtype, numbers->data, i);
    *ret_count = (unsigned)count;
    return ret;
}

weft_dim weft_onnx_known_single(struct onnx_op *op, unsigned input, const char *what)
{
    unsigned count;
    const weft_dim *list = weft_onnx_known(op, input, what, &count);
    if (list && count != 1)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "input %s has %u elements instead of one", what, count);
    return list && count == 1 ? list[0] : weft_dim_of(0);
}

int64_t weft_onnx_known_int(struct onnx_op *op, unsigned input, const char *what)
{
    const weft_dim number = weft_onnx_known_single(op, input, what);
    return is_number(op, number, what) ? weft_dim_value(number) : 0;
}

bool weft_onnx_axes(struct onnx_op *op, bool as_input, unsigned rank, bool ret_chosen[WEFT_MAX_RANK])
{
    const int64_t *axes = NULL;
    unsigned count = 0;
    memset(ret_chosen, 0, WEFT_MAX_RANK * sizeof *ret_chosen);
    if (!as_input)
        axes = weft_onnx_ints(op, "axes", &count);
    else if (weft_onnx_has(op, 1))
        axes = weft_onnx_known_ints(op, 1, "axes", &count);
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
