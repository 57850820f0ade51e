/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue_outs.c: what a contraction's group makes for others, and where the contraction's results stand until the
 * program has read them. The contract: epilogue.h. */
#include "codegen/pointwise.h"
#include "sched/epilogue.h"

#include <string.h>

/* --- what others read --------------------------------------------------------------------------------------------- */

static uint8_t kind_at(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    return m->member[fit->node[p].id]->kind;
}

static const char *refuse_kind(uint8_t kind)
{
    return kind == WEFT_MEMBER_LOOK_UP  ? "looks up results of a %s"
           : kind == WEFT_MEMBER_SCAN   ? "scans results of a %s"
           : kind == WEFT_MEMBER_CHUNKS ? "reduces results of a %s in chunks" : NULL;
}

const char *weft_epilogue_find_outs(const struct weft_members *m, struct weft_group_fit *ret, weft_val *ret_where)
{
    const struct weft_graph *g = m->graph;
    const struct weft_fit *const fit = &ret->fit;
    bool is_f32 = ret->raw;
    ret->outs = ret->raw;
    ret->out = ret->raw ? weft_result(g, ret->head, 0) : WEFT_NO_VALUE;
    for (uint32_t p = 0; p < fit->count; p++) {
        const uint8_t kind = kind_at(m, fit, p);
        const weft_val v = weft_result(g, fit->node[p], 0);
        *ret_where = v;
        if (refuse_kind(kind))
            return weft_group_fit_say(m, ret, refuse_kind(kind));
        if (kind == WEFT_MEMBER_VIEW || !fit->member[p].out)
            continue;
        const bool whole = fit->member[p].axes == fit->all, f32 = weft_type_of(g, v)->dtype == WEFT_F32;
        if (!whole && !ret->rows)
            return weft_group_fit_say(m, ret, "has fewer axes than the %s that it would be stored along with");
        if (++ret->outs > 1 && ret->fold.id)
            return "would be the second result of a contraction whose pixels are reduced";
        if (whole && (!ret->out.id || (f32 && !is_f32))) {
            ret->out = v;
            is_f32 = f32;
        }
    }
    ret->is_alone = ret->outs == 1 && is_f32 && !ret->raw && !ret->rows;
    return ret->outs ? NULL : "has no reader";
}

/* --- where results stand ------------------------------------------------------------------------------------------ */

static uint32_t array_of(const struct weft_form *form, weft_val v)
{
    uint32_t i = 0;
    while (i < form->arrays && !weft_is(form->array[i].value, v))
        i++;
    return i;
}

/* Has the program read what stands in the memory of a result when it stores that there? */
static bool may_lie_over(const struct weft_scheduling *s, const struct weft_epilogue *e, weft_val out,
                         const int8_t *out_dim, int rank)
{
    struct weft_form_over ask = {.out = array_of(e->form, out), .in = e->c};
    uint32_t op;
    if (ask.out == e->form->arrays || weft_type_of(s->graph, out)->dtype != WEFT_F32)
        return false;
    memset(ask.dim, -1, sizeof ask.dim);
    for (int d = 0; d < rank; d++) {
        if (e->c_dim[d] >= 0 && out_dim[d] < 0)
            return false; /* it has fewer axes */
        if (out_dim[d] >= 0)
            ask.dim[out_dim[d]] = e->c_dim[d];
    }
    return !weft_form_refuse_over(e->form, &ask, &s->graph->root->scratch, &op);
}

/* The result in whose memory the contraction leaves its own, or UINT32_MAX. v: what the kernel makes of them. */
static uint32_t find_place(const struct weft_scheduling *s, const struct weft_epilogue *e, weft_val v,
                           const struct weft_epilogue_outs *outs, int rank)
{
    for (uint32_t i = 0; i < outs->count; i++)
        if (weft_is(outs->out[i], v))
            return i;
    for (uint32_t i = 0; i < outs->count; i++)
        if (may_lie_over(s, e, outs->out[i], outs->dim[i], rank))
            return i;
    return UINT32_MAX;
}

/* The dimension of the fold's result that dimension `dim` of what it folds becomes. */
static int8_t kept_dim(const struct weft_graph *g, weft_node fold, int dim)
{
    const struct weft_attr *const axes = weft_attr_find(g, fold, WEFT_ATTR_axes);
    int kept = dim;
    for (uint32_t i = 0; i < axes->count && !weft_attr_int(g, fold, WEFT_ATTR_keepdims); i++)
        kept -= weft_dim_value(axes->integers[i]) < dim;
    return (int8_t)kept;
}

static void add_fold(const struct weft_graph *g, const struct weft_group_fit *group, struct weft_epilogue *e)
{
    e->folded = weft_result(g, group->fold, 0);
    weft_pointwise_fold(weft_opcode_of(g, group->fold), &e->fold);
    for (int i = 0; i < 2; i++)
        e->fold_dim[i] = (int8_t)(e->out_dim[i] < 0 ? -1 : kept_dim(g, group->fold, e->out_dim[i]));
}

void weft_epilogue_write(const struct weft_scheduling *s, const struct weft_group_fit *group, weft_val v,
                         const struct weft_epilogue_outs *outs, struct weft_epilogue *e, struct weft_step *step)
{
    const int rank = weft_type_of(s->graph, weft_result(s->graph, group->head, 0))->rank;
    weft_val *const out = weft_new(s->arena, weft_val, outs->count);
    uint32_t first = find_place(s, e, v, outs, rank);
    e->is_aside = first == UINT32_MAX;
    memset(e->out_dim, -1, sizeof e->out_dim);
    for (uint32_t i = 0; i < outs->count && e->is_aside; i++) /* results lie aside as these do */
        first = first == UINT32_MAX && weft_is(outs->out[i], group->out) ? i : first;
    if (first != UINT32_MAX)
        memcpy(e->out_dim, outs->dim[first], sizeof e->out_dim);
    first = first == UINT32_MAX ? 0 : first;
    step->out = out;
    step->outs = 0;
    out[step->outs++] = outs->out[first];
    for (uint32_t i = 0; i < outs->count; i++)
        if (i != first)
            out[step->outs++] = outs->out[i];
    if (group->fold.id)
        add_fold(s->graph, group, e);
}
