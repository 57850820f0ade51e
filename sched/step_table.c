/* SPDX-License-Identifier: Apache-2.0 */
/* step_table.c: steps that read through a table per axis: elements that are repeated by a padding or a resize. The
 * innermost axis of a padding comes as spans: what lies before the operand, the operand, what lies behind it. As in
 * step_resize.c each part makes the tables itself, in scratch memory. */
#include "ir/places.h"
#include "sched/step.h"

static bool is_padding(const struct weft_graph *g, weft_node n) { return weft_opcode_of(g, n) == WEFT_OP_pad; }

/* How many spans n results along a padded axis may be: an operand that is wrapped around is met again and again. */
static int64_t most_spans(int64_t n, int64_t extent) { return extent > 1 ? n / (extent - 1) + 3 : 3; }

static void bind_table(struct weft_bind *bind, void *descriptor)
{
    struct weft_table *t = descriptor;
    *t = (struct weft_table){.cpu = weft_bind_cpu(bind), .bytes = (int32_t)weft_dtype_bits(bind->out.dtype) / 8,
                             .rank = bind->out.rank, .spans = is_padding(bind->graph, bind->step->node)};
    bool empty = false;
    int64_t spans = 0;
    for (int i = 0; i < t->rank; i++) {
        t->extent[i] = bind->out.extent[i];
        t->out_stride[i] = bind->out.stride[i];
        bind->scratch += (size_t)t->extent[i] * sizeof(int64_t);
        const int64_t most = most_spans(t->extent[i], bind->in[0].extent[i]);
        spans = t->spans && most > spans ? most : spans;
        empty |= bind->in[0].extent[i] == 0; /* only where sizes were not known to inference */
    }
    bind->scratch += (size_t)spans * sizeof(struct weft_table_span);
    if (empty)
        t->rank = 0;
    else
        weft_table_prepare(t, bind->workers);
    bind->parts = empty ? 1 : t->parts;
}

/* Results [0, n) along a padded axis; how many spans that makes. `form` is none of those that pad with a number. */
static int64_t span_pad(const char *form, int64_t before, int64_t extent, int64_t stride, int64_t n,
                        struct weft_table_span *span)
{
    const bool edge = form[0] == 'e' || extent == 1, wraps = form[0] == 'w';
    const int64_t period = edge ? 0 : wraps ? extent : 2 * (extent - 1);
    int64_t spans = 0;
    for (int64_t i = -before; i < n - before; spans++) {
        int64_t place = i, step = 1, end = extent; /* within the operand up to `end`, where another span begins */
        if (edge && (i < 0 || i >= extent)) {
            place = i < 0 ? 0 : extent - 1, step = 0, end = i < 0 ? 0 : INT64_MAX;
        } else if (i < 0 || i >= extent) {
            const int64_t within = (i % period + period) % period;
            const bool back = within >= extent;
            place = back ? period - within : within, step = back ? -1 : 1;
            end = i + (back ? place : extent - within);
        }
        end = end < n - before ? end : n - before;
        span[spans] = (struct weft_table_span){.place = place * stride, .step = step * stride, .count = end - i};
        i = end;
    }
    return spans;
}

/* The spans of an axis: what the node says of it is read once. */
static int64_t span_axis(const struct weft_call *call, int axis, const struct weft_tensor *in, int64_t n,
                         struct weft_table_span *span)
{
    const struct weft_graph *g = call->graph;
    const weft_node node = call->step->node;
    const int64_t before =
        weft_dim_evaluate(g->dims, weft_attr_at(g, node, WEFT_ATTR_pad, (unsigned)axis), call->symbols);
    return span_pad(weft_attr_word(g, node, WEFT_ATTR_form), before, in->extent[axis], in->stride[axis], n, span);
}

static void tabulate_spans(const struct weft_table_span *span, int64_t spans, int64_t *at)
{
    for (; spans > 0; spans--, span++)
        for (int64_t i = 0; i < span->count; i++)
            *at++ = span->place + i * span->step;
}

static void tabulate_resize(const struct weft_call *call, int axis, const struct weft_tensor *in, int64_t n,
                            int64_t *at)
{
    struct weft_resize resize;
    weft_resize_read(call->graph, call->step->node, axis, in->extent[axis], n, &resize);
    for (int64_t i = 0; i < n; i++) {
        int64_t index;
        double weight;
        weft_resize_tabulate(&resize, i, &index, &weight);
        at[i] = in->stride[axis] * index;
    }
}

static void run_table(const void *descriptor, struct weft_call *call)
{
    const struct weft_table *t = descriptor;
    const struct weft_tensor in = call->tensor(call, call->step->in[0]);
    if (t->rank == 0) {
        weft_step_reference.run(NULL, call);
        return;
    }
    const int64_t *table[WEFT_K_RANK];
    int64_t *at = call->scratch;
    struct weft_table_span *span = NULL;
    for (int axis = 0; axis < t->rank && !t->spans; axis++) {
        table[axis] = at;
        tabulate_resize(call, axis, &in, t->extent[axis], at);
        at += t->extent[axis];
    }
    for (int i = 0; i < t->rank && t->spans; i++) { /* the innermost axis last, whose spans stay behind the tables */
        const int axis = t->order[i];
        int64_t *const end = at + t->extent[axis];
        span = (struct weft_table_span *)(void *)end;
        const int64_t spans = span_axis(call, axis, &in, t->extent[axis], span);
        table[axis] = at;
        if (i + 1 < t->rank)
            tabulate_spans(span, spans, at);
        at = end;
    }
    weft_table_run(t, call->out, call->in[0], table, span, call->part, call->parts);
}

static uint32_t cpu_table(const void *descriptor) { return weft_table_cpu(descriptor); }

static const char *name_table(const void *descriptor, const struct weft_step *step)
{
    return weft_table_name(descriptor);
}

const struct weft_step_kind weft_step_table = {
    .name = "table", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_table), .bind = bind_table,
    .run = run_table, .kernel = name_table, .cpu = cpu_table};
