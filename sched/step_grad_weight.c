/* SPDX-License-Identifier: Apache-2.0 */
/* step_grad_weight.c: gradients of the weights of convolutions of f32. */
#include "sched/step.h"

static void bind_grad_weight(struct weft_bind *bind, void *descriptor)
{
    const struct weft_tensor *x = &bind->in[0], *dy = &bind->in[1], *dw = &bind->out;
    const int missing = 5 - x->rank;
    struct weft_grad_weight *const s = descriptor;
    *s = (struct weft_grad_weight){.cpu = weft_bind_cpu(bind), .images = x->extent[0],
                                   .groups = weft_attr_int(bind->graph, bind->step->node, WEFT_ATTR_groups),
                                   .c = dw->extent[1],
                                   .winograd_permitted = bind->target->arithmetic != WEFT_CONV_CHAIN};
    s->o = dy->extent[1] / s->groups;
    for (int i = 0; i < 2; i++) {
        s->x_stride[i] = x->stride[i];
        s->dy_stride[i] = dy->stride[i];
        s->dw_stride[i] = dw->stride[i];
    }
    for (int i = 0; i < 3; i++) {
        s->in[i] = s->out[i] = s->taps[i] = s->stride[i] = s->dilation[i] = 1;
        if (i < missing)
            continue;
        const unsigned at = (unsigned)(i - missing);
        s->in[i] = x->extent[2 + at];
        s->out[i] = dy->extent[2 + at];
        s->taps[i] = dw->extent[2 + at];
        s->stride[i] = weft_bind_attr(bind, WEFT_ATTR_stride, at);
        s->dilation[i] = weft_bind_attr(bind, WEFT_ATTR_dilation, at);
        s->pad[i] = weft_bind_attr(bind, WEFT_ATTR_pad, at);
        s->x_stride[2 + i] = x->stride[2 + at];
        s->dy_stride[2 + i] = dy->stride[2 + at];
        s->dw_stride[2 + i] = dw->stride[2 + at];
    }
    weft_grad_weight_prepare(s, bind->workers);
    bind->parts = s->parts;
    bind->scratch = s->scratch;
    bind->shared = s->shared;
}

static void run_grad_weight(const void *descriptor, struct weft_call *call)
{
    weft_grad_weight_run(descriptor, call->out, call->in[0], call->in[1], call->scratch, call->shared, call->part,
                         call->parts);
}

static uint32_t cpu_grad_weight(const void *descriptor) { return weft_grad_weight_cpu(descriptor); }

static const char *name_grad_weight(const void *descriptor, const struct weft_step *step)
{
    return weft_grad_weight_name(descriptor);
}

static void account_grad_weight(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    const struct weft_grad_weight *const s = descriptor;
    *ret = (struct weft_account){.signature = {.arithmetic = WEFT_ARITHMETIC_CHAIN, .winograd = s->winograd ? 3 : 0},
                                 .count = weft_grad_weight_products(descriptor),
                                 .price = WEFT_PRICE_conv_direct_first};
}

const struct weft_step_kind weft_step_grad_weight = {
    .name = "grad_weight", .arithmetic = WEFT_ARITHMETIC_CHAIN, .traits = WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct weft_grad_weight), .bind = bind_grad_weight, .run = run_grad_weight,
    .kernel = name_grad_weight, .cpu = cpu_grad_weight, .account = account_grad_weight};
