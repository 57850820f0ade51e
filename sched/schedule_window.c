/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_window.c: pools and their gradient, resizes and grid_sample. The gradient apart, their kernels know two
 * orders: row-major and channels-last. The kernel itself decides by more than is looked at here, when sizes are known;
 * what matters for layouts is which order is faster, and by how much beside a conversion.
 *
 *   %p = max_pool %y      taps of p · rate, by whether its rows fill a vector
 *   %r = resize %y        results · rate, and what each run of them takes besides */
#include "sched/format.h"
#include "sched/select.h"

#include <string.h>

enum { MIXED_WINDOW = 2 }; /* a window that reads in one order and writes in another, beside row-major */

/* Picoseconds of a node's kernel, which writes row-major or channels-last. */
typedef int64_t kernel_ps_fn(const struct weft_formats *f, weft_node n, bool last);

static int64_t write_window(const struct weft_formats *f, weft_node n, uint32_t layout, bool last, kernel_ps_fn *ps)
{
    const int64_t row_major = ps(f, n, /* last= */ false);
    if (layout == 0)
        return row_major;
    return last ? weft_format_doubted_ps(row_major, ps(f, n, /* last= */ true))
                : row_major + weft_format_convert_ps(f, weft_result(f->graph, n, 0), 0, layout);
}

/* Loops for neighbours on one side only: several times the time of either order. */
static int64_t read_window(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result,
                           kernel_ps_fn *ps)
{
    return weft_format_agreement_of(f->graph, operand, layout, result) == WEFT_SAME_ORDER
               ? 0 : MIXED_WINDOW * ps(f, operand.node, /* last= */ false);
}

static int64_t extent_at(const struct weft_graph *g, weft_val v, int axis)
{
    const int64_t extent = weft_dim_hint(g->dims, weft_type_of(g, v)->extent[axis]);
    return extent > 0 ? extent : 0;
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

static bool choose_pool(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    if (!weft_step_is_f32(s->graph, step->node))
        return weft_schedule_refuse(step, "its kernels read, add up and give f32 only");
    step->kind = kind;
    return true;
}

static int64_t pool_ps(const struct weft_formats *f, weft_node n, bool last)
{
    const struct weft_graph *g = f->graph;
    const struct weft_type *type = weft_type_of(g, weft_result(g, n, 0));
    int64_t extent[WEFT_MAX_RANK], kernel[WEFT_MAX_RANK];
    enum weft_price price;
    for (int i = 0; i < type->rank; i++) {
        extent[i] = extent_at(g, weft_result(g, n, 0), i);
        kernel[i] = i < 2 ? 1 : weft_dim_hint(g->dims, weft_attr_at(g, n, WEFT_ATTR_kernel, (unsigned)(i - 2)));
    }
    const double taps = weft_step_pool_taps(type->rank, extent, kernel + 2, last, f->target->cpu, &price);
    const bool places = weft_opcode_of(g, n) == WEFT_OP_max_pool_index;
    return weft_format_rate_ps(f, places ? WEFT_STEP_TAP_WITH_PLACE * taps : taps, price);
}

/* The one kernel that blocks go through. */
static int64_t write_pool(const struct weft_formats *f, weft_node n, uint32_t layout)
{
    return write_window(f, n, layout, weft_format_has_channels_inside(f, weft_result(f->graph, n, 0), layout), pool_ps);
}

static int64_t read_pool(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    return read_window(f, operand, layout, result, pool_ps);
}

static bool choose_pool_grad(const struct weft_scheduling *s, struct weft_step *step,
                             const struct weft_step_kind *kind)
{
    const int places = weft_type_of(s->graph, weft_operand(s->graph, step->node, 1))->dtype;
    if (weft_type_of(s->graph, weft_operand(s->graph, step->node, 0))->dtype != WEFT_F32)
        return weft_schedule_refuse(step, "its kernel adds f32 only");
    if (places != WEFT_I64 && places != WEFT_I32)
        return weft_schedule_refuse(step, "its kernel reads places of i64 and i32 only");
    step->kind = kind;
    return true;
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
static const struct weft_step_kind *kind_of_resize(const struct weft_graph *g, weft_node n)
{
    const struct weft_type *type = weft_type_of(g, weft_result(g, n, 0));
    const bool crops = strcmp(weft_attr_word(g, n, WEFT_ATTR_coordinates), "tf_crop_and_resize") == 0;
    const bool nearest = strcmp(weft_attr_word(g, n, WEFT_ATTR_form), "nearest") == 0;
    const int axes = resized_axes(g, n);
    const bool blends = type->dtype == WEFT_F32 && (axes == 1 || axes == 2);
    if (type->rank == 0)
        return &weft_step_copy;
    return crops || (!nearest && !blends) ? &weft_step_weigh : nearest ? &weft_step_table : &weft_step_blend;
}

static bool choose_resize(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    return weft_schedule_copy(s, step, kind_of_resize(s->graph, step->node));
}

/* What a run of neighbours takes besides them, in elements: a row of a row-major result, a pixel of one that is
 * channels-last. `usual` is how long runs are where the price is measured. */
enum { REPEATED_ROW = 256, REPEATED_PIXEL = 8 };

static double repeat_waste(int64_t run, double usual, double more)
{
    return (1 + more / (double)(run > 0 ? run : 1)) / (1 + more / usual);
}

static double row_waste(const struct weft_graph *g, weft_val result)
{
    return repeat_waste(extent_at(g, result, weft_type_of(g, result)->rank - 1), WEFT_REPEAT_COLUMNS, REPEATED_ROW);
}

static double pixel_waste(const struct weft_graph *g, weft_val result)
{
    return repeat_waste(extent_at(g, result, 1), WEFT_REPEAT_CHANNELS, REPEATED_PIXEL);
}

static int64_t resize_ps(const struct weft_formats *f, weft_node n, bool last)
{
    const struct weft_graph *g = f->graph;
    const weft_val result = weft_result(g, n, 0);
    const bool repeats = kind_of_resize(g, n) == &weft_step_table;
    const double waste = !repeats ? 1 : last ? pixel_waste(g, result) : row_waste(g, result);
    const enum weft_price first = repeats ? WEFT_PRICE_repeat_first : WEFT_PRICE_blend_first;
    return weft_format_rate_ps(f, (double)weft_format_elements(g, result) * waste, first + last);
}

static int64_t write_resize(const struct weft_formats *f, weft_node n, uint32_t layout)
{
    return write_window(f, n, layout, weft_format_is_last(f, weft_result(f->graph, n, 0), layout), resize_ps);
}

static int64_t read_resize(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    return read_window(f, operand, layout, result, resize_ps);
}

/* --- images at the points of a grid ------------------------------------------------------------------------------- */

static bool choose_sample(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    const struct weft_graph *g = s->graph;
    const struct weft_type *image = weft_type_of(g, weft_operand(g, step->node, 0));
    if (image->dtype != WEFT_F32 || weft_type_of(g, weft_operand(g, step->node, 1))->dtype != WEFT_F32)
        return weft_schedule_refuse(step, "its kernel reads images and grids of f32 only");
    if (image->rank != 4)
        return weft_schedule_refuse(step, "its kernel reads images of two axes only");
    if (strcmp(weft_attr_word(g, step->node, WEFT_ATTR_form), "cubic") == 0)
        return weft_schedule_refuse(step, "its kernel has no cubic weights");
    step->kind = kind;
    return true;
}

static int64_t sample_ps(const struct weft_formats *f, weft_node n, bool last)
{
    const weft_val result = weft_result(f->graph, n, 0);
    const double elements = (double)weft_format_elements(f->graph, result);
    return weft_format_rate_ps(f, weft_step_sampled(elements, extent_at(f->graph, result, 1), last),
                               WEFT_PRICE_sample_first + (enum weft_price)last);
}

static int64_t write_sample(const struct weft_formats *f, weft_node n, uint32_t layout)
{
    return write_window(f, n, layout, weft_format_is_last(f, weft_result(f->graph, n, 0), layout), sample_ps);
}

static int64_t read_sample(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    return read_window(f, operand, layout, result, sample_ps);
}

const struct weft_scheduler weft_scheduler_pool = {
    .name = "pool", .choose = choose_pool, .write_ps = write_pool, .read_ps = read_pool};
const struct weft_scheduler weft_scheduler_pool_grad = {.name = "pool_grad", .choose = choose_pool_grad};
const struct weft_scheduler weft_scheduler_resize = {
    .name = "resize", .choose = choose_resize, .write_ps = write_resize, .read_ps = read_resize};
const struct weft_scheduler weft_scheduler_sample = {
    .name = "sample", .choose = choose_sample, .write_ps = write_sample, .read_ps = read_sample};
