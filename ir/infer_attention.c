/* SPDX-License-Identifier: Apache-2.0 */
/* infer_attention.c: attention, also with the sums of its rows, and its gradient. */
#include "ir/infer.h"

/* Queries, keys and values, from operand `first` on. */
static bool attention_fails(struct weft_infer *infer, unsigned first, const char *why)
{
    return weft_infer_fail(infer, "operands are %s, %s and %s: %s",
                           weft_infer_type_text(infer, weft_infer_type(infer, first)),
                           weft_infer_type_text(infer, weft_infer_type(infer, first + 1)),
                           weft_infer_type_text(infer, weft_infer_type(infer, first + 2)), why);
}

static bool is_attention(struct weft_infer *infer, unsigned first)
{
    const struct weft_type *query = weft_infer_type(infer, first), *key = weft_infer_type(infer, first + 1),
                           *value = weft_infer_type(infer, first + 2);
    int64_t causal;
    weft_dim group;
    if (!weft_infer_family(infer, first, WEFT_FAMILY_REAL) || !weft_infer_same_dtype(infer, first, first + 1) ||
        !weft_infer_same_dtype(infer, first, first + 2) || !weft_infer_int(infer, WEFT_ATTR_causal, 0, 1, &causal))
        return false;
    if (query->rank != 4 || key->rank != 4 || value->rank != 4)
        return attention_fails(infer, first, "each must have axes for batch, head, position and width");
    if (!weft_dim_same(query->extent[0], key->extent[0]) || !weft_dim_same(query->extent[0], value->extent[0]) ||
        !weft_dim_same(key->extent[1], value->extent[1]) || !weft_dim_same(key->extent[2], value->extent[2]) ||
        !weft_dim_same(query->extent[3], key->extent[3]))
        return attention_fails(infer, first, "batches, heads and positions of keys and values, and widths of queries "
                                             "and keys must be equal");
    if (!weft_dim_divides(infer->graph->dims, query->extent[1], key->extent[1], &group) ||
        weft_infer_below(infer, key->extent[1], 1))
        return attention_fails(infer, first, "the heads of queries must be a multiple of those of keys");
    return true;
}

/* The operand, if it is there, has the type: `what` it is, for the message. */
static bool is_as(struct weft_infer *infer, unsigned operand, const char *what, const struct weft_type *type)
{
    return operand >= infer->operands || weft_type_same(weft_infer_type(infer, operand), type) ||
           weft_infer_fail(infer, "%s is %s instead of %s", what,
                           weft_infer_type_text(infer, weft_infer_type(infer, operand)),
                           weft_infer_type_text(infer, type));
}

static struct weft_type mask_of(const struct weft_type *query, const struct weft_type *key)
{
    return (struct weft_type){.dtype = query->dtype,
                              .rank = 4,
                              .extent = {query->extent[0], query->extent[1], query->extent[2], key->extent[2]}};
}

/* A number for each row; of 16-bit floats in f32, since it is a logarithm of a sum. */
static struct weft_type sums_of(const struct weft_type *query)
{
    return (struct weft_type){.dtype = weft_dtype_is_half(query->dtype) ? WEFT_F32 : query->dtype,
                              .rank = 3,
                              .extent = {query->extent[0], query->extent[1], query->extent[2]}};
}

bool weft_infer_attention(struct weft_infer *infer)
{
    const struct weft_type *query = weft_infer_type(infer, 0);
    if (!is_attention(infer, 0))
        return false;
    const struct weft_type mask = mask_of(query, weft_infer_type(infer, 1));
    if (!is_as(infer, 3, "the mask", &mask))
        return false;
    infer->result[0] = *query;
    infer->result[0].extent[3] = weft_infer_type(infer, 2)->extent[3];
    if (infer->results == 2)
        infer->result[1] = sums_of(query);
    return true;
}

bool weft_infer_attention_grad(struct weft_infer *infer)
{
    const struct weft_type *query = weft_infer_type(infer, 1), *key = weft_infer_type(infer, 2),
                           *value = weft_infer_type(infer, 3);
    if (!is_attention(infer, 1))
        return false;
    const struct weft_type mask = mask_of(query, key), sums = sums_of(query);
    struct weft_type result = *query;
    result.extent[3] = value->extent[3];
    if (!is_as(infer, 0, "the gradient", &result) || !is_as(infer, 4, "the result", &result) ||
        !is_as(infer, 5, "the logarithm of sums", &sums) || !is_as(infer, 6, "the mask", &mask))
        return false;
    infer->result[0] = *query;
    infer->result[1] = *key;
    infer->result[2] = *value;
    return true;
}
