/* SPDX-License-Identifier: Apache-2.0 */
/* infer.c: the frame of type inference: arity, attributes, then the rule of the op's row.
 *
 * Inference runs before a node exists, so a rule sees operands, attributes and (for stated ops) the wanted type, and
 * either fills in the result or reports one error and refuses. Extents are expressions over symbols; they are equal
 * when their bits are. An inequality (a slice within its axis) is an error only when it is violated for all values of
 * the symbols: one that holds for some sizes only is found when the sizes are known. */
#include "ir/infer.h"

#include <stdio.h>
#include <string.h>

bool weft_infer_fail(struct weft_infer *infer, const char *format, ...)
{
    char message[1024]; /* as much as a diagnostic holds */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    weft_error(infer->graph->context, WEFT_ERR_INVALID, infer->place, "%s: %s", weft_ops[infer->op].name, message);
    return false;
}

const struct weft_type *weft_infer_type(const struct weft_infer *infer, unsigned operand)
{
    return weft_type_of(infer->graph, infer->operand[operand]);
}

static const char *text_in_arena(const struct weft_text *text) { return text->length ? text->data : ""; }

const char *weft_infer_type_text(struct weft_infer *infer, const struct weft_type *type)
{
    struct weft_text text = {.context = infer->graph->context, .arena = infer->graph->arena};
    weft_type_print(infer->graph->dims, type, &text);
    return text_in_arena(&text);
}

const char *weft_infer_dim_text(struct weft_infer *infer, weft_dim d)
{
    struct weft_text text = {.context = infer->graph->context, .arena = infer->graph->arena};
    weft_dim_print(infer->graph->dims, d, &text);
    return text_in_arena(&text);
}

/* --- attributes -------------------------------------------------------------------------------------------- */

const struct weft_attr *weft_infer_attr(const struct weft_infer *infer, int key)
{
    for (unsigned i = 0; i < infer->attrs; i++)
        if (infer->attr[i].key == key)
            return &infer->attr[i];
    return NULL;
}

static weft_dim fallback(const struct weft_infer *infer, int key)
{
    const struct weft_attr_spec *spec = weft_attr_spec_find(infer->op, key);
    return weft_dim_of(spec && spec->has_default ? (int64_t)spec->fallback : 0);
}

weft_dim weft_infer_dim(const struct weft_infer *infer, int key)
{
    const struct weft_attr *attr = weft_infer_attr(infer, key);
    return attr ? attr->integer : fallback(infer, key);
}

weft_dim weft_infer_at(const struct weft_infer *infer, int key, unsigned i)
{
    const struct weft_attr *attr = weft_infer_attr(infer, key);
    return attr ? attr->integers[i] : fallback(infer, key);
}

const char *weft_infer_word(const struct weft_infer *infer, int key)
{
    const struct weft_attr *attr = weft_infer_attr(infer, key);
    return attr ? attr->word : weft_attr_spec_find(infer->op, key)->word;
}

bool weft_infer_int(struct weft_infer *infer, int key, int64_t low, int64_t high, int64_t *ret)
{
    const weft_dim d = weft_infer_dim(infer, key);
    if (!weft_dim_is_constant(d) || weft_dim_value(d) < low || weft_dim_value(d) > high)
        return weft_infer_fail(infer, "attribute %s is %s, but must be a number from %lld to %lld",
                               weft_attr_names[key], weft_infer_dim_text(infer, d), (long long)low, (long long)high);
    *ret = weft_dim_value(d);
    return true;
}

bool weft_infer_int_at(struct weft_infer *infer, int key, unsigned i, int64_t low, int64_t *ret)
{
    const weft_dim d = weft_infer_at(infer, key, i);
    if (!weft_dim_is_constant(d) || weft_dim_value(d) < low || weft_dim_value(d) > INT32_MAX)
        return weft_infer_fail(infer, "element %u of attribute %s is %s, but must be a number of at least %lld", i,
                               weft_attr_names[key], weft_infer_dim_text(infer, d), (long long)low);
    *ret = weft_dim_value(d);
    return true;
}

bool weft_infer_axis(struct weft_infer *infer, int rank, int *ret)
{
    const weft_dim d = weft_infer_dim(infer, WEFT_ATTR_axis);
    if (!weft_dim_is_constant(d) || weft_dim_value(d) < 0 || weft_dim_value(d) >= rank)
        return weft_infer_fail(infer, "axis %s does not exist in a tensor of rank %d", weft_infer_dim_text(infer, d),
                               rank);
    *ret = (int)weft_dim_value(d);
    return true;
}

bool weft_infer_length(struct weft_infer *infer, int key, unsigned n)
{
    const struct weft_attr *attr = weft_infer_attr(infer, key);
    if (attr && attr->count != n)
        return weft_infer_fail(infer, "attribute %s has %u elements instead of %u", weft_attr_names[key], attr->count,
                               n);
    return true;
}

/* --- types ------------------------------------------------------------------------------------------------- */

static unsigned family_of(int dtype)
{
    return dtype == WEFT_BOOL ? WEFT_FAMILY_BOOL : weft_dtype_is_float(dtype) ? WEFT_FAMILY_REAL : WEFT_FAMILY_INTEGER;
}

bool weft_infer_family(struct weft_infer *infer, unsigned operand, unsigned families)
{
    static const char *const wanted[] = {"",     "a float",         "an integer",         "a float or integer",
                                         "bool", "a float or bool", "an integer or bool", "a float, integer or bool"};
    const struct weft_type *type = weft_infer_type(infer, operand);
    if (weft_dtype_is_storage_only(type->dtype))
        return weft_infer_fail(infer, "operand %u is %s, a type for storage only: cast it first", operand,
                               weft_infer_type_text(infer, type));
    if (!(family_of(type->dtype) & families))
        return weft_infer_fail(infer, "operand %u is %s, but its elements must be %s", operand,
                               weft_infer_type_text(infer, type), wanted[families]);
    return true;
}

bool weft_infer_same(struct weft_infer *infer, unsigned a, unsigned b)
{
    const struct weft_type *x = weft_infer_type(infer, a), *y = weft_infer_type(infer, b);
    if (!weft_type_same(x, y))
        return weft_infer_fail(infer, "operand %u is %s, but operand %u is %s", b, weft_infer_type_text(infer, y), a,
                               weft_infer_type_text(infer, x));
    return true;
}

bool weft_infer_same_dtype(struct weft_infer *infer, unsigned a, unsigned b)
{
    const struct weft_type *x = weft_infer_type(infer, a), *y = weft_infer_type(infer, b);
    if (x->dtype != y->dtype)
        return weft_infer_fail(infer, "operand %u is %s, but operand %u is %s: the element types differ", b,
                               weft_infer_type_text(infer, y), a, weft_infer_type_text(infer, x));
    return true;
}

bool weft_infer_accumulator(struct weft_infer *infer, int operand_dtype, uint8_t *ret)
{
    const struct weft_attr *attr = weft_infer_attr(infer, WEFT_ATTR_acc);
    const int acc = attr ? attr->dtype : operand_dtype;
    if (weft_dtype_is_storage_only(acc) || family_of(acc) != family_of(operand_dtype) ||
        weft_dtype_bits(acc) < weft_dtype_bits(operand_dtype))
        return weft_infer_fail(infer, "%s cannot be accumulated in %s", weft_dtype_name(operand_dtype),
                               weft_dtype_name(acc));
    *ret = (uint8_t)acc;
    return true;
}

bool weft_infer_below(const struct weft_infer *infer, weft_dim d, int64_t low)
{
    int64_t lowest, highest;
    weft_dim_range(infer->graph->dims, d, &lowest, &highest);
    return highest < low;
}

/* --- the frame --------------------------------------------------------------------------------------------- */

static bool is_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        const size_t here = strcspn(at, " ");
        if (here == length && memcmp(at, word, length) == 0)
            return true;
        at += here;
    }
    return false;
}

static bool check_attr(struct weft_infer *infer, unsigned i)
{
    const struct weft_attr *attr = &infer->attr[i];
    const struct weft_attr_spec *spec = weft_attr_spec_find(infer->op, attr->key);
    const char *name = attr->key < WEFT_ATTR_COUNT ? weft_attr_names[attr->key] : "?";
    if (!spec)
        return weft_infer_fail(infer, "has no attribute %s", name);
    for (unsigned j = 0; j < i; j++)
        if (infer->attr[j].key == attr->key)
            return weft_infer_fail(infer, "attribute %s is given twice", name);
    if (attr->kind != weft_attr_kinds[attr->key])
        return weft_infer_fail(infer, "attribute %s is of the wrong kind", name);
    if (spec->words && (!attr->word || !is_word(spec->words, attr->word)))
        return weft_infer_fail(infer, "attribute %s is %s, but must be one of: %s", name,
                               attr->word ? attr->word : "missing", spec->words);
    if (attr->kind == WEFT_ATTR_GRAPH && (!attr->graph || attr->graph->parent != infer->graph))
        return weft_infer_fail(infer, "attribute %s is no body of this graph", name);
    if (attr->kind == WEFT_ATTR_DTYPE && !weft_dtype_name(attr->dtype))
        return weft_infer_fail(infer, "attribute %s is no element type", name);
    return true;
}

static bool check_arity(struct weft_infer *infer)
{
    const struct weft_op_info *op = &weft_ops[infer->op];
    const unsigned least = (unsigned)op->min_operands;
    const unsigned most = op->max_operands < 0 ? UINT16_MAX : (unsigned)op->max_operands;
    if (infer->operands >= least && infer->operands <= most)
        return true;
    const bool few = infer->operands < least;
    const unsigned wanted = few ? least : most;
    return weft_infer_fail(infer, "takes %s%u operand%s, not %u", least == most ? "" : few ? "at least " : "at most ",
                           wanted, wanted == 1 ? "" : "s", infer->operands);
}

static bool run(struct weft_infer *infer)
{
    weft_assert(infer->op > WEFT_OP_NONE && infer->op < WEFT_OP_COUNT);
    const struct weft_op_info *op = &weft_ops[infer->op];
    (void)weft_dims_tried(infer->graph->dims); /* an earlier call that ran out of memory did not come to that */
    if (!check_arity(infer))
        return false;
    for (unsigned i = 0; i < infer->operands; i++)
        if (!infer->operand[i].id || infer->operand[i].id >= infer->graph->values)
            return weft_infer_fail(infer, "operand %u is no value of this graph", i);
    for (unsigned i = 0; i < infer->attrs; i++)
        if (!check_attr(infer, i))
            return false;
    for (const struct weft_attr_spec *spec = op->attrs; spec->key != WEFT_ATTR_NONE; spec++)
        if (spec->required && !weft_infer_attr(infer, spec->key))
            return weft_infer_fail(infer, "attribute %s is missing", weft_attr_names[spec->key]);
    if (op->results >= 0 && infer->results != (unsigned)op->results)
        return weft_infer_fail(infer, "has %d result%s, not %u", op->results, op->results == 1 ? "" : "s",
                               infer->results);
    const bool stated = op->traits & WEFT_STATED && infer->op != WEFT_OP_custom; /* whose rule looks for itself */
    if (stated && !weft_dtype_name(infer->result[0].dtype))
        return weft_infer_fail(infer, "the type of the result is missing");
    if (stated)
        for (int axis = 0; axis < infer->result[0].rank; axis++)
            if (weft_infer_below(infer, infer->result[0].extent[axis], 0))
                return weft_infer_fail(infer, "extent %s of axis %d is negative",
                                       weft_infer_dim_text(infer, infer->result[0].extent[axis]), axis);
    if (!op->infer(infer))
        return false;
    for (unsigned i = 0; i < infer->results; i++)
        if (!weft_type_check_size(&infer->result[i]))
            return weft_infer_fail(infer, "the result is %s, which is more elements than any memory holds",
                                   weft_infer_type_text(infer, &infer->result[i]));
    return true;
}

bool weft_infer_run(struct weft_infer *infer)
{
    struct weft_context *context = infer->graph->context;
    const struct weft_place outside = context->here;
    if (infer->place && (infer->place->file || infer->place->line || infer->place->where))
        context->here = *infer->place; /* of what expressions refuse */
    const bool legal = run(infer);
    context->here = outside;
    return legal;
}
