/* SPDX-License-Identifier: Apache-2.0 */
/* step_attention_grad.c: the gradient of attention of f32 (kernels/attention/grad.h). Operands and results lie as they
 * like; where their last axes are not contiguous, the kernel copies pieces. */
#include "kernels/attention/grad.h"
#include "sched/step.h"

#include <string.h>

enum { DY, QUERY, KEY, VALUE, Y, SUMS, MASK, DQ = 0, DK, DV };

static void bind_attention_grad(struct weft_bind *bind, void *descriptor)
{
    struct weft_attention_grad *const a = descriptor;
    const struct weft_graph *const g = bind->graph;
    const struct weft_step *const step = bind->step;
    const struct weft_tensor *const q = &bind->in[QUERY], *const k = &bind->in[KEY], *const v = &bind->in[VALUE];
    *a = (struct weft_attention_grad){
        .cpu = weft_bind_cpu(bind),
        .batch = q->extent[0], .heads = q->extent[1], .rows = q->extent[2], .width = q->extent[3],
        .groups = k->extent[1], .keys = k->extent[2], .out_width = v->extent[3],
        .factor = (float)weft_attr_real(g, step->node, WEFT_ATTR_factor),
        .softcap = (float)weft_attr_real(g, step->node, WEFT_ATTR_softcap),
        .causal = weft_attr_int(g, step->node, WEFT_ATTR_causal) != 0, .masked = step->ins > MASK,
        .offset = weft_dim_evaluate(g->dims, weft_attr_dim(g, step->node, WEFT_ATTR_offset), bind->symbols)};
    int64_t *const in[] = {a->dy, a->q, a->k, a->v, a->y, a->sums, a->mask}, *const out[] = {a->dq, a->dk, a->dv};
    for (uint32_t i = 0; i < step->ins; i++) {
        const struct weft_tensor tensor = weft_bind_tensor(bind, step->in[i]);
        memcpy(in[i], tensor.stride, (i == SUMS ? 3 : 4) * sizeof **in);
    }
    for (uint32_t i = 0; i < step->outs; i++) {
        const struct weft_tensor tensor = weft_bind_tensor(bind, step->out[i]);
        memcpy(out[i], tensor.stride, 4 * sizeof **out);
    }
    weft_attention_grad_prepare(a, bind->workers);
    bind->parts = a->parts;
    bind->scratch = a->scratch;
    bind->shared = a->shared;
}

static void run_attention_grad(const void *descriptor, struct weft_call *call)
{
    const struct weft_attention_grad *const a = descriptor;
    const weft_val *const in = call->step->in, *const out = call->step->out;
    const struct weft_attention_grad_data data = {
        .dq = call->out, .dk = call->tensor(call, out[DK]).data, .dv = call->tensor(call, out[DV]).data,
        .dy = call->in[DY], .q = call->in[QUERY], .k = call->in[KEY], .v = call->in[VALUE],
        .y = call->tensor(call, in[Y]).data, .sums = call->tensor(call, in[SUMS]).data,
        .mask = a->masked ? call->tensor(call, in[MASK]).data : NULL,
        .scratch = call->scratch, .shared = call->shared};
    weft_attention_grad_run(a, &data, call->part, call->parts);
}

static uint32_t cpu_attention_grad(const void *descriptor) { return weft_attention_grad_cpu(descriptor); }

static const char *name_attention_grad(const void *descriptor, const struct weft_step *step)
{
    return weft_attention_grad_name(descriptor);
}

static void account_attention_grad(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    *ret = (struct weft_account){.count = weft_attention_grad_products(descriptor), .price = WEFT_PRICE_product,
                                 .signature = {.arithmetic = WEFT_ARITHMETIC_CHAIN}};
}

const struct weft_step_kind weft_step_attention_grad = {
    .name = "attention_grad", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_attention_grad),
    .bind = bind_attention_grad, .run = run_attention_grad, .kernel = name_attention_grad, .cpu = cpu_attention_grad,
    .account = account_attention_grad};
