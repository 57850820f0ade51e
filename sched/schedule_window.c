/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_window.c: pools and resizes, whose kernels know two orders: row-major and channels-last. */
#include "sched/format.h"
#include "sched/select.h"

#include <string.h>

enum { MIXED_WINDOW = 2 }; /* a window that reads in one order and writes in another, beside row-major */

static int64_t write_window(const struct weft_formats *f, weft_node n, uint32_t layout, bool last)
{
    if (layout == 0 || last)
        return weft_format_kernel_ps(f, n, /* last= */ layout != 0);
    return weft_format_kernel_ps(f, n, /* last= */ false) +
           weft_format_convert_ps(f, weft_result(f->graph, n, 0), 0, layout);
}

/* Loops for neighbours on one side only: several times the time of either order. */
static int64_t read_window(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    return weft_format_agreement_of(f->graph, operand, layout, result) == WEFT_SAME_ORDER
               ? 0 : MIXED_WINDOW * weft_format_kernel_ps(f, operand.node, /* last= */ false);
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

static bool choose_pool(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    if (!weft_step_is_f32(s->graph, step->node))
        return weft_schedule_refuse(step, "its kernels read, add up and give f32 only");
    step->kind = kind;
    return true;
}

/* The one kernel that blocks go through. */
static int64_t write_pool(const struct weft_formats *f, weft_node n, uint32_t layout)
{
    return write_window(f, n, layout, weft_format_has_channels_inside(f, weft_result(f->graph, n, 0), layout));
}

/* --- resizes ------------------------------------------------------------------------------------------------------ */

/* Axes that a resize changes, as far as the graph can tell; 0 where its coordinates move elements along all of them. */
static int resized_axes(const struct weft_graph *g, weft_node n)
{
    const struct weft_type *in = weft_type_of(g, weft_operand(g, n, 0)), *out = weft_type_of(g, weft_result(g, n, 0));
    const struct weft_attr *scale = weft_attr_find(g, n, WEFT_ATTR_scale);
    int count = 0;
    if (strncmp(weft_attr_word(g, n, WEFT_ATTR_coordinates), "tf_", 3) == 0)
        return 0;
    for (int axis = 0; axis < in->rank; axis++)
        count += !weft_dim_same(in->extent[axis], out->extent[axis]) || (scale && scale->reals[axis] != 1);
    return count;
}

/* Nearest elements are read through a table, f32 is weighed along one axis or two; all else has a plain kernel. */
static bool choose_resize(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    const struct weft_graph *g = s->graph;
    const weft_node n = step->node;
    const bool crops = strcmp(weft_attr_word(g, n, WEFT_ATTR_coordinates), "tf_crop_and_resize") == 0;
    const bool nearest = strcmp(weft_attr_word(g, n, WEFT_ATTR_form), "nearest") == 0;
    const int axes = resized_axes(g, n);
    const bool blends = weft_type_of(g, step->out[0])->dtype == WEFT_F32 && (axes == 1 || axes == 2);
    if (weft_type_of(g, step->out[0])->rank == 0)
        return weft_schedule_copy(s, step, &weft_step_copy);
    return weft_schedule_copy(s, step, crops || (!nearest && !blends) ? &weft_step_weigh
                                       : nearest                      ? &weft_step_table : kind);
}

static int64_t write_resize(const struct weft_formats *f, weft_node n, uint32_t layout)
{
    return write_window(f, n, layout, weft_format_is_last(f, weft_result(f->graph, n, 0), layout));
}

const struct weft_scheduler weft_scheduler_pool = {
    .name = "pool", .choose = choose_pool, .write_ps = write_pool, .read_ps = read_window};
const struct weft_scheduler weft_scheduler_resize = {
    .name = "resize", .choose = choose_resize, .write_ps = write_resize, .read_ps = read_window};
