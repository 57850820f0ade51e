/* SPDX-License-Identifier: Apache-2.0 */
/* sink_reshape.c: how a transpose moves through a reshape.
 *
 *   %t: f32[4,6,5] = transpose %x perm=[2 0 1]         %r: f32[2,15,4] = reshape %x
 *   %y: f32[4,2,15] = reshape %t                  →    %y: f32[4,2,15] = transpose %r perm=[2 0 1]
 *
 * A reshape is replayed as splits and merges. Both shapes are cut into their common factors: here 4 | 2 3 | 5, where 6
 * is split into 2 and 3, and 3 and 5 merge to 15. Where two shapes have no common factors, [4,6] and [6,4], the stretch
 * stays whole. Factors are then put into the order in which the operand's straight form has them, 2 3 5 4, and an axis
 * of the result exists there too if its factors still stand side by side in the same order: 15 does. If this holds for
 * each axis, the straight form can be reshaped the same way, and the result is turned by how its axes stand.
 *
 * Axes of extent 1 take part in nothing and stay where they are. An axis that may be empty or have any length is a
 * factor like all else, since sizes are compared as expressions. */
#include "passes/sink_transpose.h"

/* A stretch of axes of the operand that becomes a stretch of axes of the result. */
struct factor {
    unsigned from, from_end, to, to_end;
};
struct replay {
    struct weft_dims *dims;
    const struct weft_type *from, *to;
    unsigned i, j;          /* the axes in hand */
    weft_dim a, b;          /* what is left of them */
    struct factor factor[2 * WEFT_MAX_RANK];
    unsigned factors;
};

static unsigned skip_units(const struct weft_type *type, unsigned axis)
{
    while (axis < type->rank && weft_dim_is(type->extent[axis], 1))
        axis++;
    return axis;
}

static bool next_from(struct replay *r, bool merge)
{
    r->i = skip_units(r->from, r->i + 1);
    if (r->i >= r->from->rank)
        return false;
    r->a = merge ? weft_dim_mul(r->dims, r->a, r->from->extent[r->i]) : r->from->extent[r->i];
    return true;
}

static bool next_to(struct replay *r, bool merge)
{
    r->j = skip_units(r->to, r->j + 1);
    if (r->j >= r->to->rank)
        return false;
    r->b = merge ? weft_dim_mul(r->dims, r->b, r->to->extent[r->j]) : r->to->extent[r->j];
    return true;
}

/* The factors of a stretch of axes with equally many elements on both sides. */
static bool add_stretch(struct replay *r)
{
    const unsigned first = r->factors, from = r->i, to = r->j;
    bool whole = false; /* some have no common factors: then all are one */
    r->a = r->from->extent[r->i];
    r->b = r->to->extent[r->j];
    for (;;) {
        if (r->factors == 2 * WEFT_MAX_RANK)
            return false;
        r->factor[r->factors++] = (struct factor){r->i, r->i + 1, r->j, r->j + 1};
        if (weft_dim_same(r->a, r->b))
            break;
        bool more;
        if (!weft_dim_is(r->a, 0) && weft_dim_divides(r->dims, r->b, r->a, &r->b))
            more = next_from(r, /* merge= */ false);
        else if (!weft_dim_is(r->b, 0) && weft_dim_divides(r->dims, r->a, r->b, &r->a))
            more = next_to(r, /* merge= */ false);
        else
            more = whole = next_from(r, /* merge= */ true) && next_to(r, /* merge= */ true);
        if (!more)
            return false;
    }
    if (whole) {
        r->factors = first;
        r->factor[r->factors++] = (struct factor){from, r->i + 1, to, r->j + 1};
    }
    return true;
}

static bool add_factors(struct replay *r)
{
    r->i = skip_units(r->from, 0);
    r->j = skip_units(r->to, 0);
    while (r->i < r->from->rank && r->j < r->to->rank) {
        if (!add_stretch(r))
            return false;
        r->i = skip_units(r->from, r->i + 1);
        r->j = skip_units(r->to, r->j + 1);
    }
    return r->i >= r->from->rank && r->j >= r->to->rank;
}

/* Do these axes of the operand stand side by side, in this order, in its straight form? */
static bool stand_together(const struct weft_type *type, const struct weft_turn *turn, unsigned axis, unsigned end)
{
    int previous = -1;
    for (; axis < end; axis++) {
        if (weft_dim_is(type->extent[axis], 1))
            continue;
        for (unsigned other = 0; other < type->rank && previous >= 0; other++)
            if (turn->axis[other] > previous && turn->axis[other] < turn->axis[axis] &&
                !weft_dim_is(type->extent[other], 1))
                return false;
        if (turn->axis[axis] < previous)
            return false;
        previous = turn->axis[axis];
    }
    return true;
}

/* How many factors stand before factor f in the straight form. */
static unsigned place_of(const struct replay *r, const struct weft_turn *turn, unsigned f)
{
    unsigned before = 0;
    for (unsigned g = 0; g < r->factors; g++) {
        const unsigned a = turn->axis[r->factor[g].from], b = turn->axis[r->factor[f].from];
        before += a < b || (a == b && g < f);
    }
    return before;
}

bool weft_sink_reshape(struct weft_dims *dims, const struct weft_type *from, const struct weft_turn *turn,
                       const struct weft_type *to, struct weft_turn *ret)
{
    struct replay r = {.dims = dims, .from = from, .to = to};
    weft_dims_try(dims); /* products may be beyond what expressions can say */
    const bool complete = add_factors(&r);
    if (weft_dims_tried(dims) || weft_dims_saturated(dims) || !complete)
        return false;
    struct weft_turn raw = weft_turn_none();
    for (unsigned f = 0; f < r.factors; f++) {
        const struct factor *factor = &r.factor[f];
        const unsigned place = place_of(&r, turn, f);
        if (!stand_together(from, turn, factor->from, factor->from_end))
            return false;
        const bool goes_on = f > 0 && factor->to == r.factor[f - 1].to; /* the axis began with the factor before */
        if (goes_on && place != place_of(&r, turn, f - 1) + 1)
            return false;
        for (unsigned axis = factor->to; axis < factor->to_end && !goes_on; axis++)
            raw.axis[axis] = (uint8_t)(place * WEFT_MAX_RANK + axis);
    }
    *ret = weft_turn_settle(to, &raw);
    return true;
}
