/* SPDX-License-Identifier: Apache-2.0 */
/* step_product.c: products and convolutions in f64 and in integers. Of a product operand 0 is on the left, of a
 * convolution the weights are. */
#include "sched/step.h"

bool weft_step_is_product(const struct weft_graph *g, weft_node n)
{
    return weft_product_supports(weft_type_of(g, weft_operand(g, n, 0))->dtype,
                                 weft_type_of(g, weft_operand(g, n, 1))->dtype,
                                 weft_type_of(g, weft_result(g, n, 0))->dtype);
}

static void fill_matmul(const struct weft_bind *bind, struct weft_product *p)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *a = &bind->in[0], *b = &bind->in[1], *c = &bind->out;
    const int last = c->rank - 1, a_column = weft_attr_int(g, n, WEFT_ATTR_trans_a) ? last - 1 : last;
    const int b_column = weft_attr_int(g, n, WEFT_ATTR_trans_b) ? last - 1 : last;
    const int a_row = 2 * last - 1 - a_column, b_row = 2 * last - 1 - b_column;
    *p = (struct weft_product){.m = c->extent[last - 1], .n = c->extent[last], .k = a->extent[a_column],
                               .a_row = a->stride[a_row], .a_column = a->stride[a_column],
                               .b_row = b->stride[b_row], .b_column = b->stride[b_column],
                               .c_row = c->stride[last - 1], .c_column = c->stride[last], .batch_rank = last - 1};
    for (int i = 0; i < last - 1; i++) {
        p->batch[i] = c->extent[i];
        p->a_batch[i] = a->stride[i];
        p->b_batch[i] = b->stride[i];
        p->c_batch[i] = c->stride[i];
    }
}

static void fill_conv(const struct weft_bind *bind, struct weft_product *p)
{
    const struct weft_tensor *x = &bind->in[0], *w = &bind->in[1], *y = &bind->out;
    const int64_t groups = weft_attr_int(bind->graph, bind->step->node, WEFT_ATTR_groups);
    const int missing = 5 - x->rank;
    *p = (struct weft_product){.conv = true, .images = x->extent[0], .groups = groups, .channels = w->extent[1],
                               .m = w->extent[0] / groups, .k = w->extent[1], .a_row = w->stride[0],
                               .a_column = w->stride[1], .b_row = x->stride[1], .c_row = y->stride[1],
                               .x_image = x->stride[0], .y_image = y->stride[0]};
    for (int i = 0; i < 3; i++) {
        const bool given = i >= missing;
        const int axis = given ? 2 + i - missing : 0;
        const unsigned at = given ? (unsigned)(i - missing) : 0;
        p->in_extent[i] = given ? x->extent[axis] : 1;
        p->out_extent[i] = given ? y->extent[axis] : 1;
        p->taps[i] = given ? w->extent[axis] : 1;
        p->x_step[i] = given ? x->stride[axis] : 0;
        p->y_step[i] = given ? y->stride[axis] : 0;
        p->w_step[i] = given ? w->stride[axis] : 0;
        p->stride[i] = given ? weft_bind_attr(bind, WEFT_ATTR_stride, at) : 1;
        p->dilation[i] = given ? weft_bind_attr(bind, WEFT_ATTR_dilation, at) : 1;
        p->pad[i] = given ? weft_bind_attr(bind, WEFT_ATTR_pad, at) : 0;
        p->k *= p->taps[i];
    }
}

static void bind_product(struct weft_bind *bind, void *descriptor)
{
    struct weft_product *p = descriptor;
    const bool conv = weft_opcode_of(bind->graph, bind->step->node) == WEFT_OP_conv;
    if (conv)
        fill_conv(bind, p);
    else
        fill_matmul(bind, p);
    p->cpu = weft_bind_cpu(bind);
    p->a_dtype = (uint8_t)bind->in[conv].dtype;
    p->b_dtype = (uint8_t)bind->in[!conv].dtype;
    p->c_dtype = (uint8_t)bind->out.dtype;
    weft_product_prepare(p, bind->workers);
    bind->parts = p->parts;
    bind->scratch = p->scratch;
}

static void run_product(const void *descriptor, struct weft_call *call)
{
    const struct weft_product *p = descriptor;
    weft_product_run(p, call->out, call->in[p->conv], call->in[!p->conv], call->scratch, call->part, call->parts);
}

static uint32_t cpu_product(const void *descriptor) { return weft_product_cpu(descriptor); }

static const char *name_product(const void *descriptor, const struct weft_step *step)
{
    return weft_product_name(descriptor);
}

const struct weft_step_kind weft_step_product = {
    .name = "product", .arithmetic = WEFT_ARITHMETIC_CHAIN, .traits = WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct weft_product),
    .bind = bind_product, .run = run_product, .kernel = name_product, .cpu = cpu_product};
