/* SPDX-License-Identifier: Apache-2.0 */
/* step_sample.c: images of f32 read at the points of a grid: to the nearest element, or between four. */
#include "sched/step.h"

#include <string.h>

static void bind_sample(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *in = &bind->in[0], *grid = &bind->in[1], *out = &bind->out;
    struct weft_sample *s = descriptor;
    *s = (struct weft_sample){
        .cpu = weft_bind_cpu(bind), .nearest = strcmp(weft_attr_word(g, n, WEFT_ATTR_form), "nearest") == 0,
        .corners = weft_attr_int(g, n, WEFT_ATTR_corners) != 0, .border = weft_step_word(g, n, WEFT_ATTR_border),
        .images = out->extent[0], .channels = out->extent[1], .extent = {in->extent[2], in->extent[3]},
        .points = {out->extent[2], out->extent[3]}, .in_image = in->stride[0], .in_channel = in->stride[1],
        .in = {in->stride[2], in->stride[3]}, .grid_image = grid->stride[0],
        .grid = {grid->stride[1], grid->stride[2]}, .grid_axis = grid->stride[3], .out_image = out->stride[0],
        .out_channel = out->stride[1], .out_point = {out->stride[2], out->stride[3]}};
    weft_sample_prepare(s, bind->workers);
    bind->parts = s->parts;
}

static void run_sample(const void *descriptor, struct weft_call *call)
{
    weft_sample_run(descriptor, call->out, call->in[0], call->in[1], call->part, call->parts);
}

static uint32_t cpu_sample(const void *descriptor) { return weft_sample_cpu(descriptor); }

static const char *name_sample(const void *descriptor, const struct weft_step *step)
{
    return weft_sample_name(descriptor);
}

/* What finding a point and its weights takes, in elements: 10 ns beside 1.25 ns of a plane and 0.3 ns of a pixel (one
 * core of Zen 4 with AVX2, 64 x 64 points, 1 to 128 channels). */
enum { SAMPLED_POINT = 8, SAMPLED_PIXEL = 33 };

double weft_step_sampled(double elements, int64_t channels, bool by_pixel)
{
    const double point = by_pixel ? SAMPLED_PIXEL : SAMPLED_POINT;
    return elements * (1 + point / (double)(channels > 0 ? channels : 1)) / (1 + point / WEFT_SAMPLE_CHANNELS);
}

static void account_sample(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    const struct weft_sample *s = descriptor;
    const bool by_pixel = weft_sample_by_pixel(s);
    *ret = (struct weft_account){.signature = {.arithmetic = WEFT_ARITHMETIC_SUMS}};
    ret->count = weft_step_sampled(weft_tensor_elements(&bind->out), s->channels, by_pixel);
    ret->price = WEFT_PRICE_sample_first + (enum weft_price)by_pixel;
}

const struct weft_step_kind weft_step_sample = {
    .name = "sample", .arithmetic = WEFT_ARITHMETIC_SUMS, .traits = WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct weft_sample), .bind = bind_sample, .run = run_sample, .kernel = name_sample,
    .cpu = cpu_sample, .account = account_sample};
