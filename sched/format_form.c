/* SPDX-License-Identifier: Apache-2.0 */
/* format_form.c: which loops a kernel takes for operands and a result that lie so. The kernel itself is asked, by the
 * same code that binds a step to sizes when a plan runs (sched/step.h), with sizes at their hints: so what is priced
 * is what runs.
 *
 *   %y = conv %x, %w      y {0 2 3 1}, x {0 2 3 1}: weft_conv_f32_winograd_2__avx512
 *                         y {0 1 2 3}, x {0 1 2 3}: weft_conv_f32_direct__avx512 */
#include "sched/alias.h"
#include "sched/format.h"
#include "sched/select.h"

/* Is there a stride for each axis? */
static bool has_strides(const struct weft_formats *f, weft_val v, uint32_t layout)
{
    return layout == 0 || f->graph->root->layout[layout].axes == weft_type_of(f->graph, v)->rank;
}

/* Extents and strides for these sizes (NULL: the hints) where no axis is split. */
static struct weft_tensor tensor_in(const struct weft_formats *f, weft_val v, uint32_t number, const int64_t *symbols)
{
    const struct weft_graph *g = f->graph;
    const struct weft_type *type = weft_type_of(g, v);
    const uint32_t stored = weft_format_stored_axes(g, v);
    const struct weft_layout *const stated = number ? &g->root->layout[number] : NULL;
    /* not in registers */
    const struct weft_layout *const layout = stated && stated->kind == WEFT_STORED ? stated : NULL;
    struct weft_tensor t = {.dtype = type->dtype, .rank = type->rank};
    int64_t step = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        const int axis = layout ? layout->axis[i].axis : i;
        const int64_t extent = weft_dim_evaluate(g->dims, type->extent[axis], symbols);
        t.extent[axis] = extent > 0 ? extent : 0;
        t.stride[axis] = !(stored >> axis & 1)     ? 0
                         : layout && !layout->dense ? weft_dim_evaluate(g->dims, layout->stride[i], symbols) : step;
        step *= stored >> axis & 1 && extent > 0 ? extent : 1;
    }
    return t;
}

static bool set_tensor(const struct weft_formats *f, weft_val v, uint32_t layout, struct weft_tensor *ret)
{
    const bool strided = has_strides(f, v, layout);
    if (strided)
        *ret = tensor_in(f, v, layout, /* hints: */ NULL);
    return strided;
}

/* A step of that node to be bound; the kind is the caller's to know. */
static bool open_bind(const struct weft_formats *f, const struct weft_step *step, uint32_t result, uint32_t first,
                      uint32_t second, struct weft_bind *ret)
{
    const weft_node n = step->node;
    const struct weft_graph *g = f->graph;
    *ret = (struct weft_bind){.graph = g, .step = step, .target = f->target, .workers = f->target->threads};
    return set_tensor(f, weft_result(g, n, 0), result, &ret->out) &
           set_tensor(f, weft_operand(g, n, 0), first, &ret->in[0]) &
           (g->node[n.id].operands < 2 || set_tensor(f, weft_operand(g, n, 1), second, &ret->in[1]));
}

bool weft_format_conv(const struct weft_formats *f, weft_node n, uint32_t operand, uint32_t result,
                      struct weft_conv *ret)
{
    const struct weft_step step = {.kind = &weft_step_conv, .node = n};
    struct weft_bind bind;
    if (!open_bind(f, &step, result, operand, /* weights: */ 0, &bind))
        return false;
    weft_step_fill_conv(&bind, ret);
    ret->w_packed = weft_select_packs(f->graph, step.kind, weft_operand(f->graph, n, 1));
    return true;
}

bool weft_format_gemm(const struct weft_formats *f, weft_node n, uint32_t first, uint32_t second, uint32_t result,
                      struct weft_gemm *ret)
{
    const struct weft_step step = {.kind = &weft_step_gemm, .node = n};
    struct weft_bind bind;
    if (!open_bind(f, &step, result, first, second, &bind))
        return false;
    const bool single = weft_step_fill_gemm(&bind, ret);
    ret->b_packed = single && weft_select_packs(f->graph, step.kind, weft_operand(f->graph, n, 1));
    return true;
}

bool weft_format_reduce(const struct weft_formats *f, weft_node n, uint32_t operand, uint32_t result,
                        struct weft_reduce *ret)
{
    const struct weft_step step = {.kind = &weft_step_reduce, .node = n};
    struct weft_bind bind;
    if (!open_bind(f, &step, result, operand, 0, &bind))
        return false;
    weft_step_fill_reduce(&bind, ret);
    return weft_reduce_supports(ret->in_dtype, ret->out_dtype, ret->cpu);
}

/* --- the kernel of a unit as its values lie now ------------------------------------------------------------------- */

static struct weft_tensor tensor_at(const void *user, weft_val v, const int64_t *symbols)
{
    const struct weft_formats *f = user;
    return tensor_in(f, v, f->graph->value[v.id].layout, symbols);
}

static const weft_dim *stride_at(const void *user, weft_val v)
{
    const struct weft_formats *f = user;
    const struct weft_graph *g = f->graph;
    const struct weft_layout layout = weft_own_layout(g, v);
    weft_dim *const stride = weft_new(&g->root->scratch, weft_dim, WEFT_MAX_RANK);
    weft_layout_logical_strides(g->dims, &layout, weft_type_of(g, v), stride);
    return stride;
}

static const struct weft_layout *layout_at(const void *user, weft_val v)
{
    const struct weft_formats *f = user;
    return weft_layout_peek(f->graph, f->graph->value[v.id].layout, weft_type_of(f->graph, v)->rank);
}

static uintptr_t alignment_at(const void *user, weft_val v, const int64_t *symbols) { return 1; }

/* Have all values strides? */
static bool are_strided(const struct weft_formats *f, uint32_t count, const weft_val *v)
{
    bool strided = true;
    for (uint32_t i = 0; i < count; i++)
        strided = strided && has_strides(f, v[i], f->graph->value[v[i].id].layout);
    return strided;
}

static struct weft_select select_of(const struct weft_formats *f, const struct weft_places *places,
                                    const int64_t *symbols)
{
    return (struct weft_select){.graph = f->graph, .target = f->target, .arena = f->graph->arena, .places = places,
                                .symbols = symbols, .workers = f->target->threads};
}

static struct weft_places places_of(const struct weft_formats *f)
{
    return (struct weft_places){
        .tensor = tensor_at, .stride = stride_at, .alignment = alignment_at, .layout = layout_at, .user = f};
}

const struct weft_choices *weft_format_first_choice(const struct weft_formats *f, const int64_t *symbols,
                                                    const struct weft_unit *unit)
{
    const struct weft_places places = places_of(f);
    const struct weft_select select = select_of(f, &places, symbols);
    const bool strided = are_strided(f, unit->ins, unit->in) && are_strided(f, unit->outs, unit->out);
    return strided ? weft_select_first(&select, unit) : NULL;
}

const struct weft_choices *weft_format_choice_of(const struct weft_formats *f, const int64_t *symbols,
                                                 const struct weft_step *step)
{
    const struct weft_places places = places_of(f);
    const struct weft_select select = select_of(f, &places, symbols);
    const bool strided = are_strided(f, step->ins, step->in) && are_strided(f, step->outs, step->out);
    return strided ? weft_select_step_choice(&select, step) : NULL;
}
