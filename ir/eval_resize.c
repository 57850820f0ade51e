/* SPDX-License-Identifier: Apache-2.0 */
/* eval_resize.c: resizing, axis by axis.
 *
 * Along an axis, result i stands at place u of the operand (`coordinates`) and is a weighted sum of elements around u
 * (`form`). All weights of an axis are tabulated by weft_resize_tabulate, which the kernels use too; then each axis
 * whose table is not the identity is contracted with it, in double. Nearest elements are copied instead, so that every
 * type keeps its bits. */
#include "ir/eval.h"
#include "ir/places.h"

#include <math.h>
#include <string.h>

#define MOST_TAPS 0x1p30 /* more than memory holds, and what an integer holds */

/* --- what the node says ----------------------------------------------------------------------------------------- */

static int word_index(const struct weft_graph *graph, weft_node node, int key, const char *const *words)
{
    const char *word = weft_attr_word(graph, node, key);
    int i = 0;
    while (words[i] && strcmp(words[i], word) != 0)
        i++;
    return i;
}

void weft_resize_read(const struct weft_graph *graph, weft_node node, int axis, int64_t in, int64_t out,
                      struct weft_resize *ret)
{
    static const char *const forms[] = {"nearest", "linear", "cubic", NULL};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
    static const char *const rounding[] = {"prefer_floor", "prefer_ceil", "floor", "ceil", NULL};
    const struct weft_attr *scale = weft_attr_find(graph, node, WEFT_ATTR_scale),
                           *region = weft_attr_find(graph, node, WEFT_ATTR_region);
    const int rank = weft_type_of(graph, weft_result(graph, node, 0))->rank;
    *ret = (struct weft_resize){
        .form = (uint8_t)word_index(graph, node, WEFT_ATTR_form, forms),
        .coordinates = (uint8_t)word_index(graph, node, WEFT_ATTR_coordinates, coordinates),
        .nearest = (uint8_t)word_index(graph, node, WEFT_ATTR_nearest, rounding),
        .antialias = weft_attr_int(graph, node, WEFT_ATTR_antialias) != 0,
        .exclude = weft_attr_int(graph, node, WEFT_ATTR_exclude) != 0,
        .cubic = weft_attr_real(graph, node, WEFT_ATTR_cubic),
        .in = in,
        .out = out,
        .scale = out == 0 ? 1 : scale ? scale->reals[axis] : in ? (double)out / (double)in : 1,
        .start = region ? region->reals[axis] : 0,
        .end = region ? region->reals[rank + axis] : 1,
    };
    const double s = ret->antialias && ret->scale < 1 ? ret->scale : 1;
    ret->taps = ret->form == WEFT_RESIZE_NEAREST ? 1
                : ret->form == WEFT_RESIZE_LINEAR ? 2 * (int64_t)fmin(ceil(1 / s), MOST_TAPS)
                                                  : 2 * (int64_t)fmin(ceil(2 / s), MOST_TAPS);
}

/* --- places and weights ----------------------------------------------------------------------------------------- */

/* Where result i of an axis stands among the operand's elements. */
static double place_of(const struct weft_resize *r, int64_t i)
{
    const double x = (double)i, in = (double)r->in, out = r->scale * in; /* before it was rounded */
    switch ((enum weft_resize_coordinates)r->coordinates) {
    case WEFT_RESIZE_HALF_PIXEL_SYMMETRIC: {
        const double centre = in / 2, adjustment = (double)r->out / out;
        return centre * (1 - adjustment) + (x + 0.5) / r->scale - 0.5;
    }
    case WEFT_RESIZE_PYTORCH_HALF_PIXEL: return r->out > 1 ? (x + 0.5) / r->scale - 0.5 : 0;
    case WEFT_RESIZE_ALIGN_CORNERS: return out != 1 ? x * (in - 1) / (out - 1) : 0;
    case WEFT_RESIZE_ASYMMETRIC: return x / r->scale;
    case WEFT_RESIZE_TF_HALF_PIXEL: return (x + 0.5) / r->scale;
    case WEFT_RESIZE_CROP:
        return out != 1 ? r->start * (in - 1) + x * (r->end - r->start) * (in - 1) / (out - 1)
                       : 0.5 * (r->start + r->end) * (in - 1);
    default: return (x + 0.5) / r->scale - 0.5;
    }
}

static double nearest_to(int how, double u)
{
    switch ((enum weft_resize_nearest)how) {
    case WEFT_RESIZE_PREFER_FLOOR: return ceil(u - 0.5);
    case WEFT_RESIZE_PREFER_CEIL: return floor(u + 0.5);
    case WEFT_RESIZE_FLOOR: return floor(u);
    default: return ceil(u);
    }
}

/* The weight of an element at a distance, which antialiasing has already shrunk. */
static double weight_of(const struct weft_resize *r, double distance)
{
    const double d = fabs(distance), a = r->cubic;
    if (r->form == WEFT_RESIZE_LINEAR)
        return d < 1 ? 1 - d : 0;
    if (d <= 1) /* in factors: it is 0 at distance 1 whatever a is, so that elements in their places stay as they are */
        return (1 - d) * (1 + d - (a + 2) * d * d);
    return d < 2 ? a * (d - 1) * (2 - d) * (2 - d) : 0;
}

static int64_t clamped(double i, int64_t extent)
{
    return !(i > 0) ? 0 : i >= (double)extent ? extent - 1 : (int64_t)i;
}

/* Weights may sum to something else than 1 where elements are left out or spaced by a scale; then they are divided. */
static void normalise(double *weight, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += weight[k];
    for (int64_t k = 0; k < n && sum != 0; k++)
        weight[k] /= sum;
}

bool weft_resize_tabulate(const struct weft_resize *r, int64_t i, int64_t *index, double *weight)
{
    const double u = place_of(r, i);
    if (r->form == WEFT_RESIZE_NEAREST) {
        index[0] = clamped(nearest_to(r->nearest, u), r->in);
        weight[0] = 1;
    } else {
        const double shrink = r->antialias && r->scale < 1 ? r->scale : 1;
        const double first = ceil(u) - (double)(r->taps / 2);
        for (int64_t k = 0; k < r->taps; k++) {
            const double at = first + (double)k;
            const bool outside = at < 0 || at > (double)(r->in - 1);
            index[k] = clamped(at, r->in);
            weight[k] = r->exclude && outside ? 0 : weight_of(r, (at - u) * shrink);
        }
        if (r->exclude || shrink < 1)
            normalise(weight, r->taps);
    }
    return r->coordinates != WEFT_RESIZE_CROP || (u >= 0 && u <= (double)(r->in - 1));
}

/* --- tables of all axes ----------------------------------------------------------------------------------------- */

struct axis_table {
    struct weft_resize r;
    int64_t *index;
    double *weight;
    bool *inside;
    bool identity;
};

static void drop_tables(struct weft_eval *eval, struct axis_table *table, int rank)
{
    for (int axis = 0; axis < rank; axis++) {
        const int64_t n = table[axis].r.out * table[axis].r.taps;
        weft_eval_drop(eval, table[axis].index, n, sizeof(int64_t));
        weft_eval_drop(eval, table[axis].weight, n, sizeof(double));
        weft_eval_drop(eval, table[axis].inside, table[axis].r.out, sizeof(bool));
    }
}

static bool make_tables(struct weft_eval *eval, struct axis_table *table)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    for (int axis = 0; axis < out->rank; axis++) {
        struct axis_table *t = &table[axis];
        weft_resize_read(eval->graph, eval->node, axis, in->extent[axis], out->extent[axis], &t->r);
        t->index = weft_eval_scratch(eval, t->r.out * t->r.taps, sizeof *t->index);
        t->weight = weft_eval_scratch(eval, t->r.out * t->r.taps, sizeof *t->weight);
        t->inside = weft_eval_scratch(eval, t->r.out, sizeof *t->inside);
        if (!t->index || !t->weight || !t->inside)
            return false;
        t->identity = t->r.in == t->r.out;
        for (int64_t i = 0; i < t->r.out; i++) {
            int64_t *index = t->index + i * t->r.taps;
            double *weight = t->weight + i * t->r.taps;
            t->inside[i] = weft_resize_tabulate(&t->r, i, index, weight);
            for (int64_t k = 0; k < t->r.taps; k++)
                t->identity &= weight[k] == 0 || (weight[k] == 1 && index[k] == i);
        }
    }
    return true;
}

/* --- results ---------------------------------------------------------------------------------------------------- */

static bool is_inside(const struct axis_table *table, const struct weft_walk *walk, int64_t i)
{
    bool inside = table[walk->outer].inside[i];
    for (int axis = 0; axis < walk->outer; axis++)
        inside &= table[axis].inside[walk->index[axis]];
    return inside;
}

static void store_fill(struct weft_eval *eval, int64_t place)
{
    const double fill = weft_attr_real(eval->graph, eval->node, WEFT_ATTR_fill);
    const struct weft_tensor *out = &eval->out[0];
    const union weft_number x =
        weft_dtype_is_float(out->dtype) ? (union weft_number){.real = fill}
                                        : (union weft_number){.integer = (int64_t)fill};
    weft_eval_store(out, place, 0, 1, &x);
}

static void copy_nearest(struct weft_eval *eval, const struct axis_table *table)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &out); !walk.done; weft_walk_next(&walk)) {
        int64_t base = 0;
        for (int axis = 0; axis < walk.outer; axis++)
            base += table[axis].index[walk.index[axis]] * in->stride[axis];
        for (int64_t i = 0; i < walk.run; i++) {
            const int64_t to = walk.place[0] + i * walk.step[0];
            if (is_inside(table, &walk, i))
                weft_tensor_copy_run(out, to, 0, in, base + table[walk.outer].index[i] * in->stride[walk.outer], 0, 1);
            else
                store_fill(eval, to);
        }
    }
}

/* [outer, in, inner] to [outer, out, inner]. Elements of weight 0 are not read: an infinity does not become a NaN. */
static double *contract(struct weft_eval *eval, const struct axis_table *t, const double *from, int64_t outer,
                        int64_t inner)
{
    double *to = weft_eval_scratch(eval, outer * t->r.out * inner, sizeof *to);
    for (int64_t o = 0; to && o < outer; o++)
        for (int64_t i = 0; i < t->r.out; i++)
            for (int64_t j = 0; j < inner; j++) {
                double sum = 0;
                for (int64_t k = i * t->r.taps; k < (i + 1) * t->r.taps; k++)
                    if (t->weight[k] != 0)
                        sum += t->weight[k] * from[(o * t->r.in + t->index[k]) * inner + j];
                to[(o * t->r.out + i) * inner + j] = sum;
            }
    return to;
}

static void store_results(struct weft_eval *eval, const struct axis_table *table, const double *at)
{
    const struct weft_tensor *out = &eval->out[0];
    const bool real = weft_dtype_is_float(out->dtype);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &out); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++, at++) {
            const int64_t to = walk.place[0] + i * walk.step[0];
            if (!is_inside(table, &walk, i))
                store_fill(eval, to);
            else if (real)
                weft_eval_store(out, to, 0, 1, &(union weft_number){.real = *at});
            else
                weft_store_real(out->dtype, out->data, to, *at);
        }
}

static void interpolate(struct weft_eval *eval, const struct axis_table *table)
{
    const struct weft_tensor *in = &eval->in[0];
    int64_t count = weft_tensor_count(in), outer = 1, inner = count;
    double *at = weft_eval_scratch(eval, count, sizeof *at);
    union weft_number *numbers = at ? weft_eval_numbers(eval, in) : NULL;
    for (int64_t i = 0; numbers && i < count; i++)
        at[i] = weft_dtype_is_float(in->dtype) ? numbers[i].real
                : in->dtype == WEFT_U64        ? (double)numbers[i].bits
                                               : (double)numbers[i].integer;
    if (numbers)
        weft_eval_drop_numbers(eval, numbers, count);
    for (int axis = 0; numbers && at && axis < in->rank; axis++) {
        inner /= in->extent[axis];
        if (!table[axis].identity) {
            double *next = contract(eval, &table[axis], at, outer, inner);
            weft_eval_drop(eval, at, count, sizeof *at);
            at = next;
            count = count / in->extent[axis] * table[axis].r.out;
        }
        outer *= table[axis].r.out;
    }
    if (numbers && at)
        store_results(eval, table, at);
    weft_eval_drop(eval, at, count, sizeof *at);
}

void weft_eval_resize(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    if (weft_tensor_count(out) == 0)
        return;
    if (weft_tensor_count(in) == 0) { /* only where sizes were not known to inference */
        memset(out->data, 0, weft_tensor_bytes(out));
        return;
    }
    if (out->rank == 0) {
        weft_tensor_copy(out, 0, in, 0);
        return;
    }
    struct axis_table table[WEFT_MAX_RANK] = {{.index = NULL}};
    if (make_tables(eval, table)) {
        if (table[0].r.form == WEFT_RESIZE_NEAREST)
            copy_nearest(eval, table);
        else
            interpolate(eval, table);
    }
    drop_tables(eval, table, out->rank);
}
