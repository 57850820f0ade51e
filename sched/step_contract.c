/* SPDX-License-Identifier: Apache-2.0 */
/* step_contract.c: matrix products and convolutions. Constant weights are packed once, when the plan is made; beside a
 * pack is its packing, which is all that the kernels' prepare says about the order in which loops read one. Where other
 * sizes lead to loops that want another packing, the weights are read as they are. What a descriptor is filled from and
 * which of that may differ from size to size stand side by side here. */
#include "sched/step.h"

/* Does the pack of a step serve loops that want this packing? If not, the weights are there as they are. */
static bool serves(const struct weft_bind *bind, const struct weft_packing *wanted)
{
    const bool same = wanted->order == WEFT_PACK_NONE || weft_packing_same(bind->packed, wanted);
    weft_assert(same || bind->step->plain);
    return same;
}

/* --- gemm --------------------------------------------------------------------------------------------------------- */

/* Leading axes, from the innermost: where the second operand is repeated along one (grouped-query attention, weights
 * that are broadcast), the rows of its products are rows of one product, if rows and products are equally far apart.
 * Axes that merge for all three are the batch of one call. Those outside of them are walked by hand, one call after the
 * other. */
struct gemm_step {
    struct weft_gemm gemm;
    bool folded;     /* the rows are those of several products */
    int32_t walked;  /* leading axes, outermost first */
    int64_t extent[WEFT_MAX_RANK], out[WEFT_MAX_RANK], a[WEFT_MAX_RANK], b[WEFT_MAX_RANK];
};

/* One axis behind the other: `outer` elements apart, `count` times `inner`. */
static bool follows(int64_t outer, int64_t count, int64_t inner) { return count == 1 || outer == count * inner; }

static bool fold_rows(struct weft_gemm *g, int64_t extent, int64_t out, int64_t a, int64_t b)
{
    if (b != 0 || g->batch != 1 || !follows(out, g->m, g->c_row) || !follows(a, g->m, g->a_row))
        return false;
    if (g->m == 1) {
        g->c_row = out;
        g->a_row = a;
    }
    g->m *= extent;
    return true;
}

static bool add_batch(struct weft_gemm *g, int64_t extent, int64_t out, int64_t a, int64_t b)
{
    if (!follows(out, g->batch, g->c_batch) || !follows(a, g->batch, g->a_batch) || !follows(b, g->batch, g->b_batch))
        return false;
    if (g->batch == 1) {
        g->c_batch = out;
        g->a_batch = a;
        g->b_batch = b;
    }
    g->batch *= extent;
    return true;
}

static void set_batch(struct gemm_step *s, const struct weft_tensor *out, const struct weft_tensor *a,
                      const struct weft_tensor *b)
{
    struct weft_gemm *g = &s->gemm;
    int axis = out->rank - 3;
    g->batch = 1;
    for (; axis >= 0; axis--) {
        const int64_t extent = out->extent[axis];
        if (extent == 1)
            continue;
        if (fold_rows(g, extent, out->stride[axis], a->stride[axis], b->stride[axis]))
            s->folded = true;
        else if (!add_batch(g, extent, out->stride[axis], a->stride[axis], b->stride[axis]))
            break;
    }
    s->walked = axis + 1;
    if (s->walked > 0)
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
    const struct weft_graph *graph = bind->graph;
    const weft_node n = bind->step->node;
    const bool trans_a = weft_attr_int(graph, n, WEFT_ATTR_trans_a),
               trans_b = weft_attr_int(graph, n, WEFT_ATTR_trans_b);
    const struct weft_tensor *a = &bind->in[0], *b = &bind->in[1], *c = &bind->out;
    const int row = c->rank - 2, col = c->rank - 1;
    *s = (struct gemm_step){.gemm = {
        .cpu = bind->target->cpu, .cache = bind->target->l2,
        .m = c->extent[row], .n = c->extent[col], .k = a->extent[trans_a ? row : col],
        .a_row = a->stride[trans_a ? col : row], .a_col = a->stride[trans_a ? row : col],
        .b_row = b->stride[trans_b ? col : row], .b_col = b->stride[trans_b ? row : col],
        .c_row = c->stride[row], .c_col = c->stride[col]}};
    set_batch(s, c, a, b);
}

static bool is_single(const struct gemm_step *s) { return s->gemm.batch == 1 && !s->walked && !s->folded; }

bool weft_step_fill_gemm(const struct weft_bind *bind, struct weft_gemm *ret)
{
    struct gemm_step s;
    fill_gemm(bind, &s);
    *ret = s.gemm;
    return is_single(&s);
}

/* Is the number the same for all sizes? */
static bool is_fixed(const struct weft_bind *bind, weft_dim d)
{
    int64_t low, high;
    weft_dim_range(bind->graph->dims, d, &low, &high);
    return low == high;
}
static bool is_above_one(const struct weft_bind *bind, weft_dim d)
{
    int64_t low, high;
    weft_dim_range(bind->graph->dims, d, &low, &high);
    return low > 1;
}

/* Why other sizes may want another packing, or NULL: the packing follows from the extents and strides of B, which are
 * constant, and from whether C lies by columns and has more rows than one. */
static const char *why_gemm_differs(const struct weft_bind *bind, const struct weft_gemm *g)
{
    const weft_val out = bind->step->out[0];
    const struct weft_type *type = weft_type_of(bind->graph, out);
    const weft_dim *stride = bind->places->stride(bind->places->user, out), rows = type->extent[type->rank - 2];
    const weft_dim row = stride[type->rank - 2], column = stride[type->rank - 1];
    for (int i = 0; i < type->rank - 2; i++)
        if (!is_fixed(bind, type->extent[i]))
            return "other sizes may have several products, which read the weights as they are";
    const bool never = weft_dim_is(column, 1) || (is_fixed(bind, row) && !weft_dim_is(row, 1));
    const bool always = weft_dim_is(row, 1) && is_above_one(bind, column) && is_above_one(bind, rows);
    const bool fixed = is_fixed(bind, row) && is_fixed(bind, column) && is_fixed(bind, rows);
    return never || always || fixed || weft_gemm_packs_one_way(g)
               ? NULL
               : "other sizes may have results whose rows are not side by side";
}

static void bind_gemm(struct weft_bind *bind, void *descriptor)
{
    struct gemm_step *s = descriptor;
    fill_gemm(bind, s);
    s->gemm.b_packed = bind->packed && s->gemm.batch == 1 && !s->walked;
    weft_gemm_prepare(&s->gemm, bind->workers);
    if (s->gemm.b_packed && !serves(bind, &s->gemm.packing)) {
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
    const float *b = s->gemm.b_packed ? call->packed : call->in[1];
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

/* So much of a matrix is packed at a time: what its file takes in memory meanwhile is given back behind. */
#define PACK_BYTES ((size_t)8 << 20)

static bool plan_gemm_pack(const struct weft_bind *bind, struct weft_step_pack *ret)
{
    struct gemm_step s;
    fill_gemm(bind, &s);
    if (!is_single(&s))
        return false;
    s.gemm.b_packed = true;
    weft_gemm_prepare(&s.gemm, bind->workers);
    *ret = (struct weft_step_pack){.gemm = s.gemm, .bytes = weft_gemm_pack_bytes(&s.gemm),
                                   .plain = why_gemm_differs(bind, &s.gemm)};
    ret->packing = &ret->gemm.packing;
    return ret->bytes > 0;
}

static void write_gemm_pack(const struct weft_step_pack *how, float *to, const weft_loose_f32 *data,
                            const struct weft_constant *source)
{
    const struct weft_gemm *g = &how->gemm;
    const int parts = 1 + (int)(how->bytes / PACK_BYTES);
    const size_t piece = (size_t)(g->n * g->k) * sizeof(float) / (size_t)parts;
    for (int part = 0; part < parts; part++) {
        weft_gemm_pack_part(g, to, data, part, parts);
        if (source && source->kind == WEFT_CONST_BLOB)
            weft_blob_forget(source->blob, source->offset + (size_t)part * piece, piece);
    }
}

const struct weft_step_kind weft_step_gemm = {
    .name = "gemm", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct gemm_step), .bind = bind_gemm,
    .run = run_gemm, .kernel = name_gemm, .plan_pack = plan_gemm_pack, .write_pack = write_gemm_pack};

/* --- conv --------------------------------------------------------------------------------------------------------- */

void weft_step_fill_conv(const struct weft_bind *bind, struct weft_conv *conv)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *x = &bind->in[0], *w = &bind->in[1], *y = &bind->out;
    *conv = (struct weft_conv){.cpu = bind->target->cpu,
                               .cache = bind->target->l2,
                               .arithmetic = (enum weft_conv_arithmetic)bind->target->arithmetic,
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

/* Are extents and strides the same for all sizes, those of the images aside? */
static bool lies_one_way(const struct weft_bind *bind, weft_val v)
{
    const struct weft_type *type = weft_type_of(bind->graph, v);
    const weft_dim *const stride = bind->places->stride(bind->places->user, v);
    bool fixed = true;
    for (int i = 1; i < type->rank; i++)
        fixed = fixed && is_fixed(bind, type->extent[i]) && is_fixed(bind, stride[i]);
    return fixed;
}

/* Why other sizes may want another packing, or NULL: the packing follows from all that fill_conv reads but the images'
 * number and strides. The weights are constant. */
static const char *why_conv_differs(const struct weft_bind *bind, const struct weft_conv *conv)
{
    static const int keys[] = {WEFT_ATTR_stride, WEFT_ATTR_dilation, WEFT_ATTR_pad};
    const struct weft_graph *g = bind->graph;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (unsigned axis = 0; axis < (unsigned)conv->spatial; axis++)
            if (!is_fixed(bind, weft_attr_at(g, bind->step->node, keys[k], axis)))
                return "its attributes depend on sizes";
    if (weft_conv_packs_one_way(conv) ||
        (lies_one_way(bind, bind->step->out[0]) && lies_one_way(bind, bind->step->in[0])))
        return NULL;
    return "other sizes may be computed in another form";
}

static void bind_conv(struct weft_bind *bind, void *descriptor)
{
    struct weft_conv *conv = descriptor;
    weft_step_fill_conv(bind, conv);
    conv->w_packed = bind->packed != NULL;
    weft_conv_prepare(conv, bind->workers);
    if (conv->w_packed && !serves(bind, &conv->packing)) {
        conv->w_packed = false;
        weft_conv_prepare(conv, bind->workers);
    }
    bind->parts = conv->parts;
    bind->scratch = conv->scratch;
}

static void run_conv(const void *descriptor, struct weft_call *call)
{
    const struct weft_conv *conv = descriptor;
    const float *w = conv->w_packed ? call->packed : call->in[1];
    const struct weft_conv_data data = {.y = call->out, .x = call->in[0], .w = w, .scratch = call->scratch};
    weft_conv_run(conv, &data, call->part, call->parts);
}

static const char *name_conv(const void *descriptor, const struct weft_step *step)
{
    return weft_conv_name(descriptor);
}

static bool plan_conv_pack(const struct weft_bind *bind, struct weft_step_pack *ret)
{
    *ret = (struct weft_step_pack){.bytes = 0};
    weft_step_fill_conv(bind, &ret->conv);
    ret->conv.w_packed = true;
    weft_conv_prepare(&ret->conv, bind->workers);
    ret->bytes = weft_conv_pack_bytes(&ret->conv);
    ret->packing = &ret->conv.packing;
    ret->plain = why_conv_differs(bind, &ret->conv);
    return ret->bytes > 0;
}

static void write_conv_pack(const struct weft_step_pack *how, float *to, const weft_loose_f32 *data,
                            const struct weft_constant *source)
{
    weft_conv_pack(&how->conv, to, data);
}

const struct weft_step_kind weft_step_conv = {
    .name = "conv", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_conv), .bind = bind_conv,
    .run = run_conv, .kernel = name_conv, .plan_pack = plan_conv_pack, .write_pack = write_conv_pack};
