/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c: do the nodes of a group go over one box of points, and how? The contract: lower.h. */
#include "codegen/lower.h"

#include "codegen/pointwise.h"

#include <string.h>

enum { AGAIN_NS = 200 }; /* less than this is not worth a stage of its own */

static uint16_t axes_of(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    uint16_t axes = 0;
    for (int a = 0; a < m->member[fit->node[p].id]->axes; a++)
        if (fit->axes.of[p][a] >= 0)
            axes |= (uint16_t)(1u << fit->axes.of[p][a]);
    return axes;
}

static uint8_t kind_of(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    return m->member[fit->node[p].id]->kind;
}

/* Behind views: the place of the node that computes an operand, or UINT32_MAX: it comes from outside. */
static uint32_t maker_of(const struct weft_members *m, const struct weft_fit *fit, weft_val v)
{
    uint32_t p = weft_member_place(m, weft_def(m->graph, v));
    while (p != UINT32_MAX && kind_of(m, fit, p) == WEFT_MEMBER_VIEW)
        p = weft_member_place(m, weft_def(m->graph, weft_operand(m->graph, fit->node[p], 0)));
    return p;
}

static bool is_seen(const struct weft_members *m, weft_val v)
{
    const struct weft_graph *g = m->graph;
    bool seen = g->value[v.id].returns > 0;
    for (uint32_t use = g->value[v.id].first_use; use && !seen; use = g->slot[use - 1].next)
        seen = weft_member_place(m, g->slot[use - 1].node) == UINT32_MAX;
    return seen;
}

/* The axes of the group that are those of the member at place p, both as sets of bits. */
static uint16_t group_axes(const struct weft_members *m, const struct weft_fit *fit, uint32_t p, uint32_t member_axes)
{
    uint16_t axes = 0;
    for (int a = 0; a < m->member[fit->node[p].id]->axes; a++)
        if ((member_axes >> a & 1) && fit->axes.of[p][a] >= 0)
            axes |= (uint16_t)(1u << fit->axes.of[p][a]);
    return axes;
}

static uint16_t folded_by(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    return group_axes(m, fit, p, m->member[fit->node[p].id]->folded);
}

static uint16_t scanned_by(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    return group_axes(m, fit, p, m->member[fit->node[p].id]->scanned);
}

/* Of what an operand of the node at place p reads, views gone through. */
static uint16_t operand_axes(const struct weft_members *m, const struct weft_fit *fit, uint32_t p, uint32_t k)
{
    uint16_t axes = 0;
    for (;; k = 0) {
        const weft_val v = weft_operand(m->graph, fit->node[p], k);
        const uint32_t q = weft_member_place(m, weft_def(m->graph, v));
        if (q != UINT32_MAX && kind_of(m, fit, q) != WEFT_MEMBER_VIEW)
            return fit->member[q].axes;
        if (q == UINT32_MAX) {
            const int8_t *const axis = weft_member_operand(m->member[fit->node[p].id], k);
            const struct weft_constant *constant = m->graph->node[weft_def(m->graph, v).id].constant;
            const bool one_number = constant && constant->kind == WEFT_CONST_SPLAT;
            for (int i = 0; i < weft_type_of(m->graph, v)->rank && !one_number; i++)
                if (axis[i] >= 0 && fit->axes.of[p][axis[i]] >= 0)
                    axes |= (uint16_t)(1u << fit->axes.of[p][axis[i]]);
            return axes;
        }
        p = q;
    }
}

double weft_fit_points(const struct weft_members *m, const struct weft_fit *fit, uint16_t axes)
{
    double points = 1;
    for (uint32_t i = 0; i < fit->axes.axes; i++)
        if (axes >> i & 1)
            points *= (double)weft_dim_hint(m->graph->dims, fit->axes.extent[i]);
    return points;
}

/* What the arithmetic of an elementwise node takes for an element, if weft_program_arithmetic_ns counts it; else 0. */
static double counted_ns(const struct weft_members *m, weft_node n)
{
    const struct weft_strip_kernel *const kernel = weft_pointwise_kernel(m->graph, n, m->cpu, m->arena);
    return kernel ? weft_strip_ns(kernel) : 0;
}

/* For computing the node at place p at each point of these axes, besides once for each number that it has. */
static double repeated_ns(const struct weft_members *m, const struct weft_fit *fit, uint32_t p, uint16_t axes)
{
    const uint16_t own = fit->member[p].axes;
    const double more = weft_fit_points(m, fit, axes) - weft_fit_points(m, fit, own);
    if (own == axes)
        return 0;
    const double counted = counted_ns(m, fit->node[p]), simple = weft_pointwise_ns(m->graph, fit->node[p]);
    return more * (counted > simple ? counted : simple);
}

/* Where nothing is folded: what has fewer axes than others, and takes long to compute again at each point, is outside.
 * Sets axes of members, for now. */
static void find_outer(const struct weft_members *m, struct weft_fit *fit)
{
    double most = AGAIN_NS;
    if (fit->axes.folded || fit->axes.scanned || fit->cut >= 0)
        return;
    for (uint32_t p = 0; p < fit->count; p++) {
        if (kind_of(m, fit, p) == WEFT_MEMBER_VIEW)
            continue;
        for (uint32_t k = 0; k < m->graph->node[fit->node[p].id].operands; k++)
            fit->member[p].axes |= operand_axes(m, fit, p, k);
        const double ns = repeated_ns(m, fit, p, fit->all);
        if (ns > most && fit->member[p].axes && kind_of(m, fit, p) != WEFT_MEMBER_LOOK_UP) {
            most = ns;
            fit->outer = fit->member[p].axes;
            fit->uneven = true;
        }
    }
}

/* Chunks cut one axis, the last of those that folds leave; without folds, what lies behind it stands for folded. */
static const char *find_chunks(const struct weft_members *m, struct weft_fit *fit)
{
    const struct weft_graph *g = m->graph;
    const char *why = NULL;
    for (uint32_t p = 0; p < fit->count && !why; p++) {
        if (kind_of(m, fit, p) != WEFT_MEMBER_CHUNKS)
            continue;
        const int axis = (int)weft_attr_int(g, fit->node[p], WEFT_ATTR_axis), cut = fit->axes.of[p][axis];
        const weft_dim chunk = weft_attr_dim(g, fit->node[p], WEFT_ATTR_chunk);
        uint16_t before = 0, behind = 0;
        for (int a = 0; a < m->member[fit->node[p].id]->axes; a++)
            if (fit->axes.of[p][a] >= 0)
                *(a <= axis ? &before : &behind) |= (uint16_t)(1u << fit->axes.of[p][a]);
        if (fit->cut < 0 && !fit->axes.folded)
            fit->outer &= (uint16_t)~behind;
        if (cut < 0 || fit->axes.axes == WEFT_FORM_AXES)
            why = "splits an axis of one element into chunks, or has too many axes";
        else if (before != fit->outer || (before | behind) != fit->all)
            why = "splits into chunks another axis than the last that reductions leave";
        else if (fit->cut >= 0 && (cut != fit->cut || !weft_dim_same(chunk, fit->chunk)))
            why = "splits another axis into chunks than the group, or into other chunks";
        fit->cut = (int8_t)cut;
        fit->chunk = chunk;
    }
    return why;
}

/* What is scanned is one axis, and all that is inside. */
static const char *check_scans(const struct weft_fit *fit)
{
    const uint16_t scanned = fit->axes.scanned;
    return scanned & (scanned - 1)              ? "would be in a group that scans two axes"
           : scanned && fit->axes.folded & ~scanned ? "would be in a group that reduces other axes than it scans"
           : scanned && fit->cut >= 0           ? "would be in a group that splits into chunks and scans" : NULL;
}

/* Inside or outside. A fold's place is that of what it reads. */
static const char *place_member(const struct weft_members *m, struct weft_fit *fit, uint32_t p)
{
    const uint32_t folded = folded_by(m, fit, p);
    struct weft_fit_member *const member = &fit->member[p];
    member->out = is_seen(m, weft_result(m->graph, fit->node[p], 0));
    if (kind_of(m, fit, p) == WEFT_MEMBER_VIEW) { /* others view what it is a view of */
        const uint32_t maker = maker_of(m, fit, weft_result(m->graph, fit->node[p], 0));
        if (member->out && maker != UINT32_MAX)
            fit->member[maker].out = true;
        return NULL;
    }
    for (uint32_t k = 0; k < m->graph->node[fit->node[p].id].operands; k++)
        member->axes |= operand_axes(m, fit, p, k);
    fit->uneven |= kind_of(m, fit, p) == WEFT_MEMBER_LOOK_UP;
    member->inside = (member->axes & ~fit->outer) || fit->outer == fit->all;
    for (uint32_t k = 0; k < m->graph->node[fit->node[p].id].operands; k++) {
        const uint32_t q = maker_of(m, fit, weft_operand(m->graph, fit->node[p], k));
        if (q != UINT32_MAX && kind_of(m, fit, q) == WEFT_MEMBER_CHUNKS)
            return "reads what is whole when all chunks are";
    }
    if (kind_of(m, fit, p) == WEFT_MEMBER_CHUNKS) {
        const bool whole = member->axes == fit->all;
        member->axes &= (uint16_t)~(1u << fit->cut);
        return whole ? NULL : "splits a value with fewer axes than the group into chunks";
    }
    if (kind_of(m, fit, p) == WEFT_MEMBER_FOLD) {
        const bool whole = member->axes == fit->all;
        member->axes &= (uint16_t)~folded;
        return folded == 0                            ? "reduces an axis of one element"
               : !whole                               ? "reduces a value with fewer axes than the group"
               : folded != (fit->all & ~fit->outer) ? "reduces other axes than the group" : NULL;
    }
    if (kind_of(m, fit, p) == WEFT_MEMBER_SCAN)
        return !scanned_by(m, fit, p)        ? "scans an axis of one element"
               : member->axes != fit->all ? "scans a value with fewer axes than the group" : NULL;
    const double again = repeated_ns(m, fit, p, member->inside ? fit->all : fit->outer);
    fit->again_ns += again;
    fit->simple_ns += again != 0 && counted_ns(m, fit->node[p]) == 0 ? again : 0;
    fit->uneven |= fit->again_ns > 0;
    return NULL;
}

/* A value that others read has a number for each of its elements, and is computed once. */
static const char *check_out(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    const struct weft_fit_member *const member = &fit->member[p];
    const uint8_t kind = kind_of(m, fit, p);
    if ((kind != WEFT_MEMBER_MAP && kind != WEFT_MEMBER_SCAN && kind != WEFT_MEMBER_LOOK_UP) || !member->out)
        return NULL;
    if (kind == WEFT_MEMBER_LOOK_UP && !m->member[fit->node[p].id]->guarded)
        return "only reads elements in another order, and has readers outside the group";
    return member->axes != axes_of(m, fit, p) ? "is broadcast, and has readers outside the group"
           : member->axes != (member->inside ? fit->all : fit->outer)
               ? "would be recomputed for each broadcast element, and has readers outside the group" : NULL;
}

/* The way in which a stage goes along the inner axis. */
enum way { EITHER, FORWARDS, BACKWARDS };

static enum way way_of(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    if (kind_of(m, fit, p) == WEFT_MEMBER_SCAN)
        return weft_attr_int(m->graph, fit->node[p], WEFT_ATTR_reverse) ? BACKWARDS : FORWARDS;
    return kind_of(m, fit, p) == WEFT_MEMBER_FOLD ? FORWARDS : EITHER;
}

/* The first stage from this one on that does not go the other way. */
static unsigned find_stage(const struct weft_members *m, const struct weft_fit *fit, uint32_t p, unsigned stage)
{
    const enum way way = way_of(m, fit, p);
    for (uint32_t q = 0; q < p && way != EITHER; q++) {
        const enum way other = fit->member[q].stage == stage ? way_of(m, fit, q) : EITHER;
        if (other == EITHER || other == way)
            continue;
        stage++;
        q = UINT32_MAX; /* from the beginning */
    }
    return stage;
}

static void place_stage(const struct weft_members *m, struct weft_fit *fit, uint32_t p)
{
    const struct weft_graph *g = m->graph;
    unsigned stage = 0;
    for (uint32_t k = 0; k < g->node[fit->node[p].id].operands; k++) {
        const uint32_t q = maker_of(m, fit, weft_operand(g, fit->node[p], k));
        if (q == UINT32_MAX)
            continue;
        const bool made_outside = !fit->member[q].inside || kind_of(m, fit, q) == WEFT_MEMBER_FOLD;
        const unsigned after = fit->member[q].stage + (made_outside && fit->member[p].inside);
        stage = after > stage ? after : stage;
    }
    stage = find_stage(m, fit, p, stage);
    fit->member[p].stage = (uint8_t)stage;
    fit->stages = stage + 1 > fit->stages ? stage + 1 : fit->stages;
}

/* An elementwise node that only a later stage reads is computed there, if that keeps no more values: of one operand. */
static void delay_members(const struct weft_members *m, struct weft_fit *fit)
{
    const struct weft_graph *g = m->graph;
    uint8_t first[WEFT_MOST_MEMBERS]; /* stage that reads it first */
    memset(first, UINT8_MAX, sizeof first);
    for (uint32_t p = fit->count; p-- > 0;) {
        struct weft_fit_member *const member = &fit->member[p];
        unsigned computed = 0;
        for (uint32_t k = 0; k < g->node[fit->node[p].id].operands; k++) {
            const uint32_t q = maker_of(m, fit, weft_operand(g, fit->node[p], k));
            computed += q != UINT32_MAX && fit->member[q].inside &&
                        (kind_of(m, fit, q) == WEFT_MEMBER_MAP || kind_of(m, fit, q) == WEFT_MEMBER_SCAN);
        }
        if (kind_of(m, fit, p) == WEFT_MEMBER_MAP && member->inside && !member->out && computed <= 1 &&
            first[p] != UINT8_MAX && first[p] > member->stage)
            member->stage = first[p];
        if (kind_of(m, fit, p) == WEFT_MEMBER_VIEW)
            continue;
        for (uint32_t k = 0; k < g->node[fit->node[p].id].operands; k++) {
            const uint32_t q = maker_of(m, fit, weft_operand(g, fit->node[p], k));
            if (q != UINT32_MAX && member->stage < first[q])
                first[q] = member->stage;
        }
    }
}

const char *weft_fit_find(struct weft_members *m, const weft_node *node, uint32_t count, struct weft_fit *ret,
                          weft_val *ret_where)
{
    *ret = (struct weft_fit){.node = node, .count = count, .cut = -1};
    *ret_where = weft_result(m->graph, node[count - 1], 0);
    if (count > WEFT_MOST_MEMBERS)
        return "would have more than 64 nodes";
    const char *why = weft_group_axes_find(m, node, count, &ret->axes, ret_where);
    if (why)
        return why;
    for (uint32_t p = 0; p < count; p++)
        if (kind_of(m, ret, p) != WEFT_MEMBER_VIEW)
            ret->all |= axes_of(m, ret, p);
    ret->outer = ret->all & (uint16_t) ~(ret->axes.folded | ret->axes.scanned);
    why = find_chunks(m, ret);
    why = why ? why : check_scans(ret);
    if (why)
        return why;
    find_outer(m, ret);
    for (uint32_t p = 0; p < count; p++) {
        *ret_where = weft_result(m->graph, node[p], 0);
        why = place_member(m, ret, p);
        if (why)
            return why;
        if (kind_of(m, ret, p) != WEFT_MEMBER_VIEW)
            place_stage(m, ret, p);
    }
    for (uint32_t p = 0; p < count; p++) {
        *ret_where = weft_result(m->graph, node[p], 0);
        why = check_out(m, ret, p);
        if (why)
            return why;
    }
    delay_members(m, ret);
    return NULL;
}
