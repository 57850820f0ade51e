/* SPDX-License-Identifier: Apache-2.0 */
/* infer_data.c: types of ops whose results have as many elements as the data says. The symbols are those of the
 * attribute `extent`; they must be declared as computed, and no other node may define them (validate.c). */
#include "ir/infer.h"

/* Element i of `extent` is a symbol declared as data(…). */
bool weft_infer_defined(struct weft_infer *infer, unsigned i, weft_dim *ret)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_attr *extent = weft_infer_attr(infer, WEFT_ATTR_extent);
    uint32_t symbol;
    if (!extent || i >= extent->count)
        return weft_infer_fail(infer, "attribute extent names %u symbols, but needs %u", extent ? extent->count : 0,
                               i + 1);
    if (!weft_dim_is_symbol(dims, extent->integers[i], &symbol) || !weft_symbol_at(dims, symbol)->data)
        return weft_infer_fail(infer, "extent %s is not a symbol declared as data(…) in the graph's head",
                               weft_infer_dim_text(infer, extent->integers[i]));
    *ret = extent->integers[i];
    return true;
}

/* [rank, K]: a column of indices for each element that is not zero, in row-major order. */
bool weft_infer_nonzero(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0);
    weft_dim found;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_ALL) || !weft_infer_length(infer, WEFT_ATTR_extent, 1) ||
        !weft_infer_defined(infer, 0, &found))
        return false;
    infer->result[0] =
        (struct weft_type){.dtype = WEFT_I64, .rank = 2, .extent = {weft_dim_of(x->rank), found}};
    return true;
}
