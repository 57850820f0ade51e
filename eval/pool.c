/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: maxima, means and norms of windows, and the gradient of maxima.
 *
 * Padding never wins a maximum: a window without data gives the least value of the type. The index of a maximum is that
 * of the first of equal ones, or of the first NaN. A mean divides by the taps that fall upon data; with count_pad also
 * by those upon stated padding, but not by those that rounding up put behind it. */
#include "eval/rule.h"

#include <math.h>

/* Up to three spatial axes, with leading ones of extent 1. */
enum pool_kind { MAXIMUM, INDEX, MEAN, NORM };
struct pool {
    enum pool_kind kind;
    bool count_pad, column_major, in_plane;
    int dtype;
    double order; /* of a norm */
    int64_t in[3], out[3], taps[3], stride[3], dilation[3], before[3], after[3];
};

static struct pool read_pool(const struct weft_eval *eval, enum pool_kind kind)
{
    const struct weft_tensor *x = &eval->in[0], *out = &eval->out[0];
    struct pool p = {.kind = kind, .dtype = x->dtype};
    p.count_pad = kind == MEAN && weft_eval_int(eval, WEFT_ATTR_count_pad);
    p.column_major = kind == INDEX && weft_eval_int(eval, WEFT_ATTR_column_major);
    p.in_plane = kind == INDEX && weft_eval_int(eval, WEFT_ATTR_in_plane);
    p.order = kind == NORM ? (double)weft_eval_int(eval, WEFT_ATTR_order) : 0;
    const int spatial = x->rank - 2, missing = 3 - spatial;
    for (int i = 0; i < 3; i++) {
        const bool given = i >= missing;
        const unsigned at = given ? (unsigned)(i - missing) : 0;
        p.in[i] = given ? x->extent[2 + at] : 1;
        p.out[i] = given ? out->extent[2 + at] : 1;
        p.taps[i] = given ? weft_eval_at(eval, WEFT_ATTR_kernel, at) : 1;
        p.stride[i] = given ? weft_eval_at(eval, WEFT_ATTR_stride, at) : 1;
        p.dilation[i] = given ? weft_eval_at(eval, WEFT_ATTR_dilation, at) : 1;
        p.before[i] = given ? weft_eval_at(eval, WEFT_ATTR_pad, at) : 0;
        p.after[i] = given ? weft_eval_at(eval, WEFT_ATTR_pad, (unsigned)spatial + at) : 0;
    }
    return p;
}

/* Taps [first, end) of window o along an axis whose place lies in [low, high). */
static void taps_within(const struct pool *p, int axis, int64_t o, int64_t low, int64_t high, int64_t *ret_first,
                        int64_t *ret_end)
{
    const int64_t start = o * p->stride[axis] - p->before[axis], d = p->dilation[axis];
    const int64_t first = start < low ? (low - start + d - 1) / d : 0;
    const int64_t end = start < high ? (high - 1 - start) / d + 1 : 0;
    *ret_end = end < p->taps[axis] ? end : p->taps[axis];
    *ret_first = first < *ret_end ? first : *ret_end;
}

static union weft_number least_of(int dtype)
{
    if (weft_dtype_is_float(dtype))
        return (union weft_number){.real = -INFINITY};
    if (weft_dtype_is_signed(dtype))
        return (union weft_number){.integer = INT64_MIN >> (64 - weft_dtype_bits(dtype))};
    return (union weft_number){.bits = 0};
}

static union weft_number larger(int dtype, union weft_number a, union weft_number b)
{
    if (weft_dtype_is_float(dtype))
        return isnan(a.real) || a.real > b.real ? a : b;
    const bool less = dtype == WEFT_U64 ? a.bits < b.bits : a.integer < b.integer;
    return less ? b : a;
}

/* Does a take the place of the maximum b, which comes before it? */
static bool exceeds(int dtype, union weft_number a, union weft_number b)
{
    if (weft_dtype_is_float(dtype))
        return !isnan(b.real) && (isnan(a.real) || a.real > b.real);
    return dtype == WEFT_U64 ? a.bits > b.bits : a.integer > b.integer;
}

/* The taps of window o that fall upon data, and the index of tap 0, which may lie outside. */
struct reach {
    int64_t first[3], end[3], start[3];
};

static struct reach reach_of(const struct pool *p, const int64_t *o)
{
    struct reach r;
    for (int axis = 0; axis < 3; axis++) {
        taps_within(p, axis, o[axis], 0, p->in[axis], &r.first[axis], &r.end[axis]);
        r.start[axis] = o[axis] * p->stride[axis] - p->before[axis];
    }
    return r;
}

static int64_t counted_taps(const struct pool *p, const int64_t *o)
{
    int64_t count = 1;
    for (int axis = 0; axis < 3; axis++) {
        int64_t first, end;
        taps_within(p, axis, o[axis], p->count_pad ? -p->before[axis] : 0,
                    p->in[axis] + (p->count_pad ? p->after[axis] : 0), &first, &end);
        count *= end - first;
    }
    return count;
}

static union weft_number pool_window(const struct pool *p, const union weft_number *plane, const int64_t *o)
{
    const struct reach r = reach_of(p, o);
    union weft_number best = p->kind != MAXIMUM ? (union weft_number){.real = 0} : least_of(p->dtype);
    for (int64_t z = r.first[0]; z < r.end[0]; z++)
        for (int64_t y = r.first[1]; y < r.end[1]; y++)
            for (int64_t x = r.first[2]; x < r.end[2]; x++) {
                const int64_t row = (r.start[0] + z * p->dilation[0]) * p->in[1] + r.start[1] + y * p->dilation[1];
                const union weft_number tap = plane[row * p->in[2] + r.start[2] + x * p->dilation[2]];
                if (p->kind == MAXIMUM)
                    best = larger(p->dtype, best, tap);
                else
                    best.real += p->kind == MEAN ? tap.real : pow(fabs(tap.real), p->order);
            }
    if (p->kind == MEAN)
        best.real /= (double)counted_taps(p, o);
    else if (p->kind == NORM)
        best.real = pow(best.real, 1 / p->order);
    return best;
}

/* The maximum of a window and where it stands in its plane; the least number and 0 where there is no data. */
struct found {
    union weft_number largest;
    int64_t place;
    bool any;
};

static struct found find_in_window(const struct pool *p, const union weft_number *plane, const int64_t *o)
{
    const struct reach r = reach_of(p, o);
    struct found f = {.largest = least_of(p->dtype)};
    for (int64_t z = r.first[0]; z < r.end[0]; z++)
        for (int64_t y = r.first[1]; y < r.end[1]; y++)
            for (int64_t k = r.first[2]; k < r.end[2]; k++) {
                const int64_t at[] = {r.start[0] + z * p->dilation[0], r.start[1] + y * p->dilation[1],
                                      r.start[2] + k * p->dilation[2]};
                const int64_t place = (at[0] * p->in[1] + at[1]) * p->in[2] + at[2];
                if (f.any && !exceeds(p->dtype, plane[place], f.largest))
                    continue;
                f = (struct found){
                    plane[place], p->column_major ? (at[2] * p->in[1] + at[1]) * p->in[0] + at[0] : place, true};
            }
    return f;
}

/* Results of all windows, row-major; of an INDEX also places. */
static void each_window(const struct pool *p, int64_t planes, const union weft_number *x, union weft_number *result,
                        union weft_number *place)
{
    const int64_t size = p->in[0] * p->in[1] * p->in[2];
    for (int64_t plane = 0, at = 0; plane < planes; plane++)
        for (int64_t z = 0; z < p->out[0]; z++)
            for (int64_t y = 0; y < p->out[1]; y++)
                for (int64_t k = 0; k < p->out[2]; k++, at++) {
                    const int64_t o[] = {z, y, k};
                    if (p->kind != INDEX) {
                        result[at] = pool_window(p, x + plane * size, o);
                        continue;
                    }
                    const struct found f = find_in_window(p, x + plane * size, o);
                    result[at] = f.largest;
                    place[at].integer = f.any ? f.place + (p->in_plane ? 0 : plane * size) : 0;
                }
}

static void run_pool(struct weft_eval *eval, enum pool_kind kind)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const struct pool p = read_pool(eval, kind);
    const int64_t results = weft_tensor_count(out), places = kind == INDEX ? results : 0;
    union weft_number *x = weft_eval_numbers(eval, in);
    union weft_number *result = weft_eval_scratch(eval, results, sizeof *result);
    union weft_number *place = weft_eval_scratch(eval, places, sizeof *place);
    if (x && result && place) {
        each_window(&p, results > 0 ? in->extent[0] * in->extent[1] : 0, x, result, place);
        weft_eval_store_all(out, result);
        if (kind == INDEX)
            weft_eval_store_all(&eval->out[1], place);
    }
    weft_eval_drop_numbers(eval, x, weft_tensor_count(in));
    weft_eval_drop_numbers(eval, result, results);
    weft_eval_drop_numbers(eval, place, places);
}

/* Each element of operand 0 added at its place in its plane, in order, in double; rounded at the end. */
void weft_eval_max_pool_grad(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const int64_t count = weft_tensor_count(in), results = weft_tensor_count(out);
    const int64_t planes = results > 0 ? out->extent[0] * out->extent[1] : 0;
    union weft_number *x = weft_eval_numbers(eval, in), *place = weft_eval_numbers(eval, &eval->in[1]);
    union weft_number *sum = weft_eval_scratch(eval, results, sizeof *sum);
    if (x && place && sum) {
        for (int64_t i = 0; i < results; i++)
            sum[i].bits = 0; /* also 0.0 */
        for (int64_t i = 0; planes > 0 && i < count; i++) {
            if (place[i].bits >= (uint64_t)(results / planes))
                continue;
            union weft_number *const to = &sum[i / (count / planes) * (results / planes) + place[i].integer];
            if (weft_dtype_is_float(in->dtype))
                to->real += x[i].real;
            else
                to->bits += x[i].bits;
        }
        weft_eval_store_all(out, sum);
    }
    weft_eval_drop_numbers(eval, x, count);
    weft_eval_drop_numbers(eval, place, weft_tensor_count(&eval->in[1]));
    weft_eval_drop_numbers(eval, sum, results);
}

void weft_eval_max_pool(struct weft_eval *eval) { run_pool(eval, MAXIMUM); }
void weft_eval_max_pool_index(struct weft_eval *eval) { run_pool(eval, INDEX); }
void weft_eval_mean_pool(struct weft_eval *eval) { run_pool(eval, MEAN); }
void weft_eval_norm_pool(struct weft_eval *eval) { run_pool(eval, NORM); }
