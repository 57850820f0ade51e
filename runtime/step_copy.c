/* SPDX-License-Identifier: Apache-2.0 */
/* step_copy.c: steps that move elements: views that must be copied, relayouts, results computed elsewhere, the operands
 * of a concat into their places, a padding around what it pads. All are one strided copy; they differ in how operand
 * and result are seen. */
#include "kernels/relayout/reshape.h"
#include "runtime/runtime.h"

/* Elements smaller than a byte have no places of their own; such values are dense and copied whole. */
static void fill_bytes(struct weft_bind *bind, struct weft_copy *copy)
{
    int64_t elements = 1;
    for (int i = 0; i < bind->out.rank; i++)
        elements *= bind->out.extent[i];
    *copy = (struct weft_copy){.bytes = 1,
                               .rank = 1,
                               .cpu = bind->plan->target.cpu,
                               .cache = bind->plan->target.l3,
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
                               .cpu = bind->plan->target.cpu, .cache = bind->plan->target.l3};
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
    const struct weft_graph *g = bind->plan->graph;
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

static const char *name_copy(const void *descriptor, const struct weft_step *step)
{
    return weft_copy_name(descriptor);
}

const struct weft_step_kind weft_step_copy = {"copy", sizeof(struct weft_copy), bind_copy, run_copy, name_copy,
                                              .strided = true};
/* The same where it is a part of the op's work: what an update leaves as it was. */
const struct weft_step_kind weft_step_keep = {"keep", sizeof(struct weft_copy), bind_copy, run_copy, name_copy,
                                              .strided = true};

/* --- reshape ------------------------------------------------------------------------------------------------------ */

/* One that is no view. */
static void bind_reshape(struct weft_bind *bind, void *descriptor)
{
    struct weft_reshape *reshape = descriptor;
    const struct weft_tensor *out = &bind->out, *in = &bind->in[0];
    *reshape = (struct weft_reshape){.bytes = (int32_t)weft_dtype_bits(out->dtype) / 8, .out_rank = out->rank,
                                     .in_rank = in->rank, .cpu = bind->plan->target.cpu,
                                     .cache = bind->plan->target.l3};
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

static const char *name_reshape(const void *descriptor, const struct weft_step *step)
{
    return weft_reshape_name(descriptor);
}

const struct weft_step_kind weft_step_reshape = {"reshape", sizeof(struct weft_reshape), bind_reshape, run_reshape,
                                                 name_reshape, .strided = true};

/* --- concat ------------------------------------------------------------------------------------------------------- */

/* The operand's step comes right behind that of the operand before it, which says where it ended. */
static void bind_concat(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *g = bind->plan->graph;
    const struct weft_step *step = bind->step;
    const int64_t axis = weft_attr_int(g, step->node, WEFT_ATTR_axis);
    const bool is_first = step == bind->plan->step || step[-1].node.id != step->node.id;
    int64_t before = is_first ? 0 : bind->reached;
    for (uint32_t i = is_first ? 0 : step[-1].part + 1; i < step->part; i++) { /* those that are in place already */
        const struct weft_type *type = weft_type_of(g, weft_operand(g, step->node, i));
        before += weft_dim_evaluate(g->dims, type->extent[axis], bind->symbols);
    }
    bind->reached = before + bind->in[0].extent[axis];
    bind->out_offset = before * bind->out.stride[axis];
    fill_copy(bind, descriptor, bind->out.rank, bind->in[0].extent, bind->out.stride, bind->in[0].stride);
}

const struct weft_step_kind weft_step_concat = {"concat", sizeof(struct weft_copy), bind_concat, run_copy, name_copy,
                                                .strided = true};

/* --- pad ---------------------------------------------------------------------------------------------------------- */

/* Part 0 fills the whole result with the scalar, part 1 copies what is inside; negative padding crops. */
static void bind_pad(struct weft_bind *bind, void *descriptor)
{
    const int rank = bind->out.rank;
    int64_t extent[WEFT_MAX_RANK], stride[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        extent[i] = bind->out.extent[i];
        stride[i] = 0;
        if (bind->step->part == 0)
            continue;
        const int64_t before =
            weft_bind_attr(bind, WEFT_ATTR_pad, (unsigned)i);
        const int64_t after =
            weft_bind_attr(bind, WEFT_ATTR_pad, (unsigned)(rank + i));
        stride[i] = bind->in[0].stride[i];
        extent[i] = bind->in[0].extent[i] + (before < 0 ? before : 0) + (after < 0 ? after : 0);
        if (extent[i] < 0)
            extent[i] = 0;
        bind->in_offset += before < 0 ? -before * bind->in[0].stride[i] : 0;
        bind->out_offset += before > 0 ? before * bind->out.stride[i] : 0;
    }
    fill_copy(bind, descriptor, rank, extent, bind->out.stride, stride);
}

const struct weft_step_kind weft_step_pad = {"pad", sizeof(struct weft_copy), bind_pad, run_copy, name_copy,
                                             .strided = true};

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

const struct weft_step_kind weft_step_border = {"border", sizeof(struct weft_copy), bind_border, run_copy, name_copy,
                                                .strided = true};
