/* SPDX-License-Identifier: Apache-2.0 */
/* step_copy.c: steps that move elements: views that must be copied, relayouts, results computed elsewhere, the operands
 * of a concat into their places, a padding around what it pads. All are one strided copy; they differ in how operand
 * and result are seen. */
#include "kernels/relayout/reshape.h"
#include "sched/step.h"

/* Elements smaller than a byte have no places of their own; such values are dense and copied whole. */
static void fill_bytes(struct weft_bind *bind, struct weft_copy *copy)
{
    int64_t elements = 1;
    for (int i = 0; i < bind->out.rank; i++)
        elements *= bind->out.extent[i];
    *copy = (struct weft_copy){.bytes = 1,
                               .rank = 1,
                               .cpu = weft_bind_cpu(bind),
                               .cache = bind->target->l3,
                               .extent = {weft_dtype_bytes(bind->out.dtype, elements)},
                               .out_stride = {1},
                               .in_stride = {1}};
    weft_copy_prepare(copy, bind->workers);
    bind->parts = copy->parts;
}

static void fill_copy(struct weft_bind *bind, struct weft_copy *copy, int rank, const int64_t *extent,
                      const int64_t *out_stride, const int64_t *in_stride)
{
    if (weft_dtype_bits(bind->out.dtype) < 8) {
        fill_bytes(bind, copy);
        return;
    }
    *copy = (struct weft_copy){.bytes = (int32_t)weft_dtype_bits(bind->out.dtype) / 8, .rank = rank,
                               .cpu = weft_bind_cpu(bind), .cache = bind->target->l3};
    for (int i = 0; i < rank; i++) {
        copy->extent[i] = extent[i];
        copy->out_stride[i] = out_stride[i];
        copy->in_stride[i] = in_stride[i];
    }
    weft_copy_prepare(copy, bind->workers);
    bind->parts = copy->parts;
}

static bool is_flipped(const struct weft_graph *g, weft_node n, int axis)
{
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    for (unsigned i = 0; i < axes->count; i++)
        if (weft_dim_is(axes->integers[i], axis))
            return true;
    return false;
}

/* The operand's strides along the axes of the result. */
static void view_strides(struct weft_bind *bind, int64_t *stride)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *in = &bind->in[0];
    const int opcode = n.id ? weft_opcode_of(g, n) : WEFT_OP_NONE;
    for (int i = 0; i < bind->out.rank; i++)
        stride[i] = opcode == WEFT_OP_bcast ? 0 : in->stride[i];
    for (int i = 0; i < in->rank; i++) {
        const unsigned axis = (unsigned)i;
        if (opcode == WEFT_OP_transpose) {
            stride[i] = in->stride[weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_perm, axis))];
        } else if (opcode == WEFT_OP_bcast) {
            const int64_t result = weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, axis));
            stride[result] = in->extent[i] == 1 ? 0 : in->stride[i];
        } else if (opcode == WEFT_OP_flip) {
            if (is_flipped(g, n, i)) {
                stride[i] = -in->stride[i];
                bind->in_offset += (in->extent[i] - 1) * in->stride[i];
            }
        } else if (opcode == WEFT_OP_slice) {
            stride[i] =
                in->stride[i] * weft_bind_attr(bind, WEFT_ATTR_step, axis);
            bind->in_offset +=
                in->stride[i] * weft_bind_attr(bind, WEFT_ATTR_start, axis);
        }
    }
}

static void bind_copy(struct weft_bind *bind, void *descriptor)
{
    int64_t stride[WEFT_MAX_RANK];
    view_strides(bind, stride);
    fill_copy(bind, descriptor, bind->out.rank, bind->out.extent, bind->out.stride, stride);
}

static void run_copy(const void *descriptor, struct weft_call *call)
{
    weft_copy_run(descriptor, call->out, call->in[0], call->part, call->parts);
}

static uint32_t cpu_copy(const void *descriptor) { return weft_copy_cpu(descriptor); }

static const char *name_copy(const void *descriptor, const struct weft_step *step)
{
    return weft_copy_name(descriptor);
}

const struct weft_step_kind weft_step_copy = {
    .name = "copy", .traits = WEFT_STEP_COPIES | WEFT_STEP_MOVES | WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct weft_copy), .bind = bind_copy, .run = run_copy, .kernel = name_copy,
    .cpu = cpu_copy};
/* The same where it is a part of the op's work: what an update leaves as it was. */
const struct weft_step_kind weft_step_keep = {
    .name = "keep", .traits = WEFT_STEP_MOVES | WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_copy),
    .bind = bind_copy, .run = run_copy, .kernel = name_copy, .cpu = cpu_copy};

/* --- reshape ------------------------------------------------------------------------------------------------------ */

/* One that is no view. */
static void bind_reshape(struct weft_bind *bind, void *descriptor)
{
    struct weft_reshape *reshape = descriptor;
    const struct weft_tensor *out = &bind->out, *in = &bind->in[0];
    *reshape = (struct weft_reshape){.bytes = (int32_t)weft_dtype_bits(out->dtype) / 8, .out_rank = out->rank,
                                     .in_rank = in->rank, .cpu = weft_bind_cpu(bind),
                                     .cache = bind->target->l3};
    for (int i = 0; i < out->rank; i++) {
        reshape->out_extent[i] = out->extent[i];
        reshape->out_stride[i] = out->stride[i];
    }
    for (int i = 0; i < in->rank; i++) {
        reshape->in_extent[i] = in->extent[i];
        reshape->in_stride[i] = in->stride[i];
    }
    weft_reshape_prepare(reshape, bind->workers);
    bind->parts = reshape->copy.parts;
}

static void run_reshape(const void *descriptor, struct weft_call *call)
{
    weft_reshape_run(descriptor, call->out, call->in[0], call->part, call->parts);
}

static uint32_t cpu_reshape(const void *descriptor) { return weft_reshape_cpu(descriptor); }

static const char *name_reshape(const void *descriptor, const struct weft_step *step)
{
    return weft_reshape_name(descriptor);
}

static bool reshapes_by_lines(const void *descriptor) { return !((const struct weft_reshape *)descriptor)->is_copy; }

const struct weft_step_kind weft_step_reshape = {
    .name = "reshape", .traits = WEFT_STEP_COPIES | WEFT_STEP_MOVES | WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct weft_reshape), .bind = bind_reshape, .run = run_reshape,
    .kernel = name_reshape, .cpu = cpu_reshape, .by_lines = reshapes_by_lines};

/* --- concat ------------------------------------------------------------------------------------------------------- */

static void bind_concat(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *g = bind->graph;
    const int64_t axis = weft_attr_int(g, bind->step->node, WEFT_ATTR_axis);
    bind->out_offset = weft_dim_evaluate(g->dims, bind->step->before, bind->symbols) * bind->out.stride[axis];
    fill_copy(bind, descriptor, bind->out.rank, bind->in[0].extent, bind->out.stride, bind->in[0].stride);
}

/* A step for each operand that is not in its place yet. */
static void expand_concat(const struct weft_graph *g, const struct weft_step *step, struct weft_step_sink *sink)
{
    const int64_t axis = weft_attr_int(g, step->node, WEFT_ATTR_axis);
    struct weft_step part = *step;
    part.before = weft_dim_of(0);
    for (part.part = 0; part.part < step->ins; part.part++) {
        part.in = &step->in[part.part];
        part.ins = 1;
        if (!sink->inside || !sink->inside[part.part])
            sink->add(sink->user, part);
        part.before = weft_dim_add(g->dims, part.before, weft_type_of(g, *part.in)->extent[axis]);
    }
}

const struct weft_step_kind weft_step_concat = {
    .name = "concat", .traits = WEFT_STEP_MOVES | WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_copy),
    .bind = bind_concat, .run = run_copy, .kernel = name_copy, .cpu = cpu_copy, .expand = expand_concat};

/* --- pad ---------------------------------------------------------------------------------------------------------- */

/* The whole result with one element. */
static void bind_fill(struct weft_bind *bind, void *descriptor)
{
    const int64_t none[WEFT_MAX_RANK] = {0};
    fill_copy(bind, descriptor, bind->out.rank, bind->out.extent, bind->out.stride, none);
}

const struct weft_step_kind weft_step_fill = {
    .name = "fill", .traits = WEFT_STEP_FILLS | WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_copy),
    .bind = bind_fill, .run = run_copy, .kernel = name_copy, .cpu = cpu_copy};

/* What is padded, to its place; negative padding crops. */
static void bind_inside(struct weft_bind *bind, void *descriptor)
{
    const int rank = bind->out.rank;
    int64_t extent[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        const int64_t before = weft_bind_attr(bind, WEFT_ATTR_pad, (unsigned)i);
        const int64_t after = weft_bind_attr(bind, WEFT_ATTR_pad, (unsigned)(rank + i));
        extent[i] = bind->in[0].extent[i] + (before < 0 ? before : 0) + (after < 0 ? after : 0);
        if (extent[i] < 0)
            extent[i] = 0;
        bind->in_offset += before < 0 ? -before * bind->in[0].stride[i] : 0;
        bind->out_offset += before > 0 ? before * bind->out.stride[i] : 0;
    }
    fill_copy(bind, descriptor, rank, extent, bind->out.stride, bind->in[0].stride);
}

const struct weft_step_kind weft_step_inside = {
    .name = "inside", .traits = WEFT_STEP_MOVES | WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_copy),
    .bind = bind_inside, .run = run_copy, .kernel = name_copy, .cpu = cpu_copy};

/* Around a body that was computed in its place: part 2 * axis fills what lies before it along the axis, 2 * axis + 1
 * what lies behind. Along the axes before that one only where the body is, so that no element is filled twice. */
static void bind_border(struct weft_bind *bind, void *descriptor)
{
    const int rank = bind->out.rank, own = (int)bind->step->part / 2;
    int64_t extent[WEFT_MAX_RANK], stride[WEFT_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++) {
        const int64_t before = weft_bind_attr(bind, WEFT_ATTR_pad, (unsigned)i);
        const int64_t after = weft_bind_attr(bind, WEFT_ATTR_pad, (unsigned)(rank + i));
        const int64_t body = bind->out.extent[i] - before - after;
        const bool behind = bind->step->part % 2 != 0;
        extent[i] = i < own ? body : i > own ? bind->out.extent[i] : behind ? after : before;
        const int64_t first = i < own ? before : i == own && behind ? before + body : 0;
        bind->out_offset += first * bind->out.stride[i];
    }
    fill_copy(bind, descriptor, rank, extent, bind->out.stride, stride);
}

const struct weft_step_kind weft_step_border = {
    .name = "border", .traits = WEFT_STEP_FILLS | WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_copy),
    .bind = bind_border, .run = run_copy, .kernel = name_copy, .cpu = cpu_copy};

/* A body that is in its place already needs its borders, those that are surely empty excepted. */
static void expand_borders(const struct weft_graph *g, const struct weft_step *step, struct weft_step_sink *sink)
{
    const unsigned rank = weft_type_of(g, step->out[0])->rank;
    struct weft_step border = *step;
    border.kind = &weft_step_border;
    border.in = &step->in[1];
    border.ins = 1;
    for (border.part = 0; border.part < 2 * rank; border.part++) {
        const unsigned at = border.part / 2 + (border.part % 2 ? rank : 0);
        if (!weft_dim_is(weft_attr_at(g, step->node, WEFT_ATTR_pad, at), 0))
            sink->add(sink->user, border);
    }
}

/* With a number: everything is filled, then the operand is copied over what lies inside. */
static void expand_pad(const struct weft_graph *g, const struct weft_step *step, struct weft_step_sink *sink)
{
    if (sink->inside) {
        expand_borders(g, step, sink);
        return;
    }
    struct weft_step one = *step;
    one.kind = &weft_step_fill;
    one.in = &step->in[1];
    one.ins = 1;
    sink->add(sink->user, one);
    one.kind = &weft_step_inside;
    one.in = step->in;
    sink->add(sink->user, one);
}

const struct weft_step_kind weft_step_pad = {.name = "pad", .traits = WEFT_STEP_STRIDED, .expand = expand_pad};
