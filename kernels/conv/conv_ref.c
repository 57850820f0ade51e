/* SPDX-License-Identifier: Apache-2.0 */
/* conv_ref.c: the definition of a correct convolution: the formula of conv.h, one result after the other. */
#include "kernels/conv/conv.h"

#include <math.h>

/* The adjoint, result `at`: taps from the last to the first, those that no element of x meets left out. */
static float one_adjoint(const struct weft_conv_shape *s, const float *x, const float *w, const int64_t at[3])
{
    float sum = 0;
    for (int64_t t = s->taps - 1; t >= 0; t--) {
        int64_t tap[3], place[3];
        weft_conv_unravel(s->kernel, t, tap);
        bool met = true, inside = true;
        for (int d = 0; d < 3; d++) {
            const int64_t spread = at[d] + s->pad[d] - tap[d] * s->dilation[d];
            place[d] = spread / s->stride[d];
            met = met && spread % s->stride[d] == 0;
            inside = inside && place[d] >= 0 && place[d] < s->in[d];
        }
        const int64_t from = inside ? weft_conv_offset(place, s->x_at) : 0, weight = weft_conv_offset(tap, s->w.tap);
        for (int64_t c = 0; met && c < s->c; c++)
            sum = fmaf(inside ? x[from + c * s->x_c] : 0.0f, w[weight + c * s->w.c], sum);
    }
    return sum;
}

/* `at`: the first tap's place in x, which may lie outside. */
static float one_result(const struct weft_conv_shape *s, const float *x, const float *w, const int64_t at[3])
{
    float sum = 0;
    for (int64_t t = 0; t < s->taps; t++) {
        int64_t tap[3], place[3];
        weft_conv_unravel(s->kernel, t, tap);
        bool inside = true;
        for (int d = 0; d < 3; d++) {
            place[d] = at[d] + tap[d] * s->dilation[d];
            inside = inside && place[d] >= 0 && place[d] < s->in[d];
        }
        const int64_t from = inside ? weft_conv_offset(place, s->x_at) : 0, weight = weft_conv_offset(tap, s->w.tap);
        for (int64_t c = 0; c < s->c; c++)
            sum = fmaf(inside ? x[from + c * s->x_c] : 0.0f, w[weight + c * s->w.c], sum);
    }
    return sum;
}

/* From a sum to result (n, o, pixel). */
static void finish(const struct weft_conv *conv, const struct weft_conv_shape *s, const struct weft_conv_data *data,
                   int64_t n, int64_t o, int64_t pixel, float sum)
{
    const struct weft_conv_piece piece = weft_conv_piece(s, data, n, o, 1, pixel, 1);
    const float result = s->bordered ? sum + 0.0f : sum;
    const float biased = data->bias ? result + data->bias[o] : result;
    *piece.data = conv->clamp.given && !conv->residual ? weft_clamped(&conv->clamp, biased) : biased;
    if (conv->residual)
        weft_conv_add_residual(conv, s, data, &piece);
    if (conv->epilogue)
        conv->epilogue(data->user, &piece);
}

/* One tap: all results of a pixel whose channels are made. */
static void run_made(const struct weft_conv *conv, const struct weft_conv_shape *s, const struct weft_conv_data *data,
                     int part, int parts)
{
    const int64_t total = s->n * s->pixels, end = weft_cut_evenly(total, parts, part + 1);
    float *const x = data->scratch;
    for (int64_t i = weft_cut_evenly(total, parts, part); i < end; i++) {
        const struct weft_conv_piece made = {.data = x, .channel_stride = 1, .pixel_stride = s->c, .channels = s->c,
                                             .pixels = 1, .image = i / s->pixels, .pixel = i % s->pixels};
        conv->prologue(data->user, &made);
        for (int64_t o = 0; o < s->o; o++) {
            float sum = 0;
            for (int64_t c = 0; c < s->c; c++)
                sum = fmaf(x[c], data->w[o * s->w.o + c * s->w.c], sum);
            finish(conv, s, data, made.image, o, made.pixel, sum);
        }
    }
}

void weft_conv_f32__ref(const struct weft_conv *conv, const struct weft_conv_data *data, int part, int parts)
{
    struct weft_conv_shape s = weft_conv_shape(conv);
    if (conv->w_packed) { /* [o][taps][c] */
        s.w = (struct weft_conv_weights){.group = s.o * s.k, .o = s.k, .c = 1, .tap = {[2] = s.c}};
        s.w.tap[1] = s.kernel[2] * s.w.tap[2], s.w.tap[0] = s.kernel[1] * s.w.tap[1];
    }
    if (conv->prologue) {
        run_made(conv, &s, data, part, parts);
        return;
    }
    const int64_t channels = s.groups * s.o, total = s.n * channels * s.pixels;
    const int64_t end = weft_cut_evenly(total, parts, part + 1);
    for (int64_t i = weft_cut_evenly(total, parts, part); i < end; i++) {
        const int64_t o = i / s.pixels % channels, n = i / s.pixels / channels;
        int64_t pixel[3], at[3];
        weft_conv_unravel(s.out, i % s.pixels, pixel);
        for (int d = 0; d < 3; d++)
            at[d] = pixel[d] * s.stride[d] - s.pad[d];
        const float *from = data->x + n * s.x_n + o / s.o * s.c * s.x_c;
        const float *weights = data->w + s.w.first + o / s.o * s.w.group + o % s.o * s.w.o;
        const float sum = s.adjoint ? one_adjoint(&s, from, weights, pixel) : one_result(&s, from, weights, at);
        finish(conv, &s, data, n, o, i % s.pixels, sum);
    }
}
