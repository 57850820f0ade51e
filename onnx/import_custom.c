/* SPDX-License-Identifier: Apache-2.0 */
/* import_custom.c: nodes whose op the caller has registered a function for (weft_custom.domain and .op).
 *
 *   acme.TopTwo(x) axis=1           →       %v: f32[8,2], %i: i64[8,2] = custom %x function=top_two with=[axis=1]
 *
 * Inputs are operands, attributes are named values, and the function's rule gives the types of all results, of which a
 * node may have fewer: the others are computed all the same. An absent input can only be left out at the end, since
 * weft knows no absent operand. */
#include "ir/custom.h"
#include "ir/values.h"
#include "onnx/import.h"

#include <string.h>

const struct weft_custom_entry *weft_onnx_custom_of(const struct onnx_importer *importer, const struct onnx_node *node)
{
    return weft_custom_find_op(importer->reader.context, node->domain.data, node->domain.length, node->op.data,
                               node->op.length);
}

static bool has_zero(struct onnx_string s) { return s.length && memchr(s.data, '\0', s.length); }

static const struct weft_tensor *read_array(struct onnx_op *op, const struct onnx_attribute *attribute,
                                            const char *name)
{
    struct onnx_importer *const importer = op->importer;
    struct onnx_tensor source;
    struct weft_tensor *const array = weft_new(importer->reader.arena, struct weft_tensor, 1);
    int64_t elements = 1;
    if (!weft_onnx_read_tensor(&importer->reader, attribute->message, &source)) {
        op->failed = true; /* the error is recorded */
        return array;
    }
    for (uint32_t i = 0; i < source.rank && i < WEFT_MAX_RANK && elements <= WEFT_MOST_ARRAY; i++)
        elements = source.dim[i] > WEFT_MOST_ARRAY ? WEFT_MOST_ARRAY + 1 : elements * source.dim[i];
    if (elements > WEFT_MOST_ARRAY) {
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute %s has more than %d elements, which custom functions take "
                       "as inputs only", name, WEFT_MOST_ARRAY);
        return array;
    }
    const weft_val constant = weft_onnx_constant(importer, op->graph, &source, name);
    if (!constant.id) {
        op->failed = true;
        return array;
    }
    weft_tensor_of(op->graph, weft_type_of(op->graph, constant), NULL, array);
    array->data = weft_arena_new(importer->reader.arena, weft_tensor_bytes(array));
    weft_const_write(op->graph, constant, array->data);
    weft_erase_node(op->graph, weft_def(op->graph, constant));
    return array;
}

static const double *read_reals(struct onnx_op *op, const struct onnx_attribute *attribute)
{
    double *const reals = weft_new(op->importer->reader.arena, double, attribute->count);
    for (uint32_t i = 0; i < attribute->count; i++)
        reals[i] = (double)attribute->reals[i];
    return reals;
}

static const char *const *read_texts(struct onnx_op *op, const struct onnx_attribute *attribute, const char *name)
{
    const char **const texts = weft_new(op->importer->reader.arena, const char *, attribute->strings.count);
    for (uint32_t i = 0; i < attribute->strings.count; i++) {
        if (has_zero(attribute->strings.item[i]))
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "a text of attribute %s holds a zero byte", name);
        texts[i] = weft_onnx_text(op->importer, attribute->strings.item[i]);
    }
    return texts;
}

static struct weft_custom_value read_value(struct onnx_op *op, struct onnx_attribute *attribute)
{
    struct weft_custom_value value = {.name = weft_onnx_text(op->importer, attribute->name)};
    attribute->used = true;
    if (!weft_values_is_name(attribute->name.data, attribute->name.length))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "the name of an attribute, \"%.80s\", is no word", value.name);
    if (attribute->is_reference)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute %s refers to a function's attribute outside of a function",
                       value.name);
    switch (attribute->type) {
    case ONNX_FLOAT: value.kind = WEFT_CUSTOM_REAL; value.real = (double)attribute->real; break;
    case ONNX_INT: value.kind = WEFT_CUSTOM_INTEGER; value.integer = attribute->integer; break;
    case ONNX_STRING:
        value.kind = WEFT_CUSTOM_TEXT;
        value.text = weft_onnx_text(op->importer, attribute->string);
        if (has_zero(attribute->string))
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute %s holds a zero byte", value.name);
        break;
    case ONNX_FLOATS: value.kind = WEFT_CUSTOM_REALS; value.reals = read_reals(op, attribute); break;
    case ONNX_INTS: value.kind = WEFT_CUSTOM_INTEGERS; value.integers = attribute->integers; break;
    case ONNX_STRINGS: value.kind = WEFT_CUSTOM_TEXTS; value.texts = read_texts(op, attribute, value.name); break;
    case ONNX_TENSOR: value.kind = WEFT_CUSTOM_ARRAY; value.array = read_array(op, attribute, value.name); break;
    default:
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute %s is of a kind that custom functions do not get: they get "
                       "numbers, texts, lists of these, and tensors", value.name);
    }
    value.count = attribute->type == ONNX_STRINGS ? attribute->strings.count
                  : attribute->type == ONNX_FLOATS || attribute->type == ONNX_INTS ? attribute->count : 0;
    return value;
}

static void check_inputs(struct onnx_op *op)
{
    for (unsigned i = 0; i < op->inputs; i++)
        if (!op->input[i].id)
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "input %u is absent, which only inputs at the end may be where a "
                           "custom function computes the node", i);
}

void weft_onnx_custom(struct onnx_op *op, const struct weft_custom_entry *entry)
{
    const unsigned results = (unsigned)entry->custom.results;
    struct weft_custom_value *const values =
        weft_new(op->importer->reader.arena, struct weft_custom_value, op->node->attributes);
    if (op->outputs > results)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the node has %u outputs, but custom function '%s' has %u result%s",
                       op->outputs, entry->name, results, results == 1 ? "" : "s");
    check_inputs(op);
    for (uint32_t i = 0; i < op->node->attributes && !op->failed; i++)
        values[i] = read_value(op, &op->node->attribute[i]);
    const char *const wrong = op->failed ? NULL : weft_values_check(values, op->node->attributes);
    if (wrong)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "its attributes cannot be handed to custom function '%s': %s",
                       entry->name, wrong);
    const struct weft_attr attr[] = {
        {.key = WEFT_ATTR_function, .kind = WEFT_ATTR_WORD, .word = entry->name},
        {.key = WEFT_ATTR_with, .kind = WEFT_ATTR_VALUES, .values = values, .count = op->node->attributes}};
    const weft_val first = weft_onnx_make(op, WEFT_OP_custom, op->inputs, op->input, op->node->attributes ? 2 : 1, attr,
                                          NULL);
    for (unsigned i = 0; i < op->outputs && !op->failed; i++)
        op->output[i] = weft_result(op->graph, weft_def(op->graph, first), i);
}
