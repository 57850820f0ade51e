/* SPDX-License-Identifier: Apache-2.0 */
/* op.c: the words that import functions are written in: attributes, known elements, nodes, numpy's broadcasting.
 *
 * Broadcasting is made explicit: every elementwise op of weft has operands of one shape. Where extents are symbolic,
 * two are equal if they are the same expression, and 1 stretches to anything; anything else could be wrong at run time,
 * and is refused with both extents in the message. */
#include "onnx/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void weft_onnx_fail(struct onnx_op *op, int status, const char *format, ...)
{
    if (op->failed)
        return;
    op->failed = true;
    char message[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    weft_error(op->importer->reader.context, status,
               &(struct weft_place){.file = op->importer->reader.path, .where = op->name}, "%.*s: %s",
               (int)op->node->op.length, op->node->op.data, message);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static const char *const type_names[] = {
    [0] = "nothing",
    [ONNX_FLOAT] = "a float",
    [ONNX_INT] = "an integer",
    [ONNX_STRING] = "a string",
    [ONNX_TENSOR] = "a tensor",
    [ONNX_GRAPH] = "a graph",
    [ONNX_FLOATS] = "floats",
    [ONNX_INTS] = "integers",
    [ONNX_STRINGS] = "strings",
    [ONNX_OTHER] = "something else",
};

/* Files hold any number. */
static const char *type_name(int type)
{
    const bool known = type >= 0 && type < (int)(sizeof type_names / sizeof *type_names) && type_names[type];
    return type_names[known ? type : ONNX_OTHER];
}

struct onnx_attribute *weft_onnx_attribute(struct onnx_op *op, const char *name, int type)
{
    for (uint32_t i = 0; i < op->node->attributes; i++) {
        struct onnx_attribute *attribute = &op->node->attribute[i];
        if (!onnx_is(attribute->name, name))
            continue;
        attribute->used = true;
        if (attribute->is_reference)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute %s refers to a function's attribute outside of a function",
                           name);
        else if (attribute->type != type)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute %s holds %s instead of %s", name,
                           type_name(attribute->type), type_name(type));
        return op->failed ? NULL : attribute;
    }
    return NULL;
}

int64_t weft_onnx_int(struct onnx_op *op, const char *name, int64_t fallback)
{
    const struct onnx_attribute *attribute = weft_onnx_attribute(op, name, ONNX_INT);
    return attribute ? attribute->integer : fallback;
}

double weft_onnx_real(struct onnx_op *op, const char *name, double fallback)
{
    const struct onnx_attribute *attribute = weft_onnx_attribute(op, name, ONNX_FLOAT);
    return attribute ? (double)attribute->real : fallback;
}

int weft_onnx_word(struct onnx_op *op, const char *name, const char *words)
{
    const struct onnx_attribute *attribute = weft_onnx_attribute(op, name, ONNX_STRING);
    if (!attribute)
        return 0;
    const struct onnx_string given = attribute->string;
    int index = 0;
    for (const char *word = words; *word; index++) {
        const size_t length = strcspn(word, " ");
        if (length == given.length && memcmp(word, given.data, length) == 0)
            return index;
        word += length + (word[length] == ' ');
    }
    weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute %s is \"%.*s\", but only %s are supported", name,
                   given.length < 60 ? (int)given.length : 60, given.data, words);
    return 0;
}

const int64_t *weft_onnx_ints(struct onnx_op *op, const char *name, unsigned *ret_count)
{
    static const int64_t none[1];
    const struct onnx_attribute *attribute = weft_onnx_attribute(op, name, ONNX_INTS);
    *ret_count = attribute ? attribute->count : 0;
    return !attribute ? NULL : attribute->count ? attribute->integers : none;
}

void weft_onnx_ignore(struct onnx_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->node->attributes; i++)
        if (onnx_is(op->node->attribute[i].name, name))
            op->node->attribute[i].used = true;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

bool weft_onnx_has(const struct onnx_op *op, unsigned input) { return input < op->inputs && op->input[input].id; }

weft_val weft_onnx_input(struct onnx_op *op, unsigned input)
{
    if (weft_onnx_has(op, input))
        return op->input[input];
    weft_onnx_fail(op, WEFT_ERR_INVALID, "input %u is missing", input);
    return WEFT_NO_VALUE;
}

struct weft_type weft_onnx_type(struct onnx_op *op, weft_val value)
{
    return op->failed || !value.id ? (struct weft_type){.dtype = WEFT_F32} : *weft_type_of(op->graph, value);
}

unsigned weft_onnx_axis(struct onnx_op *op, int64_t axis, unsigned rank)
{
    const int64_t from_front = axis < 0 ? axis + (int64_t)rank : axis;
    if (from_front >= 0 && from_front < (int64_t)rank)
        return (unsigned)from_front;
    weft_onnx_fail(op, WEFT_ERR_INVALID, "axis %" PRId64 " does not exist in a tensor of %u axes", axis, rank);
    return 0;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

weft_val weft_onnx_make(struct onnx_op *op, int opcode, unsigned operands, const weft_val *operand, unsigned attrs,
                        const struct weft_attr *attr, const struct weft_type *stated)
{
    for (unsigned i = 0; i < operands; i++)
        if (!operand[i].id)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "an input is missing");
    if (op->failed)
        return WEFT_NO_VALUE;
    const weft_node node = weft_add_node(
        op->graph, &(struct weft_node_spec){.op = opcode,
                                            .operand = operand,
                                            .operands = operands,
                                            .attr = attr,
                                            .attrs = attrs,
                                            .stated = stated,
                                            .name = op->name,
                                            .place = {.file = op->importer->reader.path, .where = op->name}});
    if (!node.id) {
        op->failed = true; /* the error is recorded */
        return WEFT_NO_VALUE;
    }
    return weft_node_of(op->graph, node)->results ? weft_result(op->graph, node, 0) : WEFT_NO_VALUE;
}

weft_val weft_onnx_unary(struct onnx_op *op, int opcode, weft_val x)
{
    return weft_onnx_make(op, opcode, 1, &x, 0, NULL, NULL);
}

weft_val weft_onnx_binary(struct onnx_op *op, int opcode, weft_val x, weft_val y)
{
    return weft_onnx_make(op, opcode, 2, (const weft_val[]){x, y}, 0, NULL, NULL);
}

weft_val weft_onnx_splat(struct onnx_op *op, const struct weft_type *type, double value)
{
    const bool integer = !weft_dtype_is_float(type->dtype);
    if (integer && !(value >= -0x1p63 && value < 0x1p63)) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the number %g is none of %s", value, weft_dtype_name(type->dtype));
        return WEFT_NO_VALUE;
    }
    return weft_onnx_element(op, type, &(struct weft_element){
        .is_integer = integer, .real = value, .integer = integer ? (int64_t)value : 0});
}

weft_val weft_onnx_element(struct onnx_op *op, const struct weft_type *type, const struct weft_element *element)
{
    if (op->failed)
        return WEFT_NO_VALUE;
    const weft_node node = weft_add_node(
        op->graph,
        &(struct weft_node_spec){
            .op = WEFT_OP_const,
            .stated = type,
            .name = op->name,
            .constant = &(struct weft_constant){
                .kind = WEFT_CONST_SPLAT, .integer = element->is_integer,
                .real = element->is_integer ? 0 : element->real, .splat = element->integer}});
    if (!node.id) {
        op->failed = true;
        return WEFT_NO_VALUE;
    }
    return weft_result(op->graph, node, 0);
}

weft_val weft_onnx_scalar_like(struct onnx_op *op, weft_val like, double value)
{
    const struct weft_type type = weft_onnx_type(op, like);
    return weft_onnx_splat(op, &type, value);
}

weft_val weft_onnx_cast(struct onnx_op *op, weft_val x, int dtype)
{
    struct weft_type type = weft_onnx_type(op, x);
    if (type.dtype == dtype)
        return x;
    type.dtype = (uint8_t)dtype;
    return weft_onnx_make(op, WEFT_OP_cast, 1, &x, 0, NULL, &type);
}

weft_val weft_onnx_widen(struct onnx_op *op, weft_val x)
{
    const int dtype = weft_onnx_type(op, x).dtype;
    return weft_onnx_cast(op, x, dtype == WEFT_F16 || dtype == WEFT_BF16 ? WEFT_F32 : dtype);
}

static bool same_shape(const struct weft_type *a, const struct weft_type *b)
{
    bool same = a->rank == b->rank;
    for (unsigned i = 0; same && i < a->rank; i++)
        same = weft_dim_same(a->extent[i], b->extent[i]);
    return same;
}

weft_val weft_onnx_reshape(struct onnx_op *op, weft_val x, unsigned rank, const weft_dim *extent)
{
    const struct weft_type from = weft_onnx_type(op, x);
    struct weft_type to = {.dtype = from.dtype, .rank = (uint8_t)rank};
    if (rank > WEFT_MAX_RANK)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "a shape of %u axes is more than %d", rank, WEFT_MAX_RANK);
    else if (rank)
        memcpy(to.extent, extent, rank * sizeof *extent);
    if (op->failed || same_shape(&from, &to))
        return x;
    return weft_onnx_make(op, WEFT_OP_reshape, 1, &x, 0, NULL, &to);
}

static void check_rank(struct onnx_op *op, weft_val x, unsigned wanted)
{
    const unsigned rank = weft_onnx_type(op, x).rank;
    if (!op->failed && rank != wanted)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "a tensor of %u axes is where one of %u is wanted", rank, wanted);
}

weft_val weft_onnx_transpose(struct onnx_op *op, weft_val x, unsigned rank, const unsigned *perm)
{
    check_rank(op, x, rank);
    weft_dim list[WEFT_MAX_RANK];
    for (unsigned i = 0; i < rank && !op->failed; i++)
        list[i] = weft_dim_of(perm[i]);
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_perm, rank, list);
    return weft_onnx_make(op, WEFT_OP_transpose, 1, &x, 1, &attr, NULL);
}

weft_val weft_onnx_slice(struct onnx_op *op, weft_val x, const weft_dim *start, const weft_dim *end,
                         const weft_dim *step)
{
    const unsigned rank = weft_onnx_type(op, x).rank;
    const struct weft_attr attr[] = {weft_attr_of_dims(WEFT_ATTR_start, rank, start),
                                     weft_attr_of_dims(WEFT_ATTR_end, rank, end),
                                     weft_attr_of_dims(WEFT_ATTR_step, rank, step)};
    return weft_onnx_make(op, WEFT_OP_slice, 1, &x, step ? 3 : 2, attr, NULL);
}

weft_val weft_onnx_reduction(struct onnx_op *op, int opcode, weft_val x, unsigned axes, const unsigned *axis,
                             bool keepdims)
{
    weft_dim list[WEFT_MAX_RANK];
    for (unsigned i = 0; i < axes; i++)
        list[i] = weft_dim_of(axis[i]);
    const struct weft_attr attr[] = {weft_attr_of_dims(WEFT_ATTR_axes, axes, list),
                                     weft_attr_of_int(WEFT_ATTR_keepdims, keepdims)};
    return weft_onnx_make(op, opcode, 1, &x, 2, attr, NULL);
}

/* --- broadcasting ------------------------------------------------------------------------------------------------- */

const char *weft_onnx_dim_text(struct onnx_op *op, weft_dim dim)
{
    struct weft_text text = {.context = op->importer->reader.context, .arena = op->importer->reader.arena};
    weft_dim_print(op->graph->dims, dim, &text);
    return text.data;
}

weft_dim weft_onnx_join(struct onnx_op *op, weft_dim a, weft_dim b)
{
    if (weft_dim_same(a, b) || weft_dim_is(b, 1))
        return a;
    if (weft_dim_is(a, 1))
        return b;
    const bool constant = weft_dim_is_constant(a) && weft_dim_is_constant(b);
    if (!op->failed && !constant && weft_onnx_assume_same(op, a, b)) {
        op->failed = true; /* in this import; the next one knows */
        return a;
    }
    weft_onnx_fail(op, constant ? WEFT_ERR_INVALID : WEFT_ERR_UNSUPPORTED,
                   constant ? "extents %s and %s do not broadcast"
                            : "extents %s and %s cannot be proved to broadcast; if they are always equal, the model's "
                              "inputs have to say so, by one name for both or by numbers",
                   weft_onnx_dim_text(op, a), weft_onnx_dim_text(op, b));
    return a;
}

void weft_onnx_common_shape(struct onnx_op *op, unsigned count, const weft_val *values, struct weft_type *ret)
{
    *ret = (struct weft_type){.dtype = WEFT_F32};
    for (unsigned i = 0; i < count && !op->failed; i++) {
        const struct weft_type type = weft_onnx_type(op, values[i]);
        for (; ret->rank < type.rank; ret->rank++) { /* room in front */
            memmove(ret->extent + 1, ret->extent, ret->rank * sizeof *ret->extent);
            ret->extent[0] = weft_dim_of(1);
        }
        for (unsigned axis = 0; axis < type.rank; axis++) {
            weft_dim *extent = &ret->extent[ret->rank - type.rank + axis];
            *extent = weft_onnx_join(op, *extent, type.extent[axis]);
        }
    }
}

weft_val weft_onnx_broadcast_axes(struct onnx_op *op, weft_val x, const struct weft_type *shape, unsigned count,
                                  const unsigned *axes)
{
    struct weft_type to = *shape;
    const struct weft_type from = weft_onnx_type(op, x);
    check_rank(op, x, count);
    if (op->failed || same_shape(&from, &to))
        return x;
    to.dtype = from.dtype;
    weft_dim list[WEFT_MAX_RANK];
    for (unsigned i = 0; i < from.rank; i++)
        list[i] = weft_dim_of(axes[i]);
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_dims, from.rank, list);
    return weft_onnx_make(op, WEFT_OP_bcast, 1, &x, 1, &attr, &to);
}

weft_val weft_onnx_broadcast(struct onnx_op *op, weft_val x, const struct weft_type *shape)
{
    const unsigned rank = weft_onnx_type(op, x).rank;
    if (!op->failed && rank > shape->rank)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "a tensor of %u axes does not broadcast to %u axes", rank, shape->rank);
    if (op->failed)
        return WEFT_NO_VALUE;
    unsigned axes[WEFT_MAX_RANK];
    for (unsigned i = 0; i < rank; i++)
        axes[i] = shape->rank - rank + i;
    return weft_onnx_broadcast_axes(op, x, shape, rank, axes);
}

/* 1: a <= b always; -1: a >= b always; 0: it depends. */
static int order(struct onnx_op *op, weft_dim a, weft_dim b)
{
    int64_t low, high;
    weft_dim_range(op->graph->dims, weft_dim_sub(op->graph->dims, b, a), &low, &high);
    return low >= 0 ? 1 : high <= 0 ? -1 : 0;
}

weft_dim weft_onnx_min(struct onnx_op *op, weft_dim a, weft_dim b)
{
    const int known = order(op, a, b);
    return known > 0 ? a : known < 0 ? b : weft_dim_min(op->graph->dims, a, b);
}

weft_dim weft_onnx_max(struct onnx_op *op, weft_dim a, weft_dim b)
{
    const int known = order(op, a, b);
    return known > 0 ? b : known < 0 ? a : weft_dim_max(op->graph->dims, a, b);
}
