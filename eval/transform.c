/* SPDX-License-Identifier: Apache-2.0 */
/* transform.c: discrete Fourier transforms by their definition, and determinants by elimination. */
#include "eval/rule.h"

#include <math.h>

/* --- dft --------------------------------------------------------------------------------------------------- */

struct transform {
    int64_t length, given, results; /* points of the transform, elements read, elements written */
    bool inverse, half_in, complex_in, complex_out;
    const union weft_number *cosine; /* cos(2π i / length) for each i, then the sines */
};

/* Element k of the operand; a half spectrum goes on with the conjugates of its mirror image. */
static void element_of(const struct transform *t, const union weft_number *row, int64_t k, double *ret_real,
                       double *ret_imaginary)
{
    const bool mirrored = t->half_in && 2 * k > t->length;
    const int64_t at = mirrored ? t->length - k : k;
    const int64_t step = t->complex_in ? 2 : 1;
    *ret_real = at < t->given ? row[at * step].real : 0;
    *ret_imaginary = at < t->given && t->complex_in ? row[at * step + 1].real * (mirrored ? -1 : 1) : 0;
    if (t->half_in && (k == 0 || 2 * k == t->length))
        *ret_imaginary = 0;
}

static void transform_row(const struct transform *t, const union weft_number *row, union weft_number *result)
{
    const union weft_number *sine = t->cosine + t->length;
    for (int64_t i = 0; i < t->results; i++) {
        double real = 0, imaginary = 0;
        int64_t turn = 0; /* i · k modulo length */
        for (int64_t k = 0; k < t->length; k++) {
            double x, y;
            element_of(t, row, k, &x, &y);
            const double c = t->cosine[turn].real, s = t->inverse ? sine[turn].real : -sine[turn].real;
            real += x * c - y * s;
            imaginary += x * s + y * c;
            turn = turn + i < t->length ? turn + i : turn + i - t->length;
        }
        const double share = t->inverse ? 1 / (double)t->length : 1;
        result[t->complex_out ? 2 * i : i].real = real * share;
        if (t->complex_out)
            result[2 * i + 1].real = imaginary * share;
    }
}

/* The tensor seen with `axis` and the last axis, of real and imaginary parts, behind all others. */
static struct weft_tensor with_axis_last(const struct weft_tensor *tensor, int axis)
{
    struct weft_tensor view = *tensor;
    for (int i = axis; i + 2 < tensor->rank; i++) {
        view.extent[i] = tensor->extent[i + 1];
        view.stride[i] = tensor->stride[i + 1];
    }
    view.extent[tensor->rank - 2] = tensor->extent[axis];
    view.stride[tensor->rank - 2] = tensor->stride[axis];
    return view;
}

/* Quarters of a turn are exact, so that what is 0 by symmetry is 0. */
static void fill_turns(union weft_number *cosine, int64_t length)
{
    static const double quarter[] = {1, 0, -1, 0};
    const double turn = 6.283185307179586476925286766559;
    for (int64_t i = 0; i < length; i++) {
        const bool exact = i * 4 % length == 0;
        const int64_t q = i * 4 / length;
        cosine[i].real = exact ? quarter[q % 4] : cos(turn * (double)i / (double)length);
        cosine[length + i].real = exact ? quarter[(q + 3) % 4] : sin(turn * (double)i / (double)length);
    }
}

void weft_eval_dft(struct weft_eval *eval)
{
    const int axis = (int)weft_eval_int(eval, WEFT_ATTR_axis);
    const struct weft_tensor in = with_axis_last(&eval->in[0], axis), out = with_axis_last(&eval->out[0], axis);
    const int last = in.rank - 1;
    const bool inverse = weft_eval_int(eval, WEFT_ATTR_inverse) != 0,
               half = weft_eval_int(eval, WEFT_ATTR_onesided) != 0;
    struct transform t = {.length = weft_eval_int(eval, WEFT_ATTR_length),
                          .given = in.extent[last - 1],
                          .results = out.extent[last - 1],
                          .inverse = inverse,
                          .half_in = half && inverse,
                          .complex_in = in.extent[last] == 2,
                          .complex_out = out.extent[last] == 2};
    if (t.length < 0)
        t.length = 0;
    const int64_t count = weft_tensor_count(&in), results = weft_tensor_count(&out);
    union weft_number *x = weft_eval_numbers(eval, &in), *turns = weft_eval_scratch(eval, 2 * t.length, sizeof *turns);
    union weft_number *result = weft_eval_scratch(eval, results, sizeof *result);
    if (x && turns && result) {
        fill_turns(turns, t.length);
        t.cosine = turns;
        const int64_t from = t.given * in.extent[last], to = t.results * out.extent[last];
        for (int64_t row = 0; to > 0 && row < results / to; row++)
            transform_row(&t, x + row * from, result + row * to);
        weft_eval_store_all(&out, result);
    }
    weft_eval_drop_numbers(eval, x, count);
    weft_eval_drop_numbers(eval, turns, 2 * t.length);
    weft_eval_drop_numbers(eval, result, results);
}

/* --- det --------------------------------------------------------------------------------------------------- */

/* Elimination with the largest pivot of each column; the matrix is used up. */
static double determinant(union weft_number *a, int64_t n)
{
    double product = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k].real) > fabs(a[pivot * n + k].real))
                pivot = i;
        product *= pivot == k ? a[pivot * n + k].real : -a[pivot * n + k].real;
        if (a[pivot * n + k].real == 0)
            return product * 0; /* NaN where an infinity or a NaN has gone before */
        for (int64_t j = k; j < n && pivot != k; j++) {
            const union weft_number swapped = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = swapped;
        }
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k].real / a[k * n + k].real;
            for (int64_t j = k + 1; j < n && factor != 0; j++)
                a[i * n + j].real -= factor * a[k * n + j].real;
        }
    }
    return product;
}

void weft_eval_det(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const int64_t n = in->extent[in->rank - 1], results = weft_tensor_count(out);
    union weft_number *x = weft_eval_numbers(eval, in);
    union weft_number *result = weft_eval_scratch(eval, results, sizeof *result);
    if (x && result) {
        for (int64_t i = 0; i < results; i++)
            result[i].real = determinant(x + i * n * n, n);
        weft_eval_store_all(out, result);
    }
    weft_eval_drop_numbers(eval, x, weft_tensor_count(in));
    weft_eval_drop_numbers(eval, result, results);
}
