/* SPDX-License-Identifier: Apache-2.0 */
/* format_form.c: which loops a kernel takes for operands and a result that lie so. The kernel itself is asked, by the
 * same code that binds a step to sizes when a plan runs (sched/step.h), with sizes at their hints: so what is priced
 * is what runs.
 *
 *   %y = conv %x, %w      y {0 2 3 1}, x {0 2 3 1}: weft_conv_f32_winograd_2__avx512
 *                         y {0 1 2 3}, x {0 1 2 3}: weft_conv_f32_direct__avx512 */
#include "sched/format.h"

/* Extents and strides at the hints; false where axes are split. */
static bool set_tensor(const struct weft_formats *f, weft_val v, uint32_t layout, struct weft_tensor *ret)
{
    const struct weft_graph *g = f->graph;
    const struct weft_type *type = weft_type_of(g, v);
    *ret = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++) {
        const int64_t extent = weft_dim_hint(g->dims, type->extent[i]);
        ret->extent[i] = extent > 0 ? extent : 0;
    }
    return weft_format_strides(f, v, layout, ret->stride);
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
    ret->w_packed = true;
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
    ret->b_packed = single && weft_format_is_packed(f->graph, weft_operand(f->graph, n, 1));
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

static uint32_t layout_of(const struct weft_graph *g, weft_val v) { return g->value[v.id].layout; }

const char *weft_format_form(const struct weft_formats *f, weft_node n)
{
    const struct weft_graph *g = f->graph;
    const int op = weft_opcode_of(g, n);
    struct weft_conv conv;
    struct weft_gemm gemm;
    if ((op != WEFT_OP_matmul && op != WEFT_OP_conv && op != WEFT_OP_conv_transpose) || !weft_step_is_f32(g, n))
        return NULL;
    const weft_val first = weft_operand(g, n, 0), second = weft_operand(g, n, 1), result = weft_result(g, n, 0);
    if (op == WEFT_OP_matmul) {
        if (!weft_format_gemm(f, n, layout_of(g, first), layout_of(g, second), layout_of(g, result), &gemm))
            return NULL;
        weft_gemm_prepare(&gemm, f->target->threads);
        return weft_gemm_name(&gemm);
    }
    if (!weft_format_conv(f, n, layout_of(g, first), layout_of(g, result), &conv))
        return NULL;
    weft_conv_prepare(&conv, f->target->threads);
    return weft_conv_name(&conv);
}
