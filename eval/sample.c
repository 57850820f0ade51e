/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c: sampling at points that a grid gives, and adding overlapping windows back into an image. */
#include "eval/rule.h"
#include "kernels/plain/shared.h"

#include <math.h>
#include <string.h>

#define MOST_AXES (WEFT_MAX_RANK - 2) /* of space */

/* --- grid_sample ------------------------------------------------------------------------------------------------ */

struct sampler {
    struct weft_k_sampling how;
    int spatial, taps;
    struct weft_tensor image;     /* without its first two axes */
    int64_t place[MOST_AXES][WEFT_K_TAPS]; /* along each axis, or -1: outside, which reads as 0 */
    double weight[MOST_AXES][WEFT_K_TAPS];
};

static void sample_axis(struct sampler *s, int axis, double g)
{
    weft_k_sample_axis(&s->how, s->image.extent[axis], g, s->place[axis], s->weight[axis]);
    for (int k = 0; k < s->taps; k++)
        s->place[axis][k] *= s->place[axis][k] < 0 ? 1 : s->image.stride[axis];
}

/* The sum over all taps of the axes from `axis` on. */
static double sample(const struct sampler *s, int axis, int64_t place)
{
    double sum = 0;
    for (int k = 0; k < s->taps; k++) {
        if (s->place[axis][k] < 0 || s->weight[axis][k] == 0)
            continue;
        double part;
        if (axis + 1 < s->spatial) {
            part = sample(s, axis + 1, place + s->place[axis][k]);
        } else {
            union weft_number x;
            weft_eval_load(&s->image, place + s->place[axis][k], 0, 1, &x);
            part = x.real;
        }
        sum += s->weight[axis][k] * part;
    }
    return sum;
}

static struct sampler sampler_of(const struct weft_eval *eval)
{
    const char *form = weft_attr_word(eval->graph, eval->node, WEFT_ATTR_form),
               *border = weft_attr_word(eval->graph, eval->node, WEFT_ATTR_border);
    struct sampler s = {
        .how = {.form = strcmp(form, "linear") == 0    ? WEFT_K_LINEAR
                        : strcmp(form, "nearest") == 0 ? WEFT_K_NEAREST
                                                       : WEFT_K_CUBIC,
                .border = strcmp(border, "zeros") == 0  ? WEFT_K_ZEROS
                          : strcmp(border, "edge") == 0 ? WEFT_K_EDGE
                                                        : WEFT_K_REFLECT,
                .corners = weft_eval_int(eval, WEFT_ATTR_corners)},
        .spatial = eval->in[0].rank - 2,
        .image = eval->in[0],
    };
    s.taps = weft_k_taps(s.how.form);
    memmove(s.image.extent, s.image.extent + 2, (size_t)s.spatial * sizeof *s.image.extent);
    memmove(s.image.stride, s.image.stride + 2, (size_t)s.spatial * sizeof *s.image.stride);
    return s;
}

void weft_eval_grid_sample(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *grid = &eval->in[1], *out = &eval->out[0];
    struct sampler s = sampler_of(eval);
    const bool empty = weft_tensor_count(&s.image) == 0; /* of axes without elements everything is outside */
    struct weft_tensor points = *grid, target = *out; /* [n, points…], and where their results of channel 0 stand */
    points.rank = target.rank = grid->rank - 1;
    memmove(target.extent + 1, out->extent + 2, (size_t)s.spatial * sizeof *target.extent);
    memmove(target.stride + 1, out->stride + 2, (size_t)s.spatial * sizeof *target.stride);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){&points, &target}); !walk.done;
         weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            for (int axis = 0; axis < s.spatial && !empty; axis++) {
                union weft_number g; /* the last axis comes first */
                weft_eval_load(grid, walk.place[0] + i * walk.step[0] +
                                         (s.spatial - 1 - axis) * grid->stride[grid->rank - 1], 0, 1, &g);
                sample_axis(&s, axis, g.real);
            }
            for (int64_t c = 0; c < in->extent[1]; c++) {
                const int64_t from = walk.index[0] * in->stride[0] + c * in->stride[1];
                const union weft_number x = {.real = empty ? 0 : sample(&s, 0, from)};
                weft_eval_store(out, walk.place[1] + i * walk.step[1] + c * out->stride[1], 0, 1, &x);
            }
        }
}

/* --- col2im ----------------------------------------------------------------------------------------------------- */

struct windows {
    int spatial;
    int64_t kernel[MOST_AXES], stride[MOST_AXES], dilation[MOST_AXES], pad[MOST_AXES];
    int64_t count[MOST_AXES]; /* windows along each axis */
};

/* The sum over windows of what they have at one pixel, axis after axis: `tap` and `window` number them row-major. */
static void add_windows(const struct windows *w, const struct weft_tensor *in, int64_t place, const int64_t *pixel,
                        int axis, int64_t tap, int64_t window, union weft_number *sum)
{
    if (axis == w->spatial) {
        union weft_number x;
        weft_eval_load(in, place + tap * in->stride[1] + window * in->stride[2], 0, 1, &x);
        if (weft_dtype_is_float(in->dtype))
            sum->real += x.real;
        else
            sum->bits += x.bits;
        return;
    }
    for (int64_t k = 0; k < w->kernel[axis]; k++) {
        const int64_t at = pixel[axis] + w->pad[axis] - k * w->dilation[axis];
        if (at >= 0 && at % w->stride[axis] == 0 && at / w->stride[axis] < w->count[axis])
            add_windows(w, in, place, pixel, axis + 1, tap * w->kernel[axis] + k,
                        window * w->count[axis] + at / w->stride[axis], sum);
    }
}

void weft_eval_col2im(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    struct windows w = {.spatial = out->rank - 2};
    int64_t taps = 1;
    for (int i = 0; i < w.spatial; i++) {
        const unsigned axis = (unsigned)i;
        w.kernel[i] = weft_eval_at(eval, WEFT_ATTR_kernel, axis);
        w.stride[i] = weft_eval_at(eval, WEFT_ATTR_stride, axis);
        w.dilation[i] = weft_eval_at(eval, WEFT_ATTR_dilation, axis);
        w.pad[i] = weft_eval_at(eval, WEFT_ATTR_pad, axis);
        const int64_t free = out->extent[2 + i] + w.pad[i] +
                             weft_eval_at(eval, WEFT_ATTR_pad, axis + (unsigned)w.spatial) -
                             w.dilation[i] * (w.kernel[i] - 1) - 1;
        w.count[i] = free < 0 ? 0 : free / w.stride[i] + 1;
        taps *= w.kernel[i];
    }
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &out); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            int64_t index[WEFT_MAX_RANK];
            memcpy(index, walk.index, sizeof index);
            index[walk.outer] = i;
            union weft_number sum = {.bits = 0}; /* also 0.0 */
            add_windows(&w, in, index[0] * in->stride[0] + index[1] * taps * in->stride[1], index + 2, 0, 0, 0, &sum);
            weft_eval_store(out, walk.place[0] + i * walk.step[0], 0, 1, &sum);
        }
}
