/* SPDX-License-Identifier: Apache-2.0 */
/* layout_reshape.c: when is a reshape a view?
 *
 * Both shapes number the same elements: G = Σ index · (product of the extents behind). The axes are matched, from
 * the innermost, in groups of equal product; each group is a problem of its own. Within a group, the place is a sum
 * over digits of the group's number G, [start, end) with a stride:
 *
 *   f32[4,6]{1 0} -> f32[24]     digits of G: [1, 6) stride 4, [6, 24) stride 1
 *
 * Digits that go on linearly are joined; then they are cut where the axes of the result begin and end. That works
 * where each border divides the next, and yields {0%6 0/6} here: a view that needs a split axis. A group of one axis
 * on both sides keeps its digits as they are, padding included. Numbers of a digit in a result must be constants;
 * borders of axes may be symbolic, so [N,4] -> [4*N] and [N*C] -> [N,C] are views too. */
#include "ir/layout_digits.h"

struct part { /* of G */
    weft_dim start, end, stride;
    int rank;
};

struct reshape {
    struct weft_dims *dims;
    const struct weft_layout *operand;
    const struct weft_type *from, *to;
    weft_dim stride[WEFT_MAX_STORAGE]; /* of the operand */
    struct weft_layout_draft draft;
    struct part part[2 * WEFT_MAX_STORAGE];
    int parts;
};

/* Adds a digit of the group, joined to the one below where the strides go on. */
static void add_part(struct reshape *r, struct part part)
{
    weft_dim ratio;
    struct part *below = r->parts ? &r->part[r->parts - 1] : NULL;
    if (below && weft_dim_divides(r->dims, part.start, below->start, &ratio) &&
        weft_dim_same(part.stride, weft_dim_mul(r->dims, below->stride, ratio)))
        below->end = part.end;
    else
        r->part[r->parts++] = part;
}

/* Digits of G from axes [first, end) of the operand. */
static bool collect_parts(struct reshape *r, int first, int end)
{
    weft_dim unit = weft_dim_of(1);
    r->parts = 0;
    int outermost = first;
    while (outermost < end && weft_dim_is(r->from->extent[outermost], 1))
        outermost++;
    for (int axis = end - 1; axis >= outermost; axis--) {
        const weft_dim extent = r->from->extent[axis];
        if (weft_dim_is(extent, 1))
            continue;
        struct weft_pieces pieces;
        weft_layout_pieces(r->dims, r->operand, r->from, r->stride, axis, &pieces);
        for (int k = 0; k < pieces.count; k++) {
            weft_dim unused;
            const weft_dim div = weft_dim_of(pieces.div[k]);
            const bool top = k + 1 == pieces.count;
            if (top && axis != outermost && !weft_dim_divides(r->dims, extent, div, &unused))
                return false; /* the last block is partly padding, and the next index starts over */
            const weft_dim next = top ? extent : weft_dim_of(pieces.div[k + 1]);
            add_part(r, (struct part){.start = weft_dim_mul(r->dims, unit, div),
                                      .end = weft_dim_mul(r->dims, unit, next),
                                      .stride = pieces.stride[k],
                                      .rank = weft_layout_rank_of(r->operand, axis, pieces.div[k])});
        }
        unit = weft_dim_mul(r->dims, unit, extent);
    }
    return true;
}

/* Cuts the digits of G into digits of axes [first, end) of the result. */
static bool cut_parts(struct reshape *r, int first, int end)
{
    struct weft_dims *dims = r->dims;
    weft_dim unit = weft_dim_of(1);
    int p = 0;
    while (first < end - 1 && weft_dim_is(r->to->extent[first], 1))
        first++;
    for (int axis = end - 1; axis >= first; axis--) {
        const weft_dim extent = r->to->extent[axis], border = weft_dim_mul(dims, unit, extent);
        if (weft_dim_is(extent, 1))
            continue;
        for (bool done = false; !done;) {
            if (p == r->parts)
                return false;
            struct part *part = &r->part[p];
            weft_dim div, mod = weft_dim_of(0), ratio;
            const weft_dim stride = part->stride;
            const int rank = part->rank;
            if (!weft_dim_divides(dims, part->start, unit, &div))
                return false;
            if (weft_dim_same(part->end, border)) {
                done = true;
                p++;
            } else if (axis == first || weft_dim_divides(dims, border, part->end, &ratio)) {
                /* all of it; the outermost axis does not start over, so its last block may be padded */
                if (!weft_dim_divides(dims, part->end, part->start, &mod))
                    return false;
                p++;
            } else if (weft_dim_divides(dims, part->end, border, &ratio) &&
                       weft_dim_divides(dims, border, part->start, &ratio)) {
                part->stride = weft_dim_mul(dims, part->stride, ratio);
                part->start = border;
                done = true;
            } else {
                return false;
            }
            if (!weft_dim_is_constant(div) || !weft_dim_is_constant(mod) ||
                !weft_layout_draft_add(&r->draft, axis, weft_dim_value(div), weft_dim_value(mod), stride, rank))
                return false;
        }
        unit = border;
    }
    return p == r->parts;
}

static bool copy_axis(struct reshape *r, int from, int to)
{
    int digit[WEFT_MAX_STORAGE];
    const int count = weft_layout_digits(r->operand, from, digit);
    for (int k = 0; k < count; k++) {
        const struct weft_axis *part = &r->operand->axis[digit[k]];
        if (!weft_layout_draft_add(&r->draft, to, part->div, part->mod, r->stride[digit[k]], digit[k]))
            return false;
    }
    return true;
}

/* Extends both sides below *from and *to until their products are equal. */
static bool match_group(const struct reshape *r, int *from, int *to)
{
    weft_dim left = r->from->extent[--*from], right = r->to->extent[--*to], ratio;
    while (!weft_dim_same(left, right)) {
        bool extend_left = weft_dim_divides(r->dims, right, left, &ratio);
        if (!extend_left && !weft_dim_divides(r->dims, left, right, &ratio))
            extend_left = weft_dim_hint(r->dims, left) < weft_dim_hint(r->dims, right);
        if (*(extend_left ? from : to) == 0)
            return false;
        if (extend_left)
            left = weft_dim_mul(r->dims, left, r->from->extent[--*from]);
        else
            right = weft_dim_mul(r->dims, right, r->to->extent[--*to]);
    }
    return true;
}

static bool is_empty(const struct weft_type *type)
{
    for (int axis = 0; axis < type->rank; axis++)
        if (weft_dim_is(type->extent[axis], 0))
            return true;
    return false;
}

bool weft_layout_reshape(struct weft_dims *dims, const struct weft_layout *operand, const struct weft_type *from,
                         const struct weft_type *to, struct weft_layout *ret)
{
    if (operand->kind != WEFT_STORED)
        return false;
    struct reshape r = {.dims = dims, .operand = operand, .from = from, .to = to};
    weft_layout_draft_open(&r.draft, operand);
    if (is_empty(from) || is_empty(to)) {
        *ret = weft_layout_row_major(to->rank);
        ret->offset = operand->offset;
        ret->align = operand->align;
        ret->strength = operand->strength;
        return true;
    }
    weft_layout_strides(dims, operand, from, r.stride);
    for (int left = from->rank, right = to->rank;;) {
        while (left > 0 && weft_dim_is(from->extent[left - 1], 1))
            left--;
        for (; right > 0 && weft_dim_is(to->extent[right - 1], 1); right--)
            if (!weft_layout_draft_add(&r.draft, right - 1, 1, 0, weft_dim_of(1), WEFT_MAX_STORAGE))
                return false;
        if (left == 0 || right == 0) {
            if (left != right)
                return false;
            break;
        }
        const int left_end = left, right_end = right;
        if (!match_group(&r, &left, &right))
            return false;
        for (int axis = right; axis < right_end - 1; axis++)
            if (weft_dim_is(to->extent[axis], 1) &&
                !weft_layout_draft_add(&r.draft, axis, 1, 0, weft_dim_of(1), WEFT_MAX_STORAGE))
                return false;
        const bool single = left + 1 == left_end && right + 1 == right_end;
        if (single ? !copy_axis(&r, left, right)
                   : !collect_parts(&r, left, left_end) || !cut_parts(&r, right, right_end))
            return false;
    }
    weft_layout_canonical(dims, &r.draft.layout, to);
    *ret = r.draft.layout;
    return true;
}
