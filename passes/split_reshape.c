/* SPDX-License-Identifier: Apache-2.0 */
/* split_reshape: what stands between two reshapes runs over the axes that the first of them merges.
 *
 *   %r: f32[1,8,2048] = reshape %x                        %r: f32[1,8,4,16,32] = reshape %x
 *   %m: f32[1,8] = mean %r axes=[2]                       %p: f32[1,8,4] = mean %r axes=[3 4]
 *   %b: f32[1,8,2048] = bcast %m dims=[0 1]          →    %m: f32[1,8] = mean %p axes=[2]
 *   %d: f32[1,8,2048] = sub %r, %b                        %b: f32[1,8,4,16,32] = bcast %m dims=[0 1]
 *   %y: f32[1,32,16,32] = reshape %d                      %d: f32[1,8,4,16,32] = sub %r, %b
 *                                                         %y: f32[1,32,16,32] = reshape %d
 *
 * This is how exporters write a group norm of pictures [1,32,16,32]. The reshapes on the left are views of row-major
 * pictures only; those on the right split an axis and put it together again, which is a view in every order of axes.
 *
 * Both shapes are cut to digits: the coarsest extents of which each axis of both is a run. A region (region.h) is
 * rewritten if the reshapes at its end, and those that come in, have axes that are runs of digits too. So every reshape
 * that is left splits or merges only.
 *
 * A reduction over whole axes of %x and over pieces of others is done in two steps, the whole axes first, so that
 * neighbours in memory are not taken a piece at a time. Sums are then added in another order.
 *
 * Why not take apart each merge by itself: one reader that needs the merged axes would pay for it with a copy where the
 * picture is not row-major.
 * Needs: nothing.
 * Not done: regions with contractions, scans or slices; extents of cut axes that are symbols. */
#include "passes/region.h"

struct digits {
    int count;
    weft_dim extent[WEFT_MAX_RANK];
    bool whole[WEFT_MAX_RANK];     /* an axis of what is reshaped, not a piece of one */
    int first[WEFT_MAX_RANK + 1];  /* of the axes of the coarse shape */
};

struct splitting {
    struct weft_graph *graph;
    struct digits digits;
    struct weft_type coarse;       /* dtype aside */
};

/* --- digits ------------------------------------------------------------------------------------------------------- */

static bool add_digit(struct digits *d, weft_dim extent, bool whole)
{
    if (d->count == WEFT_MAX_RANK)
        return false;
    d->extent[d->count] = extent;
    d->whole[d->count++] = whole;
    return true;
}

/* Cuts the axes of both shapes, from the outermost, where those of the other begin. */
static bool cut(const struct weft_type *fine, const struct weft_type *coarse, struct digits *d)
{
    *d = (struct digits){0};
    int i = 0;
    weft_dim left = {0}; /* of axis i, while it is in pieces */
    bool fresh = true;
    for (int k = 0; k < coarse->rank; k++) {
        weft_dim wanted = coarse->extent[k];
        d->first[k] = d->count;
        if (weft_dim_is(wanted, 1) && !add_digit(d, wanted, true))
            return false;
        while (!weft_dim_is(wanted, 1)) {
            while (fresh && i < fine->rank && weft_dim_is(fine->extent[i], 1))
                i++;
            if (i == fine->rank)
                return false;
            const weft_dim have = fresh ? fine->extent[i] : left;
            const bool known = weft_dim_is_constant(have) && weft_dim_is_constant(wanted);
            const int64_t h = known ? weft_dim_value(have) : 0, w = known ? weft_dim_value(wanted) : 0;
            if (weft_dim_same(have, wanted)) {
                if (!add_digit(d, have, fresh))
                    return false;
                wanted = weft_dim_of(1), fresh = true, i++;
            } else if (h > w && w > 0 && h % w == 0) {
                if (!add_digit(d, wanted, false))
                    return false;
                left = weft_dim_of(h / w), wanted = weft_dim_of(1), fresh = false;
            } else if (w > h && h > 0 && w % h == 0) {
                if (!add_digit(d, have, fresh))
                    return false;
                wanted = weft_dim_of(w / h), fresh = true, i++;
            } else {
                return false;
            }
        }
    }
    d->first[coarse->rank] = d->count;
    return fresh;
}

/* Does an axis of the coarse shape hold several digits? */
static bool merges(const struct digits *d, int rank)
{
    for (int k = 0; k < rank; k++)
        if (d->first[k + 1] - d->first[k] > 1)
            return true;
    return false;
}

/* Is each axis of the type a run of digits? */
static bool is_of_runs(const struct weft_graph *g, const struct digits *d, const struct weft_type *type)
{
    int at = 0;
    for (int k = 0; k < type->rank; k++) {
        weft_dim product = weft_dim_of(1);
        while (!weft_dim_same(product, type->extent[k])) {
            if (at == d->count)
                return false;
            product = weft_dim_mul(g->dims, product, d->extent[at++]);
        }
        while (at < d->count && weft_dim_is(d->extent[at], 1))
            at++;
    }
    return at == d->count;
}

static struct weft_type fine_type(const struct splitting *r, int dtype)
{
    struct weft_type type = {.dtype = (uint8_t)dtype, .rank = (uint8_t)r->digits.count};
    for (int i = 0; i < r->digits.count; i++)
        type.extent[i] = r->digits.extent[i];
    return type;
}

/* --- what is over digits ------------------------------------------------------------------------------------------ */

/* A bcast over digits: axes of its operand that hold several are split first. */
static weft_val fine_bcast(struct splitting *r, struct weft_builder *b, weft_node bcast)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, bcast, 0);
    const struct weft_type from = *weft_type_of(g, x);
    struct weft_type split = {.dtype = from.dtype};
    int axis[WEFT_MAX_RANK];
    for (int i = 0; i < from.rank; i++) {
        const int k = (int)weft_dim_value(weft_attr_at(g, bcast, WEFT_ATTR_dims, (unsigned)i));
        for (int d = r->digits.first[k]; d < r->digits.first[k + 1]; d++) {
            axis[split.rank] = d;
            split.extent[split.rank++] =
                weft_dim_same(from.extent[i], r->coarse.extent[k]) ? r->digits.extent[d] : weft_dim_of(1);
        }
    }
    const weft_val operand = split.rank == from.rank ? x : weft_build_reshape(b, x, &split);
    const struct weft_type type = fine_type(r, from.dtype);
    return weft_build_bcast(b, operand, &type, axis);
}

/* Reduces those digits of %x that `take` has; `left` is what %x still has of all. */
static weft_val reduce(const struct splitting *r, struct weft_builder *b, weft_node n, weft_val x, const bool *take,
                       bool *left)
{
    int64_t axis[WEFT_MAX_RANK];
    unsigned axes = 0;
    int place = 0;
    for (int d = 0; d < r->digits.count; d++) {
        if (!left[d])
            continue;
        if (take[d])
            axis[axes++] = place, left[d] = false;
        place++;
    }
    if (!axes)
        return x;
    return weft_rebuild_reduction(b, n, x, axes, axis);
}

/* --- the pass ----------------------------------------------------------------------------------------------------- */

static bool open_region(void *user, weft_node reshape)
{
    struct splitting *const r = user;
    r->coarse = *weft_type_of(r->graph, weft_result(r->graph, reshape, 0));
    return cut(weft_type_of(r->graph, weft_operand(r->graph, reshape, 0)), &r->coarse, &r->digits) &&
           merges(&r->digits, r->coarse.rank);
}

static const struct weft_type *coarse_shape(const void *user) { return &((const struct splitting *)user)->coarse; }
static struct weft_type fine_shape(const void *user) { return fine_type(user, 0); }

static bool ends(const void *user, const struct weft_type *type)
{
    const struct splitting *const r = user;
    return is_of_runs(r->graph, &r->digits, type);
}

static bool folds(const void *user, weft_node reduction) { return true; }

static bool enters(const void *user, weft_node def)
{
    const struct splitting *const r = user;
    return weft_opcode_of(r->graph, def) == WEFT_OP_bcast ||
           is_of_runs(r->graph, &r->digits, weft_type_of(r->graph, weft_operand(r->graph, def, 0)));
}

static weft_val bring(void *user, struct weft_builder *b, weft_node def)
{
    struct splitting *const r = user;
    const weft_val x = weft_operand(r->graph, def, 0);
    const struct weft_type type = fine_type(r, weft_type_of(r->graph, x)->dtype);
    return weft_opcode_of(r->graph, def) == WEFT_OP_bcast ? fine_bcast(r, b, def) : weft_build_reshape(b, x, &type);
}

/* Whole axes first; in one step where a second would round to 16 bits in between. */
static weft_val fold(void *user, struct weft_builder *b, weft_node n, weft_val x)
{
    struct splitting *const r = user;
    bool taken[WEFT_MAX_RANK] = {false}, whole[WEFT_MAX_RANK] = {false}, left[WEFT_MAX_RANK];
    const struct weft_attr *axes = weft_attr_find(r->graph, n, WEFT_ATTR_axes);
    const bool narrow = weft_dtype_bits(weft_type_of(r->graph, x)->dtype) < 32;
    for (uint32_t i = 0; i < axes->count; i++)
        for (int k = (int)weft_dim_value(axes->integers[i]), d = r->digits.first[k]; d < r->digits.first[k + 1]; d++)
            taken[d] = true, whole[d] = r->digits.whole[d] || narrow;
    for (int d = 0; d < r->digits.count; d++)
        left[d] = true;
    return reduce(r, b, n, reduce(r, b, n, x, whole, left), taken, left);
}

bool weft_pass_split_reshape(struct weft_graph *graph, const struct weft_target *target)
{
    static const struct weft_region_pass pass = {
        .name = "split_reshape", .does = "merges",
        .open = open_region, .from = coarse_shape, .to = fine_shape,
        .ends = ends, .folds = folds, .enters = enters, .bring = bring, .fold = fold};
    struct splitting r = {.graph = graph};
    return weft_rewrite_regions(graph, &pass, &r);
}
