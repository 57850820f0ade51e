/* SPDX-License-Identifier: Apache-2.0 */
/* step_index.c: steps whose places come from data: gathers, and scatters behind a copy of what they update. Where an
 * axis is empty, or indices have more elements than what they index, the reference evaluator defines what happens and
 * does it. */
#include "sched/step.h"

#include <string.h>

struct index_step {
    struct weft_gather gather;
    bool odd; /* left to the reference evaluator */
};

static struct weft_gather *open_step(const struct weft_bind *bind, struct index_step *s, bool scatter)
{
    *s = (struct index_step){.gather = {.cpu = weft_bind_cpu(bind), .scatter = scatter, .from_end = true,
                                        .index_dtype = bind->in[1].dtype,
                                        .bytes = (int32_t)weft_dtype_bits(bind->out.dtype) / 8}};
    return &s->gather;
}

static void close_step(struct weft_bind *bind, struct index_step *s)
{
    for (int k = 0; k < s->gather.numbers; k++)
        s->odd |= s->gather.limit[k] < 1;
    weft_gather_prepare(&s->gather, bind->workers);
    bind->parts = s->odd ? 1 : s->gather.parts;
}

static void add_outer(struct weft_gather *g, int64_t extent, int64_t plain, int64_t indexed, int64_t index)
{
    g->extent[g->outer] = extent;
    g->plain[g->outer] = plain;
    g->indexed[g->outer] = indexed;
    g->index[g->outer++] = index;
}

static void add_block(struct weft_gather *g, int64_t extent, int64_t plain, int64_t indexed)
{
    g->block[g->inner] = extent;
    g->plain_block[g->inner] = plain;
    g->indexed_block[g->inner++] = indexed;
}

static void add_number(struct weft_gather *g, int64_t limit, int64_t step)
{
    g->limit[g->numbers] = limit;
    g->step[g->numbers++] = step;
}

/* --- the ops ---------------------------------------------------------------------------------------------------- */

static void fill_gather(const struct weft_bind *bind, struct weft_gather *g, int axis)
{
    const struct weft_tensor *x = &bind->in[0], *index = &bind->in[1], *out = &bind->out;
    for (int i = 0; i < axis; i++)
        add_outer(g, x->extent[i], out->stride[i], x->stride[i], 0);
    for (int i = 0; i < index->rank; i++)
        add_outer(g, index->extent[i], out->stride[axis + i], 0, index->stride[i]);
    for (int i = axis + 1; i < x->rank; i++)
        add_block(g, x->extent[i], out->stride[index->rank + i - 1], x->stride[i]);
    add_number(g, x->extent[axis], x->stride[axis]);
}

/* Both ways: `plain` is the result of a gather or the updates of a scatter. */
static void fill_elements(const struct weft_tensor *plain, const struct weft_tensor *indexed,
                          const struct weft_tensor *index, int axis, struct index_step *s)
{
    for (int i = 0; i < indexed->rank; i++) {
        add_outer(&s->gather, index->extent[i], plain->stride[i], i == axis ? 0 : indexed->stride[i], index->stride[i]);
        s->odd |= i != axis && index->extent[i] > indexed->extent[i];
    }
    add_number(&s->gather, indexed->extent[axis], indexed->stride[axis]);
}

static void fill_nd(const struct weft_tensor *plain, const struct weft_tensor *indexed,
                    const struct weft_tensor *index, int batch, struct weft_gather *g)
{
    const int tuples = index->rank - 1, length = (int)index->extent[tuples];
    for (int i = 0; i < tuples; i++)
        add_outer(g, index->extent[i], plain->stride[i], i < batch ? indexed->stride[i] : 0, index->stride[i]);
    for (int i = batch + length; i < indexed->rank; i++)
        add_block(g, indexed->extent[i], plain->stride[tuples + i - batch - length], indexed->stride[i]);
    for (int i = batch; i < batch + length; i++)
        add_number(g, indexed->extent[i], indexed->stride[i]);
    g->number_stride = index->stride[tuples];
}

/* A part of `whole` at a place that is moved inwards. */
static void fill_part(const struct weft_tensor *part, const struct weft_tensor *whole, const struct weft_tensor *start,
                      struct weft_gather *g)
{
    g->from_end = false;
    g->clamp = true;
    for (int i = 0; i < whole->rank; i++) {
        add_block(g, part->extent[i], part->stride[i], whole->stride[i]);
        add_number(g, whole->extent[i] - part->extent[i] + 1, whole->stride[i]);
    }
    g->number_stride = start->stride[0];
}

static void bind_gather(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *graph = bind->graph;
    const weft_node n = bind->step->node;
    struct index_step *s = descriptor;
    struct weft_gather *g = open_step(bind, s, false);
    switch (weft_opcode_of(graph, n)) {
    case WEFT_OP_gather: fill_gather(bind, g, (int)weft_attr_int(graph, n, WEFT_ATTR_axis)); break;
    case WEFT_OP_gather_elements:
        fill_elements(&bind->out, &bind->in[0], &bind->in[1], (int)weft_attr_int(graph, n, WEFT_ATTR_axis), s);
        break;
    case WEFT_OP_gather_nd:
        fill_nd(&bind->out, &bind->in[0], &bind->in[1], (int)weft_attr_int(graph, n, WEFT_ATTR_batch), g);
        break;
    default: fill_part(&bind->out, &bind->in[0], &bind->in[1], g); break;
    }
    for (int i = 0; i < bind->in[0].rank; i++)
        s->odd |= bind->in[0].extent[i] == 0;
    close_step(bind, s);
}

/* Operand 0 is what is written (of a one_hot: its second value), operand 1 says where. */
static void bind_scatter(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *graph = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *from = &bind->in[0], *index = &bind->in[1], *out = &bind->out;
    struct index_step *s = descriptor;
    struct weft_gather *g = open_step(bind, s, true);
    const int op = weft_opcode_of(graph, n);
    if (op == WEFT_OP_scatter_elements || op == WEFT_OP_scatter_nd)
        g->combine = (uint8_t)weft_step_word(graph, n, WEFT_ATTR_form);
    if (op == WEFT_OP_scatter_elements) {
        fill_elements(from, out, index, (int)weft_attr_int(graph, n, WEFT_ATTR_axis), s);
    } else if (op == WEFT_OP_scatter_nd) {
        fill_nd(from, out, index, 0, g);
    } else if (op == WEFT_OP_dynamic_update) {
        fill_part(from, out, index, g);
    } else {
        const int axis = (int)weft_attr_int(graph, n, WEFT_ATTR_axis);
        for (int i = 0; i < index->rank; i++)
            add_outer(g, index->extent[i], 0, out->stride[i + (i >= axis)], index->stride[i]);
        add_number(g, out->extent[axis], out->stride[axis]);
        bind->in_offset = from->stride[0];
    }
    close_step(bind, s);
}

static void run_index(const void *descriptor, struct weft_call *call)
{
    const struct index_step *s = descriptor;
    if (s->odd)
        weft_step_reference.run(NULL, call);
    else
        weft_gather_run(&s->gather, call->out, call->in[0], call->in[1], call->part, call->parts);
}

static uint32_t cpu_index(const void *descriptor)
{
    return weft_gather_cpu(&((const struct index_step *)descriptor)->gather);
}

static const char *name_index(const void *descriptor, const struct weft_step *step)
{
    return weft_gather_name(&((const struct index_step *)descriptor)->gather);
}

const struct weft_step_kind weft_step_gather = {
    .name = "gather", .traits = WEFT_STEP_STRIDED | WEFT_STEP_ODD_ADDRESS,
    .descriptor_bytes = sizeof(struct index_step), .bind = bind_gather, .run = run_index, .kernel = name_index,
    .cpu = cpu_index};
/* A copy of what a scatter leaves as it is (of a one_hot: a fill), then what it writes. The last operand of the second
 * step is not for its kernel: where that leaves the step to the reference evaluator, all operands of the node must
 * still be there. */
static void expand_scatter(const struct weft_graph *g, const struct weft_step *step, struct weft_step_sink *sink)
{
    const int op = weft_opcode_of(g, step->node);
    const bool one_hot = op == WEFT_OP_one_hot, dynamic = op == WEFT_OP_dynamic_update;
    const weft_val *const in = step->in;
    struct weft_step kept = *step, written = *step;
    kept.kind = one_hot ? &weft_step_fill : &weft_step_keep;
    weft_step_read(&kept, sink->arena, 1, &in[one_hot ? 1 : 0]);
    if (!sink->inside)
        sink->add(sink->user, kept);
    const weft_val order[] = {in[one_hot || dynamic ? 1 : 2], in[one_hot ? 0 : dynamic ? 2 : 1], in[0]};
    weft_step_read(&written, sink->arena, one_hot ? 2 : 3, order);
    written.part = 1;
    sink->add(sink->user, written);
}

const struct weft_step_kind weft_step_scatter = {
    .name = "scatter", .arithmetic = WEFT_ARITHMETIC_OP, .descriptor_bytes = sizeof(struct index_step),
    .bind = bind_scatter, .run = run_index,
    .kernel = name_index, .cpu = cpu_index, .expand = expand_scatter};
