/* SPDX-License-Identifier: Apache-2.0 */
/* layout_copy.c: how memory is walked: runs, vectors, and the kind of copy between two layouts.
 *
 * For a conversion the digits of both layouts are refined to common ones, axis by axis: borders of either must
 * divide each other. A common digit has a stride in both; those with stride 1, then 1·extent, … in both make up the
 * run. A digit whose last block is not full counts only with the greatest length that all its blocks are multiples
 * of, and ends the run: so all elements move in runs of exactly the length that is reported. Symbolic numbers are
 * taken at their hints, as costs are. */
#include "ir/layout_digits.h"

int64_t weft_layout_run(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type)
{
    weft_dim stride[WEFT_MAX_STORAGE];
    weft_layout_strides(dims, layout, type, stride);
    int64_t run = 1;
    for (int i = layout->axes - 1; i >= 0; i--) {
        const int64_t extent = weft_dim_hint(dims, weft_layout_axis_extent(dims, layout, i, type));
        if (extent == 1)
            continue;
        if (weft_dim_hint(dims, stride[i]) != run)
            break;
        run *= extent;
    }
    return run;
}

int64_t weft_layout_vector_width(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                                 int dtype, int64_t limit)
{
    weft_dim stride[WEFT_MAX_STORAGE], quotient;
    weft_layout_strides(dims, layout, type, stride);
    int inner = layout->axes - 1;
    while (inner >= 0 && weft_dim_is(weft_layout_axis_extent(dims, layout, inner, type), 1))
        inner--;
    if (inner < 0 || !weft_dim_is(stride[inner], 1))
        return 1;
    const int64_t extent = weft_dim_hint(dims, weft_layout_axis_extent(dims, layout, inner, type));
    int64_t width = 1;
    while (2 * width <= limit && 2 * width <= extent &&
           2 * width * (int64_t)weft_dtype_bits(dtype) <= 8 * (int64_t)layout->align)
        width *= 2;
    for (int i = 0; i < inner; i++)
        while (width > 1 && !weft_dim_is(weft_layout_axis_extent(dims, layout, i, type), 1) &&
               !weft_dim_divides(dims, stride[i], weft_dim_of(width), &quotient))
            width /= 2;
    return width;
}

/* --- conversions -------------------------------------------------------------------------------------------------- */

struct digit {
    int64_t length;          /* indices that move together, at most */
    bool whole;              /* length is all of the digit, everywhere */
    int64_t stride[2];       /* in a and in b */
};

struct conversion {
    struct weft_dims *dims;
    const struct weft_type *type;
    struct digit digit[2 * WEFT_MAX_STORAGE];
    int digits;
    bool refined;            /* all axes have common digits */
    bool has_unit[2];        /* some axis goes through neighbours */
    int64_t elements;
};

/* Stride of the digit that begins at div in a function of pieces. */
static int64_t stride_at(struct weft_dims *dims, const struct weft_pieces *pieces, int64_t div)
{
    int k = pieces->count - 1;
    while (k > 0 && pieces->div[k] > div)
        k--;
    return weft_dim_hint(dims, pieces->stride[k]) * (div / pieces->div[k]);
}

/* What all borders from `next` on, and the extent, are multiples of. */
static int64_t common_block(const struct weft_pieces pieces[2], int64_t next, int64_t extent)
{
    int64_t block = weft_gcd(extent, next);
    for (int side = 0; side < 2; side++)
        for (int k = 1; k < pieces[side].count; k++)
            if (pieces[side].div[k] > next && pieces[side].div[k] < extent)
                block = weft_gcd(block, pieces[side].div[k]);
    return block;
}

/* Common digits of one axis; those above the first pair of borders that do not divide are left out. */
static void refine_axis(struct conversion *c, int axis, const struct weft_pieces pieces[2])
{
    const int64_t extent = weft_dim_hint(c->dims, c->type->extent[axis]);
    c->elements *= extent;
    for (int64_t div = 1, next; div < extent; div = next) {
        next = extent;
        for (int side = 0; side < 2; side++)
            for (int k = 1; k < pieces[side].count; k++)
                if (pieces[side].div[k] > div && pieces[side].div[k] < next)
                    next = pieces[side].div[k];
        if (next < extent && next % div != 0) {
            c->refined = false;
            return;
        }
        const int64_t block = common_block(pieces, next, extent);
        const struct digit digit = {
            .length = block % div ? 1 : block / div,
            .whole = block == next && next % div == 0,
            .stride = {stride_at(c->dims, &pieces[0], div), stride_at(c->dims, &pieces[1], div)}};
        for (int side = 0; side < 2; side++)
            c->has_unit[side] = c->has_unit[side] || digit.stride[side] == 1;
        c->digit[c->digits++] = digit;
    }
}

static int64_t common_run(struct conversion *c)
{
    int64_t run = 1;
    for (int k = 0; k < c->digits; k++) {
        struct digit *digit = &c->digit[k];
        if (digit->stride[0] != run || digit->stride[1] != run)
            continue;
        run *= digit->length;
        if (!digit->whole)
            break;
        *digit = c->digit[--c->digits];
        k = -1;
    }
    return run;
}

enum weft_conversion weft_layout_conversion(struct weft_dims *dims, const struct weft_layout *a,
                                            const struct weft_layout *b, const struct weft_type *type, int64_t *ret_run)
{
    weft_dim a_stride[WEFT_MAX_STORAGE], b_stride[WEFT_MAX_STORAGE];
    weft_layout_strides(dims, a, type, a_stride);
    weft_layout_strides(dims, b, type, b_stride);
    struct conversion c = {.dims = dims, .type = type, .refined = true, .elements = 1};
    for (int axis = 0; axis < type->rank; axis++) {
        struct weft_pieces pieces[2];
        weft_layout_pieces(dims, a, type, a_stride, axis, &pieces[0]);
        weft_layout_pieces(dims, b, type, b_stride, axis, &pieces[1]);
        if (pieces[0].count && pieces[1].count)
            refine_axis(&c, axis, pieces);
    }
    *ret_run = common_run(&c);
    if (weft_layout_equal(dims, a, b, type))
        return WEFT_CONVERT_NONE;
    if (*ret_run > 1 || c.elements <= 1)
        return WEFT_CONVERT_RUNS;
    return c.refined && c.has_unit[0] && c.has_unit[1] ? WEFT_CONVERT_TRANSPOSE : WEFT_CONVERT_GENERAL;
}
