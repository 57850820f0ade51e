/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c: elements of values that follow from constants and extents, computed while importing, for whoever asks.
 *
 * Of small integer tensors the graph keeps the elements as expressions, node by node (content.c). That says nothing of
 * larger ones (the lengths of a split into hundreds of pieces) and nothing of what goes through floats (some exporters
 * compute the length of a Range or the trips of a Loop in them). So whoever has to know a value asks here, and what
 * the value is computed from is gone through, down to constants, extents and what the graph keeps:
 *
 *     all operands are numbers           the evaluator computes the node
 *     all are integers, some symbolic    content.c does, however many there are
 *     something comes out of data        nothing is known, and nothing further is looked at
 *
 * An answer is kept for each value, so that a thousand questions about one table cost as much as one. Nodes are only
 * added while importing and never change, which keeps answers right. The sum of all that is computed is bounded: a file
 * may ask for more than it is worth. */
#include "onnx/import.h"
#include "eval/eval.h"

#include <string.h>

#define MOST_ELEMENTS ((int64_t)1 << 22) /* of all larger values of one import */
#define FEW_ELEMENTS  64                 /* of values that are not counted, and of ops that do more than move */

/* --- answers ------------------------------------------------------------------------------------------------------ */

static uint32_t *slot_of(const struct onnx_folds *folds, const struct weft_graph *graph, weft_val value)
{
    const uint64_t mixed = ((uint64_t)(uintptr_t)graph ^ value.id) * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(mixed >> 32) & (folds->slots - 1);
    while (folds->slot[i]) {
        const struct onnx_fold *at = &folds->item[folds->slot[i] - 1];
        if (at->graph == graph && weft_is(at->value, value))
            break;
        i = (i + 1) & (folds->slots - 1);
    }
    return &folds->slot[i];
}

static struct onnx_fold *find(const struct onnx_folds *folds, const struct weft_graph *graph, weft_val value)
{
    const uint32_t at = folds->slots ? *slot_of(folds, graph, value) : 0;
    return at ? &folds->item[at - 1] : NULL;
}

static void keep(struct onnx_importer *importer, const struct onnx_fold *fold)
{
    struct onnx_folds *folds = &importer->folds;
    struct weft_arena *arena = importer->reader.arena;
    if (2 * (folds->count + 1) > folds->slots) {
        folds->slots = folds->slots ? 2 * folds->slots : 64;
        folds->slot = weft_new(arena, uint32_t, folds->slots);
        for (uint32_t i = 0; i < folds->count; i++)
            *slot_of(folds, folds->item[i].graph, folds->item[i].value) = i + 1;
    }
    folds->item = weft_grow(arena, folds->item, &folds->capacity, folds->count + 1, sizeof *folds->item);
    *slot_of(folds, fold->graph, fold->value) = folds->count + 1;
    folds->item[folds->count++] = *fold;
}

/* Accounts for so many elements; false where all have been spent. A few of each node are no more than the file itself,
 * and always allowed. */
static bool spend(struct onnx_importer *importer, int64_t elements)
{
    if (elements <= FEW_ELEMENTS)
        return elements >= 0;
    if (elements > MOST_ELEMENTS - importer->folds.spent)
        return false;
    importer->folds.spent += elements;
    return true;
}

/* --- one node ----------------------------------------------------------------------------------------------------- */

static bool is_countable(int dtype)
{
    return dtype == WEFT_BOOL || (weft_dtype_is_int(dtype) && !weft_dtype_is_storage_only(dtype));
}

/* The number of elements, or -1 where it depends on symbols. */
static int64_t count_of(const struct weft_graph *graph, const struct weft_type *type)
{
    const weft_dim elements = weft_type_elements(graph->dims, type);
    return weft_type_is_constant(type) && weft_dim_is_constant(elements) ? weft_dim_value(elements) : -1;
}

static struct weft_tensor *new_tensor(struct onnx_importer *importer, const struct weft_graph *graph,
                                      const struct weft_type *type)
{
    struct weft_tensor *tensor = weft_new(importer->reader.arena, struct weft_tensor, 1);
    weft_tensor_of(graph, type, NULL, tensor);
    return tensor;
}

static void *new_data(struct onnx_importer *importer, const struct weft_tensor *tensor)
{
    return weft_arena_new(importer->reader.arena, weft_tensor_bytes(tensor) + sizeof(double));
}

static void fold_const(struct onnx_importer *importer, struct onnx_fold *fold, int64_t count)
{
    const void *data = weft_const_data(fold->graph, fold->value);
    if (!data && !spend(importer, count))
        return;
    struct weft_tensor *tensor = new_tensor(importer, fold->graph, weft_type_of(fold->graph, fold->value));
    if (data) {
        tensor->data = (void *)(uintptr_t)data; /* nobody writes to it */
    } else {
        tensor->data = new_data(importer, tensor);
        weft_const_write(fold->graph, fold->value, tensor->data);
    }
    fold->numbers = tensor;
}

/* Numbers of elements that are known and have no symbols in them. */
static void number_elements(struct onnx_importer *importer, struct onnx_fold *fold, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!weft_dim_is_constant(fold->element[i]))
            return;
    struct weft_tensor *tensor = new_tensor(importer, fold->graph, weft_type_of(fold->graph, fold->value));
    tensor->data = new_data(importer, tensor);
    for (int64_t i = 0; i < count; i++)
        weft_store_integer(tensor->dtype, tensor->data, i, weft_dim_value(fold->element[i]));
    fold->numbers = tensor;
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

/* Does the op take a time like that of reading its operands and writing its result? */
static bool is_cheap(int op)
{
    return weft_ops[op].traits &
           (WEFT_LINEAR | WEFT_ELEMENTWISE | WEFT_VIEW | WEFT_MOVEMENT | WEFT_SCAN | WEFT_SOURCE);
}

/* May the node be gone through at all? */
static bool can_fold(const struct weft_graph *graph, weft_node node, int64_t count)
{
    const struct weft_node_info *info = weft_node_of(graph, node);
    return info->results == 1 && count >= 0 && count < MOST_ELEMENTS && (is_cheap(info->op) || count <= FEW_ELEMENTS) &&
           !(weft_ops[info->op].traits & (WEFT_CONTROL | WEFT_DATA | WEFT_OPAQUE));
}

/* The elements of what is known, as expressions; NULL where they are no integers or beyond 62 bits. */
static const weft_dim *elements_of(struct onnx_importer *importer, struct onnx_fold *fold)
{
    if (fold->element || !fold->numbers || !is_countable(fold->numbers->dtype))
        return fold->element;
    const int64_t count = weft_tensor_count(fold->numbers);
    if (!spend(importer, count))
        return NULL;
    weft_dim *element = weft_new(importer->reader.arena, weft_dim, count + 1);
    for (int64_t i = 0; i < count; i++) {
        const int64_t value = weft_load_integer(fold->numbers->dtype, fold->numbers->data, i);
        if (value < -(INT64_C(1) << 60) || value > INT64_C(1) << 60)
            return NULL;
        element[i] = weft_dim_of(fold->numbers->dtype == WEFT_BOOL ? value != 0 : value);
    }
    return fold->element = element;
}

static void fold_numbers(struct onnx_importer *importer, weft_node node, struct onnx_fold *fold)
{
    struct weft_graph *graph = fold->graph;
    const struct weft_node_info *info = weft_node_of(graph, node);
    struct weft_tensor *in = weft_new(importer->reader.arena, struct weft_tensor, info->operands + 1);
    for (unsigned i = 0; i < info->operands; i++) {
        in[i] = *find(&importer->folds, graph, weft_operand(graph, node, i))->numbers;
        if (!is_cheap(info->op) && weft_tensor_count(&in[i]) > FEW_ELEMENTS)
            return;
    }
    struct weft_tensor *out = new_tensor(importer, graph, weft_type_of(graph, fold->value));
    out->data = new_data(importer, out);
    struct weft_eval eval = {.graph = graph, .node = node, .context = graph->context, .in = in, .out = out};
    if (weft_eval_node(&eval))
        fold->numbers = out;
}

static void fold_elements(struct onnx_importer *importer, weft_node node, struct onnx_fold *fold, int64_t count)
{
    struct weft_graph *graph = fold->graph;
    const unsigned operands = weft_node_of(graph, node)->operands;
    const weft_dim **operand = weft_new(importer->reader.arena, const weft_dim *, operands + 1);
    for (unsigned i = 0; i < operands; i++) {
        operand[i] = elements_of(importer, find(&importer->folds, graph, weft_operand(graph, node, i)));
        if (!operand[i])
            return;
    }
    weft_dim *element = weft_new(importer->reader.arena, weft_dim, count + 1);
    if (!weft_content_fill(graph, node, operand, element))
        return;
    fold->element = element;
    number_elements(importer, fold, count);
}

/* Computes a node whose operands are known. */
static void fold_node(struct onnx_importer *importer, weft_node node, struct onnx_fold *fold, int64_t count)
{
    const struct weft_node_info *info = weft_node_of(fold->graph, node);
    int64_t read = 0;
    bool numbers = !has_symbols(info);
    const bool picks = weft_ops[info->op].traits & (WEFT_VIEW | WEFT_MOVEMENT); /* reads no more than it writes */
    for (unsigned i = 0; i < info->operands; i++) {
        const struct onnx_fold *operand = find(&importer->folds, fold->graph, weft_operand(fold->graph, node, i));
        numbers &= operand->numbers != NULL;
        read += picks ? 0 : count_of(fold->graph, weft_type_of(fold->graph, operand->value));
    }
    if (!spend(importer, read + count))
        return;
    if (numbers)
        fold_numbers(importer, node, fold);
    else if (is_countable(weft_type_of(fold->graph, fold->value)->dtype))
        fold_elements(importer, node, fold, count);
}

/* --- all that a value is computed from ---------------------------------------------------------------------------- */

/* Answers at once where that can be done without going through a node. */
static bool answer(struct onnx_importer *importer, struct weft_graph *graph, weft_val value)
{
    struct onnx_fold fold = {.graph = graph, .value = value};
    const struct weft_value *info = weft_value_of(graph, value);
    const weft_node node = weft_def(graph, value);
    const int64_t count = count_of(graph, &info->type);
    if (node.id && weft_is_const(graph, value)) {
        if (count >= 0)
            fold_const(importer, &fold, count);
    } else if (info->content) {
        fold.element = info->content;
        number_elements(importer, &fold, count);
    } else if (node.id && can_fold(graph, node, count)) {
        return false;
    }
    keep(importer, &fold);
    return true;
}

static bool is_unknown(const struct onnx_fold *fold) { return !fold->numbers && !fold->element; }

static struct onnx_fold *learn(struct onnx_importer *importer, struct weft_graph *graph, weft_val value)
{
    struct open {
        weft_val value;
        unsigned operand; /* the next to look at */
    } *open = NULL;
    uint32_t count = 0, capacity = 0;
    struct onnx_folds *folds = &importer->folds;
    if (!find(folds, graph, value) && !answer(importer, graph, value)) {
        open = weft_grow(importer->reader.arena, open, &capacity, 1, sizeof *open);
        open[count++] = (struct open){value, 0};
    }
    while (count > 0) {
        struct open *last = &open[count - 1];
        const weft_node node = weft_def(graph, last->value);
        const unsigned operands = weft_node_of(graph, node)->operands;
        const struct onnx_fold *fold = NULL;
        weft_val next = WEFT_NO_VALUE;
        while (last->operand < operands && !next.id && !(fold && is_unknown(fold))) {
            next = weft_operand(graph, node, last->operand);
            if ((fold = find(folds, graph, next)) != NULL || answer(importer, graph, next)) {
                fold = find(folds, graph, next);
                next = WEFT_NO_VALUE;
                last->operand++;
            }
        }
        if (next.id) {
            open = weft_grow(importer->reader.arena, open, &capacity, count + 1, sizeof *open);
            open[count++] = (struct open){next, 0};
            continue;
        }
        struct onnx_fold own = {.graph = graph, .value = last->value};
        if (!fold || !is_unknown(fold))
            fold_node(importer, node, &own, count_of(graph, weft_type_of(graph, own.value)));
        keep(importer, &own);
        count--;
    }
    return find(folds, graph, value);
}

const struct onnx_fold *weft_onnx_fold(struct onnx_importer *importer, struct weft_graph *graph, weft_val value)
{
    return learn(importer, graph, value);
}

weft_val weft_onnx_fold_constant(struct onnx_importer *importer, struct weft_graph *graph, weft_val value)
{
    struct onnx_fold *fold = learn(importer, graph, value);
    const char *where = importer->reader.context->here.where;
    if (fold->numbers && !fold->constant.id)
        fold->constant = weft_is_const(graph, value) ? value
                                                     : weft_onnx_copy_constant(importer, graph, fold->numbers, where);
    return fold->constant;
}

/* Constants may hold what no dim can: INT64_MAX stands for "to the end". */
static weft_dim saturated(int64_t value)
{
    const int64_t limit = INT64_MAX / 4;
    return weft_dim_of(value > limit ? limit : value < -limit ? -limit : value);
}

weft_dim *weft_onnx_fold_list(struct onnx_importer *importer, struct weft_graph *graph, weft_val value,
                              unsigned *ret_count)
{
    const struct weft_type type = *weft_type_of(graph, value);
    const int64_t count = count_of(graph, &type);
    *ret_count = 0;
    if (count < 0 || weft_dtype_is_float(type.dtype) || !spend(importer, count))
        return NULL;
    const struct onnx_fold *fold = count ? weft_onnx_fold(importer, graph, value) : NULL;
    if (fold && is_unknown(fold))
        return NULL;
    weft_dim *list = weft_new(importer->reader.arena, weft_dim, count + 1);
    for (int64_t i = 0; i < count; i++)
        list[i] = fold->element ? fold->element[i]
                                : saturated(weft_load_integer(type.dtype, fold->numbers->data, i));
    *ret_count = (unsigned)count;
    return list;
}
