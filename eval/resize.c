/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c: resizing, axis by axis.
 *
 * Along an axis, result i stands at place u of the operand (`coordinates`) and is a weighted sum of elements around u
 * (`form`). All weights of an axis are tabulated by weft_resize_tabulate (resize_places.c), which the kernels use too;
 * then each axis whose table is not the identity is contracted with it, in double. Nearest elements are copied instead,
 * so that every type keeps its bits. */
#include "eval/rule.h"
#include "ir/places.h"

#include <string.h>

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
