/* SPDX-License-Identifier: Apache-2.0 */
/* fourier.c: discrete Fourier transforms, of any length: a pass over the line for each factor of the length, in double,
 * so that n points take n times the sum of the factors (Stockham's form, whose results come out in order). Primes are
 * transformed by the definition, and so are lines with infinities or numbers near the end of the range, which would
 * reach results in other ways. */
#include "kernels/plain/plain.h"

#include <math.h>

#define LARGE 0x1p900 /* sums of numbers below stay finite, in any order */

enum { AXIS, LENGTH, INVERSE, ONESIDED }; /* attributes */

struct transform {
    int64_t length, given, step, part_step; /* points of the transform; elements of the operand, and their strides */
    bool half_in, complex_in;
    int dtype;
    const void *data;
    double *cosine, *sine; /* of 2π i / length for each i; the sines are those of the transform's direction */
};

/* A line of complex numbers. */
struct line {
    double *real, *imaginary;
};

size_t weft_plain_scratch_turns(const struct weft_plain *plain)
{
    const int64_t length = plain->attr[LENGTH].integer[0];
    return length > 0 ? 6 * (size_t)length * sizeof(double) : 0; /* turns and two lines */
}

/* Quarters of a turn are exact, so that what is 0 by symmetry is 0. */
static void fill_turns(double *cosine, double *sine, int64_t length, double direction)
{
    static const double quarter[] = {1, 0, -1, 0};
    const double turn = 6.283185307179586476925286766559;
    for (int64_t i = 0; i < length; i++) {
        const bool exact = i * 4 % length == 0;
        const int64_t q = i * 4 / length;
        cosine[i] = exact ? quarter[q % 4] : cos(turn * (double)i / (double)length);
        sine[i] = direction * (exact ? quarter[(q + 3) % 4] : sin(turn * (double)i / (double)length));
    }
}

/* Element k of a line; a half spectrum goes on with the conjugates of its mirror image. */
static void element_of(const struct transform *t, int64_t place, int64_t k, double *ret_real, double *ret_imaginary)
{
    const bool mirrored = t->half_in && 2 * k > t->length;
    const int64_t at = mirrored ? t->length - k : k;
    *ret_real = *ret_imaginary = 0;
    if (at < t->given)
        *ret_real = weft_k_at(t->dtype, t->data, place + at * t->step).real;
    if (at < t->given && t->complex_in && !(t->half_in && (k == 0 || 2 * k == t->length)))
        *ret_imaginary =
            weft_k_at(t->dtype, t->data, place + at * t->step + t->part_step).real * (mirrored ? -1 : 1);
}

/* One pass over the line: transforms of `left` points, `done` of them side by side, become `radix` times as many of
 * left / radix points,
 *
 *   to[t + done·(radix·q + r)] = w(q·r·done) · Σ over u < radix of w(u·r·n / radix) · from[t + done·(q + left/radix·u)]
 *
 * where w(i) is turn i of n. With a radix of all points it is the definition. */
static void pass(const struct transform *t, int64_t left, int64_t done, int64_t radix, struct line from, struct line to)
{
    const int64_t n = t->length, rest = left / radix, turn = n / radix;
    for (int64_t q = 0; q < rest; q++)
        for (int64_t r = 0; r < radix; r++) {
            const double c = t->cosine[q * r * done % n], s = t->sine[q * r * done % n];
            for (int64_t i = 0; i < done; i++) {
                double x = 0, y = 0;
                for (int64_t u = 0, w = 0; u < radix; u++, w = w + r * turn < n ? w + r * turn : w + r * turn - n) {
                    const int64_t at = i + done * (q + rest * u);
                    x += from.real[at] * t->cosine[w] - from.imaginary[at] * t->sine[w];
                    y += from.real[at] * t->sine[w] + from.imaginary[at] * t->cosine[w];
                }
                const int64_t at = i + done * (radix * q + r);
                to.real[at] = q > 0 && r > 0 ? x * c - y * s : x;
                to.imaginary[at] = q > 0 && r > 0 ? x * s + y * c : y;
            }
        }
}

/* The same for a radix of 4, whose own turns are quarters. */
static void pass_of_four(const struct transform *t, int64_t left, int64_t done, struct line from, struct line to)
{
    const int64_t n = t->length, rest = left / 4, step = done * rest;
    const double way = t->sine[n / 4];
    for (int64_t q = 0; q < rest; q++) {
        const double c1 = t->cosine[q * done], s1 = t->sine[q * done], c2 = t->cosine[2 * q * done];
        const double s2 = t->sine[2 * q * done], c3 = t->cosine[3 * q * done], s3 = t->sine[3 * q * done];
        for (int64_t i = 0; i < done; i++) {
            const double *const x = from.real + i + done * q, *const y = from.imaginary + i + done * q;
            const double even_x = x[0] + x[2 * step], even_y = y[0] + y[2 * step];
            const double odd_x = x[step] + x[3 * step], odd_y = y[step] + y[3 * step];
            const double far_x = x[0] - x[2 * step], far_y = y[0] - y[2 * step];
            const double turned_x = -way * (y[step] - y[3 * step]), turned_y = way * (x[step] - x[3 * step]);
            const double x1 = far_x + turned_x, y1 = far_y + turned_y, x3 = far_x - turned_x, y3 = far_y - turned_y;
            const double x2 = even_x - odd_x, y2 = even_y - odd_y;
            double *const real = to.real + i + 4 * done * q, *const imaginary = to.imaginary + i + 4 * done * q;
            real[0] = even_x + odd_x, imaginary[0] = even_y + odd_y;
            real[done] = x1 * c1 - y1 * s1, imaginary[done] = x1 * s1 + y1 * c1;
            real[2 * done] = x2 * c2 - y2 * s2, imaginary[2 * done] = x2 * s2 + y2 * c2;
            real[3 * done] = x3 * c3 - y3 * s3, imaginary[3 * done] = x3 * s3 + y3 * c3;
        }
    }
}

/* In `line` or `other`, the one that is returned. */
static struct line transform_line(const struct transform *t, struct line line, struct line other, bool tame)
{
    int64_t left = t->length, done = 1, radix = 2;
    if (!tame) {
        pass(t, left, 1, left, line, other);
        return other;
    }
    while (left > 1) {
        while (left % 4 && left % radix)
            radix = radix * radix < left ? radix + 1 : left;
        const int64_t by = left % 4 ? radix : 4;
        if (by == 4)
            pass_of_four(t, left, done, line, other);
        else
            pass(t, left, done, by, line, other);
        const struct line swap = line;
        line = other, other = swap;
        left /= by, done *= by;
    }
    return line;
}

void weft_plain_run_dft(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end)
{
    const struct weft_array *in = &plain->in[0], *out = &plain->out[0];
    const int axis = (int)plain->attr[AXIS].integer[0], last = in->rank - 1;
    const bool inverse = plain->attr[INVERSE].integer[0] != 0;
    const int64_t length = plain->attr[LENGTH].integer[0] > 0 ? plain->attr[LENGTH].integer[0] : 0;
    const struct transform t = {.length = length, .given = in->extent[axis], .step = in->stride[axis],
                                .part_step = in->stride[last],
                                .half_in = inverse && plain->attr[ONESIDED].integer[0] != 0,
                                .complex_in = in->extent[last] == 2, .dtype = in->dtype, .data = data->in[0],
                                .cosine = data->scratch, .sine = (double *)data->scratch + length};
    const struct line line = {t.sine + length, t.sine + 2 * length};
    const struct line other = {line.imaginary + length, line.imaginary + 2 * length};
    const double share = inverse ? 1 / (double)length : 1;
    struct weft_array lines = *in; /* without the transformed axis */
    lines.extent[axis] = 1;
    fill_turns(t.cosine, t.sine, length, inverse ? 1 : -1);
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t index[WEFT_K_RANK];
        weft_array_index(&lines, last, unit, index);
        const int64_t from = weft_array_place(in, last, index), to = weft_array_place(out, last, index);
        bool tame = true;
        for (int64_t k = 0; k < length; k++) {
            element_of(&t, from, k, &line.real[k], &line.imaginary[k]);
            tame &= fabs(line.real[k]) < LARGE && fabs(line.imaginary[k]) < LARGE;
        }
        const struct line result = transform_line(&t, line, other, tame);
        for (int64_t i = 0; i < out->extent[axis]; i++) {
            const union weft_k_number real = {.real = result.real[i] * share};
            const union weft_k_number imaginary = {.real = result.imaginary[i] * share};
            weft_k_put(out->dtype, data->out[0], to + i * out->stride[axis], real);
            if (out->extent[last] == 2)
                weft_k_put(out->dtype, data->out[0], to + i * out->stride[axis] + out->stride[last], imaginary);
        }
    }
}
