/* SPDX-License-Identifier: Apache-2.0 */
/* step_weigh.c: resizes of any type, along any number of axes, with places outside of the operand. Each part makes the
 * tables of all axes in scratch memory, as in step_resize.c. */
#include "ir/places.h"
#include "sched/step.h"

struct weigh_step {
    struct weft_weigh weigh;
    struct weft_resize axis[WEFT_K_RANK];
    int64_t in_stride[WEFT_K_RANK];
    bool empty; /* an operand without elements: then results are 0 */
};

static size_t table_bytes(const struct weft_resize *axis)
{
    const size_t n = (size_t)axis->out, taps = (size_t)axis->taps;
    return (n * taps * (sizeof(int64_t) + sizeof(double)) + n * sizeof(bool) + 63) / 64 * 64;
}

static void bind_weigh(struct weft_bind *bind, void *descriptor)
{
    struct weigh_step *s = descriptor;
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *in = &bind->in[0], *out = &bind->out;
    *s = (struct weigh_step){.weigh = {.dtype = (uint8_t)in->dtype, .rank = out->rank,
                                       .fill = weft_attr_real(g, n, WEFT_ATTR_fill)}};
    for (int axis = 0; axis < out->rank; axis++) {
        s->weigh.extent[axis] = out->extent[axis];
        s->weigh.out_stride[axis] = out->stride[axis];
        s->in_stride[axis] = in->stride[axis];
        s->empty |= in->extent[axis] == 0;
        weft_resize_read(g, n, axis, in->extent[axis], out->extent[axis], &s->axis[axis]);
        bind->scratch += table_bytes(&s->axis[axis]);
    }
    s->weigh.nearest = s->axis[0].form == WEFT_RESIZE_NEAREST;
    weft_weigh_prepare(&s->weigh, bind->workers);
    bind->parts = s->weigh.parts;
}

/* An axis on which every result is the element that stands there takes one tap. */
static struct weft_weigh_table make_table(const struct weft_resize *axis, int64_t stride, char *memory)
{
    const int64_t n = axis->out, taps = axis->taps;
    int64_t *const place = (int64_t *)(void *)memory;
    double *const weight = (double *)(void *)(place + n * taps);
    bool *const inside = (bool *)(weight + n * taps), identity = axis->in == n;
    for (int64_t i = 0; i < n; i++) {
        inside[i] = weft_resize_tabulate(axis, i, place + i * taps, weight + i * taps);
        for (int64_t k = i * taps; k < (i + 1) * taps; k++) {
            identity &= weight[k] == 0 || (weight[k] == 1 && place[k] == i);
            place[k] *= stride;
        }
    }
    for (int64_t i = 0; i < n && identity; i++) {
        place[i] = i * stride;
        weight[i] = 1;
    }
    return (struct weft_weigh_table){.taps = identity ? 1 : taps, .place = place, .weight = weight, .inside = inside};
}

static void run_weigh(const void *descriptor, struct weft_call *call)
{
    const struct weigh_step *s = descriptor;
    if (s->empty) {
        if (call->part == 0)
            weft_step_reference.run(NULL, call);
        return;
    }
    struct weft_weigh_table table[WEFT_K_RANK];
    char *at = call->scratch;
    for (int axis = 0; axis < s->weigh.rank; axis++) {
        table[axis] = make_table(&s->axis[axis], s->in_stride[axis], at);
        at += table_bytes(&s->axis[axis]);
    }
    weft_weigh_run(&s->weigh, call->out, call->in[0], table, call->part, call->parts);
}

static const char *name_weigh(const void *descriptor, const struct weft_step *step) { return "weft_weigh__ref"; }

const struct weft_step_kind weft_step_weigh = {
    .name = "weigh", .arithmetic = WEFT_ARITHMETIC_PLAIN, .traits = WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct weigh_step), .bind = bind_weigh,
    .run = run_weigh, .kernel = name_weigh};
