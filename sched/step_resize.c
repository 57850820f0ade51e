/* SPDX-License-Identifier: Apache-2.0 */
/* step_resize.c: weighted sums along two axes, by a table each. Tables cost little beside what is moved with them, so
 * each part makes its own, in scratch memory, and a plan keeps none. */
#include "ir/places.h"
#include "sched/step.h"

struct blend_step {
    struct weft_blend blend;
    int32_t row, column;      /* logical axes, or -1 */
    int64_t row_in;           /* strides in the operand */
    struct weft_resize row_axis, column_axis;
    size_t row_offset, column_offset, buffer_offset; /* of tables and the blended row in scratch memory */
    bool empty;               /* no elements to weigh: left to the reference evaluator */
};

static size_t table_bytes(const struct weft_resize *axis)
{
    const size_t taps = (size_t)axis->taps, n = (size_t)axis->out;
    return (n * (taps * 12 + 4) + 63) / 64 * 64 + taps * 16; /* and one result's indices and weights as they come */
}

/* The last axis before `before` that does not stay as it is, or -1. A factor may leave the extent alone and yet move
 * the elements; coordinates that move them without one have another kernel. */
static int axis_to_resize(const struct weft_bind *bind, int before)
{
    const struct weft_attr *scale = weft_attr_find(bind->graph, bind->step->node, WEFT_ATTR_scale);
    for (int axis = before - 1; axis >= 0; axis--)
        if (bind->in[0].extent[axis] != bind->out.extent[axis] || (scale && scale->reals[axis] != 1))
            return axis;
    return -1;
}

/* What remains: an axis of neighbours, and axes that are walked over. */
static void set_others(struct weft_bind *bind, struct blend_step *s)
{
    struct weft_blend *b = &s->blend;
    const struct weft_tensor *in = &bind->in[0], *out = &bind->out;
    for (int axis = 0; axis < out->rank; axis++) {
        if (axis == s->row || axis == s->column)
            continue;
        if (b->inner == 1 && out->extent[axis] > 1 && in->stride[axis] == 1 && out->stride[axis] == 1) {
            b->inner = out->extent[axis];
            continue;
        }
        b->extent[b->outer] = out->extent[axis];
        b->out_stride[b->outer] = out->stride[axis];
        b->in_stride[b->outer++] = in->stride[axis];
    }
}

static void bind_blend(struct weft_bind *bind, void *descriptor)
{
    struct blend_step *s = descriptor;
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *in = &bind->in[0], *out = &bind->out;
    *s = (struct blend_step){.blend = {.cpu = weft_bind_cpu(bind), .rows = 1, .columns = 1, .in_columns = 1,
                                       .inner = 1}};
    s->column = axis_to_resize(bind, out->rank);
    s->row = axis_to_resize(bind, s->column);
    if (s->column < 0) /* sizes that only now turn out to be the same: a copy, along whatever axis */
        s->column = out->rank - 1;
    for (int axis = 0; axis < in->rank; axis++)
        s->empty |= in->extent[axis] == 0;
    if (s->empty)
        return;
    weft_resize_read(g, n, s->column, in->extent[s->column], out->extent[s->column], &s->column_axis);
    s->blend.columns = out->extent[s->column];
    s->blend.in_columns = in->extent[s->column];
    s->blend.column_out = out->stride[s->column];
    s->blend.column_in = in->stride[s->column];
    s->row_axis = (struct weft_resize){.in = 1, .out = 1, .taps = 1};
    if (s->row >= 0) {
        weft_resize_read(g, n, s->row, in->extent[s->row], out->extent[s->row], &s->row_axis);
        s->blend.rows = out->extent[s->row];
        s->blend.row_out = out->stride[s->row];
        s->row_in = in->stride[s->row];
    }
    set_others(bind, s);
    weft_blend_prepare(&s->blend, bind->workers);
    s->column_offset = table_bytes(&s->row_axis);
    s->buffer_offset = s->column_offset + table_bytes(&s->column_axis);
    bind->scratch = s->buffer_offset + s->blend.scratch;
    bind->parts = s->blend.parts;
}

/* The table of one axis in `memory`; `step` is the distance of its elements. Taps without weight are left out, but for
 * one where no tap has any. */
static struct weft_blend_table make_table(const struct weft_resize *axis, int64_t step, char *memory)
{
    const int64_t n = axis->out, taps = axis->taps;
    double *const sums = (double *)(void *)memory;
    int64_t *const index = (int64_t *)(void *)(sums + taps), *const place = index + taps;
    float *const weight = (float *)(void *)(place + n * taps);
    int32_t *const count = (int32_t *)(void *)(weight + n * taps);
    for (int64_t i = 0; i < n; i++) {
        int64_t used = 0;
        weft_resize_tabulate(axis, i, index, sums);
        for (int64_t k = 0; k < taps; k++) {
            if ((float)sums[k] == 0 && !(used == 0 && k == taps - 1))
                continue;
            place[i * taps + used] = index[k] * step;
            weight[i * taps + used++] = (float)sums[k];
        }
        count[i] = (int32_t)used;
    }
    return (struct weft_blend_table){.taps = taps, .count = count, .place = place, .weight = weight};
}

static void run_blend(const void *descriptor, struct weft_call *call)
{
    const struct blend_step *s = descriptor;
    if (s->empty) {
        weft_step_reference.run(NULL, call);
        return;
    }
    static const int32_t one = 1;
    static const int64_t nowhere = 0;
    static const float whole = 1;
    char *const scratch = call->scratch;
    const struct weft_blend_table columns = make_table(&s->column_axis, s->blend.inner, scratch + s->column_offset);
    const struct weft_blend_table rows =
        s->row >= 0 ? make_table(&s->row_axis, s->row_in, scratch)
                    : (struct weft_blend_table){.taps = 1, .count = &one, .place = &nowhere, .weight = &whole};
    weft_blend_run(&s->blend, call->out, call->in[0], &rows, &columns, scratch + s->buffer_offset, call->part,
                   call->parts);
}

static uint32_t cpu_blend(const void *descriptor)
{
    return weft_blend_cpu(&((const struct blend_step *)descriptor)->blend);
}

static const char *name_blend(const void *descriptor, const struct weft_step *step)
{
    return weft_blend_name(&((const struct blend_step *)descriptor)->blend);
}

const struct weft_step_kind weft_step_blend = {
    .name = "resize", .arithmetic = WEFT_ARITHMETIC_SUMS, .traits = WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct blend_step), .bind = bind_blend,
    .run = run_blend, .kernel = name_blend, .cpu = cpu_blend};
