/* SPDX-License-Identifier: Apache-2.0 */
/* merge_axes: what stands between a reshape that splits axes and one that puts them together runs over whole axes.
 *
 *   %r: f32[1,8,4,16,32] = reshape %x                     %p: f32[1,32] = mean %x axes=[2 3]
 *   %p: f32[1,8,4] = mean %r axes=[3 4]                   %q: f32[1,8,4] = reshape %p
 *   %m: f32[1,8] = mean %p axes=[2]                       %m: f32[1,8] = mean %q axes=[2]
 *   %b: f32[1,8,4,16,32] = bcast %m dims=[0 1]       →    %e: f32[1,8,4] = bcast %m dims=[0 1]
 *   %d: f32[1,8,4,16,32] = sub %r, %b                     %f: f32[1,32] = reshape %e
 *   %y: f32[1,32,16,32] = reshape %d                      %b: f32[1,32,16,32] = bcast %f dims=[0 1]
 *                                                         %y: f32[1,32,16,32] = sub %x, %b
 *
 * A group norm: the number of a group of channels becomes one for each channel, which is little, and all that goes over
 * the picture has its axes. So nothing stands between it and what comes before and behind, which then are one kernel;
 * and where channels lie innermost, what goes along a row is a row of numbers, not one number for each four.
 *
 * A region (region.h) is rewritten if it ends in reductions that take whole axes of what was split, and in reshapes to
 * its shape, at least one of these; if it has an elementwise op; and if a bcast that comes in has a sixteenth of the
 * elements or less once it is repeated along pieces of axes (its own elements do not count).
 *
 * Why not in fuse, where a group could go over the pieces: a row of 4 channels that have one factor is shorter than any
 * vector.
 * Needs: nothing. Keeps every bit. Not done: reductions over pieces of axes, regions with other ops. */
#include "passes/region.h"

enum { LEAST_REPEATS = 16 };

struct merging {
    struct weft_graph *graph;
    struct weft_type whole, split;   /* dtypes aside */
    int first[WEFT_MAX_RANK + 1];    /* of the axes of `split`: where those of axis k of `whole` begin */
};

/* --- shapes ------------------------------------------------------------------------------------------------------- */

/* Is each axis of `whole` a run of axes of `split`, and one of them of several? */
static bool find_runs(const struct weft_graph *g, struct merging *r)
{
    int at = 0;
    bool splits = false;
    for (int k = 0; k < r->whole.rank; k++) {
        weft_dim product = weft_dim_of(1);
        int pieces = 0;
        r->first[k] = at;
        while (!weft_dim_same(product, r->whole.extent[k])) {
            if (at == r->split.rank)
                return false;
            pieces += !weft_dim_is(r->split.extent[at], 1);
            product = weft_dim_mul(g->dims, product, r->split.extent[at++]);
        }
        if (at == r->first[k] && at < r->split.rank && weft_dim_is(r->split.extent[at], 1))
            at++;
        splits |= pieces > 1;
    }
    while (at < r->split.rank && weft_dim_is(r->split.extent[at], 1))
        at++;
    r->first[r->whole.rank] = at;
    return splits && at == r->split.rank;
}

/* Which axis of the whole shape this one of the split shape is a piece of. */
static int run_of(const struct merging *r, int axis)
{
    int k = 0;
    while (axis >= r->first[k + 1])
        k++;
    return k;
}

/* Which whole axes a reduction takes; false if it takes pieces of one. */
static bool find_taken(const struct weft_graph *g, const struct merging *r, weft_node n, bool *taken)
{
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    bool piece[WEFT_MAX_RANK] = {false}, whole = true;
    for (uint32_t i = 0; i < axes->count; i++)
        piece[weft_dim_value(axes->integers[i])] = true;
    for (int k = 0; k < r->whole.rank && whole; k++) {
        taken[k] = r->first[k] < r->first[k + 1] && piece[r->first[k]];
        for (int i = r->first[k]; i < r->first[k + 1]; i++)
            whole &= piece[i] == taken[k];
    }
    return whole;
}

/* --- what is repeated along pieces -------------------------------------------------------------------------------- */

/* How a bcast of the split shape reads what it repeats: without axes of one element, which say nothing. */
struct repeat {
    struct weft_type operand, pieces, merged; /* as it is; over all pieces of the axes that it has; over these axes */
    int to_piece[WEFT_MAX_RANK], to_whole[WEFT_MAX_RANK];
    bool repeats;                    /* along pieces */
};

static void read_repeat(const struct weft_graph *g, const struct merging *r, weft_node bcast, struct repeat *ret)
{
    const struct weft_type *from = weft_type_of(g, weft_operand(g, bcast, 0));
    int axis_of[WEFT_MAX_RANK], place[WEFT_MAX_RANK];
    bool touched[WEFT_MAX_RANK] = {false};
    *ret = (struct repeat){.operand.dtype = from->dtype, .pieces.dtype = from->dtype, .merged.dtype = from->dtype};
    for (int i = 0; i < from->rank; i++) {
        if (weft_dim_is(from->extent[i], 1))
            continue;
        axis_of[ret->operand.rank] = (int)weft_dim_value(weft_attr_at(g, bcast, WEFT_ATTR_dims, (unsigned)i));
        touched[run_of(r, axis_of[ret->operand.rank])] = true;
        ret->operand.extent[ret->operand.rank++] = from->extent[i];
    }
    for (int k = 0; k < r->whole.rank; k++) {
        if (!touched[k])
            continue;
        ret->to_whole[ret->merged.rank] = k;
        ret->merged.extent[ret->merged.rank++] = r->whole.extent[k];
        for (int i = r->first[k]; i < r->first[k + 1]; i++) {
            place[i] = ret->pieces.rank;
            ret->pieces.extent[ret->pieces.rank++] = r->split.extent[i];
        }
    }
    ret->repeats = ret->operand.rank != ret->pieces.rank;
    for (int i = 0; i < ret->operand.rank; i++) {
        ret->to_piece[i] = place[axis_of[i]];
        ret->repeats |= ret->to_piece[i] != i;
    }
}

static double elements(const struct weft_graph *g, const struct weft_type *type)
{
    double count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= (double)weft_dim_hint(g->dims, type->extent[i]);
    return count;
}

static bool is_little(const struct weft_graph *g, const struct merging *r, weft_node bcast)
{
    struct repeat repeat;
    read_repeat(g, r, bcast, &repeat);
    return !repeat.repeats || elements(g, &repeat.merged) * LEAST_REPEATS <= elements(g, &r->whole);
}

static weft_val merge_bcast(const struct merging *r, struct weft_builder *b, weft_node bcast)
{
    struct weft_graph *const g = r->graph;
    struct repeat repeat;
    weft_val x = weft_operand(g, bcast, 0);
    struct weft_type type = r->whole;
    read_repeat(g, r, bcast, &repeat);
    type.dtype = repeat.operand.dtype;
    if (!weft_type_same(weft_type_of(g, x), &repeat.operand))
        x = weft_build_reshape(b, x, &repeat.operand);
    if (repeat.repeats)
        x = weft_build_bcast(b, x, &repeat.pieces, repeat.to_piece);
    if (!weft_type_same(weft_type_of(g, x), &repeat.merged))
        x = weft_build_reshape(b, x, &repeat.merged);
    return weft_build_bcast(b, x, &type, repeat.to_whole);
}

/* --- the pass ----------------------------------------------------------------------------------------------------- */

static bool open_region(void *user, weft_node reshape)
{
    struct merging *const r = user;
    r->whole = *weft_type_of(r->graph, weft_operand(r->graph, reshape, 0));
    r->split = *weft_type_of(r->graph, weft_result(r->graph, reshape, 0));
    return find_runs(r->graph, r);
}

static const struct weft_type *split_shape(const void *user) { return &((const struct merging *)user)->split; }
static struct weft_type whole_shape(const void *user) { return ((const struct merging *)user)->whole; }

static bool is_whole(const void *user, const struct weft_type *type)
{
    struct weft_type whole = whole_shape(user);
    whole.dtype = type->dtype;
    return weft_type_same(type, &whole);
}

static bool takes_whole_axes(const void *user, weft_node reduction)
{
    const struct merging *const r = user;
    bool taken[WEFT_MAX_RANK];
    return find_taken(r->graph, r, reduction, taken);
}

static bool enters(const void *user, weft_node def)
{
    const struct merging *const r = user;
    return weft_opcode_of(r->graph, def) == WEFT_OP_bcast
               ? is_little(r->graph, r, def)
               : is_whole(user, weft_type_of(r->graph, weft_operand(r->graph, def, 0)));
}

static weft_val bring(void *user, struct weft_builder *b, weft_node def)
{
    struct merging *const r = user;
    return weft_opcode_of(r->graph, def) == WEFT_OP_bcast ? merge_bcast(r, b, def) : weft_operand(r->graph, def, 0);
}

static weft_val fold(void *user, struct weft_builder *b, weft_node n, weft_val x)
{
    const struct merging *const r = user;
    int64_t axis[WEFT_MAX_RANK];
    unsigned axes = 0;
    bool taken[WEFT_MAX_RANK];
    find_taken(r->graph, r, n, taken);
    for (int k = 0; k < r->whole.rank; k++)
        if (taken[k])
            axis[axes++] = k;
    return weft_rebuild_reduction(b, n, x, axes, axis);
}

bool weft_pass_merge_axes(struct weft_graph *graph, const struct weft_target *target)
{
    static const struct weft_region_pass pass = {
        .name = "merge_axes", .does = "splits", .elementwise = true,
        .open = open_region, .from = split_shape, .to = whole_shape,
        .ends = is_whole, .folds = takes_whole_axes, .enters = enters, .bring = bring, .fold = fold};
    struct merging r = {.graph = graph};
    return weft_rewrite_regions(graph, &pass, &r);
}
