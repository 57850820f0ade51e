/* SPDX-License-Identifier: Apache-2.0 */
/* canonicalize_view.c: the rules of canonicalize about views and movement.
 *
 *   %s: f32[1,8,1,1] = const …                       %s: f32[1,8,1,1] = const …
 *   %b: f32[2,8,4,4] = bcast %s dims=[0 1 2 3]   →   %r: f32[8] = reshape %s
 *                                                    %b: f32[2,8,4,4] = bcast %r dims=[1]
 *
 * A broadcast repeats no operand's axis of extent 1, and broadcasts of broadcasts are one: so a bias per
 * channel looks the same whatever rank its file gave it. A view of a uniform constant is a uniform constant, which
 * takes no memory. A relayout is dropped only if its result lives exactly as its operand does; what it would be good
 * for is decided elsewhere.
 *
 * Slices of slices, concats and paddings: split_concat. Transposes and reshapes: cancel_transpose. */
#include "passes/passes.h"

static weft_val result_of(const struct weft_rewriting *r, weft_node n) { return weft_result(r->graph, n, 0); }

static bool keeps_type(const struct weft_graph *g, weft_node n)
{
    return weft_type_same(weft_type_of(g, weft_operand(g, n, 0)), weft_type_of(g, weft_result(g, n, 0)));
}

/* The type tells for a reshape. */
weft_val weft_same_type(struct weft_rewriting *r, weft_node n)
{
    return keeps_type(r->graph, n) ? weft_rewrite_to(r, weft_operand(r->graph, n, 0)) : WEFT_NO_VALUE;
}

bool weft_slice_is_safe(struct weft_graph *g, weft_node n)
{
    const struct weft_type *from = weft_type_of(g, weft_operand(g, n, 0));
    for (unsigned axis = 0; axis < from->rank; axis++) {
        const weft_dim start = weft_attr_at(g, n, WEFT_ATTR_start, axis), end = weft_attr_at(g, n, WEFT_ATTR_end, axis);
        int64_t first, length, rest, unused;
        weft_dim_range(g->dims, start, &first, &unused);
        weft_dim_range(g->dims, weft_dim_sub(g->dims, end, start), &length, &unused);
        weft_dim_range(g->dims, weft_dim_sub(g->dims, from->extent[axis], end), &rest, &unused);
        if (first < 0 || length < 0 || rest < 0)
            return false;
    }
    return true;
}

/* A slice inside its operand that keeps every extent starts at 0 with step 1, or has one element there. */
static weft_val slice_same(struct weft_rewriting *r, weft_node n)
{
    return weft_slice_is_safe(r->graph, n) ? weft_same_type(r, n) : WEFT_NO_VALUE;
}

static weft_val slice_of_splat(struct weft_rewriting *r, weft_node n)
{
    return weft_slice_is_safe(r->graph, n) ? weft_view_of_splat(r, n) : WEFT_NO_VALUE;
}

static bool list_is_iota(const struct weft_graph *g, weft_node n, int key, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!weft_dim_is(weft_attr_at(g, n, key, i), i))
            return false;
    return true;
}

static weft_val bcast_same(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    if (!keeps_type(g, n) || !list_is_iota(g, n, WEFT_ATTR_dims, weft_type_of(g, result_of(r, n))->rank))
        return WEFT_NO_VALUE;
    return weft_rewrite_to(r, weft_operand(g, n, 0));
}

weft_val weft_transpose_same(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    if (!list_is_iota(g, n, WEFT_ATTR_perm, weft_type_of(g, result_of(r, n))->rank))
        return WEFT_NO_VALUE;
    return weft_rewrite_to(r, weft_operand(g, n, 0));
}

static weft_val concat_one(struct weft_rewriting *r, weft_node n)
{
    if (r->graph->node[n.id].operands != 1)
        return WEFT_NO_VALUE;
    return weft_rewrite_to(r, weft_operand(r->graph, n, 0));
}

static weft_val pad_none(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    for (unsigned i = 0; i < 2u * weft_type_of(g, result_of(r, n))->rank; i++)
        if (!weft_dim_is(weft_attr_at(g, n, WEFT_ATTR_pad, i), 0))
            return WEFT_NO_VALUE;
    return weft_rewrite_to(r, weft_operand(g, n, 0));
}

static weft_val relayout_same(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    const struct weft_value *from = &g->value[x.id], *to = &g->value[result_of(r, n).id];
    if (from->layout != to->layout || (to->stated && !from->stated)) /* where nothing is stated another may be chosen */
        return WEFT_NO_VALUE;
    return weft_rewrite_to(r, x);
}

weft_val weft_view_of_splat(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    struct weft_element element;
    if (!weft_const_splat(g, x, &element) || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const struct weft_type type = *weft_type_of(g, result_of(r, n));
    return weft_build_element(&r->build, &type, &element);
}

/* An axis of extent 1 that stays 1 does no harm by itself; but constants are stored, so theirs go for free. */
static weft_val bcast_unit_axes(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    const struct weft_type from = *weft_type_of(g, x), to = *weft_type_of(g, result_of(r, n));
    struct weft_type type = {.dtype = from.dtype};
    int axis[WEFT_MAX_RANK];
    bool useful = weft_is_const(g, x);
    for (unsigned i = 0; i < from.rank; i++) {
        const int to_axis = (int)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, i));
        if (weft_dim_is(from.extent[i], 1)) {
            useful |= !weft_dim_is(to.extent[to_axis], 1);
            continue;
        }
        axis[type.rank] = to_axis;
        type.extent[type.rank++] = from.extent[i];
    }
    if (!useful || type.rank == from.rank || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    return weft_build_bcast(&r->build, weft_build_reshape(&r->build, x, &type), &to, axis);
}

static weft_val bcast_bcast(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_node inner = weft_def(g, weft_operand(g, n, 0));
    if (weft_opcode_of(g, inner) != WEFT_OP_bcast || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    const weft_val x = weft_operand(g, inner, 0);
    const struct weft_type to = *weft_type_of(g, result_of(r, n));
    int axis[WEFT_MAX_RANK];
    for (unsigned i = 0; i < weft_type_of(g, x)->rank; i++) {
        const unsigned middle = (unsigned)weft_dim_value(weft_attr_at(g, inner, WEFT_ATTR_dims, i));
        axis[i] = (int)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, middle));
    }
    return weft_build_bcast(&r->build, x, &to, axis);
}

/* Which axes of a gather's result are those of the indices: `ret_count` from the first on. */
static int index_axes(const struct weft_graph *g, weft_node gather, int *ret_count)
{
    const int rank = weft_type_of(g, weft_operand(g, gather, 1))->rank;
    const bool is_nd = weft_opcode_of(g, gather) == WEFT_OP_gather_nd;
    *ret_count = is_nd ? rank - 1 : rank;
    return is_nd ? 0 : (int)weft_attr_int(g, gather, WEFT_ATTR_axis);
}

enum { LEAST_BLOCK = 16 }; /* elements behind an index, so that moving indices is surely less than moving elements */

/* Rows in another order are gathered by indices in that order. */
static weft_val transpose_gather(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val x = weft_operand(g, n, 0);
    const weft_node gather = weft_def(g, x);
    const int op = weft_opcode_of(g, gather);
    if ((op != WEFT_OP_gather && op != WEFT_OP_gather_nd) || !weft_has_one_use(g, x) ||
        (op == WEFT_OP_gather_nd && weft_attr_int(g, gather, WEFT_ATTR_batch) != 0))
        return WEFT_NO_VALUE;
    int count, perm[WEFT_MAX_RANK];
    const int first = index_axes(g, gather, &count);
    const struct weft_type *const type = weft_type_of(g, x);
    int64_t block = 1;
    for (int i = 0; i < type->rank; i++) {
        const int from = (int)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_perm, (unsigned)i));
        if (i >= first && i < first + count)
            perm[i - first] = from - first;
        else if (from != i)
            return WEFT_NO_VALUE;
        if (i >= first + count)
            block *= weft_dim_is_constant(type->extent[i]) ? weft_dim_value(type->extent[i]) : 1;
    }
    if (block < LEAST_BLOCK || !weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    if (op == WEFT_OP_gather_nd)
        perm[count] = count;
    const weft_val index = weft_build_transpose(&r->build, weft_operand(g, gather, 1), perm);
    const struct weft_node_info *const info = &g->node[gather.id];
    return weft_build(&r->build, op, 2, (const weft_val[]){weft_operand(g, gather, 0), index}, info->attrs, info->attr,
                      NULL);
}

/* Does the reshape put the matrices of the last index on top of each other: [I, J, rows, k] as [I, J * rows, k]? */
static bool stacks_matrices(struct weft_graph *g, weft_node reshape)
{
    const struct weft_type *const from = weft_type_of(g, weft_operand(g, reshape, 0)),
                           *const to = weft_type_of(g, weft_result(g, reshape, 0));
    const int last = to->rank - 1;
    if (from->rank != to->rank + 1 || to->rank < 2 || !weft_dim_same(from->extent[last + 1], to->extent[last]) ||
        !weft_dim_same(weft_dim_mul(g->dims, from->extent[last - 1], from->extent[last]), to->extent[last - 1]))
        return false; /* the product differs where there are no elements */
    for (int i = 0; i < last - 1; i++)
        if (!weft_dim_same(from->extent[i], to->extent[i]))
            return false;
    return true;
}

/* Matrices that were gathered are multiplied by their column one by one, where plans may read them in place
 * (plan/chosen.c):
 *
 *   %e: f32[4,2,32,8] = gather %w, %i axis=0              %z: f32[4,2,8,1] = bcast %x dims=[0 2 3]
 *   %r: f32[4,64,8] = reshape %e                      →   %p: f32[4,2,32,1] = matmul %e, %z
 *   %y: f32[4,64,1] = matmul %r, %x                       %y: f32[4,64,1] = reshape %p */
static weft_val split_gathered(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_node reshape = weft_def(g, weft_operand(g, n, 0));
    if (weft_opcode_of(g, reshape) != WEFT_OP_reshape || weft_attr_int(g, n, WEFT_ATTR_trans_a) ||
        !weft_has_one_use(g, weft_operand(g, n, 0)) || !stacks_matrices(g, reshape))
        return WEFT_NO_VALUE;
    const weft_val matrices = weft_operand(g, reshape, 0), x = weft_operand(g, n, 1);
    const weft_node gather = weft_def(g, matrices);
    const int op = weft_opcode_of(g, gather);
    if ((op != WEFT_OP_gather && op != WEFT_OP_gather_nd) || !weft_has_one_use(g, matrices) ||
        weft_type_of(g, weft_operand(g, gather, 0))->rank != 3)
        return WEFT_NO_VALUE;
    const struct weft_type to = *weft_type_of(g, result_of(r, n));
    if (!weft_dim_is(to.extent[to.rank - 1], 1) || !weft_rewrite_begin(r)) /* columns are better off together */
        return WEFT_NO_VALUE;
    struct weft_type type = *weft_type_of(g, x);
    int axis[WEFT_MAX_RANK];
    for (int i = type.rank - 1; i >= 0; i--) {
        axis[i] = i + (i >= type.rank - 2);
        type.extent[axis[i]] = type.extent[i];
    }
    type.extent[type.rank - 2] = weft_type_of(g, matrices)->extent[type.rank - 2];
    type.rank++;
    const weft_val each = weft_build_bcast(&r->build, x, &type, axis);
    const struct weft_node_info info = g->node[n.id];
    const weft_val product = weft_build(&r->build, WEFT_OP_matmul, 2, (const weft_val[]){matrices, each}, info.attrs,
                                        info.attr, NULL);
    return weft_build_reshape(&r->build, product, &to);
}

static const struct weft_rule rules[] = {
    {"transpose_same",  WEFT_OP_transpose, weft_transpose_same, "no axis moves"},
    {"reshape_same",    WEFT_OP_reshape,   weft_same_type,      "the extents are the same"},
    {"slice_same",      WEFT_OP_slice,     slice_same,          "it takes everything"},
    {"bcast_same",      WEFT_OP_bcast,     bcast_same,          "nothing is repeated"},
    {"concat_one",      WEFT_OP_concat,    concat_one,          "there is one operand"},
    {"pad_none",        WEFT_OP_pad,       pad_none,            "all paddings are 0"},
    {"relayout_same",   WEFT_OP_relayout,  relayout_same,       "it lives there already"},
    {"bcast_splat",     WEFT_OP_bcast,     weft_view_of_splat,  "all elements are the same number"},
    {"slice_splat",     WEFT_OP_slice,     slice_of_splat,      "all elements are the same number"},
    {"bcast_bcast",     WEFT_OP_bcast,     bcast_bcast,         "two broadcasts are one"},
    {"bcast_unit_axes", WEFT_OP_bcast,     bcast_unit_axes,     "axes of extent 1 need not be carried"},
    {"split_gathered",  WEFT_OP_matmul,    split_gathered,      "gathered matrices are multiplied one by one"},
    {"transpose_gather", WEFT_OP_transpose, transpose_gather,   "the indices are put into that order instead"},
};
const struct weft_rule_set weft_canonicalize_views = WEFT_RULE_SET(rules);
