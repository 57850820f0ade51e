/* SPDX-License-Identifier: Apache-2.0 */
/* window.c: maxima, means and norms of windows, where the largest stand, windows put back into an image, and elements
 * put, or added, where maxima were.
 *
 * Padding never wins a maximum: a window without data gives the least value of the type. The index of a maximum is that
 * of the first of equal ones, or of the first NaN. A mean divides by the taps that fall upon data; with count_pad also
 * by those upon stated padding, but not by those that rounding up put behind it. */
#include "kernels/plain/plain.h"

#include <math.h>

/* Attributes; MORE: count_pad, order or column_major. */
enum { KERNEL, STRIDE, PAD, DILATION, CEIL, MORE, IN_PLANE };

/* Up to three spatial axes, with leading ones of extent 1. */
struct windows {
    const struct weft_array *array;
    const void *data;
    int64_t in[3], step[3], out[3], taps[3], stride[3], dilation[3], before[3], after[3];
};

static struct windows read_windows(const struct weft_plain *plain, const struct weft_plain_data *data)
{
    const struct weft_array *x = &plain->in[0], *out = &plain->out[0];
    struct windows w = {.array = x, .data = data->in[0]};
    const int spatial = x->rank - 2, missing = 3 - spatial;
    for (int i = 0; i < 3; i++) {
        const bool given = i >= missing;
        const int at = given ? i - missing : 0;
        w.in[i] = given ? x->extent[2 + at] : 1;
        w.step[i] = given ? x->stride[2 + at] : 0;
        w.out[i] = given ? out->extent[2 + at] : 1;
        w.taps[i] = given ? plain->attr[KERNEL].integer[at] : 1;
        w.stride[i] = given ? plain->attr[STRIDE].integer[at] : 1;
        w.dilation[i] = given ? plain->attr[DILATION].integer[at] : 1;
        w.before[i] = given ? plain->attr[PAD].integer[at] : 0;
        w.after[i] = given ? plain->attr[PAD].integer[spatial + at] : 0;
    }
    return w;
}

/* Taps [first, end) of window o along an axis whose place lies in [low, high). */
static void taps_within(const struct windows *w, int axis, int64_t o, int64_t low, int64_t high, int64_t *ret_first,
                        int64_t *ret_end)
{
    const int64_t start = o * w->stride[axis] - w->before[axis], d = w->dilation[axis];
    const int64_t first = start < low ? (low - start + d - 1) / d : 0;
    const int64_t end = start < high ? (high - 1 - start) / d + 1 : 0;
    *ret_end = end < w->taps[axis] ? end : w->taps[axis];
    *ret_first = first < *ret_end ? first : *ret_end;
}

/* Which taps of a window fall upon data, and the index of tap 0. */
struct reach {
    int64_t first[3], end[3], start[3];
};

static struct reach reach_of(const struct windows *w, const int64_t *o)
{
    struct reach r;
    for (int axis = 0; axis < 3; axis++) {
        taps_within(w, axis, o[axis], 0, w->in[axis], &r.first[axis], &r.end[axis]);
        r.start[axis] = o[axis] * w->stride[axis] - w->before[axis];
    }
    return r;
}

static double counted_taps(const struct windows *w, const int64_t *o, bool count_pad)
{
    int64_t count = 1;
    for (int axis = 0; axis < 3; axis++) {
        int64_t first, end;
        taps_within(w, axis, o[axis], count_pad ? -w->before[axis] : 0,
                    w->in[axis] + (count_pad ? w->after[axis] : 0), &first, &end);
        count *= end - first;
    }
    return (double)count;
}

static union weft_k_number least_of(int dtype)
{
    if (weft_k_is_float(dtype))
        return (union weft_k_number){.real = -INFINITY};
    return (union weft_k_number){
        .integer = weft_k_is_signed(dtype) ? INT64_MIN >> (64 - 8 * weft_k_bytes(dtype)) : 0};
}

/* What a window comes to: `largest`, where a sum is not wanted, with the index of its tap. */
struct folded {
    union weft_k_number largest;
    double sum;
    int64_t at[3];
};

static bool exceeds(int dtype, union weft_k_number a, union weft_k_number b)
{
    if (!weft_k_is_float(dtype))
        return weft_k_less(dtype, b, a);
    return b.real == b.real && (a.real != a.real || a.real > b.real);
}

/* `order`: of a norm; 1: a sum; 0: a maximum. */
static struct folded fold(const struct windows *w, int64_t base, const struct reach *r, double order, bool norm)
{
    const int dtype = w->array->dtype;
    struct folded f = {.largest = least_of(dtype)};
    bool any = false;
    for (int64_t z = r->first[0]; z < r->end[0]; z++)
        for (int64_t y = r->first[1]; y < r->end[1]; y++)
            for (int64_t x = r->first[2]; x < r->end[2]; x++) {
                const int64_t at[] = {r->start[0] + z * w->dilation[0], r->start[1] + y * w->dilation[1],
                                      r->start[2] + x * w->dilation[2]};
                const union weft_k_number tap =
                    weft_k_at(dtype, w->data, base + at[0] * w->step[0] + at[1] * w->step[1] + at[2] * w->step[2]);
                if (order > 0)
                    f.sum += norm ? pow(fabs(tap.real), order) : tap.real;
                else if (!any || exceeds(dtype, tap, f.largest)) {
                    f.largest = tap;
                    for (int i = 0; i < 3; i++)
                        f.at[i] = at[i];
                    any = true;
                }
            }
    return f;
}

enum form { MAX, MEAN, NORM, INDEX };

static union weft_k_number result_of(const struct weft_plain *plain, const struct windows *w, enum form form,
                                     const int64_t *o, const struct folded *f)
{
    union weft_k_number x = f->largest;
    const int64_t more = form == MEAN || form == NORM ? plain->attr[MORE].integer[0] : 0;
    if (form == MEAN)
        x.real = f->sum / counted_taps(w, o, more != 0);
    else if (form == NORM)
        x.real = pow(f->sum, 1 / (double)more);
    return x;
}

static union weft_k_number place_of(const struct weft_plain *plain, const struct windows *w, int64_t plane,
                                    const struct folded *f)
{
    const bool turned = plain->attr[MORE].integer[0] != 0;
    union weft_k_number x = {
        .integer = turned ? (f->at[2] * w->in[1] + f->at[1]) * w->in[0] + f->at[0]
                          : (f->at[0] * w->in[1] + f->at[1]) * w->in[2] + f->at[2]};
    if (!plain->attr[IN_PLANE].integer[0])
        x.integer += plane * w->in[0] * w->in[1] * w->in[2];
    return x;
}

static void pool(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end,
                 enum form form)
{
    const struct windows w = read_windows(plain, data);
    const struct weft_array *out = &plain->out[0], *places = &plain->out[1], *x = &plain->in[0];
    const int last = out->rank - 1;
    const double order = form == MEAN ? 1 : form == NORM ? (double)plain->attr[MORE].integer[0] : 0;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t index[WEFT_K_RANK], o[3] = {0, 0, 0};
        weft_array_index(out, last, unit, index);
        const int64_t row = weft_array_place(out, last, index);
        const int64_t row_of_places = form == INDEX ? weft_array_place(places, last, index) : 0;
        for (int i = 2; i < last; i++)
            o[3 - out->rank + i] = index[i]; /* the last spatial axis is o[2] */
        for (o[2] = 0; o[2] < out->extent[last]; o[2]++) {
            const struct reach r = reach_of(&w, o);
            const bool any = r.first[0] < r.end[0] && r.first[1] < r.end[1] && r.first[2] < r.end[2];
            const struct folded f =
                fold(&w, index[0] * x->stride[0] + index[1] * x->stride[1], &r, order, form == NORM);
            weft_k_put(out->dtype, data->out[0], row + o[2] * out->stride[last], result_of(plain, &w, form, o, &f));
            if (form == INDEX)
                weft_k_put(places->dtype, data->out[1], row_of_places + o[2] * places->stride[last],
                           any ? place_of(plain, &w, index[0] * x->extent[1] + index[1], &f)
                               : (union weft_k_number){.integer = 0});
        }
    }
}

void weft_plain_run_max_pool(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                             int64_t end)
{
    pool(plain, data, begin, end, MAX);
}

void weft_plain_run_mean_pool(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                              int64_t end)
{
    pool(plain, data, begin, end, MEAN);
}

void weft_plain_run_norm_pool(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                              int64_t end)
{
    pool(plain, data, begin, end, NORM);
}

void weft_plain_run_max_pool_index(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                   int64_t end)
{
    pool(plain, data, begin, end, INDEX);
}

/* --- back into an image ------------------------------------------------------------------------------------------- */

/* The place of window `at` of tap `tap` in the operand [n, c · taps, windows], behind its image and channel; false if
 * no window puts that tap upon the pixel. */
static bool window_of(const struct weft_plain *plain, const int64_t *pixel, int64_t tap, int64_t *ret)
{
    const struct weft_array *out = &plain->out[0];
    const int spatial = out->rank - 2;
    int64_t window = 0, scale = 1;
    for (int i = spatial - 1; i >= 0; i--) {
        const int64_t taps = plain->attr[KERNEL].integer[i], stride = plain->attr[STRIDE].integer[i];
        const int64_t dilation = plain->attr[DILATION].integer[i], before = plain->attr[PAD].integer[i];
        const int64_t free =
            out->extent[2 + i] + before + plain->attr[PAD].integer[spatial + i] - dilation * (taps - 1) - 1;
        const int64_t count = free < 0 ? 0 : free / stride + 1, at = pixel[i] + before - tap % taps * dilation;
        if (at < 0 || at % stride != 0 || at / stride >= count)
            return false;
        window += at / stride * scale;
        scale *= count;
        tap /= taps;
    }
    *ret = window;
    return true;
}

void weft_plain_run_col2im(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                           int64_t end)
{
    const struct weft_array *in = &plain->in[0], *out = &plain->out[0];
    const int last = out->rank - 1;
    int64_t taps = 1;
    for (int i = 0; i < last - 1; i++)
        taps *= plain->attr[KERNEL].integer[i];
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t index[WEFT_K_RANK], window;
        weft_array_index(out, last, unit, index);
        const int64_t place = weft_array_place(out, last, index);
        const int64_t from = index[0] * in->stride[0] + index[1] * taps * in->stride[1];
        for (index[last] = 0; index[last] < out->extent[last]; index[last]++) {
            union weft_k_number sum = {.bits = 0}; /* also 0.0 */
            for (int64_t tap = 0; tap < taps; tap++) {
                if (!window_of(plain, index + 2, tap, &window))
                    continue;
                const union weft_k_number x =
                    weft_k_at(in->dtype, data->in[0], from + tap * in->stride[1] + window * in->stride[2]);
                if (weft_k_is_float(in->dtype))
                    sum.real += x.real;
                else
                    sum.bits += x.bits;
            }
            weft_k_put(out->dtype, data->out[0], place + index[last] * out->stride[last], sum);
        }
    }
}

/* Units are elements of the result. Each part clears its own, then looks at all elements for those that go there. */
void weft_plain_run_unpool(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                           int64_t end)
{
    const struct weft_array *in = &plain->in[0], *where = &plain->in[1], *out = &plain->out[0];
    const int64_t bytes = weft_k_bytes(out->dtype), zero = 0, count = weft_array_elements(in);
    for (int64_t i = begin; i < end; i++)
        weft_k_move(bytes, data->out[0], weft_array_seek(out, i), &zero, 0);
    for (int64_t i = 0; i < count; i++) {
        const int64_t to = weft_k_at(where->dtype, data->in[1], weft_array_seek(where, i)).integer;
        if (to >= begin && to < end)
            weft_k_move(bytes, data->out[0], weft_array_seek(out, to), data->in[0], weft_array_seek(in, i));
    }
}

/* Numbers of a plane. */
size_t weft_plain_scratch_plane(const struct weft_plain *plain)
{
    size_t elements = 1;
    for (int axis = 2; axis < plain->out[0].rank; axis++)
        elements *= (size_t)plain->out[0].extent[axis];
    return elements * sizeof(union weft_k_number);
}

/* Units are planes, which are rounded when all has been added. */
void weft_plain_run_max_pool_grad(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                  int64_t end)
{
    const struct weft_array *in = &plain->in[0], *where = &plain->in[1], *out = &plain->out[0];
    const int64_t planes = out->extent[0] * out->extent[1], elements = weft_array_elements(out) / planes;
    const int64_t count = weft_array_elements(in) / planes;
    union weft_k_number *const sum = data->scratch;
    for (int64_t plane = begin; plane < end; plane++) {
        for (int64_t i = 0; i < elements; i++)
            sum[i].bits = 0; /* also 0.0 */
        for (int64_t i = plane * count; i < (plane + 1) * count; i++) {
            const uint64_t to = weft_k_at(where->dtype, data->in[1], weft_array_seek(where, i)).bits;
            const union weft_k_number x = weft_k_at(in->dtype, data->in[0], weft_array_seek(in, i));
            if (to >= (uint64_t)elements)
                continue;
            if (weft_k_is_float(in->dtype))
                sum[to].real += x.real;
            else
                sum[to].bits += x.bits;
        }
        for (int64_t i = 0; i < elements; i++)
            weft_k_put(out->dtype, data->out[0], weft_array_seek(out, plane * elements + i), sum[i]);
    }
}
