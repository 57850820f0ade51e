/* SPDX-License-Identifier: Apache-2.0 */
/* window.c: maxima, means and norms of windows, where the largest stand, and windows put back into an image.
 *
 * Padding never wins a maximum: a window without data gives the least value of the type. The index of a maximum is that
 * of the first of equal ones, or of the first NaN. A mean divides by the taps that fall upon data; with count_pad also
 * by those upon stated padding, but not by those that rounding up put behind it. */
#include "kernels/plain/plain.h"

#include <math.h>

enum { KERNEL, STRIDE, PAD, DILATION, CEIL, MORE }; /* attributes; MORE: count_pad, order or column_major */

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
                                     int64_t plane, const int64_t *o, const struct folded *f, bool any)
{
    union weft_k_number x = f->largest;
    const int64_t more = form == MAX ? 0 : plain->attr[MORE].integer[0];
    if (form == MEAN)
        x.real = f->sum / counted_taps(w, o, more != 0);
    else if (form == NORM)
        x.real = pow(f->sum, 1 / (double)more);
    else if (form == INDEX && any)
        x.integer = plane * w->in[0] * w->in[1] * w->in[2] +
                    (more ? (f->at[2] * w->in[1] + f->at[1]) * w->in[0] + f->at[0]
                          : (f->at[0] * w->in[1] + f->at[1]) * w->in[2] + f->at[2]);
    else if (form == INDEX)
        x.integer = 0;
    return x;
}

static void pool(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end,
                 enum form form)
{
    const struct windows w = read_windows(plain, data);
    const struct weft_array *out = &plain->out[0], *x = &plain->in[0];
    const int last = out->rank - 1;
    const double order = form == MEAN ? 1 : form == NORM ? (double)plain->attr[MORE].integer[0] : 0;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t index[WEFT_K_RANK], o[3] = {0, 0, 0};
        weft_array_index(out, last, unit, index);
        const int64_t place = weft_array_place(out, last, index);
        for (int i = 2; i < last; i++)
            o[3 - out->rank + i] = index[i]; /* the last spatial axis is o[2] */
        for (o[2] = 0; o[2] < out->extent[last]; o[2]++) {
            const struct reach r = reach_of(&w, o);
            const bool any = r.first[0] < r.end[0] && r.first[1] < r.end[1] && r.first[2] < r.end[2];
            const struct folded f =
                fold(&w, index[0] * x->stride[0] + index[1] * x->stride[1], &r, order, form == NORM);
            weft_k_put(out->dtype, data->out[0], place + o[2] * out->stride[last],
                       result_of(plain, &w, form, index[0] * x->extent[1] + index[1], o, &f, any));
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

/* --- the places of maxima of f32 ---------------------------------------------------------------------------------- */

enum { COLUMNS = 128, NONE = INT32_MIN };
typedef float v4f __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t v4i __attribute__((vector_size(16), aligned(4), may_alias));

/* Windows [first, first + count) of a row: the largest element so far, and how far its place in the plane is from that
 * of the window's first tap, or NONE. Tap for tap that is one number for all windows. */
struct found {
    int64_t first, count;
    float largest[COLUMNS];
    int32_t from_start[COLUMNS];
};

/* Four elements, each so many floats behind the one before; of two, the float behind the last is read. */
static inline v4f four(const float *from, int64_t step)
{
    if (step == 1)
        return *(const v4f *)from;
    if (step == 2)
        return __builtin_shufflevector(*(const v4f *)from, *(const v4f *)(from + 4), 0, 2, 4, 6);
    return (v4f){from[0], from[step], from[2 * step], from[3 * step]};
}

/* Which of two elements is larger, no branch could predict. */
static inline void take_four(struct found *f, int64_t i, v4f x, int32_t from_start)
{
    const v4f most = *(const v4f *)&f->largest[i];
    const v4i more = (v4i)(x > most) | ((v4i)(x != x) & (v4i)(most == most));
    *(v4f *)&f->largest[i] = (v4f)(((v4i)x & more) | ((v4i)most & ~more));
    v4i *const at = (v4i *)&f->from_start[i];
    *at = ((v4i){from_start, from_start, from_start, from_start} & more) | (*at & ~more);
}

/* The tap along a row of the image whose place is `from_start` behind that of the window's first tap. */
static void look_at_tap(const struct windows *w, const float *row, int64_t tap, int32_t from_start, struct found *f)
{
    const int64_t stride = w->stride[2], shift = tap * w->dilation[2] - w->before[2], step = stride * w->step[2];
    const int64_t low = shift < 0 ? (-shift + stride - 1) / stride : 0;
    const int64_t high = w->in[2] > shift ? (w->in[2] - 1 - shift) / stride + 1 : 0;
    const int64_t begin = low > f->first ? low - f->first : 0;
    const int64_t end = high - f->first < f->count ? high - f->first : f->count;
    const float *from = row + ((f->first + begin) * stride + shift) * w->step[2];
    int64_t i = begin;
    for (; i + 4 < end; i += 4, from += 4 * step)
        take_four(f, i, four(from, step), from_start);
    for (; i < end; i++, from += step) {
        const float x = *from, most = f->largest[i];
        if (x > most || (x != x && most == most)) {
            f->largest[i] = x;
            f->from_start[i] = from_start;
        }
    }
}

/* Where nothing exceeds −infinity, the first element of a window is the largest, if there is one. */
static int32_t first_of(const struct windows *w, const int64_t *unit, const int64_t *o)
{
    const struct reach r = reach_of(w, o);
    int64_t at = 0;
    for (int axis = 0; axis < 3; axis++) {
        if (r.first[axis] == r.end[axis])
            return NONE;
        at += r.first[axis] * w->dilation[axis] * unit[axis];
    }
    return (int32_t)at;
}

/* The windows of `f` in the row (o[0], o[1]) of a plane; unit: from place to place along the axes. */
static void look_at_row(const struct windows *w, const float *plane, const int64_t *unit, const int64_t *o,
                        struct found *f)
{
    for (int64_t i = 0; i < f->count; i++) {
        f->largest[i] = -INFINITY;
        f->from_start[i] = NONE;
    }
    const struct reach r = reach_of(w, o);
    for (int64_t z = r.first[0]; z < r.end[0]; z++)
        for (int64_t y = r.first[1]; y < r.end[1]; y++)
            for (int64_t x = 0; x < w->taps[2]; x++)
                look_at_tap(w,
                            plane + (r.start[0] + z * w->dilation[0]) * w->step[0] +
                                (r.start[1] + y * w->dilation[1]) * w->step[1],
                            x, (int32_t)(z * w->dilation[0] * unit[0] + y * w->dilation[1] * unit[1] +
                                         x * w->dilation[2] * unit[2]), f);
    for (int64_t i = 0; i < f->count; i++)
        if (f->from_start[i] == NONE)
            f->from_start[i] = first_of(w, unit, (const int64_t[]){o[0], o[1], f->first + i});
}

static void index_f32(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end)
{
    const struct windows w = read_windows(plain, data);
    const struct weft_array *out = &plain->out[0], *x = &plain->in[0];
    const int last = out->rank - 1;
    const bool turned = plain->attr[MORE].integer[0] != 0;
    const int64_t unit[3] = {turned ? 1 : w.in[1] * w.in[2], turned ? w.in[0] : w.in[2],
                             turned ? w.in[0] * w.in[1] : 1};
    for (int64_t row = begin; row < end; row++) {
        int64_t index[WEFT_K_RANK], o[3] = {0, 0, 0};
        weft_array_index(out, last, row, index);
        for (int i = 2; i < last; i++)
            o[3 - out->rank + i] = index[i];
        const float *const plane = (const float *)data->in[0] + index[0] * x->stride[0] + index[1] * x->stride[1];
        int64_t start = (index[0] * x->extent[1] + index[1]) * w.in[0] * w.in[1] * w.in[2] - w.before[2] * unit[2];
        for (int axis = 0; axis < 2; axis++)
            start += (o[axis] * w.stride[axis] - w.before[axis]) * unit[axis];
        int64_t *const to = (int64_t *)data->out[0] + weft_array_place(out, last, index);
        struct found f;
        for (f.first = 0; f.first < w.out[2]; f.first += f.count) {
            f.count = w.out[2] - f.first < COLUMNS ? w.out[2] - f.first : COLUMNS;
            look_at_row(&w, plane, unit, o, &f);
            for (int64_t i = 0; i < f.count; i++)
                to[(f.first + i) * out->stride[last]] =
                    f.from_start[i] == NONE ? 0 : start + (f.first + i) * w.stride[2] * unit[2] + f.from_start[i];
        }
    }
}

/* Do distances within a plane fit into 32 bits? */
static bool is_small(const struct weft_plain *plain)
{
    double reach = 1;
    for (int axis = 2; axis < plain->in[0].rank; axis++)
        reach *= (double)plain->in[0].extent[axis] +
                 (double)plain->attr[KERNEL].integer[axis - 2] * (double)plain->attr[DILATION].integer[axis - 2];
    return reach < INT32_MAX;
}

void weft_plain_run_max_pool_index(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                   int64_t end)
{
    if (plain->in[0].dtype == WEFT_K_F32 && is_small(plain))
        index_f32(plain, data, begin, end);
    else
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
