/* SPDX-License-Identifier: Apache-2.0 */
/* transform.c: contractions that are neither products nor convolutions: convolutions at displaced places, gradients of
 * their weights, determinants by elimination. */
#include "kernels/plain/plain.h"

#include <math.h>

/* --- deform_conv -------------------------------------------------------------------------------------------------- */

static double element(const struct weft_plain *plain, const struct weft_plain_data *data, int operand, int64_t a,
                      int64_t b, int64_t c, int64_t d)
{
    const struct weft_array *x = &plain->in[operand];
    return weft_k_at(x->dtype, data->in[operand],
                     a * x->stride[0] + b * x->stride[1] + c * x->stride[2] + d * x->stride[3]).real;
}

/* The four neighbours weighed by their distance; what lies outside of the image is 0. */
static double between(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t image,
                      int64_t channel, double y, double x)
{
    const int64_t *extent = plain->in[0].extent + 2;
    if (!(y > -1 && y < (double)extent[0] && x > -1 && x < (double)extent[1]))
        return 0;
    const int64_t row = (int64_t)floor(y), column = (int64_t)floor(x);
    const double down = y - (double)row, right = x - (double)column;
    double sum = 0;
    for (int64_t i = 0; i < 2; i++)
        for (int64_t j = 0; j < 2; j++)
            if (row + i >= 0 && row + i < extent[0] && column + j >= 0 && column + j < extent[1])
                sum += (i ? down : 1 - down) * (j ? right : 1 - right) *
                       element(plain, data, 0, image, channel, row + i, column + j);
    return sum;
}

/* Operands: x, w, offsets (pairs y, x per tap, by group of channels), and perhaps a mask. */
static double deform(const struct weft_plain *plain, const struct weft_plain_data *data, const int64_t *at)
{
    enum { STRIDE, PAD, DILATION, GROUPS, OFFSET_GROUPS };
    const struct weft_array *x = &plain->in[0], *w = &plain->in[1];
    const int64_t per_group = w->extent[1], group_results = w->extent[0] / plain->attr[GROUPS].integer[0];
    const int64_t channels = x->extent[1] / plain->attr[OFFSET_GROUPS].integer[0]; /* that share their offsets */
    const int64_t taps = w->extent[2] * w->extent[3];
    const int64_t *stride = plain->attr[STRIDE].integer, *pad = plain->attr[PAD].integer;
    const int64_t *dilation = plain->attr[DILATION].integer;
    double sum = 0;
    for (int64_t c = 0; c < per_group; c++) {
        const int64_t channel = at[1] / group_results * per_group + c, map = channel / channels * taps;
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t i = tap / w->extent[3], j = tap % w->extent[3];
            const double row = (double)(at[2] * stride[0] - pad[0] + i * dilation[0]) +
                               element(plain, data, 2, at[0], 2 * (map + tap), at[2], at[3]);
            const double column = (double)(at[3] * stride[1] - pad[1] + j * dilation[1]) +
                                  element(plain, data, 2, at[0], 2 * (map + tap) + 1, at[2], at[3]);
            const double share = plain->ins == 4 ? element(plain, data, 3, at[0], map + tap, at[2], at[3]) : 1;
            sum += element(plain, data, 1, at[1], c, i, j) * share *
                   between(plain, data, at[0], channel, row, column);
        }
    }
    return sum;
}

void weft_plain_run_deform_conv(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                int64_t end)
{
    const struct weft_array *out = &plain->out[0];
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t at[WEFT_K_RANK];
        weft_array_index(out, 3, unit, at);
        for (at[3] = 0; at[3] < out->extent[3]; at[3]++)
            weft_k_put(out->dtype, data->out[0], weft_array_place(out, 4, at),
                       (union weft_k_number){.real = deform(plain, data, at)});
    }
}

/* --- conv_grad_weight --------------------------------------------------------------------------------------------- */

/* at: [o, c, taps…]; places of dy are counted through all its spatial axes. */
static double weight_gradient(const struct weft_plain *plain, const struct weft_plain_data *data, const int64_t *at)
{
    enum { KERNEL, STRIDE, PAD, DILATION, GROUPS };
    const struct weft_array *x = &plain->in[0], *dy = &plain->in[1], *dw = &plain->out[0];
    const int64_t group = at[0] / (dw->extent[0] / plain->attr[GROUPS].integer[0]);
    const int64_t channel = (group * dw->extent[1] + at[1]) * x->stride[1];
    int64_t places = 1;
    for (int axis = 2; axis < dy->rank; axis++)
        places *= dy->extent[axis];
    double sum = 0;
    for (int64_t n = 0; n < x->extent[0]; n++)
        for (int64_t place = 0; place < places; place++) {
            int64_t rest = place, from = n * x->stride[0] + channel, to = n * dy->stride[0] + at[0] * dy->stride[1];
            bool inside = true;
            for (int axis = dy->rank - 1; axis >= 2; rest /= dy->extent[axis], axis--) {
                const int64_t p = rest % dy->extent[axis];
                const int64_t i = p * plain->attr[STRIDE].integer[axis - 2] - plain->attr[PAD].integer[axis - 2] +
                                  at[axis] * plain->attr[DILATION].integer[axis - 2];
                inside = inside && i >= 0 && i < x->extent[axis];
                from += i * x->stride[axis];
                to += p * dy->stride[axis];
            }
            sum += (inside ? weft_k_at(x->dtype, data->in[0], from).real : 0) *
                   weft_k_at(dy->dtype, data->in[1], to).real;
        }
    return sum;
}

void weft_plain_run_conv_grad_weight(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                     int64_t end)
{
    const struct weft_array *out = &plain->out[0];
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t at[WEFT_K_RANK];
        weft_array_index(out, out->rank, unit, at);
        weft_k_put(out->dtype, data->out[0], weft_array_place(out, out->rank, at),
                   (union weft_k_number){.real = weight_gradient(plain, data, at)});
    }
}

/* --- det ---------------------------------------------------------------------------------------------------------- */

size_t weft_plain_scratch_matrix(const struct weft_plain *plain)
{
    const int64_t n = plain->in[0].extent[plain->in[0].rank - 1];
    return (size_t)(n * n) * sizeof(double);
}

/* Elimination with the largest pivot of each column; the matrix is used up. */
static double determinant(double *a, int64_t n)
{
    double product = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        product *= pivot == k ? a[pivot * n + k] : -a[pivot * n + k];
        if (a[pivot * n + k] == 0)
            return product * 0; /* NaN where an infinity or a NaN has gone before */
        for (int64_t j = k; j < n && pivot != k; j++) {
            const double swapped = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = swapped;
        }
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n && factor != 0; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return product;
}

void weft_plain_run_det(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end)
{
    const struct weft_array *in = &plain->in[0], *out = &plain->out[0];
    const int64_t n = in->extent[in->rank - 1];
    double *const matrix = data->scratch;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t index[WEFT_K_RANK];
        weft_array_index(in, in->rank - 2, unit, index);
        const int64_t from = weft_array_place(in, in->rank - 2, index);
        for (int64_t i = 0; i < n * n; i++)
            matrix[i] = weft_k_at(in->dtype, data->in[0], from + i / n * in->stride[in->rank - 2] +
                                                              i % n * in->stride[in->rank - 1]).real;
        weft_k_put(out->dtype, data->out[0], weft_array_place(out, out->rank, index),
                   (union weft_k_number){.real = determinant(matrix, n)});
    }
}
