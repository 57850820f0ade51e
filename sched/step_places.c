/* SPDX-License-Identifier: Apache-2.0 */
/* step_places.c: steps whose elements follow from their places: iota, triangle. */
#include "sched/step.h"

static void bind_iota(struct weft_bind *bind, void *descriptor)
{
    struct weft_iota *iota = descriptor;
    *iota = (struct weft_iota){.dtype = (uint8_t)bind->out.dtype, .rank = bind->out.rank,
                               .axis = (int32_t)weft_attr_int(bind->graph, bind->step->node, WEFT_ATTR_axis)};
    for (int i = 0; i < iota->rank; i++) {
        iota->extent[i] = bind->out.extent[i];
        iota->out_stride[i] = bind->out.stride[i];
    }
    weft_iota_prepare(iota, bind->workers);
    bind->parts = iota->parts;
}

static void run_iota(const void *descriptor, struct weft_call *call)
{
    weft_iota_run(descriptor, call->out, call->part, call->parts);
}

static const char *name_iota(const void *descriptor, const struct weft_step *step)
{
    return weft_places_name(false);
}

const struct weft_step_kind weft_step_iota = {
    .name = "iota", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_iota), .bind = bind_iota,
    .run = run_iota, .kernel = name_iota};

static void bind_triangle(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    struct weft_triangle *t = descriptor;
    *t = (struct weft_triangle){.upper = weft_attr_int(g, n, WEFT_ATTR_upper) != 0,
                                .bytes = (int32_t)weft_dtype_bits(bind->out.dtype) / 8, .rank = bind->out.rank,
                                .diagonal = weft_dim_evaluate(g->dims, weft_attr_dim(g, n, WEFT_ATTR_diagonal),
                                                              bind->symbols)};
    for (int i = 0; i < t->rank; i++) {
        t->extent[i] = bind->out.extent[i];
        t->out_stride[i] = bind->out.stride[i];
        t->in_stride[i] = bind->in[0].stride[i];
    }
    weft_triangle_prepare(t, bind->workers);
    bind->parts = t->parts;
}

static void run_triangle(const void *descriptor, struct weft_call *call)
{
    weft_triangle_run(descriptor, call->out, call->in[0], call->part, call->parts);
}

static const char *name_triangle(const void *descriptor, const struct weft_step *step)
{
    return weft_places_name(true);
}

const struct weft_step_kind weft_step_triangle = {
    .name = "triangle", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_triangle),
    .bind = bind_triangle, .run = run_triangle, .kernel = name_triangle};
