/* SPDX-License-Identifier: Apache-2.0 */
/* weigh.c: weighted sums along any number of axes, of any type: the resizes that the family resize/ leaves out.
 *
 * A result is a sum along the last axis of sums along the axis before, down to single elements, all in double; the
 * caller makes the tables of places and weights. Elements without weight are not read. A result whose place lies
 * outside is the fill. */
#include "kernels/plain/number.h"
#include "kernels/small.h"
#include "kernels/walk.h"

void weft_weigh_prepare(struct weft_weigh *w, int workers)
{
    int64_t elements = 1;
    for (int axis = 0; axis < w->rank; axis++)
        elements *= w->extent[axis];
    w->units = elements;
    w->parts = weft_parts_for(elements * 200, workers);
    w->parts = w->parts > elements ? (int32_t)(elements > 0 ? elements : 1) : w->parts;
}

static double element(const struct weft_weigh *w, const void *in, int64_t place)
{
    const union weft_k_number x = weft_k_at(w->dtype, in, place);
    return weft_k_is_float(w->dtype) ? x.real : w->dtype == WEFT_K_U64 ? (double)x.bits : (double)x.integer;
}

/* The sum along `axis` and those before it, for the result at `index`. */
static double sum_of(const struct weft_weigh *w, const struct weft_weigh_table *table, const void *in,
                     const int64_t *index, int axis, int64_t place)
{
    if (axis < 0)
        return element(w, in, place);
    const struct weft_weigh_table *t = &table[axis];
    const int64_t *const at = t->place + index[axis] * t->taps;
    const double *const weight = t->weight + index[axis] * t->taps;
    if (t->taps == 1 && weight[0] == 1)
        return sum_of(w, table, in, index, axis - 1, place + at[0]);
    double sum = 0;
    for (int64_t k = 0; k < t->taps; k++)
        if (weight[k] != 0)
            sum += weight[k] * sum_of(w, table, in, index, axis - 1, place + at[k]);
    return sum;
}

static union weft_k_number rounded(const struct weft_weigh *w, double x)
{
    if (weft_k_is_float(w->dtype))
        return (union weft_k_number){.real = x};
    if (w->dtype == WEFT_K_U64)
        return (union weft_k_number){.bits = weft_whole_u64(x)};
    return (union weft_k_number){.integer = weft_whole_part(x)};
}

void weft_weigh_run(const struct weft_weigh *w, void *out, const void *in, const struct weft_weigh_table *table,
                    int part, int parts)
{
    int64_t begin, end, index[WEFT_K_RANK];
    weft_share(w->units, 1, part, parts, &begin, &end);
    for (; begin < end; begin++) {
        int64_t rest = begin, to = 0, from = 0;
        bool inside = true;
        for (int axis = w->rank - 1; axis >= 0; axis--) {
            index[axis] = rest % w->extent[axis];
            rest /= w->extent[axis];
            to += index[axis] * w->out_stride[axis];
            from += table[axis].place[index[axis] * table[axis].taps];
            inside &= table[axis].inside[index[axis]];
        }
        if (!inside)
            weft_k_put(w->dtype, out, to,
                       weft_k_is_float(w->dtype) ? (union weft_k_number){.real = w->fill}
                                                 : (union weft_k_number){.integer = (int64_t)w->fill});
        else if (w->nearest)
            weft_k_move(weft_k_bytes(w->dtype), out, to, in, from);
        else
            weft_k_put(w->dtype, out, to, rounded(w, sum_of(w, table, in, index, w->rank - 1, 0)));
    }
}
