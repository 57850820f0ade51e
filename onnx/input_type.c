/* SPDX-License-Identifier: Apache-2.0 */
/* input_type.c: the type of an input of a model or a body; named and open extents become symbols. */
#include "onnx/import.h"

#include <inttypes.h>
#include <string.h>

/* A name as a word of weft's language: other bytes become '_'. */
const char *weft_onnx_word_of(struct onnx_importer *importer, struct onnx_string source)
{
    char *word = weft_arena_copy(importer->reader.arena, source.data, source.length);
    for (size_t i = 0; i < source.length; i++) {
        const char c = word[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (i == 0 || c < '0' || c > '9'))
            word[i] = '_';
    }
    return word;
}

/* Words that collide, with each other or with functions of extents, and extents without a name get a number. */
static weft_dim new_symbol(struct onnx_importer *importer, struct onnx_string source)
{
    struct weft_dims *dims = importer->root->dims;
    const char *word = source.length ? weft_onnx_word_of(importer, source) : "d", *candidate = word;
    const bool plain = source.length && strcmp(word, "min") != 0 && strcmp(word, "max") != 0;
    weft_dim known;
    unsigned i = source.length ? 1 : importer->last_symbol + 1; /* not from the start each time */
    for (bool first = !plain; first || weft_symbol_find(dims, candidate, &known); i++, first = false)
        candidate = weft_arena_format(importer->reader.arena, source.length ? "%s_%u" : "%s%u", word, i);
    if (!source.length)
        importer->last_symbol = i - 1;
    int64_t low = 0, high = INT32_MAX;
    weft_onnx_apply_assumptions(importer->assumptions, candidate, &low, &high);
    return weft_symbol_add(dims, candidate, low, high, 0);
}

static weft_dim symbol_of(struct onnx_importer *importer, struct onnx_string source)
{
    struct weft_arena *arena = importer->reader.arena;
    if (!source.length)
        return new_symbol(importer, source);
    uint32_t i = weft_onnx_find_name(&importer->symbol, source);
    if (i == ONNX_NO_NAME) {
        i = weft_onnx_add_name(arena, &importer->symbol, source);
        importer->symbol_dim =
            weft_grow(arena, importer->symbol_dim, &importer->dim_capacity, i + 1, sizeof *importer->symbol_dim);
        importer->symbol_dim[i] = new_symbol(importer, source);
    }
    return importer->symbol_dim[i];
}

bool weft_onnx_value_type(struct onnx_importer *importer, const struct onnx_value *value, struct weft_type *ret_type)
{
    const char *name = weft_onnx_text(importer, value->name);
    if (!value->is_tensor)
        return weft_onnx_fail_at(importer, WEFT_ERR_UNSUPPORTED, name, "the input is no tensor");
    const int dtype = weft_onnx_dtype(value->type);
    if (!dtype)
        return weft_onnx_fail_at(importer, WEFT_ERR_UNSUPPORTED, name,
                                 "the input has elements of type %s (%d), which are not supported",
                                 weft_onnx_dtype_name(value->type), value->type);
    if (!value->has_shape)
        return weft_onnx_fail_at(importer, WEFT_ERR_UNSUPPORTED, name, "the input has no shape");
    if (value->rank > WEFT_MAX_RANK)
        return weft_onnx_fail_at(importer, WEFT_ERR_UNSUPPORTED, name, "the input has %u axes, more than %d",
                                 value->rank, WEFT_MAX_RANK);
    *ret_type = (struct weft_type){.dtype = (uint8_t)dtype, .rank = (uint8_t)value->rank};
    for (unsigned i = 0; i < value->rank; i++) {
        const struct onnx_dim *dim = &value->dim[i];
        const bool fixed = dim->has_value && dim->value > 0; /* exporters write 0 and -1 for what they do not know */
        if (fixed && dim->value > INT64_MAX / 128)
            return weft_onnx_fail_at(importer, WEFT_ERR_INVALID, name,
                                     "extent %" PRId64 " of axis %u is too large", dim->value, i);
        ret_type->extent[i] = fixed ? weft_dim_of(dim->value) : symbol_of(importer, dim->symbol);
    }
    if (!weft_type_check_size(ret_type))
        return weft_onnx_fail_at(importer, WEFT_ERR_INVALID, name, "the input has more elements than any memory holds");
    return true;
}

/* --- inputs that the caller fixed --------------------------------------------------------------------------------- */

/* A symbol of a fixed shape is a number; false if it was another one before. */
static bool bind_symbol(struct onnx_importer *importer, struct onnx_string source, int64_t extent)
{
    uint32_t i = source.length ? weft_onnx_find_name(&importer->symbol, source) : ONNX_NO_NAME;
    if (i != ONNX_NO_NAME)
        return weft_dim_is(importer->symbol_dim[i], extent);
    if (!source.length)
        return true;
    struct weft_arena *arena = importer->reader.arena;
    i = weft_onnx_add_name(arena, &importer->symbol, source);
    importer->symbol_dim =
        weft_grow(arena, importer->symbol_dim, &importer->dim_capacity, i + 1, sizeof *importer->symbol_dim);
    importer->symbol_dim[i] = weft_dim_of(extent);
    return true;
}

/* Extents that can be, elements that are there and lie packed; none lie anywhere. */
static bool is_array(struct onnx_importer *importer, const char *name, const struct weft_tensor *tensor)
{
    struct weft_type type = {.dtype = (uint8_t)tensor->dtype, .rank = (uint8_t)tensor->rank};
    bool packed = true, empty = false, possible = true;
    for (int axis = 0; axis < tensor->rank; axis++) {
        possible &= tensor->extent[axis] >= 0 && tensor->extent[axis] <= INT64_MAX / 128;
        empty |= tensor->extent[axis] == 0;
        type.extent[axis] = weft_dim_of(possible ? tensor->extent[axis] : 0);
    }
    if (!possible || !weft_type_check_size(&type))
        return weft_onnx_fail_at(importer, WEFT_ERR_ARGUMENT, name, "the fixed value has extents that no array has");
    int64_t step = 1;
    for (int axis = tensor->rank - 1; axis >= 0 && !empty; axis--) {
        packed &= tensor->extent[axis] == 1 || tensor->stride[axis] == step;
        step *= tensor->extent[axis];
    }
    if (!packed)
        return weft_onnx_fail_at(importer, WEFT_ERR_ARGUMENT, name, "the fixed value is not packed row-major");
    return empty || tensor->data ||
           weft_onnx_fail_at(importer, WEFT_ERR_ARGUMENT, name, "the fixed value has no data");
}

bool weft_onnx_fits(struct onnx_importer *importer, const struct onnx_value *value, const struct weft_tensor *tensor)
{
    const char *name = weft_onnx_text(importer, value->name);
    if (!value->is_tensor || weft_onnx_dtype(value->type) != tensor->dtype)
        return weft_onnx_fail_at(importer, WEFT_ERR_ARGUMENT, name, "the fixed value is %s, but the input is %s",
                                 weft_dtype_name(tensor->dtype),
                                 !value->is_tensor ? "no tensor"
                                 : weft_onnx_dtype(value->type) ? weft_dtype_name(weft_onnx_dtype(value->type))
                                                                : weft_onnx_dtype_name(value->type));
    if (tensor->rank < 0 || tensor->rank > WEFT_MAX_RANK ||
        (value->has_shape && (uint32_t)tensor->rank != value->rank))
        return weft_onnx_fail_at(importer, WEFT_ERR_ARGUMENT, name, "the fixed value has %d axes, but the input has %u",
                                 (int)tensor->rank, value->rank);
    if (!is_array(importer, name, tensor))
        return false;
    for (unsigned i = 0; value->has_shape && i < value->rank; i++) {
        const struct onnx_dim *dim = &value->dim[i];
        const bool stated = dim->has_value && dim->value > 0;
        if (stated ? dim->value != tensor->extent[i] : !bind_symbol(importer, dim->symbol, tensor->extent[i]))
            return weft_onnx_fail_at(importer, WEFT_ERR_ARGUMENT, name,
                                     "axis %u of the fixed value has %" PRId64 " elements, which is not what the model "
                                     "and the other fixed values say", i, tensor->extent[i]);
    }
    return true;
}
