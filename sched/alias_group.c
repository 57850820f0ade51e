/* SPDX-License-Identifier: Apache-2.0 */
/* alias_group.c: what a group may write over.
 *
 * A group is computed by a kernel form, which says in which order what is read (codegen/form.h). So it is the form that
 * is asked whether one of its results may lie over one of its arguments (weft_form_refuse_over). Here is found which
 * dimension of the argument lies where which dimension of the result does, and what else is a view of the same memory.
 * Who asks for aliases says what forms there are (weft_alias_query.form). A group that finishes a contraction has none
 * here and writes over nothing: in the memory of its result there are the contraction's results first. */
#include "codegen/form.h"
#include "sched/alias.h"
#include "sched/step.h"

const struct weft_form *weft_alias_form(const struct weft_step *step) { return step->epilogue ? NULL : step->code; }

static const struct weft_form *form_of(const struct weft_aliasing *a, weft_node over)
{
    return a->query->form ? a->query->form(a->query->user, weft_unit_of(a->units, over)->first) : NULL;
}

/* The number of the array that a value is, or UINT32_MAX. */
static uint32_t array_of(const struct weft_form *form, weft_val v)
{
    uint32_t i = 0;
    while (i < form->arrays && !weft_is(form->array[i].value, v))
        i++;
    return i < form->arrays ? i : UINT32_MAX;
}

/* --- what it may be ----------------------------------------------------------------------------------------------- */

static bool same_extents(const struct weft_graph *g, weft_val a, weft_val b)
{
    const struct weft_type *one = weft_type_of(g, a), *two = weft_type_of(g, b);
    bool same = one->rank == two->rank;
    for (int i = 0; same && i < one->rank; i++)
        same = weft_dim_same(one->extent[i], two->extent[i]);
    return same;
}

static void add_candidate(struct weft_aliasing *a, uint32_t *count, weft_val v, uint32_t read)
{
    a->candidate = weft_grow(&a->graph->root->scratch, a->candidate, &a->candidate_capacity, *count + 1,
                             sizeof *a->candidate);
    a->candidate[(*count)++] = (struct weft_candidate){.value = v, .read = read};
}

/* Those that are read last come first. Outputs are asked from the last to the first: what is dead early is left to the
 * earlier ones. */
static void sort_candidates(const struct weft_aliasing *a, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && a->candidate[k - 1].read < a->candidate[k].read; k--) {
            const struct weft_candidate moved = a->candidate[k];
            a->candidate[k] = a->candidate[k - 1];
            a->candidate[k - 1] = moved;
        }
}

uint32_t weft_alias_find_candidates(struct weft_aliasing *a, weft_node over)
{
    const struct weft_graph *g = a->graph;
    const struct weft_form *const form = form_of(a, over);
    const weft_val result = weft_result(g, over, 0);
    uint32_t all = 0, count = 0;
    for (uint32_t i = 0; form && i < form->arrays; i++)
        if (form->array[i].use == WEFT_FORM_IN &&
            weft_dtype_bits(form->array[i].dtype) == weft_dtype_bits(weft_type_of(g, result)->dtype))
            add_candidate(a, &all, form->array[i].value, weft_form_last_read(form, i));
    for (uint32_t i = 0; i < all; i++) /* and views of them that the group makes, behind */
        for (uint32_t use = g->value[a->candidate[i].value.id].first_use; use; use = g->slot[use - 1].next) {
            const weft_node user = g->slot[use - 1].node;
            if (a->units->of[user.id] == a->units->of[over.id] && weft_is_view(g, user))
                add_candidate(a, &all, weft_result(g, user, 0), a->candidate[i].read);
        }
    for (uint32_t i = 0; i < all; i++)
        if (same_extents(g, a->candidate[i].value, result))
            a->candidate[count++] = a->candidate[i];
    sort_candidates(a, count);
    return count;
}

/* --- whether it may ----------------------------------------------------------------------------------------------- */

/* Dimensions of one memory find each other by their strides, which differ but for those of extent 1. */
static bool match_dimensions(const struct weft_aliasing *a, weft_val from, const struct weft_layout *in, weft_val to,
                             const struct weft_layout *out, int8_t *ret)
{
    const struct weft_graph *g = a->graph;
    const struct weft_type *const source = weft_type_of(g, from), *const type = weft_type_of(g, to);
    weft_dim theirs[WEFT_MAX_RANK], ours[WEFT_MAX_RANK];
    int matched = 0, wanted = 0;
    if (!weft_layout_logical_strides(g->dims, in, source, theirs) ||
        !weft_layout_logical_strides(g->dims, out, type, ours) || !weft_dim_same(in->offset, out->offset))
        return false;
    for (int i = 0; i < source->rank; i++)
        wanted += !weft_dim_is(source->extent[i], 1);
    for (int d = 0; d < type->rank; d++) {
        ret[d] = -1;
        for (int i = 0; i < source->rank && !weft_dim_is(type->extent[d], 1) && ret[d] < 0; i++)
            if (weft_dim_same(source->extent[i], type->extent[d]) && weft_dim_same(theirs[i], ours[d]))
                ret[d] = (int8_t)i;
        if (ret[d] < 0 && !weft_dim_is(type->extent[d], 1))
            return false;
        matched += ret[d] >= 0;
    }
    return matched == wanted;
}

/* One array, stored in `layout`. */
static const char *check_array(struct weft_aliasing *a, const struct weft_form *form, weft_node over, weft_val v,
                               const struct weft_layout *layout, const struct weft_layout *result)
{
    const weft_val out = weft_result(a->graph, over, 0);
    struct weft_form_over ask = {.in = array_of(form, v), .out = array_of(form, out)};
    uint32_t op;
    if (ask.in == UINT32_MAX)
        return NULL;
    a->reader = over;
    if (weft_dtype_bits(form->array[ask.in].dtype) != weft_dtype_bits(weft_type_of(a->graph, out)->dtype) ||
        !match_dimensions(a, v, layout, out, result, ask.dim))
        return WEFT_ALIAS_ELSEWHERE;
    const char *const why = weft_form_refuse_over(form, &ask, &a->graph->root->scratch, &op);
    if (why && form->op[op].node.id)
        a->reader = form->op[op].node;
    return why;
}

const char *weft_alias_check_group(struct weft_aliasing *a, weft_val value, const struct weft_layout *layout,
                                   weft_node over, const struct weft_layout *result)
{
    const struct weft_graph *g = a->graph;
    const struct weft_form *const form = form_of(a, over);
    const char *why = form ? NULL : WEFT_ALIAS_ELSEWHERE;
    uint32_t count = 0;
    a->reader = over;
    weft_alias_see(a, &count, value, layout);
    for (uint32_t i = 0; i < count && !why; i++) {
        const struct weft_seen seen = a->seen[i];
        why = check_array(a, form, over, seen.value, &seen.wanted, result);
        for (uint32_t use = g->value[seen.value.id].first_use; use; use = g->slot[use - 1].next) {
            const weft_node user = g->slot[use - 1].node;
            struct weft_layout view;
            if (a->units->of[user.id] != a->units->of[over.id] && weft_is_view(g, user) &&
                weft_view_layout(g, user, &seen.wanted, &view))
                weft_alias_see(a, &count, weft_result(g, user, 0), &view);
        }
    }
    if (!why)
        a->reader = WEFT_NO_NODE;
    return why;
}

bool weft_alias_sees_root(const struct weft_units *units, weft_val v, weft_val root, uint32_t unit)
{
    const struct weft_graph *g = units->graph;
    for (; !weft_is(v, root); v = weft_operand(g, weft_def(g, v), 0)) {
        const uint32_t of = units->of[weft_def(g, v).id];
        if (units->unit[of].nodes > 1 && of != unit)
            return false;
    }
    return weft_unit_stores(units, root) && (unit == 0 || units->of[weft_def(g, root).id] != unit);
}
