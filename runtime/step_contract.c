/* SPDX-License-Identifier: Apache-2.0 */
/* step_contract.c: matrix products and convolutions. Constant weights are packed once, when the plan is made, for the
 * sizes that the hints give; where other sizes lead to other loops, which want another pack, the weights are read as
 * they are. */
#include "runtime/runtime.h"

/* --- gemm --------------------------------------------------------------------------------------------------------- */

/* Merges the leading axes into one batch; false if the strides of a tensor do not allow that. */
static bool batch_stride(const struct weft_tensor *t, int64_t *ret)
{
    int64_t stride = 0, extent = 1;
    for (int i = t->rank - 3; i >= 0; i--) {
        if (t->extent[i] == 1)
            continue;
        if (extent == 1)
            stride = t->stride[i];
        else if (t->stride[i] != stride * extent)
            return false;
        extent *= t->extent[i];
    }
    *ret = stride;
    return true;
}

/* Outer batch axes that do not merge are walked by hand, one product after the other. */
struct gemm_step {
    struct weft_gemm gemm;
    int32_t walked;  /* leading axes */
    int64_t extent[WEFT_MAX_RANK], out[WEFT_MAX_RANK], a[WEFT_MAX_RANK], b[WEFT_MAX_RANK];
};

static void set_batch(struct gemm_step *s, const struct weft_tensor *out, const struct weft_tensor *a,
                      const struct weft_tensor *b)
{
    struct weft_gemm *g = &s->gemm;
    g->batch = 1;
    if (batch_stride(out, &g->c_batch) && batch_stride(a, &g->a_batch) && batch_stride(b, &g->b_batch)) {
        for (int i = 0; i < out->rank - 2; i++)
            g->batch *= out->extent[i];
        return;
    }
    s->walked = out->rank - 2;
    g->max_slices = 1; /* parts are not at the same product at the same time */
    for (int i = 0; i < s->walked; i++) {
        s->extent[i] = out->extent[i];
        s->out[i] = out->stride[i];
        s->a[i] = a->stride[i];
        s->b[i] = b->stride[i];
    }
}

static void fill_gemm(const struct weft_bind *bind, struct gemm_step *s)
{
    const struct weft_graph *graph = bind->plan->graph;
    const weft_node n = bind->step->node;
    const bool trans_a = weft_attr_int(graph, n, WEFT_ATTR_trans_a),
               trans_b = weft_attr_int(graph, n, WEFT_ATTR_trans_b);
    const struct weft_tensor *a = &bind->in[0], *b = &bind->in[1], *c = &bind->out;
    const int row = c->rank - 2, col = c->rank - 1;
    *s = (struct gemm_step){.gemm = {
        .cpu = bind->plan->target.cpu, .cache = bind->plan->target.l2,
        .m = c->extent[row], .n = c->extent[col], .k = a->extent[trans_a ? row : col],
        .a_row = a->stride[trans_a ? col : row], .a_col = a->stride[trans_a ? row : col],
        .b_row = b->stride[trans_b ? col : row], .b_col = b->stride[trans_b ? row : col],
        .c_row = c->stride[row], .c_col = c->stride[col]}};
    set_batch(s, c, a, b);
}

static void bind_gemm(struct weft_bind *bind, void *descriptor)
{
    struct gemm_step *s = descriptor;
    fill_gemm(bind, s);
    s->gemm.b_packed = bind->step->pack && s->gemm.batch == 1 && !s->walked;
    weft_gemm_prepare(&s->gemm, bind->workers);
    if (s->gemm.b_packed && s->gemm.pack_form != bind->step->pack_form) {
        s->gemm.b_packed = false;
        weft_gemm_prepare(&s->gemm, bind->workers);
    }
    bind->parts = s->gemm.parts;
    bind->scratch = s->gemm.scratch;
    bind->shared = s->gemm.shared;
}

static void run_gemm(const void *descriptor, struct weft_call *call)
{
    const struct gemm_step *s = descriptor;
    const float *b = s->gemm.b_packed ? call->plan->pack[call->step->pack].data : call->in[1];
    int64_t index[WEFT_MAX_RANK] = {0}, products = 1;
    for (int i = 0; i < s->walked; i++)
        products *= s->extent[i];
    for (int64_t p = 0; p < products; p++) {
        int64_t out = 0, left = 0, right = 0;
        for (int i = 0; i < s->walked; i++) {
            out += index[i] * s->out[i];
            left += index[i] * s->a[i];
            right += index[i] * s->b[i];
        }
        const struct weft_gemm_data data = {.c = (float *)call->out + out, .a = (const float *)call->in[0] + left,
                                            .b = b + right, .scratch = call->scratch, .shared = call->shared};
        weft_gemm_run(&s->gemm, &data, call->part, call->parts);
        for (int i = s->walked - 1; i >= 0 && ++index[i] == s->extent[i]; i--)
            index[i] = 0;
    }
}

static const char *name_gemm(const void *descriptor, const struct weft_step *step)
{
    return weft_gemm_name(&((const struct gemm_step *)descriptor)->gemm);
}

const struct weft_step_kind weft_step_gemm = {"gemm", sizeof(struct gemm_step), bind_gemm, run_gemm, name_gemm,
                                              .strided = true};

/* --- conv --------------------------------------------------------------------------------------------------------- */

static void fill_conv(const struct weft_bind *bind, struct weft_conv *conv)
{
    const struct weft_graph *g = bind->plan->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *x = &bind->in[0], *w = &bind->in[1], *y = &bind->out;
    *conv = (struct weft_conv){.cpu = bind->plan->target.cpu,
                               .cache = bind->plan->target.l2,
                               .arithmetic = bind->plan->convolution,
                               .spatial = x->rank - 2,
                               .n = x->extent[0],
                               .c = x->extent[1],
                               .o = y->extent[1],
                               .transposed = weft_opcode_of(g, n) == WEFT_OP_conv_transpose,
                               .groups = weft_attr_int(g, n, WEFT_ATTR_groups)};
    for (int i = 0; i < x->rank; i++) {
        conv->x_stride[i] = x->stride[i];
        conv->y_stride[i] = y->stride[i];
        conv->w_stride[i] = w->stride[i];
    }
    for (int i = 0; i < conv->spatial; i++) {
        const unsigned axis = (unsigned)i;
        conv->in_extent[i] = x->extent[2 + i];
        conv->out_extent[i] = y->extent[2 + i];
        conv->kernel[i] = w->extent[2 + i];
        conv->stride[i] = weft_bind_attr(bind, WEFT_ATTR_stride, axis);
        conv->dilation[i] = weft_bind_attr(bind, WEFT_ATTR_dilation, axis);
        conv->pad[i] = weft_bind_attr(bind, WEFT_ATTR_pad, axis);
    }
}

static void bind_conv(struct weft_bind *bind, void *descriptor)
{
    struct weft_conv *conv = descriptor;
    fill_conv(bind, conv);
    conv->w_packed = bind->step->pack != 0;
    weft_conv_prepare(conv, bind->workers);
    if (conv->w_packed && (conv->form != bind->step->pack_form || conv->gemm.pack_form != bind->step->pack_inner)) {
        conv->w_packed = false;
        weft_conv_prepare(conv, bind->workers);
    }
    bind->parts = conv->parts;
    bind->scratch = conv->scratch;
}

static void run_conv(const void *descriptor, struct weft_call *call)
{
    const struct weft_conv *conv = descriptor;
    const float *w = conv->w_packed ? call->plan->pack[call->step->pack].data : call->in[1];
    const struct weft_conv_data data = {.y = call->out, .x = call->in[0], .w = w, .scratch = call->scratch};
    weft_conv_run(conv, &data, call->part, call->parts);
}

static const char *name_conv(const void *descriptor, const struct weft_step *step)
{
    return weft_conv_name(descriptor);
}

const struct weft_step_kind weft_step_conv = {"conv", sizeof(struct weft_conv), bind_conv, run_conv, name_conv,
                                              .strided = true};

/* --- packs -------------------------------------------------------------------------------------------------------- */

/* So much of a matrix is packed at a time: what its file takes in memory meanwhile is given back behind. */
#define PACK_BYTES ((size_t)8 << 20)

static void pack_gemm(struct weft_plan *plan, struct weft_step *step, const struct weft_bind *bind,
                      const weft_loose_f32 *data, const struct weft_constant *source)
{
    struct gemm_step s;
    fill_gemm(bind, &s);
    if (s.gemm.batch != 1 || s.walked)
        return;
    s.gemm.b_packed = true;
    weft_gemm_prepare(&s.gemm, bind->workers);
    const size_t bytes = weft_gemm_pack_bytes(&s.gemm);
    if (bytes == 0)
        return;
    step->pack = weft_plan_add_pack(plan, bytes);
    step->pack_form = s.gemm.pack_form;
    const int parts = 1 + (int)(bytes / PACK_BYTES);
    const size_t piece = (size_t)(s.gemm.n * s.gemm.k) * sizeof(float) / (size_t)parts;
    for (int part = 0; part < parts; part++) {
        weft_gemm_pack_part(&s.gemm, plan->pack[step->pack].data, data, part, parts);
        if (source && source->kind == WEFT_CONST_BLOB)
            weft_blob_forget(source->blob, source->offset + (size_t)part * piece, piece);
    }
}

static void pack_conv(struct weft_plan *plan, struct weft_step *step, const struct weft_bind *bind,
                      const weft_loose_f32 *data)
{
    struct weft_conv conv;
    fill_conv(bind, &conv);
    conv.w_packed = true;
    weft_conv_prepare(&conv, bind->workers);
    const size_t bytes = weft_conv_pack_bytes(&conv);
    if (bytes == 0)
        return;
    step->pack = weft_plan_add_pack(plan, bytes);
    step->pack_form = conv.form;
    step->pack_inner = conv.gemm.pack_form;
    weft_conv_pack(&conv, plan->pack[step->pack].data, data);
}

void weft_step_pack(struct weft_plan *plan, struct weft_step *step, const struct weft_bind *bind,
                    const weft_loose_f32 *data, const struct weft_constant *source)
{
    if (step->kind == &weft_step_gemm)
        pack_gemm(plan, step, bind, data, source);
    else if (step->kind == &weft_step_conv)
        pack_conv(plan, step, bind, data);
}
