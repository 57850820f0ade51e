/* SPDX-License-Identifier: Apache-2.0 */
/* step_pool_index.c: maxima of windows with their places, of f32, and the gradient that goes back to these places. */
#include "kernels/strip/pool_grad.h"
#include "kernels/strip/pool_index.h"
#include "sched/step.h"

#include <string.h>

static void bind_pool_index(struct weft_bind *bind, void *descriptor)
{
    struct weft_pool_index *const p = descriptor;
    const struct weft_graph *const g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor places = weft_bind_tensor(bind, weft_result(g, n, 1));
    *p = (struct weft_pool_index){.column_major = weft_attr_int(g, n, WEFT_ATTR_column_major) != 0,
                                  .in_plane = weft_attr_int(g, n, WEFT_ATTR_in_plane) != 0};
    weft_step_read_pool(bind, &bind->out, &p->pool);
    memcpy(p->index_stride, places.stride, (size_t)places.rank * sizeof *places.stride);
    weft_pool_index_prepare(p, bind->workers);
    bind->parts = p->parts;
}

static void run_pool_index(const void *descriptor, struct weft_call *call)
{
    weft_pool_index_run(descriptor, call->out, call->tensor(call, call->step->out[1]).data, call->in[0], call->part,
                        call->parts);
}

static uint32_t cpu_pool_index(const void *descriptor) { return weft_pool_index_cpu(descriptor); }

static const char *name_pool_index(const void *descriptor, const struct weft_step *step)
{
    return weft_pool_index_name(descriptor);
}

static void account_pool_index(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    const struct weft_pool *const pool = &((const struct weft_pool_index *)descriptor)->pool;
    int64_t extent[WEFT_MAX_RANK] = {pool->n, pool->c};
    for (int i = 0; i < pool->spatial; i++)
        extent[2 + i] = pool->out_extent[i];
    *ret = (struct weft_account){.signature = {.arithmetic = WEFT_ARITHMETIC_MOVES}};
    ret->count = WEFT_STEP_TAP_WITH_PLACE * weft_step_pool_taps(2 + pool->spatial, extent, pool->kernel,
                                                           /* last= */ pool->in_stride[1] == 1, pool->cpu, &ret->price);
}

const struct weft_step_kind weft_step_pool_index = {
    .name = "pool_index", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_pool_index),
    .bind = bind_pool_index, .run = run_pool_index, .kernel = name_pool_index, .cpu = cpu_pool_index,
    .account = account_pool_index};

/* --- gradients ---------------------------------------------------------------------------------------------------- */

static void bind_pool_grad(struct weft_bind *bind, void *descriptor)
{
    const struct weft_tensor *const dy = &bind->in[0], *const index = &bind->in[1], *const dx = &bind->out;
    struct weft_pool_grad *const s = descriptor;
    *s = (struct weft_pool_grad){.index_dtype = (uint8_t)index->dtype, .spatial = dx->rank - 2, .n = dx->extent[0],
                                 .c = dx->extent[1]};
    for (int i = 0; i < dx->rank; i++) {
        s->dx_stride[i] = dx->stride[i];
        s->dy_stride[i] = dy->stride[i];
        s->index_stride[i] = index->stride[i];
        if (i > 1) {
            s->dx_extent[i - 2] = dx->extent[i];
            s->dy_extent[i - 2] = dy->extent[i];
        }
    }
    weft_pool_grad_prepare(s, bind->workers);
    bind->parts = s->parts;
}

static void run_pool_grad(const void *descriptor, struct weft_call *call)
{
    weft_pool_grad_run(descriptor, call->out, call->in[0], call->in[1], call->part, call->parts);
}

static const char *name_pool_grad(const void *descriptor, const struct weft_step *step)
{
    return weft_pool_grad_name(descriptor);
}

const struct weft_step_kind weft_step_pool_grad = {
    .name = "pool_grad", .arithmetic = WEFT_ARITHMETIC_OP, .traits = WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct weft_pool_grad), .bind = bind_pool_grad, .run = run_pool_grad,
    .kernel = name_pool_grad};
